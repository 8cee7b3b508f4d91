"""load_params and save_params: values, types of each era, and what happens to the file."""

from __future__ import annotations

import json
import math
import os
import struct
from pathlib import Path
from typing import Any, Iterator

import numpy as np
import pytest

import tvmspec

TYPES = ["float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "uint64", "bool"]


@pytest.mark.parametrize("target", ["all.params", "tensor-cache.json", "ndarray-cache.json"])
def test_parameters_of_every_type_come_back(tmp_path: Path, target: str) -> None:
    values = np.arange(6).reshape(2, 3)
    params: dict[str, Any] = {name: values.astype(name) for name in TYPES}
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
        assert not array.flags.writeable, name


def test_parameters_are_views_of_the_mapped_file(tmp_path: Path) -> None:
    path = tmp_path / "x.params"
    tvmspec.save_params(path, {"x": np.ones(1000, "float32")})
    before = path.read_bytes()
    array = tvmspec.load_params(path)["x"]
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    assert "mmap" in repr(memoryview(base).obj if isinstance(base, memoryview) else base)
    with pytest.raises(ValueError):
        array[0] = 5
    # Compiled code does not know the flag. Its writes reach a private page, and not the file.
    array.flags.writeable = True
    array[0] = 5
    assert path.read_bytes() == before
    assert tvmspec.load_params(path)["x"][0] == 1
    # A new file under the name does not change the array over the old one.
    tvmspec.save_params(path, {"x": np.zeros(1000, "float32")})
    assert array[1] == 1


def stored(data: bytes) -> Iterator[tuple[str, tuple[int, int, int], list[int], bytes]]:
    """Read a parameter file with `struct` alone."""
    count = struct.unpack_from("<Q", data, 16)[0]
    at, names = 24, []
    for _ in range(count):
        length = struct.unpack_from("<Q", data, at)[0]
        names.append(data[at + 8 : at + 8 + length].decode())
        at += 8 + length
    at += 8
    for name in names:
        rank, code, bits, lanes = struct.unpack_from("<iBBH", data, at + 24)
        shape = list(struct.unpack_from(f"<{rank}q", data, at + 32))
        at += 32 + 8 * rank
        size = struct.unpack_from("<q", data, at)[0]
        yield name, (code, bits, lanes), shape, data[at + 8 : at + 8 + size]
        at += 8 + size


def test_values_of_goldens(golden: Path) -> None:
    read, seen = 0, set()
    for path in sorted(golden.rglob("*.params")):
        release = path.stem.rsplit("-", 1)[-1] if path.parent.name == "tensor" else path.parent.name
        if path.parents[1].name == "models":
            release = path.parent.name
        try:
            found = tvmspec.verify(path)
        except tvmspec.Error:
            continue
        if not found.ok:
            continue
        try:
            loaded = tvmspec.load_params(path)
        except tvmspec.Error as error:
            assert "written_by" in str(error) and "TEN-02" in str(error), path
            loaded = tvmspec.load_params(path, written_by=release)
        expected = list(stored(path.read_bytes()))
        assert [name for name, *_ in expected] == list(loaded), path
        for (name, (code, bits, lanes), shape, data), array in zip(expected, loaded.values()):
            seen.add((code, bits, lanes))
            assert list(array.shape[: len(shape)]) == shape, (path, name)
            if bits >= 8 or bits == 1:
                assert array.tobytes() == data, (path, name)
            if (code, bits) in ((1, 1), (6, 8)) and "e4m3" not in name and not array.dtype.name.startswith("float8"):
                assert array.dtype == bool, (path, name)
        read += 1
    assert read >= 15 and {(1, 1, 1), (6, 8, 1), (0, 4, 1)} & seen and len(seen) >= 12, (read, seen)


@pytest.mark.parametrize("name", ["all_dtypes-0.8", "all_dtypes-0.19", "bool-0.27", "wheel-0.27"])
def test_values_as_the_release_states_them(golden: Path, name: str) -> None:
    expected = dict(np.load(golden / f"tensor/{name}.npz"))
    for written_by in (None, name.rsplit("-", 1)[-1]):
        loaded = tvmspec.load_params(golden / f"tensor/{name}.params", written_by=written_by)
        compared = 0
        for key, array in expected.items():
            if key in loaded and loaded[key].dtype == array.dtype:
                np.testing.assert_array_equal(loaded[key], array, err_msg=key)
                compared += 1
        assert compared >= len(expected) - 2, (compared, {key: loaded[key].dtype for key in loaded})


@pytest.mark.parametrize("written_by", [None, "0.5", "0.8", "0.13", "0.22", "0.23", "0.25", "0.26", "0.27"])
def test_a_boolean_of_one_bit_takes_a_byte_up_to_0_25(tmp_path: Path, written_by: "str | None") -> None:
    path = tmp_path / "x.params"
    packs = written_by in ("0.26", "0.27")
    tvmspec.save_params(path, {"x": np.array([0b1101, 0, 0, 0] if packs else [1, 0, 1, 1], "uint8")})
    data = path.read_bytes()
    # The type: code, bits, lanes; before the extent and the number of bytes.
    at = len(data) - 4 - 16 - 4
    assert data[at : at + 4] == bytes([1, 8, 1, 0])
    path.write_bytes(data[:at] + bytes([1, 1, 1, 0]) + data[at + 4 :])
    loaded = tvmspec.load_params(path, written_by=written_by)["x"]
    assert loaded.dtype == bool and loaded.tolist() == [True, False, True, True]


@pytest.mark.parametrize("written_by", ["0.16", "0.17", "0.18", "0.19"])
def test_float8_of_releases_that_called_it_otherwise(golden: Path, written_by: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    path = golden / "tensor/e4m3-0.16.params"
    ((_, _, _, data),) = stored(path.read_bytes())
    (array,) = tvmspec.load_params(path, written_by=written_by).values()
    assert array.dtype == ml_dtypes.float8_e4m3fn and array.tobytes() == data
    with pytest.raises(tvmspec.Error, match="written_by"):
        tvmspec.load_params(path)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e8m0fnu", "bfloat16"])
def test_small_floats_come_back(tmp_path: Path, name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.0, 2.0, 0.5, 4.0]).astype(getattr(ml_dtypes, name))
    tvmspec.save_params(tmp_path / "x.params", {"x": values})
    loaded = tvmspec.load_params(tmp_path / "x.params", written_by="0.27")["x"]
    assert loaded.dtype == values.dtype and loaded.tobytes() == values.tobytes()


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn", "float6_e2m3fn"])
def test_elements_of_less_than_eight_bits(tmp_path: Path, name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([[1, 0, 1], [-1, 0, 1], [1, 1, 0]], "float32")
    if name.startswith("uint"):
        values = np.abs(values)
    values = values.astype(getattr(ml_dtypes, name))
    tvmspec.save_params(tmp_path / "x.params", {"x": values})
    ((_, (_, bits, _), shape, data),) = stored((tmp_path / "x.params").read_bytes())
    # The packed elements come first, in a record with a byte for each.
    assert shape == [3, 3] and len(data) == 9 and not any(data[math.ceil(9 * bits / 8) :])
    loaded = tvmspec.load_params(tmp_path / "x.params")["x"]
    assert loaded.dtype == values.dtype
    np.testing.assert_array_equal(loaded.astype("float32"), values.astype("float32"))
    if name == "int4":
        assert data == bytes([0x01, 0xF1, 0x10, 0x11, 0, 0, 0, 0, 0])


def test_elements_of_four_bits_before_they_were_packed(tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    path = tmp_path / "x.params"
    tvmspec.save_params(path, {"x": np.array([1, 15, 3], "int8")})
    data = path.read_bytes()
    at = len(data) - 3 - 16 - 4
    assert data[at : at + 4] == bytes([0, 8, 1, 0])
    path.write_bytes(data[:at] + bytes([0, 4, 1, 0]) + data[at + 4 :])
    assert tvmspec.load_params(path, written_by="0.20")["x"].tolist() == [1, -1, 3]
    assert tvmspec.load_params(path, written_by="0.21")["x"].tolist() == [1, 0, -1]


def cache(folder: Path, file: str, dtype: str, shape: list[int], data: bytes) -> Path:
    tensor = {"name": "x", "shape": shape, "dtype": dtype, "format": "raw", "nbytes": len(data), "byteOffset": 0}
    shard = {"dataPath": "params_shard_0.bin", "format": "raw-shard", "nbytes": len(data), "records": [tensor]}
    (folder / "params_shard_0.bin").write_bytes(data)
    (folder / file).write_text(json.dumps({"metadata": {}, "records": [shard]}))
    return folder / file


@pytest.mark.parametrize("file", ["tensor-cache.json", "ndarray-cache.json"])
@pytest.mark.parametrize(
    ("dtype", "data", "values"),
    [
        ("uint1", b"\1\0\1\1\0\0\0\0\1", [1, 0, 1, 1, 0, 0, 0, 0, 1]),
        ("uint1", b"\x0d\1", [1, 0, 1, 1, 0, 0, 0, 0, 1]),
        ("int4", b"\x21\xf3\x04", [1, 2, 3, -1, 4]),
        ("int4", b"\x01\x02\x03\x0f\x04", [1, 2, 3, -1, 4]),
        ("int4", b"\x01\x02\x03\xff\x04", [1, 2, 3, -1, 4]),
        ("uint4", b"\x21\xf3\x04", [1, 2, 3, 15, 4]),
    ],
)
def test_caches_store_few_bits_packed_or_in_bytes(
    tmp_path: Path, file: str, dtype: str, data: bytes, values: list[int]
) -> None:
    pytest.importorskip("ml_dtypes")
    path = cache(tmp_path, file, dtype, [len(values)], data)
    loaded = tvmspec.load_params(path)["x"]
    assert loaded.astype("int64").tolist() == values
    assert dtype != "uint1" or loaded.dtype == bool


@pytest.mark.parametrize("name", ["cache-0.19/ndarray-cache.json", "cache-0.27/tensor-cache.json"])
def test_caches_of_releases(golden: Path, name: str) -> None:
    pytest.importorskip("ml_dtypes")
    path = golden / "tensor" / name
    loaded = tvmspec.load_params(path.parent)
    compared = 0
    for shard in json.loads(path.read_text())["records"]:
        data = (path.parent / shard["dataPath"]).read_bytes()
        for record in shard["records"]:
            part = data[record["byteOffset"] : record["byteOffset"] + record["nbytes"]]
            array = loaded[record["name"]]
            assert list(array.shape) == record["shape"]
            if record["format"] == "f32-to-bf16" and record["dtype"] == "float32":
                halves = np.frombuffer(part, "uint16").astype("uint32") << 16
                assert array.tobytes() == halves.tobytes() and array.dtype == np.float32
            elif array.dtype.itemsize * array.size == len(part):
                assert array.tobytes() == part, record
            compared += 1
    assert compared == len(loaded) >= 8


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
    with pytest.raises(ValueError, match="bf16"):
        tvmspec.save_params(tmp_path / "half.params", {"x": values}, bf16=True)


@pytest.mark.parametrize("file", ["tensor-cache.json", "ndarray-cache.json"])
def test_convert_parameters(tmp_path: Path, file: str) -> None:
    values = np.array([1.0, -2.5, 3.25], "float32")
    tvmspec.save_params(tmp_path / "x.params", {"x": values, "mask": np.array([True, False])})
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    tvmspec.convert(tmp_path / "x.params", tmp_path / "a" / file, bf16=True)
    tvmspec.convert((tmp_path / "x.params").read_bytes(), tmp_path / "b" / file, written_by="0.27")
    for folder in ("a", "b"):
        loaded = tvmspec.load_params(tmp_path / folder)
        np.testing.assert_array_equal(loaded["x"], values)
        assert loaded["mask"].tolist() == [True, False]
    assert len(tvmspec.convert(tmp_path / "a" / file)) == len((tmp_path / "x.params").read_bytes())
    with pytest.raises(tvmspec.Error, match="tensor cache"):
        tvmspec.convert(tmp_path / "x.params", tmp_path / "x.bin")
    with pytest.raises(tvmspec.Error):
        tvmspec.convert((tmp_path / "a" / file).read_bytes(), tmp_path / "y.params")


def test_arrays_that_a_file_cannot_store(tmp_path: Path) -> None:
    for wrong in (np.zeros(3, "complex64"), np.zeros(3, "datetime64[s]"), np.array(["x"]), np.array([object()])):
        with pytest.raises(tvmspec.Error, match="x"):
            tvmspec.save_params(tmp_path / "x.params", {"x": wrong})
    with pytest.raises(TypeError):
        tvmspec.save_params(tmp_path / "x.params", {3: np.zeros(3)})  # type: ignore[dict-item]
    assert not os.listdir(tmp_path)


def test_broken_parameters_raise(tmp_path: Path) -> None:
    (tmp_path / "x.params").write_bytes(b"\0" * 64)
    with pytest.raises(tvmspec.Violation) as raised:
        tvmspec.load_params(tmp_path / "x.params")
    assert raised.value.rule == "TEN-40" and raised.value.offset == 0
    assert raised.value.file == str(tmp_path / "x.params")
    (tmp_path / "empty.params").write_bytes(b"")
    with pytest.raises(tvmspec.Violation):
        tvmspec.load_params(tmp_path / "empty.params")
    path = cache(tmp_path, "tensor-cache.json", "float32", [2], b"\0" * 8)
    text = path.read_text()
    for old, new, rule in (("params_shard_0.bin", "../x.bin", "TEN-61"), ('"nbytes": 8', '"nbytes": 9', "TEN-")):
        path.write_text(text.replace(old, new))
        with pytest.raises(tvmspec.Violation) as raised:
            tvmspec.load_params(path)
        assert str(raised.value.rule).startswith(rule) and raised.value.file == str(path)
    path.write_text(text)
    (tmp_path / "params_shard_0.bin").write_bytes(b"")
    with pytest.raises(tvmspec.Violation):
        tvmspec.load_params(path)
    os.remove(tmp_path / "params_shard_0.bin")
    with pytest.raises(FileNotFoundError):
        tvmspec.load_params(path)
