"""Compares the answers of `explain` with those of the runtimes."""

import collections
import json
import re
import subprocess

from files import entries

# In this order: of several answers about one file, the worst counts.
OUTCOMES = ["fails", "unknown", "silent", "loads"]
VERDICTS = ["agrees", "loader", "unknown", "not read", "differs"]
COLUMNS = ["verdict", "file", "release", "question", "ours", "why", "theirs", "text"]
LOADER = r"loadbinary|loadfile|load_from|[Ll]oader"


def report(folder, tvmspec, table):
    """Compares all answers, writes each comparison to `table`, and returns the report in Markdown."""
    runtimes = json.loads((folder / "answers.json").read_text())
    rows, files = [], list(entries(folder))
    for by, entry in files:
        key = by + "/" + entry["file"]
        said = explain(tvmspec, folder / key)
        for release, answers in runtimes.items():
            if answers.get(key, {}).get("answers", {}).get("load", ["not asked"])[0] != "not asked":
                rows += [dict(row, file=key, by=by, release=release) for row in compare(of_release(said, release), answers[key])]
    if table:
        table.write_text("".join("\t".join(str(row[column]) for column in COLUMNS) + "\n" for row in [dict(zip(COLUMNS, COLUMNS))] + rows))
    return markdown(rows, files)


def explain(tvmspec, path):
    """Returns the accounts of a file, or why there are none."""
    command = [tvmspec, "explain", "--json", str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)
    return json.loads(done.stdout) if done.stdout.strip() else done.stderr.strip().replace(str(path), path.name)


def holds(releases, release):
    """Returns whether a range such as `0.7..0.20` or `..` holds a release."""
    since, until = (int(end[2:]) if end else None for end in releases.split(".."))
    return (since or 0) <= int(release[2:]) <= (until or 99)


def of_release(accounts, release):
    """Returns the worst outcome that `explain` states for a file and a release, with the reason."""
    if isinstance(accounts, str):
        return {"outcome": "not read", "why": accounts, "needs": []}
    loads = [load for account in accounts for load in account["loads"] if holds(load["releases"], release)]
    worst = min(loads, key=lambda load: OUTCOMES.index(load["outcome"]))
    outcome, why = worst["outcome"], worst["why"]
    for here in [account["here"] for account in accounts]:
        if here["good"] is False and outcome != "fails":
            missing = [one["name"] for one in here["libraries"] if not one["found"]] + here["absent"]
            outcome = "fails" if here["machine"] else "lacks"
            why = here["machine"] or "missing here: " + ", ".join(missing)
    return {"outcome": outcome, "why": why, "needs": sorted({need["kind"] for account in accounts for need in account["needs"]})}


def compare(ours, theirs):
    """Yields a row about the file, then one about each object that is created from it: a machine, an executor."""
    answers = theirs["answers"]
    outcome, text = "loads", ""
    for question in ("load", "content", "call", "run"):
        answer, words = answers.get(question, ["good", ""])
        # A call that ends in an error was understood.
        if answer not in ("good", "not asked") and (question, answer) != ("call", "error"):
            outcome = "fails" if question == "load" and answer != "partial" else "silent"
            text = words if question == "load" else question + ": " + words
            break
    row = {"ours": ours["outcome"], "why": ours["why"], "theirs": outcome, "text": text, "question": "load"}
    asked = [(question, *answer) for question, answer in answers.items() if question not in ("load", "content", "call", "run")]
    made = {question: ("loads" if answer == "good" else "fails", words) for question, answer, words in asked if answer != "not asked"}
    # `explain` has one answer for a file and for the objects created from it: *fails* if one of them fails.
    both = ours["outcome"] == "fails" and outcome == "loads" and any(how == "fails" for how, _ in made.values())
    yield dict(row, verdict="agrees" if both else verdict(ours, outcome, text, theirs))
    for question, (how, words) in made.items() if outcome == "loads" else ():
        yield dict(row, question=question, theirs=how, text=words, verdict=verdict(ours, how, words, theirs))


def verdict(ours, outcome, text, theirs):
    """Compares an outcome of `explain` with that of a runtime."""
    said, answers = ours["outcome"], theirs["answers"]
    if said in ("unknown", "not read"):
        return said
    # A missing symbol is an error at once, or at the first call where symbols are bound late.
    if said == outcome or (said == "lacks" and outcome != "loads"):
        return "agrees"
    # Missing parts show when a machine is created.
    if said == "silent" and outcome == "fails" and answers["load"][0] == "good":
        return "agrees"
    # The fault cannot be observed: the file has no content to lose, the call lacks a tensor or a device, or only unread memory is overwritten.
    unseen = "at the first kernel" in ours["why"] or "is written after the end of that memory" in ours["why"]
    unasked = unseen or "content" not in answers or answers.get("call", [""])[0] == "not asked"
    if said == "silent" and outcome == "loads" and unasked:
        return "agrees"
    named = [kind for kind in ours["needs"] if kind not in theirs["registered"]] or re.findall(r"by `(.*?)`", ours["why"])
    if outcome == "fails" and said in ("loads", "silent") and named and re.search(LOADER, text):
        return "loader"
    return "differs"


def markdown(rows, files):
    """Returns the tables and the list of differences."""
    text = [HEAD % (len(files), len({row["file"] for row in rows}), len(rows))]
    for title, of_file in (("Loading the file", True), ("Making a machine or an executor of it", False)):
        text += ["## " + title, "", "| runtime | asked | agrees | a loader is missing | unknown | not read | differs |"]
        text.append("|---|--:|--:|--:|--:|--:|--:|")
        kept = [row for row in rows if (row["question"] == "load") == of_file]
        for release in list(dict.fromkeys(row["release"] for row in kept)) + ["all"]:
            mine = [row for row in kept if release in (row["release"], "all")]
            count = collections.Counter(row["verdict"] for row in mine)
            text.append("| %s | %d | %s |" % (release, len(mine), " | ".join(str(count[verdict]) for verdict in VERDICTS)))
        text.append("")
    groups = collections.defaultdict(list)
    for row in rows:
        if row["verdict"] == "differs" or (row["verdict"] == "not read" and row["theirs"] != "fails"):
            groups[(row["question"], row["ours"], alike(row["why"])[:60], row["theirs"], alike(row["text"])[:20])].append(row)
    text += ["## Differences", "", "| | written by | asked of | explain | runtime, mostly | such as |", "|--:|---|---|---|---|---|"]
    for (question, ours, why, theirs, _), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        by, asked = (", ".join(dict.fromkeys(row[column] for row in group)) for column in ("by", "release"))
        reasons = collections.Counter(alike(row["text"]) for row in group)
        words = ("the machine: " if question == "vm" else "") + theirs + ": " + reasons.most_common(1)[0][0]
        cells = [str(len(group)), by, asked, ours + ": " + why, words.rstrip(": "), group[0]["file"]]
        text.append("| " + " | ".join(re.sub(r"\s+", " ", cell.replace("|", "/"))[:130] for cell in cells) + " |")
    return "\n".join(text) + "\n"


# Replacements for reasons that name a file, a type or a release.
REASONS = [
    (r".*(\bld (returned|terminated)|dangerous relocation).*", "the linker fails"),
    (r"^(link|InternalError|TVMError): ", ""),
    (r"SIGSEGV:.*", "SIGSEGV"),
    (r"^\w+ is \w+ \[.*", "a tensor differs"),
    (r"field `?\w+`?", "field _"),
    (r"0x[0-9a-f]+|\d+|[\w./-]+\.(so|tar|json|params|o|c|a|s|ll)\b|type (`\w+`|[\w.]+)", "_"),
    (r"(?<![`.\w])[a-zA-Z_]\w*(\.\w+)+", "_"),
]


def alike(text):
    """Returns a reason without the parts that differ between files and between releases."""
    for pattern, instead in REASONS:
        text = re.sub(pattern, instead, text, flags=re.DOTALL)
    return text


HEAD = """# `explain` compared with real runtimes

Written by `conformance/reports/explain/run.py`, which says how to repeat it. The compilers wrote %d files, of which %d have a usual
function that loads them. They gave %d answers.

The packages are `hhb-tvm` 2.0.20 (0.8) and 2.11.4 (0.9), `xtc-tvm-python-bindings` 0.19.0.12 and 0.21.0.8, `tilelang` 0.1.7 (only a runtime,
0.22, with tvm-ffi 0.1.0 and a CUDA driver without functions), `apache-tvm` 0.27.0.post1 with tvm-ffi 0.1.14.post1 (with 0.1.15 it crashes when
it saves IR, OBJ-38), and `apache-tvm-tirx` 0.1.0a4 (only a compiler, after 0.27).

An answer of `explain` agrees with the runtime in three cases:

* *loads*, and nothing is missing after loading;
* *fails*, and an error or a crash follows, for the file or for an object created from it;
* *silent*, and afterwards something is missing or wrong (a function, a module, a value, a result), or the first call crashes.

Two traps are not visible here and count as agreed if the file loads: a kernel that no device launches, and a write past the end of a tensor.
*A loader is missing*: `explain` names a loader that this runtime was built without. *Unknown*: `explain` gives no answer. *Not read*: `explain`
does not know the form of the file.
"""
