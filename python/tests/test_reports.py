"""inspect, verify, explain, dump: the same answers as the command line, for every golden."""

from __future__ import annotations

import mmap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import BINARY, GOLDEN, ROOT, command_line

import tvmspec

FILES = sorted(str(path.relative_to(ROOT)) for path in GOLDEN.rglob("*") if path.is_file())


def answer(command: str, path: str) -> bytes:
    """Return the answer of the module as the command line prints it: JSON, or the message of an error."""
    try:
        return getattr(tvmspec, command)(path).to_json().encode()
    except tvmspec.Error as error:
        return f"error: {error}\n".encode()


@pytest.mark.parametrize("command", ["inspect", "verify", "explain", "dump"])
def test_every_golden_has_the_answer_of_the_command_line(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    # Without the binary, a process of Python starts for each file.
    files = FILES if BINARY else FILES[::20]

    def is_same(path: str) -> bool:
        printed = command_line(command, "--json", path)
        return (printed.stdout or printed.stderr) == answer(command, path)

    with ThreadPoolExecutor(2) as pool:
        same = list(pool.map(is_same, files))
    print(f"{command}: {sum(same)} of {len(files)} answers are equal")
    assert [path for path, is_equal in zip(files, same) if not is_equal] == []
    assert len(files) > 70


def test_buffers_have_the_same_answer(golden: Path) -> None:
    path = golden / "blob/containers/tree3-0.8.so"
    data = path.read_bytes()
    expected = tvmspec.verify(path).to_json()
    for source in (data, bytearray(data), memoryview(data)):
        assert tvmspec.verify(source, name=str(path)).to_json() == expected
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert tvmspec.verify(mapped, name=str(path)).to_json() == expected
    assert tvmspec.verify(data).file == "<buffer>"


def test_the_results_have_types(golden: Path) -> None:
    inspection = tvmspec.inspect(golden / "blob/containers/tree3-0.8.so")
    assert [module.kind for module in inspection.modules] == ["_lib", "metal", "opencl"]
    assert inspection.libraries[0].layout == "0.7"
    assert "layout 0.7, 3 modules" in repr(inspection) and "<td>opencl</td>" in inspection._repr_html_()
    explanation = tvmspec.explain(golden / "blob/containers/tree3-0.8.so")
    assert (explanation.loads("0.8"), explanation.loads("0.21")) == ("loads", "silent")
    assert tvmspec.dump(golden / "blob/opencl.bin").units[0].fields[0].start == 0
    with pytest.raises(AttributeError):
        inspection.form = "tar"  # type: ignore[misc]


def test_a_broken_file_is_a_result_and_not_an_exception(golden: Path) -> None:
    data = (golden / "blob/opencl.bin").read_bytes()[:-1]
    found = tvmspec.verify(data)
    assert not found.ok and found.violations[0].kind == "truncated"
    assert len(repr(found)) < 80 and "broken" in found._repr_html_()
    with pytest.raises(tvmspec.Violation) as raised:
        tvmspec.unpack(data)
    violation = raised.value
    assert (violation.rule, violation.kind, violation.offset) == (
        found.violations[0].rule,
        "truncated",
        found.violations[0].offset,
    )


def test_files_that_cannot_be_read() -> None:
    with pytest.raises(FileNotFoundError) as raised:
        tvmspec.verify("no-such-file.so")
    assert raised.value.filename == "no-such-file.so"
    with pytest.raises(tvmspec.Error):
        tvmspec.verify(b"nothing of TVM")
    with pytest.raises(TypeError):
        tvmspec.verify(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        tvmspec.verify(b"", layout="0.3")


def test_hostile_names_are_escaped_in_a_notebook(golden: Path) -> None:
    data = (golden / "blob/opencl.bin").read_bytes().replace(b"opencl", b"<b>cl>")
    page = tvmspec.inspect(data)._repr_html_() + tvmspec.verify(data)._repr_html_()
    assert "<b>" not in page


def test_rules() -> None:
    rule = tvmspec.rule("BLOB-07")
    assert rule.id == "BLOB-07" and rule.level == "MUST"
    assert rule.to_json().encode() == command_line("rule", "--json", "BLOB-07").stdout
    assert len(tvmspec.rules("TREE-*")) > 10
    with pytest.raises(tvmspec.Error):
        tvmspec.rule("BLOB-9999")
