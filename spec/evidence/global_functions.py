#!/usr/bin/env python3
"""The global functions that the runtime of each release registers: tables/global_functions.tsv and spec/global-functions.md.

    spec/evidence/global_functions.py FOLDER            writes both
    spec/evidence/global_functions.py FOLDER --check    fails if they differ from the existing ones

FOLDER contains bare clones, as for generate.py. A row of the table is a name, ranges of minor releases, the origin, and a place.
Options of the build have `+` between them; `-` stands for a function of every runtime, and `python` for one that a Python module registers.
The place is the library that accompanies the runtime, or the Python module. The page adds the parameters, and the observations of `observe.py`.
"""

import json
import pathlib
import re
import sys

import generate
from generate import HERE, Clone, Tree, ref, releases
from interfaces import balanced, ranges, row, section, single, split

# The sources of clones that are read here: build files state which option compiles a source.
SOURCE = (".cc", ".h", ".mm", ".cu", ".cmake", "CMakeLists.txt", ".py")
ROOMS = ("src/", "cmake/", "CMakeLists.txt", "ffi/src/", "python/tvm/")
# Packages of tvm-ffi that have no tag, and the first release of TVM that can use them.
UNTAGGED = {"tvm-ffi 0.1.14": 26, "tvm-ffi 0.1.15": 27, "tvm 0.27": 27}
# A constant spells it.
SPELLED = {"__tvm_set_device": 2}
# Names of tests, and half a name that a macro completes.
SKIPPED = re.compile(r"(?:^|\.)testing\.|\.$")
PYTHON = re.compile(r'register_(?:global_)?func\(\s*f?"([\w.-]*[._][\w.-]*)"')

# ---------------------------------------------------------------------------------------------------- what brings a source


def commands(text):
    """The commands of a CMake file: name and arguments."""
    at = 0
    while hit := re.compile(r"\b(\w+)\s*\(").search(text, at):
        depth, at, quoted = 1, hit.end(), False
        while depth and at < len(text):
            quoted ^= text[at] == '"'
            depth += 0 if quoted else {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        yield hit[1].lower(), text[hit.end() : at - 1]


def options(condition):
    """The options that must be on; those that must be off add nothing."""
    words = re.sub(r"\bNOT\s+\S+(?!\s+STREQUAL)(?=\s|$)", "", condition)
    return tuple(re.findall(r"\bUSE_\w+|\bHEXAGON_\w+", words))


def glob(pattern, recursive):
    pieces = (re.escape(piece) for piece in pattern.split("*"))
    return re.compile((".*" if recursive else "[^/]*").join(pieces) + "$")


def conditions(tree):
    """Patterns of source files and the options under which CMake compiles them."""
    found, uses = [], {}
    for path in tree.paths:
        if not path.endswith((".cmake", "CMakeLists.txt")):
            continue
        stack = []
        for word, args in commands(re.sub(r"#[^\n]*", "", tree.clone.blob(tree.paths[path]))):
            if word == "if":
                stack.append(options(args))
            elif word == "elseif" and stack:
                stack[-1] = options(args)
            elif word == "else" and stack:
                stack[-1] = ()
            elif word == "endif" and stack:
                stack.pop()
            elif "GROUP_SOURCE" not in args:  # for the folders of an IDE
                under = {option for part in stack for option in part}
                variable = re.match(r"(?:GLOB(?:_RECURSE)?|APPEND)?\s*(\w+)", args.strip())
                for pattern in re.findall(r"src/[\w./*${}-]+\.(?:cc|mm|cu)\b", args):
                    found.append((glob(pattern, "GLOB_RECURSE" in args), under, variable and variable[1]))
                for used in re.findall(r"\$\{(\w+)\}", args):
                    uses.setdefault(used, []).append(under)
    # A list that is filled anywhere counts from its use.
    used = lambda name: min(uses.get(name, [set()]), key=len)
    return [(pattern, sorted(under | used(variable))) for pattern, under, variable in found]


def brought(path, compiled):
    """Returns the origin of the functions of a source; `None` if no list that is read compiles it."""
    if path.startswith("ffi/"):
        return "-"
    # Lists that are assembled from variables, or by another build, are not read.
    for folder, option in {"/hexagon/": "USE_HEXAGON", "/rocm/": "USE_ROCM", "/sgx/": "USE_SGX"}.items():
        if folder in path:
            return option
    found = [under for pattern, under in compiled if pattern.match(path)]
    if not found:
        return None
    # A code generator adds the file without its library, and a path is not a switch.
    under = min(found, key=len)
    return "+".join(word for word in under if not word.endswith("_PATH")).replace("_CODEGEN", "_RUNTIME") or "-"


def library(path):
    if path.startswith("src/runtime/extra/"):
        return "tvm_runtime_extra"
    backend = re.match(r"src/backend/(\w+)/runtime/", path)
    return f"tvm_runtime_{backend[1]}" if backend else "-"


def is_runtime(path, minor):
    if any(part in path for part in ("/crt/", "/minrpc/", "testing", "src/contrib/hybrid/")):
        return False
    # Up to 0.5, code that runs with other libraries has a separate folder.
    rooms = ("src/runtime/", "ffi/src/", "src/support/libinfo.cc") + (("src/contrib/",) if minor <= 5 else ())
    return path.startswith(rooms) or re.match(r"src/backend/\w+/runtime/", path)


# ---------------------------------------------------------------------------------------------------- registrations


def chain(text, at):
    """The calls `.name(arguments)` that follow each other from `at` on."""
    while hit := re.match(r"\s*\.\s*(\w+)\s*\(", text[at:]):
        inner = balanced(text, at + hit.end() - 1)
        yield hit[1], inner
        at += hit.end() + len(inner) + 1


def signature(body):
    """Parameters of a lambda `[](..) -> T {`, or the text of another registered expression."""
    lambda_ = re.match(r"\s*\[[^\]]*\]\s*\(", body)
    if not lambda_:
        name = re.match(r"\s*(&?[\w:<>, ]+)", body)
        return name[1].strip() if name else ""
    inner = balanced(body, lambda_.end() - 1)
    returned = re.match(r"\s*(?:mutable\s*)?->\s*([^{]+)\{", body[lambda_.end() + len(inner) + 1 :])
    text = "(" + ", ".join(" ".join(part.split()) for part in split(inner)) + ")"
    return text + (f" -> {returned[1].strip()}" if returned else "")


def registrations(text):
    """`(name, parameters)` of every global function that a source file registers."""
    for hit in re.finditer(r'TVM_(?:FFI_)?REGISTER_(?:API|GLOBAL)\(\s*"([^"]+)"\s*\)', text):
        forms = ((form, body) for form, body in chain(text, hit.end()) if form.startswith("set_"))
        form, body = next(forms, ("", ""))
        yield hit[1], "packed" if form == "set_body" else signature(body)
    for hit in re.finditer(r"\bGlobalDef\(\)", text):
        for form, body in chain(text, hit.end()):
            name = re.match(r'\s*"([^"]+)"\s*,(.*)', body, re.S)
            if name and form.startswith("def"):
                yield name[1], "packed" if "packed" in form else signature(name[2])


def read(folder):
    """`{name: {(origin, place): minor releases}}`, and the parameters of each in the newest source."""
    generate.SOURCE = SOURCE
    tvm, ffi = Clone(pathlib.Path(folder) / "tvm.git"), Clone(pathlib.Path(folder) / "tvm-ffi.git")
    found, parameters, unread, last = {}, {}, [], 0
    for release in releases(tvm, ffi):
        last = minor = int(release["release"].split(".")[1])
        tree = Tree(tvm, ref(release["last"]), ROOMS)
        compiled, names = conditions(tree), {}
        sources = [(tree, path, brought(path, compiled), library(path)) for path in tree.paths if is_runtime(path, minor)]
        if "tvm_ffi" in release:
            own = Tree(ffi, ref(release["tvm_ffi"]["at"]), ("src/",))
            sources += [(own, path, "-", "-") for path in own.paths if "testing" not in path]
        for source, path, under, place in sources:
            raw = source.clone.blob(source.paths[path])
            if not path.endswith((".cc", ".mm", ".cu", ".h")) or ("REGISTER_" not in raw and "GlobalDef" not in raw):
                continue
            for name, taken in registrations(source.text(path)):
                if SKIPPED.search(name):
                    continue
                parameters[name] = taken
                if under is None:
                    unread.append((name, minor))
                    continue
                # If there are several files, the one that needs the fewest options: stubs and headers also count.
                if name not in names or len(under) < len(names[name][0]):
                    names[name] = under, place
        for path in tree.paths:
            if path.startswith("python/tvm/") and path.endswith(".py"):
                module = re.sub(r"(?:/__init__)?\.py$", "", path.removeprefix("python/")).replace("/", ".")
                for name in PYTHON.findall(tree.clone.blob(tree.paths[path])):
                    if not SKIPPED.search(name):
                        names.setdefault(name, ("python", module))
        names.update({name: ("-", "-") for name, since in SPELLED.items() if since <= minor})
        for name, fact in names.items():
            found.setdefault(name, {}).setdefault(fact, set()).add(minor)
    # The lists of 0.2 and 0.3 are in part those of a Makefile: the options are those of the next release.
    for name, minor in unread:
        facts = found.get(name)
        if facts is None:
            print(f"{name} of 0.{minor}: no list compiles it", file=sys.stderr)
        else:
            facts[min(facts, key=lambda fact: min(facts[fact]))].add(minor)
    return found, parameters, last


def add_untagged(found, observed, last):
    for label, names in observed.items():
        since = next((minor for start, minor in UNTAGGED.items() if label.startswith(start)), None)
        # The runtimes were observed with the newest library of tvm-ffi.
        names = [name for name in names if label.startswith("tvm-ffi") or not name.startswith("ffi.")]
        for name in names if since else ():
            if name not in found and not SKIPPED.search(name):
                found[name] = {("-", "-"): set(range(since, last + 1))}


def spans(minors):
    """`2-6 8-27`."""
    runs = []
    for minor in sorted(minors):
        if runs and runs[-1][1] == minor - 1:
            runs[-1][1] = minor
        else:
            runs.append([minor, minor])
    return " ".join(f"{a}-{b}" for a, b in runs)


def tsv(found):
    lines = ["# Global functions: name, ranges of releases, what brings it, place. Written by global_functions.py."]
    for name, facts in sorted(found.items()):
        for (under, place), minors in sorted(facts.items(), key=lambda fact: min(fact[1])):
            lines.append("\t".join((name, spans(minors), under, place)))
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------------------------------------- the page

PREFIXES = ("ffi.", "runtime.", "device_api.", "rpc.", "tvm.rpc.", "vm.builtin.", "_", "module.", "profiling.")
# Names that a rule mentions by their prefix.
FAMILIES = {
    "device_api.": "DEV-01", "ffi.Module.create.": "MOD-31", "ffi.Module.load_from_bytes.": "MOD-11", "ffi.Module.load_from_file.": "MOD-01",
    "module.loadbinary_": "MOD-11", "runtime.module.loadbinary_": "MOD-11", "module.loadfile_": "MOD-32", "runtime.module.loadfile_": "MOD-32",
    "runtime.timer.": "DEV-44", "profiling.timer.": "DEV-44",
}


class Rules:
    """The rules and chapters that mention a function."""

    def __init__(self):
        self.texts = {}
        for path in sorted(HERE.parent.glob("*.md")):
            if path.stem not in ("global-functions", "structures", "index", "README"):
                text = re.sub(r"<!-- (C functions|operations): written.*?<!-- end of", "", path.read_text(), flags=re.S)
                for part in re.split(r"^(?=#+ )", text, flags=re.M):
                    rule = re.match(r"### ([A-Z]+-\d+) ", part)
                    key = rule[1] if rule else path.stem
                    self.texts[key] = self.texts.get(key, "") + part

    def of(self, name):
        word = re.compile(r"(?<![\w.])" + re.escape(name) + r"(?![\w.]*\w)")
        if name.startswith("vm.builtin."):
            # Chapter vm names them without the prefix, in code.
            word = re.compile(word.pattern + "|`" + re.escape(name[len("vm.builtin."):]) + r"[`(]")
        found = [key for key, text in self.texts.items() if word.search(text)]
        # Prose next to a rule adds nothing.
        named = [rule for start, rule in FAMILIES.items() if name.startswith(start)] + [key for key in found if "-" in key and key[0].isupper()]
        return ", ".join(dict.fromkeys(named or found))


def base_table(observed, rules):
    """The functions of tvm-ffi's own library, by its releases."""
    libraries = {label.split()[1]: names for label, names in observed.items() if label.startswith("tvm-ffi ")}
    order = list(libraries)
    lines = [row("name", "releases", "signature", "rule"), "|---|---|---|---|"]
    for name in sorted({name for names in libraries.values() for name in names}):
        forms = {}
        for label, names in libraries.items():
            if name in names:
                forms.setdefault(names[name] or "packed", []).append(label)
        since = "<br>".join(ranges(labels, order) for labels in forms.values())
        lines.append(row(f"`{name}`", since, "<br>".join(f"`{form}`" for form in forms), rules.of(name)))
    return "\n".join(lines)


def runtime_table(found, parameters, observed, last, rules):
    """The functions of TVM's runtime, by its releases."""
    base = {name for label, names in observed.items() if label.startswith("tvm-ffi ") for name in names}
    runtimes = {label[4:].replace(" extra", "x"): names for label, names in observed.items() if label.startswith("tvm ")}
    lines = [row("name", "releases", "needs", "parameters", "seen in", "rule"), "|---|---|---|---|---|---|"]
    for name, facts in sorted(found.items()):
        native = {fact: minors for fact, minors in facts.items() if fact[0] != "python"}
        if not name.startswith(PREFIXES) or name in base or not native:
            continue
        seen = [label for label, names in runtimes.items() if name in names]
        # The larger library has everything that the smaller one has.
        seen = [label for label in seen if not (label.endswith("x") and label[:-1] in seen)]
        stated = next((names[name] for names in reversed(list(runtimes.values())) if names.get(name)), "")
        taken = stated or parameters.get(name, "")
        newest = max(native, key=lambda fact: max(native[fact]))
        needs = ", ".join(word for word in newest if word != "-")
        since = single(generate.span(set().union(*native.values())))
        lines.append(row(f"`{name}`", since, needs, f"`{taken}`" if taken else "", ", ".join(seen), rules.of(name)))
    return "\n".join(lines)


def page(found, parameters, observed, last):
    rules = Rules()
    tables = base_table(observed, rules), runtime_table(found, parameters, observed, last, rules)
    for title, table in zip(("tvm-ffi", "the runtime"), tables):
        rows = table.splitlines()[2:]
        print(f"global functions of {title}: {len(rows)}, without a rule: {sum(line.endswith('|  |') for line in rows)}")
    text = "## The library of tvm-ffi\n\n" + tables[0] + "\n\n## The runtime of TVM\n\n" + tables[1] + "\n\n"
    return section(HERE.parent / "global-functions.md", "global functions", text)


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    found, parameters, last = read(arguments[0])
    observed = json.loads((HERE / "tables/observed.json").read_text())
    add_untagged(found, observed, last)
    files = {
        HERE / "tables/global_functions.tsv": tsv(found),
        HERE.parent / "global-functions.md": page(found, parameters, observed, last),
    }
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text() != text]
    print(f"global functions in the source: {len(found)}; changed: " + (", ".join(path.name for path in stale) or "nothing"))
    if "--check" in arguments:
        sys.exit(bool(stale))
    for path in stale:
        path.write_text(files[path])


if __name__ == "__main__":
    main(sys.argv[1:])
