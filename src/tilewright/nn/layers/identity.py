"""The layer that does nothing."""

from __future__ import annotations

from typing import Any

from tilewright import Tensor
from tilewright.nn.module.module import Module


class Identity(Module):
    """Its input, whatever it was made with.

    >>> import tilewright as tw
    >>> tw.nn.Identity()(tw.ones((1,))).tolist()
    [1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        return x
