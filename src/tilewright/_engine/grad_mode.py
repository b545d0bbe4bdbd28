"""Switching the recording of ops on and off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import _core
from tilewright._engine.modes import ModeBlock, Switch


class set_grad_enabled(Switch):  # noqa: N801  (PyTorch's name)
    """Whether this thread's ops are recorded.

    The call switches; as a context manager or decorator, for what is inside. Raises TypeError for
    what is neither True nor False.

    >>> import tilewright as tw
    >>> with tw.set_grad_enabled(False):
    ...     tw.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: mode is True or False, got {mode!r}")
        self.mode = mode
        super().__init__(mode)

    def _value(self) -> bool:
        return _core.is_grad_enabled()

    def _set(self, value: bool) -> None:
        _core._set_grad_enabled(value)

    def _enter(self) -> None:
        _core._enter_grad_mode(self, self.mode)


class _Recording(ModeBlock):
    _mode: bool
    mode: bool

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """`@no_grad` without brackets decorates as well."""
        block = super().__new__(cls)
        block.mode = cls._mode
        return block if function is None else block(function)

    def _enter(self) -> None:
        _core._enter_grad_mode(self, self._mode)


class no_grad(_Recording):  # noqa: N801  (PyTorch's name)
    """Context manager and decorator: this thread's ops inside are not recorded."""

    _mode = False


class enable_grad(_Recording):  # noqa: N801  (PyTorch's name)
    """Context manager and decorator: ops inside are recorded, also within `no_grad`."""

    _mode = True


class inference_mode(ModeBlock):  # noqa: N801  (PyTorch's name)
    """`no_grad` by PyTorch's other name: its tensors are ordinary, and may be recorded later.

    With mode=False ops inside are recorded.
    """

    def __new__(cls, mode: Any = True) -> Any:
        """`@inference_mode` without brackets decorates as well."""
        block = super().__new__(cls)
        if not callable(mode):
            return block
        block.mode = True
        return block(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = bool(mode)

    def _enter(self) -> None:
        _core._enter_grad_mode(self, not self.mode)
