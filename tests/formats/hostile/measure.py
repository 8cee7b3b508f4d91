"""What the files of make.py cost: `measure.py PROGRAM DIR [NAME..]` runs each command on each file and prints a table of exit
codes, times and peaks.

Exit code 1 where a command ends by a signal, with a code above 2, or with a peak above 64 MB and 30 bytes for each byte of
its file. MODEL, GRAPH, LIBRARY and FUNCTION name what `run` and `call` get besides. Memory is the peak of the process as the kernel has it; time is that of the clock.
"""

import os
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# It registers all classes, in their order.
from make import classes, executables

MB = 1 << 20
SECONDS = 120
COLUMNS = ["verify", "inspect", "explain", "dump", "run", "call"]
# The ways in which a file goes to one command.
LABELS = {"inspect": "plain", "inspect-code": "--code", "run": "--inputs", "run-npy": "--input", "run-graph": "--graph", "run-params": "--params"}


def line(program, folder, name, command):
    path = os.path.join(folder, name)
    model = os.environ.get("MODEL", "")
    graph, library, function = (os.environ.get(key, "") for key in ("GRAPH", "LIBRARY", "FUNCTION"))
    return {
        "inspect-code": [program, "inspect", "--code", path],
        "run": [program, "run", model, "--inputs", path],
        "run-npy": [program, "run", model, "--input", "x=" + path],
        "run-vm": [program, "run", path, "--input", "x=" + os.path.join(folder, executables.VM_INPUT)],
        "run-graph": [program, "run", "--graph", path, "--lib", library],
        "run-params": [program, "run", "--graph", graph, "--lib", library, "--params", path],
        "call": [program, "call", library, function, "@" + path],
    }.get(command, [program, command, path])


def measured(words):
    def bounded():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    start = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=bounded)
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() - start > SECONDS:
            os.kill(child.pid, 9)
        time.sleep(0.005)
    code = os.waitstatus_to_exitcode(status)
    return code, time.monotonic() - start, usage.ru_maxrss * 1024


def main():
    program, folder, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    bad = 0
    print("| file | what is wrong with it | size | " + " | ".join(COLUMNS) + " |")
    print("|---|---|---|" + "---|" * len(COLUMNS))
    for name, (how, commands) in classes.CLASSES.items():
        path = os.path.join(folder, name)
        if wanted and name not in wanted or not os.path.exists(path):
            continue
        size = os.path.getsize(path)
        cells = {column: [] for column in COLUMNS}
        for command in commands:
            needed = "LIBRARY" if command == "call" else "MODEL"
            if command.startswith(("run", "call")) and not os.environ.get(needed):
                continue
            code, seconds, peak = measured(line(program, folder, name, command))
            over = code < 0 or code > 2 or peak > 64 * MB + 30 * size
            bad += over
            # A file may go to one command in several ways: each is measured, and named where there are several.
            column = command.split("-")[0]
            several = sum(other.split("-")[0] == column for other in commands) > 1
            way = f"{LABELS[command]}: " if several else ""
            cells[column].append(f"{way}{code}, {seconds:.1f} s, {peak / MB:.0f} MB" + " **over**" * over)
        print(f"| `{name}` | {how.__doc__} | {size / 1e6:.2f} MB | " + " | ".join("; ".join(cell) for cell in cells.values()) + " |", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
