"""Sessions that end: packets and hellos that no client writes, keys, and timeouts."""

import struct

from session_steps import ERAS, FOUND, call, case, look, made, minor, packet, raised, result


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
            "id": f"rpc/session/hostile/hello-{name}", "topic": "session_hostile", "rules": rules, "releases": "0.7..", "op": "rpc.session",
            "input": {"value": []}, "args": {"release": release, "hello": greeting},
            "expect": {"accept": {"hello": None, "answers": [], "end": "server"}}, "why": "one client ends the server for all",
            "origin": {"hand": "a hello that breaks one rule: it is not answered"}})


def keys():
    release = "0.27"
    add = lambda at: [look("rpc.test.addone"), FOUND, call(at, {"int": 1}), result(release, "int", {"int": 2})]
    mismatch = {"code": "mismatch"}
    for name, key in [("another", "client:tvmspec.rpc.other"), ("server", "server:"), ("longer", "client:a:b"), ("without-client", "a")]:
        made.append({
            "id": f"rpc/session/key-{name}", "topic": "session_keys", "rules": ["RPC-04", "RPC-80"], "releases": "0.7..", "op": "rpc.session",
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
