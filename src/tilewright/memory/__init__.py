"""The memory that every tensor lives in: figures, pools with a quota, blocks, a log of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright import Tensor, _core
from tilewright._core import Block as Block
from tilewright._core import Pool as Pool
from tilewright._core import _allocate
from tilewright.memory.timeline import Timeline as Timeline
from tilewright.memory.timeline import record as record

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.memory.breakdown import MemoryReport

allocate = _allocate


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


def report(function: Callable[[], Tensor], torch: Callable[[], Any] | None = None) -> MemoryReport:
    """Where the memory of a training step goes: `function()` builds its loss.

    A mapping from eager, planned and, where `torch` builds the same loss with an installed PyTorch,
    torch to figures in bytes; printed, it is a table. The grads of the leaves are as before
    afterwards.

    Shapes: the loss has no dimensions.
    Types: floating, complex. Result: figures in bytes.
    Raises ValueError where the loss is outside any graph.
    Source: this package.

    >>> import tilewright as tw
    >>> w = tw.randn(64, 64, requires_grad=True)
    >>> list(tw.memory.report(lambda: tw.exp(w @ w).sum()))
    ['eager', 'planned']
    """
    from tilewright.memory.breakdown import measure  # noqa: PLC0415  (imported on use)

    return measure(function, torch)
