"""Creates the goldens of chapter vm with the apache-tvm 0.27 wheel: models as libraries, their inputs, and the results of the wheel's own
VM; and small executables without kernels, written instruction by instruction.

Run: python make.py        (in this folder; gcc is needed for export_library)

Made with apache-tvm 0.27.0.post1. Inputs and outputs (*.io.npz) are reproduced byte for byte. The libraries of mlp and conv are not: for stores
that may be in any order, such as those of equal extents, the compiler of that release chooses another order in each run.
"""

import os
import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I, relax as R, tirx as T

os.chdir(os.path.dirname(os.path.abspath(__file__)))
rng = np.random.RandomState(20)


def weights(*shape):
    return (rng.randn(*shape) / np.sqrt(shape[-1])).astype("float32")


W1, B1 = weights(8, 16), weights(16)
W2, B2 = weights(16, 4), weights(4)


@I.ir_module
class Mlp:
    """Two dense layers over a batch of any size; constants; a tuple out."""

    @R.function
    def main(x: R.Tensor(("n", 8), "float32")):
        n = T.int64()
        with R.dataflow():
            h = R.nn.relu(R.add(R.matmul(x, R.const(W1)), R.const(B1)))
            y = R.add(R.matmul(h, R.const(W2)), R.const(B2))
            p = R.nn.softmax(y, axis=-1)
            flat = R.reshape(y, R.shape([n * 4]))
            R.output(p, flat)
        return (p, flat, R.shape([n, 4]))


@I.ir_module
class Branches:
    """A branch on a tensor, a function that calls another, a tuple in, an integer."""

    @R.function
    def scale(x: R.Tensor((3, 4), "float32"), by: R.Tensor((), "float32")) -> R.Tensor((3, 4), "float32"):
        return R.multiply(x, by)

    @R.function
    def main(
        flag: R.Tensor((), "bool"),
        pair: R.Tuple(R.Tensor((3, 4), "float32"), R.Tensor((3, 4), "float32")),
    ):
        cls = Branches
        a = pair[0]
        b = pair[1]
        if flag:
            s = R.add(a, b)
            r = cls.scale(s, R.const(0.5, "float32"))
        else:
            d = R.subtract(a, b)
            r = cls.scale(d, R.const(2.0, "float32"))
        return (r, (R.max(r, axis=1), R.prim_value(T.int64(7))))


K1, K2 = weights(4, 3, 3, 3), weights(6, 4, 3, 3)


@I.ir_module
class Conv:
    """Convolutions, pooling and a cast over images of any height; int8 and float64 out."""

    @R.function
    def main(x: R.Tensor((1, 3, "h", 12), "float32")):
        with R.dataflow():
            a = R.nn.relu(R.nn.conv2d(x, R.const(K1), padding=(1, 1)))
            b = R.nn.max_pool2d(a, pool_size=(2, 2), strides=(2, 2))
            c = R.nn.conv2d(b, R.const(K2), padding=(0, 0))
            m = R.mean(c, axis=[2, 3])
            i = R.astype(R.clip(R.multiply(m, R.const(100.0, "float32")), -128, 127), "int8")
            d = R.astype(m, "float64")
            R.output(c, i, d)
        return (c, i, d)


def flatten(value):
    if isinstance(value, tvm.runtime.Tensor):
        return [value.numpy()]
    if isinstance(value, (int, float)):
        return [np.array(value)]
    if type(value).__name__ in ("Shape", "ShapeTuple"):
        return [np.array(list(value), "int64")]
    return [leaf for item in value for leaf in flatten(item)]


def model(name, module, runs):
    """Exports `module`, and keeps inputs `<run>/in/<parameter>` and outputs `<run>/out/<n>`, in the order of a flat tuple."""
    built = tvm.compile(module, target="llvm")
    built.export_library(name + ".so")
    machine = relax.VirtualMachine(built, tvm.cpu())
    kept = {}
    for run, inputs in runs.items():
        arguments = []
        for key, value in inputs.items():
            if isinstance(value, tuple):
                arguments.append(tuple(tvm.runtime.tensor(item) for item in value))
                kept.update({f"{run}/in/{key}.{i}": item for i, item in enumerate(value)})
            else:
                arguments.append(tvm.runtime.tensor(value))
                kept[f"{run}/in/{key}"] = value
        for index, leaf in enumerate(flatten(machine["main"](*arguments))):
            kept[f"{run}/out/{index}"] = leaf
    np.savez(name + ".io.npz", **kept)


def data(*shape):
    return rng.randn(*shape).astype("float32")


model("mlp", Mlp, {"one": {"x": data(1, 8)}, "five": {"x": data(5, 8)}})
pair = (data(3, 4), data(3, 4))
model("branches", Branches, {
    "then": {"flag": np.array(True), "pair": pair},
    "else": {"flag": np.array(False), "pair": pair},
})
model("conv", Conv, {"low": {"x": data(1, 3, 8, 12)}, "high": {"x": data(1, 3, 14, 12)}})
