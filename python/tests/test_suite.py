"""check, and the plugin of pytest: a correct implementation, and one with a planted bug."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmspec


def test_a_mapping_of_functions_is_judged() -> None:
    def detect(args: dict[str, Any]) -> Any:
        raise tvmspec.Violation("everything is truncated", kind="truncated")

    report = tvmspec.check({"blob.detect": detect}, chapters=["blob"])
    counts = report.counts()
    assert counts["fail"] >= 1 and counts["unsupported"] > 100 and not report.ok
    failure = report.failures[0]
    assert failure.rules and failure.why and "expected" in failure.reason
    assert '"verdict"' in report.to_json()


def test_exceptions_are_verdicts() -> None:
    def crash(args: dict[str, Any]) -> Any:
        return args["no such argument"]

    def lazy(args: dict[str, Any]) -> Any:
        raise NotImplementedError("next week")

    report = tvmspec.check({"blob.detect": crash, "blob.decode": lazy}, chapters=["blob"])
    by_verdict = {result.verdict: result for result in report.results}
    assert "KeyError" in by_verdict["crash"].reason and "next week" in {
        result.reason for result in report.results if result.verdict == "unsupported"
    }


def test_nothing_to_judge(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="blob_decode"):
        tvmspec.check({})
    with pytest.raises(TypeError, match="blob.decod"):
        tvmspec.check({"blob.decod": len, "blob.detect": len})
    with pytest.raises(tvmspec.Error):
        tvmspec.check({"blob.decode": len}, chapters=["no such chapter"])
    with pytest.raises(ValueError, match="0.99"):
        tvmspec.check({"blob.decode": len}, release="0.99")
    (tmp_path / "known.toml").write_text("[[known]]\ncase = 3")
    with pytest.raises(tvmspec.Error):
        tvmspec.check({"blob.decode": len}, known=tmp_path / "known.toml")


def unsupported(args: dict[str, Any]) -> Any:
    raise NotImplementedError("never")


@pytest.mark.parametrize("name", ["blob.detect", "blob_detect"])
def test_names_of_functions_and_single_texts(name: str) -> None:
    report = tvmspec.check({name: unsupported, "releases": "0.27"}, chapters="blob")
    assert {result.id.split("/")[0] for result in report.results} == {"blob"}
    assert json.loads(report.to_json())["implementation"]["releases"] == ["0.27"]
    one = tvmspec.check({name: unsupported}, cases=report.results[0].id)
    assert [result.id for result in one.results] == [report.results[0].id]


def test_options_of_the_command(tmp_path: Path) -> None:
    everything = tvmspec.check({"blob.detect": unsupported}, chapters=["blob"])
    old = tvmspec.check({"blob.detect": unsupported}, chapters=["blob"], release="0.2")
    assert 0 < len(old.results) < len(everything.results)
    complete = tvmspec.check({"blob.detect": unsupported}, chapters=["blob"], complete=True)
    assert complete.failures and not complete.ok and not everything.failures
    case = complete.failures[0]
    known = tmp_path / "known.toml"
    known.write_text(f'[[known]]\ncase = "{case.id}"\nverdict = "{case.verdict}"\nreason = "not written yet"\n')
    excused = tvmspec.check({"blob.detect": unsupported}, cases=case.id, complete=True, known=known)
    assert not excused.failures and not excused.problems
    assert json.loads(case.to_json())["case"] == case.id and repr(case) == f"<CaseResult {case.id}: {case.verdict}>"
    assert case.id in complete._repr_html_()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, pytest.skip.Exception])
def test_exceptions_for_the_caller_end_the_run(kind: type[BaseException]) -> None:
    calls = []

    def stop(args: dict[str, Any]) -> Any:
        calls.append(args)
        raise kind("stop")

    with pytest.raises(kind):
        tvmspec.check({"blob.detect": stop}, chapters=["blob"])
    assert len(calls) == 1


def test_values_of_answers() -> None:
    loop: list[Any] = []
    loop.append(loop)
    answers = [loop, {1: 2}, object(), {"x": {3}}]
    cases = tvmspec.check({"blob.detect": unsupported}, chapters="blob").results
    case = next(case for case in cases if case.details["op"] == "blob.detect")
    for answer in answers:
        (result,) = tvmspec.check({"blob.detect": lambda args: answer}, cases=case.id).results
        assert result.verdict == "crash" and "Error" in result.reason, result
    good: list[Any] = [np.int64(3), np.float32(1), np.bool_(True), np.arange(3), bytearray(b"x"), memoryview(b"x"), 1 << 70]
    good += [float("nan"), float("-inf"), (1, 2), None, "\udcff", np.array(3), IntLike()]
    for answer in good:
        (result,) = tvmspec.check({"blob.detect": lambda args: answer}, cases=case.id).results
        assert result.verdict == "fail", (answer, result.reason)


class IntLike:
    def __index__(self) -> int:
        return 3


def test_values_as_the_suite_writes_them() -> None:
    values = {
        "floats": ([np.float32(0.5), float("nan"), float("inf")], [0.5, "0x7ff8000000000000", "0x7ff0000000000000"]),
        "ints": ([np.uint8(3), np.int64(-1), IntLike(), True, np.bool_(False)], [3, -1, 3, True, False]),
        "bytes": ([b"ab", bytearray(b"ab"), memoryview(b"ab")], ["YWI=", "YWI=", "YWI="]),
        "arrays": ([np.arange(3), np.array(2.5)], [[0, 1, 2], 2.5]),
    }
    given = {name: value for name, (value, _) in values.items()}
    failure = tvmspec.check({"blob.decode": lambda args: given}, cases="blob/*").failures[0]
    actual = failure.details["actual"].removeprefix("acceptance: ")
    assert json.loads(actual) == {name: expected for name, (_, expected) in values.items()}


#: The testee of the source tree, which shares no code with the library, with a function for each of its operations.
LOADER = """
import base64
import sys

sys.path.insert(0, {folder!r})
import testee
import tvmspec

releases = []
{bug}


def answered(operation, args):
    try:
        return operation(args)
    except testee.Reject as broken:
        raise tvmspec.Violation(str(broken), kind=broken.kind, offset=broken.offset)


def import_tree_decode(args):
    return answered(testee.tree_decode, {{**args, "data": base64.b64encode(args["data"])}})


def import_tree_encode(args):
    return answered(testee.tree_encode, args)


def import_tree_order(args):
    return answered(testee.tree_order, args)
"""


@pytest.mark.parametrize("bug", ["", "testee.closes_a_cycle = lambda indptr, indices: None"])
def test_the_plugin_reports_each_case(pytester: pytest.Pytester, golden: Path, bug: str) -> None:
    folder = str(golden.parent / "conformance/testee/python")
    loader = pytester.path / "my_loader.py"
    loader.write_text(LOADER.format(folder=folder, bug=bug))
    # A test that is not about the implementation, which the plugin leaves out.
    pytester.makepyfile("def test_other(): assert False")
    result = pytester.runpytest_subprocess("--tvmspec", str(loader), "-q")
    counts = result.parseoutcomes()
    assert counts.get("passed", 0) > 100
    if bug:
        assert 1 <= counts["failed"] < 30
        result.stdout.fnmatch_lines(["*rules: *TREE-*", "*why: *"])
    else:
        assert "failed" not in counts


def test_check_finds_what_the_plugin_finds(golden: Path, tmp_path: Path) -> None:
    folder = str(golden.parent / "conformance/testee/python")
    loader = tmp_path / "my_loader.py"
    loader.write_text(LOADER.format(folder=folder, bug=""))
    from tvmspec._check import import_file, judge_of

    implementation = import_file(str(loader))
    report = tvmspec.check(implementation, chapters=["import_tree"])
    assert report.ok, [failure.id for failure in report.failures]
    # The plugin leaves out the cases of operations without a function.
    assert [result.id for result in report.results if result.verdict == "pass"] == judge_of(implementation).cases()
    assert set(report.counts()) == {"pass", "unsupported"}


#: An implementation that rejects everything, with an import of a file of its folder.
SMALL = """
import sibling
import tvmspec


def tree_reject(args):
    raise tvmspec.Violation(sibling.TEXT, kind="truncated")


import_tree_decode = tree_reject
"""


@pytest.fixture
def small(pytester: pytest.Pytester) -> pytest.Pytester:
    (pytester.path / "loaders").mkdir()
    (pytester.path / "loaders/sibling.py").write_text("TEXT = 'all is truncated'")
    (pytester.path / "loaders/small.py").write_text(SMALL)
    pytester.makepyfile("def test_other(): assert False")
    return pytester


def test_the_file_imports_its_siblings_and_is_imported_once(small: pytest.Pytester) -> None:
    loader = small.path / "loaders/small.py"
    loader.write_text("print('IMPORTED')\n" + SMALL + "\n\ndef test_own(): assert False\n")
    result = small.runpytest_subprocess("--tvmspec", "loaders/small.py", "-q", "-s")
    text = result.stdout.str()
    assert text.count("IMPORTED") == 1 and "test_own" not in text and "test_other" not in text
    assert result.parseoutcomes()["passed"] >= 1 and result.parseoutcomes()["failed"] >= 1


def test_selection_of_cases(small: pytest.Pytester) -> None:
    listed = small.runpytest_subprocess("--tvmspec", "loaders/small.py", "--collect-only", "-q")
    ids = [line for line in listed.outlines if "::" in line]
    assert len(ids) > 20 and all(line.startswith("loaders/small.py::import_tree/") for line in ids)
    # The id that pytest prints selects one case.
    for words in ([ids[2]], ["-k", ids[2].split("::")[1]], [f"{small.path}/{ids[2]}"]):
        result = small.runpytest_subprocess("--tvmspec", "loaders/small.py", "--collect-only", "-q", *words)
        assert ids[2] in result.outlines and sum("::" in line for line in result.outlines) <= 2
    result = small.runpytest_subprocess("--tvmspec", "loaders/small.py", "-q", ids[3])
    assert sum(result.parseoutcomes().values()) == 1
    # With other arguments, both are run.
    other = small.makepyfile(test_more="def test_more(): pass")
    result = small.runpytest_subprocess("--tvmspec", "loaders/small.py", str(other), "--collect-only", "-q")
    assert [line for line in result.outlines if "::" in line] == ["test_more.py::test_more", *ids]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module", "No module named 'no_such_module'"),
        ("def f(:", "SyntaxError"),
        ("def helper():\n    return 1 / 0\nhelper()", "ZeroDivisionError"),
        ("x = 1", "blob_decode"),
    ],
)
def test_a_broken_loader_has_a_short_message(small: pytest.Pytester, text: str, message: str) -> None:
    (small.path / "loaders/small.py").write_text(text)
    result = small.runpytest_subprocess("--tvmspec", "loaders/small.py")
    assert result.ret == pytest.ExitCode.INTERRUPTED and message in result.stdout.str()
    assert "pytest_plugin" not in result.stdout.str() and "importlib" not in result.stdout.str()
    assert len(result.outlines) < 30, result.stdout.str()


def test_a_loader_that_is_not_there(small: pytest.Pytester) -> None:
    result = small.runpytest_subprocess("--tvmspec", "missing.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is no file missing.py"])


def test_several_processes(small: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    alone = small.runpytest_subprocess("--tvmspec", "loaders/small.py", "-q").parseoutcomes()
    result = small.runpytest_subprocess("--tvmspec", "loaders/small.py", "-q", "-n", "2")
    together = result.parseoutcomes()
    assert {word: together.get(word) for word in ("passed", "failed")} == {
        word: alone.get(word) for word in ("passed", "failed")
    }


def test_ctrl_c_ends_the_run(small: pytest.Pytester) -> None:
    code = "\n\ndef import_tree_decode(args):\n    import os, signal\n    os.kill(os.getpid(), signal.SIGINT)\n"
    (small.path / "loaders/small.py").write_text(SMALL + code)
    result = small.runpytest_subprocess("--tvmspec", "loaders/small.py", "-q")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*KeyboardInterrupt*"])


def test_a_function_that_skips_its_case(small: pytest.Pytester) -> None:
    code = "\n\ndef import_tree_decode(args):\n    import pytest\n    pytest.skip('not today')\n"
    (small.path / "loaders/small.py").write_text(SMALL + code)
    result = small.runpytest_subprocess("--tvmspec", "loaders/small.py", "-q", "-rs")
    assert set(result.parseoutcomes()) == {"skipped"} and "not today" in result.stdout.str()
