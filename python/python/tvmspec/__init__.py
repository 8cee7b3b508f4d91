"""The TVM runtime, specified: read, verify, convert and run what TVM compiles, in every release, and judge any implementation.

A *source* is a path, or bytes in any object with the buffer protocol, which are not copied. A path is mapped. Nothing of a file is
executed, except by `load` and `run`.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union, cast, overload

from . import _results, _tvmspec
from ._check import Answer, CaseResult, Report, check
from ._errors import Error, Violation
from ._params import load_params, save_params
from ._results import (
    Account,
    BrokenRule,
    Dump,
    DumpUnit,
    Explanation,
    FieldSpan,
    Finding,
    Inspection,
    LibraryInfo,
    Load,
    ModuleInfo,
    Part,
    Rule,
    TensorInfo,
    Unpacked,
    Verification,
)
from ._tvmspec import Function, Module, Tensor, load, tensor

if TYPE_CHECKING:
    import mmap

    import numpy as np

    Path = Union[str, os.PathLike[str]]
    Source = Union[Path, bytes, bytearray, memoryview, mmap.mmap, np.ndarray[Any, Any]]

__all__ = [
    "Account", "Answer", "BrokenRule", "CaseResult", "Dump", "DumpUnit", "Error", "Explanation", "FieldSpan", "Finding", "Function",
    "Inspection", "LibraryInfo", "Load", "Module", "ModuleInfo", "Part", "Report", "Rule", "Tensor", "TensorInfo", "Unpacked",
    "Verification", "Violation", "check", "convert", "dump", "explain", "inspect", "load", "load_params", "pack", "rule", "rules", "run",
    "save_params", "tensor", "unpack", "verify",
]  # fmt: skip


def inspect(
    source: Source,
    *,
    layout: Optional[str] = None,
    kind: Optional[str] = None,
    grammar: Iterable[str] = (),
    code: bool = False,
    name: Optional[str] = None,
) -> Inspection:
    """Show the content of a file: layout, modules, import tree, functions, tensors.

    `layout` (0.2, 0.7, 0.21 or 0.22) overrides the layout that symbols and bytes indicate. With `kind`, the file is read as the payload
    of a module of this kind. `grammar` has texts ``KIND=KNOWN`` for kinds that no release has. `code` adds the code of executables.
    `name` is the file name that reports show for a buffer.
    """
    text = _tvmspec.report("inspect", source, name, layout, payload=kind, grammar=list(grammar), code=code)
    return _results.inspection(text)


def verify(
    source: Source,
    *,
    layout: Optional[str] = None,
    kind: Optional[str] = None,
    grammar: Iterable[str] = (),
    name: Optional[str] = None,
) -> Verification:
    """Find every broken rule and every tolerated oddity. Takes the options of `inspect`."""
    text = _tvmspec.report("verify", source, name, layout, payload=kind, grammar=list(grammar))
    return _results.verification(text)


def explain(
    source: Source,
    *,
    layout: Optional[str] = None,
    release: Optional[str] = None,
    elsewhere: bool = False,
    grammar: Iterable[str] = (),
    name: Optional[str] = None,
) -> Explanation:
    """Show for each release whether it loads the file, or why not.

    `release` limits the answer to one release. `elsewhere` ignores the libraries and devices of this machine.
    """
    text = _tvmspec.report("explain", source, name, layout, grammar=list(grammar), release=release, elsewhere=elsewhere)
    return _results.explanation(text, _name_of(source, name))


def dump(
    source: Source,
    *,
    layout: Optional[str] = None,
    kind: Optional[str] = None,
    start: int = 0,
    name: Optional[str] = None,
) -> Dump:
    """List every field with its bytes and its rule. Fields that end at `start` or before are left out."""
    text = _tvmspec.report("dump", source, name, layout, payload=kind, start=start)
    return _results.dump(text, _name_of(source, name))


def unpack(source: Source, *, layout: Optional[str] = None, blob: Optional[int] = None, name: Optional[str] = None) -> Unpacked:
    """Split a library binary into modules from which `pack` rebuilds it. `blob` is its number, from 0, if the file has several."""
    text, files = _tvmspec.unpack(source, name, layout, blob)
    return Unpacked(text, json.loads(text), files)


@overload
def pack(
    manifest: Union[Unpacked, Mapping[str, Any]],
    output: None = None,
    *,
    files: Optional[Mapping[str, bytes]] = None,
    layout: Optional[str] = None,
    order: Optional[str] = None,
) -> bytes: ...
@overload
def pack(
    manifest: Union[Unpacked, Mapping[str, Any], Path],
    output: Path,
    *,
    files: Optional[Mapping[str, bytes]] = None,
    layout: Optional[str] = None,
    order: Optional[str] = None,
) -> None: ...
def pack(
    manifest: Union[Unpacked, Mapping[str, Any], Path],
    output: Optional[Path] = None,
    *,
    files: Optional[Mapping[str, bytes]] = None,
    layout: Optional[str] = None,
    order: Optional[str] = None,
) -> Optional[bytes]:
    """Build a library binary from a list of modules.

    Returns its bytes, or writes the file `output` (.bin, .c, .o, .so or .tar). The manifest is a result of `unpack`, a dictionary as
    `spec/schema/manifest.json` describes it with the payloads in `files`, or the path of a TOML or JSON file.
    """
    if isinstance(manifest, Unpacked):
        files = manifest.files if files is None else files
        manifest = manifest.manifest
    if isinstance(manifest, Mapping):
        if output is None:
            return _tvmspec.pack(dict(manifest), dict(files or {}), layout, order)
        with tempfile.TemporaryDirectory() as folder:
            Unpacked(json.dumps(manifest), manifest, files or {}).write(folder)
            pack(os.path.join(folder, "manifest.json"), output, layout=layout, order=order)
        return None
    if output is None:
        raise TypeError("the manifest is a file: `output` is the file to write")
    options = _options(layout=layout, order=order)
    _tvmspec.write(["tvmspec", "pack", os.fspath(manifest), "-o", os.fspath(output), *options])
    return None


@overload
def convert(
    source: Source, output: None = None, *, layout: Optional[str] = None, from_layout: Optional[str] = None, blob: Optional[int] = None
) -> bytes: ...
@overload
def convert(
    source: Source,
    output: Path,
    *,
    layout: Optional[str] = None,
    from_layout: Optional[str] = None,
    blob: Optional[int] = None,
    whole: bool = False,
) -> None: ...
def convert(
    source: Source,
    output: Optional[Path] = None,
    *,
    layout: Optional[str] = None,
    from_layout: Optional[str] = None,
    blob: Optional[int] = None,
    whole: bool = False,
) -> Optional[bytes]:
    """Rewrite a library binary in another layout.

    Returns its bytes, or writes the file `output`, whose extension selects its form: .bin, .c, .o, .so or .tar. `whole` keeps the rest of
    the file, including host code.
    """
    if output is None:
        return _tvmspec.convert(source, layout, from_layout, blob)
    if not isinstance(source, (str, os.PathLike)):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "input")
            with open(path, "wb") as file:
                file.write(cast(bytes, source))
            convert(path, output, layout=layout, from_layout=from_layout, blob=blob, whole=whole)
        return None
    options = _options(layout=layout, blob=blob) + (["--from", from_layout] if from_layout else []) + (["--whole"] if whole else [])
    path = os.fspath(source)
    os.stat(path)
    if not _tvmspec.write(["tvmspec", "convert", path, "-o", os.fspath(output), *options]):
        broken = next(iter(verify(path, layout=from_layout).violations), None)
        raise Violation(*_parts(broken)) if broken else Error(f"{path} breaks a rule; `tvmspec verify` shows it")
    return None


def run(
    path: Path,
    inputs: Union[Mapping[str, Any], None] = None,
    *,
    function: str = "main",
    device: str = "cpu",
) -> list[Tensor]:
    """Run a model for the graph executor or the Relax VM, and return its outputs. `inputs` maps names to arrays."""
    return _tvmspec.run(path, dict(inputs or {}), function, device)


def rule(id: str) -> Rule:
    """Return the rule with this id, such as ``BLOB-07``."""
    if "*" in id:
        raise ValueError("`rules` takes patterns")
    return _results.rules(_tvmspec.rules([id]))[0]


def rules(pattern: str = "*") -> tuple[Rule, ...]:
    """Return the rules whose id matches, in the order of the specification. ``*`` in the pattern stands for any text."""
    return _results.rules(_tvmspec.rules([pattern]))


def _name_of(source: Source, name: Optional[str]) -> str:
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return "<buffer>" if name is None else name


def _options(**values: object) -> list[str]:
    return [word for name, value in values.items() if value is not None for word in (f"--{name}", str(value))]


def _parts(broken: BrokenRule) -> Sequence[Any]:
    return broken.message, broken.rule, broken.kind, broken.offset, broken.field
