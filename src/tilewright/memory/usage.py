"""Bytes and counts of the memory that tensors live in, and of the last planned backward pass."""

from __future__ import annotations

from typing import Any

from tilewright import _core


def stats() -> dict[str, Any]:
    """Bytes and counts: live (checked out) and reserved (held for reuse) are kept apart.

    The temporary memory of kernels is no part of the pool and has figures of its own.
    `fragmentation` is the share of the free bytes of large blocks that the largest free range
    lacks: 0 where they lie in one piece.

    >>> import tilewright as tw
    >>> sorted(tw.memory.stats())[:2]
    ['allocations', 'fragmentation']
    """
    return {**_core.memory_stats(), **_core._scratch_stats()}


def trim() -> int:
    """Gives unused memory back to the system; returns the bytes given back."""
    return int(_core.memory_trim())


def reset_peaks() -> None:
    """Starts the peak figures anew from the current ones."""
    _core.memory_reset_peaks()
    _core._scratch_reset_peaks()


def last_plan() -> dict[str, int]:
    """Figures of the last `backward(plan=True)`; zeros before the first.

    Bytes: the arena, the sum of the gradients that lie in it, the lower bound (most of them alive
    at one time), and most alive at one time with those that outlive the pass (survivors). Counts:
    allocations planned, survivors, and fallbacks, which did not follow the plan.

    >>> import tilewright as tw
    >>> x = tw.ones((3,), requires_grad=True)
    >>> tw.exp(x * 2.0).sum().backward(plan=True)
    >>> tw.memory.last_plan()["fallbacks"]
    0
    """
    return dict(_core._last_plan())
