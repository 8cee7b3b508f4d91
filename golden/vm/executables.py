"""The executables of machine.py: functions that call each builtin, and code at the limits of the format."""

import numpy as np

from assembler import C, F, R as r, VM, VOID, assemble, constant, function

b = "vm.builtin."
files = {}


def straight(name, params, callee, *args, registers=None):
    """A function that calls one other, and returns its result."""
    last = registers or len(params) + 1
    return function(name, params, last, ("call", last - 1, callee, *args), ("ret", last - 1))


files["machine"] = assemble([
    straight("storage", ["shape", "device", "dtype", "scope"], b + "alloc_storage", r(VM), r(0), r(1), r(2), r(3)),
    straight("plain", ["shape", "device", "dtype"], b + "alloc_storage", r(VM), r(0), r(1), r(2)),
    straight("short", ["shape", "device"], b + "alloc_storage", r(VM), r(0), r(1)),
    straight("heap", ["n"], b + "alloc_shape_heap", r(VM), r(0)),
    straight("invoke", ["f", "a"], b + "invoke_closure", r(VM), r(0), r(1)),
    straight("alone", [], b + "invoke_closure", r(VM)),
    straight("bind", ["a"], b + "make_closure", F("three"), r(0)),
    straight("again", ["f", "a"], b + "make_closure", r(0), r(1)),
    straight("three", ["a", "b", "c"], b + "make_tuple", r(0), r(1), r(2)),
    straight("unbound", [], b + "make_closure"),
    straight("check", ["f"], b + "check_func_info", r(0), C(0)),
    straight("size", ["t"], "ffi.ArraySize", r(0)),
    # Keeps 7 in a register of the caller while another function runs.
    function("keeps", ["a"], 3, ("call", 1, b + "copy", 7), ("call", 2, "three", r(0), r(0), r(0)), ("call", 2, b + "make_tuple", r(0), r(1)), ("ret", 2)),
    function("nothing", [], 0, ("ret", VOID)),
    function("lets-go", ["a"], 1, ("call", VOID, "three", r(0), r(0), r(0)), ("ret", 0)),
    # One iteration: the cell is 1, then 0.
    function("around", ["heap"], 2,
             ("call", 1, b + "make_prim_value", r(0), 1, 0), ("if", 1, 3), ("call", VOID, b + "match_prim_value", 0, r(0), 1, 0, C(0)), ("goto", -3),
             ("call", 1, b + "make_prim_value", r(0), 1, 0), ("ret", 1)),
    function("fails", ["x"], 2, ("call", 1, "inner", r(0)), ("ret", 1)),
    function("inner", ["x"], 2, ("call", 1, b + "copy", r(0)), ("call", 1, b + "shape_of", r(1)), ("ret", 1)),
], ["main "])
wrap = lambda k: function(f"wrap{k}", ["x"], 2, ("call", 1, f"wrap{k // 2}", r(0)), ("call", 1, f"wrap{k // 2}", r(1)), ("ret", 1))
walk = lambda name, registers: {**function(name, ["t"], 3,
    ("call", 1, b + "tuple_getitem", r(0), 0), ("if", 1, 3), ("call", 2, b + "tuple_getitem", r(0), 1), ("call", 1, name, r(2)), ("ret", 1)), "registers": registers}
files["deep"] = assemble([
    straight("end", [], b + "make_tuple", 0),
    straight("wrap1", ["x"], b + "make_tuple", 1, r(0)), *[wrap(1 << k) for k in range(1, 10)],
    walk("walk", 3), walk("wide", 1 << 16),
    function("forever", [], 1, ("call", 0, b + "null_value"), ("goto", -1)),
])
files["same-name"] = assemble([straight("main", ["x"], b + "make_tuple", 1, r(0)), straight("main", ["x"], b + "make_tuple", 2, r(0))])
files["calls-packed"] = assemble([straight("size", ["t"], "ffi.ArraySize", r(0)), straight("lost", ["t"], "nobody.has", r(0))])
weights = [np.array([1, 2, 3], "float32"), np.array([4], "float32"), 5]
files["scoped-constant"] = assemble([straight("main", [], b + "copy", C(0))], weights, [(0, "global.vtcm"), (1, "global"), (2, "global.vtcm")])
files["global-constant"] = assemble([straight("main", [], b + "make_tuple", C(0), C(1))], weights, [(0, "global"), (1, "")])
# Three elements of four bits, a byte each, as 0.16 to 0.20 store them.
small = assemble([straight("main", [], b + "copy", C(0))], [np.array([1, 2, 3], "int8")])
whole = constant(np.array([1, 2, 3], "int8"))[4:]
four_bits = bytearray(whole)
four_bits[29] = 4
assert small.count(whole) == 1 and whole[28:30] == bytes([0, 8])
files["four-bit-constant"] = small.replace(whole, bytes(four_bits))
small = lambda *code, **more: assemble([{**function("main", ["x"], 2, *code), **more}])
pair = lambda *args, kind=1: assemble([
    function("main", ["x"], 2, ("call", 1, "pair", *args), ("ret", 1)),
    {**function("pair", ["a", "b"], 3, *([("call", 2, b + "make_tuple", r(0), r(1)), ("ret", 2)] if kind == 1 else [])), "kind": kind, "arguments": 2}])
files |= {
    "ends-in-a-goto": small(("ret", 0), ("goto", -1)),
    "ends-in-a-call": small(("call", 1, b + "copy", r(0))),
    "branch-of-one": small(("if", 0, 2), ("ret", 0), ("ret", 0)),
    "branch-backwards": small(("ret", 0), ("if", 0, -1), ("ret", 0)),
    "tests-the-machine": small(("if", VM, 2), ("ret", 0), ("ret", 0)),
    "tests-nothing": small(("if", VOID, 2), ("ret", 0), ("ret", 0)),
    "nothing-packed": small(("ret", 0)),
    "returns-nothing": small(("ret", VOID)),
    "too-many-arguments": pair(r(0), r(0), r(0)),
    "just-enough-arguments": pair(r(0), r(0)),
    "compiled-callee": pair(r(0), kind=2),
    "no-names": assemble([{**function("main", [], 2, ("ret", 0)), "arguments": 2}]),
    "a-name-too-many": small(("ret", 0), arguments=0),
    "empty-behind-another": assemble([function("main", ["x"], 2, ("ret", 0)), function("empty", [], 1)]),
    "long-name": assemble([straight("main", ["x"], "n" * 201, r(0)), straight("n" * 200, ["x"], "é" * 200, r(0)), straight("n" * 201, ["x"], b + "copy", r(0))]),
    "texts": assemble([straight("main", [], b + "copy", C(0))], ['a "b" \\ c', "tab\tline\nend\r", "\u200b", 7.0, 1e300, float("inf"), -7, ()]),
}
