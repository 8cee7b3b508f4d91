"""HTML tables for notebooks."""

from __future__ import annotations

from html import escape
from typing import Iterable, Optional, Sequence

#: The number of rows that a table shows.
MOST = 500


def table(caption: str, heads: Iterable[str], rows: Sequence[Sequence[object]], left_out: int = 0) -> str:
    """Return an HTML table. Everything is escaped, because names in a file may be hostile.

    Shows the first rows, and the number of the others and of `left_out`.
    """
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape('' if cell is None else str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows[:MOST]
    )
    left_out += max(0, len(rows) - MOST)
    foot = f"<p>{left_out} more rows are not shown.</p>" if left_out else ""
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{foot}"


def counted(items: Sequence[object], noun: str) -> str:
    """Return the number of items with the noun."""
    return f"{len(items)} {noun}" if len(items) == 1 else f"{len(items)} {noun}s"


def hexadecimal(offset: Optional[int]) -> str:
    """Return an offset in hex, or an empty text for None."""
    return "" if offset is None else f"{offset:#x}"


def few(names: Sequence[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more
