"""Hooks around the steps of optimizers, and around what they save and load."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any


class OptimizerHook:
    """A registered hook of an optimizer: `remove` ends it.

    It is the hook's key as well, which no other hook has in this process or after a copy.
    """

    def __init__(
        self, hooks: Hooks, hook: Callable[..., Any], prepend: bool = False, of: str = "states"
    ) -> None:
        if not callable(hook):
            raise TypeError(f"a hook of {of} is a function, got {type(hook).__name__}")
        self._hooks = hooks
        others = dict(hooks) if prepend else {}
        for other in others:
            del hooks[other]
        hooks[self] = hook
        hooks.update(others)

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        self._hooks.pop(self, None)


Hooks = dict[OptimizerHook, Callable[..., Any]]

# Are told of each step of any optimizer, once it is done: profiles, which find steps by it.
step_watchers: list[Callable[[Any], None]] = []


class HookedOptimizer:
    """The hooks of an optimizer, and their registration."""

    def __init__(self) -> None:
        self._pre_hooks: Hooks = {}
        self._post_hooks: Hooks = {}
        self._is_stepping = False
        self._save_pre_hooks: Hooks = {}
        self._save_post_hooks: Hooks = {}
        self._load_pre_hooks: Hooks = {}
        self._load_post_hooks: Hooks = {}

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> OptimizerHook:
        """Calls hook(optimizer, args, kwargs) before each step; (args, kwargs) replace the step's.

        As in PyTorch `args` begins with the optimizer. Raises TypeError for what is no function.
        Source: PyTorch's torch.optim.Optimizer.register_step_pre_hook.
        """
        return OptimizerHook(self._pre_hooks, hook, of="steps")

    def register_step_post_hook(self, hook: Callable[..., None]) -> OptimizerHook:
        """Calls hook(optimizer, args, kwargs) after each step.

        Raises TypeError for what is no function. Source: PyTorch's
        torch.optim.Optimizer.register_step_post_hook.
        """
        return OptimizerHook(self._post_hooks, hook, of="steps")

    def register_state_dict_pre_hook(
        self, hook: Callable[[Any], None], prepend: bool = False
    ) -> OptimizerHook:
        """Calls hook(optimizer) before each `state_dict`; with `prepend` before the hooks there.

        Raises TypeError for what is no function. Source: PyTorch's
        torch.optim.Optimizer.register_state_dict_pre_hook.
        """
        return OptimizerHook(self._save_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[[Any, dict[str, Any]], dict[str, Any] | None], prepend: bool = False
    ) -> OptimizerHook:
        """Calls hook(optimizer, state) on each state to be saved; a dict replaces that.

        With `prepend` before the hooks there. Raises TypeError for what is no function. Source:
        PyTorch's torch.optim.Optimizer.register_state_dict_post_hook.
        """
        return OptimizerHook(self._save_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[[Any, dict[str, Any]], dict[str, Any] | None], prepend: bool = False
    ) -> OptimizerHook:
        """Calls hook(optimizer, state) with a shallow copy of what is loaded; a dict replaces that.

        With `prepend` before the hooks there. Raises TypeError for what is no function. Source:
        PyTorch's torch.optim.Optimizer.register_load_state_dict_pre_hook.
        """
        return OptimizerHook(self._load_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Any], None], prepend: bool = False
    ) -> OptimizerHook:
        """Calls hook(optimizer) behind each `load_state_dict`; with `prepend` before those there.

        Raises TypeError for what is no function. Source: PyTorch's
        torch.optim.Optimizer.register_load_state_dict_post_hook.
        """
        return OptimizerHook(self._load_post_hooks, hook, prepend)

    def _told(self, hooks: Hooks) -> None:
        for hook in list(hooks.values()):
            hook(self)

    def _changed(self, hooks: Hooks, state: Any) -> Any:
        """A state as the hooks make it."""
        for hook in list(hooks.values()):
            if (instead := hook(self, state)) is not None:
                state = instead
        return state

    def _to_be_loaded(self, state: Any) -> Any:
        if not self._load_pre_hooks or not isinstance(state, Mapping):
            return state
        return self._changed(self._load_pre_hooks, dict(state))


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step between the optimizer's hooks; a step that calls another one is a single one."""

    @functools.wraps(step)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not (self._pre_hooks or self._post_hooks or step_watchers) or self._is_stepping:
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
    for watcher in list(step_watchers):
        watcher(optimizer)
    return result
