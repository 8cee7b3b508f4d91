"""The cases of a chapter: `conformance/<chapter>/cases/<topic>.json`, all in one layout.

A file is a list of groups. A group states the members that most of its cases share; each of its `cases` states the rest, and any member that
differs. A case that has too little in common with its neighbours is an entry of the list itself.

Scripts use `load`, `add` and `save`, or `read` and `render` for one file; they see whole cases. By hand: edit the file of the topic, then

    python3 conformance/cases.py          # forms the groups again, and writes every file in this layout
    python3 conformance/cases.py --check  # names the files that this would change
"""

import collections, json, pathlib, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYS = ["id", "rules", "releases", "op", "parent", "input", "args", "expect", "findings", "encode", "own", "why", "origin"]
# The order of a group's members. A case cannot remove a member of its group: optional members are shared only if all cases have them.
REQUIRED = ["op", "rules", "releases", "origin", "why"]
SHARED = [*REQUIRED[:3], "parent", "input", "args", "expect", "encode", "own", *REQUIRED[3:]]
WIDTH = 150
# A line has fewer letters than this: a long value is in a file below golden/.
LONGEST = 320


def topic(case, folders):
    """Returns the file of a new case: its `topic`, which is not written; otherwise the file of cases with the same middle name, which
    names the file if there are none; otherwise its operation."""
    name = case["id"].split("/")
    middle = name[1] if len(name) > 2 else case["op"].split(".")[1]
    return case.pop("topic", folders.get(middle, middle)).replace("-", "_")


def on_one_line(value):
    return json.dumps(value, ensure_ascii=False)


def text(value, indent, used):
    """Formats `value` as JSON, on one line if it fits after `used` letters."""
    line = on_one_line(value)
    if len(line) + used <= WIDTH or not isinstance(value, (list, dict)) or not value:
        return line
    if isinstance(value, dict):
        return members(value, indent, used)
    if len(value) == 1:
        return "[" + text(value[0], indent, used + 1) + "]"
    inner = " " * (indent + 2)
    lines = lines_of([("", each) for each in value], indent + 2, 0)
    return "[\n" + ",\n".join(inner + line for line in lines) + "\n" + " " * indent + "]"


def members(value, indent, used):
    """Formats an object that begins after `used` letters and continues with two more spaces than `indent`."""
    parts = [(on_one_line(key) + ": ", each) for key, each in value.items()]
    if len(parts) == 1:
        [(key, each)] = parts
        if isinstance(each, (list, dict)):
            return "{" + key + text(each, indent, used + len(key) + 1) + "}"
    key, each = parts[0]
    begin = "\n" + " " * (indent + 2)
    if len(key) + len(on_one_line(each)) + used + 2 > WIDTH:
        return "{" + begin + ("," + begin).join(lines_of(parts, indent + 2, 0)) + "}"
    return "{" + ("," + begin).join(lines_of(parts, indent + 2, used - indent - 1)) + "}"


def lines_of(parts, indent, used):
    """Fills lines with short parts; the first line already has `used` letters. Other parts get their own lines."""
    lines, row = [], ""
    for key, value in parts:
        room = WIDTH - indent - (used if not lines else 0) - 2
        part = key + on_one_line(value)
        if row and len(row) + len(part) + 2 <= room and "\n" not in row:
            row += ", " + part
            continue
        lines += [row] if row else []
        row = key + text(value, indent, indent + len(key) + 2)
    return [*lines, row]


def groups(cases):
    """Neighbours of one operation that are about the same: their reasons or rules are equal, or their releases and origins."""
    found = []
    for case in cases:
        last = found[-1][-1] if found else {}
        same = {key for key in REQUIRED if case[key] == last.get(key)}
        if "op" in same and (same & {"why", "rules"} or same >= {"releases", "origin"}):
            found[-1].append(case)
        else:
            found.append([case])
    return found


def shared(group):
    """Returns the members that the group states for its cases."""
    stated = {}
    for key in SHARED:
        values = [on_one_line(case[key]) for case in group if key in case]
        value, count = collections.Counter(values).most_common(1)[0] if values else (None, 0)
        if count == len(group) or key in REQUIRED and 2 * count > len(group):
            stated[key] = json.loads(value)
    return stated


def entry(group):
    """The text of a group, or of a case without one."""
    if len(group) == 1:
        return members({key: group[0][key] for key in KEYS if key in group[0]}, 0, 0)
    stated = shared(group)
    rows = []
    for case in group:
        own = [key for key in KEYS if key in case and not (key in stated and on_one_line(stated[key]) == on_one_line(case[key]))]
        rows.append("  " + text({key: case[key] for key in own}, 2, 3))
    return members(stated, 0, 0)[:-1] + ',\n  "cases": [\n' + ",\n".join(rows) + "\n]}"


def render(cases):
    """The text of a file."""
    for case in cases:
        unknown = set(case) - set(KEYS)
        assert not unknown, f"{case['id']}: {unknown}"
    out = "[\n" + ",\n".join(entry(group) for group in groups(cases)) + "\n]\n"
    long = [line for line in out.splitlines() if len(line) >= LONGEST]
    assert not long, f"a line of {len(long[0])} letters: {long[0][:60]}"
    assert expanded(json.loads(out)) == cases
    return out


def expanded(entries):
    """The cases of groups, each whole."""
    whole = []
    for entry in entries:
        stated = {key: value for key, value in entry.items() if key != "cases"}
        whole += [{**stated, **case} for case in entry["cases"]] if "cases" in entry else [stated]
    return whole


def read(file):
    """The cases of a file, each whole."""
    return expanded(json.loads(file.read_text()))


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
    return [case for file in files(chapter) for case in read(file)]


def save(chapter, cases):
    """Writes these cases and no others: an existing case stays in its file, a new one goes to that of its topic."""
    homes = {case["id"]: file.stem for file in files(chapter) for case in read(file)}
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
    """Returns a member, or the value that its absence means."""
    return case.get(key, [] if key == "findings" else None)


def agrees(key, there, made):
    """Returns whether a script states the same case as the file. The script may state less: the kind of a rejection and the rules of
    findings, and a value that is in a separate file."""
    if key == "expect" and isinstance(made.get("reject"), str):
        return made["reject"] == there.get("reject", {}).get("kind")
    if key == "expect" and "accept_file" in there and "accept_file" not in made:
        return made == {"accept": json.loads((ROOT / "golden" / there["accept_file"]).read_text())}
    if key == "findings":
        rules = [finding["rule"] for finding in there]
        return made == there or made == rules
    return made == there


def add(chapter, cases):
    """Adds missing cases, which must state their whole expectation. An existing case stays: its file is the source, and a script
    that states it differently is wrong."""
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
    """Records the origin of files in golden/manifest.json: `{file: origin}`."""
    path = ROOT / "golden/manifest.json"
    listed = {entry["file"]: entry for entry in json.loads(path.read_text())}
    listed.update({file: {"file": file, "origin": origin} for file, origin in origins.items()})
    lines = ",\n".join(json.dumps(listed[file], ensure_ascii=False) for file in sorted(listed))
    path.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    stale = []
    for folder in sorted((ROOT / "conformance").glob("*/cases")):
        for file in files(folder.parent.name):
            new = render(read(file))
            if new != file.read_text():
                stale.append(str(file.relative_to(ROOT)))
                "--check" in sys.argv or file.write_text(new)
    if stale and "--check" in sys.argv:
        sys.exit("\n".join(stale))
