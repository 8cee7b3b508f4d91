"""Files with models: of Relay for its three executors, and of Relax."""

import os
import pathlib

from compiler import module_of
from tensors import DTYPES, described, fill, numpy


# The result of a model that adds eight ones to themselves.
TWOS = ["float32", [2, 4], "00000040" * 8]


def perceptron(w):
    """Returns a model of Relay and its weights."""
    from tvm import relay

    x, weight = relay.var("x", shape=(1, 4)), relay.var("w", shape=(3, 4))
    mod = w.tvm.IRModule.from_expr(relay.Function([x, weight], relay.nn.relu(relay.nn.dense(x, weight)) + relay.const(1.0)))
    return mod, {"w": w.array(numpy().ones((3, 4), "float32"))}


def graphs(w):
    """Writes models of Relay for the graph executor, the AOT executor and the Relay VM, and packages of them."""
    from tvm import relay

    tvm = w.tvm
    mod, weights = perceptron(w)

    def build(level=3, **more):
        with tvm.transform.PassContext(opt_level=level, config={"tir.disable_vectorize": level == 0}):
            return relay.build(mod, params=weights, **dict({"target": "llvm"}, **more))

    lib = build()
    for form in ("so", "tar", "a"):
        w.attempt("graph." + form, lambda: w.export("graph." + form, lib, make="graph"))
    w.attempt("graph in c", lambda: w.export("graph-c.so", build(level=0, target="c"), make="graph"))
    w.attempt("graph without parameters", lambda: w.export("graph-without.so", module_of(lib)["remove_params"](), make="graph"))
    kernels = lib.get_lib()
    w.export("graph-kernels.so", kernels)
    pathlib.Path("graph.json").write_text(lib.get_graph_json())
    w.note("graph.json", "graph", library="graph-kernels.so")
    pathlib.Path("graph.params").write_bytes(bytes(relay.save_param_dict(lib.get_params())))
    w.note("graph.params", "params", params={name: described(one) for name, one in lib.get_params().items()})

    def vm(name, **more):
        with tvm.transform.PassContext(opt_level=3):
            built = relay.vm.compile(mod, params=weights, **dict({"target": "llvm"}, **more))
        code, kernels = built.save()
        pathlib.Path(name + ".ro").write_bytes(bytes(code))
        kernels.export_library(name + "-kernels.so")
        w.note(name + ".ro", "relay-vm", library=name + "-kernels.so")
        w.note(name + "-kernels.so", "module")
        w.attempt(name, lambda: w.export(name + ".so", built.mod, make="relay-vm"))

    def late():
        with tvm.transform.PassContext(opt_level=3):
            built = relay.vm.compile(mod, params=weights, target="llvm")
        built.move_late_bound_consts("late.consts", byte_limit=8)
        w.note("late.consts", "nothing")
        code, _ = built.save()
        pathlib.Path("late.ro").write_bytes(bytes(code))
        w.note("late.ro", "relay-vm", library="relay-vm-kernels.so")

    w.attempt("relay VM", vm, "relay-vm")
    w.attempt("relay VM in c", vm, "relay-vm-c")
    w.attempt("late-bound constants", late)

    def executor(kind, runtime, **more):
        options = {"system-lib": True} if runtime == "crt" else {}
        return build(executor=relay.backend.Executor(kind, more), runtime=relay.backend.Runtime(runtime, options))

    for form in ("so", "tar"):
        packed = {"interface-api": "packed", "unpacked-api": False}
        w.attempt("AOT", lambda: w.export("aot." + form, executor("aot", "cpp", **packed), make="aot"))
    w.attempt("AOT of 0.8", lambda: w.export("aot-kernels.so", build(target="llvm --executor=aot --runtime=c --system-lib").get_lib()))

    def package(name, built, form):
        from tvm.driver.tvmc.model import TVMCModel

        TVMCModel(mod, weights).export_package(built, name, output_format=form)
        w.note(name, "package")

    w.attempt("tvmc package", lambda: package("package.tar", lib, "so"))
    w.attempt("tvmc package of objects", lambda: package("package-objects.tar", lib, "tar"))
    w.attempt("model library", lambda: package("model-library.tar", executor("graph", "crt"), "mlf"))
    w.attempt("model library for AOT", lambda: package("model-library-aot.tar", executor("aot", "crt"), "mlf"))

    def external():
        x = relay.var("x", shape=(2, 4))
        for name in ("add", "subtract", "multiply"):
            tvm.ir.register_op_attr(name, "target.ccompiler", lambda _: True, 20)
        part = tvm.IRModule.from_expr(relay.Function([x], relay.add(x, relay.const(numpy().ones((2, 4), "float32")))))
        steps = relay.transform
        for step in (steps.AnnotateTarget("ccompiler"), steps.MergeCompilerRegions(), steps.PartitionGraph(), steps.InferType()):
            part = step(part)
        with tvm.transform.PassContext(opt_level=3):
            headers = os.path.join(os.path.dirname(tvm.__file__), "include")
            w.export("external.so", relay.build(part, target="llvm"), make="graph", link=["-I" + headers])

    w.attempt("code of another compiler", external)


def relax_model(w, dtype="float32", constant=None):
    """Returns a model of Relax that adds its input to itself, or that returns it together with a constant."""
    from tvm import relax

    info = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    builder = relax.BlockBuilder()
    x = relax.Var("x", info((2, 4), dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = relax.op.add(x, x) if constant is None else relax.Tuple([x, relax.const(constant)])
            out = builder.emit_output(builder.emit(result))
        builder.emit_func_output(out)
    return builder.get()


def models(w):
    """Writes models of Relax: both modes, device kernels, constants and inputs of each type, and calls of functions that may be missing."""
    from tvm import relax

    tvm = w.tvm

    def build(mod, target="llvm", **more):
        return (relax.build if more else getattr(tvm, "compile", None) or relax.build)(mod, target=target, **more)

    def export(name, mod, target="llvm", result=None, **more):
        built = build(mod, target, **more)
        built.export_library(name)
        w.note(name, "module", kinds=w.kinds(built), make="vm", **({"result": result} if result else {}))
        return built

    for mode in ("bytecode", "compiled"):
        for form in ("so", "tar"):
            w.attempt("relax", lambda: export("relax-%s.%s" % (mode, form), relax_model(w), result=TWOS, exec_mode=mode))
        w.attempt("relax in c", lambda: export("relax-%s-c.so" % mode, relax_model(w), "c", result=TWOS, exec_mode=mode))
        boolean = w.attempt("bool", fill, w, "bool", (3,))
        w.attempt("relax with bool", lambda: export("relax-%s-bool.so" % mode, relax_model(w, "bool", boolean), exec_mode=mode))

    def code():
        w.save(export("relax.so", relax_model(w), result=TWOS), "relax.vmexec")
        w.note("relax.vmexec", "relax-code")

    w.attempt("relax code", code)

    def typed(dtype, constant):
        value = fill(w, constant, (2, 4))
        name = "relax-input-" + dtype if constant == "float32" else "relax-constant-" + constant
        export(name + ".so", relax_model(w, dtype, value), result=described(value) if dtype == "float32" else None)

    for dtype in DTYPES:
        w.attempt("relax constant " + dtype, typed, "float32", dtype)
        w.attempt("relax input " + dtype, typed, dtype, "float32")

    def scheduled(kind):
        target = w.target(kind)
        mod = relax.transform.LegalizeOps()(relax_model(w))
        with target:
            try:
                from tvm.s_tir import dlight
            except ImportError:
                from tvm import dlight
            mod = dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(mod)
        export("relax-%s.so" % kind, mod, target)

    for kind in ("opencl", "metal", "webgpu"):
        w.attempt("relax on " + kind, lambda: scheduled(kind))

    def calls(name, callee):
        info = getattr(relax, "TensorStructInfo", None) or relax.TensorType
        ty = "ty_args" if w.version >= [0, 25] else "sinfo_args"
        builder, x = relax.BlockBuilder(), relax.Var("x", info((2, 4), "float32"))
        with builder.function("main", [x]):
            out = builder.emit(relax.Call(relax.ExternFunc(callee), [x], **{ty: [info((2, 4), "float32")]}))
            builder.emit_func_output(out)
        export(name, builder.get())

    builtins = ["call_py_func", "ndarray_cache.get", "no_such_builtin", "paged_attention_kv_cache_create_reduced", "read_if_cond", "reshape",
                "sample_top_p_from_prob", "tensor_cache.get", "tensor_to_shape", "to_device"]
    for callee in ["vm.builtin." + name for name in builtins] + ["runtime.disco.allreduce", "vendor.gemm"]:
        w.attempt("relax calls " + callee, calls, "relax-calls-%s.so" % callee, callee)
    w.attempt("relax empty", lambda: export("relax-empty.so", tvm.IRModule({})))
