"""What tests of the Array API share: its types, what is missing of it, arguments as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import COMPLEX, INTEGERS

# What is not there yet.
MISSING: set[str] = set()
DTYPES = ["bool", *INTEGERS, "float32", "float64", *COMPLEX]


def ours(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tw.asarray(value, copy=True)
    if isinstance(value, np.dtype):
        return getattr(tw, value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(map(ours, value))
    return value
