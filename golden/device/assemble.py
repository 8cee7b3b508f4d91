"""Packs kernels of this folder into payloads, field by field, as chapter payload describes them.
No available release writes Vulkan modules, so this script assembles them. Run: python3 assemble.py"""
import os
import struct

here = os.path.dirname(os.path.abspath(__file__))
HANDLE, INT32, INT64, UINT32, FLOAT32, FLOAT64 = (3, 64), (0, 32), (0, 64), (1, 32), (2, 32), (2, 64)


def read(name):
    return open(os.path.join(here, name), "rb").read()


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(value)) + value


def vector(items):
    return struct.pack("<Q", len(items)) + b"".join(items)


def functions(kernels, newest):
    entries = []
    for name, types, tags in kernels:
        info = text(name if newest else "") + vector([struct.pack("<BBH", code, bits, 1) for code, bits in types])
        info += vector([text(tag) for tag in tags])
        if newest:
            info += vector([struct.pack("<i", 0) for _ in types])
        entries.append(text(name) + info)
    return vector(entries)


def shaders(list_, framed):
    entries = []
    for name, flags, file in list_:
        words = read(file)
        shader = struct.pack("<I", flags) + struct.pack("<Q", len(words) // 4) + words
        entries.append(text(name) + (text(shader) if framed else shader))
    return vector(entries)


X = ["blockIdx.x", "threadIdx.x"]
vulkan = [("add_one", [HANDLE, HANDLE, INT32, FLOAT32], X)]
opencl = [("add_one", [HANDLE, HANDLE, INT32], X), ("scalars", [HANDLE, INT64, INT32, UINT32, FLOAT32], X)]
cuda = [
    ("add_one", [HANDLE, HANDLE, INT32], X),
    ("scalars", [HANDLE, INT64, INT32, UINT32, FLOAT64, FLOAT32], X),
    ("reverse", [HANDLE], ["threadIdx.x", "tirx.use_dyn_shared_memory"]),
]
files = {
    "vulkan-0.8.payload": text("vulkan") + functions(vulkan, False) + shaders([("add_one", 0, "add_one.spv")], False),
    "vulkan-0.27.payload": text("vulkan") + functions(vulkan, True) + shaders([("add_one", 0, "add_one.spv")], True),
    "vulkan-uniform-0.27.payload": text("vulkan")
    + functions(vulkan, True)
    + shaders([("add_one", 1, "add_one_uniform.spv")], True),
    "opencl-0.27.payload": text("cl") + functions(opencl, True) + text(read("kernels.cl")),
    "cuda-0.27.payload": text("ptx") + functions(cuda, True) + text(read("kernels.ptx")),
}
for name, data in files.items():
    open(os.path.join(here, name), "wb").write(data)
    print(name, len(data))
