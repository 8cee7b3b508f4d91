"""A server of TVM with the functions that the suite calls, for `tvmspec check --impl rpc:HOST:PORT@RELEASE --chapter rpc`.

    python3 conformance/testee/python/rpc_server.py [PORT [TRACKER KEY]]

TRACKER is host:port of a tracker that assigns the server to clients of KEY, for `--impl rpc-tracker:HOST:PORT/KEY@RELEASE`. The
server runs the listening loop of the tvm that Python finds, 0.8 or later. From 0.17 on the loop ends after a failed session. It is
then restarted, so that the following cases are judged too. The functions are those of conformance/rpc/functions.rs.
"""

import builtins
import os
import socket
import sys

import numpy
import tvm
from tvm.rpc import server

if hasattr(tvm.runtime, "Tensor"):  # since 0.22
    import tvm_ffi

    register = tvm_ffi.register_global_func
else:
    register = tvm.register_func

CALLS = [0]
LIVING = [0]


class Counted:
    def __init__(self):
        LIVING[0] += 1

    def __del__(self):
        LIVING[0] -= 1


def adder(added):
    counted = Counted()
    return lambda value: (counted, value + added)[1]


def error(kind, message):
    raise getattr(builtins, kind, type(kind, (Exception,), {}))(message)


def counted(length):
    elements = numpy.arange(length, dtype="float32")
    return tvm.runtime.tensor(elements) if hasattr(tvm.runtime, "Tensor") else tvm.nd.array(elements)


def array_of(tensor):
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor.asnumpy()


def fields(tensor):
    array = array_of(tensor)
    return f"{array.dtype} {list(array.shape)} {array.tobytes().hex()}"


def double(tensor):
    tensor.copyfrom(array_of(tensor) * 2)


def calls(*_):
    CALLS[0] += 1
    return CALLS[0]


def array(*values):
    return tvm.runtime.convert(list(values))


def fail(*_):
    raise ValueError("as asked")


# The functions of `function.call` that Python functions can replace: they accept any arguments.
CALLED = {
    "count": lambda *args: len(args),
    "first": lambda *args: args[0] if args else None,
    "nothing": lambda *_: None,
    "fail": fail,
    "keep": lambda value, _: value,
}

FUNCTIONS = {
    "echo": lambda value: value,
    "true": lambda: True,
    "text": lambda: "a\0b",
    "raise": error,
    "adder": adder,
    "array": array,
    "counted": counted,
    "fields": fields,
    "double": double,
    "length": len,
    "living": lambda: LIVING[0],
    "calls": calls,
}


def main(port, tracker=None, key=""):
    for name, function in FUNCTIONS.items():
        register("tvmspec.rpc." + name, function, override=True)
    for name, function in CALLED.items():
        register("tvmspec.function." + name, function, override=True)
    if tracker:
        host, _, tracker_port = tracker.rpartition(":")
        tracker = (host, int(tracker_port))
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(16)
    port = listener.getsockname()[1]
    print(f"tvm {tvm.__version__} at 127.0.0.1:{port}", flush=True)
    while True:
        child = os.fork()
        if child == 0:
            try:
                server._listen_loop(listener, port, key, tracker, None, None)
            finally:
                os._exit(1)
        os.waitpid(child, 0)


main(int(sys.argv[1]) if len(sys.argv) > 1 else 0, *sys.argv[2:4])
