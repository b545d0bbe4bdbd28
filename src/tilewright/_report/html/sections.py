"""What a page is made of: texts, tables and flame graphs; charts.py has what is drawn over axes.

A section has a title, a note below it, the npm packages that it needs, and a body in HTML. It knows
nothing of what is reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar, Protocol

from tilewright._report import figures
from tilewright._report.html.tables import sortable
from tilewright._report.text import time_text


class Section(Protocol):
    """What `page` puts together."""

    packages: ClassVar[tuple[str, ...]]

    @property
    def title(self) -> str: ...
    @property
    def note(self) -> str: ...
    def body(self) -> str:
        """HTML in which all that is not the section's own is escaped."""
        ...


@dataclass(frozen=True)
class Text:
    """Lines as they are."""

    packages: ClassVar[tuple[str, ...]] = ()
    title: str
    text: str
    note: str = ""

    def body(self) -> str:
        """See Section."""
        return f"<pre>{escape(self.text)}</pre>"


@dataclass(frozen=True)
class Table:
    """Cells as text; columns of numbers, with or without units, are sorted as such."""

    packages: ClassVar[tuple[str, ...]] = ("tablesort",)
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def body(self) -> str:
        """See Section."""
        return sortable(self.columns, self.rows)


class Frame:
    """A frame of a flame graph: a name, what is in it, and how much that is."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.value = 0.0
        self.inside: dict[str, Frame] = {}

    @property
    def depth(self) -> int:
        """How many frames lie within each other at most, this one included."""
        return 1 + max((frame.depth for frame in self.inside.values()), default=0)

    def add(self, path: Iterable[str], value: float) -> None:
        """Adds to this frame, and to those that the path leads through."""
        self.value += value
        frame = self
        for name in path:
            frame = frame.inside.setdefault(name, Frame(name))
            frame.value += value


@dataclass(frozen=True)
class FlameGraph:
    """A root with the frames inside it; times in ns, or bytes."""

    packages: ClassVar[tuple[str, ...]] = ("d3-selection", "d3-flame-graph")
    title: str
    root: Frame
    unit: str = "ns"
    note: str = ""

    def body(self) -> str:
        """See Section."""
        tools = (
            '<div class="tools">click a frame to zoom in <button>whole graph</button>'
            '<input placeholder="search" aria-label="search"></div>'
        )
        data = embedded(self._node(self.root))
        return (
            f'<div class="flame" data-depth="{self.root.depth}">{tools}<div class="graph"></div>'
            f'<div class="details"></div>{data}</div>'
        )

    def _node(self, frame: Frame) -> dict[str, Any]:
        amount = time_text(frame.value) if self.unit == "ns" else _bytes_text(frame.value)
        share = f"{100 * frame.value / (self.root.value or 1):.1f}%"
        node = {
            "name": frame.name,
            "value": frame.value,
            "text": f"{frame.name}: {amount}, {share}",
        }
        inside = sorted(frame.inside.values(), key=lambda each: -each.value)
        return node | ({"children": [self._node(each) for each in inside]} if inside else {})


def embedded(data: Any) -> str:
    """Data beside a section, of which no text can end the element that holds it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json">{text}</script>'


def _bytes_text(count: float) -> str:
    per_unit, unit = figures.byte_scale(count)
    return f"{count / per_unit:.3g} {unit}"
