"""The layer that joins axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module.module import Module


class Flatten(Module):
    """Joins the axes from `start_axis` to `end_axis`; by default all but the first.

    `start_dim` and `end_dim` are PyTorch's names of them.

    >>> import tilewright as tw
    >>> tw.nn.Flatten()(tw.zeros((5, 2, 3))).shape
    (5, 6)
    """

    def __init__(
        self,
        start_axis: int = 1,
        end_axis: int = -1,
        *,
        start_dim: int | None = None,
        end_dim: int | None = None,
    ) -> None:
        start_axis = start_axis if start_dim is None else start_dim
        end_axis = end_axis if end_dim is None else end_dim
        for axis in (start_axis, end_axis):
            if isinstance(axis, bool) or not isinstance(axis, int):
                raise TypeError(f"Flatten: axes are whole numbers, got {axis!r}")
        self.start_axis = start_axis
        self.end_axis = end_axis

    @property
    def start_dim(self) -> int:
        """`start_axis`, by PyTorch's name."""
        return self.start_axis

    @start_dim.setter
    def start_dim(self, axis: int) -> None:
        self.start_axis = axis

    @property
    def end_dim(self) -> int:
        """`end_axis`, by PyTorch's name."""
        return self.end_axis

    @end_dim.setter
    def end_dim(self, axis: int) -> None:
        self.end_axis = axis

    def forward(self, x: Tensor) -> Tensor:
        start = self._axis(self.start_axis, x)
        end = self._axis(self.end_axis, x)
        if start > end:
            raise ValueError(f"Flatten: start axis {start} lies behind end axis {end}: {x.shape}")
        joined = math.prod(x.shape[start : end + 1])
        return x.reshape((*x.shape[:start], joined, *x.shape[end + 1 :]))

    def _axis(self, axis: int, x: Tensor) -> int:
        if not -x.ndim <= axis < x.ndim:
            raise IndexError(f"Flatten: axis {axis} is out of range for shape {x.shape}")
        return axis % x.ndim

    def extra_repr(self) -> str:
        return f"start_axis={self.start_axis}, end_axis={self.end_axis}"


class Unflatten(Module):
    """Splits an axis in several, of which one may be -1: what remains.

    >>> import tilewright as tw
    >>> tw.nn.Unflatten(1, (2, -1))(tw.zeros((5, 6))).shape
    (5, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        if isinstance(dim, bool) or not isinstance(dim, int):
            raise TypeError(f"Unflatten: dim is a whole number, got {dim!r}")
        sizes = tuple(unflattened_size) if isinstance(unflattened_size, Sequence) else ()
        if not sizes or any(isinstance(n, bool) or not isinstance(n, int) for n in sizes):
            raise TypeError(f"Unflatten: sizes are whole numbers, got {unflattened_size!r}")
        self.dim = dim
        self.unflattened_size = sizes

    def forward(self, x: Tensor) -> Tensor:
        return tw.unflatten(x, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
