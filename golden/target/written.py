#!/usr/bin/env python3
"""Modules of functions that are written here, lowered by the TVM of this Python, for cases of `target.run`.

    TVMSPEC_PYTHON golden/target/written.py golden/target/runs

Writes OUT/RELEASE/TOPIC.json, what `target.build.c` is called with for all functions of a topic at once. Which release reads `save_json` of what: see lower.py.
"""

import json
import pathlib
import sys

import tvm
from tvm.script import tirx as T

import join
import lower

RELEASE = "0." + tvm.__version__.split(".")[1]
WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
FRACTIONS = ["float16", "bfloat16", "float32", "float64"]


def function(name, parameters, body, result=""):
    """A function of TVMScript: parameters as `X: (4, "float32")`, the body line by line."""
    head = ", ".join(f"{p}: T.handle" if isinstance(form, tuple) else f"{p}: {form}" for p, form in parameters.items())
    lines = [f"@T.prim_func", f"def {name}({head}){result}:", f'    T.func_attr({{"global_symbol": "{name}"}})']
    for p, form in parameters.items():
        if isinstance(form, tuple):
            lines.append(f"    {p}_ = T.match_buffer({p}, " + ", ".join(str(part) if i else f'{part}' for i, part in enumerate(form)) + ")")
    lines += ["    " + line for line in body]
    return tvm.script.from_source("\n".join(lines), {"T": T, "tvm": tvm})


def tensor(shape, dtype, more=""):
    return (str(tuple(shape)), f'"{dtype}"' + (", " + more if more else ""))


def rows(name, count, into, outof, expressions):
    """Each row of the output is another expression of `x`, of the input, and its neighbour `z`."""
    body = []
    for row, expression in enumerate(expressions):
        body += [f"for i in range({count}):", f"    Y_[{row}, i] = {expression}"]
    replaced = [line.replace("{x}", "X_[i]").replace("{z}", "Z_[i]") for line in body]
    return function(name, {"X": tensor([count], into), "Z": tensor([count], into), "Y": tensor([len(expressions), count], outof)}, replaced)


def cast(dtype, what):
    return f'T.Cast("{dtype}", {what})'


def casts():
    whole = [cast("int64", cast(to, cast(of, "{x}"))) for of in WHOLE for to in WHOLE if of != to]
    yield rows("casts_whole", 16, "int64", "int64", whole)
    pairs = [(of, to) for of in FRACTIONS + WHOLE for to in FRACTIONS + WHOLE if of != to and (of in FRACTIONS or to in FRACTIONS)]
    # A `float64` that becomes one of 16 bits is rounded twice by way of a `float32`: no generator here does it.
    pairs = [(of, to) for of, to in pairs if (of, to) not in [("float64", "float16"), ("float64", "bfloat16")]]
    by = lambda of: cast(of, "{x}") if of not in ("float16", "bfloat16") else cast(of, cast("float32", "{x}"))
    fractions = [cast("float64", cast(to, by(of))) for of, to in pairs]
    yield rows("casts_fraction", 16, "float64", "float64", fractions)
    signed = [cast("float64", cast(to, by(of))) for of, to in pairs if not to.startswith("uint")]
    yield rows("casts_signed", 16, "float64", "float64", [line for line in signed if '"uint' not in line])


def operators():
    symbols = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "T.truncdiv({a}, {b})", "T.truncmod({a}, {b})", "T.floordiv({a}, {b})", "T.floormod({a}, {b})"]
    symbols += ["T.min({a}, {b})", "T.max({a}, {b})", "{a} & {b}", "{a} | {b}", "{a} ^ {b}", "T.bitwise_not({a})"]
    symbols += ["T.shift_left({a}, {b} & {m})", "T.shift_right({a}, {b} & {m})", "T.shift_left({a}, {one})", "T.shift_right({a}, {top})"]
    for dtype in WHOLE[:-1]:
        bits = int(dtype.lstrip("uint"))
        literal = lambda n: f"T.{dtype}({n})"
        of = {"a": cast(dtype, "{x}"), "b": cast(dtype, "{z}"), "m": literal(bits - 1), "one": literal(1), "top": literal(bits - 1)}
        lines = []
        for symbol in symbols:
            for name, text in of.items():
                symbol = symbol.replace("{" + name + "}", text)
            lines.append(cast("int64", symbol))
        for compared in ("<", "<=", ">", ">=", "==", "!="):
            lines.append(f"T.Select({of['a']} {compared} {of['b']}, T.int64(1), T.int64(0))")
        yield rows(f"operators_{dtype}", 16, "int64", "int64", lines)
    truth = lambda name: f"({{{name}}} > T.int64(2))"
    lines = [f"{truth('x')} and {truth('z')}", f"{truth('x')} or {truth('z')}", f"not {truth('x')}"]
    b = lambda name: cast("bool", "{" + name + "}")
    # Not `==`: for truth values releases make of it what LLVM rejects.
    lines += [f"{b('x')} and {b('z')}"]
    yield rows("truth", 16, "int64", "int64", [f"T.Select({line}, T.int64(1), T.int64(0))" for line in lines])


def fractions():
    for dtype in ("float16", "float32", "float64"):
        of = lambda name: "{" + name + "}" if dtype != "float16" else cast(dtype, "{" + name + "}")
        a, b = of("x"), of("z")
        lines = [f"{a} + {b}", f"{a} - {b}", f"{a} * {b}", f"{a} / {b}", f"T.min({a}, {b})", f"T.max({a}, {b})", f"T.fabs({a})", f"T.floor({a})", f"T.ceil({a})", f"T.trunc({a})"]
        lines += [f"T.nearbyint({a})", f"T.round({a})", f"T.sqrt(T.fabs({a}))", f"T.Select({a} < {b}, {a}, {b})", f"T.if_then_else({a} >= {b}, {a}, {b})"]
        lines += [f"T.copysign({a}, {b})", f"T.truncmod({a}, {b})"] if dtype != "float16" else []
        lines += [f"{a} + T.{dtype}({n})" for n in (0.1, -2.5, 1e-4)]
        outer = "float32" if dtype == "float16" else dtype
        if dtype == "float16":
            lines = [cast("float32", line) for line in lines]
        yield rows(f"fractions_{dtype}", 16, outer, outer, lines)


def reinterprets():
    lines = []
    for a, b in [("int8", "uint8"), ("int16", "uint16"), ("int32", "uint32"), ("int64", "uint64"), ("int32", "float32"), ("int64", "float64"), ("int16", "float16"), ("uint16", "float16")]:
        lines.append(cast("int64", f'T.reinterpret("{a}", T.reinterpret("{b}", {cast(a, "{x}")}))'))
        if not b.startswith("float"):
            lines.append(cast("int64", f'T.reinterpret("{b}", {cast(a, "{x}")})'))
    lines.append(cast("int64", 'T.reinterpret("int32", T.Cast("float32", {z}))'))
    lines.append('T.reinterpret("int64", T.Cast("float64", {z}))')
    lines.append(cast("int64", 'T.reinterpret("int16", T.Cast("float16", {z}))'))
    lines.append(cast("int64", 'T.reinterpret("uint32", T.Cast("float32", {z}))'))
    yield rows("reinterprets", 16, "int64", "int64", lines)


def literals():
    ends = {"int8": [-128, 127], "int16": [-32768, 32767], "int32": [-(2**31), 2**31 - 1], "int64": [-(2**63), 2**63 - 1, 2**31, -(2**31) - 1, 5]}
    ends |= {"uint8": [255], "uint16": [65535], "uint32": [2**32 - 1, 2**31], "uint64": [2**63 - 1, 2**32], "bool": [True, False]}
    body = []
    row = 0
    for dtype, values in ends.items():
        for value in values:
            body.append(f"Y_[{row}] = {cast('int64', f'T.{dtype}({value})')} + {cast('int64', 'X_[0]')}")
            row += 1
    yield function("literals", {"X": tensor([1], "int64"), "Y": tensor([row], "int64")}, body)
    numbers = [0.0, -0.0, 0.1, -1.5, 1e-45, 3.4e38, 1e10, 123456789.0]
    body = [f"Y_[{at}] = X_[0] * T.float32({value!r})" for at, value in enumerate(numbers)]
    yield function("literals_f32", {"X": tensor([1], "float32"), "Y": tensor([len(numbers)], "float32")}, body)
    numbers = [0.0, -0.0, 0.1, -1.5, 2.5e-308, 1.7e308, 1e10, 1 / 3]
    body = [f"Y_[{at}] = X_[0] * tvm.tirx.FloatImm(\"float64\", {value!r})" for at, value in enumerate(numbers)]
    yield function("literals_f64", {"X": tensor([1], "float64"), "Y": tensor([len(numbers)], "float64")}, body)


def statements():
    yield function(
        "collatz",
        {"X": tensor([8], "int32"), "Y": tensor([8], "int32")},
        ["for i in range(8):", "    n = T.alloc_buffer((1,), \"int32\")", "    n[0] = X_[i]", "    Y_[i] = 0", "    while n[0] > 1:",
         "        if n[0] % 2 == 0:", "            n[0] = T.truncdiv(n[0], 2)", "        else:", "            n[0] = n[0] * 3 + 1", "        Y_[i] = Y_[i] + 1"],
    )
    yield function(
        "leaves",
        {"X": tensor([8], "int32"), "Y": tensor([8], "int32")},
        ["for i in range(8):", "    Y_[i] = 0", "    for j in range(100):", "        if X_[i] < j:", "            break", "        if j % 2 == 1:", "            continue", "        Y_[i] = Y_[i] + j"],
    )
    yield function("kinds", {"X": tensor([4, 8], "int32"), "Y": tensor([4, 8], "int32")},
        ["for i in T.parallel(4):", "    for j in T.unroll(4):", "        Y_[i, j] = X_[i, j] + 1", "    for j in range(4, 8):", "        Y_[i, j] = X_[i, 11 - j] - 1"])
    yield function("steps", {"X": tensor([12], "int32"), "Y": tensor([12], "int32")},
        ["for i in range(12):", "    Y_[i] = X_[i]", "for i in T.serial(1, 12, step=3):", "    Y_[i] = X_[i] * 2"])
    yield function("checked", {"X": tensor([4], "int32"), "Y": tensor([4], "int32")},
        ["for i in range(4):", '    assert X_[i] > 0, "is \\"what?\\"\\\\ not ??= above 0: é"', "    Y_[i] = X_[i]"])
    yield function("branches", {"X": tensor([8], "int32"), "Y": tensor([8], "int32")},
        ["for i in range(8):", "    Y_[i] = 7", "    if X_[i] > 3:", "        if X_[i] > 5:", "            Y_[i] = 1", "        else:", "            Y_[i] = 2", "    else:", "        if X_[i] == 0:", "            Y_[i] = 3"])
    yield function("bindings", {"X": tensor([8], "int32"), "Y": tensor([8], "float32")},
        ["for i in range(8):", "    # Names of types that the text uses.", "    int32_t: T.let[T.float32] = T.Cast(\"float32\", X_[i])", "    uint8_t: T.let[T.float32] = int32_t * T.float32(2)",
         "    y: T.let[T.bool] = int32_t > T.float32(3)", "    exp: T.let[T.int32] = X_[i] * 2", "    Y_[i] = T.Select(y, uint8_t + int32_t, uint8_t) + T.Cast(\"float32\", exp) + T.exp(T.Cast(\"float32\", exp - exp))"])
    memory = []
    kept = WHOLE + ["float16", "float32", "float64"]
    for dtype in kept:
        memory += [f'    b_{dtype} = T.alloc_buffer((2,), "{dtype}")', f"    b_{dtype}[i % 2] = {cast(dtype, 'X_[i]')}"]
    total = " + ".join(f"{cast('float32', f'b_{dtype}[i % 2]')} * T.float32({at + 1})" for at, dtype in enumerate(kept))
    yield function("memory", {"X": tensor([8], "float32"), "Y": tensor([8], "float32")}, ["for i in range(8):", *memory, f"    Y_[i] = {total}"])


def loops():
    # The beginning and the end of a loop are known before its first round.
    whole = tensor([4], "int32")
    yield function("shrinks", {"X": whole, "Y": tensor([16], "int32")}, ["for i in range(X_[0]):", "    Y_[i] = i + 1", "    X_[0] = X_[0] - 1"])
    yield function("moves", {"X": whole, "Y": tensor([16], "int32")},
        ["for i in T.serial(X_[0], X_[1]):", "    Y_[i] = i + 1", "    X_[0] = X_[0] + 1", "    X_[1] = X_[1] - 1"])


def arguments():
    y = tensor([6], "float64")
    whole = {f"a_{d}": f"T.{d}" for d in ("int8", "int16", "int32", "int64", "bool")}
    yield function("scalars", {**whole, "Y": y}, [f"Y_[{at}] = {cast('float64', name)}" for at, name in enumerate(whole)])
    natural = {f"a_{d}": f"T.{d}" for d in ("uint8", "uint16", "uint32", "uint64")}
    yield function("naturals", {**natural, "Y": y}, [f"Y_[{at}] = {cast('float64', name)}" for at, name in enumerate(natural)])
    yield function("numbers", {"a": "T.float32", "b": "T.float64", "Y": y}, ["Y_[0] = T.Cast(\"float64\", a)", "Y_[1] = b", "Y_[2] = b - T.Cast(\"float64\", a)"])
    for dtype in ("int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "float16", "float64"):
        yield function(f"copy_{dtype}", {"X": tensor([4], dtype), "Y": tensor([4], dtype)}, ["for i in range(4):", "    Y_[i] = X_[3 - i]"])
    yield function("steps_between", {"X": tensor([2, 3], "float32", "strides=(4, 1)"), "Y": tensor([2, 3], "float32")}, ["for i, j in T.grid(2, 3):", "    Y_[i, j] = X_[i, j]"])
    yield function("columns", {"X": tensor([2, 3], "float32", "strides=(1, 2)"), "Y": tensor([2, 3], "float32")}, ["for i, j in T.grid(2, 3):", "    Y_[i, j] = X_[i, j]"])
    yield function("behind", {"X": tensor([3], "float32", "elem_offset=2, offset_factor=1"), "Y": tensor([3], "float32")}, ["for i in range(3):", "    Y_[i] = X_[i]"])
    free = ["n, s = T.int64(), T.int64()"]
    yield tvm.script.from_source(
        """
@T.prim_func
def any_step(X: T.handle, Y: T.handle):
    T.func_attr({"global_symbol": "any_step"})
    n = T.int64()
    s = T.int64()
    X_ = T.match_buffer(X, (n,), "float32", strides=(s,))
    Y_ = T.match_buffer(Y, (n,), "float32")
    for i in range(n):
        Y_[i] = X_[i] * T.float32(2)
""",
        {"T": T},
    )
    yield tvm.script.from_source(
        """
@T.prim_func
def same_sizes(X: T.handle, Z: T.handle, Y: T.handle):
    T.func_attr({"global_symbol": "same_sizes"})
    n = T.int32()
    X_ = T.match_buffer(X, (n, 2), "int32")
    Z_ = T.match_buffer(Z, (n,), "int32")
    Y_ = T.match_buffer(Y, (2, n), "int32")
    for i, j in T.grid(n, 2):
        Y_[j, i] = X_[i, j] - Z_[i]
""",
        {"T": T},
    )
    yield function("empty", {}, ["T.evaluate(0)"])


def returns():
    yield function("plus_one", {"a": "T.int64"}, ["return a + T.int64(1)"], " -> T.int64")
    yield function("halved", {"a": "T.float64"}, ["return a * T.float64(0.5)"], " -> T.float64")
    yield function("first", {"X": tensor([2], "int32")}, ["return X_[0]"], " -> T.int32")


def calls():
    yield function("wider", {"X": tensor([4], "float32"), "Y": tensor([4], "float32")}, ['for i in range(4):', '    Y_[i] = T.call_pure_extern("float32", "powf", X_[i], T.float32(2)) + T.call_pure_extern("float32", "fabsf", X_[i])'])
    yield function("ldexps", {"X": tensor([4], "float32"), "Y": tensor([2, 4], "float32")}, ["for i in range(4):", "    Y_[0, i] = T.ldexp(X_[i], T.int32(3))", "    Y_[1, i] = T.call_pure_extern(\"float32\", \"ldexpf\", X_[i], T.int64(2))"])
    yield function("packed", {"a": "T.int64"}, ['T.evaluate(T.call_packed("tvmspec.none.of.this.name", a, T.float32(1)))'])


def texts():
    yield function("texted", {"a": "T.int64"}, ['T.evaluate(T.call_packed("tvmspec.none.of.this.name", "a text", a))'])


def lanes():
    eight = lambda dtype: {"X": tensor([8], dtype), "Y": tensor([8], dtype)}
    four = "T.Ramp(i * 4, 1, 4)"
    two = "T.Ramp(i * 2, 1, 2)"
    yield function("bound", eight("float32"), ["for i in range(2):", f"    v: T.let = X_[{four}]", f"    Y_[{four}] = v * v + T.Broadcast(T.float32(1), 4)"])
    yield function("bound_twice", eight("int32"), ["for i in range(4):", f"    v: T.let = X_[{two}]", "    w: T.let = v - T.Broadcast(i, 2)", "    s: T.let[T.int32] = i * 3", f"    Y_[{two}] = w * v + T.Broadcast(s, 2)"])
    yield function("reversed_lanes", eight("int32"), ["for i in range(2):", f"    Y_[{four}] = X_[T.Ramp(7 - i * 4, -1, 4)]"])
    yield function("every_second", eight("int32"), ["for i in range(2):", f"    Y_[T.Ramp(i, 2, 4)] = X_[{four}] + T.Ramp(i, 10, 4)"])
    # All lanes are loaded before the first is stored.
    yield function("onto_itself", {"Y": tensor([8], "int32"), "X": tensor([4], "int32")}, ["Y_[T.Ramp(0, 1, 4)] = X_[T.Ramp(0, 1, 4)]", "Y_[T.Ramp(1, 1, 4)] = Y_[T.Ramp(0, 1, 4)]", "for i in range(3):", "    Y_[5 + i] = i"])
    yield function("compared", eight("float32"), ["for i in range(2):", f"    Y_[{four}] = T.Select(X_[{four}] > T.Broadcast(T.float32(2), 4), X_[{four}], T.Broadcast(T.float32(-1), 4))"])
    yield function("cast_lanes", {"X": tensor([8], "float32"), "Y": tensor([8], "int8")}, ["for i in range(2):", f'    Y_[{four}] = T.Cast("int8x4", X_[{four}])'])
    # A name that the text may use for lanes of its own.
    yield function("named_lanes", eight("int32"), ["for i in range(2):", f"    lanes: T.let = X_[{four}]", "    lane: T.let[T.int32] = i + 1", f"    Y_[{four}] = lanes * T.Broadcast(lane, 4)"])
    yield function("one_lane", eight("int32"), ["for i in range(8):", "    v: T.let[T.int32] = X_[i] * 2", "    Y_[i] = v - 1"])


# Words of C and C++, of OpenCL C, of C's library, and of what stands in front of the text: none is a name of a variable there.
TAKEN = ["auto", "char", "double", "enum", "extern", "goto", "inline", "int", "long", "register", "restrict", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "const", "default", "do", "case"]
TAKEN += ["kernel", "local", "constant", "private", "half", "uint", "ulong", "ushort", "uchar", "bool_", "size_t", "int8_t", "uint64_t", "float", "ptrdiff_t", "main", "NULL", "NAN", "INFINITY", "parts", "barrier", "call_packed", "popcount", "clz"]
TAKEN += ["TVMValue", "TVMFFIAny", "TVMx", "DLTensor", "DLx", "get_global_id", "get_x", "CLK_LOCAL_MEM_FENCE", "tvmspec_x", "y0", "y1", "yn", "j0", "j1", "jn", "gamma", "signgam", "isnan", "isinf", "isfinite", "exp10", "rsqrt", "select", "clamp", "mix", "step", "sign"]
TAKEN += ["sin", "cos", "tan", "expf", "sqrt", "sqrtf", "fabs", "powf", "memcpy", "strlen", "abs", "malloc", "free", "printf", "exit", "log", "floor", "round", "tanhf", "fmodf", "fmod", "erf", "nearbyintf"]
TAKEN += ["alignas", "asm", "catch", "const_cast", "constexpr", "decltype", "delete", "dynamic_cast", "explicit", "export", "friend", "mutable", "namespace", "new", "noexcept", "nullptr", "operator", "protected", "public", "reinterpret_cast", "requires", "static_assert", "static_cast", "template", "this", "thread_local", "throw", "typeid", "typename", "using", "virtual", "xor", "bitand", "compl", "not_eq", "consteval", "constinit", "co_await", "co_return", "co_yield", "concept", "alignof", "and_eq", "or_eq", "xor_eq", "bitor"]
TAKEN += ["linux", "unix", "true", "false", "M_PI", "HUGE_VAL", "INT_MAX", "MAXFLOAT", "float4", "read_only", "pipe", "__global"]


def taken():
    # Each is a variable, next to functions that it would hide. Python has no variables of some of the names: `named` gives them.
    body = ["f: T.let[T.float32] = T.Cast(\"float32\", X_[0])"]
    body += [f"v{at}: T.let[T.int32] = X_[0] + {at}" for at in range(len(TAKEN))]
    body += [f"Y_[{at}] = v{at}" for at in range(len(TAKEN))]
    body += [f"Y_[{len(TAKEN)}] = T.Cast(\"int32\", T.sqrt(f) + T.exp(f - f) + T.fabs(f) + T.pow(f, f - f) + T.floor(f) + T.tanh(f - f) + T.erf(f - f))"]
    yield function("taken", {"X": tensor([1], "int32"), "Y": tensor([len(TAKEN) + 1], "int32")}, body)


def named(text):
    """A graph of `taken` with the names of its variables."""
    for at, name in enumerate(TAKEN):
        before, after = json.dumps(f"v{at}"), json.dumps(name)
        assert text.count(f'"data":{before}') + text.count(f'"data": {before}') == 1, name
        text = text.replace(f'"data":{before}', f'"data":{after}').replace(f'"data": {before}', f'"data": {after}')
    return text


def sixteen():
    # The smallest numbers of the type, the largest, and what lies between two of them.
    numbers = [6e-8, 2.9e-8, 1e-7, 6.1e-5, 6.09e-5, 6.104e-5, 0.1, 1 / 3, 1.0004, 1.0005, 1.0015, 2049.0, 2051.0, 65504.0, -0.0, -6e-8]
    body = [f'Y_[{at}] = T.Cast("float32", T.Cast("float16", X_[0]) * tvm.tirx.FloatImm("float16", {value!r}))' for at, value in enumerate(numbers)]
    yield function("sixteen", {"X": tensor([1], "float32"), "Y": tensor([len(numbers)], "float32")}, body)


def hints():
    whole = {"X": tensor([4], "int32"), "Y": tensor([4], "int32")}
    for name in ("pragma_auto_unroll_max_step", "pragma_unroll_explicit"):
        yield function(name, whole, ["for i in range(4):", f'    with T.attr(0, "{name}", 2):', "        Y_[i] = X_[i] + 1"])


TOPICS = {"lanes": lanes, "taken": taken, "hints": hints, "sixteen": sixteen, "casts": casts, "operators": operators, "numbers": fractions, "literals": literals, "reinterprets": reinterprets, "statements": statements, "loops": loops, "arguments": arguments, "returned": returns, "calls": calls, "texts": texts}


def main(out, *wanted):
    folder = pathlib.Path(out) / RELEASE
    folder.mkdir(parents=True, exist_ok=True)
    for topic, make in TOPICS.items():
        if wanted and topic not in wanted:
            continue
        try:
            whole = {str(made.attrs["global_symbol"]): made for made in make()}
            [text] = lower.captured(lambda: tvm.IRModule(whole), "c")
        except Exception as error:
            print(topic, str(error)[-1500:], file=sys.stderr)
            continue
        text = join.join([text], RELEASE)
        text = named(text) if topic == "taken" else text
        (folder / f"{topic}.json").write_text(text + "\n")
        print(topic, len(whole), "functions", len(text), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
