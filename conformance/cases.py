"""The cases of a chapter: `conformance/<chapter>/cases/<topic>.json`, all in one layout.

Scripts below golden/ use `load`, `add` and `save`. By hand: edit the file of the topic, then

    python3 conformance/cases.py          # writes every file in the one layout
"""

import json, pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYS = ["id", "rules", "releases", "op", "parent", "input", "args", "expect", "findings", "encode", "why", "origin"]
WIDTH = 140
# A line has fewer letters than this: a long value stands in a file below golden/.
LONGEST = 300


def topic(case):
    """The file of a new case: its `topic`, which is not written; else the part of its name in the middle, or its operation."""
    name = case["id"].split("/")
    return case.pop("topic", name[1] if len(name) > 2 else case["op"].split(".")[1]).replace("-", "_")


def text(value, indent, used):
    """`value` as JSON, on one line where it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + used <= WIDTH or not isinstance(value, (list, dict)) or not value:
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [json.dumps(key, ensure_ascii=False) + ": " for key in value]
        parts = [part + text(each, indent + 2, len(inner) + len(part) + 1) for part, each in zip(parts, value.values())]
        return "{\n" + ",\n".join(inner + part for part in parts) + "\n" + " " * indent + "}"
    # Short elements fill their lines; others stand alone.
    lines, row = [], ""
    for each in value:
        part = text(each, indent + 2, len(inner) + 1)
        if row and len(inner) + len(row) + len(part) + 3 <= WIDTH and "\n" not in part + row:
            row += ", " + part
        else:
            lines += [row] if row else []
            row = part
    return "[\n" + ",\n".join(inner + line for line in lines + [row]) + "\n" + " " * indent + "]"


def render(cases):
    """The text of a file."""
    out = []
    for case in cases:
        unknown = set(case) - set(KEYS)
        assert not unknown, f"{case['id']}: {unknown}"
        keys = [key for key in KEYS if key in case]
        lines = [f'  "{key}": ' + text(case[key], 2, len(key) + 7) for key in keys]
        out.append("{\n" + ",\n".join(lines) + "\n}")
        long = [line for line in out[-1].splitlines() if len(line) >= LONGEST]
        assert not long, f"{case['id']}: a line of {len(long[0])} letters: {long[0][:60]}"
    return "[\n" + ",\n".join(out) + "\n]\n"


def data(source):
    """The bytes of an input."""
    if "hex" in source:
        return bytes.fromhex(source["hex"])
    content = bytearray((ROOT / "golden" / source["file"]).read_bytes())
    for at, new in source.get("put", []):
        new = bytes.fromhex(new)
        content[at : at + len(new)] = new
    return bytes(content[: source.get("cut")])


def files(chapter):
    return sorted((ROOT / "conformance" / chapter / "cases").glob("*.json"))


def load(chapter):
    """All cases of a chapter, file by file."""
    return [case for file in files(chapter) for case in json.loads(file.read_text())]


def save(chapter, cases):
    """Writes these cases and no others: a case stays in the file that has it, a new one goes to that of its topic."""
    homes = {case["id"]: file.stem for file in files(chapter) for case in json.loads(file.read_text())}
    rooms = {}
    for case in cases:
        new = topic(case)
        rooms.setdefault(homes.get(case["id"], new), []).append(case)
    folder = ROOT / "conformance" / chapter / "cases"
    folder.mkdir(exist_ok=True)
    for file in files(chapter):
        if file.stem not in rooms:
            file.unlink()
    for name, members in rooms.items():
        (folder / f"{name}.json").write_text(render(members))


def add(chapter, cases):
    """Adds what is missing. A case that is there may have been corrected since: it stays, and what would differ is listed."""
    known = load(chapter)
    ids = {case["id"]: case for case in known}
    for case in cases:
        said = {key: value for key, value in case.items() if key != "topic"}
        if case["id"] not in ids:
            known.append(case)
        elif ids[case["id"]] != said:
            print("stays as it is:", case["id"])
    save(chapter, known)


def declare(origins):
    """Says in golden/manifest.json where files are from: `{file: origin}`."""
    path = ROOT / "golden/manifest.json"
    listed = {entry["file"]: entry for entry in json.loads(path.read_text())}
    listed.update({file: {"file": file, "origin": origin} for file, origin in origins.items()})
    lines = ",\n".join(json.dumps(listed[file], ensure_ascii=False) for file in sorted(listed))
    path.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    for folder in sorted((ROOT / "conformance").glob("*/cases")):
        save(folder.parent.name, load(folder.parent.name))
