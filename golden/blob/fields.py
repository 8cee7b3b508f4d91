#!/usr/bin/env python3
"""The fields of library binaries and import trees: cases of `blob.fields` and `import_tree.fields`, read only by the specification.

    python3 golden/blob/fields.py            adds missing cases, and fails if an existing case differs

Payloads are read only if they are device code (PAY-10). This script shares no code with the crate.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "conformance"))

import cases as conformance

WHY = "a tool that shows a wrong place, name, rule or value leads its user to valid bytes"
CODE = {"cuda", "opencl", "hip", "metal"}  # for metal, the form of 0.2


class End(Exception):
    """The bytes end, or contain something that no reader accepts."""


class Fields:
    def __init__(self, data, layout=None):
        self.data, self.at, self.end, self.layout, self.out = data, 0, len(data), layout, []

    def put(self, start, end, name, rule, value):
        if end > start:
            self.out.append([start, end, name, rule, value])

    def num(self, size, name, rule, shown=str, signed=False):
        if self.at + size > self.end:
            raise End
        value = int.from_bytes(self.data[self.at : self.at + size], "little", signed=signed)
        self.put(self.at, self.at + size, name, rule, shown(value))
        self.at += size
        return value

    def run(self, name, rule, shown=None):
        size = self.num(8, name, "WIRE-04", lambda n: f": {n} bytes")
        if self.at + size > self.end:
            raise End
        content = self.data[self.at : self.at + size]
        self.put(self.at, self.at + size, name, rule, shown(content) if shown else show(content))
        self.at += size
        return content

    def count(self, name, least, rule="WIRE-06", unit="elements"):
        count = self.num(8, name, rule, lambda n: f": {n} {unit}")
        if count * least > self.end - self.at:
            raise End
        return count

    def words(self, name):
        count = self.count(name, 8)
        return [self.num(8, f"{name}[{i}]", "TREE-01") for i in range(count)]

    def tree(self, name=""):
        return self.words(name + "indptr"), self.words(name + "indices")

    def left(self, name, rule):
        self.put(self.at, self.end, name, rule, f"{self.end - self.at} bytes")
        self.at = self.end

    def code(self, name):
        """Device code: format, functions, data (PAY-10)."""
        self.run(name + "format", "PAY-10")
        least = 40 if self.layout in ("0.21", "0.22") else 32
        for i in range(self.count(name + "functions", least, "WIRE-07", "entries")):
            one = f"{name}functions[{i}]."
            self.run(one + "key", "PAY-02")
            self.run(one + "name", "PAY-02")
            for j in range(self.count(one + "arg_types", 4)):
                for part, size in (("code", 1), ("bits", 1), ("lanes", 2)):
                    self.num(size, f"{one}arg_types[{j}].dtype.{part}", "TEN-01")
            for j in range(self.count(one + "launch_param_tags", 8)):
                self.run(f"{one}launch_param_tags[{j}]", "PAY-02")
            if least == 40:
                for j in range(self.count(one + "arg_extra_tags", 4)):
                    self.num(4, f"{one}arg_extra_tags[{j}]", "PAY-03", signed=True)
        self.run(name + "data", "PAY-10")

    def blob(self):
        size = self.num(8, "nbytes", "BLOB-01")
        if size > self.end - self.at:
            raise End
        file, self.end = self.end, self.at + size
        if self.layout == "0.22":
            self.framed()
        else:
            self.streamed()
        self.left("trailing", "WIRE-08")
        self.end = file
        self.left("trailing", "BLOB-02")

    def framed(self):
        indptr, _ = self.tree()
        seen = 0
        for i in range(len(indptr) - 1):
            kind = self.run(f"module[{i}].kind", "BLOB-04").decode()
            if kind == "_lib":
                seen += 1
                if seen > 1:
                    raise End
            elif kind in CODE:
                self.num(8, f"module[{i}].payload", "WIRE-04", lambda n: f": {n} bytes")
                self.code(f"module[{i}].")
            else:
                self.run(f"module[{i}].payload", "PAY-01", lambda content: f"{len(content)} bytes")

    def streamed(self):
        count = self.num(8, "count", "BLOB-03")
        if count * 8 > self.end - self.at:
            raise End
        for i in range(count):
            key = self.run(f"entry[{i}].key", "BLOB-04").decode()
            if key == "_import_tree":
                self.tree(f"entry[{i}].")
            elif key in CODE:
                self.code(f"entry[{i}].")
            elif key != "_lib":
                raise End
        if count and self.layout != "0.2" and not any(field[2].endswith(".indptr") for field in self.out):
            raise End  # BLOB-09
        if not count:
            self.left("uncounted", "BLOB-16")


def show(content):
    text = "".join(
        {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}.get(b, chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in content[:48]
    )
    return text + ("..." if len(content) > 48 else "")


def read(reader):
    try:
        reader()
    except End:
        pass


BLOBS = {  # file: layout, rules
    "opencl.bin": ("0.22", ["BLOB-10", "BLOB-11"]),
    "cuda.bin": ("0.22", ["BLOB-10", "BLOB-11"]),
    "library-alone.bin": ("0.22", ["BLOB-01", "BLOB-11"]),
    "unknown-kind.bin": ("0.22", ["BLOB-11"]),
    "bytes-behind.bin": ("0.22", ["BLOB-02"]),
    "bytes-inside.bin": ("0.22", ["BLOB-10"]),
    "two-libraries.bin": ("0.22", ["BLOB-12"]),
    "opencl-0.21.bin": ("0.21", ["BLOB-03", "BLOB-05", "BLOB-07"]),
    "opencl-0.8.bin": ("0.7", ["BLOB-03", "BLOB-05", "BLOB-07"]),
    "opencl-root.bin": ("0.7", ["BLOB-03", "BLOB-07"]),
    "count-zero-with-entry.bin": ("0.7", ["BLOB-16"]),
    "count-one-too-few.bin": ("0.7", ["BLOB-03"]),
    "opencl-0.6.bin": ("0.2", ["BLOB-03", "BLOB-05"]),
    "two-imports-0.6.bin": ("0.2", ["BLOB-03", "BLOB-05"]),
    "unknown-kind-0.8.bin": ("0.7", ["BLOB-06"]),
    "header-too-long.bin": ("0.22", ["BLOB-01"]),
    "rows-2-61.bin": ("0.22", ["BLOB-10"]),
}
RELEASES = {"0.2": "0.2..0.6", "0.7": "0.7..0.20", "0.21": "0.21..0.21", "0.22": "0.22.."}

WORDS = lambda *words: b"".join(n.to_bytes(8, "little") for n in words)
TREES = {  # name: bytes, rules, description
    "two-imports": (WORDS(4, 0, 2, 2, 2, 2, 1, 2), ["TREE-01"], "three modules and two numbers"),
    "lone-host": (WORDS(2, 0, 0, 0), ["TREE-01"], "one module and no numbers"),
    "bytes-behind": (WORDS(2, 0, 0, 0) + b"abc", ["TREE-01"], "three bytes after both vectors"),
    "largest-word": (WORDS(2, 0, 0, 1, 2**64 - 1), ["TREE-07"], "a number of no module, which shows that words are unsigned"),
    "second-cut": (WORDS(2, 0, 0, 2, 1), ["TREE-01"], "a second vector that lacks a word, so that its count is the last field"),
}


def made():
    blob, tree = [], []
    for name, (layout, rules) in BLOBS.items():
        reader = Fields((ROOT / "golden/blob" / name).read_bytes(), layout)
        read(reader.blob)
        blob.append({
            "id": "blob/fields-" + name[:-4], "rules": rules, "releases": RELEASES[layout], "op": "blob.fields",
            "input": {"file": "blob/" + name}, "args": {"layout": layout}, "expect": {"accept": reader.out},
            "why": WHY, "origin": {"hand": "golden/blob/fields.py"},
        })
    for name, (data, rules, what) in TREES.items():
        reader = Fields(data)

        def whole():
            reader.tree()
            reader.left("trailing", "WIRE-08")

        read(whole)
        tree.append({
            "id": "import_tree/fields-" + name, "rules": rules, "releases": "0.7..", "op": "import_tree.fields",
            "input": {"hex": data.hex()}, "expect": {"accept": reader.out}, "why": WHY, "origin": {"hand": what},
        })
    return {"blob": blob, "import_tree": tree}


def main():
    wrong = 0
    for chapter, cases in made().items():
        path = ROOT / f"conformance/{chapter}/cases/fields.json"
        there = {case["id"]: case for case in conformance.read(path)} if path.exists() else {}
        for case in cases:
            known = there.setdefault(case["id"], case)
            if known["expect"] != case["expect"]:
                print(f"{case['id']}: the file has\n  {known['expect']}\nand this computes\n  {case['expect']}")
                wrong += 1
        path.write_text(conformance.render(list(there.values())))
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
