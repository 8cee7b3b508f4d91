#!/usr/bin/env python3
"""One module of many, for cases that run what is generated of it: a build for each function costs more than the function.

    join.py golden/target/lowered golden/target/runs

Takes the modules that lower.py and lower_0_8.py wrote, and writes OUT/RELEASE/TOPIC.json, a module with the functions of several. Nodes that are
equal are one node, except for variables, which are what they are by their place; one function is the one that the library is entered by. Nothing
else changes. cases.py beside this script states what calls of them return.
"""

import json
import pathlib
import sys

ALL = "0.8 0.16 0.26 0.27".split()
# Functions that only releases with their node have, and those that show what a convention has of its own.
TOPICS = {
    "0.27": {
        "whole_numbers": "widths wraps bits shifted complement counted wraps_int32 shifts floordiv compare ends ends_uint64 order_int32 order_uint8",
        "fractions": "order_float16 order_float32 special_float16 special_float32 special_float64 endless rest_f64 cast_int32 cast_f64 quantize relu",
        "sixteen_bits": "half_matmul half_cast half_of_f32 half_small half_rounds half_ends half_sums half_literals half_vec bfloat_inside bfloat_types",
        "vectors": "scale_vec broadcast_vec reversed_vec choose_vec cast_vec stages_vec",
        "mathematics": "mathematics_f32 mathematics_f64 more_float32 more_float64 sigmoid tangent norms",
        "models": "matmul matmul_int8 matmul_dynamic conv2d softmax layer_norm sum_int64 max_f32 min_int32 workspace pool take concat let inside names stages",
    },
    "0.26": {"some": "bits let matmul_dynamic shifts wraps_int32"},
    "0.16": {
        "some": "matmul matmul_dynamic workspace stages_vec half_vec more_float32 special_float32 endless wraps_int32 shifted complement counted floordiv "
        "quantize concat softmax choose_vec",
    },
    "0.8": {"some": "matmul workspace cast_vec choose_vec reversed_vec broadcast_vec half_matmul shifts take cast_int32 add_dynamic"},
}
# Numbers in place, where every other one is the index of a node.
PLAIN = {
    "relax.ShapeType": ["ndim"],
    "relax.TensorType": ["ndim"],
    "tirx.BufferType": ["data_alignment", "offset_factor"],
    "tirx.For": ["kind"],
    "tirx.IntImm": ["value"],
    "tir.Buffer": ["data_alignment", "offset_factor", "buffer_type"],
    "tir.For": ["kind"],
    "IntImm": ["value"],
    "FloatImm": ["value"],
    "TargetKind": ["default_device_type", "device_type"],
}
KEPT_APART = {"ir.Var", "tirx.Var", "tir.Var", "tir.Buffer", "IterVar", "tirx.IterVar", "ir.GlobalVar", "GlobalVar"}


class Graph:
    """Nodes in either form of the JSON graph."""

    def __init__(self, is_new, has_numbers):
        self.is_new, self.has_numbers = is_new, has_numbers
        self.nodes, self.found = [], {}
        self.add({"type": "None"} if is_new else {"type_key": ""})

    def add(self, node, apart=False):
        key = json.dumps(node, sort_keys=True)
        if apart or key not in self.found:
            self.found[key] = len(self.nodes)
            self.nodes.append(node)
        return self.found[key]

    def plain(self, kind):
        return PLAIN.get(kind, []) + (["value"] if kind == "ir.IntImm" and not self.has_numbers else [])

    def take(self, nodes, at, taken):
        """The index here of a node of another graph, and of all that it refers to."""
        if at in taken:
            return taken[at]
        node = json.loads(json.dumps(nodes[at]))
        go = lambda at: self.take(nodes, at, taken)
        kind = node["type"] if self.is_new else node["type_key"]
        if not self.is_new:
            skipped = self.plain(kind)
            for name, value in node.get("attrs", {}).items():
                if value.isdigit() and name not in skipped:
                    node["attrs"][name] = str(go(int(value)))
            if "data" in node:
                node["data"] = [go(item) for item in node["data"]]
        elif isinstance(node.get("data"), list):
            node["data"] = [go(item) for item in node["data"]]
        elif isinstance(node.get("data"), dict):
            skipped = self.plain(kind)
            for name, value in node["data"].items():
                if isinstance(value, int) and not isinstance(value, bool) and name not in skipped:
                    node["data"][name] = go(value)
        taken[at] = self.add(node, apart=kind in KEPT_APART)
        return taken[at]

    def fields(self, at):
        node = self.nodes[at]
        return node["data"] if self.is_new else node["attrs"]

    def text(self, at):
        return self.nodes[at]["data"] if self.is_new else self.nodes[at].get("repr_str", "")

    def map(self, pairs):
        if self.is_new:
            return self.add({"type": "ffi.Map", "data": [at for pair in pairs for at in pair]})
        names = [self.text(key) for key, _ in pairs]
        if all(names):
            return self.add({"type_key": "Map", "keys": names, "data": [value for _, value in pairs]})
        return self.add({"type_key": "Map", "data": [at for pair in pairs for at in pair]})


def pairs_of(nodes, at, is_new):
    data = nodes[at].get("data", [])
    return list(zip(data[::2], data[1::2]))


def without_entry(graph, function):
    """The function, which is no longer the one that the library is entered by."""
    number = (lambda at: at) if graph.is_new else str
    attrs = int(graph.fields(function)["attrs"])
    dictionary = int(graph.fields(attrs)["__dict__"])
    node = json.loads(json.dumps(graph.nodes[dictionary]))
    if "keys" in node:
        kept = [at for at, key in enumerate(node["keys"]) if not key.endswith(".is_entry_func")]
        node["keys"], node["data"] = ([node[what][at] for at in kept] for what in ("keys", "data"))
    else:
        pairs = [pair for pair in zip(node["data"][::2], node["data"][1::2]) if not graph.text(pair[0]).endswith(".is_entry_func")]
        node["data"] = [at for pair in pairs for at in pair]
    what, where = ("data", "type") if graph.is_new else ("attrs", "type_key")
    changed = {where: graph.nodes[attrs][where], what: {**graph.nodes[attrs][what], "__dict__": number(graph.add(node))}}
    copy = json.loads(json.dumps(graph.nodes[function]))
    copy[what]["attrs"] = number(graph.add(changed))
    return graph.add(copy)


def join(texts, release):
    graphs = [json.loads(text) for text in texts]
    is_new = "root_index" in graphs[0]
    root_of = lambda graph: graph["root_index" if is_new else "root"]
    graph = Graph(is_new, release == "0.27")
    functions = []
    root = None
    for source in graphs:
        nodes = source["nodes"]
        module = nodes[root_of(source)]["data" if is_new else "attrs"]
        taken = {}
        for name, function in pairs_of(nodes, int(module["functions"]), is_new):
            pair = (graph.take(nodes, name, taken), graph.take(nodes, function, taken))
            functions.append(pair if not functions else (pair[0], without_entry(graph, pair[1])))
        if root is None:
            root = json.loads(json.dumps(nodes[root_of(source)]))
            members = root["data" if is_new else "attrs"]
            for member, value in members.items():
                if member not in ("functions", "global_var_map_"):
                    members[member] = graph.take(nodes, int(value), taken) if is_new else str(graph.take(nodes, int(value), taken))
    hint = lambda at: int(graph.fields(at)["name_hint"])
    number = (lambda at: at) if is_new else str
    members["functions"] = number(graph.map(functions))
    members["global_var_map_"] = number(graph.map([(hint(name), name) for name, _ in functions]))
    whole = {**graphs[0], "root_index" if is_new else "root": graph.add(root), "nodes": graph.nodes}
    return json.dumps(whole, separators=(",", ":"))


def main(lowered, out):
    for release, topics in TOPICS.items():
        folder = pathlib.Path(out) / release
        folder.mkdir(parents=True, exist_ok=True)
        for topic, names in topics.items():
            texts = [(pathlib.Path(lowered) / release / f"{name}.json").read_text() for name in names.split()]
            text = join(texts, release)
            (folder / f"{topic}.json").write_text(text + "\n")
            print(release, topic, len(names.split()), "functions", sum(map(len, texts)), "to", len(text), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
