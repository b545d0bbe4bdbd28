"""Functions of whole numbers."""

from __future__ import annotations

from tilewright import _core
from tilewright._compat.argument_names import other_names
from tilewright._core import Tensor


@other_names
def gcd(x1: Tensor, x2: Tensor) -> Tensor:
    """Greatest common divisor, by Euclid's algorithm; 0 of two zeros.

    Reads whether there is a remainder left, so a capture refuses it. Raises TypeError for types
    that are not integer.

    Shapes: x1 and x2 broadcast; the result has their common shape.
    Types: integer. Result: the common type.
    Raises ValueError for shapes that do not broadcast.
    Source: PyTorch's torch.gcd.

    >>> import tilewright as tw
    >>> tw.gcd(tw.asarray([12, 7, 0]), tw.asarray([18, 5, 4])).tolist()
    [6, 1, 4]
    """
    _check("gcd", x1, x2)
    # With signs: the least number of a type has no absolute value there.
    x1, x2 = _alike(x1, x2)
    while bool((x2 != 0).any()):
        none = x2 == 0
        rest = x1 % _core.where(none, 1, x2)
        x1, x2 = _core.where(none, x1, x2), _core.where(none, 0, rest)
    return abs(x1)


@other_names
def lcm(x1: Tensor, x2: Tensor) -> Tensor:
    """Least common multiple; 0 where one is 0. Raises TypeError for types that are not integer.

    Shapes: x1 and x2 broadcast; the result has their common shape.
    Types: integer. Result: the common type.
    Raises ValueError for shapes that do not broadcast.
    Source: PyTorch's torch.lcm.

    >>> import tilewright as tw
    >>> tw.lcm(tw.asarray([4, 3]), tw.asarray([6, 0])).tolist()
    [12, 0]
    """
    _check("lcm", x1, x2)
    divisor = gcd(x1, x2)
    return abs(x1 // _core.where(divisor == 0, 1, divisor) * x2)


def _alike(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """Both in their common type and shape."""
    shape = _core._broadcast_shapes([x1.shape, x2.shape])
    dtype = _core.result_type(x1, x2)
    return (
        _core.broadcast_to(x1.astype(dtype), shape),
        _core.broadcast_to(x2.astype(dtype), shape),
    )


def _check(function: str, *tensors: Tensor) -> None:
    for x in tensors:
        if not isinstance(x, Tensor):
            raise TypeError(f"{function}: expected a Tensor, got {type(x).__name__}")
        if x.is_floating_point() or x.is_complex() or x.dtype == _core.bool:
            raise TypeError(f"{function}: needs integers, got {x.dtype}")
