#!/usr/bin/env python3
"""Fills a corpus folder with the goldens of a target. Each golden follows bytes that select the behaviour of the target.

    fuzz/seeds.py TARGET FOLDER
"""

import hashlib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "conformance"))

import cases as conformance
LAYOUTS = ("0.2", "0.7", "0.21", "0.22")
LARGEST = 1 << 16


def variant(index, count):
    """Returns the four bytes that make a derived `Arbitrary` pick variant `index` of `count`."""
    return ((index << 32) // count + 1).to_bytes(4, "little")


def prefixes(target):
    if target == "import_tree":
        return [variant(0, 4)]
    if target == "tensor":
        return [variant(0, 5)] + [variant(1, 5) + bytes([family]) for family in range(3)]
    if target == "rpc":
        return [bytes([minor - 2, side, 0]) for minor in (8, 27) for side in (0, 1)]
    if target == "rpc_session":
        # Our server with a recorded client, and our client with a recorded server.
        # The bytes set the release, how it is known, and reads of any size.
        return [bytes([1, minor, 1, 0]) for minor in (0, 1)] + [bytes([3, minor, 0, 0, 96]) + ACTS for minor in (0, 1)]
    if target in ("object", "vm"):
        return [b""]
    if target == "vm_run":
        return [bytes([3])]
    if target in ("graph", "graph_run", "blob_container"):
        return [bytes([0])]
    if target == "wire":
        return [bytes([choice]) for choice in range(13)]
    return [bytes([choice]) for choice in range(4)]


# The releases of `rpc_session`, in its order.
SPOKEN = ("0.27", "0.8", "0.22", "0.21", "0.20", "0.16", "0.7")
# The actions of the client in `rpc_session` with a recorded server: 96 bytes.
ACTS = bytes(range(0, 192, 2))


def chapter_of(target):
    return target.removesuffix("_run").removesuffix("_container").removesuffix("_session")


def seeds(target):
    if target == "payload":
        # A comment may stand between a row and its name.
        table = re.sub(r"//.*", "", (ROOT / "src/payload/kind_table.rs").read_text())
        kinds = re.findall(r'\b(?:row|json_runtime)\(\s*"([^"]+)"', table)
        for case in conformance.load("payload"):
            args, source = case.get("args", {}), case["input"]
            if {"file", "hex"} & set(source) and args.get("kind") in kinds and args.get("layout") in LAYOUTS:
                raw, front = conformance.data(source), bytes([kinds.index(args["kind"]), LAYOUTS.index(args["layout"])])
                yield front + raw
                if len(raw) <= 600 and set(case["expect"]) & {"accept", "accept_file"}:
                    yield from (front + edit for edit in [*counts(raw), *repeats(raw)])
        return
    if target == "target":
        for case in (case for case in conformance.load("target") if "value" in case["input"]):
            named, release = case["input"]["value"], case.get("args", {}).get("release", "0.27")
            minor = int(release.split(".")[1])
            yield bytes([minor - 2]) + (named if isinstance(named, str) else json.dumps(named)).encode()
        return
    if target == "export":
        lowered = (ROOT / "golden/target/kernels").rglob("*.json")
        yield from (b"\x00" + file.read_bytes() for file in sorted(lowered))
        # Choices for the module graphs made by the target. Lengths are taken from the end.
        for number in range(256):
            yield b"\x01" + b"".join(hashlib.sha256(bytes([number, part])).digest() for part in range(8))
        for file in sorted((ROOT / "golden/blob").rglob("*")):
            if file.suffix in {".a", ".o", ".so", ".tar", ".bin", ".dylib", ".dll", ".obj"}:
                yield bytes([2, 0, 16]) + (8).to_bytes(8, "little") + bytes(8) + file.read_bytes()
        return
    chapter = chapter_of(target)
    yield from cases(target)
    if target == "import_tree":
        yield from (variant(3, 4) + bytes([more]) for more in range(4))
    if target == "blob":
        # TREE-13: a library, and a tree of two rows.
        word = lambda number: number.to_bytes(8, "little")
        text = lambda name: word(len(name)) + name
        body = word(2) + text(b"_lib") + text(b"_import_tree") + word(3) + 4 * word(0)
        yield bytes([LAYOUTS.index("0.7")]) + word(len(body)) + body
    texts = (".json",) if chapter in ("graph", "object") else ()
    if target == "vm_run":
        # Choices for the programs made by the target. Any bytes are valid choices.
        for number in range(256):
            yield b"\x04" + b"".join(hashlib.sha256(bytes([number, part])).digest() for part in range(16))
    if target == "graph_run":
        for number in range(256):
            yield b"\x01" + b"".join(hashlib.sha256(bytes([number, part])).digest() for part in range(8))
    if target == "rpc_session":
        # Choices for both sides, each with a release.
        for number in range(512):
            yield bytes([number % 2 * 2, number // 2 % 7, number // 14 % 4, number // 56]) + b"".join(
                hashlib.sha256(number.to_bytes(2, "little") + bytes([part])).digest() for part in range(16)
            )
    if target == "blob_container":
        # Choices for the files made by the target. Lengths are taken from the end.
        for number in range(1024):
            yield b"\x01" + b"".join(hashlib.sha256(number.to_bytes(2, "little") + bytes([part])).digest() for part in range(8))
    for file in sorted((ROOT / "golden" / chapter).rglob("*")):
        if "models" in file.parts or file.name.endswith(".expect.json"):
            continue
        if not file.is_file() or file.suffix in {".txt", ".py", ".md", ".json", ".c", ".h", ".sh", ".pem", ".key"} - set(texts):
            continue
        for prefix in prefixes(target):
            yield prefix + file.read_bytes()


def counts(raw):
    """Yields `raw` with one small number of 8 bytes changed by one, up or down."""
    for at in range(len(raw) - 7):
        if 0 < raw[at] < 16 and not any(raw[at + 1 : at + 8]):
            yield from (raw[:at] + bytes([raw[at] + step]) + raw[at + 1 :] for step in (-1, 1))


def repeats(raw):
    """Yields `raw` with a text copied over the empty text after it, for a function that repeats its name."""
    for at in range(len(raw) - 16):
        text = raw[at : at + 8 + raw[at]]
        if 0 < raw[at] < 64 and not any(text[1:8]) and text[8:].isascii() and raw[at + len(text) :].startswith(bytes(8)):
            yield raw[: at + len(text)] + text + raw[at + len(text) + 8 :]


TYPES = ("u8", "u16", "u32", "u64", "i32", "i64", "f64", "bool", "string", "bytes", "vector", "map", "tuple")


def wire_type(text):
    """Returns the bytes that make the target `wire` choose a type, or None for a tuple without exactly two members."""
    text = text.replace(" ", "")
    name, _, inner = text.partition("<")
    parts, depth = [""], 0
    for letter in inner[:-1]:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if name == "tuple" and len(parts) != 2 or name not in TYPES:
        return None
    inner = [wire_type(part) for part in parts if part]
    return None if None in inner else bytes([TYPES.index(name)]) + b"".join(inner)


def cases(target):
    """Yields the inputs of the suite's reading cases. Each rejected input breaks exactly one rule."""
    for case in conformance.load(chapter_of(target)):
        source, args = case["input"], case.get("args", {})
        ends = (".find", ".symbols") if target == "blob_container" else (".decode", ".run", ".detect", ".script")
        if not case["op"].endswith(ends) or not {"hex", "file"} & set(source):
            continue
        raw = conformance.data(source)
        if target == "wire":
            front = [wire_type(args.get("type", ""))]
        elif target == "tensor":
            family = 2 if "release" not in args else sum(int(args["release"].split(".")[1]) >= first for first in (4, 7))
            front = [variant(1, 5) + bytes([family])] if args.get("form") == "tensor" else [variant(0, 5)]
        elif target == "rpc_session":
            if args["form"] != "packet" or args["release"] not in SPOKEN:
                continue
            # The target writes a hello and InitServer first.
            minor = SPOKEN.index(args["release"])
            front = [bytes([1, minor, 2, 0]) if args["speaker"] == "client" else bytes([3, minor, 65, 0, 96]) + ACTS]
        elif target == "rpc":
            forms = ("packet", "hello", "answer", "tracker-hello", "tracker-request", "tracker-reply")
            minor, side = int(args["release"].split(".")[1]), args["speaker"] == "server"
            front = [bytes([minor - 2, side, forms.index(args["form"].removeprefix("proxy-"))])]
        elif target == "blob":
            front = [bytes([LAYOUTS.index(args.get("layout", "0.22"))])]
        else:
            front = prefixes(target)
        yield from (bytes(prefix) + raw for prefix in front if prefix is not None)


def main(target, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds(target):
        if len(seed) <= LARGEST:
            (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


main(*sys.argv[1:])
