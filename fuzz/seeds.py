#!/usr/bin/env python3
"""Fills a corpus folder with the goldens of a target, each behind the bytes by which the target chooses what to do.

    fuzz/seeds.py TARGET FOLDER
"""

import hashlib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYOUTS = ("0.2", "0.7", "0.21", "0.22")
LARGEST = 1 << 16


def variant(index, count):
    """The four bytes by which a derived `Arbitrary` picks variant `index` of `count`."""
    return ((index << 32) // count + 1).to_bytes(4, "little")


def prefixes(target):
    if target == "import_tree":
        return [variant(0, 3)]
    if target == "tensor":
        return [variant(0, 5)] + [variant(1, 5) + bytes([family]) for family in range(3)]
    if target in ("object", "vm"):
        return [b""]
    if target == "wire":
        return [bytes([choice]) for choice in range(13)]
    return [bytes([choice]) for choice in range(4)]


def seeds(target):
    if target == "payload":
        table = (ROOT / "src/payload/kinds.rs").read_text()
        kinds = re.findall(r'\brow\(\s*"([^"]+)"', table)
        for case in json.loads((ROOT / "conformance/payload/cases.json").read_text()):
            args, file = case.get("args", {}), case["input"].get("file")
            if file and args.get("kind") in kinds and args.get("layout") in LAYOUTS:
                prefix = bytes([kinds.index(args["kind"]), LAYOUTS.index(args["layout"])])
                yield prefix + (ROOT / "golden" / file).read_bytes()
        return
    texts = (".json",) if target in ("graph", "object") else ()
    for file in sorted((ROOT / "golden" / target).rglob("*")):
        if "models" in file.parts or file.name.endswith(".expect.json"):
            continue
        if not file.is_file() or file.suffix in {".txt", ".py", ".md", ".json", ".c", ".h"} - set(texts):
            continue
        for prefix in prefixes(target):
            yield prefix + file.read_bytes()


def main(target, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds(target):
        if len(seed) <= LARGEST:
            (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


main(*sys.argv[1:])
