"""Files with values: parameters, parameter caches, JSON of objects."""

import os
import pathlib

from models import perceptron, relax_model
from tensors import DTYPES, described, fill, numpy


def parameters(w):
    """Writes parameter files of each element type and of several shapes, and parameter caches."""
    dump = w.attempt("save_param_dict", lambda: w.tvm.runtime.save_param_dict) or w.tvm.relay.save_param_dict

    def one(name, **tensors):
        data = dump(tensors)
        pathlib.Path(name).write_bytes(bytes(data))
        w.note(name, "params", params={key: described(tensor) for key, tensor in tensors.items()})

    for dtype in DTYPES:
        w.attempt("params of " + dtype, lambda: one("%s.params" % dtype.translate(str.maketrans("[]", "--")), w=fill(w, dtype, (2, 4))))
    w.attempt("params", lambda: one("none.params"))
    w.attempt("params", lambda: one("scalar.params", w=fill(w, "float32", ())))
    w.attempt("params", lambda: one("without-elements.params", w=fill(w, "float32", (0, 3))))
    w.attempt("params", lambda: one("odd-four-bits.params", w=fill(w, "int4", (3,))))
    w.attempt("params", lambda: one("many.params", **{"p%d" % at: fill(w, DTYPES[at % 8], (at + 1,)) for at in range(12)}))
    w.attempt("params", lambda: one("six-dimensions.params", w=fill(w, "int8", (1, 2, 1, 2, 1, 2))))

    def cache(name, form):
        from tvm.contrib import tvmjs

        np = numpy()
        tensors = {"a": np.arange(8, dtype="float32").reshape(2, 4), "b": np.ones((3,), "int32"), "c": np.ones((2,), "float16")}
        write_cache = getattr(tvmjs, "dump_tensor_cache", None) or tvmjs.dump_ndarray_cache
        write_cache(tensors, name, encode_format=form)
        (index,) = [one for one in os.listdir(name) if one.endswith("-cache.json")]
        w.note("%s/%s" % (name, index), "cache", params=sorted(tensors))

    w.attempt("cache", cache, "cache", "raw")
    w.attempt("cache in bfloat16", cache, "cache-bf16", "f32-to-bf16")


def objects(w):
    """Writes JSON of values, targets, expressions and modules of the IR."""
    tvm = w.tvm

    def one(name, make):
        pathlib.Path(name + ".json").write_text((getattr(tvm.ir, "save_json", None) or w.get("node.SaveJSON"))(make()))
        w.note(name + ".json", "json")

    def convert(value):
        return (getattr(tvm.runtime, "convert", None) or tvm.convert)(value)

    makers = {
        "array": lambda: convert([1, 2, 3]),
        "buffer": lambda: w.tir.decl_buffer((4, 4)),
        "dictionary": lambda: tvm.ir.DictAttrs({}) if w.version >= [0, 20] else tvm.ir.make_node("DictAttrs"),
        "float": lambda: w.tir.FloatImm("float32", 0.5),
        "function": lambda: w.copy("copy"),
        "integer": lambda: w.tir.IntImm("int32", 7),
        "map": lambda: convert({"a": 1, "b": [1, "x"]}),
        "module": lambda: tvm.IRModule({"copy": w.copy("copy")}),
        "module-threads": lambda: w.threads("copy"),
        "none": lambda: None,
        "operator": lambda: tvm.ir.Op.get("tir.exp" if hasattr(tvm, "tir") else "tirx.exp"),
        "range": lambda: tvm.ir.Range(0, 10),
        "relax": lambda: relax_model(w),
        "relay": lambda: perceptron(w)[0],
        "string": lambda: convert("text"),
        "sum": lambda: w.tir.Var("x", "int32") + 1,
        "target": lambda: tvm.target.Target("llvm"),
        "target-cuda": lambda: tvm.target.Target({"kind": "cuda", "arch": "sm_80"}),
        "target-host": lambda: w.target("opencl"),
        "tensor": lambda: w.array(numpy().arange(6, dtype="float32")),
        "tensor-expression": lambda: tvm.te.placeholder((4,), name="A"),
        "type": lambda: tvm.ir.PrimType("int32"),
        "variable": lambda: w.tir.Var("x", "int32"),
    }
    for name, make in makers.items():
        w.alone(name + ".json", one, "object-" + name, make)
