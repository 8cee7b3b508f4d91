"""inspect, verify, explain, dump: the same answers as the command line, for every golden."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conftest import BINARY, GOLDEN, ROOT, command_line

import tvmspec

FILES = sorted(str(path.relative_to(ROOT)) for path in GOLDEN.rglob("*") if path.is_file())


def answer(command: str, path: str) -> bytes:
    """Return the answer of the module as the command line prints it: JSON, or the message of an error."""
    try:
        return str(getattr(tvmspec, command)(path).to_json()).encode()
    except tvmspec.Violation as broken:
        # The command line also says where the place is shown.
        where = "the container itself is broken: "
        text = str(broken).replace(f"{path}: ", f"{path}: {where}", 1)
        return f"error: {text}. `tvmspec verify` shows the place.\n".encode()
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


def test_requests_that_cannot_be_served() -> None:
    with pytest.raises(tvmspec.Error):
        tvmspec.verify(b"nothing of TVM")
    with pytest.raises(ValueError, match="0.3"):
        tvmspec.verify(b"", layout="0.3")
    with pytest.raises(tvmspec.Error, match="no module kind"):
        tvmspec.verify(b"", kind="no such kind")


def test_options(golden: Path, tmp_path: Path) -> None:
    data = (golden / "blob/convert-three-to-0.2.bin").read_bytes().replace(b"cuda", b"cudx")
    assert not tvmspec.verify(data).ok
    # One text is one option, and not its letters.
    for grammar in ("cudx=cuda", ["cudx=cuda"]):
        assert tvmspec.verify(data, grammar=grammar).ok
    with pytest.raises(tvmspec.Error, match="KIND=KNOWN"):
        tvmspec.verify(data, grammar="cudx")
    tvmspec.inspect(golden / "blob/opencl.bin", html=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!") and "opencl" in page
    tvmspec.inspect((golden / "blob/opencl.bin").read_bytes(), html=tmp_path / "buffer.html")
    assert (tmp_path / "buffer.html").stat().st_size > 10000
    graph, library = golden / "eras/0.13/graph.json", golden / "eras/0.13/graph-kernels.so"
    assert tvmspec.explain(graph, lib=library).loads("0.13") == "loads"
    with pytest.raises(tvmspec.Error, match="lib"):
        tvmspec.explain(library, lib=library)


def test_a_runtime_that_cannot_be_loaded(golden: Path) -> None:
    with pytest.raises(tvmspec.Error, match="runtime"):
        tvmspec.explain(golden / "module/host-0.27.so", runtime=[golden / "module/host-0.27.so"])


def test_the_needs_of_a_file_are_compared_with_a_runtime(golden: Path) -> None:
    pytest.importorskip("tvm_ffi")
    import tvm_ffi.libinfo

    library = tvm_ffi.libinfo.find_libtvm_ffi()
    found = tvmspec.explain(golden / "vm/branches.so", runtime=library)
    assert found.missing and "vm.builtin." in " ".join(found.missing)
    assert found.missing[0] in found._repr_html_()


def test_loads_knows_the_releases(golden: Path) -> None:
    found = tvmspec.explain(golden / "blob/opencl.bin")
    assert found.loads("0.27") == found.loads("v0.27.0") == "loads"
    for wrong in ("0.99", "dev", "", "1.0", "0"):
        with pytest.raises(ValueError, match="not a TVM release"):
            found.loads(wrong)
    with pytest.raises(ValueError, match="not about release 0.8"):
        tvmspec.explain(golden / "blob/opencl.bin", release="0.27").loads("0.8")


def test_each_part_has_its_json(golden: Path) -> None:
    path = golden / "blob/containers/tree3-0.8.so"
    whole = json.loads(tvmspec.inspect(path).to_json())
    inspection = tvmspec.inspect(path)
    assert json.loads(inspection.parts[0].to_json()) == whole["parts"][0]
    assert json.loads(inspection.libraries[0].to_json()) == whole["parts"][0]["libraries"][0]
    assert json.loads(inspection.modules[2].to_json()) == whole["parts"][0]["libraries"][0]["modules"][2]
    dump = tvmspec.dump(path)
    assert json.loads(dump.units[0].fields[3].to_json()) == json.loads(dump.to_json())[0]["fields"][3]
    account = tvmspec.explain(path).accounts[0]
    assert json.loads(account.loads[0].to_json()) == json.loads(account.to_json())["loads"][0]
    broken = tvmspec.verify((golden / "blob/opencl.bin").read_bytes()[:-1])
    assert json.loads(broken.violations[0].to_json()) == json.loads(broken.to_json())["violations"][0]


def test_everything_prints_in_short(golden: Path) -> None:
    path = golden / "blob/containers/tree3-0.8.so"
    inspection, explanation, dump = tvmspec.inspect(path), tvmspec.explain(path), tvmspec.dump(path)
    things = [inspection, *inspection.parts, *inspection.libraries, *inspection.modules, explanation, *explanation.accounts]
    things += [dump, *dump.units, tvmspec.verify(path), tvmspec.unpack(path), tvmspec.rules(), tvmspec.rule("BLOB-07")]
    for thing in things:
        assert repr(thing).startswith(f"<{type(thing).__name__}") and len(repr(thing)) < 300, repr(thing)
        hash(thing)


def test_tables_in_a_notebook(golden: Path) -> None:
    data = (golden / "blob/convert-three-to-0.2.bin").read_bytes()
    unknown = tvmspec.verify(data.replace(b"cuda", b"cudx"))
    assert unknown.unread and not unknown.ok
    assert f"{len(unknown.unread)} unread" in repr(unknown) and "<td>unread</td>" in unknown._repr_html_()
    host = tvmspec.inspect(golden / "module/host-0.27.so")
    assert not host.modules and "<td>elf-shared</td>" in host._repr_html_() and "main" in host._repr_html_()
    broken = tvmspec.inspect(golden / "blob/containers/elf-cut.o")
    assert broken.violations and broken.violations[0].rule in broken._repr_html_()
    cut = tvmspec.inspect((golden / "blob/opencl.bin").read_bytes()[:-1])
    assert cut.violations and cut.violations[0].message in cut._repr_html_().replace("&#x27;", "'")
    long = tvmspec.dump(golden / "blob/containers/tree3-0.8.so")
    count = sum(len(unit.fields) for unit in long.units)
    page = long._repr_html_()
    assert count > 500 and f"{count - 500} more rows are not shown" in page or count <= 500 and "more rows" not in page
    rules = tvmspec.rules("TREE-*")
    assert "TREE-01" in rules._repr_html_() and "TREE-01" in repr(rules)
    assert "opencl" in tvmspec.unpack(golden / "blob/opencl.bin")._repr_html_()
    assert "Returns" not in tvmspec.rule("BLOB-07")._repr_html_() and "BLOB-07" in tvmspec.rule("BLOB-07")._repr_html_()


def test_hostile_names_are_escaped_in_a_notebook(golden: Path) -> None:
    data = (golden / "blob/opencl.bin").read_bytes().replace(b"opencl", b"<b>cl>")
    page = tvmspec.inspect(data)._repr_html_() + tvmspec.verify(data)._repr_html_()
    assert "<b>" not in page


def test_a_dump_that_does_not_fit_says_where_it_continues(tmp_path: Path) -> None:
    path = tmp_path / "many.params"
    tvmspec.save_params(path, {f"p{i}": np.zeros(4, "float32") for i in range(60000)})
    dump = tvmspec.dump(path)
    start = dump.units[0].left_out_from
    assert start and f"continues with start={start}" in repr(dump) and "more rows" in dump._repr_html_()
    assert tvmspec.dump(path, start=start).units[0].fields[0].start == start


def test_rules() -> None:
    rule = tvmspec.rule("BLOB-07")
    assert rule.id == "BLOB-07" and rule.level == "MUST"
    printed = command_line("rule", "--json", "BLOB-07").stdout
    assert tvmspec.rules("BLOB-07").to_json().encode() == printed
    assert [json.loads(rule.to_json())] == json.loads(printed)
    assert len(tvmspec.rules("TREE-*")) > 10 and isinstance(tvmspec.rules(), tuple)
    with pytest.raises(tvmspec.Error):
        tvmspec.rule("BLOB-9999")
