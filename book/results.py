"""The results of the judged implementations, as `condense` writes them."""

import collections
import json
import pathlib
import re

GROUPS = ["tvmspec", "TVM", "tvm-ffi", "RPC servers"]
# The known failures of each kind of implementation, below conformance/known/.
KNOWN = {"ffi": "apache-tvm-ffi-0.1.toml", "legacy": "apache-tvm-0.7-0.20.toml", "rpc": "apache-tvm-rpc-0.8-0.27.toml"}


def read_results(folder):
    """Returns the results: this crate first, then runtimes, libraries and servers, each from the newest release to the oldest."""
    found = []
    # Each result also has its failed cases by rule, as `failed`.
    for path in pathlib.Path(folder).glob("*.json"):
        result = json.loads(path.read_text(encoding="utf-8")) | {"id": path.stem}
        result["group"] = group_of(path.stem)
        result["failed"] = collections.defaultdict(list)
        for case, failure in result["failures"].items():
            for rule in failure["rules"]:
                result["failed"][rule].append(case)
        result["command"] += known_of(result["command"])
        found.append(result)
    found.sort(key=lambda result: (version(result["name"]), result["name"]), reverse=True)
    return sorted(found, key=lambda result: GROUPS.index(result["group"]))


def group_of(name):
    if name == "builtin":
        return "tvmspec"
    return "RPC servers" if "rpc" in name else "tvm-ffi" if name.startswith("tvm-ffi") else "TVM"


def version(name):
    return [int(number) for number in re.findall(r"\d+", name)]


def known_of(command):
    """Returns the option for the known failures of the kind of implementation that a command names; empty for this crate."""
    kind = re.search(r"--impl (\w+):", command)
    return f" --known conformance/known/{KNOWN[kind.group(1)]}" if kind and kind.group(1) in KNOWN else ""


def kind_of(counts):
    """Returns the kind of the counts of a rule: bad, good, part (some cases pass, the others are not judged), other (none is judged), or none."""
    passed, bad, unsupported, _ = counts or [0, 0, 0, 0]
    if bad:
        return "bad"
    if passed:
        return "part" if unsupported else "good"
    return "other" if unsupported else "none"


def lost_of(result, rule):
    """Returns the number of failed cases of a rule without an answer: crashes, hangs and so on."""
    return sum(result["failures"][case]["verdict"] != "fail" for case in result["failed"][rule])


def counted(count, noun):
    return f"{count} {noun}{'' if count == 1 else 's'}"
