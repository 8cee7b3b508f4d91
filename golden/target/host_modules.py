"""The modules of one function each that lower.py hands to `target.build.c`, by name."""

import tvm
from tvm import te

TIR = tvm.tirx if hasattr(tvm, "tirx") else tvm.tir
NEW = hasattr(tvm, "tirx")


def call(name):
    return getattr(TIR, name, None) or getattr(te, name)


def matmul(n=6, m=5, k=7, dtype="float32", out=None):
    out = out or dtype
    a, b = te.placeholder((n, k), dtype, "A"), te.placeholder((k, m), dtype, "B")
    r = te.reduce_axis((0, k), "r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r].astype(out) * b[r, j].astype(out), axis=r), "C")
    return [a, b, c]


def pad(x, by):
    n, c, h, w = x.shape
    inside = lambda i, j: call("all")(i >= by, i < h + by, j >= by, j < w + by)
    zero = TIR.const(0, x.dtype)
    at = lambda b, f, i, j: TIR.if_then_else(inside(i, j), x[b, f, i - by, j - by], zero)
    return te.compute((n, c, h + 2 * by, w + 2 * by), at, "padded")


def conv2d(dtype="float32", out=None):
    out = out or dtype
    x, k = te.placeholder((1, 2, 6, 6), dtype, "X"), te.placeholder((3, 2, 3, 3), dtype, "K")
    p = pad(x, 1)
    f, i, j = te.reduce_axis((0, 2), "f"), te.reduce_axis((0, 3), "ri"), te.reduce_axis((0, 3), "rj")
    at = lambda n, o, y, z: te.sum(p[n, f, y + i, z + j].astype(out) * k[o, f, i, j].astype(out), axis=[f, i, j])
    return [x, k, te.compute((1, 3, 6, 6), at, "Y")]


def depthwise():
    x, k = te.placeholder((1, 3, 5, 5), "float32", "X"), te.placeholder((3, 3, 3), "float32", "K")
    i, j = te.reduce_axis((0, 3), "ri"), te.reduce_axis((0, 3), "rj")
    at = lambda n, c, y, z: te.sum(x[n, c, y + i, z + j] * k[c, i, j], axis=[i, j])
    return [x, k, te.compute((1, 3, 3, 3), at, "Y")]


def softmax():
    x = te.placeholder((4, 9), "float32", "X")
    k, r = te.reduce_axis((0, 9), "k"), te.reduce_axis((0, 9), "r")
    top = te.compute((4,), lambda i: te.max(x[i, k], axis=k), "top")
    e = te.compute((4, 9), lambda i, j: te.exp(x[i, j] - top[i]), "e")
    s = te.compute((4,), lambda i: te.sum(e[i, r], axis=r), "s")
    return [x, te.compute((4, 9), lambda i, j: e[i, j] / s[i], "Y")]


def layer_norm():
    x = te.placeholder((3, 8), "float32", "X")
    k, r = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 8), "r")
    s = te.compute((3,), lambda i: te.sum(x[i, k], axis=k), "s")
    v = te.compute((3,), lambda i: te.sum((x[i, r] - s[i] / 8.0) * (x[i, r] - s[i] / 8.0), axis=r), "v")
    return [x, te.compute((3, 8), lambda i, j: (x[i, j] - s[i] / 8.0) / te.sqrt(v[i] / 8.0 + 1e-5), "Y")]


def reduce(what, dtype):
    x = te.placeholder((5, 11), dtype, "X")
    k = te.reduce_axis((0, 11), "k")
    return [x, te.compute((5,), lambda i: getattr(te, what)(x[i, k], axis=k), "Y")]


def each(f, dtype="float32", shape=(3, 7)):
    x = te.placeholder(shape, dtype, "X")
    return [x, te.compute(shape, lambda *i: f(x[i]), "Y")]


def two(f, dtype="int32", shape=(24,)):
    x, z = te.placeholder(shape, dtype, "X"), te.placeholder(shape, dtype, "Z")
    return [x, z, te.compute(shape, lambda *i: f(x[i], z[i]), "Y")]


def dynamic_add():
    n = te.var("n")
    x, z = te.placeholder((n,), "float32", "X"), te.placeholder((n,), "float32", "Z")
    return [x, z, te.compute((n,), lambda i: x[i] + z[i], "Y")]


def dynamic_matmul():
    return matmul(te.var("n"), te.var("m"), te.var("k"))


def dynamic_softmax():
    n, m = te.var("n"), te.var("m")
    x = te.placeholder((n, m), "float32", "X")
    r = te.reduce_axis((0, m), "r")
    s = te.compute((n,), lambda i: te.sum(te.exp(x[i, r]), axis=r), "s")
    return [x, te.compute((n, m), lambda i, j: te.exp(x[i, j]) / s[i], "Y")]


def workspace():
    x = te.placeholder((64, 64), "float32", "X")
    t = te.compute((64, 64), lambda i, j: x[j, i] * 2.0, "t")
    return [x, te.compute((64,), lambda i: t[i, 63 - i] + t[63 - i, i], "Y")]


def pool():
    x = te.placeholder((1, 2, 6, 6), "float32", "X")
    i, j = te.reduce_axis((0, 2), "ri"), te.reduce_axis((0, 2), "rj")
    at = lambda n, c, y, z: te.max(x[n, c, y * 2 + i, z * 2 + j], axis=[i, j])
    return [x, te.compute((1, 2, 3, 3), at, "Y")]


def take():
    x, at = te.placeholder((9, 4), "float32", "X"), te.placeholder((5,), "int32", "I")
    return [x, at, te.compute((5, 4), lambda i, j: x[at[i], j], "Y")]


def concat():
    x, z = te.placeholder((3, 4), "int64", "X"), te.placeholder((2, 4), "int64", "Z")
    at = lambda i, j: TIR.if_then_else(i < 3, x[i, j], z[i - 3, j])
    return [x, z, te.compute((5, 4), at, "Y")]


def workspace_vec():
    x = te.placeholder((4, 8), "float32", "X")
    t = te.compute((4, 8), lambda i, j: x[i, j] * x[i, j], "t")
    return [x, te.compute((4, 8), lambda i, j: t[i, j] + t[3 - i, j], "Y")]


def broadcast():
    x, z = te.placeholder((5, 8), "float32", "X"), te.placeholder((5,), "float32", "Z")
    return [x, z, te.compute((5, 8), lambda i, j: x[i, j] * z[i] - TIR.Cast("float32", j), "Y")]


def reversed_pairs():
    """Steps of 2 and of -1."""
    x = te.placeholder((32,), "int32", "X")
    return [x, te.compute((16,), lambda i: x[i * 2] * 3 - x[31 - i], "Y")]


def halves(dtype):
    """Inside alone: NumPy has no `bfloat16`."""
    narrow = lambda x: (x.astype(dtype) * TIR.const(1.7, dtype) + x.astype(dtype)).astype("float32")
    return each(narrow, shape=(4, 8))


def vectorised(function, name):
    """Four elements of the last axis of the last block at once, and of any block in front of it."""
    module = tvm.IRModule({name: function})
    schedule = (tvm.s_tir if NEW else tvm.tir).Schedule(module, debug_mask="none")
    root = (schedule.get_sblock if NEW else schedule.get_block)("root", func_name=name)
    blocks = schedule.get_child_blocks(root)
    for block in blocks:
        outer, inner = schedule.split(schedule.get_loops(block)[-1], [None, 4])
        schedule.vectorize(inner)
    return schedule.mod[name]


def const(value, dtype="float32"):
    return TIR.const(value, dtype)


def flags(x, z):
    """Every comparison, and what is made of them, as the bits of a number."""
    compared = [x < z, x <= z, x > z, x >= z, x.equal(z), TIR.NE(x, z)]
    joined = [call("all")(x <= z, x >= z), call("any")(x < z, x > z), TIR.Not(call("all")(x >= z, z >= x))]
    return sum((TIR.Select(c, const(1 << i, "int32"), const(0, "int32")) for i, c in enumerate(compared + joined)), const(0, "int32"))


def by_row(rows, dtype, inputs=2, width=24):
    """In each row another computation."""
    shape = (len(rows), width)
    tensors = [te.placeholder(shape, dtype, name) for name in "XZ"[:inputs]]

    def at(i, j):
        values = [row(*(t[i, j] for t in tensors)) for row in rows]
        chosen = values[-1]
        for row in reversed(range(len(rows) - 1)):
            chosen = TIR.if_then_else(i.equal(row), values[row], chosen)
        return chosen

    return [*tensors, te.compute(shape, at, "Y")]


INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]


def in_each(compute):
    """Of all types of integers, with operands that the small ones do not hold."""
    row = lambda dtype: lambda x, z: compute((x * 1003).astype(dtype), (z * 517).astype(dtype), dtype).astype("int64")
    # Not `int32`: what it does not hold is undefined, in C and in LLVM's code.
    return by_row([row(dtype) for dtype in INTEGERS if dtype != "int32"], "int32")


def wraps(x, z, dtype):
    step = x * z - (x + z) * const(3, dtype)
    positive = TIR.Max(TIR.Min(z, const(90, dtype)), const(7, dtype))
    return TIR.truncdiv(step, positive) + TIR.truncmod(step, positive)


def bits(x, z, dtype):
    """A shift to the right of what has a sign keeps it."""
    return (x & z) ^ ((x | z) << const(3, dtype)) ^ (x >> const(2, dtype))


def shifted(x, z, dtype):
    """By any number of bits that the type has, of numbers below 0 as well."""
    amount = z & const(int(dtype.lstrip("uint")) - 1, dtype)
    return (x << amount) ^ (x >> amount)


def counted(x, z, dtype):
    ones = TIR.popcount(x ^ z)
    return ones + TIR.clz(x | const(1, dtype)).astype(dtype) if dtype.endswith(("32", "64")) else ones


def special(x):
    """What is no number, what has no end, and neither, as the bits of a number."""
    found = [TIR.isnan(x), TIR.isinf(x), TIR.isfinite(x)]
    return sum((TIR.Select(c, const(1 << i, "int32"), const(0, "int32")) for i, c in enumerate(found)), const(0, "int32"))


def endless(x):
    """Literals that standard JSON has not."""
    low = TIR.Max(x, const(float("-inf"))) + TIR.Select(x < const(float("inf")), x, const(0.0))
    return low + TIR.Select(TIR.isnan(x * const(float("nan"))), const(1.0), const(2.0))


def let(x, z):
    """A variable within an expression, and one within that."""
    a, b = TIR.Var("a", "float32"), TIR.Var("b", "float32")
    return TIR.Let(a, x * z, TIR.Let(b, a - z, b * b + a) + a) + TIR.truncmod(x, z * z + 1.0)


def stages():
    """What is kept from one stage to the next is of types that neither end has."""
    x = te.placeholder((8, 8), "float32", "X")
    kept = ["int8", "uint16", "int64", "float16", "float64", "bool"]
    stage = lambda d: te.compute((8, 8), lambda i, j: x[i, j].astype(d), d)
    each = [stage(d) for d in kept]
    back = lambda t, i, j: t[7 - i, j].astype("float32") + t[i, 7 - j].astype("float32")
    return [x, te.compute((8, 8), lambda i, j: sum((back(t, i, j) * (n + 1.0) for n, t in enumerate(each)), const(0)), "Y")]


def names():
    """Names that C has for itself, or cannot have."""
    x, z = te.placeholder((4, 5), "float32", "int"), te.placeholder((4, 5), "float32", "1.x")
    t = te.compute((4, 5), lambda i, j: te.exp(x[i, j]) + z[i, j], "exp")
    return [x, z, te.compute((4, 5), lambda i, j: t[3 - i, j] * 2.0, "double")]


ONE = "acos asin asinh atan atanh ceil cos cosh erf exp floor log1p nearbyint round sin sinh sqrt tan tanh trunc".split()
# Those that begin above 0, and those with two arguments.
ABOVE = "acosh log log2 log10 sqrt".split()
TWO = "atan2 copysign hypot pow".split()


def mathematics(dtype):
    find = lambda name: getattr(TIR, name, None) or getattr(te, name)
    rows = [lambda x, f=find(name): f(x) for name in ONE]
    rows += [lambda x, f=find(name): f(x + const(2, dtype)) for name in ABOVE]
    rows += [lambda x, f=find(name): f(x + const(1.5, dtype), x * x - const(0.25, dtype)) for name in TWO]
    return by_row(rows, dtype, inputs=1, width=7)


def more(dtype):
    """Operators that have no function in C of that name, or none for numbers of 16 bits."""
    find = lambda name: getattr(TIR, name, None) or getattr(te, name)
    rows = [lambda x, f=find(name): f(x) for name in "abs exp2 exp10 sigmoid trunc floor ceil round nearbyint".split()]
    rows += [lambda x: find("round")(x * const(0.5, dtype)) if dtype == "float16" else x]
    rows += [lambda x: find("rsqrt")(x * x + const(2, dtype)), lambda x: find("log2")(x * x + const(1.25, dtype))]
    rows += [lambda x: find("ldexp")(x, const(3, "int32")) if dtype != "float16" else x, lambda x: find("log10")(x * x + const(2, dtype))]
    rows += [lambda x: find("nextafter")(x, const(9, dtype)) if dtype != "float16" else x]
    return by_row(rows, dtype, inputs=1, width=7)


def clip(x):
    low, high = TIR.const(0, "float32"), TIR.const(255, "float32")
    return TIR.Min(TIR.Max(te.round(x * TIR.const(20.0, "float32")), low), high).astype("uint8")


MODULES = {
    "matmul": matmul,
    "matmul_f64": lambda: matmul(dtype="float64"),
    "matmul_int8": lambda: matmul(dtype="int8", out="int32"),
    "matmul_dynamic": dynamic_matmul,
    "conv2d": conv2d,
    "conv2d_int8": lambda: conv2d("int8", "int32"),
    "depthwise": depthwise,
    "softmax": softmax,
    "softmax_dynamic": dynamic_softmax,
    "layer_norm": layer_norm,
    "sum_f32": lambda: reduce("sum", "float32"),
    "sum_int64": lambda: reduce("sum", "int64"),
    "max_f32": lambda: reduce("max", "float32"),
    "min_int32": lambda: reduce("min", "int32"),
    "cast_int32": lambda: each(lambda x: x.astype("int32")),
    "cast_f64": lambda: each(lambda x: x.astype("float64"), "int8"),
    "quantize": lambda: each(clip),
    "sigmoid": lambda: each(te.sigmoid),
    # Not `tanh`: up to 0.20 a function has its own name in the library, and C has one of that.
    "tangent": lambda: each(te.tanh),
    "norms": lambda: each(lambda x: te.sqrt(x * x + 1.0) + te.floor(x) - te.log(x * x + 1.0)),
    "relu": lambda: each(lambda x: TIR.Select(x > 0, x, TIR.const(0, "float32"))),
    "floordiv": lambda: two(lambda x, z: te.floordiv(x, z * z + 1) * 7 + te.floormod(x, z * z + 1)),
    "shifts": lambda: two(lambda x, z: ((x << 2) ^ (z >> 1)) | (x & z)),
    "compare": lambda: two(lambda x, z: TIR.Select(call("any")(x < z, x == 3), x, z - 1)),
    "add_dynamic": dynamic_add,
    "workspace": workspace,
    "pool": pool,
    "take": take,
    "concat": concat,
    # Fractions of 16 bits.
    "half_matmul": lambda: matmul(dtype="float16"),
    "half_cast": lambda: two(lambda x, z: (x / z).astype("int32"), "float16"),
    "half_of_f32": lambda: each(lambda x: x.astype("float16") - TIR.const(0.1, "float16")),
    "bfloat_inside": lambda: halves("bfloat16"),
    "bfloat_types": lambda: each(lambda x: (x.astype("bfloat16") * TIR.const(2, "bfloat16")).astype("float32")),
    # Vectors.
    "scale_vec": lambda: two(lambda x, z: x * TIR.const(3.0, "float32") + z, "float32"),
    "broadcast_vec": broadcast,
    "reversed_vec": reversed_pairs,
    "choose_vec": lambda: two(lambda x, z: TIR.Select(x < z, x, z - 1)),
    "cast_vec": lambda: two(lambda x, z: (x.astype("int32") * z.astype("int32")).astype("float32"), "int8"),
    "stages_vec": workspace_vec,
    # Comparisons, of numbers of which some are the same, and of what is no number.
    **{f"order_{dtype}": (lambda dtype=dtype: two(flags, dtype)) for dtype in ("int32", "uint8", "float16", "float32")},
    # Integers.
    "widths": lambda: by_row([lambda x, z, d=d: (x * 1000 + z).astype(d).astype("int64") for d in INTEGERS], "int32"),
    "wraps": lambda: in_each(wraps),
    "bits": lambda: in_each(bits),
    # All types of integers, `int32` too: what is beyond its end is what is left of it.
    "wraps_int32": lambda: two(lambda x, z: ((x * 40009) * (z * 30011) - z * 99991)),
    "shifted": lambda: by_row([lambda x, z, d=d: shifted((x * 1003).astype(d), (z * 517).astype(d), d).astype("int64") for d in INTEGERS], "int32"),
    "complement": lambda: by_row([lambda x, z, d=d: (~(x * 1003).astype(d)).astype("int64") for d in INTEGERS], "int32"),
    "counted": lambda: by_row([lambda x, z, d=d: counted((x * 1003).astype(d), (z * 517).astype(d), d).astype("int64") for d in INTEGERS], "int32"),
    "ends_uint64": lambda: two(lambda x, z: (x * const((1 << 64) - 1, "uint64")) ^ const(1 << 63, "uint64") ^ (z + const((1 << 64) - 100, "uint64")), "uint64"),
    # Numbers without an end, and what is none.
    **{f"special_{dtype}": (lambda dtype=dtype: each(special, dtype)) for dtype in ("float16", "float32", "float64")},
    "endless": lambda: each(endless),
    "order_nan": lambda: two(flags, "float32"),
    **{f"more_{dtype}": (lambda dtype=dtype: more(dtype)) for dtype in ("float16", "float32", "float64")},
    "ends": lambda: two(lambda x, z: (x * const(-3000000000, "int64") + const(1 << 62, "int64")) ^ const(-(1 << 63), "int64") ^ z, "int64"),
    # Expressions and memory.
    "let": lambda: two(let, "float32"),
    "rest_f64": lambda: two(lambda x, z: TIR.truncmod(x, z * z + const(1, "float64")), "float64"),
    "inside": lambda: two(lambda x, z: TIR.if_then_else(x > 0, TIR.if_then_else(z > 0, x / z, x), z - x), "float32"),
    "names": names,
    "stages": stages,
    # Functions of C's library.
    "mathematics_f32": lambda: mathematics("float32"),
    "mathematics_f64": lambda: mathematics("float64"),
    # Numbers of 16 bits at their ends.
    "half_small": lambda: each(lambda x: x.astype("float32") * const(2.0**26), "float16"),
    "half_rounds": lambda: each(lambda x: x.astype("float16").astype("float32") * const(2.0**26), shape=(8, 16)),
    "half_ends": lambda: each(lambda x: TIR.Min(x.astype("float16").astype("float32"), const(1e6))),
    "half_sums": lambda: two(lambda x, z: (x + z) - x * z / (z + const(11, "float16")), "float16"),
    "half_literals": lambda: each(lambda x: (x + const(65504, "float16")).astype("float32") + (x * const(0.0001, "float16")).astype("float32"), "float16"),
    "half_vec": lambda: each(lambda x: te.exp(x) * TIR.const(0.3, "float16"), "float16", (2, 8)),
}
