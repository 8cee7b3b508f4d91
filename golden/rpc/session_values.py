"""Sessions about transferred values, handles and tensors."""

from session_steps import (
    ALIKE, CPU, ERAS, FOUND, NONE, RAISED, VOID, alloc, b64, block, call, case, copied, floats, free, look, minor, of, read, result,
    system, tag, text, values, write,
)


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
