"""Reads, verifies, converts and runs TVM models of every release, and tests implementations.

A *source* is a path, or bytes in any object with the buffer protocol, which are not copied. A path is mapped. Nothing of a file is
executed, except by `load` and `run`.

A broken rule is a `Violation`, any other request that cannot be served an `Error`, and a file that cannot be read or written an
`OSError`.
"""

from __future__ import annotations

import base64
import json
import os
import warnings
from typing import Any, Iterable, Mapping, Optional, Sequence, Union, overload

from . import _parse, _tvmspec
from ._check import Answer, CaseResult, Report, check
from ._errors import Error, Violation
from ._files import word_of as _word_of, write as _write
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
    Rules,
    TensorInfo,
    Unpacked,
    Verification,
)
from ._tvmspec import Function, Module, Tensor, load, tensor
from ._types import Path, Source

__all__ = [
    "Account", "Answer", "BrokenRule", "CaseResult", "Dump", "DumpUnit", "Error", "Explanation", "FieldSpan", "Finding", "Function",
    "Inspection", "LibraryInfo", "Load", "Module", "ModuleInfo", "Part", "Report", "Rule", "Rules", "Source", "Tensor", "TensorInfo",
    "Unpacked", "Verification", "Violation", "check", "convert", "dump", "explain", "inspect", "load", "load_params", "pack", "rule",
    "rules", "run", "save_params", "tensor", "unpack", "verify",
]  # fmt: skip


def inspect(
    source: Source,
    *,
    layout: Optional[str] = None,
    kind: Optional[str] = None,
    grammar: Union[str, Iterable[str]] = (),
    code: bool = False,
    html: Optional[Path] = None,
    name: Optional[str] = None,
) -> Inspection:
    """Show the content of a file: layout, modules, import tree, functions, tensors.

    `layout` (0.2, 0.7, 0.21 or 0.22) overrides the layout that symbols and bytes indicate. With `kind`, the file is read as the payload
    of a module of this kind. `grammar` has texts ``KIND=KNOWN`` for kinds that no release has. `code` adds the code of executables.
    `html` is the path of a page to write, with a map of the bytes. `name` is the file name that reports show for a buffer.
    """
    grammar = _list(grammar)
    text = _tvmspec.report("inspect", source, name, layout, payload=kind, grammar=grammar, code=code)
    if html is not None:
        _write("inspect", source, None, name=name, html=_word_of(html), layout=layout, kind=kind, grammar=grammar)
    return _parse.inspection(text)


def verify(
    source: Source,
    *,
    layout: Optional[str] = None,
    kind: Optional[str] = None,
    grammar: Union[str, Iterable[str]] = (),
    name: Optional[str] = None,
) -> Verification:
    """Find every broken rule and every tolerated oddity. Takes the options of `inspect`."""
    text = _tvmspec.report("verify", source, name, layout, payload=kind, grammar=_list(grammar))
    return _parse.verification(text)


def explain(
    source: Source,
    *,
    layout: Optional[str] = None,
    release: Optional[str] = None,
    elsewhere: bool = False,
    lib: Optional[Path] = None,
    runtime: Union[Path, Sequence[Path], None] = None,
    grammar: Union[str, Iterable[str]] = (),
    name: Optional[str] = None,
) -> Explanation:
    """Show for each release whether it loads the file, or why not.

    `release` limits the answer to one release. `elsewhere` ignores the libraries and devices of this machine. `lib` is the library with
    which a graph is run. `runtime` is the library of a runtime, or several, with whose functions the needs of the file are compared; it
    is loaded in another process.
    """
    if runtime is not None:
        paths = [runtime] if isinstance(runtime, (str, os.PathLike)) else runtime
        runtime = ",".join(map(os.fsdecode, paths))
    text = _tvmspec.report(
        "explain",
        source,
        name,
        layout,
        grammar=_list(grammar),
        release=release,
        elsewhere=elsewhere,
        lib=None if lib is None else os.fsdecode(lib),
        runtime=runtime,
    )
    return _parse.explanation(text, _name_of(source, name))


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
    return _parse.dump(text, _name_of(source, name))


def unpack(source: Source, *, layout: Optional[str] = None, blob: Optional[int] = None, name: Optional[str] = None) -> Unpacked:
    """Split a library binary into modules from which `pack` rebuilds it. `blob` is its number, from 0, if the file has several."""
    text, files, texts = _tvmspec.unpack(source, name, layout, blob)
    for warning in texts:
        warnings.warn(warning, stacklevel=2)
    return Unpacked(text, json.loads(text), files)


@overload
def pack(
    manifest: Union[Unpacked, Mapping[str, Any], Path],
    output: None = None,
    *,
    files: Optional[Mapping[str, Any]] = None,
    layout: Optional[str] = None,
    order: Optional[str] = None,
    release: Optional[str] = None,
) -> bytes: ...
@overload
def pack(
    manifest: Union[Unpacked, Mapping[str, Any], Path],
    output: Path,
    *,
    files: Optional[Mapping[str, Any]] = None,
    layout: Optional[str] = None,
    order: Optional[str] = None,
    release: Optional[str] = None,
) -> None: ...
def pack(
    manifest: Union[Unpacked, Mapping[str, Any], Path],
    output: Optional[Path] = None,
    *,
    files: Optional[Mapping[str, Any]] = None,
    layout: Optional[str] = None,
    order: Optional[str] = None,
    release: Optional[str] = None,
) -> Optional[bytes]:
    """Build a library binary from a list of modules.

    Returns its bytes, or writes the file `output` (.bin, .c, .o, .so or .tar). The manifest is a result of `unpack`, the path of a TOML or
    JSON file, or a dictionary as `spec/schema/manifest.json` describes it. `files` has the files that a dictionary names. `release` is the
    release to write for, if the releases of a layout differ.
    """
    if isinstance(manifest, Unpacked):
        files = manifest.files if files is None else files
        manifest = manifest.manifest
    source: Source
    if isinstance(manifest, Mapping):
        source = json.dumps(manifest, default=_base64).encode()
    elif files is not None:
        raise TypeError("`files` is for a manifest in memory; one in a file names files of its folder")
    else:
        source = manifest
    data = _write("pack", source, output, files, "manifest", layout=layout, order=order, release=release)
    return data if output is None else None


@overload
def convert(
    source: Source,
    output: None = None,
    *,
    layout: Optional[str] = None,
    from_layout: Optional[str] = None,
    blob: Optional[int] = None,
    whole: bool = False,
    release: Optional[str] = None,
    written_by: Optional[str] = None,
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
    release: Optional[str] = None,
    written_by: Optional[str] = None,
    bf16: bool = False,
) -> None: ...
def convert(
    source: Source,
    output: Optional[Path] = None,
    *,
    layout: Optional[str] = None,
    from_layout: Optional[str] = None,
    blob: Optional[int] = None,
    whole: bool = False,
    release: Optional[str] = None,
    written_by: Optional[str] = None,
    bf16: bool = False,
) -> Optional[bytes]:
    """Rewrite a library binary in another layout, or parameters in another form.

    Returns the bytes, or writes the file `output`, whose extension selects its form: .bin, .c, .o, .so or .tar. `from_layout` overrides the
    layout that symbols and bytes indicate. `whole` keeps the rest of the file, including host code. `release` is the release to write for,
    if the releases of a layout differ.

    Parameters go from a parameter file into a tensor cache (`output` ends in tensor-cache.json or ndarray-cache.json), and from an index
    into a parameter file. `written_by` is the release that wrote them, and with `bf16` the cache stores float32 as bfloat16.
    """
    options: dict[str, Any] = {"layout": layout, "from": from_layout, "blob": blob, "whole": whole, "release": release}
    data = _write("convert", source, output, **options, written_by=written_by, bf16=bf16)
    return data if output is None else None


def run(
    path: Path,
    inputs: Union[Mapping[str, Any], None] = None,
    *,
    function: str = "main",
    device: Union[str, Sequence[str]] = "cpu",
    graph: Optional[Path] = None,
    params: Optional[Path] = None,
) -> list[Tensor]:
    """Run a model for the graph executor or the Relax VM, and return its outputs. `inputs` maps names to arrays.

    `function` is the function of a VM to call. `device` is a device, or several of which the first is the fallback. With `graph`, the
    path of a graph JSON, `path` is the library with its functions, and `params` its parameter file.
    """
    devices = [device] if isinstance(device, str) else list(device)
    return _tvmspec.run(path, dict(inputs or {}), function, devices, graph, params)


def rule(id: str) -> Rule:
    """Return the rule with this id, such as ``BLOB-07``."""
    if "*" in id:
        raise ValueError("`rules` takes patterns")
    return _parse.rules(_tvmspec.rules([id]))[0]


def rules(pattern: str = "*") -> Rules:
    """Return the rules whose id matches, in the order of the specification. ``*`` in the pattern stands for any text."""
    return _parse.rules(_tvmspec.rules([pattern]))


def _name_of(source: Source, name: Optional[str]) -> str:
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return "<buffer>" if name is None else name


def _list(words: Union[str, Iterable[str]]) -> list[str]:
    """Return a list of texts, also for one text."""
    return [words] if isinstance(words, str) else list(words)


def _base64(payload: Any) -> str:
    """Return the form of bytes in JSON."""
    return base64.b64encode(payload).decode()
