"""Parameter files and tensor caches as arrays of numpy, over the mapped file."""

from __future__ import annotations

import math
import mmap
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

from . import _tvmspec
from ._errors import Error, Violation
from ._files import write
from ._types import Array, Path

if TYPE_CHECKING:
    import numpy as np

_INDICES = ("tensor-cache.json", "ndarray-cache.json")

#: Types whose name changed in 0.20.
_NEW_NAMES = {"e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2"}


def load_params(path: Path, *, written_by: Optional[str] = None) -> dict[str, Array]:
    """Return the tensors of a parameter file or of a tensor cache (its index or its folder), by name.

    The arrays are read-only views of the mapped file, which the system reads when elements are used. Code that writes to them all the same
    changes only memory. Only elements of two to seven bits, and float32 that a cache stores as bfloat16, are copied. Types that numpy
    lacks come from ml_dtypes. `written_by` is the release that wrote a parameter file, which is needed if it decides the meaning of a
    type code (TEN-02).
    """
    path = os.fsdecode(path)
    if os.path.isdir(path):
        inside = (os.path.join(path, name) for name in _INDICES)
        path = next((index for index in inside if os.path.isfile(index)), path)
    if os.path.basename(path) in _INDICES:
        return _load_cache(path)
    mapped = _map(path)
    arrays = {}
    for name, dtype, shape, offset, size in _tvmspec.read_params(mapped, _shown(path), written_by):
        arrays[name] = _array(mapped, dtype, shape, offset, size)
    return arrays


def save_params(path: Path, params: Mapping[str, Any], *, bf16: bool = False) -> None:
    """Write arrays into a parameter file, or into a tensor cache if the path ends in ``tensor-cache.json`` (0.22 and later) or
    ``ndarray-cache.json`` (0.16 to 0.21). With `bf16`, a cache stores float32 as bfloat16, and the lower half of each value is lost.
    """
    path = os.fsdecode(path)
    data = _tvmspec.params_bytes([_stored(name, value) for name, value in params.items()])
    if os.path.basename(path) in _INDICES:
        write("convert", data, path, bf16=bf16, written_by=_tvmspec.LAST_RELEASE)
    elif bf16:
        raise ValueError("bf16 is for a tensor cache, whose path ends in tensor-cache.json or ndarray-cache.json")
    else:
        _replace(path, data)


def _stored(name: str, value: Any) -> tuple[str, str, list[int], Any]:
    """Return the name, the element type, the extents and the bytes of a tensor."""
    import numpy as np

    array = value.numpy() if isinstance(value, _tvmspec.Tensor) else np.asarray(value)
    dtype = array.dtype.newbyteorder("=").name
    bits = 8 if dtype == "bool" else _bits(dtype)
    if array.dtype.itemsize * 8 != (bits + 7) // 8 * 8 or array.dtype.hasobject:
        raise Error(f"tensor `{name}`: a parameter file does not store elements of type {dtype}")
    # `ascontiguousarray` turns a scalar into a list.
    compact = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
    if bits < 8:
        places = np.unpackbits(compact.reshape(-1, 1), axis=1, bitorder="little")[:, :bits]
        packed = np.packbits(places, bitorder="little")
        # TEN-31: a record has a byte for each element. The packed ones come first.
        compact = np.pad(packed, (0, array.size - packed.size))
    return name, dtype, list(array.shape), compact


def _replace(path: str, data: bytes) -> None:
    """Write a file that appears when it is complete, so that arrays over the old file keep their bytes."""
    if os.path.exists(path) and not os.path.isfile(path):
        # A pipe or a device cannot be replaced, only written to.
        with open(path, "wb") as file:
            file.write(data)
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError):
            error.filename, error.filename2 = path, None
        with suppress(OSError):
            os.remove(temporary)
        raise


def _load_cache(path: str) -> dict[str, Array]:
    with open(path, "rb") as file:
        text = file.read()
    arrays = {}
    for shard, tensors in _tvmspec.read_cache(text, _shown(path), os.path.basename(path)):
        if os.path.basename(shard) != shard:
            raise _violation(path, f"the shard `{shard}` is not a name in the same folder", "TEN-61")
        mapped = _map(os.path.join(os.path.dirname(path), shard))
        for (name, dtype, shape, offset, size), is_half in tensors:
            if offset + size > len(mapped):
                raise _violation(path, f"tensor `{name}` is not inside `{shard}`", "TEN-54")
            if is_half:
                arrays[name] = _widened(_array(mapped, "uint16", shape, offset, size))
            else:
                arrays[name] = _array(mapped, dtype, shape, offset, size)
    return arrays


def _violation(path: str, message: str, rule: str) -> Violation:
    return Violation(message, rule, "malformed", file=_shown(path))


def _shown(path: str) -> str:
    """Return a path as text without surrogates, which stand for bytes that are not UTF-8."""
    return os.fsencode(path).decode(errors="replace")


def _map(path: str) -> Union[mmap.mmap, bytes]:
    with open(path, "rb") as file:
        # An empty file cannot be mapped.
        if os.fstat(file.fileno()).st_size == 0:
            return file.read()
        try:
            # Code that ignores the flag of a read-only array writes to a copy of the page. Without it, the process would end.
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except OSError:
            # A system that promises no more memory than it has refuses a large map that can be written.
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _array(mapped: Union[mmap.mmap, bytes], dtype: str, shape: list[int], offset: int, size: int) -> Array:
    """Return the array over the bytes of one tensor."""
    import numpy as np

    name, _, lanes = dtype.partition("x")
    if lanes:
        if not lanes.isdigit():
            raise Error(f"numpy has no vectors whose number of lanes is not known: {dtype}")
        shape = [*shape, int(lanes)]
    bits = 1 if name == "bool" else _bits(name)
    # TEN-35: a boolean takes a byte. Only 0.26 and 0.27 pack those of one bit.
    kind = np.dtype(bool) if bits == 1 else _dtype(name)
    if bits < 8 and not (bits == 1 and size == math.prod(shape)):
        array = _unpacked(np.frombuffer(mapped, np.uint8, size, offset), name, bits, kind, shape)
    else:
        array = np.frombuffer(mapped, kind, size // kind.itemsize, offset).reshape(shape)
    array.flags.writeable = False
    return array


def _unpacked(stored: Array, name: str, bits: int, kind: np.dtype[Any], shape: list[int]) -> Array:
    """Return elements of less than eight bits in a byte each. They are packed from the lowest bit on, or stored in a byte each."""
    import numpy as np

    count = math.prod(shape)
    if stored.size == (count * bits + 7) // 8:
        places = np.unpackbits(stored, bitorder="little")[: count * bits].reshape(count, bits)
    else:
        places = np.unpackbits(stored.reshape(count, 1), axis=1, bitorder="little")[:, :bits]
    values = np.packbits(places, axis=1, bitorder="little").reshape(shape)
    if name.startswith("int"):
        # The sign bit fills the byte.
        signed: Array = (values.view(np.int8) << (8 - bits)) >> (8 - bits)
        return signed.astype(kind)
    return values.view(kind)


def _widened(halves: Array) -> Array:
    """Return float32 whose upper halves are given."""
    import numpy as np

    whole: Array = (halves.astype(np.uint32) << 16).view(np.float32)
    whole.flags.writeable = False
    return whole


def _bits(dtype: str) -> int:
    """Return the bits in the name of a type, such as 32 for ``float32``, and 8 for ``float8_e4m3fn`` and ``e4m3_float8``."""
    name = _NEW_NAMES.get(dtype, dtype)
    digits = name.split("_")[0].lstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) if digits.isdigit() else 8


def _dtype(name: str) -> np.dtype[Any]:
    import numpy as np

    name = _NEW_NAMES.get(name, name)
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
