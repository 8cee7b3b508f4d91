#!/usr/bin/env python3
"""Modules as passes of 0.8.0 lower them, with what NumPy computes of the same arguments.

    PYTHON golden/target/lower_0_8.py golden/target/lowered

PYTHON has the package of v0.8.0, and a `libtvm.so` of src/node, src/ir, src/target/{target,target_kind,tag}.cc, src/te/{operation,schedule}, src/tir/{ir,op},
src/arith and the passes below, compiled with -std=c++14 -DDMLC_USE_LOGGING_LIBRARY='<tvm/runtime/logging.h>' -DUSE_FALLBACK_STL_MAP=0
-DTVM_INDEX_DEFAULT_I64=1 and linked to `libtvm_runtime.so` of the tag. Relay, its parser and code generators are left out: a function of theirs is one that
ends the process, and none is called. The passes are those of `tvm.build` for `c` that
these modules need, in its order: StorageFlatten, Simplify, VectorizeLoop, MakePackedAPI, LowerTVMBuiltin.
"""

import base64
import json
import pathlib
import sys

import lower
import numpy as np
import tvm
from tvm import te


def added(terms):
    """In their order, as the loops add them: NumPy's own sums are in another."""
    total = next(terms)
    for term in terms:
        total = total + term
    return total


def product(a, b, out=None):
    a, b = (x.astype(out or x.dtype) for x in (a, b))
    return added(a[:, r, None] * b[r] for r in range(a.shape[1]))


def windows(x, k, out):
    """What convolutions add up, padded by one."""
    x, k = np.pad(x.astype(out), ((0, 0), (0, 0), (1, 1), (1, 1))), k.astype(out)
    at = [(f, i, j) for f in range(2) for i in range(3) for j in range(3)]
    return added(x[:, f, None, i : i + 6, j : j + 6] * k[:, f, i, j, None, None] for f, i, j in at)


def each_channel(x, k):
    return added(x[:, :, i : i + 3, j : j + 3] * k[:, i, j, None, None] for i in range(3) for j in range(3))


def across(x):
    twice, at = x.T * np.float32(2), np.arange(64)
    return twice[at, 63 - at] + twice[63 - at, at]


NUMPY = {
    "matmul": product,
    "matmul_f64": product,
    "matmul_int8": lambda a, b: product(a, b, "int32"),
    "matmul_dynamic": product,
    "conv2d": lambda x, k: windows(x, k, "float32"),
    "conv2d_int8": lambda x, k: windows(x, k, "int32"),
    "depthwise": each_channel,
    "sum_f32": lambda x: added(iter(x.T)),
    "sum_int64": lambda x: added(iter(x.T)),
    "max_f32": lambda x: x.max(axis=1),
    "min_int32": lambda x: x.min(axis=1),
    "cast_int32": lambda x: x.astype("int32"),
    "cast_f64": lambda x: x.astype("float64"),
    "relu": lambda x: np.maximum(x, 0),
    "shifts": lambda x, z: ((x << 2) ^ (z >> 1)) | (x & z),
    "compare": lambda x, z: np.where((x < z) | (x == 3), x, z - 1),
    "add_dynamic": lambda x, z: x + z,
    "workspace": across,
    "pool": lambda x: x.reshape(1, 2, 3, 2, 3, 2).max(axis=(3, 5)),
    "take": lambda x, at: x[at],
    "concat": lambda x, z: np.concatenate([x, z]),
    "half_matmul": product,
    "scale_vec": lambda x, z: x * np.float32(3) + z,
    "broadcast_vec": lambda x, z: x * z[:, None] - np.arange(8, dtype="float32"),
    "reversed_vec": lambda x: x[::2] * 3 - x[:15:-1],
    "choose_vec": lambda x, z: np.where(x < z, x, z - 1),
    "cast_vec": lambda x, z: (x.astype("int32") * z.astype("int32")).astype("float32"),
    "stages_vec": lambda x: x * x + (x * x)[::-1],
}


def lowered(tensors, name):
    schedule = te.create_schedule(tensors[-1].op)
    for stage in schedule.stages if name.endswith("_vec") else []:
        if isinstance(stage.op, te.ComputeOp):
            stage.vectorize(stage.split(stage.op.axis[-1], 4)[1])
    schedule = schedule.normalize()
    body = te.schedule.ScheduleOps(schedule, te.schedule.InferBound(schedule), False)
    buffers = {t: tvm.tir.decl_buffer(t.shape, t.dtype, t.op.name) for t in tensors}
    function = te.schedule.SchedulePostProcToPrimFunc([buffers[t] for t in tensors], body, buffers)
    attrs = {"global_symbol": name, "from_legacy_te_schedule": True, "tir.noalias": True, "target": tvm.target.Target("c")}
    for key, value in attrs.items():
        function = function.with_attr(key, value)
    passes = tvm.tir.transform
    module = tvm.IRModule({name: function})
    for one in (passes.StorageFlatten(64), passes.Simplify(), passes.VectorizeLoop(), passes.Simplify(), passes.MakePackedAPI(), passes.LowerTVMBuiltin()):
        module = one(module)
    return json.dumps(json.loads(tvm.ir.save_json(module)), separators=(",", ":"))


def main(out):
    assert tvm.__version__ == "0.8.0"
    folder = pathlib.Path(out) / "0.8"
    folder.mkdir(parents=True, exist_ok=True)
    runs = {}
    form = lambda a: {"dtype": str(a.dtype), "shape": list(a.shape), "data": base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()}
    for name, compute in NUMPY.items():
        tensors = lower.MODULES[name]()
        text = lowered(tensors, name)
        chance = np.random.default_rng(len(name))
        size = lambda n: lower.SIZES.get(getattr(n, "name", ""), 0) or int(n)
        shapes = [([size(n) for n in t.shape], str(t.dtype)) for t in tensors]
        inputs = [lower.values(name, i, s, d, chance) for i, (s, d) in enumerate(shapes[:-1])]
        result = compute(*inputs)
        assert (list(result.shape), str(result.dtype)) == shapes[-1], name
        (folder / f"{name}.json").write_text(text + "\n")
        runs[name] = {"args": [form(a) for a in [*inputs, np.zeros(*shapes[-1])]], "result": form(result)}
    lines = [f"{json.dumps(n)}: {json.dumps(r)}" for n, r in runs.items()]
    (folder / "runs.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print("0.8", len(runs), "modules")


if __name__ == "__main__":
    main(*sys.argv[1:])
