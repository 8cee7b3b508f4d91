"""Compares the speed of the module with the command line, numpy, TVM and tvm_ffi, in one process and one run.

    python bench.py [--command tvmspec] [--size MIB]

Parts whose package is missing are left out. Each time is the median of several.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np

import tvmspec

HOST = Path(__file__).resolve().parent.parent / "golden/module/host-0.27.so"


def median(work: Callable[[], Any], times: int, repeat: int = 1) -> float:
    """Return the median time of one call, in seconds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        for _ in range(repeat):
            work()
        taken.append((time.perf_counter() - start) / repeat)
    return statistics.median(taken)


def shown(seconds: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def parameters(path: Path, size: int) -> Path:
    """Write a parameter file of about `size` bytes, in tensors of at most 4 MiB."""
    each = min(size, 4 << 20) // 4
    tvmspec.save_params(path, {f"p{i}": np.ones(each, "float32") for i in range(max(1, size // (each * 4)))})
    return path


def verify(folder: Path, command: str, largest: int) -> None:
    for title, size in (("1 KB", 900), ("1 MB", 1 << 20), (f"{largest} MiB", largest << 20)):
        path = parameters(folder / "x.params", size)
        own = median(lambda: tvmspec.verify(path), 9, 20 if size < 1 << 24 else 1)
        words = [command, "verify", str(path)]
        other = median(lambda: subprocess.run(words, check=True, capture_output=True), 9)
        print(f"verify of {title}: {shown(own)}; the command line {shown(other)}, with its process")


def load_params(folder: Path, largest: int) -> None:
    path = parameters(folder / "x.params", largest << 20)
    own = median(lambda: tvmspec.load_params(path), 9)
    print(f"load_params of {largest} MiB: {shown(own)}")
    np.save(folder / "x.npy", np.ones(largest << 18, "float32"))
    numpy = median(lambda: np.load(folder / "x.npy", mmap_mode="r"), 9)
    print(f"numpy.load(mmap_mode='r') of one array of that size: {shown(numpy)}")
    try:
        from tvm import runtime
    except ImportError:
        print("TVM's own loader: tvm is not installed")
        return
    loader = getattr(runtime, "load_param_dict_from_file", None)
    if loader is None:
        theirs = median(lambda: runtime.load_param_dict(path.read_bytes()), 3)
    else:
        theirs = median(lambda: loader(str(path)), 3)
    print(f"TVM's own loader, which copies: {shown(theirs)}")


def call() -> None:
    """Compare calls in alternation, so that a change of the machine's speed affects both."""
    try:
        import tvm_ffi
    except ImportError:
        print("calls: tvm_ffi is not installed")
        return
    x, y = np.ones(12, "float32"), np.zeros(12, "float32")
    own = tvmspec.load(HOST)["main"]
    theirs = tvm_ffi.load_module(str(HOST))["main"]
    pairs: list[tuple[str, tuple[Any, Any], tuple[Any, Any]]] = [
        ("two arrays of numpy", (x, y), (x, y)),
        ("two tensors", (tvmspec.tensor(x), tvmspec.tensor(y)), (tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y))),
    ]
    for title, ours, others in pairs:
        ratios = []
        for _ in range(15):
            a = median(lambda: own(*ours), 1, 20000)
            b = median(lambda: theirs(*others), 1, 20000)
            ratios.append((a / b, a, b))
        ratio, a, b = sorted(ratios)[len(ratios) // 2]
        print(f"a call with {title}: {shown(a)}; tvm_ffi {shown(b)}; ratio {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", default=str(Path(sys.executable).parent / "tvmspec"))
    parser.add_argument("--size", type=int, default=1024, help="MiB of the largest file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        verify(Path(name), args.command, args.size)
        load_params(Path(name), args.size)
    call()


if __name__ == "__main__":
    main()
