"""Gaussian elimination with partial pivoting: a = P @ L @ U, and what is solved by it.

NumPy's LAPACK keeps its factors to itself, so the elimination is ours: recursive over columns, so
that most of it are products. Source: S. Toledo, "Locality of reference in LU decomposition with
partial pivoting" (1997).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright._engine.optional_packages import require
from tilewright.autograd import Function
from tilewright.linalg.checks import check_matrices, shape_of
from tilewright.linalg.decompositions import LinAlgError
from tilewright.linalg.solvers import solve_triangular

# Columns that are eliminated one by one: with fewer, splitting costs more than its products gain.
_FEW = 16


class LUResult(NamedTuple):
    """Of `lu` and `lu_unpack`."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactorResult(NamedTuple):
    """Of `lu_factor`."""

    LU: Tensor
    pivots: Tensor


class LUFactorExResult(NamedTuple):
    """Of `lu_factor_ex`."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


def lu(a: Tensor, /, *, pivot: bool = True) -> LUResult:
    """The permutation P, lower L with ones on its diagonal, and upper U of a = P @ L @ U.

    Without `pivot` P is the identity, and there may be no such L and U.

    Shapes: a (..., m, n); with k = min(m, n) P (..., m, m), L (..., m, k), U (..., k, n).
    Types: float32, float64, complex. Result: the same type.
    Raises ValueError for fewer than two axes, TypeError for other types.
    Source: PyTorch's torch.linalg.lu.

    >>> import tilewright as tw
    >>> P, L, U = tw.linalg.lu(tw.asarray([[1.0, 2.0], [4.0, 4.0]]))
    >>> L.tolist(), U.tolist()
    ([[1.0, 0.0], [0.25, 1.0]], [[4.0, 4.0], [0.0, 1.0]])
    """
    check_matrices("lu", a)
    factors, pivots, _ = _Elimination.apply(a, bool(pivot))
    return lu_unpack(factors, pivots)


def lu_factor(a: Tensor, /, *, pivot: bool = True) -> LUFactorResult:
    """L below and U on and above the diagonal of one matrix, and the rows that were exchanged.

    In step i rows i and pivots[i] change places, both counted from 1.

    Shapes: a (..., m, n); LU (..., m, n), pivots (..., min(m, n)).
    Types: float32, float64, complex. Result: LU of the same type, pivots of int32.
    Raises LinAlgError for a 0 on U's diagonal, ValueError for fewer than two axes, TypeError for
    other types.
    Source: PyTorch's torch.linalg.lu_factor.

    >>> import tilewright as tw
    >>> tw.linalg.lu_factor(tw.asarray([[1.0, 2.0], [4.0, 4.0]])).pivots.tolist()
    [2, 2]
    """
    check_matrices("lu_factor", a)
    factors, pivots, info = _Elimination.apply(a, bool(pivot))
    check_info("lu_factor", info)
    return LUFactorResult(factors, pivots)


def lu_factor_ex(
    a: Tensor, /, *, pivot: bool = True, check_errors: bool = False
) -> LUFactorExResult:
    """`lu_factor` that tells of the first 0 on U's diagonal, counted from 1, as info; 0: none.

    Shapes: a (..., m, n); LU (..., m, n), pivots (..., min(m, n)), info (...).
    Types: float32, float64, complex. Result: LU of the same type, pivots and info of int32.
    Raises LinAlgError for such a 0 where check_errors, ValueError for fewer than two axes,
    TypeError for other types.
    Source: PyTorch's torch.linalg.lu_factor_ex.
    """
    check_matrices("lu_factor_ex", a)
    factors, pivots, info = _Elimination.apply(a, bool(pivot))
    if check_errors:
        check_info("lu_factor_ex", info)
    return LUFactorExResult(factors, pivots, info)


def lu_unpack(
    x: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> LUResult:
    """P, L and U of what `lu_factor` gives; those that are not asked for are empty.

    Shapes: x (..., m, n), pivots (..., k) with k = min(m, n); P (..., m, m), L (..., m, k), U (...,
    k, n).
    Types: float32, float64, complex. Result: the same type.
    Raises ValueError for other shapes, TypeError for other types.
    Source: PyTorch's torch.lu_unpack.
    """
    _check_factors("lu_unpack", x, pivots)
    rows, columns = x.shape[-2:]
    count = min(rows, columns)
    none = tw.empty((0,), dtype=x.dtype)
    p = _permutation(pivots, rows, x.dtype) if unpack_pivots else none
    if not unpack_data:
        return LUResult(p, none, none)
    one = tw.eye(rows, count, dtype=x.dtype)
    return LUResult(p, tw.tril(x[..., :count], k=-1) + one, tw.triu(x[..., :count, :]))


def lu_solve(
    x: Tensor, pivots: Tensor, b: Tensor, /, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """The y of a @ y = b, or of y @ a = b where not left, for the a that `lu_factor` gave x for.

    With `adjoint` a's conjugate transpose stands in its place. Batches broadcast.

    Shapes: x (..., n, n), pivots (..., n), b (..., n, k), or (..., k, n) where not left; the result
    has b's.
    Types: float32, float64, complex. Result: the common type.
    Raises LinAlgError for a 0 on U's diagonal, ValueError for other shapes, TypeError for other
    types.
    Source: PyTorch's torch.linalg.lu_solve.

    >>> import tilewright as tw
    >>> factors = tw.linalg.lu_factor(tw.asarray([[1.0, 2.0], [4.0, 4.0]]))
    >>> tw.linalg.lu_solve(*factors, tw.asarray([[3.0], [8.0]])).tolist()
    [[1.0], [1.0]]
    """
    check_matrices("lu_solve", x, square=True)
    check_matrices("lu_solve", b)
    if b.shape[-2 if left else -1] != x.shape[-1]:
        raise ValueError(f"lu_solve: factors of {shape_of(x)} do not fit b of {shape_of(b)}")
    if not left:
        return _adjoint(lu_solve(x, pivots, _adjoint(b), adjoint=not adjoint))
    p, lower, upper = lu_unpack(x, pivots)
    p = p if p.dtype == b.dtype else p.astype(tw.result_type(p, b))
    b = b if p.dtype == b.dtype else b.astype(p.dtype)
    if adjoint:
        first = solve_triangular(_adjoint(upper), b, upper=False)
        return p @ solve_triangular(_adjoint(lower), first, upper=True, unitriangular=True)
    first = solve_triangular(lower, p.mT @ b, upper=False, unitriangular=True)
    return solve_triangular(upper, first, upper=True)


def check_info(who: str, info: Tensor) -> None:
    """Raises LinAlgError where a number is not 0."""
    if bool((info != 0).any()):
        at = int(info.max().item())
        raise LinAlgError(f"{who}: U[{at}, {at}], counted from 1, is 0: the matrix is singular")


class _Elimination(Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
        np = require("numpy", purpose="tilewright.linalg", install="numpy")
        batch, count = a.shape[:-2], min(a.shape[-2:])
        pivots = np.tile(np.arange(count, dtype=np.int32), (*batch, 1))
        info = np.zeros(batch, dtype=np.int32)
        work = np.array(a.detach().numpy(), order="C")
        if work.size:
            matrices = work.reshape((-1, *a.shape[-2:]))
            with np.errstate(all="ignore"):
                _eliminate(np, matrices, 0, count, pivots.reshape((-1, count)), pivot)
            zero = np.diagonal(work, axis1=-2, axis2=-1) == 0
            info[...] = np.where(zero.any(-1), zero.argmax(-1) + 1, 0)
        results = tw.asarray(work), tw.asarray(pivots + 1), tw.asarray(info)
        ctx.save_for_backward(*results[:2])
        return results

    @staticmethod
    def backward(ctx: Any, g: Tensor, *_: Tensor) -> tuple[Tensor, None]:
        """The parts of dL and dU add up to those of inv(L) @ P.T @ da @ inv(U), which are apart."""
        factors, pivots = ctx.saved_tensors
        rows, columns = factors.shape[-2:]
        count = min(rows, columns)
        p, lower, upper = lu_unpack(factors, pivots)
        of_lower, of_upper = tw.tril(g[..., :count], k=-1), tw.triu(g[..., :count, :])
        square = slice(count)
        inner = tw.tril(
            _adjoint(lower[..., square, :]) @ of_lower[..., square, :]
            - of_upper[..., count:] @ _adjoint(upper[..., count:]),
            k=-1,
        ) + tw.triu(
            of_upper[..., square] @ _adjoint(upper[..., square])
            - _adjoint(lower[..., count:, :]) @ of_lower[..., count:, :]
        )
        l_adjoint = _adjoint(lower[..., square, :])
        u_adjoint = _adjoint(upper[..., square])
        inner = solve_triangular(u_adjoint, inner, upper=False, left=False)
        if columns > count:
            inner = tw.concat([inner, of_upper[..., count:]], axis=-1)
        inner = solve_triangular(l_adjoint, inner, upper=True, unitriangular=True)
        if rows > count:
            below = solve_triangular(u_adjoint, of_lower[..., count:, :], upper=False, left=False)
            inner = tw.concat([inner, below], axis=-2)
        return p @ inner, None


def _eliminate(np: Any, a: Any, first: int, last: int, chosen: Any, pivot: bool) -> None:
    """Factors columns first to last of all matrices in place; rows are exchanged as a whole.

    The columns behind `last` are left to the caller, but for the last ones of wide matrices.
    """
    if last - first <= _FEW:
        for i in range(first, last):
            _eliminate_column(np, a, i, last, chosen, pivot)
    else:
        middle = (first + last) // 2
        _eliminate(np, a, first, middle, chosen, pivot)
        _finish_rows(a, first, middle, last)
        _eliminate(np, a, middle, last, chosen, pivot)
    if first == 0 and last == chosen.shape[-1] and a.shape[-1] > last:
        _finish_rows(a, 0, last, a.shape[-1])


def _eliminate_column(np: Any, a: Any, i: int, last: int, chosen: Any, pivot: bool) -> None:
    each = np.arange(a.shape[0])
    if pivot:
        column = a[:, i:, i]  # sizes as LAPACK takes them
        chosen[:, i] = i + (np.abs(column.real) + np.abs(column.imag)).argmax(-1)
        at = chosen[:, i]
        a[each, i], a[each, at] = a[each, at], a[each, i]
    number = a[:, i : i + 1, i]
    a[:, i + 1 :, i] = np.where(number == 0, a[:, i + 1 :, i], a[:, i + 1 :, i] / number)
    a[:, i + 1 :, i + 1 : last] -= a[:, i + 1 :, i, None] * a[:, i, None, i + 1 : last]


def _finish_rows(a: Any, first: int, middle: int, last: int) -> None:
    """Columns middle to last of U in rows first to middle, and of what is left below."""
    _solve_unit_lower(a[:, first:middle, first:middle], a[:, first:middle, middle:last])
    a[:, middle:, middle:last] -= a[:, middle:, first:middle] @ a[:, first:middle, middle:last]


def _solve_unit_lower(lower: Any, b: Any) -> None:
    """b becomes inv(L) @ b."""
    count = lower.shape[-1]
    if count <= _FEW:
        for i in range(1, count):
            b[:, i : i + 1] -= lower[:, i : i + 1, :i] @ b[:, :i]
        return
    half = count // 2
    _solve_unit_lower(lower[:, :half, :half], b[:, :half])
    b[:, half:] -= lower[:, half:, :half] @ b[:, :half]
    _solve_unit_lower(lower[:, half:, half:], b[:, half:])


def _permutation(pivots: Tensor, rows: int, dtype: tw.dtype) -> Tensor:
    """P as a matrix, of the exchanges one after the other."""
    np = require("numpy", purpose="tilewright.linalg", install="numpy")
    batch, count = pivots.shape[:-1], pivots.shape[-1]
    order, each = np.tile(np.arange(rows), (*batch, 1)), np.arange(math.prod(batch))
    lines, at = order.reshape((each.size, rows)), pivots.numpy().reshape((each.size, count)) - 1
    for i in range(count):
        lines[each, i], lines[each, at[:, i]] = lines[each, at[:, i]], lines[each, i]
    return tw.asarray(np.arange(rows)[:, None] == order[..., None, :]).astype(dtype)


def _check_factors(who: str, x: Tensor, pivots: Tensor) -> None:
    check_matrices(who, x)
    if not isinstance(pivots, Tensor) or pivots.dtype != tw.int32:
        kind = pivots.dtype if isinstance(pivots, Tensor) else type(pivots).__name__
        raise TypeError(f"{who}: pivots are a tensor of int32, got {kind}")
    if pivots.shape != (*x.shape[:-2], min(x.shape[-2:])):
        raise ValueError(f"{who}: pivots of {shape_of(pivots)} do not fit factors of {shape_of(x)}")
    if pivots.size and not bool(((pivots >= 1) & (pivots <= x.shape[-2])).all()):
        raise ValueError(f"{who}: pivots are rows, from 1 to {x.shape[-2]}")


def _adjoint(x: Tensor) -> Tensor:
    return tw.conj(x.mT) if x.is_complex() else x.mT
