"""Runs files of pytest tests, each file in a separate process, and writes a line `test OUTCOME` for each test.

    run_tests.py IMPORTS OUTCOMES LOG FILE...

IMPORTS (comma-separated modules) are imported once, and every file runs in a fork. A test that ends or stops its process
(CRASH-signal, EXIT-code, HANG) does not stop the rest of its file: another fork continues after it. A failure is written with the type of
the raised exception, so that two libraries that fail differently are distinguished.
"""

import importlib
import os
import signal
import sys

import pytest

# Of the processor and of the clock: a busy machine does not make a test hang.
SECONDS_PER_TEST = 120, 900
TIMERS = signal.SIGPROF, signal.SIGALRM


class Outcomes:
    """A plugin: leaves out the tests that were run before, and writes down each one when it begins and when it ends."""

    def __init__(self, path, done):
        self.file = open(path, "a", buffering=1)
        self.done = done
        self.raised = {}

    def pytest_collection_modifyitems(self, config, items):
        items[:] = [item for item in items if item.nodeid not in self.done]

    def pytest_runtest_logstart(self, nodeid, location):
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_TEST[0])
        signal.alarm(SECONDS_PER_TEST[1])
        print(nodeid, "STARTED", file=self.file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        if call.excinfo:
            self.raised[item.nodeid] = call.excinfo.type.__name__

    def pytest_collectreport(self, report):
        if not report.passed:
            print(report.nodeid, "SKIPPED" if report.skipped else "ERROR", file=self.file)

    def pytest_runtest_logreport(self, report):
        expected = hasattr(report, "wasxfail")
        if report.failed:
            word = f"{'FAILED' if report.when == 'call' else 'ERROR'}-{self.raised[report.nodeid]}"
        elif report.skipped:
            word = "XFAIL" if expected else "SKIPPED"
        elif report.when == "call":
            word = "XPASS" if expected else "PASSED"
        else:
            return
        print(report.nodeid, word, file=self.file)


def read(path):
    """The last word about each test, in the order in which they ran."""
    if not os.path.exists(path):
        return {}
    return dict(line.rsplit(" ", 1) for line in open(path).read().splitlines())


def run(file, path, log, done):
    """Returns the exit status of the process, and the seconds of processor time that it took."""
    child = os.fork()
    if child:
        _, status, used = os.wait4(child, 0)
        return status, used.ru_utime + used.ru_stime
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # The default action of both ends a process that hangs, also within C.
    for timer in TIMERS:
        signal.signal(timer, signal.SIG_DFL)
    options = ["-q", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--tb=short", "-rsf"]
    status = pytest.main([*options, file], plugins=[Outcomes(path, done)])
    sys.stdout.flush()
    os._exit(int(status))


def main(imports, path, log, *files):
    for name in imports.split(","):
        importlib.import_module(name)
    log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    open(path, "w").close()
    for file in files:
        seconds = 0
        part = f"{path}.part"
        done = {}
        while True:
            status, used = run(file, part, log, done)
            seconds += used
            ended, done = done, read(part)
            open_test = [test for test, word in done.items() if word == "STARTED"]
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) < 6 and not open_test:
                break
            if not os.WIFSIGNALED(status):
                word = f"EXIT-{os.WEXITSTATUS(status)}"
            else:
                word = "HANG" if os.WTERMSIG(status) in TIMERS else f"CRASH-{os.WTERMSIG(status)}"
            with open(part, "a") as out:
                for test in open_test or [file]:
                    print(test, word, file=out)
            # No test was started: the file itself, or the end of its process, crashes.
            if not open_test or len(done) == len(ended):
                break
            done = read(part)
        with open(path, "a") as out:
            for test, word in read(part).items():
                print(test, word, file=out)
        if os.path.exists(part):
            os.remove(part)
        print(f"{seconds:6.1f} s  {file}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
