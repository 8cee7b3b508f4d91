#!/usr/bin/env python3
"""Lists the types that a process with tvm-ffi begins with, and writes the table into structures.md.

    spec/evidence/builtin_types.py WHEELS            writes the table
    spec/evidence/builtin_types.py WHEELS --check    fails if it differs from the page
    spec/evidence/builtin_types.py --of LIBRARY KEY..    prints the types of one library as JSON

WHEELS holds unpacked wheels of apache-tvm-ffi, each in a folder named after its version. Each library is loaded alone, in a
separate process. Releases without `ffi.GetRegisteredTypeKeys` are asked for the keys of the other releases.
"""

import ctypes as c
import json
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "structures.md"
FIELD_SIZE = 120
METHOD_SIZE = 72


class Cell(c.Structure):
    _fields_ = [("tag", c.c_int32), ("length", c.c_uint32), ("payload", c.c_uint64)]


class Bytes(c.Structure):
    _fields_ = [("data", c.c_char_p), ("size", c.c_size_t)]


class TypeInfo(c.Structure):
    _fields_ = [("index", c.c_int32), ("depth", c.c_int32), ("key", c.c_void_p), ("key_size", c.c_size_t),
                ("ancestors", c.POINTER(c.c_void_p)), ("hash", c.c_uint64), ("num_fields", c.c_int32),
                ("num_methods", c.c_int32), ("fields", c.c_void_p), ("methods", c.c_void_p), ("metadata", c.c_void_p)]


class Library:
    def __init__(self, path):
        self.c = c.CDLL(path, mode=c.RTLD_GLOBAL)
        self.c.TVMFFIGetTypeInfo.restype = c.POINTER(TypeInfo)

    def call(self, name, *args):
        """The cell that the global function returns, or None if there is no function of this name."""
        handle = c.c_void_p()
        self.c.TVMFFIFunctionGetGlobal(c.byref(Bytes(name.encode(), len(name))), c.byref(handle))
        if not handle.value:
            return None
        result = Cell()
        if self.c.TVMFFIFunctionCall(handle, (Cell * max(1, len(args)))(*args), len(args), c.byref(result)):
            sys.exit(f"{name} failed")
        return result

    def keys(self):
        keys = self.call("ffi.GetRegisteredTypeKeys")
        if keys is None:
            return None
        count = self.call("ffi.ArraySize", keys).payload
        return [text(self.call("ffi.ArrayGetItem", keys, Cell(1, 0, at))) for at in range(count)]

    def type(self, key):
        index = c.c_int32()
        if self.c.TVMFFITypeKeyToIndex(c.byref(Bytes(key.encode(), len(key))), c.byref(index)):
            return None
        info = self.c.TVMFFIGetTypeInfo(index.value).contents
        parent = None
        if info.depth:
            above = c.cast(info.ancestors[info.depth - 1], c.POINTER(TypeInfo)).contents
            parent = c.string_at(above.key, above.key_size).decode()
        size = kind = None
        if info.metadata:
            size, kind = (c.c_int32 * 2).from_address(info.metadata + 24)
        fields, methods = [], []
        for at in range(info.num_fields):
            name, doc, of = described(info.fields + at * FIELD_SIZE)
            flags, width, _, offset = (c.c_int64 * 4).from_address(info.fields + at * FIELD_SIZE + 48)
            fields.append([name, offset, width, flags, of, doc])
        for at in range(info.num_methods):
            name, doc, of = described(info.methods + at * METHOD_SIZE)
            methods.append([name, c.c_int64.from_address(info.methods + at * METHOD_SIZE + 48).value, of, doc])
        return {"index": index.value, "parent": parent, "size": size, "kind": kind, "fields": fields, "methods": methods}


def described(address):
    """Name, documentation and declared type of the field or method at an address."""
    texts = [(c.c_uint64 * 2).from_address(address + 16 * part) for part in range(3)]
    name, doc, metadata = (c.string_at(*text).decode() if text[1] else "" for text in texts)
    return name, doc, declared(json.loads(metadata or "{}"))


def text(cell):
    """The string in a cell (VAL-03, VAL-06)."""
    if cell.tag == 11:
        return c.string_at(c.addressof(cell) + 8, cell.length).decode()
    address, size = (c.c_uint64 * 2).from_address(cell.payload + 24)
    return c.string_at(address, size).decode()


def declared(metadata):
    """The type that the metadata of a field states (FUN-09), in the notation of global-functions.md."""
    if "type_schema" not in metadata:
        return "-"
    schema = metadata["type_schema"]
    return notation(json.loads(schema) if isinstance(schema, str) else schema)


def notation(schema):
    if "named_args" in schema:
        params = ", ".join(map(notation, schema["named_args"]["params"]))
        return f"({params}) -> {notation(schema['named_args']['return'][0])}"
    if schema["type"] == "ffi.Function" and "args" in schema:
        result, *params = map(notation, schema["args"])
        return f"({', '.join(params)}) -> {result}"
    args = ", ".join(notation(inner) for inner in schema.get("args", []))
    return schema["type"] + (f"<{args}>" if args else "")


def number(version):
    return [int(part) for part in re.findall(r"\d+", version)]


def read(library, keys):
    """The types of a library by their keys, read in another process."""
    done = subprocess.run([sys.executable, __file__, "--of", str(library), *keys], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def spans(versions, order):
    """`0.1.0..` for all versions from 0.1.0 on, `0.1.9..0.1.12` for a range that ended."""
    first, last = versions[0], versions[-1]
    return f"{first}.." if last == order[-1] else first if first == last else f"{first}..{last}"


def cell(entries, of, order):
    """What `of` shows, with the releases of each form if there are several."""
    forms = {}
    for version, entry in entries.items():
        forms.setdefault(of(entry), []).append(version)
    if len(forms) == 1:
        return next(iter(forms))
    return "<br>".join(f"{form} ({spans(versions, order)})" for form, versions in forms.items())


def table(releases):
    order = list(releases)
    keys = dict.fromkeys(key for types in reversed(releases.values()) for key in types)
    newest = {key: [types[key] for types in releases.values() if key in types][-1]["index"] for key in keys}
    texts = {}
    lines = ["| type key | index | parent | size | compared | fields: offset, size, flags, type | releases |", "|---|---|---|---|---|---|---|"]
    for key in sorted(keys, key=newest.get):
        entries = {version: types[key] for version, types in releases.items() if key in types}
        own = lambda member: lambda entry: "-" if entry[member] is None else str(entry[member])
        fields = lambda entry: "; ".join(f"`{name}` {at}, {size}, {flags}, `{of}`" for name, at, size, flags, of, _ in entry["fields"]) or "-"
        row = [f"`{key}`", cell(entries, own("index"), order), cell(entries, own("parent"), order), cell(entries, own("size"), order),
               cell(entries, own("kind"), order), cell(entries, fields, order), spans(list(entries), order)]
        lines.append("| " + " | ".join(row) + " |")
        for version, entry in entries.items():
            shown = [[name, "-", doc] for name, *_, doc in entry["fields"] if doc]
            shown += [[name, f"{flags}, `{of}`", doc] for name, flags, of, doc in entry["methods"]]
            for name, of, doc in shown:
                versions = texts.get((key, name), ([],))[0]
                texts[key, name] = (versions + [version], of, doc or "-")
    lines += ["", "Flags and type of methods, and the documentation of methods and fields, each as in the newest release:", "",
              "| type key | member | flags, type | documentation | releases |", "|---|---|---|---|---|"]
    for (key, name), (versions, of, doc) in texts.items():
        lines.append(f"| `{key}` | `{name}` | {of} | {doc} | {spans(versions, order)} |")
    return "\n".join(lines) + "\n"


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    if arguments[0] == "--of":
        library = Library(arguments[1])
        types = {key: library.type(key) for key in library.keys() or arguments[2:]}
        print(json.dumps({key: known for key, known in types.items() if known}))
        return
    wheels = sorted((path for path in pathlib.Path(arguments[0]).iterdir() if number(path.name)), key=lambda path: number(path.name))
    libraries = {path.name: next(path.rglob("libtvm_ffi.so")) for path in wheels}
    releases, keys = {}, []
    for version, library in reversed(libraries.items()):
        releases[version] = read(library, keys)
        keys += [key for key in releases[version] if key not in keys]
    releases = dict(reversed(releases.items()))
    page = PAGE.read_text()
    before, begin, rest = re.split(r"(<!-- types: written by .*\n)", page, maxsplit=1)
    end = "<!-- end of types -->"
    written = before + begin + table(releases) + end + rest.split(end, 1)[1]
    print("changed: " + ("nothing" if written == page else PAGE.name))
    if "--check" not in arguments:
        PAGE.write_text(written)
    elif written != page:
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
