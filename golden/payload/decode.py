"""Reads payloads into the JSON form of spec/payload.md, from the specification alone.

It shares no code with the crate, so that the expected values of the cases come from a second reading of the
rules. It checks little, because the cases cover rejections.
"""

import base64
import struct


def b64(data):
    return base64.b64encode(data).decode()


class Reader:
    def __init__(self, data, layout):
        self.data, self.at, self.layout = data, 0, layout

    def take(self, n):
        assert self.at + n <= len(self.data), (self.at, n)
        self.at += n
        return self.data[self.at - n : self.at]

    def num(self, fmt):
        return struct.unpack("<" + fmt, self.take(struct.calcsize(fmt)))[0]

    def u32(self):
        return self.num("I")

    def i32(self):
        return self.num("i")

    def u64(self):
        return self.num("Q")

    def i64(self):
        return self.num("q")

    def raw(self):
        return self.take(self.u64())

    def text(self):
        return self.raw().decode()

    def many(self, read):
        return [read() for _ in range(self.u64())]

    def texts(self):
        return self.many(self.text)

    def dtype(self):
        code, bits, lanes = struct.unpack("<BBH", self.take(4))
        name = {0: f"int{bits}", 1: f"uint{bits}", 2: f"float{bits}", 4: f"bfloat{bits}"}.get(code)
        name = {(3, 64): "handle", (6, 8): "bool"}.get((code, bits), name)
        if name is None or not 0 < lanes < 2**15:
            return [code, bits, lanes]
        return name if lanes == 1 else f"{name}x{lanes}"

    def tensor(self):
        assert self.u64() == 0xDD5E40F096B4A13F
        reserved = self.u64()
        device = [self.i32(), self.i32()]
        ndim = self.i32()
        dtype = self.dtype()
        shape = [self.i64() for _ in range(ndim)]
        value = {"dtype": dtype, "shape": shape, "device": device, "data": b64(self.raw())}
        return value | ({"reserved": reserved} if reserved else {})

    def function(self):
        key, inner = self.text(), self.text()
        value = {"name": key}
        if inner:
            value["info_name"] = inner
        value["arg_types"] = self.many(self.dtype)
        value["launch_param_tags"] = self.texts()
        if self.layout in ("0.21", "0.22"):
            tags = self.many(self.i32)
            if tags:
                value["arg_extra_tags"] = tags
        return value

    def functions(self):
        return self.many(self.function)

    def kernels(self):
        return self.many(lambda: {"name": self.text()} | code(self.raw()))

    def shader(self, framed):
        name = self.text()
        if framed:
            self.u64()
        return {"name": name, "flags": self.u32(), "spirv": b64(self.take(4 * self.u64()))}

    def named_tensors(self):
        names = self.texts()
        assert self.u64() == len(names)
        return [{"name": name} | self.tensor() for name in names]

    def params(self):
        self.u64()
        return [{"name": name} | self.tensor() for name in self.texts()]


def code(data):
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"data": b64(data)}
    return {"data": b64(data)} if "\0" in text else {"source": text}


def device_code(r):
    return {"format": r.text(), "functions": r.functions()} | code(r.raw())


def opencl(r, form):
    if form == "0.13":
        return {"functions": r.functions(), "shaders": r.many(lambda: r.shader(False))}
    return device_code(r)


def metal(r, form):
    if form == "0.2":
        return device_code(r)
    if form == "0.13":
        return {"version": r.text(), "kernels": r.kernels(), "functions": r.functions(), "format": r.text()}
    return {"format": r.text(), "functions": r.functions(), "kernels": r.kernels()}


def vulkan(r, form):
    return {"format": r.text(), "functions": r.functions(), "shaders": r.many(lambda: r.shader(form == "0.24"))}


def constants(r):
    variables = r.named_tensors()
    symbols = r.texts()
    assert r.u64() == len(symbols)
    return {"variables": variables, "symbols": [{"name": s, "variables": r.texts()} for s in symbols]}


def ethos_n(r, form):
    def network():
        value = {"name": r.text(), "compiled": b64(r.raw())}
        for side in ("input", "output"):
            order = r.many(r.u32)
            value[side + "s"] = order
            if form == "0.10":
                value[side + "_sizes"] = [r.u32() for _ in order]
        return value

    return {"networks": r.many(network)}


def relay(outer):
    r = Reader(outer.raw(), outer.layout)
    assert r.u64() == 0xD225DE2F4214151D
    version = r.text()
    era = int(version.split(".")[1])
    devices, host = [], 0
    if era >= 9:
        devices = r.many(lambda: {"device": [r.i32(), r.i32()], "scope": r.text() if era >= 14 else ""})
        host = r.i32()
    value = {"version": version, "virtual_devices": devices, "host_device": host, "globals": r.texts()}

    def constant():
        if era >= 9 and r.u32() == 1:
            return {"late": r.text()}
        return {"tensor": r.tensor()}

    value["constants"] = r.many(constant)
    value["constant_devices"] = r.many(r.i64) if era >= 7 else []
    value["primitives"] = r.texts()
    pairs = lambda: {"primitive": r.u64(), "attrs": r.many(lambda: [r.text(), r.text()])}
    value["primitive_attrs"] = r.many(pairs) if era >= 8 else []

    def function():
        assert r.u64() == 3
        name, registers, count = r.text(), int(r.text()), int(r.text())
        params = r.texts()
        devices = r.many(r.i64) if era >= 7 else []
        body = []
        for _ in range(count):
            words = r.many(r.i64)
            body.append({"opcode": words[1], "fields": words[2:]})
        return {"name": name, "registers": registers, "params": params, "param_devices": devices, "code": body}

    value["functions"] = r.many(function)
    assert r.at == len(r.data)
    return {"executable": value}


TAGS = {
    "0.7": {0: "tensor", 1: "dtype", 2: "shape", 3: "text", 4: "int", 5: "float"},
    "0.21": {72: "tensor", 5: "dtype", 71: "shape", 65: "text", 1: "int", 3: "float"},
    "0.22": {70: "tensor", 5: "dtype", 69: "shape", 65: "text", 1: "int", 3: "float"},
}


def relax(outer):
    r = outer if outer.layout == "0.22" else Reader(outer.raw(), outer.layout)
    magic = r.u64()
    assert r.text() == "0.14"

    def function():
        value = {"kind": ("packed", "vm", "vmtir")[r.i32()], "name": r.text()}
        for field in ("start", "end", "num_args", "registers"):
            value[field] = r.i64()
        return value | {"params": r.texts()}

    value = {"functions": r.many(function), "memory_scopes": None}
    if magic & 0xFF == 0x1E:
        value["memory_scopes"] = r.many(lambda: {"constant": r.i64(), "scope": r.text()})

    def constant():
        kind = TAGS[r.layout][r.i32()]
        read = {"tensor": r.tensor, "dtype": r.dtype, "text": r.text, "int": r.i64}
        read |= {"shape": lambda: r.many(r.i64), "float": lambda: r.num("d")}
        constant = read[kind]()
        if constant in (float("inf"), float("-inf")):
            return {"float_bits": b64(struct.pack("<d", constant))}
        return {kind: constant}

    value["constants"] = r.many(constant)
    value["instr_offset"] = r.many(r.i64)
    value["instr_data"] = r.many(r.i64)
    return {"executable": value}


def stackvm(r):
    def function():
        return {
            "name": r.text(), "code": r.many(r.i32), "texts": r.texts(), "extern_functions": r.texts(),
            "heap_names": r.texts(), "heap_size": r.u64(), "stack_size": r.u64(),
        }

    value = {"functions": r.many(function), "entry": r.text()}
    return value | {"imports": r.many(lambda: payload(r, r.text(), None))}


def json_runtime(r):
    return {"symbol": r.text(), "graph_json": r.text(), "const_names": r.texts()}


def graph(r):
    return {"graph_json": r.text(), "params": r.params(), "module_name": r.text()}


def mrvl_hw(r):
    value = {"symbol": r.text(), "nodes_json": r.text(), "binary": b64(r.raw())}
    return value | {field: r.i32() for field in ("inputs", "outputs", "batches")}


def mrvl_sim(r, form):
    value = {"symbol": r.text(), "nodes_json": r.text()}
    return value | ({"binary": r.text()} if form == "0.17" else {})


FORMED = {"mrvl_sim": mrvl_sim, "opencl": opencl, "metal": metal, "vulkan": vulkan, "ethos-n": ethos_n}
PLAIN = {
    "webgpu": lambda r: {"functions": r.functions(), "kernels": r.kernels()},
    "opengl": lambda r: {"format": r.text(), "functions": r.functions(), "shaders_json": r.text()},
    "c": lambda r: code(r.raw()) | {"format": r.text(), "function_names": r.texts(), "const_vars": r.texts()},
    "static_library": lambda r: {"object": b64(r.raw()), "function_names": r.texts()},
    "metadata": constants, "const_loader": constants, "metadata_module": lambda r: {},
    "GraphRuntimeFactory": graph, "GraphExecutorFactory": graph,
    "AotExecutorFactory": lambda r: {"params": r.params(), "module_name": r.text()},
    "VMExecutable": relay, "relax.Executable": relax, "relax.VMExecutable": relax, "stackvm": stackvm,
    "examplejson": lambda r: {"graph_json": r.text()},
    "coreml": lambda r: {"symbol": r.text(), "model": b64(r.raw())},
    "VitisAIRuntime": lambda r: {
        "runtime_module": b64(r.raw()), "export_path": r.text(), "symbol": r.text(), "const_names": r.texts(),
    },
    "torch": lambda r: {"symbol": r.text(), "archive": b64(r.raw())},
    "mrvl_hw": mrvl_hw,
}
for kind in ("cuda", "sdaccel", "aocl", "hip", "hsaco", "hexagon", "hex", "nki"):
    PLAIN[kind] = device_code
for kind in ("dnnl_json", "arm_compute_lib", "tensorrt", "bnns_json", "clml", "cublas_json", "cudnn_json",
             "msc_tensorrt", "nnapi", "hipblas_json", "example_npu_json", "verilator"):
    PLAIN[kind] = json_runtime

# The form that the release of a real sample writes; a hand-made file states its form.
NEWEST = {"mrvl_sim": "0.17", "opencl": "0.2", "metal": "0.24", "vulkan": "0.24", "ethos-n": "0.10"}


def payload(r, kind, form):
    """Returns the JSON form; the reader then stands after the payload."""
    if kind in FORMED:
        form = form or NEWEST[kind]
        return {"kind": kind, "form": form} | FORMED[kind](r, form)
    return {"kind": kind} | PLAIN[kind](r)
