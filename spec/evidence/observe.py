#!/usr/bin/env python3
"""Writes tables/observed.json: the global functions that a runtime registers, and the types that it states for them.

    observe.py LABEL LIBRARY..    loads the libraries in this order, and lists the functions under this label, such as `0.1.5` or `tvm 0.25`

A library of tvm-ffi comes before the libraries that need it. Python 3.6 suffices. A name is listed with its metadata if the runtime has any.
"""

import ctypes as c
import json
import os
import pathlib
import re
import sys

TABLE = pathlib.Path(__file__).resolve().parent / "tables" / "observed.json"


class Cell(c.Structure):
    _fields_ = [("tag", c.c_int32), ("length", c.c_uint32), ("payload", c.c_uint64)]


class Bytes(c.Structure):
    _fields_ = [("data", c.c_char_p), ("size", c.c_size_t)]


def text_of(cell, header):
    """Returns the string in a cell: short strings are in the cell, others after the header of an object, address before length."""
    if cell.tag in (11, 12):
        return c.string_at(c.addressof(cell) + 8, cell.length).decode()
    address, size = (c.c_uint64 * 2).from_address(cell.payload + header)
    return c.string_at(address, size).decode() if size else ""


class New:
    """A runtime with cells of 16 bytes."""

    def __init__(self, library):
        self.library = library
        # 0.21 has a shorter header of objects.
        self.header = 24 if hasattr(library, "TVMFFIObjectDecRef") else 16

    def find(self, name):
        handle = c.c_void_p()
        name = name.encode()
        self.library.TVMFFIFunctionGetGlobal(c.byref(Bytes(name, len(name))), c.byref(handle))
        return handle

    def call(self, function, *arguments):
        result = Cell()
        code = self.library.TVMFFIFunctionCall(function, (Cell * max(1, len(arguments)))(*arguments), len(arguments), c.byref(result))
        return None if code else result

    def names(self):
        functor = self.call(self.find("ffi.FunctionListGlobalNamesFunctor"))
        handle = c.c_void_p(functor.payload)
        count = self.call(handle, Cell(1, 0, 2**64 - 1)).payload
        return [text_of(self.call(handle, Cell(1, 0, at)), self.header) for at in range(count)]

    def metadata(self, name):
        function = self.find("ffi.GetGlobalFuncMetadata")
        if not function:
            return ""
        kept = c.c_char_p(name.encode())
        result = self.call(function, Cell(8, 0, c.cast(kept, c.c_void_p).value))
        return text_of(result, self.header) if result else ""


class Old:
    """A runtime of 0.2 to 0.20."""

    def __init__(self, library):
        self.library = library

    def names(self):
        count, names = c.c_int(), c.POINTER(c.c_char_p)()
        self.library.TVMFuncListGlobalNames(c.byref(count), c.byref(names))
        return [names[at].decode() for at in range(count.value)]

    def metadata(self, name):
        return ""


def typed(metadata):
    """Returns `(int, Optional<Any>) -> str` from the metadata of a function; empty if it states no type."""

    def name(schema):
        arguments = schema.get("args")
        return schema["type"] + ("<" + ", ".join(map(name, arguments)) + ">" if arguments else "")

    try:
        schema = json.loads(json.loads(metadata)["type_schema"])
    except (ValueError, KeyError):
        return ""
    if "named_args" in schema:
        taken, returned = schema["named_args"]["params"], schema["named_args"]["return"][0]
    elif schema.get("args"):
        # Before 0.1.14, the result comes first, and the parameters after it.
        returned, *taken = schema["args"]
    else:
        return ""
    return "(" + ", ".join(map(name, taken)) + ") -> " + name(returned)


def main(label, paths):
    for path in paths:
        library = c.CDLL(path, mode=os.RTLD_LAZY | os.RTLD_GLOBAL)
    runtime = next(kind for kind, name in ((New, "TVMFFIFunctionGetGlobal"), (Old, "TVMFuncListGlobalNames")) if hasattr(library, name))(library)
    found = {name: typed(runtime.metadata(name)) for name in sorted(runtime.names())}
    table = json.loads(TABLE.read_text()) if TABLE.is_file() else {}
    table[label] = found
    order = lambda label: [int(number) for number in re.findall(r"\d+", label)]
    rows = ("  {}: {}".format(json.dumps(label), json.dumps(table[label])) for label in sorted(table, key=lambda label: (label.startswith("tvm-ffi"), order(label))))
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    print(label, len(found), sum(1 for text in found.values() if text))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
