"""The cases of a chapter: `conformance/<chapter>/cases/<topic>.json`, all in one layout.

Scripts below golden/ use `load`, `add` and `save`. By hand: edit the file of the topic, then

    python3 conformance/cases.py          # writes every file in the one layout
"""

import json, pathlib, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYS = ["id", "rules", "releases", "op", "parent", "input", "args", "expect", "findings", "encode", "why", "origin"]
WIDTH = 140
# A line has fewer letters than this: a long value is in a file below golden/.
LONGEST = 300


def topic(case, folders):
    """The file of a new case: its `topic`, which is not written; else where others have the same name in the middle, which is the name of the
    file without them; else its operation."""
    name = case["id"].split("/")
    middle = name[1] if len(name) > 2 else case["op"].split(".")[1]
    return case.pop("topic", folders.get(middle, middle)).replace("-", "_")


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
    folders = {id.split("/")[1]: home for id, home in homes.items() if id.count("/") > 1}
    rooms = {}
    for case in cases:
        new = topic(case, folders)
        rooms.setdefault(homes.get(case["id"], new), []).append(case)
    folder = ROOT / "conformance" / chapter / "cases"
    folder.mkdir(exist_ok=True)
    for file in files(chapter):
        if file.stem not in rooms:
            file.unlink()
    for name, members in rooms.items():
        (folder / f"{name}.json").write_text(render(members))


def stated(case, key):
    """A member, and without it what its absence means."""
    return case.get(key, [] if key == "findings" else None)


def agrees(key, there, made):
    """Whether a script that makes a case states what the file does. It may state less: the kind of a rejection and the rules of
    findings, and a value that is in a file of its own."""
    if key == "expect" and isinstance(made.get("reject"), str):
        return made["reject"] == there.get("reject", {}).get("kind")
    if key == "expect" and "accept_file" in there and "accept_file" not in made:
        return made == {"accept": json.loads((ROOT / "golden" / there["accept_file"]).read_text())}
    if key == "findings":
        rules = [finding["rule"] for finding in there]
        return made == there or made == rules
    return made == there


def add(chapter, cases):
    """Adds what is missing, which states its expectation in full. A case that is there stays: its file is the source, and a script
    that states something else of it is wrong."""
    known = load(chapter)
    ids = {case["id"]: case for case in known}
    wrong = []
    for case in cases:
        there = ids.get(case["id"])
        if there is None:
            reject = case["expect"].get("reject")
            assert reject is None or isinstance(reject, dict), f"{case['id']}: a rejection has kind, rule, offset and field"
            known.append(case)
            continue
        keys = (set(case) | set(there)) - {"topic"}
        differ = sorted(key for key in keys if not agrees(key, stated(there, key), stated(case, key)))
        wrong += [f"{case['id']}: {', '.join(differ)}"] if differ else []
    save(chapter, known)
    if wrong:
        sys.exit("\n".join(["the file and the script differ:", *wrong]))


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
