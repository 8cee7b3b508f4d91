"""Tensors of every element type in every release, and the line that matters of an error."""

import ctypes
import re

DTYPES = ["float32", "float16", "float64", "int8", "int64", "uint8", "uint32", "bool", "bfloat16", "int4", "uint4", "int1", "float32x4",
          "e4m3_float8", "e5m2_float8", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float4_e2m1fn", "float6_e2m3fn",
          "handle", "custom[posites2]8"]


class Type(ctypes.Structure):
    """The element type of a tensor."""

    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class View(ctypes.Structure):
    """The beginning of a DLTensor, which is the same in all releases."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("dtype", Type)]


def numpy():
    """Returns the package, which a runtime without Python does not need."""
    import numpy as np

    return np


def fill(compiler, dtype, shape):
    """Creates a tensor of the bytes 1, 2, 3 and so on, or of 1 and 0 for a bool."""
    tensor = compiler.empty(shape, dtype)
    data, _, _ = memory(tensor)
    for at in range(len(data)):
        data[at] = (at + 1) % 2 if dtype == "bool" else (at + 1) % 100
    return tensor


def memory(tensor):
    """Returns the bytes of a tensor on the CPU, as an array that can be written, and the code and bits of its type."""
    if hasattr(tensor, "handle") and hasattr(tensor.handle, "contents"):
        address = ctypes.addressof(tensor.handle.contents)
    else:
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # The view lives as long as the capsule.
        capsule = tensor.__dlpack__()
        address = pointer(capsule, b"dltensor")
    view = View.from_address(address)
    code, bits = view.dtype.code, view.dtype.bits
    count = 1
    for extent in tensor.shape:
        count *= int(extent)
    # A bool of one bit takes a byte in every release. Of other small types this is all from 0.21 on, and the first half before.
    size = count if (code, bits) == (1, 1) else (count * bits * view.dtype.lanes + 7) // 8
    return ((ctypes.c_uint8 * size).from_address(view.data) if size else b""), code, bits


def described(tensor):
    """Returns the type, shape and bytes of a tensor. Releases print integers of one bit, and handles, in several ways."""
    data, code, bits = memory(tensor)
    name = str(tensor.dtype).replace("handle64", "handle").replace("bool8", "bool")
    if code < 2:
        name = re.sub(r"^(bool|[a-z]+%d)" % bits, ("int%d", "uint%d")[code] % bits, name)
    return [name, [int(extent) for extent in tensor.shape], bytes(data).hex()]


def one_line(error):
    """Returns the line of an error that says what is wrong, without the place in the source."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()] or [""]
    said = [line for line in lines if re.search(r"rror: (?!.*Compilation error)|Check failed|undefined symbol|what\(\)", line)]
    line = (said or [lines[-1] if lines[0].startswith("Traceback") else lines[0]])[0]
    return re.sub(r"/\S*/", "", re.sub(r"^\[.*?\] \S+:\d+: ", "", line))[:240]
