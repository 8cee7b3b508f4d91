"""Small files that ask for much: `make.py DIR [SCALE]` writes one of each class below DIR.

Every function makes one class and says in its first line what is wrong with it. SCALE divides the sizes; 1 is what the
report conformance/reports/hostile-files.md shows. Nothing here shares code with the program that is measured.
"""

import gzip
import io
import json
import os
import struct
import sys
import zipfile

CLASSES = {}
SCALE = 1


CODE = "verify inspect inspect-code explain dump"


def of(name, commands="verify inspect explain dump"):
    def keep(make):
        CLASSES[name] = (make, commands.split())
        return make
    return keep


def n(count):
    return max(1, count // SCALE)


def q(*words):
    return struct.pack(f"<{len(words)}Q", *words)


def s(text):
    data = text if isinstance(text, bytes) else text.encode()
    return q(len(data)) + data


# ---- object files

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


def elf_library(strings=b"\0", symbols=(), entries=(), tables=b"", gnu_hash=None, segments=1):
    """An ELF library without section headers, mapped as it is in the file: what only a dynamic loader reads. Symbols are
    (name offset, info, section, value); `entries` are added to the dynamic section, an address in them may be a function of the
    address of `tables`; `segments` map the whole file again, at other addresses."""
    heads = segments + 2
    at = 64 + 56 * heads
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
    # One bucket, and a chain that ends with the last symbol.
    chains = b""
    for index, (name, *_) in enumerate(symbols, 1):
        hashed = 5381
        for byte in strings[name:name + 16].split(b"\0", 1)[0]:
            hashed = (hashed * 33 + byte) & 0xffffffff
        chains += struct.pack("<I", hashed & ~1 | (index == len(symbols)))
    gnu = put(gnu_hash or struct.pack("<IIIIQI", 1, 1, 1, 6, 2**64 - 1, 1 if symbols else 0) + chains)
    own = put(tables)
    rows = [(5, names), (10, len(strings)), (6, table), (11, 24), (0x6ffffef5, gnu)]
    rows += [(tag, value(own) if callable(value) else value) for tag, value in entries] + [(0, 0)]
    dynamic = put(b"".join(q(*row) for row in rows))
    loads = [struct.pack("<IIQQQQQQ", 1, 6, 0, index << 28, index << 28, at, at, 4096) for index in range(segments)]
    loads.append(struct.pack("<IIQQQQQQ", 2, 6, dynamic, dynamic, dynamic, 16 * len(rows), 16 * len(rows), 8))
    loads.append(struct.pack("<IIQQQQQQ", 0x6474e551, 6, 0, 0, 0, 0, 0, 16))
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, heads, 64, 0, 0)
    return head + b"".join(loads) + b"".join(parts)


@of("elf-beyond.so")
def elf_beyond():
    "2^32 relocations, symbols behind the file, names without an end"
    strings = b"\0" + b"f" * 1_000_000
    return elf_library(strings, [(1, 0x12, 0, 0)] * n(20_000), [(7, 64), (8, 24 << 32), (9, 24), (1, 1)],
                       gnu_hash=struct.pack("<IIIIQI", 1, 1, 1, 6, 2**64 - 1, 2**32 - 1))


@of("elf-buckets.so")
def elf_buckets():
    "a hash table of 2^32 - 1 buckets"
    return elf_library(gnu_hash=struct.pack("<IIIIQ", 2**32 - 1, 1, 2**31, 6, 2**64 - 1) + bytes(n(1_000_000)))


@of("elf-chain.so")
def elf_chain():
    "40,000 symbols of different names in one bucket of the hash table"
    strings, at = b"\0", []
    for index in range(n(40_000)):
        at.append(len(strings))
        strings += b"f%x\0" % index
    return elf_library(strings, [(name, 0x11, 1, 0) for name in at])


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


@of("elf-versions.so")
def elf_versions():
    "30,000 entries of versions, which all share one list of 60,000"
    count, shared = n(30_000), n(60_000)
    aux = b"".join(struct.pack("<IHHII", 0, 0, 2, 0, 16 if index + 1 < shared else 0) for index in range(shared))
    own = b"".join(struct.pack("<HHIII", 1, shared, 1, 16 * (count - index), 16 if index + 1 < count else 0)
                   for index in range(count))
    return elf_library(b"\0l.so\0", [], [(1, 1), (0x6ffffffe, lambda at: at), (0x6fffffff, count), (0x6ffffff0, lambda at: at)],
                       own + aux)


@of("elf-segments.so")
def elf_segments():
    "60 segments that are the same megabyte of the file, and relocations for each word of them"
    words = n(2_000)
    zeros = 8 + 63 * 8 * words
    length = 60 * 8 * (1 + words)
    relr = b"".join(q(*[(index << 28) + 8192 + length] + [2**64 - 1] * words) for index in range(60))
    return elf_library(entries=[(36, lambda at: at), (35, length), (37, 8)], tables=relr + bytes(8192 + zeros), segments=60)


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


# ---- archives

def ar_member(name, data):
    return b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"644", len(data)) + data + b"\n" * (len(data) % 2)


@of("ar-gnu-names.a")
def ar_gnu_names():
    "a GNU archive of 100,000 members that share a name of 6 MB"
    table = b"n" * n(6_000_000) + b"/\n"
    members = b"".join(ar_member(b"/%d" % (at % 1000), b"") for at in range(n(100_000)))
    return b"!<arch>\n" + ar_member(b"//", table) + members


@of("ar-bsd-names.a")
def ar_bsd_names():
    "a BSD archive of 100,000 members with names of their own"
    members = (ar_member(b"#1/20", b"%020d" % at) for at in range(n(100_000)))
    return b"!<arch>\n" + b"".join(members)


@of("ar-empty.a")
def ar_empty():
    "an archive of 200,000 members of nothing"
    return b"!<arch>\n" + ar_member(b"a/", b"") * n(200_000)


def tar_member(name, data, kind=b"0", size=None):
    size = len(data) if size is None else size
    head = bytearray(512)
    head[:len(name)] = name
    head[100:108] = b"0000644\0"
    head[124:136] = b"%011o " % size
    head[148:156] = b" " * 8
    head[156:157] = kind
    head[257:265] = b"ustar\x0000"
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + data + bytes(-len(data) % 512)


def long_name(name):
    return tar_member(b"././@LongLink", name + b"\0", b"L")


@of("tar-below-a-long-name.tar")
def tar_below():
    "a tar of 5,000 members in a tar, below a name of 1 MB"
    inner = tar_member(b"a", b"") * n(5_000) + bytes(1024)
    return long_name(b"d" * 1_000_000) + tar_member(b"x", inner) + bytes(1024)


@of("tar-nested.tar")
def tar_nested():
    "four tars in each other, each below a name of 500 KB"
    inner = tar_member(b"a", b"") * n(2_000) + bytes(1024)
    for level in range(3):
        inner = long_name(b"%d" % level * 500_000) + tar_member(b"x", inner) + bytes(1024)
    return inner


@of("tar-empty.tar.gz")
def tar_empty_gz():
    "300,000 members of nothing in a tar under gzip"
    return gzip.compress(b"".join(tar_member(b"%d" % at, b"") for at in range(n(300_000))) + bytes(1024), 6)


@of("tar-long-names.tar.gz")
def tar_long_gz():
    "20,000 members with GNU names of 4 KB in a tar under gzip"
    return gzip.compress(b"".join(long_name(b"n" * 4000 + b"%d" % at) + tar_member(b"x", b"") for at in range(n(20_000))), 6)


@of("tar-pax.tar")
def tar_pax():
    "20,000 members with names in pax headers"
    def one(at):
        path = b"p" * 200 + b"%d" % at
        record = b"%d path=%s\n" % (len(path) + 10, path)
        return tar_member(b"pax", record, b"x") + tar_member(b"short", b"")
    return b"".join(one(at) for at in range(n(20_000))) + bytes(1024)


# ---- C text

@of("arrays.c")
def c_arrays():
    "100,000 empty arrays that are named like a library binary"
    return b"#include <x.h>\n" + b"".join(b"const char p%d__tvm_ffi__library_bin[]={};\n" % at for at in range(n(100_000)))


@of("functions.c")
def c_functions():
    "200,000 functions"
    return b"#include <x.h>\n" + b"".join(b"TVM_DLL int f%d(){\n" % at for at in range(n(200_000)))


# ---- library binaries

def blob22(modules, indptr=None, indices=()):
    indptr = [0] * (len(modules) + 1) if indptr is None else indptr
    body = q(len(indptr), *indptr) + q(len(indices), *indices)
    return s(body + b"".join(modules))


def module(kind, payload):
    return s(kind) + s(payload)


def function(name, types=0, tags=(), extra=0):
    info = s(name) + q(types) + bytes([2, 32, 1, 0]) * types + q(len(tags)) + b"".join(s(tag) for tag in tags)
    return s(name) + info + q(extra) + bytes(4 * extra)


def opencl(functions):
    return module("opencl", s("cl") + q(len(functions)) + b"".join(functions) + s("code"))


@of("modules.bin")
def many_modules():
    "200,000 modules of an unknown kind"
    return blob22([s("_lib")] + [module("k", b"x")] * n(200_000))


@of("functions.bin")
def many_functions():
    "100,000 functions of one module"
    return blob22([s("_lib"), opencl([function("f%d" % at) for at in range(n(100_000))])], [0, 1, 1], [1])


@of("argument-types.bin")
def many_types():
    "one function of 1,500,000 arguments"
    return blob22([s("_lib"), opencl([function("f", n(1_500_000))])], [0, 1, 1], [1])


@of("launch-tags.bin")
def many_tags():
    "one function of 500,000 unknown launch tags"
    return blob22([s("_lib"), opencl([function("f", 0, [""] * n(500_000))])], [0, 1, 1], [1])


@of("long-function-names.bin")
def long_names():
    "ten functions with names of 500 KB"
    return blob22([s("_lib"), opencl([function("%d" % at + "n" * 500_000) for at in range(10)])], [0, 1, 1], [1])


@of("imports.bin")
def many_imports():
    "a chain of 90 modules; the last imports one module 300,000 times"
    count, many = 92, n(300_000)
    indptr = list(range(91)) + [90 + many, 90 + many]
    indices = list(range(1, 91)) + [91] * many
    return blob22([s("_lib")] + [module("k", b"x")] * (count - 1), indptr, indices)


# ---- parameters, tensors, executables

PARAMS, TENSOR = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F


def tensor(data=b""):
    return q(TENSOR, 0) + struct.pack("<iiiBBH", 1, 0, 1, 0, 8, 1) + q(len(data)) + q(len(data)) + data


@of("names.params", "verify inspect explain dump run-params")
def many_params():
    "60,000 parameters without data"
    count = n(60_000)
    return q(PARAMS, 0, count) + b"".join(s("p%d" % at) for at in range(count)) + q(count) + tensor() * count


@of("shape.tensor")
def wide_tensor():
    "a tensor of 500,000 dimensions of 1"
    dims = n(500_000)
    return q(TENSOR, 0) + struct.pack("<iiiBBH", 1, 0, dims, 0, 8, 1) + q(1) * dims + q(1) + b"x"


def relax(functions=0, constants=b"", count=0, instructions=0):
    magic = 0xD225DE2F4214151E
    head = q(magic) + s("0.14")
    table = q(functions) + b"".join(struct.pack("<i", 1) + s("f%d" % at) + q(0, 0, 0, 0) + q(0) for at in range(functions))
    code = q(instructions, *range(0, instructions * 1)) + q(instructions) + struct.pack("<Q", 1) * instructions
    return head + table + q(0) + q(count) + constants + code


@of("vm-functions.ro", CODE)
def vm_functions():
    "a Relax VM executable of 100,000 functions"
    return relax(n(100_000))


@of("vm-constants.ro", CODE)
def vm_constants():
    "a Relax VM executable of 300,000 empty shapes"
    count = n(300_000)
    return relax(1, (struct.pack("<i", 69) + q(0)) * count, count)


def calls(name, operands):
    """A Relax VM executable of one call with so many operands, each the function of this name."""
    function, nothing = 3 << 56 | 1, 1 << 54
    head = q(0xD225DE2F4214151E) + s("0.14") + q(2)
    table = struct.pack("<i", 1) + s("main") + q(0, 2, 1, 2) + q(1) + s("x")
    table += struct.pack("<i", 0) + s(name) + struct.pack("<4q", 0, 0, -2, 0) + q(0)
    words = q(1, nothing, 1, operands) + q(function) * operands + q(2, 0)
    return head + table + q(0) + q(0) + q(2, 0, 4 + operands) + q(len(words) // 8) + words


@of("vm-operands.ro", CODE)
def vm_operands():
    "a Relax VM executable of one call with 200,000 arguments, each a function with a name of 200 bytes"
    return calls("n" * 200, n(200_000))


@of("vm-operands-wide.ro", CODE)
def vm_operands_wide():
    "a Relax VM executable of one call with 200,000 arguments, each a function with a name of 200 characters of four bytes"
    return calls("\U0001f600" * 200, n(200_000))


@of("vm-operands-escaped.ro", CODE)
def vm_operands_escaped():
    "a Relax VM executable of one call with 200,000 arguments, each a function with a name of 200 characters that do not print"
    return calls("\x01" * 200, n(200_000))


@of("vm-compiled.ro", CODE)
def vm_compiled():
    "a Relax VM executable of 10,000 compiled functions, each all of 30,000 instructions"
    functions, instructions = n(10_000), n(30_000)
    head = q(0xD225DE2F4214151E) + s("0.14") + q(functions)
    table = b"".join(struct.pack("<i", 2) + s("f%d" % at) + q(0, instructions, 0, 1) + q(0) for at in range(functions))
    code = q(instructions, *range(0, 2 * instructions, 2)) + q(2 * instructions) + q(2, 0) * instructions
    return head + table + q(0) + q(0) + code


def relay(name, calls):
    """Relay VM code of 0.6: one function that calls so often what has this name."""
    def instruction(opcode, *fields):
        mixed = opcode
        for field in fields:
            mixed ^= field + 0x9e3779b9 + (mixed << 6) + (mixed >> 2) & 2**64 - 1
        return q(2 + len(fields), mixed, opcode, *fields)
    head = q(0xD225DE2F4214151D) + s("0.6.0") + q(1) + s("main") + q(0) + q(1) + s(name)
    function = q(3) + s("main") + s("1") + s(str(calls + 1)) + q(1) + s("x")
    return head + q(1) + function + instruction(4, 0, 1, 0, 0) * calls + instruction(1, 0)


@of("relay-name.ro", CODE)
def relay_name():
    "Relay VM code of 2,000 calls of one function with a name of 1 MB"
    return relay("f" * n(1_000_000), 2_000)


@of("relay-names.ro", CODE)
def relay_names():
    "Relay VM code of 16,000 calls of one function with a name of 300 KB"
    return relay("f" * n(300_000), 16_000)


@of("functions.stackvm")
def stackvm():
    "a StackVM module of 50,000 functions"
    count = min(n(50_000), 60_000)
    one = b"".join(s("f%d" % at) + q(0, 0, 0, 0, 0, 0) for at in range(count))
    return q(count) + one + s("f0") + q(0)


# ---- real files with one number changed, which are run

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "golden")


def edited(name, *marks, form, old, new):
    """The golden with the number `old` behind the marks, each behind the one before, changed to `new`."""
    with open(os.path.join(GOLDEN, name), "rb") as file:
        data = bytearray(file.read())
    at = 0
    for mark in marks:
        at = data.index(mark, at) + len(mark)
    at = data.index(struct.pack(form, old), at)
    struct.pack_into(form, data, at, new)
    return bytes(data)


# What the model takes: a batch of two.
VM_INPUT = "x-of-vm.npy"


def registers(count):
    return edited("vm/mlp.so", s("main"), form="<Q", old=30, new=count)


# Dtype float32, and the lanes behind it.
FLOAT32 = b"\x02\x20"


@of("vm-registers-27.so", "verify inspect explain dump run-vm")
def many_registers():
    "a Relax VM library with a function of 2^27 registers"
    return registers(2**27)


@of("vm-registers-31.so", "verify inspect explain dump run-vm")
def more_registers():
    "a Relax VM library with a function of 2^31 registers"
    return registers(2**31)


@of("vm-registers-32.so", "verify inspect explain dump run-vm")
def most_registers():
    "a Relax VM library with a function of 2^32 + 1 registers"
    return registers(2**32 + 1)


@of("vm-lanes.so", "verify inspect explain dump run-vm")
def lanes_of_a_constant():
    "a Relax VM library with a constant of 1,024 lanes, of which one is stored"
    return edited("vm/mlp.so", q(TENSOR), FLOAT32, form="<H", old=1, new=1024)


@of("lanes.params", "verify inspect explain dump run-params")
def lanes_of_a_parameter():
    "a parameter of 1,024 lanes, of which one is stored"
    return edited("graph/models/v0.8/mlp.params", q(TENSOR), FLOAT32, form="<H", old=1, new=1024)


# ---- JSON

def graph(nodes, extra="", rows=None):
    count = len(nodes)
    return json.dumps({
        "nodes": nodes, "arg_nodes": list(range(count)), "heads": [[0, 0, 0]],
        "node_row_ptr": list(range(count + 1)),
        "attrs": {"dltype": ["list_str", ["int8"] * count], "shape": ["list_shape", [[]] * count],
                  "storage_id": ["list_int", list(range(count))]}},
        separators=(",", ":")).replace('"heads"', extra + '"heads"').encode()


def null(name):
    return {"op": "null", "name": name, "inputs": []}


@of("nodes.graph.json", "verify inspect explain dump run-graph")
def graph_nodes():
    "a graph of 50,000 inputs"
    return graph([null("n%d" % at) for at in range(n(50_000))])


@of("members.graph.json", "verify inspect explain dump run-graph")
def graph_members():
    "a graph with a list of 700,000 objects of one member that no operation reads"
    return graph([null("x")], '"more":[' + ",".join(['{"":0}'] * n(700_000)) + "],")


@of("deep.graph.json", "verify inspect explain dump run-graph")
def graph_deep():
    "a graph with 2,000,000 lists in each other"
    return graph([null("x")], '"more":' + "[" * n(2_000_000) + "]" * n(2_000_000) + ",")


@of("escapes.graph.json", "verify inspect explain dump run-graph")
def graph_escapes():
    "a graph with a name of 700,000 escapes"
    return graph([null("\x01" * n(700_000))])


def ffi(nodes):
    return ('{"root_index":0,"nodes":[' + nodes + '],"metadata":{}}').encode()


@of("lists.ffi.json")
def ffi_lists():
    "saved objects with 1,000,000 empty lists"
    return ffi('{"type":"ffi.Array","data":[' + ",".join(["[]"] * n(1_000_000)) + "]}")


@of("maps.ffi.json")
def ffi_maps():
    "saved objects with 500,000 maps of one member"
    return ffi('{"type":"ffi.Array","data":[' + ",".join(['{"":0}'] * n(500_000)) + "]}")


@of("nodes.ffi.json")
def ffi_nodes():
    "100,000 saved objects, each of a type of its own"
    return ffi(",".join('{"type":"t%d","data":{}}' % at for at in range(n(100_000))))


@of("nodes.object.json")
def object_nodes():
    "100,000 saved objects of 0.21 and before, each of a type of its own"
    nodes = ",".join('{"type_key":"t%d"}' % at for at in range(n(100_000)))
    return ('{"root":0,"nodes":[' + nodes + '],"b64ndarrays":[],"attrs":{"tvm_version":"0.8"}}').encode()


@of("unknown.bin")
def unknown():
    "3 MB that are nothing"
    return b"\xff" * n(3_000_000)


# ---- arrays

def npy(shape="(2,)", descr="<f4", order="False", data=bytes(8), version=1, length=None):
    head = ("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n" % (descr, order, shape)).encode()
    length = len(head) if length is None else length
    size = struct.pack("<H", length) if version == 1 else struct.pack("<I", length)
    return b"\x93NUMPY" + bytes([version, 0]) + size + head + data


def npz(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name + ".npy"), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def overlapping(count, data):
    """A zip of `count` names for one member."""
    one = npz([("m", data)])
    start = one.index(b"PK\x01\x02")
    entry = one[start:one.index(b"PK\x05\x06")]
    named = entry[:28] + struct.pack("<H", 9) + entry[30:46]
    entries = b"".join(named + b"%05d.npy" % at for at in range(count))
    tail = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, count, count, len(entries), start, 0)
    return one[:start] + entries + tail


@of("overlapping.npz", "run")
def npz_overlap():
    "2,000 names for one member that inflates to 20 MB"
    return overlapping(n(2_000), npy("(5000000,)", data=bytes(20_000_000)))


@of("large.npz", "run")
def npz_large():
    "the input of a model, a thousand times as large as the model asks for"
    return npz([("x", npy("(20000000,)", data=bytes(80_000_000)))])


@of("unused.npz", "run")
def npz_unused():
    "a member that the model does not ask for, 300 MB of zeros"
    return npz([("out_0", npy("(75000000,)", data=bytes(300_000_000)))])


@of("header.npy", "call run-npy")
def npy_header():
    "a header of 2^32-1 bytes"
    return npy(version=2, length=0xffffffff)


@of("header-nested.npy", "call run-npy")
def npy_nested():
    "a header of 60,000 brackets in each other"
    return npy(shape="(" * 30_000 + ")" * 30_000)


@of("shape.npy", "call run-npy")
def npy_shape():
    "2^62 elements, none stored"
    return npy("(4611686018427387904,)", data=b"")


@of("objects.npy", "call run-npy")
def npy_objects():
    "pickled objects"
    return npy(descr="|O")


def main():
    global SCALE
    folder = sys.argv[1]
    SCALE = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    os.makedirs(folder, exist_ok=True)
    for name, (make, commands) in CLASSES.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(make())
    with open(os.path.join(folder, VM_INPUT), "wb") as file:
        file.write(npy("(2, 8)", data=bytes(64)))


if __name__ == "__main__":
    main()
