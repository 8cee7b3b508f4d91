"""Assembles VM executables word by word, and disassembles them only from the format."""

import struct

import numpy as np

VOID, VM = 1 << 54, (1 << 54) + 1

def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


class R(int):
    """A register."""


class C(int):
    """A constant, by index."""


class F(str):
    """A function, by name."""


def function(name, params, registers, *code):
    return {"name": name, "params": params, "registers": registers, "code": code, "kind": 1}


def dtype_bytes(name):
    codes = {"int8": (0, 8), "float32": (2, 32), "uint8": (1, 8), "int64": (0, 64), "bool": (6, 8)}
    code, bits = codes[name]
    return struct.pack("<BBH", code, bits, 1)


def constant(value):
    if isinstance(value, np.ndarray):
        head = struct.pack("<QQii", 0xDD5E40F096B4A13F, 0, 1, 0) + struct.pack("<i", value.ndim) + dtype_bytes(str(value.dtype))
        return struct.pack("<i", 70) + head + struct.pack(f"<{value.ndim}q", *value.shape) + struct.pack("<q", value.nbytes) + value.tobytes()
    if isinstance(value, tuple):
        return struct.pack("<iQ", 69, len(value)) + struct.pack(f"<{len(value)}q", *value)
    if isinstance(value, int):
        return struct.pack("<iq", 1, value)
    if isinstance(value, float):
        return struct.pack("<id", 3, value)
    if value.startswith("dtype:"):
        return struct.pack("<i", 5) + dtype_bytes(value[6:])
    return struct.pack("<i", 65) + text(value)


def assemble(functions, constants=(), scopes=()):
    """Bytes of an executable in the form of 0.23 and later. Calls name their callee; a name without a function is a packed function."""
    table = list(functions)
    known = {f["name"]: i for i, f in enumerate(table)}

    def index(name):
        if name not in known:
            known[name] = len(table)
            table.append({"name": name, "params": [], "registers": 0, "code": (), "kind": 0})
        return known[name]

    offsets, words, bounds = [], [], []
    for f in functions:
        start = len(offsets)
        for op, *rest in f["code"]:
            offsets.append(len(words))
            if op == "call":
                dst, callee, *args = rest
                encoded = []
                for arg in args:
                    kind, value = 1, arg
                    if isinstance(arg, R): kind = 0
                    if isinstance(arg, C): kind = 2
                    if isinstance(arg, F): kind, value = 3, index(arg)
                    encoded.append((kind << 56) | (int(value) & ((1 << 56) - 1)))
                words += [1, dst, index(callee), len(args), *encoded]
            else:
                words += [{"ret": 2, "goto": 3, "if": 4}[op], *rest]
        bounds.append((start, len(offsets)))
    out = struct.pack("<Q", 0xD225DE2F4214151E) + text("0.14") + struct.pack("<Q", len(table))
    for f, (start, end) in zip(table, bounds + [(0, 0)] * len(table)):
        count = f.get("arguments", len(f["params"])) if f["kind"] == 1 else f.get("arguments", -2)
        out += struct.pack("<i", f["kind"]) + text(f["name"]) + struct.pack("<qqqq", start, end, count, f["registers"])
        out += struct.pack("<Q", len(f["params"])) + b"".join(map(text, f["params"]))
    out += struct.pack("<Q", len(scopes)) + b"".join(struct.pack("<q", at) + text(scope) for at, scope in scopes) + struct.pack("<Q", len(constants)) + b"".join(map(constant, constants))
    out += struct.pack("<Q", len(offsets)) + struct.pack(f"<{len(offsets)}q", *offsets)
    signed = [w - (1 << 64) if w >= 1 << 63 else w for w in words]
    return out + struct.pack("<Q", len(words)) + struct.pack(f"<{len(words)}q", *signed)


# --- disassembler, from the format --------------------------------------------------------------------------------------


class Reader:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.raw, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def text(self):
        count = self.take("Q")
        self.at += count
        return self.raw[self.at - count : self.at].decode()


def dtype_text(code, bits, lanes):
    if (code, bits) == (6, 8): return "bool"
    return {0: "int", 1: "uint", 2: "float"}[code] + str(bits) + (f"x{lanes}" if lanes != 1 else "")


def escaped(letter):
    known = {"\\": "\\\\", '"': '\\"', "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
    return known.get(letter) or (letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}")


def short(name):
    """A name inside a line, truncated to 200 bytes."""
    return "".join(map(escaped, name.encode()[:200].decode(errors="ignore")))


def describe(raw, layout="0.22"):
    r = Reader(raw)
    tags = {"0.21": (72, 71), "0.22": (70, 69)}[layout]
    if layout == "0.21": r.take("Q")
    magic = r.take("Q")
    r.text()
    table, scopes = [], {}
    for _ in range(r.take("Q")):
        kind, name = r.take("i"), r.text()
        start, end, _count, registers = r.take("qqqq")
        table.append((kind, name, start, end, registers, [r.text() for _ in range(r.take("Q"))]))
    if magic & 0xFF == 0x1E:
        for _ in range(r.take("Q")):
            constant_at, scope = r.take("q"), r.text()
            scopes.setdefault(constant_at, scope)
    constants, size = [], 0
    for _ in range(r.take("Q")):
        tag = r.take("i")
        if tag == tags[0]:
            r.take("QQii")
            ndim = r.take("i")
            kind = dtype_text(*r.take("BBH"))
            shape = [r.take("q") for _ in range(ndim)]
            count = r.take("q")
            r.at += count
            size += count
            scope = scopes.get(len(constants), "global")
            constants.append(f"tensor {kind} {shape}, {count} bytes" + (f" in `{scope}`" if scope != "global" else ""))
        elif tag == tags[1]: constants.append(f"shape {[r.take('q') for _ in range(r.take('Q'))]}")
        elif tag == 65:
            constants.append('"' + "".join(map(escaped, r.text())) + '"')
        elif tag == 1: constants.append(str(r.take("q")))
        elif tag == 3: constants.append(repr(r.take("d")).replace("e+", "e"))
        elif tag == 5: constants.append(dtype_text(*r.take("BBH")))
    offsets = [r.take("q") for _ in range(r.take("Q"))]
    words = [r.take("q") for _ in range(r.take("Q"))]
    register = lambda w: {VOID: "%void", VM: "%vm"}.get(w, f"%{w}")

    def operand(word):
        kind, value = (word >> 56) & 0xFF, ((word & ((1 << 56) - 1)) ^ (1 << 55)) - (1 << 55)
        return [register(value), str(value), f"c{value}", "@" + short(table[value][1]) if kind == 3 else ""][kind]

    def line(i):
        w = words[offsets[i] :]
        if w[0] == 1:
            call = f"{short(table[w[2]][1])}({', '.join(operand(x) for x in w[4 : 4 + w[3]])})"
            return call if w[1] == VOID else f"%{w[1]} = {call}"
        if w[0] == 2: return f"return {register(w[1])}"
        if w[0] == 3: return f"goto {i + w[1]}"
        return f"if {register(w[1])} else goto {i + w[2]}"

    kinds = ["packed", "vm", "vmtir"]
    count = lambda k: sum(f[0] == k for f in table)
    return {
        "functions": [
            {"name": n, "kind": kinds[k], "params": p, "registers": g, "code": [line(i) for i in range(s, e)] if k == 1 else []}
            for k, n, s, e, g, p in table
        ],
        "constants": constants,
        "counts": {
            "functions": count(1), "compiled": count(2), "packed": count(0),
            "constants": len(constants), "constant bytes": size, "instructions": len(offsets),
        },
    }
