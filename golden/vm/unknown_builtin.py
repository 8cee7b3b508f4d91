"""Creates a model whose last call is of a builtin that no runtime has, compiled by the TVM of this Python for the host's CPU.

    python golden/vm/unknown_builtin.py unknown-builtin-0.19.tar
"""

import inspect
import sys

import tvm
from tvm import relax
from tvm.script import relax as R

block = relax.BlockBuilder()
tensor = R.Tensor((4,), "float32")
x = relax.Var("x", tensor)
with block.function("main", [x]):
    y = block.emit(relax.op.add(x, x))
    # 0.25 and later use another name for the types of a call.
    types = "ty_args" if "ty_args" in inspect.signature(relax.Call.__init__).parameters else "sinfo_args"
    unknown = relax.Call(relax.ExternFunc("vm.builtin.no_such_thing"), [y], **{types: [tensor]})
    block.emit_func_output(block.emit(unknown))
relax.build(block.get(), target="llvm").export_library(sys.argv[1])
