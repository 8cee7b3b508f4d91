"""check, and the plugin of pytest: a correct implementation, and one with a planted bug."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def test_nothing_to_judge() -> None:
    with pytest.raises(TypeError, match="blob_decode"):
        tvmspec.check({})
    with pytest.raises(tvmspec.Error):
        tvmspec.check({"blob.decode": len}, chapters=["no such chapter"])


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
