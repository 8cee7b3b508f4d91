"""Files with code of the host and of devices."""

import pathlib
import subprocess

from compiler import module_of
from tensors import DTYPES, numpy

TRIPLES = {"arm64": "aarch64-linux-gnu", "arm": "armv7-linux-gnueabihf", "mac": "arm64-apple-darwin", "mac-x86": "x86_64-apple-darwin",
           "windows": "x86_64-pc-windows-msvc", "wasm": "wasm32-unknown-unknown-wasm", "x86-32": "i386-linux-gnu"}
# The extension that a device module of each kind is saved with.
FORMS = {"opencl": "cl", "metal": "metal", "webgpu": "wgsl", "vulkan": "spv", "cuda": "ptx", "rocm": "hsaco", "nvptx": "ptx", "hexagon": "so"}


def call(name, dtype="float32", length=16):
    """Returns the data that a runtime needs to call a copy."""
    return {"function": name, "dtype": dtype, "length": length}


def libraries(w):
    """Writes host code: each element type, form and machine, several functions or none, system libraries."""
    IRModule = w.tvm.IRModule

    def by_type(dtype):
        mod = w.build(IRModule({"copy": w.copy("copy", dtype, 16)}), "llvm")
        w.export("host-%s.so" % dtype, mod, functions=["copy"], call=call("copy", dtype))

    for dtype in DTYPES[:12] + DTYPES[13:17]:
        w.attempt("host-" + dtype, by_type, dtype)
    for host in ("llvm", "c"):
        mod = w.attempt("host in " + host, w.build, IRModule({"copy": w.copy("copy")}), host)
        for form in ("so", "tar", "a", "o") if host == "llvm" else ("so", "tar"):
            w.attempt(host + "." + form, lambda: w.export("%s.%s" % (host, form), mod, functions=["copy"], call=call("copy")))
        for form in ("ll", "bc", "s", "o") if host == "llvm" else ("c",):
            name = "saved-%s.%s" % (host, form)
            if w.attempt(name, lambda: w.save(mod, name) or True):
                w.note(name, "module", functions=["copy"], kinds=[], call=call("copy"))
        names = ["f0", "f1", "f2"]
        three = IRModule({name: w.copy(name) for name in names})
        w.attempt("three", lambda: w.export("three-%s.so" % host, w.build(three, host), functions=names, call=call("f2")))
        w.attempt("empty", lambda: w.export("empty-%s.so" % host, w.build(IRModule({}), host), functions=[]))

    def machine(name, form):
        mod = w.build(IRModule({"copy": w.copy("copy")}), w.tvm.target.Target({"kind": "llvm", "mtriple": TRIPLES[name]}))
        if form == "tar":
            w.export("machine-%s.tar" % name, mod, functions=["copy"])
        else:
            w.save(mod, "machine-%s.o" % name)
            w.note("machine-%s.o" % name, "module", functions=["copy"], kinds=[])

    for name in TRIPLES:
        for form in ("tar", "o"):
            w.alone(name, machine, name, form)

    def system(name, prefix, host="llvm"):
        function, target = w.copy(prefix + "copy"), host
        if w.version < [0, 10]:
            target = host + " --system-lib"
        else:
            function = function.with_attr("system_lib_prefix", getattr(w.tvm.runtime, "String", str)(prefix))
        mod = w.build(IRModule({prefix + "copy": function}), target)
        for form in ("so", "tar", "a", "o") if host == "llvm" else ("so", "tar"):
            w.export("%s.%s" % (name, form), mod, functions=[prefix + "copy"], call=call(prefix + "copy"))

    w.attempt("system library", system, "system", "")
    w.attempt("system library with prefix", system, "system-prefix", "my_")
    w.attempt("system library of C", system, "system-c", "", "c")


def devices(w):
    """Writes device code below host code, side by side, nested, and at the root."""
    # These take the place of the vendors' compilers, which writing a file does not need.
    w.register("tvm_callback_libdevice_path", lambda *_: "")
    w.register("tvm_callback_rocm_bitcode_path", lambda *_: [])
    w.register("tvm_callback_cuda_compile", lambda *_: bytearray(b"// PTX"))
    for kind, form in FORMS.items():
        device = {"kind": "cuda", "arch": "sm_80"} if kind == "cuda" else kind
        mod = w.attempt(kind, w.kernel, device)
        if mod is None:
            continue
        for library in ("so", "tar", "a"):
            w.attempt(kind, lambda: w.export("%s.%s" % (kind, library), mod, functions=["copy"]))
        w.attempt(kind + " below c", lambda: w.export(kind + "-c.so", w.kernel(device, host="c"), functions=["copy"]))
        w.attempt(kind + " half", lambda: w.export(kind + "-half.so", w.kernel(device, dtype="float16"), functions=["copy"]))
        text = w.attempt(kind + " as text", lambda: w.text(mod))
        if text is not None:
            pathlib.Path(kind + ".devc.c").write_text(text)
            w.note(kind + ".devc.c", "module", kinds=w.kinds(mod), functions=[])
        if w.attempt("saved " + kind, lambda: w.save(w.imports(mod)[0], "saved-%s.%s" % (kind, form)) or True):
            w.note("saved-%s.%s" % (kind, form), "module")

    def below(name, host, *others):
        for other in others:
            module_of(host).import_module(module_of(other))
        w.export(name + ".so", host, functions=["copy"], call=call("copy"))

    def first(kind, name="other"):
        return w.imports(w.kernel(kind, name))[0]

    def host(name="copy", kind="llvm"):
        return w.build(w.tvm.IRModule({name: w.copy(name)}), kind)

    w.attempt("two", lambda: below("two", host(), first("opencl"), first("metal")))
    w.attempt("two alike", lambda: below("two-alike", host(), first("opencl", "one"), first("opencl", "another")))
    w.attempt("two hosts", lambda: below("two-hosts", host(), host("more")))
    w.attempt("host of c below", lambda: below("host-of-c-below", host(), host("more", "c")))

    def deep():
        middle, leaf = first("opencl"), first("metal")
        middle.import_module(leaf)
        below("deep", host(), middle)
        below("diamond", host(), middle, leaf)

    def root():
        mod = first("opencl")
        mod.import_module(module_of(host()))
        w.export("device-root.so", mod, functions=[])

    w.attempt("deep", deep)
    w.attempt("device root", root)


def sources(w):
    """Writes modules that no code generator creates: source text, constants, a static library, JSON of a module."""
    host = w.build(w.tvm.IRModule({"copy": w.copy("copy")}), "llvm")

    def text(name, functions, *constants):
        source = 'extern "C" int my_%s(void) { return 3; }\n' % name
        return w.get("runtime.CSourceModuleCreate")(source, "cc", functions, list(constants))

    def static():
        pathlib.Path("plain.c").write_text("int static_function(void) { return 3; }\n")
        subprocess.run(["gcc", "-c", "-fPIC", "-o", "plain.o", "plain.c"], check=True)
        module_of(host).import_module(w.get("runtime.ModuleLoadStaticLibrary")("plain.o", ["static_function"]))
        w.export("static-library.so", host, functions=["copy"], call=call("copy"))

    def constants():
        loader = w.get("ffi.Module.create.const_loader")({"w0": w.array(numpy().ones(4, "float32"))}, {"f": ["w0"]})
        loader.import_module(text("constants", ["f"], "w0"))
        w.export("const-loader.so", loader, functions=[])

    def json_graph():
        import tvm_ffi.serialization as graph

        mod = w.get("ffi.Module.create.const_loader")({}, {"f": []})
        pathlib.Path("module.json").write_text(graph.to_json_graph_str(mod))
        w.note("module.json", "json")

    w.attempt("source text", lambda: w.export("source.so", text("alone", []), functions=[]))
    w.attempt("constants", constants)
    w.attempt("JSON of a module", json_graph)
    w.attempt("static library", static)
