"""Statistics that give two results, or that are of pairs of rows, and integrals of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.argument_names import other_names

_Axes = int | Sequence[int] | None


@other_names
def var_mean(
    x: Tensor, axis: _Axes = None, *, correction: float, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """Variance and mean of all elements, or along axes.

    `correction` has no default: it is 1 in PyTorch's `var_mean`, and 0 in `tw.var`.

    Shapes: x of any shape; both results lack the axes, or have them with extent 1 where
    keepdims.
    Types: floating, complex. Result: the same type, of complex numbers that of their parts for
    the first.
    Raises TypeError for integers and bool, IndexError for an axis out of range.
    Source: PyTorch's torch.var_mean.

    >>> import tilewright as tw
    >>> [y.item() for y in tw.var_mean(tw.asarray([1.0, 3.0]), correction=1)]
    [2.0, 2.0]
    """
    mean = tw.mean(x, axis=axis, keepdims=keepdims)
    return tw.var(x, axis=axis, correction=correction, keepdims=keepdims), mean


@other_names
def std_mean(
    x: Tensor, axis: _Axes = None, *, correction: float, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean of all elements, or along axes; `correction` as in `var_mean`.

    Shapes: x of any shape; both results lack the axes, or have them with extent 1 where
    keepdims.
    Types: floating, complex. Result: the same type, of complex numbers that of their parts for
    the first.
    Raises TypeError for integers and bool, IndexError for an axis out of range.
    Source: PyTorch's torch.std_mean.
    """
    mean = tw.mean(x, axis=axis, keepdims=keepdims)
    return tw.std(x, axis=axis, correction=correction, keepdims=keepdims), mean


@other_names
def cov(
    x: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Covariances of the rows of a matrix, of which each column is one observation (n, n).

    `fweights` says how often each observation is there, a whole number, `aweights` what it weighs.
    One variable has one number. Raises ValueError for more than two dimensions, for weights of
    another size and for negative ones.

    Shapes: x (n, observations) or (observations,), weights (observations,); the result is (n,
    n), or () for a vector.
    Types: floating, complex; integers and bool become the default floating type. Result: the
    same type.
    Source: PyTorch's torch.cov.

    >>> import tilewright as tw
    >>> tw.cov(tw.asarray([[0.0, 2.0], [1.0, 5.0]])).tolist()
    [[2.0, 4.0], [4.0, 8.0]]
    """
    if x.ndim > 2:
        raise ValueError(f"cov: needs at most 2 dimensions, got {x.shape}")
    rows = x.reshape(1, x.size) if x.ndim < 2 else x
    rows = rows if rows.is_floating_point() or rows.is_complex() else rows * 1.0
    count = rows.shape[1]
    weights = [w for w in (fweights, aweights) if w is not None]
    _check_weights(count, weights, fweights)
    weight: Tensor | None = None
    for each in weights:
        real = each.astype(tw.real(rows[:0]).dtype)
        weight = real if weight is None else weight * real
    total = count if weight is None else weight.sum()
    if weight is None:
        apart = rows - tw.mean(rows, axis=1, keepdims=True)
        scaled = apart
    else:
        apart = rows - tw.sum(rows * weight, axis=1, keepdims=True) / total
        scaled = apart * weight
    lost: Tensor | float = correction
    if weight is not None and aweights is not None:
        lost = correction * (weight * aweights).sum() / total
    freedom = total - lost
    freedom = tw.clip(freedom, 0) if isinstance(freedom, Tensor) else max(freedom, 0)
    result = tw.matmul(scaled, tw.conj(apart).mT) / freedom
    return result.reshape(()) if rows.shape[0] == 1 else result


def _check_weights(count: int, weights: Sequence[Tensor], times: Tensor | None) -> None:
    if times is not None and (times.is_floating_point() or times.is_complex()):
        raise TypeError(f"cov: fweights must be integers, got {times.dtype}")
    for each in weights:
        if each.shape != (count,):
            raise ValueError(f"cov: weights of shape {each.shape} for {count} observations")
        if count and bool((each < 0).any()):
            raise ValueError("cov: a weight is negative")


@other_names
def corrcoef(x: Tensor) -> Tensor:
    """Correlations of the rows of a matrix, of which each column is one observation (n, n).

    Shapes: x (n, observations) or (observations,); the result is (n, n), or () for a vector.
    Types: floating, complex; integers and bool become the default floating type. Result: the
    same type.
    Raises ValueError for more than two dimensions.
    Source: PyTorch's torch.corrcoef.

    >>> import tilewright as tw
    >>> tw.corrcoef(tw.asarray([[0.0, 2.0], [5.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    covariances = cov(_near_1(x))
    if covariances.ndim == 0:
        return covariances / covariances
    deviations = tw.sqrt(tw.real(tw.diagonal(covariances)))
    result = covariances / deviations[:, None] / deviations[None, :]
    if result.is_complex():
        return tw.complex(tw.clip(result.real, -1, 1), tw.clip(result.imag, -1, 1))
    return tw.clip(result, -1, 1)


def _near_1(x: Tensor) -> Tensor:
    """Rows times a power of two each, which no correlation sees, so that products are in range."""
    if not isinstance(x, Tensor) or x.ndim == 0 or x.size == 0:
        return x
    if not (x.is_floating_point() or x.is_complex()):
        return x
    with tw.no_grad():
        top = tw.max(tw.abs(x.detach()), axis=-1, keepdims=True)
        known = (top > 0) & tw.isfinite(top)
        most = 1 - math.frexp(tw.finfo(top.dtype).tiny)[1]
        power = tw.clip(-tw.floor(tw.log2(tw.where(known, top, 1))), -most, most)
        scale = tw.exp2(power)
    return x * scale


@other_names
def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float | None = None, axis: int = -1
) -> Tensor:
    """Integral of samples along an axis by the trapezoidal rule.

    The places of the samples are `x`, or `dx` apart (1 unless given). Raises TypeError for both.

    Shapes: y (..., n, ...), x broadcasts to it or is (n,); the result lacks the axis.
    Types: floating, complex; integers and bool become the default floating type. Result: the
    same type.
    Raises ValueError for shapes that do not broadcast, IndexError for an axis out of range.
    Source: PyTorch's torch.trapezoid.

    >>> import tilewright as tw
    >>> tw.trapezoid(tw.asarray([1.0, 2.0, 3.0])).item()
    4.0
    """
    _check_samples("trapezoid", y, x, dx, axis)
    last = y.shape[axis] - 1
    if x is not None or last < 2 or not (dx is None or isinstance(dx, (int, float))):
        return tw.sum(_trapezoids(y, x, dx, axis), axis=axis)
    # All samples but two are sides of two trapezoids: their sum needs nothing as long as y.
    y = y if y.is_floating_point() or y.is_complex() else y * 1.0
    wide = tw.float32 if y.dtype in (tw.float16, tw.bfloat16) else y.dtype
    inner = tw.narrow(y, axis, 1, last - 1)
    ends = y[(slice(None),) * (axis % y.ndim) + (slice(None, None, last),)]
    heights = tw.sum(inner, axis=axis, dtype=wide) + tw.sum(ends, axis=axis, dtype=wide) / 2
    return (heights if dx is None else heights * dx).astype(y.dtype)


@other_names
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float | None = None, axis: int = -1
) -> Tensor:
    """Integrals from the first sample to each other one along an axis, as `trapezoid`.

    Shapes: y (..., n, ...), x broadcasts to it or is (n,); the result is (..., n - 1, ...).
    Types: floating, complex; integers and bool become the default floating type. Result: the
    same type.
    Raises TypeError for both x and dx, IndexError for an axis out of range.
    Source: PyTorch's torch.cumulative_trapezoid.
    """
    _check_samples("cumulative_trapezoid", y, x, dx, axis)
    return tw.cumulative_sum(_trapezoids(y, x, dx, axis), axis=axis)


def _check_samples(function: str, y: Tensor, x: Tensor | None, dx: float | None, axis: int) -> None:
    if x is not None and dx is not None:
        raise TypeError(f"{function}: x and dx both say where the samples are; give one")
    if not isinstance(y, Tensor):
        raise TypeError(f"{function}: y must be a Tensor, got {type(y).__name__}")
    if not -y.ndim <= axis < y.ndim:
        raise IndexError(f"{function}: axis {axis} is out of range for shape {y.shape}")


def _trapezoids(y: Tensor, x: Tensor | None, dx: float | None, axis: int) -> Tensor:
    count = y.shape[axis]
    if count == 0:
        return y * 1.0
    heights = tw.narrow(y, axis, 0, count - 1) + tw.narrow(y, axis, 1, count - 1)
    if x is None:
        return heights * ((1.0 if dx is None else dx) / 2)
    if x.ndim == 1 and y.ndim > 1:
        x = x.reshape((-1, *(1 for _ in range(y.ndim - 1 - axis % y.ndim))))
        return heights * tw.diff(x, axis=0) / 2
    return heights * tw.diff(x, axis=axis) / 2
