"""Recurrent layers: whole sequences, several layers, both directions."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.nn.functions.random_values import draw_first
from tilewright.nn.layers.packed_sequence import PackedSequence
from tilewright.nn.layers.recurrent_weights import RecurrentWeights, Weights, check_nonlinearity

Input = TypeVar("Input", Tensor, PackedSequence)
Segment = tuple[int, int, int]


class _Recurrent(RecurrentWeights):
    """What RNN, LSTM and GRU share: weights by layer and direction, and the walk over them."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        device: str | None,
        dtype: tw.dtype | None,
        generator: Generator | None,
    ) -> None:
        self.input_size = self._size("input_size", input_size)
        self.hidden_size = self._size("hidden_size", hidden_size)
        self.num_layers = self._size("num_layers", num_layers)
        flags = {"bias": bias, "batch_first": batch_first, "bidirectional": bidirectional}
        for name, flag in flags.items():
            if not isinstance(flag, bool):
                raise TypeError(f"{type(self).__name__}: {name} is True or False, got {flag!r}")
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bidirectional
        self.dropout = self._probability(dropout)
        for layer, reverse in self._passes():
            width = hidden_size * (1 + bidirectional) if layer else input_size
            self._add_weights(_suffix(layer, reverse), width, device, dtype)
        draw_first(self, generator)

    def _probability(self, dropout: float) -> float:
        name = type(self).__name__
        if isinstance(dropout, bool) or not isinstance(dropout, numbers.Real):
            raise TypeError(f"{name}: dropout is a number, got {dropout!r}")
        if not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout lies between 0 and 1, got {dropout}")
        if dropout and self.num_layers == 1:
            warnings.warn(
                f"{name}: dropout={dropout} acts between layers, and num_layers is 1",
                stacklevel=4,
            )
        return float(dropout)

    def _passes(self) -> list[tuple[int, bool]]:
        """Layers from below, each forwards and, where there are two directions, backwards."""
        directions = (False, True) if self.bidirectional else (False,)
        return [(layer, reverse) for layer in range(self.num_layers) for reverse in directions]

    def _layer(
        self, x: Tensor, states: Sequence[Tensor], weights: Weights, reverse: bool
    ) -> tuple[Tensor, ...]:
        """All states of one pass, and its last state of each kind."""
        raise NotImplementedError

    def _run(self, x: Input, given: dict[str, Tensor | None]) -> tuple[Any, ...]:
        """The states of the last layer, and each kind of last state of all passes."""
        if isinstance(x, PackedSequence):
            return self._run_packed(x, given)
        batched = self._check_input(x)
        if not batched:
            x = x[:, None]
        elif self.batch_first:
            x = x.transpose(0, 1)
        first = [self._first_states(name, each, x, batched) for name, each in given.items()]
        x, *last = self._stack(x, first)
        if not batched:
            return (x[:, 0], *(state[:, 0] for state in last))
        return (x.transpose(0, 1) if self.batch_first else x, *last)

    def _run_packed(
        self, x: PackedSequence, given: dict[str, Tensor | None]
    ) -> tuple[PackedSequence | Tensor, ...]:
        self._check_width(x.data)
        batch = x.data[None, : int(x.batch_sizes[0].item())]
        first = [
            x.sorted(self._first_states(name, each, batch, True)) for name, each in given.items()
        ]
        y, *last = self._stack(x.data, first, list(x.segments()))
        return (x._replace(data=y), *map(x.unsorted, last))

    def _stack(
        self, x: Tensor, first: Sequence[Tensor], segments: Sequence[Segment] = ()
    ) -> list[Tensor]:
        """All layers, one on another: x and the states have a batch, and steps come first.

        With segments x is the data of a PackedSequence.
        """
        last: list[tuple[Tensor, ...]] = []
        directions = 1 + self.bidirectional
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = tw.dropout(x, self.dropout, self.training)
            made = []
            for i in range(directions):
                states = [each[layer * directions + i] for each in first]
                weights = self._weights(_suffix(layer, bool(i)))
                if segments:
                    y, ends = self._packed_layer(x, states, weights, bool(i), segments)
                else:
                    y, *ends = self._layer(x, states, weights, bool(i))
                made.append(y)
                last.append(tuple(ends))
            x = tw.concat(made, axis=-1) if self.bidirectional else made[0]
        return [x, *(tw.stack(kind) for kind in zip(*last, strict=True))]

    def _packed_layer(
        self,
        x: Tensor,
        states: Sequence[Tensor],
        weights: Weights,
        reverse: bool,
        segments: Sequence[Segment],
    ) -> tuple[Tensor, list[Tensor]]:
        """One pass over a packed sequence: its states in x's order, and the last of each kind.

        Between two segments sequences end, forwards, or begin, backwards: the last ones.
        """
        made: list[Tensor] = []
        ended: list[list[Tensor]] = []
        now = [each[:0] for each in states] if reverse else list(states)
        for row, steps, count in reversed(segments) if reverse else segments:
            if reverse:
                began = [
                    first[each.shape[0] : count] for each, first in zip(now, states, strict=True)
                ]
                now = [tw.concat(both) for both in zip(now, began, strict=True)]
            elif count < now[0].shape[0]:
                ended.append([each[count:] for each in now])
                now = [each[:count] for each in now]
            part = x[row : row + steps * count].reshape((steps, count, -1))
            y, *now = self._layer(part, now, weights, reverse)
            made.append(y.reshape((steps * count, -1)))
        last = [tw.concat(kind) for kind in zip(now, *reversed(ended), strict=True)]
        return tw.concat(made[::-1] if reverse else made), last

    def _check_input(self, x: Tensor) -> bool:
        """Whether there is a batch."""
        name = type(self).__name__
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a Tensor, got {type(x).__name__}")
        if x.ndim not in (2, 3):
            axes = "batch, steps" if self.batch_first else "steps, batch"
            raise ValueError(
                f"{name}: input {x.shape} must be ({axes}, {self.input_size}), or "
                f"(steps, {self.input_size}) without a batch"
            )
        self._check_width(x)
        return x.ndim == 3

    def _first_states(self, kind: str, state: Tensor | None, x: Tensor, batched: bool) -> Tensor:
        """(layers * directions, batch, hidden_size); zeros where left out."""
        count = self.num_layers * (1 + self.bidirectional)
        shape = (count, x.shape[1], self.hidden_size)
        if state is None:
            return tw.zeros(shape, dtype=x.dtype, device=x.device)
        expected = shape if batched else (count, self.hidden_size)
        axes = "layers * directions" + (", batch" if batched else "") + ", hidden_size"
        self._check_state(kind, state, expected, axes)
        return state if batched else state[:, None]

    def extra_repr(self) -> str:
        settings = {
            "num_layers": (self.num_layers, 1),
            "bias": (self.bias, True),
            "batch_first": (self.batch_first, False),
            "dropout": (self.dropout, 0.0),
            "bidirectional": (self.bidirectional, False),
        }
        changed = [f"{name}={value}" for name, (value, usual) in settings.items() if value != usual]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed])


def _suffix(layer: int, reverse: bool) -> str:
    return f"_l{layer}" + ("_reverse" if reverse else "")


class RNN(_Recurrent):
    """Elman layers: h = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or relu.

    Input (steps, batch, input_size), with `batch_first` (batch, steps, input_size), without a batch
    (steps, input_size); first states `hx` (layers * directions, batch, hidden_size), zeros where
    left out. Gives the last layer's states (steps, batch, directions * hidden_size), both
    directions side by side, and the last state of each layer and direction, shaped as `hx`.
    `dropout` is the probability of zeroing a number between two layers in training. A
    PackedSequence (`nn.utils.rnn`) as input gives one, whatever `batch_first`.

    Parameters of layer k, with the width of its input: weight_ih_lk (hidden_size, width),
    weight_hh_lk (hidden_size, hidden_size), with `bias` also bias_ih_lk and bias_hh_lk
    (hidden_size,); those of the backward direction end in _reverse. All start uniform within
    ±1/sqrt(hidden_size), as PyTorch's do. Raises ValueError for settings out of range, shapes that
    do not fit, or no steps. Source: Elman, "Finding structure in time" (1990).

    >>> import tilewright as tw
    >>> states, last = tw.nn.RNN(4, 8)(tw.zeros((5, 2, 4)))
    >>> states.shape, last.shape
    ((5, 2, 8), (1, 2, 8))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.nonlinearity = check_nonlinearity("RNN", nonlinearity)
        options = num_layers, bias, batch_first, dropout, bidirectional
        super().__init__(input_size, hidden_size, *options, device, dtype, generator)

    def _layer(
        self, x: Tensor, states: Sequence[Tensor], weights: Weights, reverse: bool
    ) -> tuple[Tensor, ...]:
        return tw.rnn_layer(x, states[0], *weights, reverse, self.nonlinearity)

    def forward(self, x: Input, hx: Tensor | None = None) -> tuple[Input, Tensor]:
        y, h = self._run(x, {"h0": hx})
        return y, h

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity='relu'"


class GRU(_Recurrent):
    """Gated recurrent units: a reset gate r, an update gate z and new values n.

    r = sigmoid(a_r + b_r), z = sigmoid(a_z + b_z), n = tanh(a_n + r * b_n) and
    h = (1 - z) * n + z * h, where a = weight_ih x + bias_ih and b = weight_hh h + bias_hh.
    Shapes, arguments and errors are those of `RNN`; the parameters' first axis is 3 * hidden_size,
    blocks of r, z and n in this order, as in PyTorch. Source: Cho et al., "Learning phrase
    representations using RNN encoder-decoder for statistical machine translation" (2014).

    >>> import tilewright as tw
    >>> states, last = tw.nn.GRU(4, 8, bidirectional=True)(tw.zeros((5, 2, 4)))
    >>> states.shape, last.shape
    ((5, 2, 16), (2, 2, 8))
    """

    gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
        generator: Generator | None = None,
    ) -> None:
        options = num_layers, bias, batch_first, dropout, bidirectional
        super().__init__(input_size, hidden_size, *options, device, dtype, generator)

    def _layer(
        self, x: Tensor, states: Sequence[Tensor], weights: Weights, reverse: bool
    ) -> tuple[Tensor, ...]:
        return tw.gru_layer(x, states[0], *weights, reverse)

    def forward(self, x: Input, hx: Tensor | None = None) -> tuple[Input, Tensor]:
        y, h = self._run(x, {"h0": hx})
        return y, h


class LSTM(_Recurrent):
    """Long short-term memory: cells c behind an input gate i, a forget gate f and an output gate o.

    c = sigmoid(f) * c + sigmoid(i) * tanh(g) and h = sigmoid(o) * tanh(c), where i, f, g and o are
    blocks of weight_ih x + bias_ih + weight_hh h + bias_hh. Shapes, arguments and errors are those
    of `RNN`; first and last states are a pair (h, c), and the parameters' first axis is
    4 * hidden_size, blocks of i, f, g and o in this order, as in PyTorch. States are not projected:
    `proj_size` other than 0 raises ValueError. Source: Hochreiter and Schmidhuber, "Long short-term
    memory" (1997).

    >>> import tilewright as tw
    >>> states, (h, c) = tw.nn.LSTM(4, 8, num_layers=2)(tw.zeros((5, 2, 4)))
    >>> states.shape, h.shape, c.shape
    ((5, 2, 8), (2, 2, 8), (2, 2, 8))
    """

    gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
        generator: Generator | None = None,
    ) -> None:
        if proj_size != 0:
            raise ValueError(
                f"LSTM: states are not projected: proj_size must be 0, got {proj_size!r}"
            )
        options = num_layers, bias, batch_first, dropout, bidirectional
        super().__init__(input_size, hidden_size, *options, device, dtype, generator)

    def _layer(
        self, x: Tensor, states: Sequence[Tensor], weights: Weights, reverse: bool
    ) -> tuple[Tensor, ...]:
        return tw.lstm_layer(x, states[0], states[1], *weights, reverse)

    def forward(
        self, x: Input, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Input, tuple[Tensor, Tensor]]:
        h0, c0 = self._pair(hx)
        y, h, c = self._run(x, {"h0": h0, "c0": c0})
        return y, (h, c)
