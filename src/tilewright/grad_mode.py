"""Switching the recording of ops on and off."""

from __future__ import annotations

from tilewright import _core
from tilewright.modes import ModeBlock


class set_grad_enabled(ModeBlock):  # noqa: N801  (PyTorch's name)
    """Context manager and decorator: this thread's ops inside are recorded, or not.

    >>> import tilewright as tw
    >>> with tw.set_grad_enabled(False):
    ...     tw.is_grad_enabled()
    False
    """

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def _enter(self) -> None:
        _core._enter_grad_mode(self, self.enabled)


class no_grad(set_grad_enabled):  # noqa: N801  (PyTorch's name)
    """Context manager and decorator: this thread's ops inside are not recorded."""

    def __init__(self) -> None:
        super().__init__(False)


class inference_mode(set_grad_enabled):  # noqa: N801  (PyTorch's name)
    """`no_grad` by PyTorch's other name: its tensors are ordinary, and may be recorded later.

    With mode=False ops inside are recorded.
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)


class enable_grad(set_grad_enabled):  # noqa: N801  (PyTorch's name)
    """Context manager and decorator: ops inside are recorded, also within `no_grad`."""

    def __init__(self) -> None:
        super().__init__(True)
