"""Figures of the memory pool that every tensor lives in."""

from __future__ import annotations

from tilewright import _core


def stats() -> dict[str, int]:
    """Bytes and counts: live (checked out) and reserved (held for reuse) are kept apart.

    >>> import tilewright as tw
    >>> sorted(tw.memory.stats())[:2]
    ['allocations', 'live_bytes']
    """
    return dict(_core.memory_stats())


def trim() -> int:
    """Gives unused memory back to the system; returns the bytes given back."""
    return int(_core.memory_trim())


def reset_peaks() -> None:
    """Starts the peak figures anew from the current ones."""
    _core.memory_reset_peaks()
