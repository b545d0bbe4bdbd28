"""Layers that make pixels of channels, channels of pixels, and another order of channels."""

from __future__ import annotations

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module.module import Module


class PixelShuffle(Module):
    """Images (..., channels * r * r, height, width) as (..., channels, height * r, width * r).

    Source: W. Shi et al., "Real-time single image and video super-resolution using an efficient
    sub-pixel convolutional neural network", CVPR 2016.

    >>> import tilewright as tw
    >>> tw.nn.PixelShuffle(2)(tw.ones((1, 12, 4, 4))).shape
    (1, 3, 8, 8)
    """

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return tw.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Images (..., channels, height * r, width * r) as (..., channels * r * r, height, width).

    >>> import tilewright as tw
    >>> tw.nn.PixelUnshuffle(2)(tw.ones((1, 3, 8, 8))).shape
    (1, 12, 4, 4)
    """

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return tw.pixel_unshuffle(x, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels of (batch, channels, ...) with the first of each group first, then the second ones.

    Source: X. Zhang et al., "ShuffleNet: an extremely efficient convolutional neural network for
    mobile devices", CVPR 2018.

    >>> import tilewright as tw
    >>> x = tw.arange(4.0).reshape((1, 4, 1))
    >>> tw.nn.ChannelShuffle(2)(x).reshape(-1).tolist()
    [0.0, 2.0, 1.0, 3.0]
    """

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        return tw.channel_shuffle(x, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
