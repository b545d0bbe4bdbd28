"""What the functions of this folder take."""

from __future__ import annotations

import operator
from typing import Any

import tilewright as tw
from tilewright import Tensor


def check_matrices(who: str, *tensors: Any, square: bool = False, anywhere: bool = False) -> None:
    """Raises TypeError and ValueError for what are no matrices of such numbers."""
    for x in tensors:
        check_floats(who, x, anywhere=anywhere)
        if x.ndim < 2:
            raise ValueError(f"{who}: a matrix or a batch of them is needed, got {shape_of(x)}")
        if square and x.shape[-1] != x.shape[-2]:
            raise ValueError(f"{who}: square matrices are needed, got {shape_of(x)}")


def check_floats(who: str, x: Any, *, anywhere: bool = False) -> None:
    """Raises TypeError for other tensors than of float32, float64 and complex numbers.

    ValueError for those of another device, unless what follows runs anywhere.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{who}: takes tensors, got {type(x).__name__}")
    if x.dtype not in (tw.float32, tw.float64, tw.complex64, tw.complex128):
        raise TypeError(
            f"{who}: takes float32, float64 or complex numbers, got {x.dtype}; convert with astype"
        )
    if x.device != "cpu" and not anywhere:
        raise ValueError(
            f"{who}: runs on the CPU, and the tensor lies on {x.device!r}: x.to('cpu')"
        )


def shape_of(x: Tensor) -> str:
    return f"shape {tuple(x.shape)}"


def axis_of(who: str, axis: int, x: Tensor) -> int:
    """Counted from 0; raises ValueError where there is no such axis."""
    if not -x.ndim <= (at := operator.index(axis)) < x.ndim:
        raise ValueError(f"{who}: axis {axis} is out of range for {shape_of(x)}")
    return at % x.ndim


def default_rtol(x: Tensor) -> float:
    """Of singular values that count as 0."""
    return max(x.shape[-2:]) * (2.0**-23 if x.dtype in (tw.float32, tw.complex64) else 2.0**-52)
