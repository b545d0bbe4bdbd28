"""Layers that give images another size."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import Tensor
from tilewright.nn.functions.interpolate import interpolate
from tilewright.nn.module.module import Module

Sizes = int | Sequence[int]
Factors = float | Sequence[float]


class Upsample(Module):
    """Images with another size, or one that is `scale_factor` times theirs; see `interpolate`.

    >>> import tilewright as tw
    >>> tw.nn.Upsample(scale_factor=2, mode="bilinear")(tw.ones((1, 3, 4, 4))).shape
    (1, 3, 8, 8)
    """

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: Factors | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size = tuple(size) if isinstance(size, Sequence) else size
        self.scale_factor = _floats(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Tensor) -> Tensor:
        return interpolate(
            x,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images (batch, channels, height, width) with more of the same elements.

    >>> import tilewright as tw
    >>> tw.nn.UpsamplingNearest2d(scale_factor=2)(tw.ones((1, 1, 1, 1))).tolist()
    [[[[1.0, 1.0], [1.0, 1.0]]]]
    """

    def __init__(self, size: Sizes | None = None, scale_factor: Factors | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images (batch, channels, height, width) with what lies between their elements; the centres
    of the outermost stay where they are.

    >>> import tilewright as tw
    >>> x = tw.asarray([[[[0.0, 2.0]]]])
    >>> tw.nn.UpsamplingBilinear2d(size=(1, 3))(x).tolist()
    [[[[0.0, 1.0, 2.0]]]]
    """

    def __init__(self, size: Sizes | None = None, scale_factor: Factors | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


def _floats(factors: Factors | None) -> float | tuple[float, ...] | None:
    if isinstance(factors, Sequence):
        return tuple(float(each) for each in factors)
    return None if factors is None else float(factors)
