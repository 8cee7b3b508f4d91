"""Assembles and reads blobs, only by the layouts."""

import base64
import re
import struct

U64 = struct.Struct("<Q")


def u64(*values):
    return b"".join(U64.pack(v) for v in values)


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return u64(len(value)) + value


def framed(body):
    return u64(len(body)) + body


def patch(data, at, new):
    return data[:at] + new + data[at + len(new):]


def once(data, old, new):
    assert data.count(old) == 1, (data.count(old), old)
    return data.replace(old, new)


def reframe(data):
    """Corrects the header after an edit of the body."""
    return framed(data[8:])


def elf_symbol(data, name):
    shoff, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * size) for i in range(count)]
    for section in sections:
        if section[1] not in (2, 11):
            continue
        strings = sections[section[6]]
        for at in range(section[4], section[4] + section[5], 24):
            st_name, _, _, shndx, value, length = struct.unpack_from("<IBBHQQ", data, at)
            start = strings[4] + st_name
            if shndx and data[start:data.index(b"\0", start)].decode() == name:
                home = sections[shndx]
                offset = value - home[3] + home[4]
                return data[offset:offset + length]
    raise KeyError(name)


def c_array(source):
    body = re.search(r"\[\d+\] = \{(.*?)\}", source, re.S).group(1)
    return bytes(int(byte, 16) for byte in re.findall(r"0x[0-9a-f]+", body))


def form(layout, modules, tree):
    """The JSON form. `modules`: kind, or (kind, payload)."""
    listed = []
    for module in modules:
        if isinstance(module, str):
            listed.append({"kind": module})
        else:
            listed.append({"kind": module[0], "payload": base64.b64encode(module[1]).decode()})
    tree = None if tree is None else {"indptr": tree[0], "indices": tree[1]}
    return {"layout": layout, "modules": listed, "import_tree": tree}


def read_framed(data):
    """Layout 0.22."""
    at = 8

    def word():
        nonlocal at
        at += 8
        return U64.unpack_from(data, at - 8)[0]

    def run():
        nonlocal at
        length = word()
        at += length
        return data[at - length:at]

    indptr = [word() for _ in range(word())]
    indices = [word() for _ in range(word())]
    modules = []
    for _ in indptr[1:]:
        kind = run().decode()
        modules.append(kind if kind == "_lib" else (kind, run()))
    assert at == len(data), (at, len(data))
    return form("0.22", modules, (indptr, indices))


def read_streamed(layout, data, kinds):
    """The older layouts, split at the keys that are known to exist, in this order."""
    modules, at, tree = [], 16, None
    starts = []
    for kind in kinds:
        found = data.index(text(kind), at)
        starts.append((kind, found, found + 8 + len(kind)))
        at = found + 8 + len(kind)
    ends = [start for _, start, _ in starts[1:]] + [len(data)]
    for (kind, _, start), end in zip(starts, ends):
        if kind == "_import_tree":
            count = U64.unpack_from(data, start)[0]
            words = [v for v, in U64.iter_unpack(data[start + 8:end])]
            tree = (words[:count], words[count + 1:])
            assert words[count] == len(tree[1])
        elif kind == "_lib":
            assert start == end
            modules.append(kind)
        else:
            modules.append((kind, data[start:end]))
    return form(layout, modules, tree)
