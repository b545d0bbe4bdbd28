"""Recurrent layers against PyTorch: whole sequences and single steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright.bench.harness import OURS, Case

STEPS, BATCH, WIDTH, HIDDEN, LAYERS = 128, 32, 64, 256, 2
_GATES = {"LSTM": 4, "GRU": 3}


def recurrence_cases(peers: Mapping[str, Any]) -> Iterator[Case]:
    """Both layers with and without gradients; an LSTM's single step."""
    for kind in _GATES:
        name = f"{kind} {LAYERS}x{HIDDEN}, {STEPS} steps of {BATCH}"
        work = 1e-9 * _flops(kind)
        yield _case(peers, name, partial(_forward, kind), work, "GFLOP")
        both = f"{name}, with backward"
        yield _case(peers, both, partial(_both, kind), 3 * work, "GFLOP")
    flops = 1e-9 * 8 * HIDDEN * (WIDTH + HIDDEN)
    yield _case(peers, f"LSTMCell {WIDTH} to {HIDDEN}, one row", _single_step, flops, "GFLOP")


def _case(
    peers: Mapping[str, Any],
    name: str,
    make: Callable[[Any], Callable[[], Any]],
    work: float,
    unit: str,
) -> Case:
    contenders = {OURS: Timer(make(tw))}
    if "torch" in peers:
        contenders["torch"] = Timer(make(peers["torch"]))
    return Case(name, contenders, work, unit)


def _flops(kind: str) -> int:
    """Of the products of a forward pass."""
    inputs = WIDTH + (LAYERS - 1) * HIDDEN
    return 2 * STEPS * BATCH * _GATES[kind] * HIDDEN * (inputs + LAYERS * HIDDEN)


def _forward(kind: str, lib: Any) -> Callable[[], Any]:
    layer = getattr(lib.nn, kind)(WIDTH, HIDDEN, LAYERS)
    x = lib.randn(STEPS, BATCH, WIDTH)

    def call() -> None:
        with lib.no_grad():
            layer(x)

    return call


def _both(kind: str, lib: Any) -> Callable[[], Any]:
    """The gradients of the input and of all weights."""
    layer = getattr(lib.nn, kind)(WIDTH, HIDDEN, LAYERS)
    x = lib.randn(STEPS, BATCH, WIDTH, requires_grad=True)
    g = lib.randn(STEPS, BATCH, HIDDEN)

    def call() -> None:
        layer(x)[0].backward(g)
        x.grad = None
        layer.zero_grad()

    return call


def _single_step(lib: Any) -> Callable[[], Any]:
    cell = lib.nn.LSTMCell(WIDTH, HIDDEN)
    x, h, c = lib.randn(1, WIDTH), lib.randn(1, HIDDEN), lib.randn(1, HIDDEN)

    def call() -> None:
        with lib.no_grad():
            cell(x, (h, c))

    return call
