#!/usr/bin/env python3
"""Probes the edge cases of the C functions of a tvm-ffi library: a line of JSON for each probe.

    probe.py LIBRARY [NAME..]    runs all probes, or those named; each in a separate process, which may crash

A probe that ends its process shows `{"ends": code}`, negative for a signal.
"""

import ctypes as c

from ffi_library import ALLOCATE, Bytes, CALL, Cell, END, MAKE, Versioned, cell, global_function, made, object_of, opened, raised, register_hook, text
from probing import DLTensor, Managed, VOID, main, probe, ref


@probe
def version(lib):
    out = (c.c_uint32 * 3)()
    lib.TVMFFIGetVersion(out)
    return list(out)


@probe
def references(lib):
    handle = made(lib)
    lib.TVMFFIObjectIncRef(VOID(handle))
    both = object_of(handle)
    lib.TVMFFIObjectDecRef(VOID(handle))
    return [both, object_of(handle)]


@probe
def references_null(lib):
    return [lib.TVMFFIObjectDecRef(None), lib.TVMFFIObjectIncRef(None)]


@probe
def own_over_object(lib):
    handle = made(lib)
    slot = Cell(67, 0, handle)
    view = Cell(1, 0, 5)
    return [lib.TVMFFIAnyViewToOwnedAny(ref(view), ref(slot)), cell(slot), object_of(handle)]


@probe
def own_object(lib):
    handle = made(lib)
    slot = Cell()
    return [lib.TVMFFIAnyViewToOwnedAny(ref(Cell(67, 0, handle)), ref(slot)), slot.tag, object_of(handle)]


@probe
def own_null_text(lib):
    slot = Cell()
    return [lib.TVMFFIAnyViewToOwnedAny(ref(Cell(8, 0, 0)), ref(slot)), cell(slot), raised(lib)]


@probe
def call_over_object(lib):
    handle = made(lib)
    slot = Cell(67, 0, handle)
    code = lib.TVMFFIFunctionCall(global_function(lib, b"ffi.FunctionListGlobalNamesFunctor"), None, 0, ref(slot))
    return [code, slot.tag, object_of(handle), raised(lib)]


@probe
def call_over_object_of_c(lib):
    handle = made(lib)
    function = VOID()
    body = CALL(lambda self, args, count, result: 0)
    lib.TVMFFIFunctionCreate(None, body, None, ref(function))
    slot = Cell(67, 0, handle)
    return [lib.TVMFFIFunctionCall(function, None, 0, ref(slot)), slot.tag, object_of(handle), raised(lib)]


@probe
def create_function(lib):
    ended, function, seen = [], VOID(), []
    body = CALL(lambda self, args, count, result: seen.append(self) or 0)
    end = END(lambda self: ended.append(self))
    code = lib.TVMFFIFunctionCreate(VOID(7), body, end, ref(function))
    lib.TVMFFIFunctionCall(function, None, 0, ref(Cell()))
    lib.TVMFFIObjectDecRef(function)
    return [code, seen, ended]


@probe
def create_function_without_deleter(lib):
    function = VOID()
    body = CALL(lambda self, args, count, result: 0)
    code = lib.TVMFFIFunctionCreate(None, body, None, ref(function))
    return [code, object_of(function.value), lib.TVMFFIObjectDecRef(function)]


@probe
def set_global(lib):
    function = VOID()
    body = CALL(lambda self, args, count, result: 0)
    lib.TVMFFIFunctionCreate(None, body, None, ref(function))
    code = lib.TVMFFIFunctionSetGlobal(ref(text(b"probe.f")), function, 0)
    counted = object_of(function.value)
    again = [lib.TVMFFIFunctionSetGlobal(ref(text(b"probe.f")), function, 0), raised(lib)]
    found = global_function(lib, b"probe.f").value == function.value
    return [code, counted, again, found, object_of(function.value)]


@probe
def set_global_null(lib):
    code = lib.TVMFFIFunctionSetGlobal(ref(text(b"probe.null")), None, 0)
    return [code, raised(lib), global_function(lib, b"probe.null").value]


@probe
def set_global_empty_name(lib):
    function = VOID()
    body = CALL(lambda self, args, count, result: 0)
    lib.TVMFFIFunctionCreate(None, body, None, ref(function))
    return [lib.TVMFFIFunctionSetGlobal(ref(Bytes(None, 0)), function, 0), global_function(lib, b"").value == function.value]


@probe
def raise_twice(lib):
    first, second = made(lib, b"A"), made(lib, b"B")
    lib.TVMFFIErrorSetRaised(VOID(first))
    counted = object_of(first)
    lib.TVMFFIErrorSetRaised(VOID(second))
    return [counted, object_of(first), raised(lib), raised(lib)]


@probe
def raise_null(lib):
    lib.TVMFFIErrorSetRaised(VOID(made(lib)))
    lib.TVMFFIErrorSetRaised(None)
    return raised(lib)


@probe
def raise_text(lib):
    lib.TVMFFIErrorSetRaisedFromCStr(b"ValueError", b"as asked")
    return raised(lib)


@probe
def raise_null_message(lib):
    lib.TVMFFIErrorSetRaisedFromCStr(b"ValueError", None)
    return raised(lib)


@probe
def raise_null_kind(lib):
    lib.TVMFFIErrorSetRaisedFromCStr(None, b"message")
    return raised(lib)


@probe
def raise_parts(lib):
    results = []
    for parts, count in (([b"a", None, b"b"], 3), ([b"a"], 0), ([b"a"], -1)):
        lib.TVMFFIErrorSetRaisedFromCStrParts(b"K", (c.c_char_p * len(parts))(*parts), count)
        results.append(raised(lib))
    lib.TVMFFIErrorSetRaisedFromCStrParts(b"K", None, 0)
    return results + [raised(lib)]


@probe
def error_parts_null_data(lib):
    handle = VOID()
    code = lib.TVMFFIErrorCreate(ref(Bytes(None, 0)), ref(Bytes(None, 0)), ref(Bytes(None, 0)), ref(handle))
    return [code, bool(handle)]


@probe
def error_cause(lib):
    cause, context, handle = made(lib), made(lib), VOID()
    code = lib.TVMFFIErrorCreateWithCauseAndExtraContext(
        ref(text(b"K")), ref(text(b"m")), ref(text(b"")), VOID(cause), VOID(context), ref(handle))
    during = [object_of(cause)[0], object_of(context)[0]]
    lib.TVMFFIObjectDecRef(handle)
    return [code, during, object_of(cause)[0], object_of(context)[0]]


@probe
def backtrace(lib):
    lib.TVMFFIBacktrace.restype = c.POINTER(Bytes)
    first = lib.TVMFFIBacktrace(b"file.c", 7, b"function", 0)
    shown = c.string_at(first.contents.data, first.contents.size).decode().splitlines()[:1]
    second = lib.TVMFFIBacktrace(None, 0, None, 1)
    return [shown, c.addressof(first.contents) == c.addressof(second.contents)]


@probe
def strings(lib):
    results = []
    for data in (b"", b"1234567", b"12345678", b"a\0b", b"\xff\xfe"):
        slot = Cell(67, 0, 0)
        results.append([lib.TVMFFIStringFromByteArray(ref(Bytes(data, len(data))), ref(slot)), slot.tag, slot.length])
        lib.TVMFFIBytesFromByteArray(ref(Bytes(data, len(data))), ref(slot))
        results[-1].append(slot.tag)
    slot = Cell()
    return results + [[lib.TVMFFIStringFromByteArray(ref(Bytes(None, 0)), ref(slot)), slot.tag]]


@probe
def dtype_text(lib):
    slot = Cell(7, 7, 7)
    good = [lib.TVMFFIDataTypeToString((c.c_uint8 * 4)(0, 8, 1, 0), ref(slot)), slot.tag]
    slot = Cell(7, 7, 7)
    bad = [lib.TVMFFIDataTypeToString((c.c_uint8 * 4)(99, 8, 1, 0), ref(slot)), cell(slot), raised(lib)]
    return [good, bad]


@probe
def dtype_text_over_object(lib):
    handle = made(lib)
    slot = Cell(67, 0, handle)
    return [lib.TVMFFIDataTypeToString((c.c_uint8 * 4)(0, 8, 1, 0), ref(slot)), slot.tag, object_of(handle)]


@probe
def dtype_of_text(lib):
    out = (c.c_uint8 * 4)(9, 9, 9, 9)
    return [lib.TVMFFIDataTypeFromString(ref(text(b"nothing")), out), list(out), raised(lib)]


@probe
def type_key(lib):
    out = c.c_int32(-7)
    known = [lib.TVMFFITypeKeyToIndex(ref(text(b"ffi.Error")), ref(out)), out.value]
    out.value = -7
    return [known, [lib.TVMFFITypeKeyToIndex(ref(text(b"no.such")), ref(out)), out.value, raised(lib)]]


@probe
def type_query(lib):
    ask = lambda key: lib.TVMFFITypeGetOrAllocIndex(ref(text(key)), -1, 1, 0, 1, -2)
    answers = [ask(b"ffi.Error"), ask(b"no.such")]
    out = c.c_int32(-7)
    return answers + [lib.TVMFFITypeKeyToIndex(ref(text(b"no.such")), ref(out))]


@probe
def type_info(lib):
    lib.TVMFFIGetTypeInfo.restype = c.POINTER(c.c_int32)
    info = lib.TVMFFIGetTypeInfo(67)
    return [info[0], info[1], c.addressof(lib.TVMFFIGetTypeInfo(67).contents) == c.addressof(info.contents)]


@probe
def type_info_unknown(lib):
    lib.TVMFFIGetTypeInfo.restype = VOID
    return lib.TVMFFIGetTypeInfo(9999)


@probe
def attribute_column(lib):
    lib.TVMFFIGetTypeAttrColumn.restype = VOID
    absent = lib.TVMFFIGetTypeAttrColumn(ref(text(b"__probe__")))
    codes = [lib.TVMFFITypeRegisterAttr(0, ref(text(b"__probe__")), ref(Cell()))]
    column = lib.TVMFFIGetTypeAttrColumn(ref(text(b"__probe__")))
    empty = column and list((c.c_int32 * 2).from_address(column + 8))
    codes.append(lib.TVMFFITypeRegisterAttr(67, ref(text(b"__probe__")), ref(Cell(1, 0, 5))))
    codes.append(lib.TVMFFITypeRegisterAttr(67, ref(text(b"__probe__")), ref(Cell(1, 0, 6))))
    error = raised(lib)
    column = lib.TVMFFIGetTypeAttrColumn(ref(text(b"__probe__")))
    return [absent, empty, codes, error, column and list((c.c_int32 * 2).from_address(column + 8))]


@probe
def attribute_unknown_type(lib):
    return [lib.TVMFFITypeRegisterAttr(9999, ref(text(b"__probe__")), ref(Cell(1, 0, 5))), raised(lib)]


@probe
def attribute_negative_type(lib):
    return [lib.TVMFFITypeRegisterAttr(-5, ref(text(b"__probe__")), ref(Cell(1, 0, 5))), raised(lib)]


@probe
def method_unknown_type(lib):
    return [lib.TVMFFITypeRegisterMethod(9999, (c.c_uint64 * 9)()), raised(lib)]


@probe
def opaque(lib):
    ended, handle = [], VOID()
    end = END(lambda self: ended.append(self))
    code = lib.TVMFFIObjectCreateOpaque(VOID(7), 74, end, ref(handle))
    kept = c.c_uint64.from_address(handle.value + 24).value
    lib.TVMFFIObjectDecRef(handle)
    bad = VOID(5)
    return [code, kept, ended, [lib.TVMFFIObjectCreateOpaque(VOID(7), 64, end, ref(bad)), bad.value, ended, raised(lib)]]


@probe
def opaque_without_deleter(lib):
    handle = VOID()
    return [lib.TVMFFIObjectCreateOpaque(None, 74, None, ref(handle)), lib.TVMFFIObjectDecRef(handle)]


@probe
def stream(lib):
    lib.TVMFFIEnvGetStream.restype = VOID
    before = VOID(9)
    codes = [lib.TVMFFIEnvSetStream(2, 1, VOID(16), ref(before)), lib.TVMFFIEnvSetStream(2, 1, VOID(32), None)]
    return [codes, before.value, lib.TVMFFIEnvGetStream(2, 1), lib.TVMFFIEnvGetStream(2, 0), lib.TVMFFIEnvGetStream(77, 5), lib.TVMFFIEnvGetStream(-1, 0)]


@probe
def stream_negative_type(lib):
    return [lib.TVMFFIEnvSetStream(-1, 0, VOID(16), None), raised(lib)]


@probe
def stream_negative_id(lib):
    return [lib.TVMFFIEnvSetStream(2, -1, VOID(16), None), raised(lib)]


@probe
def frontend_names(lib):
    results = []
    for name in (b"PyErr_CheckSignals", b"PyGILState_Ensure", b"PyGILState_Release", b"Py_IncRef", b""):
        results.append([register_hook(lib, name, None), raised(lib)])
    return results


@probe
def signals(lib):
    calls = []
    kept = [c.CFUNCTYPE(c.c_int)(lambda: calls.append("check") or -1), c.CFUNCTYPE(c.c_size_t)(lambda: calls.append("ensure") or 5),
            c.CFUNCTYPE(None, VOID)(lambda state: calls.append(["release", state]))]
    none = lib.TVMFFIEnvCheckSignals()
    for name, function in zip((b"PyErr_CheckSignals", b"PyGILState_Ensure", b"PyGILState_Release"), kept):
        register_hook(lib, name, function)
    return [none, lib.TVMFFIEnvCheckSignals(), calls, raised(lib)]


@probe
def signals_without_lock(lib):
    kept = c.CFUNCTYPE(c.c_int)(lambda: -1)
    register_hook(lib, b"PyErr_CheckSignals", kept)
    return lib.TVMFFIEnvCheckSignals()


@probe
def allocator(lib):
    lib.TVMFFIEnvGetDLPackManagedTensorAllocator.restype = VOID
    get, set_ = lib.TVMFFIEnvGetDLPackManagedTensorAllocator, lib.TVMFFIEnvSetDLPackManagedTensorAllocator
    start, before = get(), VOID(9)
    set_(VOID(16), 1, ref(before))
    first = before.value
    set_(VOID(32), 0, ref(before))
    second = before.value
    own = get()
    set_(None, 0, None)
    return [start, first, second, own, get()]


@probe
def tensor_without_allocator(lib):
    out = VOID(9)
    return [lib.TVMFFIEnvTensorAlloc(ref(DLTensor()), ref(out)), out.value, raised(lib)]


@probe
def tensor_of_allocator(lib):
    kept = []

    @ALLOCATE
    def allocate(prototype, out, context, fail):
        if prototype.contents.ndim == 3:
            fail(context, b"MemoryError", b"as asked")
            return -1
        tensor = Versioned()
        kept.append(tensor)
        tensor.dl = prototype.contents
        tensor.dl.strides = None
        out[0] = c.pointer(tensor)
        return 0

    lib.TVMFFIEnvSetDLPackManagedTensorAllocator(allocate, 0, None)
    out, shape = VOID(), (c.c_int64 * 3)(2, 3, 4)
    asked = DLTensor(None, (1, 0), 2, (2, 32, 1, 0), shape, None, 0)
    code = lib.TVMFFIEnvTensorAlloc(ref(asked), ref(out))
    tensor = DLTensor.from_address(out.value + 24)
    asked.ndim = 3
    return [code, tensor.strides[:2], lib.TVMFFIEnvTensorAlloc(ref(asked), ref(out)), raised(lib)]


def tensor_of(lib, deleter=None, strides=True):
    shape = (c.c_int64 * 4)(2, 3, 3, 1)
    data = (c.c_float * 6)()
    managed = Managed(DLTensor(c.cast(data, VOID), (1, 0), 2, (2, 32, 1, 0), shape,
                               c.cast(c.addressof(shape) + 16, c.POINTER(c.c_int64)) if strides else None, 0), None, c.cast(deleter, VOID) if deleter else None)
    managed.kept = data, shape
    out = VOID()
    code = lib.TVMFFITensorFromDLPack(ref(managed), 0, 0, ref(out))
    return managed, out, code


@probe
def import_tensor(lib):
    ended = []
    end = END(lambda self: ended.append(1))
    managed, out, code = tensor_of(lib, end)
    lib.TVMFFIObjectDecRef(out)
    return [code, ended]


@probe
def import_without_deleter(lib):
    managed, out, code = tensor_of(lib)
    return [code, lib.TVMFFIObjectDecRef(out)]


@probe
def import_without_strides(lib):
    managed, out, code = tensor_of(lib, strides=False)
    tensor = DLTensor.from_address(out.value + 24)
    return [code, bool(tensor.strides) and tensor.strides[:2]]


@probe
def export_tensor(lib):
    managed, out, _ = tensor_of(lib)
    plain, versioned = c.POINTER(Managed)(), c.POINTER(Versioned)()
    codes = [lib.TVMFFITensorToDLPack(out, ref(plain)), lib.TVMFFITensorToDLPackVersioned(out, ref(versioned))]
    counted = object_of(out.value)[0]
    shown = versioned.contents
    same = shown.dl.data == managed.dl.data and c.addressof(shown.dl.shape.contents) == c.addressof(managed.dl.shape.contents)
    result = [codes, counted, list(shown.version), shown.flags, same, shown.context == out.value]
    END(shown.deleter)(c.addressof(shown))
    END(plain.contents.deleter)(c.addressof(plain.contents))
    return result + [object_of(out.value)[0]]


@probe
def view(lib):
    managed, out, _ = tensor_of(lib)
    shape, strides = (c.c_int64 * 1)(3), (c.c_int64 * 1)(2)
    prototype = DLTensor(managed.dl.data, (1, 0), 1, (2, 32, 1, 0), shape, strides, 4)
    made_ = VOID()
    code = lib.TVMFFITensorCreateUnsafeView(out, ref(prototype), ref(made_))
    seen = DLTensor.from_address(made_.value + 24)
    shape[0] = strides[0] = 99
    counted = object_of(out.value)[0]
    result = [code, counted, seen.shape[0], seen.strides[0], seen.byte_offset]
    prototype.strides = None
    return result + [lib.TVMFFITensorCreateUnsafeView(out, ref(prototype), ref(made_)), raised(lib)]


@probe
def once(lib):
    place, calls = VOID(), []
    init = MAKE(lambda out: calls.append("init") or out.__setitem__(0, 7) or 0)
    deinit = c.CFUNCTYPE(c.c_int, VOID)(lambda handle: calls.append(handle) or 0)
    codes = [lib.TVMFFIHandleInitOnce(ref(place), init), lib.TVMFFIHandleInitOnce(ref(place), init)]
    kept = place.value
    codes += [lib.TVMFFIHandleDeinitOnce(ref(place), deinit), lib.TVMFFIHandleDeinitOnce(ref(place), deinit)]
    return [codes, kept, calls, place.value]


@probe
def once_failing(lib):
    place, calls = VOID(), []
    fails, empty = MAKE(lambda out: 5), MAKE(lambda out: 0)
    deinit = c.CFUNCTYPE(c.c_int, VOID)(lambda handle: 6)
    results = [[lib.TVMFFIHandleInitOnce(ref(place), body), raised(lib)] for body in (fails, empty)]
    place.value = 7
    return results + [lib.TVMFFIHandleDeinitOnce(ref(place), deinit), place.value, raised(lib)]


@probe
def custom_allocator(lib):
    lib.TVMFFIGetCustomAllocator.restype = VOID
    own = lib.TVMFFIGetCustomAllocator()
    fields = list((c.c_uint64 * 2).from_address(own))
    other = (c.c_uint64 * 2)(1, 2)
    codes = [lib.TVMFFISetCustomAllocator(other), lib.TVMFFIGetCustomAllocator() == c.addressof(other), lib.TVMFFISetCustomAllocator(None)]
    return [bool(own), [bool(field) for field in fields], codes, lib.TVMFFIGetCustomAllocator() == own]


@probe
def big_integer(lib):
    lib.TVMFFIBigIntGetContentByteArray.restype = Bytes
    results = []
    for data in (b"\x05" + bytes(7), b"\xff" * 16, bytes(8) + b"\x01" + bytes(7), b"", b"123"):
        slot = Cell(7, 7, 7)
        code = lib.TVMFFIBigIntFromByteArray(ref(Bytes(data, len(data))), ref(slot))
        results.append([code, slot.tag, raised(lib)])
        if slot.tag == 78:
            content = (c.c_uint64 * 2).from_buffer_copy(lib.TVMFFIBigIntGetContentByteArray(ref(slot)))
            results[-1].append([content[1], content[0] != 0])
    return results


@probe
def context_symbols(lib):
    return [lib.TVMFFIEnvModRegisterContextSymbol(b"__probe", VOID(7)), lib.TVMFFIEnvModRegisterSystemLibSymbol(b"probe", VOID(7)),
            lib.TVMFFIEnvModRegisterSystemLibSymbol(b"probe", VOID(8))]


@probe
def lookup_null_context(lib):
    out = VOID(9)
    return [lib.TVMFFIEnvModLookupFromImports(None, b"probe", ref(out)), raised(lib)]


if __name__ == "__main__":
    main(__doc__, opened)
