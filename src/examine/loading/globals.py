#!/usr/bin/env python3
"""Writes globals.tsv: the global functions that the runtime of each TVM release registers.

usage: globals.py TVM_GIT TVM_FFI_GIT > globals.tsv

The arguments are those of exports.py. A line is a name, the releases, and the part of the runtime that registers it, which is empty
where every build has it: `contrib/cublas`, `cuda`, `python`. A name that moved has the part of the newest release.
"""

import re
import subprocess
import sys

from exports import git, tag_of

STRING = r'\(\s*"([^"\\]+)"'
OLD = re.compile(r"\bTVM_(?:FFI_)?REGISTER_(?:GLOBAL|API)" + STRING)
LINK = re.compile(r"\.def(?:_packed|_method)?" + STRING)
PYTHON = re.compile(r"^\s*@(?:\w+\.)*register_(?:global_)?func" + STRING, re.M)
# The loaders of module kinds are in the table of the kinds; the others are of tests, or half of a name that a macro completes.
SKIPPED = re.compile(r"^(?:(?:runtime|ffi)\.)?[Mm]odule\.load|(?:^|\.)testing\.|\.$")
# Names that a macro or a constant spells, and those of the wheels of 0.26 and 0.27, which no tag has.
OBSERVED = {
    "__tvm_set_device": 2,
    "ffi.ListReserve": 27,
    **dict.fromkeys(("ffi.StructuralMap", "ffi.StructuralMutate", "ffi.StructuralVisit"), 26),
    **dict.fromkeys(("ffi.StructuralMutatorDefRegionKind", "ffi.StructuralMutatorDefaultMutate", "ffi.StructuralMutatorMutate"), 26),
    **dict.fromkeys(("ffi.StructuralMutatorVarRemapGet", "ffi.StructuralMutatorVarRemapSet"), 26),
    **dict.fromkeys(("ffi.StructuralMutatorWithDefRegionKind", "ffi.StructuralVisitorDefaultVisit"), 26),
    "vm.builtin.attention_kv_cache_attention_with_shared_kv": 27,
    "vm.builtin.attention_kv_cache_export_page_group": 27,
    "vm.builtin.attention_kv_cache_finish_import": 27,
    "vm.builtin.attention_kv_cache_get_checkpoint_metadata": 27,
    "vm.builtin.attention_kv_cache_get_layout_hash": 27,
    "vm.builtin.attention_kv_cache_get_sequence_length": 27,
    "vm.builtin.attention_kv_cache_import_page_group": 27,
    "vm.builtin.attention_kv_cache_prepare_import": 27,
    "vm.builtin.check_string_info": 27,
}
# Parts of a runtime that a build may be without, wherever their sources are.
OPTIONAL = ("cuda", "cuda_graph", "cuda_ipc", "hexagon", "nccl", "pipeline", "disco")


def blobs(folder, commit, below):
    """Paths and texts of the sources below some folders."""
    names = (git(folder, "ls-tree", "-r", "--name-only", commit, *below) or "").split("\n")
    names = [n for n in names if re.search(r"\.(cc|cu|mm|h|py|cpp)$", n) and "/crt/" not in n]
    asked = "".join(f"{commit}:{name}\n" for name in names).encode()
    out = subprocess.run(["git", "--git-dir=" + folder, "cat-file", "--batch"], input=asked, capture_output=True).stdout
    at = 0
    for name in names:
        end = out.index(b"\n", at)
        size = int(out[at:end].split()[2])
        yield name, out[end + 1 : end + 1 + size].decode("utf-8", "replace")
        at = end + 2 + size


def part(path):
    """The part of the runtime that a build may be without."""
    folders = path.split("/")[:-1]
    if folders[0] == "python":
        return "python"
    # Sorting and random numbers are built unless a build says otherwise.
    if "contrib" in folders and folders[-1] not in ("contrib", "sort", "random"):
        return "contrib/" + folders[folders.index("contrib") + 1]
    optional = [folder for folder in folders if folder in OPTIONAL]
    if optional:
        return optional[-1]
    inside = folders[2:] if folders[:2] == ["src", "runtime"] else []
    inside = inside[1:] if inside[:1] == ["extra"] else inside
    always = ("vm", "relax_vm", "memory", "rpc", "stackvm", "graph", "graph_runtime", "graph_executor", "aot_executor", "support")
    return inside[0] if inside and inside[0] not in always else ""


def chains(text):
    """What follows each `GlobalDef()`, up to the end of its statement."""
    for hit in re.finditer(r"\bGlobalDef\(\)", text):
        depth, at = 0, hit.end()
        while at < len(text) and (depth > 0 or text[at] != ";"):
            depth += (text[at] in "({[") - (text[at] in ")}]")
            at += 1
        yield text[hit.end() : at]


def registered(folder, commit, below):
    found = {}
    for path, text in blobs(folder, commit, below):
        names = PYTHON.findall(text) if path.endswith(".py") else OLD.findall(text)
        for chain in [] if path.endswith(".py") else chains(text):
            names += LINK.findall(chain)
        for name in names:
            if not SKIPPED.search(name):
                found[name] = min(found.get(name, part(path)), part(path), key=len)
    return found


def main(tvm, ffi):
    tags = git(tvm, "tag").split()
    releases = {}
    for minor in range(2, 28):
        commit = "refs/tags/" + tag_of(tags, minor)
        names = registered(tvm, commit, ["src/runtime", "src/contrib", "src/support", "python/tvm", "ffi/src"])
        pin = git(tvm, "ls-tree", commit, "3rdparty/tvm-ffi") or ""
        if minor >= 22:
            names.update(registered(ffi, pin.split()[2], ["src"]))
        names.update({name: "" for name, since in OBSERVED.items() if since <= minor})
        releases[minor] = names
    print("# Which global functions the runtime of each release registers: name, ranges of releases, part. Written by globals.py")
    for name in sorted(set().union(*releases.values())):
        has = [minor for minor in releases if name in releases[minor]]
        ranges, start = [], has[0]
        for this, following in zip(has, has[1:] + [99]):
            if following != this + 1:
                ranges.append(f"{start}-{this}")
                start = following
        print(name, " ".join(ranges), releases[has[-1]][name], sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
