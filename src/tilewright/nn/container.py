"""Modules that hold a list of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, overload

from tilewright.nn.module import Module

S = TypeVar("S", bound="_Stack")


class _Stack(Module):
    """Submodules named by their position."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self._layers: list[Module] = []
        for module in modules:
            self.append(module)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        yield from ((str(i), layer) for i, layer in enumerate(self._layers))

    def append(self: S, module: Module) -> S:
        """Adds a module at the end; ValueError for itself, which would never end."""
        if not isinstance(module, Module):
            raise TypeError(
                f"{type(self).__name__}: expected a Module, got {type(module).__name__}"
            )
        if module is self:
            raise ValueError(f"{type(self).__name__}: cannot hold itself")
        self._layers.append(module)
        return self

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
        part.training = self.training
        return part


class Sequential(_Stack):
    """Calls its modules one after another.

    >>> import tilewright as tw
    >>> tw.nn.Sequential(tw.nn.Flatten(), tw.nn.Linear(4, 2))(tw.ones((3, 2, 2))).shape
    (3, 2)
    """

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

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
