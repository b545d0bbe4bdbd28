"""Tables as HTML: sortable ones for pages, and ones without script for notebooks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

# A notebook's table shows so many rows; a page's, which is sorted in the reader's browser, these.
NOTEBOOK_ROWS = 25
PAGE_ROWS = 3000

_SCALES = {
    "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0,
    "B": 1.0, "bytes": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
    "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}  # fmt: skip
_NUMBER = re.compile(
    r"([-+]?(?:\d[\d,]*)?\.?\d+(?:e[-+]?\d+)?)\s?(%|x|"
    + "|".join(sorted(_SCALES, key=len, reverse=True))
    + r")?(?=$|[\s(/,])"
)
_NOTHING = ("", "-")


def sort_key(text: str) -> float | None:
    """The number that a cell begins with, of its unit; None where it begins with none.

    >>> sort_key("1.5 ms (2 ms)"), sort_key("1,024"), sort_key("512x512")
    (0.0015, 1024.0, None)
    """
    found = _NUMBER.match(text.strip())
    if not found:
        return None
    return float(found[1].replace(",", "")) * _SCALES.get(found[2] or "", 1.0)


def numeric_columns(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[bool]:
    """Which columns hold numbers, and nothing else but gaps."""
    return [
        any(row[i] not in _NOTHING for row in rows)
        and all(row[i] in _NOTHING or sort_key(row[i]) is not None for row in rows)
        for i in range(len(columns))
    ]


def sortable(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that `tablesort` sorts by a click on a head; numbers start with the largest."""
    numeric = numeric_columns(columns, rows)
    heads = "".join(
        f'<th data-sort-method="number" data-sort-reverse class="n">{escape(name)}</th>'
        if number
        else f"<th>{escape(name)}</th>"
        for name, number in zip(columns, numeric, strict=True)
    )
    lines = []
    for row in rows[:PAGE_ROWS]:
        cells = "".join(_cell(text, number) for text, number in zip(row, numeric, strict=True))
        lines.append(f"<tr>{cells}</tr>")
    more = _more(len(rows) - PAGE_ROWS)
    return (
        f'<div class="table"><table class="sortable"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>{more}"
    )


def _cell(text: str, number: bool) -> str:
    if not number:
        return f"<td>{escape(text)}</td>"
    key = sort_key(text)
    # tablesort reads digits and a point only; what has no number comes last.
    return f'<td class="n" data-sort="{-1 if key is None else f"{key:.12f}"}">{escape(text)}</td>'


def for_notebook(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], below: str = ""
) -> str:
    """A small table without script and style sheet, as notebooks that are not trusted show it."""
    numeric = numeric_columns(columns, rows)
    sides = ["right" if number else "left" for number in numeric]
    lines = [_line("th", columns, sides)]
    lines += [_line("td", row, sides) for row in rows[:NOTEBOOK_ROWS]]
    more = _more(len(rows) - NOTEBOOK_ROWS)
    after = f"<p>{escape(below)}</p>" if below else ""
    head = f"<thead>{lines[0]}</thead>"
    body = f"<tbody>{''.join(lines[1:])}</tbody>" if rows else ""
    table = f"<table>{head}{body}</table>" if rows else ""
    return f"<div><p><b>{escape(title)}</b></p>{table}{more}{after}</div>"


def _line(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    inner = "".join(
        f'<{tag} style="text-align:{side};white-space:pre-wrap">{escape(text)}</{tag}>'
        for text, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{inner}</tr>"


def _more(left_out: int) -> str:
    return f"<p>and {left_out:,} more rows</p>" if left_out > 0 else ""
