"""Adds the cases of `rpc.client`: a client with a server that answers by a script.

    python3 golden/rpc/clients.py

The output of the client is derived from the rules: requests (RPC-24, RPC-25, RPC-28), values (RPC-43), references that it releases.
"""

import base64
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "conformance"))

import cases as conformance

CPU = [1, 0]
VOID = {"code": "Return", "args": [None]}
END = {"code": "Shutdown"}
made = []


def minor(release):
    return int(release.split(".")[1])


def ffi(release):
    return minor(release) >= 21


def b64(data):
    return base64.b64encode(data).decode()


def floats(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def init(release):
    return {"code": "InitServer", "version": "0.7.0" if release == "0.7" else "0.8.0", "args": []}


def returned(*values):
    return {"code": "Return", "args": list(values)}


def raised(text):
    return {"code": "Exception", "args": [{"str": text}]}


def handle(number):
    return returned({"handle": number})


def look(name):
    return {"code": "GetGlobalFunc", "args": [{"str": name}]}


def call(function, *args):
    return {"code": "CallFunc", "function": function, "args": list(args)}


def system(code, *args):
    return {"code": code, "args": list(args)}


def free(release, number, what="function"):
    code = [] if ffi(release) else [{"int": {"function": 10, "module": 9, "tensor": 13, "object": 8}[what]}]
    return system("FreeHandle", {"handle": number}, *code)


def block(data, shape, offset=0, dtype="float32", device=CPU):
    return {"data": data, "device": device, "dtype": dtype, "shape": shape, "byte_offset": offset}


def case(name, release, rules, answers, actions, results, requests, why, how, releases, session=None, last=(END,), **args):
    """After `requests` follow those of the end: releases of references, and Shutdown."""
    stated = args.get("stated")
    if session is None:
        session = {"session": "server:scripted", "release": stated or ("0.27" if ffi(release) else "0.20")}
    made.append({
        "id": f"rpc/client/{name}-{release}", "topic": topic, "rules": rules, "releases": releases, "op": "rpc.client",
        "input": {"value": actions}, "args": {"release": release, **args, "answers": [VOID, *answers]},
        "expect": {"accept": {"hello": "client:" + args.get("key", "") + (f" -timeout={args['seconds']}" if "seconds" in args else ""),
                              "results": [session, *results], "requests": [init(stated or "0.27"), *requests, *last]}},
        "why": why, "origin": {"hand": how},
    })


ERAS = [("0.8", "0.8..0.20"), ("0.27", "0.22..")]


def begins():
    for release, releases in ERAS:
        case("connects", release, ["RPC-22", "RPC-100"], [], [], [], [], "what a client does first", "the server's first answer shows its encoding", releases)
        case("connects-stated", release, ["RPC-02", "RPC-05", "RPC-22"], [], [], [], [], "what a client does first",
             "a client that is started for the release, with a key and a time", releases, stated=release, key="a:b", seconds=2.5)
        other = "0.27" if release == "0.8" else "0.8"
        case("of-another-era", release, ["RPC-100"], [], [], [], [], "a client fails at the first value, and nothing says why",
             f"a client of {other}", releases, session={"breaks": "RPC-100", "kind": "unsupported"}, last=(), stated=other)
        for greeting in ("mismatch", "duplicate"):
            made.append({
                "id": f"rpc/client/{greeting}-{release}", "topic": topic, "rules": ["RPC-04"], "releases": releases, "op": "rpc.client",
                "input": {"value": []}, "args": {"release": release, "key": "a", "greeting": greeting, "answers": []},
                "expect": {"accept": {"hello": "client:a", "results": [{"raises": "ConnectionError"}], "requests": []}},
                "why": "a client is not served, and waits", "origin": {"hand": "the answer of a server of another key, and of a proxy"}})
    case("connects-stated", "0.7", ["RPC-22", "RPC-23"], [], [], [], [], "0.7 compares another version", "the version of 0.7", "0.7..0.7", stated="0.7")
    for release, releases in ERAS:
        made.append({
            "id": f"rpc/client/not-begun-{release}", "topic": topic, "rules": ["RPC-26"], "releases": releases, "op": "rpc.client",
            "input": {"value": []}, "args": {"release": release, "answers": [raised("ValueError: no session")]},
            "expect": {"accept": {"hello": "client:", "results": [{"raises": "ValueError", "message": "no session", "backtrace": ""}],
                                  "requests": [init("0.27")]}},
            "why": "a client learns why there is no session", "origin": {"hand": "an exception in answer to InitServer"}})


def values():
    for release, releases in ERAS:
        new = ffi(release)
        case("no-function", release, ["RPC-28"], [handle(0), VOID], [["function", "f"], ["function", "g"]], [None, None], [look("f"), look("g")],
             "a client finds out that a server lacks a function", "a handle of 0, and nothing", releases)
        args = [None, {"int": -3}, {"bool": True}, {"float": 2.5}, {"str": "a text"}, {"bytes": b64(b"\0\1")}, {"dtype": "float16x4"}, {"device": [2, 1]},
                {"remote_device": [4, 3]}]
        packed = [None, {"int": -3}, {"bool": 1} if new else {"int": 1}, {"float": 2.5}, {"str": "a text"}, {"bytes": b64(b"\0\1")}, {"dtype": "float16x4"},
                  {"device": [2, 1]}, {"device": [4, 3]}]
        case("arguments", release, ["RPC-43"], [handle(7), returned({"int": 0 if new else 4}, None)], [["function", "f"], ["call", 1, *args]],
             ["function", None], [look("f"), call(7, *packed)], "a value reaches a function as what it is", "one of each kind", releases,
             last=(free(release, 7), END))
        results = [((0, 4), None, None), ((1, 0), {"int": -3}, {"int": -3}), ((3, 2), {"float": 0.5}, {"float": 0.5}),
                   ((5, 5), {"dtype": "int8"}, {"dtype": "int8"}), ((6, 6), {"device": [2, 1]}, {"device": [2, 1]}),
                   ((65, 11), {"str": "a longer text"}, {"str": "a longer text"}), ((66, 12), {"bytes": b64(b"\0" * 9)}, {"bytes": b64(b"\0" * 9)})]
        results += [((2, 15), {"bool": 1}, {"bool": 1}), ((2, 15), {"int": 1}, {"bool": 1})] if new else []
        case("results", release, ["RPC-43", "RPC-101"], [handle(7), *(returned({"int": of[0] if new else of[1]}, value) for of, value, _ in results)],
             [["function", "f"], *(["call", 1] for _ in results)], ["function", *(shown for _, _, shown in results)], [look("f"), *(call(7) for _ in results)],
             "a result is what the function returned", "one of each kind", releases, last=(free(release, 7), END))
        held = [("function", 68, 10), ("module", 73, 9), ("object", 71, 8)]
        case("handles", release if new else "0.16", ["RPC-28", "RPC-101"],
             [handle(7), *(returned({"int": of if new else old}, {"handle": 100 + old}) for _, of, old in held), returned({"int": 4 if new else 3}, {"handle": 5}),
              returned({"int": 1 if new else 0}, {"int": 1}), returned({"int": 1 if new else 0}, {"int": 2})],
             [["function", "f"], *(["call", 1] for _ in held), ["call", 1], ["call", 2, {"of": 3}, {"of": 4}, {"of": 5}], ["forget", 3], ["call", 1]],
             ["function", *(name for name, _, _ in held), "object", {"int": 1}, None, {"int": 2}],
             [look("f"), *(call(7) for _ in range(4)),
              call(110, {"module": 109}, {"object": 108, "index": 115 if new else 8}, {"handle": 5}), free(release, 109, "module"), call(7)],
             "what stays on the server is counted there until the client drops it", "a function, a module and an object; an address counts for nothing",
             releases if new else "0.16..0.20",
             last=(free(release, 108, "object"), free(release, 110), free(release, 7), END))
        case("function-result", release, ["RPC-28", "RPC-101"], [handle(7), returned({"int": 68 if new else 10}, {"handle": 110}), returned({"int": 1 if new else 0}, {"int": 5})],
             [["function", "f"], ["call", 1], ["call", 2]], ["function", "function", {"int": 5}], [look("f"), call(7), call(110)],
             "a function that a function returned is called like any other", "a handle of a function, called", releases, last=(free(release, 110), free(release, 7), END))
        for number, answer in enumerate([[], [None], [{"int": 1}], [{"int": 1}, {"int": 1}, {"int": 1}], [{"float": 0.5}, None], [{"int": 2 ** 40}, None],
                                         [{"int": 70 if new else 13}, {"tensor": block(64, [-1])}, {"handle": 1}],
                                         [{"int": 70 if new else 13}, {"tensor": block(64, [1])}]]):
            name = ["nothing", "none", "type-alone", "two-values", "type-no-integer", "type-beyond", "shape-negative", "tensor-alone"][number]
            end = (free(release, 1, "tensor"), free(release, 7), END) if name == "shape-negative" else (free(release, 7), END)
            case(f"result-{name}", release, ["RPC-101"], [handle(7), returned(*answer)], [["function", "f"], ["call", 1]],
                 ["function", {"breaks": "RPC-101", "kind": "malformed"}], [look("f"), call(7)], "a result is taken for another one",
                 "a result of no form", releases, last=end)
        case("argument-of-no-form", release, ["RPC-43"], [handle(7)], [["function", "f"], ["call", 1, {"array": True}]], ["function", {"raises": "TypeError"}], [look("f")],
             "an object of the client is an address to the server", "an array of the client's process", releases, last=(free(release, 7), END))


def exceptions():
    hop = "RPCError: Error caught from RPC call:\n"
    frames = '  File "a.py", line 3, in f\n    raise\n'
    forms = [
        ("0.27", "0.23..", "message", "abc", ("RPCError", "abc", "")),
        ("0.27", "0.23..", "empty", "", ("RPCError", "", "")),
        ("0.27", "0.23..", "kind", "ValueError: no: 3", ("ValueError", "no: 3", "")),
        ("0.27", "0.22..", "no-kind", "a value: no", ("RPCError", "a value: no", "")),
        ("0.27", "0.22..", "no-name", "no Error: 3", ("RPCError", "no Error: 3", "")),
        ("0.27", "0.22..", "digit-first", "3Error: no", ("RPCError", "3Error: no", "")),
        ("0.27", "0.22..", "kind-of-a-module", "tvm.error.OpError: no", ("tvm.error.OpError", "no", "")),
        ("0.27", "0.22..", "two-hops", hop + hop + "zz", ("RPCError", "zz", "")),
        ("0.27", "0.22..", "hop-and-kind", hop + "KeyError: a\nb", ("KeyError", "a\nb", "")),
        ("0.21", "0.21..0.22", "traceback", "Traceback (most recent call last):\n" + frames + "ValueError: no: 3\n", ("ValueError", "no: 3", frames)),
        ("0.21", "0.21..0.22", "traceback-tabs", "Traceback (most recent call last):\n\tat f\nValueError: no\n\n", ("ValueError", "no", "\tat f\n")),
        ("0.21", "0.21..0.22", "traceback-alone", "Traceback (most recent call last):\n  at f\n", ("RPCError", "", "  at f\n")),
        ("0.8", "0.8..0.20", "stack-trace", "ValueError: abc\nStack trace:\n  File \"b.py\", line 1\n", ("ValueError", "abc", "  File \"b.py\", line 1\n")),
        ("0.8", "0.8..0.20", "place", "[10:11:12] /src/a.cc:12: Check failed: x\nStack trace:\n  0: f\n", ("RPCError", "Check failed: x", "  0: f\n")),
        ("0.8", "0.8..0.20", "place-and-kind", "[10:11:12] /src/a.cc:12: TypeError: x\ny\n", ("TypeError", "x\ny", "")),
        ("0.8", "0.8..0.20", "no-place", "[1, 2] is: no", ("RPCError", "[1, 2] is: no", "")),
        ("0.8", "0.8..0.20", "no-line", "[1] a:b: no", ("RPCError", "[1] a:b: no", "")),
        ("0.8", "0.8..0.20", "empty-line", "[1] a:: no", ("RPCError", "[1] a:: no", "")),
    ]
    for release, releases, name, text, (kind, message, trace) in forms:
        case(f"exception-{name}", release, ["RPC-26"], [handle(7), raised(text), returned({"int": 1 if ffi(release) else 0}, {"int": 5})],
             [["function", "f"], ["call", 1], ["call", 1]], ["function", {"raises": kind, "message": message, "backtrace": trace}, {"int": 5}],
             [look("f"), call(7), call(7)], "a caller acts on the kind of an error, and shows where it came from", "a text of its release; the session goes on",
             releases, last=(free(release, 7), END))
    for release, releases in [("0.18", "0.13..0.20"), ("0.27", "0.21..")]:
        expired = "Your 2.0s session has expired, try to increase the \"session_timeout\" value."
        raises = {"raises": "RPCSessionTimeoutError", "message": expired, "backtrace": ""}
        case("expired", release, ["RPC-26"], [handle(7), raised(f"RPCSessionTimeoutError: {expired}"), VOID], [["function", "f"], ["call", 1], ["call", 1]],
             ["function", raises, {"raises": "RPCSessionTimeoutError"}], [look("f"), call(7)], "the session of a client is over, and it goes on waiting",
             "the text of servers since 0.13; nothing is written behind it", releases, last=())


def connections():
    for release, releases in ERAS:
        case("ended", release, ["RPC-16"], [handle(7)], [["function", "f"], ["call", 1], ["call", 1]], ["function", {"raises": "ConnectionError"}, {"raises": "ConnectionError"}],
             [look("f"), call(7)], "a server that is gone is waited for", "the connection ends in front of an answer", releases, last=())
        case("shut-down", release, ["RPC-20"], [handle(7), END], [["function", "f"], ["call", 1], ["call", 1]],
             ["function", {"raises": "ConnectionError"}, {"raises": "ConnectionError"}], [look("f"), call(7)], "servers that fail write Shutdown",
             "Shutdown in the place of an answer", releases, last=())
        case("no-packet", release, ["RPC-20"], [handle(7), {"hex": "0400000000000000ff000000"}], [["function", "f"], ["call", 1], ["call", 1]],
             ["function", {"breaks": "RPC-20", "kind": "unknown-kind"}, {"raises": "ConnectionError"}], [look("f"), call(7)],
             "behind an answer that is none no other one is found", "a code that no release has", releases, last=())
        case("requests-only", release, ["RPC-21"], [handle(7), {"hex": "04000000000000000300000000000000"}], [["function", "f"], ["call", 1]],
             ["function", {"breaks": "RPC-21", "kind": "malformed"}], [look("f"), call(7)], "a server has no requests",
             "CallFunc in the place of an answer", releases, last=())
        body = struct.pack("<iiiqiq", 4, 2, 1, 1, 1, 5) if ffi(release) else struct.pack("<iiiiqq", 4, 2, 0, 0, 0, 5)
        case("nothing-in-front", release, ["RPC-11"], [handle(7), {"hex": ("00" * 16) + (struct.pack("<Q", len(body)) + body).hex()}], [["function", "f"], ["call", 1]],
             ["function", {"int": 5}], [look("f"), call(7)], "packets of nothing keep a connection open", "two of them in front of an answer", releases,
             last=(free(release, 7), END))
        case("closed", release, ["RPC-20"], [handle(7)], [["function", "f"], ["close"], ["call", 1]], ["function", None, {"raises": "ConnectionError"}],
             [look("f")], "a session that was closed is used", "a call behind the end, whose handle has no references any more", releases)
        case("two-values", release, ["RPC-88"], [returned({"handle": 7}, {"handle": 8})], [["function", "f"]], [{"raises": "RuntimeError"}], [look("f")],
             "an answer is taken for another one", "two values in answer to GetGlobalFunc", releases)
        case("no-handle", release, ["RPC-28"], [returned({"int": 7})], [["function", "f"]], [{"raises": "RuntimeError"}], [look("f")],
             "a number is followed as a handle", "an integer in answer to GetGlobalFunc", releases)
        case("copy-in-the-place-of-a-result", release, ["RPC-24"], [handle(7), {"code": "CopyAck", "data": ""}], [["function", "f"], ["call", 1]],
             ["function", {"raises": "RuntimeError"}], [look("f"), call(7)], "an answer is taken for another one", "CopyAck in answer to a call", releases,
             last=(free(release, 7), END))


def tensors():
    sync = system("DevStreamSync", {"device": CPU}, {"handle": 0})
    for release, releases in ERAS:
        new = ffi(release)
        none = returned({"int": 0 if new else 4}, None)
        size = [] if new else [look("tvm.rpc.server.GetCRTMaxPacketSize")]
        unknown = [] if new else [handle(0)]
        tensor = {"dtype": "float32", "shape": [3], "data": b64(floats(1, 2, 3))}
        whole = block(4096, [12], dtype="uint8")
        alloc = system("DevAllocData", {"device": CPU}, {"int": 12}, {"int": 64}, {"dtype": "float32"})
        drop = lambda data: system("DevFreeData", {"device": CPU}, {"handle": data})
        case("host-tensor", release, ["RPC-25", "RPC-28", "RPC-102"],
             [handle(7), handle(4096), *unknown, VOID, none, {"code": "CopyAck", "data": b64(floats(4, 5, 6))}],
             [["function", "f"], ["call", 1, {"tensor": tensor}]], ["function", {"result": None, "written": [b64(floats(4, 5, 6))]}],
             [look("f"), alloc, *size, {"code": "CopyToRemote", "to": whole, "data": b64(floats(1, 2, 3))}, call(7, {"tensor": block(4096, [3])}),
              {"code": "CopyFromRemote", "from": whole, "bytes": 12}, drop(4096)],
             "a function of a server computes with the tensors of its caller", "three elements, which go there and come back", releases, last=(free(release, 7), END))
        case("host-tensor-and-exception", release, ["RPC-26", "RPC-102"],
             [handle(7), handle(4096), *unknown, VOID, raised("ValueError: no")], [["function", "f"], ["call", 1, {"tensor": tensor}]],
             ["function", {"raises": "ValueError", "message": "no", "backtrace": ""}],
             [look("f"), alloc, *size, {"code": "CopyToRemote", "to": whole, "data": b64(floats(1, 2, 3))}, call(7, {"tensor": block(4096, [3])}), drop(4096)],
             "what a call took along stays on the server", "the memory of the copy is freed", releases, last=(free(release, 7), END))
        case("host-tensor-of-nothing", release, ["RPC-102"],
             [handle(7), handle(4096), none], [["function", "f"], ["call", 1, {"tensor": {"dtype": "int8", "shape": [0], "data": ""}}]],
             ["function", {"result": None, "written": [""]}],
             [look("f"), system("DevAllocData", {"device": CPU}, {"int": 0}, {"int": 64}, {"dtype": "int8"}), call(7, {"tensor": block(4096, [0], dtype="int8")}), drop(4096)],
             "a tensor may have no elements", "nothing is copied", releases, last=(free(release, 7), END))
        result = returned({"int": 70 if new else 13}, {"tensor": block(4096, [2, 2], 8)}, {"handle": 9})
        case("tensor-result", release, ["RPC-30", "RPC-101"],
             [handle(7), result, *unknown, {"code": "CopyAck", "data": b64(floats(1, 2, 3, 4))}, none],
             [["function", "f"], ["call", 1], ["fetch", 2], ["call", 1, {"of": 2}]],
             ["function", {"tensor": {"device": CPU, "dtype": "float32", "shape": [2, 2]}}, b64(floats(1, 2, 3, 4)), None],
             [look("f"), call(7), *size, {"code": "CopyFromRemote", "from": block(4096, [4], 8), "bytes": 16}, sync, call(7, {"tensor": block(4096, [2, 2], 8)})],
             "a tensor stays where it is", "one of four elements behind eight bytes: read, passed, released", releases,
             last=(free(release, 9, "tensor"), free(release, 7), END))
        scoped = system("DevAllocDataWithScope", {"tensor": block(0, [3])}, None)
        case("sent", release, ["RPC-25", "RPC-28"], [handle(4096), *unknown, VOID, {"code": "CopyAck", "data": b64(floats(1, 2, 3))}], [["send", tensor, CPU], ["fetch", 1]],
             [{"tensor": {"device": CPU, "dtype": "float32", "shape": [3]}}, b64(floats(1, 2, 3))],
             [scoped, *size, {"code": "CopyToRemote", "to": block(4096, [3]), "data": b64(floats(1, 2, 3))}, sync,
              {"code": "CopyFromRemote", "from": block(4096, [3]), "bytes": 12}, sync],
             "how every tensor gets there and back", "three elements", releases, last=(drop(4096), END))
        case("sent-and-few-bytes", release, ["RPC-27"], [handle(4096), *unknown, VOID, {"code": "CopyAck", "data": b64(bytes(11))}], [["send", tensor, CPU], ["fetch", 1]],
             [{"tensor": {"device": CPU, "dtype": "float32", "shape": [3]}}, {"raises": "RuntimeError"}],
             [scoped, *size, {"code": "CopyToRemote", "to": block(4096, [3]), "data": b64(floats(1, 2, 3))}, sync,
              {"code": "CopyFromRemote", "from": block(4096, [3]), "bytes": 12}],
             "memory that nothing was written to is read", "eleven bytes of twelve", releases, last=(drop(4096), END))
        among = system("CopyAmongRemote", {"tensor": block(4096, [3])}, {"tensor": block(8192, [3])}, {"handle": 0})
        case("copied-there", release, ["RPC-28"], [handle(4096), *unknown, VOID, handle(8192), VOID, VOID], [["send", tensor, CPU], ["send", tensor, CPU], ["copy", 1, 2]],
             [{"tensor": {"device": CPU, "dtype": "float32", "shape": [3]}}] * 2 + [None],
             [scoped, *size, {"code": "CopyToRemote", "to": block(4096, [3]), "data": b64(floats(1, 2, 3))}, sync, scoped,
              {"code": "CopyToRemote", "to": block(8192, [3]), "data": b64(floats(1, 2, 3))}, sync, among],
             "a copy inside of the server does not go through the client", "two tensors", releases, last=(drop(8192), drop(4096), END))
    release, releases = "0.8", "0.8..0.20"
    five = {"dtype": "float32", "shape": [5], "data": b64(floats(1, 2, 3, 4, 5))}
    part = lambda at, count: block(4096, [count], at)
    case("sent-in-parts", release, ["RPC-25"],
         [handle(4096), handle(8), returned({"int": 0}, {"int": 60}), VOID, VOID, VOID], [["send", five, CPU]],
         [{"tensor": {"device": CPU, "dtype": "float32", "shape": [5]}}],
         [system("DevAllocDataWithScope", {"tensor": block(0, [5])}, None), look("tvm.rpc.server.GetCRTMaxPacketSize"), call(8),
          {"code": "CopyToRemote", "to": part(0, 2), "data": b64(floats(1, 2))}, {"code": "CopyToRemote", "to": part(8, 2), "data": b64(floats(3, 4))},
          {"code": "CopyToRemote", "to": part(16, 1), "data": b64(floats(5))}, sync],
         "boards read short packets", "60 bytes, of which 52 are not content", releases, last=(system("DevFreeData", {"device": CPU}, {"handle": 4096}), END))
    case("fetched-in-parts", release, ["RPC-25", "RPC-27"],
         [handle(7), returned({"int": 13}, {"tensor": block(4096, [5])}, {"handle": 9}), handle(8), returned({"int": 0}, {"int": 60}),
          *({"code": "CopyAck", "data": b64(floats(*numbers))} for numbers in ((1, 2), (3, 4), (5,)))],
         [["function", "f"], ["call", 1], ["fetch", 2]], ["function", {"tensor": {"device": CPU, "dtype": "float32", "shape": [5]}}, b64(floats(1, 2, 3, 4, 5))],
         [look("f"), call(7), look("tvm.rpc.server.GetCRTMaxPacketSize"), call(8), {"code": "CopyFromRemote", "from": part(0, 2), "bytes": 8},
          {"code": "CopyFromRemote", "from": part(8, 2), "bytes": 8}, {"code": "CopyFromRemote", "from": part(16, 1), "bytes": 4}, sync],
         "boards write short packets", "60 bytes, of which 52 are not content", releases, last=(free(release, 9, "tensor"), free(release, 7), END))
    release, releases = "0.7", "0.7..0.7"
    flat = lambda offset: {"handle": 4096, "offset": offset, "device": CPU, "dtype": "float32"}
    three = {"dtype": "float32", "shape": [3], "data": b64(floats(1, 2, 3))}
    case("sent", release, ["RPC-25", "RPC-28"], [handle(4096), handle(0), VOID, handle(8192), VOID, VOID, {"code": "CopyAck", "data": b64(floats(1, 2, 3))}],
         [["send", three, CPU], ["send", three, CPU], ["copy", 1, 2], ["fetch", 1]], [{"tensor": {"device": CPU, "dtype": "float32", "shape": [3]}}] * 2 + [None, b64(floats(1, 2, 3))],
         [system("DevAllocData", {"device": CPU}, {"int": 12}, {"int": 64}, {"dtype": "float32"}), look("tvm.rpc.server.GetCRTMaxPacketSize"),
          {"code": "CopyToRemote", "to": flat(0), "data": b64(floats(1, 2, 3))}, sync, system("DevAllocData", {"device": CPU}, {"int": 12}, {"int": 64}, {"dtype": "float32"}),
          {"code": "CopyToRemote", "to": {**flat(0), "handle": 8192}, "data": b64(floats(1, 2, 3))}, sync,
          system("CopyAmongRemote", {"handle": 4096}, {"int": 0}, {"handle": 8192}, {"int": 0}, {"int": 12}, {"device": CPU}, {"device": CPU}, {"dtype": "float32"}, {"handle": 0}),
          {"code": "CopyFromRemote", "from": flat(0), "bytes": 12}, sync],
         "0.7 names places in memory, and no tensors", "two tensors: sent, copied, fetched", releases, stated="0.7",
         last=(system("DevFreeData", {"device": CPU}, {"handle": 8192}), system("DevFreeData", {"device": CPU}, {"handle": 4096}), END))


def modules():
    for release, releases in ERAS:
        new = ffi(release)
        module, function = (73, 68) if new else (9, 10)
        none = returned({"int": 0 if new else 4}, None)
        flag = {"bool": 1} if new else {"int": 1}
        get = "tvm.rpc.server.ModuleGetFunction"
        case("module", release, ["RPC-28", "RPC-48", "RPC-101"],
             [handle(7), none, handle(8), returned({"int": module}, {"handle": 9}), handle(10), returned({"int": function}, {"handle": 11}), none,
              returned({"int": 1 if new else 0}, {"int": 42})],
             [["upload", "a.so", "code"], ["load", "a.so"], ["find", 2, "double"], ["find", 2, "none"], ["call", 3, {"int": 21}]],
             [None, "module", "function", None, {"int": 42}],
             [look("tvm.rpc.server.upload"), call(7, {"str": "a.so"}, {"bytes": b64(b"code")}), free(release, 7),
              look("tvm.rpc.server.load_module"), call(8, {"str": "a.so"}), free(release, 8), look(get), call(10, {"module": 9}, {"str": "double"}, flag),
              call(10, {"module": 9}, {"str": "none"}, flag), call(11, {"int": 21})],
             "how a client runs what it has compiled", "a library: uploaded, loaded, a function of it and one that it lacks", releases,
             last=(free(release, 11), free(release, 9, "module"), END))
        case("module-of-another-type", release, ["RPC-101"],
             [handle(8), returned({"int": module}, {"handle": 9}), handle(10), returned({"int": 1 if new else 0}, {"int": 3}), handle(12), returned({"int": 1 if new else 0}, {"int": 3})],
             [["load", "a.so"], ["find", 1, "double"], ["load", "b.so"]], ["module", {"breaks": "RPC-101", "kind": "type"}, {"raises": "TypeError"}],
             [look("tvm.rpc.server.load_module"), call(8, {"str": "a.so"}), free(release, 8), look(get), call(10, {"module": 9}, {"str": "double"}, flag),
              look("tvm.rpc.server.load_module"), call(12, {"str": "b.so"}), free(release, 12)],
             "a number is called as a function", "integers in the place of a function and of a module", releases, last=(free(release, 9, "module"), END))
        case("module-imports", release, ["RPC-28"],
             [handle(8), returned({"int": module}, {"handle": 9}), handle(18), returned({"int": module}, {"handle": 19}), handle(20), none],
             [["load", "a.so"], ["load", "b.so"], ["import", 1, 2]], ["module", "module", None],
             [look("tvm.rpc.server.load_module"), call(8, {"str": "a.so"}), free(release, 8), look("tvm.rpc.server.load_module"), call(18, {"str": "b.so"}),
              free(release, 18), look("tvm.rpc.server.ImportModule"), call(20, {"module": 9}, {"module": 19}), free(release, 20)],
             "a module calls what it imports", "two modules", releases, last=(free(release, 19, "module"), free(release, 9, "module"), END))
        case("files", release, ["RPC-28"],
             [handle(8), returned({"int": 66 if new else 12}, {"bytes": b64(b"code")}), handle(9), none, handle(0), handle(10), returned({"int": 1 if new else 0}, {"int": 3})],
             [["download", "a"], ["remove", "a"], ["remove", "b"], ["download", "c"]], [b64(b"code"), None, {"raises": "AttributeError"}, {"raises": "TypeError"}],
             [look("tvm.rpc.server.download"), call(8, {"str": "a"}), free(release, 8), look("tvm.rpc.server.remove"), call(9, {"str": "a"}), free(release, 9),
              look("tvm.rpc.server.remove"), look("tvm.rpc.server.download"), call(10, {"str": "c"}), free(release, 10)],
             "files of a session", "read, removed, a server without the function, and a result of another type", releases)
        double = b64(struct.pack("<dd", 0.5, 0.25))
        kinds = [(release, 12 if new else 8, release)] + ([] if new else [("0.9", 10, "0.9"), ("0.10", 11, "0.10"), ("0.14", 12, "0.14")])
        for stated, count, _ in kinds:
            more = {8: [], 10: [0, 1], 11: [100, 0, 1], 12: [100, 0, 1, 0]}[count]
            args = [None, {"str": "f"}, {"int": 1}, {"int": 0}, {"int": 3}, {"int": 2}, {"int": 0}, *({"int": n} for n in more), {"str": ""}]
            in_range = {"0.8": "0.8..0.8", "0.9": "0.9..0.9", "0.10": "0.10..0.13", "0.14": "0.14..0.20", "0.27": "0.22.."}[stated]
            case("times", stated, ["RPC-91"],
                 [handle(7), returned({"int": function}, {"handle": 8}), returned({"int": 66 if new else 12}, {"bytes": double})],
                 [["time", "f", 3, 2]], [[0.5, 0.25]], [look("runtime.RPCTimeEvaluator"), call(7, *args), free(stated, 7), call(8), free(stated, 8)],
                 "how long a kernel takes is measured where it runs", "the arguments of its release, and two doubles", in_range, stated=stated)
    release, function = "0.8", 10
    forms = []
    for count in (12, 11, 10, 8):
        more = {8: [], 10: [0, 1], 11: [100, 0, 1], 12: [100, 0, 1, 0]}[count]
        forms.append(call(7, None, {"str": "f"}, {"int": 1}, {"int": 0}, {"int": 3}, {"int": 2}, {"int": 0}, *({"int": n} for n in more), {"str": ""}))
    case("times-of-any", release, ["RPC-91"],
         [handle(7), *[raised("TypeError: no")] * 3, returned({"int": 10}, {"handle": 8}), returned({"int": 12}, {"bytes": b64(struct.pack("<d", 0.5))})],
         [["time", "f", 3, 2]], [[0.5]], [look("runtime.RPCTimeEvaluator"), *forms, free(release, 7), call(8), free(release, 8)],
         "the release of a server does not show", "the arguments of one release after the other", "0.8..0.20")
    case("times-of-another-type", "0.27", ["RPC-91"],
         [handle(7), returned({"int": 68}, {"handle": 8}), returned({"int": 66}, {"bytes": b64(bytes(9))})],
         [["time", "f", 3, 2]], [{"raises": "TypeError"}],
         [look("runtime.RPCTimeEvaluator"), call(7, None, {"str": "f"}, {"int": 1}, {"int": 0}, {"int": 3}, {"int": 2}, {"int": 0}, {"int": 100}, {"int": 0}, {"int": 1}, {"int": 0}, {"str": ""}),
          free("0.27", 7), call(8), free("0.27", 8)],
         "bytes are taken for doubles", "nine bytes", "0.22..")


def devices():
    for release, releases in ERAS:
        attribute = lambda device, number: system("DevGetAttr", {"device": device}, {"int": number})
        case("devices", release, ["RPC-28"], [returned({"int": 1}), returned({"int": 1}), returned({"int": 0}), returned({"str": "a name"}), VOID, returned({"int": 64})],
             [["devices", 2], ["attribute", [2, 1], "DeviceName"], ["attribute", [2, 1], "DeviceName"], ["attribute", [2, 1], "WarpSize"]],
             [2, "a name", None, 64], [attribute([2, 0], 0), attribute([2, 1], 0), attribute([2, 2], 0), attribute([2, 1], 5), attribute([2, 1], 5), attribute([2, 1], 2)],
             "a client finds out which devices there are", "two of a type, and what they state", releases)
        on = lambda code, handle, device=[2, 1]: system(code, {"device": device}, {"handle": handle})
        case("streams", release, ["RPC-28"], [VOID, handle(5), VOID, VOID, VOID], [["set_device", [2, 1]], ["stream", [2, 1]]], [None, None],
             [system("DevSetDevice", {"device": [2, 1]}), system("DevCreateStream", {"device": [2, 1]}), on("DevSetStream", 5), on("DevStreamSync", 5),
              on("DevSetStream", 0), on("DevFreeStream", 5)],
             "streams are the server's", "made, set, waited for, replaced, freed", releases)
        case("device-fails", release, ["RPC-26"], [raised("ValueError: no device"), returned({"float": 0.5})], [["set_device", [2, 1]], ["attribute", [2, 1], "WarpSize"]],
             [{"raises": "ValueError", "message": "no device", "backtrace": ""}, {"raises": "RuntimeError"}],
             [system("DevSetDevice", {"device": [2, 1]}), attribute([2, 1], 2)], "what a device reports is what its user gets",
             "an exception, and a value of no attribute", releases)


for part in (begins, values, exceptions, connections, tensors, modules, devices):
    topic = f"client_{part.__name__}"
    part()
conformance.add("rpc", made)
