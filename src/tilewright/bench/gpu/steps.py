"""What the host costs on a GPU: an op, a training step as one graph, allocations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from timeit import Timer

import tilewright as tw
from tilewright.bench.gpu.lines import Line
from tilewright.bench.gpu.memory import TORCH
from tilewright.bench.gpu.rivals import Rivals
from tilewright.bench.harness import OURS

_BATCH, _PIXELS, _CLASSES = 64, 784, 10


def step_lines(rivals: Rivals, quick: bool) -> Iterator[Line]:
    """By the host's clock, until the GPU is done with all calls of a sample."""
    yield Line("eager a + b, 64 elements", "calls", lambda: _small(rivals), 1.5, TORCH)
    hidden = 16 if quick else 256
    yield Line(
        f"MNIST step 784-{hidden}-10, batch {_BATCH}, Adam, from a graph",
        "calls",
        lambda: _training(rivals, hidden),
        5.0,
        TORCH,
    )
    count = 100 if quick else 10_000
    yield Line(
        f"{count:,} allocations of 4 KiB",
        "calls",
        lambda: _allocations(rivals, count),
        most_s=1e-3,
    )


def _small(rivals: Rivals) -> dict[str, Timer]:
    x, y = rivals.pairs(tw.randn((64,)))
    timers = {OURS: rivals.ours_host_timer([lambda: x + x])}
    if rivals.torch is not None:
        timers[TORCH] = rivals.torch_host_timer([lambda: y + y])
    return timers


def _training(rivals: Rivals, hidden: int) -> dict[str, Timer]:
    x, y = rivals.pairs(tw.rand((_BATCH, _PIXELS)))
    t, u = rivals.pairs(tw.arange(_BATCH) % _CLASSES)
    timers = {OURS: rivals.ours_host_timer([_captured_step(hidden, x, t)])}
    if (torch := rivals.torch) is None:
        return timers
    layers = torch.nn.Linear(_PIXELS, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, _CLASSES)
    model = torch.nn.Sequential(*layers).to(rivals.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(y), u).backward()
        optimizer.step()

    timers[TORCH] = rivals.torch_host_timer([step])
    return timers


def _captured_step(hidden: int, x: tw.Tensor, t: tw.Tensor) -> Callable[[], object]:
    model = tw.nn.Sequential(
        tw.nn.Linear(_PIXELS, hidden), tw.nn.ReLU(), tw.nn.Linear(hidden, _CLASSES)
    ).to("cuda")
    params = list(model.parameters())
    means, squares = ([tw.zeros(p.shape, device="cuda") for p in params] for _ in range(2))
    number = tw.zeros((), dtype=tw.int64, device="cuda")
    lr = tw.full((), 1e-3, device="cuda")

    def step(x: tw.Tensor, t: tw.Tensor) -> tw.Tensor:
        nonlocal number
        loss = tw.cross_entropy(model(x), t)
        grads = tw.grad(loss, params)
        number += 1
        tw.adam_step(params, grads, means, squares, step=number, lr=lr)
        return loss

    captured = tw._core._capture(step, [x, t])
    return lambda: captured.replay([x, t])


def _allocations(rivals: Rivals, count: int) -> dict[str, Timer]:
    """Made and dropped, one after the other."""

    def ours() -> None:
        for _ in range(count):
            tw.empty((1024,), device="cuda")

    timers = {OURS: rivals.ours_host_timer([ours])}
    if (torch := rivals.torch) is not None:

        def theirs() -> None:
            for _ in range(count):
                torch.empty((1024,), device=rivals.device)

        timers[TORCH] = rivals.torch_host_timer([theirs])
    return timers
