"""Runs probes of the C functions of a library. `probe.py` and `probe_legacy.py` contain the probes of both eras.

A probe is a function that gets the library and returns a value for JSON. Each runs in a separate process, which may crash.
"""

import ctypes as c
import json
import os
import sys

VOID = c.c_void_p
PROBES = {}


class DLTensor(c.Structure):
    _fields_ = [("data", VOID), ("device", c.c_int32 * 2), ("ndim", c.c_int32), ("dtype", c.c_uint8 * 4),
                ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class Managed(c.Structure):
    _fields_ = [("dl", DLTensor), ("context", VOID), ("deleter", VOID)]


def probe(function):
    PROBES[function.__name__] = function
    return function


def ref(value):
    return c.byref(value)


def main(usage, opened=c.CDLL):
    """Runs the probes that the command line names, or all, on the library that it names, and prints a line of JSON for each."""
    if len(sys.argv) < 2:
        sys.exit(usage)
    path, *chosen = sys.argv[1:]
    for name in chosen or PROBES:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                result = PROBES[name](opened(path))
            except AttributeError as error:
                result = {"absent": str(error).split()[-1]}
            os.write(writer, json.dumps(result).encode())
            os._exit(0)
        os.close(writer)
        shown = b"".join(iter(lambda: os.read(reader, 65536), b""))
        os.close(reader)
        status = os.waitpid(child, 0)[1]
        ended = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        print(json.dumps({name: json.loads(shown) if shown else {"ends": ended}}), flush=True)
