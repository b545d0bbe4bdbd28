"""Layers that put elements around the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module.module import Module

Widths = int | Sequence[int]


class _Pad(Module):
    """Widths in front of and behind the last axis, then the one before it."""

    axes: ClassVar[int]
    mode: ClassVar[str]
    padding: tuple[int, ...]

    def __init__(self, padding: Widths) -> None:
        widths = tuple(padding) if isinstance(padding, Sequence) else (padding,) * (2 * self.axes)
        if any(isinstance(width, bool) or not hasattr(width, "__index__") for width in widths):
            raise TypeError(f"{type(self).__name__}: padding is whole numbers, got {padding!r}")
        if len(widths) != 2 * self.axes:
            raise ValueError(
                f"{type(self).__name__}: padding is one number or {2 * self.axes}, got {padding!r}"
            )
        self.padding = widths

    def forward(self, x: Tensor) -> Tensor:
        return tw.pad(x, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Widths, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        return tw.pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Widths) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ConstantPad1d(_ConstantPad):
    """`value` around the last axis, by one width or (front, behind).

    >>> import tilewright as tw
    >>> tw.nn.ConstantPad1d(1, 7.0)(tw.ones((1, 2))).tolist()
    [[7.0, 1.0, 1.0, 7.0]]
    """

    axes = 1


class ConstantPad2d(_ConstantPad):
    """`value` around the last two axes, by one width or 4 of them."""

    axes = 2


class ConstantPad3d(_ConstantPad):
    """`value` around the last three axes, by one width or 6 of them."""

    axes = 3


class ZeroPad1d(_ZeroPad):
    """Zeros around the last axis, by one width or (front, behind).

    >>> import tilewright as tw
    >>> tw.nn.ZeroPad1d((1, 0))(tw.ones((1, 2))).tolist()
    [[0.0, 1.0, 1.0]]
    """

    axes = 1


class ZeroPad2d(_ZeroPad):
    """Zeros around the last two axes, by one width or 4 of them."""

    axes = 2


class ZeroPad3d(_ZeroPad):
    """Zeros around the last three axes, by one width or 6 of them."""

    axes = 3


class ReflectionPad1d(_Pad):
    """Elements mirrored at both ends of the last axis, by one width or (front, behind).

    >>> import tilewright as tw
    >>> tw.nn.ReflectionPad1d(1)(tw.asarray([[1.0, 2.0, 3.0]])).tolist()
    [[2.0, 1.0, 2.0, 3.0, 2.0]]
    """

    mode = "reflect"
    axes = 1


class ReflectionPad2d(_Pad):
    """Elements mirrored at both ends of the last two axes, by one width or 4 of them."""

    mode = "reflect"
    axes = 2


class ReflectionPad3d(_Pad):
    """Elements mirrored at both ends of the last three axes, by one width or 6 of them."""

    mode = "reflect"
    axes = 3


class ReplicationPad1d(_Pad):
    """The outermost elements again around the last axis, by one width or (front, behind).

    >>> import tilewright as tw
    >>> tw.nn.ReplicationPad1d(1)(tw.asarray([[1.0, 2.0]])).tolist()
    [[1.0, 1.0, 2.0, 2.0]]
    """

    mode = "replicate"
    axes = 1


class ReplicationPad2d(_Pad):
    """The outermost elements again around the last two axes, by one width or 4 of them."""

    mode = "replicate"
    axes = 2


class ReplicationPad3d(_Pad):
    """The outermost elements again around the last three axes, by one width or 6 of them."""

    mode = "replicate"
    axes = 3


class CircularPad1d(_Pad):
    """Elements from the other end around the last axis, by one width or (front, behind).

    >>> import tilewright as tw
    >>> tw.nn.CircularPad1d(1)(tw.asarray([[1.0, 2.0, 3.0]])).tolist()
    [[3.0, 1.0, 2.0, 3.0, 1.0]]
    """

    mode = "circular"
    axes = 1


class CircularPad2d(_Pad):
    """Elements from the other end around the last two axes, by one width or 4 of them."""

    mode = "circular"
    axes = 2


class CircularPad3d(_Pad):
    """Elements from the other end around the last three axes, by one width or 6 of them."""

    mode = "circular"
    axes = 3
