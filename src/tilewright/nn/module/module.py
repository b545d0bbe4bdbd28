"""The base of layers and models: finds parameters, buffers and submodules in its attributes."""

from __future__ import annotations

import reprlib
import textwrap
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, TypeVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module.conversion import Converted
from tilewright.nn.module.hooks import Hooked
from tilewright.nn.module.parameter import Buffer, Parameter, clear_grads
from tilewright.nn.module.registry import (
    BUFFERS,
    KINDS,
    MODULES,
    PARAMETERS,
    UNSAVED,
    held,
    join_names,
    kind_of_registered,
    present,
    visiting,
)
from tilewright.nn.module.state import ModuleState

M = TypeVar("M", bound="Module")


class Module(tw._core._ModuleCall, Hooked, ModuleState, Converted):
    """A layer or model: assign parameters and submodules as attributes, define `forward`.

    What is assigned is registered: `_parameters`, `_buffers` and `_modules` are mappings of it by
    name, in order. A module does for itself what its methods say and calls those of its children,
    so that what a class overrides is what runs.

    >>> import tilewright as tw
    >>> model = tw.nn.Sequential(tw.nn.Linear(4, 3), tw.nn.ReLU())
    >>> [name for name, _ in model.named_parameters()]
    ['0.weight', '0.bias']
    """

    training: bool = True
    _parameters = kind_of_registered(PARAMETERS)
    _buffers = kind_of_registered(BUFFERS)
    _modules = kind_of_registered(MODULES)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Python's own errors of a wrong call name the class where __init__ stands. Users' classes
        # are left alone: a copy would come before the __init__ of a second base class.
        if "__init__" not in vars(cls) and cls.__module__.startswith(f"{tw.__name__}."):
            _own_init(cls)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: define forward()")

    # ---- what is registered: whatever changes it, or another attribute, is one of these four ----

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        if (
            isinstance(value, (Parameter, Module, Buffer))
            or name in attributes.get(PARAMETERS, ())
            or name in attributes.get(BUFFERS, ())
            or name in attributes.get(MODULES, ())
        ):
            self._assign(name, value)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for kind in KINDS:
            if name in held(self, kind):
                return self._unregister(kind, name)
        object.__delattr__(self, name)

    def _register(self, kind: str, name: str, value: Any) -> None:
        attributes = self.__dict__
        for other in KINDS:
            if other != kind and name in held(self, other):
                self._unregister(other, name)
        attributes.setdefault(kind, {})[name] = value
        if self._shows(name):
            attributes[name] = value

    def _unregister(self, kind: str, name: str) -> None:
        value = held(self, kind)[name]
        del held(self, kind)[name]
        if self._shows(name) and self.__dict__.get(name) is value:
            self.__dict__.pop(name, None)
        self.__dict__.get(UNSAVED, set()).discard(name)

    def _shows(self, name: str) -> bool:
        """Whether what is registered under a name is an attribute too."""
        return True

    def _assign(self, name: str, value: Any) -> None:
        """An attribute that is, or was, registered."""
        if hasattr(type(getattr(type(self), name, None)), "__set__"):
            object.__setattr__(self, name, value)  # a property says itself what it keeps
        elif isinstance(value, Parameter):
            self._vacate(PARAMETERS, name)
            self.register_parameter(name, value)
        elif name in held(self, PARAMETERS):
            # A plain tensor in a parameter's place would silently stop training it.
            if value is not None:
                advice = "assign a Parameter, or use copy_() to change its values"
                self._refuse(name, "a Parameter", value, advice)
            self.register_parameter(name, None)
        elif isinstance(value, Module) or name in held(self, MODULES):
            if not isinstance(value, (Module, type(None))):
                advice = "expected a Module or None; delete the attribute first"
                self._refuse(name, "a submodule", value, advice)
            self._register(MODULES, name, value)
        elif isinstance(value, Buffer):
            self._vacate(BUFFERS, name)
            self.register_buffer(name, value, value.persistent)
        else:
            if not isinstance(value, (Tensor, type(None))):
                self._refuse(name, "a buffer", value, "assign a tensor")
            self._register(BUFFERS, name, value)

    def _refuse(self, name: str, what: str, value: Any, otherwise: str) -> None:
        raise TypeError(
            f"{type(self).__name__}.{name}: is {what}, got {type(value).__name__}; {otherwise}"
        )

    def _vacate(self, kind: str, name: str) -> None:
        """Takes away what else has a name."""
        if name not in held(self, kind):
            for other in KINDS:
                if name in held(self, other):
                    self._unregister(other, name)
            self.__dict__.pop(name, None)

    def __setstate__(self, state: Any) -> None:
        own, slots = state if isinstance(state, tuple) else (state, None)
        self.__dict__.update(own or {})
        for name, value in (slots or {}).items():
            object.__setattr__(self, name, value)
        for kind in (*KINDS, UNSAVED):  # a shallow copy registers for itself
            if kind in self.__dict__:
                self.__dict__[kind] = self.__dict__[kind].copy()

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Sets a tensor that is not trained, and saved with the module where `persistent`."""
        if not isinstance(tensor, (Tensor, type(None))):
            raise TypeError(f"buffer {name!r}: expected a tensor, got {type(tensor).__name__}")
        self._check_name("buffer", BUFFERS, name)
        self._register(BUFFERS, name, tensor)
        unsaved: set[str] = self.__dict__.setdefault(UNSAVED, set())
        (unsaved.discard if persistent else unsaved.add)(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Sets a parameter, or None in its place; one that is there under the name is replaced."""
        if not isinstance(param, (Parameter, type(None))):
            raise TypeError(f"parameter {name!r}: expected a Parameter, got {type(param).__name__}")
        self._check_name("parameter", PARAMETERS, name)
        self._register(PARAMETERS, name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Sets a submodule, or None in its place; one that is there under the name is replaced."""
        if not isinstance(module, (Module, type(None))):
            raise TypeError(f"module {name!r}: expected a Module, got {type(module).__name__}")
        self._check_name("module", MODULES, name)
        self._register(MODULES, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of `add_module`."""
        self.add_module(name, module)

    def _check_name(self, what: str, kind: str, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what}: a name is text, got {name!r}")
        if not name or "." in name:
            raise ValueError(f"{what} {name!r}: a name is not empty and has no dots")
        there = (self.__dict__.get(name), getattr(type(self), name, None))
        taken = self._shows(name) and any(each is not None for each in there)
        if taken and name not in held(self, kind):
            raise ValueError(f"{what} {name!r}: {type(self).__name__} has that attribute already")

    # ---- what there is, by dotted name ----

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name; '' is this one. Raises AttributeError where there is none.

        >>> import tilewright as tw
        >>> tw.nn.Sequential(tw.nn.Sequential(tw.nn.Linear(4, 3))).get_submodule("0.0")
        Linear(4, 3, bias=True)
        """
        module = self
        for name in target.split(".") if target else ():
            child = held(module, MODULES).get(name)
            if child is None:
                raise AttributeError(
                    f"{type(self).__name__}: {target!r}: {type(module).__name__} has no module "
                    f"{name!r}"
                )
            module = child
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name. Raises AttributeError where there is none."""
        return self._get_tensor(target, "parameter", PARAMETERS)  # type: ignore[return-value]

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name. Raises AttributeError where there is none."""
        return self._get_tensor(target, "buffer", BUFFERS)

    def _get_tensor(self, target: str, what: str, kind: str) -> Tensor:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        value: Tensor | None = held(module, kind).get(name)
        if value is None:
            raise AttributeError(
                f"{type(self).__name__}: {target!r}: {type(module).__name__} has no {what} {name!r}"
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
        if held(parent, MODULES).get(name) is None and (strict or hasattr(parent, name)):
            raise AttributeError(
                f"{type(self).__name__}: {target!r}: {type(parent).__name__} has no module {name!r}"
            )
        setattr(parent, name, module)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Direct submodules in order, each once even where it has several names."""
        yield from _each_once(present(self, MODULES))

    def children(self) -> Iterator[Module]:
        """Direct submodules, each once."""
        for _, child in self.named_children():
            yield child

    def named_modules(
        self,
        memo: Any = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Module]]:
        """This module ('' or `prefix`) and all below it, each once, parents first.

        Without `remove_duplicate` under each of its names that lead through no module twice. `memo`
        are modules that are left out; text in its place is the prefix.
        """
        if isinstance(memo, str):
            memo, prefix = None, memo
        memo = set() if memo is None else memo if remove_duplicate else {*memo}
        if self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, child in present(self, MODULES):
            path = join_names(prefix, name)
            yield from child.named_modules(
                memo=memo, prefix=path, remove_duplicate=remove_duplicate
            )

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with dotted names, each once even where shared."""
        yield from self._named_members(
            lambda module: present(module, PARAMETERS), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with dotted names, each once even where shared."""
        yield from self._named_members(
            lambda module: present(module, BUFFERS), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        modules: Iterable[tuple[str, Module]] = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        members = (
            (join_names(path, name), value)
            for path, module in modules
            for name, value in get_members_fn(module)
            if value is not None
        )
        yield from _each_once(members) if remove_duplicate else members

    def train(self: M, mode: bool = True) -> M:
        """Sets training mode here and below; Dropout acts only in training mode."""
        with visiting("train", self) as enters:
            if enters:
                self.training = mode
                for child in self.children():
                    child.train(mode)
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

    def apply(self: M, fn: Callable[[Module], object]) -> M:
        """Calls `fn` on every module below, each once, then on this one."""
        with visiting(("apply", id(fn)), self, once=True) as enters:
            if enters:
                for child in self.children():
                    child.apply(fn)
                fn(self)
        return self

    def extra_repr(self) -> str:
        """What stands between the brackets of `repr`: the layer's settings."""
        return ""

    def _get_name(self) -> str:
        """What `repr` calls the module."""
        return type(self).__name__

    def _repr_html_(self) -> str:
        from tilewright.nn.module.notebook import table  # noqa: PLC0415  (imported on use)

        return table(self)

    @reprlib.recursive_repr("...")
    def __repr__(self) -> str:
        lines = [f"({name}): {child!r}" for name, child in held(self, MODULES).items()]
        name, settings = self._get_name(), self.extra_repr()
        if not lines:
            return f"{name}({settings})"
        if settings:
            lines = [settings, *lines]
        return f"{name}(\n" + textwrap.indent("\n".join(lines), "  ") + "\n)"


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


def _each_once(pairs: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    seen: set[int] = set()
    for name, value in pairs:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value
