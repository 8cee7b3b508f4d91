#!/usr/bin/env python3
"""Writes functions.tsv: the global functions that the runtime of each release registers, and the build option that brings each.

usage: src/examine/runtime/functions.py FOLDER > src/examine/runtime/functions.tsv

FOLDER holds bare clones: tvm.git of apache/tvm and tvm-ffi.git of apache/tvm-ffi. A row is a name, ranges of minor releases, options with
`+` between (`-` for a function that every runtime has, `python` for one that only a Python module registers, `compiler` for one that is
in compilers alone), and the place: the folder of a library of its own, or of a Python module.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "spec" / "evidence"))
import generate  # noqa: E402

generate.SOURCE = (".cc", ".h", ".mm", ".cu", ".cmake", "CMakeLists.txt", ".py")
ROOMS = ("src/", "cmake/", "CMakeLists.txt", "ffi/src/", "3rdparty/", "python/tvm/")
# Registration macros of all eras; a name may stand on the next line, and 0.22 chains `.def("name", ..)`.
NAMED = re.compile(r'(?:REGISTER_GLOBAL|\bdef|\bdef_packed|\bdef_method|REGISTER_OBJECT_\w+)\(\s*"([^"\s]+)"')
PYTHON = re.compile(r'(?:register_func|register_global_func)\(\s*f?"([^"\s{]+)"')


def conditions(tree):
    """Patterns of source files and the options under which CMake compiles them."""
    found = []
    for path in tree.paths:
        if not path.endswith((".cmake", "CMakeLists.txt")) or path.startswith("3rdparty/"):
            continue
        text = re.sub(r"#[^\n]*", "", tree.clone.blob(tree.paths[path]))
        stack = []
        for word, args in commands(text):
            if word == "if":
                stack.append(options(args))
            elif word == "elseif" and stack:
                stack[-1] = options(args)
            elif word == "else" and stack:
                stack[-1] = ()
            elif word == "endif" and stack:
                stack.pop()
            else:
                if "GROUP_SOURCE" in args:  # for the folders of an IDE
                    continue
                under = sorted({option for part in stack for option in part})
                for pattern in re.findall(r"(?:src|3rdparty)/[\w./*${}-]+\.(?:cc|mm|cu)\b", args):
                    recursive = "GLOB_RECURSE" in args
                    found.append((glob(pattern, recursive), tuple(under)))
    return found


def commands(text):
    """The commands of a CMake file: name and arguments."""
    at = 0
    while hit := re.compile(r"\b(\w+)\s*\(").search(text, at):
        depth, at = 1, hit.end()
        quoted = False
        while depth and at < len(text):
            quoted ^= text[at] == '"'
            depth += 0 if quoted else {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        yield hit[1].lower(), text[hit.end() : at - 1]


def options(condition):
    """The options that must be on; those that must be off bring nothing."""
    words = re.sub(r"\bNOT\s+\S+(?!\s+STREQUAL)(?=\s|$)", "", condition)
    return tuple(re.findall(r"\bUSE_\w+|\bHEXAGON_\w+", words))


def glob(pattern, recursive):
    pieces = (re.escape(piece) for piece in pattern.split("*"))
    return re.compile((".*" if recursive else "[^/]*").join(pieces) + "$")


def brought(path, compiled):
    if path.startswith("ffi/"):
        return "-"
    if path.startswith("python/"):
        return "python"
    # The lists of Hexagon are put together from variables, which are not read.
    for folder, option in {"/hexagon/": "USE_HEXAGON", "/rocm/": "USE_ROCM"}.items():
        if folder in path:
            return option
    found = [under for pattern, under in compiled if pattern.match(path)]
    if not found:
        # Compiled by no list that is read.
        return None
    # A code generator brings the file without its library, and a path is no switch.
    under = min(found, key=len)
    return "+".join(word for word in under if not word.endswith("_PATH")).replace("_CODEGEN", "_RUNTIME") or "-"


def library(path):
    if path.startswith("src/runtime/extra/"):
        return "tvm_runtime_extra"
    backend = re.match(r"src/backend/(\w+)/runtime/", path)
    if backend:
        return f"tvm_runtime_{backend[1]}"
    if path.startswith("python/"):
        return re.sub(r"(?:/__init__)?\.py$", "", path.removeprefix("python/")).replace("/", ".")
    return "-"


def is_runtime(path):
    return path.startswith(("src/runtime/", "ffi/src/")) or re.match(r"src/backend/\w+/runtime/", path)


def main(folder):
    tvm = generate.Clone(pathlib.Path(folder) / "tvm.git")
    ffi = generate.Clone(pathlib.Path(folder) / "tvm-ffi.git")
    rows = collections.defaultdict(set)
    unread = collections.Counter()
    for row in generate.releases(tvm, ffi):
        minor = int(row["release"].split(".")[1])
        tree = generate.Tree(tvm, generate.ref(row["last"]), ROOMS)
        compiled = conditions(tree)
        names = {}
        for path in tree.paths:
            if "/crt/" in path or "/minrpc/" in path or "testing" in path:
                continue
            if is_runtime(path) and path.endswith((".cc", ".mm", ".cu", ".h")):
                for name in NAMED.findall(tree.text(path)):
                    under = brought(path, compiled)
                    if under is None:
                        unread[path] += 1
                        continue
                    # Of several files the one that needs the fewest options: stubs and headers count as one of them.
                    fact = (under, library(path))
                    if name not in names or len(fact[0]) < len(names[name][0]):
                        names[name] = fact
        for path in tree.paths:
            if re.match(r"python/tvm/(?:contrib|relax|runtime|topi)/.*\.py$", path):
                for name in PYTHON.findall(tree.clone.blob(tree.paths[path])):
                    names.setdefault(name, ("python", library(path)))
        for name, fact in names.items():
            if "." in name:
                rows[(name, *fact)].add(minor)
    print("# Global functions: name, ranges of releases, options that bring it, place. Written by functions.py.")
    for (name, under, place), minors in sorted(rows.items()):
        ranges = []
        for minor in sorted(minors):
            if ranges and ranges[-1][1] == minor - 1:
                ranges[-1][1] = minor
            else:
                ranges.append([minor, minor])
        print(name, " ".join(f"{a}-{b}" for a, b in ranges), under, place, sep="\t")
    for path, count in unread.most_common():
        print(f"{path} has {count} functions, and no list compiles it", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
