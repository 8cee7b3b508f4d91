"""Writes cases of device.size and device.contiguous on both sides of each release boundary, from the text of DEV-15 and DEV-17.

Run: python shapes.py        (in this folder)
"""

import math, os, sys

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, "../../conformance")
import cases as conformance

made = []


def case(kind, id, rule, release, value, accept, why):
    made.append({"id": f"device/{kind}-{id}-in-{release}", "rules": [rule], "releases": release, "op": f"device.{kind}", "input": {"value": value}, "args": {"release": release},
                 "expect": {"accept": accept}, "why": why, "origin": {"hand": "shapes.py, from the text of the rule"}})


def size(shape, dtype, release):
    """Up to 0.20 each element takes whole bytes; since 0.21 only the whole tensor does. 0.21 to 0.25 keep a byte for each `uint1`."""
    code, bits, lanes = dtype
    count, minor = math.prod(shape), int(release[2:])
    if minor <= 20 or (minor <= 25 and (code, bits, lanes) == (1, 1, 1)):
        return count * -(-bits * lanes // 8)
    return -(-count * bits * lanes // 8)


for name, dtype in (("uint1", [1, 1, 1]), ("int1", [0, 1, 1]), ("uint2", [1, 2, 1]), ("uint1x2", [1, 1, 2]), ("int4", [0, 4, 1]), ("bool", [6, 8, 1]), ("float32x3", [2, 32, 3])):
    for release in ("0.20", "0.21", "0.25", "0.26"):
        case("size", f"of-{name}", "DEV-15", release, {"shape": [3, 3], "dtype": dtype}, size([3, 3], dtype, release), "a buffer that is one byte short is overrun by the copy that fills it")
case("size", "of-nothing", "DEV-15", "0.27", {"shape": [0, 5], "dtype": [2, 32, 1]}, 0, "a dynamic extent may be 0")
case("size", "of-a-scalar", "DEV-15", "0.27", {"shape": [], "dtype": [2, 64, 1]}, 8, "a scalar is one element")


def contiguous(shape, strides, release):
    """Up to 0.10 every stride counts; since 0.11 axes of extent 1 do not, and since 0.25 no stride of an empty tensor does."""
    minor, expected = int(release[2:]), 1
    if minor >= 25 and 0 in shape:
        return True
    for extent, stride in reversed(list(zip(shape, strides))):
        if extent == 1 and minor >= 11:
            continue
        if stride != expected:
            return False
        expected *= extent
    return True


for name, shape, strides in (("an-axis-of-1", [2, 1, 3], [3, 99, 1]), ("no-elements", [0, 3], [5, 7]), ("no-elements-behind", [3, 0], [7, 1]), ("an-axis-of-1-in-front", [1, 3], [7, 1]), ("an-axis-of-1-behind", [3, 1], [1, 9]), ("a-gap", [2, 3], [4, 1]), ("every-other", [3], [2]), ("three-axes", [2, 3, 4], [12, 4, 1])):
    for release in ("0.10", "0.11", "0.24", "0.25"):
        case("contiguous", name, "DEV-17", release, {"shape": shape, "strides": strides}, contiguous(shape, strides, release), "a view that is rejected cannot be copied; one that is wrongly accepted is permuted")
conformance.add("device", made)
print(len(made), "cases")
