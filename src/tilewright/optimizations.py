"""The table of optimizations: what each saves, whether it is on, and turning it off.

A kernel is chosen by its name (`tw.kernels`); an optimization works inside of kernels, or around
them, and is on unless somebody turns it off. `tw.explain` names those that a call used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from tilewright import _core
from tilewright._engine.modes import ModeBlock
from tilewright._report.text import aligned

REASONS: tuple[str, ...] = tuple(_core._optimization_reasons)


@dataclass(frozen=True)
class Optimization:
    """A row of the table.

    `reason`: what it saves, one of `REASONS`. `families`: the ops that it works for. `scope`: where
    it can be off, "call" (in a block, `off`), "process" (at any time for all threads, `disable`) or
    "start" (from the start, by TILEWRIGHT_OFF). `same_bits`: whether results keep their bits
    without it. `on`: whether it is on for this thread.
    """

    name: str
    reason: str
    scope: str
    same_bits: bool
    families: str
    how: str
    source: str
    on: bool


class Table(Sequence[Optimization]):
    """The rows, in the order of the table."""

    def __init__(self, rows: Sequence[Optimization]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, at: int) -> Optimization: ...
    @overload
    def __getitem__(self, at: slice) -> Table: ...
    def __getitem__(self, at: int | slice) -> Optimization | Table:
        return Table(self._rows[at]) if isinstance(at, slice) else self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Optimization]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"<optimizations: {len(self)}, of which {sum(not row.on for row in self)} are off>"

    def __str__(self) -> str:
        rows = [
            (row.name, row.reason, "on" if row.on else "off", row.scope, row.families)
            for row in self
        ]
        return "\n".join(aligned([("name", "reason", "", "scope", "families"), *rows]))


def table() -> Table:
    """All optimizations, and whether each is on for this thread.

    >>> import tilewright as tw
    >>> [row.reason for row in tw.optimizations.table() if row.name == "call_cache"]
    ['less work a call']
    """
    return Table([Optimization(**row) for row in _core._optimization_rows()])


def names(reason: str | None = None, scope: str | None = None) -> list[str]:
    """Names of all optimizations, or of those of one reason or scope.

    Raises ValueError for a reason or scope that there is not.
    """
    for given, known, what in ((reason, REASONS, "reason"), (scope, _SCOPES, "scope")):
        if given is not None and given not in known:
            raise ValueError(f"optimizations.names: {what} must be one of {known}, got {given!r}")
    return [
        row.name for row in table() if reason in {None, row.reason} and scope in {None, row.scope}
    ]


def is_on(name: str) -> bool:
    """Whether an optimization is on for this thread. Raises ValueError for an unknown name."""
    return _found(name, "is_on").on


class off(ModeBlock):  # noqa: N801  (a context manager, used like a function)
    """Turns optimizations off on this thread within a block, and for the tasks that it submits.

    Results stay right; they keep their bits where the row says so (`same_bits`). A kernel that is
    forced (`tw.kernels.use`) runs whatever is off.

    Raises ValueError for unknown names, and for optimizations that all threads share.

    >>> import tilewright as tw
    >>> with tw.optimizations.off("streaming_stores", "call_cache"):
    ...     y = tw.ones((4, 4)) + 1
    """

    def __init__(self, *names: str) -> None:
        self.names = names
        for name in names:
            scope = _found(name, "off").scope
            if scope == "process":
                raise ValueError(
                    f"optimizations.off: {name} is the same for all threads; "
                    f"turn it off with tw.optimizations.disable({name!r})"
                )
            _refuse_start(name, scope, "off")

    def _enter(self) -> None:
        _core._enter_optimizations_off(self, self.names)


def disable(*names: str) -> None:
    """Turns optimizations off for all threads, until `enable`.

    Raises ValueError for unknown names, and for optimizations that must be off from the start.
    """
    _set("disable", names, turned_off=True)


def enable(*names: str) -> None:
    """Turns optimizations on again that `disable` or TILEWRIGHT_OFF has turned off.

    Within a block of `off` they stay off. Raises ValueError as `disable` does.
    """
    _set("enable", names, turned_off=False)


_SCOPES = ("call", "process", "start")


def _set(caller: str, names: tuple[str, ...], *, turned_off: bool) -> None:
    for name in names:
        _refuse_start(name, _found(name, caller).scope, caller)
    _core._set_optimizations_off(names, turned_off)


def _refuse_start(name: str, scope: str, caller: str) -> None:
    if scope == "start":
        raise ValueError(
            f"optimizations.{caller}: {name} can only be off from the start: "
            f"set TILEWRIGHT_OFF={name} before the program begins"
        )


def _found(name: Any, caller: str) -> Optimization:
    if not isinstance(name, str):
        raise TypeError(f"optimizations.{caller}: names must be str, got {name!r}")
    rows = {row.name: row for row in table()}
    if name not in rows:
        raise ValueError(f"optimizations.{caller}: {unknown(name, list(rows))}")
    return rows[name]


def unknown(name: str, known: Sequence[str]) -> str:
    """What an error says of an unknown name."""
    import difflib  # noqa: PLC0415  # for errors alone

    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else "tw.optimizations.table() lists them"
    return f"no optimization {name!r}; {hint}"


def check_environment() -> None:
    """Raises ValueError where TILEWRIGHT_OFF names what is no optimization."""
    for name in _core._unknown_optimizations():
        raise ValueError(f"TILEWRIGHT_OFF: {unknown(name, names())}")
