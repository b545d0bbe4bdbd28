"""The distance between two tensors, and norms by PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Sequence

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.argument_names import other_names
from tilewright._compat.torch_functions import axis_of

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


@other_names
def renorm(x: Tensor, p: float, axis: int, maxnorm: float) -> Tensor:
    """x with each slice along an axis whose `p`-norm is above `maxnorm` scaled down to it.

    The factor is maxnorm / (norm + 1e-7), as in PyTorch.

    Shapes: x (..., n, ...) of two dimensions or more has n slices; the result has x's shape.
    Types: floating, complex. Result: the same type; norms of 16-bit types are in float32.
    Raises IndexError for an axis out of range, ValueError for fewer dimensions, p of 0 or below
    and a negative maxnorm, TypeError for other types.
    Source: PyTorch's torch.renorm.

    >>> import tilewright as tw
    >>> tw.renorm(tw.asarray([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0).round(decimals=4).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"renorm: takes tensors, got {type(x).__name__}")
    if not (x.is_floating_point() or x.is_complex()):
        raise TypeError(f"renorm: floating and complex numbers only, got {x.dtype}")
    if x.ndim < 2:
        raise ValueError(f"renorm: needs at least 2 dimensions, got {x.shape}")
    if not p > 0:
        raise ValueError(f"renorm: p must be above 0, got {p}")
    if not maxnorm >= 0:
        raise ValueError(f"renorm: maxnorm must not be negative, got {maxnorm}")
    along = axis_of("renorm", axis, x)
    others = tuple(i for i in range(x.ndim) if i != along)
    wide = x.astype(tw.float32) if x.dtype in (tw.float16, tw.bfloat16) else x
    # Norms of float32 may be beyond its range, where their elements are not.
    terms = wide if wide.is_complex() else wide.astype(tw.float64)
    length = tw.linalg.vector_norm(terms, axis=others, keepdims=True, ord=p)
    longer = length > maxnorm  # the others' lengths take no part, nor have a gradient
    factor = tw.where(longer, maxnorm / (tw.where(longer, length, 1.0) + 1e-7), 1.0)
    return (wide * factor.astype(terms.dtype if terms is wide else wide.dtype)).astype(x.dtype)
