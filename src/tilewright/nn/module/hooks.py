"""Functions that are called around a module's forward and its gradients."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from tilewright import Tensor, _core
from tilewright.autograd.function import Context, Function, is_linear_pass

_ids = itertools.count()


@dataclass
class Hook:
    """A function and how it wants to be called."""

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


@dataclass
class ModuleHooks:
    """The hooks of one module by kind, in the order in which they run."""

    forward_pre: dict[int, Hook] = field(default_factory=dict)
    forward: dict[int, Hook] = field(default_factory=dict)
    backward_pre: dict[int, Hook] = field(default_factory=dict)
    backward: dict[int, Hook] = field(default_factory=dict)
    state_pre: dict[int, Hook] = field(default_factory=dict)
    state: dict[int, Hook] = field(default_factory=dict)
    load_pre: dict[int, Hook] = field(default_factory=dict)
    load: dict[int, Hook] = field(default_factory=dict)

    def __new__(cls) -> ModuleHooks:
        _core._note_module_hooks()  # here, since copies and unpickled hooks come by this way alone
        return super().__new__(cls)

    def add(
        self, kind: str, function: Callable[..., Any], prepend: bool, **options: bool
    ) -> HookRemover:
        if not callable(function):
            raise TypeError(f"a hook must be callable, got {type(function).__name__}")
        hooks: dict[int, Hook] = getattr(self, kind)
        # Hooks that were unpickled bring numbers of another process.
        number = next(number for number in _ids if number not in hooks)
        added = {number: Hook(function, **options)}
        self._change(kind, {**added, **hooks} if prepend else {**hooks, **added})
        return HookRemover(self, kind, number)

    def remove(self, kind: str, number: int) -> None:
        hooks: dict[int, Hook] = getattr(self, kind)
        self._change(kind, {key: hook for key, hook in hooks.items() if key != number})

    def _change(self, kind: str, hooks: dict[int, Hook]) -> None:
        """A new dict: calls that are in flight go on with the one they have."""
        _core._note_module_hooks()
        setattr(self, kind, hooks)


class HookedModule(Protocol):
    """A module, as far as its call is concerned."""

    def forward(self, *args: Any, **kwargs: Any) -> Any: ...


class HookRemover:
    """A registered hook: `remove` ends it, as does the end of a `with` block around it.

    Copied or pickled together with the module it ends the copy's hook.
    """

    def __init__(self, hooks: ModuleHooks, kind: str, number: int) -> None:
        self._hooks: weakref.ref[ModuleHooks] | None = weakref.ref(hooks)
        self._kind = kind
        self._number = number

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        hooks = self._target()
        if hooks is not None:
            hooks.remove(self._kind, self._number)

    def _target(self) -> ModuleHooks | None:
        return None if self._hooks is None else self._hooks()

    def __enter__(self) -> HookRemover:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple[ModuleHooks | None, str, int]:
        return self._target(), self._kind, self._number

    def __setstate__(self, state: tuple[ModuleHooks | None, str, int]) -> None:
        hooks, self._kind, self._number = state
        self._hooks = None if hooks is None else weakref.ref(hooks)


class Hooked:
    """The part of a module that takes hooks."""

    __slots__ = ()

    _call_hooks: ModuleHooks | None = None

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookRemover:
        """Calls hook(module, args) before each forward; what it returns replaces the arguments.

        With `with_kwargs` it is hook(module, args, kwargs), which returns None or (args, kwargs).
        """
        return self._own_hooks().add("forward_pre", hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookRemover:
        """Calls hook(module, args, result) after each forward; what it returns is the result.

        With `with_kwargs` it is hook(module, args, kwargs, result). With `always_call` it is called
        with the result None as well where forward raised.
        """
        return self._own_hooks().add(
            "forward", hook, prepend, with_kwargs=with_kwargs, always_call=always_call
        )

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookRemover:
        """Calls hook(module, grad_output) before the gradients of a forward are computed.

        `grad_output` is a tuple by result; a tuple that is returned replaces it.
        """
        return self._own_hooks().add("backward_pre", hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookRemover:
        """Calls hook(module, grad_input, grad_output) when those of the inputs are computed.

        `grad_input` is a tuple by positional argument; a tuple that is returned replaces it.
        """
        return self._own_hooks().add("backward", hook, prepend)

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> HookRemover:
        """Calls hook(module, prefix, keep_vars) before `state_dict` reads the module's tensors."""
        return self._own_hooks().add("state_pre", hook, False)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> HookRemover:
        """Calls hook(module, state_dict, prefix, metadata) with the state that it may change."""
        return self._own_hooks().add("state", hook, False)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> HookRemover:
        """Calls hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors).

        It may change the state, a copy, before that is checked, and add to the list `errors`.
        """
        return self._own_hooks().add("load_pre", hook, False)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> HookRemover:
        """Calls hook(module, keys) after a state was loaded, with what differed in names."""
        return self._own_hooks().add("load", hook, False)

    def _own_hooks(self) -> ModuleHooks:
        if self._call_hooks is None:
            self._call_hooks = ModuleHooks()  # type: ignore[misc]  # of the module, which has a dict
        return self._call_hooks


def call_hooked(module: HookedModule, hooks: ModuleHooks, args: Any, kwargs: Any) -> Any:
    """The forward with what is hooked around it."""
    called: set[int] = set()
    try:
        for hook in hooks.forward_pre.values():
            args, kwargs = _before(module, hook, args, kwargs)
        boundary = _Boundary(module, hooks) if hooks.backward or hooks.backward_pre else None
        if boundary:
            args = boundary.entered(args)
        result = module.forward(*args, **kwargs)
        for number, hook in hooks.forward.items():
            called.add(number)
            result = _after(module, hook, args, kwargs, result)
        return boundary.left(result) if boundary else result
    except Exception:
        for number, hook in hooks.forward.items():
            if hook.always_call and number not in called:
                _after(module, hook, args, kwargs, None)
        raise


def _before(module: HookedModule, hook: Hook, args: Any, kwargs: Any) -> tuple[Any, Any]:
    if not hook.with_kwargs:
        changed = hook.function(module, args)
        if changed is None:
            return args, kwargs
        return changed if isinstance(changed, tuple) else (changed,), kwargs
    changed = hook.function(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if isinstance(changed, tuple) and len(changed) == 2:
        return changed
    raise RuntimeError(
        f"forward pre-hook: with_kwargs=True needs None or (args, kwargs), got {changed!r}"
    )


def _after(module: HookedModule, hook: Hook, args: Any, kwargs: Any, result: Any) -> Any:
    if hook.with_kwargs:
        changed = hook.function(module, args, kwargs, result)
    else:
        changed = hook.function(module, args, result)
    return result if changed is None else changed


def call_state_hooks(kind: str, module: Any, *arguments: Any) -> None:
    """Calls a module's hooks of a kind that concerns states."""
    hooks: dict[int, Hook] = getattr(module._call_hooks, kind, {})
    for hook in hooks.values():
        if hook.function(module, *arguments) is not None:
            raise RuntimeError(
                f"{type(module).__name__}: a hook of states changes what it is given and "
                "returns None"
            )


class _Boundary:
    """One call of a module, as its backward hooks see it."""

    def __init__(self, module: HookedModule, hooks: ModuleHooks) -> None:
        self.module = module
        self.hooks = hooks
        # How many arguments and results there are, and which of them have gradients.
        self.arguments, self.entrances = 0, list[int]()
        self.results, self.exits = 0, list[int]()
        self.grad_output: tuple[Any, ...] | None = None  # between the exit and the entrance

    def entered(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.arguments, self.entrances = len(args), _with_gradients(args)
        return self._through(_Entrance, args, self.entrances)

    def left(self, result: Any) -> Any:
        if isinstance(result, Tensor):
            return self.left((result,))[0]
        if not isinstance(result, tuple):
            return result
        self.results, self.exits = len(result), _with_gradients(result)
        outside = self._through(_Exit, result, self.exits)
        if type(result) is tuple or outside is result:
            return outside
        return type(result)(*outside) if hasattr(result, "_fields") else type(result)(outside)

    def _through(
        self, door: type[Function], values: tuple[Any, ...], places: list[int]
    ) -> tuple[Any, ...]:
        """The values, those with gradients as results of the door."""
        if not places:
            return values
        passed = door.apply(self, *(values[i] for i in places))
        return _placed(passed, places, values)

    def at_exit(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if is_linear_pass():
            return grads
        given = _placed(grads, self.exits, (None,) * self.results)
        for hook in self.hooks.backward_pre.values():
            given = _replaced("backward pre-hook", given, hook.function(self.module, given))
        self.grad_output = given
        if not self.entrances:
            self.at_entrance(())
        return tuple(given[i] for i in self.exits)

    def at_entrance(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.grad_output is None:  # gradients that came by another way than the results
            return grads
        grad_output, self.grad_output = self.grad_output, None
        grad_input = _placed(grads, self.entrances, (None,) * self.arguments)
        for hook in self.hooks.backward.values():
            changed = hook.function(self.module, grad_input, grad_output)
            grad_input = _replaced("backward hook", grad_input, changed)
        if not self.entrances and any(g is not None for g in grad_input):
            raise RuntimeError(
                "backward hook: returned a gradient, but no argument of the module requires grad; "
                "return None"
            )
        return tuple(grad_input[i] for i in self.entrances)


def _with_gradients(values: tuple[Any, ...]) -> list[int]:
    if not _core.is_grad_enabled():
        return []
    return [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]


def _placed(given: tuple[Any, ...], places: list[int], among: tuple[Any, ...]) -> tuple[Any, ...]:
    """`among` with what is given at its places."""
    values = list(among)
    for i, value in zip(places, given, strict=True):
        values[i] = value
    return tuple(values)


def _replaced(kind: str, grads: tuple[Any, ...], changed: Any) -> tuple[Any, ...]:
    if changed is None:
        return grads
    given: tuple[Any, ...] = changed if isinstance(changed, tuple) else (changed,)
    if len(given) != len(grads):
        raise RuntimeError(f"{kind}: returned {len(given)} gradients for {len(grads)}")
    return given


class _Door(Function):
    """Passes tensors on, as views, and their gradients to the boundary."""

    _passes_on = True

    @staticmethod
    def forward(ctx: Context, boundary: _Boundary, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.boundary = boundary
        return tensors


class _Entrance(_Door):
    @staticmethod
    def backward(ctx: Context, *grads: Tensor | None) -> tuple[Any, ...]:
        return (None, *ctx.boundary.at_entrance(grads))


class _Exit(_Door):
    @staticmethod
    def backward(ctx: Context, *grads: Tensor | None) -> tuple[Any, ...]:
        return (None, *ctx.boundary.at_exit(grads))
