"""A plugin of pytest: ``pytest --tvmspec my_loader.py`` reports each case of the suite as a test.

Cases of operations without a function in the file are left out. ``-k`` selects cases by their names, which begin with the chapter.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Optional

import pytest

if TYPE_CHECKING:
    from ._check import CaseResult
    from ._tvmspec import Judge


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("tvmspec").addoption(
        "--tvmspec",
        metavar="FILE",
        help="judge the implementation in this Python file: a function for each operation of the suite",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--tvmspec")
    if path is None:
        return
    if not os.path.isfile(path):
        raise pytest.UsageError(f"--tvmspec: there is no file {path}")
    # Without this, pytest would also collect everything in the current folder.
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []
    # An argument such as `my_loader.py::blob/opencl-root` selects a case of the file.
    if not any(_is_same(argument.partition("::")[0], path) for argument in config.args):
        config.args.append(path)


def _is_same(one: os.PathLike[str] | str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> Optional[Implementation]:
    """Collect the file as an implementation, and not as a module with tests."""
    path = parent.config.getoption("--tvmspec")
    if path is None or not _is_same(module_path, path):
        return None
    collector: Implementation = Implementation.from_parent(parent, path=module_path)
    return collector


class Implementation(pytest.File):
    """The file with the implementation."""

    def collect(self) -> Iterator[Case]:
        from . import _check

        try:
            module = _check.import_file(str(self.path))
            judge = _check.judge_of(module)
        except Exception:
            raise self.CollectError(self._failure()) from None
        for name in judge.cases():
            yield Case.from_parent(self, name=name, judge=judge)

    def _failure(self) -> str:
        """Return the current exception, with the traceback from the file on."""
        error: pytest.ExceptionInfo[BaseException] = pytest.ExceptionInfo.from_current()
        own = error.traceback.cut(path=self.path)
        text = error.exconly()
        if own is not error.traceback and len(own) < len(error.traceback):
            error.traceback = own
            text = str(error.getrepr(style="short"))
        return f"the implementation {self.path} cannot be imported\n{text}"


class CaseFailed(Exception):
    """A case whose verdict counts against the implementation."""


class Case(pytest.Item):
    """One case."""

    def __init__(self, *, judge: Judge, **options: Any) -> None:
        super().__init__(**options)
        self._judge = judge

    def runtest(self) -> None:
        import json

        from ._check import case_result

        (judged,), report = self._judge.run([], [self.name])
        (details,) = json.loads(report)["results"]
        result = case_result(judged, details)
        if result.is_failure:
            raise CaseFailed(result)
        if result.verdict != "pass":
            pytest.skip(f"{result.verdict}: {result.reason}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if not isinstance(excinfo.value, CaseFailed):
            return super().repr_failure(excinfo, style)
        result: CaseResult = excinfo.value.args[0]
        return (
            f"{result.verdict}: {result.reason}\n"
            f"rules: {', '.join(result.rules)}\n"
            f"why: {result.why}\n"
            f"the case: tvmspec check --show --case '{result.id}'"
        )

    def reportinfo(self) -> tuple[Path, Optional[int], str]:
        return self.path, None, f"case {self.name}"
