#!/usr/bin/env python3
"""Writes exports.tsv: the C functions that the headers of each TVM release declare as exported, and those for compiled code that only
a source file declares.

usage: exports.py TVM_GIT TVM_FFI_GIT > exports.tsv

Both are git directories with the tags of apache/tvm and apache/tvm-ffi. A release without a tag is read at its
newest development tag. tvm-ffi, on which 0.22 and later are built, is read at the commit that the release pins.
"""

import re
import subprocess
import sys

DECLARED = re.compile(r"^[^#\n/*]*\bTVM(?:_\w+)?_DLL(?:_EXPORT)?\b[^;{]*?\b(TVM[A-Z]\w*)\s*\(", re.M)


def git(folder, *words):
    done = subprocess.run(["git", "--git-dir=" + folder, *words], capture_output=True)
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def files(folder, commit, below, ending):
    names = (git(folder, "ls-tree", "-r", "--name-only", commit, *below) or "").split()
    return [name for name in names if name.endswith(ending) and "/crt/" not in name]


def declared(folder, commit, below):
    found = set()
    for name in files(folder, commit, below, ".h"):
        text = git(folder, "show", f"{commit}:{name}") or ""
        found.update(DECLARED.findall(text))
    return found


def for_compiled_code(folder, commit):
    """Returns the lists of the Relax VM, which no header has (MOD-27)."""
    found = set()
    for name in files(folder, commit, ["src/runtime/relax_vm", "src/runtime/vm"], ".cc"):
        text = git(folder, "show", f"{commit}:{name}") or ""
        found.update(name for name in DECLARED.findall(text) if name.startswith("TVMBackend"))
    return found


def tag_of(tags, minor):
    """Returns the last patch release, otherwise the newest development tag."""
    plain = [t for t in tags if re.fullmatch(rf"v0\.{minor}(\.\d+)?", t)]
    later = [t for t in tags if re.fullmatch(rf"v0\.{minor}(\.\d+)?\.?(dev|rc)\d+", t)]
    return sorted(plain)[-1] if plain else sorted(later)[-1]


def main(tvm, ffi):
    tags = git(tvm, "tag").split()
    releases, read = {}, []
    for minor in range(2, 28):
        tag = tag_of(tags, minor)
        commit = "refs/tags/" + tag
        names = declared(tvm, commit, ["include/tvm", "ffi/include/tvm"]) | for_compiled_code(tvm, commit)
        pin = git(tvm, "ls-tree", commit, "3rdparty/tvm-ffi") or ""
        note = tag
        if minor >= 22:
            pinned = pin.split()[2]
            below = declared(ffi, pinned, ["include/tvm"])
            if not below:
                sys.exit(f"{tag} pins tvm-ffi {pinned}, which is not in {ffi}")
            names |= below
            note += " with tvm-ffi " + pinned[:9]
        releases[minor] = names
        read.append(note)
    print("# Which C functions each release exports: name, ranges of releases. Written by exports.py from")
    for line in read:
        print("#   " + line)
    for name in sorted(set().union(*releases.values())):
        ranges, minors = [], [m for m in releases if name in releases[m]]
        for minor in minors:
            if ranges and ranges[-1][1] == minor - 1:
                ranges[-1][1] = minor
            else:
                ranges.append([minor, minor])
        print(name + "\t" + " ".join(f"{a}-{b}" for a, b in ranges))


if __name__ == "__main__":
    main(*sys.argv[1:])
