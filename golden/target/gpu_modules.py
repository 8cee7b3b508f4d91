"""The modules with kernels that lower.py hands to `target.build.opencl`, by name, and modules that are edited from their JSON by hand."""

import json

import tvm
from tvm import te

TIR = tvm.tirx if hasattr(tvm, "tirx") else tvm.tir
NEW = hasattr(tvm, "tirx")


def call(name):
    return getattr(TIR, name, None) or getattr(te, name)


def const(value, dtype="float32"):
    return TIR.const(value, dtype)


def each(f, dtype="float32", shape=(3, 7)):
    x = te.placeholder(shape, dtype, "X")
    return [x, te.compute(shape, lambda *i: f(x[i]), "Y")]


def matmul(n=6, m=5, k=7, dtype="float32", out=None):
    out = out or dtype
    a, b = te.placeholder((n, k), dtype, "A"), te.placeholder((k, m), dtype, "B")
    r = te.reduce_axis((0, k), "r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r].astype(out) * b[r, j].astype(out), axis=r), "C")
    return [a, b, c]


def add1():
    return each(lambda x: x + 1.0, shape=(16,))


def on_threads(tensors, name):
    """The last block of a function, four elements of its first axis to a block of threads."""
    function = te.create_prim_func(tensors).with_attr("global_symbol", name)
    module = tvm.IRModule({name: function})
    schedule = (tvm.s_tir if NEW else tvm.tir).Schedule(module, debug_mask="none")
    find = schedule.get_sblock if NEW else schedule.get_block
    block = find(tensors[-1].op.name, func_name=name)
    outer, inner = schedule.split(schedule.get_loops(block)[0], [None, 4])
    schedule.bind(outer, "blockIdx.x")
    schedule.bind(inner, "threadIdx.x")
    return schedule.mod


def in_vectors(tensors, name):
    """Like [`on_threads`], with four elements at once in each thread."""
    function = te.create_prim_func(tensors).with_attr("global_symbol", name)
    schedule = (tvm.s_tir if NEW else tvm.tir).Schedule(tvm.IRModule({name: function}), debug_mask="none")
    find = schedule.get_sblock if NEW else schedule.get_block
    block = find(tensors[-1].op.name, func_name=name)
    outer, inner, lane = schedule.split(schedule.get_loops(block)[0], [None, 2, 4])
    schedule.bind(outer, "blockIdx.x")
    schedule.bind(inner, "threadIdx.x")
    schedule.vectorize(lane)
    return schedule.mod


def pair():
    """Two functions, so two kernels."""
    module = on_threads(each(lambda x: x - 1.0, shape=(16,)), "sub1_gpu")
    module.update(on_threads(add1(), "add1_gpu"))
    return module


def on_axes(tensors, name):
    """Three axes of blocks, three of threads, and an intermediate result that the threads of a block share."""
    function = te.create_prim_func(tensors).with_attr("global_symbol", name)
    schedule = (tvm.s_tir if NEW else tvm.tir).Schedule(tvm.IRModule({name: function}), debug_mask="none")
    find = schedule.get_sblock if NEW else schedule.get_block
    block = find(tensors[-1].op.name, func_name=name)
    halves = [schedule.split(axis, [None, 2]) for axis in schedule.get_loops(block)]
    outer, inner = [list(axes) for axes in zip(*halves)]
    schedule.reorder(*outer, *inner)
    for axes, what in ((outer, "blockIdx"), (inner, "threadIdx")):
        for axis, letter in zip(axes, "zyx"):
            schedule.bind(axis, f"{what}.{letter}")
    stage = schedule.cache_read(block, 0, "shared")
    schedule.compute_at(stage, outer[-1])
    fused = schedule.fuse(*schedule.get_loops(stage)[-3:])
    schedule.bind(fused, "threadIdx.x")
    return schedule.mod


def dynamic(dtype):
    """The size is an argument of the kernel, too."""
    n = TIR.Var("n", dtype)
    x = te.placeholder((n,), "float32", "X")
    return [x, te.compute((n,), lambda i: x[i] + 1.0, "Y")]


def counted_gpu():
    """Another operator in each element."""
    x = te.placeholder((16,), "float32", "X")
    find = lambda name: getattr(TIR, name, None) or getattr(te, name)
    whole = lambda x: x.astype("int32")
    truth = lambda c: TIR.Select(c, const(1.0), const(0.0))
    rows = [find(name) for name in "abs exp2 exp10 sigmoid floor ceil trunc round nearbyint".split()]
    rows += [lambda x: find("rsqrt")(x * x + const(2.0)), lambda x: truth(TIR.isnan(x)), lambda x: truth(TIR.isinf(x)), lambda x: truth(TIR.isfinite(x))]
    rows += [lambda x: TIR.popcount(whole(x)).astype("float32"), lambda x: TIR.clz(whole(x)).astype("float32"), lambda x: (~whole(x)).astype("float32")]

    def at(i):
        chosen = rows[-1](x[i])
        for row in reversed(range(len(rows) - 1)):
            chosen = TIR.if_then_else(i.equal(row), rows[row](x[i]), chosen)
        return chosen

    return [x, te.compute((16,), at, "Y")]


def mixed_gpu():
    """Every node of arithmetic, bits and comparisons."""

    def at(x, z):
        a = TIR.Var("a", "int32")
        divided = te.floordiv(x, z * z + 1) * 7 + te.floormod(x, z * z + 1) - TIR.truncdiv(x, z * z + 3) + TIR.truncmod(z, x * x + 5)
        bits = ((x << 2) ^ (z >> 1)) | (x & z)
        outside = TIR.Select(call("any")(x < z - 3, x > z + 7), divided, bits)
        inside = TIR.Select(call("all")(x <= z * 2, z >= x - 9), TIR.Max(x, z), TIR.Min(x, z))
        same = TIR.Select(call("all")(TIR.NE(x, z), TIR.Not(x.equal(z + 5))), inside, outside)
        return TIR.Let(a, same + outside, a * a + TIR.if_then_else(x > z, a, z))

    x, z = te.placeholder((16,), "int32", "X"), te.placeholder((16,), "int32", "Z")
    return [x, z, te.compute((16,), lambda i: at(x[i], z[i]), "Y")]


GPU = {
    "mixed_gpu": lambda: on_threads(mixed_gpu(), "mixed_gpu"),
    "counted_gpu": lambda: on_threads(counted_gpu(), "counted_gpu"),
    "axes_gpu": lambda: on_axes(each(lambda x: x * 2.0, shape=(4, 6, 8)), "axes_gpu"),
    "size32_gpu": lambda: on_threads(dynamic("int32"), "size32_gpu"),
    "size64_gpu": lambda: on_threads(dynamic("int64"), "size64_gpu"),
    "add1_gpu": lambda: on_threads(add1(), "add1_gpu"),
    "matmul_gpu": lambda: on_threads(matmul(8, 5, 7), "matmul_gpu"),
    "pair_gpu": pair,
    "scale_vec_gpu": lambda: in_vectors(each(lambda x: x * 2.0 + 1.0, shape=(16,)), "scale_vec_gpu"),
    "half_gpu": lambda: on_threads(each(lambda x: (x.astype("float16") * TIR.const(1.5, "float16")).astype("float32"), shape=(16,)), "half_gpu"),
}


def doubled(text):
    """A kernel that adds its one value to itself 40 times, each time to the sum: edited by hand from a real one."""
    graph = json.loads(text)
    nodes = graph["nodes"]
    store = next(n for n in nodes if n["type"] == "tirx.BufferStore")
    value = store["data"]["value"]
    for _ in range(40):
        form = nodes[value]["data"]
        nodes.append({"type": "prim.Add", "data": {"span": 0, "ty": form["ty"], "a": value, "b": value}})
        value = len(nodes) - 1
    store["data"]["value"] = value
    return json.dumps(graph, separators=(",", ":"))


def deep(text, terms):
    """A kernel whose one value is a nested sum of that many terms: edited by hand from a real one."""
    graph = json.loads(text)
    nodes = graph["nodes"]
    store = next(n for n in nodes if n["type"] == "tirx.BufferStore")
    value = store["data"]["value"]
    form = nodes[value]["data"]
    for _ in range(terms):
        nodes.append({"type": "prim.Add", "data": {"span": 0, "ty": form["ty"], "a": value, "b": form["b"]}})
        value = len(nodes) - 1
    store["data"]["value"] = value
    return json.dumps(graph, separators=(",", ":"))


def relax():
    """A module with a function of another language."""
    from tvm import relax as rx

    x = rx.Var("x", rx.TensorStructInfo((4,), "float32") if hasattr(rx, "TensorStructInfo") else rx.TensorType((4,), "float32"))
    builder = rx.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(x)
    return builder.get()
