"""The memory that every tensor lives in: figures, pools with a quota, blocks, a log of events."""

from __future__ import annotations

from tilewright import _core
from tilewright._core import Block as Block
from tilewright._core import Pool as Pool
from tilewright._core import _allocate
from tilewright.memory.timeline import Timeline as Timeline
from tilewright.memory.timeline import record as record

allocate = _allocate


def stats() -> dict[str, float]:
    """Bytes and counts: live (checked out) and reserved (held for reuse) are kept apart.

    `fragmentation` is the share of the free bytes of large blocks that the largest free range
    lacks: 0 where they lie in one piece.

    >>> import tilewright as tw
    >>> sorted(tw.memory.stats())[:2]
    ['allocations', 'fragmentation']
    """
    return dict(_core.memory_stats())


def trim() -> int:
    """Gives unused memory back to the system; returns the bytes given back."""
    return int(_core.memory_trim())


def reset_peaks() -> None:
    """Starts the peak figures anew from the current ones."""
    _core.memory_reset_peaks()
