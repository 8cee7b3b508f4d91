#!/usr/bin/env python3
"""Writes tables of the C functions and structures of both interfaces, read from every release.

    spec/evidence/interfaces.py FOLDER WHEELS            writes the tables and the parts of spec/*.md that are generated from them
    spec/evidence/interfaces.py FOLDER WHEELS --check    fails if they differ from the existing ones

FOLDER contains bare clones, as for generate.py. WHEELS contains unpacked wheels of apache-tvm-ffi, each in a folder named after its version:
the newest ones have no tag. c_contracts.json has a sentence for each C function.

tables/c_functions.json has the signatures of each C function, the header, and the releases that have them.
"""

import json
import pathlib
import re
import sys

from generate import HERE, Clone, Tree, dump, ref, releases, version, without_comments

CONTRACTS = HERE / "c_contracts.json"
TVM_HEADERS = (
    "include/tvm/runtime/c_runtime_api.h",
    "include/tvm/runtime/c_backend_api.h",
    "include/tvm/c_dsl_api.h",
)
# Functions that are exported without a header.
TVM_SOURCES = ("src/runtime/ndarray.cc", "src/runtime/relax_vm/builtin.cc", "src/runtime/vm/builtin.cc")
FFI_HEADERS = ("include/tvm/ffi/c_api.h", "include/tvm/ffi/extra/c_env_api.h")

# ---------------------------------------------------------------------------------------------------- C functions


def declarations(text):
    """`(name, signature)` of every exported function of a header without comments."""
    text = re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.M | re.S)
    for hit in re.finditer(r"\bTVM_(?:FFI_|RUNTIME_)?DLL\s+([^;{}]*?)\b(\w+)\s*\(", text):
        arguments = balanced(text, hit.end() - 1)
        result = " ".join(re.sub(r"TVM_FFI_ATTRIBUTE_PURE", "", hit[1]).split())
        if result and hit[2].startswith("TVM"):
            yield hit[2], stars(result), [stars(part) for part in split(arguments)]


def stars(text):
    """Moves the asterisk of a pointer to its type."""
    return re.sub(r"\s*\*\s*(?=\w|\*|$)", "* ", " ".join(text.split())).replace("* *", "**").replace("* )", "*)").replace("(* ", "(*").strip()


def balanced(text, start):
    """Returns the text between the bracket at `start` and the one that closes it."""
    depth = 0
    for hit in re.finditer(r'"(?:\\.|[^"\\])*"|[()\[\]{}]', text[start:]):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(hit[0], 0)
        if depth == 0:
            return text[start + 1 : start + hit.start()]
    return text[start + 1 :]


def split(arguments):
    """Splits arguments at the commas outside all brackets."""
    parts, depth, part = [], 0, ""
    for sign in re.sub(r"->", "\0", arguments):
        depth += {"(": 1, "<": 1, "[": 1, "{": 1, ")": -1, ">": -1, "]": -1, "}": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += sign
    return [part.replace("\0", "->") for part in parts + [part] if part.strip() not in ("", "void")]


def types(arguments):
    """Arguments without their names, so that a renamed one does not count as a change."""
    bare = (re.sub(r"\(\*\w+\)", "(*)", part) for part in arguments)
    return tuple(re.sub(r"(?<=[\s*&])\w+$", "", part).strip() if "(" not in part else part for part in bare)


class Functions:
    """Signatures by function, each with the labels of the releases that have it."""

    def __init__(self):
        self.rows = {}
        self.labels = []

    def read(self, label, header, text):
        if label not in self.labels:
            self.labels.append(label)
        for name, result, arguments in declarations(text):
            versions = self.rows.setdefault(name, {})
            row = versions.setdefault((result, types(arguments)), {"labels": []})
            row["labels"].append(label)
            row["text"] = f"{result} {name}({', '.join(arguments)})"
            row["header"] = header

    def table(self):
        rows = {}
        for name, versions in sorted(self.rows.items()):
            rows[name] = [
                {"signature": row["text"], "header": row["header"], "releases": ranges(row["labels"], self.labels)}
                for row in versions.values()
            ]
        return rows


def ranges(labels, order):
    """`0.1.0..0.1.7`: from the first to the last of consecutive labels; open if it reaches the newest one."""
    places = sorted({order.index(label) for label in labels})
    runs = []
    for place in places:
        if runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    last = len(order) - 1
    return single(" ".join(f"{order[since]}.." + ("" if until == last else order[until]) for since, until in runs))


def single(text):
    """`0.7` for `0.7..0.7`."""
    return re.sub(r"(?<!\S)(\S+)\.\.\1(?!\S)", r"\1", text)


def c_functions(tvm, wheels, rows):
    old, new = Functions(), Functions()
    for row in rows:
        tree = Tree(tvm, ref(row["last"]), ("include/", "ffi/include/", *TVM_SOURCES))
        for header in TVM_HEADERS + TVM_SOURCES:
            if header in tree.paths:
                old.read(row["release"], header, tree.text(header))
        for header in FFI_HEADERS:
            if row["release"] == "0.21" and "ffi/" + header in tree.paths:
                new.read("0.21", header, tree.text("ffi/" + header))
    for folder in wheels:
        for header in FFI_HEADERS:
            path = folder / "tvm_ffi/include" / header.removeprefix("include/")
            if path.is_file():
                new.read(folder.name, header, without_comments(Texts({path: path.read_text()}), path))
    return {"tvm": old.table(), "tvm-ffi": new.table()}


class Texts:
    """Files that are in no clone."""

    def __init__(self, texts):
        self.blob = texts.__getitem__


# ---------------------------------------------------------------------------------------------------- the pages


def escaped(text):
    return text.replace("|", "\\|")


def row(*cells):
    return "| " + " | ".join(escaped(cell) for cell in cells) + " |"


def chapter_table(chapter, functions, contracts):
    """The C functions of a chapter, newest interface first."""
    lines = []
    for interface, title in (("tvm-ffi", "tvm-ffi"), ("tvm", "0.2 to 0.20")):
        names = [name for name in contracts if contracts[name]["chapter"] == chapter and name in functions[interface]]
        if not names:
            continue
        lines += [f"Interface of {title}:", "", row("function", "releases", "contract"), "|---|---|---|"]
        for name in names:
            versions = functions[interface][name]
            signatures = "<br>".join(f"`{version['signature']}`" for version in versions)
            spans = "<br>".join(version["releases"] for version in versions)
            lines.append(row(signatures, spans, contracts[name]["contract"]))
        lines.append("")
    return "\n".join(lines)


def section(path, mark, text):
    """`path` with `text` between the lines of `mark`."""
    before, begin, rest = re.split(f"(<!-- {mark}: written by .*\n)", path.read_text(), maxsplit=1)
    end = f"<!-- end of {mark} -->"
    return before + begin + "\n" + text + end + rest.split(end, 1)[1]


def structures():
    """Members of every public structure with offset and size, by layout."""
    layouts = json.loads((HERE.parent.parent / "golden/value/struct-layouts.json").read_text())["layouts"]
    titles = [name_of(layout) for layout in layouts]
    names = list(dict.fromkeys(name for layout in reversed(layouts) for name in layout["structs"]))
    lines = []
    for name in names:
        lines += [f"`{name}`:", "", row("member", *titles), "|---|" + "---|" * len(titles)]
        here = [layout["structs"].get(name, {"size": "-", "fields": {}}) for layout in layouts]
        members = list(dict.fromkeys(member for struct in reversed(here) for member in struct["fields"]))
        members.sort(key=lambda member: next(s["fields"][member][0] for s in reversed(here) if member in s["fields"]))
        for member in members:
            cells = (f"{s['fields'][member][0]}, {s['fields'][member][1]}" if member in s["fields"] else "-" for s in here)
            lines.append(row(f"`{member}`", *cells))
        lines += [row("all bytes", *(str(struct["size"]) for struct in here)), ""]
    return "\n".join(lines)


def name_of(layout):
    first, last = layout["releases"][0], layout["releases"][-1]
    if layout["of"] == "tvm":
        return first.removesuffix(".0")
    return first if first == last else f"{first} to {last}"


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    folder, check = pathlib.Path(arguments[0]), "--check" in arguments
    wheels = sorted((path for path in pathlib.Path(arguments[1]).iterdir() if path.is_dir()), key=lambda path: version(path.name))
    tvm, ffi = Clone(folder / "tvm.git"), Clone(folder / "tvm-ffi.git")
    functions = c_functions(tvm, wheels, releases(tvm, ffi))
    contracts = json.loads(CONTRACTS.read_text())
    files = {
        HERE / "tables/c_functions.json": dump(functions["tvm"] | functions["tvm-ffi"]),
        HERE.parent / "structures.md": section(HERE.parent / "structures.md", "structures", structures()),
    }
    for chapter in sorted({contract["chapter"] for contract in contracts.values()}):
        page = HERE.parent / f"{chapter}.md"
        files[page] = section(page, "C functions", chapter_table(chapter, functions, contracts))
    every = set(functions["tvm"]) | set(functions["tvm-ffi"])
    print(f"C functions: {len(functions['tvm-ffi'])} of tvm-ffi, {len(functions['tvm'])} of tvm; without a contract: "
          + (", ".join(sorted(every - set(contracts))) or "none"))
    print("contracts of no function: " + (", ".join(sorted(set(contracts) - every)) or "none"))
    stale = [path.name for path, text in files.items() if not path.is_file() or path.read_text() != text]
    for path, text in files.items():
        if path.name in stale and not check:
            path.write_text(text)
    print("changed: " + (", ".join(stale) or "nothing"))
    if stale and check:
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
