"""Tests callbacks that raise, with the Python of TVM up to 0.20: the raised object itself passes through the runtime (FUN-25).

Only the runtime is loaded (TVM_USE_RUNTIME_LIB), from TVM_LIBRARY_PATH.
"""

import gc
import threading
import traceback
import weakref

import numpy
import tvm
from tvm import nd


class Mine(Exception):
    pass


def raising(number):
    raise Mine(f"number {number}")


def raised(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def the_object_itself():
    made = []

    def callback():
        made.append(Mine("once"))
        raise made[0]

    assert raised(tvm.runtime.convert(callback)) is made[0]


def a_thousand_times():
    call = tvm.runtime.convert(raising)
    for number in range(1000):
        error = raised(call, number)
        assert type(error) is Mine and str(error) == f"number {number}"


def freed_after_it_was_caught():
    call = tvm.runtime.convert(raising)
    errors = [weakref.ref(raised(call, number)) for number in range(20)]
    gc.collect()
    assert [error for error in errors if error() is not None] == []


def through_two_calls():
    inner = tvm.runtime.convert(raising)
    outer = tvm.runtime.convert(lambda number: inner(number + 1))
    assert str(raised(outer, 1)) == "number 2"


def caught_between_two_calls():
    inner = tvm.runtime.convert(raising)

    def callback(number):
        assert type(raised(inner, number)) is Mine
        return number + 1

    assert tvm.runtime.convert(callback)(4) == 5


def a_text_after_an_object():
    assert type(raised(tvm.runtime.convert(raising), 1)) is Mine
    error = raised(tvm.get_global_func("runtime.GetDeviceAttr"), 1)
    assert not isinstance(error, Mine) and "number 1" not in str(error)


def on_four_threads():
    call = tvm.runtime.convert(raising)
    wrong = []

    def work(first):
        for number in range(first, first + 200):
            error = raised(call, number)
            if type(error) is not Mine or str(error) != f"number {number}":
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(1000 * index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def tensors_and_functions():
    array = nd.from_dlpack(numpy.array([[1.0, 2.0], [3.0, 4.0]]))
    assert array.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]] and array.device == tvm.cpu(0)
    give = tvm.runtime.convert(lambda tensor, number, text: (tensor.shape[0] + number, text)[0])
    assert give(array, 40, "a text") == 42
    assert tvm.runtime.convert(lambda value: value)("back") == "back"


tests = (the_object_itself, a_thousand_times, freed_after_it_was_caught, through_two_calls, caught_between_two_calls)
for test in (*tests, a_text_after_an_object, on_four_threads, tensors_and_functions):
    try:
        test()
        print(f"PASSED {test.__name__}", flush=True)
    except Exception:
        traceback.print_exc()
        print(f"FAILED {test.__name__}", flush=True)
