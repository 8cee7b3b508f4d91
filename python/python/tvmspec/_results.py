"""Results of the functions that examine files. All are frozen, and keep the JSON of the command line."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from html import escape
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

JsonObject = Mapping[str, Any]


@dataclass(frozen=True)
class BrokenRule:
    """A rule that a file breaks."""

    rule: str
    kind: str
    message: str
    #: The offset in bytes from the start of `place`, or None if the fault is at no byte.
    offset: Optional[int]
    #: The path of the field; empty if it is not known.
    field: str
    #: The file, and the part of it. Empty where the result itself is about one part.
    place: str = ""


@dataclass(frozen=True)
class Finding:
    """An oddity that readers tolerate."""

    rule: str
    message: str
    offset: int
    field: str = ""
    place: str = ""


@dataclass(frozen=True)
class Result:
    """The base class of all results."""

    _json: str = field(repr=False, compare=True)

    def to_json(self) -> str:
        """Return the text that the command prints with ``--json``, with its line end."""
        return self._json


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """The result of ``verify``."""

    file: str
    #: Whether the file is compiled code without a library binary, so that nothing in it has fields.
    host_only: bool
    violations: tuple[BrokenRule, ...]
    findings: tuple[Finding, ...]
    #: Parts that were not read, because no release has such a kind of module.
    unread: tuple[Finding, ...]
    #: The number of findings that are not listed.
    omitted_findings: int

    @property
    def ok(self) -> bool:
        """True if no rule is broken and everything was read."""
        return not self.violations and not self.unread

    def __repr__(self) -> str:
        count = len(self.findings) + self.omitted_findings
        return f"<Verification of {self.file}: {len(self.violations)} broken, {count} findings>"

    def _repr_html_(self) -> str:
        rows: list[Sequence[object]] = [
            (broken.rule, "broken", _hex(broken.offset), broken.field, broken.message) for broken in self.violations
        ]
        rows += [(found.rule, "finding", _hex(found.offset), found.field, found.message) for found in self.findings]
        return _table(self.file, ("rule", "", "offset", "field", "message"), rows)


@dataclass(frozen=True)
class TensorInfo:
    """A stored tensor."""

    name: str
    #: The element type, or its code, bits and lanes if it has no name.
    dtype: Union[str, tuple[int, ...]]
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class ModuleInfo:
    """A stored module. `details` has the members that depend on its kind."""

    kind: str
    index: Optional[int]
    #: The offset of its payload in the library binary, in bytes.
    offset: Optional[int]
    bytes: Optional[int]
    #: Positions of the modules that it imports.
    imports: tuple[int, ...]
    functions: tuple[str, ...]
    details: JsonObject = field(repr=False, compare=False)


@dataclass(frozen=True)
class LibraryInfo:
    """A library binary."""

    symbol: Optional[str]
    offset: Optional[int]
    bytes: int
    layout: str
    #: The releases that write the layout.
    releases: str
    modules: tuple[ModuleInfo, ...]
    findings: tuple[Finding, ...]
    violation: Optional[BrokenRule]


@dataclass(frozen=True)
class Part:
    """The file itself, or a member of an archive."""

    #: The path inside the archive; empty for the file itself.
    member: str
    form: str
    releases: Optional[str]
    #: The functions that the host code exports.
    functions: tuple[str, ...]
    libraries: tuple[LibraryInfo, ...]


@dataclass(frozen=True, repr=False)
class Inspection(Result):
    """The result of ``inspect``."""

    file: str
    bytes: int
    #: The form of the file: ``elf-shared``, ``params``, ...
    form: str
    parts: tuple[Part, ...]
    #: The tensors of a parameter file, a tensor cache or a tensor file.
    tensors: tuple[TensorInfo, ...]
    findings: tuple[Finding, ...]
    violation: Optional[BrokenRule]
    #: Everything, as `spec/schema/inspect.json` describes it.
    report: JsonObject = field(repr=False, compare=False)

    @property
    def libraries(self) -> tuple[LibraryInfo, ...]:
        """The library binaries of all parts."""
        return tuple(library for part in self.parts for library in part.libraries)

    @property
    def modules(self) -> tuple[ModuleInfo, ...]:
        """The modules of all library binaries."""
        return tuple(module for library in self.libraries for module in library.modules)

    def __repr__(self) -> str:
        counts = []
        if self.libraries:
            layouts = ", ".join(sorted({library.layout for library in self.libraries}))
            counts.append(f"layout {layouts}")
        if self.modules:
            counts.append(_counted(self.modules, "module"))
        if self.tensors:
            counts.append(_counted(self.tensors, "tensor"))
        if self.violation or any(library.violation for library in self.libraries):
            counts.append("broken")
        return f"<Inspection of {self.file}: {', '.join([self.form, *counts])}>"

    def _repr_html_(self) -> str:
        rows: list[Sequence[object]] = []
        for library in self.libraries:
            for module in library.modules:
                functions = ", ".join(module.functions[:8]) + (" ..." if len(module.functions) > 8 else "")
                imports = ", ".join(map(str, module.imports))
                rows.append((module.index, module.kind, imports, _hex(module.offset), module.bytes, functions))
        if rows:
            return _table(repr(self)[1:-1], ("", "kind", "imports", "offset", "bytes", "functions"), rows)
        rows = [(tensor.name, tensor.dtype, list(tensor.shape), tensor.bytes) for tensor in self.tensors]
        return _table(repr(self)[1:-1], ("name", "dtype", "shape", "bytes"), rows)


@dataclass(frozen=True)
class Load:
    """The outcome of loading a file in a range of releases."""

    #: A range of releases, such as ``0.7..0.20`` or ``0.22..``.
    releases: str
    #: ``loads``, ``fails``, ``silent`` (no error, but something is wrong or missing) or ``unknown``.
    outcome: str
    why: str


@dataclass(frozen=True)
class Account:
    """The outcome in each release for one library binary, or for another item of the file."""

    title: str
    loads: tuple[Load, ...]
    remarks: tuple[str, ...]
    #: Everything, as `spec/schema/explain.json` describes it.
    details: JsonObject = field(repr=False, compare=False)


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """The result of ``explain``."""

    file: str
    accounts: tuple[Account, ...]

    def loads(self, release: str) -> str:
        """Return the outcome for a release: ``loads``, ``silent``, ``unknown`` or ``fails``; the worst of several accounts."""
        order = ("loads", "silent", "unknown", "fails")
        outcomes = [
            load.outcome for account in self.accounts for load in account.loads if _contains(load.releases, release)
        ]
        if not outcomes:
            raise ValueError(f"there is no release {release}")
        return max(outcomes, key=order.index)

    def __repr__(self) -> str:
        good = [load.releases for account in self.accounts for load in account.loads if load.outcome == "loads"]
        return f"<Explanation of {self.file}: {'loads in ' + ', '.join(good) if good else 'loads in no release'}>"

    def _repr_html_(self) -> str:
        rows = [
            (account.title, load.releases, load.outcome, load.why)
            for account in self.accounts
            for load in account.loads
        ]
        return _table(self.file, ("", "releases", "outcome", "why"), rows)


@dataclass(frozen=True)
class FieldSpan:
    """The bytes of one field."""

    start: int
    #: The offset after the last byte.
    end: int
    field: str
    value: str
    rule: str


@dataclass(frozen=True)
class DumpUnit:
    """A run of bytes of one format."""

    name: str
    format: str
    bytes: int
    fields: tuple[FieldSpan, ...] = field(repr=False)
    findings: tuple[Finding, ...]
    broken: Optional[BrokenRule]
    #: The start of the first field that does not fit into memory; `dump(.., start=..)` continues there.
    left_out_from: Optional[int]


@dataclass(frozen=True, repr=False)
class Dump(Result):
    """Every byte of a file with its field and rule."""

    file: str
    units: tuple[DumpUnit, ...]

    def __repr__(self) -> str:
        fields = [field for unit in self.units for field in unit.fields]
        return f"<Dump of {self.file}: {_counted(self.units, 'unit')}, {_counted(fields, 'field')}>"

    def _repr_html_(self) -> str:
        most = 500
        rows: list[Sequence[object]] = []
        for unit in self.units:
            for span in unit.fields[: most - len(rows)]:
                rows.append((unit.name, _hex(span.start), _hex(span.end), span.field, span.value, span.rule))
        return _table(repr(self)[1:-1], ("unit", "start", "end", "field", "value", "rule"), rows)


@dataclass(frozen=True, repr=False)
class Unpacked(Result):
    """The manifest of a library binary, and its payloads by file name. `pack` rebuilds the same bytes from them."""

    manifest: JsonObject
    files: Mapping[str, bytes] = field(repr=False)

    def write(self, folder: Union[str, os.PathLike[str]]) -> None:
        """Write `manifest.json` and the payloads into a folder, which is created if it does not exist."""
        os.makedirs(folder, exist_ok=True)
        for name, payload in self.files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(payload)
        with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8", newline="") as text:
            text.write(self._json)

    def __repr__(self) -> str:
        return f"<Unpacked layout {self.manifest['layout']}: {len(self.manifest['modules'])} modules>"


@dataclass(frozen=True, repr=False)
class Rule(Result):
    """A rule of the specification."""

    id: str
    title: str
    level: str
    #: Everything, as `spec/schema/rule.json` describes it.
    report: JsonObject = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<Rule {self.id} {self.level}: {self.title}>"

    def _repr_html_(self) -> str:
        rows = [(name, self.report[name]) for name in ("level", "norm", "upstream", "here") if self.report.get(name)]
        return _table(f"{self.id} {self.title}", ("", ""), rows)


def verification(text: str) -> Verification:
    report = json.loads(text)
    return Verification(
        text,
        report["file"],
        report["host_only"],
        tuple(map(_broken, report["violations"])),
        tuple(map(_finding, report["findings"])),
        tuple(map(_finding, report.get("unread", ()))),
        report.get("omitted_findings", 0),
    )


def inspection(text: str) -> Inspection:
    report = json.loads(text)
    tensors = report.get("params") or report.get("tensor") or ()
    return Inspection(
        text,
        report["file"],
        report["bytes"],
        report["form"],
        tuple(map(_part, report.get("parts", ()))),
        tuple(_tensor(tensor) for tensor in tensors),
        tuple(map(_finding, report.get("findings", ()))),
        _maybe_broken(report.get("violation")),
        report,
    )


def explanation(text: str, file: str) -> Explanation:
    accounts = tuple(
        Account(
            account["title"],
            tuple(Load(load["releases"], load["outcome"], load["why"]) for load in account["loads"]),
            tuple(account["remarks"]),
            account,
        )
        for account in json.loads(text)
    )
    return Explanation(text, file, accounts)


def dump(text: str, file: str) -> Dump:
    units = tuple(
        DumpUnit(
            unit["name"],
            unit["format"],
            unit["bytes"],
            tuple(
                FieldSpan(span["start"], span["end"], span["field"], span["value"], span["rule"])
                for span in unit["fields"]
            ),
            tuple(map(_finding, unit["findings"])),
            _maybe_broken(unit["broken"]),
            unit.get("left_out_from"),
        )
        for unit in json.loads(text)
    )
    return Dump(text, file, units)


def rules(text: str) -> tuple[Rule, ...]:
    reports = json.loads(text)
    return tuple(
        Rule(json.dumps([report], indent=2, ensure_ascii=False) + "\n", report["rule"], report["title"], report["level"], report)
        for report in reports
    )


def _broken(value: JsonObject) -> BrokenRule:
    return BrokenRule(
        value["rule"], value["kind"], value["message"], value["offset"], value["field"], value.get("in", "")
    )


def _maybe_broken(value: Optional[JsonObject]) -> Optional[BrokenRule]:
    return None if value is None else _broken(value)


def _finding(value: JsonObject) -> Finding:
    return Finding(value["rule"], value["message"], value["offset"], value.get("field", ""), value.get("in", ""))


def _tensor(value: JsonObject) -> TensorInfo:
    dtype = value["dtype"]
    dtype = dtype if isinstance(dtype, str) else tuple(dtype)
    return TensorInfo(value["name"], dtype, tuple(value["shape"]), value["bytes"])


def _module(value: JsonObject) -> ModuleInfo:
    return ModuleInfo(
        value["kind"],
        value.get("index"),
        value.get("offset"),
        value.get("bytes"),
        tuple(value.get("imports", ())),
        tuple(function["name"] for function in value.get("functions", ())),
        value,
    )


def _library(value: JsonObject) -> LibraryInfo:
    return LibraryInfo(
        value["symbol"],
        value["offset"],
        value["bytes"],
        value["layout"],
        value["releases"],
        tuple(map(_module, value["modules"])),
        tuple(map(_finding, value["findings"])),
        _maybe_broken(value["violation"]),
    )


def _part(value: JsonObject) -> Part:
    libraries = tuple(map(_library, value["libraries"]))
    return Part(value["member"], value["form"], value["releases"], tuple(value["functions"]), libraries)


def _contains(releases: str, release: str) -> bool:
    """Return whether a range, such as ``0.7..0.20``, contains a release."""
    first, dots, last = releases.partition("..")
    wanted = _number(release)
    if not dots:
        return wanted == _number(first)
    return (not first or _number(first) <= wanted) and (not last or wanted <= _number(last))


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".")[:2])


def _counted(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}" if len(items) == 1 else f"{len(items)} {noun}s"


def _hex(offset: Optional[int]) -> str:
    return "" if offset is None else f"{offset:#x}"


def _table(caption: str, heads: Iterable[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table. Everything is escaped, because names in a file may be hostile."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape('' if cell is None else str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
