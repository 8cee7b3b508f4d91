"""An RPC server of the TVM that this Python imports, of either era.

`real_server.py PORT [KEY]` prints `port N` once it listens, and serves until stdin ends."""
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


if __name__ == "__main__":
    port = int(sys.argv[1])
    key = sys.argv[2] if len(sys.argv) > 2 else ""
    server = rpc.Server(host="127.0.0.1", port=port, port_end=port + 400, key=key, silent=True)
    print("port", server.port, flush=True)
    sys.stdin.read()
    server.terminate()
