"""What every chapter of the testee shares: rejections, the reader of bytes, and names of fields by the productions (grammar.py)."""

import base64
import struct

import grammar

PRODUCTIONS = grammar.Grammar()


class Reject(Exception):
    """The input breaks a rule."""

    def __init__(self, message, kind="malformed", offset=None, field=None, part=None):
        """`part` is the outer name of a field that is at fault as a whole: a shape and not its first dimension."""
        super().__init__(message)
        self.kind, self.offset, self.field, self.part = kind, offset, field, part


class Unsupported(Exception):
    """We do not do this."""


class Reader:
    """Bytes and a position. `check` of all: a field lies inside the window."""

    def __init__(self, data):
        self.data, self.at, self.is_old = data, 0, False

    def left(self):
        return len(self.data) - self.at

    def take(self, count, what):
        if count > self.left():
            raise Reject(f"{what} needs {count} bytes, {self.left()} remain", "truncated", self.at)
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form, what="number"):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form), what))[0]

    def u64(self, what="u64"):
        return self.number("Q", what)

    def bytes(self, what="bytes"):
        start = self.at
        length = self.u64(what + " length")
        try:
            return self.take(length, what)
        except Reject:
            raise Reject(f"{what} needs {length} bytes", "truncated", start + 8) from None

    def text(self, what="string"):
        start = self.at + 8
        raw = self.bytes(what)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Reject(f"{what} is not UTF-8", "malformed", start + error.start) from None

    def count(self, smallest, what="count"):
        start = self.at
        count = self.u64(what)
        if count * smallest > self.left():
            raise Reject(f"{what} promises {count} elements", "truncated", start)
        return count

    def vector(self, smallest, read):
        return [read() for _ in range(self.count(smallest))]

    def words(self):
        return self.vector(8, self.u64)

    def texts(self):
        return self.vector(8, self.text)


def u64(value):
    return struct.pack("<Q", value)


def string(value):
    raw = value.encode() if isinstance(value, str) else value
    return u64(len(raw)) + raw


def words(values):
    return u64(len(values)) + b"".join(map(u64, values))


def b64(raw):
    return base64.b64encode(raw).decode()


def data_of(args):
    return base64.b64decode(args["data"], validate=True)


def naming(production, form, releases, data, read):
    """What `read` returns; a rejection without a field gets the name that the production has at its offset."""
    try:
        return read()
    except Reject as broken:
        if broken.field is None and broken.offset is not None:
            broken.field = grammar.field_at(PRODUCTIONS, production, form, releases, data, broken.offset, broken.part)
        raise
