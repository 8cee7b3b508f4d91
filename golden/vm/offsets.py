"""Checks golden/vm/truncated.json against the format, with a reader that knows which field it reads, and where, when the bytes end.

Run: python offsets.py        (in this folder)

A truncated number is WIRE-01 at its first byte. A count that needs more bytes than remain, by the minimum that each element
takes, is WIRE-06 at the count; a rank whose extents are missing is TEN-25.
"""

import json, os, struct, sys

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, "../../conformance")
import cases as conformance


class Ends(Exception):
    pass


class Reader:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def take(self, form, field):
        size = struct.calcsize("<" + form)
        if self.at + size > len(self.raw):
            raise Ends("WIRE-01", self.at, field)
        self.at += size
        return struct.unpack_from("<" + form, self.raw, self.at - size)[0]

    def count(self, least, field):
        start = self.at
        count = self.take("Q", field)
        if count * least > len(self.raw) - self.at:
            raise Ends("WIRE-06", start, field)
        return count

    def text(self, field):
        count = self.take("Q", field)
        if count > len(self.raw) - self.at:
            raise Ends("WIRE-01", self.at, field)
        self.at += count


def tensor(r, field):
    for form, name in (("Q", "magic"), ("Q", "reserved"), ("i", "device.type"), ("i", "device.id")):
        r.take(form, f"{field}.{name}")
    start, rank = r.at, r.take("i", f"{field}.ndim")
    # Must follow: type and extents.
    if 4 + 8 * rank > len(r.raw) - r.at:
        raise Ends("TEN-25", start, f"{field}.ndim")
    for form, name in (("B", "dtype.code"), ("B", "dtype.bits"), ("H", "dtype.lanes")):
        r.take(form, f"{field}.{name}")
    r.at += 8 * rank
    size = r.take("q", f"{field}.data_byte_size")
    if r.at + size > len(r.raw):
        raise Ends("WIRE-01", r.at, f"{field}.data")
    r.at += size


def read(raw, layout):
    r, tags = Reader(raw), {"0.21": (72, 71), "0.22": (70, 69)}[layout]
    if layout == "0.21":
        r.text("code")
        r.at = 8
    magic = r.take("Q", "magic")
    r.text("version")
    for at in range(r.count(52, "functions")):
        name = f"functions[{at}]"
        r.take("i", name + ".kind")
        r.text(name + ".name")
        for part in ("start", "end", "num_args", "registers"):
            r.take("q", f"{name}.{part}")
        for param in range(r.count(8, name + ".params")):
            r.text(f"{name}.params[{param}]")
    if magic & 0xFF == 0x1E:
        for at in range(r.count(16, "memory_scopes")):
            r.take("q", f"memory_scopes[{at}].constant")
            r.text(f"memory_scopes[{at}].scope")
    for at in range(r.count(8, "constants")):
        name = f"constants[{at}]"
        tag = r.take("i", name + ".tag")
        if tag == tags[0]:
            tensor(r, name)
        elif tag == tags[1]:
            for extent in range(r.count(8, name + ".shape")):
                r.take("q", f"{name}.shape[{extent}]")
        elif tag == 65:
            r.text(name + ".text")
        elif tag in (1, 3):
            r.take("q", name + {1: ".int", 3: ".float"}[tag])
        elif tag == 5:
            for form, part in (("B", "code"), ("B", "bits"), ("H", "lanes")):
                r.take(form, f"{name}.dtype.{part}")
    for name in ("instr_offset", "instr_data"):
        for at in range(r.count(8, name)):
            r.take("q", f"{name}[{at}]")


def main():
    known, agreed, apart = {case["id"]: case for case in conformance.load("vm")}, 0, []
    for id, rows in json.load(open("truncated.json")).items():
        case = known[id]
        raw = open(os.path.join("..", case["input"]["file"]), "rb").read()
        for first, last, rule, offset, field in rows:
            for length in {first, last, (first + last) // 2}:
                try:
                    read(raw[:length], case.get("args", {}).get("layout", "0.22"))
                    found = None
                except Ends as ends:
                    found = ends.args
                stated = (rule, length if offset == "end" else offset, field)
                agreed += found == stated
                if found != stated:
                    apart.append((id, length, stated, found))
    print(agreed, "answers agree with the format;", len(apart), "do not")
    for one in apart[:20]:
        print("  ", *one)
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
