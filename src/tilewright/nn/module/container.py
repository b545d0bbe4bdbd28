"""Modules that hold other modules or parameters, as a list or by name.

What they hold is registered as in any module, which is all that they know: what is added in another
way (`add_module`, an attribute) is held too.
"""

from __future__ import annotations

import operator
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import islice
from typing import Any, SupportsIndex, TypeVar, Union, cast, overload

from tilewright import Tensor
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter
from tilewright.nn.module.registry import MODULES, PARAMETERS, Registered, held

S = TypeVar("S", bound="_Stack")
L = TypeVar("L", bound="ParameterList")
T = TypeVar("T")
# Evaluated when the module is loaded, where 3.10 has no `|` between such types.
_Pairs = Union[Mapping[str, T], Iterable[tuple[str, T]]]  # noqa: UP007


class _Container(Module):
    """What is held under the name of a method is no attribute, which would hide the method."""

    def _shows(self, name: str) -> bool:
        return not hasattr(type(self), name)

    def _check_module(self, module: Any) -> None:
        who = type(self).__name__
        if module is self:
            raise ValueError(f"{who}: cannot hold itself")
        if not isinstance(module, (Module, type(None))):
            raise TypeError(f"{who}: expected a Module, got {type(module).__name__}")


class _Stack(_Container):
    """Submodules named by their position, or by names that they came with."""

    def __init__(self, modules: Iterable[Module | None]) -> None:
        self.extend(modules)

    def _pairs(self) -> list[tuple[str, Any]]:
        return list(held(self, MODULES).items())

    def _named(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """What is to be held in place of what is; names that were positions are so again."""
        if all(name == str(i) for i, name in enumerate(held(self, MODULES))):
            pairs = [(str(i), module) for i, (_, module) in enumerate(pairs)]
        return dict(pairs)

    def _free_name(self) -> str:
        names = held(self, MODULES)
        number = len(names)
        while str(number) in names:
            number += 1
        return str(number)

    def append(self: S, module: Module | None) -> S:
        """Adds a module at the end; ValueError for itself, which would never end."""
        self._check_module(module)
        self.add_module(self._free_name(), module)
        return self

    def extend(self: S, modules: Iterable[Module | None]) -> S:
        """Adds modules at the end."""
        for module in list(modules):  # which may be this one
            self.append(module)
        return self

    def insert(self, index: int, module: Module | None) -> None:
        """Puts a module before the one at `index`."""
        self._check_module(module)
        pairs = self._pairs()
        pairs.insert(index, (self._free_name(), module))
        self._modules = self._named(pairs)

    def pop(self, index: int = -1) -> Module:
        """Takes a module out."""
        module = self[index]
        del self[index]
        return module

    def __setitem__(self, index: SupportsIndex, module: Module | None) -> None:
        name = list(held(self, MODULES))[index]  # raises IndexError
        self._check_module(module)
        self._register(MODULES, name, module)

    def __delitem__(self, index: int | slice) -> None:
        pairs = self._pairs()
        del pairs[index]
        self._modules = self._named(pairs)

    def __len__(self) -> int:
        return len(held(self, MODULES))

    def __iter__(self) -> Iterator[Module]:
        return iter(list(held(self, MODULES).values()))

    @overload
    def __getitem__(self: S, index: slice) -> S: ...
    @overload
    def __getitem__(self, index: SupportsIndex) -> Module: ...
    def __getitem__(self: S, index: SupportsIndex | slice) -> Module | S:
        modules = held(self, MODULES)
        if isinstance(index, slice):
            part = type(self).__new__(type(self))
            part._modules = self._named(self._pairs()[index])
            part.training = self.training
            return part
        place, length = operator.index(index), len(modules)
        if not -length <= place < length:
            raise IndexError(f"{type(self).__name__}: index {place} is out of range for {length}")
        return cast(Module, next(islice(modules.values(), place % length, None)))

    def __iadd__(self: S, modules: Iterable[Module | None]) -> S:
        return self.extend(modules)

    def __add__(self: S, modules: Iterable[Module | None]) -> S:
        return self[:].extend(modules)


class Sequential(_Stack):
    """Calls its modules one after another; takes modules, or one dict of modules by name.

    >>> import tilewright as tw
    >>> tw.nn.Sequential(tw.nn.Flatten(), tw.nn.Linear(4, 2))(tw.ones((3, 2, 2))).shape
    (3, 2)
    """

    def __init__(self, *modules: Module | Mapping[str, Module] | None) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                _check_key("Sequential", name)
                self._check_module(module)
                self.add_module(name, module)
        else:
            super().__init__(modules)  # type: ignore[arg-type]  # append refuses what is no module

    def forward(self, x: Any) -> Any:
        for layer in self.__dict__.get(MODULES, {}).values():
            x = layer(x)
        return x

    def __mul__(self: S, times: int) -> S:
        if times < 1:
            raise ValueError(f"{type(self).__name__}: can be repeated once or more, got {times}")
        return self[:].extend(list(self) * (times - 1))

    __rmul__ = __mul__

    def __imul__(self: S, times: int) -> S:
        return self.extend(list(self) * (times - 1))


class ModuleList(_Stack):
    """A list of modules whose parameters the owner sees; has no forward of its own.

    >>> import tilewright as tw
    >>> len(tw.nn.ModuleList([tw.nn.ReLU(), tw.nn.Tanh()]))
    2
    """

    def __init__(self, modules: Iterable[Module | None] | None = ()) -> None:
        super().__init__(modules or ())


class ModuleDict(_Container):
    """Modules by name, which the owner sees; has no forward of its own.

    What is held by name is an attribute too, unless a method is called so.

    >>> import tilewright as tw
    >>> heads = tw.nn.ModuleDict({"a": tw.nn.Linear(2, 1), "b": tw.nn.Linear(2, 3)})
    >>> [name for name, _ in heads.named_parameters()]
    ['a.weight', 'a.bias', 'b.weight', 'b.bias']
    """

    def __init__(self, modules: _Pairs[Module] | None = None) -> None:
        self.update(modules or {})

    def update(self, modules: _Pairs[Module]) -> None:
        """Adds modules from a mapping or from pairs, in place of those of the same names."""
        for name, module in _pairs(modules):
            self[name] = module

    def __getitem__(self, name: str) -> Module:
        return cast(Module, held(self, MODULES)[name])

    def __setitem__(self, name: str, module: Module | None) -> None:
        _check_key("ModuleDict", name)
        self._check_module(module)
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        self._unregister(MODULES, name)

    def pop(self, name: str) -> Module:
        """Takes a module out."""
        module = self[name]
        del self[name]
        return module

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def keys(self) -> KeysView[str]:
        """Names."""
        return Registered(self, MODULES).keys()

    def values(self) -> ValuesView[Module]:
        """Modules."""
        return Registered(self, MODULES).values()

    def items(self) -> ItemsView[str, Module]:
        """Names with modules."""
        return Registered(self, MODULES).items()

    def __len__(self) -> int:
        return len(held(self, MODULES))

    def __iter__(self) -> Iterator[str]:
        return iter(held(self, MODULES))

    def __contains__(self, name: object) -> bool:
        return name in held(self, MODULES)


class _Values(_Container):
    """Parameters, and modules of parameters, under names."""

    def _held(self) -> dict[str, Any]:
        return {**held(self, PARAMETERS), **held(self, MODULES)}

    def _put(self, name: str, value: Any) -> None:
        """Tensors become parameters."""
        if isinstance(value, Module):
            self._check_module(value)
            self._vacate(MODULES, name)
            return self.add_module(name, value)
        if not isinstance(value, (Tensor, type(None))):
            who = type(self).__name__
            raise TypeError(f"{who}: expected a Parameter, got {type(value).__name__}")
        self._vacate(PARAMETERS, name)
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        self.register_parameter(name, value)

    def _take(self, name: str) -> Any:
        value = self._held()[name]
        self._unregister(PARAMETERS if name in held(self, PARAMETERS) else MODULES, name)
        return value


class ParameterList(_Values):
    """A list of parameters, which the owner sees; tensors become parameters.

    A list or dict of parameters may stand in it too, and None.

    >>> import tilewright as tw
    >>> len(tw.nn.ParameterList([tw.zeros((2,)), tw.ones((3,))]))
    2
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        self.extend(values or ())

    def append(self: L, value: Any) -> L:
        """Adds a parameter at the end."""
        self._put(str(len(self)), value)
        return self

    def extend(self: L, values: Iterable[Any]) -> L:
        """Adds parameters at the end."""
        for value in list(values):
            self.append(value)
        return self

    def pop(self, index: int = -1) -> Any:
        """Takes a parameter out."""
        values = list(self)
        value = values.pop(index)
        for i, other in enumerate(values):
            self._put(str(i), other)
        self._take(str(len(values)))
        return value

    __iadd__ = extend

    @overload
    def __getitem__(self, index: slice) -> ParameterList: ...
    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return ParameterList(list(self)[index])
        return self._held()[str(range(len(self))[index])]

    def __setitem__(self, index: SupportsIndex, value: Any) -> None:
        self._put(str(range(len(self))[index]), value)

    def __len__(self) -> int:
        """How many follow one another from 0: there may be others, under other names."""
        names = self._held()
        length = len(names)
        while length and str(length - 1) not in names:
            length -= 1
        return length

    def __iter__(self) -> Iterator[Any]:
        names = self._held()
        return iter([names[str(i)] for i in range(len(self))])

    def extra_repr(self) -> str:
        return ", ".join(f"{x.dtype} {x.shape}" for x in self if isinstance(x, Tensor))


class ParameterDict(_Values):
    """Parameters by name, which the owner sees; tensors become parameters.

    A list or dict of parameters may stand in it too, and None.

    >>> import tilewright as tw
    >>> [name for name, _ in tw.nn.ParameterDict({"scale": tw.ones((2,))}).named_parameters()]
    ['scale']
    """

    def __init__(self, parameters: _Pairs[Any] | None = None) -> None:
        self.update(parameters or {})

    def update(self, parameters: _Pairs[Any]) -> None:
        """Adds parameters from a mapping or from pairs, in place of those of the same names."""
        for name, value in _pairs(parameters):
            self[name] = value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._held():
            self[name] = value
        else:
            super().__setattr__(name, value)

    def __getitem__(self, name: str) -> Any:
        return self._held()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        _check_key("ParameterDict", name)
        self._put(name, value)

    def __delitem__(self, name: str) -> None:
        self._take(name)

    def pop(self, name: str) -> Any:
        """Takes a parameter out."""
        return self._take(name)

    def popitem(self) -> tuple[str, Any]:
        """Takes the last one out, with its name."""
        name = list(self._held())[-1]
        return name, self._take(name)

    def clear(self) -> None:
        """Takes all parameters out."""
        for name in self._held():
            self._take(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The parameter of a name, or `default` where there is none."""
        return self._held().get(name, default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The parameter of a name, which is `default` from now on where there was none."""
        if name not in self:
            self[name] = default
        return self[name]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another one with these names, and one value for all of them."""
        return ParameterDict((name, default) for name in keys)

    def copy(self) -> ParameterDict:
        """Another one with the same parameters."""
        return ParameterDict(self._held())

    def __or__(self, other: _Pairs[Any]) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: _Pairs[Any]) -> ParameterDict:
        made = ParameterDict(other)
        made.update(self.items())
        return made

    def __ior__(self, other: _Pairs[Any]) -> ParameterDict:
        self.update(other)
        return self

    def keys(self) -> KeysView[str]:
        """Names."""
        return self._held().keys()

    def values(self) -> ValuesView[Any]:
        """Parameters."""
        return self._held().values()

    def items(self) -> ItemsView[str, Any]:
        """Names with parameters."""
        return self._held().items()

    def __len__(self) -> int:
        return len(self._held())

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._held())

    def __contains__(self, name: object) -> bool:
        return name in self._held()

    def extra_repr(self) -> str:
        held_here = held(self, PARAMETERS).items()
        return ", ".join(f"{name}: {x.dtype} {x.shape}" for name, x in held_here if x is not None)


def _pairs(items: _Pairs[T]) -> Iterable[tuple[str, T]]:
    return items.items() if isinstance(items, (Mapping, ModuleDict, ParameterDict)) else items


def _check_key(container: str, name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{container}: a name is text, got {name!r}")
    if not name or "." in name:
        raise ValueError(f"{container}: a name is not empty and has no dots, got {name!r}")
