"""The stubs, the command, and a notebook."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import tvmspec

USER = """
import array
import pathlib

import numpy as np
import tvmspec

found: tvmspec.Verification = tvmspec.verify(b"")
offset: "int | None" = found.violations[0].offset
data: bytes = tvmspec.pack(tvmspec.unpack("x.so"))
bytes_again: bytes = tvmspec.convert("x.so", layout="0.21")
nothing: None = tvmspec.convert("x.so", "y.so")
params: "dict[str, np.ndarray[Any, Any]]" = tvmspec.load_params("x.params")
outputs: "list[tvmspec.Tensor]" = tvmspec.run("x.so", {"x": np.zeros(3)})
for source in (bytearray(b"x"), memoryview(b"x"), array.array("B"), np.zeros(3, "uint8"), pathlib.Path("x"), "x"):
    tvmspec.inspect(source, grammar="a=b")


def own(source: tvmspec.Source) -> "tuple[tvmspec.Rule, ...]":
    tvmspec.unpack(source).write("parts", force=True)
    return tvmspec.rules("BLOB-*")


report: tvmspec.Report = tvmspec.check({"blob.decode": own}, chapters="blob", known="known.toml")
text: str = report.results[0].to_json() + tvmspec.rules().to_json()
missing: "tuple[str, ...] | None" = tvmspec.explain("x", runtime=["a.so", "b.so"]).missing
tvmspec.save_params(pathlib.Path("x"), params, bf16=True)
tvmspec.verify(7)  # type: ignore[arg-type]
found.file = "y"  # type: ignore[misc]
"""


def test_mypy_accepts_the_package_and_a_user(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    user = tmp_path / "user.py"
    user.write_text("from typing import Any\n" + USER)
    words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    # The package as it is installed, without the source tree.
    for files in (["-p", "tvmspec"], [str(user)]):
        result = subprocess.run([*words, *files], capture_output=True, text=True, cwd=tmp_path)
        assert result.returncode == 0, result.stdout + result.stderr


def test_the_command_is_installed() -> None:
    command = Path(sys.executable).parent / "tvmspec"
    assert command.exists()
    result = subprocess.run([str(command), "--version"], capture_output=True, text=True)
    assert result.stdout.startswith("tvmspec 0.") and result.returncode == 0
    # A command that starts itself a second time.
    result = subprocess.run(
        [str(command), "check", "--case", "wire/*", "--impl", "device:cpu"], capture_output=True, text=True
    )
    assert "cannot" not in result.stderr
    result = subprocess.run([str(command), "verify", "no-such-file"], capture_output=True, text=True)
    assert result.returncode == 2 and "no-such-file" in result.stderr


def test_a_notebook_shows_a_table(golden: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    path = str(golden / "blob/containers/tree3-0.8.so")
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(f"import tvmspec\ntvmspec.inspect({path!r})")]
    nbclient.NotebookClient(notebook, timeout=60).execute()
    (output,) = notebook.cells[0].outputs
    assert "<td>opencl</td>" in output["data"]["text/html"]
    assert output["data"]["text/plain"].startswith("<Inspection of ")


def test_each_public_name_has_types_and_help() -> None:
    page = pydoc.plain(pydoc.render_doc(tvmspec))
    for name in tvmspec.__all__:
        thing = getattr(tvmspec, name)
        if name == "Source":
            continue
        assert inspect.getdoc(thing), name
        assert name in page
        hints = typing.get_type_hints(thing)
        if inspect.isfunction(thing):
            assert "return" in hints, name
    assert "Source" in str(inspect.signature(tvmspec.verify))
