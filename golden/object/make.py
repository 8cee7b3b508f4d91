#!/usr/bin/env python3
"""Writes the `.expect.json` of each saved object of 0.8, 0.19 and 0.21: its nodes in the form that spec/object.md defines.

It reads the goldens with Python's own JSON and struct modules, and shares no code with the crate.
"""

import base64
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ("int", "uint", "float")


def record(text):
    data = base64.b64decode(text)
    magic, _, kind, number, ndim, code, bits, lanes = struct.unpack_from("<QQiiiBBH", data)
    assert magic == 0xDD5E40F096B4A13F and lanes == 1
    shape = struct.unpack_from(f"<{ndim}q", data, 32)
    start = 32 + 8 * ndim
    (size,) = struct.unpack_from("<q", data, start)
    elements = data[start + 8 :]
    assert len(elements) == size
    return {
        "dtype": f"{KINDS[code]}{bits}",
        "shape": list(shape),
        "device": [kind, number],
        "data": base64.b64encode(elements).decode(),
    }


def node(saved):
    form = {"type_key": saved["type_key"]}
    if "repr_str" in saved:
        form["repr"] = saved["repr_str"]
    if "repr_b64" in saved:
        data = base64.b64decode(saved["repr_b64"])
        (length,) = struct.unpack_from("<Q", data)
        assert len(data) == 8 + length
        form["repr"] = data[8:].decode()
    for member in ("attrs", "keys", "data"):
        if member in saved:
            form[member] = saved[member]
    return form


for release in ("0.8", "0.19", "0.21"):
    for file in sorted((HERE / release).glob("*.json")):
        if file.name.endswith(".expect.json"):
            continue
        saved = json.loads(file.read_text())
        form = {
            "root": saved["root"],
            "nodes": [node(one) for one in saved["nodes"]],
            "tensors": [record(text) for text in saved["b64ndarrays"]],
            "attrs": saved["attrs"],
        }
        file.with_suffix(".expect.json").write_text(json.dumps(form) + "\n")
