"""The extension module. Use the functions of the package, which have options and types."""

import os
from typing import Any, Callable, Mapping, Optional, Protocol, Sequence, Union

import numpy as np

_Place = tuple[str, str, list[int], int, int]
_Judged = tuple[str, str, str, str, list[str], bool]

LAST_RELEASE: str

def main(words: Sequence[str], program: Sequence[str]) -> int: ...
def report(
    kind: str,
    source: Any,
    name: Optional[str],
    layout: Optional[str],
    *,
    payload: Optional[str] = None,
    grammar: Sequence[str] = (),
    code: bool = False,
    release: Optional[str] = None,
    elsewhere: bool = False,
    lib: Optional[str] = None,
    runtime: Optional[str] = None,
    start: int = 0,
) -> str: ...
def rules(ids: Sequence[str]) -> str: ...
def minor(release: str) -> int: ...
def unpack(
    source: Any, name: Optional[str], layout: Optional[str], blob: Optional[int]
) -> tuple[str, dict[str, bytes], list[str]]: ...
def write(
    words: Sequence[str], source: Any = None, name: Optional[str] = None, files: Mapping[str, bytes] = ...
) -> tuple[bytes, list[str]]: ...
def read_params(file: Any, name: str, written_by: Optional[str]) -> list[_Place]: ...
def read_cache(index: bytes, path: str, name: str) -> list[tuple[str, list[tuple[_Place, bool]]]]: ...
def params_bytes(tensors: Sequence[tuple[str, str, Sequence[int], Any]]) -> bytes: ...
def load(path: Union[str, os.PathLike[str]]) -> Module:
    """Open a compiled library of any release. Its code runs with the rights of this process: load only files that you trust."""

def run(
    path: Union[str, os.PathLike[str]],
    inputs: dict[str, Any],
    function: str,
    devices: Sequence[str],
    graph: Optional[Union[str, os.PathLike[str]]] = None,
    params: Optional[Union[str, os.PathLike[str]]] = None,
) -> list[Tensor]: ...
def tensor(array: Union[np.ndarray[Any, Any], _Exporter, Sequence[Any], float]) -> Tensor:
    """Create a tensor with a copy of an array, of a tensor of any library, or of a list of numbers. It is aligned to 64 bytes as
    compiled code expects.
    """

class _Exporter(Protocol):
    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Tensor:
    """An array in memory that compiled code can use. numpy and every other library that knows DLPack read it without a copy."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the elements as an array of numpy, without a copy. Elements of less than eight bits are copied."""
    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]: ...
    def __dlpack__(
        self,
        *,
        stream: Any = ...,
        max_version: Optional[tuple[int, int]] = ...,
        dl_device: Optional[tuple[int, int]] = ...,
        copy: Optional[bool] = ...,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Function:
    """A function. Arguments are numbers, texts, bytes, arrays, lists, dictionaries, functions and None.

    Compiled code does not know which arrays are read-only, and may write to any argument. An array that is not compact or not aligned is
    copied before the call, and its changes are copied back. `tensor` creates arrays with the alignment that compiled code expects.
    """

    def __call__(self, *args: Any) -> Any: ...

class Module:
    """A loaded module: ``module["name"]`` is a function of it or of its imports."""

    @property
    def kind(self) -> str: ...
    @property
    def imports(self) -> tuple[Module, ...]: ...
    def __getitem__(self, name: str) -> Function: ...
    def __contains__(self, name: str) -> bool: ...

class Judge:
    def __init__(
        self, name: str, version: str, releases: Sequence[str], functions: dict[str, Callable[[dict[str, Any]], Any]]
    ) -> None: ...
    @staticmethod
    def operations() -> list[str]: ...
    def cases(self) -> list[str]: ...
    def run(
        self,
        chapters: Sequence[str],
        cases: Sequence[str],
        release: Optional[str] = None,
        known: Optional[str] = None,
        complete: bool = False,
    ) -> tuple[list[_Judged], str]: ...
