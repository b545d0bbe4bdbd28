"""Small functions of PyTorch's that are no records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.other_names import other_names


@other_names
def isreal(x: Tensor) -> Tensor:
    """Whether the imaginary part of each element is 0.

    Shapes: x of any shape; the result has it.
    Types: all. Result: bool.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.isreal.
    """
    _check("isreal", x)
    if x.is_complex():
        return tw.imag(x) == 0
    return tw.ones_like(x, dtype=tw.bool)


def is_nonzero(x: Tensor) -> bool:
    """Whether the one element of a tensor is not 0. Raises ValueError for several or none.

    Shapes: x of one element.
    Types: all. Result: a bool of Python.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.is_nonzero.
    """
    _check("is_nonzero", x)
    if x.size != 1:
        raise ValueError(f"is_nonzero: expected one element, got shape {x.shape}")
    return bool(x.item() != 0)


def msort(x: Tensor) -> Tensor:
    """Elements in rising order along the first axis.

    Shapes: x of any shape; the result has it.
    Types: bool, integer, floating. Result: the same type.
    Raises TypeError for complex numbers.
    Source: PyTorch's torch.msort.
    """
    return tw.sort(x, axis=0)


@other_names
def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of matrices, x.mH.

    Shapes: x (..., m, n); the result is (..., n, m).
    Types: all. Result: the same type.
    Raises ValueError for fewer than 2 dimensions, TypeError for what is no tensor.
    Source: PyTorch's torch.adjoint.
    """
    _check("adjoint", x)
    if x.ndim < 2:
        raise ValueError(f"adjoint: needs at least 2 dimensions, got {x.shape}")
    return tw.conj(x.mT) if x.is_complex() else x.mT


@other_names
def ldexp(x: Tensor, y: Tensor | float) -> Tensor:
    """x times 2 to the power of y.

    Shapes: operands broadcast; the result has their common shape.
    Types: floating, complex; integers and bool become the default floating type. Result: the
    common type.
    Raises ValueError for shapes that do not broadcast, TypeError for what is no tensor.
    Source: PyTorch's torch.ldexp.
    """
    _check("ldexp", x)
    wide = x if x.is_floating_point() or x.is_complex() else x * 1.0
    if not isinstance(y, Tensor):
        return wide * float(2.0**y)
    return wide * tw.pow(2.0, y * 1.0 if _is_whole(y) else y)


@other_names
def mvlgamma(x: Tensor, p: int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension p, for x > (p - 1) / 2.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises ValueError for p below 1, TypeError for complex numbers.
    Source: PyTorch's torch.mvlgamma.
    """
    _check("mvlgamma", x)
    if p < 1:
        raise ValueError(f"mvlgamma: p must be at least 1, got {p}")
    if x.is_complex():
        raise TypeError(f"mvlgamma: takes real numbers, got {x.dtype}")
    x = x if x.is_floating_point() else x * 1.0
    return p * (p - 1) / 4 * math.log(math.pi) + sum(
        (tw.lgamma(x - j / 2) for j in range(1, p)), tw.lgamma(x)
    )


def fill_diagonal_(x: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Writes a number to the elements whose indices are all the same, in place, and gives x.

    Raises RuntimeError for a leaf that requires grad while recording is on.

    Shapes: x of two axes or more, all of one extent where there are more than two; the result is x.
    Types: all. Result: the same type.
    Raises ValueError for other shapes and for wrap, TypeError for what is no tensor.
    Source: PyTorch's torch.Tensor.fill_diagonal_.

    >>> import tilewright as tw
    >>> tw.zeros(2, 3).fill_diagonal_(1.0).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    _check("fill_diagonal_", x)
    if x.ndim < 2 or (x.ndim > 2 and len({*x.shape}) > 1):
        raise ValueError(f"fill_diagonal_: needs two axes or equal extents, got {x.shape}")
    if wrap:
        raise ValueError("fill_diagonal_: wrap is not there: fill slices of x")
    places = tw.arange(min(x.shape), dtype=tw.int64, device=x.device)
    x[(places,) * x.ndim] = fill_value
    return x


def resolve_conj(x: Tensor) -> Tensor:
    """x itself: conjugates are computed at once here, not when they are next used.

    Shapes: x of any shape; the result has it.
    Types: all. Result: the same type.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.resolve_conj.
    """
    _check("resolve_conj", x)
    return x


def split_with_sizes(x: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split` by extents. Raises what `split` does.

    Shapes: x (..., n, ...); each result has one of the sizes in place of n.
    Types: all. Result: the same type.
    Source: PyTorch's torch.split_with_sizes.
    """
    return tuple(tw.split(x, list(split_sizes), dim))


def _is_whole(x: Tensor) -> bool:
    return not (x.is_floating_point() or x.is_complex())


def _check(who: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{who}: takes tensors, got {type(x).__name__}")
