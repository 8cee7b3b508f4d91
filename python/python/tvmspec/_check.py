"""The conformance suite against Python functions."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Callable, Iterable, Mapping, Optional, Union

from . import _tvmspec
from ._html import table
from ._results import Item, Result
from ._types import Path

Operation = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Answer:
    """A value and the tolerated oddities, for an implementation that reports them.

    A finding is the id of its rule, or a tuple of id, kind and offset. Kind and offset may be None.
    """

    value: Any
    findings: tuple[tuple[str, Optional[str], Optional[int]], ...] = ()

    def __post_init__(self) -> None:
        full = tuple((one, None, None) if isinstance(one, str) else (*one, None, None)[:3] for one in self.findings)
        object.__setattr__(self, "findings", full)


@dataclass(frozen=True, repr=False)
class CaseResult(Item):
    """The verdict on one case."""

    #: The name of the case, such as ``blob/opencl-root``.
    id: str
    #: ``pass``, ``fail``, ``unsupported``, ``crash``, ``out-of-memory`` or ``skipped``.
    verdict: str
    #: The expected and the actual answer, or the traceback of a crash.
    reason: str
    #: The consequence for a user.
    why: str
    rules: tuple[str, ...]
    #: True if the verdict counts against the implementation.
    is_failure: bool

    def __repr__(self) -> str:
        return f"<CaseResult {self.id}: {self.verdict}>"


@dataclass(frozen=True, repr=False)
class Report(Result):
    """The verdicts on all selected cases."""

    implementation: str
    results: tuple[CaseResult, ...]
    #: True if a case was judged, nothing failed except known failures, and the list of known failures is correct.
    ok: bool
    #: The errors of the list of known failures.
    problems: tuple[str, ...]

    @property
    def failures(self) -> tuple[CaseResult, ...]:
        """The results that count against the implementation."""
        return tuple(result for result in self.results if result.is_failure)

    def counts(self) -> dict[str, int]:
        """Return the number of cases with each verdict."""
        counts: dict[str, int] = {}
        for result in self.results:
            counts[result.verdict] = counts.get(result.verdict, 0) + 1
        return counts

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts().items())
        return f"<Report on {self.implementation}: {counts}>"

    def _repr_html_(self) -> str:
        rows = [(one.id, one.verdict, ", ".join(one.rules), one.reason) for one in self.failures]
        rows += [("", "problem", "", problem) for problem in self.problems]
        return table(repr(self)[1:-1], ("case", "verdict", "rules", "reason"), rows)


def check(
    implementation: Any,
    *,
    chapters: Union[str, Iterable[str]] = (),
    cases: Union[str, Iterable[str]] = (),
    release: Optional[str] = None,
    known: Optional[Path] = None,
    complete: bool = False,
) -> Report:
    """Judge an implementation: a module or another object with a function for each operation, or a mapping from names to functions.

    The function of ``blob.decode`` is called ``blob_decode``. It gets the arguments of the exec protocol as a dictionary, in which
    ``data`` is bytes, and returns the value, or an `Answer`. It raises `Violation` to reject the input, and `NotImplementedError` if it
    does not support the request. Any other exception is a crash. An attribute `releases` lists the releases that the implementation
    supports, such as ``["0.27"]``.

    `chapters` and `cases` limit the run; ``*`` in the name of a case stands for any text. `release` limits it to cases that apply to one
    release. `known` is a TOML file of known failures. With `complete`, unsupported and skipped cases fail unless they are known.
    """
    judge = judge_of(implementation)
    text = None
    if known is not None:
        with open(known, encoding="utf-8") as file:
            text = file.read()
    judged, report = judge.run(_words(chapters), _words(cases), release, text, complete)
    values = json.loads(report)
    results = tuple(map(case_result, judged, values["results"]))
    return Report(report, name_of(implementation), results, values["good"], tuple(values["problems"]))


def case_result(judged: _tvmspec._Judged, details: Mapping[str, Any]) -> CaseResult:
    """Create the result of a case from its JSON in the report."""
    id, verdict, reason, why, rules, fails = judged
    return CaseResult(details, id, verdict, reason, why, tuple(rules), fails)


def judge_of(implementation: Any) -> _tvmspec.Judge:
    """Collect the functions of an implementation."""
    operations = _tvmspec.Judge.operations()
    functions: dict[str, Operation] = {}
    for operation in operations:
        function = _member(implementation, operation)
        if callable(function):
            functions[operation] = function
    if isinstance(implementation, MappingType):
        names = {*operations, *(operation.replace(".", "_") for operation in operations), "releases"}
        for name in implementation:
            if name not in names and not str(name).startswith("__"):
                raise TypeError(f"there is no operation {name!r}; `tvmspec check --ops` lists them")
    if not functions:
        raise TypeError(
            f"{name_of(implementation)} has no function for any operation; that of `blob.decode` is called `blob_decode`"
        )
    version = str(_member(implementation, "__version__") or "")
    releases = _words(_member(implementation, "releases") or ())
    return _tvmspec.Judge(name_of(implementation), version, releases, functions)


def name_of(implementation: Any) -> str:
    """Return the name of an implementation for reports."""
    name = _member(implementation, "__name__") or type(implementation).__name__
    return str(name)


def import_file(path: str) -> ModuleType:
    """Run a Python file as a module, which can import the other files of its folder."""
    folder, file = os.path.split(os.path.abspath(path))
    name = os.path.splitext(file)[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.util.module_from_spec(spec)
    # A file may have the name of a module that others use.
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


def _member(implementation: Union[Mapping[str, Any], object], name: str) -> Any:
    attribute = name.replace(".", "_")
    if isinstance(implementation, MappingType):
        return implementation.get(name, implementation.get(attribute))
    return getattr(implementation, attribute, None)


def _words(words: Union[str, Iterable[str]]) -> list[str]:
    """Return a list of texts, also for one text."""
    return [words] if isinstance(words, str) else list(words)
