"""Decompositions that tell whether they succeeded instead of raising, by matrix of a batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright.linalg.checks import check_matrices
from tilewright.linalg.decompositions import LinAlgError, cholesky, inv, solve
from tilewright.linalg.elimination import lu_factor_ex


class CholeskyExResult(NamedTuple):
    """Of `cholesky_ex`."""

    L: Tensor
    info: Tensor


class InvExResult(NamedTuple):
    """Of `inv_ex`."""

    inverse: Tensor
    info: Tensor


class SolveExResult(NamedTuple):
    """Of `solve_ex`."""

    result: Tensor
    info: Tensor


def cholesky_ex(
    x: Tensor, /, *, upper: bool = False, check_errors: bool = False
) -> CholeskyExResult:
    """`cholesky` with info: the order of the first leading minor that is not positive, or 0.

    Where it is not 0 the factor is NaN. Without a gradient where any of a batch is not 0.

    Shapes: x (..., n, n); L has it, info (...).
    Types: float32, float64, complex. Result: L of the same type, info of int32.
    Raises LinAlgError where one is not 0 and check_errors, ValueError for other shapes, TypeError
    for other types.
    Source: PyTorch's torch.linalg.cholesky_ex.

    >>> import tilewright as tw
    >>> tw.linalg.cholesky_ex(tw.asarray([[1.0, 2.0], [2.0, 1.0]])).info.item()
    2
    """
    check_matrices("cholesky_ex", x, square=True)
    return CholeskyExResult(
        *_told(lambda a: cholesky(a, upper=upper), x, x, check_errors, _first_minor)
    )


def inv_ex(a: Tensor, /, *, check_errors: bool = False) -> InvExResult:
    """`inv` with info: the place of the first 0 on U's diagonal, as by `lu_factor_ex`, or 0.

    Where it is not 0 the inverse is NaN. Without a gradient where any of a batch is not 0.

    Shapes: a (..., n, n); the inverse has it, info (...).
    Types: float32, float64, complex. Result: the inverse of the same type, info of int32.
    Raises LinAlgError where one is not 0 and check_errors, ValueError for other shapes, TypeError
    for other types.
    Source: PyTorch's torch.linalg.inv_ex.

    >>> import tilewright as tw
    >>> tw.linalg.inv_ex(tw.zeros(2, 2)).info.item()
    1
    """
    check_matrices("inv_ex", a, square=True)
    return InvExResult(*_told(inv, a, a, check_errors, _first_zero))


def solve_ex(
    a: Tensor, b: Tensor, /, *, left: bool = True, check_errors: bool = False
) -> SolveExResult:
    """`solve` with info as by `inv_ex`; with left=False the y of y @ a = b.

    Where a matrix is singular all results are NaN.

    Shapes: a (..., n, n), b (n,) or (..., n, k); the result is (..., n) or (..., n, k), info (...).
    Types: float32, float64, complex. Result: the common type, info of int32.
    Raises LinAlgError where one is not 0 and check_errors, ValueError for other shapes, TypeError
    for other types.
    Source: PyTorch's torch.linalg.solve_ex.
    """
    check_matrices("solve_ex", a, square=True)

    def solved(a: Tensor) -> Tensor:
        return solve(a, b) if left else solve(a.mT, b.mT).mT

    return SolveExResult(*_told(solved, a, b, check_errors, _first_zero))


def _told(
    compute: Callable[[Tensor], Tensor],
    x: Tensor,
    like: Tensor,
    check_errors: bool,
    find: Callable[[Tensor], int],
) -> tuple[Tensor, Tensor]:
    """What is computed, and 0s; after an error one matrix after the other."""
    try:
        return compute(x), tw.zeros(x.shape[:-2], dtype=tw.int32)
    except LinAlgError:
        if check_errors:
            raise
    flat = x.detach().reshape((-1, *x.shape[-2:]))
    info = [find(matrix) for matrix in flat]
    told = tw.asarray(info, dtype=tw.int32).reshape(x.shape[:-2])
    result = tw.full(like.shape, math.nan, dtype=tw.result_type(x, like))
    if like is x:
        rows = [
            tw.full(m.shape, math.nan, dtype=m.dtype) if at else compute(m)
            for m, at in zip(flat, info, strict=True)
        ]
        result = tw.stack(rows).reshape(x.shape)
    return result, told


def _first_zero(x: Tensor) -> int:
    return int(lu_factor_ex(x).info.item())


def _first_minor(x: Tensor) -> int:
    """By halving: all minors after the first one that is not positive definite are not either."""
    low, high = 0, x.shape[-1] + 1
    while high - low > 1:
        middle = (low + high) // 2
        try:
            cholesky(x[:middle, :middle])
            low = middle
        except LinAlgError:
            high = middle
    return 0 if high > x.shape[-1] else high
