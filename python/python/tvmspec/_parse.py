"""Results, created from the JSON of the command line."""

from __future__ import annotations

import json
from typing import Optional

from ._results import (
    Account,
    BrokenRule,
    Dump,
    DumpUnit,
    Explanation,
    FieldSpan,
    Finding,
    Inspection,
    JsonObject,
    LibraryInfo,
    Load,
    ModuleInfo,
    Part,
    Rule,
    Rules,
    TensorInfo,
    Verification,
)


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
        tuple(map(_tensor, tensors)),
        tuple(map(_finding, report.get("findings", ()))),
        _maybe_broken(report.get("violation")),
        report,
    )


def explanation(text: str, file: str) -> Explanation:
    answer = json.loads(text)
    missing = None
    # With a runtime, the accounts are a member.
    if isinstance(answer, dict):
        if answer["missing"] is not None:
            missing = tuple(need["name"] for need in answer["missing"])
        answer = answer["accounts"]
    return Explanation(text, file, tuple(map(_account, answer)), missing)


def dump(text: str, file: str) -> Dump:
    return Dump(text, file, tuple(map(_unit, json.loads(text))))


def rules(text: str) -> Rules:
    made = Rules(
        Rule(
            json.dumps(report, indent=2, ensure_ascii=False) + "\n",
            report["rule"],
            report["title"],
            report["level"],
            report,
        )
        for report in json.loads(text)
    )
    made._json = text
    return made


def _broken(value: JsonObject) -> BrokenRule:
    return BrokenRule(
        value, value["rule"], value["kind"], value["message"], value["offset"], value["field"], value.get("in", "")
    )


def _maybe_broken(value: Optional[JsonObject]) -> Optional[BrokenRule]:
    return None if value is None else _broken(value)


def _finding(value: JsonObject) -> Finding:
    return Finding(value, value["rule"], value["message"], value["offset"], value.get("field", ""), value.get("in", ""))


def _tensor(value: JsonObject) -> TensorInfo:
    dtype = value["dtype"]
    dtype = dtype if isinstance(dtype, str) else tuple(dtype)
    return TensorInfo(value, value["name"], dtype, tuple(value["shape"]), value["bytes"])


def _module(value: JsonObject) -> ModuleInfo:
    return ModuleInfo(
        value,
        value["kind"],
        value.get("index"),
        value.get("offset"),
        value.get("bytes"),
        tuple(value.get("imports", ())),
        tuple(function["name"] for function in value.get("functions", ())),
    )


def _library(value: JsonObject) -> LibraryInfo:
    return LibraryInfo(
        value,
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
    return Part(value, value["member"], value["form"], value["releases"], tuple(value["functions"]), libraries)


def _account(value: JsonObject) -> Account:
    loads = tuple(Load(load, load["releases"], load["outcome"], load["why"]) for load in value["loads"])
    return Account(value, value["title"], loads, tuple(value["remarks"]))


def _unit(value: JsonObject) -> DumpUnit:
    return DumpUnit(
        value,
        value["name"],
        value["format"],
        value["bytes"],
        tuple(map(_span, value["fields"])),
        tuple(map(_finding, value["findings"])),
        _maybe_broken(value["broken"]),
        value.get("left_out_from"),
    )


def _span(value: JsonObject) -> FieldSpan:
    return FieldSpan(value, value["start"], value["end"], value["field"], value["value"], value["rule"])
