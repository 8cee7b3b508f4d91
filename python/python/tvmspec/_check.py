"""The conformance suite against Python functions."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Callable, Iterable, Mapping, Optional, Union

from . import _tvmspec

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


@dataclass(frozen=True)
class CaseResult:
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


@dataclass(frozen=True, repr=False)
class Report:
    """The verdicts on all selected cases."""

    implementation: str
    results: tuple[CaseResult, ...]
    _json: str = field(repr=False)

    @property
    def ok(self) -> bool:
        """True if at least one case passed and no case failed."""
        return not self.failures and any(result.verdict == "pass" for result in self.results)

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

    def to_json(self) -> str:
        """Return the report as `spec/schema/report.json` describes it."""
        return self._json

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts().items())
        return f"<Report on {self.implementation}: {counts}>"


def check(implementation: Any, *, chapters: Iterable[str] = (), cases: Iterable[str] = ()) -> Report:
    """Judge an implementation: a module or another object with a function for each operation, or a mapping from names to functions.

    The function of ``blob.decode`` is called ``blob_decode``. It gets the arguments of the exec protocol as a dictionary, in which
    ``data`` is bytes, and returns the value, or an `Answer`. It raises `Violation` to reject the input, and `NotImplementedError` if it
    does not support the request. Any other exception is a crash. An attribute `releases` lists the releases that the implementation
    supports, such as ``["0.27"]``. `cases` are names, in which ``*`` stands for any text.
    """
    judge = judge_of(implementation)
    judged, text = judge.run(list(chapters), list(cases))
    results = tuple(
        CaseResult(id, verdict, reason, why, tuple(rules), fails) for id, verdict, reason, why, rules, fails in judged
    )
    return Report(name_of(implementation), results, text)


def judge_of(implementation: Any) -> _tvmspec.Judge:
    """Collect the functions of an implementation."""
    functions: dict[str, Operation] = {}
    for operation in _tvmspec.Judge.operations():
        function = _member(implementation, operation)
        if callable(function):
            functions[operation] = function
    if not functions:
        raise TypeError(
            f"{name_of(implementation)} has no function for any operation; that of `blob.decode` is called `blob_decode`"
        )
    version = str(_member(implementation, "__version__") or "")
    releases = list(_member(implementation, "releases") or ())
    return _tvmspec.Judge(name_of(implementation), version, releases, functions)


def name_of(implementation: Any) -> str:
    """Return the name of an implementation for reports."""
    name = _member(implementation, "__name__") or type(implementation).__name__
    return str(name)


def import_file(path: str) -> ModuleType:
    """Run a Python file as a module."""
    spec = importlib.util.spec_from_file_location("tvmspec_implementation", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _member(implementation: Union[Mapping[str, Any], object], name: str) -> Any:
    if isinstance(implementation, MappingType):
        return implementation.get(name)
    return getattr(implementation, name.replace(".", "_"), None)
