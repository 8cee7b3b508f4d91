"""JSON: graphs and saved objects. And what is nothing."""

import json

from classes import n, of


def graph(nodes, extra="", rows=None):
    count = len(nodes)
    return json.dumps({
        "nodes": nodes, "arg_nodes": list(range(count)), "heads": [[0, 0, 0]],
        "node_row_ptr": list(range(count + 1)),
        "attrs": {"dltype": ["list_str", ["int8"] * count], "shape": ["list_shape", [[]] * count],
                  "storage_id": ["list_int", list(range(count))]}},
        separators=(",", ":")).replace('"heads"', extra + '"heads"').encode()


def null(name):
    return {"op": "null", "name": name, "inputs": []}


@of("nodes.graph.json", "verify inspect explain dump run-graph")
def graph_nodes():
    "a graph of 50,000 inputs"
    return graph([null("n%d" % at) for at in range(n(50_000))])


@of("members.graph.json", "verify inspect explain dump run-graph")
def graph_members():
    "a graph with a list of 700,000 objects of one member that no operation reads"
    return graph([null("x")], '"more":[' + ",".join(['{"":0}'] * n(700_000)) + "],")


@of("deep.graph.json", "verify inspect explain dump run-graph")
def graph_deep():
    "a graph with 2,000,000 lists in each other"
    return graph([null("x")], '"more":' + "[" * n(2_000_000) + "]" * n(2_000_000) + ",")


@of("escapes.graph.json", "verify inspect explain dump run-graph")
def graph_escapes():
    "a graph with a name of 700,000 escapes"
    return graph([null("\x01" * n(700_000))])


def ffi(nodes):
    return ('{"root_index":0,"nodes":[' + nodes + '],"metadata":{}}').encode()


@of("lists.ffi.json")
def ffi_lists():
    "saved objects with 1,000,000 empty lists"
    return ffi('{"type":"ffi.Array","data":[' + ",".join(["[]"] * n(1_000_000)) + "]}")


@of("maps.ffi.json")
def ffi_maps():
    "saved objects with 500,000 maps of one member"
    return ffi('{"type":"ffi.Array","data":[' + ",".join(['{"":0}'] * n(500_000)) + "]}")


@of("nodes.ffi.json")
def ffi_nodes():
    "100,000 saved objects, each of a different type"
    return ffi(",".join('{"type":"t%d","data":{}}' % at for at in range(n(100_000))))


@of("nodes.object.json")
def object_nodes():
    "100,000 saved objects of 0.21 and before, each of a different type"
    nodes = ",".join('{"type_key":"t%d"}' % at for at in range(n(100_000)))
    return ('{"root":0,"nodes":[' + nodes + '],"b64ndarrays":[],"attrs":{"tvm_version":"0.8"}}').encode()


@of("unknown.bin")
def unknown():
    "3 MB that are nothing"
    return b"\xff" * n(3_000_000)
