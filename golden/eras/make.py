#!/usr/bin/env python3
"""Makes the same twenty artifacts with whatever release of TVM it runs under: 0.13 to 0.27 were tried.

    python make.py FOLDER [ARTIFACT...]

writes FOLDER/<release>/ and, in it, `made.json`: what each artifact is, its files, how it runs with recorded inputs and outputs, or why
this release does not make it. README.md says where each release came from. gcc links the libraries. ERAS_NVRTC names an NVRTC library
(libnvrtc.so.12) that compiles CUDA; without it there is no artifact `cuda`. The linker of ROCm code is `ld.lld`, of the LLVM of the
release or later.

Each artifact is made in a process of its own: where a release crashes, that is the reason.
"""

import ctypes
import json
import os
import pathlib
import sys
import tempfile
import traceback

import numpy as np
import tvm
from tvm import te

RELEASE = tuple(int(part) for part in tvm.__version__.split(".")[:2])
relay = relax = None
# A package that one of them lacks is not the release's fault: the import fails loudly.
if RELEASE < (0, 20):
    from tvm import relay
if RELEASE >= (0, 16):
    from tvm import relax

TIR = getattr(tvm, "tir", None) or tvm.tirx
HOST = {"kind": "llvm", "mtriple": "x86_64-linux-gnu"}
# Kernels of devices are of fixed extents: 0.13 does not bind a loop of unknown extent.
LENGTH = 128
# Debug symbols and the static symbol table say nothing of the format.
LINK = {"options": ["-shared", "-fPIC", "-s"]}


def function(name):
    found = tvm.get_global_func(name, True)
    if found is None:
        raise NotImplementedError(f"this release has no {name}")
    return found


def register(name, callback):
    (getattr(tvm, "register_func", None) or tvm.register_global_func)(name, callback, override=True)


def array(value):
    make = getattr(tvm.runtime, "tensor", None) or tvm.nd.array
    return make(value)


# ------------------------------------------------------------------------------------------------------------------- kernels

def prim(name, by, length=None, dtype="float32"):
    """B[i] = A[i] + by."""
    n = length or te.var("n")
    a = te.placeholder((n,), name="A", dtype=dtype)
    b = te.compute((n,), lambda i: a[i] + TIR.const(by, dtype), name="B")
    return te.create_prim_func([a, b]).with_attr("global_symbol", name)


def on_threads(name, by):
    schedule = (getattr(tvm, "s_tir", None) or TIR).Schedule(tvm.IRModule({name: prim(name, by, LENGTH)}))
    block = schedule.get_sblock if hasattr(schedule, "get_sblock") else schedule.get_block
    loop, = schedule.get_loops(block("B", name))
    outer, inner = schedule.split(loop, [None, 32])
    schedule.bind(outer, "blockIdx.x")
    schedule.bind(inner, "threadIdx.x")
    return schedule.mod


def module(built):
    """The runtime module of what a build gives."""
    return getattr(built, "mod", built)


def compiled(mod, target):
    if hasattr(tvm, "compile"):
        return module(tvm.compile(mod, target=target))
    return tvm.build(mod, target=target)


def add(name, by, device=None, host=HOST):
    if device is None:
        return compiled(tvm.IRModule({name: prim(name, by)}), tvm.target.Target(host))
    enabled(device if isinstance(device, str) else device["kind"])
    return compiled(on_threads(name, by), tvm.target.Target(device, host=host))


def enabled(kind):
    if tvm.get_global_func("target.build." + kind, True) is None:
        raise NotImplementedError(f"this build has no code generator for {kind}")


def imports(mod):
    return list(mod.imports if hasattr(mod, "imports") else mod.imported_modules)


def save(mod, name):
    mod.export_library(name, **({} if name.endswith(".tar") else LINK))
    return name


def pairs():
    value = np.arange(LENGTH, dtype="float32") / 4
    np.savez("add.io.npz", in_A=value, out_B=value + np.float32(1))
    return "add.io.npz"


def call(library, device="cpu", loads=True):
    """How `add1` of a library runs. Sums of quarters are exact; where the release can load it, its own answer must be the same."""
    if device == "cpu" and loads:
        value = np.load(pairs())
        a, b = array(value["in_A"]), array(np.zeros(LENGTH, "float32"))
        tvm.runtime.load_module(os.path.abspath(library))["add1"](a, b)
        assert (b.numpy() == value["out_B"]).all()
    return {"how": "call", "library": library, "function": "add1", "device": device, "io": pairs()}


# ----------------------------------------------------------------------------------------------------------------- artifacts

def host():
    """A host library that LLVM compiled"""
    return [save(add("add1", 1), "host.so")], call("host.so")


def host_c():
    """A host library of C source, compiled by gcc"""
    return [save(add("add1", 1, host={"kind": "c"}), "host-c.so")], call("host-c.so")


def device(kind, runs=None):
    return [save(add("add1", 1, kind), f"{kind}.so")], runs and call(f"{kind}.so", runs)


def opencl():
    """An OpenCL module in a host library, and its library binary as C text"""
    mod = add("add1", 1, "opencl")
    pathlib.Path("opencl.devc.c").write_text(function("runtime.ModulePackImportsToC")(mod, False, ""))
    return [save(mod, "opencl.so"), "opencl.devc.c"], call("opencl.so", "opencl:0")


def metal():
    """A Metal module in a host library"""
    return device("metal")


def cuda():
    """A CUDA module in a host library"""
    path = os.environ.get("ERAS_NVRTC")
    if not path:
        raise NotImplementedError("ERAS_NVRTC names no compiler of CUDA")
    enabled("cuda")
    register("tvm_callback_cuda_compile", lambda code, *_: ptx(ctypes.CDLL(path), code))
    mod = compiled(on_threads("add1", 1), tvm.target.Target({"kind": "cuda", "arch": "sm_70"}, host=HOST))
    return [save(mod, "cuda.so")], None


def ptx(nvrtc, code):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    # 0.22 includes headers that NVRTC has not, and of which the kernel needs nothing.
    names, texts = (ctypes.c_char_p * 2)(b"cuda.h", b"cstdint"), (ctypes.c_char_p * 2)(b"", b"")
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"add1.cu", 2, texts, names) == 0
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_70")
    code = nvrtc.nvrtcCompileProgram(program, 1, options)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert code == 0, log.value.decode()
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, text)
    return bytearray(text.raw.rstrip(b"\0"))


def vulkan():
    """A Vulkan module in a host library"""
    return device("vulkan", "vulkan:0")


def webgpu():
    """A WebGPU module in a host library"""
    return device("webgpu")


def rocm():
    """A ROCm module in a host library"""
    # The kernel calls no function of ROCm's own libraries, which need not be here then. ld.lld links it.
    register("tvm_callback_rocm_bitcode_path", lambda *_: [])
    enabled("rocm")
    mod = compiled(on_threads("add1", 1), tvm.target.Target({"kind": "rocm", "mcpu": "gfx906"}, host=HOST))
    return [save(mod, "rocm.so")], None


def tree():
    """Imports of imports: a Metal module below the host module and below its OpenCL module"""
    first, opencl, metal = add("add1", 1), imports(add("add2", 2, "opencl"))[0], imports(add("add3", 3, "metal"))[0]
    first.import_module(metal)
    first.import_module(opencl)
    opencl.import_module(metal)
    return [save(first, "tree.so")], call("tree.so", loads=False)


def device_root():
    """An OpenCL module at the root, a host module below it"""
    root = imports(add("add2", 2, "opencl"))[0]
    root.import_module(add("add1", 1))
    return [save(root, "device-root.so")], call("device-root.so", loads=False)


def system_library():
    """A system library with an OpenCL import: object files in a tar, and linked"""
    prefix = getattr(tvm.runtime, "String", str)("eras_")
    mod = on_threads("eras_add1", 1).with_attr("system_lib_prefix", prefix)
    enabled("opencl")
    mod = compiled(mod, tvm.target.Target("opencl", host=HOST))
    return [save(mod, "system-library.tar"), save(mod, "system-library.so")], None


def static_library():
    """A static library below a host module: an object file that is linked into the library"""
    with tempfile.TemporaryDirectory() as folder:
        source, object_file = folder + "/static.c", folder + "/static.o"
        pathlib.Path(source).write_text("int static_function(void) { return 3; }\n")
        assert os.system(f"gcc -c -fPIC -o {object_file} {source}") == 0
        static = tvm.runtime.load_static_library(object_file, ["static_function"])
        root = add("add1", 1)
        root.import_module(static)
        save(root, "static-library.so")
    return ["static-library.so"], call("static-library.so")


# A kernel of somebody else's compiler, as C: the constants arrive once, by `__init_`, in an array of tensors. Up to 0.20 elements stand
# in the array, behind its size and capacity; later it holds where they stand.
EXTERNAL = """
#include <stdint.h>
typedef struct { float* data; int32_t device[2]; int32_t ndim; int32_t dtype; int64_t* shape; int64_t* strides; uint64_t offset; } Tensor;
static float constant[4];
static void take(Tensor* from) { for (int i = 0; i < 4; ++i) constant[i] = from->data[i]; }
static void sum(Tensor* in, Tensor* out) { for (int i = 0; i < 4; ++i) out->data[i] = in->data[i] + constant[i]; }
#ifdef __cplusplus
extern "C" {
#endif
"""
LEGACY = """
int32_t __init_NAME(char*** a, int32_t* codes, int32_t n, int64_t* r, int32_t* rc, void* h) {
  take((Tensor*)(a[0][4] + 16)); *r = 0; *rc = 0; return 0; }
int32_t NAME(Tensor** a, int32_t* codes, int32_t n, void* r, int32_t* rc, void* h) { sum(a[0], a[1]); return 0; }
"""
FFI = """
typedef struct { int32_t type; int32_t zero; char* object; } Any;
static Tensor* tensor(Any* any) { return (Tensor*)(any->type == 7 ? any->object : any->object + 24); }
int32_t PREFIX__init_NAME(void* self, Any* a, int32_t n, Any* r) {
  take(tensor(*(Any**)(a->object + 24))); r->type = 1; r->object = 0; return 0; }
int32_t PREFIXNAME(void* self, Any* a, int32_t n, Any* r) { sum(tensor(a), tensor(a + 1)); return 0; }
"""
END = """
#ifdef __cplusplus
}
#endif
"""


def external(name, constants):
    text = LEGACY
    if relay is None:
        text = FFI.replace("PREFIX", "__tvm_ffi_" if RELEASE >= (0, 22) else "")
    source = (EXTERNAL + text + END).replace("NAME", name)
    return function("runtime.CSourceModuleCreate")(source, "c", [name], constants)


def const_loader():
    """Constants for a module of C source, which a code generator outside TVM gives: a const_loader module above it"""
    value = np.array([1, 2, 3, 4], "float32") / 8
    x = np.array([5, 6, 7, 8], "float32")
    np.savez("const-loader.io.npz", in_A=x, out_B=x + value)
    if relay is None:
        inner = external("eras_0", ["eras_0_const_0"])
        create = tvm.get_global_func("ffi.Module.create.const_loader", True)
        if create:
            mod = create({"eras_0_const_0": array(value)}, {"eras_0": ["eras_0_const_0"]})
            mod.import_module(inner)
        else:
            # Before, only a VM executable is linked with one.
            builder = relax.ExecBuilder()
            with builder.function("main", num_inputs=2):
                builder.emit_call("eras_0", args=[builder.r(0), builder.r(1)])
                builder.emit_ret(builder.r(1))
            mod = function("relax.VMLink")(builder, tvm.target.Target(HOST), None, [inner], {"eras_0_const_0": array(value)})
        save(mod, "const-loader.so")
        run = {"how": "call", "library": "const-loader.so", "function": "eras_0", "device": "cpu", "io": "const-loader.io.npz"}
        a, b = array(x), array(np.zeros(4, "float32"))
        tvm.runtime.load_module(os.path.abspath("const-loader.so")).get_function("eras_0", True)(a, b)
        assert (b.numpy() == x + value).all()
        return ["const-loader.so"], run

    def generate(body):
        symbol = body.attrs["global_symbol"]
        return external(symbol, [f"{symbol}_const_0"])

    register("relay.ext.eras", generate)
    tvm.ir.register_op_attr("add", "target.eras", lambda _: True)
    data = relay.var("A", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([data], relay.add(data, relay.const(value))))
    for step in (relay.transform.AnnotateTarget("eras"), relay.transform.MergeCompilerRegions(), relay.transform.PartitionGraph(),
                 relay.transform.InferType()):
        mod = step(mod)
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(mod, target=tvm.target.Target(HOST))
    return model("const-loader", built, {"A": x})


def stackvm():
    """A StackVM program"""
    enabled("stackvm")
    mod = compiled(tvm.IRModule({"add1": prim("add1", 1, 16, "int32")}), tvm.target.Target("stackvm"))
    mod.save("add1.stackvm")
    return ["add1.stackvm"], None


# -------------------------------------------------------------------------------------------------------------------- models

def perceptron():
    rng = np.random.RandomState(7)
    x, w1, b1, w2 = (relay.var(name, shape=shape) for name, shape in
                     (("x", (1, 16)), ("w1", (32, 16)), ("b1", (32,)), ("w2", (10, 32))))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w1), b1))
    y = relay.nn.softmax(relay.nn.dense(y, w2))
    weights = {name: array(rng.randn(*shape).astype("float32")) for name, shape in (("w1", (32, 16)), ("b1", (32,)), ("w2", (10, 32)))}
    mod = tvm.IRModule.from_expr(relay.Function([x, w1, b1, w2], y))
    return mod, weights, {"x": rng.randn(1, 16).astype("float32")}


def needs_relay():
    if relay is None:
        raise NotImplementedError("Relay was removed in 0.20")


def record(name, inputs, outputs):
    kept = {"in_" + key: value for key, value in inputs.items()}
    kept.update({f"out_{index}": output.numpy() for index, output in enumerate(outputs)})
    np.savez(name + ".io.npz", **kept)
    return name + ".io.npz"


def model(name, built, inputs):
    from tvm.contrib import graph_executor

    library = save(built, name + ".so")
    machine = graph_executor.GraphModule(tvm.runtime.load_module(os.path.abspath(library))["default"](tvm.cpu()))
    for key, value in inputs.items():
        machine.set_input(key, value)
    machine.run()
    outputs = [machine.get_output(index) for index in range(machine.get_num_outputs())]
    return [library], {"how": "run", "library": library, "io": record(name, inputs, outputs)}


def graph():
    """A model for the graph executor: one library, and graph, parameters and kernels apart"""
    needs_relay()
    mod, weights, inputs = perceptron()
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(mod, target=tvm.target.Target(HOST), params=weights)
    files, run = model("graph", built, inputs)
    pathlib.Path("graph.json").write_text(built.get_graph_json())
    pathlib.Path("graph.params").write_bytes(relay.save_param_dict(built.get_params()))
    return files + ["graph.json", "graph.params", save(built.get_lib(), "graph-kernels.so")], run


def aot():
    """A model for the AOT executor"""
    needs_relay()
    mod, weights, inputs = perceptron()
    executor = relay.backend.Executor("aot", {"interface-api": "packed", "unpacked-api": False})
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(mod, target=tvm.target.Target(HOST), params=weights, executor=executor)
    save(built, "aot.so")
    machine = tvm.runtime.executor.AotModule(tvm.runtime.load_module(os.path.abspath("aot.so"))["default"](tvm.cpu()))
    for key, value in inputs.items():
        machine.set_input(key, array(value))
    machine.run()
    record("aot", inputs, [machine.get_output(0)])
    return ["aot.so"], None


def relay_vm():
    """A Relay VM executable: in a library, and the bytecode apart"""
    needs_relay()
    from tvm.runtime.vm import VirtualMachine

    mod, weights, inputs = perceptron()
    with tvm.transform.PassContext(opt_level=3):
        built = relay.vm.compile(mod, target=tvm.target.Target(HOST), params=weights)
    code, _ = built.save()
    pathlib.Path("relay-vm.ro").write_bytes(code)
    save(built.mod, "relay-vm.so")
    machine = VirtualMachine(tvm.runtime.load_module(os.path.abspath("relay-vm.so")), tvm.cpu())
    record("relay-vm", inputs, [machine.run(*(array(value) for value in inputs.values()))])
    return ["relay-vm.so", "relay-vm.ro"], None


def relax_vm():
    """A Relax VM executable: in a library, and the bytecode apart"""
    if relax is None:
        raise NotImplementedError("Relax comes with 0.16")
    rng = np.random.RandomState(5)
    builder = relax.BlockBuilder()
    info = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    x = relax.Var("x", info((2, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            weight = relax.const(rng.randn(4, 3).astype("float32"))
            y = builder.emit(relax.op.nn.relu(relax.op.matmul(x, weight)))
            z = builder.emit(relax.op.add(y, relax.const(np.ones((2, 3), "float32"))))
            out = builder.emit_output(relax.Tuple([y, z]))
        builder.emit_func_output(out)
    make = tvm.compile if hasattr(tvm, "compile") else relax.build
    built = make(builder.get(), target=tvm.target.Target(HOST))
    built.export_library("relax-vm.so", **LINK)
    mod = module(built)
    if hasattr(mod, "write_to_file"):
        mod.write_to_file("relax-vm.vmexec", "")
    else:
        mod.save("relax-vm.vmexec")
    inputs = {"x": rng.randn(2, 4).astype("float32")}
    machine = relax.VirtualMachine(tvm.runtime.load_module(os.path.abspath("relax-vm.so")), tvm.cpu())
    outputs = list(machine["main"](array(inputs["x"])))
    return ["relax-vm.so", "relax-vm.vmexec"], {"how": "run", "library": "relax-vm.so", "io": record("relax-vm", inputs, outputs)}


# ---------------------------------------------------------------------------------------------------------------------- data

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
    """What `make` gives, or why it does not; in a process of its own."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            files, run = make()
            said = {"files": files, **({"run": run} if run else {})}
        except BaseException as error:  # noqa: whatever it is, it is the reason
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
