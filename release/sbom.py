#!/usr/bin/env python3
"""Prints the software bill of materials (CycloneDX 1.5, JSON) of a build with these features: every crate that it contains.

    release/sbom.py default,embed

Crates that only tests or this machine's build scripts of other systems need are left out, because no artifact contains them. Build
scripts and procedural macros are listed with the scope "excluded".
"""
import json
import pathlib
import subprocess
import sys
import tomllib

root = pathlib.Path(__file__).resolve().parent.parent
features = sys.argv[1]
target = sys.argv[2] if len(sys.argv) > 2 else "x86_64-unknown-linux-gnu"
command = ["cargo", "metadata", "--format-version", "1", "--locked", "--no-default-features", "--features", features]
data = json.loads(subprocess.check_output(command + ["--filter-platform", target], cwd=root))
packages = {package["id"]: package for package in data["packages"]}
nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
lock = tomllib.loads((root / "Cargo.lock").read_text())
hashes = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}


def needed(identity, kind):
    """Returns the packages that one needs directly: with kind None to run, with "build" to be built."""
    for dependency in nodes[identity]["deps"]:
        if any(entry["kind"] == kind for entry in dependency["dep_kinds"]):
            yield dependency["pkg"]


def is_macro(identity):
    return any("proc-macro" in target["kind"] for target in packages[identity]["targets"])


def reached(start, kinds, enters):
    found, waiting = set(), list(start)
    while waiting:
        identity = waiting.pop()
        if identity in found or not enters(identity):
            continue
        found.add(identity)
        waiting.extend(other for kind in kinds for other in needed(identity, kind))
    return found


own = data["resolve"]["root"]
inside = reached([own], [None], lambda identity: not is_macro(identity))
built_with = reached([own], [None, "build"], lambda identity: True)


def url(identity):
    return f"pkg:cargo/{packages[identity]['name']}@{packages[identity]['version']}"


def component(identity):
    package = packages[identity]
    result = {
        "type": "application" if identity == own else "library",
        "bom-ref": url(identity),
        "name": package["name"],
        "version": package["version"],
        "description": (package["description"] or "").strip(),
        "licenses": [{"expression": package["license"].replace("/", " OR ")}],
        "purl": url(identity),
        "scope": "required" if identity in inside else "excluded",
    }
    checksum = hashes[package["name"], package["version"]]
    if checksum:
        result["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return result


others = sorted(built_with - {own}, key=url)
report = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "version": 1,
    "metadata": {"component": component(own)},
    "components": [component(identity) for identity in others],
    "dependencies": [
        {"ref": url(identity), "dependsOn": sorted({url(other) for kind in (None, "build") for other in needed(identity, kind)})}
        for identity in [own, *others]
    ],
}
json.dump(report, sys.stdout, indent=1)
print()
