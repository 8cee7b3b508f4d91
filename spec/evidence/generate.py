#!/usr/bin/env python3
"""Writes tables of the enumerations in upstream's source, read from every release: `tables/*.json`.

    spec/evidence/generate.py FOLDER            writes the tables
    spec/evidence/generate.py FOLDER --check    fails if they differ from the existing ones

FOLDER contains bare clones: tvm.git of apache/tvm and tvm-ffi.git of apache/tvm-ffi. Python 3.9 and git suffice. A row states in
which releases something is so, in the form of a range: `0.2..0.6`, `0.7..`, or several with blanks between.
`tests/project/evidence.rs` compares the tables with the code of this crate.
"""

import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LAST = 27
# 0.27 has no tag in either repository: these are the newest commits that were read.
MAIN = {"tvm": "5d4dc87213", "tvm-ffi": "620fece9"}
SOURCE = (".cc", ".h", ".mm")
ROOMS = ("src/", "include/", "web/emcc/", "ffi/include/", "ffi/src/", "topi/")


class Clone:
    """A bare clone, read by one `git cat-file`."""

    def __init__(self, path):
        self.git = ["git", "--git-dir", str(path)]
        self.batch = subprocess.Popen(
            self.git + ["cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.texts = {}

    def run(self, *words):
        return subprocess.run(self.git + list(words), check=True, capture_output=True, text=True).stdout

    def blob(self, name):
        """The text of an object, kept: most files are the same in many releases."""
        if name not in self.texts:
            self.batch.stdin.write(name.encode() + b"\n")
            self.batch.stdin.flush()
            head = self.batch.stdout.readline().split()
            if head[-1] == b"missing":
                raise KeyError(name)
            data = self.batch.stdout.read(int(head[2]) + 1)[:-1]
            self.texts[name] = data.decode("utf-8", "replace")
        return self.texts[name]

    def files(self, commit, rooms):
        """Object names of the C++ files of a commit, by path."""
        found = {}
        for line in self.run("ls-tree", "-r", commit, *rooms).splitlines():
            meta, path = line.split("\t")
            if path.endswith(SOURCE):
                found[path] = meta.split()[2]
        return found


class Tree:
    """The source of one release, without comments."""

    def __init__(self, clone, commit, rooms):
        self.clone = clone
        self.paths = clone.files(commit, rooms)

    def text(self, path):
        return without_comments(self.clone, self.paths[path])

    def having(self, needle, rooms=("",)):
        for path in self.paths:
            if path.startswith(rooms) and needle in self.clone.blob(self.paths[path]):
                yield path, self.text(path)


CLEAN = {}


def without_comments(clone, name):
    if name not in CLEAN:
        strings = r'"(?:\\.|[^"\\\n])*"'
        comments = r"//[^\n]*|/\*.*?\*/"
        text = re.sub(
            f"({strings})|{comments}", lambda hit: hit[1] or " ", clone.blob(name), flags=re.S
        )
        CLEAN[name] = text
    return CLEAN[name]


def block(text, at):
    """The text between the next brace and the one that closes it."""
    start = text.find("{", at)
    depth = 0
    for hit in re.finditer(r'"(?:\\.|[^"\\\n])*"|[{}]', text[start:]):
        depth += {"{": 1, "}": -1}.get(hit[0], 0)
        if depth == 0:
            return text[start + 1 : start + hit.start()]
    return text[start + 1 :]


# ---------------------------------------------------------------------------------------------------- releases


def version(tag):
    return tuple(int(part) for part in re.findall(r"\d+", tag))


def releases(tvm, ffi):
    """The tags of each release, and the commit of tvm-ffi on which it is built."""
    tags = [tag for tag in tvm.run("tag").split() if re.fullmatch(r"v0\.\d+(\.\d+)?(\.post\d+)?", tag)]
    rows = []
    for minor in range(2, LAST + 1):
        own = sorted((tag for tag in tags if version(tag)[1] == minor), key=version)
        own = own or [MAIN["tvm"]]
        row = {"release": f"0.{minor}", "first": own[0], "last": own[-1]}
        if minor >= 22:
            link = tvm.run("ls-tree", ref(own[-1]), "3rdparty/tvm-ffi").split()[2]
            commit = MAIN["tvm-ffi"] if minor == LAST else link
            at = ffi.run("describe", "--tags", commit).strip()
            exact = "-g" not in at
            row["tvm_ffi"] = {"at": at if exact else commit[:8], "behind": re.sub(r"-\d+-g.*", "", at)}
        rows.append(row)
    return rows


def ref(tag):
    """A tag; there are branches of the same names."""
    return f"refs/tags/{tag}" if tag.startswith("v") else tag


# ---------------------------------------------------------------------------------------------------- ranges


def span(minors):
    """`[2, 3, 4, 7]` as `0.2..0.4 0.7..0.7`."""
    parts = []
    for minor in sorted(minors):
        if parts and parts[-1][1] == minor - 1:
            parts[-1][1] = minor
        else:
            parts.append([minor, minor])
    texts = [f"0.{since}.." + ("" if until == LAST else f"0.{until}") for since, until in parts]
    return " ".join(texts)


class Table:
    """Facts by release, turned into ranges by fact."""

    def __init__(self):
        self.facts = {}

    def add(self, minor, *fact):
        self.facts.setdefault(fact, set()).add(minor)

    def nested(self):
        """`{first: {second: ... range}}`."""
        top = {}
        for fact in sorted(self.facts, key=lambda fact: tuple(map(order, fact))):
            place = top
            for part in fact[:-1]:
                place = place.setdefault(str(part), {})
            place[str(fact[-1])] = span(self.facts[fact])
        return top


def order(part):
    return (0, part, "") if isinstance(part, int) else (1, 0, part)


# ---------------------------------------------------------------------------------------------------- kinds

SAVE = r"(?:SaveToBinary|SaveToBytes)"
MASKS = {"kBinarySerializable": 1, "kRunnable": 2, "kDSOExportable": 4, "kCompilationExportable": 4}


def classes(tree):
    """Classes that name a kind, state a mask, or save themselves: name -> these facts."""
    found = {}
    for path in tree.paths:
        raw = tree.clone.blob(tree.paths[path])
        if not re.search(SAVE + r"|type_key\(|kind\(\) const|PropertyMask|VTABLE_BEGIN", raw):
            continue
        text = tree.text(path)
        # Both virtual machines call their class Executable.
        room = "relax " if "/relax_vm/" in path else ""
        for hit in re.finditer(r"\b(?:class|struct)\s+(?:[A-Z_]{4,}\s+)?(\w+)(?:\s+final)?\s*(?::\s*([^{;]*))?\{", text):
            body = block(text, hit.start())
            row = found.setdefault(room + hit[1], {"bases": set(), "key": set(), "mask": set(), "writes": set()})
            row["bases"] |= set(re.findall(r"(\w+)(?:<[^>]*>)?\s*(?:,|$)", (hit[2] or "").strip()))
            read_class(row, body, "")
        for name in set(re.findall(r"\b(\w+)::(?:\w*Property\w*|type_key|kind|" + SAVE + r")\(", text)):
            row = found.setdefault(room + name, {"bases": set(), "key": set(), "mask": set(), "writes": set()})
            read_class(row, text, name + "::")
    return found


def read_class(row, body, owner):
    for hit in re.finditer(owner + r"(?:type_key|kind)\(\) const[^{;]*\{", body):
        returned = block(body, hit.start())
        row["key"] |= set(re.findall(r'return "([^"]*)"', returned))
        # The kind of an OpenCL module is that of its workspace.
        row["key"] |= {"opencl"} if "workspace_->type_key" in returned else set()
    row["key"] |= set(re.findall(r'TVM_MODULE_VTABLE_BEGIN\("([^"]*)"\)', body)) if not owner else set()
    for hit in re.finditer(owner + r"GetPropertyMask\(\) const[^{;]*\{", body):
        words = re.findall(r"\bk[A-Z]\w+", block(body, hit.start()))
        row["mask"].add(sum(MASKS[word] for word in set(words) if word in MASKS))
    for hit in re.finditer(owner + SAVE + r"\([^)]*\)[^{;]*\{", body):
        row["writes"].add(writes(block(body, hit.start())))


def writes(body):
    """Returns the written values, in order: the last name of each argument, without underscores and similar characters."""
    if re.search(r"\b(?:LOG\(FATAL\)|TVM_FFI_THROW)", body) and "Write" not in body:
        return None
    names = []
    for hit in re.finditer(r"(?:\bWrite(?:<[^>]*>)?|\b(Save\w*))\(((?:[^()]|\([^()]*\))*)\)", body):
        words = re.findall(r"[A-Za-z]\w*", hit[2])
        words = [word for word in words if word not in ("strm", "stream", "writer", "static_cast", "c_str", "length")]
        names.append(words[-1].strip("_").lower() if words else hit[1] or "?")
    return " ".join(names)


def inherited(found, name, member, seen=()):
    row = found.get(name)
    if row is None or name in seen:
        return set()
    if row[member]:
        return row[member]
    values = set()
    for base in row["bases"]:
        values |= inherited(found, base, member, (*seen, name))
    return values


def kinds(table, minor, tree):
    for path in tree.paths:
        raw = tree.clone.blob(tree.paths[path])
        if "loadbinary_" not in raw and "load_from_bytes." not in raw:
            continue
        pattern = r'(?:REGISTER_GLOBAL|def|def_packed)\(\s*"(?:runtime\.)?(?:ffi\.)?[Mm]odule\.(?:loadbinary_|load_from_bytes\.)([^"]+)"'
        for kind in re.findall(pattern, tree.text(path)):
            table.add(minor, kind, "loaded in the browser" if path.startswith("web/") else "loaded")
    found = classes(tree)
    for name, row in found.items():
        for key in row["key"]:
            stored = inherited(found, name, "writes") - {None}
            for text in stored:
                table.add(minor, key, "writes", text)
            if minor >= 12:
                for mask in inherited(found, name, "mask") or {0}:
                    table.add(minor, key, "mask", mask)
    # Modules for boards are those of OpenCL, under the names of their workspaces.
    boards = set()
    for _, text in tree.having("OpenCLWorkspace::Init", ("src/runtime/opencl/",)):
        boards |= set(re.findall(r'OpenCLWorkspace::Init\("(\w+)"', text))
    for board in boards - {"opencl"}:
        for text in inherited(found, "OpenCLModuleNode", "writes"):
            table.add(minor, board, "writes", text)
        for mask in inherited(found, "OpenCLModuleNode", "mask") if minor >= 12 else ():
            table.add(minor, board, "mask", mask)
    for path, text in tree.having("DeviceSourceModuleCreate"):
        for call in re.findall(r"DeviceSourceModuleCreate\(((?:[^()]|\([^()]*\))*)\)\s*;", text):
            for key in re.findall(r'"([^"]+)"', call)[-1:]:
                table.add(minor, key, "source module")


# ---------------------------------------------------------------------------------------------------- devices


def enum(text, name):
    """`{member: number}` of an enumeration, with gaps and names of other members as values."""
    hit = re.search(rf"\benum\s+(?:class\s+)?{name}\b[^{{;]*\{{", text)
    if hit:
        body = block(text, hit.start())
    else:
        hit = re.search(rf"\}}\s*{name}\s*;", text)
        if not hit:
            return {}
        body = text[text.rindex("{", 0, hit.start()) + 1 : hit.start()]
    body = re.sub(r"^\s*#.*$", "", body, flags=re.M)
    numbers, next_number = {}, 0
    for part in body.split(","):
        words = re.match(r"\s*(\w+)\s*(?:=\s*(.+?))?\s*$", part, re.S)
        if not words:
            continue
        value = words[2]
        if value:
            value = re.sub(r"static_cast<\w+>\((.*)\)", r"\1", value.strip())
            value = re.sub(r"\b(\d+)[uU]\b", r"\1", value)
            try:
                next_number = numbers[value] if value in numbers else int(value, 0)
            except ValueError:
                if re.fullmatch(r"[\w\s+|()<-]+", value):
                    try:
                        next_number = eval(value, {"__builtins__": {}}, dict(numbers))
                    except Exception:
                        continue
                else:
                    continue
        numbers[words[1]] = next_number
        next_number += 1
    return numbers


def device_numbers(tree):
    """The values of kDL names, kExtDev and similar ones."""
    numbers = {}
    for name in ("TVMDeviceExtType", "TVMDeviceType", "TVMDeviceExtType_"):
        for _, text in tree.having(name, ("include/",)):
            numbers.update(enum(text, name))
    return numbers


DLPACK = {
    # dlpack is a submodule; its numbers never changed.
    "kDLCPU": 1, "kDLGPU": 2, "kDLCUDA": 2, "kDLCPUPinned": 3, "kDLCUDAHost": 3, "kDLOpenCL": 4, "kDLVulkan": 7,
    "kDLMetal": 8, "kDLVPI": 9, "kDLROCM": 10, "kDLROCMHost": 11, "kDLExtDev": 12, "kDLCUDAManaged": 13,
    "kDLOneAPI": 14, "kDLWebGPU": 15, "kDLHexagon": 16, "kDLMAIA": 17, "kDLTrn": 18,
}


def devices(table, minor, tree):
    numbers = {**DLPACK, **device_numbers(tree)}
    for _, text in tree.having("DLDeviceType2Str" if minor >= 14 else "DeviceName(int", ("include/", "src/runtime/c_runtime_api")):
        for hit in re.finditer(r"(?:DeviceName|DLDeviceType2Str)\(int \w+\)\s*\{", text):
            for case, name in re.findall(r'case\s+(?:static_cast<int>\()?([\w:]+)\)?\s*:\s*return "(\w+)"', block(text, hit.start())):
                case = case.split("::")[-1]
                number = int(case) if case.isdigit() else numbers.get(case, case)
                table.add(minor, number, name)


def attributes(table, minor, tree):
    for _, text in tree.having("enum DeviceAttrKind", ("include/",)):
        for name, number in enum(text, "DeviceAttrKind").items():
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[1:]).lower()
            table.add(minor, words, number)


# ---------------------------------------------------------------------------------------------------- numbers and names


def type_codes(legacy, indices, minor, tree, ffi):
    for name in ("TVMArgTypeCode", "TVMTypeCode"):
        for _, text in tree.having(name, ("include/tvm/runtime/c_runtime_api.h",)):
            for member, number in {**enum(text, "TVMArgTypeCode"), **enum(text, "TVMTypeCode")}.items():
                legacy.add(minor, re.sub("^k(TVM)?", "", member), number)
    for _, text in ffi.having("TVMFFITypeIndex", ("include/tvm/ffi/c_api.h", "ffi/include/tvm/ffi/c_api.h")):
        for member, number in enum(text, "TVMFFITypeIndex").items():
            indices.add(minor, member.replace("kTVMFFI", ""), number)


DLPACK_TYPES = {
    # Also from the submodule. Those above 5 were introduced by tvm-ffi.
    "kDLInt": 0, "kDLUInt": 1, "kDLFloat": 2, "kDLOpaqueHandle": 3, "kDLBfloat": 4, "kDLComplex": 5, "kDLBool": 6,
    "kDLFloat8_e3m4": 7, "kDLFloat8_e4m3": 8, "kDLFloat8_e4m3b11fnuz": 9, "kDLFloat8_e4m3fn": 10,
    "kDLFloat8_e4m3fnuz": 11, "kDLFloat8_e5m2": 12, "kDLFloat8_e5m2fnuz": 13, "kDLFloat8_e8m0fnu": 14,
    "kDLFloat6_e2m3fn": 15, "kDLFloat6_e3m2fn": 16, "kDLFloat4_e2m1fn": 17, "kHandle": 3, "kTVMOpaqueHandle": 3,
}


def code_names(table, minor, tree):
    """The names of type codes of arguments in messages up to 0.20. The three numbers are those of element types."""
    numbers = {"kDLInt": 0, "kDLUInt": 1, "kDLFloat": 2}
    for _, text in tree.having("TypeCode", ("include/tvm/runtime/c_runtime_api.h",)):
        numbers.update({**enum(text, "TVMArgTypeCode"), **enum(text, "TVMTypeCode")})
    function = "ArgTypeCode2Str" if minor >= 7 else "TypeCode2Str"
    for _, text in tree.having(function, ("include/tvm/runtime/packed_func.h",)):
        for hit in re.finditer(rf"\b{function}\(int \w+\)[^;{{]*\{{", text):
            for case, name in re.findall(r'case\s+(\w+)\s*:\s*return "(\w+)"', block(text, hit.start())):
                if case in numbers:
                    table.add(minor, numbers[case], name)


def dtypes(names, minor, tree, ffi):
    """Names of element types in texts, and their codes."""
    own, cases = {}, []
    for source in (tree, ffi):
        for path in source.paths:
            if not re.search(r"(?:runtime/(?:data_type|packed_func|c_runtime_api)\.h|ffi/.*dtype\.\w+)$", path):
                continue
            text = source.text(path)
            for enumeration in ("TypeCode", "DLExtDataTypeCode"):
                own.update(enum(text, enumeration))
            for hit in re.finditer(r"(?:TypeCode2Str|DLDataTypeCode\w*Str|TypeCodeToString)\((?:int|DLDataTypeCode|uint8_t) \w+\)[^;{]*\{", text):
                cases += re.findall(r'case\s+([\w:]+)\s*:\s*(?:\{\s*)?return "(\w+)"', block(text, hit.start()))
    for case, name in cases:
        number = {**own, **DLPACK_TYPES}.get(case.split("::")[-1])
        if number is not None:
            names.add(minor, name, number)


# ---------------------------------------------------------------------------------------------------- functions


def builtins(table, minor, tree):
    """Global functions that Relax VM code calls."""
    pattern = r'(?:REGISTER_GLOBAL|def|def_packed|def_method)\(\s*"(vm\.builtin\.[^"]+|relax\.vm\.builtin[^"]*)"'
    for _, text in tree.having("vm.builtin", ("src/",)):
        for name in re.findall(pattern, text):
            table.add(minor, name)


EXECUTORS = {
    "graph": r"src/runtime/graph(?:_runtime|_executor)?/graph_(?:runtime|executor)\.cc",
    "debug": r"src/runtime/graph(?:_runtime|_executor)?/debug/graph_(?:runtime|executor)_debug\.cc",
    "factory": r"src/runtime/graph(?:_runtime|_executor)?/graph_(?:runtime|executor)_factory\.cc",
}


def executors(table, minor, tree):
    for executor, pattern in EXECUTORS.items():
        for path in tree.paths:
            if re.fullmatch(pattern, path):
                for hit in re.finditer(r"::GetFunction\([^)]*\)[^{;]*\{", tree.text(path)):
                    for name in re.findall(r'\bname == "([^"]+)"', block(tree.text(path), hit.start())):
                        table.add(minor, executor, name)


# ---------------------------------------------------------------------------------------------------- all of it


def dump(table):
    """JSON with one row a line."""
    if isinstance(table, list):
        return "[\n" + ",\n".join("  " + json.dumps(row) for row in table) + "\n]\n"
    rows = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in table.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


def generate(folder):
    tvm, ffi = Clone(folder / "tvm.git"), Clone(folder / "tvm-ffi.git")
    rows = releases(tvm, ffi)
    names = ("kinds", "devices", "attributes", "type_codes", "type_code_names", "type_indices", "dtype_names", "vm_builtins", "executors")
    tables = {name: Table() for name in names}
    for row in rows:
        minor = int(row["release"][2:])
        tree = Tree(tvm, ref(row["last"]), ROOMS)
        # In 0.21 tvm-ffi is a folder of TVM; before that, it does not exist.
        at = row.get("tvm_ffi")
        base = Tree(ffi, ref(at["at"]), ("include/", "src/")) if at else tree
        kinds(tables["kinds"], minor, tree)
        devices(tables["devices"], minor, tree)
        attributes(tables["attributes"], minor, tree)
        type_codes(tables["type_codes"], tables["type_indices"], minor, tree, base)
        code_names(tables["type_code_names"], minor, tree)
        dtypes(tables["dtype_names"], minor, tree, base)
        builtins(tables["vm_builtins"], minor, tree)
        executors(tables["executors"], minor, tree)
    return {"releases": rows, **{name: table.nested() for name, table in tables.items()}}


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    stale = []
    for name, table in generate(pathlib.Path(arguments[0])).items():
        path = HERE / "tables" / f"{name}.json"
        text = dump(table)
        if not path.is_file() or path.read_text() != text:
            stale.append(path.name)
            if "--check" not in arguments:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
    print("changed: " + (", ".join(stale) or "nothing"))
    if stale and "--check" in arguments:
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
