"""Extracts the payloads from libraries that real TVM releases wrote.

    python3 carve.py SAMPLES        writes <name>.bin and <name>.json into this folder

SAMPLES is a folder with `v0.6`, `v0.8`, `v0.19`, `v0.21` and `v0.27`, each as written by that release.
"""

import json
import re
import struct
import sys
from pathlib import Path

from decode import Reader, payload

HERE = Path(__file__).parent
SYMBOLS = (b"__tvm_ffi__library_bin", b"__tvm_ffi_library_bin", b"__tvm_dev_mblob")


def blob(path):
    """The library binary of a file: raw, as C text, or in an ELF file."""
    data = path.read_bytes()
    if path.suffix == ".c":
        body = re.search(r"\[\d+\] = \{(.*?)\}", data.decode(), re.S).group(1)
        return bytes(int(byte, 16) for byte in re.findall(r"0x[0-9a-f]+", body))
    if data[:4] != b"\x7fELF":
        return data
    table, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    for section in (s for s in sections if s[1] == 11):  # SHT_DYNSYM
        strings = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, _, _, index, value, size = struct.unpack_from("<IBBHQQ", data, at)
            end = data.index(b"\0", strings + name)
            if data[strings + name : end] in SYMBOLS:
                home = sections[index]
                start = home[4] + value - home[3]
                return data[start : start + size]
    raise SystemExit(f"{path}: no library binary")


def modules(body, layout, form):
    """Kind and payload of every module of a blob."""
    r = Reader(body, layout)
    assert r.u64() == len(body) - 8
    if layout == "0.22":
        count = len(r.many(r.u64)) - 1
        r.many(r.u64)
        for _ in range(count):
            kind = r.text()
            if kind != "_lib":
                yield kind, r.raw()
        return
    for _ in range(r.u64()):
        kind = r.text()
        if kind == "_import_tree":
            r.many(r.u64), r.many(r.u64)
        elif kind != "_lib":
            start = r.at
            payload(r, kind, form if kind == "metal" else None)
            yield kind, r.data[start : r.at]


# file, layout, form of its metal payload, and {kind: name}
LIBRARIES = [
    ("v0.6/c_opencl_metal.devc.c", "0.2", "0.2", {"opencl": "opencl-0.6", "metal": "metal-0.6"}),
    ("v0.8/modules/dev_opencl.mblob", "0.7", None, {"opencl": "opencl-0.8"}),
    ("v0.8/modules/dev_metal.mblob", "0.7", "0.2", {"metal": "metal-0.8"}),
    ("v0.8/modules/graph_factory.mblob", "0.7", None, {"GraphExecutorFactory": "graph-executor-0.8"}),
    ("v0.8/modules/relay_vm.mblob", "0.7", None, {"VMExecutable": "relay-vm-0.8"}),
    ("v0.19/host_opencl.so", "0.7", None, {"opencl": "opencl-0.19"}),
    ("v0.19/host_metal.so", "0.7", "0.2", {"metal": "metal-off-0.19"}),
    ("v0.19/mlp.so", "0.7", None, {"GraphExecutorFactory": "graph-executor-0.19"}),
    ("v0.21/host_opencl.so", "0.21", None, {"opencl": "opencl-0.21"}),
    ("v0.21/host_metal.so", "0.21", "0.2", {"metal": "metal-off-0.21"}),
    ("v0.21/vm.so", "0.21", None, {"relax.VMExecutable": "relax-vm-0.21"}),
    ("v0.27/device/cuda.library_bin", "0.22", None, {"cuda": "cuda-0.27"}),
    ("v0.27/device/opencl.library_bin", "0.22", None, {"opencl": "opencl-0.27"}),
    ("v0.27/device/metal.library_bin", "0.22", "0.24", {"metal": "metal-0.27"}),
    ("v0.27/device/webgpu.library_bin", "0.22", None, {"webgpu": "webgpu-0.27"}),
    ("v0.27/misc/const_loader_c.library_bin", "0.22", None, {"const_loader": "const-loader-0.27"}),
    ("v0.27/vm/relax_vm.library_bin", "0.22", None, {"relax.VMExecutable": "relax-vm-0.27"}),
]
# Relay VM code as `save` returned it: the payload is its length, then this code.
CODES = [("v0.19/vm.ro", "relay-vm-0.19")]
# Files that are themselves payloads, and bodies of modules embedded in JSON (no header).
FILES = [("v0.8/add1.stackvm", "0.7", "stackvm", "stackvm-0.8"), ("v0.19/add1.stackvm", "0.7", "stackvm", "stackvm-0.19")]
BODIES = [("v0.27/misc/json_static.bin", {"static_library": "static-library-0.27"}), ("v0.27/misc/json_const.bin", {"c": "c-0.27"})]


def main(samples):
    made = []
    for file, layout, form, names in LIBRARIES:
        for kind, data in modules(blob(samples / file), layout, form):
            if kind in names:
                made.append((names.pop(kind), kind, layout, form if kind == "metal" else None, data))
        assert not names, (file, names)
    for file, layout, kind, name in FILES:
        made.append((name, kind, layout, None, (samples / file).read_bytes()))
    for file, names in BODIES:
        body = (samples / file).read_bytes()
        for kind, data in modules(struct.pack("<Q", len(body)) + body, "0.22", None):
            if kind in names:
                made.append((names.pop(kind), kind, "0.22", None, data))
    for file, name in CODES:
        code = (samples / file).read_bytes()
        made.append((name, "VMExecutable", "0.7", None, struct.pack("<Q", len(code)) + code))
    for name, kind, layout, form, data in made:
        r = Reader(data, layout)
        value = payload(r, kind, form)
        assert r.at == len(data), name
        (HERE / f"{name}.bin").write_bytes(data)
        (HERE / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n")
        print(f"{name}: {kind} in layout {layout}, {len(data)} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
