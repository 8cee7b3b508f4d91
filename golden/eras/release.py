"""The release under which this runs: names that differ between releases, and how each compiles, saves and calls a kernel."""

import os

import numpy as np
import tvm
from tvm import te

RELEASE = tuple(int(part) for part in tvm.__version__.split(".")[:2])
relay = relax = None
# A missing package is not the fault of the release: the import fails loudly.
if RELEASE < (0, 20):
    from tvm import relay
if RELEASE >= (0, 16):
    from tvm import relax

TIR = getattr(tvm, "tir", None) or tvm.tirx
HOST = {"kind": "llvm", "mtriple": "x86_64-linux-gnu"}
# Device kernels have fixed extents, because 0.13 cannot bind a loop of unknown extent.
LENGTH = 128
# Debug symbols and the static symbol table do not matter for the format.
LINK = {"options": ["-shared", "-fPIC", "-s"]}


def function(name):
    found = tvm.get_global_func(name, True)
    if found is None:
        raise NotImplementedError(f"this release has no {name}")
    return found


def register(name, callback):
    (getattr(tvm, "register_func", None) or tvm.register_global_func)(name, callback, override=True)


def array(value):
    make = getattr(tvm.runtime, "tensor", None) or tvm.nd.array
    return make(value)


def prim(name, by, length=None, dtype="float32"):
    """B[i] = A[i] + by."""
    n = length or te.var("n")
    a = te.placeholder((n,), name="A", dtype=dtype)
    b = te.compute((n,), lambda i: a[i] + TIR.const(by, dtype), name="B")
    return te.create_prim_func([a, b]).with_attr("global_symbol", name)


def on_threads(name, by):
    schedule = (getattr(tvm, "s_tir", None) or TIR).Schedule(tvm.IRModule({name: prim(name, by, LENGTH)}))
    block = schedule.get_sblock if hasattr(schedule, "get_sblock") else schedule.get_block
    loop, = schedule.get_loops(block("B", name))
    outer, inner = schedule.split(loop, [None, 32])
    schedule.bind(outer, "blockIdx.x")
    schedule.bind(inner, "threadIdx.x")
    return schedule.mod


def module(built):
    """Returns the runtime module of the result of a build."""
    return getattr(built, "mod", built)


def compiled(mod, target):
    if hasattr(tvm, "compile"):
        return module(tvm.compile(mod, target=target))
    return tvm.build(mod, target=target)


def add(name, by, device=None, host=HOST):
    if device is None:
        return compiled(tvm.IRModule({name: prim(name, by)}), tvm.target.Target(host))
    enabled(device if isinstance(device, str) else device["kind"])
    return compiled(on_threads(name, by), tvm.target.Target(device, host=host))


def enabled(kind):
    if tvm.get_global_func("target.build." + kind, True) is None:
        raise NotImplementedError(f"this build has no code generator for {kind}")


def imports(mod):
    return list(mod.imports if hasattr(mod, "imports") else mod.imported_modules)


def save(mod, name):
    mod.export_library(name, **({} if name.endswith(".tar") else LINK))
    return name


def pairs():
    value = np.arange(LENGTH, dtype="float32") / 4
    np.savez("add.io.npz", in_A=value, out_B=value + np.float32(1))
    return "add.io.npz"


def call(library, device="cpu", loads=True):
    """Describes the run of `add1` of a library. Sums of quarters are exact; if the release can load the library, its answer must be the same."""
    if device == "cpu" and loads:
        value = np.load(pairs())
        a, b = array(value["in_A"]), array(np.zeros(LENGTH, "float32"))
        tvm.runtime.load_module(os.path.abspath(library))["add1"](a, b)
        assert (b.numpy() == value["out_B"]).all()
    return {"how": "call", "library": library, "function": "add1", "device": device, "io": pairs()}
