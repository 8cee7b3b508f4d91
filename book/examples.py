"""One example of a rule: the bytes of a golden file or of a case that the rule is about."""

import collections
import concurrent.futures

from program import ROOT

# Larger files are no short examples.
LARGEST = 4096
SUFFIXES = (".bin", ".params", ".vmexec")


class Examples:
    """Chooses an example for each rule: first a file that breaks it, then a file with its fields, then a rejected case."""

    def __init__(self, program):
        self.program = program
        files = {f"golden/{file}" for rule in program.rules.values() for file in rule["files"] if file.endswith(SUFFIXES)}
        small = sorted((path for path in files if (ROOT / path).stat().st_size <= LARGEST), key=lambda path: ((ROOT / path).stat().st_size, path))
        with concurrent.futures.ThreadPoolExecutor() as threads:
            self.dumps = {path: dump for path, dump in zip(small, threads.map(program.dump, small)) if dump}
        # The files that break a rule, and the whole files with its fields, from small to large.
        self.breaking, self.having = collections.defaultdict(list), collections.defaultdict(list)
        for path, dump in self.dumps.items():
            broken = dump["broken"]
            if broken and broken["offset"] is not None:
                self.breaking[broken["rule"]].append(path)
            if not broken:
                for name in {field["rule"] for field in dump["fields"]}:
                    self.having[name].append(path)

    def example(self, rule):
        """Returns the caption and the rows of an example, or None. A row has offset, bytes, field, value, rule, and a class."""
        name = rule["rule"]
        own = {f"golden/{file}" for file in rule["files"]}
        for path in self.breaking[name]:
            if path in own:
                return self.fields(path, self.dumps[path]["broken"]["offset"], None)
        for path in sorted(self.having[name], key=lambda path: path not in own):
            return self.fields(path, None, name)
        found = self.program.smallest_rejection(name)
        return around(*found) if found else None

    def fields(self, path, at, rule):
        """Returns the fields of a file around its broken byte, or around the first fields of the rule."""
        dump, data = self.dumps[path], (ROOT / path).read_bytes()
        fields, broken = dump["fields"], dump["broken"]
        places = [place for place, field in enumerate(fields) if (field["rule"] == rule if at is None else field["start"] <= at < field["end"])][:3]
        covered = bool(places)
        if not places and fields:
            places = [max((place for place, field in enumerate(fields) if field["end"] <= at), default=0)]
        wanted = {place + step for place in places for step in (-1, 0, 1)}
        rows = []
        for place, field in enumerate(fields):
            if place not in wanted:
                continue
            if rows and place - 1 not in wanted:
                rows.append(None)
            mark = ("bad" if at is not None else "mark") if place in places and covered else ""
            rows.append((field["start"], data[field["start"] : field["end"]], field["field"], field["value"].removeprefix(": "), field["rule"], mark))
        if at is not None and not covered:
            rows.append((at, data[at:], broken["field"], "" if at < len(data) else "the end of the file", broken["rule"], "bad"))
        caption = f"`{path}`, {dump['format']}, {dump['bytes']} bytes."
        return caption + (f" Broken at byte {at:#x}: {broken['message']}." if at is not None else ""), rows


def around(case, reject, data):
    """Returns the bytes of a rejected input around the broken one."""
    at = reject["offset"]
    caption = f"Case `{case['case']}` of `{case['op']}`, {len(data)} bytes. Expected: {case['answer']}."
    if is_text(data):
        start = max(0, at - 40)
        text = data[start : at + 40].decode("utf-8", "replace")
        return caption, [(start, None, "", ("…" if start else "") + text + ("…" if at + 40 < len(data) else ""), "", "bad")]
    first = max(0, at // 8 * 8 - 16)
    rows = []
    for start in range(first, min(len(data), first + 40), 8):
        part = data[start : start + 8]
        rows.append((start, part, "", "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in part), "", "bad" if start <= at < start + 8 else ""))
    if at >= len(data):
        rows.append((len(data), b"", "", "the end of the input", "", "bad"))
    return caption, rows


def is_text(data):
    return data[:1] in (b"{", b"[") and all(byte >= 32 or byte in b"\t\n\r" for byte in data)
