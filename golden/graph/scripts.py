"""Cases that drive an executor step by step (op graph.script). Expected results are computed here, by hand or by formula."""

import base64
import copy
import json
import struct

ERROR, NONE = {"error": True}, None


def tensor(shape, data, dtype="float32", **more):
    return {"dtype": dtype, "shape": shape, "data": data, **more}


def zeros(shape):
    count = 1
    for extent in shape:
        count *= extent
    return tensor(shape, [0.0] * count)


def graph(*nodes, heads):
    """Nodes are (func or None, name, inputs, outputs, options); outputs are (shape, storage id[, device type[, dtype]])."""
    made = {"nodes": [], "arg_nodes": [], "node_row_ptr": [0], "heads": [list(head) + [0] for head in heads]}
    shapes, storage, devices, dtypes = [], [], [], []
    for index, (func, name, inputs, outputs, *options) in enumerate(nodes):
        node = {"op": "tvm_op" if func else "null", "name": name, "inputs": [list(entry) + [0] for entry in inputs]}
        if func:
            node["attrs"] = {"func_name": func, "num_inputs": str(len(inputs)), "num_outputs": str(len(outputs)),
                             "flatten_data": "1" if "flatten" in options else "0"}
        else:
            made["arg_nodes"].append(index)
        made["nodes"].append(node)
        for shape, sid, *more in outputs:
            shapes.append(shape)
            storage.append(sid)
            devices.append(more[0] if more else 1)
            dtypes.append(more[1] if len(more) > 1 else "float32")
        made["node_row_ptr"].append(len(shapes))
    made["attrs"] = {"dltype": ["list_str", dtypes], "device_index": ["list_int", devices],
                     "storage_id": ["list_int", storage], "shape": ["list_shape", shapes]}
    return made


S = [2, 3]
X, P = tensor(S, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), tensor(S, [10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
SUM = tensor(S, [a + b for a, b in zip(X["data"], P["data"])])


def plus(t, n=1.0):
    return {**t, "data": [value + n for value in t["data"]]}


# y = (x + p) + 1
SMALL = graph((None, "x", [], [(S, 0)]), (None, "p", [], [(S, 1)]), ("add", "sum", [(0, 0), (1, 0)], [(S, 2)]),
              ("add1", "y", [(2, 0)], [(S, 3)]), heads=[(3, 0)])
Y = plus(SUM)
SET = [(["set_input", "x", X], NONE), (["set_input", "p", P], NONE)]


def cases(add):
    """`add(id, rules, value, expect, why, **more)` for every case."""

    def script(id, rules, graph, steps, why, parent=None, releases="0.8..0.19", either=False, **more):
        value = {"graph": graph, **more, "steps": [step for step, _ in steps]}
        expect = {"either": True} if either else {"accept": [result for _, result in steps]}
        add("script/" + id, rules, value, expect, why, releases)

    script("run", "GRF-38", SMALL, SET + [
        (["run"], NONE), (["get_output", 0], Y), (["@log"], [["add", [S, S, S]], ["add1", [S, S]]]), (["get_input", "x"], X),
        (["get_input", 1], P), (["get_num_inputs"], 2), (["get_num_outputs"], 1), (["get_output", 0, tensor(S, [0] * 6)], NONE)],
        "the order of the nodes is the only order there is", releases="..0.19")
    two = graph((None, "x", [], [(S, 0)]), ("two", "t", [(0, 0)], [(S, 1), (S, 2)]), ("add", "y", [(1, 1), (1, 0)], [(S, 0)]),
                heads=[(1, 0), (2, 0)])
    double = {**X, "data": [2 * v for v in X["data"]]}
    both = {**X, "data": [2 * v + v + 1 for v in X["data"]]}
    script("two-outputs", "GRF-38", two, [(["set_input", 0, X], NONE), (["run"], NONE), (["get_output", 0], plus(X)), (["get_output", 1], both),
           (["get_output", "y"], both), (["get_num_outputs"], 2)], "inputs come first, then outputs, each in its order", releases="0.12..0.19")
    script("outputs-by-name", "GRF-32", two, [(["set_input", 0, X], NONE), (["run"], NONE), (["get_output", "t:0"], ERROR),
           (["get_output", "t"], plus(X)), (["get_output", "t:1"], ERROR), (["get_output", "nope"], ERROR)],
           "a node returns the last of its outputs under its name; what is no name of a node must not be some output", releases="0.12..0.19")
    fails = graph((None, "x", [], [(S, 0)]), ("fail", "f", [(0, 0)], [(S, 1)]), ("add1", "y", [(1, 0)], [(S, 2)]), heads=[(2, 0)])
    script("kernel-fails", "GRF-38", fails, [(["set_input", 0, X], NONE), (["run"], ERROR), (["@log"], [["fail", [S, S]]])],
           "what follows a failed kernel would compute on nothing", releases="0.7..0.19")
    nop = graph((None, "x", [], [(S, 0)]), ("__nop", "flat", [(0, 0)], [([6], 0)]), ("add1", "y", [(1, 0)], [([6], 1)]), heads=[(2, 0)])
    script("nop", "GRF-38", nop, [(["set_input", 0, X], NONE), (["run"], NONE), (["get_output", 0], {**plus(X), "shape": [6]}),
           (["@log"], [["add1", [[6], [6]]]])], "`__nop` is a reshape in place", releases="0.7..0.19")
    script("shares-its-memory", "GRF-45", SMALL, SET + [(["run"], NONE), (["@hold", "get_output", 0], {"held": True}), (["set_input", "x", P], NONE),
           (["run"], NONE), (["@held"], {**P, "data": [2 * v + 1 for v in P["data"]]})], "an output that is kept over a run changes: copy it", releases="0.7..0.19")

    script("fallback-device", "GRF-30", graph((None, "x", [], [(S, 0, 2)]), ("touch", "y", [(0, 0)], [(S, 1, 12)]), heads=[(1, 0)]),
           [(["set_input", 0, X], NONE), (["get_input", 0], X), (["get_output", 0], {"dtype": "float32", "shape": S, "device": [12, 0]})],
           "a device type that is not there goes to the first device", devices=[[1, 0], [12, 0]])
    add("script/no-device", "GRF-30", {"graph": SMALL, "devices": [], "steps": [["run"]]}, {"accept": [ERROR]},
        "without a device there is no memory", "0.7..0.19")
    missing = copy.deepcopy(SMALL)
    missing["nodes"][2]["attrs"]["func_name"] = "nobody"
    missing["nodes"][3]["attrs"]["func_name"] = "knows"
    add("script/missing-functions", "GRF-31", {"graph": missing, "steps": [["run"]]}, {"accept": [ERROR]},
        "better reported when the model is made than in the middle of a run", "..0.19")

    script("no-such-input", "GRF-32", SMALL, [(["set_input", 2, X], ERROR), (["set_input", -1, X], ERROR), (["get_input", 2], ERROR),
           (["get_output", 1], ERROR), (["get_output", -1], ERROR), (["set_input", "nope", X], NONE),
           (["run_from_inputs", 1, 0, "nope", X], ERROR)],
           "numbers are checked; an unknown name is passed over by set_input, because frontends set all that they have", releases="0.7..0.19")
    script("no-such-input-read", "GRF-46", SMALL, [(["get_input", "nope"], NONE)], "None from 0.7 on, an error before", either=True, releases="0.5..0.19")
    script("other-type", "GRF-33", SMALL, SET + [(["set_input", "x", tensor(S, [1] * 6, "int32")], ERROR), (["get_input", "x"], X)],
           "every release takes int32 for float32: six denormal numbers and no word", releases="0.7..0.19")
    script("other-shape", "GRF-33", SMALL, SET + [(["set_input", "x", tensor([3, 2], [1] * 6)], ERROR), (["set_input", "x", tensor([6], [1] * 6)], ERROR),
           (["get_input", "x"], X)], "every release takes a transposed image", releases="0.7..0.19")
    script("other-size", "GRF-33", SMALL, [(["set_input", "x", tensor([2, 2], [1] * 4)], ERROR), (["run"], NONE),
           (["get_output", 0, tensor([4], [0] * 4)], ERROR)], "bytes that are not there", releases="0.7..0.19")
    script("copy-out", "GRF-33", SMALL, SET + [(["run"], NONE), (["get_output", 0, {"tensor": "t"}], NONE), (["@show", "t"], Y),
           (["get_output", 0, {"tensor": "i"}], ERROR)], "an output is copied to where it fits",
           tensors={"t": zeros(S), "i": tensor(S, [0] * 6, "int32")}, releases="0.7..0.19")

    script("in-place", "GRF-34", SMALL, SET + [(["set_input_zero_copy", "x", {"tensor": "t"}], NONE), (["@fill", "t", X["data"]], NONE), (["run"], NONE),
           (["get_output", 0], Y), (["@fill", "t", P["data"]], NONE), (["run"], NONE), (["get_output", 0], {**P, "data": [2 * v + 1 for v in P["data"]]}),
           (["get_input", "x"], X), (["set_input", "x", X], NONE), (["run"], NONE), (["get_output", 0], {**P, "data": [2 * v + 1 for v in P["data"]]}),
           (["run_from_inputs", 1, 0, "x", X], [{**P, "data": [2 * v + 1 for v in P["data"]]}])],
           "an input used in place: get_input and set_input still mean the old memory, which no call reads any more", tensors={"t": zeros(S)}, releases="0.8..0.13")
    script("output-in-place", "GRF-34", SMALL, SET + [(["set_output_zero_copy", 0, {"tensor": "t"}], NONE), (["run"], NONE), (["@show", "t"], Y)],
           "an output written where it is wanted", tensors={"t": zeros(S)})
    script("in-place-through-nop", "GRF-34 GRF-48", nop, [(["set_input_zero_copy", "x", {"tensor": "t"}], NONE), (["@fill", "t", X["data"]], NONE), (["run"], NONE),
           (["get_output", 0], {**plus(X), "shape": [6]})], "the reshaped input is the same memory", tensors={"t": zeros(S)}, releases="0.14..0.19")
    shared = graph((None, "x", [], [(S, 0)]), ("add1", "a", [(0, 0)], [(S, 1)]), ("add1", "b", [(1, 0)], [(S, 2)]), ("add1", "c", [(2, 0)], [(S, 1)]),
                   heads=[(1, 0), (3, 0)])
    script("in-place-beside-others", "GRF-34 GRF-48", shared, [(["set_input", 0, X], NONE), (["set_output_zero_copy", 0, {"tensor": "t"}], NONE), (["run"], NONE),
           (["@show", "t"], plus(X)), (["get_output", 1], plus(X, 3.0))], "c is later in the pool of a; it must not be written into a's tensor",
           tensors={"t": zeros(S)})
    script("not-aligned", "GRF-34", SMALL, [(["set_input_zero_copy", "x", tensor(S, X["data"], skew=4)], ERROR), (["set_output_zero_copy", 0, tensor(S, X["data"], skew=32)], ERROR)],
           "compiled code loads vectors from aligned addresses")
    script("aligned-by-offset", "GRF-34", SMALL, SET + [(["set_input_zero_copy", "x", {"tensor": "t"}], NONE), (["run"], NONE), (["get_output", 0], Y)],
           "the offset counts", tensors={"t": {**X, "skew": 64}}, releases="0.10..0.19")
    there = graph((None, "x", [], [(S, 0, 12)]), ("touch", "y", [(0, 0)], [(S, 1, 12)]), heads=[(1, 0)])
    script("in-place-elsewhere", "GRF-34", there, [(["set_input_zero_copy", 0, X], ERROR)], "a device cannot read the host's memory", devices=[[1, 0], [12, 0]])

    script("share", "GRF-35", SMALL, [(["@other", "set_input", "p", P], NONE), (["share_params", {"other": True}, {"params": {"p": zeros(S), "nope": zeros(S)}}], NONE),
           (["set_input", "x", X], NONE), (["run"], NONE), (["get_output", 0], Y), (["@other", "set_input", "p", X], NONE), (["run"], NONE),
           (["get_output", 0], {**X, "data": [2 * v + 1 for v in X["data"]]}), (["get_input", "p"], X)], "two executors, one set of weights", releases="0.6..0.19")
    mixed = copy.deepcopy(SMALL)
    mixed["attrs"]["storage_id"][1] = [0, 1, 2, 1]
    script("share-a-shared-pool", "GRF-35", mixed, [(["share_params", {"other": True}, {"params": {"p": zeros(S)}}], ERROR)],
           "the weights of both would be overwritten by a result", releases="0.6..0.19")
    script("share-with-what", "GRF-44", SMALL, [(["share_params", {"kernels": True}, {"params": {"p": zeros(S)}}], ERROR), (["share_params", {"self": True}, {"params": {"p": zeros(S)}}], ERROR)],
           "parameters come from another graph executor", releases="0.6..0.19")
    across = graph((None, "x", [], [(S, 0, 12)]), ("__copy", "here", [(0, 0)], [(S, 1)]), ("add1", "y", [(1, 0)], [(S, 2)]), ("__copy", "there", [(2, 0)], [(S, 3, 12)]),
                   ("__copy", "back", [(3, 0)], [(S, 4)]), heads=[(4, 0), (3, 0)])
    script("copy-between-devices", "GRF-36", across, [(["set_input", 0, X], NONE), (["run"], NONE), (["get_output", 0], plus(X)),
           (["get_output", 1], {"dtype": "float32", "shape": S, "device": [12, 0]}), (["get_output", 1, {"tensor": "t"}], NONE), (["@show", "t"], plus(X))],
           "a model on two devices", devices=[[1, 0], [12, 0]], tensors={"t": zeros(S)}, releases="0.5..0.19")
    for id, g in (("copy-of-two", graph((None, "x", [], [(S, 0)]), (None, "p", [], [(S, 1)]), ("__copy", "y", [(0, 0), (1, 0)], [(S, 2)]), heads=[(2, 0)])),
                  ("copy-of-other-size", graph((None, "x", [], [([2], 0)]), ("__copy", "y", [(0, 0)], [(S, 1)]), heads=[(1, 0)]))):
        add("script/" + id, "GRF-36", {"graph": g, "steps": [["run"]]}, {"accept": [ERROR]}, "bytes that are not there", "0.5..0.19")

    script("params", "GRF-37", SMALL, [(["load_params", {"params": {"p": P, "nobody": X}}], NONE), (["set_input", "x", X], NONE), (["run"], NONE), (["get_output", 0], Y),
           (["load_params", {"params": {"p": tensor([3, 2], [0] * 6)}}], ERROR), (["load_params", "no parameter file"], ERROR)],
           "a parameter file may hold more than the graph needs", releases="0.7..0.19")
    flat = graph((None, "x", [], [(S, 0)]), ("add1", "y", [(0, 0)], [(S, 1)], "flatten"), heads=[(1, 0)])
    script("flatten", "GRF-39", flat, [(["set_input", 0, X], NONE), (["run"], NONE), (["@log"], [["add1", [[6], [6]]]])], "kernels of old schedules take one dimension", releases="..0.19")
    script("flatten-shows", "GRF-47", flat, [(["run"], NONE), (["get_output", 0], plus(zeros(S)))], "0.19 shows the output flat", either=True, releases="0.5..0.19")

    debug = dict(debug=True)
    script("step-by-step", "GRF-40 GRF-41", SMALL, SET + [
        (["execute_node", 2], NONE), (["@log"], [["add", [S, S, S]]]), (["get_node_output", 2, 0], SUM), (["execute_node", 3], NONE), (["@log"], [["add1", [S, S]]]),
        (["execute_node", 3], NONE), (["@log"], []), (["get_node_output", 3, 0], Y), (["execute_node", 0], NONE), (["@log"], []), (["execute_node", 3], NONE),
        (["@log"], [["add", [S, S, S]], ["add1", [S, S]]])], "forwards from where it is, backwards from the start", **debug)
    script("step-too-far", "GRF-40", SMALL, [(["execute_node", 4], ERROR), (["execute_node", -1], ERROR), (["@log"], [])], "there is no such node", **debug)
    script("step-not-there", "GRF-41", SMALL, [(["get_node_output", 0, 0], ERROR), (["execute_node", 3], NONE), (["get_node_output", 2, 0], ERROR), (["get_node_output", 3, 1], ERROR)],
           "its memory may hold another entry by now", **debug)
    script("times", "GRF-42", SMALL, SET + [
        (["@count", "run_individual", 1, 1, 0], 4)],
        "one time for every node, as text", **debug, releases="0.6..0.8")
    script("times-of-nothing", "GRF-42", SMALL, [(["run_individual", 0, 1, 0], ERROR), (["run_individual", 1, 0, 0], ERROR), (["run_individual", -1, 1, 0], ERROR), (["run_individual", 1, 1, -1], ERROR),
           (["run_individual_node", 3, 0, 1, 0], ERROR), (["run_individual_node", 9, 1, 1, 0], ERROR)], "a mean of no runs is no number", **debug)
    script("look-inside", "GRF-44", SMALL, SET + [(["debug_get_output", "sum"], SUM), (["debug_get_output", 3], Y), (["debug_get_output", "sum", {"tensor": "t"}], NONE), (["@show", "t"], SUM),
           (["debug_get_output", "nope"], ERROR)], "what a layer computes", tensors={"t": zeros(S)}, **debug, releases="0.16..0.19")
    script("look-inside-behind-two", "GRF-50", two, [(["set_input", 0, X], NONE), (["debug_get_output", "y"], both)], "released executors give entry 2, which is t:1", either=True, **debug)

    bare, kernels, text = dict(bare=True), {"kernels": True}, {"graph": True}
    for id, name, releases in (("create", "tvm.graph_executor.create", "0.8..0.19"), ("create-runtime", "tvm.graph_runtime.create", "0.5..0.7")):
        script(id, "GRF-43", SMALL, [(["@global-make", name, text, kernels, 1, 0], {"module": "GraphExecutor"})] + SET + [(["run"], NONE), (["get_output", 0], Y), (["@has", "execute_node"], False)],
               "how every frontend makes an executor", **bare, releases=releases)
    script("create-debug", "GRF-43", SMALL, [(["@global-make", "tvm.graph_executor_debug.create", text, kernels, 1, 0], {"module": "GraphExecutor"}), (["@has", "execute_node"], True), (["@has", "run"], True)],
           "the debug executor has every function of the other", **bare)
    script("create-with-lookup", "GRF-43", SMALL, [(["@global-make", "tvm.graph_executor.create", text, kernels, None, 1, 0], {"module": "GraphExecutor"}), (["get_num_inputs"], 2)],
           "0.8 passes a function between library and devices", **bare)
    name = "tvm.graph_executor.create"
    script("create-badly", "GRF-43", SMALL, [(["@global", name, text, kernels], ERROR), (["@global", name, text, kernels, 1], ERROR), (["@global", name, text, 7, 1, 0], ERROR),
           (["@global", name, text, kernels, 1, 0, 1], ERROR), (["@global", name], ERROR)], "at least a graph, a library and a device", **bare)
    script("functions", "GRF-44", SMALL, [(["@has", f], True) for f in ("set_input", "set_input_zero_copy", "set_output_zero_copy", "get_input", "get_output", "get_num_inputs", "get_num_outputs",
           "get_input_index", "run", "run_from_inputs", "load_params", "share_params")] + [(["@has", "nope"], False), (["@has", "execute_node"], False)], "frontends ask for these by name")
    info = {"shape": {"x": S, "p": S}, "dtype": {"x": "float32", "p": "float32"}}
    script("info", "GRF-44", SMALL, [(["get_input_info"], info), (["get_output_info"], {"shape": {"y": S}, "dtype": {"y": "float32"}}), (["load_params", {"params": {"p": P}}], NONE),
           (["get_input_info"], {"shape": {"x": S}, "dtype": {"x": "float32"}}), (["get_input_index", "p"], 1), (["get_input_index", "nope"], -1)],
           "what to feed; parameters that came with a file are not asked for", releases="0.12..0.19")
    script("called-badly", "GRF-44", SMALL, [(["set_input", "x"], ERROR), (["get_input_index", 0], ERROR), (["run_from_inputs", 1, 0, "x"], ERROR), (["get_output"], ERROR), (["load_params"], ERROR)],
           "too few arguments, and of the wrong type")
    script("run-from-inputs", "GRF-44", SMALL, [(["run_from_inputs", 1, 0, "x", X, "p", P], [Y]), (["get_input", "x"], X)], "one call from inputs to outputs")

    model, cpu = copy.deepcopy(SMALL), {"device": [1, 0]}
    make = ["@global-make", "tvm.graph_executor_factory.create", text, kernels, "default", "p", P]
    string = lambda s: struct.pack("<Q", len(s)) + s.encode()
    blob = string(json.dumps(model, separators=(",", ":"))) + struct.pack("<Q", 1) + struct.pack("<Q", 1) + string("p")
    blob += struct.pack("<QQiiiBBHqqq48s", 0xDD5E40F096B4A13F, 0, 1, 0, 2, 2, 32, 1, 2, 3, 24, b"")[:-48] + struct.pack("<6f", *P["data"]) + string("default")
    script("factory", "GRF-49", model, [(make, {"module": "GraphExecutorFactory"}), (["get_graph_json"], json.dumps(model, separators=(",", ":"))), (["get_graph_params"], {"p": P}),
           (["@save"], base64.b64encode(blob).decode()), (["@make", "default", cpu], {"module": "GraphExecutor"}), (["get_input", "p"], P), (["set_input", "x", X], NONE), (["run"], NONE),
           (["get_output", 0], Y), (["@has", "execute_node"], False)], "a whole model in one module", **bare, releases="0.9..0.19")
    script("factory-debug", "GRF-49", model, [(make, {"module": "GraphExecutorFactory"}), (["debug_create", "other", cpu], ERROR), (["@make", "debug_create", "default", cpu], {"module": "GraphExecutor"}),
           (["@has", "execute_node"], True), (["get_input", "p"], P)], "the same model, to look into", **bare)
    script("factory-without-params", "GRF-49", model, [(make, {"module": "GraphExecutorFactory"}), (["@make", "remove_params"], {"module": "GraphExecutorFactory"}), (["get_graph_params"], {}),
           (["@make", "default", cpu], {"module": "GraphExecutor"})], "parameters may travel in a file of their own", **bare, releases="0.9..0.19")
    script("factory-badly", "GRF-43", model, [(["@global", "tvm.graph_executor_factory.create", text, kernels], ERROR), (["@global", "tvm.graph_executor_factory.create", text, kernels, "default", "p"], ERROR)],
           "parameters come in pairs", **bare)
