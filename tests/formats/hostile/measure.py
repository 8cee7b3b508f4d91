"""Measures the cost of the files of make.py: `measure.py PROGRAM DIR [--larger DIR] [NAME..]` runs each command on each file and prints a table of exit
codes, processor times and peaks. The second folder has the same files, four times as large: then the table also has the ratios of the times.

Exit code 1 if a command ends by a signal, with a code above 2, with a peak above 64 MB and 30 bytes for each byte of
its files, or takes more than eight times as long for four times the bytes. MODEL, GRAPH, LIBRARY and FUNCTION name additional inputs of `run` and `call`.
Memory is the peak of the process as the kernel reports it.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# It registers all classes, in their order.
from make import classes, executables

MB = 1 << 20
SECONDS = 120
# A command that takes less for the larger file is too fast to tell how its time grows.
TELLING = 0.3
MOST_GROWTH = 8
FORMS = ["verify", "inspect", "explain", "dump"]
# Beside a way that is listed these are measured, too.
ALSO = {command: [command, command + "-json"] for command in FORMS}
ALSO["verify"] += ["convert-bin", "convert-c", "unpack", "extract", "extract-json"]


def column(command):
    return "rpc-decode" if command.startswith("rpc-decode") else command.split("-")[0]


def line(program, folder, name, command, out):
    path = os.path.join(folder, name)
    model = os.environ.get("MODEL", "")
    graph, library, function = (os.environ.get(key, "") for key in ("GRAPH", "LIBRARY", "FUNCTION"))
    server = path.replace(".client.", ".server.")
    what, _, how = command.partition("-")
    if command.startswith("rpc-decode"):
        return [program, "rpc-decode", path, server] + (["--" + command.rsplit("-", 1)[1]] if command != "rpc-decode" else [])
    return {
        "inspect-code": [program, "inspect", "--code", path],
        "run": [program, "run", model, "--inputs", path],
        "run-npy": [program, "run", model, "--input", "x=" + path],
        "run-vm": [program, "run", path, "--input", "x=" + os.path.join(folder, executables.VM_INPUT)],
        "run-graph": [program, "run", "--graph", path, "--lib", library],
        "run-params": [program, "run", "--graph", graph, "--lib", library, "--params", path],
        "call": [program, "call", library, function, "@" + path],
        "target": [program, "target", "-"],
        "target-json": [program, "target", "--json", "-"],
        "unpack": [program, "unpack", path, "-o", os.path.join(out, "unpacked")],
        "extract": [program, "extract", path, "1", "--raw", "-o", os.path.join(out, "raw")],
        "extract-json": [program, "extract", path, "1", "--json"],
    }.get(command) or {
        "pack": [program, "pack", path, "-o", os.path.join(out, "made." + how)],
        "convert": [program, "convert", path, "-o", os.path.join(out, "made." + how)],
    }.get(what) or [program, what, path] + (["--" + how] if how else [])


def measured(words, stdin):
    """Exit code, processor time in the program and in all, peak."""
    def bounded():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    start = time.monotonic()
    with open(stdin, "rb") as file:
        child = subprocess.Popen(words, stdin=file, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=bounded)
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() - start > SECONDS:
            os.kill(child.pid, 9)
        time.sleep(0.005)
    code = os.waitstatus_to_exitcode(status)
    return code, usage.ru_utime, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def bytes_of(path):
    """Those of a file, and of the file beside it that the command reads, too."""
    beside = {path.replace(".client.", ".server."), path.replace(".manifest", ".payload")} - {path}
    return os.path.getsize(path) + sum(os.path.getsize(other) for other in beside if os.path.exists(other))


def cell(program, folder, name, command):
    """A command on a file in one of the folders: its text, the time in the program, and whether it is over a limit.

    Growth is judged by the time in the program: what the system takes for thousands of files depends on the disk."""
    path = os.path.join(folder, name)
    out = tempfile.mkdtemp()
    try:
        words = line(program, folder, name, command, out)
        code, own, seconds, peak = measured(words, path if command.startswith("target") else os.devnull)
    finally:
        shutil.rmtree(out)
    over = code < 0 or code > 2 or peak > 64 * MB + 30 * bytes_of(path)
    return f"{code}, {seconds:.1f} s, {peak / MB:.0f} MB" + " **over**" * over, own, over


def main():
    program, folder, *wanted = sys.argv[1:]
    larger = None
    if wanted[:1] == ["--larger"]:
        larger, wanted = wanted[1], wanted[2:]
    bad = 0
    names = list(dict.fromkeys(column(other) for _, commands in classes.CLASSES.values() for command in commands for other in ALSO.get(command, [command])))
    print("| file | content | size | " + " | ".join(names) + " |")
    print("|---|---|---|" + "---|" * len(names))
    for name, (how, commands) in classes.CLASSES.items():
        path = os.path.join(folder, name)
        if wanted and name not in wanted or not os.path.exists(path):
            continue
        cells = {name: [] for name in names}
        commands = [other for command in commands for other in ALSO.get(command, [command])]
        for command in commands:
            needed = "LIBRARY" if command == "call" else "MODEL"
            if command.startswith(("run", "call")) and not os.environ.get(needed):
                continue
            text, own, over = cell(program, folder, name, command)
            if larger:
                text, more, over = cell(program, larger, name, command)
                if more > TELLING:
                    factor = more / max(own, 0.01)
                    text += f", x{factor:.1f}" + " **grows**" * (factor > MOST_GROWTH)
                    over = over or factor > MOST_GROWTH
            bad += over
            # A file may go to one command in several ways: each is measured, and named where there are several.
            to = column(command)
            several = sum(column(other) == to for other in commands) > 1
            way = f"{command[len(to) + 1:] or 'plain'}: " if several else ""
            cells[to].append(way + text)
        size = bytes_of(os.path.join(larger or folder, name))
        print(f"| `{name}` | {how.__doc__} | {size / 1e6:.2f} MB | " + " | ".join("; ".join(cell) for cell in cells.values()) + " |", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
