"""The base of layers and models: finds parameters, buffers and submodules in its attributes."""

from __future__ import annotations

import reprlib
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import FunctionType
from typing import Any, TypeVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.conversion import assign_tensor, convert, emptied, requested
from tilewright.nn.module_hooks import HookRemover, ModuleHooks, call_state_hooks
from tilewright.nn.parameter import Buffer, Parameter, clear_grads
from tilewright.nn.state import KeyDifferences, load_state

M = TypeVar("M", bound="Module")
T = TypeVar("T")


class Module(tw._core._ModuleCall):
    """A layer or model: assign parameters and submodules as attributes, define `forward`.

    >>> import tilewright as tw
    >>> model = tw.nn.Sequential(tw.nn.Linear(4, 3), tw.nn.ReLU())
    >>> [name for name, _ in model.named_parameters()]
    ['0.weight', '0.bias']
    """

    training: bool = True
    _buffer_names: tuple[str, ...] = ()
    _unsaved_names: tuple[str, ...] = ()
    _call_hooks: ModuleHooks | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Python's own errors of a wrong call name the class where __init__ stands. Users' classes
        # are left alone: a copy would come before the __init__ of a second base class.
        if "__init__" not in vars(cls) and cls.__module__.startswith(f"{tw.__name__}."):
            _own_init(cls)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: define forward()")

    def __setattr__(self, name: str, value: Any) -> None:
        # A plain tensor in a parameter's place would silently stop training it.
        fits = value is None or isinstance(value, Parameter)
        if not fits and isinstance(self.__dict__.get(name), Parameter):
            raise TypeError(
                f"{type(self).__name__}.{name}: is a Parameter, got {type(value).__name__}; "
                "assign a Parameter, or use copy_() to change its values"
            )
        if name in self._buffer_names and not (value is None or isinstance(value, Tensor)):
            raise TypeError(
                f"{type(self).__name__}.{name}: is a buffer, got {type(value).__name__}; "
                "assign a tensor"
            )
        if isinstance(value, Buffer):
            self._note_buffer(name, value.persistent)
        object.__setattr__(self, name, value)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Sets a tensor that is not trained, and saved with the module where `persistent`."""
        if not isinstance(tensor, (Tensor, type(None))):
            raise TypeError(f"buffer {name!r}: expected a tensor, got {type(tensor).__name__}")
        self._check_name("buffer", name, free=name not in self._buffer_names)
        self._note_buffer(name, persistent)
        object.__setattr__(self, name, tensor)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Sets a parameter, or None in its place."""
        if not isinstance(param, (Parameter, type(None))):
            raise TypeError(f"parameter {name!r}: expected a Parameter, got {type(param).__name__}")
        self._check_name("parameter", name)
        setattr(self, name, param)

    def register_module(self, name: str, module: Module | None) -> None:
        """Sets a submodule, or None in its place."""
        if not isinstance(module, (Module, type(None))):
            raise TypeError(f"module {name!r}: expected a Module, got {type(module).__name__}")
        self._check_name("module", name)
        setattr(self, name, module)

    add_module = register_module

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name; '' is this one. Raises AttributeError where there is none.

        >>> import tilewright as tw
        >>> tw.nn.Sequential(tw.nn.Sequential(tw.nn.Linear(4, 3))).get_submodule("0.0")
        Linear(4, 3, bias=True)
        """
        module = self
        for name in target.split(".") if target else ():
            child = dict(module.named_children()).get(name)
            if child is None:
                raise AttributeError(
                    f"{type(self).__name__}: {target!r}: {type(module).__name__} has no module "
                    f"{name!r}"
                )
            module = child
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name. Raises AttributeError where there is none."""
        return self._get_tensor(target, "parameter", is_parameter=True)  # type: ignore[return-value]

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name. Raises AttributeError where there is none."""
        return self._get_tensor(target, "buffer", is_parameter=False)

    def _get_tensor(self, target: str, kind: str, is_parameter: bool) -> Tensor:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        value = dict(module._own_tensors()).get(name)
        if value is None or isinstance(value, Parameter) is not is_parameter:
            raise AttributeError(
                f"{type(self).__name__}: {target!r}: {type(module).__name__} has no {kind} {name!r}"
            )
        return value

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module in the place of a dotted name, or adds it where its parent has none.

        Raises ValueError for '', TypeError for what is no module, and AttributeError where a parent
        is missing, where the name is that of something else, and, if `strict`, where there is no
        module yet.

        >>> import tilewright as tw
        >>> model = tw.nn.Sequential(tw.nn.Linear(4, 3), tw.nn.ReLU())
        >>> model.set_submodule("1", tw.nn.Tanh()); model[1]
        Tanh()
        """
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError(f"set_submodule: {target!r} names no submodule")
        if not isinstance(module, Module):
            raise TypeError(f"set_submodule: expected a Module, got {type(module).__name__}")
        parent = self.get_submodule(path)
        if name not in dict(parent.named_children()) and (strict or hasattr(parent, name)):
            raise AttributeError(
                f"{type(self).__name__}: {target!r}: {type(parent).__name__} has no module {name!r}"
            )
        parent._set_child(name, module)

    def _set_child(self, name: str, module: Module) -> None:
        setattr(self, name, module)

    def _note_buffer(self, name: str, persistent: bool) -> None:
        if name not in self._buffer_names:
            self._buffer_names = (*self._buffer_names, name)
        unsaved = tuple(other for other in self._unsaved_names if other != name)
        self._unsaved_names = unsaved if persistent else (*unsaved, name)

    def _check_name(self, kind: str, name: str, free: bool = True) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind}: a name is text, got {name!r}")
        if not name or "." in name:
            raise ValueError(f"{kind} {name!r}: a name is not empty and has no dots")
        if free and hasattr(self, name):
            raise ValueError(f"{kind} {name!r}: {type(self).__name__} has that attribute already")

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
        """Calls hook(module, state_dict, prefix, {}) with the state that it may change."""
        return self._own_hooks().add("state", hook, False)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> HookRemover:
        """Calls hook(module, state_dict, prefix, {}, strict, missing, unexpected, errors).

        It may change the state, a copy, before that is checked, and add to the list `errors`.
        """
        return self._own_hooks().add("load_pre", hook, False)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> HookRemover:
        """Calls hook(module, keys) after a state was loaded, with what differed in names."""
        return self._own_hooks().add("load", hook, False)

    def _own_hooks(self) -> ModuleHooks:
        if self._call_hooks is None:
            self._call_hooks = ModuleHooks()
        return self._call_hooks

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Direct submodules in order of assignment."""
        for name, value in list(vars(self).items()):  # other threads may set attributes meanwhile
            if isinstance(value, Module):
                yield name, value

    def children(self) -> Iterator[Module]:
        """Direct submodules."""
        for _, child in self.named_children():
            yield child

    def named_modules(
        self, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module ('' or `prefix`) and all below it, each once, parents first.

        Without `remove_duplicate` under each of its names that lead through no module twice.
        """
        yield from (
            self._walk_once(prefix, set()) if remove_duplicate else self._walk_names(prefix, ())
        )

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with dotted names, each once even where shared."""
        for name, value in self._named_tensors(prefix, recurse, remove_duplicate):
            if isinstance(value, Parameter):
                yield name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with dotted names, each once even where shared."""
        for name, value in self._named_tensors(prefix, recurse, remove_duplicate):
            if not isinstance(value, Parameter):
                yield name, value

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """Parameters and persistent buffers by dotted name; they share memory.

        They carry no gradient, unless `keep_vars` gives the parameters themselves. What is shared
        stands under each of its names; a way back to a module above ends there.
        """
        modules = list(self._walk_names("", ()))
        call_state_hooks("state_pre", modules, lambda own: (prefix + own, keep_vars))
        state = {
            prefix + name: value if keep_vars else value.detach()
            for name, value in _tensors_of(modules, saved_only=True)
        }
        call_state_hooks("state", modules[::-1], lambda own: (state, prefix + own, {}))
        return state

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
        modules = list(self._walk_names("", ()))
        errors: list[str] = []
        if any(module._call_hooks for _, module in modules) and isinstance(state, Mapping):
            state = dict(state)
            rest: tuple[Any, ...] = (strict, [], [], errors)
            call_state_hooks("load_pre", modules, lambda own: (state, own, {}, *rest))
        own = {name: value.detach() for name, value in _tensors_of(modules, saved_only=True)}
        put = partial(assign_tensor, self) if assign else None
        keys = load_state(type(self).__name__, own, state, strict, errors, put)
        call_state_hooks("load", modules[::-1], lambda _: (keys,))
        return keys

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Converts parameters and buffers in place: `to(dtype)`, `to(device)`, `to(tensor)`.

        A dtype is for those that hold floating or complex numbers. Parameters stay the same
        objects, with their gradients converted; optimisers that have steps behind them keep states
        of the dtype before. With non_blocking=True copies to and from a GPU go on when it returns,
        as those of `Tensor.to`; ops wait for them. Raises TypeError for dtypes that are neither
        floating nor complex.
        """
        convert(self, *requested(args, kwargs))
        return self

    def to_empty(self: M, *, device: str | None, recurse: bool = True) -> M:
        """Gives parameters and buffers new memory on a device, with whatever lies there as values.

        For modules whose values are set afterwards, by a saved state for example: nothing is
        copied. Parameters stay the same objects, without gradients. `device` None is where each of
        them is; without `recurse` those of submodules stay. Raises TypeError or ValueError for what
        is no device. Source: PyTorch's torch.nn.Module.to_empty.
        """
        emptied(self, device, recurse)
        return self

    def type(self: M, dst_type: tw.dtype) -> M:
        """Converts floating parameters and buffers to a dtype."""
        return self.to(dst_type)

    def float(self: M) -> M:
        """Converts floating parameters and buffers to float32."""
        return self.to(tw.float32)

    def double(self: M) -> M:
        """Converts floating parameters and buffers to float64."""
        return self.to(tw.float64)

    def half(self: M) -> M:
        """Converts floating parameters and buffers to float16."""
        return self.to(tw.float16)

    def bfloat16(self: M) -> M:
        """Converts floating parameters and buffers to bfloat16."""
        return self.to(tw.bfloat16)

    def cpu(self: M) -> M:
        """Moves parameters and buffers to the CPU."""
        return self.to("cpu")

    def cuda(self: M, device: int | str | None = None) -> M:
        """Moves parameters and buffers to a GPU: the first, or one by number or name."""
        return self.to(f"cuda:{device}" if isinstance(device, int) else device or "cuda")

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

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops every parameter's gradient, or with set_to_none=False sets it to 0."""
        clear_grads(list(self.parameters()), set_to_none)

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
        name, settings = type(self).__name__, self.extra_repr()
        if not lines:
            return f"{name}({settings})"
        if settings:
            lines = [settings, *lines]
        return f"{name}(\n" + textwrap.indent("\n".join(lines), "  ") + "\n)"

    def _walk_once(self, name: str, seen: set[int]) -> Iterator[tuple[str, Module]]:
        """Parents first, each module under the first of its names."""
        if id(self) in seen:
            return
        seen.add(id(self))
        yield name, self
        for key, child in self.named_children():
            yield from child._walk_once(join_names(name, key), seen)

    def _walk_names(self, name: str, above: tuple[Module, ...]) -> Iterator[tuple[str, Module]]:
        """Parents first, under all names that lead through no module twice."""
        yield name, self
        above = (*above, self)
        for key, child in self.named_children():
            if not any(child is module for module in above):
                yield from child._walk_names(join_names(name, key), above)

    def _children_first(self, seen: set[int]) -> Iterator[Module]:
        seen.add(id(self))
        for child in self.children():
            if id(child) not in seen:
                yield from child._children_first(seen)
        yield self

    def _own_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters and buffers of this module alone."""
        for key, value in list(vars(self).items()):
            is_buffer = value is not None and key in self._buffer_names
            if is_buffer or isinstance(value, Parameter):
                yield key, value

    def _named_tensors(
        self, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Tensor]]:
        modules: Iterator[tuple[str, Module]] = iter([(prefix, self)])
        if recurse:
            modules = self.named_modules(prefix, remove_duplicate)
        yield from _each_once(_tensors_of(modules), remove_duplicate)


def _own_init(cls: type) -> None:
    """Gives a class the __init__ that it shares with its base under its own name."""
    shared: Any = cls.__init__  # type: ignore[misc]
    if isinstance(shared, FunctionType):
        own = FunctionType(
            shared.__code__, shared.__globals__, shared.__name__, closure=shared.__closure__
        )
        own.__qualname__ = f"{cls.__qualname__}.__init__"
        for name in ("__defaults__", "__kwdefaults__", "__annotations__", "__doc__"):
            setattr(own, name, getattr(shared, name))
        type.__setattr__(cls, "__init__", own)


def _tensors_of(
    modules: Iterable[tuple[str, Module]], saved_only: bool = False
) -> Iterator[tuple[str, Tensor]]:
    for prefix, module in modules:
        for key, value in module._own_tensors():
            if not (saved_only and key in module._unsaved_names):
                yield join_names(prefix, key), value


def _each_once(pairs: Iterator[tuple[str, T]], remove_duplicate: bool) -> Iterator[tuple[str, T]]:
    seen: set[int] = set()
    for name, value in pairs:
        if not remove_duplicate or id(value) not in seen:
            seen.add(id(value))
            yield name, value


def join_names(prefix: str, name: str) -> str:
    """A dotted name."""
    return f"{prefix}.{name}" if prefix else name
