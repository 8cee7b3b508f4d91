#!/usr/bin/env python3
"""Writes golden/graph and cases of conformance/graph/cases: python3 golden/graph/make.py SAMPLES

Graphs that real releases wrote are copied. Malformed ones are the smallest real one with one edit. The expected storage plan is
computed here from the rules (numpy knows the sizes of dtypes); nothing of the crate is used.
"""

import copy
import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "conformance"))

import cases as conformance
import scripts

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
cases, manifest = [], {}


def bits(dtype):
    name, _, lanes = re.fullmatch(r"([a-z]+)(\d*)(?:x(\d+))?", dtype).groups()
    width = {"bool": 1}.get(name) or int(_)
    return width * int(lanes or 1)


def normal(graph):
    """The normal form, and the plan."""
    graph = copy.deepcopy(graph)
    entries = lambda refs: [ref + [0] if len(ref) == 2 else ref for ref in refs]
    graph["heads"] = entries(graph["heads"])
    for node in graph["nodes"]:
        node["inputs"] = entries(node["inputs"])
        node.pop("control_deps", None)
        if "attr" in node:
            node["attrs"] = node.pop("attr")
    graph.pop("metadata", None)
    known = ("dltype", "device_index", "storage_id", "shape", "storage_scope")
    graph["attrs"] = {key: value for key, value in graph["attrs"].items() if key in known}
    attrs = {key: value[1] for key, value in graph["attrs"].items()}
    pools = {}
    for i, (dtype, sid, shape) in enumerate(zip(attrs["dltype"], attrs["storage_id"], attrs["shape"])):
        size = -(-bits(dtype) // 8) * math.prod(shape)
        device = attrs["device_index"][i] if "device_index" in attrs else None
        old = pools.get(sid, {"bytes": 0})
        pools[sid] = {"id": sid, "bytes": max(size, old["bytes"]), "device": device}
    storage = [pools.get(i, {"id": i, "bytes": 0, "device": None}) for i in range(max(pools, default=-1) + 1)]
    return {**graph, "entries": len(attrs["dltype"]), "storage": storage}


def case(id, rules, input, expect, why, origin, **more):
    entry = {"id": "graph/" + id, "rules": rules.split(), "releases": more.pop("releases", "..0.19"), "op": "graph.decode"}
    if "parent" in more:
        entry["parent"] = "graph/" + more.pop("parent")
    entry.update(input=input, expect=expect, encode=False, **more, why=why, origin=origin)
    cases.append(entry)


def keep(name, text, origin):
    (HERE / name).write_text(text)
    manifest["graph/" + name] = origin
    return {"file": "graph/" + name}


def main(samples):
    for id, path, release in (("mlp", "v0.8/mlp.graph.json", "0.8.0"), ("multi-out", "v0.8/multi_out.graph.json", "0.8.0"),
                              ("dtypes", "v0.8/dtypes.graph.json", "0.8.0"), ("resnet8", "v0.8/resnet8.graph.json", "0.8.0"),
                              ("mlp-0.19", "v0.19/mlp.graph.json", "0.19.0"),
                              ("dtypes-0.19", "v0.19/dtypes.graph.json", "0.19.0"),
                              ("multi-out-0.19", "v0.19/multi_out.graph.json", "0.19.0"),
                              ("shared-storage", "v0.8/graph-debug/graph.json", "0.8.0")):
        origin = {"release": release, "how": path}
        text = (samples / path).read_text()
        value = HERE / (id + ".expect.json")
        value.write_text(json.dumps(normal(json.loads(text))) + "\n")
        manifest["graph/" + value.name] = {"hand": f"normal form and plan of {id}.json, computed by make.py"}
        case(id, "GRF-01 GRF-02 GRF-04 GRF-07 GRF-12 GRF-13 GRF-15", keep(id + ".json", text, origin),
             {"accept_file": f"graph/{value.name}"}, "a model that a release exported must be read as it meant it", origin)

    small = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "tvm_op", "name": "add", "inputs": [[0, 0, 0]],
             "attrs": {"num_outputs": "1", "num_inputs": "1", "flatten_data": "0", "func_name": "add"}},
            {"op": "tvm_op", "name": "split", "inputs": [[1, 0, 0]],
             "attrs": {"num_outputs": "2", "num_inputs": "1", "flatten_data": "0", "func_name": "split"}},
        ],
        "arg_nodes": [0],
        "heads": [[2, 0, 0], [2, 1, 0]],
        "attrs": {"dltype": ["list_str", ["float32", "float32", "int8", "int8"]], "device_index": ["list_int", [1, 1, 1, 1]],
                  "storage_id": ["list_int", [0, 1, 2, 0]], "shape": ["list_shape", [[2, 3], [2, 3], [3], [4]]]},
        "node_row_ptr": [0, 1, 2, 4],
    }
    hand = "three nodes, the last with two outputs, one of which reuses the input's pool"
    origin = {"hand": hand}
    case("small", "GRF-01 GRF-08 GRF-09 GRF-10 GRF-11 GRF-12 GRF-22 GRF-23 GRF-24", keep("small.json", json.dumps(small, indent=1), origin),
         {"accept": normal(small)}, "the smallest graph with everything in it", origin, releases="0.5..0.19")

    def edited(edit):
        graph = copy.deepcopy(small)
        edit(graph)
        return graph

    def accepts(id, rules, edit, hand, why, findings=(), text=None, releases="..0.19"):
        graph = edited(edit) if edit else small
        text = text or json.dumps(graph, indent=1)
        more = {"findings": list(findings)} if findings else {}
        case(id, rules, keep(id + ".json", text, {"hand": hand}), {"accept": normal(graph)}, why, {"hand": hand},
             releases=releases, **more)

    def rejects(id, rules, kind, edit, hand, why, text=None, releases="..0.19"):
        text = text if text is not None else json.dumps(edited(edit), indent=1)
        case(id, rules, keep(id + ".json", text, {"hand": hand}), {"reject": kind}, why, {"hand": hand}, parent="small",
             releases=releases)

    def put(path, value):
        def edit(graph):
            at = graph
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
        return edit

    def drop(*path):
        def edit(graph):
            at = graph
            for key in path[:-1]:
                at = at[key]
            del at[path[-1]]
        return edit

    accepts("two-number-entries", "GRF-08", put(["heads"], [[2, 0], [2, 1]]), "small.json, heads without versions", "both forms occur")
    accepts("no-devices", "GRF-13", drop("attrs", "device_index"), "small.json without device_index", "0.2 to 0.4 write none")
    accepts("attr-instead-of-attrs", "GRF-04", lambda g: g["nodes"][1].update(attr=g["nodes"][1].pop("attrs")),
            "small.json with `attr`", "both names were written")
    accepts("control-deps", "GRF-04", put(["nodes", 2, "control_deps"], [0]), "small.json with control_deps", "read by all, used by none")
    accepts("metadata-last", "GRF-02", put(["metadata"], {"anything": 1}), "small.json with metadata at the end",
            "tools append notes; from 0.6 on they are ignored", releases="0.6..0.19")
    accepts("unknown-list-int", "GRF-16 GRF-21", put(["attrs", "priority"], ["list_int", [1, 2, 3, 4]]),
            "small.json with an unknown list of integers", "compilers add lists; old readers skip these", ["GRF-21"])
    doubled = json.dumps(small, indent=1).replace('"nodes"', '"arg_nodes": [], "nodes"', 1)
    accepts("member-twice", "GRF-20", None, "small.json with an empty arg_nodes in front", "the last one counts", ["GRF-20"], doubled)
    accepts("storage-with-a-gap", "GRF-22 GRF-52", put(["attrs", "storage_id", 1], [0, 1, 3, 0]), "small.json without pool 2",
            "ids may have gaps")

    text = json.dumps(small, indent=1)
    rejects("not-json", "GRF-01", "malformed", None, "small.json with a trailing comma", "who knows what was meant",
            text.rstrip()[:-1] + ",}")
    rejects("cut-off", "GRF-01", "truncated", None, "small.json cut in the middle", "half a model is none", text[:len(text) // 2])
    rejects("empty", "GRF-01", "truncated", None, "small.json cut before its first byte", "no model at all", "")
    rejects("a-list", "GRF-01", "malformed", None, "small.json in a list", "the graph is an object", "[" + text + "]")
    for member in ("nodes", "arg_nodes", "node_row_ptr", "heads", "attrs"):
        rejects(f"no-{member.replace('_', '-')}", "GRF-02", "missing", drop(member), f"small.json without {member}",
                "a reader that fills in a default runs another model")
    first = json.dumps({"metadata": {}, **small}, indent=1)
    rejects("metadata-first", "GRF-02", "missing", None, "small.json with metadata in front",
            "from 0.6 on everything behind it is ignored: the graph has no nodes", first)
    rejects("unknown-member", "GRF-03", "unsupported", put(["version"], 1), "small.json with `version`", "it may mean something")
    rejects("node-without-op", "GRF-04", "missing", drop("nodes", 1, "op"), "small.json, a node without op", "call or input?")
    rejects("node-without-name", "GRF-04", "missing", drop("nodes", 0, "name"), "small.json, an input without name", "inputs are set by name")
    rejects("node-with-unknown-member", "GRF-05", "unsupported", put(["nodes", 1, "device"], 2), "small.json, a node with `device`",
            "it may mean something")
    rejects("unknown-op", "GRF-06", "unsupported", put(["nodes", 0, "op"], "conv2d"), "small.json, op conv2d", "0.8.0 segfaults")
    for attr in ("func_name", "num_inputs", "num_outputs", "flatten_data"):
        rejects(f"no-{attr.replace('_', '-')}", "GRF-07", "missing", drop("nodes", 1, "attrs", attr), f"small.json without {attr}",
                "a default would be a guess")
    rejects("call-without-attrs", "GRF-07", "missing", drop("nodes", 1, "attrs"), "small.json, a call without attrs", "calls what?")
    rejects("num-outputs-a-number", "GRF-07", "malformed", put(["nodes", 1, "attrs", "num_outputs"], 1), "small.json, num_outputs 1 instead of \"1\"",
            "all node attributes are strings")
    rejects("num-outputs-not-decimal", "GRF-07", "malformed", put(["nodes", 1, "attrs", "num_outputs"], "one"), "small.json, num_outputs \"one\"",
            "released readers take it for 0")
    rejects("entry-of-four", "GRF-08", "malformed", put(["heads", 0], [2, 0, 0, 0]), "small.json, a head of four numbers", "there is no fourth")
    rejects("entry-of-one", "GRF-08", "malformed", put(["heads", 0], [2]), "small.json, a head of one number", "which output?")
    rejects("head-beyond-nodes", "GRF-09", "malformed", put(["heads", 0], [3, 0, 0]), "small.json, a head of node 3", "reads past the rows")
    rejects("output-beyond-node", "GRF-09", "malformed", put(["heads", 0], [1, 1, 0]), "small.json, output 1 of a node with one",
            "silently the first output of the next node")
    rejects("input-beyond-nodes", "GRF-09", "malformed", put(["nodes", 1, "inputs", 0], [9, 0, 0]), "small.json, an input from node 9", "reads past the rows")
    rejects("reads-later-node", "GRF-10", "malformed", put(["nodes", 1, "inputs", 0], [2, 0, 0]), "small.json, node 1 reads node 2",
            "it would see the run before")
    rejects("reads-itself", "GRF-10", "malformed", put(["nodes", 1, "inputs", 0], [1, 0, 0]), "small.json, node 1 reads itself", "it would see the run before")
    rejects("arg-is-a-call", "GRF-11", "malformed", put(["arg_nodes", 0], 1), "small.json, arg_nodes [1]", "an operator's result set as an input is overwritten")
    rejects("arg-beyond-nodes", "GRF-11", "malformed", put(["arg_nodes", 0], 7), "small.json, arg_nodes [7]", "reads past the nodes")
    rejects("rows-too-short", "GRF-12", "malformed", put(["node_row_ptr"], [0, 1, 2]), "small.json, a row less", "entry numbers read past the list")
    rejects("rows-start-at-one", "GRF-12", "malformed", put(["node_row_ptr", 0], 1), "small.json, first row at 1", "every entry is another one")
    rejects("row-too-long", "GRF-12", "malformed", put(["node_row_ptr"], [0, 1, 3, 5]), "small.json, node 1 with a row of two", "outputs land in foreign entries")
    rejects("attr-without-type", "GRF-13", "malformed", put(["attrs", "storage_id"], [[0, 1, 2, 0]]), "small.json, storage_id without a type", "type and list")
    rejects("attr-of-wrong-type", "GRF-13", "malformed", put(["attrs", "storage_id", 0], "list_str"), "small.json, storage_id as list_str", "type and list")
    for attr in ("dltype", "storage_id", "shape"):
        rejects(f"no-{attr.replace('_', '-')}", "GRF-14", "missing", drop("attrs", attr), f"small.json without {attr}", "what is an entry, and where?")
    rejects("scope-instead-of-dtype", "GRF-14", "missing",
            lambda g: (g["attrs"].pop("dltype"), g["attrs"].update(storage_scope=["list_str", ["", "", "", ""]])),
            "small.json with storage_scope and without dltype", "0.19 reads it, and its tensors have no type")
    rejects("dtype-too-few", "GRF-15", "malformed", put(["attrs", "dltype", 1], ["float32"]), "small.json, one dtype for four entries", "reads past the list")
    rejects("device-too-few", "GRF-15", "malformed", put(["attrs", "device_index", 1], [1]), "small.json, one device for four entries", "reads past the list")
    rejects("unknown-list-str", "GRF-16", "unsupported", put(["attrs", "names"], ["list_str", ["a", "b", "c", "d"]]), "small.json with unknown strings",
            "released readers cannot skip them")
    rejects("dtype-nonsense", "GRF-17", "malformed", put(["attrs", "dltype", 1, 0], "flaot32"), "small.json, dtype flaot32", "a typo is not float32")
    rejects("negative-extent", "GRF-18", "malformed", put(["attrs", "shape", 1, 0], [-1, 3]), "small.json, shape [-1, 3]", "a size of 2^64 - 12 bytes")
    rejects("negative-storage", "GRF-22", "unsupported", put(["attrs", "storage_id", 1, 0], -1), "small.json, storage id -1", "no release can run it")
    rejects("storage-id-2-31", "GRF-52", "limit", put(["attrs", "storage_id", 1, 0], 2 ** 31), "small.json, storage id 2^31", "two billion pools")
    rejects("size-overflow", "GRF-23", "limit", put(["attrs", "shape", 1, 0], [2 ** 33, 2 ** 33]), "small.json, shape [2^33, 2^33]", "wraps to 0 bytes in the reference")
    rejects("pool-on-two-devices", "GRF-24", "malformed", put(["attrs", "device_index", 1], [1, 1, 1, 2]), "small.json, entry 3 on device type 2",
            "one pool cannot be on two devices", releases="0.5..0.19")

    def driven(id, rules, value, expect, why, releases):
        cases.append({"id": "graph/" + id, "rules": rules.split(), "releases": releases, "op": "graph.script", "input": {"value": value},
                      "expect": expect, "encode": False, "why": why, "origin": {"hand": "a graph of a few nodes; results by formula, in scripts.py"}})

    scripts.cases(driven)
    models(samples)


def models(samples):
    """Whole models with inputs and outputs, for tests/models/graph.rs. Their graphs are those of the cases above."""
    names = [f"v{release}/{model}{end}" for release in ("0.8", "0.19") for model in ("mlp", "multi_out", "dtypes")
             for end in (".so", ".kernels.so", ".params", ".io.npz")]
    names += ["v0.8/resnet8.kernels.so", "v0.8/resnet8.params", "v0.8/resnet8.io.npz", "v0.8/perf/chain1000.so", "v0.8/perf/chain1000.io.npz"]
    names += [f"v0.8/graph-debug/{file}" for file in ("params.bin", "dbg/_tvmdbg_device_CPU_0/_tvmdbg_graph_dump.json",
              "dbg/_tvmdbg_device_CPU_0/_tvmdbg_execution_trace.json", "dbg/_tvmdbg_device_CPU_0/output_tensors.params")]
    for name in names:
        folder = name.replace("/dbg/_tvmdbg_device_CPU_0", "").replace("/perf", "")
        to = HERE / "models" / folder
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes((samples / name).read_bytes())
        release = name.split("/")[0][1:] + ".0"
        manifest[f"graph/models/{folder}"] = {"release": release, "how": name}


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
    conformance.add("graph", cases)
    conformance.declare(manifest)
