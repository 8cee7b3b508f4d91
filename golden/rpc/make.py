"""Creates the streams below golden/rpc/ from captures of real peers, and the cases of their packets.

    python3 golden/rpc/make.py CAPTURES

A capture is two files, NAME.c2s.bin and NAME.s2c.bin: all bytes of one connection in each direction, as a relay between a released
client and a released server recorded them. Folders of the machine that built the peers occur in compiled code and stack traces, and
are replaced by others of the same length. The expectations come from a second reading here, which shares no code with src/.
"""

import base64
import json
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "conformance"))

import cases as conformance

STREAMS = {
    "full-0.27": ("v27-full.0", "0.27.0", "calls, strings, bytes, an exception, tensors, objects, a module that is uploaded and called, a time evaluator"),
    "full-0.8": ("v08-full.0", "0.8.0", "the same, of 0.8"),
    "two-hops-0.27": ("v27-multihop.0", "0.27.0", "a session whose server is a client of another server"),
    "chunks-0.27": ("v27-chunked.0", "0.27.0", "copies in parts: the server registers a largest packet of 100 bytes"),
    "timeout-0.27": ("v27-timeout.0", "0.27.0", "a session that takes longer than its timeout of 1.5 seconds"),
}
TRACKED = {
    "tracker-server-0.27": ("v27-tracker.0", "a server that offers itself to a tracker, again once a client has taken its key, and asks for its keys"),
    "tracker-client-0.27": ("v27-tracker.1", "a client that asks a tracker for a summary, for a server, and for one of a key that no server has"),
}
FOLDERS = {b"/opt/t/research/rpc-work/": b"/usr/local/share/tvm/0.8/", b"/opt/t/v27rpc/": b"/usr/local/27/"}
CODES = {1: "Shutdown", 2: "InitServer", 3: "CallFunc", 4: "Return", 5: "Exception", 6: "CopyFromRemote", 7: "CopyToRemote", 8: "CopyAck",
         9: "GetGlobalFunc", 10: "FreeHandle", 11: "DevSetDevice", 12: "DevGetAttr", 13: "DevAllocData", 14: "DevFreeData",
         15: "DevStreamSync", 16: "CopyAmongRemote", 17: "DevAllocDataWithScope", 18: "DevCreateStream", 19: "DevFreeStream",
         20: "DevSetStream", 21: "DevGetCurrentStream"}
TYPES = ("int", "uint", "float", "handle", "bfloat", "complex", "bool")
LONGEST = 90


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        assert len(self.data) - self.at >= count
        self.at += count
        return self.data[self.at - count : self.at]

    def __getattr__(self, name):
        form = {"i32": "<i", "u64": "<Q", "i64": "<q", "f64": "<d"}[name]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def run(self):
        return self.take(self.u64)


def b64(data):
    return base64.b64encode(data).decode()


def text(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64(data)}


def dtype(data):
    code, bits, lanes = data.take(1)[0], data.take(1)[0], int.from_bytes(data.take(2), "little")
    if code < 3 and bits in (8, 16, 32, 64) and lanes == 1 and (code != 2 or bits > 8):
        return f"{TYPES[code]}{bits}"
    return [code, bits, lanes]


def tensor(data):
    address, device = data.u64, [data.i32, data.i32]
    ndim, kind = data.i32, dtype(data)
    shape = [data.i64 for _ in range(ndim)]
    return {"data": address, "device": device, "dtype": kind, "shape": shape, "byte_offset": data.u64}


def value(data, code, ffi):
    plain = ["None", "int", "bool", "float", "handle", "dtype", "device", "tensor", "str", "bytes"]
    old = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "None", 5: "dtype", 6: "device", 7: "tensor", 9: "module", 10: "function",
           11: "str", 12: "bytes", 15: "bool"}
    kind = (plain[code] if code < 10 else {68: "function", 73: "module"}.get(code, "object")) if ffi else old[code]
    if kind == "None":
        return None
    if kind == "object":
        inner = data.i32
        if inner == 65:
            return {"str": text(data.run()), "index": code}
        if inner == 66:
            return {"bytes": b64(data.run()), "index": code}
        assert inner == 115
        return {"object": data.u64, "index": code}
    if kind in ("int", "bool"):
        return {kind: data.i64}
    if kind == "dtype":
        form = {"dtype": dtype(data)}
        assert data.i32 == 0
        return form
    simple = {"float": lambda: data.f64, "device": lambda: [data.i32, data.i32], "tensor": lambda: tensor(data),
              "str": lambda: text(data.run()), "bytes": lambda: b64(data.run())}
    return {kind: simple.get(kind, lambda: data.u64)()}


def values(data, ffi):
    count = data.i32
    if ffi:
        return [value(data, data.i32, ffi) for _ in range(count)]
    codes = [data.i32 for _ in range(count)]
    return [value(data, code, ffi) for code in codes]


def packet(raw, ffi):
    data = Bytes(raw)
    code = CODES[data.i32]
    form = {"code": code}
    if code == "InitServer":
        form.update(version=text(data.run()), args=values(data, ffi))
    elif code == "CallFunc":
        form.update(function=data.u64, args=values(data, ffi))
    elif code == "CopyFromRemote":
        form.update({"from": tensor(data), "bytes": data.u64})
    elif code == "CopyToRemote":
        form.update(to=tensor(data), data=b64(data.run()))
    elif code == "CopyAck":
        form.update(data=b64(data.take(len(raw) - 4)))
    elif code != "Shutdown":
        form.update(args=values(data, ffi))
    assert data.at == len(raw), (form, raw[data.at :])
    return form


def packets(stream):
    """The hello or its answer, and each packet with its length."""
    data = Bytes(stream)
    data.take(4)
    data.take(data.i32)
    yield 0, stream[: data.at]
    while data.at < len(stream):
        start = data.at
        data.take(data.u64)
        yield start, stream[start : data.at]


def peer(form):
    return {"key": form["key"], "host": form["addr"][0], "port": form["addr"][1]}


def tracked(raw, speaker):
    """A message of a tracker's connection, and the rule that defines it."""
    if len(raw) == 4:
        assert raw == b"\x71\xf2\x02\x00"
        return "tracker-hello", {"code": "tracker"}, ["RPC-50"]
    reply = json.loads(raw[4:])
    if speaker == "client":
        code, *rest = reply
        form = {
            3: lambda: {"code": "put", "key": rest[0], "port": rest[1][0], "match": rest[1][1], "host": rest[2]},
            4: lambda: {"code": "request", "key": rest[0], "user": rest[1], "priority": rest[2]},
            5: lambda: {"code": "update-info", "peer": peer(rest[0])},
            6: lambda: {"code": "summary"},
            7: lambda: {"code": "pending-match-keys"},
        }[code]()
        return "tracker-request", form, ["RPC-51", "RPC-53", "RPC-54", *(["RPC-55"] if rest else []), *(["RPC-56"] if code == 5 else [])]
    if reply == 0:
        form = {"code": "success"}
    elif isinstance(reply[0], str):
        form = {"code": "match-keys", "keys": reply}
    elif isinstance(reply[1], list):
        form = {"code": "server", "host": reply[1][0], "port": reply[1][1], "match": reply[1][2]}
    else:
        form = {"code": "summary", "queues": reply[1]["queue_info"], "servers": [peer(each) for each in reply[1]["server_info"]]}
    return "tracker-reply", form, ["RPC-51", "RPC-53", "RPC-57", *(["RPC-58"] if reply != 0 else [])]


def messages(stream):
    """Each message of a tracker's connection."""
    yield 0, stream[:4]
    at = 4
    while at < len(stream):
        end = at + 4 + int.from_bytes(stream[at : at + 4], "little")
        yield at, stream[at:end]
        at = end


def trackers(captures, origins):
    seen = set()
    for name, (capture, holds) in TRACKED.items():
        for speaker, end in (("client", "c2s"), ("server", "s2c")):
            stream = (captures / f"{capture}.{end}.bin").read_bytes()
            file = f"rpc/{name}.{speaker}.bin"
            (ROOT / "golden" / file).write_bytes(stream)
            origins[file] = {"release": "0.27.0", "how": f"rpc/make.py: {holds}; what {'it' if speaker == 'client' else 'the tracker'} wrote"}
            for start, raw in messages(stream):
                kind, form, rules = tracked(raw, speaker)
                if (speaker, form["code"]) in seen:
                    continue
                seen.add((speaker, form["code"]))
                short = "tracker-hello" if kind == "tracker-hello" else f"tracker-{form['code']}"
                yield {
                    "id": f"rpc/0.27/{short}-{speaker}", "topic": "tracker", "rules": rules, "releases": "0.27..", "op": "rpc.decode",
                    "input": {"hex": raw.hex()}, "args": {"form": kind, "release": "0.27", "speaker": speaker}, "expect": {"accept": form},
                    "why": "a peer that reads it otherwise cannot talk to a released one",
                    "origin": {"release": "0.27.0", "how": f"{name}, byte {start} of the {speaker}"},
                }


def shape_of(form):
    """Returns the shape of a packet: its code, and the kind of each value."""
    kinds = [next(iter(arg)) + str(arg.get("index", "")) if arg else "none" for arg in form.get("args", [])]
    # The first value of a result is the type of the second.
    if form["code"] == "Return" and len(kinds) > 1:
        kinds[0] += str(form["args"][0].get("int"))
    return (form["code"], *kinds)


def main(captures):
    made, seen, origins = [], set(), {}
    for name, (capture, release, holds) in STREAMS.items():
        minor = int(release.split(".")[1])
        for speaker, end in (("client", "c2s"), ("server", "s2c")):
            stream = (captures / f"{capture}.{end}.bin").read_bytes()
            for folder, neutral in FOLDERS.items():
                assert len(folder) == len(neutral)
                stream = stream.replace(folder, neutral)
            file = f"rpc/{name}.{speaker}.bin"
            (ROOT / "golden" / file).write_bytes(stream)
            origins[file] = {"release": release, "how": f"rpc/make.py: {holds}; what the {speaker} wrote"}
            for start, raw in packets(stream):
                args = {"form": "packet", "release": f"0.{minor}", "speaker": speaker}
                if start == 0:
                    key = raw[8:].decode()
                    args["form"] = "hello" if speaker == "client" else "answer"
                    words = key.split()
                    seconds = next((float(word[9:]) for word in words if word.startswith("-timeout=")), None)
                    form = {"key": key, "match": "", "timeout": seconds} if speaker == "client" else {"code": "success", "key": key}
                    like = (args["form"], seconds)
                else:
                    form = packet(raw[8:], minor >= 21)
                    like = shape_of(form)
                if (minor, speaker, like) in seen or len(raw) > LONGEST:
                    continue
                seen.add((minor, speaker, like))
                code = args["form"] if start == 0 else form["code"]
                made.append((name, release, start, raw, args, form, code))
    used, listed = set(), []
    for name, release, start, raw, args, form, code in made:
        short = "".join("-" * (at > 0 and letter.isupper()) + letter.lower() for at, letter in enumerate(code))
        era = release.rsplit(".", 1)[0]
        number = next(n for n in range(1, 100) if (short, era, n) not in used)
        used.add((short, era, number))
        rules = {"hello": ["RPC-01", "RPC-02"], "answer": ["RPC-04"]}.get(args["form"])
        if rules is None:
            sequence = "RPC-42" if era == "0.27" else "RPC-41"
            body = {"InitServer": ["RPC-22"], "CallFunc": ["RPC-24"], "CopyToRemote": ["RPC-25"], "CopyFromRemote": ["RPC-25"],
                    "Exception": ["RPC-26"], "CopyAck": ["RPC-27"], "Shutdown": [], "Return": []}.get(code, ["RPC-28"])
            has = ["RPC-40", sequence, "RPC-43"] if "args" in form else []
            if any(arg and "index" in arg for arg in form.get("args", [])):
                has.append("RPC-47")
            if any(arg and "tensor" in arg for arg in form.get("args", [])) or code.startswith("Copy") and code != "CopyAck" and "args" not in form:
                has.append("RPC-30")
            rules = ["RPC-10", "RPC-20", *body, *has]
        elif form.get("timeout"):
            rules = ["RPC-05"]
        listed.append({
            "id": f"rpc/{era}/{short}-{number}", "topic": f"real-{era.replace('.', '-')}", "rules": rules,
            "releases": f"{era}..{era}" if era == "0.8" else "0.27..",
            "op": "rpc.decode", "input": {"hex": raw.hex()}, "args": args, "expect": {"accept": form},
            "why": "a peer that reads it otherwise cannot talk to a released one", "origin": {"release": release, "how": f"{name}, byte {start} of the {args['speaker']}"},
        })
    listed += trackers(captures, origins)
    conformance.add("rpc", listed)
    conformance.declare(origins)


main(pathlib.Path(sys.argv[1]))
