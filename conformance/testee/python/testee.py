#!/usr/bin/env python3
"""A testee for `tvmspec check`, and an independent oracle for expected values: pure Python 3, no dependency.

    tvmspec check --impl "exec:python3 conformance/testee/python/testee.py"

It was written from the prose in spec/ and from observations of released TVM, and shares no code with src/. It speaks the
exec protocol (`tvmspec check --help-exec`), does the chapters wire, import_tree, the stored forms of tensor, payloads without
code for a VM, and the library binary, each in the file of its name, and says "unsupported" to everything else. Of a rejection it
states kind, offset and field, and is held to all three; the rule it leaves out, and so it does findings. Fields have their names
from the productions of the chapters (grammar.py).
"""

import json
import sys

from blob import blob_decode, blob_encode
from import_tree import tree_decode, tree_encode, tree_order
from payload import payload_decode
from reader import Reject, Unsupported
from tensor import tensor_decode, tensor_encode
from wire import wire_decode, wire_encode, wire_fields

OPS = {
    "wire.decode": wire_decode,
    "wire.encode": wire_encode,
    "wire.fields": wire_fields,
    "import_tree.decode": tree_decode,
    "import_tree.encode": tree_encode,
    "import_tree.order": tree_order,
    "payload.decode": payload_decode,
    "tensor.decode": tensor_decode,
    "tensor.encode": tensor_encode,
    "blob.decode": blob_decode,
    "blob.encode": blob_encode,
}


def answer(request):
    op = request["op"]
    if op == "hello":
        return {"ok": {"name": "tvmspec-python-testee", "version": "1", "ops": list(OPS)}}
    if op not in OPS:
        return {"unsupported": f"no operation {op}"}
    try:
        return {"ok": OPS[op](request.get("args", {}))}
    except Unsupported as why:
        return {"unsupported": str(why)}
    except Reject as broken:
        stated = {"message": str(broken), "kind": broken.kind, "offset": broken.offset, "field": broken.field}
        return {"reject": {key: value for key, value in stated.items() if value is not None}}


def main():
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], **answer(request)}), flush=True)


if __name__ == "__main__":
    main()
