"""Switching the recording of ops on and off."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from tilewright import _core

_F = TypeVar("_F", bound=Callable[..., Any])


class set_grad_enabled:  # noqa: N801  (PyTorch's name)
    """Context manager and decorator: ops inside are recorded, or not.

    >>> import tilewright as tw
    >>> with tw.set_grad_enabled(False):
    ...     tw.is_grad_enabled()
    False
    """

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_core._set_grad_mode(self.enabled))

    def __exit__(self, *exception: object) -> None:
        _core._set_grad_mode(self._before.pop())

    def __call__(self, function: _F) -> _F:
        @wraps(function)
        def wrapped(*args: Any, **options: Any) -> Any:
            with set_grad_enabled(self.enabled):
                return function(*args, **options)

        return wrapped  # type: ignore[return-value]  # wraps keeps the signature


class no_grad(set_grad_enabled):  # noqa: N801  (PyTorch's name)
    """Context manager and decorator: ops inside are not recorded."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(set_grad_enabled):  # noqa: N801  (PyTorch's name)
    """Context manager and decorator: ops inside are recorded, also within `no_grad`."""

    def __init__(self) -> None:
        super().__init__(True)
