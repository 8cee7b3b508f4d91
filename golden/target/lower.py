#!/usr/bin/env python3
"""Writes lowered modules with kernels, as real releases pass them to their code generators.

    TVMSPEC_PYTHON golden/target/lower.py golden/target/kernels [NAME...]

Writes OUT/RELEASE/NAME.host.json and NAME.device.json: the `save_json` text of the modules with which `target.build.c` and `target.build.opencl` are
called with, for a build with both.

0.26 and 0.27 need apache-tvm-ffi 0.1.14.post0: 0.1.15 ends the process in `save_json` of any type (facts of the release, not of this script).
"""

import json
import pathlib
import sys

import tvm

from gpu_modules import GPU, NEW, TIR, add1, deep, doubled, on_threads, relax

RELEASE = "0." + tvm.__version__.split(".")[1]


def build(module, target):
    return TIR.build(module, target=target) if NEW else tvm.build(module, target=target)


def register(name, function):
    if NEW:
        import tvm_ffi

        tvm_ffi.register_global_func(name, function, override=True)
    else:
        tvm.register_func(name, function, override=True)


def captured(make, target, generators):
    """The arguments of the generators: modules, as JSON."""
    seen = {}
    real = {name: tvm.get_global_func(name) for name in generators}

    def watch(name):
        def generator(module, target):
            seen[name] = json.dumps(json.loads(tvm.ir.save_json(module)), separators=(",", ":"))
            # No release generates C or OpenCL C for everything: the module exists nevertheless.
            try:
                return real[name](module, target)
            except Exception:
                return real[name](tvm.IRModule({}), target)

        return generator

    for name in generators:
        register(name, watch(name))
    try:
        build(make(), target)
    finally:
        for name in generators:
            register(name, real[name])
    return [seen[name] for name in generators]


def main(out, *names):
    """All, or those with these names."""
    folder = pathlib.Path(out) / RELEASE
    folder.mkdir(parents=True, exist_ok=True)
    device = {"kind": "opencl", "host": {"kind": "c"}} if NEW else tvm.target.Target("opencl", host="c")
    compact = lambda module: json.dumps(json.loads(tvm.ir.save_json(module)), separators=(",", ":"))
    for name, make in GPU.items():
        if names and name not in names:
            continue
        both = captured(make, device, ("target.build.c", "target.build.opencl"))
        for part, text in zip(("host", "device"), both):
            (folder / f"{name}.{part}.json").write_text(text + "\n")
    if NEW and not names:
        # An external device: its vendor registers the generator, here one with the same arguments as that of OpenCL.
        opencl = tvm.get_global_func("target.build.opencl")
        register("target.build.ext_dev", lambda module, _: opencl(module, tvm.target.Target("opencl")))
        target = {"kind": "ext_dev", "host": {"kind": "c"}}
        make = lambda: on_threads(add1(), "add1_ext")
        both = captured(make, target, ("target.build.c", "target.build.ext_dev"))
        for part, text in zip(("host", "device"), both):
            (folder / f"add1_ext.{part}.json").write_text(text + "\n")
    if not names:
        (folder / "unlowered.json").write_text(compact(GPU["add1_gpu"]()) + "\n")
    if NEW and not names:
        (folder / "relax.json").write_text(compact(relax()) + "\n")
        (folder / "doubled.json").write_text(doubled((folder / "add1_gpu.device.json").read_text()) + "\n")
        for name, terms in (("deep", 100), ("too_deep", 300)):
            (folder / f"{name}.json").write_text(deep((folder / "add1_gpu.device.json").read_text(), terms) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
