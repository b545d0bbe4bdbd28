"""Where a backward pass first makes a NaN."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright._engine.modes import ModeBlock, Switch


class set_detect_anomaly(Switch):  # noqa: N801  (PyTorch's name)
    """`detect_anomaly`, switched by its argument.

    The call switches; as a context manager or decorator, for what is inside. Raises TypeError for
    what is neither True nor False.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        _check_flags(mode, check_nan)
        self.mode = mode and check_nan
        super().__init__(self.mode)

    def _value(self) -> bool:
        return _core.is_anomaly_enabled()

    def _set(self, value: bool) -> None:
        _core._set_anomaly_mode(value)

    def _enter(self) -> None:
        _core._enter_anomaly_mode(self, self.mode)


class detect_anomaly(ModeBlock):  # noqa: N801  (PyTorch's name)
    """Context manager and decorator: a gradient with a NaN ends backward() with a RuntimeError.

    It names the op whose gradient that is and the line of the program that called the op, of ops
    that ran inside; the forward pass and backward() both belong there. All gradients are looked at,
    which takes time; outside nothing is. Of this thread and of tasks that it submits. With
    `check_nan=False` it does nothing. Raises TypeError for what is neither True nor False.

    Source: PyTorch's torch.autograd.detect_anomaly.

    >>> import tilewright as tw
    >>> x = tw.zeros(2).requires_grad_()
    >>> with tw.autograd.detect_anomaly():
    ...     y = (tw.sqrt(x) * 0).sum()
    ...     y.backward()
    Traceback (most recent call last):
    RuntimeError: backward: the gradient of sqrt by its input 0 has a NaN; the op ran at ...
    """

    def __init__(self, check_nan: bool = True) -> None:
        _check_flags(check_nan)
        self.check_nan = check_nan

    def _enter(self) -> None:
        _core._enter_anomaly_mode(self, self.check_nan)


def _check_flags(*flags: Any) -> None:
    for flag in flags:
        if not isinstance(flag, bool):
            raise TypeError(f"detect_anomaly: expected True or False, got {flag!r}")
