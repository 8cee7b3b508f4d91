"""Runs the everyday steps of a client of the TVM that this Python imports, of either era, with a server.

`real_client.py PORT LIBRARY FUNCTION [HOP]` prints a line for each step, `STEP: ok` or `STEP: ` and the reason of the failure. FUNCTION of LIBRARY adds 1 to
float32 tensors. With HOP, the port of a second server, the session is with that one, through the first."""
import inspect
import os
import sys

import numpy
import tvm
from tvm import rpc

HOST = "127.0.0.1"
if hasattr(tvm, "nd"):
    array, empty = tvm.nd.array, tvm.nd.empty
else:
    array, empty = tvm.runtime.tensor, tvm.runtime.empty


def content(tensor):
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor.asnumpy()


def reason(error):
    return type(error).__name__ + " " + " ".join(str(error).split())[-160:]


def load(remote, name):
    # A fork of 0.16 passes more arguments than a server of upstream takes.
    if len(inspect.signature(remote.load_module).parameters) > 1:
        return remote.get_function("tvm.rpc.server.load_module")(name)
    return remote.load_module(name)


class Steps:
    def __init__(self, remote, library, function):
        self.remote, self.library, self.function = remote, library, function
        self.name = os.path.basename(library)

    def upload(self):
        self.remote.upload(self.library)
        assert bytes(self.remote.download(self.name)) == open(self.library, "rb").read()

    def load(self):
        self.module = load(self.remote, self.name)
        try:
            self.module.get_function("no such function")
        except AttributeError:
            return
        raise AssertionError("a function that is not there")

    def numbers(self):
        assert self.remote.get_function("rpc.test.addone")(41) == 42
        assert self.remote.get_function("rpc.test.strcat")("abc", 11) == "abc:11"

    def tensors(self):
        device = self.remote.cpu(0)
        values = numpy.arange(12, dtype="float32")
        one, other = array(values, device), empty((12,), "float32", device)
        self.module.get_function(self.function)(one, other)
        assert (content(other) == values + 1).all()
        copy = empty((12,), "float32", device)
        other.copyto(copy)
        assert (content(copy) == values + 1).all()

    def time_evaluator(self):
        device = self.remote.cpu(0)
        one, other = array(numpy.ones(12, "float32"), device), empty((12,), "float32", device)
        times = self.module.time_evaluator(self.function, device, number=3, repeat=2)(one, other).results
        assert len(times) == 2 and all(0 < time < 10 for time in times)

    def exception(self):
        raises = self.remote.get_function("rpc.test.except")
        try:
            raises("why not")
        except Exception as error:
            assert "why not" in str(error), str(error)
        else:
            raise AssertionError("nothing is raised")
        # The session continues afterwards.
        self.numbers()

    def copy_of_16_MiB(self):
        values = (numpy.arange(16 << 20) % 251).astype("uint8")
        assert (content(array(values, self.remote.cpu(0))) == values).all()

    def devices(self):
        assert self.remote.cpu(0).exist
        assert not (self.remote.cuda(0) if hasattr(self.remote, "cuda") else self.remote.gpu(0)).exist


STEPS = ["upload", "load", "numbers", "tensors", "time_evaluator", "exception", "copy_of_16_MiB", "devices"]

if __name__ == "__main__":
    port, library, function = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    through = []
    if len(sys.argv) > 4:
        through = ["rpc.Connect", HOST, int(sys.argv[4]), ""]
        # 0.8 has no flag for a log.
        if not tvm.__version__.startswith("0.8"):
            through.append(False)
    try:
        remote = rpc.connect(HOST, port, session_timeout=300, session_constructor_args=through)
    except Exception as error:
        print("connect:", reason(error), flush=True)
        os._exit(0)
    print("connect: ok", flush=True)
    steps = Steps(remote, library, function)
    for step in STEPS:
        try:
            getattr(steps, step)()
            print(f"{step}: ok", flush=True)
        except Exception as error:
            print(f"{step}: {reason(error)}", flush=True)
    # Without the destructors of a session that may be gone.
    os._exit(0)
