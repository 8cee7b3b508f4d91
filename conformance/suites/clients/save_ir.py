"""Saves IR with a constant, which hashes keys by a hook of TVM's, and looks constants up in maps of both sides."""

import tvm
import tvm_ffi

try:
    from tvm import tirx
except ImportError:
    from tvm import tir as tirx

x = tirx.Var("x", "int32")
text = tvm.ir.save_json(x + 1)
print("PASSED save")
assert str(tvm.ir.load_json(text)) == "x + 1"
print("PASSED load")
keys = {tirx.IntImm("int32", number): number for number in range(20)}
table = tvm_ffi.convert(keys)
assert len(table) == 20 and all(table[key] == number for key, number in keys.items())
print("PASSED keys")
tvm.ir.assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(tirx.IntImm("int64", 7))), tirx.IntImm("int64", 7))
print("PASSED equal")
