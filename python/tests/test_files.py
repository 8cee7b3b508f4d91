"""unpack, pack, convert, parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvmspec


def test_pack_restores_what_unpack_takes_apart(golden: Path, tmp_path: Path) -> None:
    data = (golden / "blob/opencl.bin").read_bytes()
    parts = tvmspec.unpack(data)
    assert tvmspec.pack(parts) == data
    parts.write(tmp_path)
    tvmspec.pack(tmp_path / "manifest.json", tmp_path / "again.bin")
    assert (tmp_path / "again.bin").read_bytes() == data
    tvmspec.pack(parts, tmp_path / "memory.bin")
    assert (tmp_path / "memory.bin").read_bytes() == data
    with pytest.raises(tvmspec.Error):
        tvmspec.pack({"layout": "0.22", "modules": [{"kind": "cuda", "file": "missing"}]})


def test_convert(golden: Path, tmp_path: Path) -> None:
    path = golden / "blob/opencl.bin"
    older = tvmspec.convert(path, layout="0.7")
    assert tvmspec.inspect(older, layout="0.7").libraries[0].layout == "0.7"
    tvmspec.convert(path, tmp_path / "older.bin", layout="0.7")
    assert (tmp_path / "older.bin").read_bytes() == older
    tvmspec.convert(path.read_bytes(), tmp_path / "buffer.bin", layout="0.7")
    assert (tmp_path / "buffer.bin").read_bytes() == older
    with pytest.raises(tvmspec.Violation):
        tvmspec.convert(path.read_bytes()[:-1])
    with pytest.raises(FileNotFoundError):
        tvmspec.convert(tmp_path / "none.bin", tmp_path / "out.bin")


TYPES = ["float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "uint64", "bool"]


@pytest.mark.parametrize("target", ["all.params", "tensor-cache.json", "ndarray-cache.json"])
def test_parameters_of_every_type_come_back(tmp_path: Path, target: str) -> None:
    values = np.arange(6).reshape(2, 3)
    params = {name: values.astype(name) for name in TYPES if target == "all.params" or name != "bool"}
    params.update(scalar=np.float32(7), empty=np.zeros((0, 4), "float32"), transposed=params["float32"].T)
    params["swapped"] = values.astype(">f4")
    tvmspec.save_params(tmp_path / target, params)
    assert tvmspec.verify(tmp_path / target).ok
    loaded = tvmspec.load_params(tmp_path / target)
    assert list(loaded) == list(params)
    for name, array in loaded.items():
        assert array.shape == np.shape(params[name]), name
        np.testing.assert_array_equal(array, params[name])
        assert array.dtype == np.asarray(params[name]).dtype.newbyteorder("="), name
    assert not loaded["float32"].flags.writeable


def test_parameters_are_views_of_the_mapped_file(tmp_path: Path) -> None:
    tvmspec.save_params(tmp_path / "x.params", {"x": np.ones(1000, "float32")})
    array = tvmspec.load_params(tmp_path / "x.params")["x"]
    base = array
    while isinstance(base, np.ndarray):
        base = base.base  # type: ignore[assignment]
    assert "mmap" in repr(memoryview(base).obj if isinstance(base, memoryview) else base)


def test_bfloat16(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.0, -2.5, 3.25], "float32")
    tvmspec.save_params(tmp_path / "half.params", {"x": values.astype(ml_dtypes.bfloat16)})
    loaded = tvmspec.load_params(tmp_path / "half.params")["x"]
    assert loaded.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(loaded.astype("float32"), values)
    tvmspec.save_params(tmp_path / "tensor-cache.json", {"x": values}, bf16=True)
    loaded = tvmspec.load_params(tmp_path)["x"]
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, values)


def test_parameters_of_goldens(golden: Path) -> None:
    read = 0
    for path in sorted(golden.rglob("*.params")):
        try:
            info = tvmspec.inspect(path)
            loaded = tvmspec.load_params(path)
        except tvmspec.Error:
            continue
        assert [(tensor.name, list(tensor.shape)) for tensor in info.tensors] == [
            (name, list(array.shape[: len(tensor.shape)]))
            for tensor, (name, array) in zip(info.tensors, loaded.items())
        ]
        read += 1
    assert read >= 5


def test_broken_parameters_raise(tmp_path: Path) -> None:
    (tmp_path / "x.params").write_bytes(b"\0" * 64)
    with pytest.raises(tvmspec.Violation) as raised:
        tvmspec.load_params(tmp_path / "x.params")
    assert raised.value.rule == "TEN-40" and raised.value.offset == 0
    (tmp_path / "empty.params").write_bytes(b"")
    with pytest.raises(tvmspec.Violation):
        tvmspec.load_params(tmp_path / "empty.params")
    with pytest.raises(FileNotFoundError):
        tvmspec.load_params(tmp_path / "none.params")
