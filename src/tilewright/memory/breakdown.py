"""Where the memory of a training step goes: activations, gradients and temporaries, measured."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilewright import Tensor, _core
from tilewright._engine.optional_packages import available
from tilewright.memory import usage

FIGURES = {
    "activation_bytes": "activations",
    "gradient_reserved_bytes": "gradients reserved",
    "gradient_live_bytes": "gradients live",
    "temporary_bytes": "temporaries",
}


class MemoryReport(dict[str, dict[str, int | None]]):
    """Figures in bytes by way of walking back; None where a contender does not tell.

    `activation_bytes`: kept between forward and backward. `gradient_reserved_bytes`: what backward
    takes from the system, or holds aside, for gradients; `gradient_live_bytes`: most of them alive
    at one time. `temporary_bytes`: most that kernels held for themselves. Backward runs with
    retain_graph, so that activations freed on the way hide no gradients.
    """

    def columns(self) -> list[str]:
        """Heads of a table."""
        return ["MiB", *FIGURES.values()]

    def rows(self) -> list[list[str]]:
        """A table's rows, one a way of walking back."""
        return [
            [name, *(_mebibytes(figures[key]) for key in FIGURES)] for name, figures in self.items()
        ]

    def _repr_html_(self) -> str:
        from tilewright._report.html.tables import for_notebook  # noqa: PLC0415  (imported on use)

        return for_notebook("memory of a step", self.columns(), self.rows())

    def __str__(self) -> str:
        table = [self.columns(), *self.rows()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join(
            "  ".join(
                [cells[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
            )
            for cells in table
        )


def measure(
    function: Callable[[], Tensor], torch_function: Callable[[], Any] | None = None
) -> MemoryReport:
    """The report of one step; see `tilewright.memory.breakdown`."""
    for name, value in (("function", function), ("torch", torch_function)):
        if not callable(value) and (value is not None or name == "function"):
            raise TypeError(
                f"memory.report: {name} must be a function that builds a loss, "
                f"got {type(value).__name__}"
            )
    report = MemoryReport()
    with _grads_set_aside(_checked_loss(function())):
        report["eager"] = _measured(function, plan=False)
        report["planned"] = _measured(function, plan=True)
    if torch_function is not None and available("torch"):
        report["torch"] = _measured_torch(torch_function)
    return report


def _checked_loss(loss: Any) -> Tensor:
    if not isinstance(loss, Tensor):
        raise TypeError(
            f"memory.report: function() must return its loss, a tensor, got {type(loss).__name__}"
        )
    if not loss.requires_grad:
        raise ValueError(
            "memory.report: the loss of function() records no gradient; does a leaf of it have "
            "requires_grad=True?"
        )
    if loss.size != 1:
        raise ValueError(
            f"memory.report: the loss of function() has shape {loss.shape}; reduce it to one "
            "number, such as with sum() or mean()"
        )
    return loss


def _mebibytes(count: int | None) -> str:
    return "-" if count is None else f"{count / 2**20:,.2f}"


@contextmanager
def _grads_set_aside(loss: Tensor) -> Iterator[None]:
    leaves = _core._leaves(loss)
    before = [leaf.grad for leaf in leaves]
    del loss
    for leaf in leaves:
        leaf.grad = None
    try:
        yield
    finally:
        for leaf, grad in zip(leaves, before, strict=True):
            leaf.grad = grad


def _measured(function: Callable[[], Tensor], plan: bool) -> dict[str, int | None]:
    usage.trim()
    usage.reset_peaks()
    before = usage.stats()
    loss = function()
    usage.trim()  # what forward needed in passing is not there for gradients
    between = usage.stats()
    _core.memory_reset_peaks()
    loss.backward(retain_graph=True, plan=plan)
    after = usage.stats()
    for leaf in _core._leaves(loss):
        leaf.grad = None
    live = usage.last_plan()["live_bytes"] if plan else _grown("peak_live_bytes", between, after)
    return {
        "activation_bytes": between["live_bytes"] - before["live_bytes"],
        "gradient_reserved_bytes": _grown("peak_reserved_bytes", between, after),
        "gradient_live_bytes": live,
        "temporary_bytes": after["temporary_peak_live_bytes"],
    }


def _grown(peak: str, before: dict[str, int], after: dict[str, int]) -> int:
    return after[peak] - before[peak.removeprefix("peak_")]


def _measured_torch(function: Callable[[], Any]) -> dict[str, int | None]:
    """By the memory events of PyTorch's profiler, which does not see the scratch of its libraries.

    Its CPU allocator holds nothing aside, so that gradients reserve what is alive.
    """
    loss = function()
    leaves = _torch_leaves(loss)
    before = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    held: list[Any] = []
    kept, _ = _torch_balance(lambda: held.append(function()))
    _, peak = _torch_balance(lambda: held[0].backward(retain_graph=True))
    for leaf, grad in zip(leaves, before, strict=True):
        leaf.grad = grad
    return {
        "activation_bytes": kept,
        "gradient_reserved_bytes": peak,
        "gradient_live_bytes": peak,
        "temporary_bytes": None,
    }


def _torch_leaves(loss: Any) -> list[Any]:
    leaves, seen, stack = [], set(), [loss.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        stack += [following for following, _ in node.next_functions]
    return leaves


def _torch_balance(run: Callable[[], object]) -> tuple[int, int]:
    """Bytes allocated by `run` that are alive at its end, and at most."""
    torch = importlib.import_module("torch")
    kinds = importlib.import_module("torch._C._profiler")._EventType
    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu], profile_memory=True) as profiler:
        run()
    events = [
        event
        for event in _flattened(profiler.profiler.kineto_results.experimental_event_tree())
        if event.tag == kinds.Allocation
    ]
    live = peak = 0
    sizes: dict[int, int] = {}
    for event in sorted(events, key=lambda event: event.start_time_ns):
        address, size = event.extra_fields.ptr, event.extra_fields.alloc_size
        if size > 0:
            sizes[address] = size
            live += size
            peak = max(peak, live)
        else:  # of what was there before, nothing
            live -= sizes.pop(address, 0)
    return live, peak


def _flattened(events: list[Any]) -> Iterator[Any]:
    for event in events:
        yield event
        yield from _flattened(event.children)
