"""Tensors from others' memory, like other tensors, and evenly spaced on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright._arrays.broadcasting import broadcast_shapes
from tilewright._compat.argument_names import other_names

_Shape = int | Sequence[int]


def as_tensor(data: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """The data as a tensor: itself where it is one, over the same memory where that is possible.

    `tensor` always copies. What can be read: see `asarray`.

    Shapes: nested lists of equal lengths, a level for each axis.
    Types: all. Result: dtype, by default what the data are.
    Raises TypeError for what is no data, ValueError for lists of different depths or lengths.
    Source: PyTorch's torch.as_tensor.

    >>> import tilewright as tw
    >>> x = tw.ones(2)
    >>> tw.as_tensor(x) is x, tw.as_tensor([1, 2]).dtype
    (True, int64)
    """
    return tw.asarray(data, dtype=dtype, device=device)


def from_numpy(array: Any) -> Tensor:
    """A tensor over the memory of a NumPy array: changes of one are changes of the other.

    Raises TypeError for other objects, and what `asarray(copy=False)` raises where the memory
    cannot be shared.

    Shapes: the array's.
    Types: all. Result: the same type.
    Source: PyTorch's torch.from_numpy.
    """
    if type(array).__module__.partition(".")[0] != "numpy":
        raise TypeError(f"from_numpy: expected an ndarray, got {type(array).__name__}")
    return tw.asarray(array, copy=False)


def is_tensor(x: object) -> bool:
    """Whether it is a Tensor.

    Raises TypeError without an argument.
    """
    return isinstance(x, Tensor)


@other_names
def logspace(
    start: float,
    stop: float,
    num: int,
    base: float = 10.0,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`num` numbers from base ** start to base ** stop, evenly spaced in their logarithms.

    Shapes: the result is (num,).
    Types: all. Result: dtype, by default the default floating type.
    Raises ValueError for a negative num, TypeError for ends that are no numbers.
    Source: PyTorch's torch.logspace.

    >>> import tilewright as tw
    >>> tw.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    exponents = tw.linspace(start, stop, num, dtype=tw.float64, device=device)
    y = tw.pow(float(base), exponents).astype(tw.get_default_dtype() if dtype is None else dtype)
    return y.requires_grad_(requires_grad)


def new(x: Tensor, *size: Any) -> Tensor:
    """Memory of another shape, or a copy of a list of numbers, in the type and place of x.

    PyTorch's older name of `new_empty` and `new_tensor`.
    """
    if len(size) == 1 and not isinstance(size[0], (int, tuple)):
        return new_tensor(x, size[0])
    return new_empty(x, *(size if size else (0,)))


def new_tensor(
    x: Tensor, data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """A copy of data, in the type and on the device of x unless others are given."""
    return tw.tensor(
        data,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
        requires_grad=requires_grad,
    )


def new_full(
    x: Tensor,
    size: _Shape,
    fill_value: complex,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """One number in another shape, in the type and on the device of x unless others are given."""
    return tw.full(
        size,
        fill_value,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
        requires_grad=requires_grad,
    )


def new_zeros(
    x: Tensor,
    *size: Any,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Zeros in another shape, in the type and on the device of x unless others are given."""
    return new_full(x, _shape(size), 0, dtype, device, requires_grad)


def new_ones(
    x: Tensor,
    *size: Any,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Ones in another shape, in the type and on the device of x unless others are given."""
    return new_full(x, _shape(size), 1, dtype, device, requires_grad)


def new_empty(
    x: Tensor,
    *size: Any,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Memory of another shape, in the type and on the device of x unless others are given."""
    return tw.empty(
        _shape(size),
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
        requires_grad=requires_grad,
    )


def _shape(size: tuple[Any, ...]) -> _Shape:
    """Extents one by one, or as one sequence."""
    return size[0] if len(size) == 1 else size


def normal_about(
    mean: float | Tensor, std: float | Tensor = 1.0, *, generator: Any = None
) -> Tensor:
    """Normal numbers about each mean with each deviation, which broadcast: `normal` of tensors.

    Raises ValueError for a negative deviation; reads it for that. Without gradients.

    >>> import tilewright as tw
    >>> tw.normal(tw.asarray([1.0, 2.0]), 0.0).tolist()
    [1.0, 2.0]
    """
    with tw.no_grad():
        means, deviations = tw.asarray(mean) * 1.0, tw.asarray(std) * 1.0
        if deviations.size and bool((deviations < 0).any()):
            raise ValueError("normal: a standard deviation is negative")
        shape = broadcast_shapes(means.shape, deviations.shape)
        dtype = tw.result_type(means, deviations)
        drawn = tw.normal(0.0, 1.0, shape, dtype=dtype, generator=generator)
        return means + deviations * drawn.to(means.device)
