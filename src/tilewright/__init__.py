"""Tilewright: a glass-box tensor engine. Every optimisation is a switch to see, flip and measure."""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from tilewright import _core
from tilewright._core import *  # noqa: F403  (the engine's ops; its stub lists them)
from tilewright.grad_mode import enable_grad, no_grad, set_grad_enabled

__version__ = "0.1.0"

# Python's own floats are 64-bit; these are the Array API's constants.
e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

# Loaded on first use, to keep the import fast.
_SUBMODULES = (
    "bench", "cli", "data", "io", "kernels", "memory", "nn", "optim", "train",
)  # fmt: skip
_LAZY = {
    "explain": "tilewright.explanation",
    "gradcheck": "tilewright.gradient_check",
    "gradgradcheck": "tilewright.gradient_check",
    "save": "tilewright.io",
    "load": "tilewright.io",
}


def __getattr__(name: str) -> _Any:
    if name in _SUBMODULES:
        return _importlib.import_module(f"tilewright.{name}")
    if name in _LAZY:
        value = getattr(_importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tilewright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_LAZY})


def rand(*size: int, **options: _Any) -> _core.Tensor:
    """Uniform numbers in [0, 1) of the given shape.

    >>> import tilewright as tw
    >>> tw.rand(2, 3).shape
    (2, 3)
    """
    return _core.uniform(0.0, 1.0, _size(size), **options)


def randn(*size: int, **options: _Any) -> _core.Tensor:
    """Normally distributed numbers (mean 0, variance 1) of the given shape.

    >>> import tilewright as tw
    >>> tw.randn(2, 3).shape
    (2, 3)
    """
    return _core.normal(0.0, 1.0, _size(size), **options)


def _size(size: tuple[_Any, ...]) -> _Any:
    return size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


def tensor(
    obj: object, dtype: _core.dtype | None = None, requires_grad: bool = False
) -> _core.Tensor:
    """A tensor with its own copy of the data, PyTorch's way of `asarray(obj, copy=True)`.

    >>> import tilewright as tw
    >>> tw.tensor([1.0, 2.0], requires_grad=True).requires_grad
    True
    """
    return _core.asarray(obj, dtype=dtype, copy=True).requires_grad_(requires_grad)
