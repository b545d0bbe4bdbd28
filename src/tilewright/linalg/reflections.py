"""Orthogonal matrices as products of reflections."""

from __future__ import annotations

import tilewright as tw
from tilewright import Tensor
from tilewright.linalg.checks import check_matrices, shape_of


def householder_product(a: Tensor, tau: Tensor, /) -> Tensor:
    """The first n columns of H1 @ ... @ Hk, where Hi is 1 - tau[i] v @ v.mH.

    v is what of column i of a lies below the diagonal, with a 1 above it and 0s before: the form in
    which LAPACK's geqrf leaves Q.

    Shapes: a (..., m, n) with m >= n, tau (..., k) with k <= n; the result is (..., m, n).
    Types: float32, float64, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for other types.
    Source: PyTorch's torch.linalg.householder_product.

    >>> import tilewright as tw
    >>> tw.linalg.householder_product(tw.zeros(2, 2), tw.asarray([2.0])).tolist()
    [[-1.0, 0.0], [0.0, 1.0]]
    """
    check_matrices("householder_product", a)
    rows, columns = a.shape[-2:]
    if not isinstance(tau, Tensor) or tau.dtype != a.dtype:
        raise TypeError(f"householder_product: tau is a tensor of {a.dtype}")
    if rows < columns or tau.ndim != a.ndim - 1 or tau.shape[-1:] > (columns,):
        raise ValueError(
            f"householder_product: a of {shape_of(a)} has more columns than rows, or tau of "
            f"{shape_of(tau)} does not fit"
        )
    if tau.shape[:-1] != a.shape[:-2]:
        raise ValueError(f"householder_product: tau of {shape_of(tau)} and a of {shape_of(a)}")
    lower = tw.tril(a, k=-1) + tw.eye(rows, columns, dtype=a.dtype)
    q = tw.eye(rows, columns, dtype=a.dtype) + tw.zeros_like(a)
    for i in reversed(range(tau.shape[-1])):
        v = lower[..., i : i + 1]
        q = q - tau[..., i, None, None] * v @ (tw.conj(v.mT) @ q)
    return q
