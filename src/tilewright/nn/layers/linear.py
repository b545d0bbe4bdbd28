"""The fully connected layer."""

from __future__ import annotations

import math
import operator

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.nn import init
from tilewright.nn.functions.random_values import draw_first
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter


class Linear(Module):
    """y = x @ weight.T + bias; x is (..., in_features), y is (..., out_features).

    With activation="relu" what is negative in y becomes 0, in the product's own kernel: the same
    numbers and gradients as a ReLU behind the layer, without its pass over y. Weight and bias start
    uniform within ±1/sqrt(in_features), as PyTorch's do. Raises ValueError for other activations.

    >>> import tilewright as tw
    >>> tw.nn.Linear(3, 2)(tw.ones((5, 3))).shape
    (5, 2)
    """

    weight: Parameter
    bias: Parameter | None
    activation: str | None = None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        activation: str | None = None,
        device: str | None = None,
        dtype: tw.dtype | None = None,
        generator: Generator | None = None,
    ) -> None:
        if activation not in (None, "relu"):
            raise ValueError(f"Linear: activation must be None or 'relu', got {activation!r}")
        self.activation = activation
        self.in_features = _features("in_features", in_features)
        self.out_features = _features("out_features", out_features)
        dtype = dtype or tw.get_default_dtype()
        self.weight = Parameter(
            tw.empty((self.out_features, self.in_features), device=device, dtype=dtype)
        )
        values = tw.empty((self.out_features,), device=device, dtype=dtype) if bias else None
        self.register_parameter("bias", None if values is None else Parameter(values))
        draw_first(self, generator)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draws new weights and biases."""
        # With a = sqrt(5) Kaiming's bound is 1/sqrt(in_features).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5), generator=generator)
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"Linear: expected a Tensor of shape (..., {self.in_features}), "
                f"got {type(x).__name__}; tw.asarray() makes one"
            )
        return tw.linear(x, self.weight, self.bias, activation=self.activation)

    def extra_repr(self) -> str:
        text = f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"
        return text if self.activation is None else f"{text}, activation={self.activation!r}"


_own_forward = Linear.forward


def relu_of(layer: Module, x: Tensor) -> Tensor:
    """relu(layer(x)), by one kernel where calling the layer would run Linear.forward alone.

    A subclass, a hook, a parametrization or a `forward` of the user's is called like any layer. The
    bits are the same both ways.
    """
    if (
        type(layer) is Linear
        and layer._call_hooks is None
        and layer.activation is None
        and getattr(layer.forward, "__func__", None) is _own_forward
    ):
        return tw.linear(x, layer.weight, layer.bias, activation="relu")
    return tw.relu(layer(x))


def _features(name: str, value: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"Linear: {name} is a whole number, got {value!r}")
    if value < 0:
        raise ValueError(f"Linear: negative number of features: {name}={value}")
    return operator.index(value)


class Bilinear(Module):
    """x1 @ weight[k] @ x2 + bias[k] for each k; x1 is (..., in1_features), x2 (..., in2_features).

    Weight and bias start uniform within ±1/sqrt(in1_features), as PyTorch's do.

    >>> import tilewright as tw
    >>> tw.nn.Bilinear(2, 3, 4)(tw.ones((5, 2)), tw.ones((5, 3))).shape
    (5, 4)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
        generator: Generator | None = None,
    ) -> None:
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be above 0, got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        dtype = dtype or tw.get_default_dtype()
        self.weight = Parameter(
            tw.empty((out_features, in1_features, in2_features), device=device, dtype=dtype)
        )
        values = tw.empty((out_features,), device=device, dtype=dtype) if bias else None
        self.register_parameter("bias", None if values is None else Parameter(values))
        draw_first(self, generator)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draws new weights and biases."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound, generator=generator)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound, generator=generator)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return tw.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
