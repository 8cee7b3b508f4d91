#!/usr/bin/env python3
"""Compares `tvmspec explain` with real runtimes, over files that real compilers write.

    run.py write  FOLDER --compiler 0.19=PYTHON ...
    run.py ask    FOLDER --runtime 0.19=PYTHON --runtime 0.22=PYTHON,LIBRARY...
    run.py report FOLDER --tvmspec BINARY [--table ROWS.tsv] [-o REPORT.md]

`write` lets each compiler write files, and a `files.json` that lists them, into a separate folder below FOLDER. `ask` loads each file in
each runtime, in a separate process with a time limit, by the function that is usual for such a file. It keeps the answers in `answers.json`
and asks only questions that are not in it. `report` asks `tvmspec explain` about the same files, and prints the tables and every difference.

PYTHON is a command: `env PYTHONPATH=FOLDER python3` is one. Text in C is compiled with the headers that `CPATH` names. A runtime without TVM's
Python package, such as the one in the wheel of tilelang, is asked through the package `tvm_ffi`, which loads LIBRARY. Code that runs in a compiler
or a runtime is limited to Python 3.6, the newest version that the package of 0.8 supports.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from compare import report
from files import digest, entries
from runtime import answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["write", "ask", "report"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--compiler", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--runtime", action="append", default=[], metavar="RELEASE=PYTHON[,LIBRARY...]")
    parser.add_argument("--tvmspec", default="tvmspec", metavar="BINARY")
    parser.add_argument("--table", type=pathlib.Path, metavar="ROWS.tsv", help="each comparison in a row")
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="REPORT.md")
    options = parser.parse_args()
    if options.step == "write":
        for compiler in options.compiler:
            name, python = compiler.split("=", 1)
            (options.folder / name).mkdir(parents=True, exist_ok=True)
            subprocess.run(shlex.split(python) + [os.path.abspath(__file__), "--write", str(options.folder / name)], check=False)
    elif options.step == "ask":
        for runtime in options.runtime:
            ask(options.folder, *runtime.split("=", 1))
    else:
        text = report(options.folder, options.tvmspec, options.table)
        options.output.write_text(text) if options.output else print(text, end="")


def write(folder):
    """Writes all files that the compiler of this process can write."""
    from compiler import Compiler
    from libraries import devices, libraries, sources
    from models import graphs, models
    from values import objects, parameters

    os.chdir(folder)
    compiler = Compiler()
    for topic in (libraries, devices, sources, parameters, objects, graphs, models):
        compiler.alone(topic.__name__, topic, compiler)
    os.rename("kept.json", "files.json")
    print(os.path.basename(folder), len(compiler.files), "files,", len(compiler.failed), "that the compiler does not write", flush=True)


def ask(folder, release, runtime):
    """Asks one runtime about each file that it has not answered yet."""
    path = folder / "answers.json"
    answers = json.loads(path.read_text()) if path.is_file() else {}
    mine = answers.setdefault(release, {})
    files = [dict(entry, path=str((folder / by / entry["file"]).resolve()), key=by + "/" + entry["file"]) for by, entry in entries(folder)]
    todo = [entry for entry in files if mine.get(entry["key"], {}).get("digest") != digest(entry)]
    python, *libraries = runtime.split(",")
    command = shlex.split(python) + [os.path.abspath(__file__), "--answer", release] + libraries
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", TVM_NUM_THREADS="1")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "universal_newlines": True}
    with tempfile.TemporaryDirectory() as scratch, subprocess.Popen(command, cwd=scratch, env=environment, **pipes) as process:
        try:
            for entry in todo:
                process.stdin.write(json.dumps(entry) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    raise SystemExit("the runtime of %s ended before it answered about %s" % (release, entry["key"]))
                mine[entry["key"]] = dict(json.loads(line), digest=digest(entry))
        finally:
            path.write_text(json.dumps(answers, indent=1))
    print(release, len(todo), "answers of", len(files), flush=True)


if __name__ == "__main__":
    # These two run in a compiler and in a runtime.
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2])
    elif sys.argv[1:2] == ["--answer"]:
        answer(sys.argv[2], sys.argv[3:])
    else:
        main()
