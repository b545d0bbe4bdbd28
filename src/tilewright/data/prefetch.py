"""Batches from files, read ahead by the transfer engine while the program works on earlier ones."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import tilewright as tw
from tilewright import Tensor, _core
from tilewright.data.file import FileTensor

# A tensor, and the event after which it holds the batch; None where it is in memory.
_Part = tuple[Tensor, _core.TransferEvent | None]


def batches(
    sources: Sequence[Tensor | FileTensor], orders: Iterable[Tensor], prefetch: int
) -> Iterator[tuple[Tensor, ...]]:
    """Rows of all sources at the numbers of each order, `prefetch` batches ahead.

    What goes wrong with a batch is raised in its place. Ending early cancels what is in flight.
    """
    ahead: deque[list[_Part]] = deque()
    try:
        for rows in orders:
            ahead.append([_start(source, rows) for source in sources])
            if len(ahead) > prefetch:
                yield _finish(ahead[0])
                ahead.popleft()
        while ahead:
            yield _finish(ahead[0])
            ahead.popleft()
    finally:
        _abandon([event for parts in ahead for _, event in parts if event])


def _start(source: Tensor | FileTensor, rows: Tensor) -> _Part:
    if isinstance(source, FileTensor):
        return source.gather(rows)
    return tw.take(source, rows, axis=0), None


def _finish(parts: list[_Part]) -> tuple[Tensor, ...]:
    for _, event in parts:
        if event:
            event.wait()
    return tuple([tensor for tensor, _ in parts])


def _abandon(events: list[_core.TransferEvent]) -> None:
    """Cancels, then waits for those that had started, so that their memory is free at once."""
    for event in events:
        event.cancel()
    for event in events:
        while not event.done():
            with contextlib.suppress(Exception):
                event.wait()
