#!/usr/bin/env python3
"""Reads target kinds, their options and all tags from the source of every release, and writes the tables that the library includes.

    TVMSPEC_UPSTREAM=FOLDER golden/target/make.py [--check]

FOLDER has a bare clone of apache/tvm as `tvm.git`. Only facts are taken: names, types, defaults, device numbers, default keys, and
which function of this crate corresponds to the parser of a kind. `--check` compares and writes nothing.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TABLES = ROOT / "spec/tables"
TAGS = {minor: f"v0.{minor}.0" for minor in range(7, 27)} | {27: "v0.27.dev0"}
# Kinds that only the published package of 0.27 has, because the tag of the source is some weeks older; read from `apache-tvm` 0.27.0.post1.
WHEEL = {"webgpu": ("max_num_threads", ("max_shared_memory_per_block", "int", 32768))}
THOR = {
    "kind": "cuda", "arch": "sm_110a", "max_shared_memory_per_block": 232448, "max_threads_per_block": 1024, "thread_warp_size": 32,
    "registers_per_block": 65536, "l2_cache_size_bytes": 33554432,
    "host": {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-v3ae", "num-cores": 14},
}
DEVICES = {
    "kDLCPU": 1, "kDLGPU": 2, "kDLCUDA": 2, "kDLOpenCL": 4, "kDLVulkan": 7, "kDLMetal": 8, "kDLROCM": 10, "kDLExtDev": 12,
    "kDLWebGPU": 15, "kDLTrn": 18,
}
PARSERS = {
    "UpdateCUDAAttrs": "cuda", "UpdateNVPTXAttrs": "nvptx", "UpdateROCmAttrs": "rocm", "UpdateWebGPUAttrs": "webgpu",
    "TestTargetParser": "test", "ParseTarget": "cpu", "Canonicalize": "cpu",
}


def git(*args):
    clone = pathlib.Path(os.environ["TVMSPEC_UPSTREAM"]) / "tvm.git"
    return subprocess.run(["git", "-C", clone, *args], capture_output=True, text=True, check=True).stdout


def show(tag, path):
    return git("show", f"refs/tags/{tag}:{path}")


def files(tag, text, *paths):
    found = subprocess.run(
        ["git", "-C", pathlib.Path(os.environ["TVMSPEC_UPSTREAM"]) / "tvm.git", "grep", "-lF", text, f"refs/tags/{tag}", "--", *paths],
        capture_output=True, text=True,
    ).stdout
    return [line.split(":", 1)[1] for line in found.split()]


def closing(text, at):
    """Returns the index after the bracket that closes the one at `at`."""
    depth, quoted = 0, False
    for index in range(at, len(text)):
        letter = text[index]
        if letter == '"' and text[index - 1] != "\\":
            quoted = not quoted
        if quoted:
            continue
        depth += (letter in "({[") - (letter in ")}]")
        if depth == 0:
            return index + 1
    raise ValueError(text[at : at + 80])


def plain(source):
    return re.sub(r"/\*.*?\*/", "", re.sub(r"//[^\n]*", "", source), flags=re.S)


def calls(chain):
    """`.name<Type>(args)`, one after the other."""
    while match := re.match(r"\s*\.(\w+)(<[^(]*>)?\(", chain):
        end = closing(chain, match.end() - 1)
        yield match[1], (match[2] or "")[1:-1], chain[match.end() : end - 1]
        chain = chain[end:]


def type_of(text):
    text = re.sub(r"\s|ffi::|runtime::|tvm::", "", text)
    if match := re.fullmatch(r"Array<(.*)>", text):
        return f"[{type_of(match[1])}]"
    if text.startswith("Map<"):
        return "map"
    return {"String": "str", "Integer": "int", "Int": "int", "int64_t": "int", "Bool": "bool", "bool": "bool", "Target": "target"}[text]


def option(type_text, args, minor):
    name, _, rest = args.partition(",")
    default = None
    # Since 0.24, a bare number is not a default: the builder ignores what it does not know.
    if minor < 24 and re.fullmatch(r"\s*(-?\d+|true|false)\s*", rest):
        default = json.loads(rest)
    elif match := re.match(r"\s*(?:[\w:]*(?:Integer|Bool|Int|DefaultValue|String))\((.*)\)\s*$", rest, re.S):
        inner = match[1].strip()
        while wrapped := re.fullmatch(r"[\w:]+\((.*)\)", inner, re.S):
            inner = wrapped[1].strip()
        inner = re.sub(r"^static_cast<\w+>", "", inner).strip("()")
        if "<<" in inner:
            left, _, right = inner.partition("<<")
            inner = str(int(left) << int(right))
        try:
            default = json.loads(inner)
        except ValueError:
            raise ValueError(f"{name}: {rest}")
    elif re.match(r"\s*(?:[\w:]*Array<[^{]*>)?\s*\{", rest):
        default = re.findall(r'"([^"]*)"', rest)
    return json.loads(name), type_of(type_text), default


def kinds_of(tag, minor):
    header = show(tag, "include/tvm/target/target_kind.h")
    macro = plain(header.split("#define TVM_REGISTER_TARGET_KIND", 1)[1].split("\n\n")[0].replace("\\\n", "\n"))
    common = [option(kind, args, minor) for name, kind, args in calls(macro[macro.index(".set_name") :]) if name == "add_attr_option"]
    kinds = {"*": {"device": 0, "keys": [], "parser": "", "build": "", "options": common}}
    numbers = dict(DEVICES)
    enums = git("grep", "-hE", r"kDL(AOCL|Hexagon|WebGPU|SDAccel)\b *= *", f"refs/tags/{tag}", "--", "include")
    numbers |= {name: int(number) for name, number in re.findall(r"(kDL\w+) *= *(?:static_cast<DLDeviceType>\()?(\d+)", enums)}
    # DLPack has Hexagon since 0.9, so this source does not define it.
    numbers.setdefault("kDLHexagon", 16)
    for path in files(tag, "TVM_REGISTER_TARGET_KIND(", "src"):
        source = plain(show(tag, path))
        for match in re.finditer(r'TVM_REGISTER_TARGET_KIND\(\s*"([^"]+)",\s*([\w:]+)\)', source):
            kind = {"device": numbers[match[2].split("::")[-1]], "keys": [], "parser": "", "build": "", "options": []}
            if "/contrib/" in path or "/apps/" in path:
                kind["build"] = path.split("/contrib/")[-1].split("/")[0]
            for name, kind_of, args in calls(source[match.end() :]):
                if name == "add_attr_option":
                    kind["options"].append(option(kind_of, args, minor))
                elif name == "set_default_keys":
                    kind["keys"] = re.findall(r'"([^"]*)"', args)
                elif name in ("set_attrs_preprocessor", "set_target_parser", "set_target_canonicalizer"):
                    kind["parser"] = PARSERS.get(args.split("::")[-1], args.split("::")[-1])
                elif name == "set_device_type":
                    kind["device"] = numbers[args]
            if minor == 27 and match[1] in WHEEL:
                behind, more = WHEEL[match[1]]
                at = [name for name, _, _ in kind["options"]].index(behind)
                kind["options"].insert(at + 1, more)
            kinds[match[1]] = kind
    if minor == 27:
        kinds["cuda_host"] = {"device": 1, "keys": ["cpu"], "parser": "", "build": "", "options": []}
    return kinds


def value_of(text):
    """A C++ initialiser: `String("x")`, `Integer(1)`, `Array<String>{..}`, pairs of a map in braces."""
    text = text.strip()
    if match := re.match(r"(?:ffi::|runtime::)?(String|Integer|Bool|Int)\(", text):
        return value_of(text[match.end() : closing(text, match.end() - 1) - 1])
    if text[0] == '"':
        return json.loads(text)
    if "{" in text:
        is_array = re.match(r"(?:ffi::)?Array<", text)
        at = text.index("{")
        inner = parts(text[at + 1 : closing(text, at) - 1])
        if is_array:
            return [value_of(part) for part in inner]
        return {value_of(pair[0]): value_of(pair[1]) for pair in (parts(part.strip()[1:-1]) for part in inner)}
    return json.loads(text)


def parts(text):
    """Splits at the commas of the first level; those between `<` and `>` do not count."""
    found, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == '"'
        if not quoted:
            depth += (letter in "({[<") - (letter in ")}]>")
        if letter == "," and depth == 0 and not quoted:
            found.append("")
        else:
            found[-1] += letter
    return [part for part in found if part.strip()]


def tags_of(tag, minor):
    tags = {}
    if minor >= 24:
        def register_tag(name, config, override=False):
            tags[name] = config

        for path in files(tag, "register_tag(", "python/tvm/target", "python/tvm/backend"):
            if path.endswith(("/tag.py", "/registry.py")):
                continue
            source = re.sub(r"^ *from .* import .*$|^ *import .*$", "", show(tag, path), flags=re.M)
            scope = {"register_tag": register_tag, "__name__": path}
            exec(source, scope)
            if callable(scope.get("register_target_tags")):
                scope["register_target_tags"]()
        if minor == 27:
            # Only the published package has it.
            tags["nvidia/jetson-agx-thor"] = THOR
        return tags
    source = plain(show(tag, "src/target/tag.cc")).replace("\\\n", " ")
    macros = {}
    for match in re.finditer(r"#define (TVM_REGISTER_\w+)\(([^)]*)\)(.*)", source):
        macros[match[1]] = ([name.strip() for name in match[2].split(",")], match[3])
    source = re.sub(r"#(define|undef) .*", "", source)
    for match in re.finditer(r"\b(TVM_REGISTER_\w+)\(", source):
        if match[1] != "TVM_REGISTER_TARGET_TAG" and match[1] not in macros:
            continue
        end = closing(source, match.end() - 1)
        args, chain = parts(source[match.end() : end - 1]), source[end:]
        if match[1] in macros:
            names, body = macros[match[1]]
            for name, arg in zip(names, args):
                body = re.sub(rf"\b{name}\b", lambda _: arg.strip(), body)
            inner = body.index("(")
            args, chain = [body[inner + 1 : closing(body, inner) - 1]], body[closing(body, inner) :] + chain
        name = json.loads(args[0].strip())
        for call, _, value in calls(chain):
            if call == "set_config":
                tags[name] = value_of(value)
            elif call == "with_config":
                key, more = parts(value)
                tags[name][json.loads(key.strip())] = value_of(more)
    # One more is defined by the Python package.
    for match in re.finditer(r"^register_tag\(", show(tag, "python/tvm/target/tag.py"), re.M):
        python = show(tag, "python/tvm/target/tag.py")
        exec(python[match.start() : closing(python, match.end() - 1)], {"register_tag": lambda name, config: tags.update({name: config})})
    return tags


def spans(by_release):
    """`{release: {name: what}}` as (name, since, until, what), names in the order in which they first appear."""
    names = list(dict.fromkeys(name for release in sorted(by_release) for name in by_release[release]))
    for name in names:
        open_span = None
        for release in sorted(by_release):
            what = by_release[release].get(name)
            if open_span and what == open_span[2]:
                open_span[1] = release
                continue
            if open_span:
                yield name, *open_span
            open_span = [release, release, what] if what is not None else None
        if open_span:
            yield name, *open_span


def lines_of_kinds(by_release):
    for name, since, until, kind in spans(by_release):
        yield f"{since}\t{until}\t{name}\t{kind['device']}\t{','.join(kind['keys'])}\t{kind['parser']}\t{kind['build']}"
        for option_name, type_name, default in kind["options"]:
            text = "" if default is None else json.dumps(default, separators=(",", ":"))
            yield f"\t{option_name}\t{type_name}\t{text}"


def lines_of_tags(by_release):
    for name, since, until, config in spans(by_release):
        yield f"{since}\t{until}\t{name}\t{json.dumps(config, separators=(',', ':'))}"


def main(check):
    kinds = {minor: kinds_of(tag, minor) for minor, tag in TAGS.items()}
    tags = {minor: tags_of(tag, minor) for minor, tag in TAGS.items()}
    tables = {
        "target_kinds.tsv": ("first minor, last, kind, device, default keys, parser, what has to be built for it; below: option, type, default", lines_of_kinds(kinds)),
        "target_tags.tsv": ("first minor, last, tag, what it stands for", lines_of_tags(tags)),
    }
    for name, (head, lines) in tables.items():
        text = f"# {head}. Written by golden/target/make.py.\n" + "\n".join(lines) + "\n"
        if check:
            assert (TABLES / name).read_text() == text, f"{name} is not what the source of the releases has"
        else:
            (TABLES / name).write_text(text)
    for minor in TAGS:
        print(f"0.{minor}: {len(kinds[minor]) - 1} kinds, {len(tags[minor])} tags", file=sys.stderr)


if __name__ == "__main__":
    main("--check" in sys.argv[1:])
