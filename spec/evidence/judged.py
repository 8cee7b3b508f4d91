#!/usr/bin/env python3
"""Writes tables/judged.json, from reports of the suite: the releases whose runtimes follow each rule.

    judged.py RELEASE=REPORT.json..

A report is the output of `tvmspec check --impl .. --report json -o REPORT.json`; `conformance/suites/legacy-runtimes.sh` builds the
runtimes of 0.7 to 0.20. A release passes a rule if its runtime answers cases of the rule, each as expected. It fails
the rule if one answer differs, or the process ends. A rule with no answered case is not listed; releases
outside the rule's own are not.
"""

import collections
import json
import pathlib
import re
import sys

order = lambda release: [int(number) for number in release.split(".")]
rules = {}
for chapter in pathlib.Path(__file__).parent.parent.glob("*.md"):
    for rule, line in re.findall(r"^### ([A-Z]+-\d+) .*\n(level: .*)", chapter.read_text(), re.M):
        since, until = (re.search(rf"\b{name}: (\S+)", line) for name in ("since", "until"))
        rules[rule] = order(since[1]), order(until[1]) if until else [0, 99]

answers = collections.defaultdict(dict)
for word in sys.argv[1:]:
    release, path = word.split("=", 1)
    for result in json.loads(pathlib.Path(path).read_text())["results"]:
        if result["verdict"] in ("skipped", "unsupported"):
            continue
        for rule in result["rules"]:
            first, last = rules[rule]
            if not first <= order(release) <= last:
                continue
            answers[rule][release] = answers[rule].get(release, True) and result["verdict"] == "pass"
if not answers:
    sys.exit(__doc__)

lines = []
for rule in sorted(answers):
    of = {
        name: sorted((release for release, passed in answers[rule].items() if passed == wanted), key=order)
        for name, wanted in (("passed", True), ("failed", False))
    }
    lines.append(f"{json.dumps(rule)}: {json.dumps({name: releases for name, releases in of.items() if releases})}")
target = pathlib.Path(__file__).parent / "tables/judged.json"
target.write_text("{\n" + ",\n".join(lines) + "\n}\n")
print(f"{len(lines)} rules, {len(sys.argv) - 1} releases")
