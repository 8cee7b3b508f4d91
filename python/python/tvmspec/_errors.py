"""Exceptions."""

from __future__ import annotations

from typing import Optional


class Error(ValueError):
    """A request that cannot be served, for example because no rule applies to the file."""


class Violation(Error):
    """A broken rule.

    A judged function raises it to reject its input. Only the message is required.
    """

    def __init__(
        self,
        message: str = "",
        rule: Optional[str] = None,
        kind: Optional[str] = None,
        offset: Optional[int] = None,
        field: Optional[str] = None,
        file: Optional[str] = None,
    ) -> None:
        super().__init__(message, rule, kind, offset, field, file)
        #: What was expected, and what was found.
        self.message = message
        #: The id of the rule, such as ``BLOB-07``.
        self.rule = rule
        #: The class of the fault: ``truncated``, ``malformed``, ``trailing``, ...
        self.kind = kind
        #: The offset of the fault in bytes, or None if it is at no byte.
        self.offset = offset
        #: The path of the field, such as ``modules[1].kind``; empty or None if it is not known.
        self.field = field
        #: The file, and the part of it: ``model.so, symbol __tvm_dev_mblob``. None if the input has no name.
        self.file = file

    def __str__(self) -> str:
        at = [] if self.offset is None else [f"at byte {self.offset:#x}"]
        place = ", ".join(at + ([self.field] if self.field else []))
        named = f"{self.file}: {self.message}" if self.file else self.message
        parts = [named, f"({place})" if place else "", f"[{self.rule}]" if self.rule else ""]
        return " ".join(part for part in parts if part)
