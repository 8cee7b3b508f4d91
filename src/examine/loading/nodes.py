#!/usr/bin/env python3
"""Writes nodes.tsv: the types that each TVM release loads from JSON, with the attributes that it requires of each.

usage: nodes.py TVM_GIT TVM_FFI_GIT > spec/evidence/tables/nodes.tsv

The arguments are those of exports.py. A line is a type key, the releases, and the attributes. An attribute with a default is left out:
a text without it loads. Types without a class of their own, plain values and containers, are not in the table, and 0.27 is not: it has no
tag.
"""

import re
import sys

from exports import git, tag_of
from globals import blobs

CLASS = re.compile(r"\b(?:class|struct)\s+(?:TVM_DLL\s+)?(\w+)(?:\s+final)?\s*(?::\s*(?:public\s+)?([^{;]*))?\{")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
KEY = re.compile(
    r'_type_key\s*=\s*"([^"]+)"|TVM_DECLARE_(?:ATTRS|FINAL_ATTRS)\(\s*\w+\s*,\s*"([^"]+)"|DECLARE_OBJECT_INFO\w*\(\s*"([^"]+)"'
)
VISIT = re.compile(r'\bVisit\(\s*"(\w+)"')
ATTR = re.compile(r"\bTVM_ATTR_FIELD\(\s*(\w+)\s*\)")
READ = re.compile(r'\.def_r[ow]\(\s*"(\w+)"')


def closing(text, at):
    """Returns the end of the block or the list that opens at `at`."""
    pairs = {"{": "}", "(": ")"}
    open_, close, depth = text[at], pairs[text[at]], 0
    while at < len(text):
        depth += (text[at] == open_) - (text[at] == close)
        at += 1
        if depth == 0:
            break
    return at


def method(body, name):
    """Returns the body of a method; None if there is none."""
    hit = re.search(rf"\bvoid\s+{name}\([^)]*\)[^{{;]*\{{", body)
    return body[hit.end() - 1 : closing(body, hit.end() - 1)] if hit else None


def described(body):
    """Returns the attributes of a registration, without those that have a default."""
    return [hit[1] for hit in READ.finditer(body) if "DefaultValue" not in body[hit.start() : closing(body, body.index("(", hit.start()))]]


def classes(texts):
    found = {}
    for path, text in texts:
        if not path.endswith((".h", ".cc", ".cpp")):
            continue
        text = COMMENT.sub("", text)
        for hit in CLASS.finditer(text):
            body = text[hit.end() - 1 : closing(text, hit.end() - 1)]
            # A nested class has its own match: here its key would go to the class around it.
            inner = CLASS.search(body[1:])
            own = body[: inner.start() + 1] + body[closing(body[1:], inner.end() - 1) + 1 :] if inner else body
            base = re.sub(r"<.*", "", (hit[2] or "").strip(), flags=re.S).split("::")[-1].strip()
            key = next((next(filter(None, match.groups())) for match in KEY.finditer(own)), None)
            visit, register = method(own, "VisitAttrs"), method(own, "RegisterReflection")
            if visit is None and ATTR.search(own):
                visit = own
            row = {
                "key": key,
                "base": base,
                "visit": None if visit is None else VISIT.findall(visit) + ATTR.findall(visit),
                "calls": re.findall(r"(\w+)::VisitAttrs\(", visit or ""),
                "register": None if register is None else described(register),
            }
            found.setdefault(hit[1], []).append(row)
    return found


def of(found, name):
    """Returns the class of that name with the most facts, because names repeat in namespaces."""
    return max(found.get(name, []), key=lambda row: bool(row["visit"]) + bool(row["register"]), default=None)


def attributes(found, row, depth=0):
    if row is None or depth > 9:
        return []
    base = of(found, row["base"])
    if row["register"] is not None or (row["visit"] is None and base is not None and base["register"] is not None):
        return attributes(found, base, depth + 1) + (row["register"] or [])
    if row["visit"] is None:
        return attributes(found, base, depth + 1)
    called = [name for call in row["calls"] for name in attributes(found, of(found, call), depth + 1)]
    return called + row["visit"]


def main(tvm, ffi):
    tags = git(tvm, "tag").split()
    releases = {}
    for minor in range(2, 27):
        commit = "refs/tags/" + tag_of(tags, minor)
        texts = list(blobs(tvm, commit, ["include", "src", "ffi/include", "ffi/src", "nnvm/include", "topi/include"]))
        pin = git(tvm, "ls-tree", commit, "3rdparty/tvm-ffi") or ""
        if minor >= 22:
            texts += blobs(ffi, pin.split()[2], ["include", "src"])
        found = classes(texts)
        rows = [row for rows in found.values() for row in rows if row["key"]]
        releases[minor] = {row["key"]: " ".join(sorted(set(attributes(found, row)))) for row in rows}
    print("# Types of each release and the attributes that it asks for: type key, releases, attributes. Written by nodes.py")
    for key in sorted(set().union(*releases.values())):
        last = None
        for minor in range(2, 28):
            asked = releases.get(minor, {}).get(key)
            if last is not None and asked != last[1]:
                print(key, f"{last[0]}-{minor - 1}", last[1], sep="\t")
                last = None
            if asked is not None and last is None:
                last = (minor, asked)


if __name__ == "__main__":
    main(*sys.argv[1:])
