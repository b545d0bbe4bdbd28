"""Hooks around the steps of optimizers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class StepHook:
    """A registered hook of steps: `remove` ends it.

    It is the hook's key as well, which no other hook has in this process or after a copy.
    """

    def __init__(self, hooks: StepHooks, hook: Callable[..., Any]) -> None:
        if not callable(hook):
            raise TypeError(f"a hook of steps is a function, got {type(hook).__name__}")
        self._hooks = hooks
        hooks[self] = hook

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        self._hooks.pop(self, None)


StepHooks = dict[StepHook, Callable[..., Any]]


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step between the optimizer's hooks; a step that calls another one is a single one."""

    @functools.wraps(step)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not (self._pre_hooks or self._post_hooks) or self._is_stepping:
            return step(self, *args, **kwargs)
        self._is_stepping = True
        try:
            return _between_hooks(step, self, args, kwargs)
        finally:
            self._is_stepping = False

    hooked.calls_hooks = True  # type: ignore[attr-defined]  # read by Optimizer
    return hooked


def _between_hooks(
    step: Callable[..., Any], optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    args = (optimizer, *args)
    for hook in list(optimizer._pre_hooks.values()):
        if (instead := hook(optimizer, args, kwargs)) is not None:
            args, kwargs = instead
    result = step(optimizer, *args[1:], **kwargs)
    for hook in list(optimizer._post_hooks.values()):
        hook(optimizer, args, kwargs)
    return result
