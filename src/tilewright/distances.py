"""The distance between two tensors, and norms by PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Sequence

import tilewright as tw
from tilewright import Tensor
from tilewright.other_names import other_names

_Axes = int | Sequence[int] | None


@other_names
def dist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The `p`-norm of all elements of x1 - x2, which broadcast.

    Shapes: x1 and x2 broadcast; the result has no dimensions.
    Types: floating, complex. Result: the same type, of complex numbers that of their parts.
    Raises ValueError for shapes that do not broadcast, TypeError for operands that are no
    tensors.
    Source: PyTorch's torch.dist.
    """
    return tw.linalg.vector_norm(x1 - x2, ord=p)


@other_names
def norm(
    x: Tensor, p: float | str | None = "fro", axis: _Axes = None, keepdims: bool = False
) -> Tensor:
    """The `p`-norm of all elements or along axes, as in PyTorch: "fro" is 2 for any axes.

    "nuc" is the sum of the singular values of matrices. `tw.linalg` has the norms of matrices.
    Raises ValueError for another word.

    Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where keepdims.
    Types: floating, complex. Result: the same type, of complex numbers that of their parts.
    Raises IndexError for an axis out of range, TypeError for other types.
    Source: PyTorch's torch.norm.

    >>> import tilewright as tw
    >>> tw.norm(tw.asarray([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    if p == "nuc":
        axes = (0, 1) if axis is None and x.ndim == 2 else axis
        return tw.linalg.norm(x, "nuc", axis=axes, keepdims=keepdims)
    if isinstance(p, str) and p != "fro":
        raise ValueError(f"norm: p is a number, 'fro' or 'nuc', got {p!r}")
    order = 2.0 if p is None or isinstance(p, str) else p
    return tw.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=order)
