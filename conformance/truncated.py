"""Writes `golden/<chapter>/truncated.json`: how each accepted decode rejects the prefixes of its input, by runs of lengths.

    python3 conformance/truncated.py target/debug/tvmspec          # adds missing cases, and drops those that no longer exist
    python3 conformance/truncated.py target/debug/tvmspec --anew   # runs all again: read the difference

A run is [first length, last length, rule, offset or "end", field]. Only truncations are listed: a prefix that is accepted, or
wrong in another way, does not show where an input ends. The answers are those of this crate. Those of chapter import_tree are compared with the testee in
Python by `tests/suite/testees.rs`.
"""

import base64, json, pathlib, subprocess, sys

import cases

ROOT = pathlib.Path(__file__).resolve().parent.parent
# An input with more runs keeps this number of them, evenly spaced.
MOST = 400


def runs(testee, case, data):
    found = []
    for length in range(len(data)):
        args = dict(case.get("args", {}), data=base64.b64encode(data[:length]).decode())
        testee.stdin.write(json.dumps({"id": length, "op": case["op"], "args": args}) + "\n")
        testee.stdin.flush()
        reject = json.loads(testee.stdout.readline()).get("reject")
        if not reject or reject["kind"] != "truncated":
            found.append((length, None))
            continue
        offset = reject["offset"]
        found.append((length, (reject["rule"], offset, reject.get("field", ""))))
    rows = []
    # If the offset moves with the length, it is the end of the input.
    at_end = lambda length, key: key and key[1] == length
    for length, key in found:
        if key is None:
            continue
        last = rows[-1] if rows else None
        if last and last[1] == length - 1 and (last[2], last[4]) == (key[0], key[2]):
            if last[3] == key[1]:
                last[1] = length
                continue
            if at_end(length, key) and (last[3] == "end" or last[0] == last[1] == last[3]):
                last[1], last[3] = length, "end"
                continue
        rows.append([length, length, *key])
    if len(rows) <= MOST:
        return rows
    picked = {round(i * (len(rows) - 1) / (MOST - 1)) for i in range(MOST)}
    return [row for i, row in enumerate(rows) if i in picked]


def main():
    program, anew = sys.argv[1], "--anew" in sys.argv
    testee = subprocess.Popen([program, "testee"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for folder in sorted((ROOT / "conformance").glob("*/cases")):
        chapter = folder.parent.name
        path = ROOT / "golden" / chapter / "truncated.json"
        known = json.loads(path.read_text()) if path.exists() and not anew else {}
        table = {}
        for case in cases.load(chapter):
            accepted = "accept" in case["expect"] or "accept_file" in case["expect"]
            source = case["input"]
            if not case["op"].endswith(".decode") or not accepted or not {"file", "hex"} & set(source):
                continue
            data = cases.data(source)
            rows = known.get(case["id"]) or runs(testee, case, data)
            if rows:
                table[case["id"]] = rows
            elif data:
                print("no truncation:", case["id"])
        if table:
            entries = (json.dumps(id) + ": [\n" + ",\n".join("  " + json.dumps(row) for row in rows) + "\n]" for id, rows in table.items())
            path.write_text("{\n" + ",\n".join(entries) + "\n}\n")


if __name__ == "__main__":
    main()
