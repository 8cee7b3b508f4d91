"""Adds the cases of `rpc.session`: sessions that a client plays against a server.

    python3 golden/rpc/sessions.py

What a server answers is derived here, from the rules: the numbers of types (RPC-43), the forms of results (RPC-88), and what is an
exception. Packets that are none are put together here, byte by byte.
"""

import base64
import json
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "conformance"))

import cases as conformance

# The releases that write as this one does, as far as a session shows.
ALIKE = {"0.7": "0.7..0.7", "0.8": "0.8..0.20", "0.21": "0.21..0.21", "0.27": "0.22.."}
ERAS = ("0.8", "0.27")
CPU = [1, 0]
RAISED = {"code": "Exception", "has": []}
VOID = {"code": "Return", "args": [None]}
made = []


def minor(release):
    return int(release.split(".")[1])


def b64(data):
    return base64.b64encode(data).decode()


def floats(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def tag(release, of):
    """RPC-43: the number of a type."""
    if minor(release) <= 20:
        return {"none": 4, "int": 0, "bool": 15, "float": 2, "handle": 3, "dtype": 5, "device": 6, "str": 11, "short": 11, "bytes": 12,
                "few": 12, "function": 10, "tensor": 13, "module": 9, "array": 8}[of]
    first = minor(release) == 21
    return {"none": 0, "int": 1, "bool": 2, "float": 3, "handle": 4, "dtype": 5, "device": 6, "str": 65, "short": 65 if first else 11,
            "bytes": 66, "few": 66 if first else 12, "function": 68, "tensor": 72 if first else 70, "module": 73,
            "array": 69 if first else 71}[of]


def result(release, of, value=None):
    """RPC-88: the type, and the value."""
    return {"code": "Return", "args": [{"int": tag(release, of)}, value]}


def values(*args):
    return {"code": "Return", "args": list(args)}


def text(text):
    return {"str": text}


def look(name):
    return {"code": "GetGlobalFunc", "args": [text(name)]}


FOUND = values({"handle": "some"})
NONE = values({"handle": 0})


def of(step, **more):
    return {"handle_of": step, **more}


def call(step, *args, **more):
    return {"code": "CallFunc", "function": of(step), "args": list(args), **more}


def system(code, *args):
    return {"code": code, "args": list(args)}


def free(release, handle, what="function"):
    code = [] if minor(release) >= 21 else [{"int": tag(release, what)}]
    return system("FreeHandle", {"handle": handle}, *code)


def alloc(nbytes, device=CPU, alignment=64):
    return system("DevAllocData", {"device": device}, {"int": nbytes}, {"int": alignment}, {"dtype": "float32"})


def block(data, shape, offset=0, device=CPU, dtype="float32"):
    return {"data": data, "device": device, "dtype": dtype, "shape": shape, "byte_offset": offset}


def read(data, shape, offset, nbytes, device=CPU):
    return {"code": "CopyFromRemote", "from": block(data, shape, offset, device), "bytes": nbytes}


def write(data, shape, offset, content, device=CPU):
    return {"code": "CopyToRemote", "to": block(data, shape, offset, device), "data": b64(content)}


def copied(content):
    return {"code": "CopyAck", "data": b64(content)}


def raised(*has):
    return {"code": "Exception", "has": list(has)}


def packet(code, body=b""):
    """RPC-10."""
    return (struct.pack("<Qi", 4 + len(body), code) + body).hex()


def case(name, release, rules, steps, why, how, releases=None, end="client", hello=True, greeted=None, **args):
    """`steps` is a list of requests and answers, in turn."""
    assert len(steps) % 2 == 0, name
    asked, answers = steps[::2], steps[1::2]
    key = args.get("server", {}).get("key", "")
    greeted = greeted if greeted is not None or hello is None else {"code": "success", "key": f"server:{key}"}
    if isinstance(hello, (str, dict)):
        args["hello"] = hello
    made.append({
        "id": f"rpc/session/{name}-{release}", "topic": topic, "rules": rules, "releases": releases or ALIKE[release], "op": "rpc.session",
        "input": {"value": asked}, "args": {"release": release, **args},
        "expect": {"accept": {"hello": greeted, "answers": answers, "end": end}}, "why": why, "origin": {"hand": how},
    })


def calls():
    for release in ERAS:
        case("call", release, ["RPC-24", "RPC-88"],
             [look("rpc.test.addone"), FOUND, call(0, {"int": 41}), result(release, "int", {"int": 42}),
              look("rpc.test.strcat"), FOUND, call(2, text("abc"), {"int": 11}), result(release, "short", text("abc:11")),
              call(0, {"int": -1}), result(release, "int", {"int": 0})],
             "what every client does first", "two functions that every server has for tests of connections")
        case("no-such-function", release, ["RPC-89"],
             [look("tvmspec.rpc.no such function"), NONE, look(""), NONE, system("GetGlobalFunc", {"str": {"base64": b64(b"\xff\xfe")}}), NONE],
             "a client finds out that a server lacks a function", "0 is no function; a name that is no UTF-8 is that of none")
        ffi = minor(release) >= 21
        long = "a text that is longer than eight bytes"
        steps = [look("tvmspec.rpc.echo"), FOUND]
        for argument, kind, back in [
            (None, "none", None),
            ({"int": -(2 ** 63)}, "int", {"int": -(2 ** 63)}),
            ({"float": -2.5}, "float", {"float": -2.5}),
            ({"device": [2, 3]}, "device", {"device": [2, 3]}),
            (text(long), "str", text(long)),
            (text("short"), "short", text("short")),
            (text(""), "short", text("")),
            ({"bytes": b64(b"\0" * 9)}, "bytes", {"bytes": b64(b"\0" * 9)}),
            ({"bytes": b64(b"\0\1")}, "few", {"bytes": b64(b"\0\1")}),
        ] + ([
            ({"bool": 1}, "bool", {"bool": 1}),
            ({"bool": 0}, "bool", {"bool": 0}),
            ({"str": long, "index": 65}, "str", text(long)),
            ({"bytes": b64(b"\0" * 9), "index": 66}, "bytes", {"bytes": b64(b"\0" * 9)}),
                    ({"dtype": "float16x4"}, "dtype", {"dtype": "float16x4"}),
        ] if ffi else []):
            steps += [call(0, argument), result(release, kind, back)]
        case("values", release, ["RPC-43", "RPC-88"], steps, "a value reaches a function, and comes back, as what it is",
             "one of each kind that a client may pass")
    release = "0.8"
    case("values-rare", release, ["RPC-43", "RPC-88"],
         [look("tvmspec.rpc.echo"), FOUND, call(0, {"dtype": "float16x4"}), result(release, "dtype", {"dtype": "float16x4"}),
          call(0, {"uint": 7}), result(release, "int", {"int": 7}), call(0, {"uint": 2 ** 64 - 1}), result(release, "int", {"int": -1})],
         "a value reaches a function as what it is", "kinds that functions of Python did not take; there is one integer, of 64 bits")
    release = "0.21"
    case("values", release, ["RPC-43", "RPC-88"],
         [look("tvmspec.rpc.echo"), FOUND, call(0, text("short")), result(release, "short", text("short")),
          call(0, {"bytes": b64(b"\0\1")}), result(release, "few", {"bytes": b64(b"\0\1")}),
          call(0, {"bool": 1}), result(release, "bool", {"bool": 1}), call(0, {"float": 0.5}), result(release, "float", {"float": 0.5})],
         "0.21 has no small strings", "short ones have the numbers of the others")
    for release, releases, of_true in [("0.8", "0.8..0.17", ("int", {"int": 1})), ("0.18", "0.18..0.20", ("bool", {"bool": 1})),
                                       ("0.27", "0.21..", ("bool", {"bool": 1}))]:
        case("true", release, ["RPC-88"], [look("tvmspec.rpc.true"), FOUND, call(0), result(release, *of_true)],
             "a client of before 0.18 rejects the code of a bool", "a bool that a function returns", releases=releases)
    for release in ERAS:
        case("text-with-nul", release, ["RPC-44", "RPC-88"], [look("tvmspec.rpc.text"), FOUND, call(0), result(release, "short", text("a"))],
             "a client reads a C string up to its end", "a string with a NUL inside is returned")
    case("argument-with-nul", "0.27", ["RPC-47", "RPC-88"],
         [look("tvmspec.rpc.echo"), FOUND, call(0, {"str": "a longer text\0b", "index": 65}), result("0.27", "str", text("a longer text"))],
         "a string object has a length", "a NUL inside of an argument, which only the result ends at")


def handles():
    for release in ERAS:
        double = values({"int": tag(release, "function")}, {"handle": "some"})
        case("function", release, ["RPC-48", "RPC-88"],
             [look("tvmspec.rpc.adder"), FOUND, call(0, {"int": 5}), double, call(1, {"int": 37}), result(release, "int", {"int": 42}),
              look("tvmspec.rpc.echo"), FOUND, call(3, {"function": of(1)}), double, call(4, {"int": 1}), result(release, "int", {"int": 6})],
             "a function that a function returned is called like any other", "a function that adds, there and back as an argument")
        living = lambda count: [call(1), result(release, "int", {"int": count})]
        case("freed", release, ["RPC-28", "RPC-85"],
             [look("tvmspec.rpc.adder"), FOUND, look("tvmspec.rpc.living"), FOUND, *living(0), call(0, {"int": 5}), double, *living(1),
              call(0, {"int": 6}), double, *living(2), free(release, of(3)), VOID, *living(1), call(5, {"int": 1}),
              result(release, "int", {"int": 7}), free(release, of(5)), VOID, *living(0)],
             "a handle is a reference: what it counts lives until it is freed", "two functions, freed one after the other")
        case("freed-null", release, ["RPC-85"],
             [look("rpc.test.addone"), FOUND, free(release, 0), VOID, call(0, {"int": 1}), result(release, "int", {"int": 2})],
             "a client frees what it never had", "0 is no object, and freeing it does nothing")
        case("freed-twice", release, ["RPC-85"],
             [look("tvmspec.rpc.adder"), FOUND, call(0, {"int": 5}), double, free(release, of(1)), VOID, free(release, of(1)), RAISED,
              call(0, {"int": 5}), double],
             "the count of an object goes below zero", "the second time it is a handle of nothing")
        case("freed-unknown", release, ["RPC-85"],
             [look("rpc.test.addone"), FOUND, free(release, of(0, plus=1)), RAISED, free(release, 2 ** 47), RAISED,
              call(0, {"int": 1}), result(release, "int", {"int": 2})],
             "a server that follows numbers of its client is one that it reads and writes", "numbers that the server did not hand out")
        case("called-after-free", release, ["RPC-85"],
             [look("tvmspec.rpc.adder"), FOUND, call(0, {"int": 5}), double, free(release, of(1)), VOID, call(1, {"int": 1}), RAISED,
              look("tvmspec.rpc.echo"), FOUND, call(4, {"function": of(1)}), RAISED],
             "memory that was freed is executed", "a function that was freed, called and passed")
        case("called-unknown", release, ["RPC-85"],
             [look("rpc.test.addone"), FOUND, {"code": "CallFunc", "function": 0, "args": []}, RAISED,
              {"code": "CallFunc", "function": of(0, plus=8), "args": []}, RAISED, call(0, {"int": 1}), result(release, "int", {"int": 2})],
             "a number of the client is executed", "0, and a number beside a handle")
        case("handle-of-another-kind", release, ["RPC-85"],
             [look("tvmspec.rpc.echo"), FOUND, call(0, {"module": of(0)}), RAISED, call(0, {"handle": of(0)}), RAISED,
              look("tvmspec.rpc.module"), FOUND, call(3), values({"int": tag(release, "module")}, {"handle": "some"}),
              call(4, {"int": 1}), RAISED, call(0, {"function": of(4)}), RAISED, call(0, {"handle": 1}), RAISED,
              call(0, {"module": of(4)}), values({"int": tag(release, "module")}, {"handle": "some"})],
             "an object is taken for one of another type", "a function as a module and as a pointer, a module as a function")
        module = values({"int": tag(release, "module")}, {"handle": "some"})
        get = "tvm.rpc.server.ModuleGetFunction"
        flag = {"bool": 1} if minor(release) >= 18 else {"int": 1}
        case("module", release, ["RPC-48", "RPC-88"],
             [look("tvmspec.rpc.module"), FOUND, call(0), module, look(get), FOUND, call(2, {"module": of(1)}, text("double"), flag), double,
              call(3, {"int": 21}), result(release, "int", {"int": 42}),
              call(2, {"module": of(1)}, text("none"), flag), result(release, "none", None),
              look("tvm.rpc.server.ImportModule"), FOUND, call(0), module, call(6, {"module": of(1)}, {"module": of(7)}), result(release, "none", None),
              free(release, of(1), "module"), VOID, call(3, {"int": 4}), result(release, "int", {"int": 8}),
              call(2, {"module": of(1)}, text("double"), flag), RAISED],
             "how a client calls what it has loaded", "a module of the server: a function of it, one that it lacks, an import")
        case("module-arguments", release, ["RPC-82"],
             [look(get), FOUND, call(0), RAISED, call(0, {"int": 1}, text("a"), flag), RAISED, look("tvm.rpc.server.ImportModule"), FOUND,
              call(3, None, None), RAISED, look("tvmspec.rpc.module"), FOUND, call(5), module, call(0, {"module": of(6)}, {"int": 3}, flag), RAISED,
              call(3, {"module": of(6)}), RAISED],
             "arguments of other types end a session", "nothing, numbers, one module of two")
    for release, releases in [("0.8", "0.8..0.15"), ("0.16", "0.16..0.20"), ("0.21", "0.21..0.21"), ("0.27", "0.22..")]:
        steps = [look("tvmspec.rpc.array"), FOUND]
        if releases == "0.8..0.15":
            steps += [call(0, {"int": 1}), RAISED]
        else:
            index = 8 if minor(release) <= 20 else 115
            array = values({"int": tag(release, "array")}, {"handle": "some"})
            argument = {"object": of(1), "index": index}
            steps += [call(0, {"int": 1}, {"int": 2}), array, look("tvmspec.rpc.length"), FOUND, call(2, argument), result(release, "int", {"int": 2}),
                      look("tvmspec.rpc.echo"), FOUND, call(4, argument), array, free(release, of(1), "array"), VOID,
                      call(2, {"object": of(5), "index": index}), result(release, "int", {"int": 2}),
                      call(2, {"object": of(4), "index": index}), RAISED]
            case("object-freed", release, ["RPC-85"],
                 [*steps[:8], free(release, of(1), "array"), VOID, call(2, argument), RAISED, call(2, {"object": of(2, plus=1), "index": index}), RAISED,
                  call(2, {"object": 0, "index": index}), RAISED],
                 "memory that was freed is taken for an object", "an object that was freed, a number beside a handle, and 0", releases=releases)
        case("object", release, ["RPC-88"], steps, "objects stay on the server, and their handles go",
             "an array of the server: no client before 0.16 knows what to do with one", releases=releases)


def tensors():
    for release in ("0.8", "0.21", "0.27"):
        counted = values({"int": tag(release, "tensor")}, {"tensor": block("some", [3])}, {"handle": "some"})
        data = {"data_of": 1}
        rest = [call(3, {"tensor": block(data, [3])}), result(release, "none", None),
                read(data, [3], 0, 12), copied(floats(0, 2, 4)),
                write(data, [3], 4, floats(7.5)), VOID, read(data, [3], 0, 12), copied(floats(0, 7.5, 4)),
                read(data, [3], 8, 4), copied(floats(4))]
        case("tensor", release, ["RPC-30", "RPC-88"],
             [look("tvmspec.rpc.counted"), FOUND, call(0, {"int": 3}), counted, read(data, [3], 0, 12), copied(floats(0, 1, 2)),
              look("tvmspec.rpc.double"), FOUND, *rest],
             "a tensor stays where it is, and a client reads and writes it there", "three elements: read, doubled by a function, written")
        by = data if minor(release) == 21 else of(1)
        releases = "0.21..0.23" if minor(release) == 21 else "0.24.." if release == "0.27" else ALIKE[release]
        if minor(release) == 21:
            continue
        case("tensor-freed", release, ["RPC-86", "RPC-88"],
             [look("tvmspec.rpc.counted"), FOUND, call(0, {"int": 3}), counted,
              free(release, of(1), "tensor"), VOID, call(0, {"int": 3}), counted, read({"data_of": 3}, [3], 0, 12), copied(floats(0, 1, 2))],
             "a client frees the tensors that it was handed", "by the handle of the object", releases=releases)
        case("tensor-freed-as-memory", release, ["RPC-86"],
             [look("tvmspec.rpc.counted"), FOUND, call(0, {"int": 3}), counted,
              system("DevFreeData", {"device": CPU}, {"handle": data}), RAISED, read(data, [3], 0, 12), copied(floats(0, 1, 2)), read(data, [3], 8, 5), RAISED,
              free(release, of(1), "tensor"), VOID, read(data, [3], 0, 12), RAISED, free(release, of(1), "tensor"), RAISED],
             "memory that was freed is read", "what the client did not allocate ends with its tensor", releases=releases)
    for release, releases in [("0.21", "0.21..0.21"), ("0.23", "0.22..0.23")]:
        counted = values({"int": tag(release, "tensor")}, {"tensor": block("some", [3])}, {"handle": "some"})
        case("tensor-freed-by-its-data", release, ["RPC-88"],
             [look("tvmspec.rpc.counted"), FOUND, call(0, {"int": 2}), {**counted, "args": [counted["args"][0], {"tensor": block("some", [2])}, counted["args"][2]]},
              call(0, {"int": 3}), counted, free(release, {"data_of": 2}), VOID, read({"data_of": 2}, [3], 0, 12), RAISED,
              read({"data_of": 1}, [2], 0, 8), copied(floats(0, 1)), free(release, of(2)), RAISED, free(release, of(1)), VOID],
             "clients of these releases free a tensor by the number of its memory", "the second of two tensors", releases=releases)
    for release in ERAS:
        see = lambda data, shape, offset=0, **more: call(2, {"tensor": block(data, shape, offset, **more)})
        shows = lambda shape, content: result(release, "str", text(f"float32 {shape} {content.hex()}"))
        case("tensor-argument", release, ["RPC-30", "RPC-87"],
             [alloc(16), FOUND, write(of(0), [4], 0, floats(1, 2, 3, 4)), VOID, look("tvmspec.rpc.fields"), FOUND,
              see(of(0), [2, 2]), shows("[2, 2]", floats(1, 2, 3, 4)), see(of(0), [2], 8), shows("[2]", floats(3, 4)),
              see(of(0), [], 4), shows("[]", floats(2)), see(of(0, plus=4), [1, 2]), shows("[1, 2]", floats(2, 3))],
             "a function computes with other memory", "shapes and offsets inside of an allocation")
        case("tensor-argument-beyond", release, ["RPC-30", "RPC-87"],
             [alloc(16), FOUND, write(of(0), [4], 0, floats(1, 2, 3, 4)), VOID, look("tvmspec.rpc.fields"), FOUND, see(of(0), [5]), RAISED, see(of(0), [4], 4), RAISED, see(of(0), [2 ** 62, 4]), RAISED, see(of(0), [-1]), RAISED,
              see(of(0), [4], 2 ** 64 - 8), RAISED, see(of(0, plus=17), [0]), RAISED, see(0x7fff00000000, [1]), RAISED,
              see(of(0), [2], device=[2, 0]), RAISED, see(of(0), [4], dtype="float64"), RAISED, see(of(0), [4]), shows("[4]", floats(1, 2, 3, 4))],
             "a function reads behind the end of what the client has", "shapes and offsets that lead beyond an allocation, and no memory of the client")
        case("tensor-of-nothing", release, ["RPC-86"],
             [look("tvmspec.rpc.fields"), FOUND, call(0, {"tensor": block(0, [0])}), result(release, "str", text("float32 [0] ")),
              read(0, [0], 0, 0), copied(b""), write(0, [0], 0, b""), VOID],
             "a tensor without elements has no memory", "data 0 with no element")
        case("tensor-of-null", release, ["RPC-86"],
             [look("tvmspec.rpc.fields"), FOUND, call(0, {"tensor": block(0, [1])}), RAISED, read(0, [1], 0, 4), RAISED, write(0, [1], 0, bytes(4)), RAISED],
             "a server reads and writes at null", "data 0 with an element")
        case("constant", release, ["RPC-87"],
             [look("tvmspec.rpc.constant"), FOUND, call(0), values({"int": tag(release, "tensor")}, {"tensor": block("some", [1])}, {"handle": "some"}),
              read({"data_of": 1}, [1], 0, 4), copied(floats(1.5)), write({"data_of": 1}, [1], 0, floats(2)), RAISED,
              alloc(4), FOUND, system("CopyAmongRemote", {"tensor": block(of(4), [1])}, {"tensor": block({"data_of": 1}, [1])}, {"handle": 0}), RAISED,
              read({"data_of": 1}, [1], 0, 4), copied(floats(1.5))],
             "the weights of a model change for every client", "a tensor that nothing may write to")


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
             [system("DevSetDevice", {"device": CPU}), VOID, look("rpc.test.addone"), FOUND], "clients set the device that they use", "the CPU")
        case("set-device-unknown", release, ["RPC-28", "RPC-86"],
             [system("DevSetDevice", {"device": [99, 0]}), RAISED,
              system("DevSetDevice", {"device": [-1, 0]}), RAISED, system("DevSetDevice", {"device": [129, 0]}), RAISED, system("DevSetDevice", {"device": CPU}), VOID],
             "a number of the client is a place in a table", "devices that are none of the server's")
        on = lambda code, handle, device=CPU: system(code, {"device": device}, {"handle": handle})
        case("streams", release, ["RPC-28", "RPC-85"],
             [system("DevCreateStream", {"device": CPU}), NONE, on("DevSetStream", 0), VOID, on("DevStreamSync", 0), VOID, on("DevFreeStream", 0), VOID],
             "every copy of a client is followed by a wait", "a CPU has no streams, and 0 is that")
        case("streams-unknown", release, ["RPC-28", "RPC-85"],
             [look("rpc.test.addone"), FOUND, on("DevSetStream", 64), RAISED, on("DevStreamSync", 64), RAISED, on("DevFreeStream", 64), RAISED,
              on("DevStreamSync", of(0)), RAISED, on("DevSetStream", of(0)), RAISED, on("DevFreeStream", of(0)), RAISED,
              on("DevStreamSync", 0, [99, 0]), RAISED, on("DevSetStream", 0, [99, 0]), RAISED, on("DevSetStream", 0, [-1, 0]), RAISED,
              system("DevCreateStream", {"device": [99, 0]}), RAISED, call(0, {"int": 1}), result(release, "int", {"int": 2})],
             "a number of the client is followed as a stream", "numbers that are none, a function, and devices that are none")
    for release, releases in [("0.16", "0.16..0.20"), ("0.27", "0.21..")]:
        case("current-stream", release, ["RPC-20", "RPC-28"], [system("DevGetCurrentStream", {"device": CPU}), NONE],
             "clients since 0.16 ask for it", "a CPU has none", releases=releases)


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
        case("arguments-missing", release, ["RPC-28", "RPC-82"], steps + [look("rpc.test.addone"), FOUND],
             "an argument that is not there is read", "system calls with none of their arguments, or one of another type")
    for release in ERAS:
        init = lambda version, *args: {"code": "InitServer", "version": version, "args": list(args)}
        case("not-begun", release, ["RPC-81"],
             [look("rpc.test.addone"), RAISED, {"code": None}, None, init("0.8.0"), VOID, look("rpc.test.addone"), FOUND,
              call(3, {"int": 1}), result(release, "int", {"int": 2})],
             "a client that is too early is lost", "a system call, and then the first request", begins=False)
        case("not-begun-calls", release, ["RPC-81"],
             [{"code": "CallFunc", "function": 1, "args": []}, RAISED, read(1, [1], 0, 4), RAISED,
              write(1, [1], 0, bytes(4)), RAISED, init("0.8.0"), VOID, look("rpc.test.addone"), FOUND],
             "a request in front of the first one ends a server", "a call and two copies, and then the first request", begins=False)
        case("begun-twice", release, ["RPC-81"],
             [init("0.8.0"), VOID, look("rpc.test.addone"), FOUND, init("0.8.0"), RAISED, init("0.8.0", text("rpc.LocalSession")), RAISED,
              call(1, {"int": 1}), result(release, "int", {"int": 2})],
             "a second session takes the place of the first", "InitServer three times", begins=False)
        case("begun-by-name", release, ["RPC-80"],
             [init("0.8.0", text("tvmspec.rpc.no such function")), RAISED, look("rpc.test.addone"), RAISED, init("0.8.0", text("rpc.LocalSession")), VOID,
              look("rpc.test.addone"), FOUND],
             "the name of what makes a session is one of the server's own", "a name that is none, and then the one of every server", begins=False,
             texts=[])
        case("begun-by-another-type", release, ["RPC-80"], [init("0.8.0", {"int": 1}), RAISED, init("0.8.0"), VOID],
             "what makes a session is a name", "an integer in its place", begins=False)
        case("another-version", release, ["RPC-23", "RPC-82"],
             [{"hex": packet(2, struct.pack("<Q", 5) + b"0.8.1" + bytes(4))}, RAISED, init("0.8.0"), VOID, look("rpc.test.addone"), FOUND],
             "a client of another protocol gets an error that names it", "a version that no release has; the session may begin all the same", begins=False)
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


def hostile():
    u64 = lambda number: struct.pack("<Q", number).hex()
    for release in ERAS:
        ffi = minor(release) >= 21
        one = lambda code, body: struct.pack("<ii", 1, code).hex() + body
        sequence = lambda code, body: one(code, body)
        raw = {True: 8, False: 11}[ffi]
        text_of = lambda length, content: one(raw, u64(length) + content.hex())
        bad = {
            "length-1": u64(1) + "00", "length-3": u64(3) + "000000", "length-beyond": u64(2 ** 62), "length-wraps": u64(2 ** 64 - 1),
            "code-0": packet(0), "code-22": packet(22), "code-100": packet(100), "code-negative": packet(-1),
            "return": packet(4, bytes(4)), "exception": packet(5, bytes.fromhex(text_of(1, b"a"))), "copy-ack": packet(8),
            "left-over": packet(9, bytes.fromhex(text_of(1, b"a")) + b"\0"), "shutdown-left-over": packet(1, b"\0"),
            "text-beyond": packet(9, bytes.fromhex(text_of(9, b"a"))), "text-wraps": packet(9, bytes.fromhex(text_of(2 ** 64 - 1, bytes(64)))),
            "count-beyond": packet(3, bytes(8) + struct.pack("<i", 10 ** 6)), "count-negative": packet(3, bytes(8) + struct.pack("<i", -1)),
            "type-unknown": packet(3, bytes(8) + struct.pack("<ii", 1, 50)),
            "dimensions-negative": packet(3, bytes(8) + struct.pack("<iiQiiii", 1, 7, 0, 1, 0, -1, 0x00012002) + bytes(8)),
            "dimensions-beyond": packet(6, struct.pack("<Qiiii", 0, 1, 0, 2 ** 31 - 1, 0x00012002) + bytes(16)),
            "copy-beyond": packet(7, struct.pack("<QiiiiQQ", 0, 1, 0, 0, 0x00012002, 0, 9) + b"a"),
        }
        rules = {"length-1": "RPC-12", "length-3": "RPC-12", "length-beyond": "RPC-13", "length-wraps": "RPC-13", "code-0": "RPC-20", "code-22": "RPC-20", "code-100": "RPC-20",
                 "code-negative": "RPC-20", "return": "RPC-21", "exception": "RPC-21", "copy-ack": "RPC-21", "left-over": "RPC-14",
                 "shutdown-left-over": "RPC-14", "count-beyond": "RPC-40", "count-negative": "RPC-40", "type-unknown": "RPC-43", "dimensions-negative": "RPC-31"}
        for name, bytes_of in bad.items():
            case(f"hostile/{name}", release, [rules.get(name, "RPC-82")],
                 [look("rpc.test.addone"), FOUND, {"hex": bytes_of, "ends": True}, "end"], "one client ends the server for all",
                 "a packet that breaks one rule: the session ends, and the next client is served", end="server")
        case("hostile/cut", release, ["RPC-16"], [{"hex": packet(9, bytes.fromhex(text_of(1, b"a")))[:-2], "silent": True}, None, {"close": True, "ends": True}, "end"],
             "a client that is gone in the middle of a packet is waited for", "a packet without its last byte, and the end of the stream", end="server")
        case("hostile/cut-length", release, ["RPC-16"], [{"hex": "0400", "silent": True}, None, {"close": True}, "end"],
             "a client that is gone is waited for", "two bytes of a length, and the end of the stream", end="server")
        case("hostile/last-words", release, ["RPC-82"], [{"hex": packet(4, bytes(4))}, raised("RPC-21"), {"wait": True}, "end"],
             "a client learns why its session ended", "what only a server writes: the rule is in the last packet", end="server", texts=["RPC-21"],
             server={"allow": []})
        case("in-pieces", release, ["RPC-16"],
             [{"hex": packet(9, bytes.fromhex(text_of(15, b"rpc.test.addone")))[:10], "silent": True}, None,
              {"hex": packet(9, bytes.fromhex(text_of(15, b"rpc.test.addone")))[10:40], "silent": True}, None,
              {"hex": packet(9, bytes.fromhex(text_of(15, b"rpc.test.addone")))[40:]}, FOUND,
              {"hex": "0000000000000000" * 3, "silent": True}, None, {"code": None}, None, look("rpc.test.addone"), FOUND],
             "networks cut packets where they like", "a packet in three parts, and packets of nothing, which nothing answers")
    release = "0.27"
    hello = lambda magic, length, key: {"hex": (struct.pack("<ii", magic, length) + key).hex()}
    for name, greeting, rules in [
        ("magic", hello(0xff272, 7, b"client:"), ["RPC-01"]), ("length-negative", hello(0xff271, -1, b""), ["RPC-02"]),
        ("length-beyond", hello(0xff271, 2 ** 31 - 1, b"client:"), ["RPC-03"]), ("not-utf8", hello(0xff271, 8, b"client:\xff"), ["RPC-02"]),
        ("timeout", hello(0xff271, 20, b"client: -timeout=abc"), ["RPC-05"]),
    ]:
        made.append({
            "id": f"rpc/session/hostile/hello-{name}", "topic": topic, "rules": rules, "releases": "0.7..", "op": "rpc.session",
            "input": {"value": []}, "args": {"release": release, "hello": greeting},
            "expect": {"accept": {"hello": None, "answers": [], "end": "server"}}, "why": "one client ends the server for all",
            "origin": {"hand": "a hello that breaks one rule: it is not answered"}})


def keys():
    release = "0.27"
    add = lambda at: [look("rpc.test.addone"), FOUND, call(at, {"int": 1}), result(release, "int", {"int": 2})]
    mismatch = {"code": "mismatch"}
    for name, key in [("another", "client:tvmspec.rpc.other"), ("server", "server:"), ("longer", "client:a:b"), ("without-client", "a")]:
        made.append({
            "id": f"rpc/session/key-{name}", "topic": topic, "rules": ["RPC-04", "RPC-80"], "releases": "0.7..", "op": "rpc.session",
            "input": {"value": []}, "args": {"release": release, "hello": key, "server": {"key": "a"}},
            "expect": {"accept": {"hello": mismatch, "answers": [], "end": "server"}}, "why": "a client gets a server that is not meant for it",
            "origin": {"hand": "keys that are not client:a"}})
    case("key-options", release, ["RPC-05", "RPC-80"], add(0), "a key may have options behind it", "an option that no release has, and a time",
         releases="0.22..", hello="client:a -other=1\t-timeout=60", server={"key": "a"})
    for name, args in [("client", {"hello": "client: -timeout=0.3"}), ("server", {"server": {"seconds": 0.3}}),
                       ("shorter", {"hello": "client: -timeout=0.3", "server": {"seconds": 60}}),
                       ("longer", {"hello": "client: -timeout=60", "server": {"seconds": 0.3}})]:
        case(f"timeout-{name}", release, ["RPC-05", "RPC-83"] if name != "server" else ["RPC-83"], [{"wait": True}, raised("RPCSessionTimeoutError: "), {"wait": True}, "end"],
             "a client that keeps a board keeps it from all others", "the shorter of both times is over, and the client does nothing", releases="0.13..",
             end="server", texts=["RPCSessionTimeoutError: "], **args)


def eras():
    # RPC-84: what shows no encoding is answered with what both read.
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
             "an older client fails by itself", "an object, whichever release the client is of", releases=releases, server={"finds_out": True})


for part in (calls, handles, tensors, memory, devices, errors, allowed, files, evaluators, hostile, keys, eras):
    topic = f"session_{part.__name__}"
    part()
conformance.add("rpc", made)
