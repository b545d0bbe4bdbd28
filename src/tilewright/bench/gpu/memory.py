"""What is bound by a GPU's memory, against PyTorch: softmax, pointwise rows, sums, optimizers, and
a convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright.bench.gpu.lines import Line
from tilewright.bench.gpu.rivals import Rivals
from tilewright.bench.harness import OURS

TORCH, COMPILED, COPY = "torch", "torch.compile", "device copy"
_Function = Callable[[Any], Any]


def memory_lines(rivals: Rivals, quick: bool) -> Iterator[Line]:
    """One launch each, on float32."""
    n = 64 if quick else 4096
    torch = rivals.torch
    rows = (n, 10)
    yield Line(
        f"log-softmax {n}x10, synchronised",
        "memory",
        lambda: _timers(
            rivals, rows, tw.log_softmax, lambda x: torch.log_softmax(x, -1), each_waits=True
        ),
        most_s=10e-6,
    )
    yield _pass(rivals, f"softmax {n}x{n}", n, 2, tw.softmax, "softmax", 1.2)
    yield _pointwise(rivals, n)
    yield _pass(rivals, f"sum {n}x{n}", n, 1, tw.sum, "sum", 1.0)
    yield Line(
        "Adam, 16 parameters" + (f" of {n}x{n}" if quick else " of 1024x1024"),
        "memory",
        lambda: _optimizers(rivals, n if quick else 1024),
        1.0,
        TORCH,
    )
    shape = (2, 1, 12, 12) if quick else (32, 1, 28, 28)
    yield Line(
        f"conv2d {'x'.join(map(str, shape))}, 32 of 3x3",
        "memory",
        lambda: _convolutions(rivals, shape),
        1.5,
        TORCH,
    )


def _inputs(rivals: Rivals, shape: tuple[int, ...]) -> list[tuple[tw.Tensor, Any]]:
    count = 1
    for side in shape:
        count *= side
    return [
        rivals.pairs(tw.randn(shape, generator=tw.Generator(i)))
        for i in range(rivals.sets(8 * count))
    ]


def _timers(
    rivals: Rivals,
    shape: tuple[int, ...],
    ours: _Function,
    theirs: _Function,
    each_waits: bool = False,
) -> dict[str, Timer]:
    """Each waits: by the host's clock, with a synchronisation behind every call."""
    pairs = _inputs(rivals, shape)

    def calls(function: _Function, which: int, wait: Callable[[], None]) -> list[Any]:
        def call(x: Any) -> Callable[[], object]:
            def waiting() -> None:
                function(x)
                wait()

            return waiting if each_waits else lambda: function(x)

        return [call(pair[which]) for pair in pairs]

    timer = rivals.ours_host_timer if each_waits else rivals.ours_timer
    timers = {OURS: timer(calls(ours, 0, tw.cuda.synchronize))}
    if rivals.torch is not None:
        timer = rivals.torch_host_timer if each_waits else rivals.torch_timer
        timers[TORCH] = timer(calls(theirs, 1, rivals.synchronize))
        if compiled := rivals.compiled(theirs):
            timers[COMPILED] = timer(calls(compiled, 1, rivals.synchronize))
    return timers


def _pass(
    rivals: Rivals, name: str, n: int, passes: int, ours: _Function, theirs: str, least: float
) -> Line:
    torch = rivals.torch
    calls: dict[str, _Function] = {
        "softmax": lambda x: torch.softmax(x, -1),
        "sum": lambda x: x.sum(),
    }

    def make() -> Mapping[str, Timer]:
        return _timers(rivals, (n, n), ours, calls[theirs])

    return Line(name, "memory", make, least, TORCH, work=4e-9 * passes * n * n, unit="GB")


def _pointwise(rivals: Rivals, n: int) -> Line:
    """relu reads and writes what a copy by the driver does."""
    torch = rivals.torch

    def make() -> Mapping[str, Timer]:
        timers = _timers(rivals, (n, n), tw.relu, getattr(torch, "relu", tw.relu))
        places = [(x, tw.empty(x.shape, device="cuda")) for x, _ in _inputs(rivals, (n, n))]
        copies = [lambda x=x, y=y: tw._core._gpu_copy(y, x) for x, y in places]
        timers[COPY] = rivals.ours_timer(copies)
        return timers

    return Line(f"relu {n}x{n}", "memory", make, 0.95, COPY, work=8e-9 * n * n, unit="GB")


def _optimizers(rivals: Rivals, n: int) -> dict[str, Timer]:
    pairs = [rivals.pairs(tw.randn((n, n), generator=tw.Generator(i))) for i in range(16)]
    params = [x.detach().requires_grad_() for x, _ in pairs]
    for p in params:
        p.grad = tw.ones(p.shape, device="cuda")
    timers = {OURS: rivals.ours_timer([tw.optim.Adam(params, lr=1e-6).step])}
    if rivals.torch is not None:
        theirs = [x.detach().requires_grad_() for _, x in pairs]
        for p in theirs:
            p.grad = p.detach() * 0 + 1
        optimizer = rivals.torch.optim.Adam(theirs, lr=1e-6, fused=True)
        timers[TORCH] = rivals.torch_timer([optimizer.step])
    return timers


def _convolutions(rivals: Rivals, shape: tuple[int, ...]) -> dict[str, Timer]:
    torch = rivals.torch
    w, v = rivals.pairs(tw.randn((32, shape[1], 3, 3), generator=tw.Generator(9)))
    return _timers(
        rivals,
        shape,
        lambda x: tw.nn.functional.conv2d(x, w, padding=1),
        lambda x: torch.nn.functional.conv2d(x, v, padding=1),
    )
