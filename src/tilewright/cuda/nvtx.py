"""Ranges in the timelines of NVIDIA's tools: `tw.cuda.nvtx`.

    nsys profile -t cuda,nvtx python train.py

A tool that is started so listens; without one nothing happens. Names follow torch.cuda.nvtx.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright import _core

__all__ = ["emit", "is_attached", "mark", "range", "range_pop", "range_push"]


def is_attached() -> bool:
    """Whether a tool listens, as NVTX_INJECTION64_PATH said when it was first asked for."""
    return _core._nvtx_attached()


def range_push(msg: str) -> int:
    """Opens a range of this thread within the one before; returns its level, -2 without a tool."""
    return _core._nvtx_push(msg)


def range_pop() -> int:
    """Ends the thread's latest range; returns its level, -2 without a tool."""
    return _core._nvtx_pop()


def mark(msg: str) -> None:
    """Marks this moment."""
    _core._nvtx_mark(msg)


@contextmanager
def range(msg: str) -> Iterator[None]:
    """A range around a block.

    >>> import tilewright as tw
    >>> with tw.cuda.nvtx.range("forward"):
    ...     y = tw.ones((3,)) * 2
    """
    range_push(msg)
    try:
        yield
    finally:
        range_pop()


@contextmanager
def emit() -> Iterator[None]:
    """Every op of this thread opens a range with its name, those that it is made of within it.

    On each device; what is launched in a range belongs to it in the tool's timeline, to the end of
    the kernels, as no op is waited for. Blocks may nest.

    >>> import tilewright as tw
    >>> with tw.cuda.nvtx.emit():
    ...     y = tw.ones((3,)) * 2
    """
    observing = _core._Observing([])  # ops of the CPU name themselves too
    before = _core._nvtx_set_emitting(True)
    try:
        yield
    finally:
        _core._nvtx_set_emitting(before)
        observing.stop()
