"""What other commands read: connections, targets, manifests."""

import json
import struct

from classes import n, of, q, s

HELLO = struct.pack("<i", 0xFF271) + q(8)[:4] + b"client:x"
ANSWER = struct.pack("<i", 0xFF271) + q(8)[:4] + b"server:x"
INIT = struct.pack("<i", 2) + s("0.8.0") + struct.pack("<i", 0)
RPC = "rpc-decode rpc-decode-brief rpc-decode-json"


def packet(body):
    return q(len(body)) + body


def connection(name, client=b"", server=b""):
    """Both directions: the server's is beside the client's."""
    client = HELLO + packet(INIT) + client
    server = ANSWER + packet(struct.pack("<iii", 4, 1, 0)) + server
    return client, {name.replace(".client.", ".server."): server}


def call(count, values):
    return packet(struct.pack("<i", 3) + q(7) + struct.pack("<i", count) + values)


@of("keep-alives.client.bin", RPC)
def keep_alives():
    "1,000,000 keep-alives of a client"
    return connection("keep-alives.client.bin", q(0) * n(1_000_000))


@of("calls.client.bin", RPC)
def calls():
    "200,000 calls, and as many answers"
    count = n(200_000)
    return connection("calls.client.bin", call(0, b"") * count, packet(struct.pack("<iii", 4, 1, 0)) * count)


@of("arguments.client.bin", RPC)
def arguments():
    "a call of 1,000,000 integers, and an answer of as many"
    values = struct.pack("<iq", 1, 5) * n(1_000_000)
    answer = packet(struct.pack("<ii", 4, n(1_000_000)) + values)
    return connection("arguments.client.bin", call(n(1_000_000), values), answer)


@of("nothings.client.bin", RPC)
def nothings():
    "a call of 2,000,000 times nothing"
    return connection("nothings.client.bin", call(n(2_000_000), struct.pack("<i", 0) * n(2_000_000)))


@of("strings.client.bin", RPC)
def strings():
    "a call of 300,000 strings of one letter"
    return connection("strings.client.bin", call(n(300_000), (struct.pack("<i", 8) + s("a")) * n(300_000)))


@of("string.client.bin", RPC)
def string():
    "a call of one string of 8 MB"
    return connection("string.client.bin", call(1, struct.pack("<i", 8) + s("a" * n(8_000_000))))


@of("truths.client.bin", RPC)
def truths():
    "300,000 truth values that are 2"
    return connection("truths.client.bin", call(n(300_000), struct.pack("<iq", 2, 2) * n(300_000)))


@of("extents.client.bin", RPC)
def extents():
    "a copy of a tensor of 500,000 dimensions"
    dims = n(500_000)
    block = q(1) + struct.pack("<iii", 1, 0, dims) + bytes([2, 32, 1, 0]) + q(1) * dims + q(0)
    return connection("extents.client.bin", packet(struct.pack("<i", 6) + block + q(4)))


@of("flat-copies.client.bin", RPC)
def flat_copies():
    "200,000 copies of 0.6, and their answers"
    count = n(200_000)
    ask = struct.pack("<i", 5) + q(1, 0, 8) + struct.pack("<ii", 1, 0) + bytes([2, 32, 1, 0])
    answer = struct.pack("<i", 7) + bytes(8)
    return HELLO + ask * count, {"flat-copies.server.bin": ANSWER + answer * count}


def tracker(body):
    body = json.dumps(body, separators=(",", ":")).encode()
    return struct.pack("<i", len(body)) + body


@of("tracker-keys.client.bin", RPC)
def tracker_keys():
    "a tracker that answers with 100,000 keys"
    hello = struct.pack("<i", 0x2F271)
    return hello + tracker([7]), {"tracker-keys.server.bin": hello + tracker(["k%d" % at for at in range(n(100_000))])}


TARGET = "target target-json"


def device(member):
    return json.dumps({"kind": "llvm", **member}, separators=(",", ":")).encode()


@of("keys.target", TARGET)
def target_keys():
    "a target of 40,000 keys"
    return device({"keys": ["k%d" % at for at in range(n(40_000))]})


@of("features.target", TARGET)
def target_features():
    "a command line of 45,000 features"
    return b"llvm -mattr=" + b",".join(b"+a%d" % at for at in range(n(45_000)))


@of("letters.target", TARGET)
def target_letters():
    "a command line of 200,000 libraries of one letter"
    return b"llvm -libs=" + b",".join([b"a"] * n(200_000))


@of("libraries.target", TARGET)
def target_libraries():
    "a target of 100,000 libraries of one letter"
    return device({"libs": ["a"] * n(100_000)})


@of("options.target", TARGET)
def target_options():
    "a target of 40,000 options that no kind has"
    return device({"o%d" % at: 1 for at in range(n(40_000))})


@of("option-words.target", TARGET)
def target_option_words():
    "a command line of 40,000 features of the command line of 0.6"
    return b"llvm" + b"".join(b" -w%d=1" % at for at in range(n(40_000)))


@of("feature-members.target", TARGET)
def target_feature_members():
    "a target of 30,000 features as members"
    return device({"feature.f%d" % at: True for at in range(n(30_000))})


@of("quotes.target", TARGET)
def target_quotes():
    "a command line of one value of 250,000 escapes"
    return b"llvm -mcpu=" + b"\\'" * n(125_000)


PACK = "pack-bin pack-c pack-o"


def modules(*entries, **members):
    return json.dumps({"layout": "0.22", "modules": entries, **members}, separators=(",", ":")).encode()


@of("repeats.manifest", PACK)
def manifest_repeats():
    "a manifest that names one file of 1 MB 1,500 times"
    entries = [{"kind": "_lib", "imports": [1]}] + [{"kind": "k", "file": "repeats.payload"}] * n(1_500)
    return modules(*entries), {"repeats.payload": bytes(n(1_000_000))}


@of("payload.manifest", PACK)
def manifest_payload():
    "a manifest with a file of 20 MB"
    return modules({"kind": "_lib", "imports": [1]}, {"kind": "k", "file": "payload.payload"}), {"payload.payload": bytes(n(20_000_000))}


@of("modules.manifest", PACK)
def manifest_modules():
    "a manifest of 20,000 modules, each imports the next"
    count = n(20_000)
    entries = [{"kind": "k", "payload": "", "imports": [at + 1]} for at in range(count - 1)]
    return modules(*entries, {"kind": "k", "payload": ""}, order="topological")


@of("imports.manifest", PACK)
def manifest_imports():
    "a manifest of a module that imports another 400,000 times"
    return modules({"kind": "_lib", "imports": [1] * n(400_000)}, {"kind": "k", "payload": ""})


@of("imports.toml", PACK)
def manifest_imports_toml():
    "the same in TOML"
    imports = ",".join(["1"] * n(400_000))
    return f'layout = "0.22"\n[[modules]]\nkind = "_lib"\nimports = [{imports}]\n[[modules]]\nkind = "k"\npayload = ""\n'.encode()


@of("names.toml", PACK)
def manifest_names_toml():
    "a manifest in TOML of 100,000 members that there are not"
    return "".join("k%d=1\n" % at for at in range(n(100_000))).encode()


@of("long.manifest", PACK)
def manifest_long():
    "a manifest of 100 MB of blanks"
    return b"{" + b" " * n(100_000_000)
