#!/usr/bin/env python3
"""Lowered modules as real releases hand them to their code generators, with what their own builds compute.

    TVMSPEC_PYTHON golden/target/lower.py golden/target/lowered [NAME...]

Writes OUT/RELEASE/NAME.json, what `save_json` makes of the module that `target.build.c` is called with, and OUT/RELEASE/runs.json: the arguments of a call, and what LLVM's code of the same module leaves in them. Beside OUT,
kernels/RELEASE/NAME.host.json and NAME.device.json are of `target.build.c` and `target.build.opencl` for a build with both.

Those of 0.8 are made by lower_0_8.py. 0.26 and 0.27 need apache-tvm-ffi 0.1.14.post0: 0.1.15 ends the process in `save_json` of any type (facts of the release, not of this script).
"""

import base64
import json
import pathlib
import sys

import numpy as np
import tvm
from tvm import te

from gpu_modules import GPU, add1, deep, doubled, on_threads, relax
from host_modules import MODULES, NEW, TIR, vectorised

RELEASE = "0." + tvm.__version__.split(".")[1]
HOST = {"kind": "llvm", "mtriple": "x86_64-unknown-linux-gnu"}

SIZES = {"n": 6, "m": 5, "k": 7}


def values(name, index, shape, dtype, chance):
    if name == "take" and index == 1:
        return chance.integers(0, 9, shape).astype(dtype)
    if name.startswith("special_"):
        return np.resize([np.nan, np.inf, -np.inf, 0.0, -1.5, 65504.0], shape).astype(dtype)
    if name == "order_nan":
        return np.resize([[np.nan, np.nan, 1.0, 2.0, -np.inf], [np.nan, 1.0, np.nan, np.inf]][index], shape).astype(dtype)
    if name.startswith("order_"):
        few = chance.integers(0, 5, shape).astype(dtype)
        if dtype.startswith("float"):
            # Nothing that is no number: `!=` of it is true in C, and false in LLVM's code of a release.
            few.flat[:4] = [[-np.inf, 1, np.inf, 0.0], [1, -np.inf, np.inf, -0.0]][index]
        return few
    if name.startswith("mathematics"):
        return (chance.random(shape) * 0.9 + 0.05).astype(dtype)
    if name == "half_small":
        # From the least of all to the first with all bits.
        return (chance.integers(0, 2100, shape) * 2.0**-24 * chance.choice([-1, 1], shape)).astype(dtype)
    if name == "half_rounds":
        # Half way between two, a little more and a little less; below the first with all bits, and above.
        unit = chance.choice([2.0**-24, 2.0**-23], shape)
        return ((chance.integers(0, 2000, shape) + chance.choice([0.5, 0.4999, 0.5001, 1.5], shape)) * unit).astype(dtype)
    if name == "half_ends":
        return chance.choice([65504, 65519, 65520, 70000, 1e9, np.inf, 12345], shape).astype(dtype)
    if dtype == "float16":
        # Sums and products of them are exact.
        return chance.integers(1, 9, shape).astype(dtype)
    if name == "bfloat_types":
        # Releases compute with the number as it was before it became one of 16 bits: here it stays what it is.
        return chance.integers(-100, 100, shape).astype(dtype)
    if dtype.startswith("float"):
        return (chance.standard_normal(shape) * 3).astype(dtype)
    return chance.integers(-100, 100, shape).astype(dtype)


def build(module, target):
    return TIR.build(module, target=target) if NEW else tvm.build(module, target=target)


def register(name, function):
    if NEW:
        import tvm_ffi

        tvm_ffi.register_global_func(name, function, override=True)
    else:
        tvm.register_func(name, function, override=True)


# Passes that leave no `bfloat16`, since most targets have none.
LEGALIZED = ["tir.BF16Legalize", "tir.BF16ComputeLegalize", "tir.BF16StorageLegalize", "tirx.BF16ComputeLegalize", "tirx.BF16StorageLegalize"]


def captured(make, target, generators=("target.build.c",), disabled=()):
    """The modules that the generators are called with, as JSON."""
    seen = {}
    real = {name: tvm.get_global_func(name) for name in generators}

    def watch(name):
        def generator(module, target):
            seen[name] = json.dumps(json.loads(tvm.ir.save_json(module)), separators=(",", ":"))
            # No release writes C or OpenCL C of everything: the module is there all the same.
            try:
                return real[name](module, target)
            except Exception:
                return real[name](tvm.IRModule({}), target)

        return generator

    for name in generators:
        register(name, watch(name))
    try:
        with tvm.transform.PassContext(disabled_pass=list(disabled)):
            build(make(), target)
    finally:
        for name in generators:
            register(name, real[name])
    return [seen[name] for name in generators]


def errors(function, tensors):
    """What wrong calls end in: too few arguments, a number for a tensor, another number of axes, another size, another dtype."""
    flat = tvm.runtime.tensor(np.zeros(6, "float32"))
    short = tvm.runtime.tensor(np.zeros((6, 3), "float32"))
    other = tvm.runtime.tensor(np.zeros((6, 7), "int32"))
    wrong = {"count": tensors[:2], "number": [1, *tensors[1:]], "axes": [flat, *tensors[1:]]}
    wrong |= {"size": [short, *tensors[1:]], "dtype": [other, *tensors[1:]]}
    texts = {}
    for name, args in wrong.items():
        try:
            function(*args)
        except Exception as error:
            texts[name] = [type(error).__name__, str(error)]
    return texts


def main(out, *names):
    """All, or those with these names."""
    folder = pathlib.Path(out) / RELEASE
    folder.mkdir(parents=True, exist_ok=True)
    runs = {}
    device = {"kind": "opencl", "host": {"kind": "c"}} if NEW else tvm.target.Target("opencl", host="c")
    kernels = pathlib.Path(out).parent / "kernels" / RELEASE
    kernels.mkdir(parents=True, exist_ok=True)
    compact = lambda module: json.dumps(json.loads(tvm.ir.save_json(module)), separators=(",", ":"))
    for name, make in GPU.items():
        if names and name not in names:
            continue
        both = captured(make, device, ("target.build.c", "target.build.opencl"))
        for part, text in zip(("host", "device"), both):
            (kernels / f"{name}.{part}.json").write_text(text + "\n")
    if NEW and not names:
        # An external device: its vendor registers the generator, here one that takes what OpenCL's takes.
        opencl = tvm.get_global_func("target.build.opencl")
        register("target.build.ext_dev", lambda module, _: opencl(module, tvm.target.Target("opencl")))
        target = {"kind": "ext_dev", "host": {"kind": "c"}}
        make = lambda: on_threads(add1(), "add1_ext")
        both = captured(make, target, ("target.build.c", "target.build.ext_dev"))
        for part, text in zip(("host", "device"), both):
            (kernels / f"add1_ext.{part}.json").write_text(text + "\n")
    if not names:
        (kernels / "unlowered.json").write_text(compact(GPU["add1_gpu"]()) + "\n")
    if NEW and not names:
        (kernels / "relax.json").write_text(compact(relax()) + "\n")
        (kernels / "doubled.json").write_text(doubled((kernels / "add1_gpu.device.json").read_text()) + "\n")
        for name, terms in (("deep", 100), ("too_deep", 300)):
            (kernels / f"{name}.json").write_text(deep((kernels / "add1_gpu.device.json").read_text(), terms) + "\n")
    if names and (folder / "runs.json").exists():
        runs = json.loads((folder / "runs.json").read_text())
    for name, make in MODULES.items():
        if names and name not in names:
            continue
        try:
            tensors = make()
            function = te.create_prim_func(tensors).with_attr("global_symbol", name)
            if name.endswith("_vec"):
                function = vectorised(function, name)
            module = lambda: tvm.IRModule({name: function})
            [text] = captured(module, "c", disabled=LEGALIZED if name == "bfloat_types" else ())
            chance = np.random.default_rng(len(name))
            size = lambda n: SIZES.get(getattr(n, "name", ""), 0) or int(n)
            shapes = [([size(n) for n in t.shape], str(t.dtype)) for t in tensors]
            arrays = [values(name, i, s, d, chance) for i, (s, d) in enumerate(shapes[:-1])]
            arrays.append(np.zeros(*shapes[-1]))
            given = [a.copy() for a in arrays]
            wrap = tvm.runtime.tensor if NEW else tvm.nd.array
            tensors = [wrap(a) for a in arrays]
            built = build(module(), HOST if NEW else "llvm -mtriple=x86_64-unknown-linux-gnu")
            built[name](*tensors)
            result = tensors[-1].numpy()
        except Exception as error:  # a release that cannot build it is named, and the rest goes on
            print(f"{name}: {type(error).__name__}: {str(error)[-300:]}", file=sys.stderr)
            continue
        (folder / f"{name}.json").write_text(text + "\n")
        form = lambda a: {
            "dtype": str(a.dtype),
            "shape": list(a.shape),
            "data": base64.b64encode(np.ascontiguousarray(a).tobytes()).decode(),
        }
        runs[name] = {"args": [form(a) for a in given], "result": form(result)}
        if NEW and name == "matmul":
            runs[name]["errors"] = errors(built[name], tensors)
    lines = [f'{json.dumps(n)}: {json.dumps(r)}' for n, r in runs.items()]
    (folder / "runs.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(RELEASE, len(runs), "modules", sum(f.stat().st_size for f in folder.iterdir()), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
