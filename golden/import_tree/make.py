"""Writes orders.json: random module graphs with the answer of the real writer.

    python make.py            (needs the wheel apache-tvm 0.27; writes into its own folder)

Each graph is built of real modules (C source modules, which merge into `_lib`, and constant loaders, which do not),
packed by `runtime.ModulePackImportsToTensor`, and the packed bytes are parsed here only with `struct`. A line is

    {"dso": [...], "imports": [[...], ...], "entries": [0, null, 2], "indptr": [...], "indices": [...]}

where an entry names the module that is stored there (its payload carries a name) and null stands for `_lib`, or

    {"dso": [...], "imports": [[...], ...], "refused": ["parent kind", "child kind"]}
"""

import json
import pathlib
import random
import re
import struct

import tvm  # noqa: F401  (registers the writers)
import tvm_ffi

SEED = 20
GRAPHS = 400

c_source = tvm_ffi.get_global_func("runtime.CSourceModuleCreate")
const_loader = tvm_ffi.get_global_func("ffi.Module.create.const_loader")
pack = tvm_ffi.get_global_func("runtime.ModulePackImportsToTensor")


def main():
    rng = random.Random(SEED)
    lines = [json.dumps(answer(*graph(rng)), separators=(",", ":")) for _ in range(GRAPHS)]
    target = pathlib.Path(__file__).with_name("orders.json")
    target.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def graph(rng):
    count = rng.randint(1, 10)
    merging = rng.choice([0, 0, 0.3, 0.5, 1])
    dso = [rng.random() < merging for _ in range(count)]
    density = rng.choice([0.15, 0.3, 0.45])
    imports = [[j for j in range(i + 1, count) if rng.random() < density] for i in range(count)]
    for row in imports:
        rng.shuffle(row)
        if row and rng.random() < 0.1:
            row.append(row[0])
    return dso, imports


def answer(dso, imports):
    modules = [
        c_source(f"// m{i}", "c", [f"f{i}"], []) if host else const_loader({}, {f"sym{i}": []})
        for i, host in enumerate(dso)
    ]
    for i, row in enumerate(imports):
        for j in row:
            modules[i].import_module(modules[j])
    line = {"dso": dso, "imports": imports}
    try:
        blob = pack(modules[0]).numpy().tobytes()
    except Exception as error:  # the class differs between releases
        named = re.search(r"parent=(\S+), child=(\S+?)[\s.]*$", str(error).strip(), re.M)
        if not named or "creating a cycle" not in str(error):
            raise
        return line | {"refused": [named[1], named[2]]}
    return line | take_apart(blob)


def take_apart(blob):
    (size,) = struct.unpack_from("<Q", blob)
    assert size == len(blob) - 8
    at = 8

    def words():
        nonlocal at
        (count,) = struct.unpack_from("<Q", blob, at)
        values = struct.unpack_from(f"<{count}Q", blob, at + 8)
        at += 8 + 8 * count
        return list(values)

    def text():
        nonlocal at
        (length,) = struct.unpack_from("<Q", blob, at)
        value = blob[at + 8 : at + 8 + length]
        at += 8 + length
        return value

    indptr, indices = words(), words()
    entries = []
    for _ in indptr[1:]:
        kind = text()
        entries.append(None if kind == b"_lib" else int(re.search(rb"sym(\d+)", text())[1]))
    assert at == len(blob)
    return {"entries": entries, "indptr": indptr, "indices": indices}


if __name__ == "__main__":
    main()
