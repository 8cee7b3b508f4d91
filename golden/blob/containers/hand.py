"""Files of forms that the available tools do not write, assembled from the layouts of their formats.

    python hand.py            needs gcc for the images of linkage

Each contains the 145 bytes of `const_loader.bin`, which the real 0.27 wrote.
"""

import gzip
import pathlib
import struct
import subprocess
import tempfile

import make

HERE = pathlib.Path(__file__).resolve().parent
BLOB = (HERE / "const_loader.bin").read_bytes()
SYMBOL = "__tvm_ffi__library_bin"


def save(name, data):
    (HERE / name).write_bytes(data)


def mach_o(order, magic, cpu, subtype, symbols, content):
    """A 32-bit object file: one segment with __TEXT,__const, and a symbol table. `symbols`: name and offset in the section."""
    word = lambda *values: struct.pack(f"{order}{len(values)}I", *values)
    name = lambda text: text.encode().ljust(16, b"\0")
    start = 28 + 56 + 68 + 24
    table = start + len(content) + -len(content) % 4
    strings, entries = b"\0", b""
    for text, place in symbols:
        # N_SECT | N_EXT, in the first section.
        entries += struct.pack(f"{order}IBBHI", len(strings), 0x0F, 1, 0, place)
        strings += text.encode() + b"\0"
    section = name("__const") + name("__TEXT") + word(0, len(content), start, 0, 0, 0, 0, 0, 0)
    segment = word(1, 56 + len(section)) + name("") + word(0, len(content), start, len(content), 7, 7, 1, 0) + section
    listed = word(2, 24, table, len(symbols), table + len(entries), len(strings))
    header = word(magic, cpu, subtype, 1, 2, len(segment) + len(listed), 0)
    out = header + segment + listed + content
    return out + b"\0" * (table - len(out)) + entries + strings


def coff(machine, symbols, content, big=False):
    """An object file with one section .rdata. `symbols`: name and offset."""
    header = 56 if big else 20
    start = header + 40
    strings, entries = b"", b""
    for text, place in symbols:
        entries += struct.pack("<II", 0, 4 + len(strings)) + struct.pack("<IiHBB" if big else "<IhHBB", place, 1, 0, 2, 0)
        strings += text.encode() + b"\0"
    table = start + len(content)
    section = b".rdata\0\0" + struct.pack("<IIIIIIHHI", 0, 0, len(content), start, 0, 0, 0, 0, 0x40100040)
    if big:
        identity = bytes.fromhex("c7a1bad1eebaa94baf20faf66aa4dcb8")
        head = struct.pack("<HHHHI", 0, 0xFFFF, 2, machine, 0) + identity + struct.pack("<IIIIIII", 0, 0, 0, 0, 1, table, len(symbols))
    else:
        head = struct.pack("<HHIIIHH", machine, 1, 0, table, len(symbols), 0, 0)
    assert len(head) == header
    return head + section + content + entries + struct.pack("<I", 4 + len(strings)) + strings


def objects():
    save("macho-i386.o", mach_o("<", 0xFEEDFACE, 7, 3, [("_" + SYMBOL, 0)], BLOB))
    save("macho-ppc-be.o", mach_o(">", 0xFEEDFACE, 18, 0, [("_" + SYMBOL, 0)], BLOB))
    # The table has no sizes: a symbol ends at the start of the next one.
    two = lambda place: [("_next", place), ("_" + SYMBOL, 8)]
    padded = b"\0" * 8 + BLOB + b"\0" * 7
    save("macho-next-symbol.o", mach_o("<", 0xFEEDFACE, 7, 3, two(8 + 145), padded))
    save("macho-next-symbol-inside.o", mach_o("<", 0xFEEDFACE, 7, 3, two(8 + 144), padded))
    save("coff-i386.obj", coff(0x14C, [("_" + SYMBOL, 0)], BLOB))
    save("coff-big.obj", coff(0x8664, [(SYMBOL, 0)], BLOB, big=True))
    save("coff-underscore.obj", coff(0x8664, [("_" + SYMBOL, 0)], BLOB))


def fat(magic, parts):
    """Mach-O for several machines: (cpu, content) for each, one after the other."""
    wide = magic == 0xCAFEBABF
    size = 32 if wide else 20
    at, out, tail = 8 + size * len(parts), struct.pack(">II", magic, len(parts)), b""
    for cpu, content in parts:
        out += struct.pack(">IIQQII" if wide else ">IIIII", cpu, 0, at + len(tail), len(content), 0, *([0] if wide else []))
        tail += content
    return out + tail


def fats():
    save("macho-fat64.o", fat(0xCAFEBABF, [(7, (HERE / "macho-i386.o").read_bytes()), (18, (HERE / "macho-ppc-be.o").read_bytes())]))
    machines = [7, 0x01000007, 12, 0x0100000C, 18, 0x01000012, 8, 99]
    save("macho-fat-machines.o", fat(0xCAFEBABE, [(cpu, BLOB) for cpu in machines]))


def header(name, size, kind=b"0", prefix=b"", magic=b"ustar\x0000", digits=None):
    block = bytearray(512)
    block[0 : len(name)] = name
    block[124:136] = digits or b"%011o\0" % size
    block[156:157] = kind
    block[257 : 257 + len(magic)] = magic
    block[345 : 345 + len(prefix)] = prefix
    make.checksum(block)
    return bytes(block)


def padded(data):
    return data + b"\0" * (-len(data) % 512)


def tars():
    end, gnu = b"\0" * 1024, b"ustar  \0"
    long = b"n" * 100
    file = lambda name, **more: header(name, len(BLOB), **more) + padded(BLOB)
    kinds = file(b"zero") + file(b"nul", kind=b"\0") + file(b"seven", kind=b"7") + file(b"link", kind=b"1") + file(b"pax", kind=b"x")
    save("tar-kinds.tar", kinds + header(b"folder/", 0, kind=b"5") + file(b"last") + end)
    save("tar-prefix.tar", file(b"name", prefix=b"p" * 155) + file(long, prefix=b"folder") + file(b"old", prefix=b"no", magic=gnu) + end)
    save("tar-binary-size.tar", header(b"binary", 0, digits=b"\x80" + struct.pack(">3xQ", len(BLOB))) + padded(BLOB) + end)
    save("tar-size-no-number.tar", header(b"size", 0, digits=b"0000000000x\0") + padded(BLOB) + end)
    save("tar-behind-the-end.tar", file(b"one") + b"\0" * 512 + file(b"two"))
    name = b"folder/" * 20 + b"long.bin\0"
    save("tar-long-then-short.tar", header(b"././@LongLink", len(name), kind=b"L", magic=gnu) + padded(name) + file(b"a", magic=gnu) + file(b"b", magic=gnu) + end)
    squeeze = lambda data: gzip.compress(data, 9, mtime=0)
    both = (HERE / "tar-long-then-short.tar").read_bytes()
    save("gzip-long-then-short.tar", squeeze(both))
    save("gzip-kinds.tar", squeeze((HERE / "tar-kinds.tar").read_bytes()))
    save("gzip-member-cut.tar", squeeze(file(b"one") + file(b"two")[: 512 + 100]))
    save("gzip-header-cut.tar", squeeze(file(b"one") + file(b"two")[:300]))
    save("gzip-no-tar.gz", squeeze(b"no tar"))
    # Members that are larger than the bytes that determine their form.
    def large(name, data):
        return header(name, len(data)) + padded(data)

    raw = struct.pack("<QQQQQ", 70_000, 0, 5, 0, 0) + b"\0" * (70_000 - 32)
    text = b"// " + b"-" * 70_000 + b"\n#define X\nconst unsigned char " + SYMBOL.encode() + b"[3] = {1,2,3};\n"
    noise = b"\1\0" * 40_000
    members = large(b"raw", raw) + large(b"noise", noise) + large(b"text", text)
    save("gzip-large-members.tar", squeeze(members + end))


def texts():
    functions = "add _init _fini _start main DllMain get_c_metadata __hidden _Zmangled _GLOBAL_x TVMFoo inits".split()
    lines = ["#include <tvm/runtime/c_runtime_api.h>", "void* __tvm_module_ctx = NULL;", "void* __TVMFuncCall = 0;", "void* __TVMOther= 0;", "void* other = 0;"]
    lines += [f"TVM_DLL int32_t {name}(void* args) {{" for name in functions]
    lines += ["TVM_DLL int older(void* args) {  ", "TVM_DLL int32_t declared(void* args);", "  TVM_DLL int32_t indented(void* args) {"]
    lines += ["TVM_DLL int32_t __tvm_main__(void* args) {", "TVM_DLL void nothing(void) {", "void* undefined;"]
    save("c-names.c", ("\n".join(lines) + "\n").encode())
    names = "add _metadata_add _doc_add _cubin_add _library_ctx2 modA_add".split()
    lines = ["#include <tvm/ffi/c_api.h>", "void* modA___tvm_ffi__library_ctx = NULL;", "TVM_DLL int32_t plain(void* args) {"]
    lines += [f"TVM_DLL int32_t __tvm_ffi_{name}(void* args) {{" for name in names]
    save("c-names-prefixed.c", ("\n".join(lines) + "\n").encode())


SOURCE = """
extern int TVMFFIFunctionCall(void); extern int TVMFuncCall(void); extern int TVM_private(void); extern int TVMlower(void);
extern int TVMWeak(void) __attribute__((weak));
int TVMFFIErrorMine(void) { return TVMFFIFunctionCall() + TVMFuncCall() + TVM_private() + TVMlower() + (TVMWeak ? TVMWeak() : 0); }
static int TVMLocal(void) { return 1; } int keep(void) { return TVMLocal(); }
"""


def images():
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "a.c"

        def link(name, text, *options):
            source.write_text(text)
            command = ["gcc", "-shared", "-nostdlib", "-fno-ident", "-O1", "-s", "-Wl,--build-id=none", "-fPIC", "-Wl,-z,noseparate-code", "-Wl,--no-as-needed"]
            subprocess.run([*command, "-o", str(HERE / name), str(source), *options], check=True)

        link("linkage-lazy.so", SOURCE, "-Wl,-z,lazy", "-Wl,--disable-new-dtags,-rpath,/one:/two", "-lc")
        link("linkage-now.so", SOURCE, "-Wl,-z,now", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib", "-lc", "-lm")
        for runtime in ["TVMBackendParallelLaunch", "TVMFFIFunctionCall", "TVMFuncCall", "TVMModGetFunction"]:
            link(f"linkage-{runtime.lower()}.so", f"int {runtime}(void) {{ return 0; }}", "-Wl,-z,lazy")


if __name__ == "__main__":
    objects()
    fats()
    tars()
    texts()
    images()
    save("form-long-name.bin", struct.pack("<QQ", 1, 1024) + b"a" * 1025)
