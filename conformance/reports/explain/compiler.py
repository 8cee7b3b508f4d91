"""The compiler that a script runs in, under one interface for all releases."""

import json
import os
import pathlib
import subprocess

from tensors import one_line


class Compiler:
    """The TVM package that this process imports. Its methods hide what releases name differently."""

    def __init__(self):
        try:
            import tvm
        except ImportError:
            import tvm_tirx as tvm
        self.tvm, self.files, self.failed = tvm, [], []
        self.tir = getattr(tvm, "tir", None) or tvm.tirx
        # What has another package name comes after all releases.
        self.version = [int(part) for part in tvm.__version__.split(".")[:2]] if tvm.__name__ == "tvm" else [1, 0]

    def attempt(self, name, action, *arguments):
        """Runs one step and returns its result. An exception is noted, because no release can write everything."""
        self.keep()
        try:
            return action(*arguments)
        except Exception as error:  # pylint: disable=broad-except
            self.failed.append([name, one_line(error)])
            return None

    def alone(self, name, action, *arguments):
        """Runs one step like `attempt`, in a separate process: some releases crash if their LLVM lacks a machine."""
        self.keep()
        child = os.fork()
        if child == 0:
            self.attempt(name, action, *arguments)
            self.keep()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        kept = json.loads(pathlib.Path("kept.json").read_text())
        self.files, self.failed = kept["files"], kept["failed"]
        if status:
            self.failed.append([name, "the process ends with status %d" % status])
            self.keep()

    def keep(self):
        """Writes the list of files, so that a parent process finds what its child wrote."""
        pathlib.Path("kept.json").write_text(json.dumps({"files": self.files, "failed": self.failed}, indent=1))

    def note(self, name, ask, **facts):
        """Lists a written file with the way to load it and the facts that hold once it is loaded."""
        self.files.append(dict(file=name, ask=ask, **facts))

    def array(self, value):
        """Creates a tensor of a numpy array."""
        return (getattr(self.tvm.runtime, "tensor", None) or self.tvm.nd.array)(value)

    def empty(self, shape, dtype):
        """Creates a tensor without values."""
        return (getattr(self.tvm.runtime, "empty", None) or self.tvm.nd.empty)(shape, dtype)

    def get(self, name):
        """Returns a global function; raises if this release has none of that name."""
        if hasattr(self.tvm, "get_global_func"):
            found = self.tvm.get_global_func(name, True)
        else:
            import tvm_ffi

            found = tvm_ffi.get_global_func(name, True)
        if found is None:
            raise NotImplementedError("no " + name)
        return found

    def copy(self, name, dtype="float32", length=None):
        """Returns a function that copies A to B, of a fixed or any length."""
        if not hasattr(self.tvm, "te"):
            return self.script(name, dtype, False)
        te = self.tvm.te
        n = length or te.var("n")
        a = te.placeholder((n,), name="A", dtype=dtype)
        b = te.compute((n,), lambda i: a[i], name="B")
        return te.create_prim_func([a, b]).with_attr("global_symbol", name)

    def script(self, name, dtype, threads):
        """Returns the same function for releases without TE: for 16 elements, or for 128 that are bound to threads."""
        from tvm_tirx.script import tirx as T

        @T.function
        def serial(A: T.Tensor((16,), dtype), B: T.Tensor((16,), dtype)):
            for i in range(16):
                B[i] = A[i]

        @T.function
        def parallel(A: T.Tensor((128,), dtype), B: T.Tensor((128,), dtype)):
            with T.launch_thread("blockIdx.x", 4) as block:
                with T.launch_thread("threadIdx.x", 32) as thread:
                    B[block * 32 + thread] = A[block * 32 + thread]

        return (parallel if threads else serial).with_attr("global_symbol", name)

    def threads(self, name, dtype="float32"):
        """Returns a module with the same function for 128 elements that are bound to threads."""
        tvm = self.tvm
        if not hasattr(tvm, "te"):
            return tvm.IRModule({name: self.script(name, dtype, True)})
        if self.version < [0, 9]:
            a = tvm.te.placeholder((128,), name="A", dtype=dtype)
            b = tvm.te.compute((128,), lambda i: a[i], name="B")
            schedule = tvm.te.create_schedule(b.op)
            outer, inner = schedule[b].split(b.op.axis[0], factor=32)
            schedule[b].bind(outer, tvm.te.thread_axis("blockIdx.x"))
            schedule[b].bind(inner, tvm.te.thread_axis("threadIdx.x"))
            return tvm.driver.build_module.lower(schedule, [a, b], name=name)
        schedule = (getattr(tvm, "s_tir", None) or self.tir).Schedule(tvm.IRModule({name: self.copy(name, dtype, 128)}))
        block = getattr(schedule, "get_sblock", None) or schedule.get_block
        (loop,) = schedule.get_loops(block("B", name))
        outer, inner = schedule.split(loop, [None, 32])
        schedule.bind(outer, "blockIdx.x")
        schedule.bind(inner, "threadIdx.x")
        return schedule.mod

    def build(self, mod, target):
        """Compiles a module of the IR."""
        make = getattr(self.tvm, "compile", None) or getattr(self.tvm, "build", None) or self.tir.compile
        built = make(mod, target=target)
        # After 0.27 only the executable around a module can be exported.
        return module_of(built) if self.version < [1, 0] else built

    def target(self, device, host="llvm"):
        """Returns the target for a device and its host."""
        return self.tvm.target.Target(device, host=self.tvm.target.Target(host))

    def kernel(self, device, name="copy", host="llvm", dtype="float32"):
        """Compiles the copy for a device; raises where this release has no code generator for it."""
        self.get("target.build." + (device if isinstance(device, str) else device["kind"]))
        return self.build(self.threads(name, dtype), self.target(device, host))

    def register(self, name, callback):
        """Registers a global function for a code generator to call."""
        try:
            (getattr(self.tvm, "register_func", None) or self.tvm.register_global_func)(name, callback, override=True)
        except AttributeError:
            import tvm_ffi

            tvm_ffi.register_global_func(name, callback, override=True)

    def text(self, mod):
        """Returns the library binary of a module as C text. From 0.13 on the writer takes a prefix."""
        pack = self.get("runtime.ModulePackImportsToC")
        try:
            return pack(module_of(mod), False, "")
        except Exception:  # pylint: disable=broad-except
            return pack(module_of(mod), False)

    def imports(self, mod):
        """Returns the modules directly below a module."""
        mod = module_of(mod)
        return list(mod.imports if hasattr(mod, "imports") else mod.imported_modules)

    def kind(self, mod):
        """Returns the kind of a module."""
        mod = module_of(mod)
        return mod.kind if hasattr(mod, "kind") else mod.type_key

    def kinds(self, mod):
        """Returns the kinds of a module and of all below it, without those that a linker joins into one library."""
        found = [self.kind(mod)] + [kind for one in self.imports(mod) for kind in self.kinds(one)]
        return sorted(kind for kind in found if kind not in ("c", "llvm", "static_library"))

    def save(self, mod, name, form=""):
        """Writes one module into a separate file."""
        mod = module_of(mod)
        (mod.write_to_file if hasattr(mod, "write_to_file") else mod.save)(name, form)

    def export(self, name, mod, link=None, **facts):
        """Exports a library in the form that its extension states, and notes it."""
        if name.endswith(".a"):
            mod.export_library(name, fcompile=archive)
        elif name.endswith(".o"):
            mod.export_library(name, fcompile=relocatable)
        else:
            mod.export_library(name, **({"options": link} if link else {}))
        self.note(name, "module", kinds=self.kinds(mod), **facts)


def module_of(built):
    """Returns the runtime module inside a build result. Looks at the type only: any attribute of a tvm-ffi module is a function of it."""
    names = [base.__name__ for base in type(built).__mro__]
    if "Executable" in names:
        return built.mod
    return built.module if names[0].endswith("FactoryModule") and hasattr(built, "module") else built


def archive(output, objects, **_):
    """Creates a static archive, as a callback of `export_library`."""
    subprocess.run(["ar", "rcs", output] + list(objects), check=True)


def relocatable(output, objects, **_):
    """Joins objects into one, as a callback of `export_library`."""
    subprocess.run(["ld", "-r", "-o", output] + list(objects), check=True)


archive.output_format = "a"
relocatable.output_format = "o"
