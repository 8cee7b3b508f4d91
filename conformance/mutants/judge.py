"""Which mutants the cases of the suite notice."""

import json
import os
import re
import resource
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

# No mutant: all is as it is. Every mutant: those that are executed are listed.
NONE, LISTING = 0, 2**32 - 1
MEMORY = 6 << 30
PATIENCE = 5
RULE = re.compile(r"[A-Z]{2,6}-\d{2,3}")


def bounded(seconds):
    """Runs a mutant, which may allocate and run without end.

    A running process is limited by its processor time, because a sound program takes many times as long on a busy machine. A process that waits
    forever uses none, and ends by the clock, whose limit is `PATIENCE` times as large.
    """

    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))

    return {"preexec_fn": bound, "timeout": PATIENCE * seconds}


def each(work, items):
    """Returns `work` of all items in their order, with one item at a time for each core."""
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return list(pool.map(work, items))


class Suite:
    """The command line of a planted copy, and the results of its suite."""

    def __init__(self, program, timeout):
        self.program, self.timeout = program, timeout

    def run(self, number, *arguments, executed=None):
        environment = {**os.environ, "TVMSPEC_MUTANT": str(number)}
        if executed:
            environment["TVMSPEC_MUTANTS_EXECUTED"] = executed
        return subprocess.run(
            [self.program, "check", "--complete", *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            **bounded(self.timeout),
        )

    def rules_of_cases(self):
        """Every case with the rules that it names."""
        listed = subprocess.run([self.program, "check", "--list"], capture_output=True, text=True, check=True).stdout
        return {line.split()[0]: set(RULE.findall(line.partition(" ")[2])) for line in listed.splitlines() if "/" in line.split()[0]}

    def noticing(self, number, cases=None, chapter=None):
        """Returns the cases that fail, or "a crash" or "a hang" of the run; nothing if the mutant is not noticed.

        The cases of `chapter` run first. If one of them fails, no others run: they notice most mutants, in a tenth of the time.
        """
        if chapter and (failed := self.failing(number, "--chapter", chapter)):
            return failed
        return self.failing(number, *(word for case in cases or () for word in ("--case", case)))

    def failing(self, number, *selection):
        """Returns the failing cases. A late answer may be due to a busy machine: it counts only if it is late again."""
        failed, late = self.failed_and_late(number, *selection)
        return failed or (late and sum(self.failed_and_late(number, *selection), []))

    def failed_and_late(self, number, *selection):
        try:
            result = self.run(number, "--report", "json", *selection)
        except subprocess.TimeoutExpired:
            return ["a hang"], []
        if result.returncode == 0:
            return [], []
        try:
            results = json.loads(result.stdout)["results"]
        except (ValueError, KeyError):
            return ["a crash"], []
        named = lambda is_late: [one["case"] for one in results if one["verdict"] not in ("pass", "known") and (one["verdict"] == "hang") == is_late]
        failed, late = named(False), named(True)
        return (failed, late) if failed or late else (["the exit status"], [])

    def executed(self):
        """The numbers of the mutants that the suite executes."""
        with tempfile.NamedTemporaryFile("r") as listed:
            self.run(LISTING, executed=listed.name)
            return {int(line) for line in listed.read().split()}
