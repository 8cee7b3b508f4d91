"""Times the RPC client of the installed apache-tvm with a server, in seconds: `rpc.py PORT LIBRARY ROUNDS SIZES`, for benches/rpc.rs."""

import os
import sys
import time

import numpy
import tvm
from tvm import rpc

port, library, rounds, sizes = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def fastest(runs, body):
    body()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        body()
        times.append(time.perf_counter() - start)
    return min(times)


def rested(body):
    # The pause lets the server end the last session.
    times = []
    for _ in range(15):
        time.sleep(0.05)
        start = time.perf_counter()
        body()
        times.append(time.perf_counter() - start)
    return sorted(times)[7]


def connect():
    return rpc.connect("127.0.0.1", port)


def first_answer():
    connect().get_function("testing.echo")


print("connect", rested(first_answer), flush=True)
remote = connect()
device = remote.cpu(0)
echo = remote.get_function("testing.echo")


def calls(function, *args):
    def body():
        for _ in range(1000):
            function(*args)

    return body


print("call", fastest(rounds, calls(echo, 1)) / 1000, flush=True)
remote.upload(library)
nothing = remote.load_module(os.path.basename(library)).get_function("nothing")
tensors = [tvm.runtime.tensor(numpy.zeros(16, "float32"), device) for _ in range(3)]
print("tensors", fastest(rounds, calls(nothing, *tensors)) / 1000, flush=True)
for name, size in (("4K", 4 << 10), ("1M", 1 << 20), ("256M", 256 << 20))[:sizes]:
    here = numpy.ones(size, "uint8")
    there = tvm.runtime.empty((size,), "uint8", device)
    back = tvm.runtime.empty((size,), "uint8")
    times = rounds if size > 1 << 20 else rounds * 100
    print("to", name, fastest(times, lambda: there.copyfrom(here)), flush=True)
    print("from", name, fastest(times, lambda: there.copyto(back)), flush=True)
# The process ends without the destructors of the session.
os._exit(0)
