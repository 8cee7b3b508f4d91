"""A tvm-ffi library in ctypes: its structures, and helpers for objects and errors. A library of 0.21 is used like a later one."""

import ctypes as c

from probing import DLTensor, VOID, ref


class Cell(c.Structure):
    _fields_ = [("tag", c.c_int32), ("length", c.c_uint32), ("payload", c.c_uint64)]


class Bytes(c.Structure):
    _fields_ = [("data", c.c_char_p), ("size", c.c_size_t)]


class Versioned(c.Structure):
    _fields_ = [("version", c.c_uint32 * 2), ("context", VOID), ("deleter", VOID), ("flags", c.c_uint64), ("dl", DLTensor)]


CALL = c.CFUNCTYPE(c.c_int, VOID, c.POINTER(Cell), c.c_int32, c.POINTER(Cell))
END = c.CFUNCTYPE(None, VOID)
MAKE = c.CFUNCTYPE(c.c_int, c.POINTER(VOID))
ALLOCATE = c.CFUNCTYPE(c.c_int, c.POINTER(DLTensor), c.POINTER(c.POINTER(Versioned)), VOID, c.CFUNCTYPE(None, VOID, c.c_char_p, c.c_char_p))
# 0.21 has another header of objects, and some functions by other names or with other arguments.
OLD = False


def text(data):
    return Bytes(data, len(data) if data else 0)


def object_of(handle):
    """Strong and weak count and type index."""
    if OLD:
        tag, strong = (c.c_uint32 * 2).from_address(handle)
        return [strong, None, tag]
    strong, weak, tag = (c.c_uint32 * 3).from_address(handle)
    return [strong, weak, tag]


def raised(lib):
    handle = VOID()
    lib.TVMFFIErrorMoveFromRaised(ref(handle))
    if not handle:
        return None
    parts = (c.c_uint64 * 4).from_address(handle.value + (16 if OLD else 24))
    return [c.string_at(parts[at], parts[at + 1]).decode().strip().splitlines()[:1] for at in (0, 2)]


def made(lib, kind=b"K", message=b"m"):
    handle = VOID()
    if OLD:
        lib.TVMFFIErrorCreate.restype = VOID
        return lib.TVMFFIErrorCreate(ref(text(kind)), ref(text(message)), ref(text(b"")))
    lib.TVMFFIErrorCreate(ref(text(kind)), ref(text(message)), ref(text(b"")), ref(handle))
    return handle.value


def cell(value):
    return [value.tag, value.length, value.payload if value.tag < 11 else "..."]


def register_hook(lib, name, function):
    """Registers a function of an interpreter, whose name is a byte array in 0.21."""
    return lib.TVMFFIEnvRegisterCAPI(ref(text(name)) if OLD else name, function)


def global_function(lib, name):
    handle = VOID()
    lib.TVMFFIFunctionGetGlobal(ref(text(name)), ref(handle))
    return handle


def opened(path):
    """The library, with the functions of 0.21 by their later names."""
    global OLD
    lib = c.CDLL(path)
    OLD = not hasattr(lib, "TVMFFIObjectDecRef") and hasattr(lib, "TVMFFIObjectFree")
    if OLD:
        lib.TVMFFIObjectDecRef = lib.TVMFFIObjectFree
        for name in ("FromDLPack", "ToDLPack", "FromDLPackVersioned", "ToDLPackVersioned"):
            setattr(lib, "TVMFFITensor" + name, getattr(lib, "TVMFFINDArray" + name))
    return lib
