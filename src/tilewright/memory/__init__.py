"""The memory that every tensor lives in: figures, pools with a quota, blocks, a log of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright import Tensor
from tilewright._core import Block as Block
from tilewright._core import Pool as Pool
from tilewright._core import _allocate
from tilewright.memory.timeline import Timeline as Timeline
from tilewright.memory.timeline import record as record
from tilewright.memory.usage import last_plan as last_plan
from tilewright.memory.usage import reset_peaks as reset_peaks
from tilewright.memory.usage import stats as stats
from tilewright.memory.usage import trim as trim

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.memory.breakdown import MemoryReport

allocate = _allocate


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
