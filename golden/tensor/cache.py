"""Writes the tensor caches of this folder with the TVM of its Python: `python cache.py FOLDER`.

0.19 writes `cache-0.19` in the default encoding, and 0.27 writes `cache-0.27` as raw. Shards have at most 96 bytes.
"""

import sys

import numpy as np
import tvm
from tvm.contrib import tvmjs

FLOATS = np.array([1.0, -3.3895314e38, 3.4028235e38, np.inf, -0.0, 1e-40, 1.00390625, 1.01171875], "f4")

PARAMS = {
    "embed.weight": (np.arange(24, dtype="f4").reshape(4, 6) - 11.5) / 7,
    "norm": FLOATS,
    "q_weight": np.arange(10, dtype="u4").reshape(2, 5) * 411411,
    "q_scale": np.array([[0.5, -2.25, 65504.0]], "f2"),
    "bias": np.arange(-3, 4).astype("i1"),
    "mask": np.array([True, False, True]),
    "scalar": np.array(7, "i8"),
    "empty": np.zeros((0, 2), "f4"),
}

old = hasattr(tvmjs, "dump_ndarray_cache")
dump = tvmjs.dump_ndarray_cache if old else tvmjs.dump_tensor_cache
dump(
    PARAMS,
    sys.argv[1],
    encode_format="f32-to-bf16" if old else "raw",
    meta_data={"ParamSize": len(PARAMS), "ParamBytes": 250.0},
    shard_cap_mb=96 / (1 << 20),
    show_progress=False,
)
