"""Creates the executables without kernels (*.vmexec) and conformance/vm/cases.

Executables are assembled here, word by word; the disassembly that cases expect is also written here, only from the format.
The expected result of a run is that of the VM of the apache-tvm 0.27 wheel for the same file and the same steps: accepted results
are taken from it, and it must reject what a case rejects, except where it crashes or does not check (marked).

Run: python cases.py        (in this folder)
"""

import base64, os, sys
import numpy as np
import tvm, tvm_ffi

os.chdir(os.path.dirname(os.path.abspath(__file__)))
from assembler import C, F, R, VM, VOID, assemble, constant, describe, function

# --- the wheel's VM ------------------------------------------------------------------------------------------------------

load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.relax.VMExecutable")


def to_wheel(value, results):
    if isinstance(value, list): return tuple(to_wheel(v, results) for v in value)
    if not isinstance(value, dict): return value
    if "ref" in value: return results[value["ref"]]
    if "shape" in value: return tvm_ffi.Shape(value["shape"])
    if "dtype" in value: return tvm_ffi.dtype(value["dtype"])
    return tvm_ffi.get_global_func(value["function"])


def from_wheel(value):
    if value is None or isinstance(value, (bool, int, float)): return value
    if isinstance(value, tvm_ffi.dtype): return {"dtype": str(value)}
    if isinstance(value, str): return str(value)
    if isinstance(value, tvm_ffi.Shape): return {"shape": list(value)}
    if isinstance(value, tvm_ffi.Tensor):
        array = np.from_dlpack(value)
        return {"tensor": str(value.dtype), "shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode()}
    if isinstance(value, tvm_ffi.Array): return [from_wheel(v) for v in value]
    return {"object": type(value).__name__ if not hasattr(value, "type_key") else value.type_key}


def wheel(raw, steps, devices):
    machine = load(raw).get_function("vm_load_executable")()
    machine.get_function("vm_initialization")(*devices)
    results = []
    for name, *args in steps:
        args = [to_wheel(a, results) for a in args]
        if name == "tensor":
            kind, shape, data = args
            array = np.frombuffer(base64.b64decode(data), dtype=str(kind)).reshape(list(shape)).copy()
            results.append(tvm.runtime.tensor(array))
            continue
        if name.startswith("vm.builtin."): call = tvm_ffi.get_global_func(name)
        else: call = machine.get_function(name)
        if call is None: raise RuntimeError(f"no function {name}")
        results.append(call(*args))
    return [from_wheel(v) for v in results]


# --- executables ---------------------------------------------------------------------------------------------------------

r = R
b = "vm.builtin."
files = {
    "basic": assemble([
        function("same", ["x"], 1, ("ret", 0)),
        function("pair", ["a", "b"], 3, ("call", 2, b + "make_tuple", r(0), r(1)), ("ret", 2)),
        function("choose", ["c", "a", "b"], 4,
                 ("if", 0, 3), ("call", 3, b + "copy", r(1)), ("goto", 2), ("call", 3, b + "copy", r(2)), ("ret", 3)),
        function("nested", ["a"], 3, ("call", 1, "pair", r(0), 5), ("call", 2, "pair", r(1), C(3)), ("ret", 2)),
        function("constants", [], 1,
                 ("call", 0, b + "make_tuple", C(0), C(1), C(2), C(3), C(4), C(5), -9, r(VOID)), ("ret", 0)),
        function("stale", ["c"], 2, ("if", 0, 2), ("call", 1, b + "copy", 42), ("ret", 1)),
        function("drops", ["a"], 1, ("call", VOID, b + "make_tuple", r(0)), ("ret", 0)),
    ], [np.array([[1, 2, 3]], "float32"), (2, -1), "dtype:float32", "seven", 7, 0.5]),
    "heap": assemble([
        function("main", ["x"], 3,
                 ("call", 1, b + "alloc_shape_heap", r(VM), 2),
                 ("call", VOID, b + "match_shape", r(0), r(1), 2, 1, 0, 1, 1, C(0)),
                 ("call", 2, b + "make_shape", r(1), 3, 1, 1, 1, 0, 0, 4),
                 ("ret", 2)),
    ], ["main "]),
    "storage": assemble([
        function("shape", ["n", "shape"], 4,
                 ("call", 2, b + "alloc_storage", r(VM), r(0), 0, C(0), C(1)),
                 ("call", 3, b + "alloc_tensor", r(2), 0, r(1), C(2)),
                 ("call", 3, b + "shape_of", r(3)), ("ret", 3)),
        function("host", ["n"], 2,
                 ("call", 1, b + "alloc_storage", r(VM), r(0), -1, C(0), C(1)),
                 ("call", 1, b + "alloc_tensor", r(1), 0, r(0), C(0)),
                 ("call", 1, b + "shape_of", r(1)), ("ret", 1)),
        function("elsewhere", ["n"], 2,
                 ("call", 1, b + "alloc_storage", r(VM), r(0), 3, C(0), C(1)), ("ret", 1)),
    ], ["dtype:uint8", "global", "dtype:float32"]),
    "scoped": assemble([
        function("flat", ["n", "shape"], 4,
                 ("call", 2, b + "alloc_storage", r(VM), r(0), 0, C(0), C(1)),
                 ("call", 3, b + "alloc_tensor", r(2), 0, r(1), C(2), C(1)),
                 ("call", 3, b + "shape_of", r(3)), ("ret", 3)),
        function("image", ["n", "shape"], 4,
                 ("call", 2, b + "alloc_storage", r(VM), r(0), 0, C(0), C(1)),
                 ("call", 3, b + "alloc_tensor", r(2), 0, r(1), C(2), C(3)),
                 ("call", 3, b + "shape_of", r(3)), ("ret", 3)),
    ], ["dtype:uint8", "global", "dtype:float32", "global.texture"]),
    "closure": assemble([
        function("pair", ["a", "b"], 3, ("call", 2, b + "make_tuple", r(0), r(1)), ("ret", 2)),
        function("main", ["a", "b"], 4,
                 ("call", 2, b + "make_closure", F("pair"), r(0)),
                 ("call", VOID, b + "check_func_info", r(2), C(0)),
                 ("call", 3, b + "invoke_closure", r(VM), r(2), r(1)),
                 ("ret", 3)),
        function("packed", ["a"], 2,
                 ("call", 1, b + "invoke_closure", r(VM), F(b + "make_tuple"), r(0), r(0)), ("ret", 1)),
        function("nothing", ["a"], 2, ("call", 1, b + "invoke_closure", r(VM), r(0)), ("ret", 1)),
        function("wrong", ["a"], 2, ("call", 1, b + "make_closure", r(0), 1), ("ret", 1)),
    ], ["main "]),
    "missing": assemble([function("main", ["x"], 2, ("call", 1, "one.of.nobody", r(0)), ("call", 1, "two.of.nobody", r(0)), ("ret", 1))]),
    "recursive": assemble([function("main", ["x"], 2, ("call", 1, "main", r(0)), ("ret", 1))]),
    "wide": assemble([{**function("main", ["x"], 2, ("call", 1, "main", r(0)), ("ret", 1)), "registers": 65536}]),
    "condition": assemble([function("main", ["c"], 1, ("if", 0, 2), ("ret", 0), ("ret", 0))]),
}
# Three elements of sixteen floats, of which only one each is stored: `basic` with another number of lanes in its tensor.
whole = constant(np.array([[1, 2, 3]], "float32"))[4:]
lanes = bytearray(whole)
lanes[30] = 16
assert files["basic"].count(whole) == 1
files["one-lane-of-16"] = files["basic"].replace(whole, bytes(lanes))
one = lambda *code, **more: assemble([{**function("main", ["x"], 2, *code), **more}])
files["one"] = one(("call", 1, b + "copy", r(0)), ("ret", 1))
files["runs-off-the-end"] = one(("ret", 0), ("call", 1, b + "copy", r(0)))
files["branch-to-itself"] = one(("if", 0, 1), ("ret", 0))
files["too-few-arguments"] = assemble([
    function("main", ["x"], 2, ("call", 1, "pair", r(0)), ("ret", 1)),
    function("pair", ["a", "b"], 3, ("call", 2, b + "make_tuple", r(0), r(1)), ("ret", 2))])
files["half-of-the-names"] = assemble([{**function("main", ["x"], 2, ("ret", 0)), "arguments": 2}])
files["returns-the-machine"] = one(("call", 1, b + "copy", r(0)), ("ret", VM))
compiled = {**function("scale", ["x"], 3), "kind": 2, "arguments": 1}
files["compiled"] = assemble([compiled])
for name, raw in files.items():
    open(name + ".vmexec", "wb").write(raw)

# --- cases ----------------------------------------------------------------------------------------------------------------

cases = []
HOST = [1, 0, 2]


def case(id, rules, why, file=None, op="vm.run", steps=None, devices=None, expect=None, reject=None, parent=None,
         unseen=None, layout=None, input=None, origin=None, releases="0.16.."):
    entry = {"id": "vm/" + id, "rules": rules, "releases": releases, "op": op}
    if parent: entry["parent"] = "vm/" + parent
    entry["input"] = {"file": input or f"vm/{file}.vmexec"}
    args = {}
    if steps is not None: args["steps"] = steps
    if devices is not None: args["devices"] = devices
    if layout: args["layout"] = layout
    if args: entry["args"] = args
    if op == "vm.run":
        try:
            theirs = None if unseen else wheel(files[file], steps or [], devices or HOST)
        except Exception as error:
            theirs = error
        if reject:
            assert unseen or isinstance(theirs, Exception), (id, theirs)
        else:
            assert unseen or not isinstance(theirs, Exception), (id, theirs)
            expect = expect if unseen else theirs
    entry["expect"] = {"reject": reject} if reject else {"accept": expect}
    if not reject: entry["encode"] = False
    entry["why"] = why
    entry["origin"] = origin or ({"hand": unseen} if unseen else {"release": "0.27.0", "how": "cases.py"})
    cases.append(entry)


run = case
for file in ("basic", "closure", "storage"):
    case(f"decode-{file}", ["VM-01"], "who debugs a model reads its code", file, "vm.decode", expect=describe(files[file]),
         origin={"hand": "cases.py, from the format"})
for name, layout in (("relax-vm-0.27", "0.22"), ("relax-vm-0.21", "0.21")):
    raw = open(f"../payload/{name}.bin", "rb").read()
    case(f"decode-{name}", ["VM-01", "VM-03"], "code of a release reads as the release means it", op="vm.decode", layout=layout,
         input=f"payload/{name}.bin", expect=describe(raw, layout), origin={"hand": "cases.py, from the format"},
         releases="0.21..0.21" if layout == "0.21" else "0.23..")
case("decode-one", ["VM-01", "VM-02", "VM-04", "VM-05"], "the smallest function that does something", "one", "vm.decode",
     expect=describe(files["one"]), origin={"hand": "cases.py, from the format"})
case("decode-choose", ["VM-02", "VM-03"], "both branches of a condition are seen", "basic", "vm.decode", expect=describe(files["basic"]),
     origin={"hand": "cases.py, from the format"})
for file, rule, kind, parent, why in (
    ("runs-off-the-end", "VM-01", "malformed", "decode-one", "the machine runs into the next function, or past the table"),
    ("branch-to-itself", "VM-02", "malformed", "decode-one", "both branches are one, or the machine never ends"),
    ("too-few-arguments", "VM-03", "type", "decode-one", "found only when the call is reached, maybe days into serving"),
    ("half-of-the-names", "VM-04", "malformed", "decode-one", "get_function_arity lies, and inputs go to the wrong parameter"),
    ("returns-the-machine", "VM-05", "malformed", "decode-one", "a caller gets an address that is gone when the machine is"),
):
    case(file, [rule], why, file, "vm.decode", reject=kind, parent=parent, origin={"hand": "one.vmexec, see cases.py"})

# the machine
run("same", ["VM-11", "VM-23"], "the result of a call is what the function returns", "basic", steps=[["same", 5], ["same", "text"], ["same", None], ["same", {"shape": [1]}]])
run("no-device", ["VM-30"], "a machine without memory crashes at its first constant", "basic", steps=[["same", 1]], devices=[],
    reject="type", parent="same", unseen="the wheel reads the first of no devices")
run("two-numbers", ["VM-30"], "half a triplet shifts all that follow", "basic", steps=[["same", 1]], devices=[1, 0], reject="type", parent="same")
run("allocator-7", ["VM-30"], "a typo in the allocator must not pick one at random", "basic", steps=[["same", 1]], devices=[1, 0, 7], reject="type", parent="same")
run("naive-allocator", ["VM-30"], "who hunts a memory bug wants no pool", "storage", steps=[["shape", {"shape": [64]}, {"shape": [4, 4]}]], devices=[1, 0, 1])
run("missing-functions", ["VM-11"], "all missing kernels at once, before anything ran, not one by one", "missing", steps=[["main", 1]],
    reject="missing", parent="same")
run("compiled-function", ["VM-12"], "without its library there is no code to call", "compiled", steps=[], reject="missing", parent="same")
run("one-lane-of-16", ["TEN-35"], "a machine that copies the whole tensor reads past the file", "one-lane-of-16", steps=[["constants"]],
    reject="truncated", parent="constants", unseen="the wheel hands out 180 bytes that no file has")
run("constants", ["VM-13", "VM-20"], "weights must arrive as they were stored", "basic", steps=[["constants"]])
run("the-last-device-is-the-host", ["VM-14"], "shape computations of a GPU model ask for device -1", "storage", steps=[["host", {"shape": [3]}]],
    expect=[{"shape": [3]}], unseen="0.27 compares -1 as an unsigned number and rejects what its next line provides for")
run("no-such-device", ["VM-14"], "an index past the devices reads an allocator from nowhere", "storage", steps=[["elsewhere", {"shape": [3]}]],
    reject="missing", parent="the-last-device-is-the-host")

# instructions
run("argument-order", ["VM-20"], "a - b is not b - a", "basic", steps=[["pair", 1, 2], ["drops", 3]])
run("then-and-else", ["VM-21", "VM-22"], "the wrong branch is a wrong answer", "basic",
    steps=[["choose", 1, "a", "b"], ["choose", 0, "a", "b"], ["choose", True, 7, 8], ["choose", False, 7, 8], ["choose", -3, 7, 8]])
run("condition-is-text", ["VM-21"], "a condition that is no number has no truth", "condition", steps=[["main", "yes"]], reject="type", parent="then-and-else")
run("condition-is-none", ["VM-21"], "an unset register is a bug of the compiler, not false", "condition", steps=[["main", None]], reject="type", parent="then-and-else")
run("calls-nest", ["VM-20", "VM-23"], "functions call functions, each with registers of its own", "basic", steps=[["nested", "x"]])
run("registers-start-empty", ["VM-24"], "what a call left behind must not leak into the next", "basic", steps=[["stale", 1], ["stale", 0]])
run("too-deep", ["VM-25"], "a stack overflow takes the process and everybody in it", "recursive", steps=[["main", 1]], reject="limit", parent="same",
    unseen="the wheel overflows its stack")

run("too-wide", ["VM-25"], "a file of 200 bytes must not take a gigabyte", "wide", steps=[["main", 1]], reject="limit", parent="same",
    unseen="the wheel overflows its stack")

# closures
run("closure", ["VM-28", "VM-29"], "captured values come behind the arguments", "closure", steps=[["main", "captured", "given"], ["packed", 3]])
run("closure-of-a-number", ["VM-28"], "only a function takes arguments", "closure", steps=[["wrong", 5]], reject="type", parent="closure")
run("invoke-a-number", ["VM-29"], "only what can be called is called", "closure", steps=[["nothing", 5]], reject="type", parent="closure")

# memory
run("tensor-in-storage", ["VM-31", "VM-33"], "several tensors share one storage", "storage", steps=[["shape", {"shape": [4096, 2]}, {"shape": [2, 1024]}]])
run("storage-of-negative-size", ["VM-31"], "a dynamic shape gone wrong must not ask for 2^64 bytes", "storage",
    steps=[["shape", {"shape": [-1]}, {"shape": [1]}]], reject="limit", parent="tensor-in-storage")
run("a-page-at-least", ["VM-32"], "the memory planner relies on whole pages only by accident, but models do", "storage",
    steps=[["shape", {"shape": [1]}, {"shape": [1024]}]])
run("tensor-past-its-storage", ["VM-33"], "the kernel would write into its neighbour", "storage",
    steps=[["shape", {"shape": [1]}, {"shape": [1025]}]], reject="limit", parent="a-page-at-least")
run("no-bytes", ["VM-32"], "a dynamic extent may be 0", "storage", steps=[["shape", {"shape": [0]}, {"shape": [0]}]])
run("no-bytes-no-page", ["VM-33"], "no bytes are no page: a tensor does not fit", "storage",
    steps=[["shape", {"shape": [0]}, {"shape": [1]}]], reject="limit", parent="no-bytes")
run("tensor-in-scope", ["VM-33"], "a compiler names the default scope, too", "scoped",
    steps=[["flat", {"shape": [64]}, {"shape": [4, 4]}]], releases="0.23..")
run("tensor-in-texture", ["VM-33"], "a scope says nothing about memory of the host", "scoped",
    steps=[["image", {"shape": [64]}, {"shape": [2, 2, 4]}]], releases="0.23..")
run("no-page-when-naive", ["VM-33"], "without a pool a storage is as large as it was asked for", "storage", devices=[1, 0, 1],
    steps=[["shape", {"shape": [1]}, {"shape": [1024]}]], reject="limit", parent="naive-allocator")

# checks
data = lambda array: base64.b64encode(np.array(array).tobytes()).decode()
row = ["tensor", {"dtype": "float32"}, {"shape": [2, 3]}, data(np.arange(6, dtype="float32"))]
zero = {"ref": 0}
B = lambda name: "vm.builtin." + name
f32, i64 = {"dtype": "float32"}, {"dtype": "int64"}


def builtin(id, rule, why, steps, **more):
    if isinstance(rule, str): rule = [rule]
    run(id, rule, why, "basic", steps=steps, **more)


builtin("check-tensor", "VM-40", "a wrong input is rejected at the door", [row, [B("check_tensor_info"), zero, 2, f32, "ctx"], [B("check_tensor_info"), zero, -1, None, "ctx"], [B("check_tensor_info"), zero, 2, "ctx"]])
builtin("check-tensor-rank", "VM-40", "a kernel would index an axis that is not there", [row, [B("check_tensor_info"), zero, 3, f32, "ctx"]], reject="type", parent="check-tensor")
builtin("check-tensor-type", "VM-40", "bytes would be read as another type", [row, [B("check_tensor_info"), zero, 2, i64, "ctx"]], reject="type", parent="check-tensor")
builtin("check-tensor-number", "VM-40", "a number has no memory", [[B("check_tensor_info"), 5, -1, None, "ctx"]], reject="type", parent="check-tensor")
builtin("check-shape", "VM-41", "shapes are arguments, too", [[B("check_shape_info"), {"shape": [1, 2]}, 2, "ctx"], [B("check_shape_info"), {"shape": []}, -1, "ctx"]])
builtin("check-shape-rank", "VM-41", "an extent would be missing", [[B("check_shape_info"), {"shape": [1, 2]}, 3, "ctx"]], reject="type", parent="check-shape")
builtin("check-shape-tensor", "VM-41", "a tensor is no shape", [row, [B("check_shape_info"), zero, -1, "ctx"]], reject="type", parent="check-shape")
builtin("check-tuple", "VM-42", "tuples are arguments, too", [[B("check_tuple_info"), [1, "x"], 2, "ctx"]])
builtin("check-tuple-size", "VM-42", "an element would be missing", [[B("check_tuple_info"), [1], 2, "ctx"]], reject="type", parent="check-tuple")
builtin("check-tuple-shape", "VM-42", "a shape is no tuple", [[B("check_tuple_info"), {"shape": [1]}, 1, "ctx"]], reject="type", parent="check-tuple")
builtin("check-prim-value", "VM-43", "scalars are arguments, too", [[B("check_prim_value_info"), 5, i64, "ctx"], [B("check_prim_value_info"), 0.5, f32, "ctx"], [B("check_prim_value_info"), 5, f32, "ctx"], [B("check_prim_value_info"), True, i64, "ctx"]])
builtin("check-prim-value-float", "VM-43", "0.5 is no integer", [[B("check_prim_value_info"), 0.5, i64, "ctx"]], reject="type", parent="check-prim-value")
builtin("check-prim-value-object", "VM-43", "a shape is no scalar", [[B("check_prim_value_info"), {"shape": [1]}, i64, "ctx"]], reject="type", parent="check-prim-value")
builtin("check-function", "VM-44", "functions are arguments, too", [[B("check_func_info"), {"function": B("make_tuple")}, "ctx"]])
builtin("check-function-shape", "VM-44", "a shape cannot be called", [[B("check_func_info"), {"shape": [1]}, "ctx"]], reject="type", parent="check-function")
builtin("check-string", "VM-57", "texts are arguments, too", [[B("check_string_info"), "x", "ctx"]], releases="0.27..")
builtin("check-string-number", "VM-57", "a number is no text", [[B("check_string_info"), 5, "ctx"]], reject="type", parent="check-string", releases="0.27..")

# shapes
cells = ["tensor", i64, {"shape": [3]}, data(np.array([7, 8, 9], "int64"))]
builtin("match-shape", ["VM-45", "VM-48"], "one symbol is one extent, wherever it occurs", [cells, row,
    [B("match_shape"), {"ref": 1}, zero, 2, 1, 0, 1, 2, "ctx"], [B("match_shape"), {"shape": [2, 5, 3]}, zero, 3, 3, 0, 2, 0, 0, 3, "ctx"], [B("match_shape"), {"shape": []}, None, 0, "ctx"]])
builtin("match-shape-constant", "VM-45", "the kernel is compiled for that extent", [[B("match_shape"), {"shape": [2]}, None, 1, 0, 3, "ctx"]], reject="malformed", parent="match-shape")
builtin("match-shape-symbol", "VM-45", "two extents that must agree do not", [cells, [B("match_shape"), {"shape": [2]}, zero, 1, 3, 0, "ctx"]], reject="malformed", parent="match-shape")
builtin("match-shape-rank", "VM-45", "an extent would be missing", [[B("match_shape"), {"shape": [2]}, None, 2, 2, 0, 2, 0, "ctx"]], reject="type", parent="match-shape")
builtin("match-shape-code-4", "VM-45", "a code of a later compiler must not be guessed", [cells, [B("match_shape"), {"shape": [2]}, zero, 1, 4, 0, "ctx"]], reject="type", parent="match-shape")
run("heap", ["VM-46", "VM-48"], "extents go through the heap from inputs to outputs", "heap", steps=[["main", {"shape": [11, 22]}]])
builtin("make-shape", "VM-46", "a dynamic shape is made of cells and numbers", [cells, [B("make_shape"), zero, 3, 0, 4, 1, 2, 1, 0], [B("make_shape"), None, 0]])
builtin("make-shape-code-2", "VM-46", "a code of a later compiler must not be guessed", [cells, [B("make_shape"), zero, 1, 2, 0]], reject="type", parent="make-shape")
builtin("prim-values", "VM-47", "integers go through the heap, too", [cells, [B("match_prim_value"), 5, zero, 1, 1, "ctx"], [B("match_prim_value"), 5, zero, 3, 1, "ctx"], [B("match_prim_value"), 5, zero, 0, 5, "ctx"], [B("make_prim_value"), zero, 1, 1], [B("make_prim_value"), zero, 0, 6]])
builtin("prim-value-mismatch", "VM-47", "the kernel is compiled for that value", [cells, [B("match_prim_value"), 5, zero, 0, 6, "ctx"]], reject="malformed", parent="prim-values")
builtin("heap-read-outside", "VM-48", "memory of another owner becomes an extent", [cells, [B("make_shape"), zero, 1, 1, 3]], reject="missing", parent="make-shape", unseen="the wheel reads past the heap")
builtin("heap-write-outside", "VM-48", "an extent overwrites memory of another owner", [cells, [B("match_shape"), {"shape": [1]}, zero, 1, 1, -1, "ctx"]], reject="missing", parent="match-shape", unseen="the wheel writes before the heap")
builtin("heap-that-is-not-there", "VM-48", "a null pointer is written through", [[B("match_shape"), {"shape": [1]}, None, 1, 1, 0, "ctx"]], reject="missing", parent="match-shape", unseen="the wheel crashes")

# tuples, tensors
builtin("tuples", "VM-49", "results are tuples", [[B("make_tuple"), 1, "x", [2]], [B("tuple_getitem"), zero, 2], [B("tuple_getitem"), zero, 0], [B("make_tuple")]])
builtin("tuple-past-its-end", "VM-49", "an element that is not there", [[B("make_tuple"), 1], [B("tuple_getitem"), zero, 1]], reject="missing", parent="tuples")
builtin("tuple-before-its-start", "VM-49", "indices do not count from the end", [[B("make_tuple"), 1], [B("tuple_getitem"), zero, -1]], reject="missing", parent="tuples")
builtin("tuple-reset", "VM-58", "memory of a consumed element is free before the tuple goes", [[B("make_tuple"), 1, 2], [B("tuple_reset_item"), zero, 0]], expect=[[None, 2], None],
        unseen="0.27 cannot be asked from Python: the argument is a bare object there", releases="0.21..")
builtin("tuple-reset-past-its-end", "VM-49", "an element that is not there", [[B("make_tuple"), 1], [B("tuple_reset_item"), zero, 1]], reject="missing", parent="tuples")
builtin("reshape", "VM-50", "the same bytes under other extents", [row, [B("reshape"), zero, {"shape": [3, 2]}], [B("reshape"), zero, {"shape": [6]}]])
builtin("reshape-to-more", "VM-50", "a larger view reads past the tensor", [row, [B("reshape"), zero, {"shape": [7]}]], reject="type", parent="reshape")
builtin("shape-of", "VM-51", "extents as a value", [row, [B("shape_of"), zero]])
builtin("shape-of-number", "VM-51", "a number has no shape", [[B("shape_of"), 5]], reject="type", parent="shape-of")
for width in ("int32", "int64"):
    builtin(f"tensor-to-shape-{width}", "VM-52", "extents that a kernel computed", [["tensor", {"dtype": width}, {"shape": [2]}, data(np.array([5, -1], width))], [B("tensor_to_shape"), zero]])
builtin("tensor-to-shape-float", "VM-52", "extents are whole", [["tensor", f32, {"shape": [1]}, data(np.array([1], "float32"))], [B("tensor_to_shape"), zero]], reject="type", parent="tensor-to-shape-int64")
for width, value in (("bool", True), ("int8", -1), ("int32", 256), ("int64", 1 << 40), ("bool", False), ("int64", 0)):
    builtin(f"condition-{width}-{'true' if value else 'false'}", "VM-53", "a flag may be of any width", [["tensor", {"dtype": width}, {"shape": []}, data(np.array(value, width))], [B("read_if_cond"), zero]])
builtin("condition-number", "VM-53", "a flag may be a plain number", [[B("read_if_cond"), 2], [B("read_if_cond"), False]])
builtin("condition-float", "VM-53", "0.5 is neither true nor false", [["tensor", f32, {"shape": []}, data(np.array(0.5, "float32"))], [B("read_if_cond"), zero]], reject="type", parent="condition-number")
builtin("call-tir-dyn", "VM-54", "a kernel gets its symbols as numbers", [[B("call_tir_dyn"), {"function": B("make_tuple")}, "a", {"shape": [4, 5]}]])
builtin("call-tir-dyn-without-shape", "VM-54", "the kernel would read arguments that are not there", [[B("call_tir_dyn"), {"function": B("make_tuple")}, 5]], reject="type", parent="call-tir-dyn")
builtin("to-device", "VM-55", "a copy on the device that was named", [row, [B("to_device"), zero, 1, 0]])
builtin("to-device-in-scope", "VM-55", "a compiler names the default scope, too", [row, [B("to_device"), zero, 1, 0, "global"]], releases="0.23..")
builtin("copy", "VM-56", "the branches of a condition meet in one register", [[B("copy"), "x"], [B("null_value")]])

# module functions
run("argument-count", ["VM-60"], "who forgets an input must hear which", "basic", steps=[["pair", 1]], reject="type", parent="argument-order")
run("unknown-function", ["VM-61"], "a typo in the function name", "basic", steps=[["set_input", "mian", 1]], reject="missing", parent="stateful")
run("stateful", ["VM-62", "VM-63"], "a remote caller sets, runs, and fetches", "basic",
    steps=[["set_input", "nested", 1], ["invoke_stateful", "nested"], ["get_output_arity", "nested"], ["get_output", "nested", 1], ["get_output_arity", "nested", 1], ["get_output", "nested", 0, 1], ["get_function_arity", "pair"], ["get_function_param_name", "pair", 1]])
run("no-input-set", ["VM-62"], "running on what another model left", "basic", steps=[["invoke_stateful", "same"]], reject="missing", parent="stateful")
run("param-name-2", ["VM-62"], "a parameter that is not there has no name", "basic", steps=[["get_function_param_name", "pair", 2]], reject="missing", parent="stateful")
run("output-before-run", ["VM-63"], "an old output for a new input", "basic", steps=[["get_output", "same"]], reject="missing", parent="stateful")
run("output-is-a-tuple", ["VM-63"], "a tuple does not travel", "basic", steps=[["set_input", "pair", 1, 2], ["invoke_stateful", "pair"], ["get_output", "pair"]], reject="type", parent="stateful")
run("saved", ["VM-64", "VM-65"], "a benchmark binds its arguments once", "basic",
    steps=[["save_function", "pair", "bound", True, 1, 2], ["bound"], ["save_function", "pair", "silent", False, 1], ["silent", 0], ["save_function", "pair", "same", True, 3, 4], ["same"]])

order = {c["id"]: i for i, c in enumerate(cases)}
assert len(order) == len(cases)
sys.path.insert(0, "../../conformance")
import cases as conformance
conformance.add("vm", cases)
print(len(cases), "cases,", len(files), "executables")
