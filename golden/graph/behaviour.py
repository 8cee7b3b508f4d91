"""Writes more cases of graph.script: a library with its own modules and parameters, times, invalid numbers, memory in place.

Run: python behaviour.py        (in this folder)

Results are computed here by formula; rule and kind of an error are those of spec/graph.md.
"""

import base64, copy, json, os, struct, sys

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, "../../conformance")
import cases as conformance
from scripts import ERROR, NONE, P, S, SET, SMALL, SUM, X, Y, graph, plus, tensor, zeros

made = []
BROKEN = ["@broken"]
HAND, OURS = "by formula, in behaviour.py", "by formula, in behaviour.py; ours alone"


def script(id, rules, g, pairs, why, releases="0.8..0.19", origin=HAND, topic="script", file=None, **more):
    if origin != HAND and pairs[0][0][0] not in ("@own", "@broken"):
        # Other implementations stop here, before steps that may crash them.
        pairs = [(BROKEN, NONE)] + pairs
    value = {"graph": g, **more, "steps": [step for step, _ in pairs]}
    made.append({"id": "graph/script/" + id, "topic": topic, "rules": rules.split(), "releases": releases, "op": "graph.script", "input": {"value": value},
                 "expect": {"accept_file": f"graph/{file}"} if file else {"accept": [result for _, result in pairs]}, "encode": False, "why": why, "origin": {"hand": origin}})
    if file:
        open(file, "w").write(json.dumps([result for _, result in pairs], indent=1))
        conformance.declare({f"graph/{file}": {"hand": "behaviour.py"}})


def failing(id, rules, g, calls, why, releases="0.8..0.19", origin="ours alone: rule and kind from spec/graph.md", **more):
    """Returns the rule that each call violates."""
    script(id, rules, g, sum(([(call, ERROR), (BROKEN, broken)] for call, broken in calls), []), why, releases, origin, **more)


own = lambda name, form: ["@own", name, form]
text, kernels, make = {"graph": True}, {"kernels": True}, "tvm.graph_executor.create"
executor, factory, cpu = {"module": "GraphExecutor"}, {"module": "GraphExecutorFactory"}, {"device": [1, 0]}
double = lambda t: {**t, "data": [2 * v for v in t["data"]]}
PP = plus(double(P))  # (p + p) + 1

# A library with a factory in it, as export_library of 0.8 to 0.19 writes it.
string = lambda s: struct.pack("<Q", len(s)) + s.encode()
words = lambda *numbers: struct.pack(f"<Q{len(numbers)}Q", len(numbers), *numbers)


def record(t, code=2, bits=32, letter="f"):
    """A tensor record: magic, device, rank, type, extents, bytes."""
    shape = t["shape"]
    data = struct.pack(f"<{len(t['data'])}{letter}", *t["data"])
    return struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, len(shape), code, bits, 1) + struct.pack(f"<{len(shape)}q", *shape) + struct.pack("<q", len(data)) + data


def payload(g, params, name="default"):
    """Graph, names, records, name of the model (chapter payload)."""
    names = list(params)
    body = string(json.dumps(g, separators=(",", ":"))) + struct.pack("<Q", len(names)) + struct.pack("<Q", len(names)) + b"".join(map(string, names))
    return body + b"".join(params.values()) + string(name)


def blob(kind, stored):
    """Two modules: the factory, which imports the library itself."""
    modules = string(kind) + stored + string("_lib")
    tree = string("_import_tree") + words(0, 1, 1) + words(1)
    whole = struct.pack("<Q", 3) + modules + tree
    lines = base64.b64encode(struct.pack("<Q", len(whole)) + whole).decode()
    return [lines[at : at + 100] for at in range(0, len(lines), 100)]


stored = payload(SMALL, {"p": record(P), "nobody": record(X)})
library = blob("GraphExecutorFactory", stored)
params_of = lambda more: [(["@kernels"], factory), (["get_graph_params"], more)]
run = lambda result: [(["set_input", "x", X], NONE), (["run"], NONE), (["get_output", 0], result)]
script("library", "GRF-49", SMALL, [(["@kernels"], factory), (["get_graph_params"], {"p": P, "nobody": X}),
       (["@make", "default", cpu], executor), (["get_input", "p"], P), *run(Y), (["set_input", "p", X], NONE), *run(plus(double(X)))],
       "a model is one file: graph, weights and code", "0.9..0.19", blob=library, bare=True, topic="library")
script("library-debug", "GRF-49", SMALL, [(["@kernels"], factory), (["@make", "debug_create", "default", cpu], executor), (["@has", "execute_node"], True), (["get_input", "p"], P), *run(Y)],
       "the same file, to look into", blob=library, bare=True, topic="library")
script("library-saved", "GRF-49", SMALL, [(["@kernels"], factory), (["@save"], base64.b64encode(stored).decode()), (["@make", "remove_params"], factory), (["get_graph_params"], {}),
       (["@save"], base64.b64encode(payload(SMALL, {})).decode()), (["@make", "default", cpu], executor), (["get_num_inputs"], 2)], "what was loaded is saved as it was", origin=OURS, file="script-library-saved.json", blob=library, bare=True, topic="library")
script("library-of-another-name", "GRF-49", SMALL, [(["@kernels"], factory), (["@has", "default"], False), (["@make", "mlp", cpu], executor), (["get_input", "p"], P)], "a model is made under its own name",
       "0.8..0.19", blob=blob("GraphExecutorFactory", payload(SMALL, {"p": record(P)}, "mlp")), bare=True, topic="library")
flags = tensor([4], [1, 0, 1, 1], "bool")
flag = graph((None, "x", [], [([4], 0, 1, "uint1")]), ("__nop", "y", [(0, 0)], [([4], 0, 1, "uint1")]), heads=[(1, 0)])
script("library-of-flags", "GRF-33 GRF-49", flag, [(["@kernels"], factory), (["get_graph_params"], {"x": flags}), (["@save"], base64.b64encode(payload(flag, {"x": record(flags, 1, 1, "B")})).decode()), (["@make", "default", cpu], executor), (["run_from_inputs", 1, 0], [flags])],
       "a flag of old graphs is a byte, and a bool now", origin=OURS, file="script-library-of-flags.json", blob=blob("GraphExecutorFactory", payload(flag, {"x": record(flags, 1, 1, "B")})), bare=True, topic="library")
script("library-of-0.7", "GRF-49", SMALL, [(["@kernels"], factory), (["@make", "default", cpu], executor), (["get_input", "p"], P), *run(Y)], "the kind had another name in 0.7",
       "0.7", blob=blob("GraphRuntimeFactory", payload(SMALL, {"p": record(P)})), bare=True, topic="library")

ones = plus(zeros(S))
end = lambda unset, *more: [[], 96, True, ones, unset, *more]
model = lambda form, result, id, rules, why, g=SMALL, **more: script(id, rules, g, [(own("model", form), result)], why, origin=OURS, topic="library", **more)
model({"load": True, "blob": library, "runs": [{"x": X}, {}, {"x": P}]}, [[Y], [Y], [PP], *end(0)], "model-of-a-library", "GRF-49 GRF-32", "a model is loaded by one name")
model({"load": True}, ["GRF-43", "type"], "model-of-kernels-alone", "GRF-43", "a library without a graph is no model")
model({"bare": True}, ["GRF-30", "missing"], "model-without-a-device", "GRF-30", "without a device there is no memory")
model({"load": True, "blob": library, "bare": True}, ["GRF-30", "missing"], "model-of-a-library-without-a-device", "GRF-30", "without a device there is no memory")
model({"params": {"p": P}, "runs": [], "from": X, "to": zeros(S)}, [["x"], 96, True, ones, 0, 1, Y], "model-in-place", "GRF-34 GRF-37", "inputs and outputs where the caller has them")
model({"params": {"p": P, "x": X, "nobody": X}, "runs": [{}]}, [[Y], *end(0, 2)], "model-with-all-its-inputs", "GRF-37", "parameters that are inputs are counted")
one_flag = graph((None, "x", [], [([1], 0, 1, "uint1")]), ("__nop", "y", [(0, 0)], [([1], 0, 1, "uint1")]), heads=[(1, 0)])
model({"runs": [{"x": tensor([1], [1], "uint1")}, {"x": tensor([1], [1], "bool")}]}, [[tensor([1], [1], "bool")], [tensor([1], [1], "bool")], [], 1, True, tensor([1], [0], "bool"), 0], "model-of-flags", "GRF-33", "a flag has the type of its time, and is the same byte", g=one_flag)
model({"runs": [], "from": tensor([6], [0] * 6), "to": zeros(S)}, [["x", "p"], 96, True, ones, 0, ["GRF-33", "type"]], "model-in-place-of-other-shape", "GRF-34 GRF-33", "another shape is not used in place")
model({"runs": [], "from": X, "to": tensor([6], [0] * 6)}, [["x", "p"], 96, True, ones, 0, ["GRF-33", "type"]], "model-out-to-other-shape", "GRF-34 GRF-33", "another shape is not written in place")

# Linked parameters that the library itself finds.
linked = {"1": P}
script("linked-library", "GRF-43", SMALL, [(["get_input", "p"], P), *run(Y), (["get_input", 1], P)], "weights lie in the constants of the library", linked=linked, topic="library")
script("linked-library-of-all", "GRF-43", SMALL, [(["get_input", "x"], X), (["get_input", "p"], P), (["run"], NONE), (["get_output", 0], Y)], "each parameter by its storage", linked={"0": X, "1": P, "7": X}, topic="library")
script("linked-library-of-others", "GRF-43", SMALL, SET + [(["run"], NONE), (["get_output", 0], Y)], "what the library does not have is set as ever", linked={"9": X}, topic="library")
script("linked-library-without-address", "GRF-43", SMALL, [(["@global-make", make, text, kernels, 1, 0], executor)] + SET + [(["run"], NONE), (["get_output", 0], Y)], "an address that is null is none", origin=OURS, linked={"0": None, "1": None}, bare=True, topic="library")
script("linked-library-is-not-searched", "GRF-43", SMALL, [(["@global-make", make, text, kernels, {"lookup": {"0": P}}, 1, 0], executor), (["get_input", "x"], P), (["set_input", "p", P], NONE), (["run"], NONE), (["get_output", 0], PP)],
       "who passes a function states everything", origin=OURS, linked={"1": X}, bare=True, topic="library")
failing("linked-library-is-not-written", "GRF-43", SMALL, [(["set_input", "p", X], ["GRF-43", "unsupported"]), (["load_params", {"params": {"p": X}}], ["GRF-43", "unsupported"])], "constants of a library may be in memory that cannot be written", linked=linked, topic="library")
model({"linked": True, "runs": [{"x": X}, {"p": X}]}, [[Y], ["GRF-43", "unsupported"], [], 96, True, plus(P), 0], "model-with-linked-parameters", "GRF-43 GRF-32", "a linked parameter counts as set, and is not cleared", linked=linked)
far = graph((None, "x", [], [(S, 0, 98)]), (None, "p", [], [(S, 1, 98)]), ("touch", "y", [(0, 0), (1, 0)], [(S, 2, 98)]), heads=[(2, 0)])
script("linked-library-far-away", "GRF-43", far, [(["@global-make", make, text, kernels, 1, 0, 98, 0], executor), (["get_input", "p", {"tensor": "t"}], NONE), (["@show", "t"], P), (["set_input", "p", X], NONE), (["get_input", "p", {"tensor": "t"}], NONE), (["@show", "t"], X)],
       "a device has a copy of what lies in the library, which may be written", origin=OURS, linked=linked, devices=[[1, 0], [98, 0]], bare=True, tensors={"t": zeros(S)}, topic="library")
script("linked-far-away", "GRF-43", far, [(["@global-make", make, text, kernels, {"lookup": {"1": P}}, 1, 0, 98, 0], executor), (["get_input", "p", {"tensor": "t"}], NONE), (["@show", "t"], P)], "who finds a parameter is asked on the first device",
       origin=OURS, devices=[[1, 0], [98, 0]], bare=True, tensors={"t": zeros(S)}, topic="library")
linking = lambda t: (["@global", make, text, kernels, {"lookup": {"1": t}}, 1, 0], ["GRF-33", "type"])
failing("linked-other-shape", "GRF-33 GRF-43", SMALL, [linking(tensor([6], [1] * 6)), linking(tensor([3, 2], [1] * 6)), linking(tensor(S, [1] * 6, "int32"))], "what is found takes the place of a parameter, and is of its shape and type", bare=True, topic="library")
failing("linked-on-half-a-device", "GRF-43", SMALL, [(["@global", make, text, kernels, {"lookup": {"0": P}}, 1], ["GRF-43", "type"])], "half a pair is no device, behind a function too", bare=True, topic="library")

# Times.
debug = dict(debug=True)
measured = lambda *above: {"above 0": list(above), "within": True, "long enough": True}
four, one = measured(False, False, True, True), measured(True)
for id, releases, more in (("0.8", "0.8", []), ("0.9", "0.9", [0, 1]), ("all", "0.10..0.19", [1, 0, 1])):
    single = [(["@took", "run_individual_node", 3, 400, 1, 0, *more], one), (["@took", "run_individual_node", 2, 1, 1, 20, *more], one)] if more else []
    script("times-above-0-" + id, "GRF-42", SMALL, SET + [(["@took", "run_individual", 400, 1, 0, *more], four), (["@took", "run_individual", 1, 1, 20, *more], four)] + single,
           "a mean of many runs takes no longer than they do", releases, **debug, topic="times")
log = lambda n: [["add", [S, S, S]]] * n, lambda n: [["add1", [S, S]]] * n
script("times-count-runs", "GRF-42", SMALL, SET + [(["@count", "run_individual_node", 2, 3, 2, 0], {"bytes": 16}), (["@log"], log[0](6)), (["@took", "run_individual_node", 3, 5, 1, 0], one), (["@log"], log[1](5)),
       (["@took", "run_individual_node", 3, 1, 1, 1], one), (["@hold", "debug_run", 2], {"held": True}), (["@took", "debug_run", 3], one), (["run_individual_node", 0, 1, 1, 0, 0, 0], ERROR), (BROKEN, ["GRF-42", "type"])],
       "as many runs as were asked for, of this node alone", origin=OURS, **debug, topic="times")
script("times-behind-a-run", "GRF-42", SMALL, SET + [(["@count", "run_individual", 2, 2, 0], 4), (["@log"], log[0](1) + log[1](1) + (log[0](2) + log[1](2)) * 2), (["execute_node", 3], NONE), (["get_node_output", 3, 1], ERROR), (BROKEN, ["GRF-41", "missing"]), (["get_node_output", 3, 0], Y)],
       "no node is measured on memory that was never touched", origin=OURS, **debug, topic="times")
script("times-of-every-repetition", "GRF-42", SMALL, SET + [(["@count", "run_individual", 2, 3, 0, 0, 1], {"bytes": 8 + 4 * 3 * 8}), (["@took", "run_individual", 1, 2, 0, 0, 1], measured(False, False, False, False, True, True, True, True)),
       (["@took", "run_individual_node", 2, 1, 3, 0, 0, 1], measured(True, True, True))], "node after node, all repetitions of each", origin=OURS, **debug, topic="times")
script("report", "GRF-44", SMALL, SET + [(["@report", "profile_rpc"], [["add", True], ["add1", True]])], "which call takes how long", "0.8..0.19", **debug, topic="times")

# Invalid numbers.
huge = tensor([2], [3e38, -3e38])
over = graph((None, "x", [], [([2], 0)]), (None, "p", [], [([2], 1)]), ("two", "a", [(0, 0)], [([2], 2), ([2], 3)]), ("two", "b", [(1, 0)], [([2], 4), ([2], 5)]), ("add", "y", [(2, 1), (3, 1)], [([2], 6)]), heads=[(2, 1), (4, 0)])
infinite = lambda *words: tensor([2], [{"float": word} for word in words])
script("not-finite", "GRF-38", over, [(["set_input", 0, huge], NONE), (["set_input", 1, tensor([2], [-3e38, -3e38])], NONE), (["run"], NONE), (["get_output", 0], infinite("inf", "-inf")), (["get_output", 1], infinite("nan", "-inf"))],
       "what overflows is still an output")

# Names of outputs, and the results for them.
pair = graph((None, "x", [], [(S, 0)]), ("two", "t", [(0, 0)], [(S, 1), (S, 2)]), ("add1", "y", [(1, 0)], [(S, 3)]), heads=[(1, 0), (1, 1), (2, 0)])
script("last-output-of-a-name", "GRF-32", pair, [(["set_input", 0, X], NONE), (["run"], NONE), (["get_output", "t"], double(X)), (["get_output", "y"], plus(X, 2.0)), (["get_output", "x"], ERROR)], "a name of several outputs is the last of them", "0.12..0.19")
script("in-place-by-number-of-output", "GRF-32 GRF-34", pair, [(["set_input", 0, X], NONE), (["set_output_zero_copy", "t:1", {"tensor": "t"}], NONE), (["set_output_zero_copy", "y:2", {"tensor": "u"}], NONE), (["run"], NONE), (["@show", "t"], double(X)), (["@show", "u"], plus(X, 2.0)), (["get_output", 0], plus(X))],
       "the number behind the name is that of the output", "0.10..0.19", tensors={"t": zeros(S), "u": zeros(S)})
shapes = graph((None, "x", [], [([4], 0)]), (None, "n", [], [([2, 2], 1, 1, "int8")]), ("two", "t", [(0, 0)], [([4], 2), ([2, 2], 3)]), ("touch", "z", [(1, 0)], [([2, 2], 1, 1, "int8")]), heads=[(2, 0), (2, 1), (3, 0)])
script("info-of-several", "GRF-44", shapes, [(["get_input_info"], {"shape": {"x": [4], "n": [2, 2]}, "dtype": {"x": "float32", "n": "int8"}}), (["get_output_info"], {"shape": {"t": [4], "t:1": [2, 2], "z": [2, 2]}, "dtype": {"t": "float32", "t:1": "float32", "z": "int8"}})],
       "each output has its own shape and type", "0.12..0.19", OURS)

# Memory in place.
tensors = {"t": zeros(S), "u": zeros(S)}
behind = graph((None, "x", [], [(S, 0)]), ("add1", "a", [(0, 0)], [(S, 1)]), ("__nop", "y", [(1, 0)], [([6], 1)]), heads=[(2, 0)])
script("output-in-place-through-nop", "GRF-34 GRF-48", behind, [(["set_input", 0, X], NONE), (["set_output_zero_copy", 0, {"tensor": "f"}], NONE), (["run"], NONE), (["@show", "f"], {**plus(X), "shape": [6]})], "what makes the reshaped output writes where it is wanted", "0.17..0.19", tensors={"f": zeros([6])})
nops = graph((None, "x", [], [(S, 0)]), ("__nop", "a", [(0, 0)], [([6], 0)]), ("__nop", "b", [(1, 0)], [([3, 2], 0)]), ("add1", "y", [(1, 0)], [([6], 1)]), ("add1", "z", [(2, 0)], [([3, 2], 2)]), heads=[(3, 0), (4, 0)])
script("in-place-through-nops", "GRF-34 GRF-48", nops, [(["set_input_zero_copy", "x", {"tensor": "t"}], NONE), (["@fill", "t", X["data"]], NONE), (["run"], NONE), (["get_output", 0], {**plus(X), "shape": [6]}), (["get_output", 1], {**plus(X), "shape": [3, 2]}), (["@fill", "t", P["data"]], NONE), (["run"], NONE), (["get_output", 1], {**plus(P), "shape": [3, 2]})],
       "a reshape of a reshape is the same memory", "0.14..0.19", tensors=tensors)
joined = graph((None, "x", [], [(S, 0)]), (None, "w", [], [(S, 1)]), ("__nop", "a", [(0, 0)], [([6], 0)]), ("__nop", "b", [(1, 0)], [([6], 1)]), ("add", "y", [(2, 0), (3, 0)], [([6], 2)]), heads=[(4, 0)])
script("in-place-of-two-inputs", "GRF-34 GRF-48", joined, [(["set_input_zero_copy", "x", {"tensor": "t"}], NONE), (["set_input_zero_copy", "w", {"tensor": "u"}], NONE), (["@fill", "t", X["data"]], NONE), (["@fill", "u", P["data"]], NONE), (["run"], NONE), (["get_output", 0], {**SUM, "shape": [6]})],
       "each input moves what is made of it, and nothing else", "0.14..0.19", tensors=tensors)
after = graph((None, "x", [], [(S, 0)]), ("__nop", "a", [(0, 0)], [([6], 0)]), ("add1", "y", [(1, 0)], [([6], 0)]), heads=[(2, 0)])
script("in-place-before-its-pool", "GRF-34 GRF-48", after, [(["set_input_zero_copy", 0, {"tensor": "t"}], NONE), (["@fill", "t", X["data"]], NONE), (["run"], NONE), (["get_output", 0], {**plus(X), "shape": [6]}), (["@show", "t"], X)],
       "what a `__nop` makes moves, and what comes behind it in the pool does not", origin=OURS, tensors=tensors)
twice = graph((None, "x", [], [(S, 0)]), ("add", "y", [(0, 0), (0, 0)], [(S, 1)]), heads=[(1, 0)])
script("in-place-read-twice", "GRF-34", twice, [(["set_input_zero_copy", 0, {"tensor": "t"}], NONE), (["@fill", "t", X["data"]], NONE), (["run"], NONE), (["get_output", 0], double(X)), (["set_input_zero_copy", 0, {"tensor": "u"}], NONE), (["@fill", "u", P["data"]], NONE), (["run"], NONE), (["get_output", 0], double(P))],
       "every argument that is the input moves, and moves again", tensors=tensors)
beside = graph((None, "x", [], [(S, 0)]), ("add1", "a", [(0, 0)], [(S, 0)]), ("add1", "y", [(1, 0)], [(S, 1)]), heads=[(2, 0)])
script("in-place-beside-its-result", "GRF-34 GRF-48", beside, [(["set_input_zero_copy", 0, {"tensor": "t"}], NONE), (["@fill", "t", X["data"]], NONE), (["run"], NONE), (["get_output", 0], plus(X, 2.0)), (["@show", "t"], X)],
       "a result in the pool of the input is not written into the caller's tensor", "0.8..0.13", tensors=tensors)
across = graph((None, "x", [], [(S, 0)]), ("__copy", "c", [(0, 0)], [(S, 1)]), ("add1", "y", [(1, 0)], [(S, 2)]), heads=[(2, 0)])
script("copy-in-place", "GRF-34 GRF-36", across, [(["set_input_zero_copy", 0, {"tensor": "t"}], NONE), (["@fill", "t", X["data"]], NONE), (["run"], NONE), (["get_output", 0], plus(X))], "a copy reads what was handed in", origin=OURS, tensors=tensors)
there = graph((None, "x", [], [(S, 0, 12)]), ("touch", "y", [(0, 0)], [(S, 1, 12)]), heads=[(1, 0)])
away = ["GRF-34", "malformed"]
failing("in-place-elsewhere-in-words", "GRF-34", there, [(["set_input_zero_copy", 0, X], away), (["set_output_zero_copy", 0, X], away)], "a device cannot read the host's memory", devices=[[1, 0], [12, 0]])
swapped = {"dtype": "float32", "shape": S, "data": X["data"], "strides": [1, 2]}
whole = {**swapped, "strides": [3, 1]}
failing("axes-that-are-swapped", "GRF-33 GRF-34", SMALL, [(["set_input", "x", swapped], ["GRF-33", "unsupported"]), (["get_output", 0, swapped], ["GRF-33", "unsupported"]), (["run_from_inputs", 1, 0, "x", swapped], ["GRF-33", "unsupported"]), (["set_input_zero_copy", "x", swapped], away), (["set_output_zero_copy", 0, swapped], away)],
        "bytes are copied as they lie")
script("strides-of-one-piece", "GRF-33 GRF-34", SMALL, [(["set_input", "x", whole], NONE), (["set_input", "p", P], NONE), (["run"], NONE), (["get_output", 0], Y), (["get_output", 0, {"tensor": "w"}], NONE), (["@show", "w"], Y)], "strides that say nothing new are none", "0.8..0.19", tensors={"w": {**zeros(S), "strides": [3, 1]}})
failing("no-such-device", "GRF-43 DEV-06", SMALL, [(["@global", make, text, kernels, *devices], ["DEV-06", "unknown-kind"]) for devices in ([17, 0], [1, 0, 17, 0])], "a type that has no name is that of no device", origin="ours alone: rule and kind from spec/device.md", bare=True)
script("arguments-that-are-numbers", "GRF-44", SMALL, [(["load_params", 5], ERROR), (["get_input_index", 5], ERROR), (["get_num_inputs"], 2)], "a number is no parameter file and no name")
for id, sizes, scope, why in (("pool-of-2-64-bytes", [3, 6148914691236517205], "", "a size that is rounded up to nothing"), ("image-of-2-63-rows", [1 << 32, 1 << 31, 1, 1], "global.texture", "a height that no device counts")):
    full = graph((None, "x", [], [(sizes, 0, 1, "int8")]), ("touch", "y", [(0, 0)], [([1], 1, 1, "int8")]), heads=[(1, 0)])
    if scope:
        full["attrs"]["storage_scope"] = ["list_str", [scope, ""]]
    script(id, "GRF-23" + (" GRF-53" if scope else ""), full, [(BROKEN, ERROR), (BROKEN, ["GRF-23", "limit"])], why, "0.10..0.19" if scope else "0.8..0.19", OURS)
three = graph((None, "x", [], [([5], 0, 98, "int8")]), ("touch", "y", [(0, 0)], [([9], 1, 98, "int8")]), heads=[(1, 0)])
alive = lambda spaces, bytes, allocations: {"spaces": spaces, "bytes": bytes, "streams": 0, "allocations": allocations, "copies": 0}
script("alive-in-whole-words", "GRF-30", three, [(["@alive"], alive(2, 8 + 12, 2))], "a kernel may write its last word whole", origin=OURS, devices=[[1, 0], [98, 0]])

# The dump of a model on several devices.
empty = {"folder": "_tvmdbg_device_EXT_DEV_0", "nodes": [{"op": "param", "name": "x", "inputs": [], "attrs": {"T": "type: float32"}, "shape": S}, {"op": "add1", "name": "y", "inputs": ["x"], "attrs": {"num_outputs": "1", "num_inputs": "1", "flatten_data": "0", "func_name": "add1", "T": "type: float32"}, "shape": S}],
         "rest": True, "trace": ["x B 1 1", "x E 1 1", "y B 1 1", "y E 1 1"], "unit": "ns", "in order": True, "took": [False, True], "tensors": {"x____0": X, "y____0": plus(X)}}
add1 = graph((None, "x", [], [(S, 0)]), ("add1", "y", [(0, 0)], [(S, 1)]), heads=[(1, 0)])
script("dump-of-two-devices", "GRF-40 GRF-41", add1, [(own("dump", {"inputs": {"x": X}, "devices": [[12, 0], [1, 0]]}), empty)], "a dump is named for the first device", "0.12..0.19", OURS)

conformance.add("graph", made)
print(len(made), "cases")
