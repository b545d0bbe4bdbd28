"""Arrays of other libraries as tensors: NumPy, PyTorch, JAX and whatever speaks their protocols."""

from __future__ import annotations

from typing import Any

import tilewright as tw
from tilewright import Tensor


def is_array(value: Any) -> bool:
    """Whether it is a tensor, or an array or scalar of a library that shares memory."""
    return isinstance(value, Tensor) or any(
        hasattr(type(value), protocol) for protocol in ("__dlpack__", "__array_interface__")
    )


def as_tensor(value: Any) -> Tensor:
    """A tensor over the array's memory, or over a copy where its library cannot share it.

    Raises TypeError that says what the value is and why it cannot be read.
    """
    if isinstance(value, Tensor):
        return value
    if not is_array(value):
        raise TypeError(f"expected a tensor, got {type(value).__name__}")
    if getattr(value, "requires_grad", False):  # PyTorch shares no memory of such tensors
        value = value.detach()
    # NumPy has bfloat16 from the package ml_dtypes, but no protocol that could name it.
    if str(getattr(value, "dtype", "")) == "bfloat16" and hasattr(value, "tobytes"):
        return tw.frombuffer(value.tobytes(), dtype=tw.bfloat16, shape=tuple(value.shape))
    try:
        return tw.asarray(value)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        kind = f"{type(value).__name__} of {getattr(value, 'dtype', 'unknown type')}"
        raise TypeError(f"cannot read a {kind}: {error}") from None
