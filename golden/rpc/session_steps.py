"""The steps of sessions: requests and answers as the rules define them, and a case for each session."""

import base64
import struct

# The releases that write the same as this one, as far as a session shows.
ALIKE = {"0.7": "0.7..0.7", "0.8": "0.8..0.20", "0.21": "0.21..0.21", "0.27": "0.22.."}
ERAS = ("0.8", "0.27")
CPU = [1, 0]
RAISED = {"code": "Exception", "has": []}
VOID = {"code": "Return", "args": [None]}
made = []
# The file of the current cases.
topic = None


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


def begin(name):
    """Starts a new file of this name for the following cases."""
    global topic
    topic = f"session_{name}"
