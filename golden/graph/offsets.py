"""Checks the offsets and fields of rejected graphs against their text, with a JSON reader that knows where every value begins.

Run: python offsets.py        (in this folder)

`field` is a path to a value of the text, and `offset` the start of that value or of one inside it. Without a field it is the start of the
object, of a member of `attrs`, or for malformed JSON (GRF-01) the position where Python's reader stops. `truncated.json` states where a
text ends.
"""

import json, os, re, sys

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, "../../conformance")
import cases as conformance

SPACE = re.compile(rb"[ \t\r\n]*")
NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")
STRING = re.compile(rb'"(\\.|[^"\\])*"')


def read(raw, at, path, places):
    """Notes where every value begins and ends, by path; returns the end of this one."""
    at = SPACE.match(raw, at).end()
    start = at
    if raw[at : at + 1] in (b"{", b"["):
        closing, index = {b"{": b"}", b"[": b"]"}[raw[at : at + 1]], 0
        at = SPACE.match(raw, at + 1).end()
        while raw[at : at + 1] != closing:
            name = f"{path}[{index}]"
            if closing == b"}":
                key = STRING.match(raw, at)
                name = f"{path}.{json.loads(key[0])}".lstrip(".")
                at = SPACE.match(raw, SPACE.match(raw, key.end()).end() + 1).end()
            at = SPACE.match(raw, read(raw, at, name, places)).end()
            at = SPACE.match(raw, at + (raw[at : at + 1] == b",")).end()
            index += 1
        at += 1
    else:
        at = (STRING.match(raw, at) or NUMBER.match(raw, at) or re.compile(rb"true|false|null").match(raw, at)).end()
    places.setdefault(path, []).append((start, at))
    return at


def main():
    agreed, apart, unknown = 0, [], []
    for case in conformance.load("graph"):
        reject = case["expect"].get("reject")
        if case["op"] != "graph.decode" or not reject or "offset" not in reject:
            continue
        raw = open(os.path.join("..", case["input"]["file"]), "rb").read()
        offset, field = reject["offset"], reject.get("field", "")
        try:
            text = raw.decode()
            whole = json.loads(text)
        except json.JSONDecodeError as error:
            at = len(text[: error.pos].encode())
            # Python names the token that it cannot read, where this crate may name the byte inside it.
            near = abs(at - offset) <= 4 or (reject["kind"] == "truncated" and offset == len(raw))
            agreed, apart = agreed + near, apart + ([] if near else [(case["id"], offset, at)])
            continue
        except UnicodeDecodeError as error:
            agreed, apart = agreed + (error.start == offset), apart + ([] if error.start == offset else [(case["id"], offset, error.start)])
            continue
        places = {}
        read(raw, 0, "", places)
        begins = {start for spans in places.values() for start, _ in spans}
        spans = places.get(field) or places.get("attrs." + field) or []
        good = offset in begins and any(start <= offset < end for start, end in spans)
        agreed, apart = agreed + good, apart + ([] if good else [(case["id"], offset, field, spans)])
    print(agreed, "offsets agree with the text;", len(apart), "do not")
    for one in apart:
        print("  ", *one)
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
