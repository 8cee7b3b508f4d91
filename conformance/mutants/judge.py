"""Which mutants are noticed: by the cases of the suite, and by the tests of the crate."""

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
# The tests of the formats, and those of what runs; rpc and target have both.
FORMATS = ("wire", "tensor", "payload", "import_tree", "blob", "target", "rpc")
RUNTIME = ("value", "function", "object", "module", "device", "graph", "vm", "rpc", "target")
GROUPS = ((FORMATS, "formats"), (RUNTIME, "runtime"))
RULE = re.compile(r"[A-Z]{2,6}-\d{2,3}")


def bounded(seconds):
    """A mutant may allocate, and run, without end.

    What runs is held to its own time: beside other work a sound program takes many times as long, and is no hang. What waits for
    ever takes none, and ends by the clock, which is `PATIENCE` times as generous.
    """

    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))

    return {"preexec_fn": bound, "timeout": PATIENCE * seconds}


def each(work, items):
    """`work` of all items, as many at a time as there are cores, in their order."""
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return list(pool.map(work, items))


class Suite:
    """The command line of a planted copy, and what its suite says."""

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
        """The cases that fail, or "a crash" or "a hang" of all; nothing where the mutant is not noticed.

        Those of `chapter` run first, and alone where one of them fails: they notice most, in a tenth of the time.
        """
        if chapter and (failed := self.failing(number, "--chapter", chapter)):
            return failed
        return self.failing(number, *(word for case in cases or () for word in ("--case", case)))

    def failing(self, number, *selection):
        """What fails. A case that answers too late may have had no turn on a busy machine: it counts when it is late again."""
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

    def executed(self, *arguments):
        """The numbers of the mutants that a run executes."""
        with tempfile.NamedTemporaryFile("r") as listed:
            self.run(LISTING, *arguments, executed=listed.name)
            return {int(line) for line in listed.read().split()}

    def nearest(self, numbers):
        """For each of `numbers` the case that executes the fewest mutants besides: the nearest to it."""
        cases = list(self.rules_of_cases())
        found = {}
        for case, executed in zip(cases, each(lambda case: self.executed("--case", case), cases)):
            for number in executed & numbers:
                if number not in found or len(executed) < found[number][0]:
                    found[number] = (len(executed), case)
        return {number: case for number, (_, case) in found.items()}


class Tests:
    """The tests of one chapter, tests/*/<chapter>*.rs and those beside its code, and behind them the others of its group: what is
    compiled for C or run as a program is in tests that no chapter names."""

    # What fails without any mutant, by its command: the chapters of a group share their tests.
    failing = {}

    def __init__(self, chapter, programs, work, timeout):
        self.work, self.timeout = work, timeout
        group = {name for chapters, name in GROUPS if chapter in chapters}
        own, others = [], []
        for (kind, name, is_test), program in sorted(programs.items()):
            if is_test and kind == "lib":
                own.append([program, f"{chapter}::"])
            elif is_test and kind == "test":
                (own if belongs(name, chapter) else others if group_of(work, name) in group else []).append([program])
        # A test that fails without any mutant says nothing of one.
        self.commands = [command for command in own + others if not self.fails_alone(command)]

    def fails_alone(self, command):
        key = tuple(command)
        if key not in Tests.failing:
            Tests.failing[key] = self.fails(command, NONE)
        return Tests.failing[key]

    def fails(self, command, number):
        try:
            result = subprocess.run(
                command, cwd=self.work, env={**os.environ, "TVMSPEC_MUTANT": str(number), "CARGO_MANIFEST_DIR": str(self.work)},
                stdin=subprocess.DEVNULL, capture_output=True, **bounded(self.timeout),
            )
        except subprocess.TimeoutExpired:
            return True
        return result.returncode != 0

    def notice(self, number):
        return any(self.fails(command, number) for command in self.commands)


def belongs(name, chapter):
    return re.fullmatch(f"{chapter}(_.*)?", name) is not None


def group_of(project, name):
    return next((path.parent.name for path in (project / "tests").glob(f"*/{name}.rs")), None)


def names_of_tests(project, chapters):
    """What cargo builds for `Tests`."""
    groups = {name for members, name in GROUPS if set(members) & set(chapters)}
    names = sorted(path.stem for path in (project / "tests").glob("*/*.rs") if path.parent.name in groups)
    return ["--lib", *(word for name in names for word in ("--test", name))]
