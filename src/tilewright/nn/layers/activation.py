"""Activation functions as layers, with PyTorch's names and arguments."""

from __future__ import annotations

from collections.abc import Callable

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.functions import composites
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter


class _Activation(Module):
    """A function of each element. `inplace`: x is overwritten with the result and returned."""

    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def _applied(self, function: Callable[..., Tensor], x: Tensor, *options: float) -> Tensor:
        return function(x, *options, inplace=True) if self.inplace else function(x, *options)

    def extra_repr(self) -> str:
        return ", ".join([*self._options(), *(["inplace=True"] if self.inplace else [])])

    def _options(self) -> list[str]:
        return []


class ReLU(_Activation):
    """max(x, 0).

    >>> import tilewright as tw
    >>> tw.nn.ReLU()(tw.asarray([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.relu, x)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    >>> import tilewright as tw
    >>> tw.nn.Sigmoid()(tw.asarray([0.0])).tolist()
    [0.5]
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent.

    >>> import tilewright as tw
    >>> tw.nn.Tanh()(tw.asarray([0.0])).tolist()
    [0.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.tanh(x)


class _AlongAxis(Module):
    def __init__(self, axis: int = -1, *, dim: int | None = None) -> None:
        self.axis = axis if dim is None else dim

    @property
    def dim(self) -> int:
        """The axis, by PyTorch's name."""
        return self.axis

    @dim.setter
    def dim(self, axis: int) -> None:
        self.axis = axis

    def extra_repr(self) -> str:
        return f"axis={self.axis}"


class Softmax(_AlongAxis):
    """exp(x) / sum(exp(x)) along `axis`; `dim` is PyTorch's name of it.

    >>> import tilewright as tw
    >>> tw.nn.Softmax()(tw.zeros((1, 4))).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.softmax(x, axis=self.axis)


class ReLU6(_Activation):
    """x limited to the range from 0 to 6.

    >>> import tilewright as tw
    >>> tw.nn.ReLU6()(tw.asarray([-1.0, 8.0])).tolist()
    [0.0, 6.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.relu6, x)


class LeakyReLU(_Activation):
    """x where positive, else x times `negative_slope`.

    >>> import tilewright as tw
    >>> tw.nn.LeakyReLU(0.5)(tw.asarray([-1.0, 2.0])).tolist()
    [-0.5, 2.0]
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.leaky_relu, x, self.negative_slope)

    def _options(self) -> list[str]:
        return [f"negative_slope={self.negative_slope}"]


class ELU(_Activation):
    """x where positive, else alpha * (exp(x) - 1) (Clevert, Unterthiner, Hochreiter, 2016).

    >>> import tilewright as tw
    >>> tw.nn.ELU()(tw.asarray([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.elu, x, self.alpha)

    def _options(self) -> list[str]:
        return [f"alpha={self.alpha}"]


class CELU(_Activation):
    """x where positive, else alpha * (exp(x / alpha) - 1) (Barron, 2017).

    >>> import tilewright as tw
    >>> tw.nn.CELU()(tw.asarray([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.celu, x, self.alpha)

    def _options(self) -> list[str]:
        return [f"alpha={self.alpha}"]


class SELU(_Activation):
    """An ELU whose scale keeps mean 0 and variance 1 (Klambauer et al., 2017).

    >>> import tilewright as tw
    >>> tw.nn.SELU()(tw.asarray([0.0])).tolist()
    [0.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.selu, x)


class GELU(Module):
    """x times the share of a normal distribution below x (Hendrycks, Gimpel, 2016).

    With approximate="tanh" by their formula with a tanh. Raises ValueError for other names.

    >>> import tilewright as tw
    >>> tw.nn.GELU()(tw.asarray([0.0])).tolist()
    [0.0]
    """

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return tw.gelu(x, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(_Activation):
    """x * sigmoid(x), also called swish (Elfwing, Uchibe, Doya, 2018).

    >>> import tilewright as tw
    >>> tw.nn.SiLU()(tw.asarray([0.0])).tolist()
    [0.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.silu, x)


class Mish(_Activation):
    """x * tanh(softplus(x)) (Misra, 2019).

    >>> import tilewright as tw
    >>> tw.nn.Mish()(tw.asarray([0.0])).tolist()
    [0.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.mish, x)


class Hardtanh(_Activation):
    """x limited to the range from `min_val` to `max_val`.

    >>> import tilewright as tw
    >>> tw.nn.Hardtanh()(tw.asarray([-3.0, 0.5])).tolist()
    [-1.0, 0.5]
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.hardtanh, x, self.min_val, self.max_val)

    def _options(self) -> list[str]:
        return [f"min_val={self.min_val}", f"max_val={self.max_val}"]


class Hardswish(_Activation):
    """x * relu6(x + 3) / 6 (Howard et al., 2019).

    >>> import tilewright as tw
    >>> tw.nn.Hardswish()(tw.asarray([-3.0, 3.0])).tolist()
    [0.0, 3.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.hardswish, x)


class Hardsigmoid(_Activation):
    """relu6(x + 3) / 6.

    >>> import tilewright as tw
    >>> tw.nn.Hardsigmoid()(tw.asarray([-3.0, 0.0])).tolist()
    [0.0, 0.5]
    """

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.hardsigmoid, x)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above `threshold`.

    >>> import tilewright as tw
    >>> tw.nn.Softplus()(tw.asarray([30.0])).tolist()
    [30.0]
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta = beta
        self.threshold = threshold

    def forward(self, x: Tensor) -> Tensor:
        return tw.softplus(x, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """x / (1 + abs(x)).

    >>> import tilewright as tw
    >>> tw.nn.Softsign()(tw.asarray([1.0])).tolist()
    [0.5]
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.softsign(x)


class LogSigmoid(Module):
    """log(sigmoid(x)).

    >>> import tilewright as tw
    >>> tw.nn.LogSigmoid()(tw.asarray([80.0])).shape
    (1,)
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.logsigmoid(x)


class Tanhshrink(Module):
    """x - tanh(x).

    >>> import tilewright as tw
    >>> tw.nn.Tanhshrink()(tw.asarray([0.0])).tolist()
    [0.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.tanhshrink(x)


class Softshrink(Module):
    """x moved by `lambd` towards 0, and 0 within it.

    >>> import tilewright as tw
    >>> tw.nn.Softshrink()(tw.asarray([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: Tensor) -> Tensor:
        return tw.softshrink(x, self.lambd)

    def extra_repr(self) -> str:
        return f"lambd={self.lambd}"


class Hardshrink(Module):
    """x, and 0 where it is within `lambd` of 0.

    >>> import tilewright as tw
    >>> tw.nn.Hardshrink()(tw.asarray([0.25, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: Tensor) -> Tensor:
        return tw.hardshrink(x, self.lambd)

    def extra_repr(self) -> str:
        return f"lambd={self.lambd}"


class Threshold(_Activation):
    """x where above `threshold`, else `value`.

    >>> import tilewright as tw
    >>> tw.nn.Threshold(1, 7)(tw.asarray([0.5, 2.0])).tolist()
    [7.0, 2.0]
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        return self._applied(tw.threshold, x, self.threshold, self.value)

    def _options(self) -> list[str]:
        return [f"threshold={self.threshold}", f"value={self.value}"]


class GLU(_AlongAxis):
    """The first half along `axis` times the sigmoid of the second (Dauphin et al., 2017).

    `dim` is PyTorch's name of the axis.

    >>> import tilewright as tw
    >>> tw.nn.GLU()(tw.zeros((3, 4))).shape
    (3, 2)
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.glu(x, axis=self.axis)


class LogSoftmax(_AlongAxis):
    """log(softmax(x)) along `axis`; `dim` is PyTorch's name of it.

    >>> import tilewright as tw
    >>> tw.nn.LogSoftmax()(tw.zeros((1, 1))).tolist()
    [[0.0]]
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.log_softmax(x, axis=self.axis)


class Softmin(_AlongAxis):
    """softmax(-x) along `axis`; `dim` is PyTorch's name of it.

    >>> import tilewright as tw
    >>> tw.nn.Softmin()(tw.zeros((1, 2))).tolist()
    [[0.5, 0.5]]
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.softmax(-x, axis=self.axis)


class PReLU(Module):
    """x where positive, else x times a slope that is learnt: one, or one for each channel (axis 1).

    Source: He et al., "Delving deep into rectifiers" (2015). Raises ValueError for inputs with
    another number of channels.

    >>> import tilewright as tw
    >>> tw.nn.PReLU()(tw.asarray([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    weight: Parameter

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        self.num_parameters = num_parameters
        self.init = init
        dtype = dtype or tw.get_default_dtype()
        self.weight = Parameter(tw.full((num_parameters,), init, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Slopes of `init`."""
        with tw.no_grad():
            self.weight.fill_(self.init)

    def forward(self, x: Tensor) -> Tensor:
        return tw.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softmax2d(Module):
    """Softmax over the channels of (batch, channels, height, width), or without a batch.

    >>> import tilewright as tw
    >>> tw.nn.Softmax2d()(tw.zeros((2, 1, 1))).reshape(-1).tolist()
    [0.5, 0.5]
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected 3 or 4 dimensions, got shape {x.shape}")
        return tw.softmax(x, -3)


class RReLU(_Activation):
    """What is below 0 times a slope: random in [lower, upper) while training, else their mean.

    Source: B. Xu et al., "Empirical evaluation of rectified activations" (2015).

    >>> import tilewright as tw
    >>> tw.nn.RReLU(0.25, 0.75).eval()(tw.asarray([-2.0, 3.0])).tolist()
    [-1.0, 3.0]
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, x: Tensor) -> Tensor:
        return composites.rrelu(x, self.lower, self.upper, self.training, self.inplace)

    def _options(self) -> list[str]:
        return [f"lower={self.lower}", f"upper={self.upper}"]
