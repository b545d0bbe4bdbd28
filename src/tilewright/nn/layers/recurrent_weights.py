"""What recurrent layers and cells share: their parameters, and checks of what they are given."""

from __future__ import annotations

import math
import operator

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.nn import init
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter

# weight_ih, weight_hh, bias_ih, bias_hh
Weights = tuple[Tensor, Tensor, Tensor | None, Tensor | None]


def check_nonlinearity(layer: str, nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"{layer}: nonlinearity is 'tanh' or 'relu', got {nonlinearity!r}")
    return nonlinearity


class RecurrentWeights(Module):
    """A module of recurrent weights; `gates` blocks of hidden_size are their first axis."""

    gates = 1
    input_size: int
    hidden_size: int
    bias: bool

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draws all anew, uniform within ±1/sqrt(hidden_size), as PyTorch's are."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound, generator=generator)

    def _add_weights(
        self, suffix: str, width: int, device: str | None, dtype: tw.dtype | None
    ) -> None:
        rows = self.gates * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, width),
            "weight_hh": (rows, self.hidden_size),
        }
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        for name, shape in shapes.items():
            weight = Parameter(tw.empty(shape, device=device, dtype=dtype))
            setattr(self, name + suffix, weight)

    def _weights(self, suffix: str = "") -> Weights:
        return (
            getattr(self, f"weight_ih{suffix}"),
            getattr(self, f"weight_hh{suffix}"),
            getattr(self, f"bias_ih{suffix}", None),
            getattr(self, f"bias_hh{suffix}", None),
        )

    def _size(self, name: str, value: int) -> int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{type(self).__name__}: {name} is a whole number, got {value!r}")
        if value < 1:
            raise ValueError(f"{type(self).__name__}: {name} must be at least 1, got {value}")
        return operator.index(value)

    def _check_width(self, x: Tensor) -> None:
        if x.shape[-1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__}: input {x.shape} has {x.shape[-1]} features a step, and "
                f"input_size is {self.input_size}"
            )

    def _check_state(self, kind: str, state: Tensor, shape: tuple[int, ...], axes: str) -> None:
        name = type(self).__name__
        if not isinstance(state, Tensor):
            raise TypeError(f"{name}: {kind} must be a Tensor, got {type(state).__name__}")
        if state.shape != shape:
            raise ValueError(f"{name}: {kind} {state.shape} must be {shape}: ({axes})")

    def _pair(self, hx: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor] | tuple[None, None]:
        if hx is None:
            return None, None
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            got = f"{len(hx)} of them" if isinstance(hx, (tuple, list)) else type(hx).__name__
            raise TypeError(f"{type(self).__name__}: first states are a pair (h, c), got {got}")
        return hx[0], hx[1]
