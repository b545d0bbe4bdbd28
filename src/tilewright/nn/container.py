"""Modules that hold a list of modules."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, TypeVar, Union, overload

from tilewright import Tensor
from tilewright.nn.module import Module
from tilewright.nn.parameter import Parameter

S = TypeVar("S", bound="_Stack")
T = TypeVar("T")
# Evaluated when the module is loaded, where 3.10 has no `|` between such types.
_Pairs = Union[Mapping[str, T], Iterable[tuple[str, T]]]  # noqa: UP007


class _Stack(Module):
    """Submodules named by their position, or by names that they came with."""

    _names: list[str] | None = None

    def __init__(self, modules: Iterable[Module]) -> None:
        self._layers: list[Module] = []
        for module in modules:
            self.append(module)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        names = self._names or map(str, range(len(self._layers)))
        yield from list(zip(names, self._layers, strict=True))

    def _set_child(self, name: str, module: Module) -> None:
        names = [name for name, _ in self.named_children()]
        if name in names:
            self[names.index(name)] = module
            return
        self.append(module)
        if self._names or name != str(len(names)):
            self._names = [*names, name]

    def append(self: S, module: Module) -> S:
        """Adds a module at the end; ValueError for itself, which would never end."""
        if not isinstance(module, Module):
            raise TypeError(
                f"{type(self).__name__}: expected a Module, got {type(module).__name__}"
            )
        if module is self:
            raise ValueError(f"{type(self).__name__}: cannot hold itself")
        self._layers.append(module)
        if self._names is not None:
            self._names = [*self._names, str(len(self._names))]
        return self

    def extend(self: S, modules: Iterable[Module]) -> S:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before the one at `index`."""
        self.append(module)
        self._layers.insert(index, self._layers.pop())
        if self._names is not None:
            self._names.insert(index, self._names.pop())

    def pop(self, index: int = -1) -> Module:
        """Takes a module out."""
        module = self._layers[index]
        del self[index]
        return module

    def __setitem__(self, index: int, module: Module) -> None:
        place = range(len(self._layers))[index]  # raises IndexError
        self.append(module)
        self._layers[place] = self._layers.pop()
        if self._names is not None:
            self._names.pop()

    def __delitem__(self, index: int | slice) -> None:
        del self._layers[index]
        if self._names is not None:
            del self._names[index]

    def __len__(self) -> int:
        return len(self._layers)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._layers)

    @overload
    def __getitem__(self: S, index: slice) -> S: ...
    @overload
    def __getitem__(self, index: int) -> Module: ...
    def __getitem__(self: S, index: int | slice) -> Module | S:
        if not isinstance(index, slice):
            return self._layers[index]
        part = type(self).__new__(type(self))
        part._layers = self._layers[index]
        part._names = self._names and self._names[index]
        part.training = self.training
        return part


class Sequential(_Stack):
    """Calls its modules one after another; takes modules, or one dict of modules by name.

    >>> import tilewright as tw
    >>> tw.nn.Sequential(tw.nn.Flatten(), tw.nn.Linear(4, 2))(tw.ones((3, 2, 2))).shape
    (3, 2)
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name in modules[0]:
                _check_key("Sequential", name)
            super().__init__(modules[0].values())
            self._names = list(modules[0])
        else:
            super().__init__(modules)  # type: ignore[arg-type]  # append refuses what is no module

    def __getattr__(self, name: str) -> Module:
        names = self.__dict__.get("_names") or ()
        if name in names:
            return self._layers[names.index(name)]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def forward(self, x: Any) -> Any:
        for layer in self._layers:
            x = layer(x)
        return x


class ModuleList(_Stack):
    """A list of modules whose parameters the owner sees; has no forward of its own.

    >>> import tilewright as tw
    >>> len(tw.nn.ModuleList([tw.nn.ReLU(), tw.nn.Tanh()]))
    2
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__(modules)


class _ByName(Module):
    """What is held by name is an attribute too, unless a method is called so."""

    _by_name: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        held = self.__dict__.get("_by_name", {})
        if name in held:
            return held[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_by_name", ()):
            self[name] = value
        else:
            super().__setattr__(name, value)


class ModuleDict(_ByName):
    """Modules by name, which the owner sees; has no forward of its own.

    >>> import tilewright as tw
    >>> heads = tw.nn.ModuleDict({"a": tw.nn.Linear(2, 1), "b": tw.nn.Linear(2, 3)})
    >>> [name for name, _ in heads.named_parameters()]
    ['a.weight', 'a.bias', 'b.weight', 'b.bias']
    """

    def __init__(self, modules: _Pairs[Module] | None = None) -> None:
        self._by_name: dict[str, Module] = {}
        self.update(modules or {})

    def named_children(self) -> Iterator[tuple[str, Module]]:
        yield from list(self._by_name.items())

    def _set_child(self, name: str, module: Module) -> None:
        self[name] = module

    def update(self, modules: _Pairs[Module]) -> None:
        """Adds modules from a mapping or from pairs, in place of those of the same names."""
        for name, module in _pairs(modules):
            self[name] = module

    def __getitem__(self, name: str) -> Module:
        return self._by_name[name]

    def __setitem__(self, name: str, module: Module) -> None:
        _check_key("ModuleDict", name)
        if not isinstance(module, Module):
            raise TypeError(f"ModuleDict: expected a Module, got {type(module).__name__}")
        if module is self:
            raise ValueError("ModuleDict: cannot hold itself")
        self._by_name[name] = module

    def __delitem__(self, name: str) -> None:
        del self._by_name[name]

    def pop(self, name: str) -> Module:
        """Takes a module out."""
        return self._by_name.pop(name)

    def clear(self) -> None:
        """Takes all modules out."""
        self._by_name.clear()

    def keys(self) -> KeysView[str]:
        """Names."""
        return self._by_name.keys()

    def values(self) -> ValuesView[Module]:
        """Modules."""
        return self._by_name.values()

    def items(self) -> ItemsView[str, Module]:
        """Names with modules."""
        return self._by_name.items()

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name


class ParameterList(Module):
    """A list of parameters, which the owner sees; tensors become parameters.

    >>> import tilewright as tw
    >>> len(tw.nn.ParameterList([tw.zeros((2,)), tw.ones((3,))]))
    2
    """

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        self._values: list[Parameter] = []
        self.extend(values or ())

    def _own_tensors(self) -> Iterator[tuple[str, Tensor]]:
        yield from ((str(i), value) for i, value in enumerate(self._values))

    def append(self, value: Tensor) -> ParameterList:
        """Adds a parameter at the end."""
        self._values.append(_as_parameter("ParameterList", value))
        return self

    def extend(self, values: Iterable[Tensor]) -> ParameterList:
        """Adds parameters at the end."""
        self._values += [_as_parameter("ParameterList", value) for value in values]
        return self

    @overload
    def __getitem__(self, index: slice) -> ParameterList: ...
    @overload
    def __getitem__(self, index: int) -> Parameter: ...
    def __getitem__(self, index: int | slice) -> Parameter | ParameterList:
        if isinstance(index, slice):
            return ParameterList(self._values[index])
        return self._values[index]

    def __setitem__(self, index: int, value: Tensor) -> None:
        self._values[index] = _as_parameter("ParameterList", value)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._values)

    def extra_repr(self) -> str:
        return ", ".join(f"{x.dtype} {x.shape}" for x in self._values)


class ParameterDict(_ByName):
    """Parameters by name, which the owner sees; tensors become parameters.

    >>> import tilewright as tw
    >>> [name for name, _ in tw.nn.ParameterDict({"scale": tw.ones((2,))}).named_parameters()]
    ['scale']
    """

    def __init__(self, parameters: _Pairs[Tensor] | None = None) -> None:
        self._by_name: dict[str, Parameter] = {}
        self.update(parameters or {})

    def _own_tensors(self) -> Iterator[tuple[str, Tensor]]:
        yield from list(self._by_name.items())

    def update(self, parameters: _Pairs[Tensor]) -> None:
        """Adds parameters from a mapping or from pairs, in place of those of the same names."""
        for name, value in _pairs(parameters):
            self[name] = value

    def __getitem__(self, name: str) -> Parameter:
        return self._by_name[name]

    def __setitem__(self, name: str, value: Tensor) -> None:
        _check_key("ParameterDict", name)
        self._by_name[name] = _as_parameter("ParameterDict", value)

    def __delitem__(self, name: str) -> None:
        del self._by_name[name]

    def pop(self, name: str) -> Parameter:
        """Takes a parameter out."""
        return self._by_name.pop(name)

    def clear(self) -> None:
        """Takes all parameters out."""
        self._by_name.clear()

    def keys(self) -> KeysView[str]:
        """Names."""
        return self._by_name.keys()

    def values(self) -> ValuesView[Parameter]:
        """Parameters."""
        return self._by_name.values()

    def items(self) -> ItemsView[str, Parameter]:
        """Names with parameters."""
        return self._by_name.items()

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def extra_repr(self) -> str:
        return ", ".join(f"{name}: {x.dtype} {x.shape}" for name, x in self._by_name.items())


def _pairs(items: _Pairs[T]) -> Iterable[tuple[str, T]]:
    return items.items() if isinstance(items, (Mapping, ModuleDict, ParameterDict)) else items


def _check_key(container: str, name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{container}: a name is text, got {name!r}")
    if not name or "." in name:
        raise ValueError(f"{container}: a name is not empty and has no dots, got {name!r}")


def _as_parameter(container: str, value: Any) -> Parameter:
    if not isinstance(value, Tensor):
        raise TypeError(f"{container}: expected a Parameter, got {type(value).__name__}")
    return value if isinstance(value, Parameter) else Parameter(value)
