"""Creates compiled-RELEASE.so, a model with exec_mode="compiled", whose functions work on lists of values (VM-12), and compiled.io.npz:
the results of the VM of that release.

Run: python compiled.py        (with a TVM that has a compiler; gcc is needed for export_library)

Made with TVM 0.19.0 and 0.21.0 (PyPI: xtc-tvm-python-bindings 0.19.0.12 and 0.21.0.8) and apache-tvm 0.27.0.post1. All three give the
same results, bit for bit.
"""

import inspect
import os
import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I, relax as R

try:
    from tvm.script import tir as T
except ImportError:
    from tvm.script import tirx as T

os.chdir(os.path.dirname(os.path.abspath(__file__)))
rng = np.random.RandomState(35)
W = rng.randn(4, 3).astype("float32")


@I.ir_module
class Model:
    """A branch on a tensor, a function that calls another, a tuple in, a tuple with a shape and an integer out; any number of rows.

    0.21 and 0.27 compile a branch between tensors of any number of rows to code that loses a register. So the branch has 2 rows.
    """

    @R.function
    def scale(x: R.Tensor((2, 3), "float32"), by: R.Tensor((), "float32")) -> R.Tensor((2, 3), "float32"):
        return R.multiply(x, by)

    @R.function
    def main(
        flag: R.Tensor((), "bool"),
        pair: R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")),
    ):
        cls = Model
        a = pair[0]
        b = pair[1]
        if flag:
            s = R.add(a, b)
            r = cls.scale(s, R.const(0.5, "float32"))
        else:
            d = R.subtract(a, b)
            r = cls.scale(d, R.const(2.0, "float32"))
        flat = R.reshape(r, R.shape([6]))
        return (r, (flat, R.shape([2, 3]), R.prim_value(T.int64(7))))

    @R.function
    def rows(x: R.Tensor(("n", 4), "float32")):
        n = T.int64()
        with R.dataflow():
            y = R.nn.relu(R.matmul(x, R.const(W)))
            R.output(y)
        return y


def tensor(value):
    return tvm.runtime.tensor(value) if hasattr(tvm.runtime, "tensor") else tvm.nd.array(value)


def leaves(value):
    if hasattr(value, "numpy"):
        return [value.numpy()]
    if isinstance(value, (int, float)):
        return [np.array(value)]
    if type(value).__name__ in ("Shape", "ShapeTuple"):
        return [np.array(list(value), "int64")]
    return [leaf for item in value for leaf in leaves(item)]


build = relax.build if "exec_mode" in inspect.signature(relax.build).parameters else tvm.compile
built = build(Model, target="llvm", exec_mode="compiled")
release = ".".join(tvm.__version__.split(".")[:2])
built.export_library(f"compiled-{release}.so")
machine = relax.VirtualMachine(tvm.runtime.load_module(f"compiled-{release}.so"), tvm.cpu())
kept = {}


def keep(run, function, inputs, *arguments):
    kept.update({f"{run}/in/{name}": value for name, value in inputs.items()})
    results = leaves(machine[function](*arguments))
    kept.update({f"{run}/out/{at}": leaf for at, leaf in enumerate(results)})


for flag in (True, False):
    flag, pair = np.array(flag), rng.randn(2, 2, 3).astype("float32")
    inputs = {"flag": flag, "pair.0": pair[0], "pair.1": pair[1]}
    keep("main-then" if flag else "main-else", "main", inputs, tensor(flag), (tensor(pair[0]), tensor(pair[1])))
for count in (1, 5):
    x = rng.randn(count, 4).astype("float32")
    keep(f"rows-{count}", "rows", {"x": x}, tensor(x))
np.savez("compiled.io.npz", **kept)
