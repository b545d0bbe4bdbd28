"""Lets einops take tensors: after `import tilewright.einops`, rearrange, reduce and repeat work.

>>> import tilewright as tw
>>> import tilewright.einops
>>> from einops import rearrange
>>> rearrange(tw.zeros((2, 3, 4)), "b h w -> b (h w)").shape
(2, 12)
"""

from __future__ import annotations

from typing import Any

import tilewright as tw
from tilewright._engine.optional_packages import require

_backends = require("einops._backends", purpose="tilewright.einops", install="einops")


class TilewrightBackend(_backends.AbstractBackend):  # type: ignore[misc, name-defined]
    """What einops asks of a library. It finds the class among those that derive from its own."""

    framework_name = "tilewright"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, tw.Tensor)

    def from_numpy(self, x: Any) -> tw.Tensor:
        return tw.asarray(x)

    def to_numpy(self, x: tw.Tensor) -> Any:
        return x.detach().numpy()

    def arange(self, start: int, stop: int) -> tw.Tensor:
        return tw.arange(start, stop)

    def transpose(self, x: tw.Tensor, axes: tuple[int, ...]) -> tw.Tensor:
        return tw.permute_dims(x, axes)

    def reduce(self, x: tw.Tensor, operation: str, axes: tuple[int, ...]) -> tw.Tensor:
        reduced: tw.Tensor = getattr(tw, operation)(x, axis=tuple(axes))
        return reduced

    def stack_on_zeroth_dimension(self, tensors: list[tw.Tensor]) -> tw.Tensor:
        return tw.stack(tensors)

    def add_axis(self, x: tw.Tensor, new_position: int) -> tw.Tensor:
        return tw.expand_dims(x, new_position)

    def tile(self, x: tw.Tensor, repeats: tuple[int, ...]) -> tw.Tensor:
        return tw.tile(x, repeats)

    def concat(self, tensors: list[tw.Tensor], axis: int) -> tw.Tensor:
        return tw.concat(tensors, axis=axis)

    def is_float_type(self, x: tw.Tensor) -> bool:
        return x.is_floating_point()

    def einsum(self, pattern: str, *x: tw.Tensor) -> tw.Tensor:
        return tw.einsum(pattern, *x)
