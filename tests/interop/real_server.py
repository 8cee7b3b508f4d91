"""An RPC server of the TVM that this Python imports, of either era.

`real_server.py PORT [KEY]` prints `port N` once it listens, and serves until stdin ends.

With `--ends` it prints `ended CODE` after each session, the exit code of its process, negative for a signal, and `gone` if the
thread that accepts sessions has ended. The server is then in this process, where `rpc.Server` has one for it."""
import multiprocessing
import os
import sys

try:
    import cloudpickle  # noqa: F401
except ImportError:
    stub = os.path.join(os.path.dirname(os.path.abspath(__file__)), "without_cloudpickle")
    sys.path.append(stub)
    # For the worker, which is a separate process.
    os.environ["PYTHONPATH"] = os.pathsep.join([stub] + os.environ.get("PYTHONPATH", "").split(os.pathsep)).rstrip(os.pathsep)

from tvm import rpc


def serve_with_ends(port, key):
    import threading

    from tvm.rpc import server

    class Process(multiprocessing.Process):
        def join(self, timeout=None):
            super().join(timeout)
            if self.exitcode is not None:
                print("ended", self.exitcode, flush=True)

    def end_with_stdin():
        # Not by sys.stdin: the process of a session would find its lock taken when it closes it.
        while os.read(0, 4096):
            pass
        os._exit(0)

    # Servers of all releases create the process of a session by this name.
    server.multiprocessing.Process = Process
    state = server.PopenRPCServerState("127.0.0.1", port, port + 400, key=key, silent=True)
    print("port", state.port, flush=True)
    threading.Thread(target=end_with_stdin, daemon=True).start()
    state.thread.join()
    print("gone", flush=True)
    os._exit(1)


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--ends"]
    port = int(arguments[0])
    key = arguments[1] if len(arguments) > 1 else ""
    if "--ends" in sys.argv:
        serve_with_ends(port, key)
    server = rpc.Server(host="127.0.0.1", port=port, port_end=port + 400, key=key, silent=True)
    print("port", server.port, flush=True)
    sys.stdin.read()
    server.terminate()
