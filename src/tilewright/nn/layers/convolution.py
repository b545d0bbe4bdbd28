"""Convolutions and transposed convolutions of one to three axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import ClassVar

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.nn import init
from tilewright.nn.functions.random_values import draw_first
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter

Sizes = int | Sequence[int]
_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """What all of them share: sizes, parameters, their first values, and how they are shown."""

    axes: ClassVar[int]
    transposed: ClassVar[bool] = False
    weight: Parameter
    bias: Parameter | None
    padding: tuple[int, ...] | str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes | str,
        dilation: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        output_padding: Sizes,
        device: str | None,
        dtype: tw.dtype | None,
        generator: Generator | None,
    ) -> None:
        self.in_channels = self._whole("in_channels", in_channels)
        self.out_channels = self._whole("out_channels", out_channels)
        self.groups = self._whole("groups", groups)
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if groups < 1 or channels % groups:
                raise ValueError(
                    f"{type(self).__name__}: groups={groups} do not divide {name}={channels}"
                )
        if padding_mode not in _MODES:
            known = ", ".join(map(repr, _MODES))
            raise ValueError(
                f"{type(self).__name__}: padding_mode is one of {known}, got {padding_mode!r}"
            )
        self.kernel_size = self._each("kernel_size", kernel_size)
        self.stride = self._each("stride", stride)
        self.padding = padding if isinstance(padding, str) else self._each("padding", padding)
        self.dilation = self._each("dilation", dilation)
        self.output_padding = self._each("output_padding", output_padding)
        self.padding_mode = padding_mode
        if padding == "same" and self.stride != (1,) * self.axes:
            raise ValueError(
                f"{type(self).__name__}: padding='same' needs stride 1, got {self.stride}"
            )
        pair = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (pair[0], pair[1] // groups, *self.kernel_size)
        dtype = dtype or tw.get_default_dtype()
        self.weight = Parameter(tw.empty(shape, device=device, dtype=dtype))
        values = tw.empty((out_channels,), device=device, dtype=dtype) if bias else None
        self.register_parameter("bias", None if values is None else Parameter(values))
        draw_first(self, generator)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draws new weights and biases, uniform within ±1/sqrt(fan_in), as PyTorch's are."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5), generator=generator)
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
            init.uniform_(self.bias, -bound, bound, generator=generator)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}"
        text += f", kernel_size={self.kernel_size}, stride={self.stride}"
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (usual,) * self.axes:
                text += f", {name}={getattr(self, name)}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"

    def _whole(self, name: str, value: object) -> int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{type(self).__name__}: {name} is a whole number, got {value!r}")
        return operator.index(value)

    def _each(self, name: str, value: Sizes) -> tuple[int, ...]:
        """One number for each axis."""
        if not isinstance(value, Sequence):
            return (self._whole(name, value),) * self.axes
        if len(value) != self.axes:
            raise ValueError(
                f"{type(self).__name__}: {name} is one number or {self.axes}, got {value!r}"
            )
        return tuple(self._whole(name, each) for each in value)

    def _checked(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{type(self).__name__}: expected a Tensor, got {type(x).__name__}; "
                "tw.asarray() makes one"
            )
        return x


class _Conv(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
        generator: Generator | None = None,
    ) -> None:
        if isinstance(padding, str) and padding not in ("valid", "same"):
            raise ValueError(
                f"{type(self).__name__}: padding is a number, numbers, 'valid' or 'same', "
                f"got {padding!r}"
            )
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            0,
            device,
            dtype,
            generator,
        )

    def forward(self, x: Tensor) -> Tensor:
        x, padding = self._checked(x), self.padding
        if self.padding_mode != "zeros":
            x, padding = tw.pad(x, self._widths(), self.padding_mode), "valid"
        function = (tw.conv1d, tw.conv2d, tw.conv3d)[self.axes - 1]
        return function(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _widths(self) -> list[int]:
        """In front of each axis and behind it, from the last on."""
        if not isinstance(self.padding, str):
            return [each for each in reversed(self.padding) for _ in range(2)]
        if self.padding == "valid":
            return []
        both = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        return [width for each in reversed(both) for width in (each // 2, each - each // 2)]


class Conv1d(_Conv):
    """Cross-correlation of (batch, in, length) or (in, length) with weight (out, in / groups, k).

    Arguments, initial values and state are PyTorch's; padding is a number, 'valid' or 'same', and
    padding_mode 'zeros', 'reflect', 'replicate' or 'circular'. Raises ValueError for sizes that do
    not fit.

    >>> import tilewright as tw
    >>> tw.nn.Conv1d(3, 8, 5, padding="same")(tw.ones((2, 3, 20))).shape
    (2, 8, 20)
    """

    axes = 1


class Conv2d(_Conv):
    """Cross-correlation of (batch, in, height, width) with weight (out, in / groups, k, k).

    As Conv1d, with one number or two for kernel_size, stride, padding and dilation.

    >>> import tilewright as tw
    >>> tw.nn.Conv2d(3, 8, 3, stride=2, padding=1)(tw.ones((2, 3, 32, 32))).shape
    (2, 8, 16, 16)
    """

    axes = 2


class Conv3d(_Conv):
    """Cross-correlation of (batch, in, depth, height, width) with weight (out, in / groups, ...).

    As Conv1d, with one number or three for kernel_size, stride, padding and dilation.

    >>> import tilewright as tw
    >>> tw.nn.Conv3d(1, 2, (1, 3, 3))(tw.ones((1, 1, 4, 8, 8))).shape
    (1, 2, 4, 6, 6)
    """

    axes = 3


class _ConvTranspose(_Convolution):
    transposed = True
    padding: tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
        generator: Generator | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f"{type(self).__name__}: padding_mode is 'zeros', got {padding_mode!r}"
            )
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            output_padding,
            device,
            dtype,
            generator,
        )

    def forward(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """`output_size`: of the last axes, where the stride leaves a choice of sizes."""
        function = (tw.conv_transpose1d, tw.conv_transpose2d, tw.conv_transpose3d)[self.axes - 1]
        added = self.output_padding
        if output_size is not None:
            added = self._added(self._checked(x), tuple(output_size)[-self.axes :])
        return function(
            self._checked(x),
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            added,
            self.groups,
            self.dilation,
        )

    def _added(self, x: Tensor, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """The output_padding that gives the sizes wanted."""
        least = tuple(
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                x.shape[-self.axes :],
                self.stride,
                self.padding,
                self.dilation,
                self.kernel_size,
                strict=True,
            )
        )
        if len(wanted) == self.axes and all(
            low <= size < low + s for low, size, s in zip(least, wanted, self.stride, strict=True)
        ):
            return tuple(size - low for low, size in zip(least, wanted, strict=True))
        most = tuple(low + s - 1 for low, s in zip(least, self.stride, strict=True))
        raise ValueError(
            f"{type(self).__name__}: output_size {wanted} is not between {least} and {most}, "
            f"which input {x.shape} gives"
        )


class ConvTranspose1d(_ConvTranspose):
    """The gradient of Conv1d's input as a layer: (batch, in, length), weight (in, out / groups, k).

    Arguments, initial values and state are PyTorch's. Raises ValueError for sizes that do not fit.

    >>> import tilewright as tw
    >>> tw.nn.ConvTranspose1d(4, 3, 4, stride=2, padding=1)(tw.ones((2, 4, 10))).shape
    (2, 3, 20)
    """

    axes = 1


class ConvTranspose2d(_ConvTranspose):
    """The gradient of Conv2d's input as a layer, as ConvTranspose1d.

    >>> import tilewright as tw
    >>> tw.nn.ConvTranspose2d(4, 3, 2, stride=2)(tw.ones((2, 4, 7, 7))).shape
    (2, 3, 14, 14)
    """

    axes = 2


class ConvTranspose3d(_ConvTranspose):
    """The gradient of Conv3d's input as a layer, as ConvTranspose1d.

    >>> import tilewright as tw
    >>> tw.nn.ConvTranspose3d(1, 2, 3)(tw.ones((1, 1, 2, 4, 4))).shape
    (1, 2, 4, 6, 6)
    """

    axes = 3
