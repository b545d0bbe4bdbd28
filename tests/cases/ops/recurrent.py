"""Records of recurrent layers and cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import FLOATS
from cases.generators import same, values
from cases.record import Arrays, ErrorInput, OpCase

GATES = {"rnn": 1, "lstm": 4, "gru": 3}
# Steps, batch, features, hidden: tails of vectors, of panels of columns, one row, many rows.
SIZES = ((1, 1, 3, 5), (3, 2, 4, 17), (2, 5, 3, 8), (5, 17, 2, 22))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def cell(
    kind: str, x: np.ndarray, states: tuple[np.ndarray, ...], weights: tuple[Any, ...], how: str
) -> tuple[np.ndarray, ...]:
    """The states after one step, as the formulas of PyTorch's documentation have them."""
    w_ih, w_hh, b_ih, b_hh = (*weights, 0, 0)[:4]
    a, b = x @ w_ih.T + b_ih, states[0] @ w_hh.T + b_hh
    if kind == "rnn":
        return (np.tanh(a + b) if how == "tanh" else np.maximum(a + b, 0),)
    if kind == "lstm":
        i, f, g, o = np.split(a + b, 4, axis=1)
        c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (ar, az, an), (br, bz, bn) = np.split(a, 3, axis=1), np.split(b, 3, axis=1)
    z, n = sigmoid(az + bz), np.tanh(an + sigmoid(ar + br) * bn)
    return ((1 - z) * n + z * states[0],)


def layer(kind: str, *args: np.ndarray, reverse: bool = False, nonlinearity: str = "tanh") -> Any:
    """All states, then the last of each kind, along the axis of steps."""
    count = 2 if kind == "lstm" else 1
    x, states, weights = args[0], args[1 : 1 + count], args[1 + count :]
    ys: list[Any] = [None] * len(x)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        states = cell(kind, x[t], states, weights, nonlinearity)
        ys[t] = states[0]
    return np.stack([*ys, *states])


def layer_call(kind: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        ys, *last = getattr(tw, f"{kind}_layer")(*args, **options)
        return tw.concat([ys, *(state[None] for state in last)], axis=0)

    return call


def cell_call(kind: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        made = getattr(tw, f"{kind}_cell")(*args, **options)
        return tw.stack(made) if isinstance(made, tuple) else made

    return call


def cell_reference(kind: str, *args: np.ndarray, nonlinearity: str = "tanh") -> Any:
    count = 2 if kind == "lstm" else 1
    made = cell(kind, args[0], args[1 : 1 + count], args[1 + count :], nonlinearity)
    return np.stack(made) if kind == "lstm" else made[0]


def drawn(
    kind: str, draw: Callable[..., Any], sizes: tuple[int, ...], biases: bool, steps: bool
) -> Arrays:
    t, n, features, hidden = sizes
    rows = GATES[kind] * hidden
    state = [draw(n, hidden) for _ in range(2 if kind == "lstm" else 1)]
    x = draw(t, n, features) if steps else draw(n, features)
    rest = (draw(rows), draw(rows)) if biases else ()
    return (x, *state, draw(rows, features), draw(rows, hidden), *rest)


def arguments(kind: str, steps: bool) -> Callable[[np.random.Generator, str], list[Arrays]]:
    def make(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        def draw(*shape: int) -> np.ndarray:
            return values(rng, dtype, (-1, 1), shape)

        return [
            drawn(kind, draw, sizes, biases, steps)
            for sizes, biases in zip(SIZES, (True, False, True, True), strict=True)
        ]

    return make


def smooth(kind: str, steps: bool) -> Callable[[np.random.Generator], list[Arrays]]:
    def make(rng: np.random.Generator) -> list[Arrays]:
        def draw(*shape: int) -> np.ndarray:
            return rng.uniform(-0.7, 0.7, shape)

        return [
            drawn(kind, draw, sizes, biases=True, steps=steps)
            for sizes in ((2, 2, 2, 3), (3, 1, 2, 2))
        ]

    return make


def ones(*shapes: tuple[int, ...]) -> list[tw.Tensor]:
    return [tw.ones(shape) for shape in shapes]


def errors(kind: str) -> tuple[ErrorInput, ...]:
    op, rows = f"{kind}_layer", GATES[kind] * 4
    call = getattr(tw, op)
    states = [(2, 4)] * (2 if kind == "lstm" else 1)
    weights = ((rows, 3), (rows, 4))
    return (
        ErrorInput(
            lambda: call(*ones((0, 2, 3), *states, *weights)), ValueError, f"{op}: the sequence has"
        ),
        ErrorInput(
            lambda: call(*ones((2, 3), *states, *weights)),
            ValueError,
            f"{op}: input (2, 3) must be of three axes",
        ),
        ErrorInput(
            lambda: call(*ones((5, 2, 7), *states, *weights)),
            ValueError,
            f"{op}: weight_ih ({rows}, 3) must be ({rows}, 7)",
        ),
        ErrorInput(
            lambda: call(*ones((5, 3, 3), *states, *weights)),
            ValueError,
            f"{op}: h0 (2, 4) must be (3, 4)",
        ),
        ErrorInput(
            lambda: call(*ones((5, 2, 3), *states, *weights, (3,))),
            ValueError,
            f"{op}: bias_ih (3,) must be ({rows},)",
        ),
        ErrorInput(
            lambda: call(*(x.astype(tw.int64) for x in ones((5, 2, 3), *states, *weights))),
            TypeError,
            f"{op}: floating point only, got int64",
        ),
    )


# Half types round the gates of the input once more on the way.
TOLERANCE = dict.fromkeys(FLOATS[:2], 4.0) | {"float32": 40.0, "float64": 40.0}


def record(kind: str, steps: bool) -> OpCase:
    how = ({}, {"nonlinearity": "relu"}) if kind == "rnn" else ({},)
    states = 2 if kind == "lstm" else 1
    return OpCase(
        f"{kind}_layer" if steps else f"{kind}_cell",
        (layer_call if steps else cell_call)(kind),
        lambda *args, **options: (layer if steps else cell_reference)(kind, *args, **options),
        arguments(kind, steps),
        TOLERANCE,
        same,
        lambda x, *args, **options: 1 + 2 * x.shape[-1] + 2 * args[0].shape[-1],
        (*how, {"reverse": True}) if steps else how,
        signed_zero=False,
        differentiable=tuple(range(5 + states)),
        smooth=smooth(kind, steps),
        gradient_tolerance=64,
        errors=errors(kind) if steps else (),
    )


RECORDS = tuple(record(kind, steps) for kind in GATES for steps in (True, False))
