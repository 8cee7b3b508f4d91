"""Results of the functions that examine files. All are frozen, and keep the JSON of the command line."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional, Sequence, Tuple, Union

from . import _tvmspec
from ._html import counted, few, hexadecimal, table
from ._types import Path

JsonObject = Mapping[str, Any]


@dataclass(frozen=True)
class Item:
    """The base class of the parts of results."""

    #: The JSON object of the part, as a page of `spec/schema` describes it.
    details: JsonObject = field(repr=False, compare=False)

    def to_json(self) -> str:
        """Return the JSON object as text, with its line end."""
        return json.dumps(self.details, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class BrokenRule(Item):
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
class Finding(Item):
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
        unread = f", {len(self.unread)} unread" if self.unread else ""
        return f"<Verification of {self.file}: {len(self.violations)} broken, {count} findings{unread}>"

    def _repr_html_(self) -> str:
        rows = [*_broken_rows(self.violations), *_rows("unread", self.unread), *_rows("finding", self.findings)]
        return table(repr(self)[1:-1], _HEADS, rows, self.omitted_findings)


@dataclass(frozen=True)
class TensorInfo(Item):
    """A stored tensor."""

    name: str
    #: The element type, or its code, bits and lanes if it has no name.
    dtype: Union[str, tuple[int, ...]]
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, repr=False)
class ModuleInfo(Item):
    """A stored module. `details` has the members that depend on its kind."""

    kind: str
    index: Optional[int]
    #: The offset of its payload in the library binary, in bytes.
    offset: Optional[int]
    bytes: Optional[int]
    #: Positions of the modules that it imports.
    imports: tuple[int, ...]
    functions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<ModuleInfo {self.kind}: {counted(self.functions, 'function')}>"


@dataclass(frozen=True, repr=False)
class LibraryInfo(Item):
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

    def __repr__(self) -> str:
        broken = ", broken" if self.violation else ""
        return f"<LibraryInfo layout {self.layout}: {counted(self.modules, 'module')}{broken}>"


@dataclass(frozen=True, repr=False)
class Part(Item):
    """The file itself, or a member of an archive."""

    #: The path inside the archive; empty for the file itself.
    member: str
    form: str
    releases: Optional[str]
    #: The functions that the host code exports.
    functions: tuple[str, ...]
    libraries: tuple[LibraryInfo, ...]

    def __repr__(self) -> str:
        member = f" {self.member}" if self.member else ""
        counts = [self.form, counted(self.functions, "function")]
        counts += [f"layout {library.layout}" for library in self.libraries]
        return f"<Part{member}: {', '.join(counts)}>"


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

    @property
    def violations(self) -> tuple[BrokenRule, ...]:
        """The rule that the file breaks, and those that its library binaries break."""
        all = (self.violation, *(library.violation for library in self.libraries))
        return tuple(broken for broken in all if broken)

    def __repr__(self) -> str:
        counts = []
        if self.libraries:
            layouts = ", ".join(sorted({library.layout for library in self.libraries}))
            counts.append(f"layout {layouts}")
        if self.modules:
            counts.append(counted(self.modules, "module"))
        if self.tensors:
            counts.append(counted(self.tensors, "tensor"))
        if self.violations:
            counts.append("broken")
        return f"<Inspection of {self.file}: {', '.join([self.form, *counts])}>"

    def _repr_html_(self) -> str:
        title = repr(self)[1:-1]
        rows: list[Sequence[object]]
        if self.modules:
            rows = [
                (
                    module.index,
                    module.kind,
                    ", ".join(map(str, module.imports)),
                    hexadecimal(module.offset),
                    module.bytes,
                    few(module.functions),
                )
                for module in self.modules
            ]
            content = table(title, ("", "kind", "imports", "offset", "bytes", "functions"), rows)
        elif self.tensors:
            rows = [(tensor.name, tensor.dtype, list(tensor.shape), tensor.bytes) for tensor in self.tensors]
            content = table(title, ("name", "dtype", "shape", "bytes"), rows)
        else:
            parts = self.parts or (Part({}, "", self.form, None, (), ()),)
            rows = [(part.member, part.form, part.releases, few(part.functions)) for part in parts]
            content = table(title, ("member", "form", "releases", "functions"), rows)
        broken = _broken_rows(self.violations)
        return content + (table("broken rules", _HEADS, broken) if broken else "")


@dataclass(frozen=True)
class Load(Item):
    """The outcome of loading a file in a range of releases."""

    #: A range of releases, such as ``0.7..0.20`` or ``0.22..``.
    releases: str
    #: ``loads``, ``fails``, ``silent`` (no error, but something is wrong or missing) or ``unknown``.
    outcome: str
    why: str


@dataclass(frozen=True, repr=False)
class Account(Item):
    """The outcome in each release for one library binary, or for another item of the file."""

    title: str
    loads: tuple[Load, ...]
    remarks: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Account of {self.title}: {_loading([self])}>"


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """The result of ``explain``."""

    file: str
    accounts: tuple[Account, ...]
    #: The names that the file needs and `runtime` does not register. None without a runtime, or if they are not known.
    missing: Optional[tuple[str, ...]] = None

    def loads(self, release: str) -> str:
        """Return the outcome for a release: ``loads``, ``silent``, ``unknown`` or ``fails``; the worst of several accounts."""
        order = ("loads", "silent", "unknown", "fails")
        wanted = _tvmspec.minor(release)
        outcomes = [
            load.outcome for account in self.accounts for load in account.loads if _contains(load.releases, wanted)
        ]
        if not outcomes:
            raise ValueError(f"this explanation is not about release {release}")
        return max(outcomes, key=order.index)

    def __repr__(self) -> str:
        return f"<Explanation of {self.file}: {_loading(self.accounts)}>"

    def _repr_html_(self) -> str:
        rows = [
            (account.title, load.releases, load.outcome, load.why)
            for account in self.accounts
            for load in account.loads
        ]
        rows += [("", "", "missing", name) for name in self.missing or ()]
        return table(self.file, ("", "releases", "outcome", "why"), rows)


@dataclass(frozen=True)
class FieldSpan(Item):
    """The bytes of one field."""

    start: int
    #: The offset after the last byte.
    end: int
    field: str
    value: str
    rule: str


@dataclass(frozen=True, repr=False)
class DumpUnit(Item):
    """A run of bytes of one format."""

    name: str
    format: str
    bytes: int
    fields: tuple[FieldSpan, ...]
    findings: tuple[Finding, ...]
    broken: Optional[BrokenRule]
    #: The start of the first field that does not fit into memory; `dump(.., start=..)` continues there.
    left_out_from: Optional[int]

    def __repr__(self) -> str:
        return f"<DumpUnit {self.name}: {self.format}, {counted(self.fields, 'field')}>"


@dataclass(frozen=True, repr=False)
class Dump(Result):
    """Every byte of a file with its field and rule."""

    file: str
    units: tuple[DumpUnit, ...]

    def __repr__(self) -> str:
        fields = [field for unit in self.units for field in unit.fields]
        rest = [unit.left_out_from for unit in self.units if unit.left_out_from is not None]
        more = f", continues with start={rest[0]}" if rest else ""
        return f"<Dump of {self.file}: {counted(self.units, 'unit')}, {counted(fields, 'field')}{more}>"

    def _repr_html_(self) -> str:
        rows = [
            (unit.name, hexadecimal(span.start), hexadecimal(span.end), span.field, span.value, span.rule)
            for unit in self.units
            for span in unit.fields
        ]
        page = table(repr(self)[1:-1], ("unit", "start", "end", "field", "value", "rule"), rows)
        broken = [row for unit in self.units if unit.broken for row in _broken_rows([unit.broken])]
        return page + (table("broken rules", _HEADS, broken) if broken else "")


@dataclass(frozen=True, repr=False)
class Unpacked(Result):
    """The manifest of a library binary, and its payloads by file name. `pack` rebuilds the same bytes from them."""

    manifest: JsonObject = field(compare=False)
    files: Mapping[str, bytes] = field(repr=False, hash=False)

    def write(self, folder: Path, *, force: bool = False) -> None:
        """Write `manifest.json` and the payloads into a folder, which is created if it does not exist.

        A folder with the manifest of another library is an error. `force` replaces it, and removes the files that it lists.
        """
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "manifest.json")
        stale = self._stale_files(path)
        if stale is not None and not force:
            text = "the folder has the manifest of another library; name another folder, or pass force=True"
            raise FileExistsError(errno.EEXIST, text, path)
        # The manifest is written last. If it exists, so do its files.
        if os.path.exists(path):
            os.remove(path)
        for name in stale or ():
            if os.path.isfile(os.path.join(folder, name)):
                os.remove(os.path.join(folder, name))
        for name, payload in self.files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(payload)
        with open(path, "w", encoding="utf-8", newline="") as text_file:
            text_file.write(self._json)

    def _stale_files(self, path: str) -> Optional[list[str]]:
        """Return the files that another manifest at `path` lists, or None if there is no other manifest."""
        try:
            with open(path, "rb") as file:
                text = file.read()
        except FileNotFoundError:
            return None
        if text == self._json.encode():
            return None
        try:
            modules = json.loads(text)["modules"]
            names = [module["file"] for module in modules if isinstance(module.get("file"), str)]
        except (ValueError, TypeError, KeyError, AttributeError):
            return []
        # A manifest that a person wrote may list files of other folders.
        return [name for name in names if os.path.basename(name) == name and name]

    def __repr__(self) -> str:
        return f"<Unpacked layout {self.manifest['layout']}: {counted(self.manifest['modules'], 'module')}>"

    def _repr_html_(self) -> str:
        rows = []
        for index, module in enumerate(self.manifest["modules"]):
            name = module.get("file")
            rows.append((index, module["kind"], name, len(self.files[name]) if name in self.files else None))
        return table(repr(self)[1:-1], ("", "kind", "file", "bytes"), rows)


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
        return table(f"{self.id} {self.title}", ("", ""), rows)


class Rules(Tuple[Rule, ...]):
    """Rules, in the order of the specification."""

    _json: str

    def to_json(self) -> str:
        """Return the text that ``tvmspec rule --json`` prints, with its line end."""
        return self._json

    def __repr__(self) -> str:
        return f"<Rules: {few([rule.id for rule in self])}>"

    def _repr_html_(self) -> str:
        return table(counted(self, "rule"), ("id", "level", "title"), [(rule.id, rule.level, rule.title) for rule in self])


#: The columns of broken rules and findings.
_HEADS = ("rule", "", "place", "offset", "field", "message")


def _broken_rows(rules: Sequence[BrokenRule]) -> list[Sequence[object]]:
    return [(one.rule, "broken", one.place, hexadecimal(one.offset), one.field, one.message) for one in rules]


def _rows(word: str, findings: Sequence[Finding]) -> list[Sequence[object]]:
    return [(one.rule, word, one.place, hexadecimal(one.offset), one.field, one.message) for one in findings]


def _loading(accounts: Iterable[Account]) -> str:
    """Return the releases that load the file."""
    good = [load.releases for account in accounts for load in account.loads if load.outcome == "loads"]
    return f"loads in {', '.join(good)}" if good else "loads in no release"


def _contains(releases: str, minor: int) -> bool:
    """Return whether a range, such as ``0.7..0.20``, contains the release with this second number."""
    first, dots, last = releases.partition("..")
    if not dots:
        return minor == _tvmspec.minor(first)
    return (not first or _tvmspec.minor(first) <= minor) and (not last or minor <= _tvmspec.minor(last))
