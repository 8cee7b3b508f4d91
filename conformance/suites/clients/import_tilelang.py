"""Imports tilelang, and creates data types from text as it does: prints the result of each, or that it is rejected."""

import tilelang
import tvm_ffi

print(f"PASSED import-{tilelang.__version__}")
for text in ("float32", "float8_e4m3", "custom[tfloat32]", "custom[tfloat32]x4", "custom[nobody]"):
    try:
        made = tvm_ffi.dtype(text)
        read = f"{made},{made.bits},{made.lanes}"
    except Exception:
        read = "rejected"
    print(f"PASSED {text}={read}")
