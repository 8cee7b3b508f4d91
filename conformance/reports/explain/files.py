"""The files that were written, as their manifests list them."""

import hashlib
import json
import pathlib
import re


def entries(folder):
    """Yields compiler and entry of each file, in the order of the releases and as they were written."""
    manifests = sorted(folder.glob("*/files.json"), key=lambda path: [int(part) for part in re.findall(r"\d+", path.parent.name)] or [99])
    for manifest in manifests:
        for entry in json.loads(manifest.read_text())["files"]:
            yield manifest.parent.name, entry


def digest(entry):
    """Returns a hash of a file and of the questions about it."""
    text = json.dumps(entry, sort_keys=True).encode()
    return hashlib.sha256(text + pathlib.Path(entry["path"]).read_bytes()).hexdigest()[:16]
