"""Functions of any number of tensors, and those whose result is several."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import Tensor, _core
from tilewright._engine.value_text import shown


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The tensors in the shape that all of them broadcast to, as views.

    Raises ValueError for shapes that do not broadcast.

    Shapes: tensors that broadcast; the results have their common shape.
    Types: all. Result: the same type.
    Raises TypeError for what is no tensor.
    Source: Array API standard 2024.12.

    >>> import tilewright as tw
    >>> [x.shape for x in tw.broadcast_arrays(tw.ones((3, 1)), tw.ones((4,)))]
    [(3, 4), (3, 4)]
    """
    return _broadcast("broadcast_arrays", _checked("broadcast_arrays", arrays))


def broadcast_shapes(*shapes: int | Sequence[int] | Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape that all shapes broadcast to; a number is the shape of a vector.

    They may also stand in one list. Raises ValueError for shapes that do not broadcast and for
    negative extents.

    >>> import tilewright as tw
    >>> tw.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    first = shapes[0] if len(shapes) == 1 else 0
    if not isinstance(first, int) and any(not hasattr(part, "__index__") for part in first):
        return _core._broadcast_shapes(first)
    return _core._broadcast_shapes(shapes)  # type: ignore[arg-type]


def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """`broadcast_arrays` under PyTorch's name, in a tuple; a sequence of tensors is taken as well.

    Shapes: tensors that broadcast; the results have their common shape.
    Types: all. Result: the same type.
    Raises ValueError for shapes that do not broadcast, TypeError for what is no tensor.
    Source: PyTorch's torch.broadcast_tensors.

    >>> import tilewright as tw
    >>> [x.shape for x in tw.broadcast_tensors(tw.ones((3, 1)), tw.ones((4,)))]
    [(3, 4), (3, 4)]
    """
    return tuple(_broadcast("broadcast_tensors", _spread("broadcast_tensors", tensors)))


def meshgrid(*arrays: Tensor | Sequence[Tensor], indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid, of which each vector is an axis, as views.

    With `indexing` "ij" the axes stand in the order of the vectors: y[k][i, j] is arrays[k] at i
    or j. With "xy", the default as in the Array API and in NumPy but not in PyTorch, the first two
    are swapped. Raises ValueError for tensors of more than one dimension.

    Shapes: k vectors; k results of k axes.
    Types: all. Result: the same type.
    Raises TypeError for what is no tensor.
    Source: Array API standard 2024.12.

    >>> import tilewright as tw
    >>> x, y = tw.meshgrid(tw.asarray([1, 2, 3]), tw.asarray([4, 5]))
    >>> x.tolist(), y.tolist()
    ([[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [5, 5, 5]])
    """
    vectors = _spread("meshgrid", arrays)
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {shown(indexing)}")
    for x in vectors:
        if x.ndim > 1:
            raise ValueError(f"meshgrid: needs vectors, got a tensor of shape {x.shape}")
    rank = len(vectors)
    shape = tuple(x.size for x in vectors)
    grids = []
    for i, x in enumerate(vectors):
        along = x.reshape((1,) * i + (x.size,) + (1,) * (rank - 1 - i))
        grids.append(_core.broadcast_to(along, shape))
    if indexing == "xy" and rank > 1:
        grids = [x.transpose(0, 1) for x in grids]
    return grids


def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """A 0-d tensor as a vector of one element, as a view; others as they are.

    Of several tensors, or a sequence of them, a tuple.

    Shapes: x of any shape; () gives (1,).
    Types: all. Result: the same type.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.atleast_1d.

    >>> import tilewright as tw
    >>> tw.atleast_1d(tw.asarray(3.0)).shape
    (1,)
    """
    return _each("atleast_1d", tensors, [(1,), None, None])


def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """A tensor of fewer than 2 dimensions as a matrix of one row, as a view; others as they are.

    Of several tensors, or a sequence of them, a tuple.

    Shapes: x of any shape; () gives (1, 1), (n,) gives (1, n).
    Types: all. Result: the same type.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.atleast_2d.

    >>> import tilewright as tw
    >>> tw.atleast_2d(tw.ones((3,))).shape
    (1, 3)
    """
    return _each("atleast_2d", tensors, [(1, 1), (1, -1), None])


def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """A vector (n,) as (1, n, 1), a matrix (m, n) as (m, n, 1), as views; others as they are.

    Of several tensors, or a sequence of them, a tuple.

    Shapes: x of any shape; () gives (1, 1, 1), (n,) gives (1, n, 1), (m, n) gives (m, n, 1).
    Types: all. Result: the same type.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.atleast_3d.

    >>> import tilewright as tw
    >>> tw.atleast_3d(tw.ones((3,))).shape
    (1, 3, 1)
    """
    return _each("atleast_3d", tensors, [(1, 1, 1), (1, -1, 1), (0, 0, 1)])


def block_diag(*tensors: Tensor) -> Tensor:
    """Zeros with the matrices along the diagonal; vectors are rows, and the types are promoted.

    Raises ValueError for tensors of more than 2 dimensions.

    Shapes: tensors (m, n), (n,) or (); the result is (sum of the m, sum of the n).
    Types: all. Result: the common type.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.block_diag.

    >>> import tilewright as tw
    >>> tw.block_diag(tw.ones((1, 2)), tw.full((1, 1), 5.0)).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 5.0]]
    """
    blocks = _checked("block_diag", tensors)
    for x in blocks:
        if x.ndim > 2:
            raise ValueError(f"block_diag: needs at most 2 dimensions, got {x.shape}")
    if not blocks:
        return _core.zeros((1, 0))
    blocks = [x if x.ndim == 2 else x.reshape((1, x.size)) for x in blocks]
    dtype, width = _core.result_type(*blocks), sum(x.shape[1] for x in blocks)
    rows, left = [], 0
    for x in blocks:
        right = width - left - x.shape[1]
        rows.append(_core.pad(x.astype(dtype), (left, right)))
        left += x.shape[1]
    return _core.concat(rows)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of an element of each vector, as rows; of one vector, itself.

    Raises ValueError for no tensors and for those that are no vectors.

    Shapes: k vectors (n1,), (n2,), ...; the result is (n1 * n2 * ..., k).
    Types: all. Result: the common type.
    Raises TypeError for what is no tensor.
    Source: PyTorch's torch.cartesian_prod.

    >>> import tilewright as tw
    >>> tw.cartesian_prod(tw.asarray([1, 2]), tw.asarray([5, 6])).tolist()
    [[1, 5], [1, 6], [2, 5], [2, 6]]
    """
    vectors = _checked("cartesian_prod", tensors)
    for x in vectors:
        if x.ndim != 1:
            raise ValueError(f"cartesian_prod: needs vectors, got a tensor of shape {x.shape}")
    if not vectors:
        raise ValueError("cartesian_prod: no tensors")
    if len(vectors) == 1:
        return vectors[0]
    return _core.stack([x.reshape(-1) for x in meshgrid(*vectors, indexing="ij")], -1)


def _checked(name: str, tensors: Sequence[object]) -> list[Tensor]:
    found = []
    for x in tensors:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{name}: expected tensors, got {shown(x)}; make one with tilewright.asarray"
            )
        found.append(x)
    return found


def _spread(name: str, tensors: Sequence[object]) -> list[Tensor]:
    """Tensors one by one, or a sequence of them."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    return _checked(name, tensors)


def _broadcast(name: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    try:
        shape = _core._broadcast_shapes([x.shape for x in tensors])
    except ValueError as error:
        raise type(error)(str(error).replace("broadcast_shapes", name)) from None
    return [_core.broadcast_to(x, shape) for x in tensors]


def _each(
    name: str, tensors: Sequence[object], shapes: Sequence[tuple[int, ...] | None]
) -> Tensor | tuple[Tensor, ...]:
    """Tensors in the shape for their number of dimensions: 0 keeps an extent, -1 is the rest."""
    several = len(tensors) != 1 or isinstance(tensors[0], (list, tuple))
    found = tuple(_reshaped(x, shapes) for x in _spread(name, tensors))
    return found if several else found[0]


def _reshaped(x: Tensor, shapes: Sequence[tuple[int, ...] | None]) -> Tensor:
    shape = shapes[x.ndim] if x.ndim < len(shapes) else None
    if shape is None:
        return x
    return x.reshape(
        [x.shape[i] if n == 0 else x.size if n < 0 else n for i, n in enumerate(shape)]
    )
