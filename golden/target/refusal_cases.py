#!/usr/bin/env python3
"""The cases of `target.refusal`: where the node stands that a generator rejects.

    python3 golden/target/refusal_cases.py

Writes conformance/target/cases/refusal.json, of the cases of `target.generate` that are one edit of a module that TVM lowered. The node is the
one that the edit is in, and its path is walked here, from the function to the node; one that several paths lead to has no case. NAMED has those
where the edit is in a part of the node that is rejected.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "conformance"))
import cases  # noqa: E402

OUT = ROOT / "conformance/target/cases/refusal.json"
# What is computed once more in each round, or is no statement, has a body of its own.
APART = {"PrimFunc", "For", "While", "Let"}
# By the case: the node is what the edited one belongs to.
NAMED = {
    "no-tvm-struct-get-0.27": "Call",
    "no-if-then-else-0.27": "Call",
    "no-isnullptr-0.27": "Call",
    "no-handle-add-byte-offset-0.27": "Call",
    "no-reinterpret-0.27": "Call",
    "no-tvm-struct-set-0.27": "Call",
    "no-tvm-call-packed-lowered-0.27": "Call",
    "no-buffer-data-0.27": "Call",
    "no-tvm-stack-alloca-0.27": "Call",
    "no-thread-tag-0.27": "IterVar",
    "no-thread-tag-0.16": "IterVar",
    "sync-of-grid-0.27": "Call",
}


class Graph:
    """A JSON graph of either form, as nodes with named children."""

    def __init__(self, text):
        self.text = text
        form = json.loads(text)
        self.nodes = form["nodes"]
        self.is_legacy = "root" in form

    def key(self, at):
        node = self.nodes[at]
        return node.get("type_key", node.get("type", "")).rsplit(".")[-1]

    def fields(self, at):
        """Names with the nodes that they may be."""
        node = self.nodes[at]
        data = node.get("attrs" if self.is_legacy else "data")
        numbers = {"IntImm", "FloatImm", "int", "float", "bool", "BigInt"}
        if not isinstance(data, dict) or self.key(at) in numbers:
            return {}
        # A kind of loop and the like are numbers, and no nodes.
        plain = {"kind", "span", "lanes", "bits", "data_alignment", "offset_factor", "buffer_type"}
        indices = {name: value for name, value in data.items() if name not in plain and re.fullmatch(r"\d+", str(value))}
        return {name: int(value) for name, value in indices.items() if int(value) < len(self.nodes)}

    def items(self, at):
        data = self.nodes[at].get("data")
        return data if self.key(at) == "Array" and isinstance(data, list) else []

    def spans(self):
        """Where each node begins and ends in the text."""
        decoder, at = json.JSONDecoder(), self.text.index("[", self.text.index('"nodes"')) + 1
        for _ in self.nodes:
            while self.text[at] in ", \n":
                at += 1
            begin = at
            _, at = decoder.raw_decode(self.text, at)
            yield begin, at

    def edited(self, offset):
        """The node that a byte of the text is in."""
        return next((node for node, (begin, end) in enumerate(self.spans()) if begin <= offset < end), None)

    def above(self):
        """For each node all that refers to it: another node, the field, and the index in a list."""
        above = {}
        for parent in range(len(self.nodes)):
            for field, child in self.fields(parent).items():
                above.setdefault(child, []).append((parent, field, None))
                for index, item in enumerate(self.items(child)):
                    above.setdefault(item, []).append((parent, field, index))
        return above

    def functions(self):
        """Symbols with nodes."""
        for at in range(len(self.nodes)):
            if self.key(at) == "PrimFunc":
                yield self.symbol(at), at

    def symbol(self, at):
        attrs = self.fields(self.fields(at)["attrs"])["__dict__"]
        node = self.nodes[attrs]
        if self.is_legacy:
            return self.plain(node["data"][node["keys"].index("global_symbol")])
        pairs = {self.plain(key): value for key, value in zip(node["data"][::2], node["data"][1::2])}
        return self.plain(pairs["global_symbol"])

    def plain(self, at):
        return self.nodes[at].get("repr_str", self.nodes[at].get("data"))

    def paths(self, goal):
        """All that lead from a function to a node, each as steps: the node that the step is from, a field, and an index or None."""
        found = []

        def walk(at, steps):
            if at == goal:
                found.append(steps)
                return
            if len(steps) > 40 or len(found) > 1:
                return
            for name, child in self.fields(at).items():
                # The range of an axis, and how long it is, are for who launches the kernel.
                if (self.key(at), name) in {("IterVar", "dom"), ("AttrStmt", "value")}:
                    continue
                # What a variable is declared as is no part of the code, nor is a type.
                if self.key(at) == "Var" or name in {"ty", "type_annotation", "attrs", "op", "ret_type", "buffer_map"}:
                    continue
                items = self.items(child)
                if items:
                    for index, item in enumerate(items):
                        walk(item, [*steps, (at, name, index)])
                else:
                    walk(child, [*steps, (at, name, None)])

        for symbol, function in self.functions():
            before = len(found)
            walk(function, [])
            for number in range(before, len(found)):
                found[number] = (symbol, found[number])
        return found

    def written(self, symbol, steps):
        """The path as text: a chain of statements that follow each other is one step."""
        parts, chain = [symbol], 0
        for at, name, index in steps:
            if name == "body" and self.key(at) not in APART:
                chain += 1
                continue
            if chain:
                parts.append(f"body*{chain}")
                chain = 0
            parts.append(name if index is None else f"{name}[{index}]")
        return ".".join([*parts, f"body*{chain}"] if chain else parts)


def places():
    """An edit for each place that a node has below another one: which module, where its type key ends, and what it becomes."""
    seen = set()
    for release, era in (("0.27", "ffi"), ("0.16", "legacy")):
        folders = [ROOT / "golden/target/kernels" / release, ROOT / "golden/target/runs" / release]
        for file in sorted((file for folder in folders for file in folder.glob("*.json")), key=lambda file: file.stat().st_size):
            if file.stat().st_size > 200_000 or file.stem in {"relax", "unlowered", "deep", "doubled", "too_deep"}:
                continue
            text = file.read_text()
            if '"nodes"' not in text:
                continue
            graph = Graph(text)
            for node, above in graph.above().items():
                if graph.key(node) not in CODE or len(above) != 1:
                    continue
                [(parent, field, index)] = above
                key = graph.key(parent)
                if key == "Call":
                    key = graph.plain(graph.fields(parent)["op"])
                place = (era, key, field, index if field == "args" else None)
                if place not in seen:
                    seen.add(place)
                    yield release, file, graph, node, place


# What is written by its own code, wherever it stands.
CODE = {"Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Cast", "Call", "Select", "Let", "LT", "LE", "GT", "GE", "EQ", "NE", "And", "Or", "Not"}
CODE |= {"BufferLoad", "TensorLoad", "For", "IfThenElse", "BufferStore", "SeqStmt", "AttrStmt", "Evaluate", "LetStmt", "AssertStmt", "FloatImm"}


def at_places():
    for release, file, graph, node, (era, key, field, index) in places():
        paths = graph.paths(node)
        if len(paths) != 1:
            continue
        offset, _ = list(graph.spans())[node]
        member = '"type_key"' if graph.is_legacy else '"type"'
        begin = graph.text.index('"', graph.text.index(":", graph.text.index(member, offset))) + 1
        end = graph.text.index('"', begin)
        type_key = graph.text[begin : end - 1] + "q"
        name = "-".join(str(part) for part in (key.rsplit(".")[-1].lower(), field, index) if part is not None).replace("_", "-")
        symbol, steps = paths[0]
        edit = {"file": str(file.relative_to(ROOT / "golden")), "put": [[len(graph.text[: end - 1].encode()), "71"]]}
        args = {"target": "opencl" if is_kernel(graph) else "c", "release": release}
        yield refusal(f"in-{name}-{release}", release, edit, args, "unsupported", graph.written(symbol, steps), type_key, node)


def refusal(name, releases, edit, args, kind, path, type_key, node):
    return {
        "id": f"target/refusal/{name}",
        "rules": ["TGT-88"],
        "releases": releases,
        "op": "target.refusal",
        "input": edit,
        "args": args,
        "expect": {"accept": {"reject": kind, "rule": "TGT-88", "path": path, "type_key": type_key, "node": node}},
        "why": "who wrote the module finds the node by its path, and not by a number of a file",
        "origin": {"hand": "one edit of a module that TVM lowered; the path is walked by golden/target/refusal_cases.py"},
    }


def is_kernel(graph):
    # Text in place, or a node with it.
    keys = lambda at: (graph.nodes[at].get("attrs", {}).get("attr_key"), graph.plain(graph.fields(at).get("attr_key", 0)))
    return any("thread_extent" in keys(at) for at in range(len(graph.nodes)) if graph.key(at) == "AttrStmt")


def main():
    made, seen = [], set()
    for case in cases.load("target"):
        rule = case["expect"].get("reject", {}).get("rule")
        edits = case["input"].get("put", [])
        if case["op"] != "target.generate" or rule != "TGT-88" or len(edits) != 1:
            continue
        text = cases.data(case["input"]).decode()
        graph = Graph(text)
        node = graph.edited(edits[0][0])
        name = case["id"].split("/")[-1]
        if name in NAMED:
            above = [at for at, _, _ in graph.above().get(node, []) if graph.key(at) == NAMED[name]]
            above = above if graph.key(node) != NAMED[name] else [node]
            # An operator is one node for all its calls: the first that is written is rejected.
            node = above[0] if len(above) == 1 else None
        # What a record is called is a text below the call that is rejected.
        if node is None or graph.key(node) in {"String", "Op"}:
            continue
        paths = graph.paths(node)
        if len(paths) != 1:
            continue
        symbol, steps = paths[0]
        path = graph.written(symbol, steps)
        news = {(graph.is_legacy, field) for _, field, _ in steps} | {(graph.is_legacy, graph.key(node), case["expect"]["reject"]["kind"])}
        if news <= seen:
            continue
        seen |= news
        key = graph.nodes[node].get("type_key", graph.nodes[node].get("type"))
        kind = case["expect"]["reject"]["kind"]
        made.append(refusal(name, case["releases"], case["input"], case["args"], kind, path, key, node))
    known = {case["id"] for case in made}
    made += [case for case in at_places() if case["id"] not in known]
    # Others are written by hand, and stay.
    kept = [case for case in cases.read(OUT) if "refusal_cases" not in json.dumps(case["origin"])] if OUT.exists() else []
    OUT.write_text(cases.render(made + kept))
    print(len(made), "cases")


if __name__ == "__main__":
    main()
