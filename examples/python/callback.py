"""Registers a Python callback, finds it by name and calls it, with only ctypes.

    cargo rustc --release --lib --crate-type cdylib
    python examples/python/callback.py target/release/libtvmspec.so
"""

import ctypes
import sys


class Any(ctypes.Structure):
    _fields_ = [("type_index", ctypes.c_int32), ("aux", ctypes.c_uint32), ("int", ctypes.c_int64)]


class ByteArray(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Any), ctypes.c_int32, ctypes.POINTER(Any))
INT = 1


@CALL
def multiply(_self, args, count, result):
    product = 1
    for at in range(count):
        product *= args[at].int
    result[0] = Any(INT, 0, product)
    return 0


def main() -> None:
    library = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "target/release/libtvmspec.so")
    name = ByteArray(b"example.multiply", 16)
    made, found = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.TVMFFIFunctionCreate(None, multiply, None, ctypes.byref(made)) == 0
    assert library.TVMFFIFunctionSetGlobal(ctypes.byref(name), made, 0) == 0
    assert library.TVMFFIFunctionGetGlobal(ctypes.byref(name), ctypes.byref(found)) == 0
    args, result = (Any * 2)(Any(INT, 0, 6), Any(INT, 0, 7)), Any()
    assert library.TVMFFIFunctionCall(found, args, 2, ctypes.byref(result)) == 0
    print("example.multiply(6, 7) =", result.int)


if __name__ == "__main__":
    main()
