#!/usr/bin/env python3
"""Writes the cases of graph.decode about JSON itself and about members of the wrong form: python3 golden/graph/forms.py

Each is small.json with one edit. The offset of a rejection is computed here: that of the inserted value, or of
the first byte that no JSON text may have in that place.
"""

import copy
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "conformance"))

import cases as conformance

HERE = pathlib.Path(__file__).resolve().parent
SMALL = json.loads((HERE / "small.json").read_text())
NORMAL = next(case["expect"]["accept"] for case in conformance.load("graph") if case["id"] == "graph/small")
MARK = '"@@"'
cases, manifest = [], {}


def put(path, value):
    graph = copy.deepcopy(SMALL)
    at = graph
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return graph


def case(name, rules, text, expect, why, hand, releases="..0.19"):
    data = text if isinstance(text, bytes) else text.encode()
    (HERE / f"{name}.json").write_bytes(data)
    manifest[f"graph/{name}.json"] = {"hand": hand}
    entry = {"id": f"graph/{name}", "rules": rules.split(), "releases": releases, "op": "graph.decode"}
    if "reject" in expect:
        entry["parent"] = "graph/small"
    cases.append({**entry, "input": {"file": f"graph/{name}.json"}, "expect": expect, "encode": False, "why": why, "origin": {"hand": hand}})


def wrong(name, path, value, rule, field, kind="malformed", why="what is read as another form is read wrongly"):
    """`value` at `path`; the rejection points at it."""
    marked = json.dumps(put(path, "@@"), indent=1)
    offset = marked.index(MARK)
    text = marked.replace(MARK, json.dumps(value))
    reject = {"kind": kind, "rule": rule, "offset": len(text[:offset].encode())}
    if field:
        reject["field"] = field
    shown = ".".join(map(str, path))
    case(name, rule, text, {"reject": reject}, why, f"small.json, {shown} is {json.dumps(value)}")


def text_of(name, of, at, kind="malformed"):
    """`of` as the last member, metadata; the first wrong byte is its byte `at`, counted from its end if negative."""
    marked = json.dumps(put(["metadata"], "@@"))
    offset = marked.index(MARK) + at
    case(name, "GRF-01", marked.replace(MARK, of), {"reject": {"kind": kind, "rule": "GRF-01", "offset": offset}},
         "a text that is no JSON is another graph for every reader", f"small.json with {of} in metadata")


def main():
    wrong("nodes-an-object", ["nodes"], {}, "GRF-04", "nodes")
    wrong("node-a-number", ["nodes", 1], 5, "GRF-04", "nodes[1]")
    wrong("op-a-number", ["nodes", 1, "op"], 5, "GRF-04", "nodes[1].op")
    wrong("name-a-list", ["nodes", 0, "name"], [], "GRF-04", "nodes[0].name")
    wrong("inputs-a-text", ["nodes", 1, "inputs"], "x", "GRF-08", "nodes[1].inputs")
    wrong("input-a-number", ["nodes", 1, "inputs", 0], 0, "GRF-08", "nodes[1].inputs")
    wrong("input-of-a-text", ["nodes", 1, "inputs", 0, 1], "0", "GRF-08", "nodes[1].inputs")
    wrong("call-attrs-a-list", ["nodes", 1, "attrs"], [], "GRF-07", "nodes[1].attrs")
    wrong("func-name-a-number", ["nodes", 1, "attrs", "func_name"], 1, "GRF-07", "nodes[1].attrs.func_name")
    wrong("num-inputs-negative", ["nodes", 1, "attrs", "num_inputs"], "-1", "GRF-07", "nodes[1].attrs.num_inputs")
    wrong("control-deps-a-text", ["nodes", 1, "control_deps"], "x", "GRF-04", "nodes[1].control_deps")
    wrong("arg-nodes-a-number", ["arg_nodes"], 0, "GRF-11", "arg_nodes")
    wrong("arg-nodes-of-texts", ["arg_nodes", 0], "x", "GRF-11", "arg_nodes")
    wrong("arg-nodes-negative", ["arg_nodes", 0], -1, "GRF-11", "arg_nodes")
    wrong("rows-a-text", ["node_row_ptr"], "0", "GRF-12", "node_row_ptr")
    wrong("rows-of-fractions", ["node_row_ptr", 1], 1.5, "GRF-12", "node_row_ptr")
    wrong("heads-an-object", ["heads"], {}, "GRF-08", "heads")
    wrong("attrs-a-list", ["attrs"], [], "GRF-13", "attrs")
    wrong("shape-a-number", ["attrs", "shape"], 3, "GRF-13", "shape")
    wrong("shape-of-numbers", ["attrs", "shape", 1, 1], 3, "GRF-18", "attrs.shape")
    wrong("shape-of-fractions", ["attrs", "shape", 1, 1, 0], 0.5, "GRF-18", "attrs.shape")
    wrong("dltype-of-numbers", ["attrs", "dltype", 1, 0], 3, "GRF-17", "attrs.dltype")
    wrong("storage-of-texts", ["attrs", "storage_id", 1, 0], "0", "GRF-22", "attrs.storage_id")
    wrong("device-of-texts", ["attrs", "device_index", 1, 0], "1", "GRF-13", "attrs.device_index")
    wrong("device-beyond-32-bits", ["attrs", "device_index", 1, 0], 1 << 31, "GRF-13", "attrs.device_index")

    for name, of, at in (("number-with-a-zero", "01", 1), ("number-ends-with-a-point", "[1.]", 3), ("number-without-digits", "[-]", 2),
                         ("number-with-a-plus", "[+1]", 1), ("exponent-without-digits", "[1e+]", 4), ("word-cut-short", "[tru]", 4),
                         ("member-without-colon", '{"a" 1}', 5), ("member-without-name", "{1: 1}", 1), ("comma-is-missing", "[1 2]", 3),
                         ("comma-too-many", "[1,]", 3), ("escape-unknown", '"\\x"', 2), ("escape-cut-short", '"\\u12"', 5)):
        text_of("json-" + name, of, at)

    whole = json.dumps(SMALL, indent=1)
    case("json-text-behind", "GRF-01", whole + "\n x", {"reject": {"kind": "malformed", "rule": "GRF-01", "offset": len(whole) + 2}},
         "two documents in one file are not one graph", "small.json with a letter after it")
    case("json-space-behind", "GRF-01", "\t " + whole + " \r\n", {"accept": NORMAL}, "editors end files with a line", "small.json with white space around it")
    data = whole.encode().replace(b'"add"', b'"a\xffd"', 1)
    case("json-no-utf-8", "GRF-01", data, {"reject": {"kind": "malformed", "rule": "GRF-01", "offset": data.index(b"\xff")}},
         "names are compared as text", "small.json, a name with the byte 0xff")
    name = 'a"\\/\b\f\n\r\tz\u00e9\u20ac\U0001f600\uffff'
    graph = put(["nodes", 0, "name"], name)
    text = json.dumps(graph, indent=1).replace("a\\\"\\\\/", "\\u0061\\\"\\\\\\/", 1)
    assert json.loads(text) == graph and "\\/" in text and "\\ud83d\\ude00" in text
    normal = copy.deepcopy(NORMAL)
    normal["nodes"][0]["name"] = name
    case("json-escapes", "GRF-01", text, {"accept": normal}, "names with letters of every alphabet are one name in every reader",
         "small.json, a name with every escape")
    values = [0, -0.5, 1.25e3, True, False, None, "", {}, [], [[{"a": [1]}]]]
    text = json.dumps(put(["metadata"], values), indent=1).replace("1250.0", "1.25E+3", 1).replace("-0.5", "-5e-1", 1)
    assert json.loads(text)["metadata"] == values
    case("json-values", "GRF-01 GRF-02", text, {"accept": NORMAL}, "what is not looked at is still JSON", "small.json with every form of a value in metadata",
         releases="0.6..0.19")
    half = json.dumps(SMALL, indent=1).replace('"name": "x"', '"name": "\\ud83d"', 1)
    offset = half.index('"\\ud83d"')
    case("json-half-a-pair", "GRF-01 GRF-04", half, {"reject": {"kind": "malformed", "rule": "GRF-04", "offset": offset, "field": "nodes[0].name"}},
         "half of a letter is no text", "small.json, a name with half of a surrogate pair")


if __name__ == "__main__":
    main()
    conformance.add("graph", cases)
    conformance.declare(manifest)
