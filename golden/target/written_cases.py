#!/usr/bin/env python3
"""The cases of `target.run` for the modules of written.py: what the TVM of this Python computes, by its generator for LLVM.

    TVMSPEC_PYTHON golden/target/written_cases.py CASES

Adds to CASES, which is conformance/target/cases/run.json, what is not there, and fails where a case states something else.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "tests/foreign"))
import judged_runs  # noqa: E402
import run_cases  # noqa: E402

RELEASE = judged_runs.RELEASE
X = [0, 1, 2, 3, 5, 7, 100, 127, 128, 200, 255, 256, 1000, -1, -2, -128]
Z = [1, 2, 3, 5, 7, 11, 13, 100, 3, 5, 1, 2, -3, -7, -5, 9]
FRACTION_X = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.75, -3.75, 100, -100, 0.125, -0.75, 7, 8, -9, 10.25]
FRACTION_Z = [1, -2, 3.5, 0.25, 7, -11, 3.75, 3.75, 0.5, 5, 1, 2, -3, -7.5, -5, 9]
NATURAL = [0, 0.5, 1, 1.5, 2.25, 3, 7.75, 10, 31, 50.5, 64, 77, 99.5, 100, 120, 126.75]
SIGNED = [0, -0.5, -1, -1.5, 2.25, -3, -7.75, 10, -31, 50.5, -64, -77, -99.5, -100, 120, -126.75]


def tensor(dtype, shape, values=..., **more):
    form = {"dtype": dtype, "shape": shape, **more}
    if values is not ...:
        form["values"] = values
    return {"tensor": form}


def call(name, *args):
    return {"function": name, "args": list(args)}


def of_rows(name, dtype, outof, x, z, rows):
    return call(name, tensor(dtype, [16], x), tensor(dtype, [16], z), tensor(outof, [rows, 16]))


def rows_of(topic, name):
    """How many rows the output of a function has, as its module states it."""
    module = json.loads((HERE / "runs" / RELEASE / f"{topic}.json").read_text())
    signature = next(node["data"] for node in module["nodes"] if node["type"] == "ffi.String" and str(node["data"]).startswith(f"{name}(") and "Y_: Tensor([" in node["data"])
    return int(signature.split("Y_: Tensor([")[1].split(",")[0].split("]")[0])


WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def calls(topic):
    rows = lambda name: rows_of(topic, name)
    if topic == "casts":
        yield of_rows("casts_whole", "int64", "int64", X, Z, rows("casts_whole"))
        yield of_rows("casts_fraction", "float64", "float64", NATURAL, NATURAL, rows("casts_fraction"))
        yield of_rows("casts_signed", "float64", "float64", SIGNED, SIGNED, rows("casts_signed"))
    if topic == "operators":
        for dtype in WHOLE:
            yield of_rows(f"operators_{dtype}", "int64", "int64", X, Z, rows(f"operators_{dtype}"))
        yield of_rows("truth", "int64", "int64", X, Z, rows("truth"))
    if topic == "numbers":
        for dtype in ("float16", "float32", "float64"):
            name, outer = f"fractions_{dtype}", "float32" if dtype == "float16" else dtype
            yield of_rows(name, outer, outer, FRACTION_X, FRACTION_Z, rows(name))
    if topic == "reinterprets":
        yield of_rows("reinterprets", "int64", "int64", X, Z, rows("reinterprets"))
    if topic == "literals":
        yield call("literals", tensor("int64", [1], [0]), tensor("int64", [rows("literals")]))
        yield call("literals_f32", tensor("float32", [1], [1]), tensor("float32", [8]))
        yield call("literals_f64", tensor("float64", [1], [1]), tensor("float64", [8]))
    if topic == "statements":
        yield call("collatz", tensor("int32", [8], [1, 2, 3, 6, 7, 9, 27, 97]), tensor("int32", [8]))
        yield call("leaves", tensor("int32", [8], [-1, 0, 1, 2, 9, 10, 50, 200]), tensor("int32", [8]))
        yield call("kinds", tensor("int32", [4, 8], list(range(32))), tensor("int32", [4, 8]))
        yield call("steps", tensor("int32", [12], list(range(10, 22))), tensor("int32", [12]))
        yield call("checked", tensor("int32", [4], [1, 2, 3, 4]), tensor("int32", [4]))
        yield call("checked", tensor("int32", [4], [1, 2, 0, 4]), tensor("int32", [4]))
        yield call("branches", tensor("int32", [8], [0, 1, 3, 4, 5, 6, 7, -1]), tensor("int32", [8]))
        yield call("bindings", tensor("int32", [8], [0, 1, 2, 3, 4, 5, -6, 7]), tensor("float32", [8]))
        yield call("memory", tensor("float32", [8], [0, 1, 2.5, 3, 4.75, 5, 60, 127]), tensor("float32", [8]))
    if topic == "loops":
        yield call("shrinks", tensor("int32", [4], [6, 0, 0, 0]), tensor("int32", [16]))
        yield call("shrinks", tensor("int32", [4], [0, 0, 0, 0]), tensor("int32", [16]))
        yield call("moves", tensor("int32", [4], [2, 9, 0, 0]), tensor("int32", [16]))
    if topic == "arguments":
        yield from arguments()
    if topic == "returned":
        yield call("plus_one", 41)
        yield call("plus_one", -1)
        yield call("halved", {"float": 5.0})
        yield call("halved", 5)
        yield call("first", tensor("int32", [2], [-7, 8]))
    if topic == "calls":
        yield call("wider", tensor("float32", [4], [1, -2, 3.5, 0]), tensor("float32", [4]))
        yield call("ldexps", tensor("float32", [4], [1, -2, 3.5, 0]), tensor("float32", [2, 4]))
        yield call("packed", 1)
    if topic == "lanes":
        eight = [1, -2, 3, 4, 50, -6, 7, 8]
        for name in ("bound", "compared"):
            yield call(name, tensor("float32", [8], eight), tensor("float32", [8]))
        for name in ("bound_twice", "reversed_lanes", "every_second", "named_lanes", "one_lane"):
            yield call(name, tensor("int32", [8], eight), tensor("int32", [8]))
        yield call("onto_itself", tensor("int32", [8]), tensor("int32", [4], eight[:4]))
        yield call("cast_lanes", tensor("float32", [8], [1.5, -2.5, 3, 100, -100.75, 0, 7, 8]), tensor("int8", [8]))
    if topic == "taken":
        yield call("taken", tensor("int32", [1], [4]), tensor("int32", [rows("taken")]))
    if topic == "sixteen":
        yield call("sixteen", tensor("float32", [1], [1]), tensor("float32", [rows("sixteen")]))
    if topic == "hints":
        for name in ("pragma_auto_unroll_max_step", "pragma_unroll_explicit"):
            yield call(name, tensor("int32", [4], [1, 2, 3, 4]), tensor("int32", [4]))
    if topic == "texts":
        yield call("texted", 1)


def arguments():
    six = lambda: tensor("float64", [6])
    yield call("scalars", -5, -300, 70000, 5000000000, True, six())
    yield call("scalars", 5, 300, -70000, -5000000000, False, six())
    # What the type has not is cut to it, as the module states.
    yield call("scalars", 200, 70000, 3000000000, 1, 1, six())
    yield call("naturals", 200, 60000, 4000000000, 5000000000, six())
    yield call("numbers", {"float": 1.5}, {"float": -0.125}, six())
    yield call("numbers", 3, 4, six())
    # A number where another kind of value is.
    yield call("scalars", {"float": 1.0}, 1, 1, 1, True, six())
    yield call("scalars", 1, "2", 1, 1, True, six())
    yield call("scalars", 1, 1, None, 1, True, six())
    yield call("scalars", 1, 1, 1, 1, {"float": 1.0}, six())
    yield call("scalars", 1, 1, 1, 1, True, 6)
    yield call("scalars", 1, 1, 1, 1, True)
    yield call("numbers", "1", 2, six())
    yield call("numbers", True, True, six())
    yield call("empty")
    yield call("empty", 1)
    numbers = {"int8": [-128, 127, 0, 1], "int16": [-32768, 5, 0, 1], "int64": [-(2**63), 5, 0, 1], "uint8": [255, 5, 0, 1], "uint16": [65535, 5, 0, 1]}
    numbers |= {"uint32": [2**32 - 1, 5, 0, 1], "uint64": [2**64 - 1, 5, 0, 1], "bool": [True, False, False, True], "float16": [1.5, -2, 0, 65504], "float64": [0.1, -2.5, 0, 1e300]}
    for dtype, values in numbers.items():
        yield call(f"copy_{dtype}", tensor(dtype, [4], values), tensor(dtype, [4]))
    x, y = numbers["int16"], tensor("int16", [4])
    # Each check of a tensor, by one call that fails it.
    for wrong in ("int8", "uint16", "float16", "int32", "bool"):
        yield call("copy_int16", tensor(wrong, [4], [1, 0, 0, 1]), y)
    yield call("copy_bool", tensor("uint8", [4], [1, 0, 0, 1]), tensor("bool", [4]))
    yield call("copy_int16", tensor("int16", [5], x + [1]), y)
    yield call("copy_int16", tensor("int16", [3], x[:3]), y)
    yield call("copy_int16", tensor("int16", [2, 2], x), y)
    yield call("copy_int16", tensor("int16", [], x[:1]), y)
    yield call("copy_int16", tensor("int16", [4], x, strides=[1]), y)
    yield call("copy_int16", tensor("int16", [4], x + x, strides=[2]), y)
    yield call("copy_int16", tensor("int16", [4], x, byte_offset=2), y)
    yield call("copy_int16", tensor("int16", [4], x, byte_offset=64), y)
    yield call("copy_int16", tensor("int16", [4], x, shift=2), y)
    yield call("copy_int16", tensor("int16", [4], None), y)
    yield call("copy_int16", tensor("int16", [4], x, device=[2, 0]), y)
    yield call("copy_int16", tensor("int16", [4], x, device=[1, 1]), y)
    yield call("copy_int16", tensor("int16", [4], x), tensor("int16", [4], device=[1, 1]))
    yield call("copy_int16", tensor("int16", [4], x), tensor("int16", [4], None))
    yield call("copy_int16", tensor("int16", [4], x), tensor("int32", [4]))
    yield call("copy_int16", tensor("int16", [4], x), tensor("int16", [4], shift=8))
    yield call("copy_int16", None, y)
    yield call("copy_int16", tensor("int16", [4], x), None)
    yield call("copy_int16", 1, y)
    yield call("copy_int16", "text", y)
    yield call("copy_int16", tensor("int16", [4], x))
    yield call("copy_int16", tensor("int16", [4], x), y, y)
    yield call("copy_int16")
    seven = [1, 2, 3, 4, 5, 6, 7]
    yield call("steps_between", tensor("float32", [2, 3], seven, strides=[4, 1]), tensor("float32", [2, 3]))
    yield call("steps_between", tensor("float32", [2, 3], seven, strides=[3, 1]), tensor("float32", [2, 3]))
    yield call("steps_between", tensor("float32", [2, 3], seven), tensor("float32", [2, 3]))
    yield call("columns", tensor("float32", [2, 3], seven, strides=[1, 2]), tensor("float32", [2, 3]))
    yield call("columns", tensor("float32", [2, 3], seven, strides=[2, 1]), tensor("float32", [2, 3]))
    yield call("behind", tensor("float32", [3], seven, byte_offset=8), tensor("float32", [3]))
    yield call("behind", tensor("float32", [3], seven), tensor("float32", [3]))
    yield call("any_step", tensor("float32", [3], seven, strides=[3]), tensor("float32", [3]))
    yield call("any_step", tensor("float32", [4], seven, strides=[2]), tensor("float32", [4]))
    yield call("any_step", tensor("float32", [4], seven, strides=[1]), tensor("float32", [3]))
    yield call("any_step", tensor("float32", [4], seven), tensor("float32", [4]))
    yield call("any_step", tensor("float32", [0], [], strides=[1]), tensor("float32", [0]))
    yield call("same_sizes", tensor("int32", [3, 2], seven[:6]), tensor("int32", [3], [1, 1, 2]), tensor("int32", [2, 3]))
    yield call("same_sizes", tensor("int32", [3, 2], seven[:6]), tensor("int32", [2], [1, 1]), tensor("int32", [2, 3]))
    yield call("same_sizes", tensor("int32", [3, 2], seven[:6]), tensor("int32", [3], [1, 1, 2]), tensor("int32", [2, 2]))
    yield call("same_sizes", tensor("int32", [3, 1], seven[:3]), tensor("int32", [3], [1, 1, 2]), tensor("int32", [2, 3]))


WHY = {
    "casts": "a number that is not cut to its type is another number, and one that is cut twice, too",
    "operators": "C computes small integers as `int`: a sum that is not cut to its type is beyond its end",
    "numbers": "fractions that are rounded once too often drift apart from those of the release",
    "reinterprets": "bits that are converted on their way are those of another number",
    "literals": "a constant of a model that C reads by another width is another constant",
    "statements": "a branch that is not taken, or an element of another turn of a loop, is a wrong number without an error",
    "loops": "a loop whose end is computed anew in each round ends early, or never, where its body stores what the end is computed of",
    "arguments": "what a function does not check of its arguments it reads beyond",
    "returned": "a caller that reads a result as another type has another number",
    "calls": "a function that gets an argument of another width computes another number",
    "lanes": "a lane that is stored before another is loaded, or by another index, is an element of another row",
    "taken": "a variable with the name of a function or of a word of C is text that does not compile, or calls something else",
    "sixteen": "a literal that is rounded to a `float` first is rounded twice",
    "hints": "an annotation that a compiler does not need is no reason to reject a module",
    "texts": "operators such as `topk` call packed functions by names with texts: code without them sorts nothing",
}
RULES = {"operators": ["TGT-88", "TGT-91"], "numbers": ["TGT-88", "TGT-93"]}


def cases():
    for topic, why in WHY.items():
        made = list(calls(topic))
        print(topic, len(made), "calls", flush=True)
        text = (HERE / "runs" / RELEASE / f"{topic}.json").read_text()
        yield {
            "id": f"target/run/{topic}-{RELEASE}",
            "rules": RULES.get(topic, ["TGT-88"]),
            "releases": RELEASE,
            "op": "target.run",
            "input": {"file": f"target/runs/{RELEASE}/{topic}.json"},
            "args": {"target": "c", "release": RELEASE, "calls": made},
            "expect": {"accept": judged_runs.run(text, made)},
            "why": why,
            "origin": {"release": "0.27.0.post1"},
        }


if __name__ == "__main__":
    run_cases.write(pathlib.Path(sys.argv[1]), cases())
