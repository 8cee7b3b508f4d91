#!/usr/bin/env python3
"""Tables of the C functions and global functions of both interfaces, read from every release.

    spec/evidence/interfaces.py FOLDER WHEELS            writes the tables and the parts of spec/*.md that are made of them
    spec/evidence/interfaces.py FOLDER WHEELS --check    fails where they differ from what is there

FOLDER holds bare clones, as for generate.py. WHEELS holds unpacked wheels of apache-tvm-ffi, each in a folder named after its version:
the newest ones have no tag. `observe.py` writes which functions a
library registers into tables/observed.json, and c_contracts.json has a sentence for each C function.

tables/c_functions.json      by interface, C function and header: the types of its signature, and the releases that have them
tables/global_functions.json by name: the releases whose runtime registers it, where, and its parameters as the newest source states them
"""

import json
import pathlib
import re
import sys

from generate import HERE, LAST, MAIN, Clone, Tree, block, dump, ref, releases, span, version, without_comments

CONTRACTS = HERE / "c_contracts.json"
TVM_HEADERS = (
    "include/tvm/runtime/c_runtime_api.h",
    "include/tvm/runtime/c_backend_api.h",
    "include/tvm/c_dsl_api.h",
)
# What is exported without a header.
TVM_SOURCES = ("src/runtime/ndarray.cc", "src/runtime/relax_vm/builtin.cc", "src/runtime/vm/builtin.cc")
FFI_HEADERS = ("include/tvm/ffi/c_api.h", "include/tvm/ffi/extra/c_env_api.h")
RUNTIME = ("src/runtime/", "src/backend/", "ffi/src/")

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
    """The asterisk of a pointer stands at its type."""
    return re.sub(r"\s*\*\s*(?=\w|\*|$)", "* ", " ".join(text.split())).replace("* *", "**").replace("* )", "*)").replace("(* ", "(*").strip()


def balanced(text, start):
    """What stands between the bracket at `start` and the one that closes it."""
    depth = 0
    for hit in re.finditer(r'"(?:\\.|[^"\\])*"|[()\[\]{}]', text[start:]):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(hit[0], 0)
        if depth == 0:
            return text[start + 1 : start + hit.start()]
    return text[start + 1 :]


def split(arguments):
    """Arguments at the commas that are in no bracket."""
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
    """Arguments without their names, so that a renamed one is no change."""
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
    """`0.1.0..0.1.7`: from the first to the last of consecutive labels; open where it reaches the newest one."""
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


# ---------------------------------------------------------------------------------------------------- global functions


def chain(text, at):
    """The calls `.name(arguments)` that follow each other from `at` on."""
    while hit := re.match(r"\s*\.\s*(\w+)\s*\(", text[at:]):
        inner = balanced(text, at + hit.end() - 1)
        yield hit[1], inner
        at += hit.end() + len(inner) + 1


def signature(body):
    """Parameters of a lambda `[](..) -> T {`, or the text of what else is registered."""
    lambda_ = re.match(r"\s*\[[^\]]*\]\s*\(", body)
    if not lambda_:
        name = re.match(r"\s*(&?[\w:<>, ]+)", body)
        return name[1].strip() if name else ""
    inner = balanced(body, lambda_.end() - 1)
    returned = re.match(r"\s*(?:mutable\s*)?->\s*([^{]+)\{", body[lambda_.end() + len(inner) + 1 :])
    text = "(" + ", ".join(" ".join(part.split()) for part in split(inner)) + ")"
    return text + (f" -> {returned[1].strip()}" if returned else "")


def registrations(text):
    """`(name, form, parameters)` of every global function that a source file registers."""
    for hit in re.finditer(r'TVM_(?:FFI_)?REGISTER_(?:API|GLOBAL)\(\s*"([^"]+)"\s*\)', text):
        for form, body in chain(text, hit.end()):
            if form.startswith("set_"):
                yield hit[1], form, signature(body)
                break
        else:
            yield hit[1], "", ""
    for hit in re.finditer(r"\bGlobalDef\(\)", text):
        for form, body in chain(text, hit.end()):
            name = re.match(r'\s*"([^"]+)"\s*,(.*)', body, re.S)
            if name and form.startswith("def"):
                yield name[1], form, signature(name[2])


def global_functions(tvm, ffi, rows):
    found = {}
    for row in rows:
        minor = int(row["release"][2:])
        tree = Tree(tvm, ref(row["last"]), RUNTIME)
        sources = [("", tree)]
        if "tvm_ffi" in row:
            sources.append(("tvm-ffi ", Tree(ffi, ref(row["tvm_ffi"]["at"]), ("src/",))))
        for origin, source in sources:
            for path in source.paths:
                if path.startswith("src/backend/") and "/runtime/" not in path or "/testing" in path:
                    continue
                raw = source.clone.blob(source.paths[path])
                if "REGISTER_" not in raw and "GlobalDef" not in raw:
                    continue
                for name, form, parameters in registrations(source.text(path)):
                    fact = found.setdefault(name, {"minors": set()})
                    fact["minors"].add(minor)
                    fact.update(file=origin + path, packed="packed" in form or form == "set_body", parameters=parameters)
    return {
        name: {
            "releases": single(span(fact["minors"])),
            "file": fact["file"],
            "parameters": "packed" if fact["packed"] else fact["parameters"],
        }
        for name, fact in sorted(found.items())
    }


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


PREFIXES = ("ffi.", "runtime.", "device_api.", "rpc.", "tvm.rpc.", "vm.builtin.", "_", "module.", "profiling.")


# Names that a rule speaks of by their beginning.
FAMILIES = {
    "device_api.": "DEV-01", "ffi.Module.create.": "MOD-31", "ffi.Module.load_from_bytes.": "MOD-11", "ffi.Module.load_from_file.": "MOD-01",
    "module.loadbinary_": "MOD-11", "runtime.module.loadbinary_": "MOD-11", "module.loadfile_": "MOD-32", "runtime.module.loadfile_": "MOD-32",
    "runtime.timer.": "DEV-44", "profiling.timer.": "DEV-44",
}


class Rules:
    """Which rules and chapters speak of a function."""

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
        # Prose beside a rule says nothing new.
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
        releases = "<br>".join(ranges(labels, order) for labels in forms.values())
        lines.append(row(f"`{name}`", releases, "<br>".join(f"`{form}`" for form in forms), rules.of(name)))
    return "\n".join(lines)


def runtime_table(functions, observed, rules):
    """The functions of TVM's runtime, by its releases."""
    base = {name for label, names in observed.items() if label.startswith("tvm-ffi ") for name in names}
    runtimes = {label[4:].replace(" extra", "x"): names for label, names in observed.items() if label.startswith("tvm ")}
    lines = [row("name", "releases", "parameters", "seen in", "rule"), "|---|---|---|---|---|"]
    for name, fact in functions.items():
        if not name.startswith(PREFIXES) or name in base:
            continue
        seen = [label for label, names in runtimes.items() if name in names]
        # The larger library has all that the smaller one has.
        seen = [label for label in seen if not (label.endswith("x") and label[:-1] in seen)]
        stated = next((names[name] for names in reversed(runtimes.values()) if names.get(name)), "")
        parameters = stated or fact["parameters"]
        lines.append(row(f"`{name}`", fact["releases"], f"`{parameters}`" if parameters else "", ", ".join(seen), rules.of(name)))
    return "\n".join(lines)


def global_tables(functions, observed):
    rules = Rules()
    tables = base_table(observed, rules), runtime_table(functions, observed, rules)
    for title, table in zip(("tvm-ffi", "the runtime"), tables):
        rows = table.splitlines()[2:]
        print(f"global functions of {title}: {len(rows)}, without a rule: {sum(line.endswith('|  |') for line in rows)}")
    return "## The library of tvm-ffi\n\n" + tables[0] + "\n\n## The runtime of TVM\n\n" + tables[1] + "\n\n"


def section(path, mark, text):
    """`path` with `text` between the lines of `mark`."""
    begin, end = f"<!-- {mark}: written by spec/evidence/interfaces.py -->\n", f"<!-- end of {mark} -->"
    page = path.read_text()
    before, rest = page.split(begin, 1)
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
    rows = releases(tvm, ffi)
    functions, names = c_functions(tvm, wheels, rows), global_functions(tvm, ffi, rows)
    contracts = json.loads(CONTRACTS.read_text())
    observed_file = HERE / "tables/observed.json"
    observed = json.loads(observed_file.read_text()) if observed_file.is_file() else {}
    files = {
        HERE / "tables/c_functions.json": dump(functions["tvm"] | functions["tvm-ffi"]),
        HERE / "tables/global_functions.json": dump(names),
        HERE.parent / "global-functions.md": section(HERE.parent / "global-functions.md", "global functions", global_tables(names, observed)),
        HERE.parent / "structures.md": section(HERE.parent / "structures.md", "structures", structures()),
    }
    for chapter in sorted({contract["chapter"] for contract in contracts.values()}):
        page = HERE.parent / f"{chapter}.md"
        files[page] = section(page, "C functions", chapter_table(chapter, functions, contracts))
    every = set(functions["tvm"]) | set(functions["tvm-ffi"])
    print(f"C functions: {len(functions['tvm-ffi'])} of tvm-ffi, {len(functions['tvm'])} of tvm; without a contract: "
          + (", ".join(sorted(every - set(contracts))) or "none"))
    print("contracts of no function: " + (", ".join(sorted(set(contracts) - every)) or "none"))
    print(f"global functions in the source: {len(names)}")
    stale = [path.name for path, text in files.items() if not path.is_file() or path.read_text() != text]
    for path, text in files.items():
        if path.name in stale and not check:
            path.write_text(text)
    print("changed: " + (", ".join(stale) or "nothing"))
    if stale and check:
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
