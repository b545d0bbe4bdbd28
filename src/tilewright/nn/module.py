"""The base of layers and models: finds parameters, buffers and submodules in its attributes."""

from __future__ import annotations

import reprlib
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import tilewright as tw
from tilewright import Tensor
from tilewright.foreign import as_tensor
from tilewright.nn.parameter import Parameter

M = TypeVar("M", bound="Module")


class KeyDifferences(NamedTuple):
    """Names that a loaded state lacks, and names that the module lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """A layer or model: assign parameters and submodules as attributes, define `forward`.

    >>> import tilewright as tw
    >>> model = tw.nn.Sequential(tw.nn.Linear(4, 3), tw.nn.ReLU())
    >>> [name for name, _ in model.named_parameters()]
    ['0.weight', '0.bias']
    """

    training: bool = True
    _buffer_names: tuple[str, ...] = ()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: define forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not tw._core._observed():
            return self.forward(*args, **kwargs)
        return _call_named(self, args, kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        # A plain tensor in a parameter's place would silently stop training it.
        fits = value is None or isinstance(value, Parameter)
        if not fits and isinstance(self.__dict__.get(name), Parameter):
            raise TypeError(
                f"{type(self).__name__}.{name}: is a Parameter, got {type(value).__name__}; "
                "assign a Parameter, or use copy_() to change its values"
            )
        object.__setattr__(self, name, value)

    def register_buffer(self, name: str, tensor: Tensor) -> None:
        """Sets a tensor that is saved with the module but not trained."""
        if not isinstance(tensor, Tensor):
            raise TypeError(f"buffer {name!r}: expected a tensor, got {type(tensor).__name__}")
        if hasattr(self, name) and name not in self._buffer_names:
            raise ValueError(f"buffer {name!r}: {type(self).__name__} has that attribute already")
        if name not in self._buffer_names:
            self._buffer_names = (*self._buffer_names, name)
        setattr(self, name, tensor)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Direct submodules in order of assignment."""
        for name, value in list(vars(self).items()):  # other threads may set attributes meanwhile
            if isinstance(value, Module):
                yield name, value

    def children(self) -> Iterator[Module]:
        """Direct submodules."""
        for _, child in self.named_children():
            yield child

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module ('' or `prefix`) and all below it, each once, parents first."""
        yield from self._walk_once(prefix, set())

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """All parameters with dotted names, each once even where shared."""
        seen: set[int] = set()
        for name, value in _tensors_of(self.named_modules()):
            if isinstance(value, Parameter) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def parameters(self) -> Iterator[Parameter]:
        """All parameters, each once."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """All buffers with dotted names."""
        for name, value in self._named_tensors():
            if not isinstance(value, Parameter):
                yield name, value

    def buffers(self) -> Iterator[Tensor]:
        """All buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and buffers by dotted name; they share memory and carry no gradient.

        What is shared stands under each of its names; a way back to a module above ends there.
        """
        return {name: value.detach() for name, value in self._named_tensors()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> KeyDifferences:
        """Copies values in by name; dtypes are converted.

        Values are tensors or arrays of other libraries, so that the state of a PyTorch module of
        the same names loads as it is. Raises TypeError where `state` is no dict with text as keys,
        and ValueError that lists missing and unexpected names (when strict) and values that do not
        fit (shape, complex into real, read-only memory here) or cannot be read; the module is then
        unchanged.
        """
        _check_is_state(type(self).__name__, state)
        own = self.state_dict()
        keys = KeyDifferences(
            [name for name in own if name not in state],
            [name for name in state if name not in own],
        )
        problems = _key_problems(keys) if strict else []
        values = _readable({name: state[name] for name in own if name in state}, problems)
        problems += _value_problems(own, values)
        if problems:
            raise ValueError(f"load_state_dict: {type(self).__name__}: " + "; ".join(problems))
        with tw.no_grad():
            for name, value in values.items():
                if value.size:
                    own[name].copy_(value)
        return keys

    def train(self: M, mode: bool = True) -> M:
        """Sets training mode here and below; Dropout acts only in training mode."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        """Sets evaluation mode here and below."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Sets whether the parameters record gradients; False freezes the module."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self) -> None:
        """Drops every parameter's gradient."""
        tw._core.zero_grad(list(self.parameters()))

    def apply(self: M, function: Callable[[Module], object]) -> M:
        """Calls `function` on every module below, each once, then on this one."""
        for module in self._children_first(set()):
            function(module)
        return self

    def extra_repr(self) -> str:
        """What stands between the brackets of `repr`: the layer's settings."""
        return ""

    @reprlib.recursive_repr("...")
    def __repr__(self) -> str:
        lines = [f"({name}): {child!r}" for name, child in self.named_children()]
        head = f"{type(self).__name__}({self.extra_repr()}"
        if not lines:
            return head + ")"
        return head + "\n" + textwrap.indent("\n".join(lines), "  ") + "\n)"

    def _walk_once(self, name: str, seen: set[int]) -> Iterator[tuple[str, Module]]:
        """Parents first, each module under the first of its names."""
        if id(self) in seen:
            return
        seen.add(id(self))
        yield name, self
        for key, child in self.named_children():
            yield from child._walk_once(_join(name, key), seen)

    def _walk_names(self, name: str, above: tuple[Module, ...]) -> Iterator[tuple[str, Module]]:
        """Parents first, under all names that lead through no module twice."""
        yield name, self
        above = (*above, self)
        for key, child in self.named_children():
            if not any(child is module for module in above):
                yield from child._walk_names(_join(name, key), above)

    def _children_first(self, seen: set[int]) -> Iterator[Module]:
        seen.add(id(self))
        for child in self.children():
            if id(child) not in seen:
                yield from child._children_first(seen)
        yield self

    def _named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        return _tensors_of(self._walk_names("", ()))


# Of a thread, while a module's forward is observed: paths by id of what is below the outermost.
_running = threading.local()


def _call_named(module: Module, args: Any, kwargs: Any) -> Any:
    """The forward, whose events carry the module's path: "Model.layers.0"."""
    paths: dict[int, str] | None = getattr(_running, "paths", None)
    outermost = paths is None
    if paths is None:
        paths = dict(_paths(module, type(module).__name__, set()))
    before = tw._core._set_module(paths.get(id(module), type(module).__name__))
    try:
        _running.paths = paths
        return module.forward(*args, **kwargs)
    finally:
        tw._core._set_module(before)
        if outermost:
            del _running.paths


def _paths(module: Module, path: str, seen: set[int]) -> Iterator[tuple[int, str]]:
    seen.add(id(module))
    yield id(module), path
    for name, child in module.named_children():
        if id(child) not in seen:
            yield from _paths(child, f"{path}.{name}", seen)


def _tensors_of(modules: Iterable[tuple[str, Module]]) -> Iterator[tuple[str, Tensor]]:
    for prefix, module in modules:
        for key, value in vars(module).items():
            if isinstance(value, Parameter) or key in module._buffer_names:
                yield _join(prefix, key), value


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _check_is_state(module: str, state: Any) -> None:
    if not isinstance(state, Mapping):
        raise TypeError(
            f"load_state_dict: {module}: expected a dict of tensors by name, "
            f"got {type(state).__name__}"
        )
    for name in state:
        if not isinstance(name, str):
            raise TypeError(f"load_state_dict: {module}: {name!r} cannot name a tensor")


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


def _value_problems(own: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> list[str]:
    problems = []
    for name, value in own.items():
        if name not in state:
            continue
        if state[name].shape != value.shape:
            problems.append(f"{name}: shape {state[name].shape} does not fit {value.shape}")
        elif not _converts(state[name].dtype, value.dtype):
            problems.append(f"{name}: {state[name].dtype.name} does not fit {value.dtype.name}")
        elif _is_read_only(value):
            problems.append(f"{name}: the module's tensor is read-only; give it a copy() first")
    return problems


def _converts(source: tw.dtype, target: tw.dtype) -> bool:
    try:
        tw.empty((0,), dtype=target).copy_(tw.empty((0,), dtype=source))
    except TypeError:
        return False
    return True


def _is_read_only(x: Tensor) -> bool:
    if not x.size:
        return False
    # One element, as only row-major tensors give their bytes.
    return memoryview(tw._core._as_bytes(x[(0,) * x.ndim] if x.ndim else x)).readonly
