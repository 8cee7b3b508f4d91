"""load, run, and calls with arrays."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import tvmspec

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the goldens are compiled for x86-64")


@pytest.mark.parametrize(("library", "name"), [("host-0.27.so", "main"), ("host-0.8.so", "add1")])
def test_compiled_functions_take_arrays(golden: Path, library: str, name: str) -> None:
    add_one = tvmspec.load(golden / "module" / library)[name]
    x, y = np.ones(12, "float32"), np.zeros(12, "float32")
    assert add_one(x, y) is None
    np.testing.assert_array_equal(y, np.full(12, 2, "float32"))
    source, target = tvmspec.tensor(x), tvmspec.tensor(np.zeros(12, "float32"))
    add_one(source, target)
    np.testing.assert_array_equal(target.numpy(), y)
    np.testing.assert_array_equal(np.from_dlpack(target), y)
    assert target.shape == (12,) and repr(target) == "<Tensor float32[12]>"


class Exported:
    """An array of a library that is not numpy."""

    def __init__(self, array: np.ndarray) -> None:  # type: ignore[type-arg]
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_arrays_of_other_libraries(golden: Path) -> None:
    main = tvmspec.load(golden / "module/host-0.27.so")["main"]
    x, y = np.ones(12, "float32"), np.zeros(12, "float32")
    main(Exported(x), Exported(y))
    assert y[0] == 2


def test_wrong_arguments_raise(golden: Path) -> None:
    module = tvmspec.load(golden / "module/host-0.27.so")
    main = module["main"]
    with pytest.raises(Exception) as raised:
        main(np.ones(12, "float32"))
    assert isinstance(raised.value, (TypeError, RuntimeError, ValueError))
    with pytest.raises(Exception):
        main(np.ones(12, "int8"), np.zeros(12, "float32"))
    with pytest.raises(TypeError):
        main(object(), None)
    with pytest.raises(TypeError):
        main(np.ones(12, ">f4"), np.zeros(12, "float32"))
    with pytest.raises(KeyError):
        module["missing"]
    assert "main" in module and "missing" not in module
    with pytest.raises(FileNotFoundError):
        tvmspec.load("no-such-library.so")


def test_views_are_passed_with_their_strides(golden: Path) -> None:
    main = tvmspec.load(golden / "module/host-0.27.so")["main"]
    wide = np.arange(24, dtype="float32")
    out = np.zeros(12, "float32")
    try:
        main(wide[::2], out)
    except Exception:
        # The function was compiled for compact arrays, and says so.
        assert not out.any()
    else:
        np.testing.assert_array_equal(out, wide[::2] + 1)


def test_models_have_the_outputs_of_tvm(golden: Path) -> None:
    ran = 0
    for path in sorted([*golden.glob("graph/models/*/*.io.npz"), *golden.glob("vm/*.io.npz")]):
        arrays = dict(np.load(path))
        inputs = {name[3:]: array for name, array in arrays.items() if name.startswith("in_")}
        expected = [array for name, array in sorted(arrays.items()) if name.startswith("out_")]
        library = str(path).replace(".io.npz", ".so")
        if not inputs or not Path(library).exists():
            # It has several calls, or the parts of a model.
            continue
        outputs = [output.numpy() for output in tvmspec.run(library, inputs)]
        assert len(outputs) == len(expected), path
        for output, array in zip(outputs, expected):
            np.testing.assert_allclose(output.reshape(array.shape).astype("float64"), array.astype("float64"), rtol=1e-5)
        with pytest.raises(ValueError, match="missing input"):
            tvmspec.run(library, {})
        ran += 1
    print(f"{ran} models have the outputs of TVM")
    assert ran >= 8
    arrays = np.load(golden / "vm/branches.io.npz")
    for case in ("then", "else"):
        pair = [arrays[f"{case}/in/pair.0"], arrays[f"{case}/in/pair.1"]]
        outputs = tvmspec.run(golden / "vm/branches.so", {"flag": arrays[f"{case}/in/flag"], "pair": pair})
        for place, output in enumerate(outputs):
            np.testing.assert_allclose(output.numpy(), arrays[f"{case}/out/{place}"], rtol=1e-5)


def test_references_do_not_leak(golden: Path) -> None:
    main = tvmspec.load(golden / "module/host-0.27.so")["main"]
    x, y = np.ones(12, "float32"), np.zeros(12, "float32")
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(1000):
        main(x, y)
        main(Exported(x), y)
    del _
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before


def test_other_threads_run_during_a_command(golden: Path, tmp_path: Path) -> None:
    tvmspec.save_params(tmp_path / "many.params", {f"p{i}": np.zeros(4, "float32") for i in range(20000)})
    ticks = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    for _ in range(5):
        tvmspec._tvmspec.report("verify", tmp_path / "many.params", None, None)
    end = time.perf_counter()
    done.set()
    thread.join()
    gaps = [later - earlier for earlier, later in zip(ticks, ticks[1:]) if start < earlier < end]
    assert gaps and max(gaps) < (end - start) / 2

NEW = r"""
#include <stdint.h>
#include <unistd.h>
typedef struct { int32_t type_index; uint32_t padding; union { int64_t i; double f; void* p; }; } Any;
typedef struct { uint8_t code, bits; uint16_t lanes; } DType;
typedef struct { void* data; int32_t device[2]; int32_t ndim; DType dtype; int64_t* shape; int64_t* strides; uint64_t offset; } Tensor;
typedef int (*Task)(int, void*, void*);
#define FUNCTION(name) int __tvm_ffi_##name(void* self, const Any* args, int32_t count, Any* result)

int (*__TVMFFIFunctionCall)(void*, const Any*, int32_t, Any*);
int (*__TVMBackendParallelLaunch)(Task, void*, int);
void (*__TVMFFIErrorSetRaisedFromCStr)(const char*, const char*);

static int give(Any* result, int64_t number) { result->type_index = 1; result->padding = 0; result->i = number; return 0; }
static Tensor* tensor(const Any* arg) { return (Tensor*)((char*)arg->p + (arg->type_index == 7 ? 0 : 24)); }

FUNCTION(call) { return __TVMFFIFunctionCall(args[0].p, args + 1, count - 1, result); }
FUNCTION(swallow) { Any ignored = {0}; __TVMFFIFunctionCall(args[0].p, 0, 0, &ignored); return give(result, 1); }
FUNCTION(swallow_and_call) {
  Any ignored = {0};
  __TVMFFIFunctionCall(args[0].p, 0, 0, &ignored);
  return __TVMFFIFunctionCall(args[1].p, 0, 0, result);
}
FUNCTION(raise) { /* a kind of at most 7 bytes, which is in the cell */
  char kind[8] = {0};
  for (uint32_t at = 0; at < args[0].padding; ++at) kind[at] = ((char*)&args[0].i)[at];
  __TVMFFIErrorSetRaisedFromCStr(kind, "1 + 1");
  return -1;
}
FUNCTION(sleep) { usleep(args[0].i * 1000); return give(result, args[0].i); }
FUNCTION(type) { return give(result, args[0].type_index); }
FUNCTION(value) { result->type_index = args[0].i; result->padding = 0; result->i = args[1].i; return 0; }
FUNCTION(number) { result->type_index = 3; result->padding = 0; result->f = args[0].type_index == 3 ? args[0].f : args[0].i; return 0; }
FUNCTION(extents) {
  usleep(args[1].i * 1000);
  Tensor* it = tensor(args);
  int64_t all = it->ndim;
  for (int axis = 0; axis < it->ndim; ++axis) all = all * 100 + it->shape[axis];
  return give(result, all);
}
FUNCTION(address) { return give(result, (int64_t)tensor(args)->data); }
FUNCTION(fill) { /* every element with a byte, in a tensor of at most two axes */
  Tensor* it = tensor(args);
  int64_t size = (it->dtype.bits + 7) / 8;
  int64_t rows = it->ndim == 2 ? it->shape[0] : 1, columns = it->ndim == 0 ? 1 : it->shape[it->ndim - 1];
  int64_t column = it->strides && it->ndim ? it->strides[it->ndim - 1] : 1;
  int64_t row = it->strides && it->ndim == 2 ? it->strides[0] : columns;
  for (int64_t at = 0; at < rows * columns; ++at)
    for (int64_t byte = 0; byte < size; ++byte)
      ((char*)it->data)[((at / columns) * row + (at % columns) * column) * size + byte] = (char)args[1].i;
  result->type_index = 0;
  return 0;
}
static int run_task(int task, void* group, void* data) { __atomic_fetch_add((int64_t*)data, 1, __ATOMIC_SEQ_CST); return 0; }
FUNCTION(parallel) {
  int64_t sum = 0;
  if (__TVMBackendParallelLaunch(run_task, &sum, 0) != 0) return -1;
  return give(result, sum);
}
"""

OLD = r"""
#include <stdint.h>
typedef union { int64_t i; double f; void* p; } Value;
void* __tvm_module_ctx;
int (*__TVMFuncCall)(void*, Value*, int*, int, Value*, int*);
int call(Value* args, int* codes, int count, Value* result, int* code, void* resource) {
  return __TVMFuncCall(args[0].p, args + 1, codes + 1, count - 1, result, code);
}
"""


def compiled(folder: Path, name: str, source: str) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    (folder / f"{name}.c").write_text(source)
    words = ["cc", "-O1", "-fPIC", "-shared", "-o", str(folder / f"{name}.so"), str(folder / f"{name}.c")]
    subprocess.run(words, check=True)
    return folder / f"{name}.so"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of today's convention, whose functions do what compiled code may do."""
    return compiled(tmp_path_factory.mktemp("new"), "new", NEW)


@pytest.fixture(scope="session")
def new(library: Path) -> tvmspec.Module:
    return tvmspec.load(library)


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> tvmspec.Module:
    """A library of the convention of 0.7 to 0.20, in which failures are texts."""
    return tvmspec.load(compiled(tmp_path_factory.mktemp("old"), "old", OLD))


def python(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter of its own."""
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=60)


class CustomError(LookupError):
    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


@pytest.mark.parametrize("era", ["new", "old"])
@pytest.mark.parametrize(
    "error",
    [
        ValueError("wrong"),
        ValueError(""),
        ValueError("ValueError: twice"),
        KeyError("name"),
        KeyError(3),
        CustomError(7),
        SystemExit(3),
        KeyboardInterrupt(),
        StopIteration(4),
        tvmspec.Violation("broken", rule="BLOB-01", kind="truncated", offset=3),
        OSError(2, "missing", "file"),
        ValueError("a\0b"),
    ],
    ids=repr,
)
def test_exceptions_of_callbacks_come_back(request: pytest.FixtureRequest, era: str, error: BaseException) -> None:
    call = request.getfixturevalue(era)["call"]

    def raising() -> None:
        raise error

    with pytest.raises(BaseException) as raised:
        call(raising)
    assert raised.value is error
    assert raised.traceback[-1].name == "raising"
    error.__traceback__ = None
    # Through two levels of compiled code and Python.
    with pytest.raises(BaseException) as raised:
        call(lambda: call(raising))
    assert raised.value is error
    error.__traceback__ = None


def test_an_exception_is_not_mistaken_for_another(new: tvmspec.Module) -> None:
    def fail(error: BaseException) -> None:
        raise error

    first, second = ValueError("first"), ValueError("second")
    assert new["swallow"](lambda: fail(first)) == 1
    # Nothing keeps it after the call.
    seen = weakref.ref(CustomError(1))
    assert seen() is None
    errors = [CustomError(1)]
    seen = weakref.ref(errors[0])
    new["swallow"](lambda: fail(errors.pop()))
    gc.collect()
    assert seen() is None
    with pytest.raises(ValueError) as raised:
        new["swallow_and_call"](lambda: fail(first), lambda: fail(second))
    assert raised.value is second

    def inner_call_succeeds() -> None:
        try:
            raise first
        except ValueError:
            new["swallow"](lambda: fail(second))
            raise

    with pytest.raises(ValueError) as raised:
        new["call"](inner_call_succeeds)
    assert raised.value is first


def test_kinds_of_libraries_are_not_executed(new: tvmspec.Module) -> None:
    for kind in ("eval", "exit", "print", "int", "Foo"):
        with pytest.raises(RuntimeError, match=rf"^{kind}: 1 \+ 1$"):
            new["raise"](kind)


def test_numbers_and_bytes_are_passed(new: tvmspec.Module) -> None:
    import ml_dtypes

    number, kind = new["number"], new["type"]
    for value in (3, np.int64(3), np.uint8(3), np.int8(3), True, np.bool_(True)):
        assert number(value) == int(value)
    for value in (1.5, np.float64(1.5), np.float32(1.5), np.float16(1.5), ml_dtypes.bfloat16(1.5)):
        assert number(value) == 1.5 and kind(value) == 3
    assert [kind(value) for value in (3, np.int64(3), True, np.bool_(False))] == [1, 1, 2, 2]
    echo = new["call"]
    for value in (b"x", bytearray(b"ab"), memoryview(b"a long text of bytes")[::2]):
        assert echo(lambda got: got, value) == bytes(value)
    assert echo(lambda got: got, "text") == "text"
    for value in (2**63, -(2**63) - 1, np.uint64(2**63)):
        with pytest.raises(OverflowError):
            kind(value)
    with pytest.raises(TypeError, match="argument 1: .*complex"):
        kind(1, 1j)


def test_plain_results_have_a_value(new: tvmspec.Module) -> None:
    value = new["value"]
    assert value(0, 0) is None
    # float32 with one lane; device 2, number 1; a pointer.
    assert value(5, 2 | 32 << 8 | 1 << 16) == "float32"
    assert value(6, 2 | 1 << 32) == (2, 1)
    assert value(4, 4096) == 4096


def test_nested_values_have_a_limit(new: tvmspec.Module) -> None:
    echo = new["call"]
    assert echo(lambda got: got, [1, [2, (3,)], {"a": [4]}]) == [1, [2, [3]], {"a": [4]}]
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        echo(len, endless)
    loop: dict[str, object] = {}
    loop["loop"] = loop
    with pytest.raises(RecursionError):
        echo(len, loop)

    def nest(depth: int) -> object:
        return [nest(depth - 1)] if depth else 1

    assert echo(lambda got: got, nest(99)) == nest(99)
    with pytest.raises(RecursionError):
        echo(len, nest(101))


def test_objects_that_pretend_to_be_arrays(new: tvmspec.Module) -> None:
    pretended = mock.NonCallableMock(spec=np.ndarray)
    assert isinstance(pretended, np.ndarray)
    with pytest.raises(TypeError):
        new["extents"](pretended, 0)
    with pytest.raises((TypeError, ValueError)):
        tvmspec.tensor(pretended)
    masked = np.ma.masked_array(np.ones(4, "float32"), [0, 1, 0, 0])
    for use in (new["type"], tvmspec.tensor):
        with pytest.raises(TypeError, match="masked"):
            use(masked)
    for wrong in (np.array(["a"]), np.array([b"a"]), np.array([None]), np.zeros(2, "longdouble"), np.zeros(2, "complex64"), np.zeros(2, "M8[s]"), np.zeros(2, "V3")):
        with pytest.raises(TypeError, match="no elements of numpy's type"):
            new["type"](wrong)


def test_the_first_array_is_passed_like_later_ones(library: Path) -> None:
    program = """if True:
        import sys, tvmspec
        kind = tvmspec.load(sys.argv[1])["type"]
        kind(1)
        import numpy
        print([kind(numpy.zeros(4)) for _ in range(3)])
    """
    ended = python(program, str(library))
    assert ended.stdout.strip() == "[7, 7, 7]", ended.stderr


ARRAYS = {
    "0-d": lambda: np.array(1.5, "float32"),
    "empty": lambda: np.zeros((0, 3), "float32"),
    "strided": lambda: np.arange(24, dtype="float32").reshape(4, 6)[:, ::2],
    "reversed": lambda: np.arange(6, dtype="int16")[::-1],
    "transposed": lambda: np.arange(6, dtype="float64").reshape(2, 3).T,
    "unaligned": lambda: np.arange(9, dtype="uint8")[1:],
    "broadcast": lambda: np.broadcast_to(np.float32(2), (2, 3)),
    "bool": lambda: np.array([True, False, True]),
    "float16": lambda: np.array([1, 2], "float16"),
    "subclass": lambda: np.arange(4, dtype="int32").view(np.recarray),
}
SMALL_TYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "float4_e2m1fn"]


@pytest.mark.parametrize("name", [*ARRAYS, *SMALL_TYPES])
def test_arrays_of_all_forms(new: tvmspec.Module, name: str) -> None:
    import ml_dtypes

    if name in ARRAYS:
        array = ARRAYS[name]()
    else:
        array = np.array([1, -2 if name != "uint4" else 2, 3, 0, 1], getattr(ml_dtypes, name))
    tensor = tvmspec.tensor(array)
    assert tensor.shape == array.shape and tensor.dtype == array.dtype.name
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert tensor.numpy().dtype == array.dtype
    np.testing.assert_array_equal(tvmspec.tensor(tensor).numpy(), array)
    np.testing.assert_array_equal(np.asarray(tensor), array)
    # A callback gets equal elements.
    seen: list[tvmspec.Tensor] = []
    new["call"](lambda got: seen.append(got[0]), [array])
    np.testing.assert_array_equal(seen[0].numpy(), array)
    # Every element is written.
    if array.size and array.flags.writeable:
        for output in (array, array.copy(), tensor):
            new["fill"](output, 1)
            assert set(np.asarray(output).tobytes()) == {1}


def test_callbacks_write_to_arguments(new: tvmspec.Module) -> None:
    array = np.zeros(4, "float32")
    kept: list[tvmspec.Tensor] = []

    def write(tensor: tvmspec.Tensor) -> None:
        tensor.numpy()[:] = 3
        kept.append(tensor)

    new["call"](write, array)
    assert array.tolist() == [3, 3, 3, 3]
    # The callback keeps a copy, because the array may end first.
    array[:] = 4
    assert kept[0].numpy().tolist() == [3, 3, 3, 3]


def test_outputs_of_functions_that_are_not_compiled(new: tvmspec.Module) -> None:
    fill = new["call"](lambda: new["fill"])
    memory = np.zeros(64 + 96, "uint8")
    start = -memory.ctypes.data % 64
    for array in (
        memory[start : start + 12],
        memory[start + 1 : start + 13],
        memory[start + 1 : start + 25 : 2],
        memory[start : start + 24].reshape(4, 6)[:, ::2],
    ):
        memory[:] = 0
        fill(array, 5)
        assert (array == 5).all() and memory.sum() == 5 * array.size
        # Also inside a list.
        memory[:] = 0
        new["call"](lambda items: new["fill"](items[0], 6), [array])
        assert (array == 6).all()


def test_elements_of_less_than_a_byte_take_one(new: tvmspec.Module) -> None:
    import ml_dtypes

    array = np.array([1, 2, 3], ml_dtypes.int4)
    tensor = tvmspec.tensor(array)
    new["fill"](tensor, 7)
    assert tensor.numpy().tolist() == [7, 7, 7]
    with pytest.raises(BufferError):
        tensor.__dlpack__()


def test_read_only_arrays_stay_read_only(new: tvmspec.Module) -> None:
    array = np.arange(16, dtype="float32")
    array.flags.writeable = False
    seen: list[tvmspec.Tensor] = []
    new["call"](lambda got: seen.append(got[0]), [array])
    aligned = np.frombuffer(bytes(1024), "uint8")
    aligned = aligned[-aligned.ctypes.data % 64 :][:64]
    new["call"](lambda got: seen.append(got[0]), [aligned])
    kept = seen[1].numpy()
    assert not kept.flags.writeable and kept.ctypes.data == aligned.ctypes.data
    with pytest.raises(ValueError):
        kept.flags.writeable = True
    with pytest.raises(BufferError):
        seen[1].__dlpack__()
    versioned = np.from_dlpack(seen[1]) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else kept
    assert not versioned.flags.writeable
    assert tvmspec.tensor(array).numpy().flags.writeable
    # A copy that cannot be written back.
    unaligned = np.zeros(17, "uint8")[1:]
    unaligned.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        new["fill"](unaligned, 1)
    assert not unaligned.any()


class Capsule:
    """An object that exports a capsule that the test made."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_versions_of_dlpack(new: tvmspec.Module) -> None:
    tensor = tvmspec.tensor(np.arange(4, dtype="float32"))
    for options in ({}, {"max_version": (0, 8)}, {"max_version": (1, 0)}, {"max_version": (2, 1)}, {"copy": True}):
        capsule = tensor.__dlpack__(**options)
        assert tvmspec.tensor(Capsule(capsule)).numpy().tolist() == [0, 1, 2, 3]
        # It was used.
        with pytest.raises(TypeError):
            tvmspec.tensor(Capsule(capsule))
    copied = np.asarray(tvmspec.tensor(Capsule(tensor.__dlpack__(copy=True))))
    assert copied.tolist() == [0, 1, 2, 3]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = tensor.__dlpack__(max_version=(1, 0))
    version = ctypes.cast(pointer(capsule, b"dltensor_versioned"), ctypes.POINTER(ctypes.c_uint32))
    version[0] = 2
    with pytest.raises(BufferError, match=r"DLPack 2\.\d"):
        tvmspec.tensor(Capsule(capsule))
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError):
        tvmspec.tensor(Capsule(None))


def test_tensors_of_other_objects() -> None:
    assert tvmspec.tensor([[1, 2], [3, 4]]).numpy().tolist() == [[1, 2], [3, 4]]
    assert tvmspec.tensor(1.5).shape == ()
    array = np.arange(4, dtype="float32")
    tensor = tvmspec.tensor(Exported(array))
    array[:] = 0
    assert tensor.numpy().tolist() == [0, 1, 2, 3]
    assert np.asarray(tensor, dtype="int8").dtype == "int8"
    with pytest.raises(ValueError, match="copy"):
        tensor.__array__("int8", copy=False)
    shared, copied = np.asarray(tensor), np.array(tensor, copy=True)
    tensor.numpy()[0] = 9
    assert (shared[0], copied[0]) == (9, 0)
    for wrong in ("text", object(), [object()], {}):
        with pytest.raises(TypeError):
            tvmspec.tensor(wrong)  # type: ignore[arg-type]


def test_other_threads_run_during_a_call(new: tvmspec.Module) -> None:
    start = time.perf_counter()
    threads = [threading.Thread(target=new["sleep"], args=(200,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.perf_counter() - start < 1.0


def test_threads_call_with_callbacks_at_once(new: tvmspec.Module) -> None:
    wrong = []

    def work(number: int) -> None:
        def fail() -> None:
            raise CustomError(number)

        for _ in range(300):
            array = np.zeros((4, 4), "float32")
            new["fill"](array, 1)
            try:
                new["call"](fail)
            except CustomError as error:
                if error.code == number and array.view("uint8").all():
                    continue
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_reshape_in_another_thread_does_not_reach_the_call(new: tvmspec.Module) -> None:
    array = np.zeros(12, "float32")
    results = []
    thread = threading.Thread(target=lambda: results.append(new["extents"](array, 200)))
    thread.start()
    time.sleep(0.05)
    for _ in range(100):
        array.shape = (3, 4)
        array.shape = (1, 2, 2, 3)
        array.shape = (2, 6)
    thread.join()
    assert results == [112]


def test_many_arguments_and_dimensions(new: tvmspec.Module) -> None:
    arrays = [np.full((1,) * rank, rank, "float32") for rank in range(33)]
    ranks: list[int] = []
    new["call"](lambda *got: ranks.extend(len(tensor.shape) for tensor in got), *arrays)
    assert ranks == list(range(33))
    assert new["extents"](np.zeros((2, 3, 4), "int8"), 0, *arrays) == 3020304


def test_a_keyboard_interrupt_reaches_the_caller(library: Path) -> None:
    program = """if True:
        import os, signal, sys, tvmspec
        call = tvmspec.load(sys.argv[1])["call"]
        def interrupted():
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(10**7): pass
        try:
            call(interrupted)
        except KeyboardInterrupt as error:
            print("interrupted", error.__traceback__ is not None)
    """
    ended = python(program, str(library))
    assert ended.stdout.strip() == "interrupted True", ended.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_processes_call_parallel_code(library: Path) -> None:
    program = """if True:
        import multiprocessing, os, sys, tvmspec
        parallel = tvmspec.load(sys.argv[1])["parallel"]
        before = parallel()
        child = os.fork()
        if child == 0:
            # The child ends like a program, with the destructors of its thread.
            sys.exit(0 if parallel() == before else 1)
        assert os.waitpid(child, 0)[1] == 0
        def work(number):
            return parallel()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(set(pool.map(work, range(4))) == {before} and parallel() == before)
    """
    environment = {**os.environ, "TVM_NUM_THREADS": "2"}
    words = [sys.executable, "-W", "ignore", "-c", program, str(library)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment)
    assert (ended.stdout.strip(), ended.returncode) == ("True", 0), ended.stderr


def test_the_interpreter_ends_while_values_are_alive(library: Path) -> None:
    program = """if True:
        import sys, threading, numpy, tvmspec
        module = tvmspec.load(sys.argv[1])
        call = module["call"]
        class Cycle: pass
        kept = Cycle()
        kept.self = kept
        kept.tensor = tvmspec.tensor(numpy.ones(1000))
        kept.array = kept.tensor.numpy()
        kept.exported = kept.tensor.__dlpack__()
        array = numpy.zeros(4096, "uint8")
        kept.views = []
        call(kept.views.append, [array[-array.ctypes.data % 64:]])
        kept.callback = call(lambda: (lambda: kept))
        sys.kept = kept
        {more}
        print("end")
    """
    for more in ("pass", "threading.Thread(target=module['sleep'], args=(300,)).start()"):
        ended = python(program.replace("{more}", more), str(library))
        assert (ended.stdout.strip(), ended.returncode, ended.stderr) == ("end", 0, "")


def test_a_daemon_thread_does_not_crash_the_end(library: Path) -> None:
    program = """if True:
        import sys, threading, time, tvmspec
        module = tvmspec.load(sys.argv[1])
        threading.Thread(target=module["sleep"], args=(300,), daemon=True).start()
        time.sleep(0.05)
        print("end", flush=True)
    """
    ended = python(program, str(library))
    assert (ended.stdout.strip(), ended.returncode) == ("end", 0), ended.stderr


def test_values_are_freed(new: tvmspec.Module) -> None:
    call = new["call"]
    first = call(lambda: lambda *got: got[0])
    array = np.zeros(4096, "uint8")
    array = array[-array.ctypes.data % 64 :]
    base = sys.getrefcount(array)
    for _ in range(100):
        result = first(array)
        assert sys.getrefcount(array) == base + 1
        view = result.numpy()
        del result
        del view
        # A capsule that nobody takes, and one that a consumer takes.
        result = first(array)
        capsule, other = result.__dlpack__(), np.from_dlpack(result)
        versioned = result.__dlpack__(max_version=(1, 0))
        del result, capsule, versioned, other
        first([array, {"a": array}])
        call(lambda got: got, array)
        with pytest.raises(TypeError):
            first(array, object())
    gc.collect()
    new["type"](1)
    assert sys.getrefcount(array) == base
    # Functions, and exceptions with their frames.
    def function() -> None:
        raise CustomError(1)

    count = sys.getrefcount(function)
    for _ in range(100):
        with pytest.raises(CustomError):
            call(function)
    gc.collect()
    assert sys.getrefcount(function) <= count + 1


def test_memory_does_not_grow(new: tvmspec.Module) -> None:
    resource = pytest.importorskip("resource")
    call = new["call"]
    unaligned = np.zeros(1 << 20, "uint8")[1:]

    def work() -> None:
        tensor = tvmspec.tensor(unaligned)
        tensor.__dlpack__(copy=True)
        tensor.__dlpack__(max_version=(1, 0))
        np.asarray(tensor)
        call(lambda got: got, unaligned)
        new["fill"](unaligned, 1)

    for _ in range(20):
        work()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        work()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10


def test_graphs_in_parts(golden: Path, tmp_path: Path) -> None:
    folder = golden / "graph/models/v0.19"
    arrays = dict(np.load(folder / "mlp.io.npz"))
    inputs = {name[3:]: array for name, array in arrays.items() if name.startswith("in_")}
    graph = tvmspec.load(folder / "mlp.so")["get_graph_json"]()
    path = tmp_path / "graph.json"
    path.write_text(graph)
    for device in ("cpu", ["cpu:0"]):
        outputs = tvmspec.run(folder / "mlp.kernels.so", inputs, graph=path, params=folder / "mlp.params", device=device)
        np.testing.assert_allclose(outputs[0].numpy(), arrays["out_0"], rtol=1e-5)
    with pytest.raises(FileNotFoundError):
        tvmspec.run(folder / "mlp.kernels.so", inputs, graph="missing.json")


def test_inputs_of_another_type_are_named(golden: Path) -> None:
    x = np.ones((1, 8), "float32")
    assert [output.shape for output in tvmspec.run(golden / "vm/mlp.so", {"x": x})] == [(1, 4), (4,)]
    with pytest.raises(ValueError, match="`x` of `main`.*float64.*astype"):
        tvmspec.run(golden / "vm/mlp.so", {"x": x.astype("float64")})
    with pytest.raises(ValueError, match="no parameter `other`"):
        tvmspec.run(golden / "vm/mlp.so", {"x": x, "other": x})
    with pytest.raises(TypeError, match="complex"):
        tvmspec.run(golden / "vm/mlp.so", {"x": 1j})
