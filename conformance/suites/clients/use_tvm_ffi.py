"""Tests the features that every release of tvm-ffi's Python has: values, containers, functions, errors, tensors, data types."""

import numpy
import tvm_ffi


def containers():
    array = tvm_ffi.convert([1, 2.5, "a text that is longer than a cell", None])
    assert list(array)[:2] == [1, 2.5] and len(array) == 4
    table = tvm_ffi.convert({"a": 1, "b": [1, 2]})
    assert table["a"] == 1 and list(table["b"]) == [1, 2] and set(table.keys()) == {"a", "b"}
    assert tuple(tvm_ffi.Shape((2, 3))) == (2, 3)


def functions():
    add = tvm_ffi.convert(lambda a, b: a + b)
    assert add(1, 2) == 3 and add("x", "y") == "xy"

    @tvm_ffi.register_global_func("clients.twice")
    def twice(value):
        return value * 2

    assert tvm_ffi.get_global_func("clients.twice")(21) == 42


def errors():
    def fails(value):
        raise ValueError(f"as asked: {value}")

    try:
        tvm_ffi.convert(fails)(3)
    except ValueError as error:
        assert "as asked: 3" in str(error)
    else:
        raise AssertionError("nothing was raised")


def tensors():
    array = numpy.arange(6, dtype="float32").reshape(2, 3)
    tensor = tvm_ffi.from_dlpack(array)
    assert tuple(tensor.shape) == (2, 3) and str(tensor.dtype) == "float32"
    assert (numpy.from_dlpack(tensor) == array).all()


def dtypes():
    dtype = tvm_ffi.dtype("float16x4")
    assert (dtype.bits, dtype.lanes) == (16, 4) and str(dtype) == "float16x4"
    assert str(tvm_ffi.device("cpu", 0)).startswith("cpu")


def json():
    text = tvm_ffi.get_global_func("ffi.json.Stringify")(tvm_ffi.convert({"a": [1, None, True]}), None)
    assert tvm_ffi.get_global_func("ffi.json.Parse")(text)["a"][0] == 1


def objects():
    import tvm_ffi.testing

    pair = tvm_ffi.testing.create_object("testing.TestIntPair", a=1, b=2)
    assert (pair.a, pair.b) == (1, 2)


for test in (containers, functions, errors, tensors, dtypes, json, objects):
    try:
        test()
        print(f"PASSED {test.__name__}", flush=True)
    except Exception as error:
        print(f"FAILED {test.__name__} - {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)
