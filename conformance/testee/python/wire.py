"""Chapter wire: values of a type that the request names."""

import base64
import math
import struct

import grammar
from reader import Reader, Reject, Unsupported, b64, data_of, string, u64

NUMBERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "f64": "d"}


def parse_type(text):
    """`map<string,u64>` as ["map", ["string"], ["u64"]]."""
    text = text.replace(" ", "")

    def one(at):
        end = at
        while end < len(text) and text[end] not in "<>,":
            end += 1
        node = [text[at:end]]
        if end < len(text) and text[end] == "<":
            while True:
                child, end = one(end + 1)
                node.append(child)
                if end >= len(text) or text[end] not in ",>":
                    raise Unsupported(f"type {text}")
                if text[end] == ">":
                    return node, end + 1
        return node, end

    node, end = one(0)
    if end != len(text):
        raise Unsupported(f"type {text}")
    return node


def smallest(node):
    head = node[0]
    if head == "tuple":
        return sum(map(smallest, node[1:]))
    if head in NUMBERS:
        return struct.calcsize("<" + NUMBERS[head])
    return 1 if head == "bool" else 8


class Named:
    """Reads values of a type, and lists each field: where it begins and ends, its name, the rule that puts it there, its value."""

    def __init__(self, reader):
        self.reader, self.path, self.fields = reader, [], []

    def name(self, field):
        """The names around a field, six at most. An element that is no list itself has the name of the list, once."""
        around = self.path[:6]
        own = [] if around and around[-1][0] == field else [field]
        return ".".join([f"{name}[{index}]" for name, index in around] + own)

    def plain(self, size, field, rule, shown):
        start, raw = self.reader.at, self.reader.data[self.reader.at :][:size]
        if len(raw) < size:
            raise Reject(f"{field} needs {size} bytes", "truncated", start, self.name(field))
        self.reader.at += size
        if size:
            self.fields.append([start, self.reader.at, self.name(field), rule, shown(raw)])
        return raw

    def number(self, form, field):
        value = lambda raw: struct.unpack("<" + form, raw)[0]
        whole = lambda raw: grammar.decimal(value(raw))
        return value(self.plain(struct.calcsize("<" + form), field, "WIRE-02", whole))

    def counted(self, field, rule, what):
        shown = lambda raw: f": {int.from_bytes(raw, 'little')} {what}"
        return int.from_bytes(self.plain(8, field, rule, shown), "little")

    def run(self, field, rule):
        start, length = self.reader.at, self.counted(field, "WIRE-04", "bytes")
        return start + 8, self.plain(length, field, rule, grammar.printable)

    def list(self, field, smallest, rule, what, read):
        start, count = self.reader.at, self.counted(field, rule, what)
        if count * smallest > self.reader.left():
            raise Reject(f"{field} promises {count} {what}", "truncated", start, self.name(field))
        return [self.within(field, index, read) for index in range(count)]

    def within(self, field, index, read):
        self.path.append((field, index))
        value = read()
        self.path.pop()
        return value

    def read(self, node, field):
        head = node[0]
        if head == "f64":
            start = self.reader.at
            value = self.number("d", field)
            return value if math.isfinite(value) else "0x" + self.reader.data[start : start + 8][::-1].hex()
        if head in NUMBERS:
            return self.number(NUMBERS[head], field)
        if head == "bool":
            byte = self.plain(1, field, "WIRE-03", lambda raw: str(raw[0]))[0]
            if byte > 1:
                raise Reject(f"a bool is {byte}", "malformed", self.reader.at - 1, self.name(field))
            return bool(byte)
        if head == "string":
            start, raw = self.run(field, "WIRE-05")
            try:
                return raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise Reject(f"{field} is not UTF-8", "malformed", start + error.start, self.name(field)) from None
        if head == "bytes":
            return b64(self.run(field, "WIRE-04")[1])
        if head == "vector":
            return self.list(field, smallest(node[1]), "WIRE-06", "elements", lambda: self.read(node[1], field))
        if head == "map":
            entry = lambda: [self.read(node[1], "key"), self.read(node[2], "item")]
            return self.list(field, smallest(node[1]) + smallest(node[2]), "WIRE-07", "entries", entry)
        if head == "tuple":
            return [self.within(field, index, lambda: self.read(child, field)) for index, child in enumerate(node[1:])]
        raise Unsupported(f"type {head}")


def wire_write(node, value):
    head = node[0]
    if head == "f64" and isinstance(value, str):
        return bytes.fromhex(value[2:])[::-1]
    if head in NUMBERS:
        return struct.pack("<" + NUMBERS[head], value)
    if head == "bool":
        return bytes([value])
    if head == "string":
        return string(value)
    if head == "bytes":
        return string(base64.b64decode(value))
    if head == "vector":
        return u64(len(value)) + b"".join(wire_write(node[1], element) for element in value)
    if head == "map":
        pairs = (wire_write(node[1], key) + wire_write(node[2], item) for key, item in value)
        return u64(len(value)) + b"".join(pairs)
    if head == "tuple":
        return b"".join(map(wire_write, node[1:], value))
    raise Unsupported(f"type {head}")


def wire_decode(args):
    named = Named(Reader(data_of(args)))
    value = named.read(parse_type(args["type"]), "value")
    if named.reader.left() and args.get("strict"):
        raise Reject("bytes are left over", "trailing", named.reader.at, "")
    return value


def wire_fields(args):
    named = Named(Reader(data_of(args)))
    try:
        named.read(parse_type(args["type"]), "value")
        left = named.reader.left()
        named.plain(left, "trailing", "WIRE-08", lambda raw: f"{len(raw)} bytes")
    except Reject as broken:
        # A count that is too large is there, and so is what is no bool or text.
        assert broken.offset is not None
    listed = [field for field in named.fields if field[1] > args.get("from", 0)]
    most = args.get("most", len(listed))
    return {"fields": listed[:most], "left_out": listed[most][0] if most < len(listed) else None}


def wire_encode(args):
    return b64(wire_write(parse_type(args["type"]), args["value"]))
