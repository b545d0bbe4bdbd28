"""Layers that take the largest or the mean element of each window of images."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.functions import pooling
from tilewright.nn.module.module import Module

Sizes = int | Sequence[int]


def _whole(layer: str, name: str, value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{layer}: {name} is a whole number, got {value!r}")
    return operator.index(value)


class _Pool(Module):
    """What all of them share: sizes as they were given, and the function of their name."""

    axes: ClassVar[int]
    function: ClassVar[Callable[..., Any]]

    def _sizes(self, name: str, value: Sizes) -> int | tuple[int, ...]:
        """One number, or one for each axis."""
        layer = type(self).__name__
        if not isinstance(value, Sequence):
            return _whole(layer, name, value)
        if len(value) not in (1, self.axes):
            raise ValueError(f"{layer}: {name} is one number or {self.axes}, got {value!r}")
        return tuple(_whole(layer, name, each) for each in value)

    def _checked(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{type(self).__name__}: expected a Tensor, got {type(x).__name__}; "
                "tw.asarray() makes one"
            )
        return x


class _MaxPool(_Pool):
    with_indices: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = self._sizes("kernel_size", kernel_size)
        self.stride = self._sizes("stride", kernel_size if stride is None else stride)
        self.padding = self._sizes("padding", padding)
        self.dilation = self._sizes("dilation", dilation)
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Any:
        call = type(self).with_indices if self.return_indices else type(self).function
        return call(
            self._checked(x),
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of each window of x (batch, channels, length), or without batch.

    Windows lie `stride` (default: `kernel_size`) apart; with `return_indices`, a pair of the
    elements and their places in the row.

    >>> import tilewright as tw
    >>> tw.nn.MaxPool1d(2)(tw.asarray([[1.0, 3.0, 2.0, 0.0]])).tolist()
    [[3.0, 2.0]]
    """

    axes = 1
    function = staticmethod(tw.max_pool1d)
    with_indices = staticmethod(tw.max_pool1d_with_indices)


class MaxPool2d(_MaxPool):
    """The largest element of each window of x (batch, channels, height, width), or without batch.

    Windows lie `stride` (default: `kernel_size`) apart; with `return_indices`, a pair of the
    elements and their places in the plane, row-major.

    >>> import tilewright as tw
    >>> tw.nn.MaxPool2d(3, stride=2, padding=1)(tw.zeros((8, 16, 28, 28))).shape
    (8, 16, 14, 14)
    """

    axes = 2
    function = staticmethod(tw.max_pool2d)
    with_indices = staticmethod(tw.max_pool2d_with_indices)


class MaxPool3d(_MaxPool):
    """The largest element of each window of x (batch, channels, depth, height, width).

    As MaxPool2d, with an axis more.

    >>> import tilewright as tw
    >>> tw.nn.MaxPool3d(2)(tw.zeros((3, 4, 6, 8))).shape
    (3, 2, 3, 4)
    """

    axes = 3
    function = staticmethod(tw.max_pool3d)
    with_indices = staticmethod(tw.max_pool3d_with_indices)


class _MaxUnpool(_Pool):
    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        self.kernel_size = self._sizes("kernel_size", kernel_size)
        self.stride = self._sizes("stride", kernel_size if stride is None else stride)
        self.padding = self._sizes("padding", padding)

    def forward(
        self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        size = None if output_size is None else tuple(output_size)[-self.axes :]
        unpool = type(self).function
        y: Tensor = unpool(
            self._checked(x), indices, self.kernel_size, self.stride, self.padding, size
        )
        return y

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Zeros with what MaxPool1d found at the places that its indices say.

    Elements of one place are added up. `output_size` of a call, by default the smallest that the
    windows fit, is the shape of the result or of its pooled axes.

    >>> import tilewright as tw
    >>> y, places = tw.nn.MaxPool1d(2, return_indices=True)(tw.asarray([[1.0, 3, 2, 4]]))
    >>> tw.nn.MaxUnpool1d(2)(y, places).tolist()
    [[0.0, 3.0, 0.0, 4.0]]
    """

    axes = 1
    function = staticmethod(tw.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Zeros with what MaxPool2d found at the places that its indices say; see MaxUnpool1d."""

    axes = 2
    function = staticmethod(tw.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Zeros with what MaxPool3d found at the places that its indices say; see MaxUnpool1d."""

    axes = 3
    function = staticmethod(tw.max_unpool3d)


class AvgPool1d(_Pool):
    """The mean of each window of x (batch, channels, length), or without batch.

    Windows lie `stride` (default: `kernel_size`) apart; zeros of padding count where
    `count_include_pad`.

    >>> import tilewright as tw
    >>> tw.nn.AvgPool1d(2)(tw.asarray([[1.0, 3.0, 2.0, 0.0]])).tolist()
    [[2.0, 1.0]]
    """

    axes = 1

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size = self._single("kernel_size", kernel_size)
        self.stride = self._single("stride", kernel_size if stride is None else stride)
        self.padding = self._single("padding", padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def _single(self, name: str, value: Sizes) -> tuple[int, ...]:
        sizes = self._sizes(name, value)
        return (sizes,) if isinstance(sizes, int) else sizes

    def forward(self, x: Tensor) -> Tensor:
        return tw.avg_pool1d(
            self._checked(x),
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(_Pool):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size = self._sizes("kernel_size", kernel_size)
        self.stride = self._sizes("stride", kernel_size if stride is None else stride)
        self.padding = self._sizes("padding", padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = type(self).function(
            self._checked(x),
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )
        return y

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window of x (batch, channels, height, width), or without batch.

    Windows lie `stride` (default: `kernel_size`) apart; zeros of padding count where
    `count_include_pad`; sums are divided by `divisor_override` where it is given.

    >>> import tilewright as tw
    >>> tw.nn.AvgPool2d(2)(tw.ones((1, 2, 2))).tolist()
    [[[1.0]]]
    """

    axes = 2
    function = staticmethod(tw.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window of x (batch, channels, depth, height, width), as AvgPool2d.

    >>> import tilewright as tw
    >>> tw.nn.AvgPool3d((1, 2, 2))(tw.ones((1, 3, 4, 4))).shape
    (1, 3, 2, 2)
    """

    axes = 3
    function = staticmethod(tw.avg_pool3d)


class _AdaptivePool(_Pool):
    """Sizes of results; None keeps the input's size along that axis."""

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        layer = type(self).__name__
        if isinstance(output_size, Sequence) and len(output_size) != self.axes:
            raise ValueError(
                f"{layer}: output_size is one number or {self.axes}, got {output_size!r}"
            )
        given = output_size if isinstance(output_size, Sequence) else (output_size,)
        for size in given:
            if size is not None:
                _whole(layer, "output_size", size)
        self.output_size = tuple(given) if isinstance(output_size, Sequence) else output_size

    def _size_for(self, x: Tensor) -> tuple[int, ...]:
        x = self._checked(x)
        given = self.output_size if isinstance(self.output_size, tuple) else (self.output_size,)
        space = x.shape[-self.axes :]
        given = given if len(given) == len(space) else given[:1] * len(space)
        return tuple(n if size is None else size for n, size in zip(space, given, strict=True))

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(_AdaptivePool):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = type(self).function(x, self._size_for(x))
        return y


class _AdaptiveMaxPool(_AdaptivePool):
    with_indices: ClassVar[Callable[..., Any]]

    def __init__(
        self, output_size: int | Sequence[int | None] | None, return_indices: bool = False
    ) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, x: Tensor) -> Any:
        call = type(self).with_indices if self.return_indices else type(self).function
        return call(x, self._size_for(x))


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of `output_size` windows that share out x (batch, channels, length).

    >>> import tilewright as tw
    >>> tw.nn.AdaptiveAvgPool1d(2)(tw.asarray([[1.0, 3.0, 2.0, 0.0]])).tolist()
    [[2.0, 1.0]]
    """

    axes = 1
    function = staticmethod(tw.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of `output_size` windows that share out x (batch, channels, height, width).

    None keeps the size of x along that axis.

    >>> import tilewright as tw
    >>> tw.nn.AdaptiveAvgPool2d(1)(tw.ones((8, 512, 7, 7))).shape
    (8, 512, 1, 1)
    """

    axes = 2
    function = staticmethod(tw.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of `output_size` windows that share out x (batch, channels, depth, height, width).

    >>> import tilewright as tw
    >>> tw.nn.AdaptiveAvgPool3d((None, 1, 1))(tw.ones((2, 5, 4, 4))).shape
    (2, 5, 1, 1)
    """

    axes = 3
    function = staticmethod(tw.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of `output_size` windows that share out x (batch, channels, length).

    With `return_indices`, a pair of them and their places in the row.

    >>> import tilewright as tw
    >>> tw.nn.AdaptiveMaxPool1d(2)(tw.asarray([[1.0, 3.0, 2.0, 0.0]])).tolist()
    [[3.0, 2.0]]
    """

    axes = 1
    function = staticmethod(tw.adaptive_max_pool1d)
    with_indices = staticmethod(tw.adaptive_max_pool1d_with_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of windows that share out x (batch, channels, height, width).

    None keeps the size of x along that axis. With `return_indices`, a pair of them and their places
    in the plane.

    >>> import tilewright as tw
    >>> tw.nn.AdaptiveMaxPool2d((3, None))(tw.ones((2, 7, 5))).shape
    (2, 3, 5)
    """

    axes = 2
    function = staticmethod(tw.adaptive_max_pool2d)
    with_indices = staticmethod(tw.adaptive_max_pool2d_with_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of windows that share out x (batch, channels, depth, height, width).

    >>> import tilewright as tw
    >>> tw.nn.AdaptiveMaxPool3d(2)(tw.ones((2, 5, 4, 4))).shape
    (2, 2, 2, 2)
    """

    axes = 3
    function = staticmethod(tw.adaptive_max_pool3d)
    with_indices = staticmethod(tw.adaptive_max_pool3d_with_indices)


class _LPPool(_Pool):
    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> None:
        self.norm_type = norm_type
        self.kernel_size = self._sizes("kernel_size", kernel_size)
        self.stride = None if stride is None else self._sizes("stride", stride)
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        return type(self).function(  # type: ignore[no-any-return]
            self._checked(x), self.norm_type, self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The norm of each window of x (batch, channels, length): sum(x ** p) ** (1 / p).

    >>> import tilewright as tw
    >>> tw.nn.LPPool1d(2, 2)(tw.asarray([[3.0, 4.0]])).tolist()
    [[5.0]]
    """

    axes = 1
    function = staticmethod(pooling.lp_pool1d)


class LPPool2d(_LPPool):
    """The norm of each window of x (batch, channels, height, width), as LPPool1d."""

    axes = 2
    function = staticmethod(pooling.lp_pool2d)


class LPPool3d(_LPPool):
    """The norm of each window of x (batch, channels, depth, height, width), as LPPool1d."""

    axes = 3
    function = staticmethod(pooling.lp_pool3d)


class _FractionalMaxPool(_Pool):
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        layer = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{layer}: give either output_size or output_ratio")
        self.kernel_size = self._sizes("kernel_size", kernel_size)
        self.output_size = None if output_size is None else self._sizes("output_size", output_size)
        self.output_ratio = output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, x: Tensor) -> Any:
        return type(self).function(
            self._checked(x),
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest elements of windows at random places (Graham, "Fractional max-pooling", 2014).

    >>> import tilewright as tw
    >>> tw.nn.FractionalMaxPool2d(2, output_ratio=0.7)(tw.ones((1, 3, 10, 10))).shape
    (1, 3, 7, 7)
    """

    axes = 2
    function = staticmethod(pooling.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest elements of windows at random places in three axes; see FractionalMaxPool2d."""

    axes = 3
    function = staticmethod(pooling.fractional_max_pool3d)
