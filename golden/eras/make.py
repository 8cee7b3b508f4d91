#!/usr/bin/env python3
"""Creates the same twenty artifacts with the release of TVM under which it runs: 0.13 to 0.27 were tried.

    python make.py FOLDER [ARTIFACT...]

writes FOLDER/<release>/ and, in it, `made.json`: for each artifact a description, its files, how it runs with recorded inputs and outputs, or why
this release cannot create it. README.md says where each release came from. gcc links the libraries. ERAS_NVRTC names an NVRTC library
(libnvrtc.so.12) that compiles CUDA; without it there is no artifact `cuda`. The linker of ROCm code is `ld.lld`, of the LLVM of the
release or later.

Each artifact is created in a separate process: if a release crashes, the crash is the reason.
"""

import json
import os
import pathlib
import sys
import traceback

import numpy as np
import tvm

from libraries import (
    const_loader, cuda, device_root, host, host_c, metal, opencl, rocm, stackvm, static_library, system_library, tree, vulkan, webgpu,
)
from models import aot, graph, relax_vm, relay_vm
from release import HOST, RELEASE, array, prim, relay


def params():
    """A parameter file with tensors of many dtypes and ranks"""
    rng = np.random.RandomState(11)
    arrays = {
        "bool": np.array([True, False, True]),
        "empty": np.zeros((0, 4), "float32"),
        "f16": rng.randn(3, 1).astype("float16"),
        "f32": rng.randn(2, 3).astype("float32"),
        "f64": rng.randn(2),
        "i16": np.array([-32768, 32767], "int16"),
        "i32": np.array(5, "int32").reshape(()),
        "i64": np.arange(6).reshape(1, 2, 3),
        "i8": rng.randint(-5, 5, (7,)).astype("int8"),
        "u16": np.array([65535], "uint16"),
        "u32": np.array([4294967295], "uint32"),
        "u64": np.array([1 << 63], "uint64"),
        "u8": rng.randint(0, 5, (1,)).astype("uint8"),
    }
    write = getattr(tvm.runtime, "save_param_dict", None) or relay.save_param_dict
    pathlib.Path("dtypes.params").write_bytes(write({name: array(value) for name, value in arrays.items()}))
    np.savez("dtypes.npz", **arrays)
    return ["dtypes.params"], None


def objects():
    """Objects as JSON: a function of TIR in its module, a target"""
    pathlib.Path("module.json").write_text(tvm.ir.save_json(tvm.IRModule({"add1": prim("add1", 1, 16)})))
    pathlib.Path("target.json").write_text(tvm.ir.save_json(tvm.target.Target("cuda", host=HOST)))
    return ["module.json", "target.json"], None


ARTIFACTS = [host, host_c, opencl, metal, cuda, vulkan, webgpu, rocm, tree, device_root, system_library, static_library, const_loader,
             stackvm, graph, aot, relay_vm, relax_vm, params, objects]


def apart(make):
    """Returns the result of `make`, or the reason of its failure, from a separate process."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            files, run = make()
            said = {"files": files, **({"run": run} if run else {})}
        except BaseException as error:  # noqa: any exception is the reason
            if not isinstance(error, NotImplementedError):
                traceback.print_exc()
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            said = {"why": lines[-1] if lines else type(error).__name__}
        os.write(into, json.dumps(said).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(said) if said else {"why": f"the release ends with signal {os.WTERMSIG(status)}"}


def main():
    folder = pathlib.Path(sys.argv[1]) / f"{RELEASE[0]}.{RELEASE[1]}"
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    made = {"release": tvm.__version__, "artifacts": {}}
    if pathlib.Path("made.json").exists() and sys.argv[2:]:
        made = json.loads(pathlib.Path("made.json").read_text())
    for make in ARTIFACTS:
        name = make.__name__.replace("_", "-")
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        made["artifacts"][name] = {"what": make.__doc__, **apart(make)}
        print(name, made["artifacts"][name].get("why", "made"), flush=True)
    pathlib.Path("made.json").write_text(json.dumps(made, indent=1) + "\n")


main()
