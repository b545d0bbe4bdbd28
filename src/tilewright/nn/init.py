"""Initial values of parameters, written in place.

Sources: K. He et al., "Delving deep into rectifiers", ICCV 2015 (Kaiming); X. Glorot and Y. Bengio,
"Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010 (Xavier);
A. Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural
networks", ICLR 2014 (orthogonal); J. Martens, "Deep learning via Hessian-free optimization", ICML
2010 (sparse).
"""

from __future__ import annotations

import math

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.nn.functions.random_values import orthogonal_columns as _orthogonal_columns
from tilewright.nn.functions.random_values import truncated_normal as _truncated_normal

_GAINS = {
    **dict.fromkeys(
        (
            "linear",
            "sigmoid",
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
        ),
        1.0,
    ),
    # Keeps the variance of deep tanh networks steady; an empirical value, PyTorch's as well.
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,  # steadier than the 1 that its fixed point would ask for; PyTorch's as well
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance steady; `param` is leaky_relu's slope, 0.01 by default.

    Raises ValueError for another nonlinearity.

    >>> round(calculate_gain("relu"), 4)
    1.4142
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise TypeError(f"calculate_gain: the slope of leaky_relu is a number, got {slope!r}")
        return math.sqrt(2 / (1 + slope**2))
    if not isinstance(nonlinearity, str) or nonlinearity not in _GAINS:
        names = ", ".join([*_GAINS, "leaky_relu"])
        raise ValueError(f"calculate_gain: no gain for {nonlinearity!r}; known: {names}")
    return _GAINS[nonlinearity]


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fills with values uniform in [a, b).

    Shapes: tensor of any shape; written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises ValueError for an a above b.
    Source: PyTorch's torch.nn.init.uniform_.
    """
    _check("uniform_", tensor, a=a, b=b)
    with tw.no_grad():
        return tensor.copy_(tw.uniform(a, b, tensor.shape, generator=generator))


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fills with values from a normal distribution.

    Shapes: tensor of any shape; written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises ValueError for a negative std.
    Source: PyTorch's torch.nn.init.normal_.
    """
    _check("normal_", tensor, mean=mean, std=std)
    with tw.no_grad():
        return tensor.copy_(tw.normal(mean, std, tensor.shape, generator=generator))


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Fills with values from the part of a normal distribution that lies in [a, b].

    Shapes: tensor of any shape; written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises ValueError for an a that is not below b.
    Source: PyTorch's torch.nn.init.trunc_normal_.

    >>> import tilewright as tw
    >>> x = tw.nn.init.trunc_normal_(tw.empty((100,)), a=1.0, b=1.5)
    >>> x.min().item() >= 1.0 and x.max().item() <= 1.5
    True
    """
    _check("trunc_normal_", tensor, mean=mean, std=std, a=a, b=b)
    if not a < b or not std > 0:
        raise ValueError(f"trunc_normal_: needs a < b and std > 0, got {a}, {b} and {std}")
    low, high = (a - mean) / std, (b - mean) / std
    with tw.no_grad():
        z = _truncated_normal(tensor.shape, low, high, generator)
        # Rounding to a narrower type may lead out of the range.
        return tensor.copy_(tw.clip(z * std + mean, a, b))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value.

    Shapes: tensor of any shape; written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises TypeError for a val that is no number.
    Source: PyTorch's torch.nn.init.constant_.
    """
    _check("constant_", tensor, val=val)
    with tw.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones.

    Shapes: tensor of any shape; written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.nn.init.ones_.
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros.

    Shapes: tensor of any shape; written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.nn.init.zeros_.
    """
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Makes a matrix the identity, as far as it goes.

    Shapes: tensor (n, m); written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises ValueError for other shapes.
    Source: PyTorch's torch.nn.init.eye_.
    """
    _check("eye_", tensor)
    _check_rank("eye_", tensor, 2, 2)
    with tw.no_grad():
        return tensor.copy_(tw.eye(tensor.shape[0], tensor.shape[1]))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Makes a convolution's weight (out, in, *kernel) pass its input channels on, in each group.

    Shapes: tensor (out, in, *kernel) of 3 to 5 dimensions; written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises ValueError for other shapes and groups that do not divide out.
    Source: PyTorch's torch.nn.init.dirac_.
    """
    _check("dirac_", tensor)
    _check_rank("dirac_", tensor, 3, 5)
    outputs = tensor.shape[0]
    if groups < 1 or outputs % groups:
        raise ValueError(f"dirac_: {outputs} output channels cannot be split in {groups} groups")
    middle = tuple(extent // 2 for extent in tensor.shape[2:])
    each = outputs // groups
    zeros_(tensor)
    weight = tensor.detach()
    for first in range(0, outputs, each):
        for channel in range(min(each, tensor.shape[1])):
            weight[(first + channel, channel, *middle)] = 1.0
    return tensor


def orthogonal_(tensor: Tensor, gain: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Makes (rows, the rest) a random matrix with orthogonal rows or columns, times `gain`.

    Shapes: tensor (rows, ...) of at least 2 dimensions; written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises ValueError for fewer dimensions.
    Source: PyTorch's torch.nn.init.orthogonal_; Saxe et al. (2013).

    >>> import tilewright as tw
    >>> q = tw.nn.init.orthogonal_(tw.empty((2, 3), dtype=tw.float64))
    >>> [[round(abs(v), 6) for v in row] for row in (q @ q.T).tolist()]
    [[1.0, 0.0], [0.0, 1.0]]
    """
    _check("orthogonal_", tensor, gain=gain)
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: needs at least 2 axes, got shape {tensor.shape}")
    if not tensor.size:
        return tensor
    rows, columns = tensor.shape[0], tensor.size // tensor.shape[0]
    with tw.no_grad():
        q = _orthogonal_columns(max(rows, columns), min(rows, columns), generator)
        q = q if rows >= columns else q.T
        return tensor.copy_((q * gain).reshape(tensor.shape))


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, *, generator: Generator | None = None
) -> Tensor:
    """Fills a matrix from a normal distribution, with a share `sparsity` of each column zero.

    Shapes: tensor (n, m); written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises ValueError for other shapes.
    Source: PyTorch's torch.nn.init.sparse_; Martens (2010).
    """
    _check("sparse_", tensor, sparsity=sparsity, std=std)
    _check_rank("sparse_", tensor, 2, 2)
    if not 0 <= sparsity <= 1:
        raise ValueError(f"sparse_: sparsity lies between 0 and 1, got {sparsity}")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0.0, std, generator=generator)
    orders = [tw.randperm(rows, generator=generator).tolist() for _ in range(columns)]
    with tw.no_grad():
        order = tw.asarray(orders, dtype=tw.int64).reshape((columns, rows)).T
        return tensor.copy_(tw.where(order < zeros, 0.0, tensor))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Uniform within ±gain·sqrt(3/fan); `a` is leaky_relu's slope, `mode` fan_in or fan_out.

    Shapes: tensor (out, in, ...); written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises ValueError for fewer than 2 dimensions and another mode or nonlinearity.
    Source: PyTorch's torch.nn.init.kaiming_uniform_; He et al. (2015).
    """
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
    """Normal with standard deviation gain/sqrt(fan).

    Shapes: tensor (out, in, ...); written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises ValueError for fewer than 2 dimensions and another mode or nonlinearity.
    Source: PyTorch's torch.nn.init.kaiming_normal_; He et al. (2015).
    """
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator=generator)


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Uniform within ±gain·sqrt(6/(fan_in + fan_out)).

    Shapes: tensor (out, in, ...); written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises ValueError for fewer than 2 dimensions.
    Source: PyTorch's torch.nn.init.xavier_uniform_; Glorot and Bengio (2010).
    """
    bound = math.sqrt(3) * _xavier_std("xavier_uniform_", tensor, gain)
    return uniform_(tensor, -bound, bound, generator=generator)


def xavier_normal_(
    tensor: Tensor, gain: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Normal with standard deviation gain·sqrt(2/(fan_in + fan_out)).

    Shapes: tensor (out, in, ...); written in place and returned.
    Types: all; numbers are converted. Result: the same type.
    Raises ValueError for fewer than 2 dimensions.
    Source: PyTorch's torch.nn.init.xavier_normal_; Glorot and Bengio (2010).
    """
    return normal_(tensor, 0.0, _xavier_std("xavier_normal_", tensor, gain), generator=generator)


def _check(function: str, tensor: Tensor, **numbers: float) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{function}: tensor must be a tensor, got {type(tensor).__name__}")
    for name, value in numbers.items():
        if not isinstance(value, (int, float)):
            raise TypeError(f"{function}: {name} must be a number, got {value!r}")


def _check_rank(function: str, tensor: Tensor, least: int, most: int) -> None:
    if not least <= tensor.ndim <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise ValueError(f"{function}: needs {wanted} axes, got shape {tensor.shape}")


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
