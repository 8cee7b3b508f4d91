"""Writes more cases of graph.script: rule and kind of every error, a model in Rust, the debug dump, linked parameters, live objects.

Run: python more.py        (in this folder)

Results are computed here by formula; rule and kind of an error are those of spec/graph.md.
"""

import copy, os, sys

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, "../../conformance")
import cases as conformance
from scripts import ERROR, NONE, P, S, SET, SMALL, SUM, X, Y, graph, plus, tensor, zeros

made = []
BROKEN = ["@broken"]


def script(id, rules, value, expect, why, releases="..0.19", origin="by formula, in more.py"):
    made.append({"id": "graph/script/" + id, "rules": rules.split(), "releases": releases, "op": "graph.script", "input": {"value": value},
                 "expect": {"accept": expect}, "encode": False, "why": why, "origin": {"hand": origin}})


def steps(graph, pairs, **more):
    return {"graph": graph, **more, "steps": [step for step, _ in pairs]}, [result for _, result in pairs]


# Rules that a call violates with too few arguments, or arguments of the wrong type.
def failing(id, rules, g, calls, why, releases="0.8..0.19", **more):
    pairs = sum(([(call, ERROR), (BROKEN, broken)] for call, broken in calls), [])
    value, expect = steps(g, pairs, **more)
    script(id, rules, value, expect, why, releases, "ours alone: rule and kind from spec/graph.md")


few, lost = ["GRF-44", "type"], ["GRF-32", "missing"]
base = {"set_input": 2, "set_input_zero_copy": 2, "set_output_zero_copy": 2, "get_input": 1, "get_output": 1, "get_input_index": 1, "run_from_inputs": 2, "load_params": 1, "share_params": 2}
of_debug = {"execute_node": 1, "get_node_output": 2, "debug_get_output": 1, "get_output_by_layer": 2, "debug_run": 1, "run_individual": 3, "run_individual_node": 4}
short = lambda table: [([name, *range(count)], few) for name, least in table.items() for count in range(least)]
failing("too-few-arguments", "GRF-44", SMALL, short(base), "arguments that are not there are not made up")
failing("too-few-arguments-to-debug", "GRF-44", SMALL, short(of_debug), "arguments that are not there are not made up", debug=True)
failing("odd-arguments", "GRF-44", SMALL, [(["run_from_inputs", 1, 0, "x"], few), (["get_input_index", 0], few), (["share_params", {"kernels": True}, {"params": {}}], few), (["share_params", {"self": True}, {"params": {}}], ["GRF-44", "cycle"])], "each error says what is wrong")
failing("beyond-the-last", "GRF-32", SMALL, [(["set_input", 2, X], lost), (["set_input", -1, X], lost), (["get_input", 2], lost), (["get_input", -1], lost), (["get_output", 1], lost), (["get_output", -1], lost), (["get_output", "nope"], lost),
        (["set_input_zero_copy", 2, {"tensor": "t"}], lost), (["set_output_zero_copy", 1, {"tensor": "t"}], lost), (["set_output_zero_copy", "nope", {"tensor": "t"}], lost), (["run_from_inputs", 1, 0, "nope", X], lost)], "there is no such input, no such output", tensors={"t": zeros(S)})
other = ["GRF-33", "type"]
failing("tensors-that-differ", "GRF-33", SMALL, [(["set_input", "x", tensor(S, [1] * 6, "int32")], other), (["set_input", "x", tensor([3, 2], [1] * 6)], other), (["set_input", "x", tensor([2, 4], [1] * 8)], other), (["set_input", "x", tensor([2, 2], [1] * 4)], other), (["set_input", "x", tensor([6], [1] * 6)], other),
        (["set_input", "x", tensor(S, [1] * 6, "float64")], other), (["get_output", 0, tensor([7], [0] * 7)], other), (["set_input_zero_copy", "x", {"tensor": "i"}], other), (["set_output_zero_copy", 0, {"tensor": "i"}], other), (["load_params", {"params": {"p": tensor([3, 2], [0] * 6)}}], other)],
        "six words of another type, and no word of it", tensors={"i": tensor(S, [0] * 6, "int32")})
failing("not-aligned-in-words", "GRF-34", SMALL, [(["set_input_zero_copy", "x", tensor(S, X["data"], skew=4)], ["GRF-34", "malformed"]), (["set_output_zero_copy", 0, tensor(S, X["data"], skew=32)], ["GRF-34", "malformed"])], "compiled code loads vectors from aligned addresses")
mixed = copy.deepcopy(SMALL)
mixed["attrs"]["storage_id"][1] = [0, 1, 2, 1]
failing("shared-pool-in-words", "GRF-35", mixed, [(["share_params", {"other": True}, {"params": {"p": zeros(S)}}], ["GRF-35", "unsupported"])], "the weights of both would be overwritten by a result")
failing("steps-in-words", "GRF-40 GRF-41", SMALL, [(["execute_node", 4], ["GRF-40", "missing"]), (["execute_node", -1], ["GRF-40", "missing"]), (["get_node_output", 0, 0], ["GRF-41", "missing"]), (["get_node_output", 3, 0], ["GRF-41", "missing"])], "there is no such node, or it did not run", debug=True)
failing("layers-in-words", "GRF-44", SMALL, [(["get_output_by_layer", 4, 0], ["GRF-44", "missing"]), (["get_output_by_layer", 3, 1], ["GRF-44", "missing"]), (["get_output_by_layer", -1, 0], ["GRF-44", "missing"]), (["debug_get_output", "nope"], ["GRF-44", "missing"]), (["debug_run", 4], ["GRF-44", "missing"]),
        (["run_individual_node", 4, 1, 1, 0], ["GRF-44", "missing"])], "there is no such layer", debug=True)
times = ["GRF-42", "type"]
failing("times-in-words", "GRF-42", SMALL, [(["run_individual", 0, 1, 0], times), (["run_individual", 1, 0, 0], times), (["run_individual", -1, 1, 0], times), (["run_individual", 1, -1, 0], times), (["run_individual", 1, 1, -1], times), (["run_individual", 1, 1, 0, 0, 0], times), (["run_individual", 1, 1, 0, -1, 1], times),
        (["run_individual_node", 3, 0, 1, 0], times), (["run_individual_node", 3, 1, 0, 0], times), (["run_individual_node", -1, 1, 1, 0], times), (["run_individual_node", 3, 1, 1, -1], times), (["run_individual_node", 3, 1, 1, 0, 0], times), (["debug_run", -1], times)], "a mean of no runs is no number", debug=True)
text, kernels, make = {"graph": True}, {"kernels": True}, "tvm.graph_executor.create"
failing("created-badly", "GRF-43", SMALL, [(["@global", make], ["GRF-43", "type"]), (["@global", make, text], ["GRF-43", "type"]), (["@global", make, text, kernels], ["GRF-43", "type"]), (["@global", make, text, kernels, 1], ["GRF-43", "type"]), (["@global", make, text, kernels, 1, 0, 1], ["GRF-43", "type"]), (["@global", make, text, 7, 1, 0], ["GRF-43", "type"]),
        (["@global", make, text, kernels, None], ["GRF-43", "type"]), (["@global", "tvm.graph_executor_factory.create", text, kernels], ["GRF-43", "type"]), (["@global", "tvm.graph_executor_factory.create", text, kernels, "default", "p"], ["GRF-43", "type"]), (["@global", "tvm.graph_executor_factory.create", text, 5, "default"], ["GRF-43", "type"])], "at least a graph, a library and a device", bare=True)
absent = copy.deepcopy(SMALL)
absent["nodes"][2]["attrs"]["func_name"] = "nobody"
for id, rules, g, broken, more in (("no-device-in-words", "GRF-30", SMALL, ["GRF-43", "type"], {"devices": []}), ("missing-functions-in-words", "GRF-31", absent, ["GRF-31", "missing"], {}),
                                   ("copy-of-two-in-words", "GRF-36", graph((None, "x", [], [(S, 0)]), (None, "p", [], [(S, 1)]), ("__copy", "y", [(0, 0), (1, 0)], [(S, 2)]), heads=[(2, 0)]), ["GRF-36", "malformed"], {}),
                                   ("copy-of-other-size-in-words", "GRF-36", graph((None, "x", [], [([2], 0)]), ("__copy", "y", [(0, 0)], [(S, 1)]), heads=[(1, 0)]), ["GRF-36", "malformed"], {})):
    script(id, rules + (" GRF-43" if id.startswith("no-device") else ""), {"graph": g, **more, "steps": [BROKEN]}, [ERROR, broken], "better reported when the model is made than in the middle of a run", "0.8..0.19", "ours alone: rule and kind from spec/graph.md")

# A model in Rust.
own = lambda name, form: ["@own", name, form]
OURS = "by formula, in more.py; ours alone"
ones = plus(zeros(S))
value = lambda form: {"graph": SMALL, "steps": [own("model", form)]}
script("model", "GRF-32 GRF-38", value({"runs": [{"x": X}, {"x": X, "p": P}, {"x": P}, {"nope": X}, {"x": tensor([6], [1] * 6)}]}),
       [[lost, [Y], [{**P, "data": [2 * v + 1 for v in P["data"]]}], lost, other, [], 96, True, ones, 0]], "a model in three lines: inputs by name, outputs as copies", "0.8..0.19", OURS)
script("model-with-params", "GRF-32 GRF-37", value({"params": {"p": P, "nobody": X}, "runs": [{"x": X}]}), [[[Y], [], 96, True, ones, 0, 1]], "weights that came with a file are set", "0.8..0.19", OURS)
script("model-that-was-never-fed", "GRF-32", value({"runs": []}), [[["x", "p"], 96, True, ones, 0]], "what was never set holds whatever was there", "0.8..0.19", OURS)
script("model-without-its-functions", "GRF-31", {"graph": absent, "bare": True, "steps": [own("model", {})]}, [["GRF-31", "missing"]], "better reported when the model is made than in the middle of a run", "..0.19", OURS)

# The dump of the debug executor.
two = graph((None, "x", [], [(S, 0)]), ("two", "t", [(0, 0)], [(S, 1), (S, 2)]), ("add", "y", [(1, 1), (1, 0)], [(S, 0)]), heads=[(1, 0), (2, 0)])


def dumped(g, tensors):
    """The dump as spec/graph.md describes it: names for inputs, the function for `op`, type and shape of the first output."""
    nodes = []
    for at, node in enumerate(g["nodes"]):
        first = g["node_row_ptr"][at]
        attrs = dict(node.get("attrs", {}))
        attrs["T"] = "type: " + g["attrs"]["dltype"][1][first]
        nodes.append({"op": attrs.get("func_name", "param"), "name": node["name"], "inputs": [g["nodes"][i[0]]["name"] for i in node["inputs"]], "attrs": attrs, "shape": g["attrs"]["shape"][1][first]})
    trace = sum(([f"{node['name']} B 1 1", f"{node['name']} E 1 1"] for node in g["nodes"]), [])
    return {"folder": "_tvmdbg_device_CPU_0", "nodes": nodes, "rest": True, "trace": trace, "unit": "ns", "in order": True, "took": ["attrs" in node for node in g["nodes"]], "tensors": tensors}


double, both = {**X, "data": [2 * v for v in X["data"]]}, {**X, "data": [2 * v + v + 1 for v in X["data"]]}
for id, g, inputs, tensors in (("dump", SMALL, {"x": X, "p": P}, {"x____0": X, "p____0": P, "sum____0": SUM, "y____0": Y}), ("dump-of-two-outputs", two, {"x": X}, {"x____0": X, "t____0": plus(X), "t____1": double, "y____0": both})):
    script(id, "GRF-40 GRF-41", {"graph": g, "steps": [own("dump", {"inputs": inputs})]}, [dumped(g, tensors)], "what every layer computed, to look at", "0.12..0.19", OURS)

# Linked parameters.
lookup = {"lookup": {"1": P}}
linked = [(["@global-make", make, text, kernels, lookup, 1, 0], {"module": "GraphExecutor"}), (["get_input", "p"], P), (["set_input", "x", X], NONE), (["run"], NONE), (["get_output", 0], Y), (["set_input", "p", X], ERROR), (BROKEN, ["GRF-43", "unsupported"]), (["get_input", 1], P),
          (["run_from_inputs", 1, 0, "x", P], [{**P, "data": [2 * v + 1 for v in P["data"]]}])]
v, e = steps(SMALL, linked, bare=True)
script("linked", "GRF-43", v, e, "weights that lie in the library are used where they are", "0.8..0.19", OURS)
v, e = steps(SMALL, [(["@global-make", make, text, kernels, {"lookup": {"0": P, "1": X}}, 1, 0], {"module": "GraphExecutor"}), (["get_input", "x"], P), (["run"], NONE), (["get_output", 0], Y), (["get_input", "p"], X)], bare=True)
script("linked-both", "GRF-43", v, e, "each parameter by its storage", "0.8..0.19", OURS)

# Types of whole bytes, flags of old graphs.
flag = graph((None, "x", [], [([4], 0, 1, "uint1")]), ("__nop", "y", [(0, 0)], [([4], 0, 1, "uint1")]), heads=[(1, 0)])
bits = [1, 0, 1, 1]
v, e = steps(flag, [(["set_input", "x", tensor([4], bits, "bool")], NONE), (["run_from_inputs", 1, 0, "x", tensor([4], bits, "bool")], [tensor([4], bits, "bool")]), (["set_input", "x", tensor([4], bits, "int8")], ERROR), (BROKEN, other), (["set_input", "x", tensor([4], bits, "uint8")], ERROR), (BROKEN, other)])
script("flags", "GRF-33", v, e, "a flag of old graphs is a byte, and a bool now", "0.8..0.19", OURS)
skewed = [(["set_input", "x", {"tensor": "t"}], NONE), (["set_input", "p", P], NONE), (["run"], NONE), (["get_output", 0], Y), (["get_output", 0, {"tensor": "u"}], NONE), (["@show", "u"], Y), (["set_output_zero_copy", 0, {"tensor": "w"}], NONE), (["run"], NONE), (["@show", "w"], Y)]
v, e = steps(SMALL, skewed, tensors={"t": {**X, "skew": 4}, "u": {**zeros(S), "skew": 12}, "w": {**zeros(S), "skew": 64}})
script("copies-by-offset", "GRF-33 GRF-34", v, e, "the first byte of a tensor is not that of its memory", "0.19", OURS)
v, e = steps(graph((None, "x", [], [(S, 0, 12)]), ("touch", "y", [(0, 0)], [(S, 1, 12)]), heads=[(1, 0)]), [(["get_output", 0], {"dtype": "float32", "shape": S, "device": [12, 1]}), (["get_input", 0], {"dtype": "float32", "shape": S, "device": [12, 1]})], devices=[[1, 0], [12, 1], [12, 0]])
script("first-of-its-type", "GRF-30", v, e, "of two devices of a type the first one has the entries", "0.8..0.19", OURS)

# Live objects on a counting device.
chain = graph((None, "x", [], [(S, 0, 98)]), ("touch", "a", [(0, 0)], [(S, 1, 98)]), ("touch", "b", [(1, 0)], [(S, 0, 98)]), ("touch", "c", [(2, 0)], [([5], 1, 98)]), heads=[(3, 0)])
alive = lambda spaces, bytes, allocations, copies=0: {"spaces": spaces, "bytes": bytes, "streams": 0, "allocations": allocations, "copies": copies}
there = lambda shape: {"dtype": "float32", "shape": shape, "device": [98, 0]}


def counted(id, g, pairs, end, why, **more):
    value, results = steps(g, pairs, devices=[[1, 0], [98, 0]], balance=True, **more)
    script(id, "GRF-30 GRF-45", value, {"results": results, "alive": end}, why, "0.8..0.19", OURS)


counted("alive-pools", chain, [(["@alive"], alive(2, 48, 2)), (["set_input", "x", X], NONE), (["run"], NONE), (["run"], NONE), (["@alive"], alive(2, 48, 2, 1)), (["get_output", 0], there([5])), (["get_output", 0, {"tensor": "t"}], NONE), (["@alive"], alive(2, 48, 2, 2))], alive(0, 0, 2, 2),
        "memory is planned once, by storage, and a run takes none", tensors={"t": zeros([5])})
counted("alive-two-executors", chain, [(["@alive"], alive(2, 48, 2)), (["@other", "get_num_inputs"], 1), (["@alive"], alive(4, 96, 4))], alive(0, 0, 4), "each executor has memory of its own, and frees it")
counted("alive-held-output", chain, [(["@hold", "get_output", 0], {"held": True}), (["@hold", "get_input", 0], {"held": True}), (["@held"], there(S)), (["@alive"], alive(2, 48, 2))], alive(0, 0, 2), "an output that is kept keeps its memory, and no longer")
weights = graph((None, "x", [], [(S, 0, 98)]), (None, "p", [], [(S, 1, 98)]), ("touch", "y", [(0, 0), (1, 0)], [(S, 2, 98)]), heads=[(2, 0)])
counted("alive-shared-weights", weights, [(["share_params", {"other": True}, {"params": {"p": zeros(S)}}], NONE), (["@other", "set_input", "p", P], NONE), (["@alive"], alive(6, 144, 6, 1)), (["get_input", "p", {"tensor": "t"}], NONE), (["@show", "t"], P)], alive(0, 0, 6, 2),
        "weights of two executors go with the last of them", tensors={"t": zeros(S)})

conformance.add("graph", made)
print(len(made), "cases")
