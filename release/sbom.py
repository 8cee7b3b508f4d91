#!/usr/bin/env python3
"""Lists what an artifact contains, and the licences of it.

    release/sbom.py [--manifest FILE] [--features LIST] [--target TRIPLE] [--with NAME]... SBOM [FOLDER]

Writes the software bill of materials (CycloneDX 1.5, JSON) to SBOM. Crates that only build scripts and procedural macros use have the
scope "excluded", because the artifact does not contain them. `--with` adds a component that cargo does not know.

Writes the licences of the crates to FOLDER/THIRD-PARTY.txt, and copies those of Rust's standard library to FOLDER.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXTRA = ["dagre", "libunwind", "musl"]
MIT = (ROOT / "web/vendor/LICENSE").read_text().partition("\n\n")[2]


def components(identities, inside, packages, hashes, own):
    """Returns the entries of crates."""
    for identity in identities:
        package = packages[identity]
        name, version = package["name"], package["version"]
        if package["license"]:
            licence = {"expression": package["license"].replace("/", " OR ")}
        else:
            licence = {"license": {"name": f"{package['license_file']} of the crate"}}
        entry = {
            "type": "application" if identity == own else "library",
            "bom-ref": f"pkg:cargo/{name}@{version}",
            "name": name,
            "version": version,
            "description": (package["description"] or "").strip(),
            "licenses": [licence],
            "purl": f"pkg:cargo/{name}@{version}",
            "scope": "required" if identity in inside else "excluded",
        }
        if hashes.get((name, version)):
            entry["hashes"] = [{"alg": "SHA-256", "content": hashes[name, version]}]
        yield entry


def sysroot():
    return pathlib.Path(subprocess.check_output(["rustc", "--print", "sysroot"], text=True).strip())


def extra_components(names, target):
    """Returns the name, version, licence and licence text of each component that cargo does not know."""
    documents = sysroot() / "share/doc/rust"
    yield "rust-std", subprocess.check_output(["rustc", "--version"], text=True).split()[1], "MIT OR Apache-2.0", "See COPYRIGHT-library.html."
    if "musl" in names:
        library = (sysroot() / f"lib/rustlib/{target}/lib/self-contained/libc.a").read_bytes()
        version = re.search(rb"\0(1\.\d+\.\d+)\0", library)[1].decode()
        yield "musl", version, "MIT", "Copyright (c) 2005-2020 Rich Felker, et al.\n\n" + MIT
    if "libunwind" in names:
        texts = [(documents / "licenses" / name).read_text() for name in ("Apache-2.0.txt", "LLVM-exception.txt")]
        yield "libunwind", None, "Apache-2.0 WITH LLVM-exception", "Part of LLVM.\n\n" + "\n".join(texts)
    if "dagre" in names:
        version = re.search(r"^version=(.*)$", (ROOT / "web/vendor/update").read_text(), flags=re.M)[1]
        yield "dagre", version, "MIT", (ROOT / "web/vendor/LICENSE").read_text()


def licence_texts(package):
    """Returns the texts of licences in the source of a crate."""
    folder = pathlib.Path(package["manifest_path"]).parent
    names = sorted(file for file in folder.iterdir() if re.match(r"(un)?licen[cs]e|copying|copyright|notice", file.name, flags=re.I))
    texts = [file.read_text(errors="replace").strip() for file in names if file.is_file()]
    if not texts and package["license"] == "MIT":
        texts = [f"Copyright (c) {', '.join(package['authors']) or 'the authors of ' + package['name']}\n\n{MIT.strip()}"]
    if not texts:
        sys.exit(f"release/sbom.py: crate {package['name']}: expected a file with its licence, found none. Add its text to this script.")
    return texts


def write_notices(folder, packages, extra):
    """Writes each text once, with the names of its crates."""
    owners = {}
    for package in packages:
        for text in licence_texts(package):
            owners.setdefault(text, []).append(f"{package['name']} {package['version']} ({package['license']})")
    for name, version, licence, text in extra:
        owners.setdefault(text.strip(), []).append(f"{name} {version or ''} ({licence})".replace("  ", " "))
    parts = ["This artifact of tvmspec contains the following software of others."]
    parts += ["\n".join(names) + "\n\n" + text for text, names in owners.items()]
    (folder / "THIRD-PARTY.txt").write_text(f"\n\n{'-' * 80}\n\n".join(parts) + "\n")
    shutil.copyfile(sysroot() / "share/doc/rust/COPYRIGHT-library.html", folder / "COPYRIGHT-library.html")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", default="Cargo.toml", help="the package's Cargo.toml, relative to the root of the source tree")
    parser.add_argument("--features", help="the features of the artifact; by default those of the package")
    parser.add_argument("--target", default="x86_64-unknown-linux-gnu")
    parser.add_argument("--with", action="append", default=[], dest="extra", choices=EXTRA)
    parser.add_argument("sbom", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    options = parser.parse_args()

    manifest = ROOT / options.manifest
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--manifest-path", manifest, "--filter-platform", options.target]
    if options.features is not None:
        command += ["--no-default-features", "--features", options.features]
    data = json.loads(subprocess.check_output(command, cwd=ROOT))
    packages = {package["id"]: package for package in data["packages"]}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    lock = tomllib.loads((manifest.parent / "Cargo.lock").read_text())
    hashes = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    own = data["resolve"]["root"]

    def needed(identity, kinds):
        """Returns the direct dependencies of a package: kind None is to run, and "build" to be built."""
        return [one["pkg"] for one in nodes[identity]["deps"] if any(entry["kind"] in kinds for entry in one["dep_kinds"])]

    def reached(kinds, enters):
        """Returns the packages that the package needs directly or indirectly, as far as `enters` accepts them."""
        found, waiting = set(), [own]
        while waiting:
            identity = waiting.pop()
            if identity not in found and enters(identity):
                found.add(identity)
                waiting.extend(needed(identity, kinds))
        return found

    def is_macro(identity):
        return any("proc-macro" in target["kind"] for target in packages[identity]["targets"])

    def reference(identity):
        return f"pkg:cargo/{packages[identity]['name']}@{packages[identity]['version']}"

    inside = reached([None], lambda identity: not is_macro(identity))
    others = sorted(reached([None, "build"], lambda identity: True) - {own}, key=reference)
    extra = list(extra_components(options.extra, options.target))
    listed = list(components(others, inside, packages, hashes, own))
    for name, version, licence, _ in extra:
        entry = {"type": "library", "bom-ref": name, "name": name, "licenses": [{"expression": licence}], "scope": "required"}
        listed.append({**entry, "version": version} if version else entry)
    kinds = [None, "build"]
    report = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": next(components([own], inside, packages, hashes, own))},
        "components": listed,
        "dependencies": [
            {"ref": reference(identity), "dependsOn": sorted({reference(other) for other in needed(identity, kinds)})} for identity in [own, *others]
        ],
    }
    options.sbom.write_text(json.dumps(report, indent=1) + "\n")
    if options.folder:
        crates = [packages[identity] for identity in others if identity in inside and packages[identity]["source"]]
        write_notices(options.folder, crates, extra)


main()
