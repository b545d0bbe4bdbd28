"""States of modules by dotted name, and loading: all checks come before the first change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.foreign_arrays import as_tensor
from tilewright.nn.module.hooks import call_state_hooks
from tilewright.nn.module.parameter import Parameter
from tilewright.nn.module.registry import (
    BUFFERS,
    MODULES,
    PARAMETERS,
    UNSAVED,
    held,
    present,
    visiting,
    walk,
)

EXTRA = "_extra_state"


class KeyDifferences(NamedTuple):
    """Names that a loaded state lacks, and names that the module lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Loading(list[str]):
    """Why a state cannot be loaded; what is done where it can, and undone where that fails."""

    def __init__(self, assign: bool) -> None:
        self.assign = assign
        self._steps: list[Callable[[], None]] = []
        self._undo: list[Callable[[], None]] = []
        self._keeps = True

    def later(self, step: Callable[[], None]) -> None:
        """For when all modules have been asked."""
        self._steps.append(step)

    def run(self, final: bool) -> None:
        """Does what was put off; where it is not `final`, what is overwritten is kept."""
        self._keeps = not final
        for step in self._steps:
            step()

    def put(self, module: Any, name: str, value: Tensor) -> None:
        """Overwrites a parameter or buffer, or gives it the other's memory."""
        x = _tensor(module, name)
        if self.assign:
            self._undo.append(partial(assign_tensor, module, name, x.detach()))
            assign_tensor(module, name, value)
        elif value.size:
            if self._keeps:
                self._undo.append(partial(_overwrite, x, x.detach().copy()))
            _overwrite(x, value)

    def undo(self) -> None:
        for step in reversed(self._undo):
            step()


def put_off(errors: list[str], step: Callable[[], None]) -> None:
    """Does a step of `_load_from_state_dict` when all modules have been asked, else at once."""
    if isinstance(errors, Loading):
        errors.later(step)
    else:
        step()


class ModuleState:
    """The part of a module that saves and loads: each module does so for what is its own."""

    __slots__ = ()

    _version: int = 1

    def get_extra_state(self) -> Any:
        """For classes to define: what stands in the state as `_extra_state`, beside the tensors."""
        raise RuntimeError(f"{type(self).__name__}: get_extra_state is not defined")

    def set_extra_state(self, state: Any) -> None:
        """For classes to define: takes what `get_extra_state` gave."""
        raise RuntimeError(f"{type(self).__name__}: set_extra_state is not defined")

    def state_dict(
        self, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Parameters and persistent buffers by dotted name; they share memory.

        They carry no gradient, unless `keep_vars` gives the parameters themselves. What is shared
        stands under each of its names; a way back to a module above ends there. Each module adds
        its own to `destination`, a new dict by default, and asks its submodules. Where a class has
        another `_version` than 1, the dict has an attribute `_metadata` with the versions by name.
        """
        if destination is None:
            destination = {}
            if any(module._version != 1 for _, module in walk(self)):
                destination = OrderedDict()
                destination._metadata = {}  # type: ignore[attr-defined]  # as PyTorch's states
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        with visiting("state_dict", self) as enters:
            if enters:
                call_state_hooks("state_pre", self, prefix, keep_vars)
                self._save_to_state_dict(destination, prefix, keep_vars)
                for name, child in present(self, MODULES):
                    child.state_dict(
                        destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                    )
                call_state_hooks("state", self, destination, prefix, metadata)
        return destination

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Adds the tensors of this module alone, and its extra state."""
        for name, x in _saved(self):
            destination[prefix + name] = x if keep_vars else x.detach()
        if _defines(self, "get_extra_state"):
            destination[prefix + EXTRA] = self.get_extra_state()

    def load_state_dict(
        self, state: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> KeyDifferences:
        """Copies values in by name; dtypes are converted.

        With `assign` nothing is copied: the module's tensors have the memory of `state`, in its
        dtypes and on its devices, from then on. Parameters stay the same objects.

        Values are tensors or arrays of other libraries, so that the state of a PyTorch module of
        the same names loads as it is. Raises TypeError where `state` is no dict with text as keys,
        and ValueError that lists missing and unexpected names (when strict) and values that do not
        fit (shape, complex into real, read-only memory here) or cannot be read; the module is then
        unchanged.
        """
        who = f"load_state_dict: {type(self).__name__}"
        _check_is_state(who, state)
        loading, keys = Loading(assign), KeyDifferences([], [])
        try:
            modules = list(_asked(self, state, loading, keys, "", ()))
            _sort(keys.unexpected_keys, state)
            differ = strict and any(keys)
            hooked = any(module._call_hooks and module._call_hooks.load for module in modules)
            if not loading and (hooked or not differ):
                loading.run(final=not differ)
                for module in modules:
                    call_state_hooks("load", module, keys)
            problems = [*(_key_problems(keys) if strict else []), *loading]
            if problems:
                raise ValueError(f"{who}: " + "; ".join(problems))
        except BaseException:
            loading.undo()
            raise
        return keys

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Loads the tensors of this module alone, and its extra state.

        Called by `load_state_dict` itself it is put off until all modules have been asked; called
        by a method that overrides it, it has loaded when it returns.
        """
        arguments = (strict, missing_keys, unexpected_keys, error_msgs)
        call_state_hooks("load_pre", self, state_dict, prefix, local_metadata, *arguments)
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        loading = error_msgs if isinstance(error_msgs, Loading) else Loading(assign)
        own = {prefix + name: x for name, x in _saved(self)}
        extra = [prefix + EXTRA] if _defines(self, "set_extra_state") else []
        if strict:
            missing_keys += [name for name in (*own, *extra) if name not in state_dict]
            unexpected_keys += _unexpected(self, prefix, {*own, *extra}, state_dict)
        problems: list[str] = []
        given = {name: state_dict[name] for name in own if name in state_dict}
        values = _readable(given, problems)
        fitting = _fitting(own, values, problems, copied=not loading.assign)
        error_msgs += problems

        def load() -> None:
            for name, value in fitting.items():
                loading.put(self, name[len(prefix) :], value)
            for name in extra:
                if name in state_dict:
                    self.set_extra_state(state_dict[name])

        if loading is error_msgs and not _defines(self, "_load_from_state_dict"):
            loading.later(load)
        else:
            load()


def _defines(module: ModuleState, method: str) -> bool:
    return getattr(type(module), method) is not getattr(ModuleState, method)


def _saved(module: Any) -> Iterator[tuple[str, Tensor]]:
    """Parameters and persistent buffers of a module alone."""
    yield from present(module, PARAMETERS)
    unsaved = module.__dict__.get(UNSAVED, ())
    yield from ((name, x) for name, x in present(module, BUFFERS) if name not in unsaved)


def _asked(
    module: Any,
    state: Mapping[str, Any],
    loading: Loading,
    keys: KeyDifferences,
    prefix: str,
    above: tuple[Any, ...],
) -> Iterator[Any]:
    """Asks a module and what is below it to load; gives them, children first.

    Each gets a dict of its own names, which it may change, with what its parents made of it.
    """
    local = OrderedDict((name, value) for name, value in state.items() if name.startswith(prefix))
    all_metadata = getattr(state, "_metadata", {})
    local._metadata = all_metadata  # type: ignore[attr-defined]
    metadata = dict(all_metadata.get(prefix[:-1], {}))
    if loading.assign:
        metadata["assign_to_params_buffers"] = True
    module._load_from_state_dict(local, prefix, metadata, True, *keys, loading)
    above = (*above, module)
    for name, child in present(module, MODULES):
        if not any(child is each for each in above):
            yield from _asked(child, local, loading, keys, f"{prefix}{name}.", above)
    yield module


def _tensor(module: Any, name: str) -> Tensor:
    kind = PARAMETERS if name in held(module, PARAMETERS) else BUFFERS
    x: Tensor = held(module, kind)[name]
    return x


def assign_tensor(module: Any, name: str, value: Tensor) -> None:
    """Gives a parameter or buffer the memory of another tensor."""
    x = _tensor(module, name)
    if isinstance(x, Parameter):
        tw._core._become(x, value.detach())
    else:
        module._register(BUFFERS, name, value.detach())


def _overwrite(x: Tensor, value: Tensor) -> None:
    with tw.no_grad():
        x.detach().copy_(value)


def _check_is_state(who: str, state: Any) -> None:
    if not isinstance(state, Mapping):
        raise TypeError(f"{who}: expected a dict of tensors by name, got {type(state).__name__}")
    for name in state:
        if not isinstance(name, str):
            raise TypeError(f"{who}: {name!r} cannot name a tensor")


def _unexpected(module: Any, prefix: str, own: set[str], state: Mapping[str, Any]) -> Iterator[str]:
    """Names that are neither a module's own nor below a child of it."""
    children = dict(present(module, MODULES))
    for name in state:
        child, dot, _ = name[len(prefix) :].partition(".")
        if name not in own and not (dot and child in children):
            yield name


def _sort(names: list[str], state: Mapping[str, Any]) -> None:
    places = {name: i for i, name in enumerate(state)}
    names.sort(key=lambda name: places.get(name, len(places)))


def _key_problems(keys: KeyDifferences) -> list[str]:
    problems = []
    if keys.missing_keys:
        problems.append("missing: " + ", ".join(keys.missing_keys))
    if keys.unexpected_keys:
        problems.append("unexpected: " + ", ".join(keys.unexpected_keys))
    return problems


def _readable(state: Mapping[str, Any], problems: list[str]) -> dict[str, Tensor]:
    """The values as tensors; those that are none are added to the problems."""
    values = {}
    for name, value in state.items():
        try:
            values[name] = as_tensor(value)
        except TypeError as error:
            problems.append(f"{name}: {error}")
    return values


def _fitting(
    own: Mapping[str, Tensor], values: Mapping[str, Tensor], problems: list[str], copied: bool
) -> dict[str, Tensor]:
    """The values that fit; what keeps the others from it is added to the problems."""
    fitting = {}
    for name, value in values.items():
        x = own[name]
        if value.shape != x.shape:
            problems.append(f"{name}: shape {value.shape} does not fit {x.shape}")
        elif not (_converts if copied else _of_one_kind)(value.dtype, x.dtype):
            problems.append(f"{name}: {value.dtype.name} does not fit {x.dtype.name}")
        elif copied and x.size and tw._core._is_read_only(x):
            problems.append(f"{name}: the module's tensor is read-only; give it a copy() first")
        else:
            fitting[name] = value
    return fitting


def _of_one_kind(source: tw.dtype, target: tw.dtype) -> bool:
    return source.kind == target.kind


def _converts(source: tw.dtype, target: tw.dtype) -> bool:
    try:
        tw.empty((0,), dtype=target).copy_(tw.empty((0,), dtype=source))
    except TypeError:
        return False
    return True
