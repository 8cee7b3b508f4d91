"""Writes the output of the real 0.27 runtime for tensors: wheel-0.27.params, bool-0.27.params and dtypes.json.

    python make.py            (needs the wheel apache-tvm 0.27; writes into its own folder)

`dtypes.json` lists texts with the dtype that `tvm_ffi.dtype` reads from them (null: rejected), and numbers with the text that it prints.
"""

import json
import pathlib

import numpy as np
import tvm
import tvm_ffi

HERE = pathlib.Path(__file__).parent

TEXTS = """
int int8 int32 int64 int32x4 uint8 uint1 uint1x4 float float16 float32 float64 floatx4 bfloat bfloat16 bfloat16x8
bool bool1 boolx4 bool1x2 bool8x2 handle handle64 handlex4 void i8 u1 u32x2 f16 f64x4 bf16 bf16x2
fp8_e4m3fn f8_e5m2 fp6_e2m3fn f6_e3m2fn fp4_e2m1fn f4_e2m1fn
float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
float6_e2m3fn float6_e3m2fn float4_e2m1fn float4_e2m1fnx2 float4_e2m1fn_x2 float8_e4m3fnx4
int0 int08 int8x1 int8x04 int8x65535 int8xvscalex4 int8xvscalex32768 boolxvscalex2
Int32 int256 int264 int8x0 int8x int8x65536 int8y4 int-8 x4 i bf fp8 float8_ float8_e4m3fnz float8_e4m3fn_x2
float8_e4m3fnxvscalex2 complex64 e4m3_float8 str
""".split() + ["", " int32", "int32 ", "int32 x4"]

NUMBERS = [
    (0, 32, 1), (0, 8, 4), (1, 1, 1), (1, 1, 4), (1, 8, 1), (2, 16, 1), (2, 64, 2), (3, 64, 1), (3, 64, 4), (3, 0, 0),
    (4, 16, 1), (4, 16, 8), (6, 8, 1), (6, 8, 4), (6, 1, 1), (6, 1, 4), (7, 8, 1), (8, 8, 1), (9, 8, 1), (10, 8, 4),
    (11, 8, 1), (12, 8, 1), (13, 8, 1), (14, 8, 1), (15, 6, 1), (16, 6, 1), (17, 4, 2), (0, 8, 0), (2, 0, 1),
    (5, 64, 1), (18, 8, 1), (128, 8, 1),
]


def main():
    rng = np.random.default_rng(7)
    arrays = {}
    for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split():
        arrays[name] = rng.integers(0, 100, (2, 3)).astype(name)
    for name in "float16 float32 float64".split():
        arrays[name] = rng.standard_normal((3, 1, 2)).astype(name)
    arrays["scalar"] = np.array(2.5, "float32")
    arrays["empty"] = np.zeros((2, 0, 3), "int32")
    arrays["name with a space and \u00e9"] = np.arange(5, dtype="int8")
    save("wheel-0.27.params", arrays)
    save("bool-0.27.params", {"mask": np.array([True, False, True])})

    texts = [[text, read(text)] for text in TEXTS]
    numbers = [[list(three), printed(three)] for three in NUMBERS]
    lines = ["  " + json.dumps(line) for line in texts], ["  " + json.dumps(line) for line in numbers]
    (HERE / "dtypes.json").write_text(
        '{"read": [\n' + ",\n".join(lines[0]) + '\n], "printed": [\n' + ",\n".join(lines[1]) + "\n]}\n"
    )


def save(file, arrays):
    to_bytes = tvm_ffi.get_global_func("runtime.SaveParams")
    tensors = {name: tvm.runtime.tensor(array) for name, array in arrays.items()}
    (HERE / file).write_bytes(bytes(to_bytes(tensors)))
    np.savez(HERE / (file.rsplit(".", 1)[0] + ".npz"), **arrays)


def read(text):
    try:
        dtype = tvm_ffi.dtype(text)
    except ValueError:
        return None
    return [dtype.type_code, dtype.bits, dtype.lanes % 65536]


def printed(three):
    try:
        return str(tvm_ffi.dtype.from_dlpack_data_type(three))
    except ValueError:
        return None


if __name__ == "__main__":
    main()
