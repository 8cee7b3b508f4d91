"""Loads object files through apache-tvm-ffi-orcjit: C++ modules that import one another."""

import subprocess
import tempfile
import traceback
from pathlib import Path

import tvm_ffi
import tvm_ffi_orcjit

SOURCE = """
#include <tvm/ffi/function.h>
static int add(int a, int b) { return a + b; }
static int fail(int a) { TVM_FFI_THROW(ValueError) << "as asked: " << a; return 0; }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(NAME_add, add);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(NAME_fail, fail);
"""


def compiled(folder, name):
    source = folder / f"{name}.cc"
    source.write_text(SOURCE.replace("NAME", name))
    flags = subprocess.run(["tvm-ffi-config", "--cxxflags"], capture_output=True, text=True).stdout.split()
    includes = [f"-I{path}" for path in (tvm_ffi.libinfo.find_include_path(), tvm_ffi.libinfo.find_dlpack_include_path())]
    out = folder / f"{name}.o"
    subprocess.run(["c++", "-std=c++17", "-O1", "-fPIC", *flags, *includes, "-c", source, "-o", out], check=True)
    return out


def raised(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"


folder = Path(tempfile.mkdtemp())
session = tvm_ffi_orcjit.default_session()
modules = {}


def loads():
    for name in ("first", "second"):
        modules[name] = session.load_module(str(compiled(folder, name)))


def calls():
    assert modules["first"].first_add(2, 3) == 5
    assert modules["second"]["second_add"](2, 40) == 42


def fails():
    assert raised(lambda: modules["first"].first_fail(3)) == "ValueError"


def imports():
    modules["first"].import_module(modules["second"])
    assert len(modules["first"].imports) == 1
    assert modules["first"].get_function("second_add", query_imports=True)(1, 1) == 2


def rejects_a_cycle():
    assert raised(lambda: modules["second"].import_module(modules["first"])) == "RuntimeError"


def clears():
    modules["first"].clear_imports()
    assert len(modules["first"].imports) == 0


for test in (loads, calls, fails, imports, rejects_a_cycle, clears):
    try:
        test()
        print(f"PASSED {test.__name__}", flush=True)
    except Exception:
        traceback.print_exc()
        print(f"FAILED {test.__name__}", flush=True)
