"""Commands that write files, in this process."""

from __future__ import annotations

import os
import warnings
from typing import Any, Mapping, Optional

from . import _tvmspec
from ._types import Path, Source


def write(
    command: str,
    source: Source,
    output: Optional[Path],
    files: Optional[Mapping[str, Any]] = None,
    name: Optional[str] = None,
    **options: Any,
) -> bytes:
    """Run a command, and return the bytes that it writes if there is no `output`. Each option has the name of that of the command."""
    words = ["tvmspec", command]
    if command != "inspect":
        words.append(f"--output={'-' if output is None else word_of(output)}")
    for option, value in options.items():
        word = f"--{option.replace('_', '-')}"
        if value is True:
            words.append(word)
        elif value is not None and value is not False:
            values = value if isinstance(value, list) else [value]
            words += [f"{word}={one}" for one in values]
    if isinstance(source, (str, os.PathLike)):
        data, texts = _tvmspec.write([*words, "--", word_of(source)])
    else:
        held = {key: bytes(memoryview(file)) for key, file in (files or {}).items()}
        data, texts = _tvmspec.write([*words, "--", "-"], source, name, held)
    for text in texts:
        # The caller of `pack` or `convert`.
        warnings.warn(text, stacklevel=3)
    return data


def word_of(path: Path) -> str:
    """Return a path as a word of a command, for which ``-`` is not a file."""
    text = os.fsdecode(path)
    return os.path.join(".", text) if text == "-" else text
