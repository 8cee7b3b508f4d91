"""Creates more executables (*.vmexec) and their cases: every builtin with both of its answers, memory, limits, module functions.

The expectations are written here from spec/vm.md and the bytes; `tvmspec check --impl ffi:` runs all cases on the wheel, except those with a
counting device or with functions of this crate.

Run: python machine.py        (in this folder)
"""

import base64, os, struct, sys
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, "../../conformance")
import cases as conformance
from assembler import describe, escaped
from executables import b, files

cases = []

for name, raw in files.items():
    open(name + ".vmexec", "wb").write(raw)
conformance.declare({f"vm/{name}.vmexec": {"hand": "machine.py"} for name in files})

# --- cases ---------------------------------------------------------------------------------------------------------------

HAND = {"hand": "machine.py, from spec/vm.md"}
OWN = {"hand": "machine.py, from spec/vm.md; ours alone"}


def case(id, rules, why, file, steps, accept=None, reject=None, parent=None, devices=None, alive=None, releases="0.16..", op="vm.run", origin=HAND, **args):
    entry = {"id": "vm/" + id, "rules": rules.split(), "releases": releases, "op": op}
    if parent: entry["parent"] = "vm/" + parent
    entry["input"] = {"file": f"vm/{file}.vmexec"}
    args = {**({"steps": steps} if op == "vm.run" else {}), **({"devices": devices} if devices is not None else {}), **args}
    if alive: args["balance"] = True
    if args: entry["args"] = args
    if alive: accept = {"results": accept, "alive": alive}
    if reject:
        kind, rule, *offset = reject.split()
        entry["expect"] = {"reject": {"kind": kind, "rule": rule, **({"offset": int(offset[0])} if offset else {})}}
    else:
        entry["expect"] = {"accept": accept}
        entry["encode"] = False
    entry["why"], entry["origin"] = why, origin
    cases.append(entry)


B = lambda name, *args: [b + name, *args]
S, D, ref = (lambda *e: {"shape": list(e)}), (lambda t: {"dtype": t}), (lambda k: {"ref": k})
data = lambda values, dtype: base64.b64encode(np.array(values, dtype).tobytes()).decode()
T = lambda dtype, shape, values: ["tensor", D(dtype), S(*shape), data(values, dtype if dtype != "uint1" else "uint8")]
shown = lambda dtype, shape, values: {"tensor": dtype, "shape": list(shape), "data": data(values, dtype)}
u8, f32, i64, glob = D("uint8"), D("float32"), D("int64"), "global"


def rejected(prefix, why, parent, kind_rule, file="basic", **variants):
    """Adds a case for every kind of error."""
    rule = kind_rule.split()[1]
    for name, steps in variants.items():
        case(f"{prefix}-{name.replace('_', '-')}", rule, why, file, steps, reject=kind_rule, parent=parent)


def fails(id, rules, why, steps, file="basic", **more):
    """Adds one case for all calls that fail; the requests of other steps are stated separately."""
    plain = [step if isinstance(step, list) else step[0] for step in steps]
    asked = [["@fails", *step] if isinstance(step, list) else step[0] for step in steps]
    case(id, rules, why, file, asked, [{"error": True} if isinstance(step, list) else step[1] for step in steps], **more)


# Checks: both answers of each, at every boundary.
NONE = None
tensor_f32 = T("float32", (2, 3), [[0, 1, 2], [3, 4, 5]])
case("check-tensor-forms", "VM-40", "what is right is not rejected", "basic",
     [tensor_f32, T("bool", (), True), B("check_tensor_info", ref(0), 2, f32, "c"), B("check_tensor_info", ref(0), 2, NONE, "c"), B("check_tensor_info", ref(0), -1, f32, "c"),
      B("check_tensor_info", ref(0), 2, "c"), B("check_tensor_info", ref(0), -1, "c"), B("check_tensor_info", ref(1), 0, D("bool"), "c")],
     [shown("float32", (2, 3), [[0, 1, 2], [3, 4, 5]]), shown("bool", (), True)] + [NONE] * 6)
rejected("check-tensor", "a kernel reads another type, or an axis that is not there", "check-tensor-forms", "type VM-40",
        rank_without_type=[tensor_f32, B("check_tensor_info", ref(0), 3, "c")], rank_0=[tensor_f32, B("check_tensor_info", ref(0), 0, f32, "c")],
        rank_1=[tensor_f32, B("check_tensor_info", ref(0), 1, f32, "c")], rank_below=[tensor_f32, B("check_tensor_info", ref(0), -2, f32, "c")],
        bits=[tensor_f32, B("check_tensor_info", ref(0), 2, D("float64"), "c")], lanes=[tensor_f32, B("check_tensor_info", ref(0), 2, D("float32x2"), "c")],
        any_rank_other_type=[tensor_f32, B("check_tensor_info", ref(0), -1, i64, "c")],
        none=[B("check_tensor_info", NONE, -1, NONE, "c")], shape=[B("check_tensor_info", S(1), -1, "c")])
case("check-shape-forms", "VM-41", "what is right is not rejected", "basic",
     [B("check_shape_info", S(), 0, "c"), B("check_shape_info", S(), -1, "c"), B("check_shape_info", S(7, 8, 9), 3, "c"), B("check_shape_info", S(7), 1, NONE)], [NONE] * 4)
rejected("check-shape", "an extent is missing, or one is left over", "check-shape-forms", "type VM-41",
        one_less=[B("check_shape_info", S(1, 2), 1, "c")], below=[B("check_shape_info", S(1, 2), -2, "c")], none=[B("check_shape_info", NONE, -1, "c")],
        tuple=[B("check_shape_info", [1], 1, "c")], number=[B("check_shape_info", 1, 1, "c")], empty=[B("check_shape_info", S(), 1, "c")])
case("check-tuple-forms", "VM-42", "what is right is not rejected", "basic",
     [B("check_tuple_info", [], 0, "c"), B("check_tuple_info", [1], 1, "c"), B("check_tuple_info", [1, [2], NONE], 3, NONE)], [NONE] * 3)
rejected("check-tuple", "an element is missing, or one is left over", "check-tuple-forms", "type VM-42",
        one_more=[B("check_tuple_info", [1, 2], 1, "c")], any=[B("check_tuple_info", [1, 2], -1, "c")], none=[B("check_tuple_info", NONE, -1, "c")],
        none_of_0=[B("check_tuple_info", NONE, 0, "c")], text=[B("check_tuple_info", "ab", 2, "c")], number=[B("check_tuple_info", 2, 2, "c")])
prim = lambda value, dtype: B("check_prim_value_info", value, D(dtype), "c")
case("check-prim-value-forms", "VM-43", "numbers convert into each other as in C, but floats into nothing else", "basic",
     [prim(5, "bool"), prim(True, "bool"), prim(5, "int8"), prim(False, "int32"), prim(5, "uint8"), prim(True, "uint64"), prim(0.5, "float64"), prim(True, "float16"), prim(-5, "float32")], [NONE] * 9)
case("check-prim-value-handle", "VM-43", "no address is an address", "basic", [prim(NONE, "handle")], [NONE])
rejected("check-prim-value", "the kernel reads the bits as something else", "check-prim-value-forms", "type VM-43",
        float_as_bool=[prim(0.5, "bool")], float_as_uint=[prim(0.5, "uint32")], none_as_int=[prim(NONE, "int64")], none_as_float=[prim(NONE, "float32")],
        text_as_int=[prim("5", "int64")], text_as_float=[prim("5", "float32")], float_as_handle=[prim(0.5, "handle")], tuple_as_int=[prim([1], "int64")],
        int_as_bfloat=[prim(5, "bfloat16")])
case("check-function-forms", "VM-44", "a closure can be called as a function can", "machine",
     [["bind", 1], ["check", ref(0)], B("check_func_info", {"function": b + "copy"}, "c"), B("check_func_info", ref(0), "c")], [{"object": "relax.vm.Closure"}, NONE, NONE, NONE])
rejected("check-function", "what is no function cannot be called", "check-function-forms", "type VM-44",
        none=[B("check_func_info", NONE, "c")], text=[B("check_func_info", "f", "c")], tuple=[B("check_func_info", [1], "c")], number=[B("check_func_info", 1, "c")])
case("check-string-forms", "VM-57", "short texts and long ones are texts", "basic",
     [B("check_string_info", "", "c"), B("check_string_info", "seven b", "c"), B("check_string_info", "more than eight bytes", NONE), B("check_string_info", "é", "c")], [NONE] * 4, releases="0.27..")
for name, value in (("none", NONE), ("tuple", ["x"]), ("shape", S(1))):
    case(f"check-string-{name}", "VM-57", "what is no text has no characters", "basic", [B("check_string_info", value, "c")], reject="type VM-57", parent="check-string-forms", releases="0.27..")

# The heap.
cells = ["tensor", i64, S(3), data([7, 8, 9], "int64")]
after = shown("int64", (3,), [5, 8, 6])
case("match-shape-forms", "VM-45 VM-48", "every code, every cell", "basic",
     [cells, B("match_shape", S(5, 6, 8, 1), ref(0), 4, 1, 0, 1, 2, 3, 1, 2, 99, "c"), B("match_shape", S(5, 6), ref(0), 2, 3, 0, 3, 2, "c"), B("match_shape", S(4), NONE, 1, 0, 4, "c"),
      B("match_shape", S(4), NONE, 1, 2, 0, "c"), T("float32", (), 1), B("match_shape", ref(5), NONE, 0, "c")],
     [after, NONE, NONE, NONE, NONE, shown("float32", (), 1), NONE])
rejected("match-shape", "a symbol means two extents", "match-shape-forms", "malformed VM-45",
        cell_2=[cells, B("match_shape", S(9, 8), ref(0), 2, 3, 2, 3, 0, "c")], second=[cells, B("match_shape", S(1, 2), ref(0), 2, 0, 1, 0, 3, "c")],
        stored_before=[cells, B("match_shape", S(4, 5), ref(0), 2, 1, 0, 3, 0, "c")], tensor=[tensor_f32, B("match_shape", ref(0), NONE, 2, 0, 2, 0, 2, "c")])
rejected("match-shape", "the code says nothing of this value", "match-shape-forms", "type VM-45",
        number=[B("match_shape", 5, NONE, 0, "c")], none=[B("match_shape", NONE, NONE, 0, "c")],
        code_below_0=[B("match_shape", S(1), NONE, 1, -1, 0, "c")], more_extents=[B("match_shape", S(1, 2), NONE, 1, 2, 0, "c")],
        scalar=[T("float32", (), 1), B("match_shape", ref(0), NONE, 1, 2, 0, "c")])
rejected("match-shape", "codes that are not there are read behind the arguments", "match-shape-forms", "type VM-45",
        too_few_codes=[B("match_shape", S(1, 2), NONE, 2, 2, 0, 2)], size_below_0=[B("match_shape", S(), NONE, -1, "c")], too_few_arguments=[B("match_shape", S(), NONE)])
rejected("heap", "memory of another owner is read or written", "match-shape-forms", "missing VM-48",
        store_behind=[cells, B("match_shape", S(1), ref(0), 1, 1, 3, "c")], compare_behind=[cells, B("match_shape", S(1), ref(0), 1, 3, 3, "c")],
        make_before=[cells, B("make_shape", ref(0), 1, 1, -1)], prim_behind=[cells, B("make_prim_value", ref(0), 1, 3)], prim_store_behind=[cells, B("match_prim_value", 1, ref(0), 1, 3)],
        prim_of_none=[B("make_prim_value", NONE, 1, 0)], shape_of_none=[B("make_shape", NONE, 1, 1, 0)])
rejected("heap-of", "its bytes would be taken for extents", "match-shape-forms", "type VM-48",
        uint64=[T("uint64", (4,), [0] * 4), B("make_shape", ref(0), 1, 1, 0)], 
        no_axis=[T("int64", (), 0), B("make_shape", ref(0), 1, 1, 0)], float64=[T("float64", (2,), [0, 0]), B("make_prim_value", ref(0), 1, 0)])
case("heap-behind-an-offset", "VM-46 VM-48", "cell 0 is the first element, not the first byte", "basic",
     [["tensor", i64, S(2), data([7, 8, 9], "int64"), 8], B("make_shape", ref(0), 2, 1, 0, 1, 1)], [shown("int64", (2,), [8, 9]), S(8, 9)])
case("heap-of-a-machine", "VM-48", "extents of 1,000 symbols", "machine",
     [["heap", 3], B("match_shape", S(4, 5, 6), ref(0), 3, 1, 0, 1, 1, 1, 2, "c"), B("make_shape", ref(0), 3, 1, 2, 1, 1, 1, 0), B("shape_of", ref(0)), ["heap", 0], B("shape_of", ref(4)), B("make_shape", ref(4), 1, 0, 3)],
     [shown("int64", (3,), [4, 5, 6]), NONE, S(6, 5, 4), S(3), shown("int64", (0,), []), S(0), S(3)])
case("heap-of-fewer-than-none", "VM-31", "2^64 bytes of heap", "machine", [["heap", -1]], reject="limit VM-31", parent="heap-of-a-machine")
case("make-shape-forms", "VM-46", "shapes of every length", "basic",
     [cells, B("make_shape", NONE, 0), *[B("make_shape", ref(0), k, *sum(([0, at + 1] for at in range(k)), [])) for k in (1, 7, 8, 9, 12)], B("make_shape", ref(0), 9, *[1, 2] * 9), B("make_shape", NONE, 1, 0, -1)],
     [shown("int64", (3,), [7, 8, 9]), S(), *[S(*range(1, k + 1)) for k in (1, 7, 8, 9, 12)], S(*[9] * 9), S(-1)])
rejected("make-shape", "codes that are not there are read behind the arguments", "make-shape-forms", "type VM-46",
        too_few_codes=[B("make_shape", NONE, 2, 0, 1, 0)], size_below_0=[B("make_shape", NONE, -1)], alone=[B("make_shape", NONE)], code_3=[cells, B("make_shape", ref(0), 1, 3, 0)], code_below_0=[B("make_shape", NONE, 1, -1, 0)],
        ninth_code=[B("make_shape", NONE, 9, *[0, 1] * 8, 2, 0)])
case("prim-value-forms", "VM-47", "every code", "basic",
     [cells, B("match_prim_value", 5, ref(0), 2, 0, "c"), B("match_prim_value", 5, ref(0), 1, 0, "c"), B("match_prim_value", 6, ref(0), 1, 2, "c"), B("match_prim_value", 5, ref(0), 3, 0, "c"), B("match_prim_value", 6, ref(0), 0, 6, "c"),
      B("match_prim_value", True, ref(0), 0, 1, "c"), B("make_prim_value", ref(0), 1, 2), B("make_prim_value", ref(0), 0, -3)], [after, NONE, NONE, NONE, NONE, NONE, NONE, 6, -3])
rejected("prim-value", "two values that must agree do not", "prim-value-forms", "malformed VM-47", cell=[cells, B("match_prim_value", 5, ref(0), 3, 0, "c")], operand=[cells, B("match_prim_value", 5, ref(0), 0, 4, "c")])
rejected("prim-value", "a code of a later compiler must not be guessed", "prim-value-forms", "type VM-47", code_4=[cells, B("match_prim_value", 5, ref(0), 4, 0, "c")], make_2=[B("make_prim_value", NONE, 2, 0)], make_below_0=[B("make_prim_value", NONE, -1, 0)])

# Tuples and calls.
case("tuple-forms", "VM-49", "an element is the object that was put in", "basic",
     [B("make_tuple", [1, 2], S(3)), B("tuple_getitem", ref(0), 1), B("tuple_getitem", ref(0), 0), B("tuple_getitem", ref(2), 1), B("make_tuple", ref(2), ref(2)), B("tuple_getitem", ref(4), 1), ["@same", ref(5), ref(2)]],
     [[[1, 2], S(3)], S(3), [1, 2], 2, [[1, 2], [1, 2]], [1, 2], True])
rejected("tuple", "what is not there is read from memory behind", "tuple-forms", "missing VM-49",
        of_two_at_2=[B("tuple_getitem", [1, 2], 2)], empty=[B("tuple_getitem", [], 0)], of_a_shape=[B("tuple_getitem", S(1), 0)], of_none=[B("tuple_getitem", NONE, 0)], of_a_text=[B("tuple_getitem", "ab", 0)],
        reset_before=[B("make_tuple", 1), B("tuple_reset_item", ref(0), -1)], reset_of_none=[B("tuple_reset_item", NONE, 0)], reset_of_a_shape=[B("tuple_reset_item", S(1), 0)])
case("tuple-reset-forms", "VM-58", "the last element, then the first, then one that is gone", "basic",
     [B("make_tuple", 1, [2], 3), B("make_tuple", ref(0)), B("tuple_reset_item", ref(0), 2), B("tuple_reset_item", ref(0), 0), B("tuple_reset_item", ref(0), 0)], [[NONE, [2], NONE], [[NONE, [2], NONE]], NONE, NONE, NONE], releases="0.21..")
case("call-tir-dyn-forms", "VM-54", "extents are the last arguments, however many", "basic",
     [B("call_tir_dyn", {"function": b + "make_tuple"}, S()), B("call_tir_dyn", {"function": b + "make_tuple"}, "a", "b", S(7)), B("call_tir_dyn", {"function": b + "make_tuple"}, S(4, -5, 6))], [[], ["a", "b", 7], [4, -5, 6]])
rejected("call-tir-dyn", "a kernel gets other arguments than it was compiled for", "call-tir-dyn-forms", "type VM-54",
        alone=[B("call_tir_dyn", {"function": b + "make_tuple"})], of_none=[B("call_tir_dyn", {"function": b + "make_tuple"}, NONE)], without_all=[B("call_tir_dyn")])
fails("call-tir-dyn-of-a-number", "VM-54", "what is called is a function", [B("call_tir_dyn", 5, S(1)), B("call_tir_dyn", S(1), S(1))])
case("closure-forms", "VM-28 VM-29", "what is bound last comes first of what is bound", "machine",
     [["bind", "last"], ["again", ref(0), "middle"], ["invoke", ref(1), "first"], ["invoke_closure", ref(1), "1"], ["invoke_closure", ref(0), 1, 2], ["invoke_closure", {"function": b + "make_tuple"}, 1, 2], ["invoke", {"function": b + "make_tuple"}, 3]],
     [{"object": "relax.vm.Closure"}, {"object": "relax.vm.Closure"}, ["first", "middle", "last"], ["1", "middle", "last"], [1, 2, "last"], [1, 2], [3]])
rejected("closure-called-with", "arguments are not made up", "closure-forms", "type VM-60", "machine", too_few=[["bind", 1], ["invoke", ref(0), 1]], too_many=[["bind", 1], ["invoke_closure", ref(0), 1, 2, 3]], one_too_few=[["bind", 1], ["invoke_closure", ref(0), 1]])
rejected("closure-of", "only what can be called is bound", "closure-forms", "type VM-28", "machine", none=[["again", NONE, 1]], a_text=[["again", "f", 1]], a_packed_function=[["again", {"function": b + "copy"}, 1]], nothing=[["unbound"]])
rejected("invoke", "only what can be called is called", "closure-forms", "type VM-29", "machine", none=[["invoke", NONE, 1]], a_text=[["invoke", "f", 1]], a_tuple=[["invoke_closure", [1]]], nothing=[["alone"]])

# Tensors.
row = shown("float32", (2, 3), [[0, 1, 2], [3, 4, 5]])
view = lambda *shape: shown("float32", shape, np.arange(int(np.prod(shape)), dtype="float32"))
case("reshape-forms", "VM-50", "a view is of the same bytes", "basic",
     [tensor_f32, B("reshape", ref(0), S(1, 6)), B("reshape", ref(0), S(3, 1, 2)), ["@memory", ref(0)], ["@memory", ref(1)], ["@memory", ref(2)], T("float32", (1,), [7]), B("reshape", ref(6), S()), ["@drop", ref(6)], T("int8", (0, 4), []), B("reshape", ref(9), S(0))],
     [row, view(1, 6), view(3, 1, 2), 0, 0, 0, NONE, shown("float32", (), 7), NONE, shown("int8", (0, 4), []), shown("int8", (0,), [])])
rejected("reshape", "a view past the tensor reads memory of another owner", "reshape-forms", "type VM-50",
        to_one_more=[tensor_f32, B("reshape", ref(0), S(7, 1))], to_below_0=[tensor_f32, B("reshape", ref(0), S(-1))], to_two_below_0=[tensor_f32, B("reshape", ref(0), S(-2, -3))], to_a_number=[tensor_f32, B("reshape", ref(0), 6)],
        to_none=[tensor_f32, B("reshape", ref(0), NONE)], empty_to_something=[T("float32", (0,), []), B("reshape", ref(0), S(1))], to_too_many=[tensor_f32, B("reshape", ref(0), S(1 << 62, 1 << 62))])
fails("reshape-of-no-tensor", "VM-50", "only a tensor is seen as another", [B("reshape", 5, S(1)), B("reshape", S(1), S(1))])
case("shape-of-forms", "VM-51", "extents of every rank", "basic", [T("float32", (), 1), B("shape_of", ref(0)), T("int8", (0, 2), []), B("shape_of", ref(2)), tensor_f32, B("shape_of", ref(4))],
     [shown("float32", (), 1), S(), shown("int8", (0, 2), []), S(0, 2), row, S(2, 3)])
rejected("shape-of", "only a tensor has extents", "shape-of-forms", "type VM-51", none=[B("shape_of", NONE)], a_shape=[B("shape_of", S(1))], a_tuple=[B("shape_of", [1])], a_text=[B("shape_of", "x")])
for dtype, values in (("int16", [1, -2, 300]), ("int32", [1, -2, 70000]), ("int64", [1, -2, 1 << 40])):
    case(f"tensor-to-shape-of-{dtype}", "VM-52", "extents that a kernel computed, in order, with their sign", "basic", [T(dtype, (3,), values), B("tensor_to_shape", ref(0))], [shown(dtype, (3,), values), S(*values)])
case("tensor-to-shape-of-nothing", "VM-52", "a scalar has a shape, too", "basic", [T("int64", (0,), []), B("tensor_to_shape", ref(0)), ["tensor", i64, S(1), data([7, 8], "int64"), 8], B("tensor_to_shape", ref(2))], [shown("int64", (0,), []), S(), shown("int64", (1,), [8]), S(8)])
rejected("tensor-to-shape", "bytes are taken for extents", "tensor-to-shape-of-int64", "type VM-52",
        bool=[T("bool", (1,), [True]), B("tensor_to_shape", ref(0))], two_axes=[T("int64", (1, 1), [[1]]), B("tensor_to_shape", ref(0))],
        no_axis=[T("int64", (), 1), B("tensor_to_shape", ref(0))], float64=[T("float64", (1,), [1]), B("tensor_to_shape", ref(0))], a_number=[B("tensor_to_shape", 1)], a_shape=[B("tensor_to_shape", S(1))])
conditions = [("bool", True), ("bool", False), ("int8", -1), ("int8", 0), ("uint8", 255), ("uint8", 0), ("int16", 256), ("int16", 0), ("int32", 1 << 16), ("int32", 0), ("int64", 1 << 32), ("int64", 0)]
case("condition-forms", "VM-53", "a flag of every width is true where any bit is", "basic",
     sum(([T(dtype, (), value), B("read_if_cond", ref(2 * at))] for at, (dtype, value) in enumerate(conditions)), []) + [B("read_if_cond", v) for v in (1, 0, -1, True, False, 1 << 40)],
     sum(([shown(dtype, (), value), bool(value)] for dtype, value in conditions), []) + [True, False, True, True, False, True])
case("condition-behind-an-offset", "VM-53", "the first element counts, not the first byte", "basic",
     [["tensor", D("int8"), S(), data([0, 1], "int8"), 1], B("read_if_cond", ref(0)), ["tensor", i64, S(), data([1, 0], "int64"), 8], B("read_if_cond", ref(2))], [shown("int8", (), 1), True, shown("int64", (), 0), False])
rejected("condition", "what is no flag has no truth", "condition-forms", "type VM-53", none=[B("read_if_cond", NONE)], text=[B("read_if_cond", "true")], half=[B("read_if_cond", 0.5)], shape=[B("read_if_cond", S(1))],
        float64=[T("float64", (), 1), B("read_if_cond", ref(0))])
case("copies", "VM-55 VM-56", "`copy` is none, `to_device` is one", "basic",
     [tensor_f32, B("copy", ref(0)), ["@same", ref(0), ref(1)], B("to_device", ref(0), 1, 0), ["@same", ref(0), ref(3)], ["@memory", ref(0)], ["@memory", ref(3)], B("ensure_zero_offset", ref(0)), ["@same", ref(0), ref(7)], B("null_value"), B("memory_manager.clear")],
     [row, row, True, row, False, 0, 1, row, True, NONE, NONE], releases="0.18..")
case("copy-of-a-part", "VM-55", "what lies in front of a tensor is not copied", "basic", [["tensor", D("int32"), S(2), data([1, 2, 3], "int32"), 4], B("to_device", ref(0), 1, 0)], [shown("int32", (2,), [2, 3])] * 2)
fails("to-device-of-no-tensor", "VM-55", "only a tensor is copied, and only to where something is", [B("to_device", 5, 1, 0), (tensor_f32, row), B("to_device", ref(1), 77, 0)])
rejected("to-device", "a number that is cut off names another device", "copies", "type VM-55", type_2_31=[tensor_f32, B("to_device", ref(0), 1 << 31, 0)], id_2_31=[tensor_f32, B("to_device", ref(0), 1, 1 << 31)], type_1_and_2_32=[tensor_f32, B("to_device", ref(0), (1 << 32) + 1, 0)])

# Storage.
Z = {"object": "vm.Storage"}
storage = lambda *shape, device=0, dtype=u8, scope=glob: ["storage", S(*shape), device, dtype, scope]
cut = lambda of, offset, shape, dtype=u8, *scope: B("alloc_tensor", ref(of), offset, S(*shape), dtype, *scope)
case("storage-to-the-last-byte", "VM-33", "a tensor may end where its storage does", "machine", [storage(1), cut(0, 4095, (1,)), cut(0, 4096, (0,)), cut(0, 0, (4096,)), B("shape_of", ref(1)), ["@drop", ref(1)], ["@drop", ref(2)], ["@drop", ref(3)]],
     [Z, NONE, NONE, NONE, S(1), NONE, NONE, NONE])
rejected("tensor", "the kernel would write into its neighbour", "storage-to-the-last-byte", "limit VM-33", "machine",
        one_byte_past=[storage(1), cut(0, 4096, (1,))], one_element_past=[storage(1), cut(0, 4093, (1,), f32)], before=[storage(1), cut(0, -1, (1,))], far_past=[storage(1), cut(0, (1 << 63) - 1, (2,))], below_0=[storage(1), cut(0, 0, (-1,))],
        second_page=[storage(4096), cut(0, 1, (4096,))], of_2_64=[storage(1), cut(0, 0, (1 << 62, 1 << 62))])
rejected("tensor-of", "a tensor is cut from storage", "storage-to-the-last-byte", "type VM-33", "machine",
        a_number=[B("alloc_tensor", 5, 0, S(1), u8)], none=[B("alloc_tensor", NONE, 0, S(1), u8)], a_tensor=[T("int8", (4,), [0] * 4), B("alloc_tensor", ref(0), 0, S(1), u8)],
        three_arguments=[storage(1), B("alloc_tensor", ref(0), 0, S(1))])
case("storage-sizes", "VM-31 VM-32", "bytes of the type times extents, in pages", "machine",
     sum(([["storage", S(*shape), 0, D(dtype), glob], cut(3 * at, pages * 4096, (0,)), ["@fails", b + "alloc_tensor", ref(3 * at), pages * 4096, S(1), u8]] for at, (shape, dtype, pages) in enumerate((((4096,), "uint8", 1), ((4097,), "uint8", 2), ((1024,), "float32", 1), ((1025,), "float32", 2), ((33, 31), "int32", 1), ((2, 3, 700), "int8", 2)))), []),
     [Z, {"tensor": "uint8", "shape": [0], "data": ""}, {"error": True}] * 6)
case("storage-without-scope", "VM-31", "the default scope has no name", "machine", [["plain", S(1), 0, u8], cut(0, 0, (0,))], [Z, shown("uint8", (0,), [])])
rejected("storage", "a dynamic shape gone wrong", "storage-sizes", "limit VM-31", "machine", of_2_64=[storage(1 << 32, 1 << 32)], below_0=[storage(4, -1)], twice_below_0=[storage(-4, -1)], of_2_63_floats=[storage(1 << 62, dtype=f32)])
rejected("storage", "an argument in another's place", "storage-sizes", "type VM-31", "machine", of_a_number=[["storage", 64, 0, u8, glob]], without_type=[["short", S(1), 0]])
rejected("storage", "an index past the devices reads an allocator from nowhere", "storage-sizes", "missing VM-14", "machine", device_1=[storage(1, device=1)], device_below=[storage(1, device=-2)])
fill = lambda values: T("uint8", (len(values),), values)
case("storage-is-its-own", "VM-32 VM-33", "two tensors that live are never in one place", "machine",
     [storage(40001), storage(40001), cut(0, 0, (1,)), cut(1, 0, (1,)), ["@memory", ref(2)], ["@memory", ref(3)], cut(0, 0, (4,), f32), ["@memory", ref(6)], cut(0, 64, (4,), f32), ["@memory", ref(8)], *[["@drop", ref(k)] for k in (0, 1, 2, 3, 6, 8)]],
     [NONE, NONE, NONE, NONE, 0, 1, NONE, 0, NONE, 2] + [NONE] * 6)
case("pool-returns-the-same-again", "VM-32", "a model that runs for days must not fill memory with pages", "machine",
     [storage(50001), cut(0, 0, (1,)), ["@memory", ref(1)], ["@drop", ref(0)], ["@drop", ref(1)], ["size", []], storage(50009), cut(6, 0, (1,)), ["@memory", ref(7)], ["@drop", ref(7)]], [NONE, NONE, 0, NONE, NONE, 0, Z, NONE, 0, NONE])
case("pool-waits-for-the-tensor", "VM-33", "memory that is free while a tensor is in it is written by two", "machine",
     [storage(60001), cut(0, 0, (1,)), ["@memory", ref(1)], ["@drop", ref(0)], storage(60001), cut(4, 0, (1,)), ["@memory", ref(5)], ["@drop", ref(1)], ["@drop", ref(5)]], [NONE, NONE, 0, NONE, Z, NONE, 1, NONE, NONE])

# Live objects on a counting device.
FAR, NAIVE = [98, 0, 2, 1, 0, 2], [98, 0, 1, 1, 0, 1]
gone = lambda allocations, copies=0: {"spaces": 0, "bytes": 0, "streams": 0, "allocations": allocations, "copies": copies}
live = lambda spaces, bytes, allocations, copies=0: {"spaces": spaces, "bytes": bytes, "streams": 0, "allocations": allocations, "copies": copies}
far = lambda id, rules, why, steps, accept, end, file="machine", devices=FAR, **more: case(id, rules, why, file, steps, accept, devices=devices, alive=end, origin=OWN, **more)
A, drop = ["@alive"], lambda k: ["@drop", ref(k)]
far("alive-pooled", "VM-32", "what is dropped is kept for the same size, and freed with the machine", [storage(100), A, drop(0), A, storage(4096), A, storage(4097), A, storage(1), A],
    [NONE, live(1, 4096, 1), NONE, live(1, 4096, 1), Z, live(1, 4096, 1), Z, live(2, 12288, 2), Z, live(3, 16384, 3)], gone(3))
far("alive-naive", "VM-30 VM-32", "without a pool memory is exactly what was asked for, and is gone when it is dropped", [storage(100), A, drop(0), A, storage(100), A], [NONE, live(1, 100, 1), NONE, live(0, 0, 1), Z, live(1, 100, 2)], gone(2), devices=NAIVE)
far("alive-under-tensors", "VM-33", "a tensor keeps its storage", [storage(100), cut(0, 0, (1,)), drop(0), A, storage(100), A, drop(1), storage(100), A, drop(4), drop(7), A], [NONE, NONE, NONE, live(1, 4096, 1), NONE, live(2, 8192, 2), NONE, NONE, live(2, 8192, 2), NONE, NONE, live(2, 8192, 2)], gone(2))
far("alive-after-clear", "VM-32", "`memory_manager.clear` frees what nothing uses, and nothing else", [storage(100), storage(100), drop(0), A, B("memory_manager.clear"), A, storage(100), A], [NONE, Z, NONE, live(2, 8192, 2), NONE, live(1, 4096, 2), Z, live(2, 8192, 3)], gone(3))
far("alive-when-memory-runs-out", "VM-32", "what the pool keeps goes back before a request fails", [storage(100), drop(0), ["@no_memory", 0], storage(5000), A, storage(100), A], [NONE, NONE, NONE, Z, live(1, 8192, 3), Z, live(2, 12288, 4)], gone(4))
far("alive-after-an-error", "VM-32", "a call that fails keeps nothing", [["@fails", "storage", S(-1), 0, u8, glob], ["@fails", "shape", S(100), S(10000)], A], [{"error": True}] * 2 + [live(0, 0, 0)], gone(0))
far("alive-constants", "VM-13", "weights lie on the first device once, as long as the machine", [A, ["constants"], A, B("tuple_getitem", ref(1), 0), B("to_device", ref(3), 1, 0)],
    [live(1, 12, 1, 1), [{"device": [98, 0]}, S(2, -1), D("float32"), "seven", 7, 0.5, -9, NONE], live(1, 12, 1, 1), {"device": [98, 0]}, shown("float32", (1, 3), [[1, 2, 3]])], gone(1, 2), file="basic")
far("alive-copies", "VM-55", "a copy is memory of its own, and goes with its last user", [tensor_f32, B("to_device", ref(0), 98, 0), A, B("reshape", ref(1), S(6)), drop(1), A, B("to_device", ref(3), 98, 1), A, drop(3), A, B("to_device", ref(6), 1, 0)],
    [row, NONE, live(1, 24, 1, 1), NONE, NONE, live(1, 24, 1, 1), {"device": [98, 1]}, live(2, 48, 2, 2), NONE, live(1, 24, 2, 2), view(6)], gone(2, 3))
far("offset-on-a-device", "VM-33", "where addresses mean nothing an offset is one of bytes", [storage(100), cut(0, 64, (2,), f32), B("ensure_zero_offset", ref(1)), ["@same", ref(1), ref(2)], ["@memory", ref(1)], ["@memory", ref(2)], cut(0, 0, (2,), f32), B("ensure_zero_offset", ref(6)), ["@same", ref(6), ref(7)]],
    [Z, {"device": [98, 0]}, {"device": [98, 0]}, False, 0, 1, {"device": [98, 0]}, {"device": [98, 0]}, True], gone(2, 1), releases="0.18..")
far("conditions-on-a-device", "VM-52 VM-53", "what decides a branch was computed on the device", [T("bool", (), True), B("to_device", ref(0), 98, 0), B("read_if_cond", ref(1)), T("int64", (2,), [3, 4]), B("to_device", ref(3), 98, 0), B("tensor_to_shape", ref(4)), T("int8", (), 0), B("to_device", ref(6), 98, 0), B("read_if_cond", ref(7))],
    [shown("bool", (), True), {"device": [98, 0]}, True, shown("int64", (2,), [3, 4]), {"device": [98, 0]}, S(3, 4), shown("int8", (), 0), {"device": [98, 0]}, False], gone(3, 6))
far("heap-on-the-host", "VM-48", "extents are computed by the host, whatever runs the kernels", [["heap", 2], B("match_shape", S(4, 5), ref(0), 2, 1, 0, 1, 1, "c"), storage(7, device=1), storage(7, device=-1), A], [shown("int64", (2,), [4, 5]), NONE, Z, Z, live(0, 0, 0)], gone(0))
case("heap-without-a-host", "VM-14", "a shape heap on a device is not the host's to write", "machine", [["heap", 2]], reject="missing VM-14", parent="heap-on-the-host", devices=[98, 0, 2], origin=OWN)
case("heap-on-a-device", "VM-48", "the host cannot read it", "machine", [T("int64", (1,), [0]), B("to_device", ref(0), 98, 0), B("make_shape", ref(1), 1, 1, 0)], reject="type VM-48", parent="heap-on-the-host", devices=FAR, origin=OWN)
case("tensor-in-texture-of-a-device", "VM-33", "a view that the device does not have", "machine", [storage(64), cut(0, 0, (2, 2), f32, "global.texture")], reject="unsupported VM-33", parent="tensor-in-scope-of-a-device", devices=FAR, origin=OWN, releases="0.23..")
far("tensor-in-scope-of-a-device", "VM-33", "the default scope has two names", [storage(64), cut(0, 0, (2, 2), f32, "global"), cut(0, 0, (2, 2), f32, ""), storage(64, scope="")], [Z, {"device": [98, 0]}, {"device": [98, 0]}, Z], gone(2), releases="0.23..")
far("inputs-go-to-the-device", "VM-62", "kernels of the device cannot read the host", [tensor_f32, ["set_input", "pair", ref(0), [ref(0), 5]], A, ["invoke_stateful", "pair"], ["get_output", "pair", 0], ["get_output", "pair", 1, 0], ["get_output", "pair", 1, 1], B("to_device", ref(5), 1, 0), ["set_input", "pair", ref(4), 7], A],
    [row, NONE, live(3, 60, 3, 3), NONE, {"device": [98, 0]}, {"device": [98, 0]}, 5, row, NONE, live(3, 60, 3, 4)], gone(3, 4), file="basic")
far("saved-on-the-device", "VM-65", "what is bound is where the kernels are", [tensor_f32, ["save_function", "pair", "bound", True, ref(0), 1], ["bound"], A], [row, NONE, [{"device": [98, 0]}, 1], live(2, 36, 2, 2)], gone(2, 2), file="basic")
case("inputs-stay-on-the-host", "VM-62", "a copy of every input would cost more than a small model", "basic", [tensor_f32, ["set_input", "same", ref(0)], ["invoke_stateful", "same"], ["get_output", "same"], ["@same", ref(0), ref(3)]], [row, NONE, NONE, row, True])

# The interpreter.
case("nested-registers", "VM-20 VM-24", "a callee has registers of its own", "machine", [["keeps", "a"], ["size", [1, 2, 3]]], [["a", 7], 3])
case("function-of-nothing", "VM-05", "a function may return nothing", "machine", [["nothing"]], [NONE])
case("result-of-a-function-is-dropped", "VM-20", "void drops what a function returns, too", "machine", [["lets-go", 1]], [1])
case("goto-backwards", "VM-22", "a loop ends when its condition says so", "machine", [["tensor", i64, S(1), data([1], "int64")], ["around", ref(0)], ["tensor", i64, S(1), data([0], "int64")], ["around", ref(2)]], [shown("int64", (1,), [0]), 0, shown("int64", (1,), [0]), 0])
case("two-of-one-name", "PAY-95", "the last of two functions with one name counts", "same-name", [["main", 7], ["set_input", "main", 8], ["invoke_stateful", "main"], ["get_output", "main", 0]], [[2, 7], NONE, NONE, 2])
case("missing-packed-function", "VM-11", "found before anything runs", "calls-packed", [["size", [1]]], reject="missing VM-11", parent="nested-registers")
build, at, left = [["end"]], 0, 999
for k in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
    if left >= k:
        build.append([f"wrap{k}", ref(at)])
        at, left = len(build) - 1, left - k
hidden = [drop(k) for k in range(len(build))]
deep = build + [["walk", ref(at)]] + hidden
case("deepest", "VM-25", "1,000 functions deep is not too deep", "deep", deep, [NONE] * len(build) + [0] + [NONE] * len(hidden))
one_more = build + [["wrap1", ref(at)], ["@fails", "walk", ref(at + 1)], ["walk", ref(at)]]
case("one-deeper", "VM-25", "and one more is, but only once", "deep", one_more + [drop(k) for k in range(at + 2)], [NONE] * (at + 2) + [{"error": True}, 0] + [NONE] * (at + 2), origin={"hand": "the wheel goes on until its stack is full"})
case("too-deep-by-one", "VM-25", "a stack overflow takes the process and everybody in it", "deep", build + [["wrap1", ref(at)], ["walk", ref(at + 1)], *[drop(k) for k in range(at + 2)]], reject="limit VM-25", parent="deepest", origin={"hand": "the wheel goes on until its stack is full"})
wide = lambda inner: [["end"], *[["wrap1", ref(k)] for k in range(inner)], ["wide", ref(inner)], *[drop(k) for k in range(inner + 1)]]
case("widest", "VM-25", "32 functions of 65,536 registers inside another are not too many", "deep", wide(32), [NONE] * 33 + [0] + [NONE] * 33)
case("too-wide-by-one", "VM-25", "33 are", "deep", wide(33)[:35], reject="limit VM-25", parent="widest", origin={"hand": "the wheel takes as much memory as there is"})
starts, total = {}, 0
for made in describe(files["machine"])["functions"]:
    starts[made["name"]], total = total, total + len(made["code"])
inner, keeps, three = (starts[name] for name in ("inner", "keeps", "three"))
case("where-it-failed", "VM-61", "a model has 1,000 calls of one builtin", "machine", [["@where", "fails", 5], ["@where", "inner", 5], ["@where", "nobody"], ["@where", "nothing"]],
     [[f"VM function `inner`, instruction {inner + 1}: %1 = vm.builtin.shape_of(%1)", f"VM function `fails`, instruction {inner - 2}: %1 = inner(%0)"], [f"VM function `inner`, instruction {inner + 1}: %1 = vm.builtin.shape_of(%1)"], [], NONE], origin=OWN)
case("where-it-was-too-deep", "VM-25", "the first twelve places say enough", "deep", build + [["wrap1", ref(at)], ["@where", "walk", ref(at + 1)], *[drop(k) for k in range(at + 2)]], [NONE] * (at + 2) + [["VM function `walk`, instruction 34: %1 = walk(%2)"] * 12] + [NONE] * (at + 2), origin=OWN)
case("limited", "VM-22", "code of another owner ends", "deep", [["@own", "limited", 0, "end"], ["@own", "limited", 1, "end"], ["@own", "limited", 2, "wrap2", 1], ["@own", "limited", 3, "wrap2", 1]], [[False, True], [True, True], [False, True], [True, True]], origin=OWN)
case("limited-jumps", "VM-22", "a loop that never ends is ended", "machine", [["heap", 1], B("match_shape", S(0), ref(0), 1, 1, 0, "c"), ["@own", "limited", 1, "around", ref(0)], B("match_shape", S(1), ref(0), 1, 1, 0, "c"), ["@own", "limited", 1, "around", ref(0)], B("match_shape", S(1), ref(0), 1, 1, 0, "c"), ["@own", "limited", 2, "around", ref(0)]],
     [shown("int64", (1,), [0]), NONE, [True, True], NONE, [False, True], NONE, [True, True]], origin=OWN)
case("observed", "VM-20", "a profile names every call, once", "machine", [["@own", "observed", "keeps", 1], ["@own", "observed", "nothing"], ["@own", "timed", 2, 3, "nothing"], ["@own", "timed", 1, 1, "size", []], ["@fails", b + "copy"]],
     [[["keeps", keeps, b + "copy", 1], ["three", three, b + "make_tuple", 3], ["keeps", keeps + 1, "three", 3], ["keeps", keeps + 2, b + "make_tuple", 2]], [], [3, True], [1, True], NONE], origin=OWN)
BUILTINS = ["alloc_shape_heap", "alloc_storage", "alloc_tensor", "call_tir_dyn", "check_func_info", "check_prim_value_info", "check_shape_info", "check_string_info", "check_tensor_info", "check_tuple_info", "copy", "ensure_zero_offset", "invoke_closure", "make_closure", "make_prim_value", "make_shape", "make_tuple", "match_prim_value", "match_shape", "memory_manager.clear", "null_value", "read_if_cond", "reshape", "shape_of", "tensor_to_shape", "to_device", "tuple_getitem", "tuple_reset_item"]
case("what-can-be-called", "VM-61", "packed functions are internal to the machine", "basic", [["@own", "functions"]], [[["same", "pair", "choose", "nested", "constants", "stale", "drops"], [[[1, 0]], [[98, 0], [1, 0]], [[98, 0], [1, 0]]], "relax.VirtualMachine", [b + name for name in BUILTINS]]], origin=OWN)

def as_text(raw):
    """Returns a whole executable in lines, as spec/vm.md describes its parts."""
    made, at = describe(raw), 0
    lines = ["constants"] * bool(made["constants"]) + [f"  c{index} = {text}" for index, text in enumerate(made["constants"])]
    for each in made["functions"]:
        if each["kind"] == "packed":
            continue
        name, *params = ("".join(map(escaped, name)) for name in [each["name"], *each["params"]])
        lines.append(f"function {name}({', '.join(params)}), {each['registers']} registers")
        for line in each["code"]:
            lines.append(f"{at:>5}  {line}")
            at += 1
    names = [each["name"] for each in made["functions"] if each["kind"] == "packed"]
    return lines + [f"packed {''.join(map(escaped, name))}" for name in dict.fromkeys(names)]


for name in ("basic", "deep", "texts", "nothing-packed"):
    raw = open(name + ".vmexec", "rb").read() if name == "basic" else files[name]
    case(f"text-of-{name}", "VM-01", "who debugs a model reads its code", name, [["@own", "text"]], [as_text(raw)], origin=OWN)
case("constants-in-scope", "VM-13", "the default scope has two names", "global-constant", [["main"]], [[shown("float32", (3,), [1, 2, 3]), shown("float32", (1,), [4])]], releases="0.23..")
case("four-bit-constant", "VM-13", "an element below eight bits has a byte in files of 0.16 to 0.20", "four-bit-constant", [["main"]], [{"tensor": "int4", "shape": [3], "data": data([1, 2, 3], "int8")}], origin=OWN)
five = T("uint8", (1, 2, 1, 2, 1), [[[[[1], [2]]], [[[3], [4]]]]])
six = T("uint8", (1, 2, 1, 2), [[[[1, 2]], [[3, 4]]]])
case("tensors-of-many-axes", "VM-33 VM-55", "extents of every rank", "machine", [five, B("to_device", ref(0), 1, 0), B("shape_of", ref(1)), six, B("to_device", ref(3), 1, 0), B("shape_of", ref(4)), storage(16), cut(6, 0, (1, 1, 2, 1, 2, 1, 1)), B("shape_of", ref(7)), ["@drop", ref(7)], T("uint8", (), 9), B("to_device", ref(10), 1, 0)],
     [shown("uint8", (1, 2, 1, 2, 1), [1, 2, 3, 4])] * 2 + [S(1, 2, 1, 2, 1)] + [shown("uint8", (1, 2, 1, 2), [1, 2, 3, 4])] * 2 + [S(1, 2, 1, 2), Z, NONE, S(1, 1, 2, 1, 2, 1, 1), NONE, shown("uint8", (), 9), shown("uint8", (), 9)])

# Module functions.
case("module-functions", "VM-62 VM-63", "frontends ask for these by name", "basic",
     [["get_function_arity", "choose"], ["get_function_arity", "constants"], ["get_function_param_name", "choose", 0], ["get_function_param_name", "choose", 2], ["@executable", "has_function", "same"], ["@executable", "has_function", b + "copy"], ["@executable", "has_function", "nobody"],
      ["set_input", "same", 1], ["set_input", "same", 2], ["invoke_stateful", "same"], ["get_output", "same"], ["get_output_arity", "same"], ["set_input", "same", 3], ["get_output", "same"], ["invoke_stateful", "same"], ["get_output", "same"]],
     [3, 0, "c", "b", True, True, False, NONE, NONE, NONE, 2, -1, NONE, 2, NONE, 3])
case("outputs-within-outputs", "VM-63", "each index goes a step deeper", "basic",
     [["set_input", "same", [1, [2, [3, 4]]]], ["invoke_stateful", "same"], ["get_output_arity", "same"], ["get_output_arity", "same", 1], ["get_output_arity", "same", 1, 1], ["get_output_arity", "same", 1, 1, 0], ["get_output", "same", 1, 1, 1], ["get_output", "same", 0]], [NONE, NONE, 2, 2, 2, -1, 4, 1])
ran = [["set_input", "same", [1, 2]], ["invoke_stateful", "same"]]
rejected("output", "an element that is not there", "outputs-within-outputs", "missing VM-63", past_the_end=ran + [["get_output", "same", 2]], before_the_start=ran + [["get_output", "same", -1]], inside_a_number=ran + [["get_output", "same", 0, 0]], arity_before_run=[["get_output_arity", "same"]], of_another=ran + [["get_output", "pair"]])
rejected("output", "a tuple does not travel", "outputs-within-outputs", "type VM-63", within_is_a_tuple=[["set_input", "same", [[1]]], ["invoke_stateful", "same"], ["get_output", "same", 0]])
rejected("param-name", "a parameter that is not there has no name", "module-functions", "missing VM-62", below_0=[["get_function_param_name", "pair", -1]], of_none=[["get_function_param_name", "constants", 0]])
rejected("unknown-function-of", "a typo in the function name", "module-functions", "missing VM-61", arity=[["get_function_arity", "nobody"]], param_name=[["get_function_param_name", "nobody", 0]], stateful=[["invoke_stateful", "nobody"]], saving=[["save_function", "nobody", "x", True]], a_packed_name=[["get_function_arity", b + "copy"]])
rejected("too-few-for", "arguments that are not there are not made up", "module-functions", "type VM-60", set_input=[["set_input"]], set_input_of_pair=[["set_input", "pair", 1]], set_input_of_many=[["set_input", "pair", 1, 2, 3]], invoke_stateful=[["invoke_stateful"]], get_output=[["get_output"]], get_output_arity=[["get_output_arity"]],
        get_function_arity=[["get_function_arity"]], param_name=[["get_function_param_name", "pair"]], save_function=[["save_function", "pair", "x"]], invoke_closure=[["invoke_closure"]], set_instrument=[["set_instrument"]], has_function=[["@executable", "has_function"]], params=[["set_input_with_param_module", "pair"]],
        a_function=[["same"]], a_function_more=[["same", 1, 2]])
case("param-module", "VM-62", "weights come in a module", "basic", [["set_input_with_param_module", "pair", "x", {"params": 5}], ["invoke_stateful", "pair"], ["get_output", "pair", 0], ["get_output", "pair", 1], ["set_input_with_param_module", "same", {"params": 3}], ["invoke_stateful", "same"], ["get_output", "same"]], [NONE, NONE, "x", 5, NONE, NONE, 3])
fails("param-module-that-is-none", "VM-62", "what is no module has no weights", [["set_input_with_param_module", "pair", "x", 5], ["set_input_with_param_module", "pair", "x", NONE]])
case("saved-forms", "VM-64 VM-65", "what is saved is found first, and can be saved again", "basic",
     [["save_function", "pair", "half", True, 2], ["half", 1], ["save_function", "half", "whole", True, 9], ["whole"], ["save_function", "half", "silent", False, 9], ["silent"], ["save_function", "silent", "still", True], ["still"], ["save_function", "same", "pair", True], ["pair", 5], ["get_function_arity", "pair"]],
     [NONE, [1, 2], NONE, [9, 2], NONE, NONE, NONE, NONE, NONE, 5, 2])
rejected("saved-with", "a saved function takes what is left", "saved-forms", "type VM-60", too_many=[["save_function", "pair", "whole", True, 1, 2], ["whole", 3]], too_few=[["save_function", "pair", "half", True, 1], ["half"]])
log = lambda name, before, result, *args: [{"object": "ffi.Function"}, name, before, result, *args]
case("instrument", "VM-66", "a debugger looks at every kernel, before and after", "machine", [["set_instrument", {"watch": 0}], ["size", [1, 2]], ["@log"], ["set_instrument", {"watch": 2}], ["size", [1]], ["@log"]],
     [NONE, 2, [log("ffi.ArraySize", True, NONE, [1, 2]), log("ffi.ArraySize", False, 2, [1, 2])], NONE, 1, [log("ffi.ArraySize", True, NONE, [1]), log("ffi.ArraySize", False, 1, [1])]])
case("instrument-skips", "VM-66", "a kernel that crashes is left out", "machine", [["set_instrument", {"watch": 1}], ["size", [1, 2]], ["@log"], ["invoke_closure", {"function": "ffi.ArraySize"}, [1]]], [NONE, NONE, [log("ffi.ArraySize", True, NONE, [1, 2])], 1])
fails("instrument-that-is-none", "VM-66", "what is no function is not called", [["set_instrument", 5], ["set_instrument", "nobody.has"], (["same", 1], 1)])
case("instrument-ends", "VM-66", "watching costs time", "machine", [["set_instrument", {"watch": 1}], ["set_instrument", NONE], ["size", [1, 2]], ["@log"]], [NONE, NONE, 2, []], origin=OWN)
case("instrument-by-name", "VM-66", "a remote debugger cannot pass a function", "machine", [["set_instrument", b + "copy", {"watch": 0}], ["size", [1]], ["@log"]], [NONE, 1, [log("ffi.ArraySize", True, NONE, [1]), log("ffi.ArraySize", False, 1, [1])]])
rejected("before-devices", "a machine without memory crashes at its first constant", "same", "missing VM-30", a_function=[["@unready", "same", 1]], set_input=[["@unready", "set_input", "same", 1]])
case("devices-twice", "VM-30", "half of the tensors would be on other devices", "basic", [["vm_initialization", 1, 0, 2]], reject="duplicate VM-30", parent="same", origin={"hand": "the wheel starts anew"})
rejected("devices", "a number that is cut off names another device", "same", "type VM-30", allocator_0=[["@unready", "vm_initialization", 1, 0, 0]], allocator_3=[["@unready", "vm_initialization", 1, 0, 3]], type_2_31=[["@unready", "vm_initialization", 1 << 31, 0, 2]], id_2_31=[["@unready", "vm_initialization", 1, 1 << 31, 2]],
        four_numbers=[["@unready", "vm_initialization", 1, 0, 2, 1]], second_allocator=[["@unready", "vm_initialization", 1, 0, 2, 1, 0, 9]])

# Executables that are read.
decode = lambda id, rules, why, file=None, **more: case(id, rules, why, file or id, None, op="vm.decode", origin={"hand": "machine.py, from the format"}, **more)
for id, rules, why in (("ends-in-a-goto", "VM-01", "a loop may be last"), ("branch-of-one", "VM-02", "the shortest branch"), ("returns-nothing", "VM-05", "a function of no value"), ("just-enough-arguments", "VM-03", "two for two"), ("no-names", "VM-04", "names are optional"),
                       ("scoped-constant", "VM-01", "a weight may lie in memory of an accelerator"), ("long-name", "VM-01", "a name of a megabyte is not in every line"), ("texts", "VM-01", "constants of every kind"), ("machine", "VM-01 VM-03", "who debugs a model reads its code")):
    decode("decode-" + id, rules, why, id, accept=describe(files[id]))


def at(name, index):
    """Byte offset of the first word of instruction `index`: the words are the last vector of a file, and their offsets the one before."""
    raw = files[name]
    for count in range(1, len(raw) // 8):
        start = len(raw) - 8 * count
        if struct.unpack_from("<Q", raw, start - 8)[0] == count:
            before = start - 8
            for instructions in range(1, count + 1):
                table = before - 8 * instructions
                if struct.unpack_from("<Q", raw, table - 8)[0] == instructions:
                    places = struct.unpack_from(f"<{instructions}q", raw, table)
                    if places[0] == 0 and list(places) == sorted(places) and places[-1] < count:
                        return start + 8 * places[index] if index < instructions else start
    raise ValueError(name)


for id, kind, rule, index, parent, why in (
    ("ends-in-a-call", "malformed", "VM-01", 0, "decode-ends-in-a-goto", "the machine runs into the next function"),
    ("empty-behind-another", "malformed", "VM-01", 1, "decode-ends-in-a-goto", "a function without instructions runs those of another"), ("branch-backwards", "malformed", "VM-02", 1, "decode-branch-of-one", "the machine never ends"),
    ("tests-the-machine", "malformed", "VM-05", 0, "decode-branch-of-one", "an address is no truth"), ("tests-nothing", "malformed", "VM-05", 0, "decode-branch-of-one", "nothing is no truth"),
    ("too-many-arguments", "type", "VM-03", 0, "decode-just-enough-arguments", "an argument is lost"), ("compiled-callee", "type", "VM-03", 0, "decode-just-enough-arguments", "it reads registers that were never set"),
    ("a-name-too-many", "malformed", "VM-04", 0, "decode-no-names", "get_function_arity lies"),
):
    decode("decode-" + id, rule, why, id, reject=f"{kind} {rule} {at(id, index)}", parent=parent)

assert len({entry["id"] for entry in cases}) == len(cases), sorted(e["id"] for e in cases)
conformance.add("vm", cases)
print(len(cases), "cases,", len(files), "executables")
