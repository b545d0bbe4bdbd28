"""Equations with triangles, least squares, and the exponential of matrices."""

from __future__ import annotations

import math
from typing import NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.argument_names import other_names
from tilewright.linalg.checks import check_matrices, default_rtol, shape_of
from tilewright.linalg.decompositions import pinv, solve
from tilewright.linalg.norms import matrix_rank

# Of the Padé approximant of degree 13 of exp, divided by the first; and up to which norm it holds
# in float64. Source: N. Higham, "The scaling and squaring method for the matrix exponential
# revisited" (2005), table 2.3.
_PADE = (
    1.0,
    1 / 2,
    3 / 25,
    11 / 600,
    11 / 5520,
    3 / 18400,
    1 / 96600,
    1 / 1932000,
    1 / 48944000,
    1 / 1585785600,
    1 / 67395888000,
    1 / 3953892096000,
    1 / 355850288640000,
    1 / 64764752532480000,
)
_PADE_NORM = 5.371920351148152


class LstsqResult(NamedTuple):
    """Solution, squared distances by column, rank, and an empty place for singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def solve_triangular(
    a: Tensor, b: Tensor, /, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """The x of t @ x = b, or where not `left` of x @ t = b, for the upper or lower triangle t of a.

    With `unitriangular` the diagonal counts as ones. Batches broadcast. The triangle is solved as
    any matrix by LAPACK's gesv, whose elimination leaves lower triangles as they are.

    Shapes: a (..., n, n), b (..., n, k), or (..., k, n) where not left; the result has b's.
    Types: float32, float64, complex. Result: the common type.
    Raises LinAlgError for a 0 on the diagonal, ValueError for other shapes, TypeError for other
    types.
    Source: PyTorch's torch.linalg.solve_triangular.

    >>> import tilewright as tw
    >>> a, b = tw.asarray([[2.0, 9.0], [1.0, 4.0]]), tw.asarray([[2.0], [9.0]])
    >>> tw.linalg.solve_triangular(a, b, upper=False).tolist()
    [[1.0], [2.0]]
    """
    check_matrices("solve_triangular", a, square=True)
    check_matrices("solve_triangular", b)
    if b.shape[-2 if left else -1] != a.shape[-1]:
        raise ValueError(f"solve_triangular: a of {shape_of(a)} does not fit b of {shape_of(b)}")
    offset = int(unitriangular)
    t = tw.triu(a, k=offset) if upper else tw.tril(a, k=-offset)
    if unitriangular:
        t = t + tw.eye(a.shape[-1], dtype=a.dtype)
    if left:
        return solve(t, b)
    return solve(t.mT, b.mT).mT


def cholesky_solve(b: Tensor, x: Tensor, /, upper: bool = False) -> Tensor:
    """The solution y of a @ y = b, where x is what `cholesky` made of a.

    Shapes: b (..., n, k), x (..., n, n); the result has b's, batches broadcast.
    Types: float32, float64, complex. Result: the common type.
    Raises LinAlgError for a 0 on the diagonal, ValueError for other shapes, TypeError for other
    types.
    Source: PyTorch's torch.cholesky_solve.

    >>> import tilewright as tw
    >>> a = tw.asarray([[4.0, 2.0], [2.0, 5.0]])
    >>> tw.cholesky_solve(tw.asarray([[6.0], [7.0]]), tw.linalg.cholesky(a)).tolist()
    [[1.0], [1.0]]
    """
    check_matrices("cholesky_solve", b)
    check_matrices("cholesky_solve", x, square=True)
    if b.shape[-2] != x.shape[-1]:
        raise ValueError(f"cholesky_solve: x of {shape_of(x)} does not fit b of {shape_of(b)}")
    lower = tw.conj(x.mT) if upper else x
    first = solve_triangular(lower, b, upper=False)
    return solve_triangular(tw.conj(lower.mT), first, upper=True)


@other_names
def cholesky_inverse(x: Tensor, /, upper: bool = False) -> Tensor:
    """The inverse of the matrix of which `cholesky` made x.

    Shapes: x (..., n, n); so is the result.
    Types: float32, float64, complex. Result: the same type.
    Raises LinAlgError for a 0 on the diagonal, ValueError for other shapes, TypeError for other
    types.
    Source: PyTorch's torch.cholesky_inverse.

    >>> import tilewright as tw
    >>> tw.cholesky_inverse(tw.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """
    check_matrices("cholesky_inverse", x, square=True)
    one = tw.eye(x.shape[-1], dtype=x.dtype).expand(*x.shape) * 1
    return cholesky_solve(one, x, upper)


def lstsq(
    a: Tensor, b: Tensor, /, rcond: float | None = None, *, driver: str | None = None
) -> LstsqResult:
    """The x of least norm among those with the least |a @ x - b|, by the pseudo-inverse of a.

    Singular values up to rcond times the largest count as 0; rcond is the larger size of a times
    the distance from 1 to the next number by default. residuals are the squared distances of the
    columns where a has more rows than columns and full rank, else empty. singular_values are empty.
    PyTorch's drivers "gels", "gelsy", "gelsd" and "gelss" are taken and change nothing.

    Shapes: a (..., m, n), b (..., m, k); the solution is (..., n, k), residuals (..., k), rank
    (...).
    Types: float32, float64, complex. Result: a solution of the same type.
    Raises ValueError for other shapes and drivers, TypeError for other types.
    Source: PyTorch's torch.linalg.lstsq.

    >>> import tilewright as tw
    >>> a = tw.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> fit = tw.linalg.lstsq(a, tw.asarray([[1.0], [3.0], [5.0]])).solution
    >>> [round(x, 4) for x in fit[:, 0].tolist()]
    [1.0, 2.0]
    """
    check_matrices("lstsq", a, b)
    if a.shape[-2] != b.shape[-2]:
        raise ValueError(f"lstsq: a of {shape_of(a)} does not fit b of {shape_of(b)}")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ValueError(f"lstsq: driver is 'gels', 'gelsy', 'gelsd' or 'gelss', got {driver!r}")
    rtol = default_rtol(a) if rcond is None else rcond
    solution = pinv(a, rtol=rtol) @ b
    rank = matrix_rank(a, rtol=rtol)
    part = solution.real.dtype
    residuals = tw.empty((0,), dtype=part)
    if a.shape[-2] > a.shape[-1] and bool((rank == a.shape[-1]).all()):
        residuals = tw.abs(a @ solution - b).square().sum(axis=-2)
    return LstsqResult(solution, residuals, rank, tw.empty((0,), dtype=part))


def matrix_exp(x: Tensor, /) -> Tensor:
    """The exponential of square matrices: the sum of their powers x^k / k!.

    A Padé approximant of x / 2^s, squared s times; a batch has one s, that of its largest matrix.

    Shapes: x (..., n, n); the result has it.
    Types: float32, float64, complex. Result: the same type.
    Raises ValueError for other shapes and for elements that are not finite, TypeError for other
    types.
    Source: N. Higham, "The scaling and squaring method for the matrix exponential revisited"
    (2005).

    >>> import tilewright as tw
    >>> tw.matrix_exp(tw.asarray([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    check_matrices("matrix_exp", x, square=True)
    if x.numel() == 0:
        return x * 1
    norm = float(tw.abs(x.detach()).sum(axis=-2).max().item())
    if not math.isfinite(norm):
        raise ValueError("matrix_exp: an element is not finite")
    squarings = max(0, math.ceil(math.log2(norm / _PADE_NORM))) if norm > 0 else 0
    a = x * 2.0**-squarings
    one = tw.eye(x.shape[-1], dtype=x.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    c = _PADE
    odd = a @ (
        a6 @ (c[13] * a6 + c[11] * a4 + c[9] * a2) + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * one
    )
    even = a6 @ (c[12] * a6 + c[10] * a4 + c[8] * a2) + c[6] * a6 + c[4] * a4 + c[2] * a2 + one
    y = solve(even - odd, even + odd)
    for _ in range(squarings):
        y = y @ y
    return y
