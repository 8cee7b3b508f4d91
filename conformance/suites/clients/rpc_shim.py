"""Replaces TVM's server, tracker and proxy by `tvmspec serve`, `tvmspec tracker` and `tvmspec proxy`, for TVM's own tests.

Imported before the tests. TVMSPEC_OWN names the program; without it TVM's own stay, and only the build information is corrected, so
that both runs have the same tests.
"""

import os
import re
import signal
import subprocess
import sys

import tvm
import tvm.rpc
import tvm.rpc.proxy
import tvm.rpc.server
import tvm.rpc.tracker

try:
    from tvm.testing import env

    # The wheel has RPC, but does not report it.
    enabled = env.build_flag_enabled
    env.build_flag_enabled = lambda flag: flag == "USE_RPC" or enabled(flag)
except ImportError:
    pass

# A server as a separate program is built from sources that no package has.
for module in (tvm, sys.modules.get("tvm_ffi")):
    if hasattr(module, "get_global_func"):
        get = module.get_global_func
        module.get_global_func = lambda name, *rest, get=get, **options: None if name == "rpc.CreatePipeClient" else get(name, *rest, **options)

if tvm.__version__ == "0.16.dev0":
    # The default of this package is RISC-V.
    build = tvm.build
    tvm.build = lambda inputs, args=None, target=None, **options: build(
        inputs, args, "llvm -mtriple=x86_64-linux-gnu" if target == "llvm" else target, **options
    )

    # It passes more arguments than its own server, which is that of upstream, takes.
    tvm.rpc.RPCSession.load_module = lambda self, path: self.get_function("tvm.rpc.server.load_module")(path)

OWN = os.environ.get("TVMSPEC_OWN")


def start(arguments, pattern):
    """Returns the process, and the match of `pattern` in its first lines."""
    log = open(os.environ.get("TVMSPEC_LOG", os.devnull), "a")
    process = subprocess.Popen([OWN, *arguments], stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    for line in process.stdout:
        found = re.search(pattern, line)
        if found:
            return process, int(found[1])
    raise ValueError(f"{arguments[0]} ends with {process.wait()}")


class Process:
    proc = None

    def terminate(self):
        if self.proc:
            os.killpg(self.proc.pid, signal.SIGKILL)
            self.proc.wait()
            self.proc.stdout.close()
            self.proc = None

    def __del__(self):
        self.terminate()


class Server(Process):
    def __init__(self, host="0.0.0.0", port=9091, port_end=9199, is_proxy=False, tracker_addr=None, key="", *rest, custom_addr=None, **options):
        # As many sessions at a time as TVM's.
        arguments = ["serve", "--allow-load", "--allow-link", "--allow-connect=*", "--sessions=1", f"--key={key}"]
        if is_proxy:
            arguments.append(f"--proxy={host}:{port}")
        else:
            arguments += [f"--host={host}", f"--port={port}", f"--port-end={port_end - 1}"]
            if tracker_addr:
                arguments.append("--tracker=%s:%d" % tuple(tracker_addr))
            if custom_addr:
                arguments.append(f"--custom-addr={custom_addr}")
        self.proc, self.port = start(arguments, r"serving (?:on|through) \S+:(\d+)")
        self.host = host


class Tracker(Process):
    def __init__(self, host="0.0.0.0", port=9190, port_end=9199, silent=False, **options):
        arguments = ["tracker", "--host", host, "--port", str(port), "--port-end", str(port_end)]
        self.proc, self.port = start(arguments, r"tracker at \S+:(\d+)")
        self.host = host


class Proxy(Process):
    def __init__(self, host, port=9091, port_end=9199, web_port=0, timeout_client=600, timeout_server=600, tracker_addr=None, **options):
        # TVM's server uses the first free port.
        arguments = ["proxy", f"--host={host}", "--port=0"]
        if tracker_addr:
            arguments.append("--tracker=%s:%d" % tuple(tracker_addr))
        self.proc, self.port = start(arguments, r"proxy at \S+:(\d+)")
        self.host = host


if OWN:
    tvm.rpc.proxy.Proxy = Proxy
    tvm.rpc.Server = tvm.rpc.server.Server = Server
    tvm.rpc.tracker.Tracker = Tracker
