"""Initial values of parameters, written in place.

Sources: K. He et al., "Delving deep into rectifiers", ICCV 2015 (Kaiming); X. Glorot and Y. Bengio,
"Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010 (Xavier).
"""

from __future__ import annotations

import math

import tilewright as tw
from tilewright import Generator, Tensor

_GAINS = {
    "linear": 1.0,
    "sigmoid": 1.0,
    # Keeps the variance of deep tanh networks steady; an empirical value, PyTorch's as well.
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
}


def calculate_gain(nonlinearity: str, param: float = 0.01) -> float:
    """The factor that keeps the variance steady; `param` is leaky_relu's slope.

    >>> round(calculate_gain("relu"), 4)
    1.4142
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + param**2))
    if not isinstance(nonlinearity, str) or nonlinearity not in _GAINS:
        names = ", ".join([*_GAINS, "leaky_relu"])
        raise ValueError(f"calculate_gain: no gain for {nonlinearity!r}; known: {names}")
    return _GAINS[nonlinearity]


def uniform_(
    tensor: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fills with values uniform in [low, high)."""
    _check("uniform_", tensor, low=low, high=high)
    with tw.no_grad():
        return tensor.copy_(tw.uniform(low, high, tensor.shape, generator=generator))


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fills with values from a normal distribution."""
    _check("normal_", tensor, mean=mean, std=std)
    with tw.no_grad():
        return tensor.copy_(tw.normal(mean, std, tensor.shape, generator=generator))


def constant_(tensor: Tensor, value: float) -> Tensor:
    """Fills with one value."""
    _check("constant_", tensor, value=value)
    with tw.no_grad():
        return tensor.fill_(value)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Uniform within ±gain·sqrt(3/fan); `a` is leaky_relu's slope, `mode` fan_in or fan_out."""
    bound = math.sqrt(3) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator=generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Normal with standard deviation gain/sqrt(fan)."""
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator=generator)


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Uniform within ±gain·sqrt(6/(fan_in + fan_out))."""
    bound = math.sqrt(3) * _xavier_std("xavier_uniform_", tensor, gain)
    return uniform_(tensor, -bound, bound, generator=generator)


def xavier_normal_(
    tensor: Tensor, gain: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Normal with standard deviation gain·sqrt(2/(fan_in + fan_out))."""
    return normal_(tensor, 0.0, _xavier_std("xavier_normal_", tensor, gain), generator=generator)


def _check(function: str, tensor: Tensor, **numbers: float) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{function}: tensor must be a tensor, got {type(tensor).__name__}")
    for name, value in numbers.items():
        if not isinstance(value, (int, float)):
            raise TypeError(f"{function}: {name} must be a number, got {value!r}")


def _fans(function: str, tensor: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight (out, in, *kernel)."""
    if tensor.ndim < 2:
        raise ValueError(
            f"{function}: fans need at least 2 axes (out, in, ...), got shape {tensor.shape}"
        )
    kernel_size = math.prod(tensor.shape[2:])
    return tensor.shape[1] * kernel_size, tensor.shape[0] * kernel_size


def _kaiming_std(function: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    _check(function, tensor, a=a)
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{function}: mode is fan_in or fan_out, got {mode!r}")
    fan = _fans(function, tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def _xavier_std(function: str, tensor: Tensor, gain: float) -> float:
    _check(function, tensor, gain=gain)
    fans = sum(_fans(function, tensor))
    return gain * math.sqrt(2 / fans) if fans else 0.0
