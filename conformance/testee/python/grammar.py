"""The productions of spec/*.md, read and followed: which field is where, and where a field is cut off.

The notation is that of spec/wire.md, "Grammar". Nothing here knows a format: a name or an offset that comes out is in the prose.
"""

import math
import pathlib
import re
import struct
from decimal import Decimal

SPEC = pathlib.Path(__file__).resolve().parents[3] / "spec"
NUMBERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "f64": "d"}
TEXTS = ("bytes", "string", "word", "digits", "decimal", "release", "base64")
TOKEN = re.compile(r'\s*(\{[^}]*\}|"[^"]*"|\[[^\]]*\]|[A-Za-z_][\w.-]*(?:@[\w.]+)?|0x[0-9A-Fa-f]+|\d+|[<>(),:=|])')
# Counts of what follows without being vectors: how large an element is, and how many bytes come before the first. The
# count of a library has entries with a key of 8 bytes, that of a parameter file tensors.
COUNTS = {"ndim": (8, 4), "words": (8, 0), "info": (8, 0), "count": (40, 0)}
ENTRY = 8


class Cut(Exception):
    """A field does not fit into what is left."""

    def __init__(self, offset, field):
        super().__init__(f"{field} at {offset}")
        self.offset, self.field = offset, field


class Wrong(Exception):
    """The bytes are not of this production."""


def minor(release):
    return int(release.split(".")[1])


class Grammar:
    def __init__(self, chapters=("tensor", "payload", "import_tree", "blob")):
        self.rows = {}
        for chapter in chapters:
            for block in re.findall(r"```grammar[^\n]*\n(.*?)```", (SPEC / f"{chapter}.md").read_text(), re.S):
                for row in re.split(r"\n(?=\S[^\n]*::=)", block):
                    head, body = row.split("::=", 1)
                    name, _, releases = head.strip().partition("@")
                    first, _, last = releases.partition("..")
                    span = (minor(first) if first else 0, minor(last) if last else 99)
                    self.rows.setdefault(name, []).append((span, Parser(body).alternatives()))

    def forms(self, name, releases):
        """The rows of a name that some of `releases` have."""
        low, high = releases
        return [(since, body) for (since, until), body in self.rows.get(name, []) if since <= high and low <= until]

    def row(self, name, releases):
        found = self.forms(name, releases)
        if not found:
            raise Wrong(f"no production {name}")
        return found[0][1]

    def smallest(self, node, releases, known):
        """The least number of bytes; what only a number in the bytes says counts as none. `known` has the fields that were read."""
        kind = node[0]
        if kind == "alternatives":
            return min(self.smallest(one, releases, known) for one in node[1])
        if kind == "sequence":
            return sum(self.smallest(one, releases, known) for one in node[1])
        if kind == "check" or node[3] is not None:
            return 0
        name, version, inner = node[2]
        if name in NUMBERS:
            return struct.calcsize("<" + NUMBERS[name])
        if name == "window":
            return 8 + self.smallest(inner[0], releases, known)
        if name in TEXTS or name in ("vector", "map"):
            return 8
        if name == "(":
            return self.smallest(inner, releases, known)
        if name == "payload":
            return 0
        own = spans(version) or (spans(known(version)) if version else releases)
        return self.smallest(self.row(name, own), releases, known)


def spans(version):
    return (minor(version), minor(version)) if version and version[0] == "0" else None


class Parser:
    def __init__(self, text):
        self.tokens = TOKEN.findall(text)
        self.at = 0

    def next(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def alternatives(self):
        found = [self.sequence()]
        while self.next() == "|":
            self.take()
            found.append(self.sequence())
        return ("alternatives", found) if len(found) > 1 else found[0]

    def sequence(self):
        items = []
        while self.next() not in (None, "|", ")", ",", ">"):
            items.append(self.item())
        return ("sequence", items)

    def item(self):
        if self.next()[0] == "{":
            return ("check", self.take()[1:-1])
        name = None
        if self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] == ":":
            name = self.take()
            self.take()
        kind, times, value = self.type(), None, None
        if self.next() and self.next()[0] == "[":
            times = self.take()[1:-1]
        if self.next() == "=":
            self.take()
            value = self.take()
        return ("field", name, kind, times, value)

    def type(self):
        word = self.take()
        if word == "(":
            inner = self.alternatives()
            self.take()
            return ("(", None, inner)
        if word == "raw":
            return ("raw", None, [])
        name, _, version = word.partition("@")
        inner = []
        if self.next() == "<":
            while self.take() in ("<", ","):
                inner.append(self.alternatives())
        return (name, version, inner)


class Walk:
    """Follows a production through bytes. `fields` is what was met: where it begins and ends, and its name."""

    def __init__(self, grammar, data, releases, library=False):
        self.grammar, self.data, self.releases, self.library = grammar, data, releases, library
        self.at, self.end, self.path, self.fields, self.scopes = 0, len(data), [], [], []

    def name(self, field):
        around = self.path[:6]
        own = [] if not field or around and around[-1][0] == field else [field]
        return ".".join([name if index is None else f"{name}[{index}]" for name, index in around] + own)

    def plain(self, size, field, shown, rule=None):
        """The next bytes, listed with their value for people, and with the rule where chapter wire has it."""
        start = self.at
        if size > self.end - start:
            raise Cut(start, self.name(field))
        self.at += size
        if size:
            self.fields.append((start, self.at, self.name(field), rule, shown(self.data[start : self.at])))
        return self.data[start : self.at]

    def length(self, field, rule="WIRE-04", what="bytes"):
        return int.from_bytes(self.plain(8, field, lambda raw: f": {int.from_bytes(raw, 'little')} {what}", rule), "little")

    def counted(self, size, field, rule="WIRE-06", what="elements"):
        start, count = self.at, self.length(field, rule, what)
        if count * size > self.end - self.at:
            raise Cut(start, self.name(field))
        return count

    def inside(self, segment, read):
        self.path.append(segment)
        value = read()
        self.path.pop()
        return value

    def known(self, name):
        first, *rest = name.split(".")
        for scope in reversed(self.scopes):
            if first in scope:
                value = scope[first]
                for part in rest:
                    value = value[part]
                return value
        raise Wrong(f"nothing is called {name}")

    def worth(self, text):
        """The value of an expression."""
        text = re.sub(r"(?<![<>])=", "==", text).replace("/", "//")
        text = re.sub(r"#([a-z_]+)", r"len(\1)", text)
        words = lambda match: match[0] if match[0] in ("len", "product") else f"known({match[0]!r})"
        text = re.sub(r"[a-z_][a-z_.]*", words, text)
        return eval(text, {"__builtins__": {}}, {"len": len, "product": math.prod, "known": self.known})

    def follow(self, node, element=None):
        """Reads a sequence; its named values. `element` is the name of what has none."""
        if node[0] == "alternatives":
            return self.first_that_fits(node[1], element)
        self.scopes.append({})
        for item in node[1]:
            if item[0] == "check":
                if not self.worth(item[1]):
                    raise Wrong(item[1])
                continue
            _, name, kind, times, wanted = item
            if times is None:
                value = self.read(kind, name, element, wanted)
            else:
                value = self.several(kind, name, self.worth(times))
            if name:
                self.scopes[-1][name] = value
        return self.scopes.pop()

    def first_that_fits(self, nodes, element):
        kept, furthest = (self.at, len(self.fields), len(self.scopes), len(self.path)), None
        for node in nodes:
            try:
                return self.follow(node, element)
            except (Cut, Wrong) as broken:
                # A branch whose tag is right is the one that is meant.
                if isinstance(broken, Cut) and (furthest is None or broken.offset > furthest.offset):
                    furthest = broken
                self.at = kept[0]
                del self.fields[kept[1] :], self.scopes[kept[2] :], self.path[kept[3] :]
        raise furthest or Wrong("none fits")

    def several(self, kind, name, times):
        if kind[0] == "raw":
            return self.plain(times, name, printable)
        if not isinstance(times, int):
            raise Wrong(f"{name}: {times!r} is no count")
        return [self.inside((name, index), lambda: self.read(kind, None, name)) for index in range(int(times))]

    def read(self, kind, name, element=None, wanted=None):
        what, version, inner = kind
        field = name or element
        if what in NUMBERS:
            value = self.number(what, field)
            if wanted is not None and value != int(wanted, 0):
                raise Wrong(f"{field} is {value}")
            return value
        if what in TEXTS:
            text = self.plain(self.length(field), field, printable).decode("utf-8", "replace")
            # An empty text tells forms apart, and is looked at when all of them were read (PAY-09).
            if wanted not in (None, '""') and text != wanted.strip('"'):
                raise Wrong(f"{field} is {text}")
            return int(text) if what == "decimal" and text.isdigit() else text
        if what == "vector":
            count = self.counted(self.grammar.smallest(inner[0], self.releases, self.known), field)
            if field == "spirv":
                # Its words are of the vendor, and one run to everybody else (PAY-14).
                return self.plain(4 * count, field, printable)
            return [self.inside((field, index), lambda: self.follow(inner[0], field)) for index in range(count)]
        if what == "map":
            key, item = inner
            count = self.counted(sum(self.grammar.smallest(one, self.releases, self.known) for one in inner), field, "WIRE-07", "entries")
            entry = lambda: (self.follow(key, "key"), self.follow(item, "item"))
            return [self.inside((field, index), entry) for index in range(count)]
        if what == "window":
            return self.window(inner[0], field)
        if what == "(":
            return self.follow(inner, element)
        if what == "payload":
            if self.library and self.releases[0] >= 22:
                # A payload that has its length is bytes to the library.
                return self.plain(self.end - self.at, "payload", printable)
            kind = self.known(inner[0][1][0][2][0])
            return self.first_that_fits([body for _, body in self.grammar.forms(kind, self.releases)], None)
        releases = spans(version) or (spans(self.known(version)) if version else self.releases)
        body = self.grammar.row(what, releases)
        if name is None:
            return self.inline(body)
        return self.inside((name, None), lambda: self.follow(body))

    def inline(self, body):
        """As if the fields of the production were written where it is."""
        found = self.follow(body)
        self.scopes[-1].update(found)
        return found

    def number(self, what, field):
        start, form = self.at, "<" + NUMBERS[what]
        worth = lambda raw: struct.unpack(form, raw)[0]
        if field in ("words", "info"):
            value = self.length(field, "WIRE-06", "elements")
        else:
            value = worth(self.plain(struct.calcsize(form), field, lambda raw: decimal(worth(raw))))
        if field in COUNTS:
            size, before = COUNTS[field]
            size = ENTRY if self.library and field == "count" and not self.path else size
            if value > max(self.end - self.at - before, 0) // size:
                raise Cut(start, self.name(field))
        return value

    def window(self, inner, field):
        length, outside = self.length(field), self.end
        if length > self.end - self.at:
            raise Cut(self.at, self.name(field))
        self.end = self.at + length
        value = self.follow(inner)
        if self.at < self.end:
            self.plain(self.end - self.at, field, lambda raw: f"{len(raw)} bytes")
        self.end = outside
        return value


def field_at(grammar, name, form, releases, data, offset, part=None):
    """The name of the field at `offset`, where the row has one there; of its part that is called `part`."""
    met, cut = walk(grammar, name, form, releases, data)
    if cut is not None and cut.offset == offset:
        return cut.field
    here = [field for start, end, field, _, _ in met if start <= offset < end]
    field = here[-1] if here else None
    return field[: field.rfind(part) + len(part)] if field and part else field


def walk(grammar, name, form, releases, data):
    """Follows the row of `name` that begins in `form`, or the only one: the fields, and what is cut off."""
    rows = grammar.forms(name, releases)
    chosen = [body for since, body in rows if form is None or since == minor(form)]
    following = Walk(grammar, data, releases, name == "blob")
    try:
        following.follow(chosen[0])
    except Cut as cut:
        return following.fields, cut
    except (Wrong, IndexError):
        pass
    return following.fields, None


def decimal(number):
    return format(Decimal(repr(number)), "f").removesuffix(".0")


def printable(raw):
    """Bytes for people: ASCII as it is, the rest as escapes, no more than 48."""
    known = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}
    one = lambda byte: known.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}")
    return "".join(map(one, raw[:48])) + ("..." if len(raw) > 48 else "")
