#!/usr/bin/env python3
"""Malformed library binaries of layout 0.22, one family after the other.

Each is a minimal valid blob with one fault, and is named after it. Without an argument this writes
`robustness.json` into its own folder; with one it writes every blob as DIR/<id>.bin, including the large ones.

Fields of an entry: `id`; `what`; `family`; `blob` in hex, or `recipe` for the large ones; `expect`, the answer of a loader that
checks everything: `valid`, `reject`, `finding` (accepted, with a named finding), `loader` (the loader of a kind
rejects) or `opaque` (a kind without a loader: its module exists and states why it cannot run).
"""
import json
import os
import struct
import sys

M64 = 2**64 - 1


def u64(value):
    return struct.pack("<Q", value & M64)


def text(content, length=None):
    content = content if isinstance(content, bytes) else content.encode()
    return u64(len(content) if length is None else length) + content


def words(values, count=None):
    return u64(len(values) if count is None else count) + b"".join(map(u64, values))


LIB = text("_lib")


def module(kind, payload=b"payload"):
    return text(kind) + text(payload)


def blob(body, nbytes=None):
    return u64(len(body) if nbytes is None else nbytes) + body


def tree(indptr, indices, *modules):
    return words(indptr) + words(indices) + b"".join(modules)


ROB = module("rob")
ALONE = tree([0, 0], [], LIB)
PAIR = tree([0, 1, 1], [1], LIB, ROB)


def chain(count, one):
    """Module i imports module i + 1."""
    return tree(list(range(count)) + [count - 1], list(range(1, count)), *[one(i) for i in range(count)])


def diamonds(levels):
    """Two modules a level, each importing both of the next: 2^levels paths from the root."""
    indptr, indices, count = [0], [], 2 * levels + 1
    for i in range(count):
        below = 2 * ((i + 1) // 2) + 1
        if below + 1 < count:
            indices += [below, below + 1]
        indptr.append(len(indices))
    return tree(indptr, indices, LIB, *[ROB] * (count - 1))


CASES = []


def case(id, family, expect, what, body, nbytes=None, recipe=None):
    data = body() if callable(body) else blob(body, nbytes)
    CASES.append((id, family, expect, what, data, recipe))


case("library-alone", "control", "valid", "a library alone", ALONE)
case("library-alone-released", "control", "valid", "the same, only released", ALONE)
case("library-imports", "control", "valid", "a library that imports a module", PAIR)
case("library-below", "control", "valid", "a module that imports the library", tree([0, 1, 1], [1], ROB, LIB))
case("nbytes-0", "header", "reject", "nbytes 0, nothing behind", b"")
case("nbytes-0-body", "header", "reject", "nbytes 0 before a good body", ALONE, 0)
case("rows-empty", "tree", "reject", "an indptr without words", words([]) + words([]) + LIB)
case("rows-for-none", "tree", "reject", "an indptr for no module", tree([0], []))
case("rows-for-none-library", "tree", "reject", "an indptr for no module, then a library", tree([0], [], LIB))
case("rows-for-two-modules-one", "tree", "reject", "rows for two modules, one is there", tree([0, 0, 0], [], LIB))
case("rows-for-one-modules-two", "tree", "finding", "rows for one module, two are there", tree([0, 0], [], LIB, ROB))
case("child-7-of-1", "tree", "reject", "a child that is not there", tree([0, 1], [7], LIB))
case("child-all-ones", "tree", "reject", "a child 2^64-1", tree([0, 1], [M64], LIB))
case("imports-itself", "cycle", "reject", "a module that imports itself: called", tree([0, 1], [0], LIB))
case("imports-itself-missing", "cycle", "reject", "the same: a missing name looked up", tree([0, 1], [0], LIB))
case("imports-itself-released", "cycle", "reject", "the same: released", tree([0, 1], [0], LIB))
case("import-each-other", "cycle", "reject", "two modules that import each other", tree([0, 1, 2], [1, 0], LIB, ROB))
case("child-twice", "tree", "finding", "an import that is listed twice", tree([0, 2, 2], [1, 1], LIB, ROB))
case("diamond", "tree", "valid", "two importers of one module",
     tree([0, 2, 3, 4, 4], [1, 2, 3, 3], LIB, module("rob", b"a"), module("rob", b"b"), module("rob", b"c")))
for name, count in [("2-61", 2**61), ("2-60", 2**60), ("all-ones", M64), ("2-40", 2**40), ("2-27", 2**27)]:
    case(f"rows-count-{name}", "length", "reject", f"an indptr that counts {count} words", u64(count) + (words([0, 0]) if count != 2**27 else b""))
case("children-count-2-61", "length", "reject", "indices that count 2^61 words", words([0, 0]) + u64(2**61) + LIB)
case("kind-2-63", "length", "reject", "a kind of 2^63 bytes", words([0, 0]) + words([]) + text("_lib", 2**63))
case("kind-2-62", "length", "reject", "a kind of 2^62 bytes", words([0, 0]) + words([]) + text("_lib", 2**62))
case("kind-2-31", "length", "reject", "a kind of 2^31 bytes, four are there", words([0, 0]) + words([]) + text("_lib", 2**31))
case("kind-one-too-long", "length", "reject", "a kind of five bytes, four are there", words([0, 0]) + words([]) + text("_lib", 5))
case("payload-100-of-3", "length", "reject", "a payload of 100 bytes, three are there", tree([0, 1, 1], [1], LIB, text("rob") + text(b"abc", 100)))
case("payload-empty", "length", "finding", "a payload of no bytes", tree([0, 1, 1], [1], LIB, module("rob", b"")))
case("kind-empty", "kind", "reject", "a kind without a letter", tree([0, 0], [], module("", b"x")))
for cut in [4, 8, 16, 31, 32, 36, 40, 44, 48, 52, 56, 60, 64, 67, 71, 75, 85]:
    case(f"cut-at-{cut:02}", "cut", "reject", f"cut behind {cut} of {len(PAIR)} bytes", PAIR[:cut])
case("nbytes-one-too-small", "header", "reject", "nbytes one too small", PAIR, len(PAIR) - 1)
case("nbytes-1000-too-large", "header", "reject", "nbytes 1000 too large", PAIR, len(PAIR) + 1000)
case("nbytes-all-ones", "header", "reject", "nbytes 2^64-1", PAIR, M64)
case("nbytes-all-ones-payload-2-30", "header", "reject", "nbytes 2^64-1 and a payload of 1 GiB",
     tree([0, 1, 1], [1], LIB, text("rob") + u64(2**30)), M64)
case("nbytes-all-ones-rows-2-27", "header", "reject", "nbytes 2^64-1 and an indptr of 2^27 words", u64(2**27), M64)
case("two-libraries", "kind", "reject", "the library twice", tree([0, 1, 1], [1], LIB, LIB))
case("no-library", "kind", "finding", "no library", tree([0, 0], [], ROB))
case("unknown-kind", "kind", "opaque", "a kind without a loader", tree([0, 0], [], module("no_such_kind", b"x")))
case("unknown-kind-below", "kind", "opaque", "the same as an import", tree([0, 1, 1], [1], LIB, module("no_such_kind", b"x")))
case("kind-with-nul", "kind", "reject", "a kind with a NUL in it", tree([0, 0], [], module(b"ro\0b\n", b"x")))
case("kind-not-utf8", "kind", "reject", "a kind that is not UTF-8", tree([0, 0], [], module(b"\xff\xfe", b"x")))
case("loader-returns-int", "loader", "loader", "a loader that returns a number", tree([0, 1, 1], [1], LIB, module("robint", b"x")))
case("loader-raises", "loader", "loader", "a loader that fails", tree([0, 1, 1], [1], LIB, module("robraise", b"x")))
case("rows-run-backwards", "tree", "reject", "rows that run backwards", tree([0, 2, 1], [1, 1], LIB, ROB))
case("rows-fall", "tree", "reject", "a first row behind the last", tree([5, 0], [], LIB))
case("rows-begin-at-1", "tree", "finding", "a first row that begins at 1", tree([1, 1], [0], LIB))
case("rows-end-at-3-of-0", "tree", "reject", "a row that ends behind the indices", tree([0, 3], [], LIB))
case("rows-end-at-10-6", "tree", "reject", "rows that end at a million", tree([0, 10**6, 10**6], [1], LIB, ROB))
case("rows-end-at-2-60", "tree", "reject", "a row that ends at 2^60", tree([0, 2**60], [], LIB))
case("rows-from-2-50", "tree", "reject", "a row far outside", tree([2**50, 2**50 + 1], [], LIB))
case("children-unused", "tree", "finding", "indices that no row has", tree([0, 0], [0, 0, 0], LIB))
ROB_CHAIN = lambda i: LIB if i == 0 else module("rob", b"x")
case("chain-20000-released", "depth", "finding", "a chain of 20,000, released", lambda: blob(chain(20000, ROB_CHAIN)), recipe=["chain", "rob", 20000])
case("chain-20000-missing", "depth", "finding", "a chain of 20,000, a missing name looked up", lambda: blob(chain(20000, ROB_CHAIN)), recipe=["chain", "rob", 20000])
case("chain-200000-missing", "depth", "finding", "a chain of 200,000, a missing name looked up", lambda: blob(chain(200000, ROB_CHAIN)), recipe=["chain", "rob", 200000])
case("diamonds-24", "depth", "valid", "2^24 paths, a missing name looked up", diamonds(24))
case("diamonds-28", "depth", "valid", "2^28 paths, a missing name looked up", diamonds(28))
case("libraries-20000", "depth", "reject", "a chain of 20,000 libraries", lambda: blob(chain(20000, lambda i: LIB)), recipe=["chain", "_lib", 20000])
case("libraries-200000", "depth", "reject", "a chain of 200,000 libraries", lambda: blob(chain(200000, lambda i: LIB)), recipe=["chain", "_lib", 200000])


def main():
    if len(sys.argv) > 1:
        for id, _, _, _, data, _ in CASES:
            with open(os.path.join(sys.argv[1], id + ".bin"), "wb") as file:
                file.write(data)
        return
    rows = []
    for id, family, expect, what, data, recipe in CASES:
        row = {"id": id, "family": family, "expect": expect, "what": what}
        row.update({"recipe": recipe} if recipe else {"blob": data.hex()})
        rows.append(json.dumps(row))
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "robustness.json"), "w") as file:
        file.write("[\n" + ",\n".join(rows) + "\n]\n")
    print(len(CASES), "cases")


main()
