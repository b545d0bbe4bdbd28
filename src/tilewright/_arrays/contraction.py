"""Products of tensors and their sums over axes, by name: tensordot, vecdot, mm, kron, multi_dot."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor, _core
from tilewright._arrays.broadcasting import broadcast_shapes
from tilewright._arrays.contraction_order import Term, contraction
from tilewright._compat.argument_names import other_names


@other_names
def tensordot(
    x1: Tensor, x2: Tensor, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """Sum of products over pairs of axes: the last `axes` of x1 with the first of x2, or as listed.

    The result has the other axes of x1, then those of x2. Raises ValueError for axes that are out
    of range, repeated or of different sizes.

    Shapes: x1 (a, ..., k, ...), x2 (k, ..., b, ...); the result is (a, ..., b, ...).
    Types: integer, floating, complex. Result: the common type.
    Raises TypeError for operands that are no tensors.
    Source: Array API standard 2024.12.

    >>> import tilewright as tw
    >>> tw.tensordot(tw.ones((2, 3, 4)), tw.ones((4, 3, 5)), axes=((1, 2), (1, 0))).shape
    (2, 5)
    """
    check_tensors("tensordot", x1, x2)
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ValueError(f"tensordot: axes is a number or two lists of axes, got {axes!r}")
        lists = tuple([part] if isinstance(part, int) else list(part) for part in axes)
    else:
        count = operator.index(axes)
        if not 0 <= count <= min(x1.ndim, x2.ndim):
            raise ValueError(
                f"tensordot: {count} axes of shapes {x1.shape} and {x2.shape} cannot be summed over"
            )
        lists = (list(range(x1.ndim - count, x1.ndim)), list(range(count)))
    first = [_axis("tensordot", axis, x1) for axis in lists[0]]
    second = [_axis("tensordot", axis, x2) for axis in lists[1]]
    sizes = [x1.shape[i] for i in first], [x2.shape[j] for j in second]
    if sizes[0] != sizes[1]:
        raise ValueError(f"tensordot: sizes {sizes[0]} of x1 and {sizes[1]} of x2 differ")
    if len({*first}) < len(first) or len({*second}) < len(second):
        raise ValueError(f"tensordot: repeated axes: {axes!r}")
    left = list(range(x1.ndim))
    right: list[Any] = [("x2", j) for j in range(x2.ndim)]
    for i, j in zip(first, second, strict=True):
        right[j] = i
    out = [i for i in left if i not in first] + [j for j in right if j not in first]
    terms = [Term(tuple(x1.shape), tuple(left)), Term(tuple(x2.shape), tuple(right))]
    return contraction(terms, tuple(out))((x1, x2))


@other_names
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sum of products along an axis, of the conjugates of x1's numbers; other axes broadcast.

    Raises ValueError for an axis that is out of range or of different sizes.

    Shapes: x1 and x2 (..., n, ...), which broadcast; the result lacks the axis.
    Types: integer, floating, complex. Result: the common type.
    Raises TypeError for operands that are no tensors.
    Source: Array API standard 2024.12.

    >>> import tilewright as tw
    >>> tw.vecdot(tw.ones((2, 3)), tw.asarray([1.0, 2.0, 3.0])).tolist()
    [6.0, 6.0]
    """
    check_tensors("vecdot", x1, x2)
    at, also = _axis("vecdot", axis, x1), _axis("vecdot", axis, x2)
    if x1.shape[at] != x2.shape[also]:
        raise ValueError(
            f"vecdot: axis {axis} has size {x1.shape[at]} in x1 and {x2.shape[also]} in x2"
        )
    from_end = at - x1.ndim
    if from_end != also - x2.ndim:
        x1, x2, from_end = _last(x1, at), _last(x2, also), -1
    return _products_of_conjugates(x1, x2, from_end)


@other_names
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of each element of a vector with each of another: shape (n,) and (m,) to (n, m).

    Shapes: x1 (n,), x2 (m,); the result is (n, m).
    Types: all. Result: the same type.
    Raises ValueError for tensors that are no vectors, TypeError for operands that are no
    tensors.
    Source: PyTorch's torch.outer.
    """
    _check_ranks("outer", (x1, 1), (x2, 1))
    return tw.expand_dims(x1, 1) * tw.expand_dims(x2, 0)


@other_names
def dot(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Sum of the products of two vectors of one size; neither is conjugated.

    Shapes: x1 and x2 (n,); the result has no dimensions.
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.dot.
    """
    _check_vectors("dot", x1, x2)
    return _products(x1, x2, -1)


@other_names
def inner(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Sums of products over the last axis of both: (..., n) and (***, n) to (..., ***).

    Shapes: x1 (..., n), x2 (***, n); the result is (..., ***).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for last axes of different sizes, TypeError for operands that are no
    tensors.
    Source: PyTorch's torch.inner.
    """
    check_tensors("inner", x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        return x1 * x2
    return tensordot(x1, x2, axes=([-1], [-1]))


@other_names
def mm(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Product of two matrices; `matmul` also takes vectors and batches.

    Shapes: x1 (n, k), x2 (k, m); the result is (n, m).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.mm.
    """
    _check_ranks("mm", (x1, 2), (x2, 2))
    return tw.matmul(x1, x2)


@other_names
def mv(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Product of a matrix and a vector.

    Shapes: x1 (n, k), x2 (k,); the result is (n,).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.mv.
    """
    _check_ranks("mv", (x1, 2), (x2, 1))
    return tw.matmul(x1, x2)


@other_names
def bmm(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of as many pairs of matrices: (b, n, k) and (b, k, m) to (b, n, m).

    Shapes: x1 (b, n, k), x2 (b, k, m); the result is (b, n, m).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.bmm.
    """
    _check_ranks("bmm", (x1, 3), (x2, 3))
    if x1.shape[0] != x2.shape[0]:
        raise ValueError(f"bmm: {x1.shape[0]} matrices by {x2.shape[0]}")
    return tw.matmul(x1, x2)


@other_names
def vdot(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Sum of the products of two vectors of one size; the first is conjugated.

    Shapes: x1 and x2 (n,); the result has no dimensions.
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.vdot.
    """
    _check_vectors("vdot", x1, x2)
    return _products_of_conjugates(x1, x2, -1)


@other_names
def baddbmm(
    x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * x + alpha * bmm(batch1, batch2); x broadcasts, and does not count where beta is 0.

    Shapes: x broadcasts to (b, n, m), batch1 (b, n, k), batch2 (b, k, m); the result is (b, n,
    m).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.baddbmm.
    """
    return _added(x, bmm(batch1, batch2), beta, alpha)


@other_names
def addbmm(
    x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * x + alpha * the sum of all products of bmm(batch1, batch2).

    Shapes: x broadcasts to (n, m), batch1 (b, n, k), batch2 (b, k, m); the result is (n, m).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.addbmm.
    """
    products = bmm(batch1, batch2)
    return _added(x, tw.sum(products, axis=0, dtype=products.dtype), beta, alpha)


@other_names
def addmv(x: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * mv(mat, vec).

    Shapes: x broadcasts to (n,), mat (n, m), vec (m,); the result is (n,).
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.addmv.
    """
    return _added(x, mv(mat, vec), beta, alpha)


@other_names
def addr(x: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * outer(vec1, vec2).

    Shapes: x broadcasts to (n, m), vec1 (n,), vec2 (m,); the result is (n, m).
    Types: all. Result: the same type.
    Raises ValueError for other shapes, TypeError for operands that are no tensors.
    Source: PyTorch's torch.addr.
    """
    return _added(x, outer(vec1, vec2), beta, alpha)


def _added(x: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    scaled = product if alpha == 1 else alpha * product
    if beta == 0:
        return tw.broadcast_to(scaled, broadcast_shapes([scaled.shape, x.shape]))
    return (x if beta == 1 else beta * x) + scaled


@other_names
def kron(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Kronecker product: each element of x1 times the whole of x2, as blocks.

    Shapes: x1 (a, b, ...), x2 (c, d, ...); the result is (a * c, b * d, ...), missing leading
    axes counting as 1.
    Types: all. Result: the same type.
    Raises TypeError for operands that are no tensors.
    Source: PyTorch's torch.kron.
    """
    check_tensors("kron", x1, x2)
    rank = max(x1.ndim, x2.ndim)
    first = (1,) * (rank - x1.ndim) + tuple(x1.shape)
    second = (1,) * (rank - x2.ndim) + tuple(x2.shape)
    wide = tw.reshape(x1, tuple(n for size in first for n in (size, 1)))
    narrow = tw.reshape(x2, tuple(n for size in second for n in (1, size)))
    sizes = tuple(a * b for a, b in zip(first, second, strict=True))
    return tw.reshape(wide * narrow, sizes)


def multi_dot(tensors: Sequence[Tensor], /) -> Tensor:
    """Product of several matrices in the cheapest order; the first and last may be vectors.

    Shapes: matrices (a, b), (b, c), ..., (y, z) give (a, z); a vector's axis is dropped.
    Types: integer, floating, complex. Result: the common type.
    Raises ValueError for fewer than two matrices and for shapes that do not fit, TypeError for
    operands that are no tensors.
    Source: PyTorch's torch.linalg.multi_dot.
    """
    chain = list(tensors)
    check_tensors("multi_dot", *chain)
    if len(chain) < 2:
        raise ValueError(f"multi_dot: needs two matrices at least, got {len(chain)}")
    ends = (0, len(chain) - 1)
    for i, x in enumerate(chain):
        if x.ndim != 2 and not (x.ndim == 1 and i in ends):
            raise ValueError(f"multi_dot: operand {i} has shape {x.shape}: a matrix is needed")
    names: list[tuple[int, ...]] = [(i, i + 1) for i in range(len(chain))]
    out = [0, len(chain)]
    if chain[0].ndim == 1:
        names[0] = (1,)
        out.remove(0)
    if chain[-1].ndim == 1:
        names[-1] = (len(chain) - 1,)
        out.remove(len(chain))
    terms = [Term(tuple(x.shape), labels) for x, labels in zip(chain, names, strict=True)]
    return contraction(terms, tuple(out))(chain)


# ---- checks ----


def check_tensors(who: str, *tensors: Any) -> None:
    for x in tensors:
        if not isinstance(x, Tensor):
            raise TypeError(f"{who}: takes tensors, got {type(x).__name__}")


def _check_ranks(who: str, *pairs: tuple[Any, int]) -> None:
    for x, rank in pairs:
        check_tensors(who, x)
        if x.ndim != rank:
            raise ValueError(f"{who}: {rank} axes are needed, got shape {tuple(x.shape)}")


def _check_vectors(who: str, x1: Any, x2: Any) -> None:
    _check_ranks(who, (x1, 1), (x2, 1))
    if x1.shape != x2.shape:
        raise ValueError(f"{who}: sizes {x1.shape[0]} and {x2.shape[0]} differ")


def _products_of_conjugates(x1: Tensor, x2: Tensor, axis: int) -> Tensor:
    """Their sums along an axis counted from the end, of the conjugates of x1."""
    if x1.ndim == x2.ndim == 1 and (x1.is_complex() or x2.is_complex()):
        return _core._vdot(x1, x2)
    return _products(tw.conj(x1), x2, axis)


def _products(x1: Tensor, x2: Tensor, axis: int) -> Tensor:
    """Their sums along an axis counted from the end."""
    if x1.is_floating_point() and x2.is_floating_point():
        return tw.sum_of_products(x1, x2, axis=axis)
    if x1.ndim == x2.ndim == 1:
        return tw.matmul(x1, x2)
    return tw.sum(x1 * x2, axis=axis, dtype=tw.result_type(x1, x2))


def _axis(who: str, axis: int, x: Tensor) -> int:
    if not -x.ndim <= (at := operator.index(axis)) < x.ndim:
        raise ValueError(f"{who}: axis {axis} is out of range for shape {tuple(x.shape)}")
    return at % x.ndim


def _last(x: Tensor, axis: int) -> Tensor:
    order = [i for i in range(x.ndim) if i != axis]
    return x if axis == x.ndim - 1 else tw.permute_dims(x, (*order, axis))
