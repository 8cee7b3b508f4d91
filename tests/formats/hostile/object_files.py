"""Object files and shared libraries: ELF, COFF, Mach-O and PE."""

import struct

from classes import n, of, q


def elf(strings, symbols, size=64, extra_sections=0, relocations=0):
    """An ELF object: a section of `size` bytes with a blob header, a string table, symbols of (name offset, value, size)."""
    blob = q(size - 8) + bytes(size - 8)
    table = bytes(24) + b"".join(struct.pack("<IBBHQQ", name, info, 0, 1, value, length)
                                 for name, info, value, length in symbols)
    names = b"\0.data\0.symtab\0.strtab\0"
    rela = bytes(24 * relocations)
    at = 64
    parts, rows = [], [bytes(64)]
    for kind, data, link, info, entry in [(1, blob, 0, 0, 0), (2, table, 3, 1, 24), (3, strings, 0, 0, 0),
                                          (3, names, 0, 0, 0), (4, rela, 2, 1, 24)]:
        rows.append(struct.pack("<IIQQQQIIQQ", 1, kind, 2, 0, at, len(data), link, info, 1, entry))
        parts.append(data)
        at += len(data)
    rows += [rows[1]] * extra_sections
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, len(rows), 4)
    return head + b"".join(parts) + b"".join(rows)


def suffixes(length, count):
    step = max(1, length // count)
    return b"\0" + b"f" * length + b"\0", [1 + at * step for at in range(count)]


@of("elf-suffixes.o")
def elf_suffixes():
    "20,000 symbols, each a suffix of one name of 100 KB"
    strings, at = suffixes(100_000, n(20_000))
    return elf(strings, [(name, 0x12, 0, 0) for name in at])


@of("elf-suffixes-long.o")
def elf_suffixes_long():
    "50,000 symbols, each a suffix of one name of 300 KB"
    strings, at = suffixes(300_000, n(50_000))
    return elf(strings, [(name, 0x12, 0, 0) for name in at])


@of("elf-needs.o")
def elf_needs():
    "20,000 undefined symbols `TVM...`, each the same long name with another end"
    names = [b"TVM" + b"x" * 20 + str(index).encode() for index in range(n(60_000))]
    strings, at = b"\0", []
    for name in names:
        at.append(len(strings))
        strings += name + b"\0"
    return elf(strings, [(name, 0x12, 0, 0) for name in at])


@of("elf-endless-names.o")
def elf_endless():
    "names without an end in a string table of 1 MB"
    return elf(b"f" * 1_000_000, [(at, 0x12, 0, 0) for at in range(n(20_000))])


@of("elf-blobs.o")
def elf_blobs():
    "20,000 prefixed symbols that all name one library binary"
    strings, symbols = b"\0", []
    for index in range(n(20_000)):
        symbols.append((len(strings), 0x11, 0, 4096))
        strings += b"a%d__tvm_ffi__library_bin\0" % index
    return elf(strings, symbols, 4096)


@of("elf-sections.o")
def elf_sections():
    "60,000 sections and 100,000 relocations"
    return elf(b"\0", [], extra_sections=n(60_000), relocations=n(100_000))


def elf_library(strings=b"\0", symbols=(), entries=()):
    """An ELF library, mapped as it is in the file. Symbols are (name offset, info, section, value); `entries` are added to the
    dynamic section."""
    at = 64 + 56 * 2
    parts = []

    def put(data):
        nonlocal at
        data += bytes(-len(data) % 16)
        parts.append(data)
        at += len(data)
        return at - len(data)

    table = put(bytes(24) + b"".join(struct.pack("<IBBHQQ", name, info, 0, section, value, 0)
                                     for name, info, section, value in symbols))
    names = put(strings)
    rows = [(5, names), (10, len(strings)), (6, table), (11, 24), *entries, (0, 0)]
    dynamic = put(b"".join(q(*row) for row in rows))
    # Behind the empty one: .dynsym, .dynstr, .dynamic. Their names are empty, in .dynstr.
    sections = [(11, table, 24 * (1 + len(symbols)), 2, 1, 8, 24), (3, names, len(strings), 0, 0, 1, 0),
                (6, dynamic, 16 * len(rows), 2, 0, 8, 16)]
    headers = put(bytes(64) + b"".join(struct.pack("<IIQQQQIIQQ", 0, kind, 2, at, at, size, link, info, align, each)
                                       for kind, at, size, link, info, align, each in sections))
    loads = struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, at, at, 4096)
    loads += struct.pack("<IIQQQQQQ", 2, 6, dynamic, dynamic, dynamic, 16 * len(rows), 16 * len(rows), 8)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, headers, 0, 64, 56, 2, 64, 1 + len(sections), 2)
    return head + loads + b"".join(parts)


@of("elf-beyond.so")
def elf_beyond():
    "2^32 relocations, names without an end"
    strings = b"\0" + b"f" * 1_000_000
    return elf_library(strings, [(1, 0x12, 0, 0)] * n(20_000), [(7, 64), (8, 24 << 32), (9, 24), (1, 1)])


@of("elf-tails.so")
def elf_tails():
    "20,000 functions of others, each the tail of one name of 60 KB that is no text"
    return elf_library(b"\0" + b"\xff" * 60_000 + b"\0", [(1 + index, 0x12, 0, 0) for index in range(n(20_000))])


@of("elf-needed.so")
def elf_needed():
    "60,000 libraries that are needed, each name the tail of one of 60 KB, itself among them"
    names = b"\0" + b"elf-needed.so\0" + b"n" * 60_000 + b"\0"
    count = n(60_000)
    return elf_library(names, entries=[(1, 1)] + [(1, 15 + index) for index in range(count)])


@of("elf-folders.so")
def elf_folders():
    "1,000 search paths, each of 100,000 folders beside the file"
    names = b"\0libc.so.6\0" + b"$ORIGIN:" * n(100_000) + b"\0"
    return elf_library(names, entries=[(1, 1)] + [(29, 11)] * n(1_000))


@of("coff-suffixes.obj")
def coff_suffixes():
    "20,000 COFF symbols, each a suffix of one name of 100 KB"
    strings, at = suffixes(100_000, n(20_000))
    strings = strings[1:]
    head = struct.pack("<HHIIIHH", 0x8664, 1, 0, 60, len(at), 0, 0)
    section = b".text\0\0\0" + struct.pack("<IIIIIIHHI", 0, 0, 0, 0, 0, 0, 0, 0, 0x60000020)
    table = b"".join(struct.pack("<IIIhHBB", 0, name + 3, 0, 1, 0x20, 2, 0) for name in at)
    return head + section + table + struct.pack("<I", len(strings) + 4) + strings


@of("macho-suffixes.o")
def macho_suffixes():
    "20,000 Mach-O symbols, each a suffix of one name of 100 KB"
    strings, at = suffixes(100_000, n(20_000))
    start = 32 + 152 + 24
    table = b"".join(struct.pack("<IBBHQ", name, 0x0f, 1, 0, 0) for name in at)
    segment = struct.pack("<II16sQQQQiiII", 0x19, 152, b"", 0, 0, 0, 0, 7, 7, 1, 0)
    section = struct.pack("<16s16sQQIIIIIIII", b"__text", b"__TEXT", 0, 0, 0, 0, 0, 0, 0x80000400, 0, 0, 0)
    symtab = struct.pack("<IIIIII", 2, 24, start, len(at), start + len(table), len(strings))
    head = struct.pack("<IiiIIIII", 0xfeedfacf, 0x0100000c, 0, 1, 2, 176, 0, 0)
    return head + segment + section + symtab + table + strings


@of("pe-suffixes.dll")
def pe_suffixes():
    "20,000 exports of a DLL, each a suffix of one name of 100 KB"
    strings, at = suffixes(100_000, n(20_000))
    count, base = len(at), 0x1000
    names, ordinals = 40 + 4 * count, 40 + 8 * count
    text = 40 + 10 * count
    data = struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, base, 1, count, count, base + 40, base + names, base + ordinals)
    data += struct.pack("<I", 0x400000) * count
    data += b"".join(struct.pack("<I", base + text + name) for name in at)
    data += b"".join(struct.pack("<H", index & 0xffff) for index in range(count)) + strings
    optional = struct.pack("<HBBIIIIIQIIHHHHHHIIIIHHQQQQII", 0x20b, 0, 0, 0, 0, 0, 0, 0, 0x180000000, 0x1000, 0x200,
                           6, 0, 0, 0, 6, 0, 0, 0x800000, 0x400, 0, 3, 0, 0, 0, 0, 0, 0, 16)
    optional += struct.pack("<II", base, len(data)) + bytes(8 * 15)
    coff = b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, len(optional), 0x2022)
    section = b".edata\0\0" + struct.pack("<IIIIIIHHI", len(data), base, len(data), 0x400, 0, 0, 0, 0, 0x40000040)
    head = b"MZ" + bytes(58) + struct.pack("<I", 64) + coff + optional + section
    return head.ljust(0x400, b"\0") + data
