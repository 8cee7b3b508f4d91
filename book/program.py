"""The data of the program `tvmspec`: rules, cases with their expected answers, and the fields of files."""

import base64
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHAPTERS = ["wire", "tensor", "payload", "import_tree", "blob", "value", "function", "object", "module", "device", "target", "graph", "vm", "rpc"]
LATEST = "0.27"
# Inputs and answers of more letters are not shown.
LONGEST = 100


class Program:
    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        if not self.path.is_file():
            sys.exit(f"book/build: the program {path} does not exist. Run `cargo build`, or name another one with --tvmspec.")
        with concurrent.futures.ThreadPoolExecutor() as threads:
            rules, listed, shown = threads.map(lambda words: self.run(*words), [("rule", "*", "--json"), ("check", "--list", "--report", "json"), ("check", "--show")])
        found = sorted(json.loads(rules), key=lambda rule: CHAPTERS.index(rule["chapter"]))
        self.rules = {rule["rule"]: rule for rule in found}
        listed = json.loads(listed)
        self.suite = listed["suite"]
        self.cases = {case["case"]: case for case in listed["cases"]}
        self.rejected = {}
        self.read_answers(shown.decode())

    def run(self, *words):
        done = subprocess.run([self.path, *words], capture_output=True, cwd=ROOT)
        if done.returncode:
            sys.exit(f"book/build: `tvmspec {' '.join(words)}` failed with status {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def read_answers(self, shown):
        """Adds input and answer to each case, and collects the cases that are rejected at a byte of their data, by rule."""
        for block in shown.split("\n\n"):
            name, _, lines = block.strip("\n").partition("\n")
            if name not in self.cases:
                continue
            parts = dict(re.findall(r"^(input|request|expected) +(.*)", lines, re.M))
            answer = json.loads(parts["expected"])
            case = self.cases[name]
            case["input"] = parts["input"]
            case["answer"] = described(answer, parts["expected"])
            reject = answer.get("reject", {})
            if "offset" in reject:
                self.rejected.setdefault(reject["rule"], []).append((len(parts["request"]), name, reject, parts["request"]))

    def smallest_rejection(self, rule):
        """Returns case, rejection and data of the smallest input of at least 8 bytes that breaks the rule at a byte, or None."""
        for _, name, reject, request in sorted(self.rejected.get(rule, []), key=lambda found: found[:2]):
            data = json.loads(request)["args"].get("data")
            if isinstance(data, str) and len(data := base64.b64decode(data)) >= 8:
                return self.cases[name], reject, data
        return None

    def dump(self, path):
        """Returns the fields of a file that has nothing but them, or None."""
        done = subprocess.run([self.path, "dump", "--json", path], capture_output=True, cwd=ROOT)
        parts = json.loads(done.stdout) if done.stdout.startswith(b"[") else []
        return parts[0] if len(parts) == 1 and parts[0]["bytes"] == (ROOT / path).stat().st_size else None


def described(answer, text):
    """Describes an expected answer in the words of a report."""
    if "reject" in answer:
        reject = answer["reject"]
        place = f" at byte {reject['offset']:#x}" if "offset" in reject else ""
        place += f" in {reject['field']}" if "field" in reject else ""
        return f"rejection ({reject['kind']}, {reject['rule']}){place}"
    if "cuts" in answer:
        return "rejection of the input without its last bytes"
    if "either" in answer:
        return "any answer"
    found = ", ".join(sorted({finding["rule"] for finding in answer.get("findings", [])}))
    value = text.removeprefix('{"accept":').removesuffix("}")
    return f"acceptance, with a finding ({found})" if found else f"acceptance: {value}" if len(value) <= LONGEST else "acceptance"
