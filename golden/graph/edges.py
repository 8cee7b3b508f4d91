"""Writes more graphs for the reader: duplicate members, violations only in the last of several elements, limits of numbers, texts and rows.

Run: python edges.py        (in this folder)

Every graph is small.json with one edit. Plans come from make.py, and offsets from the reader in offsets.py.
"""

import copy, json, os, sys

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, "../../conformance")
import cases as conformance
from make import normal
from offsets import read

SMALL = json.load(open("small.json"))
made, origins = [], {}


def case(id, rules, raw, expect, why, hand, releases="..0.19", **more):
    raw = raw if isinstance(raw, bytes) else raw.encode()
    open(id + ".json", "wb").write(raw)
    origins[f"graph/{id}.json"] = {"hand": f"edges.py: {hand}"}
    parent = {"parent": "graph/small"} if "reject" in expect else {}
    made.append({"id": "graph/" + id, "topic": "limits", "rules": rules.split(), "releases": releases, "op": "graph.decode", **parent,
                 "input": {"file": f"graph/{id}.json"}, "expect": expect, "encode": False, **more, "why": why, "origin": {"hand": hand}})


def edited(*edits):
    graph = copy.deepcopy(SMALL)
    for *path, last, value in edits:
        inner = graph
        for step in path:
            inner = inner[step]
        inner[last] = value
    return graph


def places(raw):
    found = {}
    read(raw if isinstance(raw, bytes) else raw.encode(), 0, "", found)
    return {path: [start for start, _ in spans] for path, spans in found.items()}


def accepts(id, rules, graph, why, hand, raw=None, expect=None, **more):
    case(id, rules, raw or json.dumps(graph), {"accept": expect or normal(graph)}, why, hand, **more)


def rejects(id, rules, graph, kind, why, hand, at=None, field=None, raw=None, offset=None, **more):
    """`at` is the path of the wrong value, `field` its name in the answer."""
    raw = raw or json.dumps(graph)
    offset = places(raw)[at][0] if at is not None else offset
    reject = {"kind": kind, "rule": rules.split()[0], **({} if offset is None else {"offset": offset}), **({"field": field} if field else {})}
    case(id, rules, raw, {"reject": reject}, why, hand, **more)


# Nothing, and the maximum.
nothing = {"nodes": [], "arg_nodes": [], "heads": [], "attrs": {"dltype": ["list_str", []], "storage_id": ["list_int", []], "shape": ["list_shape", []]}, "node_row_ptr": [0]}
accepts("nothing", "GRF-02 GRF-12 GRF-14", nothing, "a graph without nodes has no entries, no pools and no devices", "a graph of no nodes")
accepts("unknown-size-t", "GRF-16 GRF-21", edited(("attrs", "names", ["size_t", 4])), "old readers skip a number, too", "small.json with an unknown number",
        findings=[{"rule": "GRF-21", "kind": "unsupported", "offset": places(json.dumps(edited(("attrs", "names", ["size_t", 4]))))["attrs.names"][0]}])
lanes = edited(("attrs", "dltype", 1, ["float32x4", "float16x8", "int8x3", "uint8"]))
accepts("lanes", "GRF-17 GRF-23", lanes, "an element is all of its lanes", "small.json with elements of several lanes", releases="0.3..0.19")

# The second of two.
def twice(id, path, before, rules, why, hand):
    """The object at `path` begins with `before`, and has the same member again."""
    raw = json.dumps(SMALL)
    at = places(raw)[path][0] + 1
    raw = raw[:at] + before + ", " + raw[at:]
    name = json.loads("{" + before + "}").popitem()[0]
    spans = places(raw)
    # The value of the second, which counts.
    second = spans[f"{path}.{'attrs' if name == 'attr' else name}"]
    accepts(id, rules, SMALL, why, hand, raw=raw, findings=[{"rule": "GRF-20", "kind": "duplicate", "offset": second[-1] if name != "attr" else second[0]}])


twice("node-member-twice", "nodes[1]", '"name": "first"', "GRF-20", "a node has one name, the last", "small.json with a second name before the first")
twice("attr-and-attrs", "nodes[1]", '"attr": {"func_name": "first", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}', "GRF-04 GRF-20", "two names of one member", "small.json with attr before attrs")
twice("call-attr-twice", "nodes[1].attrs", '"func_name": "first"', "GRF-07 GRF-20", "the function of a call is the last that is named", "small.json with a second func_name before the first")
twice("graph-attr-twice", "attrs", '"storage_id": ["list_int", [0, 0, 0, 0]]', "GRF-13 GRF-20", "a plan is the last that is stated", "small.json with a second storage_id before the first")

# Content after the first element.
reject = lambda id, rules, edits, kind, at, why, hand, field=None, **more: rejects(id, rules, edited(*edits), kind, why, hand, at=at, field=field or at, **more)
reject("second-head-beyond-node", "GRF-09", [("heads", 1, [2, 2, 0])], "malformed", "heads[1]", "reads past the rows", "small.json, the second head of output 2")
reject("second-input-beyond-nodes", "GRF-09", [("nodes", 2, "inputs", [[1, 0, 0], [9, 0, 0]])], "malformed", "nodes[2].inputs[1]", "reads past the rows", "small.json, a second input from node 9")
reject("second-input-is-later", "GRF-10", [("nodes", 2, "inputs", [[1, 0, 0], [2, 0, 0]])], "malformed", "nodes[2].inputs[1]", "it would see the run before", "small.json, a second input from itself")
reject("second-arg-is-a-call", "GRF-11", [("arg_nodes", [0, 2])], "malformed", "arg_nodes[1]", "an operator's result set as an input is overwritten", "small.json, arg_nodes [0, 2]")
reject("a-row-too-many", "GRF-12", [("node_row_ptr", [0, 1, 2, 4, 4])], "malformed", "node_row_ptr", "a row of a node that is not there", "small.json, a row more")
reject("rows-end-too-early", "GRF-12", [("node_row_ptr", [0, 1, 2, 3])], "malformed", "node_row_ptr", "the last output has no entry", "small.json, the last node with a row of one")
reject("second-extent-negative", "GRF-18", [("attrs", "shape", 1, 3, [4, -1])], "malformed", "attrs.shape[1][3][1]", "a size of 2^64 - 4 bytes", "small.json, shape [4, -1]", field="attrs.shape")
reject("last-dtype-nonsense", "GRF-17", [("attrs", "dltype", 1, 3, "i8")], "malformed", "attrs.dltype[1][3]", "a name is a whole one", "small.json, dtype i8", field="attrs.dltype")
reject("dtype-says-too-much", "GRF-17", [("attrs", "dltype", 1, 3, "handle2")], "malformed", "attrs.dltype[1][3]", "no handle has two bits", "small.json, dtype handle2", field="attrs.dltype")
reject("storage-id-of-all-entries", "GRF-52", [("attrs", "storage_id", 1, [0, 1, 2, 4])], "limit", "attrs.storage_id[1][3]", "as many pools as entries are ids 0 to 3", "small.json, storage id 4 of four entries", field="attrs.storage_id")
reject("list-is-a-number", "GRF-13", [("attrs", "storage_id", ["list_int", 5])], "malformed", "attrs.storage_id[1]", "one number is no list", "small.json, storage_id 5", field="storage_id")
reject("type-is-a-number", "GRF-13", [("attrs", "dltype", [5, ["float32"] * 4])], "malformed", "attrs.dltype[0]", "a type has a name", "small.json, dltype of type 5", field="dltype")
reject("scope-of-numbers", "GRF-13", [("attrs", "storage_scope", ["list_str", ["", 1, "", ""]])], "malformed", "attrs.storage_scope[1][1]", "a scope has a name", "small.json, a scope that is a number", field="storage_scope", releases="0.10..0.19")
reject("scopes-too-few", "GRF-15", [("attrs", "storage_scope", ["list_str", [""]])], "malformed", "attrs.storage_scope[1]", "reads past the list", "small.json, one scope for four entries", field="attrs.storage_scope", releases="0.10..0.19")
without = edited()
del without["nodes"][1]["inputs"]
rejects("node-without-inputs", "GRF-04", without, "missing", "what does it read?", "small.json, a node without inputs", at="nodes[1]", field="nodes[1]")

# Texts and numbers.
text = json.dumps(SMALL)
name = lambda escaped: text.replace('"name": "x"', f'"name": "{escaped}"')
spoken = lambda value: {**normal(SMALL), "nodes": [{**SMALL["nodes"][0], "name": value}] + normal(SMALL)["nodes"][1:]}
whole = "\\ud7ff\\ud800\\udc00\\udbff\\udfff\\ue000"
accepts("json-pairs", "GRF-01 GRF-04", None, "the first and the last pair, and what is beside them", "small.json, an input named by escapes", raw=name(whole), expect=spoken("\ud7ff\U00010000\U0010ffff\ue000"))
for id, escaped, hand in (("low-half-alone", "\\udc00", "the second half of a pair alone"), ("pair-of-high-halves", "\\ud800\\ud800", "two first halves"), ("half-and-a-letter", "\\ud800\\u0041", "a first half and a letter"),
                          ("half-and-an-escape", "\\ud800\\nu0041", "a first half and another escape"), ("half-and-a-plain-u", "\\ud800uudc00", "a first half and plain letters")):
    rejects("json-" + id, "GRF-04 GRF-01", None, "malformed", "half of a letter is none", f"small.json, {hand}", at="nodes[0].name", field="nodes[0].name", raw=name(escaped))
for id, bad, back, hand in (("json-escape-of-three", "\\u123", 0, "an escape of three digits"), ("json-escape-of-a-letter", "\\u12g4", 1, "an escape with a letter g"), ("json-control-character", "a\x1f", -1, "a control character in a name"),
                            ("json-line-in-a-text", "a\n", -1, "the end of a line in a name")):
    raw = name(bad)
    # The invalid byte: after three digits the quote, otherwise the letter or the control character itself.
    offset = raw.index(bad) + {0: len(bad), 1: 4, -1: 1}[back]
    rejects(id, "GRF-01", None, "malformed", "a text that is no JSON is another graph for every reader", f"small.json, {hand}", raw=raw, offset=offset)
cut = name("é").replace("é", "\u00e9").encode()
rejects("json-cut-in-a-letter", "GRF-01", None, "truncated", "half a model is none", "small.json with a name of one letter, cut in the middle of it", raw=cut[: cut.index(b"\xc3") + 1], offset=cut.index(b"\xc3"))
behind = '"metadata": [1E5, 1e+5, 1e-5, -0.5, 0.25E-2, -0, 0e0, [], {}, [[]], {"a": {}}, true, false, null, "\\u00e9\\"\\\\\\/\\b\\f\\n\\r\\t"]}'
accepts("json-every-value", "GRF-01 GRF-02", None, "what is skipped is JSON, too", "small.json with every kind of value in its metadata", raw=text[:-1] + ", " + behind, expect=normal(SMALL))
for id, bad, back in (("json-minus-alone", "-", 0), ("json-exponent-of-a-sign", "1e+", 0), ("json-exponent-of-two-signs", "1e+-5", 2), ("json-sign-of-a-sign", "--5", 2), ("json-truth-cut-short", "tru", 0), ("json-two-names", '{"a" "b"}', 4), ("json-name-without-value", '{"a":}', 1),
                      ("json-list-in-a-brace", "[1}", 1), ("json-brace-in-a-list", '{"a": 1]', 1)):
    raw = text[:-1] + f', "metadata": {bad}' + "}"
    offset = raw.index('"metadata": ') + 12 + len(bad) - back
    rejects(id, "GRF-01", None, "malformed", "a text that is no JSON is another graph for every reader", f"small.json with {bad} in metadata", raw=raw, offset=offset)

# Images of every rank, and a pool of several.
half = ["list_str", ["float16"] * 4]
scoped = lambda storage, shapes, scopes: edited(("attrs", "dltype", half), ("attrs", "storage_id", 1, storage), ("attrs", "shape", 1, shapes), ("attrs", "storage_scope", ["list_str", scopes]))
T, W, N = "global.texture", "global.texture-weight", "global.texture-nhwc"


def images(graph, *pools):
    """(height, width, texel) of each pool, by GRF-53."""
    plain = copy.deepcopy(graph)
    return {**normal(plain), "storage": [{"id": id, "bytes": h * w * c * 2, "device": 1, "texture": [h, w, c]} for id, (h, w, c) in enumerate(pools)]}


high = scoped([0, 0, 1, 1], [[2, 3, 5, 4], [3, 7, 4], [2, 9, 4], [5, 3, 4]], [N, N, W, T])
accepts("textures-shared", "GRF-53", None, "an image as high as the highest and as wide as the widest", "small.json, two pools of two images each", raw=json.dumps(high), expect=images(high, (6, 7, 4), (5, 9, 4)), releases="0.10..0.19")
ranks = scoped([0, 1, 2, 3], [[5, 4], [2, 3, 1, 5, 4], [4, 4], [1, 2, 3, 4]], [T, N, W, T])
accepts("textures-of-every-rank", "GRF-53", None, "rows, columns and texel of two to five extents", "small.json, every pool an image of another rank", raw=json.dumps(ranks), expect=images(ranks, (1, 5, 4), (6, 5, 4), (4, 1, 4), (2, 3, 4)), releases="0.10..0.19")
for id, shape, scope, kind, rule, hand in (("texture-nhwc-of-two-extents", [4, 4], N, "malformed", "GRF-53", "two extents in texture-nhwc"), ("texture-weight-of-one-extent", [4], W, "malformed", "GRF-53", "one extent in texture-weight"),
                                           ("texture-of-no-extents", [], T, "malformed", "GRF-53", "no extents in texture"), ("texture-too-high", [2**33, 2**33, 1, 4], T, "limit", "GRF-23", "2^66 rows"),
                                           ("texture-too-large", [2**33, 2**33, 4], T, "limit", "GRF-23", "2^66 texels")):
    rejects(id, rule + (" GRF-53" if rule == "GRF-23" else ""), scoped([0, 1, 2, 3], [[2, 4], [2, 4], [2, 4], shape], [T, T, T, scope]), kind, "an image that no device has", f"small.json, an image of {hand}", releases="0.10..0.19")
rejects("textures-together-too-large", "GRF-23 GRF-53", scoped([0, 0, 1, 1], [[2**40, 1, 4], [1, 2**40, 4], [2, 4], [2, 4]], [T] * 4), "limit", "each fits, and the pool of both does not", "small.json, a high image and a wide one in a pool", releases="0.10..0.19")
flat = scoped([0, 0, 1, 2], [[2, 4], [2, 4], [2, 4], [2, 4]], ["", T, "", ""])
rejects("bytes-beside-a-texture", "GRF-53", flat, "malformed", "memory is bytes or an image", "small.json, bytes and then an image in one pool", releases="0.10..0.19")

conformance.add("graph", made)
conformance.declare(origins)
print(len(made), "cases")
