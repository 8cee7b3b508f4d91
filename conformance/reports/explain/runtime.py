"""The runtime that a script runs in, and the questions about a file."""

import collections
import ctypes
import importlib
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

from tensors import described, memory, numpy, one_line

SECONDS = 60


def answer(release, libraries):
    """Reads a line for each file from the standard input, and answers each with a line."""
    loader = Runtime([int(part) for part in release.split(".")], libraries)
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in iter(sys.stdin.readline, ""):
        output.write(json.dumps(ask_alone(loader, json.loads(line))) + "\n")
        output.flush()


def ask_alone(loader, entry):
    """Asks in a forked process. A crash or a timeout becomes the answer to the question that was open."""
    reader, writer = os.pipe()
    errors = tempfile.TemporaryFile()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(errors.fileno(), 2)
        signal.alarm(SECONDS)
        loader.questions(entry, lambda *words: os.write(writer, (json.dumps(words) + "\n").encode()))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        said = [json.loads(line) for line in lines]
    _, status = os.waitpid(child, 0)
    answers = collections.OrderedDict()
    for question, outcome, text in said:
        answers[question] = [outcome, text]
    if os.WIFSIGNALED(status) or os.WEXITSTATUS(status):
        errors.seek(0)
        text = errors.read().decode(errors="replace").strip()
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit %d" % os.WEXITSTATUS(status)
        last = list(answers)[-1]
        answers[last] = ["hang" if name == "SIGALRM" else "crash", (name + ": " + one_line(text)).rstrip(": ")]
    return {"answers": answers, "registered": loader.registered(entry)}


class Partial(Exception):
    """A file loads, but something of it is missing or wrong."""


def newest(kind):
    """Returns the newest name of a kind that was renamed."""
    return kind.replace("relax.Executable", "relax.VMExecutable")


class Runtime:
    """The runtime of this process: a TVM package, or tvm-ffi with libraries."""

    def __init__(self, release, libraries):
        self.release, self.tvm = release, None
        if libraries:
            import tvm_ffi

            self.kept = [ctypes.CDLL(library, ctypes.RTLD_GLOBAL) for library in libraries]
            self.ffi, self.get = tvm_ffi, tvm_ffi.get_global_func
        else:
            import tvm

            self.tvm, self.get = tvm, tvm.get_global_func

    def registered(self, entry):
        """Returns the kinds of modules in a file that this runtime has a loader for."""
        prefix = "ffi.Module.load_from_bytes." if self.release >= [0, 22] else "runtime.module.loadbinary_"
        return [kind for kind in sorted(set(entry.get("kinds", []))) if self.get(prefix + kind, True)]

    def questions(self, entry, say):
        """Checks whether a file loads, then whether everything in it exists and works."""
        loaded = self.question("load", lambda: self.load(entry), say)
        if loaded is None:
            return
        if entry["ask"] == "params":
            self.question("content", lambda: self.values(loaded, entry["params"]), say)
        if entry["ask"] == "relay-vm":
            self.question("vm", lambda: self.make("relay-vm", loaded), say)
        if entry["ask"] != "module":
            return
        if entry.get("functions") or entry.get("kinds"):
            self.question("content", lambda: self.content(entry, loaded), say)
        if "call" in entry:
            self.question("call", lambda: self.call(entry["call"], loaded), say)
        if "make" in entry:
            made = self.question(entry["make"], lambda: self.make(entry["make"], loaded), say)
            if made and "result" in entry:
                self.question("run", lambda: self.run(made, entry["result"]), say)

    def question(self, name, action, say):
        """Reports that a question is open, acts, and reports the answer."""
        say(name, "crash", "")
        try:
            value = action()
        except NotImplementedError as error:
            say(name, "not asked", str(error))
        except Partial as error:
            say(name, "partial", str(error))
        except BaseException as error:  # pylint: disable=broad-except
            say(name, "error", one_line(error))
        else:
            say(name, "good", "")
            return value
        return None

    def load(self, entry):
        """Loads a file by the function that is usual for its kind."""
        path, how = entry["path"], entry["ask"]
        library = os.path.join(os.path.dirname(path), entry.get("library", ""))
        if how == "module":
            return self.module(self.linked(path))
        if how == "relax-code":
            return self.get("relax.ExecutableLoadFromFile")(path)
        if how == "params":
            return self.params(path)
        if how == "json":
            load = self.get("node.LoadJSON", True) or self.get("ffi.FromJSONGraphString")
            return (self.tvm.ir.load_json if self.tvm else load)(pathlib.Path(path).read_text())
        if how == "cache":
            return self.cache(os.path.dirname(path), entry["params"])
        if how == "graph":
            return self.part("tvm.contrib.graph_executor").create(pathlib.Path(path).read_text(), self.module(library), self.tvm.cpu())
        if how == "relay-vm":
            code = bytearray(pathlib.Path(path).read_bytes())
            return self.part("tvm.runtime.vm").Executable.load_exec(code, self.module(library))
        if how == "package":
            return self.part("tvm.driver.tvmc.model").TVMCPackage(path)
        raise NotImplementedError("no function loads it")

    def part(self, name):
        """Imports a part of the TVM package, which not all releases have."""
        try:
            return importlib.import_module(name)
        except ImportError:
            raise NotImplementedError("this release has no " + name)

    def make(self, what, module):
        """Creates the machine or the executor that runs a model."""
        if what == "vm" and self.tvm is None:
            machine = module["vm_load_executable"]()
            machine["vm_initialization"](1, 0, 2)
            return machine
        if what == "vm":
            return self.part("tvm.relax").VirtualMachine(module, self.tvm.cpu())
        if what == "relay-vm":
            return self.part("tvm.runtime.vm").VirtualMachine(module, self.tvm.cpu())
        if what == "graph":
            return self.part("tvm.contrib.graph_executor").GraphModule(module["default"](self.tvm.cpu()))
        return self.part("tvm.runtime.executor").AotModule(module["default"](self.tvm.cpu()))

    def linked(self, path):
        """Links as `explain` advises, and returns the library. `load_module` of Python links objects and tars itself."""
        if not path.endswith((".c", ".a", ".o", ".tar")):
            return path
        folder = tempfile.mkdtemp(dir=".")
        if self.tvm and path.endswith((".o", ".tar")):
            return shutil.copy(path, folder)
        if path.endswith(".tar"):
            subprocess.run(["tar", "-C", folder, "-xf", path], check=True)
            inputs = [folder + "/" + name for name in os.listdir(folder)]
        else:
            inputs = ["-Wl,--whole-archive", path, "-Wl,--no-whole-archive"] if path.endswith(".a") else [path]
        library = os.path.abspath(folder + "/lib.so")
        done = subprocess.run(["g++", "-shared", "-fPIC", "-w", "-o", library] + inputs, stderr=subprocess.PIPE, universal_newlines=True)
        if done.returncode:
            raise RuntimeError("link: " + done.stderr)
        return library

    def module(self, path):
        """Loads a module."""
        return self.tvm.runtime.load_module(path) if self.tvm else self.ffi.load_module(path)

    def imports(self, module):
        """Returns the modules directly below a module."""
        return list(module.imports if hasattr(module, "imports") else module.imported_modules)

    def kinds(self, module):
        """Returns the kinds of a module and of all below it, by their newest names."""
        kind = module.kind if hasattr(module, "kind") else module.type_key
        return [newest(kind)] + [kind for one in self.imports(module) for kind in self.kinds(one)]

    def find(self, module, name):
        """Returns a function of a module or of one below it, or `None`."""
        try:
            return module.get_function(name, True)
        except (AttributeError, RuntimeError):
            return None

    def content(self, entry, module):
        """Checks that the functions and modules of a file are there."""
        lost = [name for name in entry.get("functions", []) if self.find(module, name) is None]
        if lost:
            raise Partial("no function " + lost[0])
        kinds = self.kinds(module)
        lost = [kind for kind in entry.get("kinds", []) if newest(kind) not in kinds]
        if lost:
            raise Partial("no module of kind " + lost[0])

    def tensor(self, shape, dtype):
        """Creates a tensor; a type that this release does not have cannot be tested."""
        try:
            if self.tvm:
                return (getattr(self.tvm.runtime, "empty", None) or self.tvm.nd.empty)(shape, dtype)
            np = numpy()
            count, size = int(np.prod(shape)), np.dtype(dtype).itemsize
            # Compiled code asks for memory that is aligned to 64 bytes.
            buffer = np.zeros(count * size + 64, "uint8")
            first = -buffer.ctypes.data % 64
            return self.ffi.from_dlpack(buffer[first : first + count * size].view(dtype).reshape(shape))
        except Exception as error:  # pylint: disable=broad-except
            raise NotImplementedError("no tensor of " + dtype + ": " + one_line(error))

    def call(self, what, module):
        """Calls a function that copies a tensor, and checks the copy."""
        function = self.find(module, what["function"])
        if function is None:
            raise Partial("no function " + what["function"])
        a, b = self.tensor((what["length"],), what["dtype"]), self.tensor((what["length"],), what["dtype"])
        source = memory(a)[0]
        for at in range(len(source)):
            source[at] = at % 2
        function(a, b)
        if bytes(memory(b)[0]) != bytes(source):
            raise Partial("the result is wrong")

    def run(self, machine, expected):
        """Runs a model on ones, and checks its last result."""
        x = self.tensor((2, 4), "float32")
        ctypes.memmove(memory(x)[0], struct.pack("8f", *[1.0] * 8), 32)
        result = machine["main"](x)
        found = described(result if hasattr(result, "dtype") else result[1])
        if found != expected:
            raise Partial("the result is %s %s %s" % (found[0], found[1], found[2][:16]))

    def params(self, path):
        """Loads a parameter file."""
        data = bytearray(pathlib.Path(path).read_bytes())
        if self.tvm:
            return (getattr(self.tvm.runtime, "load_param_dict", None) or self.part("tvm.relay").load_param_dict)(data)
        return self.get("runtime.LoadParams")(bytes(data))

    def values(self, read, written):
        """Checks that each tensor of a parameter file equals the one that was written."""
        names = sorted(str(name) for name in read)
        if names != sorted(written):
            raise Partial("names %s" % names)
        for name in read:
            found = described(read[name])
            if found != written[str(name)]:
                raise Partial("%s is %s %s %s" % (name, found[0], found[1], found[2][:16]))

    def cache(self, folder, names):
        """Loads a parameter cache, and checks that each tensor exists."""
        prefix = "vm.builtin.tensor_cache." if self.release >= [0, 22] else "vm.builtin.ndarray_cache."
        load = self.get(prefix + "load", True)
        if load is None:
            raise NotImplementedError("this release has no parameter caches")
        load(folder, 1, 0)
        lost = [name for name in names if self.get(prefix + "get")(name) is None]
        if lost:
            raise Partial("no tensor " + lost[0])
        return True
