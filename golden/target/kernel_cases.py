#!/usr/bin/env python3
"""The cases of `target.run` for kernels: what lower.py made them of, computed here.

    kernel_cases.py CASES

Adds to CASES, which is conformance/target/cases/run.json, what is not there, and fails where a case states something else.
"""

import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).parent


def launched(graph, kernel_tags):
    """The extents of a launch, in the order that the kernel takes them: as its attributes state them; None for one that depends on a size."""
    nodes = graph["nodes"]
    is_new = "root_index" in graph
    fields = lambda at: nodes[int(at)].get("data" if is_new else "attrs", {})
    text = lambda at: nodes[int(at)].get("data") if is_new else nodes[int(at)].get("repr_str")
    extents = {}
    for node in nodes:
        if (node.get("type") or node.get("type_key")).endswith(".AttrStmt"):
            stated = node["data" if is_new else "attrs"]
            if text(stated["attr_key"]) == "thread_extent":
                value = fields(stated["value"]).get("value")
                if is_new and value is not None and value < len(nodes) and nodes[value].get("type") == "int":
                    value = nodes[value]["data"]
                extents[text(fields(stated["node"])["thread_tag"])] = value and int(value)
    return [extents[tag] for tag in kernel_tags]


def truncdiv(a, b):
    return int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def mixed(x, z):
    divided = (x // (z * z + 1)) * 7 + x % (z * z + 1) - truncdiv(x, z * z + 3) + (z - truncdiv(z, x * x + 5) * (x * x + 5))
    bits = ((x << 2) ^ (z >> 1)) | (x & z)
    outside = divided if x < z - 3 or x > z + 7 else bits
    inside = max(x, z) if x <= z * 2 and z >= x - 9 else min(x, z)
    same = inside if x != z and x != z + 5 else outside
    a = same + outside
    return a * a + (a if x > z else z)


def counted(x, is_old):
    away = lambda v: math.floor(v + 0.5)
    values = [abs(x[0]), 2 ** x[1], 10 ** x[2], 1 / (1 + math.exp(-x[3])), math.floor(x[4]), math.ceil(x[5]), math.trunc(x[6]), away(x[7]) if is_old else round(x[7])]
    values += [round(x[8]), 1 / math.sqrt(x[9] * x[9] + 2), 1, 1, 0, 3, 28, -16]
    return values


def cut(value, bits):
    if value == 0:
        return 0.0
    unit = 2.0 ** (math.floor(math.log2(abs(value))) + 1 - bits)
    lower, upper = round(value * (1 - 1e-5) / unit) * unit, round(value * (1 + 1e-5) / unit) * unit
    assert lower == upper, value
    return float(lower)


X = [number + 0.5 for number in range(16)]
INTS = [0, 1, -3, 7, 12, -20, 5, 9, 100, -100, 3, 4, 8, 30, -1, 2]
OTHERS = [0, 5, 2, 2, -4, 7, 0, 14, -7, 9, 8, 3, 3, 30, -1, 40]
SPECIAL = X[:7] + [6.5] + X[8:10] + ["nan", "inf", "-inf"] + X[13:]
A, B = [i % 9 for i in range(56)], [i % 5 for i in range(35)]


def kernels(release):
    tensor = lambda dtype, shape, values: {"tensor": {"dtype": dtype, "shape": shape, "values": values}}
    out = lambda dtype, shape: {"tensor": {"dtype": dtype, "shape": shape}}
    one = lambda shape, values: [tensor("float32", shape, values), out("float32", shape)]
    plain = lambda f: [float(f(x)) for x in X]
    yield "add1_gpu", "add1_gpu_kernel", one([16], X), plain(lambda x: x + 1), None
    yield "pair_gpu", "sub1_gpu_kernel", one([16], X), plain(lambda x: x - 1), None
    yield "matmul_gpu", "matmul_gpu_kernel", [tensor("float32", [8, 7], A), tensor("float32", [7, 5], B), out("float32", [8, 5])], [
        float(sum(A[i * 7 + k] * B[k * 5 + j] for k in range(7))) for i in range(8) for j in range(5)
    ], None
    yield "scale_vec_gpu", "scale_vec_gpu_kernel", one([16], X), plain(lambda x: x * 2 + 1), None
    yield "half_gpu", "half_gpu_kernel", one([16], X), plain(lambda x: x * 1.5), None
    yield "mixed_gpu", "mixed_gpu_kernel", [tensor("int32", [16], INTS), out("int32", [16]), tensor("int32", [16], OTHERS)], [mixed(x, z) for x, z in zip(INTS, OTHERS)], None
    yield "counted_gpu", "counted_gpu_kernel", one([16], SPECIAL), [cut(v, 12) for v in counted(SPECIAL, release == "0.16")], 12
    if release == "0.27":
        yield "size32_gpu", "size32_gpu_kernel", [*one([10], X[:10]), 10], [x + 1 for x in X[:10]], None
        yield "size64_gpu", "size64_gpu_kernel", [*one([10], X[:10]), 10], [x + 1 for x in X[:10]], None


RULES = {"counted_gpu": ["TGT-88", "TGT-93"], "mixed_gpu": ["TGT-88", "TGT-91"]}


def cases():
    for release in ("0.27", "0.16"):
        for file, kernel, args, expected, bits in kernels(release):
            path = f"target/kernels/{release}/{file}.device.json"
            graph = json.loads((HERE.parent / path).read_text())
            # A size of 10 in blocks of 4 threads.
            extents = [3 if extent is None else extent for extent in launched(graph, ["blockIdx.x", "threadIdx.x"])]
            call = {"function": kernel, "args": args + extents}
            if bits:
                call["bits"] = bits
            yield {
                "id": f"target/run/{file.replace('_', '-')}-{release}",
                "rules": RULES.get(file, ["TGT-88"]),
                "releases": release,
                "op": "target.run",
                "input": {"file": path},
                "args": {"target": "opencl", "release": release, "calls": [call]},
                "expect": {"accept": [{"outputs": [expected]}]},
                "why": "a kernel computes each element by the number of its thread, with the operators that OpenCL C has for them",
                "origin": {"hand": "what lower.py made the kernel of, computed by kernel_cases.py"},
            }


if __name__ == "__main__":
    import run_cases

    run_cases.write(pathlib.Path(sys.argv[1]), cases())
