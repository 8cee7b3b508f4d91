"""Artifacts of kernels: modules of the host and of devices, by themselves and below each other."""

import ctypes
import os
import pathlib
import tempfile

import numpy as np
import tvm

from models import model
from release import HOST, RELEASE, add, array, call, compiled, enabled, function, imports, on_threads, prim, register, relax, relay, save


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
    # 0.22 includes headers that NVRTC does not have, and that the kernel does not need.
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
    # The kernel calls no function of ROCm's own libraries, so they need not be installed. ld.lld links it.
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


# A kernel of a third-party compiler, as C: `__init_` passes the constants once, in an array of tensors. Up to 0.20 the elements are
# in the array, after its size and capacity; later it contains their address.
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
            # Before that, only a VM executable is linked with one.
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
