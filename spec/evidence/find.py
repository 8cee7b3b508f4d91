#!/usr/bin/env python3
"""Finds evidence for `<chapter>.toml`: in which releases a text is in upstream's source.

    spec/evidence/find.py FOLDER TEXT [PATH]         prints the releases, and where it is in the first and the last of them
    spec/evidence/find.py FOLDER < QUERIES           prints lines of TOML for boundaries

FOLDER is that of generate.py; PATH is a regular expression. A query is a line `RULE KEY TEXT`, such as
`TREE-03 since import_tree_row_ptr`; KEY is `since`, `until` or `says.N`, and ` @@ PATH` after the text narrows the search.
With `=OTHER` for TEXT the line refers to the evidence of another rule. A text that does not change at that boundary is printed with a leading
`#`, and with the releases that have it.
"""

import json
import pathlib
import re
import sys

from generate import HERE, LAST, Clone, ref, span

ENDS = (".cc", ".h", ".mm", ".py", ".pyx", ".pxi", ".pyi", ".js", ".ts", ".cpp", ".cmake", ".txt")
ROOMS = ("src", "include", "python", "web", "ffi", "CMakeLists.txt", "tests/cpp", "nnvm/src", "3rdparty/dmlc-core")


class Release:
    """Both repositories in one release, at its first or its last tag."""

    def __init__(self, clones, row, side):
        self.places = [("apache/tvm", row[side])]
        if "tvm_ffi" in row:
            self.places.append(("apache/tvm-ffi", row["tvm_ffi"]["at"]))
        self.clones = clones
        self.files = []

    def listing(self):
        if not self.files:
            for repository, tag in self.places:
                clone = self.clones[repository]
                for line in clone.run("ls-tree", "-r", ref(tag), *ROOMS).splitlines():
                    meta, path = line.split("\t")
                    if path.endswith(ENDS):
                        self.files.append((repository, tag, path, meta.split()[2]))
        return self.files

    def where(self, text, path=""):
        """Files that have the text."""
        return [
            (repository, tag, name)
            for repository, tag, name, blob in self.listing()
            if re.search(path, name) and text in self.clones[repository].blob(blob)
        ]


class Upstream:
    def __init__(self, folder):
        clones = {"apache/tvm": Clone(folder / "tvm.git"), "apache/tvm-ffi": Clone(folder / "tvm-ffi.git")}
        rows = json.loads((HERE / "tables/releases.json").read_text())
        minors = [int(row["release"][2:]) for row in rows]
        self.first = {minor: Release(clones, row, "first") for minor, row in zip(minors, rows)}
        self.last = {minor: Release(clones, row, "last") for minor, row in zip(minors, rows)}

    def minors(self, text, path=""):
        return [minor for minor in self.last if self.last[minor].where(text, path)]

    def probes(self, boundary, text, path=""):
        """Lines `present = ..` and `absent = ..` for a text that appears or disappears at a boundary, or the reason why there are none."""
        before = self.last[boundary - 1]
        after = self.first[boundary]
        old, new = before.where(text, path), after.where(text, path)
        if bool(old) == bool(new):
            return None
        have, lacks = (new, before) if new else (old, after)
        for repository, tag, name in sorted(have, key=lambda place: (len(place[2]), place[2])):
            if absent := self.absent(lacks, repository, name, text):
                return [repository, tag, name, text], absent
        return None

    def absent(self, release, repository, name, text):
        """Returns the narrowest existing place that lacks the text: the file, or a folder above it. `None` if all contain it."""
        paths = [entry for entry in release.listing() if entry[0] == repository] or release.listing()
        repository, tag = paths[0][:2]
        parts = name.split("/")
        for depth in range(len(parts), 0, -1):
            place = "/".join(parts[:depth])
            below = [entry[2] for entry in paths if entry[2] == place or entry[2].startswith(place + "/")]
            if below == [place]:
                return [repository, tag, place, text]
            if below and not release.where(text, "^" + re.escape(place + "/")):
                return [repository, tag, place + "/", text]
        # A completely new folder.
        for place in ("src", "include"):
            if not release.where(text, f"^{place}/"):
                return [repository, tag, place + "/", text]
        return None


def rules():
    """Attributes of every rule: id -> (since, until)."""
    found = {}
    for chapter in HERE.parent.glob("*.md"):
        for hit in re.finditer(r"^### (\w+-\d+) [^\n]*\n(level:[^\n]*)", chapter.read_text(), re.M):
            since, until = (re.search(word + r": 0\.(\d+)", hit[2]) for word in ("since", "until"))
            found[hit[1]] = (int(since[1]), int(until[1]) if until else LAST)
    return found


def answer(upstream, queries):
    known, last = rules(), None
    for line in queries:
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        rule, key, text = line.split(" ", 2)
        boundary = {"since": known[rule][0], "until": known[rule][1] + 1}.get(key) or int(key.split(".")[1])
        text, _, path = (part.strip() for part in text.partition("@@"))
        if rule != last:
            print(("\n" if last else "") + f"[{rule}]")
            last = rule
        if text.startswith("="):
            print(f'{key}.as = "{text[1:]}"')
        elif found := upstream.probes(boundary, text, path):
            print(f"{key}.present = {json.dumps(found[0], ensure_ascii=False)}")
            print(f"{key}.absent = {json.dumps(found[1], ensure_ascii=False)}")
        else:
            print(f"# {key} (0.{boundary}): {text!r} is in {span(upstream.minors(text, path)) or 'none'}")


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    upstream = Upstream(pathlib.Path(arguments[0]))
    if len(arguments) == 1:
        return answer(upstream, sys.stdin)
    minors = upstream.minors(*arguments[1:])
    print(span(minors) or "none")
    for minor in minors[:1] + minors[-1:]:
        for place in upstream.last[minor].where(*arguments[1:])[:5]:
            print(f"0.{minor}", *place)


if __name__ == "__main__":
    main(sys.argv[1:])
