"""Creates copy-RELEASE.so and rows-RELEASE.so: functions that copy a float32 tensor of 2 times 3, and one of n times 3. With 0.27 also
TYPE-0.27.so, a function TYPE that copies 8 elements of that type.

Run: python make.py        (with a TVM that has a compiler; gcc is needed for export_library)

They were created with TVM 0.8.dev0 (PyPI: hhb-tvm 2.0.20), 0.19.0 and 0.21.0 (xtc-tvm-python-bindings 0.19.0.12 and 0.21.0.8) and
apache-tvm 0.27.0.post1.
"""

import os
import tvm
from tvm import te

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def build(name, shape, dtype="float32"):
    A = te.placeholder(shape, name="A", dtype=dtype)
    B = te.compute(shape, lambda *at: A(*at), name="B")
    if hasattr(te, "create_schedule"):
        module = tvm.build(te.create_schedule(B.op), [A, B], "llvm", name=name)
    else:
        function = te.create_prim_func([A, B]).with_attr("global_symbol", name)
        compile_ = getattr(tvm, "compile", None) or tvm.build
        module = compile_(tvm.IRModule({name: function}), target="llvm")
    module.export_library("%s-%s.so" % (name, ".".join(tvm.__version__.split(".")[:2])))


build("copy", (2, 3))
build("rows", (te.var("n"), 3))

if "0.27" in tvm.__version__:
    for dtype in ("bfloat16", "float8_e4m3fn", "float4_e2m1fn", "int4", "uint1"):
        build(dtype, (8,), dtype)
