#!/usr/bin/env python3
"""Writes lists of the smallest possible elements, at the end of the bytes and truncated by a byte: cases of WIRE-06 and WIRE-07.

    python3 golden/payload/smallest.py       adds missing cases, and fails if an existing case differs

A reader that assumes too large an element rejects the first of each pair at its count; one that assumes too small an element
continues into the second. The bytes are assembled from the parts in make.py.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from make import FLOAT, functions, num, raw, text  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "conformance"))
import cases as conformance  # noqa: E402

WHY = "a count is compared with the bytes before memory is allocated: a check that is too strict rejects a small payload, and without a check a few bytes allocate gigabytes"
ONE = num("Q", 1)
NONE = num("Q", 0)
TENSOR = num("QQ", 0xDD5E40F096B4A13F, 0) + num("iii", 1, 0, 0) + FLOAT + num("q", 4)


def relay_start(version):
    """Relay VM code up to its constants."""
    era = int(version.split(".")[1])
    start = num("Q", 0xD225DE2F4214151D) + text(version)
    if era >= 9:
        start += num("Qii", 1, 1, 0) + (text("") if era >= 14 else b"") + num("i", 0)
    return start + NONE


def relax_start():
    return num("Q", 0xD225DE2F4214151E) + text("0.14") + NONE + NONE


FUNCTION = {"0.7": num("QQQQ", 0, 0, 0, 0), "0.22": num("QQQQQ", 0, 0, 0, 0, 0)}
STACK = num("QQQQQQQ", 0, 0, 0, 0, 0, 0, 0)
R = "VMExecutable"
# name: kind, layout, releases, the bytes before, the smallest element, the field of the count, the expectation:
# the value (accepted) or kind, rule and field of the rejection, with the bytes from the start of the element to its offset.
LISTS = {
    "functions-0.7": ("cuda", "0.7", "0.7..0.20", text("ptx"), FUNCTION["0.7"], "functions", ("truncated", "WIRE-01", "data", 32)),
    "functions-0.22": ("cuda", "0.22", "0.22..", text("ptx"), FUNCTION["0.22"], "functions", ("truncated", "WIRE-01", "data", 40)),
    "arg-types*5": ("cuda", "0.22", "0.22..", text("ptx") + ONE + NONE + NONE, FLOAT, "functions[0].arg_types",
                  ("truncated", "WIRE-01", "functions[0].launch_param_tags", 20)),
    "arg-extra-tags": ("cuda", "0.22", "0.22..", text("ptx") + ONE + NONE + NONE + ONE + FLOAT + NONE, num("i", 0), "functions[0].arg_extra_tags",
                       ("truncated", "WIRE-01", "data", 4)),
    "launch-param-tags": ("cuda", "0.7", "0.7..0.20", text("ptx") + ONE + NONE + NONE + NONE, text(""), "functions[0].launch_param_tags",
                          ("truncated", "WIRE-01", "data", 8)),
    "kernels": ("webgpu", "0.7", "0.12..0.20", NONE, NONE + NONE, "kernels",
                {"kind": "webgpu", "functions": [], "kernels": [{"name": "", "source": ""}]}),
    "shaders-0.3": ("vulkan", "0.7", "0.7..0.20", text("vulkan") + NONE, NONE + num("IQ", 0, 0), "shaders",
                    {"kind": "vulkan", "form": "0.3", "format": "vulkan", "functions": [], "shaders": [{"name": "", "flags": 0, "spirv": ""}]}),
    "shaders-0.24": ("vulkan", "0.22", "0.24..", text("vulkan") + functions("0.22", name="k", tags=()), NONE + num("QIQ", 12, 1, 0), "shaders",
                     {"kind": "vulkan", "form": "0.24", "format": "vulkan", "functions": [
                         {"name": "k", "info_name": "k", "arg_types": ["handle"], "launch_param_tags": [],
                          "arg_extra_tags": [0]}], "shaders": [{"name": "", "flags": 1, "spirv": ""}]}),
    "spirv": ("vulkan", "0.7", "0.7..0.20", text("vulkan") + NONE + ONE + text("k") + num("I", 0), num("I", 7), "shaders[0].spirv",
              {"kind": "vulkan", "form": "0.3", "format": "vulkan", "functions": [], "shaders": [{"name": "k", "flags": 0, "spirv": "BwAAAA=="}]}),
    "stack-functions": ("stackvm", "0.7", "0.7..0.19", b"", STACK, "functions", ("truncated", "WIRE-01", "entry", 56)),
    "stack-code*11": ("stackvm", "0.7", "0.7..0.19", ONE + NONE, num("i", 1), "functions[0].code", ("truncated", "WIRE-01", "functions[0].texts", 44)),
    "imports": ("stackvm", "0.7", "0.7..0.19", NONE + text("f"), text(""), "imports", ("unknown-kind", "PAY-01", "imports[0].payload", 8)),
    "relay-constants-0.6": (R, "0.7", "0.8..0.19", relay_start("0.6.1"), TENSOR, "constants", ("truncated", "WIRE-01", "constants[0].data", 40)),
    "relay-constants-0.7": (R, "0.7", "0.8..0.19", relay_start("0.7.0"), TENSOR, "constants", ("truncated", "WIRE-01", "constants[0].data", 40)),
    "relay-constants-0.8": (R, "0.7", "0.8..0.19", relay_start("0.8.0"), TENSOR, "constants", ("truncated", "WIRE-01", "constants[0].data", 40)),
    "relay-constants-0.9": (R, "0.7", "0.9..0.19", relay_start("0.9.0"), num("I", 1) + NONE, "constants", ("truncated", "WIRE-01", "constant_devices", 12)),
    "relay-devices-0.9": (R, "0.7", "0.9..0.19", num("Q", 0xD225DE2F4214151D) + text("0.9.0"), num("ii", 1, 0), "virtual_devices",
                          ("truncated", "WIRE-01", "host_device", 8)),
    "relay-devices-0.13": (R, "0.7", "0.13..0.19", num("Q", 0xD225DE2F4214151D) + text("0.13.0"), num("ii", 1, 0), "virtual_devices",
                           ("truncated", "WIRE-01", "host_device", 8)),
    "relay-devices-0.14": (R, "0.7", "0.14..0.19", num("Q", 0xD225DE2F4214151D) + text("0.14.0"), num("iiQ", 1, 0, 0), "virtual_devices",
                           ("truncated", "WIRE-01", "host_device", 16)),
    "relay-primitive-attrs": (R, "0.7", "0.8..0.19", relay_start("0.8.0") + NONE + NONE + NONE, num("QQ", 0, 0), "primitive_attrs",
                              ("truncated", "WIRE-01", "functions", 16)),
    "relay-attrs": (R, "0.7", "0.8..0.19", relay_start("0.8.0") + NONE + NONE + NONE + ONE + NONE, NONE + NONE, "primitive_attrs[0].attrs",
                    ("truncated", "WIRE-01", "functions", 16)),
    "relay-functions-0.6": (R, "0.7", "0.8..0.19", num("Q", 0xD225DE2F4214151D) + text("0.6.1") + ONE + NONE + NONE + NONE, num("QQQQQ", 3, 0, 0, 0, 0),
                            "functions", ("malformed", "PAY-69", "functions[0].registers", 16)),
    "relay-functions-0.7": (R, "0.7", "0.8..0.19", num("Q", 0xD225DE2F4214151D) + text("0.7.0") + ONE + NONE + NONE + NONE + NONE,
                            num("QQQQQQ", 3, 0, 0, 0, 0, 0), "functions", ("malformed", "PAY-69", "functions[0].registers", 16)),
    "relax-constants": ("relax.VMExecutable", "0.22", "0.23..", relax_start(), num("i", 5) + FLOAT, "constants", ("truncated", "WIRE-01", "instr_offset", 8)),
    "relax-shape": ("relax.VMExecutable", "0.22", "0.23..", relax_start() + ONE + num("i", 69), num("q", 3), "constants[0].shape",
                    ("truncated", "WIRE-01", "instr_offset", 8)),
    "relax-scopes": ("relax.VMExecutable", "0.22", "0.23..", num("Q", 0xD225DE2F4214151E) + text("0.14") + NONE, num("qQ", 0, 0), "memory_scopes",
                     ("truncated", "WIRE-01", "constants", 16)),
    "relax-functions": ("relax.VMExecutable", "0.22", "0.23..", num("Q", 0xD225DE2F4214151E) + text("0.14"), num("iQqqqqQ", 1, 0, 0, 0, 0, 0, 0),
                        "functions", ("truncated", "WIRE-01", "memory_scopes", 52)),
    "networks": ("ethos-n", "0.7", "0.7..0.18", b"", num("QQQQ", 0, 0, 0, 0), "networks", ("missing", "PAY-49", "networks[0].inputs", 16)),
}


PARENTS = {
    ("cuda", "0.7"): "cuda-minimal-0.7", ("cuda", "0.22"): "cuda-minimal", ("webgpu", "0.7"): "webgpu-0.7", ("vulkan", "0.7"): "vulkan-0.3",
    ("vulkan", "0.22"): "vulkan-0.24", ("stackvm", "0.7"): "stackvm-with-import", (R, "0.7"): "relay-vm-minimal",
    ("relax.VMExecutable", "0.22"): "relax-vm-minimal", ("ethos-n", "0.7"): "ethos-n-0.10",
}


def rejected(kind, rule, offset, field):
    return {"reject": {"kind": kind, "rule": rule, "offset": offset, "field": field}}


def made():
    cases = []
    for name, (kind, layout, releases, before, element, field, then) in LISTS.items():
        # Several if one is too small for the enclosing list: `*5`.
        name, _, times = name.partition("*")
        count, element = num("Q", int(times or 1)), element * int(times or 1)
        framed = kind == R
        ahead = 8 if framed else 0  # its length comes first
        wrap = raw if framed else bytes
        count_at = ahead + len(before)
        case = {"releases": releases, "op": "payload.decode", "args": {"kind": kind, "layout": layout}, "why": WHY}
        if isinstance(then, dict):
            expect = {"accept": then}
        else:
            broken, rule, next_field, behind = then
            expect = rejected(broken, rule, count_at + 8 + behind, next_field)
        # A list of maps is WIRE-07, which counts as WIRE-06 does.
        rules = ["WIRE-06"] if isinstance(then, dict) else ["WIRE-06", then[1]]
        parent = {"parent": "payload/" + PARENTS[kind, layout]}
        cases.append({"id": f"payload/smallest/{name}", "rules": rules, **case, **({} if isinstance(then, dict) else parent), "input": {"hex": wrap(before + count + element).hex()}, "expect": expect,
                      "origin": {"hand": "golden/payload/smallest.py: one element, and no bytes after it"}})
        cases.append({"id": f"payload/smallest/{name}-cut", "rules": ["WIRE-06"], **case, **parent, "input": {"hex": wrap(before + count + element[:-1]).hex()},
                      "expect": rejected("truncated", "WIRE-06", count_at, field),
                      "origin": {"hand": "golden/payload/smallest.py: one element without its last byte"}})
    return cases


def main():
    path, wrong = ROOT / "conformance/payload/cases/smallest.json", 0
    there = {case["id"]: case for case in conformance.read(path)} if path.exists() else {}
    for case in made():
        known = there.setdefault(case["id"], case)
        if any(known[key] != case[key] for key in ("expect", "input", "args")):
            print(f"{case['id']}: the file has\n  {known['expect']}\nand this computes\n  {case['expect']}")
            wrong += 1
    path.write_text(conformance.render(list(there.values())))
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
