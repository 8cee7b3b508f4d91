"""Adds the cases of `rpc.session`: sessions that a client plays against a server.

    python3 golden/rpc/sessions.py

The answers of a server are derived here from the rules: the numbers of types (RPC-43), the forms of results (RPC-88), and which answer is an
exception. Invalid packets are assembled here, byte by byte.
"""

import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "conformance"))

import cases as conformance
from session_ends import hostile, keys
from session_steps import (
    CPU, ERAS, FOUND, NONE, RAISED, VOID, alloc, b64, begin, block, call, case, copied, floats, look, made, minor, of, packet, raised, read,
    result, system, tag, text, values, write,
)
from session_values import calls, handles, tensors

# The query whether a CPU exists, and the answer: the bytes after it show no encoding (RPC-84).
EXISTS = [system("DevGetAttr", {"device": CPU}, {"int": 0}), values({"int": 1})]
FIRST = "whether there is a CPU comes first, since a device alone shows no encoding (RPC-84)"


def memory():
    for release in ERAS:
        case("copies", release, ["RPC-25", "RPC-27", "RPC-86"],
             [alloc(16), FOUND, write(of(0), [4], 0, floats(1, 2, 3, 4)), VOID, read(of(0), [4], 4, 8), copied(floats(2, 3)), write(of(0), [4], 8, floats(9)), VOID, read(of(0, plus=4), [4], 0, 12), copied(floats(2, 9, 4)),
              read(of(0), [4], 16, 0), copied(b""), alloc(0), FOUND],
             "how every tensor gets there and back", "sixteen bytes, written and read in parts")
        case("memory-of-zeros", release, ["RPC-86"], [alloc(16), FOUND, read(of(0), [4], 0, 16), copied(bytes(16))],
             "a client reads what another one left", "memory that nothing was written to")
        case("copies-beyond", release, ["RPC-87"],
             [alloc(16), FOUND, alloc(16), FOUND, read(of(0), [4], 0, 17), RAISED, read(of(0), [4], 1, 16), RAISED, read(of(0), [4], 17, 0), RAISED,
              read(of(0), [4], 2 ** 64 - 1, 16), RAISED, read(of(0), [4], 0, 2 ** 64 - 1), RAISED, read(of(0, plus=8), [4], 0, 16), RAISED,
              write(of(0), [4], 12, bytes(5)), RAISED, write(of(0), [4], 0, bytes(17)), RAISED, read(of(0), [4], 0, 16), copied(bytes(16))],
             "a client reads the memory of the server's process", "a byte too many, too late, and ends that wrap around")
        case("copies-elsewhere", release, ["RPC-86"],
             [alloc(16), FOUND, read(0x7fff00000000, [4], 0, 16), RAISED, read(0, [4], 0, 16), RAISED, read(of(0), [4], 0, 16, device=[2, 0]), RAISED,
              write(of(0), [4], 0, bytes(16), device=[1, 1]), RAISED, read(of(0), [4], 0, 16, device=[129, 0]), RAISED,
              read(of(0), [4], 0, 16), copied(bytes(16))],
             "a client names memory that is not its own", "numbers of no allocation, and devices of another one")
        among = lambda a, b, shape, x=0, y=0, device=CPU: system(
            "CopyAmongRemote", {"tensor": block(a, shape, x)}, {"tensor": block(b, shape, y, device)}, {"handle": 0})
        case("copies-among", release, ["RPC-28", "RPC-87"],
             [alloc(16), FOUND, alloc(16), FOUND, write(of(0), [4], 0, floats(1, 2, 3, 4)), VOID, write(of(1), [4], 0, floats(9, 9, 9, 9)), VOID,
              among(of(0), of(1), [2], 8, 4), VOID,
              read(of(1), [4], 0, 16), copied(floats(9, 3, 4, 9))],
             "a tensor is copied on the server", "two allocations, and places in them")
        case("copies-among-beyond", release, ["RPC-28", "RPC-87"],
             [alloc(16), FOUND, alloc(16), FOUND, write(of(1), [4], 0, floats(1, 2, 3, 4)), VOID, among(of(0), of(1), [5]), RAISED, among(of(0), of(1), [2], 12), RAISED,
              among(of(0), of(1), [2], 0, 12), RAISED, among(of(0), of(1), [1], device=[2, 0]), RAISED, among(of(0), 64, [1]), RAISED,
              read(of(1), [4], 0, 16), copied(floats(1, 2, 3, 4))],
             "a copy inside of the server runs over the end of either side", "two allocations, and places that lead beyond them")
        drop = lambda data, device=CPU: system("DevFreeData", {"device": device}, {"handle": data})
        case("memory-freed", release, ["RPC-86"],
             [alloc(16), FOUND, alloc(8), FOUND, drop(of(0)), VOID, drop(0), VOID, write(of(1), [2], 0, floats(1, 2)), VOID,
              read(of(1), [2], 0, 8), copied(floats(1, 2)), drop(of(1)), VOID], "what a client allocated it frees", "two allocations, and null")
        case("memory-freed-twice", release, ["RPC-86"],
             [alloc(16), FOUND, alloc(8), FOUND, drop(of(0, plus=4)), RAISED, drop(of(0), [1, 1]), RAISED, drop(of(0)), VOID, drop(of(0)), RAISED,
              read(of(0), [4], 0, 16), RAISED, drop(0x7fff00000000), RAISED, read(of(1), [2], 0, 8), copied(bytes(8)), drop(of(1)), VOID],
             "memory is freed twice, or memory of the server is", "what was allocated, a place inside of it, another device, and a number")
        case("memory-sizes", release, ["RPC-86"],
             [alloc(-1), RAISED, alloc(2 ** 62), RAISED, alloc(-(2 ** 63)), RAISED, alloc(16, alignment=-64), RAISED, alloc(16), FOUND],
             "a size that no machine has ends the server", "below zero, beyond memory, an alignment that is none")
        case("memory-of-no-device", release, ["RPC-86"],
             [alloc(16, device=[99, 0]), RAISED, alloc(16, device=[129, 0]), RAISED,
              alloc(16, device=[-1, 0]), RAISED, alloc(16, device=[0, 0]), RAISED, alloc(16), FOUND],
             "a number of the client is a place in a table", "devices that are none of the server's")
        case("memory-limit", release, ["RPC-86"],
             [alloc(60), FOUND, alloc(41), RAISED, alloc(40), FOUND, alloc(1), RAISED, drop(of(0)), VOID, alloc(60), FOUND, alloc(1), RAISED],
             "one client takes the memory of all", "100 bytes: what is freed is there again", server={"memory": 100})
        scope = lambda shape, scope, device=CPU: system("DevAllocDataWithScope", {"tensor": block(0, shape, 0, device)}, scope)
        case("memory-of-a-scope", release, ["RPC-28", "RPC-86"],
             [scope([4], None), FOUND, write(of(0), [4], 0, floats(1, 2, 3, 4)), VOID, read(of(0), [4], 0, 16), copied(floats(1, 2, 3, 4)), drop(of(0)), VOID],
             "how clients since 0.8 allocate", "by shape, without a scope")
        case("memory-of-no-scope", release, ["RPC-28", "RPC-86"],
             [scope([4], None), FOUND, read(of(0), [4], 0, 17), RAISED, scope([2, 2], text("")), FOUND, drop(of(0)), VOID, scope([2 ** 62, 2 ** 62], None), RAISED, scope([-4], None), RAISED,
              scope([4], None, [99, 0]), RAISED, scope([4], text("global.texture")), RAISED],
             "a size that no machine has ends the server", "shapes without a size, no device, and a scope that a CPU lacks")
    release = "0.7"
    flat = lambda data, offset: {"handle": data, "offset": offset, "device": CPU, "dtype": "float32"}
    cpu = {"device": CPU}
    among = lambda a, x, b, y, n: system("CopyAmongRemote", {"handle": a}, {"int": x}, {"handle": b}, {"int": y}, {"int": n}, cpu, cpu,
                                         {"dtype": "float32"}, {"handle": 0})
    case("copies", release, ["RPC-25", "RPC-87"],
         [alloc(16), FOUND, alloc(16), FOUND, {"code": "CopyToRemote", "to": flat(of(0), 0), "data": b64(floats(1, 2, 3, 4))}, VOID,
          among(of(0), 8, of(1), 4, 8), VOID, {"code": "CopyFromRemote", "from": flat(of(1), 4), "bytes": 12}, copied(floats(3, 4, 0)),
          among(of(0), 8, of(1), 4, 9), RAISED, among(of(0), -1, of(1), 0, 1), RAISED, among(of(0), 0, of(1), 12, 5), RAISED,
          {"code": "CopyFromRemote", "from": flat(of(1), 4), "bytes": 13}, RAISED],
         "0.7 names places in memory, and no tensors", "two allocations")


def devices():
    for release in ERAS:
        kind = lambda device, number: system("DevGetAttr", {"device": device}, {"int": number})
        case("devices", release, ["RPC-28", "RPC-86"],
             [kind(CPU, 0), values({"int": 1}), kind([12, 0], 0), values({"int": 0}), kind(CPU, 5), values(None), kind(CPU, 99), values(None)],
             "a client finds out which devices there are", "the CPU, and one that no server has; what a CPU does not state is none")
        case("devices-unknown", release, ["RPC-28", "RPC-86"],
             [kind([99, 0], 0), values({"int": 0}), kind([129, 0], 0), values({"int": 0}),
              kind([-1, 0], 0), values({"int": 0}), kind([0, 0], 0), values({"int": 0}), kind([128, 0], 0), values({"int": 0}), kind([99, 0], 1), RAISED, kind([129, 0], 5), RAISED, kind([99, 0], 99), RAISED,
              kind(CPU, 0), values({"int": 1})],
             "a number of the client is a place in a table", "numbers of no device: they are not there, and state nothing")
        case("set-device", release, ["RPC-28", "RPC-86"],
             [*EXISTS, system("DevSetDevice", {"device": CPU}), VOID, look("rpc.test.addone"), FOUND], "clients set the device that they use",
             f"the CPU; {FIRST}")
        case("set-device-unknown", release, ["RPC-28", "RPC-86"],
             [*EXISTS, system("DevSetDevice", {"device": [99, 0]}), RAISED,
              system("DevSetDevice", {"device": [-1, 0]}), RAISED, system("DevSetDevice", {"device": [129, 0]}), RAISED, system("DevSetDevice", {"device": CPU}), VOID],
             "a number of the client is a place in a table", f"devices that are none of the server's; {FIRST}")
        on = lambda code, handle, device=CPU: system(code, {"device": device}, {"handle": handle})
        case("streams", release, ["RPC-28", "RPC-85"],
             [*EXISTS, system("DevCreateStream", {"device": CPU}), NONE, on("DevSetStream", 0), VOID, on("DevStreamSync", 0), VOID, on("DevFreeStream", 0), VOID],
             "every copy of a client is followed by a wait", f"a CPU has no streams, and 0 is that; {FIRST}")
        case("streams-unknown", release, ["RPC-28", "RPC-85"],
             [look("rpc.test.addone"), FOUND, on("DevSetStream", 64), RAISED, on("DevStreamSync", 64), RAISED, on("DevFreeStream", 64), RAISED,
              on("DevStreamSync", of(0)), RAISED, on("DevSetStream", of(0)), RAISED, on("DevFreeStream", of(0)), RAISED,
              on("DevStreamSync", 0, [99, 0]), RAISED, on("DevSetStream", 0, [99, 0]), RAISED, on("DevSetStream", 0, [-1, 0]), RAISED,
              system("DevCreateStream", {"device": [99, 0]}), RAISED, call(0, {"int": 1}), result(release, "int", {"int": 2})],
             "a number of the client is followed as a stream", "numbers that are none, a function, and devices that are none")
    for release, releases in [("0.16", "0.16..0.20"), ("0.27", "0.21..")]:
        case("current-stream", release, ["RPC-20", "RPC-28"], [*EXISTS, system("DevGetCurrentStream", {"device": CPU}), NONE],
             "clients since 0.16 ask for it", f"a CPU has none; {FIRST}", releases=releases)


def errors():
    for release in ERAS:
        case("exception", release, ["RPC-26", "RPC-82"],
             [look("rpc.test.except"), FOUND, call(0, text("a reason")), raised("a reason"), look("rpc.test.addone"), FOUND,
              call(2, {"int": 1}), result(release, "int", {"int": 2})],
             "a client learns what was wrong", "a function that raises its argument; the session goes on", texts=["a reason"])
        case("exception-kind", release, ["RPC-82"],
             [look("tvmspec.rpc.raise"), FOUND, call(0, text("IndexError"), text("a place")), raised("IndexError", "a place"),
              call(0, text("ValueError"), text("a value")), raised("ValueError"), call(0, text("OwnError"), text("")), raised("OwnError")],
             "a client acts on the kind of an error", "two kinds of every release, and one of the function's own",
             texts=["IndexError", "ValueError", "OwnError", "a place"])
        case("exception-form", release, ["RPC-82"],
             [look("tvmspec.rpc.raise"), FOUND, call(0, text("IndexError"), text("a place")), raised("IndexError: a place")],
             "clients look for the kind in front of the message", "kind, colon, message", texts=["IndexError: a place"], server={"allow": ["tvmspec.rpc.*"]})
        broken = [(9, "00000000"), (10, "00000000"), (11, "00000000"), (12, "01000000"), (13, "00000000"), (14, "00000000")]
        void = "00000000" if minor(release) >= 21 else "04000000"
        steps = []
        for code, count in broken:
            body = bytes.fromhex(count) + (bytes.fromhex(void) if count[:2] == "01" else b"")
            steps += [{"hex": packet(code, body)}, RAISED]
        case("arguments-missing", release, ["RPC-28", "RPC-82"], EXISTS + steps + [look("rpc.test.addone"), FOUND],
             "an argument that is not there is read", "system calls with none of their arguments, or one of another type; whether there is a CPU comes first, since no arguments show no encoding (RPC-84)")
    for release in ERAS:
        init = lambda version, *args: {"code": "InitServer", "version": version, "args": list(args)}
        case("not-begun", release, ["RPC-81"],
             [look("rpc.test.addone"), RAISED, {"code": None}, None, init("0.8.0"), VOID, look("rpc.test.addone"), FOUND,
              call(3, {"int": 1}), result(release, "int", {"int": 2})],
             "a client that is too early is lost", "a system call, and then the first request", begins=False)
        case("not-begun-calls", release, ["RPC-81"],
             [{"code": "CallFunc", "function": 1, "args": [{"int": 1}]}, RAISED, read(1, [1], 0, 4), RAISED,
              write(1, [1], 0, bytes(4)), RAISED, init("0.8.0"), VOID, look("rpc.test.addone"), FOUND],
             "a request in front of the first one ends a server", "a call and two copies, and then the first request", begins=False)
        case("begun-twice", release, ["RPC-81"],
             [init("0.8.0", text("rpc.LocalSession")), VOID, look("rpc.test.addone"), FOUND, init("0.8.0"), RAISED,
              init("0.8.0", text("rpc.LocalSession")), RAISED,
              call(1, {"int": 1}), result(release, "int", {"int": 2})],
             "a second session takes the place of the first", "InitServer three times; by name at first, since without an argument it shows no encoding (RPC-84)", begins=False)
        case("begun-by-name", release, ["RPC-80"],
             [init("0.8.0", text("tvmspec.rpc.no such function")), RAISED, look("rpc.test.addone"), RAISED, init("0.8.0", text("rpc.LocalSession")), VOID,
              look("rpc.test.addone"), FOUND],
             "the name of what makes a session is one of the server's own", "a name that is none, and then the one of every server", begins=False,
             texts=[])
        case("begun-by-another-type", release, ["RPC-80"], [init("0.8.0", {"int": 1}), RAISED, init("0.8.0"), VOID],
             "what makes a session is a name", "an integer in its place", begins=False)
        case("another-version", release, ["RPC-23", "RPC-82"],
             [look("rpc.test.addone"), RAISED, {"hex": packet(2, struct.pack("<Q", 5) + b"0.8.1" + bytes(4))}, RAISED, init("0.8.0"), VOID, look("rpc.test.addone"), FOUND],
             "a client of another protocol gets an error that names it", "a version that no release has; the session may begin all the same; a name comes first, which shows the encoding (RPC-84) "
             "and is answered with an exception (RPC-81)", begins=False)
        case("begun-by-a-program", release, ["RPC-80"],
             [init("0.8.0", text("rpc.CreatePipeClient"), text("/bin/true")), raised("RPC-80"), init("0.8.0"), VOID],
             "a client starts programs on the server", "the function that connects to a program", begins=False, texts=["RPC-80"],
             server={"allow": []})


def allowed():
    for release in ERAS:
        evaluator = lambda name, first="": call(0, None, text(name), *({"int": n} for n in (1, 0, 1, 1, 0)), text(first))
        case("not-allowed", release, ["RPC-89"],
             [look("runtime.RPCTimeEvaluator"), FOUND, look("tvmspec.rpc.true"), raised("RPC-89"), look("tvmspec.rpc.echo"), FOUND, look("tvmspec.rpc.no such function"), NONE,
              call(2, {"int": 3}), result(release, "int", {"int": 3}), evaluator("tvmspec.rpc.true"), raised("RPC-89"),
              evaluator("tvmspec.rpc.echo", "tvmspec.rpc.true"), raised("RPC-89"), evaluator("tvmspec.rpc.no such function"), RAISED,
              evaluator("tvmspec.rpc.echo"), values({"int": tag(release, "function")}, {"handle": "some"})],
             "a client calls what starts processes or loads code", "a server that was started to allow one of them", texts=["RPC-89"],
             server={"allow": ["*.rpc.ech?", "none"]})
        case("not-loaded", release, ["RPC-90"],
             [look("tvm.rpc.server.upload"), FOUND, call(0, text("a.so"), {"bytes": b64(b"no library")}), result(release, "none", None),
              look("tvm.rpc.server.load_module"), FOUND, call(2, text("a.so")), raised("RPC-90"), call(2, text("a.tar")), raised("RPC-90"),
              call(2, {"int": 1}), RAISED],
             "every client that can connect executes code", "a server that was not started to load what clients upload", texts=["RPC-90"],
             server={"allow_load": False, "allow": []})
        case("loaded", release, ["RPC-90"],
             [look("tvm.rpc.server.upload"), FOUND, call(0, text("a.so"), {"bytes": b64(b"no library")}), result(release, "none", None),
              look("tvm.rpc.server.load_module"), FOUND, call(2, text("a.so")), RAISED, call(2, text("a.o")), raised("RPC-90"),
              call(2, text("a.tar")), raised("RPC-90"), call(2, text("b.so")), RAISED],
             "a compiler of the server runs for a client", "a server that loads: what is no library, what is not linked, what is not there",
             texts=["RPC-90"], server={"allow_load": True, "allow": []})
        case("largest-packet", release, ["RPC-13"],
             [look("tvm.rpc.server.GetCRTMaxPacketSize"), FOUND, call(0), result(release, "int", {"int": 100}), alloc(64), FOUND,
              write(of(2), [16], 0, bytes(48)), VOID, {"hex": packet(7, bytes(97)), "ends": True}, "end"],
             "a client cuts copies to what a server reads", "100 bytes: a packet of as many, and one of a byte more",
             server={"largest": 100}, end="server")


def files():
    for release in ERAS:
        file = lambda name: look(f"tvm.rpc.server.{name}")
        none = result(release, "none", None)
        content = b64(bytes(range(12)))
        case("files", release, ["RPC-92"],
             [file("upload"), FOUND, call(0, text("a.bin"), {"bytes": content}), none, file("download"), FOUND, call(2, text("a.bin")), result(release, "bytes", {"bytes": content}),
              file("remove"), FOUND, call(4, text("a.bin")), none, call(4, text("a.bin")), none, call(2, text("a.bin")), RAISED,
              call(0, text("a.bin"), {"bytes": ""}), none, call(2, text("a.bin")), result(release, "few", {"bytes": ""})],
             "how a library gets to a server", "a file: written, read, removed twice, written anew")
        case("files-linked", release, ["RPC-82"],
             [file("upload"), FOUND, call(0, text("a.so"), {"bytes": content}), none, file("download_linked_module"), FOUND,
              call(2, text("a.so")), result(release, "bytes", {"bytes": content}), call(2, text("a.bin")), RAISED, call(2, text("b.so")), RAISED],
             "how a client gets back what a server linked", "a file that is linked, one that cannot be, one that is not there")
        case("files-listed", release, ["RPC-92"],
             [file("upload"), FOUND, call(0, text("b.bin"), {"bytes": content}), none, call(0, text("a.bin"), {"bytes": content}), none,
              file("listdir"), FOUND, call(3, text("")), result(release, "str", text("a.bin,b.bin,"))],
             "servers of C++ list their files", "two files, each with a comma behind it", server={"allow": []})
        case("files-elsewhere", release, ["RPC-92"],
             [file("download"), FOUND, *(part for name in ("/etc/hostname", "../../../../../etc/hostname", "..", ".", "", "a/b") for part in (call(0, text(name)), RAISED))],
             "a client reads any file of the server's machine", "names that lead out of the directory of the session")
        steps = []
        for number, name in enumerate(("upload", "download", "remove", "workpath", "load_module")):
            steps += [file(name), FOUND]
            for path in ("/tmp/tvmspec.rpc", "../tvmspec.rpc", "a/", ".."):
                steps += [call(number * 5, text(path), {"bytes": content}), raised("RPC-92")]
        case("files-named", release, ["RPC-92"], steps, "a client writes and removes any file of the server's machine",
             "four names that are none of a file, in front of everything that takes one", texts=["RPC-92"], server={"allow_load": True})
        case("files-limit", release, ["RPC-92"],
             [file("upload"), FOUND, call(0, text("a"), {"bytes": content}), none, call(0, text("a"), {"bytes": content}), none,
              call(0, text("b"), {"bytes": b64(b"123")}), raised("RPC-92"), call(0, text("b"), {"bytes": b64(b"12")}), none, call(0, text("b"), {"bytes": b64(b"1")}), raised("RPC-92")],
             "one client fills the disk", "26 bytes in all, whether or not one file takes the place of another", texts=["RPC-92"], server={"uploads": 26})
        case("files-arguments", release, ["RPC-82"],
             [file("upload"), FOUND, call(0, text("a")), RAISED, call(0, text("a"), text("b")), RAISED, call(0), RAISED, call(0, {"int": 1}, {"bytes": content}), RAISED],
             "arguments of other types end a session", "no bytes, a text, nothing, a number for a name")


def evaluators():
    for release, releases, more in [("0.8", "0.8..0.8", 0), ("0.9", "0.9..0.9", 2), ("0.10", "0.10..0.13", 3), ("0.14", "0.14..0.20", 4), ("0.27", "0.22..", 4)]:
        function = values({"int": tag(release, "function")}, {"handle": "some"})
        extra = [{"int": n} for n in {0: (), 2: (0, 1), 3: (0, 0, 1), 4: (0, 0, 1, 0)}[more]]
        evaluate = lambda name, number, repeat, first="", module=None: call(0, module, text(name), {"int": 1}, {"int": 0}, {"int": number},
                                                                           {"int": repeat}, {"int": 0}, *extra, text(first))
        seconds = lambda repeat: result(release, "bytes" if repeat > 0 else "few", {"bytes": 8 * repeat})
        run = lambda step, *args: call(step, *args, lengths=True)
        case("time-evaluator", release, ["RPC-91"],
             [look("runtime.RPCTimeEvaluator"), FOUND, look("tvmspec.rpc.calls"), FOUND, evaluate("tvmspec.rpc.calls", 5, 3), function,
              call(1), result(release, "int", {"int": 1}), run(2), seconds(3), call(1), result(release, "int", {"int": 18}),
              evaluate("tvmspec.rpc.echo", 2, 2, "tvmspec.rpc.calls"), function, run(6, {"int": 1}), seconds(2), call(1), result(release, "int", {"int": 21})],
             "how long a kernel takes is measured where it runs", "five calls three times behind one to warm up, and a function called before each repetition",
             releases=releases)
        case("time-evaluator-module", release, ["RPC-91"],
             [look("runtime.RPCTimeEvaluator"), FOUND, look("tvmspec.rpc.module"), FOUND, call(1), values({"int": tag(release, "module")}, {"handle": "some"}),
              evaluate("double", 1, 2, module={"module": of(2)}), function, run(3, {"int": 4}), seconds(2), evaluate("none", 1, 1, module={"module": of(2)}), RAISED,
              evaluate("tvmspec.rpc.no such function", 1, 1), RAISED, run(3, text("no number")), RAISED],
             "the kernel is in a module", "a function of a module, one that it lacks, one that raises", releases=releases)
    release = "0.27"
    case("time-evaluator-arguments", release, ["RPC-91"],
         [look("runtime.RPCTimeEvaluator"), FOUND, call(0), RAISED, call(0, *[None] * 9), RAISED,
          call(0, None, text("tvmspec.rpc.echo"), *[text("1")] * 9, text("")), RAISED, call(0, {"int": 1}, text("tvmspec.rpc.echo"), *[{"int": 1}] * 9, text("")), RAISED,
          call(0, None, {"int": 1}, *[{"int": 1}] * 9, text("")), RAISED, call(0, None, text("tvmspec.rpc.echo"), *[{"int": 1}] * 9, None), RAISED],
         "arguments of other types end a session", "none, too few, and other types")


def eras():
    # RPC-84: a request that shows no encoding is answered in a form that both can read.
    for release, releases in [("0.7", "0.7..0.7"), ("0.8", "0.8..0.20"), ("0.27", "0.21..")]:
        # The version of 0.7 is its own.
        known = release == "0.7"
        version = "0.7.0" if known else "0.8.0"
        case("era-found-out", release, ["RPC-84"],
             [{"code": "InitServer", "version": version, "args": []}, VOID if known else values(),
              system("DevSetDevice", {"device": CPU}), VOID if known else values({"device": CPU}),
              look("rpc.test.addone"), FOUND, system("DevSetDevice", {"device": CPU}), VOID, call(2, {"int": 41}), result(release, "int", {"int": 42})],
             "one server for clients of every release", "a device is the same in every encoding, a name is not", releases=releases, begins=False,
             server={"finds_out": True})
    for release, releases, of_true in [("0.18", "0.18..0.20", ("int", {"int": 1})), ("0.27", "0.21..", ("bool", {"bool": 1}))]:
        case("era-of-a-bool", release, ["RPC-84"], [look("tvmspec.rpc.true"), FOUND, call(0), result(release, *of_true)],
             "bytes do not tell a client of 0.17 from one of 0.18", "an integer, which both read", releases=releases, server={"finds_out": True})
    for release, releases in [("0.8", "0.8..0.15"), ("0.27", "0.22..")]:
        case("era-of-an-object", release, ["RPC-84"], [look("tvmspec.rpc.array"), FOUND, call(0), values({"int": tag(release, "array")}, {"handle": "some"})],
             "an older client rejects the result itself", "an object, whichever release the client is of", releases=releases, server={"finds_out": True})


for part in (calls, handles, tensors, memory, devices, errors, allowed, files, evaluators, hostile, keys, eras):
    begin(part.__name__)
    part()
conformance.add("rpc", made)
