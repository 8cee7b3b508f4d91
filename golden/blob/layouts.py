"""One library in each layout, and C texts of the releases that changed their form, written only from spec/blob.md.

    python3 layouts.py        writes layouts-<name>.bin, and edge-text-<name>.json: base64 of the text

Nothing here comes from the Rust code. The library is a host library that imports one CUDA module of one kernel with one
argument; between 0.7 and 0.21 function information gains a tag for each argument.
"""

import base64
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
LAYOUTS = ["0.2", "0.7", "0.21", "0.22"]


def u64(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def text(value):
    return u64(len(value)) + value.encode()


def payload(layout, kernel="k", extra=0):
    """Format, function map, code; the kernel's one argument is a handle."""
    tags = u64(1) + struct.pack("<i", extra) if layout in ("0.21", "0.22") else b""
    info = text("") + u64(1) + struct.pack("<BBH", 3, 64, 1) + u64(1) + text("threadIdx.x") + tags
    return text("ptx") + u64(1) + text(kernel) + info + text(".version 6.0\n")


def blob(layout, payloads=None, indptr=(0, 1, 1), indices=(1,), kind="cuda"):
    payloads = payloads or [payload(layout)]
    rows = u64(len(indptr), *indptr, len(indices), *indices)
    if layout == "0.22":
        body = rows + text("_lib") + b"".join(text(kind) + u64(len(each)) + each for each in payloads)
    else:
        entries = [text(kind) + each for each in payloads]
        if layout != "0.2":
            entries = [text("_lib"), *entries, text("_import_tree") + rows]
        body = u64(len(entries)) + b"".join(entries)
    return u64(len(body)) + body


def form(layout, payloads=None, indptr=(0, 1, 1), indices=(1,)):
    """The JSON form of spec/blob.md."""
    modules = [] if layout == "0.2" else [{"kind": "_lib"}]
    for each in payloads or [payload(layout)]:
        modules.append({"kind": "cuda", "payload": base64.b64encode(each).decode()})
    tree = None if layout == "0.2" else {"indptr": list(indptr), "indices": list(indices)}
    return {"layout": layout, "modules": modules, "import_tree": tree}


def two(layout):
    return [payload(layout, "a"), payload(layout, "b")]


# Further conversions: two modules of which the root imports the second first, or only the first, or of which one imports
# the other; a kind without a grammar; an argument that is a tensor map.
BLOBS = {
    "order-of-the-root": blob("0.22", two("0.22"), (0, 2, 2, 2), (2, 1)),
    "two-from-0.2": blob("0.2", two("0.2")),
    "nested": blob("0.22", two("0.22"), (0, 1, 2, 2), (1, 2)),
    "lost-module": blob("0.22", two("0.22"), (0, 1, 1, 1), (1,)),
    "unknown-kind": blob("0.22", [b"\1\2\3"], kind="npu"),
    "argument-tags": blob("0.22", [payload("0.22", extra=1)]),
}
BLOBS |= {layout: blob(layout) for layout in LAYOUTS}

SYMBOLS = [(22, "__tvm_ffi__library_bin"), (21, "__tvm_ffi_library_bin"), (0, "__tvm_dev_mblob")]


def c_text(data, release, system=False, prefix=""):
    """BLOB-50, BLOB-59, BLOB-60."""
    symbol = prefix + next(name for since, name in SYMBOLS if release >= since)
    element = "unsigned char" if release >= 4 else "char"
    lines = ["#ifdef _WIN32", "#define TVM_EXPORT __declspec(dllexport)", "#else", "#define TVM_EXPORT", "#endif"]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", f"TVM_EXPORT extern const {element} {symbol}[];"]
    lines.append(f"const {element} {symbol}[{len(data)}] = {{")
    rows = [data[at : at + 20] for at in range(0, len(data), 20)]
    if release >= 14:
        lines += ["  " + "".join(f"0x{byte:02x}," for byte in row) for row in rows]
    else:
        joined = ["  " + ",".join(f"0x{byte:x}" for byte in row) for row in rows]
        lines += [row + "," for row in joined[:-1]] + joined[-1:]
    lines.append("};")
    if system:
        register = "TVMFFIEnvModRegisterSystemLibSymbol" if release >= 22 else "TVMBackendRegisterSystemLibSymbol"
        lines.append(f"extern int {register}(const char*, void*);")
        lines.append(f'static int {symbol}_reg_ = {register}("{symbol}", (void*){symbol});')
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif"]) + "\n"


# A number of bytes that fills its row, and one that begins a new row.
ROW = bytes(range(7, 27))
TEXTS = {f"0.{release}": (ROW + b"\xff", release) for release in (3, 4, 13, 14, 20, 21, 22)}
TEXTS |= {"row-0.13": (ROW, 13), "row-0.14": (ROW, 14), "two-rows-0.13": (ROW * 2, 13)}
TEXTS |= {f"system-0.{release}": (b"\x10", release, True) for release in (12, 21, 22)}
TEXTS |= {"prefix-0.13": (b"\x0f", 13, True, "pre_"), "prefix-mixed": (b"\x0f", 27, True, "_a9Z")}


def main():
    for name, data in BLOBS.items():
        (HERE / f"layouts-{name}.bin").write_bytes(data)
    for name, arguments in TEXTS.items():
        packed = base64.b64encode(c_text(*arguments).encode()).decode()
        (HERE / f"edge-text-{name}.json").write_text(json.dumps(packed) + "\n")


if __name__ == "__main__":
    main()
