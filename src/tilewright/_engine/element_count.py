"""What `Tensor.size` is: a number for the Array API, and a method for PyTorch's programs."""

from __future__ import annotations

import operator
from typing import Any, overload


class ElementCount(int):
    """Number of elements; called, the shape or the extent of one axis.

    >>> import tilewright as tw
    >>> x = tw.zeros(2, 3)
    >>> x.size, x.size(), x.size(-1)
    (6, (2, 3), 3)
    """

    shape: tuple[int, ...]

    def __new__(cls, count: int, shape: tuple[int, ...]) -> ElementCount:
        """The number of elements of a shape."""
        self = super().__new__(cls, count)
        self.shape = shape
        return self

    @overload
    def __call__(self, axis: None = None) -> tuple[int, ...]: ...
    @overload
    def __call__(self, axis: int) -> int: ...
    def __call__(self, axis: int | None = None, *, dim: int | None = None) -> Any:
        """The shape, or the extent of an axis; IndexError for one that is out of range."""
        axis = dim if axis is None else axis
        if axis is None:
            return self.shape
        rank = len(self.shape)
        if not -rank <= operator.index(axis) < rank:
            raise IndexError(f"size: axis {axis} is out of range for {rank} dimensions")
        return self.shape[axis]

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        """As the number alone."""
        return int, (int(self),)
