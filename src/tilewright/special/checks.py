"""What the functions of this folder take."""

from __future__ import annotations

from typing import Any

import tilewright as tw
from tilewright import Tensor


def real_numbers(who: str, x: Any) -> Tensor:
    """As floating numbers. Raises TypeError for what is no tensor and for complex numbers."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{who}: takes tensors, got {type(x).__name__}")
    if x.is_complex():
        raise TypeError(f"{who}: takes real numbers, got {x.dtype}")
    return x if x.is_floating_point() else x.astype(tw.get_default_dtype())


def wide(x: Tensor) -> Tensor:
    """In float64, outside the graph: narrower results are rounded once, at their end."""
    return x.detach().astype(tw.float64)
