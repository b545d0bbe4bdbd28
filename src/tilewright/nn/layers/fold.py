"""Layers that make columns of windows, and images of columns."""

from __future__ import annotations

from collections.abc import Sequence

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module.module import Module

Sizes = int | Sequence[int]


class Unfold(Module):
    """The windows of x (batch, channels, height, width) as columns: (batch, channels * kernel
    elements, windows).

    >>> import tilewright as tw
    >>> tw.nn.Unfold(2)(tw.ones((1, 3, 4, 5))).shape
    (1, 12, 12)
    """

    def __init__(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        return tw.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """Images (batch, channels, *output_size) as the sum of windows that are columns.

    >>> import tilewright as tw
    >>> tw.nn.Fold((4, 5), 2)(tw.ones((1, 12, 12))).shape
    (1, 3, 4, 5)
    """

    def __init__(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> None:
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        return tw.fold(
            x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )
