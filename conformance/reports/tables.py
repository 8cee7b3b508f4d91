#!/usr/bin/env python3
"""Rewrites the tables of this folder's reports, from JSON reports of the suite.

    for v in 0.7 ... 0.20; do tvmspec check --memory 8192 --impl legacy:RUNTIMES/$v/libtvm_runtime.so@$v \\
        --known conformance/known/apache-tvm-0.7-0.20.toml --report json -o JSON/$v.json; done
    conformance/reports/tables.py legacy JSON

    for v in ...; do tvmspec check --memory 8192 --impl ffi:$v/libtvm_ffi.so,$v/libtvm_ffi_testing.so --report json -o JSON/$v.json; done
    conformance/reports/tables.py tvm-ffi JSON

The script finds a table by its header line; the text around it is written by hand.
"""

import collections
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Reasons that differ only in a name or number.
ALIKE = [
    (r"(a loader is missing|does not name the type|is rejected).*", r"\1"),
    (r"of kind `[^`]*`", "of one kind or another"),
    (r"`[a-z]+\.[a-z_]+` is not possible", "the operation is not possible"),
    (r"as \d\S* to \d\S* do, not as \S+", "as other releases do"),
    (r"asks for what \S+ does", "asks for what another release does"),
    (r"(reads|writes) `\w+` only", r"\1 a record only"),
]
BAD = ("fail", "hang", "crash", "out-of-memory", "protocol-error")


def main():
    what, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    reports = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"), key=lambda path: release(path.stem))}
    {"legacy": legacy, "tvm-ffi": tvm_ffi}[what](reports)


def release(name):
    return [int(part) if part.isdigit() else part for part in re.findall(r"\d+|[a-z]+", name)]


def legacy(reports):
    path = HERE / "legacy-runtimes.md"
    text = path.read_text()
    rows = [[name, *(report["totals"][verdict] for verdict in ("pass", *BAD, "unsupported", "skipped"))] for name, report in reports.items()]
    text = table(text, "| release | pass |", rows)
    text = table(text, "| case | rules | fails in |", wrong(reports))
    text = listing(text, "The number of cases by release, least to most:", unasked(reports))
    path.write_text(suite(text, reports))


def tvm_ffi(reports):
    """Rewrites the counts. A row stands for several releases: it keeps their names, and different counts become a range."""
    path = HERE / "tvm-ffi-releases.md"
    text = path.read_text()
    head = "| tvm-ffi | says that it is |"
    lines = text.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith(head)) + 2
    rows = []
    for line in lines[first : first + next(at for at, line in enumerate(lines[first:]) if not line.startswith("|"))]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        mine = [report["totals"] for name, report in reports.items() if name in named(cells[0])]
        if len(mine) != len(named(cells[0])):
            raise SystemExit(f"no report of each of {cells[0]}")
        rows.append(cells[:3] + [span([totals[verdict] for totals in mine]) for verdict in ("pass", "fail", "crash", "unsupported", "skipped")])
    path.write_text(suite(table(text, head, rows), reports))


def named(cell):
    """`0.1.8, and its post0, post1` are 0.1.8, 0.1.8.post0 and 0.1.8.post1."""
    names = re.findall(r"\d+(?:\.\w+)+", cell)
    return names + [f"{names[0]}.{post}" for post in re.findall(r"(?<![.\w])post\d", cell)]


def span(counts):
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def wrong(reports):
    """Every known failure: where it fails, where it passes, why."""
    found = {}
    for name, report in reports.items():
        for one in report["results"]:
            if known := one.get("known"):
                row = found.setdefault(one["case"], {"rules": one["rules"], "why": known["reason"], "fails": {}, "order": len(found)})
                row["fails"][name] = one["verdict"]
    passes = collections.defaultdict(list)
    for name, report in reports.items():
        for one in report["results"]:
            if one["case"] in found and one["verdict"] == "pass":
                passes[one["case"]].append(name)
    groups = {}
    for case, row in found.items():
        stem = re.sub(r"/[^/]*$", "", case) + ("#truncated" if case.endswith("#truncated") else "")
        key = (stem, row["why"], tuple(row["fails"].items()), tuple(passes[case]))
        groups.setdefault(key, []).append((case, row))
    every = list(reports)
    for (_, why, fails, passing), cases in groups.items():
        names = " ".join(f"`{case}`" for case, _ in cases)
        rules = " ".join(sorted({rule for _, row in cases for rule in row["rules"]}))
        kinds = collections.defaultdict(list)
        for name, verdict in fails:
            kinds[verdict].append(name)
        failing = "; ".join(runs(some, every) + ("" if verdict == "fail" else f" ({verdict})") for verdict, some in kinds.items())
        yield [names, rules, failing, runs(passing, every) or "-", why]


def runs(names, every):
    """`0.8 to 0.13, 0.16` out of the names."""
    found = []
    for at, name in enumerate(every):
        if name in names:
            if found and found[-1][1] == at - 1:
                found[-1][1] = at
            else:
                found.append([at, at])
    return ", ".join(every[first] if first == last else f"{every[first]} to {every[last]}" for first, last in found)


def unasked(reports):
    counts = collections.defaultdict(lambda: dict.fromkeys(reports, 0))
    for name, report in reports.items():
        for one in report["results"]:
            if one["verdict"] == "unsupported":
                why = one["reason"]
                for pattern, plain in ALIKE:
                    why = re.sub(pattern, plain, why)
                counts[why][name] += 1
    for why, by in sorted(counts.items(), key=lambda item: -max(item[1].values())):
        least, most = min(by.values()), max(by.values())
        yield f"* {most if least == most else f'{least} to {most}'}: {why}"


def table(text, head, rows):
    """`text` with other rows in the table that begins with `head`."""
    lines = text.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith(head)) + 2
    last = next(at for at in range(first, len(lines) + 1) if at == len(lines) or not lines[at].startswith("|"))
    lines[first:last] = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def listing(text, head, items):
    lines = text.splitlines()
    first = lines.index(head) + 2
    last = next(at for at in range(first, len(lines) + 1) if at == len(lines) or not lines[at].startswith("*"))
    lines[first:last] = items
    return "\n".join(lines) + "\n"


def suite(text, reports):
    (name,) = {report["suite"][:12] for report in reports.values()}
    return re.sub(r"Suite `\w+`", f"Suite `{name}`", text)


if __name__ == "__main__":
    main()
