#!/usr/bin/env python3
"""Makes golden/blob and its share of conformance/blob/cases from blobs that real releases wrote.

    python3 golden/blob/make.py SAMPLES

SAMPLES is the folder of real artifacts. Real blobs are copied, or cut out of their library by the symbol's address and
size. Malformed ones are created here, each by one edit of a real or minimal one, and `hand` describes the edit. This
script shares no code with the crate: its reading of a blob is independent.
"""

import base64
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "conformance"))

import cases as conformance
from reading import c_array, elf_symbol, form, framed, once, patch, read_framed, read_streamed, reframe, text, u64

cases, manifest = [], {}


# ---------------------------------------------------------------------------------------------------------- collecting

def keep(name, data, origin):
    (HERE / name).write_bytes(data)
    manifest["blob/" + name] = origin
    return {"file": "blob/" + name}


def case(id, rules, releases, op, input, expect, why, origin, **more):
    entry = {"id": "blob/" + id, "rules": rules.split(), "releases": releases, "op": op}
    if "parent" in more:
        entry["parent"] = "blob/" + more.pop("parent")
    entry["input"] = input
    if "args" in more:
        entry["args"] = more.pop("args")
    if op == "blob.decode":
        entry["topic"] = "decode_framed" if entry.get("args", {}).get("layout") == "0.22" else "decode_streamed"
    entry["expect"] = expect
    entry.update(more)
    entry["why"], entry["origin"] = why, origin
    cases.append(entry)


SPAN = {"0.2": "..0.6", "0.7": "0.7..0.20", "0.21": "0.21..0.21", "0.22": "0.22.."}


def real(id, layout, data, value, release, how, rules, why, **more):
    origin = {"release": release, "how": how}
    input = keep(id + ".bin", data, origin)
    case(id, rules, SPAN[layout], "blob.decode", input, {"accept": value}, why, origin, args={"layout": layout}, **more)


def broken(id, layout, parent, data, kind, rules, hand, why, releases=None):
    input = keep(id + ".bin", data, {"hand": hand})
    case(id, rules, releases or SPAN[layout], "blob.decode", input, {"reject": kind}, why, {"hand": hand}, parent=parent,
         args={"layout": layout})


def odd(id, layout, data, value, findings, rules, hand, why):
    input = keep(id + ".bin", data, {"hand": hand})
    case(id, rules, SPAN[layout], "blob.decode", input, {"accept": value}, why, {"hand": hand}, args={"layout": layout},
         findings=findings.split(), encode=False)


def main(samples):
    v06, v08, v19, v21, v27 = (samples / f"v0.{n}" for n in ("6", "8", "19", "21", "27"))

    # ------------------------------------------------------------------------------------------------ 0.22, real
    def framed_sample(id, path, rules, why, name=None):
        data = (v27 / path).read_bytes()
        real(id, "0.22", data, read_framed(data), "0.27.0", f"v0.27/{path}", rules, why)
        return data

    opencl = framed_sample("opencl", "device/opencl.library_bin", "BLOB-01 BLOB-10 BLOB-11 BLOB-12",
                           "this is the simplest device library: host code that imports one device module")
    framed_sample("cuda", "device/cuda.library_bin", "BLOB-11", "most users ship this kind")
    framed_sample("metal", "device/metal.library_bin", "BLOB-11", "the payload contains a map of shaders")
    framed_sample("webgpu", "device/webgpu.library_bin", "BLOB-11", "the payload has no format field")
    framed_sample("const-loader-c", "misc/const_loader_c.library_bin", "BLOB-10 BLOB-12",
                  "the root is not the host library, so a reader that assumes module 0 finds no functions")
    framed_sample("dso-merge", "misc/dso_merge.library_bin", "BLOB-10 BLOB-12",
                  "two host modules are stored as one `_lib`; a reader that counts two uses wrong indices after it")
    alone = framed_sample("library-alone", "misc/c_alone.library_bin", "BLOB-01 BLOB-10 BLOB-12",
                          "this is the smallest blob: a tree with one row and no payload")
    framed_sample("relax-vm", "vm/relax_vm.library_bin", "BLOB-10 BLOB-11", "the bytecode has constants of every type")
    data = (v27 / "misc/const_loader_alone.library_bin").read_bytes()
    origin = {"release": "0.27.0", "how": "v0.27/misc/const_loader_alone.library_bin"}
    case("no-library", "BLOB-13", "0.22..", "blob.decode", keep("no-library.bin", data, origin),
         {"accept": read_framed(data)},
         "a library without host code is valid, but the user should know that no function can be called", origin,
         args={"layout": "0.22"}, findings=["BLOB-13"])
    data = (v27 / "misc/quirk_nonserializable_omitted.library_bin").read_bytes()
    origin = {"release": "0.27.0", "how": "v0.27/misc/quirk_nonserializable_omitted.library_bin: the released writer "
              "left out a module that it had counted"}
    case("module-left-out", "BLOB-10", "0.22..", "blob.decode", keep("module-left-out.bin", data, origin),
         {"reject": "truncated"}, "released writers create such files, and a reader must name the missing module", origin,
         parent="library-alone", args={"layout": "0.22"})

    # ------------------------------------------------------------------------------------------- 0.7, 0.21, 0.2, real
    def streamed_sample(id, layout, release, data, how, kinds, rules, why, **more):
        real(id, layout, data, read_streamed(layout, data, kinds), release, how, rules, why, **more)
        return data

    def mblob(name):
        return (v08 / "modules" / (name + ".mblob")).read_bytes()

    opencl7 = streamed_sample("opencl-0.8", "0.7", "0.8.0", mblob("dev_opencl"), "v0.8/modules/dev_opencl.mblob",
                              ["_lib", "opencl", "_import_tree"], "BLOB-01 BLOB-03 BLOB-04 BLOB-05",
                              "payloads have no length here, so an error of one byte makes the next key nonsense")
    streamed_sample("metal-0.8", "0.7", "0.8.0", mblob("dev_metal"), "v0.8/modules/dev_metal.mblob",
                    ["_lib", "metal", "_import_tree"], "BLOB-05", "the payload of 0.8 differs from that of 0.24")
    streamed_sample("graph-factory", "0.7", "0.8.0", mblob("graph_factory"), "v0.8/modules/graph_factory.mblob",
                    ["GraphExecutorFactory", "_lib", "_import_tree"], "BLOB-05 BLOB-08",
                    "in a model, the executor factory is the root and the host library is below it")
    streamed_sample("relay-vm", "0.7", "0.8.0", mblob("relay_vm"), "v0.8/modules/relay_vm.mblob",
                    ["VMExecutable", "_lib", "_import_tree"], "BLOB-05", "the payload is bytecode of the Relay VM")
    streamed_sample("library-alone-0.8", "0.7", "0.8.0", mblob("cpu_llvm"), "v0.8/modules/cpu_llvm.mblob", [],
                    "BLOB-03", "a host library without imports has no entries and no tree, which is valid")
    for id, path, kinds, why in (
        ("tree3", "tree3.so", ["_lib", "opencl", "metal", "_import_tree"], "the tree contains three kinds"),
        ("opencl-root", "opencl_root.so", ["opencl", "_lib", "_import_tree"],
         "the root is a device module and the host library is below it, so module 0 is not the library"),
    ):
        data = elf_symbol((v08 / path).read_bytes(), "__tvm_dev_mblob")
        kinds = sorted(kinds, key=lambda kind: data.index(text(kind)))
        streamed_sample(id, "0.7", "0.8.0", data, f"v0.8/{path}, symbol __tvm_dev_mblob", kinds, "BLOB-05 BLOB-08", why)
    data = elf_symbol((v19 / "host_opencl.so").read_bytes(), "__tvm_dev_mblob")
    streamed_sample("opencl-0.19", "0.7", "0.19.0", data, "v0.19/host_opencl.so, symbol __tvm_dev_mblob",
                    ["_lib", "opencl", "_import_tree"], "BLOB-05", "0.19 is the last release but one with this layout")
    opencl21 = elf_symbol((v21 / "host_opencl.so").read_bytes(), "__tvm_ffi_library_bin")
    streamed_sample("opencl-0.21", "0.21", "0.21.0", opencl21, "v0.21/host_opencl.so, symbol __tvm_ffi_library_bin",
                    ["_lib", "opencl", "_import_tree"], "BLOB-05 BLOB-18",
                    "0.21 combines the container of 0.7 with the function information of 0.22, and only the symbol shows that")
    opencl2 = c_array((v06 / "c_opencl.devc.c").read_text())
    streamed_sample("opencl-0.6", "0.2", "0.6.1", opencl2, "v0.6/c_opencl.devc.c", ["opencl"], "BLOB-03 BLOB-05 BLOB-14",
                    "without `_lib` and tree, the library itself is the root")
    two2 = c_array((v06 / "c_opencl_metal.devc.c").read_text())
    kinds = sorted(["opencl", "metal"], key=lambda kind: two2.index(text(kind)))
    streamed_sample("two-imports-0.6", "0.2", "0.6.1", two2, "v0.6/c_opencl_metal.devc.c", kinds, "BLOB-03 BLOB-05",
                    "the second module begins where the grammar of the first ends")

    # ---------------------------------------------------------------------------------------------------- the header
    n = len(opencl) - 8
    for id, value, what in (("header-too-long", n + 1, "one more than there is"), ("header-2-62", 2 ** 62, "2^62"),
                            ("header-all-ones", 2 ** 64 - 1, "2^64-1")):
        broken(id, "0.22", "opencl", patch(opencl, 0, u64(value)), "truncated", "BLOB-01",
               f"opencl.bin with nbytes = {what}", "a loader that trusts the header reads memory after the blob")
    broken("header-too-long-0.8", "0.7", "opencl-0.8", patch(opencl7, 0, u64(len(opencl7) - 7)), "truncated", "BLOB-01",
           "opencl-0.8.bin with nbytes one larger than the body", "a loader that trusts the header reads memory after the blob")
    broken("header-too-short", "0.22", "opencl", patch(opencl, 0, u64(n - 1)), "truncated", "WIRE-01",
           "opencl.bin with nbytes one smaller, so that the code loses its last byte",
           "the 0.27 loader accepts this and runs kernel source that ends with a NUL")
    broken("header-too-short-0.8", "0.7", "opencl-0.8", patch(opencl7, 0, u64(len(opencl7) - 9)), "truncated",
           "WIRE-01 WIRE-06", "opencl-0.8.bin with nbytes one smaller, so that the tree loses its last byte",
           "a truncated tree is not a tree")
    broken("header-zero", "0.22", "opencl", patch(opencl, 0, u64(0)), "truncated", "WIRE-01", "opencl.bin with nbytes = 0",
           "an empty body has no tree")
    broken("header-cut", "0.22", "opencl", opencl[:5], "truncated", "WIRE-01", "opencl.bin cut in its header",
           "a loader reads past a symbol of less than 8 bytes")
    broken("nothing", "0.22", "opencl", b"", "truncated", "WIRE-01", "opencl.bin cut before its first byte",
           "an empty section is not a blob")
    odd("bytes-behind", "0.22", opencl + b"\0\0\0", read_framed(opencl), "BLOB-02", "BLOB-02",
        "opencl.bin with three zero bytes appended", "padding is harmless, but a second blob after the first is not, so the bytes are reported")
    odd("bytes-inside", "0.22", framed(alone[8:] + b"abc"), read_framed(alone), "WIRE-08", "WIRE-08",
        "library-alone.bin with three bytes appended and counted",
        "data can be hidden in bytes that no reader checks")

    # --------------------------------------------------------------------------------------------- cut at every field
    for at in (8, 12, 0x10, 0x28, 0x30, 0x38, 0x40, 0x42, 0x44, 0x52, 0x5a, 0x62, 0x64, 0x92, 0x9a, 0xdf, len(opencl) - 1):
        rules = {0x38: "BLOB-10", 0x44: "BLOB-10"}.get(at, "WIRE-01 WIRE-06")
        broken(f"cut-at-{at:03x}", "0.22", "opencl", framed(opencl[8:at]), "truncated", rules,
               f"opencl.bin cut at byte {at:#x}, with a true header", "a truncated download is rejected at every length")
    for at in (8, 0x10, 0x18, 0x1c, 0x24, 0x2a, 0x34, 0x5b, 0x98, 0xa0, 0x1a9, 0x1b1, 0x1bd, 0x1dd, len(opencl7) - 1):
        rules = {0x1c: "BLOB-03", 0x1a9: "BLOB-03"}.get(at, "WIRE-01 WIRE-06 BLOB-03")
        broken(f"cut-at-{at:03x}-0.8", "0.7", "opencl-0.8", framed(opencl7[8:at]), "truncated", rules,
               f"opencl-0.8.bin cut at byte {at:#x}, with a true header",
               "a truncated download is rejected at every length")

    # ------------------------------------------------------------------------------------------------ counts and strings
    for id, value in (("rows-2-61", 2 ** 61), ("rows-2-28", 2 ** 28), ("rows-all-ones", 2 ** 64 - 1)):
        broken(id, "0.22", "opencl", patch(opencl, 8, u64(value)), "truncated", "WIRE-06",
               f"opencl.bin whose `indptr` counts {value:#x} words",
               "a reader that allocates before it checks takes gigabytes")
    for id, value in (("children-2-61", 2 ** 61), ("children-all-ones", 2 ** 64 - 1)):
        broken(id, "0.22", "opencl", patch(opencl, 0x28, u64(value)), "truncated", "WIRE-06",
               f"opencl.bin whose `indices` count {value:#x} words",
               "a reader that allocates before it checks takes gigabytes")
    for id, value in (("kind-all-ones", 2 ** 64 - 1), ("kind-2-63", 2 ** 63), ("kind-2-31", 2 ** 31),
                      ("kind-one-too-long", len(opencl) - 0x40 + 1)):
        broken(id, "0.22", "opencl", patch(opencl, 0x38, u64(value)), "truncated", "WIRE-01",
               f"opencl.bin whose first kind has length {value:#x}",
               "lengths near 2^64 wrap around when an offset is added to them")
    for id, value in (("payload-all-ones", 2 ** 64 - 1), ("payload-2-40", 2 ** 40), ("payload-one-too-long", 0x26e)):
        broken(id, "0.22", "opencl", patch(opencl, 0x52, u64(value)), "truncated", "WIRE-01",
               f"opencl.bin whose payload has length {value:#x}",
               "the 0.27 loader allocates this much, reads the existing bytes, and continues")
    for id, value in (("count-2-63", 2 ** 63), ("count-all-ones", 2 ** 64 - 1), ("count-one-too-many", 4)):
        broken(id, "0.7", "opencl-0.8", patch(opencl7, 8, u64(value)), "truncated", "BLOB-03",
               f"opencl-0.8.bin that counts {value:#x} entries", "a loop up to 2^63 never ends")
    broken("count-one-too-few", "0.7", "opencl-0.8", patch(opencl7, 8, u64(2)), "missing", "BLOB-09",
           "opencl-0.8.bin that counts 2 entries, so that the tree is cut off",
           "released loaders silently build another tree than the one in the file")
    broken("kind-not-utf8", "0.22", "opencl", once(opencl, b"opencl", b"open\xff\xfe"), "malformed", "WIRE-05",
           "opencl.bin with kind `open\\xff\\xfe`", "a kind becomes part of a function's name")
    broken("kind-not-utf8-0.8", "0.7", "opencl-0.8", once(opencl7, b"opencl", b"open\xff\xfe"), "malformed", "WIRE-05",
           "opencl-0.8.bin with key `open\\xff\\xfe`", "a kind becomes part of a function's name")
    broken("kind-empty", "0.22", "opencl", reframe(once(opencl, text("opencl"), text(""))), "malformed", "BLOB-04",
           "opencl.bin with an empty kind", "the 0.27 reader treats a string of length 0 as the end of the file")
    broken("kind-empty-0.8", "0.7", "opencl-0.8", reframe(once(opencl7, text("opencl"), text(""))), "malformed", "BLOB-04",
           "opencl-0.8.bin with an empty key", "a loader must have a name")
    broken("kind-with-nul", "0.22", "opencl", once(opencl, b"opencl", b"open\0l"), "malformed", "BLOB-04",
           "opencl.bin with kind `open\\0l`", "in C, the name of the loader ends at the NUL, so another loader is called")

    # --------------------------------------------------------------------------------------------------------- modules
    def blob22(tree, *modules):
        body = u64(len(tree[0]), *tree[0]) + u64(len(tree[1]), *tree[1])
        for module in modules:
            body += text(module) if isinstance(module, (str, bytes)) else text(module[0]) + text(module[1])
        return framed(body)

    def blob7(*entries):
        body = u64(len(entries))
        for entry in entries:
            if isinstance(entry, str):
                body += text(entry)
            elif entry[0] == "_import_tree":
                indptr, indices = entry[1:]
                body += text(entry[0]) + u64(len(indptr), *indptr) + u64(len(indices), *indices)
            else:
                body += text(entry[0]) + entry[1]
        return framed(body)

    payload22 = opencl[0x5a:]
    payload7 = opencl7[0x2a:0x1a9]
    one = ([0, 1, 1], [1])
    assert blob22(one, "_lib", ("opencl", payload22)) == opencl
    assert blob7("_lib", ("opencl", payload7), ("_import_tree", *one)) == opencl7

    unknown = blob22(one, "_lib", ("acme_npu", b"\x01\x02\x03"))
    hand = "opencl.bin with kind `acme_npu` and three payload bytes"
    case("unknown-kind", "BLOB-11", "0.22..", "blob.decode", keep("unknown-kind.bin", unknown, {"hand": hand}),
         {"accept": read_framed(unknown)}, "tools must keep a vendor's module of an unknown kind", {"hand": hand},
         args={"layout": "0.22"})
    broken("unknown-kind-0.8", "0.7", "opencl-0.8", blob7("_lib", ("acme_npu", b"\x01\x02\x03"), ("_import_tree", *one)),
           "unknown-kind", "BLOB-06", "opencl-0.8.bin with key `acme_npu` and three payload bytes",
           "a guess for the end of an unknown payload may find keys inside it")
    odd("payload-empty", "0.22", blob22(one, "_lib", ("opencl", b"")), form("0.22", ["_lib", ("opencl", b"")], one),
        "BLOB-15", "BLOB-15", "opencl.bin with an empty payload", "the format allows it, but no release can read it")
    broken("two-libraries", "0.22", "library-alone", blob22(one, "_lib", "_lib"), "duplicate", "BLOB-12",
           "library-alone.bin with a second `_lib` below the first",
           "the host code finds its imports through the last `_lib`")
    broken("two-libraries-0.8", "0.7", "opencl-0.8", blob7("_lib", "_lib", ("_import_tree", *one)), "duplicate", "BLOB-12",
           "opencl-0.8.bin with a second `_lib` instead of opencl", "0.8 to 0.21 reject it, but 0.7 and 0.22 do not",
           releases="0.8..0.20")
    broken("rows-for-a-missing-module", "0.22", "opencl", blob22(([0, 1, 1, 1], [1]), "_lib", ("opencl", payload22)),
           "truncated", "BLOB-10 TREE-10", "opencl.bin with one more row in its tree", "a reader must name the missing module")
    odd("module-without-a-row", "0.22", blob22(([0, 0], []), "_lib", ("opencl", payload22)),
        form("0.22", ["_lib"], ([0, 0], [])), "WIRE-08", "WIRE-08", "opencl.bin with one row fewer in its tree",
        "the module is in the file but not in the tree, so it is never loaded")

    # ------------------------------------------------------------------------------------------------- tree in 0.7, 0.21
    broken("tree-missing", "0.7", "opencl-0.8", blob7("_lib", ("opencl", payload7)), "missing", "BLOB-09",
           "opencl-0.8.bin without its last entry", "released loaders put a new root above everything")
    broken("tree-twice", "0.7", "opencl-0.8",
           blob7("_lib", ("opencl", payload7), ("_import_tree", *one), ("_import_tree", *one)), "duplicate", "BLOB-07",
           "opencl-0.8.bin with its tree twice", "of two trees the last one is used, so a check of the first means nothing")
    broken("tree-not-last", "0.7", "opencl-0.8", blob7("_lib", ("_import_tree", *one), ("opencl", payload7)), "malformed",
           "BLOB-08", "opencl-0.8.bin with the tree in the middle", "a reader that stops at the tree misses a module")
    odd("count-zero-with-entry", "0.7", framed(u64(0) + text("opencl") + payload7), form("0.7", [], None), "BLOB-16",
        "BLOB-16", "opencl-0.8.bin as 0.14 writes an OpenCL root without imports: count 0 and one entry",
        "the module is in the file, but no loader finds it")
    broken("library-key-0.6", "0.2", "opencl-0.6", opencl7, "unknown-kind", "BLOB-14", "opencl-0.8.bin read as layout 0.2",
           "a 0.6 runtime reads a newer library like this")
    broken("older-bytes", "0.22", "opencl", opencl7, "truncated", "WIRE-06", "opencl-0.8.bin read as layout 0.22",
           "a renamed symbol leads to this mistake")
    # Read as layout 0.7, the tree's words are a count (3), an empty key, and so on.
    broken("newer-bytes", "0.7", "opencl-0.8", opencl, "malformed", "BLOB-04", "opencl.bin read as layout 0.7",
           "a renamed symbol leads to this mistake")

    # ------------------------------------------------------------------------------------------------ detection, writing
    for id, file, symbol, layout in (
        ("detect-0.22", "opencl", None, "0.22"), ("detect-0.21", "opencl-0.21", None, "0.21"),
        ("detect-0.7", "opencl-0.8", None, "0.7"), ("detect-0.2", "opencl-0.6", None, "0.2"),
        ("detect-lone-library", "library-alone-0.8", None, "0.7"),
        ("detect-by-symbol-0.22", "opencl-0.8", "__tvm_ffi__library_bin", "0.22"),
        ("detect-by-symbol-0.21", "opencl-0.8", "__tvm_ffi_library_bin", "0.21"),
        ("detect-by-symbol-0.7", "opencl-0.8", "__tvm_dev_mblob", "0.7"),
        ("detect-by-symbol-0.2", "opencl-0.6", "__tvm_dev_mblob", "0.2"),
        ("detect-by-prefixed-symbol", "opencl", "modA___tvm_ffi__library_bin", "0.22"),
        ("detect-nothing", "nothing", None, "0.7"),
    ):
        case(id, "BLOB-18", "0.2..", "blob.detect", {"file": f"blob/{file}.bin"}, {"accept": layout},
             "in the wrong layout, a valid file looks broken and a broken file may look valid",
             {"hand": f"{file}.bin is of layout {layout} or claimed to be by its symbol"},
             **({"args": {"symbol": symbol}} if symbol else {}), encode=False)
    case("write-library-alone", "BLOB-01 BLOB-10", "0.22..", "blob.encode", {"value": read_framed(alone)},
         {"accept": base64.b64encode(alone).decode()}, "a writer must write exactly these bytes",
         {"release": "0.27.0", "how": "library-alone.bin"})
    for id, value, why in (
        ("write-deep-tree-as-0.2", form("0.2", [("opencl", b"x")], ([0, 0], [])), "a tree for layout 0.2, which has none"),
        ("write-unknown-kind-as-0.7", form("0.7", ["_lib", ("acme_npu", b"x")], one), "a payload whose end no reader could find"),
        ("write-without-a-tree-as-0.22", form("0.22", ["_lib"], None), "a blob without a tree for layout 0.22, which begins with one"),
    ):
        kind = "missing" if "0.22" in id else "unsupported"
        case(id, "BLOB-17", "0.2..", "blob.encode", {"value": value}, {"reject": kind},
             "a writer that changes content to make it fit writes a file that loads differently", {"hand": why},
             parent="write-library-alone")
    bare = form("0.7", ["_lib"], ([0, 0], []))
    case("convert-lone-library-to-0.22", "BLOB-17", "0.2..", "blob.convert", {"file": "blob/library-alone-0.8.bin"},
         {"accept": {**bare, "layout": "0.22"}}, "a library without a tree gets the tree that loaders imply",
         {"hand": "a blob without a tree stands for a host library without imports"}, args={"layout": "0.7", "to": "0.22"}, encode=False)
    case("convert-opencl-to-0.22", "BLOB-17", "0.2..", "blob.convert", {"file": "blob/opencl-0.8.bin"},
         {"accept": form("0.22", ["_lib", ("opencl", widen(payload7))], one)},
         "function information gained a field in 0.21, so a payload that is copied byte by byte would not load",
         {"hand": "opencl-0.8.bin with `arg_extra_tags` 0, 0 after the launch tags"},
         args={"layout": "0.7", "to": "0.22"}, encode=False)
    case("convert-opencl-to-0.2", "BLOB-17", "0.2..", "blob.convert", {"file": "blob/opencl-0.8.bin"},
         {"accept": form("0.2", [("opencl", payload7)], None)}, "an old runtime can still load the library",
         {"hand": "opencl-0.8.bin without `_lib` and tree: the library itself replaces `_lib`"},
         args={"layout": "0.7", "to": "0.2"}, encode=False)
    case("convert-device-root-to-0.2", "BLOB-17", "0.2..", "blob.convert", {"file": "blob/opencl-root.bin"},
         {"reject": "unsupported"}, "in 0.2, only the library can be the root", {"hand": "opencl-root.bin, whose root is a device module"},
         parent="convert-opencl-to-0.2", args={"layout": "0.7", "to": "0.2"})


def widen(payload):
    """An OpenCL payload of 0.7 with the field that 0.21 added: no tag for each of its two arguments."""
    tags_end = payload.index(b"threadIdx.x") + len("threadIdx.x")
    return payload[:tags_end] + u64(2) + bytes(8) + payload[tags_end:]


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
    conformance.add("blob", cases)
    conformance.declare(manifest)
