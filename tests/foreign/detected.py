"""Prints the results of `Target.from_device` of the installed TVM, for its devices and for simulated answers of devices, as JSON."""
import json
import sys

import tvm
import tvm_ffi
from tvm.target import Target


class Answering:
    """A device that exists, and gives the answers with which it was created."""

    exist = True

    def __init__(self, number, answers):
        self.number = number
        self.answers = answers

    def dlpack_device_type(self):
        return self.number

    def __getattr__(self, name):
        return self.answers.get(name)


answers = {}
asked = {}


def property_of(_device, name):
    return asked.get(name)


def outcome(device):
    try:
        return {"target": json.loads(str(Target.from_device(device)))}
    except ValueError as error:
        return {"error": str(error)}


seen = {"minor": int(tvm.__version__.split(".")[1]), "devices": {}, "answering": []}
for name in ("tvm.codegen.llvm.GetDefaultTargetTriple", "tvm.codegen.llvm.GetHostCPUName"):
    function = tvm_ffi.get_global_func(name, allow_missing=True)
    seen[name.rsplit(".", maxsplit=1)[1]] = function() if function else None
numbers = {"cpu": 1, "cuda": 2, "opencl": 4, "vulkan": 7, "metal": 8, "rocm": 10, "ext_dev": 12, "hexagon": 14, "webgpu": 15}
for name in numbers:
    seen["devices"][name] = outcome(tvm.device(name, 0))
for name, number in numbers.items():
    if tvm_ffi.get_global_func(f"device_api.{name}.get_target_property", allow_missing=True) is None:
        tvm_ffi.register_global_func(f"device_api.{name}.get_target_property", property_of, override=True)
    for case in json.loads(sys.argv[1]):
        answers, asked = case, case
        seen["answering"].append({"device": name, "answers": case, **outcome(Answering(number, case))})
options = tvm_ffi.get_global_func("target.ListTargetKindOptionsFromName")
seen["kinds"] = {
    str(kind): {str(name): str(of) for name, of in options(kind).items()}
    for kind in tvm_ffi.get_global_func("target.ListTargetKinds")()
}
print(json.dumps(seen))
