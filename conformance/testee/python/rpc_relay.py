"""Runs the cases of `rpc.relay` on the tracker and the proxy of an installed TVM:

    tvmspec check --case 'rpc/relay/*' --impl "exec:python conformance/testee/python/rpc_relay.py"

Each case gets a separate tracker or proxy. The pages of a proxy need tornado.
"""

import json
import socket
import struct
import subprocess
import sys
import time

PATIENCE = 3.0

SERVE = """
import logging, os, sys
from tvm.rpc import {module}
logging.disable(logging.CRITICAL)
{start}
print(server.port, flush=True)
sys.stdin.read()
os._exit(0)
"""
STARTS = {
    "tracker": ("tracker", 'server = tracker.Tracker(host="127.0.0.1", port=PORT, port_end=PORT + 50, silent=True)'),
    "proxy": ("proxy", 'server = proxy.Proxy(host="127.0.0.1", port=PORT, port_end=PORT + 50, web_port=WEB, timeout_client=WAIT, timeout_server=WAIT)'),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class NotHere(Exception):
    """The reason why this installation cannot start one."""


class Between:
    def __init__(self, args):
        module, start = STARTS[args["of"]]
        self.web = free_port()
        start = start.replace("PORT", str(free_port())).replace("WEB", str(self.web)).replace("WAIT", str(args.get("wait", 600)))
        code = SERVE.format(module=module, start=start)
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        port = self.process.stdout.readline()
        if not port:
            lines = self.process.communicate()[1].strip().splitlines()
            raise NotHere(lines[-1] if lines else "it ended at once")
        self.port = int(port)
        self.peers = {}

    def end(self):
        for peer in self.peers.values():
            peer.close()
        self.process.kill()
        self.process.wait()


class Peer:
    def __init__(self, port):
        for turn in range(60):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        self.socket.settimeout(PATIENCE)
        self.input, self.ended = b"", False

    def close(self):
        self.socket.close()

    def write(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass

    def more(self):
        try:
            piece = self.socket.recv(4096)
        except ConnectionError:
            piece = b""
        self.ended = not piece
        self.input += piece

    def take(self, count):
        while len(self.input) < count and not self.ended:
            self.more()
        taken, self.input = self.input[:count], self.input[count:]
        return taken

    def rest(self):
        while not self.ended:
            self.more()
        taken, self.input = self.input, b""
        return taken

    def send(self, request):
        text = json.dumps(request).encode()
        self.write(struct.pack("<i", len(text)) + text)

    def reply(self):
        length = self.take(4)
        if len(length) < 4:
            return "end"
        text = self.take(struct.unpack("<i", length)[0])
        return to_form(json.loads(text))

    def frame(self):
        """The kind and the content of a frame of a WebSocket; 8 at the end."""
        head = self.take(2)
        if len(head) < 2:
            return 8, b""
        length = head[1] & 127
        if length == 126:
            length = struct.unpack(">H", self.take(2))[0]
        return head[0] & 15, self.take(length)


def to_request(form):
    code = form["code"]
    if code == "put":
        return [3, form["key"], [form["port"], form["match"]], form.get("host")]
    if code == "request":
        return [4, form["key"], form["user"], form["priority"]]
    if code == "update-info":
        peer = form["peer"]
        return [5, {"key": peer["key"], "addr": [peer["host"], peer["port"]]}]
    return {"ping": [1], "stop": [2, form.get("stop_key")], "summary": [6], "pending-match-keys": [7]}[code]


def to_form(reply):
    if reply == 0:
        return {"code": "success"}
    if reply == -1:
        return {"code": "fail"}
    if reply and reply[0] == 0 and isinstance(reply[1], dict):
        servers = [{"key": peer["key"], "host": peer["addr"][0], "port": peer["addr"][1]} for peer in reply[1]["server_info"]]
        return {"code": "summary", "queues": reply[1]["queue_info"], "servers": servers}
    if reply and reply[0] == 0:
        host, port, match = reply[1]
        return {"code": "server", "host": host, "port": port, "match": match}
    return {"code": "match-keys", "keys": reply}


def step(between, form):
    name = form["peer"]
    if name not in between.peers:
        between.peers[name] = Peer(between.web if form.get("web") else between.port)
    peer = between.peers[name]
    (what, of), = [(key, value) for key, value in form.items() if key not in ("peer", "web")]
    if what == "close":
        peer.close()
    elif what == "hex":
        peer.write(bytes.fromhex(of))
    elif what == "key":
        peer.write(struct.pack("<ii", 0xFF271, len(of.encode())) + of.encode())
    elif what == "hello":
        peer.write(struct.pack("<i", 0x2F271))
        return peer.take(4).hex()
    elif what == "send":
        peer.send(to_request(of))
    elif what == "ask":
        peer.send(to_request(of))
        return peer.reply()
    elif what == "reply":
        return peer.reply()
    elif what == "until":
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            peer.send([6])
            summary = peer.reply()
            if "queues" not in summary:
                return summary
            counts = summary["queues"].get(of["key"])
            if counts and all(counts[name] == of[name] for name in ("free", "pending") if name in of):
                return None
            time.sleep(0.01)
        raise TimeoutError
    elif what == "upgrade":
        lines = ["GET /ws HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"]
        peer.write("\r\n".join([*lines, "", ""]).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n") and not peer.ended:
            head += peer.take(1)
        return None if head.startswith(b"HTTP/1.1 101 ") else "end"
    elif what == "message":
        data = bytes.fromhex(of)
        # The mask of zeros changes nothing.
        peer.write(bytes([130, 128 | len(data), 0, 0, 0, 0]) + data)
    elif what == "messages":
        data = b""
        while len(data) < of:
            kind, content = peer.frame()
            if kind != 2:
                return "end"
            data += content
        return data.hex()
    elif what == "read":
        return peer.take(of).hex()
    elif what == "end":
        return peer.rest().hex()
    return None


# TVM's own have no limits to state, report nothing of what goes on, and keep their stop key to themselves.
KNOWN = {"value", "of", "wait"}


def relay(args):
    others = sorted(set(args) - KNOWN)
    if others:
        raise NotHere(f"TVM's have no {', '.join(others)}")
    if "{stop}" in json.dumps(args["value"]):
        raise NotHere("the stop key of TVM's tracker is not shown")
    between, shown = Between(args), []
    try:
        for form in args["value"]:
            try:
                shown.append(step(between, form))
            # Up to Python 3.9 that of a socket is another one.
            except (TimeoutError, socket.timeout):
                shown.append("nothing")
                break
    finally:
        between.end()
    return shown


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "hello":
            answer = {"ok": {"name": "tvm.rpc", "version": "installed", "ops": ["rpc.relay"]}}
        elif request["op"] == "rpc.relay":
            try:
                answer = {"ok": relay(request["args"])}
            except NotHere as why:
                answer = {"unsupported": str(why)}
        else:
            answer = {"unsupported": "only rpc.relay"}
        print(json.dumps({"id": request["id"], **answer}), flush=True)


main()
