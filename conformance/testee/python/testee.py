#!/usr/bin/env python3
"""A testee for `tvmspec check`, and an independent oracle for expected values: pure Python 3, no dependency.

    tvmspec check --impl "exec:python3 conformance/testee/python/testee.py"

It was written from the prose in spec/ and from observations of released TVM, and shares no code with src/. It speaks the
exec protocol (`tvmspec check --help-exec`), does the chapters wire, import_tree, the stored forms of tensor, payloads without
code for a VM (payload.py), and the library binary, and says "unsupported" to everything else. Of a rejection it states kind, offset
and field, and is held to all three; the rule it leaves out. Fields have their names from the productions of the chapters (grammar.py).
"""

import base64
import json
import math
import struct
import sys

import grammar
import payload

U64 = 1 << 64


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


# --- fields by the grammar of the chapters ------------------------------------------------------------------------

PRODUCTIONS = grammar.Grammar()


def naming(production, form, releases, data, read):
    """What `read` returns; a rejection without a field gets the name that the production has at its offset."""
    try:
        return read()
    except Reject as broken:
        if broken.field is None and broken.offset is not None:
            broken.field = grammar.field_at(PRODUCTIONS, production, form, releases, data, broken.offset, broken.part)
        raise


# --- wire: values of a type that the request names ---------------------------------------------------------------

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


# --- import_tree: compressed sparse rows, and the order of modules ----------------------------------------------


def tree_check(indptr, indices, modules=None, at=None):
    """`at` is the offset of the count in front of `indptr`, where there are bytes."""

    def word(vector, index):
        behind = 0 if vector is indptr else 8 + 8 * len(indptr)
        return None if at is None else at + behind + 8 + 8 * index

    if len(indptr) < 2:
        raise Reject("there is no module", offset=at)
    count = len(indptr) - 1
    for row, (start, end) in enumerate(zip(indptr, indptr[1:])):
        if start > end:
            raise Reject("a row runs backwards", offset=word(indptr, row + 1))
    for row, end in enumerate(indptr[1:]):
        if end > len(indices):
            raise Reject("a row ends behind the children", offset=word(indptr, row + 1))
    for index, child in enumerate(indices):
        if child >= count:
            raise Reject(f"child {child} of {count} modules", offset=word(indices, index))
    for module, (start, end) in enumerate(zip(indptr, indptr[1:])):
        if module in indices[start:end]:
            own = start + indices[start:end].index(module)
            raise Reject(f"module {module} imports itself", "cycle", word(indices, own))
    closing = closes_a_cycle(indptr, indices)
    if closing is not None:
        raise Reject("modules import each other", "cycle", word(indices, closing))
    if modules is not None and modules != count:
        raise Reject(f"{count} rows for {modules} modules", offset=at)


def closes_a_cycle(indptr, indices):
    """The place in `indices` of the first import that leads back to a module on the way to it, depth first from module 0 on."""
    on_the_way, done = set(), set()
    for root in range(len(indptr) - 1):
        if root in done:
            continue
        on_the_way.add(root)
        stack = [(root, iter(range(indptr[root], indptr[root + 1])))]
        while stack:
            module, places = stack[-1]
            place = next(places, None)
            if place is None:
                stack.pop()
                on_the_way.remove(module)
                done.add(module)
                continue
            child = indices[place]
            if child in on_the_way:
                return place
            if child not in done:
                on_the_way.add(child)
                stack.append((child, iter(range(indptr[child], indptr[child + 1]))))
    return None


def tree_read(reader):
    indptr = reader.words()
    return {"indptr": indptr, "indices": reader.words()}


def tree_decode(args):
    data = data_of(args)

    def read():
        tree = tree_read(Reader(data))
        tree_check(tree["indptr"], tree["indices"], args.get("modules"), 0)
        return tree

    return naming("import_tree", None, (7, 99), data, read)


def tree_encode(args):
    tree = args["value"]
    tree_check(tree["indptr"], tree["indices"])
    return b64(words(tree["indptr"]) + words(tree["indices"]))


def tree_order(args):
    modules = args["value"]["modules"]
    algorithm = args.get("algorithm", "0.8")
    if not modules:
        raise Reject("there is no module")
    for module in modules:
        if any(child >= len(modules) for child in module["imports"]):
            raise Reject("an import is not in the graph")
    imports = [module["imports"] for module in modules]
    dso = [module["dso"] if "dso" in module else exportable(module["kind"], args["release"]) for module in modules]
    if algorithm == "0.7":
        groups = [[module] for module in walk([0], {0}, imports)]
        return rows_of(groups, imports, keep=True)
    groups = two_phases(imports, dso)
    result = rows_of(groups, imports)
    if algorithm == "topological":
        return topological(groups, imports)
    for parent, (start, end) in enumerate(zip(result["indptr"], result["indptr"][1:])):
        row = result["indices"][start:end]
        if row and row[0] <= parent:
            raise Reject("a child is numbered before its parent", "cycle")
    return result


def exportable(kind, release):
    """TREE-20: which kinds are linked into the library."""
    minor = int(release.split(".")[1])
    since = {"llvm": (7, 27), "c": (7, 27), "static_library": (9, 27), "hexagon": (12, 23)}
    first, last = since.get(kind, (1, 0))
    return first <= minor <= last


def walk(stack, seen, imports, stop=None):
    """Takes the module on top and puts its unseen imports on top, first import lowest."""
    order = []
    while stack:
        module = stack.pop()
        order.append(module)
        if stop is not None and stop(module):
            continue
        for child in imports[module]:
            if child not in seen:
                seen.add(child)
                stack.append(child)
    return order


def two_phases(imports, dso):
    seen = {0}
    first = walk([0], seen, imports, stop=lambda module: dso[module])
    groups = [[module] for module in first if not dso[module]]
    boundary = [module for module in first if dso[module]]
    if boundary:
        host = []
        groups.append(host)
        for module in walk(list(boundary), seen, imports):
            if dso[module]:
                host.append(module)
            else:
                groups.append([module])
    return groups


def rows_of(groups, imports, keep=False):
    number = {module: place for place, group in enumerate(groups) for module in group}
    indptr, indices = [0], []
    for place, group in enumerate(groups):
        row = [number[child] for module in group for child in imports[module]]
        if not keep:
            row = sorted(set(row) - {place})
        indices += row
        indptr.append(len(indices))
    return {"order": groups, "indptr": indptr, "indices": indices}


def topological(groups, imports):
    tree = rows_of(groups, imports)
    starts = tree["indptr"]
    rows = [tree["indices"][a:b] for a, b in zip(starts, starts[1:])]
    left, order = set(range(len(groups))), []
    while left:
        waiting = {child for entry in left for child in rows[entry]}
        free = sorted(left - waiting)
        if not free:
            raise Reject("there is a cycle", "cycle")
        order.append(groups[free[0]])
        left.remove(free[0])
    return rows_of(order, imports)


# --- tensor: records and parameter files -----------------------------------------------------------------------

RECORD, LIST = 0xDD5E40F096B4A13F, 0xF7E58D4F05049CB7
NAMES = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}
SMALL = dict(
    enumerate(
        "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
        "float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn".split(),
        7,
    )
)


def dtype_text(code, bits, lanes):
    """The text of 0.27 where it says everything, otherwise the three numbers."""
    signed = lanes - 65536 if lanes > 32767 else lanes
    tail = "" if signed == 1 else f"x{signed}" if signed > 1 else f"xvscalex{-signed}"
    if lanes == 0 or signed == -1:
        return [code, bits, lanes]
    if code in NAMES and bits:
        return f"{NAMES[code]}{bits}{tail}"
    if code == 3 and bits == 64 and lanes == 1:
        return "handle"
    if code == 6 and bits:
        return f"bool{'' if bits == 8 else bits}{tail}"
    width = {code: int(name[5]) for code, name in SMALL.items()}
    if code in SMALL and bits == width[code] and signed > 0:
        return SMALL[code] + tail
    return [code, bits, lanes]


def dtype_of(value):
    if isinstance(value, list):
        return value
    base, lanes = value, 1
    if "xvscalex" in value:
        base, count = value.split("xvscalex")
        lanes = 65536 - int(count)
    else:
        head, cross, count = value.rpartition("x")
        if cross and count.isdigit() and head:
            base, lanes = head, int(count)
    for code, name in SMALL.items():
        if base == name:
            return [code, int(name[5]), lanes]
    if base == "handle":
        return [3, 64, lanes]
    for code, name in [(6, "bool"), *NAMES.items()]:
        digits = base[len(name) :]
        if base.startswith(name) and (digits.isdigit() or (code == 6 and not digits)):
            return [code, int(digits or 8), lanes]
    raise Unsupported(f"dtype {value}")


def element_size(sizing, bits, lanes):
    if sizing == "0.2":
        return (bits * lanes + 7) // 8
    return bits // 8 if sizing == "0.4" else (bits + 7) // 8


def sizing_of(release):
    minor = int(release.split(".")[1])
    return "0.2" if minor <= 3 else "0.4" if minor <= 6 else "0.7"


def record_read(reader, sizing):
    start = reader.at
    if reader.u64("magic") != RECORD:
        raise Reject("not a tensor", offset=start)
    reserved = reader.u64("reserved")
    device = [reader.number("i"), reader.number("i")]
    if device[0] != 1 and sizing != "0.2":
        raise Reject("the tensor is not on the CPU", offset=start + 16)
    ndim = reader.number("i")
    if ndim < 0:
        raise Reject("ndim is negative", offset=start + 24)
    if ndim > max(reader.left() - 4, 0) // 8:
        raise Reject("ndim promises too much", "truncated", start + 24)
    code, bits, lanes = reader.number("B"), reader.number("B"), reader.number("H")
    if bits == 0 or lanes == 0:
        raise Reject("an element of nothing", offset=start + 28, part="dtype")
    shape = [reader.number("q") for _ in range(ndim)]
    for place, extent in enumerate(shape):
        if extent < 0:
            raise Reject("a dimension is negative", offset=start + 32 + 8 * place)
    size = math.prod(shape) * element_size(sizing, bits, lanes)
    if size >= 1 << 63:
        raise Reject("the size does not fit", "limit", start + 32, part="shape")
    if reader.number("q") != size:
        raise Reject(f"data_byte_size is not {size}", offset=start + 32 + 8 * ndim)
    data = reader.take(size, "data")
    tensor = {"dtype": dtype_text(code, bits, lanes), "shape": shape, "device": device, "data": b64(data)}
    return {**tensor, "reserved": reserved} if reserved else tensor


def record_write(tensor, sizing):
    code, bits, lanes = dtype_of(tensor["dtype"])
    data, shape = base64.b64decode(tensor["data"]), tensor["shape"]
    if any(extent < 0 for extent in shape):
        raise Reject("a dimension is negative")
    if bits == 0 or lanes == 0:
        raise Reject("an element of nothing", "type")
    size = math.prod(shape) * element_size(sizing, bits, lanes)
    if size >= 1 << 63:
        raise Reject("the size does not fit", "limit")
    if size != len(data):
        raise Reject(f"the data are not {size} bytes")
    head = struct.pack("<QQii", RECORD, tensor.get("reserved", 0), *tensor["device"])
    head += struct.pack("<iBBH", len(shape), code, bits, lanes)
    return head + struct.pack(f"<{len(shape)}qq", *shape, len(data)) + data


def params_read(data, sizing):
    reader = Reader(data)
    if reader.u64("magic") != LIST:
        raise Reject("not a parameter file", offset=0)
    reserved, names = reader.u64("reserved"), reader.texts()
    if reader.u64("count") != len(names):
        raise Reject("not as many tensors as names", offset=reader.at - 8)
    reader.at -= 8
    reader.count(40, "tensors")
    tensors = [{"name": name, **record_read(reader, sizing)} for name in names]
    return {"tensors": tensors, **({"reserved": reserved} if reserved else {})}


def tensor_decode(args):
    form, data = args.get("form", "params"), data_of(args)
    release = args.get("release")
    span = lambda sizing: (grammar.minor(sizing), grammar.minor(sizing))
    if form == "tensor":
        sizing = sizing_of(release) if release else "0.7"
        return naming("tensor", None, span(sizing), data, lambda: record_read(Reader(data), sizing))
    if form in ("dtype", "device"):
        # Their text, or their own form, is not done here.
        _, cut = grammar.walk(PRODUCTIONS, form, None, span("0.7"), data)
        if cut is not None:
            raise Reject("it is cut off", "truncated", cut.offset, f"{form}.{cut.field}")
    if form != "params":
        raise Unsupported(f"form {form}")
    params = lambda sizing: naming("params", None, span(sizing), data, lambda: params_read(data, sizing))
    if release:
        return params(sizing_of(release))
    first = None
    for sizing in ["0.7", "0.4", "0.2"]:
        try:
            return params(sizing)
        except Reject as broken:
            first = first or broken
    raise first


def tensor_encode(args):
    form, value = args.get("form", "params"), args["value"]
    # Without a release any of the three that sizes all of the tensors (TEN-45), the newest first.
    sizings = [sizing_of(args["release"])] if "release" in args else ["0.7"] if form == "tensor" else ["0.7", "0.4", "0.2"]
    first = None
    for sizing in sizings:
        try:
            return tensor_write(form, value, sizing)
        except Reject as broken:
            first = first or broken
    raise first


def tensor_write(form, value, sizing):
    if form == "tensor":
        return b64(record_write(value, sizing))
    if form != "params":
        raise Unsupported(f"form {form}")
    names = b"".join(string(tensor["name"]) for tensor in value["tensors"])
    count = u64(len(value["tensors"]))
    records = b"".join(record_write(tensor, sizing) for tensor in value["tensors"])
    return b64(u64(LIST) + u64(value.get("reserved", 0)) + count + names + count + records)


# --- blob: the library binary. Layouts before 0.22 do not frame payloads, so each kind's grammar finds its end ----


def functions(reader, layout):
    def one():
        reader.text()
        reader.text()
        reader.vector(4, lambda: reader.take(4, "dtype"))
        reader.texts()
        if layout == "0.21":
            reader.vector(4, lambda: reader.take(4, "tag"))

    reader.vector(40 if layout == "0.21" else 32, one)


def skip_device(reader, layout):
    reader.text()
    functions(reader, layout)
    reader.bytes()


def skip_vulkan(reader, layout):
    reader.text()
    functions(reader, layout)

    def shader():
        reader.text()
        reader.number("I")
        reader.vector(4, lambda: reader.number("I"))

    reader.vector(20, shader)


def skip_webgpu(reader, layout):
    functions(reader, layout)
    reader.vector(16, lambda: (reader.text(), reader.text()))


def skip_constants(reader, _layout):
    reader.texts()
    for _ in range(reader.count(8)):
        record_read(reader, "0.7")
    reader.texts()
    for _ in range(reader.count(8)):
        reader.texts()


def skip_factory(reader, _layout, graph=True):
    if graph:
        reader.text()
    start = reader.at
    tensors = reader.u64()
    if len(reader.texts()) != tensors:
        raise Reject("not as many names as tensors", offset=start)
    for _ in range(tensors):
        record_read(reader, "0.7")
    reader.text()


def skip_c(reader, _layout):
    for read in (reader.text, reader.text, reader.texts, reader.texts):
        read()


def skip_json_runtime(reader, _layout):
    for read in (reader.text, reader.text, reader.texts):
        read()


def skip_texts(count):
    return lambda reader, _layout: [reader.bytes() for _ in range(count)]


def skip_simulator(reader, _layout):
    """PAY-98: 0.17 has a binary where 0.16 has the kind of the next module."""
    skip_texts(2)(reader, _layout)
    at = reader.at
    try:
        text = reader.text()
        base64.b64decode(text, validate=True)
        if text in GRAMMAR:
            reader.at = at
    except (Reject, ValueError):
        reader.at = at


GRAMMAR = {
    "metadata": skip_constants,
    "const_loader": skip_constants,
    "metadata_module": skip_texts(0),
    "GraphRuntimeFactory": skip_factory,
    "GraphExecutorFactory": skip_factory,
    "AotExecutorFactory": lambda reader, layout: skip_factory(reader, layout, graph=False),
    "VMExecutable": skip_texts(1),
    "relax.Executable": skip_texts(1),
    "relax.VMExecutable": skip_texts(1),
    "vulkan": skip_vulkan,
    "webgpu": skip_webgpu,
    "c": skip_c,
    "static_library": lambda reader, _layout: (reader.bytes(), reader.texts()),
    "coreml": skip_texts(2),
    "torch": skip_texts(2),
    "mrvl_sim": skip_simulator,
    **{kind: skip_device for kind in "cuda opencl metal hip hsaco sdaccel aocl opengl hexagon".split()},
    **{
        kind: skip_json_runtime
        for kind in "dnnl_json arm_compute_lib tensorrt bnns_json clml cublas_json cudnn_json msc_tensorrt nnapi hipblas_json".split()
    },
}


def blob_body(data):
    reader = Reader(data)
    size = reader.u64("nbytes")
    if size > reader.left():
        raise Reject("the header promises more than there is", "truncated", 0, "nbytes")
    return Reader(data[: 8 + size]), reader


def kind_of(reader, modules):
    start = reader.at
    kind = reader.text("kind")
    if not kind or "\0" in kind:
        raise Reject("a kind is a name", offset=start)
    if kind == "_lib" and {"kind": kind} in modules:
        raise Reject("there are two host libraries", "duplicate", start)
    return kind


def blob_decode(args):
    layout, data = args.get("layout"), data_of(args)
    if layout is None:
        raise Unsupported("we do not detect layouts")
    return naming("blob", None, payload.SPANS[layout], data, lambda: blob_read(data, layout))


def blob_read(data, layout):
    reader, _ = blob_body(data)
    reader.at = 8
    if layout == "0.22":
        return framed_blob(reader)
    tree, modules = None, []
    for index in range(reader.count(8)):
        place, entry = reader.at, f"entry[{index}]"
        if not reader.left():
            raise Reject("an entry is missing", "truncated", place, entry)
        kind = kind_of(reader, modules)
        if tree is not None:
            twice = kind == "_import_tree"
            raise Reject("an entry behind the import tree", *(("duplicate", place, entry) if twice else ("malformed", tree_key, tree_entry)))
        start = reader.at
        if kind in ("_lib", "_import_tree") and layout == "0.2":
            raise Reject(f"layout 0.2 has no {kind}", "unknown-kind", place)
        if kind == "_import_tree":
            tree, tree_key, tree_at, tree_entry = tree_read(reader), place, start, entry
            continue
        if kind == "_lib":
            modules.append({"kind": kind})
            continue
        if kind not in GRAMMAR or (kind == "metal" and layout == "0.21"):
            raise Unsupported(f"the payload of {kind} in layout {layout}")
        GRAMMAR[kind](reader, layout)
        modules.append({"kind": kind, "payload": b64(reader.data[start : reader.at])})
    if tree is not None:
        tree_check(tree["indptr"], tree["indices"], len(modules), tree_at)
    elif modules and layout != "0.2":
        raise Reject("entries without an import tree", "missing", 8)
    return {"layout": layout, "modules": modules, "import_tree": tree}


def framed_blob(reader):
    start = reader.at
    tree, modules = tree_read(reader), []
    tree_check(tree["indptr"], tree["indices"], at=start)
    for index in range(len(tree["indptr"]) - 1):
        if not reader.left():
            raise Reject("a module is missing", "truncated", reader.at, f"module[{index}]")
        kind = kind_of(reader, modules)
        modules.append({"kind": kind} if kind == "_lib" else {"kind": kind, "payload": b64(reader.bytes())})
    return {"layout": "0.22", "modules": modules, "import_tree": tree}


def blob_encode(args):
    value = args["value"]
    layout = args.get("layout") or value["layout"]
    if value["layout"] != layout:
        raise Unsupported("we do not convert")
    tree, body = value["import_tree"], b""
    if tree and layout == "0.2":
        raise Reject("layout 0.2 has no import tree", "unsupported")
    if not tree and layout == "0.22":
        raise Reject("layout 0.22 begins with the import tree", "missing")
    if layout == "0.22" and len(tree["indptr"]) != len(value["modules"]) + 1:
        raise Reject("layout 0.22 has a row for each module", "malformed")
    if tree:
        tree_check(tree["indptr"], tree["indices"])
    framed = string if layout == "0.22" else lambda payload: payload
    for module in value["modules"]:
        if layout == "0.2" and module["kind"] == "_lib":
            raise Reject("the host library of layout 0.2 has no entry", "unsupported")
        body += string(module["kind"])
        if layout != "0.22" and module["kind"] not in (*GRAMMAR, "_lib"):
            raise Reject(f"the end of {module['kind']} cannot be found", "unsupported")
        if ("payload" in module) == (module["kind"] == "_lib"):
            raise Reject("a payload is what every module but `_lib` has", "malformed" if "payload" in module else "missing")
        if "payload" in module:
            body += framed(base64.b64decode(module["payload"]))
    rows = words(tree["indptr"]) + words(tree["indices"]) if tree else b""
    if layout == "0.22":
        body = rows + body
    else:
        body = u64(len(value["modules"]) + bool(tree)) + body
        body += string("_import_tree") + rows if tree else b""
    return b64(u64(len(body)) + body)


# --- the protocol ----------------------------------------------------------------------------------------------

OPS = {
    "wire.decode": wire_decode,
    "wire.encode": wire_encode,
    "wire.fields": wire_fields,
    "import_tree.decode": tree_decode,
    "import_tree.encode": tree_encode,
    "import_tree.order": tree_order,
    "payload.decode": payload.decoder(Reader, Reject, Unsupported, dtype_text, record_read, PRODUCTIONS),
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
