"""Recurrent cells: single steps, for loops that decide from one to the next."""

from __future__ import annotations

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.nn.functions.random_values import draw_first
from tilewright.nn.layers.recurrent_weights import RecurrentWeights, check_nonlinearity
from tilewright.nn.module.parameter import Parameter


class _Cell(RecurrentWeights):
    """One step of a recurrent layer."""

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None = None
    bias_hh: Parameter | None = None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.input_size = self._size("input_size", input_size)
        self.hidden_size = self._size("hidden_size", hidden_size)
        self.bias = bias
        self._add_weights("", input_size, device, dtype)
        draw_first(self, generator)

    def _with_batch(self, x: Tensor, given: dict[str, Tensor | None]) -> list[Tensor]:
        """Input and states, each (batch, features)."""
        name = type(self).__name__
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a Tensor, got {type(x).__name__}")
        if x.ndim not in (1, 2):
            raise ValueError(
                f"{name}: input {x.shape} must be (batch, {self.input_size}), or "
                f"({self.input_size},) without a batch"
            )
        self._check_width(x)
        shape = (*x.shape[:-1], self.hidden_size)
        axes = "batch, hidden_size" if x.ndim == 2 else "hidden_size,"
        tensors = [x]
        for kind, state in given.items():
            if state is not None:
                self._check_state(kind, state, shape, axes)
                tensors.append(state)
            else:
                tensors.append(tw.zeros(shape, dtype=x.dtype, device=x.device))
        return tensors if x.ndim == 2 else [each[None] for each in tensors]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    """One step of `RNN`: h = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or relu.

    Input (batch, input_size) or (input_size,), state `hx` (batch, hidden_size) or (hidden_size,),
    zeros where left out; gives the next state in the same shape. Parameters weight_ih (hidden_size,
    input_size), weight_hh (hidden_size, hidden_size), with `bias` also bias_ih and bias_hh
    (hidden_size,), start uniform within ±1/sqrt(hidden_size). Raises ValueError for settings out of
    range and shapes that do not fit.

    >>> import tilewright as tw
    >>> tw.nn.RNNCell(4, 8)(tw.zeros((2, 4))).shape
    (2, 8)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.nonlinearity = check_nonlinearity("RNNCell", nonlinearity)
        super().__init__(
            input_size, hidden_size, bias, device=device, dtype=dtype, generator=generator
        )

    def forward(self, x: Tensor, hx: Tensor | None = None) -> Tensor:
        batch, h = self._with_batch(x, {"h": hx})
        y = tw.rnn_cell(batch, h, *self._weights(), self.nonlinearity)
        return y if x.ndim == 2 else y[0]

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity='relu'"


class GRUCell(_Cell):
    """One step of `GRU`: the next state.

    Shapes, arguments and errors are those of `RNNCell`; the parameters' first axis is
    3 * hidden_size, blocks of the reset gate, the update gate and the new values.

    >>> import tilewright as tw
    >>> tw.nn.GRUCell(4, 8)(tw.zeros((2, 4))).shape
    (2, 8)
    """

    gates = 3

    def forward(self, x: Tensor, hx: Tensor | None = None) -> Tensor:
        batch, h = self._with_batch(x, {"h": hx})
        y = tw.gru_cell(batch, h, *self._weights())
        return y if x.ndim == 2 else y[0]


class LSTMCell(_Cell):
    """One step of `LSTM`: the next pair (h, c).

    Shapes, arguments and errors are those of `RNNCell`, with a pair of states; the parameters'
    first axis is 4 * hidden_size, blocks of the input gate, the forget gate, the new values and the
    output gate.

    >>> import tilewright as tw
    >>> h, c = tw.nn.LSTMCell(4, 8)(tw.zeros((2, 4)))
    >>> h.shape, c.shape
    ((2, 8), (2, 8))
    """

    gates = 4

    def forward(self, x: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h0, c0 = self._pair(hx)
        batch, h, c = self._with_batch(x, {"h": h0, "c": c0})
        h, c = tw.lstm_cell(batch, h, c, *self._weights())
        return (h, c) if x.ndim == 2 else (h[0], c[0])
