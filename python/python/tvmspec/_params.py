"""Parameter files and tensor caches as arrays of numpy, over the mapped file."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

from . import _tvmspec
from ._errors import Error

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_INDICES = ("tensor-cache.json", "ndarray-cache.json")


def load_params(path: Union[str, os.PathLike[str]], *, written_by: Optional[str] = None) -> dict[str, Array]:
    """Return the tensors of a parameter file or of a tensor cache (its index or its folder), by name.

    The arrays are read-only views of the mapped file, which the system reads when elements are used. Only elements of less than eight
    bits, and float32 that a cache stores as bfloat16, are copied. Types that numpy lacks come from ml_dtypes. `written_by` is the release
    that wrote a parameter file. It decides the meaning of type codes that differ between releases (TEN-02).
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        inside = (os.path.join(path, name) for name in _INDICES)
        path = next((index for index in inside if os.path.isfile(index)), path)
    if os.path.basename(path) in _INDICES:
        return _load_cache(path)
    mapped = _map(path)
    arrays = {}
    for name, dtype, shape, offset, size in _tvmspec.read_params(mapped, written_by):
        arrays[name] = _array(mapped, dtype, shape, offset, size)
    return arrays


def save_params(path: Union[str, os.PathLike[str]], params: Mapping[str, Any], *, bf16: bool = False) -> None:
    """Write arrays into a parameter file, or into a tensor cache if the path ends in ``tensor-cache.json`` (0.22 and later) or
    ``ndarray-cache.json`` (0.16 to 0.21). With `bf16`, a cache stores float32 as bfloat16, and the lower half of each value is lost.
    """
    import numpy as np

    tensors = []
    for name, value in params.items():
        array = value.numpy() if isinstance(value, _tvmspec.Tensor) else np.asarray(value)
        dtype = array.dtype.newbyteorder("=").name
        # `ascontiguousarray` turns a scalar into a list.
        compact = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1)
        if dtype == "bool":
            dtype = "bool"
        elif array.dtype.itemsize * 8 != _bits(dtype):
            raise Error(f"tensor `{name}`: a parameter file does not store elements of type {dtype} as numpy does")
        tensors.append((name, dtype, list(array.shape), compact.view(np.uint8)))
    _tvmspec.save_params(path, tensors, bf16)


def _load_cache(path: str) -> dict[str, Array]:
    with open(path, "rb") as file:
        text = file.read()
    arrays = {}
    for shard, tensors in _tvmspec.read_cache(text, os.path.basename(path)):
        if os.path.basename(shard) != shard:
            raise Error(f"{path}: the shard `{shard}` is not a name in the same folder [TEN-61]")
        mapped = _map(os.path.join(os.path.dirname(path), shard))
        for (name, dtype, shape, offset, size), is_half in tensors:
            if offset + size > len(mapped):
                raise Error(f"{path}: tensor `{name}` is not inside `{shard}` [TEN-54]")
            if is_half:
                arrays[name] = _array(mapped, "bfloat16", shape, offset, size).astype("float32")
            else:
                arrays[name] = _array(mapped, dtype, shape, offset, size)
    return arrays


def _map(path: str) -> Union[mmap.mmap, bytes]:
    with open(path, "rb") as file:
        # An empty file cannot be mapped.
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _array(mapped: Union[mmap.mmap, bytes], dtype: str, shape: list[int], offset: int, size: int) -> Array:
    import numpy as np

    dtype, lanes, count = dtype.partition("x")
    if lanes:
        shape = [*shape, int(count)]
    bits = _bits(dtype)
    if bits < 8 and dtype != "bool":
        return _unpacked(np.frombuffer(mapped, np.uint8, size, offset), dtype, bits, shape)
    kind = _dtype(dtype)
    return np.frombuffer(mapped, kind, size // kind.itemsize, offset).reshape(shape)


def _unpacked(packed: Array, dtype: str, bits: int, shape: list[int]) -> Array:
    """Unpack elements of less than eight bits into a byte each. The file packs them from the lowest bit on."""
    import math

    import numpy as np

    spread = np.unpackbits(packed, bitorder="little")
    count = math.prod(shape)
    places = spread[: count * bits].reshape(count, bits)
    whole = np.packbits(places, axis=1, bitorder="little").reshape(shape)
    if dtype.startswith("int"):
        # The sign bit fills the byte.
        signed = (whole.view(np.int8) << (8 - bits)) >> (8 - bits)
        return signed.astype(_dtype(dtype))
    return whole.view(_dtype(dtype))


def _bits(dtype: str) -> int:
    """Return the bits in the name of a type, at its end or before ``_``: 32 for ``float32``, 8 for ``float8_e4m3fn``."""
    digits = dtype.split("_")[0].lstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) if digits.isdigit() else 8


def _dtype(name: str) -> np.dtype[Any]:
    import numpy as np

    if name == "uint1":
        name = "bool"
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        kind: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return kind
    except ImportError:
        raise Error(f"numpy has no {name}: install ml_dtypes, which has it") from None
    except AttributeError:
        raise Error(f"neither numpy nor ml_dtypes has a type for elements of {name}") from None
