"""Assembles payloads by hand, from spec/payload.md: kinds without an available release, and malformed payloads.

    python3 make.py        writes <name>.bin, and <name>.json for those that read

Nothing here comes from the Rust code. A malformed payload is a small valid one with one change, after which it is named.
"""

import json
import struct
from pathlib import Path

from decode import Reader, payload

HERE = Path(__file__).parent


def num(fmt, *values):
    return struct.pack("<" + fmt, *values)


def raw(data):
    return num("Q", len(data)) + data


def text(value):
    return raw(value.encode())


def many(items, write=text):
    return num("Q", len(items)) + b"".join(write(item) for item in items)


def i64s(*values):
    return many(values, lambda value: num("q", value))


def table(items, write=raw):
    return many(list(items.items()), lambda pair: text(pair[0]) + write(pair[1]))


HANDLE = num("BBH", 3, 64, 1)
FLOAT = num("BBH", 2, 32, 1)


def info(layout, name="", args=(HANDLE,), tags=("blockIdx.x", "threadIdx.x"), extra=(0,)):
    body = text(name) + many(args, bytes) + many(tags)
    return body + (many(extra, lambda tag: num("i", tag)) if layout in ("0.21", "0.22") else b"")


def functions(layout, *names, **fields):
    return many(names or ("k",), lambda name: text(name) + info(layout, **fields))


def code(layout, fmt, data, **fields):
    return text(fmt) + functions(layout, **fields) + raw(data)


def tensor(shape=(2,), data=b"\0" * 8, dtype=FLOAT, device=1):
    body = num("QQiii", 0xDD5E40F096B4A13F, 0, device, 0, len(shape)) + dtype
    return body + b"".join(num("q", dim) for dim in shape) + raw(data)


SPIRV = num("IIIII", 0x07230203, 0x00010000, 0, 1, 0)


def shader(framed=False, tail=b""):
    body = num("I", 1) + num("Q", len(SPIRV) // 4) + SPIRV + tail
    return raw(body) if framed else body


def vulkan(layout, framed, name="", tail=b""):
    return text("vulkan") + functions(layout, name=name) + many(["k"], lambda k: text(k) + shader(framed, tail))


def constants(variables=("w",), count=None, tensors=None, symbols=("f",), symbol_count=None, listed=(("w",),)):
    count = len(variables) if count is None else count
    tensors = len(variables) if tensors is None else tensors
    symbol_count = len(symbols) if symbol_count is None else symbol_count
    body = many(variables) + num("Q", count) + tensor() * tensors
    return body + many(symbols) + num("Q", symbol_count) + b"".join(many(names) for names in listed)


GRAPH = '{"nodes": [], "arg_nodes": [], "heads": [], "node_row_ptr": [0]}'


def graph(names=("p",), count=None):
    count = len(names) if count is None else count
    return text(GRAPH) + num("Q", count) + many(names) + tensor() * len(names) + text("default")


def network(sizes, inputs=(0,), outputs=(1,)):
    body = text("net") + raw(b"\x01\x02\x03")
    for order in (inputs, outputs):
        body += many(order, lambda word: num("I", word))
        body += b"".join(num("I", 16) for _ in order) if sizes else b""
    return num("Q", 1) + body


def stack_function(words=(1, 2, 3)):
    body = many(words, lambda word: num("i", word)) + many(["text"]) + many(["tvm_call"]) + many(["arg"])
    return body + num("QQ", 4, 16)


def stackvm(imports=()):
    body = many(["main"], lambda name: text(name) + stack_function()) + text("main")
    return body + many(imports, lambda pair: text(pair[0]) + pair[1])


def relay_hash(opcode, fields):
    key = opcode
    for field in fields:
        key ^= ((field & (2**64 - 1)) + 0x9E3779B9 + (key << 6) + (key >> 2)) & (2**64 - 1)
        key &= 2**64 - 1
    return key


def relay_instruction(opcode, *fields, wrong_hash=0):
    words = [opcode, *fields]
    return num("QQ", len(words) + 1, relay_hash(opcode, fields) ^ wrong_hash) + b"".join(num("q", word) for word in words)


def relay(version="0.8.0", magic=0xD225DE2F4214151D, name="main", registers="3", count=None, instructions=None,
          host=0, constant_devices=(1,), param_devices=(1,), tag=0, strings=None, globals=("main",)):
    """One function of one parameter: load a constant, return it."""
    era = int(version.split(".")[1]) if version[:2] == "0." else 8
    load = (11, 0, 0, 2) if era >= 14 else (11, 0, 2)
    if instructions is None:
        instructions = [relay_instruction(*load), relay_instruction(1, 2)]
    body = num("Q", magic) + text(version)
    if era >= 9:
        body += num("Qii", 1, 1, 0) + (text("global") if era >= 14 else b"") + num("i", host)
    body += many(globals) + num("Q", 1) + (num("I", tag) if era >= 9 else b"")
    body += text("late_w") if tag == 1 else tensor()
    body += i64s(*constant_devices) if era >= 7 else b""
    body += many(["fused_add"])
    if era >= 8:
        body += num("QQ", 1, 0) + table({"hash": b"d6b3dc9ab1c00d69"})
    strings = strings or [name, registers, str(len(instructions)) if count is None else count]
    body += num("Q", 1) + many(strings) + many(["x"]) + (i64s(*param_devices) if era >= 7 else b"")
    return raw(body + b"".join(instructions))


TAGS = {
    "0.7": {"tensor": 0, "dtype": 1, "shape": 2, "text": 3, "int": 4, "float": 5},
    "0.21": {"tensor": 72, "dtype": 5, "shape": 71, "text": 65, "int": 1, "float": 3},
    "0.22": {"tensor": 70, "dtype": 5, "shape": 69, "text": 65, "int": 1, "float": 3},
}
VOID = 1 << 54


def arg(kind, value=0):
    return kind << 56 | value & (1 << 56) - 1


# Call the packed function with every kind of operand; continue if register 1 is set, or by a jump; return.
RELAX_CODE = [
    [1, 1, 1, 5, arg(0, 0), arg(1, -1), arg(2, 5), arg(3, 0), arg(0, VOID + 1)],
    [4, 1, 2],
    [3, 1],
    [2, 1],
]


def relax(layout, magic=0x1D, version="0.14", kind=1, start=0, end=4, num_args=1, registers=2, scopes=((0, "global"),),
          instructions=RELAX_CODE, offsets=None, tag=None, second=None, words=None, real=1.5):
    tags = TAGS[layout]
    body = num("Q", 0xD225DE2F42141500 | magic) + text(version)
    rows = [(kind, "main", start, end, num_args, registers, ["x"]), (0, "fused_add", 0, 0, -2, 0, [])]
    rows += [second] if second else []
    body += many(rows, lambda row: num("i", row[0]) + text(row[1]) + num("qqqq", *row[2:6]) + many(row[6]))
    if magic == 0x1E:
        body += many(scopes, lambda scope: num("q", scope[0]) + text(scope[1]))
    pool = [
        num("i", tags["tensor"] if tag is None else tag) + tensor(),
        num("i", tags["dtype"]) + FLOAT,
        num("i", tags["shape"]) + i64s(2, 3),
        num("i", tags["text"]) + text("global"),
        num("i", tags["int"]) + num("q", -5),
        num("i", tags["float"]) + num("d", real),
    ]
    body += many(pool, bytes)
    if offsets is None:
        offsets = [sum(len(row) for row in instructions[:index]) for index in range(len(instructions))]
    flat = [word for row in instructions for word in row] if words is None else words
    body += i64s(*offsets) + i64s(*flat)
    return body if layout == "0.22" else raw(body)


def changed(index, *words):
    return [list(words) if at == index else row for at, row in enumerate(RELAX_CODE)]


JSON_RUNTIME = text("tvmgen_0") + text('{"nodes": []}') + many(["tvmgen_0_const_0"])
OBJECT = b"\x7fELF\x02\x01\x01"

# name: (kind, layout, form, bytes)
GOOD = {
    "cuda-minimal": ("cuda", "0.22", None, code("0.22", "ptx", b".version 6.0\n", name="k")),
    "cuda-minimal-0.7": ("cuda", "0.7", None, code("0.7", "ptx", b".version 6.0\n")),
    "cuda-all-tags": ("cuda", "0.22", None, code("0.22", "cubin", b"\x7fELF\0", name="k", args=(HANDLE, FLOAT), extra=(1, 0), tags=(
        "blockIdx.y", "threadIdx.z", "clusterCtaIdx.x", "preferredClusterCtaIdx.x", "vthread.x",
        "tirx.use_programtic_dependent_launch", "tirx.use_cooperative_launch", "tirx.use_dyn_shared_memory"))),
    "cuda-no-functions": ("cuda", "0.22", None, text("ptx") + num("Q", 0) + raw(b"")),
    "opencl-minimal": ("opencl", "0.22", None, code("0.22", "cl", b"// Function: k\n__kernel void k() {}\n", name="k")),
    "opencl-spirv-0.7": ("opencl", "0.7", "0.13", functions("0.7") + many(["k"], lambda k: text(k) + shader())),
    "opencl-spirv-0.22": ("opencl", "0.22", "0.13", functions("0.22") + many(["k"], lambda k: text(k) + shader())),
    "sdaccel-0.7": ("sdaccel", "0.7", None, code("0.7", "xclbin", b"xclbin2\0")),
    "aocl-0.7": ("aocl", "0.7", None, code("0.7", "aocx", b"\x7fELF\0")),
    "metal-0.13": ("metal", "0.7", "0.13", text("0.1.0") + table({"k": b"kernel void k() {}"}) + functions("0.7") + text("metal")),
    "metal-0.13-in-0.22": ("metal", "0.22", "0.13", text("0.1.0") + table({"k": b"kernel void k() {}"}) + functions("0.22") + text("metal")),
    "metal-off-in-0.22": ("metal", "0.22", "0.2", code("0.22", "metal", b"kernel void k() {}")),
    "metal-metallib": ("metal", "0.22", "0.24", text("metallib") + functions("0.22", name="k") + table({"k": b"MTLB\0\x01"})),
    "hip-0.7": ("hip", "0.7", None, code("0.7", "hsaco", b"\x7fELF\0")),
    "hsaco-0.22": ("hsaco", "0.22", None, code("0.22", "hsaco", b"\x7fELF\0", name="k")),
    "vulkan-0.3": ("vulkan", "0.7", "0.3", vulkan("0.7", False)),
    "vulkan-0.3-in-0.22": ("vulkan", "0.22", "0.3", vulkan("0.22", False)),
    "vulkan-0.24": ("vulkan", "0.22", "0.24", vulkan("0.22", True, name="k")),
    "webgpu-0.7": ("webgpu", "0.7", None, functions("0.7", tags=("blockIdx.x", "paramWriteAccess:[1]")) + table({"k": b"@compute fn k() {}"})),
    "opengl-0.2": ("opengl", "0.2", None, text("gl") + functions("0.2") + text('{"shaders": {}}')),
    "hexagon-0.22": ("hexagon", "0.22", None, code("0.22", "so", OBJECT + b"\0", name="k")),
    "c-0.7": ("c", "0.7", None, raw(b"int f(void);\n") + text("c") + many(["f"]) + many([])),
    "static-library-minimal": ("static_library", "0.22", None, raw(OBJECT) + many(["f"])),
    "metadata-0.7": ("metadata", "0.7", None, constants()),
    "const-loader-minimal": ("const_loader", "0.22", None, constants()),
    "metadata-module": ("metadata_module", "0.7", None, b""),
    "graph-runtime-0.7": ("GraphRuntimeFactory", "0.7", None, graph()),
    "graph-executor-minimal": ("GraphExecutorFactory", "0.7", None, graph()),
    "aot-0.9": ("AotExecutorFactory", "0.7", None, num("Q", 1) + many(["p"]) + tensor() + text("default")),
    "aot-two-params": ("AotExecutorFactory", "0.7", None, num("Q", 2) + many(["p", "q"]) + tensor() + tensor(data=b"\1" * 8) + text("default")),
    "relay-vm-two-globals": ("VMExecutable", "0.7", None, relay(globals=("main", "helper"))),
    "relay-vm-0.6": ("VMExecutable", "0.7", None, relay("0.6.1")),
    "relay-vm-0.7": ("VMExecutable", "0.7", None, relay("0.7.0")),
    "relay-vm-minimal": ("VMExecutable", "0.7", None, relay()),
    "relay-vm-0.9": ("VMExecutable", "0.7", None, relay("0.9.0", tag=1)),
    "relay-vm-0.14": ("VMExecutable", "0.7", None, relay("0.14.0")),
    "relax-executable-0.16": ("relax.Executable", "0.7", None, relax("0.7")),
    "relax-vm-0.20": ("relax.VMExecutable", "0.7", None, relax("0.7")),
    "relax-vm-0.21-all-constants": ("relax.VMExecutable", "0.21", None, relax("0.21")),
    "relax-vm-0.22": ("relax.VMExecutable", "0.22", None, relax("0.22")),
    "relax-vm-minimal": ("relax.VMExecutable", "0.22", None, relax("0.22", 0x1E)),
    "dnnl-json": ("dnnl_json", "0.7", None, JSON_RUNTIME),
    "example-npu-json": ("example_npu_json", "0.22", None, JSON_RUNTIME),
    "dnnl-json-two-constants": ("dnnl_json", "0.7", None, text("tvmgen_0") + text('{"nodes": []}') + many(["c0", "c1"])),
    "examplejson-0.6": ("examplejson", "0.2", None, text('{"nodes": []}')),
    "coreml": ("coreml", "0.7", None, text("tvmgen_0") + raw(b"model\0")),
    "ethos-n-0.7": ("ethos-n", "0.7", "0.7", network(False)),
    "ethos-n-0.10": ("ethos-n", "0.7", "0.10", network(True)),
    "vitis-ai": ("VitisAIRuntime", "0.7", None, raw(b"rt\0") + text("/export") + text("tvmgen_0") + many(["c0"])),
    "torch": ("torch", "0.7", None, text("tvmgen_0") + raw(b"PK\x03\x04")),
    "mrvl-sim-0.16": ("mrvl_sim", "0.7", "0.16", text("tvmgen_0") + text("{}")),
    "mrvl-sim-0.17": ("mrvl_sim", "0.7", "0.17", text("tvmgen_0") + text("{}") + text("AQID")),
    "mrvl-sim-0.23": ("mrvl_sim", "0.22", "0.17", text("tvmgen_0") + text("{}") + text("AQID")),
    "nki-0.25": ("nki", "0.22", None, code("0.22", "Trainium", b"import neuronxcc.nki.language as nl\n", name="k")),
    "verilator-0.8": ("verilator", "0.7", None, JSON_RUNTIME),
    "mrvl-hw": ("mrvl_hw", "0.7", None, text("tvmgen_0") + text("{}") + raw(b"\x01\0\xff") + num("iii", 1, 2, -1)),
    "stackvm-with-import": ("stackvm", "0.7", None, stackvm([("cuda", code("0.7", "ptx", b".version 6.0\n"))])),
}
VOID_CODE = [[1, VOID, 1, 1, arg(0, VOID)], [4, VOID, 2], [3, -2], [2, VOID]]
LIMITS = [[1, 1, 0, 2, arg(1, 2**55 - 1), arg(1, -(2**55))], [2, 0]]


def relax_case(**fields):
    return ("relax.VMExecutable", "0.22", None, relax("0.22", 0x1E, **fields))


def relax_broken(**fields):
    return ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, **fields))


def all_opcodes(era):
    """Each opcode of 0.`era` once, with its fields in that release, in a frame of three registers."""
    later = lambda since, *fields: fields if era >= since else ()
    rows = [
        (0, 0, 1), (2, 0, 1, 2, 0), (3, 0, 1, 2, 1), (4, 0, 2, 1, 0, 1), (5, 0, *later(7, 1), 2, 32, 1, 2, 2, 7, 8),
        (6, 0, *later(7, 1), 1, 2, 32, 1, 2), (7, 5, 2, 2, 0, 1), (8, 0, 1, 2, 0), (9, 0, 1, 2), (10, 0, 1, 1, -1),
        (11, 0, *later(14, 0), 2), (12, -1), (13, 0, 2), (14, -9, 2), (15,),
        (16, 0, 1 if era < 7 else 64, 2, 32, 1, *later(7, 0), *later(14, 0), 2),
        *later(7, (17, 0, 2), (18, 0, 1, 2), (19, 0, 1, 0, 2)), *later(9, (20, 0)), (1, 2),
    ]
    return [relay_instruction(*row) for row in rows]


GOOD |= {
    "cuda-tir-tags": ("cuda", "0.22", None, code("0.22", "ptx", b".version", name="k", tags=("tir.use_programtic_dependent_launch",))),
    "relax-vm-infinity": relax_case(real=float("-inf")),
    "relax-vm-void-registers": relax_case(instructions=VOID_CODE),
    "relax-vm-widest-numbers": relax_case(instructions=LIMITS, end=2),
    "relax-vm-call-at-the-end": relax_case(instructions=[[2, 0], [1, 1, 1, 2, arg(0, 0), arg(2, 5)]], end=2),
    "relax-vm-functions-touch": relax_case(instructions=[[2, 0], [2, 1]], end=1, second=(1, "other", 1, 2, 0, 2, [])),
    "relax-vm-vmtir-shares": relax_case(second=(2, "other", 3, 4, 0, 2, [])),
    "relax-vm-empty-function-inside": relax_case(second=(1, "other", 2, 2, 0, 2, [])),
    "relax-vm-arguments-fill-the-frame": relax_case(num_args=2),
    "relay-vm-all-opcodes-0.6": ("VMExecutable", "0.7", None, relay("0.6.1", instructions=all_opcodes(6))),
    "relay-vm-all-opcodes-0.7": ("VMExecutable", "0.7", None, relay("0.7.0", instructions=all_opcodes(7))),
    "relay-vm-all-opcodes-0.9": ("VMExecutable", "0.7", None, relay("0.9.0", tag=1, instructions=all_opcodes(9))),
    "relay-vm-all-opcodes-0.14": ("VMExecutable", "0.7", None, relay("0.14.0", instructions=all_opcodes(14))),
    "relay-vm-jump-to-itself": ("VMExecutable", "0.7", None, relay(instructions=[relay_instruction(12, 0)])),
}
# Readable, but odd: it violates a rule that is not a MUST.
ODD = {
    "cuda-function-twice": ("cuda", "0.22", None, text("ptx") + functions("0.22", "k", "k") + raw(b".version")),
    "cuda-unknown-tag": ("cuda", "0.22", None, code("0.22", "ptx", b".version", name="k", tags=("warpIdx.x",))),
    "cuda-inner-name-differs": ("cuda", "0.22", None, code("0.22", "ptx", b".version", name="other")),
    "cuda-extra-tags-too-few": ("cuda", "0.22", None, code("0.22", "ptx", b".version", name="k", args=(HANDLE, HANDLE))),
    "cuda-unknown-format": ("cuda", "0.22", None, code("0.22", "sass", b".version", name="k")),
    "cuda-trailing": ("cuda", "0.22", None, code("0.22", "ptx", b".version", name="k") + b"\0\0\0"),
    "opencl-no-delimiter": ("opencl", "0.22", None, code("0.22", "cl", b"__kernel void k() {}\n", name="k")),
    "opencl-open-delimiter": ("opencl", "0.22", None, code("0.22", "cl", b"// Function: k", name="k")),
    "c-no-functions": ("c", "0.22", None, raw(b"int f(void);\n") + text("c") + many([]) + many([])),
    "static-library-text": ("static_library", "0.22", None, raw(b"int f(void);") + many(["f"])),
    "const-loader-symbol-twice": ("const_loader", "0.22", None, constants(symbols=("f", "f"), listed=(("w",), ()))),
    "graph-executor-param-twice": ("GraphExecutorFactory", "0.7", None, graph(names=("p", "p"))),
    "relax-vm-65536-registers": ("relax.VMExecutable", "0.22", None, relax("0.22", 0x1E, registers=65536)),
    "relax-vm-function-twice": ("relax.VMExecutable", "0.22", None, relax("0.22", 0x1E, second=(0, "main", 0, 0, -2, 0, []))),
}
# Broken: name: (kind, layout, bytes)
BROKEN = {
    "cuda-axis-w": ("cuda", "0.22", code("0.22", "ptx", b".version", name="k", tags=("threadIdx.w",))),
    "cuda-empty-format": ("cuda", "0.22", code("0.22", "", b".version", name="k")),
    "cuda-truncated-code": ("cuda", "0.22", code("0.22", "ptx", b".version", name="k")[:-1]),
    "cuda-function-count-2e61": ("cuda", "0.22", text("ptx") + num("Q", 2**61) + raw(b"")),
    "cuda-code-length-2e63": ("cuda", "0.22", text("ptx") + functions("0.22", name="k") + num("Q", 2**63)),
    "cuda-0.20-info-in-0.21": ("cuda", "0.21", code("0.7", "ptx", b".version")),
    "metal-version-with-blank": ("metal", "0.7", text("0.1 beta") + table({"k": b"x"}) + functions("0.7") + text("metal")),
    "vulkan-bytes-behind-words": ("vulkan", "0.22", vulkan("0.22", True, name="k", tail=b"\0\0\0\0")),
    "const-loader-count-differs": ("const_loader", "0.22", constants(count=2)),
    "const-loader-symbol-count-differs": ("const_loader", "0.22", constants(symbol_count=0)),
    "const-loader-variable-twice": ("const_loader", "0.22", constants(variables=("w", "w"))),
    "const-loader-variable-missing": ("const_loader", "0.22", constants(listed=(("v",),))),
    "graph-executor-count-differs": ("GraphExecutorFactory", "0.7", graph(count=2)),
    "ethos-n-no-outputs": ("ethos-n", "0.7", network(True, outputs=())),
    "mrvl-sim-not-base64": ("mrvl_sim", "0.22", text("tvmgen_0") + text("{}") + text("AQI")),
    "stackvm-imports-stackvm": ("stackvm", "0.7", stackvm([("stackvm", stackvm())])),
    "relay-vm-magic": ("VMExecutable", "0.7", relay(magic=0xD225DE2F4214151C)),
    "relay-vm-version-0.20": ("VMExecutable", "0.7", relay(version="0.20.0")),
    "relay-vm-host-index": ("VMExecutable", "0.7", relay("0.9.0", tag=1, host=1)),
    "relay-vm-constant-tag": ("VMExecutable", "0.7", relay("0.9.0", tag=2)),
    "relay-vm-constant-devices": ("VMExecutable", "0.7", relay(constant_devices=(1, 1))),
    "relay-vm-param-devices": ("VMExecutable", "0.7", relay(param_devices=())),
    "relay-vm-two-strings": ("VMExecutable", "0.7", relay(strings=["main", "3"])),
    "relay-vm-negative-registers": ("VMExecutable", "0.7", relay(registers="-1")),
    "relay-vm-registers-with-zero": ("VMExecutable", "0.7", relay(registers="03")),
    "relay-vm-hash": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(11, 0, 2, wrong_hash=1), relay_instruction(1, 2)])),
    "relay-vm-opcode-21": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(21, 2)])),
    "relay-vm-kill-register-in-0.8": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(20, 2)])),
    "relay-vm-field-missing": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(11, 0), relay_instruction(1, 2)])),
    "relay-vm-arity-too-high": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(4, 0, 3, 1, 0, 1)])),
    "relay-vm-not-a-global": ("VMExecutable", "0.7", relay(name="other")),
    "relay-vm-register": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(1, 3)])),
    "relay-vm-jump": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(12, 2), relay_instruction(1, 2)])),
    "relay-vm-constant-index": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(11, 1, 2)])),
    "relay-vm-primitive-index": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(4, 1, 1, 0, 0)])),
    "relax-vm-magic": ("relax.VMExecutable", "0.22", relax("0.22", 0x1F)),
    "relax-vm-new-magic-in-0.21": ("relax.VMExecutable", "0.21", relax("0.21", 0x1E)),
    "relax-vm-version-0.15": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, version="0.15")),
    "relax-vm-function-kind-3": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, kind=3)),
    "relax-vm-constant-tag-of-0.21": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, tag=72)),
    "relax-vm-scope-of-no-constant": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, scopes=((6, "global"),))),
    "relax-vm-scope-twice": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, scopes=((0, "global"), (0, "texture")))),
    "relax-vm-offset-1e7": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, offsets=[0, 9, 12, 10**7])),
    "relax-vm-operands-past-the-end": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, instructions=changed(3, 1, 1, 1, 3))),
    "relax-vm-opcode-5": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, instructions=changed(2, 5, 1))),
    "relax-vm-operand-kind-4": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, instructions=changed(0, 1, 1, 1, 1, arg(4)))),
    "relax-vm-end-past-the-table": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, end=5)),
    "relax-vm-functions-overlap": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, second=(1, "other", 3, 4, 0, 2, []))),
    "relax-vm-more-arguments-than-registers": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, num_args=3)),
    "relax-vm-65537-registers": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, registers=65537)),
    "relax-vm-2e62-registers": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, registers=1 << 62)),
    "relax-vm-register": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, instructions=changed(3, 2, 2))),
    "relax-vm-destination-is-the-vm": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, instructions=changed(0, 1, VOID + 1, 1, 0))),
    "relax-vm-constant-index": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, instructions=changed(0, 1, 1, 1, 1, arg(2, 6)))),
    "relax-vm-function-index": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, instructions=changed(0, 1, 1, 2, 0))),
    "relax-vm-jump-out": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, instructions=changed(2, 3, 2))),
    "relax-vm-gap-between-instructions": ("relax.VMExecutable", "0.22", relax("0.22", 0x1E, offsets=[0, 9, 12, 15], words=[
        word for row in RELAX_CODE[:3] for word in row] + [0] + RELAX_CODE[3])),
}
BROKEN |= {
    "relax-vm-jump-before-the-start": relax_broken(instructions=changed(2, 3, -3)),
    "relax-vm-jump-to-the-end": relax_broken(instructions=changed(1, 4, 1, 3)),
    "relax-vm-if-at-the-end": relax_broken(instructions=changed(3, 4, 1, -1)),
    "relax-vm-register-negative": relax_broken(instructions=changed(3, 2, -1)),
    "relax-vm-condition-outside": relax_broken(instructions=changed(1, 4, 2, 2)),
    "relax-vm-operand-outside": relax_broken(instructions=changed(0, 1, 1, 1, 1, arg(0, 2))),
    "relax-vm-destination-outside": relax_broken(instructions=changed(0, 1, 2, 1, 0)),
    "relax-vm-constant-negative": relax_broken(instructions=changed(0, 1, 1, 1, 1, arg(2, -1))),
    "relax-vm-operand-function-outside": relax_broken(instructions=changed(0, 1, 1, 1, 1, arg(3, 2))),
    "relax-vm-function-negative": relax_broken(instructions=changed(0, 1, 1, -1, 0)),
    "relax-vm-start-negative": relax_broken(start=-1),
    "relax-vm-ends-before-its-start": relax_broken(start=3, end=2),
    "relax-vm-arguments-negative": relax_broken(num_args=-1),
    "relax-vm-opcode-0": relax_broken(instructions=changed(2, 0, 1)),
    "relax-vm-operands-negative": relax_broken(instructions=changed(0, 1, 1, 1, -1)),
    "relax-vm-one-operand-too-many": relax_broken(instructions=[[2, 0], [1, 1, 1, 2, arg(0, 0)]], end=2),
    "relax-vm-offset-at-the-end": relax_broken(offsets=[0, 9, 12, 16]),
    "relax-vm-instruction-cut": relax_broken(instructions=changed(3, 2)),
    "relax-vm-words-left-over": relax_broken(words=[word for row in RELAX_CODE for word in row] + [0]),
    "relax-vm-scope-negative": relax_broken(scopes=((-1, "global"),)),
    "relax-vm-second-scope-of-no-constant": relax_broken(scopes=((5, "global"), (6, "global"))),
    "relay-vm-version-0.5": ("VMExecutable", "0.7", relay(version="0.5.0")),
    "relay-vm-host-index-negative": ("VMExecutable", "0.7", relay("0.9.0", tag=1, host=-1)),
    "relay-vm-jump-before-the-start": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(12, -1)])),
    "relay-vm-branch-outside": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(10, 0, 1, 0, 1)])),
    "relay-vm-register-negative": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(1, -1)])),
    "relay-vm-constant-negative": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(11, -1, 2)])),
    "relay-vm-function-index": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(2, 1, 1, 2, 0)])),
    "relay-vm-shape-of-in-0.6": ("VMExecutable", "0.7", relay("0.6.1", instructions=[relay_instruction(17, 0, 2)])),
    "relay-vm-last-register-outside": ("VMExecutable", "0.7", relay(instructions=[relay_instruction(2, 0, 2, 2, 0, 3)])),
    "ethos-n-no-inputs": ("ethos-n", "0.7", network(True, inputs=())),
}


def main():
    for name, (kind, layout, form, data) in (GOOD | ODD).items():
        r = Reader(data, layout)
        value = payload(r, kind, form)
        assert r.at == len(data) or name == "cuda-trailing", name
        (HERE / f"{name}.bin").write_bytes(data)
        (HERE / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n")
    for name, (kind, layout, data) in BROKEN.items():
        (HERE / f"{name}.bin").write_bytes(data)
    print(len(GOOD), "good,", len(ODD), "odd,", len(BROKEN), "broken")


if __name__ == "__main__":
    main()
