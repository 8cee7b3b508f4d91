"""What code of this Python's TVM computes in the cases of `target.run`: its generator for LLVM makes it of the same modules.

    python judged_runs.py CASES GOLDEN OUT

OUT: {case: the answer of each call}, for the cases of the release of this TVM.
"""

import ctypes
import json
import os
import pathlib
import re
import sys

import numpy as np
import tvm
import tvm_ffi

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
import cases as conformance  # noqa: E402

RELEASE = "0." + tvm.__version__.split(".")[1]
UNTOUCHED = 0x55
CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("dtype", DataType)]
    _fields_ += [("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Payload(ctypes.Union):
    _fields_ = [("v_int64", ctypes.c_int64), ("v_float64", ctypes.c_double), ("v_ptr", ctypes.c_void_p)]


class AnyCell(ctypes.Structure):
    _fields_ = [("type_index", ctypes.c_int32), ("zero_padding", ctypes.c_uint32), ("payload", Payload)]


def element_type(dtype):
    if dtype == "bool":
        return CODES["bool"], 8
    kind, bits = re.fullmatch(r"([a-z]+)(\d+)", dtype).groups()
    return CODES[kind], int(bits)


def number(value):
    if isinstance(value, str):
        return {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}[value]
    return value


def encode(values, dtype):
    if dtype == "bool":
        return np.array(values, np.uint8).tobytes()
    return np.array([number(value) for value in values], dtype).tobytes()


def cut(value, bits):
    if bits is None or not np.isfinite(value):
        return value
    form = np.array([value], np.float64).view(np.uint64)
    unit = np.uint64(1 << (53 - bits))
    even = ((form & unit) != 0).astype(np.uint64)
    return float(((form + unit // np.uint64(2) - np.uint64(1) + even) & ~(unit - np.uint64(1))).view(np.float64)[0])


def decode(content, dtype, bits):
    if dtype == "bool":
        return list(content)
    array = np.frombuffer(content, dtype)
    if array.dtype.kind != "f":
        return [int(value) for value in array]
    wide = [float(value) for value in array]
    return ["nan" if np.isnan(v) else "inf" if v == np.inf else "-inf" if v == -np.inf else cut(v, bits) for v in wide]


class Tensor:
    def __init__(self, form):
        self.dtype = form["dtype"]
        shape, strides = form["shape"], form.get("strides")
        code, bits = element_type(self.dtype)
        offset, shift = form.get("byte_offset", 0), form.get("shift", 0)
        self.is_output = "values" not in form
        if form.get("values") is not None:
            content = bytes([UNTOUCHED] * offset) + encode(form["values"], self.dtype)
        else:
            count = int(np.prod(shape)) if strides is None else sum((n - 1) * s for n, s in zip(shape, strides)) + 1
            content = bytes([UNTOUCHED] * (offset + max(count, 0) * (bits // 8)))
        self.size = len(content)
        self.memory = ctypes.create_string_buffer(self.size + shift + 128)
        start = (ctypes.addressof(self.memory) + 63) // 64 * 64 + shift
        ctypes.memmove(start, content, self.size)
        self.start = start
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.strides = (ctypes.c_int64 * max(len(shape), 1))(*strides) if strides is not None else None
        address = None if form.get("values", 0) is None else start
        device = form.get("device", [1, 0])
        pointer = ctypes.POINTER(ctypes.c_int64)
        self.record = DLTensor(address, Device(*device), len(shape), DataType(code, bits, 1), ctypes.cast(self.shape, pointer),
                               ctypes.cast(self.strides, pointer) if self.strides is not None else None, offset)

    def cell(self):
        return AnyCell(7, 0, Payload(v_ptr=ctypes.addressof(self.record)))

    def content(self, bits):
        return decode(ctypes.string_at(self.start, self.size), self.dtype, bits)


def cell(value, kept):
    if value is None:
        return AnyCell(0, 0, Payload(v_int64=0))
    if isinstance(value, bool):
        return AnyCell(2, 0, Payload(v_int64=value))
    if isinstance(value, int):
        return AnyCell(1, 0, Payload(v_int64=value))
    if isinstance(value, str):
        kept.append(ctypes.create_string_buffer(value.encode()))
        return AnyCell(8, 0, Payload(v_ptr=ctypes.addressof(kept[-1])))
    if "float" in value:
        return AnyCell(3, 0, Payload(v_float64=value["float"]))
    kept.append(Tensor(value["tensor"]))
    return kept[-1].cell()


def raw_call(function, cells):
    """Arguments as they are: the frontend would check them, and make others of some."""
    library = ctypes.CDLL(str(pathlib.Path(tvm_ffi.libinfo.find_libtvm_ffi())))
    args = (AnyCell * max(len(cells), 1))(*cells)
    result = AnyCell(0, 0, Payload(v_int64=0))
    handle = ctypes.c_void_p(function.__chandle__())
    code = library.TVMFFIFunctionCall(handle, args, ctypes.c_int32(len(cells)), ctypes.byref(result))
    if code == 0:
        return result, None
    raised = ctypes.c_void_p()
    library.TVMFFIErrorMoveFromRaised(ctypes.byref(raised))
    # Behind the header of an object: two texts, each an address and a length.
    class Text(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    texts = (Text * 2).from_address(raised.value + 24)
    return None, [ctypes.string_at(text.data, text.size).decode() for text in texts]


def answer(module, call):
    function = module.get_function(call["function"])
    kept = []
    cells = [cell(value, kept) for value in call["args"]]
    returned, error = raw_call(function, cells)
    if error:
        return {"error": error}
    made = {"outputs": [tensor.content(call.get("bits")) for tensor in kept if isinstance(tensor, Tensor) and tensor.is_output and tensor.record.data]}
    if returned.type_index in (1, 2):
        made["returned"] = returned.payload.v_int64 if returned.type_index == 1 else bool(returned.payload.v_int64)
    elif returned.type_index == 3:
        made["returned"] = {"float": returned.payload.v_float64}
    return made


def run(text, calls):
    generator = tvm.get_global_func("target.build.llvm")
    target = tvm.target.Target({"kind": "llvm", "mtriple": "x86_64-unknown-linux-gnu"})
    # The modules were lowered for C: what LLVM has by another name is still what C calls it.
    lowered = tvm.ir.load_json(text)
    for name, function in lowered.functions.items():
        lowered.update_func(name, function.with_attr("target", target))
    module = generator(tvm.tirx.transform.LowerIntrin()(lowered), target)
    return [answer(module, call) for call in calls]


def apart(text, calls):
    """The answers of a process of its own: a generator that fails may end it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            made = run(text, calls)
        except Exception as error:
            made = {"failed": str(error)[-300:]}
        with os.fdopen(writer, "w") as out:
            json.dump(made, out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        content = answers.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(content) if status == 0 else {"crash": status}


def main(cases, golden, out):
    answers = {}
    for case in conformance.read(pathlib.Path(cases)):
        # Kernels need a device.
        if case["args"]["release"] == RELEASE and case["args"]["target"] == "c" and "accept" in case["expect"]:
            content = bytearray((pathlib.Path(golden) / case["input"]["file"]).read_bytes())
            for at, put in case["input"].get("put", []):
                content[at : at + len(put) // 2] = bytes.fromhex(put)
            answers[case["id"]] = apart(content.decode(), case["args"]["calls"])
    pathlib.Path(out).write_text(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
