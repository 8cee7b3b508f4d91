"""Makes the containers of this folder that are not copies of real files.

    python make.py

needs apache-tvm 0.27, binutils (ar) and lld (ld.lld, ld64.lld-14, lld-link). `devc-0.8.o` is the member `devc.o` of
`host_opencl-0.8.tar`, `dev_opencl-0.8.devc.c` the text of the same release.

Objects for other machines are written by the real ModulePackImportsToLLVM; images are linked from them by lld; damaged
files are edits of the real `devc-0.8.o`, one thing at a time.
"""

import gzip
import io
import os
import struct
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))


def path(name):
    return os.path.join(HERE, name)


def save(name, data):
    with open(path(name), "wb") as f:
        f.write(data)


def load(name):
    with open(path(name), "rb") as f:
        return f.read()


def real_objects():
    import tvm  # noqa: F401
    import tvm_ffi

    call = tvm_ffi.get_global_func
    module = call("ffi.Module.create.const_loader")({}, {"k": []})
    module.import_module(call("runtime.CSourceModuleCreate")("int x;", "c", ["f"], []))
    pack = call("runtime.ModulePackImportsToLLVM")
    save("const_loader.bin", call("runtime.ModulePackImportsToTensor")(module).numpy().tobytes())
    for name, triple, system_lib, prefix in [
        ("elf-x86_64.o", "x86_64-linux-gnu", False, ""),
        ("elf-aarch64.o", "aarch64-linux-gnu", False, ""),
        ("elf-armv7.o", "armv7a-linux-gnueabihf", False, ""),
        ("elf-mips-be.o", "mips-linux-gnu", False, ""),
        ("elf-s390x-be.o", "s390x-linux-gnu", False, ""),
        ("macho-arm64.o", "arm64-apple-macos", False, ""),
        ("macho-x86_64.o", "x86_64-apple-macos", False, ""),
        ("coff-x86_64.obj", "x86_64-pc-windows-msvc", False, ""),
        ("elf-prefix.o", "x86_64-linux-gnu", True, "modA_"),
        ("macho-prefix.o", "arm64-apple-macos", True, "modA_"),
    ]:
        target = '{"kind":"llvm","mtriple":"%s"}' % triple
        pack(module, system_lib, target, prefix).write_to_file(path(name), "o")


def images():
    def run(*command):
        subprocess.run(command, check=True, cwd=HERE)

    symbol = "__tvm_ffi__library_bin"
    run("ld.lld", "-m", "aarch64linux", "-shared", "-o", "elf-aarch64.so", "elf-aarch64.o")
    run("ld64.lld-14", "-dylib", "-arch", "arm64", "-platform_version", "macos", "11.0", "11.0",
        "-o", "macho-arm64.dylib", "macho-arm64.o")
    run("lld-link", "/dll", "/noentry", "/timestamp:0", "/export:" + symbol + ",DATA",
        "/out:pe-x86_64.dll", "coff-x86_64.obj")
    if os.path.exists(path("pe-x86_64.lib")):
        os.remove(path("pe-x86_64.lib"))
    for archive in ["static.a", "thin.a"]:
        if os.path.exists(path(archive)):
            os.remove(path(archive))
    run("ar", "rcsD", "static.a", "devc-0.8.o", "elf-armv7.o")
    run("ar", "rcsDT", "thin.a", "devc-0.8.o")
    # Two machines in one file: big-endian header, offset and size of each, 16 KiB pages as `lipo` aligns them.
    parts = [(0x01000007, 3, load("macho-x86_64.o")), (0x0100000C, 0, load("macho-arm64.o"))]
    out = bytearray(struct.pack(">II", 0xCAFEBABE, len(parts)))
    at = 64
    for cpu, subtype, data in parts:
        out += struct.pack(">IIIII", cpu, subtype, at, len(data), 3)
        at = (at + len(data) + 7) & ~7
    for _, _, data in parts:
        out += b"\0" * (-len(out) % 8 if len(out) > 64 else 64 - len(out))
        out += data
    save("macho-fat.o", bytes(out))
    struct.pack_into(">II", out, 8 + 20 + 8, 0, len(out))
    save("macho-fat-shared.o", bytes(out))


def sections(data):
    """Name, header offset of each section of a little-endian ELF64 file."""
    shoff, = struct.unpack_from("<Q", data, 40)
    shentsize, shnum, shstrndx = struct.unpack_from("<HHH", data, 58)
    strings, = struct.unpack_from("<Q", data, shoff + shstrndx * shentsize + 24)
    for i in range(shnum):
        at = shoff + i * shentsize
        name, = struct.unpack_from("<I", data, at)
        yield data[strings + name:data.index(b"\0", strings + name)].decode(), at


def symbol(data, wanted):
    """Offset of the symbol-table entry called `wanted`."""
    table = dict(sections(data))
    start, size = struct.unpack_from("<QQ", data, table[".symtab"] + 24)
    strings, = struct.unpack_from("<Q", data, table[".strtab"] + 24)
    for at in range(start, start + size, 24):
        name, = struct.unpack_from("<I", data, at)
        if data[strings + name:data.index(b"\0", strings + name)].decode() == wanted:
            return at
    raise KeyError(wanted)


def damaged():
    real = load("devc-0.8.o")
    rodata = dict(sections(real))[".rodata"]
    entry = symbol(real, "__tvm_dev_mblob")
    content, size = struct.unpack_from("<QQ", real, rodata + 24)

    def edit(name, at, form, *values):
        data = bytearray(real)
        struct.pack_into(form, data, at, *values)
        save(name, bytes(data))

    save("elf-cut.o", real[:len(real) // 2])
    edit("elf-section-outside.o", rodata + 24, "<Q", len(real) + 4096)
    edit("elf-bss.o", rodata + 4, "<I", 8)  # SHT_NOBITS
    edit("elf-symbol-longer-than-section.o", entry + 16, "<Q", size + 1)
    edit("elf-symbol-shorter-than-blob.o", entry + 16, "<Q", 100)
    edit("elf-blob-shorter-than-symbol.o", content, "<Q", size - 8 - 4)
    edit("elf-value-outside.o", entry + 8, "<Q", size)
    edit("elf-bad-entry-size.o", 58, "<H", 63)
    symtab = dict(sections(real))[".symtab"]
    edit("elf-symbol-entry-size.o", symtab + 56, "<Q", 16)
    edit("elf-symbols-outside.o", symtab + 24, "<Q", len(real) + 4096)


def member(name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(data))
    # One header and the padded content: without the end mark and the padding to 10 KiB.
    return out.getvalue()[:512 + (len(data) + 511) // 512 * 512]


def checksum(block):
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block[:512])


def archives():
    devc = load("devc-0.8.o")
    plain = member("devc.o", devc) + b"\0" * 1024
    save("plain.tar", plain)
    lying = bytearray(plain)
    lying[124:136] = b"%011o\0" % (len(devc) + 1024 * 1024)
    checksum(lying)
    save("tar-size-lies.tar", bytes(lying))
    broken = bytearray(plain)
    broken[148:156] = b"000000\0 "
    save("tar-checksum.tar", bytes(broken))
    long = "a-folder-name-that-goes-on/" * 5 + "devc.o"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        info = tarfile.TarInfo(long)
        info.size = len(devc)
        tar.addfile(info, io.BytesIO(devc))
    save("tar-long-name.tar", out.getvalue())
    squeeze = lambda data: gzip.compress(data, 9, mtime=0)
    save("gzip-cut.tar", squeeze(plain)[:-100])
    save("gzip-crc.tar", squeeze(plain)[:-8] + b"\0\0\0\0" + squeeze(plain)[-4:])
    save("gzip-bomb.tar", squeeze(member("zeros", b"\0" * (8 << 20)) + b"\0" * 1024))
    nested = devc
    for level in range(6):
        nested = member("inner.tar" if level else "devc.o", nested) + b"\0" * 1024
        if level == 2:
            save("tar-three-deep.tar", nested)
    save("tar-six-deep.tar", nested)


def texts():
    real = open(path("dev_opencl-0.8.devc.c")).read()
    save("c-length-lies.c", real.replace("[493]", "[492]").encode())
    save("c-value-too-large.c", real.replace("0xe5,0x1,", "0x1e5,0x1,", 1).encode())
    save("c-no-end.c", real[:real.index("};")].encode())
    # As 0.2 and 0.3 wrote it: plain `char`.
    save("c-plain-char.c", real.replace("unsigned char", "char").encode())


if __name__ == "__main__":
    if "--damage-only" not in sys.argv:
        real_objects()
        images()
    damaged()
    archives()
    texts()
