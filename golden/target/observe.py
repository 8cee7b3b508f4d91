#!/usr/bin/env python3
"""Records the results of the TVM of this Python for targets: every kind, every option, every tag, and random texts and objects.

    observe.py OUT [--seed N] [--count N] [--every] [--cases FOLDER]

Shares no code with the library: options come from the registry of the release, and everything else from a list of oddities below.
"""

import argparse
import json
import logging
import os
import pathlib
import random
import re
import sys

os.environ.setdefault("TVM_LOG_DEBUG", "")
import tvm

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
import cases as conformance  # noqa: E402

logging.disable(logging.CRITICAL)
MINOR = int(re.match(r"0\.(\d+)", tvm.__version__)[1])
ODD_WORDS = ["--", "x", "-x", "-=1", "-mcpu=", "-keys=a,b", "-device=foo", "-kind=c", "-tag=t", "-libs=a,,b", "-model", "-mcpu='a b'",
             "-mcpu=a=b", "-mattr=+a,-b", "-mattr='+a,+b',c", "-host=llvm", "-host=nope", "-from_device", "-mcpu", "-mcpu=\\'q\\'", "'-mcpu=a b'",
             "-model=a\\\\b", "-mattr='a", "-mtriple=aarch64-linux-gnu", "-mcpu=cortex-m33", "-mcpu=sm_80", "-mcpu=gfx906", "-arch=80", "-arch=sm_75"]
NUMBERS = ["0", "7", "-3", "+4", "12abc", "abc", "true", "False", "TRUE", "99999999999", "0x10", "1.5", "' 5'"]
TEXTS = ["a", "sm_80", "sm_9a", "gfx900", "gfx90a", "x=y", "'a b'", "\\'z\\'", "a,b", "cortex-m4", "cortex-m55+nomve", "arm-linux", "nvptx64-nvidia-cuda"]


def plain(value):
    """Converts a value of either era to JSON."""
    name = type(value).__name__
    if value is None or isinstance(value, (bool, float, str)):
        return str(value) if isinstance(value, str) else value
    if name in ("IntImm", "Bool", "BoxBool", "BoxInt", "BoxFloat"):
        return int(value.value) if name == "IntImm" else value.value
    if isinstance(value, int):
        return int(value)
    if name == "Target":
        return plain(exported(value))
    if hasattr(value, "items"):
        return {str(key): plain(of) for key, of in value.items()}
    if name == "String":
        return str(value)
    return [plain(item) for item in value]


def exported(target):
    export = getattr(target, "export", None) or getattr(target, "to_config", None)
    return export() if export else tvm.get_global_func("target.TargetExport")(target)


def seen(source):
    try:
        target = tvm.target.Target(source)
    except Exception as error:  # noqa: BLE001: every error is an answer
        # The input follows the message, and nested failures are in the lines before.
        text = str(error).split(". Target creation from")[0].strip()
        return {"error": text.splitlines()[-1].strip()[:4000] if text else ""}
    out = {"target": plain(exported(target))}
    try:
        # If this fails, `str` is an address.
        text = tvm.get_global_func("target.TargetAsJSON") if MINOR >= 24 else str
        out["text"] = str(text(target))
    except Exception:  # noqa: BLE001
        out["text"] = None
    return out


def options_of(kind):
    if kind not in OPTIONS:
        found = tvm.get_global_func("target.ListTargetKindOptionsFromName", allow_missing=True)
        if found is None:
            # Up to 0.9 it takes a kind, which a target has.
            found = lambda kind: tvm.get_global_func("target.ListTargetKindOptions")(tvm.target.Target(kind).kind)
        OPTIONS[kind] = {str(key): str(of) for key, of in found(kind).items()}
    return OPTIONS[kind]


OPTIONS = {}


def family(name):
    name = name.lower()
    if "array" in name:
        return "list"
    if "target" in name:
        return "target"
    return "bool" if "bool" in name else "int" if "int" in name else "str"


def word(chance, options):
    if not options or chance.random() < 0.25:
        return chance.choice(ODD_WORDS)
    name = chance.choice(sorted(options))
    of = family(options[name])
    if name in ("from_device", "target_device_type") and chance.random() < 0.8:
        return "-model=m"
    value = chance.choice({"int": NUMBERS, "bool": NUMBERS, "str": TEXTS, "list": TEXTS, "target": ["llvm", "c", "nope"]}[of])
    return f"{chance.choice(['-', '--'])}{name}{chance.choice(['=', '=', ' '])}{value}"


def value(chance, of):
    texts = ["", "a", "a longer text", "sm_80", "80", "gfx906", "cortex-m7", "aarch64-linux-gnu", "it's", "a b"]
    right = {
        "int": lambda: chance.choice([0, 1, 32, -5, 1 << 40]),
        "bool": lambda: chance.choice([True, False]),
        "str": lambda: chance.choice(texts),
        "list": lambda: [chance.choice(texts[1:]) for _ in range(chance.randrange(3))],
        "target": lambda: chance.choice(["llvm", {"kind": "c"}, {"kind": "llvm", "mcpu": "x"}]),
    }
    if chance.random() < 0.75:
        return right[of]()
    return chance.choice([0, 3, True, 2.5, "text", ["a", 1], ["x"], {"kind": "c"}, {"a": 1}, "llvm", []])


def config(chance, kinds):
    made = {"kind": chance.choice(kinds)}
    options = options_of(made["kind"])
    for _ in range(chance.randrange(4)):
        name = chance.choice(sorted(options)) if chance.random() < 0.9 else chance.choice(["foo", "feature.x", "feature.", "features", "tag", "keys"])
        if name not in ("from_device", "kind"):
            made[name] = value(chance, family(options.get(name, "str")))
    if chance.random() < 0.15:
        made["keys"] = chance.choice([["a", "b"], ["gpu", "gpu"], [], "a", [1]])
    if chance.random() < 0.05:
        del made["kind"]
    if chance.random() < 0.03:
        made["kind"] = chance.choice([1, "nope", ["llvm"]])
    return made


def every(kind):
    """Errors in one option, or in all of them, in both forms: each kind has its own table, and parsers check before it does."""
    texts = ["-nope=1", "-nope", "nope", "-", "--", "-=1", "-kind=c", "-keys", "-keys=", "-keys=a,b", "-keys=a -keys=b", "-device=foo", "-host=nope", "-host=", "-tag=t"]
    configs = [{"nope": 1}, {"kind": 1}, {"keys": "a"}, {"keys": [1]}, {"keys": []}, {"keys": ["a", "a"]}, {"device": "foo"}, {"device": 1}]
    configs += [{"tag": 1}, {"tag": "t"}, {"host": 1}, {"host": "nope"}, {"host": {"nope": 1}}, {"host": {"kind": "c", "host": {"kind": "c", "x": 1}}}]
    wrong = {"int": ["abc", "", "'", "99999999999", "-5"], "bool": ["abc", "2", "yes"], "str": ["' '", "'a", "a=b"], "list": ["a,,b", "'a,b", ","], "target": ["nope", "''"]}
    for name, of in sorted(options_of(kind).items()):
        if name in ("from_device", "kind"):
            continue
        texts += [f"-{name}={text}" for text in wrong[family(of)]] + [f"-{name}=1 -{name}=1", f"-{name}"]
        configs += [{name: wrong} for wrong in ([], {}, {"a": 1}, 2.5, True, "a", 1, [["a"]]) if not (name == "host" and wrong == {"a": 1})]
    return [f"{kind} {text}" for text in texts] + [{"kind": kind, **config} for config in configs]


def of_cases(folder):
    """The inputs of the cases of all releases that depend neither on the machine nor on other definitions."""
    cases = [case for file in sorted(pathlib.Path(folder).glob("*.json")) for case in conformance.read(file)]
    plain = [case for case in cases if case["op"] in ("target.read", "target.render", "target.tag") and not {"machine", "tags", "kinds"} & {*case["args"]}]
    # Only this project has a limit. Up to 0.20, null is rejected as a host, and ends the process elsewhere.
    inputs = [case["input"]["value"] for case in plain if case["expect"].get("reject", {}).get("kind") != "limit"]
    is_safe = lambda text: MINOR >= 21 or "null" not in text.replace('"host": null', "")
    return [value for value in inputs if "from_device" not in str(value) and is_safe(value if isinstance(value, str) else json.dumps(value))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--every", action="store_true", help="what is wrong with each option of each kind, besides")
    parser.add_argument("--cases", help="the folder of the suite's cases: what they read, besides")
    args = parser.parse_args()
    chance = random.Random(args.seed)
    kinds = sorted(str(kind) for kind in tvm.get_global_func("target.ListTargetKinds")())
    tags = sorted(str(tag) for tag in tvm.get_global_func("target.TargetTagListTags")())
    inputs = [*kinds, "", "nope", "[1]", "{", '{"kind": 1}', '{"kind": "llvm"', '{"kind": "c"} ', *tags]
    for kind in kinds:
        for name, of in sorted(options_of(kind).items()):
            if name not in ("from_device", "kind"):
                chosen = {"int": [5, "5", True], "bool": [True, 0, "1"], "str": ["a", 5], "list": [["a"], [1], "a"], "target": ["c", 1]}
                inputs += [{"kind": kind, name: choice} for choice in chosen[family(of)]]
    inputs += [{"tag": tag, "model": "m"} for tag in tags[::40]] + [{"tag": "nope"}, {"tag": 1}, {"kind": "c", "tag": "nope"}]
    inputs += [{"kind": "composite", "devices": ["c", {"kind": "llvm", "mcpu": "x"}]}]
    for _ in range(args.count):
        kind = chance.choice(kinds)
        words = [word(chance, options_of(kind)) for _ in range(chance.randrange(1, 4))]
        inputs.append(" ".join([kind, *words]))
    inputs += [config(chance, kinds) for _ in range(args.count)]
    inputs += [json.dumps(config(chance, kinds)) for _ in range(args.count // 5)]
    if args.every:
        inputs += [wrong for kind in kinds for wrong in every(kind)]
    if args.cases:
        inputs += of_cases(args.cases)
    triple = plain(exported(tvm.target.Target("llvm"))).get("mtriple", "")
    listed = {kind: {"options": options_of(kind)} for kind in kinds}
    head = {"version": tvm.__version__, "minor": MINOR, "triple": triple, "tags": tags, "kinds": listed}
    # Not to stdout, because upstream logs there.
    with open(args.out, "w") as out:
        lines = [json.dumps([source, seen(source)], separators=(",", ":")) for source in inputs]
        out.write(json.dumps(head)[:-1] + ',"seen":[\n' + ",\n".join(lines) + "\n]}\n")


main()
