#!/usr/bin/env python3
"""Probes the edge cases of the C functions of a runtime of 0.7 to 0.20: like probe.py, for the older interface.

    probe_legacy.py LIBRARY [NAME..]
"""

import ctypes as c

from probing import DLTensor, Managed, VOID, main, probe, ref

HEADER = 16


def error(lib):
    lib.TVMGetLastError.restype = c.c_char_p
    lines = (lib.TVMGetLastError() or b"").decode().strip().splitlines()
    return next((line.strip() for line in lines if "failed" in line or "Cannot" in line or "cannot" in line), lines[-1:])


def array_of(lib, count=3, bits=32, device=1):
    out = VOID(9)
    return out, lib.TVMArrayAlloc((c.c_int64 * 1)(count), 1, 2, bits, 1, device, 0, ref(out))


def references(array):
    return c.c_int32.from_address(array.value - HEADER + 4).value


@probe
def null_handles(lib):
    return [lib.TVMObjectRetain(None), lib.TVMObjectFree(None), lib.TVMFuncFree(None), lib.TVMModFree(None)]


@probe
def type_of_null(lib):
    out = c.c_uint(7)
    return [lib.TVMObjectGetTypeIndex(None, ref(out)), out.value, error(lib)]


@probe
def type_keys(lib):
    out, text = c.c_uint(7), c.c_char_p()
    known = [lib.TVMObjectTypeKey2Index(b"runtime.Module", ref(out)), out.value]
    unknown = [lib.TVMObjectTypeKey2Index(b"no.such", ref(out)), error(lib)]
    back = [lib.TVMObjectTypeIndex2Key(known[1], ref(text)), text.value.decode()]
    return [known, unknown, back, lib.TVMObjectTypeIndex2Key(99999, ref(text)), error(lib)]


@probe
def derived(lib):
    out = c.c_int(7)
    return [lib.TVMObjectDerivedFrom(1, 0, ref(out)), out.value]


@probe
def array_header(lib):
    array, _ = array_of(lib)
    index = c.c_uint()
    lib.TVMArrayGetTypeIndex(array, ref(index))
    shown = [c.c_uint32.from_address(array.value - HEADER).value == index.value, references(array)]
    lib.TVMObjectRetain(VOID(array.value - HEADER))
    shown.append(references(array))
    lib.TVMArrayFree(array)
    return shown + [references(array)]


@probe
def array_without_extents(lib):
    out = VOID()
    return [lib.TVMArrayAlloc(None, 0, 2, 32, 1, 1, 0, ref(out)), bool(out)]


@probe
def array_types(lib):
    results = []
    for bits in (33, 32 + 256):
        array, code = array_of(lib, bits=bits)
        results.append([code, error(lib) if code else DLTensor.from_address(array.value).dtype[1]])
    return results


@probe
def array_without_device(lib):
    array, code = array_of(lib, device=12)
    return [code, array.value, error(lib)]


@probe
def array_bytes(lib):
    array, _ = array_of(lib)
    data = (c.c_uint8 * 12)()
    codes = [copy(array, data, c.c_size_t(size)) for copy in (lib.TVMArrayCopyFromBytes, lib.TVMArrayCopyToBytes) for size in (12, 8)]
    return codes + [error(lib)]


@probe
def array_free_null(lib):
    return lib.TVMArrayFree(None)


def imported(lib, offset, strides=None):
    data = (c.c_uint8 * 4096)()
    base = -(-c.addressof(data) // 512) * 512
    tensor = Managed(DLTensor(base + offset, (1, 0), 2, (2, 32, 1, 0), (c.c_int64 * 2)(2, 3), strides, 0), None, None)
    tensor.kept = data
    return lib.TVMArrayFromDLPack(ref(tensor), ref(VOID()))


@probe
def import_tensors(lib):
    by_alignment = {offset: imported(lib, offset) for offset in (0, 128, 64, 4)}
    return [by_alignment, imported(lib, 0, (c.c_int64 * 2)(1, 2))]


@probe
def export_array(lib):
    array, _ = array_of(lib)
    tensor = c.POINTER(Managed)()
    code = lib.TVMArrayToDLPack(array, ref(tensor))
    during = references(array)
    lib.TVMDLManagedTensorCallDeleter(tensor)
    return [code, during, references(array)]


@probe
def module_formats(lib):
    results = []
    for path, stated in ((b"/no/such.xyz", b""), (b"/no/such.xyz", b"qqq"), (b"/no/such", b""), (b"/no/such.xyz", b"so")):
        results.append([lib.TVMModLoadFromFile(path, stated, ref(VOID())), error(lib)])
    return results


@probe
def streams(lib):
    out = VOID(9)
    codes = [lib.TVMStreamCreate(1, 0, ref(out)), lib.TVMStreamFree(1, 0, None), lib.TVMSynchronize(1, 0, None), lib.TVMSetStream(1, 0, None)]
    return [codes, out.value, lib.TVMSynchronize(12, 0, None), error(lib)]


@probe
def backtrace(lib):
    lib.TVMGetLastBacktrace.restype = c.c_char_p
    lib.TVMSynchronize(12, 0, None)
    of_check = bool(lib.TVMGetLastBacktrace())
    lib.TVMAPISetLastError(b"text")
    return [of_check, lib.TVMGetLastBacktrace()]


@probe
def set_error_null(lib):
    lib.TVMAPISetLastError(None)
    return error(lib)


if __name__ == "__main__":
    main(__doc__)
