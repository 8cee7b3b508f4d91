"""Writes more executables (*.vmexec) and their cases: tuples that code resets, constants with several axes, scopes, shapes and strides.

Run: python edges.py        (in this folder)

The expectations are written here from spec/vm.md; `tvmspec check --impl ffi:` runs all cases except those of this crate on the wheel.
"""

import base64, os, sys
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, "../../conformance")
import cases as conformance
from assembler import C, F, R as r, VM, VOID, assemble, constant, function

b = "vm.builtin."
files, made = {}, []
NONE, ERROR = None, {"error": True}

# Tuples that the code of a machine resets (VM-58): created there, passed to it, held by another tuple.
files["resets"] = assemble([
    function("fresh", [], 1, ("call", 0, b + "make_tuple", 7, 8), ("call", VOID, b + "tuple_reset_item", r(0), 0), ("ret", 0)),
    function("given", ["t"], 1, ("call", VOID, b + "tuple_reset_item", r(0), 1), ("ret", 0)),
    function("held", [], 2, ("call", 0, b + "make_tuple", 7, 8), ("call", 1, b + "make_tuple", r(0)), ("call", VOID, b + "tuple_reset_item", r(0), 0), ("ret", 0)),
    function("past", [], 2, ("call", 0, b + "make_tuple", 7), ("call", 1, b + "make_tuple", r(0)), ("call", VOID, b + "tuple_reset_item", r(0), 1), ("ret", 0)),
])
# Four rows of four elements of four bits, a byte each, as 0.16 to 0.20 store them.
SQUARE = np.arange(1, 17, dtype="int8").reshape(4, 4)
small = assemble([function("main", [], 1, ("call", 0, b + "copy", C(0)), ("ret", 0))], [SQUARE])
whole = constant(SQUARE)[4:]
four_bits = bytearray(whole)
four_bits[29] = 4
assert small.count(whole) == 1 and whole[28:30] == bytes([0, 8])
files["four-bit-matrix"] = small.replace(whole, bytes(four_bits))
for name, raw in files.items():
    open(name + ".vmexec", "wb").write(raw)
conformance.declare({f"vm/{name}.vmexec": {"hand": "edges.py"} for name in files})

HAND, OWN = {"hand": "edges.py, from spec/vm.md"}, {"hand": "edges.py, from spec/vm.md; ours alone"}
B = lambda name, *args: [b + name, *args]
S, D, ref = (lambda *e: {"shape": list(e)}), (lambda t: {"dtype": t}), (lambda k: {"ref": k})
data = lambda values, dtype: base64.b64encode(np.array(values, dtype).tobytes()).decode()
T = lambda dtype, shape, values: ["tensor", D(dtype), S(*shape), data(values, dtype)]
shown = lambda dtype, shape, values: {"tensor": dtype, "shape": list(shape), "data": data(values, dtype)}
fails = lambda step: ["@fails", *step]
u8, f32 = D("uint8"), D("float32")


def case(id, rules, why, file, steps, accept=None, reject=None, parent=None, devices=None, alive=None, releases="0.16..", origin=HAND, topic="limits"):
    entry = {"id": "vm/" + id, "topic": topic, "rules": rules.split(), "releases": releases, "op": "vm.run", **({"parent": "vm/" + parent} if parent else {}), "input": {"file": f"vm/{file}.vmexec"}}
    entry["args"] = {"steps": steps, **({"devices": devices} if devices else {}), **({"balance": True} if alive else {})}
    if reject:
        kind, rule = reject.split()
        entry["expect"] = {"reject": {"kind": kind, "rule": rule}}
    else:
        entry["expect"] = {"accept": {"results": accept, "alive": alive} if alive else accept}
        entry["encode"] = False
    made.append({**entry, "why": why, "origin": origin})


case("reset-by-code", "VM-58", "the memory of what is not read again is free", "resets", [["fresh"], ["given", [1, 2]], ["held"]], [[NONE, 8], [1, NONE], [NONE, 8]], releases="0.21..")
case("reset-by-code-of-what-is-held", "VM-58", "every holder sees the element go", "resets", [B("make_tuple", 1, 2), ["given", ref(0)], ["@same", ref(0), ref(1)]], [[1, NONE], [1, NONE], True], releases="0.21..")
case("reset-by-code-past-the-end", "VM-49", "an element that is not there", "resets", [["past"]], reject="missing VM-49", parent="reset-by-code", releases="0.21..")
case("reset-by-code-without-an-owner", "VM-49 VM-58", "bytes with unknown effect change no tuple that others hold", "resets",
     [["@own", "alone", "fresh"], ["@own", "alone", "held"], ["@own", "alone", "past"], ["@own", "alone", "given", [1, 2]], B("make_tuple", 3, 4), ["@own", "alone", "given", ref(4)], ["@own", "alone", "given", 5]],
     [[NONE, 8], [7, 8], ERROR, [1, 2], [3, 4], [3, 4], ERROR], releases="0.21..", origin=OWN)
case("four-bit-matrix", "VM-13", "rows of elements below eight bits have a byte for each in files of 0.16 to 0.20", "four-bit-matrix", [["main"]], [{"tensor": "int4", "shape": [4, 4], "data": data(SQUARE, "int8")}], origin=OWN)

row = T("float32", (2, 3), [[0, 1, 2], [3, 4, 5]])
flat = shown("float32", (2, 3), [[0, 1, 2], [3, 4, 5]])
case("check-prim-value-void", "VM-43", "no value is of no type", "basic", [B("check_prim_value_info", NONE, D("void"), "c")], reject="type VM-43", parent="check-prim-value-handle")
case("to-device-in-a-scope-of-none", "VM-55", "memory that the device does not have", "basic", [row, fails(B("to_device", ref(0), 1, 0, "global.nobody")), B("to_device", ref(0), 1, 0, "")], [flat, ERROR, flat], releases="0.23..")
case("tensor-of-a-shape-that-is-a-number", "VM-33", "an argument in another's place", "machine", [["storage", S(1), 0, u8, "global"], B("alloc_tensor", ref(0), 0, 5, u8)], reject="type VM-33", parent="storage-to-the-last-byte")
case("conditions-of-a-row", "VM-53", "the first element counts", "basic", [T("int32", (2,), [0, 1]), B("read_if_cond", ref(0)), T("int64", (1, 2), [[1, 0]]), B("read_if_cond", ref(2))], [shown("int32", (2,), [0, 1]), False, shown("int64", (1, 2), [[1, 0]]), True])
for id, dtype, values in (("lanes", "int32x2", [1, 0]), ("float16", "float16", [1])):
    raw = data(values, "int32" if "x" in dtype else dtype)
    case(f"condition-of-{id}", "VM-53", "what is no flag has no truth", "basic", [["tensor", D(dtype), S(), raw], B("read_if_cond", ref(0))], reject="type VM-53", parent="condition-forms")
case("condition-of-nothing", "VM-53", "no element, no truth", "basic", [T("int32", (0,), []), B("read_if_cond", ref(0))], reject="type VM-53", parent="condition-forms")
case("tensor-to-shape-of-lanes", "VM-52", "bytes are taken for extents", "basic", [["tensor", D("int32x2"), S(1), data([1, 2], "int32")], B("tensor_to_shape", ref(0))], reject="type VM-52", parent="tensor-to-shape-of-int64")
case("reshape-of-bytes", "VM-50", "an extent of 0 leaves no elements, whatever is beside it", "basic", [["tensor", D("int8"), S(2, 2), data([1, 2, 3, 4], "int8")], B("reshape", ref(0), S(4)), B("reshape", ref(0), S(1 << 40, 0)), fails(B("reshape", ref(0), S(5))), fails(B("reshape", ref(0), S(0, -1)))],
     [shown("int8", (2, 2), [1, 2, 3, 4]), shown("int8", (4,), [1, 2, 3, 4]), {"tensor": "int8", "shape": [1 << 40, 0], "data": ""}, ERROR, ERROR])
swapped = ["tensor", f32, S(2, 3), data([0, 1, 2, 3, 4, 5], "float32"), 0, S(1, 2)]
case("reshape-of-swapped-axes", "VM-50", "a view of bytes that lie in another order", "basic", [swapped, fails(B("reshape", ref(0), S(6))), ["@drop", ref(0)], ["tensor", f32, S(2, 3), data([0, 1, 2, 3, 4, 5], "float32"), 0, S(3, 1)], B("reshape", ref(3), S(6))],
     [NONE, ERROR, NONE, flat, shown("float32", (6,), np.arange(6))])
case("heap-of-one-cell", "VM-48", "a cell for each symbol", "basic", [["tensor", D("int64"), S(3), data([1, 2, 3], "int64"), 0, S(0)], B("make_shape", ref(0), 1, 1, 2)], reject="type VM-48", parent="match-shape-forms")
case("heap-between-cells", "VM-48", "a cell is on a multiple of eight bytes", "basic", [["tensor", D("int64"), S(1), base64.b64encode(bytes(12)).decode(), 4], B("make_shape", ref(0), 1, 1, 0)], reject="type VM-48", parent="match-shape-forms")

case("device-that-is-not-here", "DEV-06 VM-30", "a machine on no device", "basic", [["same", 1]], reject="unknown-kind DEV-06", parent="same", devices=[17, 0, 2, 1, 0, 2])
case("timed-and-failing", "VM-20", "a call that fails has no time", "machine", [["@own", "timed", 2, 3, "inner", 5], ["@own", "timed", 2, 3, "lets-go", 5]], [ERROR, [3, True]], origin=OWN)
FAR = [98, 0, 2, 1, 0, 2]
live = lambda spaces, bytes, allocations, copies=0: {"spaces": spaces, "bytes": bytes, "streams": 0, "allocations": allocations, "copies": copies}
case("inputs-that-are-replaced", "VM-62", "a copy of an input goes when another takes its place", "basic", [row, ["set_input", "same", ref(0)], ["@alive"], ["set_input", "same", 5], ["@alive"], ["set_input", "same", ref(0)], ["@alive"]],
     [flat, NONE, live(2, 36, 2, 2), NONE, live(1, 12, 2, 2), NONE, live(2, 36, 3, 3)], devices=FAR, alive=live(0, 0, 3, 3), origin=OWN)

conformance.add("vm", made)
print(len(made), "cases")
