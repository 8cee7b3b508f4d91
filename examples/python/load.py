#!/usr/bin/env python3
"""Registers a callback, finds it again and calls it. Then loads libraries compiled by TVM and calls them, with only ctypes.

    cargo rustc --lib --crate-type cdylib
    python3 examples/python/load.py target/debug/libtvmspec.so golden/module/host-0.8.so golden/module/host-0.27.so
"""
import ctypes as c
import os
import sys

INT, NDARRAY = 0, 13


class Value(c.Union):
    _fields_ = [("int", c.c_int64), ("float", c.c_double), ("handle", c.c_void_p), ("text", c.c_char_p)]


Callback = c.CFUNCTYPE(c.c_int, c.POINTER(Value), c.POINTER(c.c_int), c.c_int, c.c_void_p, c.c_void_p)
lib = c.CDLL(sys.argv[1])
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



def tensor(numbers):
    array = c.c_void_p()
    shape = (c.c_int64 * 1)(len(numbers))
    check(lib.TVMArrayAlloc(shape, 1, 2, 32, 1, 1, 0, c.byref(array)))
    check(lib.TVMArrayCopyFromBytes(array, numbers, c.c_size_t(c.sizeof(numbers))))
    return array


for path in sys.argv[2:]:
    module = c.c_void_p()
    check(lib.TVMModLoadFromFile(path.encode(), b"", c.byref(module)))
    # The entry point is called `main` from 0.22 on.
    for name in ["add1", "main"]:
        check(lib.TVMModGetFunction(module, name.encode(), 0, c.byref(function)))
        if function:
            break
    name = f"{name} of {os.path.basename(path)}"
    numbers = (c.c_float * 12)(*range(12))
    arrays = [tensor(numbers), tensor(numbers)]
    call(function, *((NDARRAY, Value(handle=array.value)) for array in arrays))
    check(lib.TVMArrayCopyToBytes(arrays[1], numbers, c.c_size_t(c.sizeof(numbers))))
    print(f"{name} =", list(numbers))
    arrays[0] = tensor((c.c_float * 3)())
    try:
        call(function, *((NDARRAY, Value(handle=array.value)) for array in arrays))
    except RuntimeError as error:
        print(f"{name}, once more with 3 numbers:", error)
