#!/usr/bin/env python3
"""Register a callback, find it again, call it, load a library of TVM 0.8 and call that; with nothing but ctypes.

    cargo build
    python3 examples/python/load.py target/debug/libtvmspec.so golden/module/host-0.8.so
"""
import ctypes as c
import sys

INT, NDARRAY = 0, 13


class Value(c.Union):
    _fields_ = [("int", c.c_int64), ("float", c.c_double), ("handle", c.c_void_p), ("text", c.c_char_p)]


Callback = c.CFUNCTYPE(c.c_int, c.POINTER(Value), c.POINTER(c.c_int), c.c_int, c.c_void_p, c.c_void_p)
# RTLD_GLOBAL: compiled code looks for the interface among the symbols of the process.
lib = c.CDLL(sys.argv[1], mode=c.RTLD_GLOBAL)
lib.TVMGetLastError.restype = c.c_char_p


def check(code):
    if code != 0:
        raise RuntimeError(lib.TVMGetLastError().decode())


def call(function, *args):
    values = (Value * len(args))(*(value for _, value in args))
    codes = (c.c_int * len(args))(*(code for code, _ in args))
    result, code = Value(), c.c_int()
    check(lib.TVMFuncCall(function, values, codes, len(args), c.byref(result), c.byref(code)))
    return result.int if code.value == INT else None


@Callback
def twice(args, codes, count, ret, resource):
    if count != 1 or codes[0] != INT:
        lib.TVMAPISetLastError(b"TypeError: twice takes one integer")
        return -1
    value, code = Value(int=2 * args[0].int), c.c_int(INT)
    return lib.TVMCFuncSetReturn(c.c_void_p(ret), c.byref(value), c.byref(code), 1)


function = c.c_void_p()
check(lib.TVMFuncCreateFromCFunc(twice, None, None, c.byref(function)))
check(lib.TVMFuncRegisterGlobal(b"example.twice", function, 0))
check(lib.TVMFuncGetGlobal(b"example.twice", c.byref(function)))
print("twice(21) =", call(function, (INT, Value(int=21))))
try:
    call(function)
except RuntimeError as error:
    print("twice() fails:", error)

if len(sys.argv) > 2:
    module = c.c_void_p()
    check(lib.TVMModLoadFromFile(sys.argv[2].encode(), b"", c.byref(module)))
    check(lib.TVMModGetFunction(module, b"add1", 0, c.byref(function)))
    shape = (c.c_int64 * 1)(4)
    arrays = []
    for _ in range(2):
        array = c.c_void_p()
        check(lib.TVMArrayAlloc(shape, 1, 2, 32, 1, 1, 0, c.byref(array)))
        arrays.append(array)
    numbers = (c.c_float * 4)(0, 1, 2, 3)
    check(lib.TVMArrayCopyFromBytes(arrays[0], numbers, c.c_size_t(c.sizeof(numbers))))
    call(function, *((NDARRAY, Value(handle=array.value)) for array in arrays))
    check(lib.TVMArrayCopyToBytes(arrays[1], numbers, c.c_size_t(c.sizeof(numbers))))
    print("add1 =", list(numbers))
