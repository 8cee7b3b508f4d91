#!/usr/bin/env python3
"""The cases of `target.run` for modules that releases lowered: what their own builds compute (lowered/RELEASE/runs.json).

    run_cases.py CASES

Adds to CASES, which is conformance/target/cases/run.json, what is not there, and fails where a case states something else.

A result that is a fraction is compared with so many bits that two right ones are the same: all results of a call are farther from the middle between
two neighbours of that many bits than computations differ in their last bits.
"""

import base64
import pathlib
import sys

import numpy as np

import join

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "conformance"))
import cases as conformance  # noqa: E402

RULES = {
    "whole_numbers": ["TGT-88", "TGT-91"],
    "fractions": ["TGT-88", "TGT-92"],
    "sixteen_bits": ["TGT-88"],
    "vectors": ["TGT-88"],
    "mathematics": ["TGT-88", "TGT-93"],
    "models": ["TGT-88"],
    "some": ["TGT-88", "TGT-91", "TGT-93"],
}
WHY = {
    "whole_numbers": "C computes small numbers as `int`: what is not cut to its type is another number",
    "fractions": "a comparison with what is no number, or a cast towards zero, changes what a branch takes",
    "sixteen_bits": "numbers of 16 bits are software: rounded twice, or in the wrong direction, they drift apart from those of a device",
    "vectors": "lanes that are stored before all are computed read what the store changed",
    "mathematics": "a function of another name or width returns a number that is nearly right",
    "models": "sums, loops, windows and memory in between: what a model is made of",
    "some": "the nodes, the convention and the operators of this release are others than those of the next",
}
# How far right results are apart: of the number, and of 1.
APART = {"float16": (1e-3, 1e-4), "float32": (3e-6, 3e-7), "float64": (1e-13, 1e-14)}


def cut(array, bits):
    """The numbers with so many bits, of two nearest the even one."""
    form = array.astype(np.float64).view(np.uint64)
    unit = np.uint64(1 << (53 - bits))
    one = np.uint64(1)
    even = ((form & unit) != 0).astype(np.uint64)
    near = ((form + unit // np.uint64(2) - one + even) & ~(unit - one)).view(np.float64)
    return np.where(np.isfinite(array), near, array.astype(np.float64)).astype(array.dtype)


def comparable(name, array):
    """With how many bits a result is compared, and the result with those."""
    dtype = str(array.dtype)
    if dtype not in APART:
        return None, array
    relative, absolute = APART[dtype]
    if name.startswith("more_"):
        # LLVM's code of `exp10` is the exponential of a product that is rounded.
        relative *= 30
    array = np.where(np.isnan(array), np.array(np.nan, dtype), array).astype(dtype)
    # A result that is 0 is one that nothing was added to.
    finite = array[np.isfinite(array) & (array != 0)].astype(np.float64)
    most = {"float16": 11, "float32": 20, "float64": 40}[dtype]
    for bits in range(most, 3, -1):
        apart = np.abs(finite) * relative + absolute
        if np.all(cut(finite - apart, bits) == cut(finite + apart, bits)):
            return bits, cut(array, bits)
    raise SystemExit(f"{name}: no number of bits tells its results apart")


def array_of(form):
    dtype = form["dtype"]
    return np.frombuffer(base64.b64decode(form["data"]), dtype).reshape(form["shape"])


def number(value):
    """A number of a case: JSON has neither an infinite one nor what is none."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if np.isfinite(value):
        # The shortest text that reads back as the same number of the type.
        return float(str(value)) if not float(value).is_integer() or abs(value) > 1e15 else int(value) if str(value)[0] != "-" or value else -0.0
    return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"


def values(array):
    return [number(value) for value in array.reshape(-1)]


def exact(array):
    """Results: each number as it is, and not as the shortest text of its type."""
    return values(array.astype(np.float64) if array.dtype.kind == "f" else array)


EXACT = ("whole", "order", "special", "cast", "take", "concat", "max", "min", "relu", "reversed", "choose", "half_small", "half_rounds", "half_ends", "half_matmul", "half_of_f32", "half_literals", "bfloat")


def call(name, run):
    expected = array_of(run["result"])
    bits, expected = (None, expected) if name.startswith(EXACT) else comparable(name, expected)
    args = [{"tensor": {"dtype": form["dtype"], "shape": form["shape"], "values": values(array_of(form))}} for form in run["args"][:-1]]
    last = run["args"][-1]
    args.append({"tensor": {"dtype": last["dtype"], "shape": last["shape"]}})
    made = {"function": name, "args": args}
    if bits:
        made["bits"] = bits
    return made, {"outputs": [exact(expected)]}


def cases():
    for release, topics in join.TOPICS.items():
        runs = json.loads((HERE / "lowered" / release / "runs.json").read_text())
        for topic, names in topics.items():
            calls, answers = zip(*(call(name, runs[name]) for name in names.split()))
            yield {
                "id": f"target/run/{topic.replace('_', '-')}-{release}",
                "rules": RULES[topic],
                "releases": release,
                "op": "target.run",
                "input": {"file": f"target/runs/{release}/{topic}.json"},
                "args": {"target": "c", "release": release, "calls": list(calls)},
                "expect": {"accept": list(answers)},
                "why": WHY[topic],
                "origin": {"release": {"0.27": "0.27.0.post1", "0.26": "0.26.0", "0.16": "0.16.dev0", "0.8": "0.8.0"}[release]},
            }


def write(file, made):
    known = conformance.read(file) if file.exists() else []
    by_id = {case["id"]: case for case in known}
    for case in made:
        old = by_id.get(case["id"])
        if old is None:
            known.append(case)
        elif old != case:
            raise SystemExit(f"{case['id']}: the case states something else")
    file.write_text(conformance.render(known))
    print(len(known), "cases")


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]), cases())
