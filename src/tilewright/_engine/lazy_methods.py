"""Methods of Tensor that are functions of the package, loaded when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tilewright import _core
from tilewright._core import Tensor


class LazyMethod:
    """A method whose function takes its place on Tensor once it is asked for."""

    def __init__(self, load: Callable[[str], Any], name: str) -> None:
        self.load = load
        self.name = name

    def __get__(self, x: Tensor | None, owner: type[Tensor]) -> Any:
        function = self.load(self.name)
        setattr(Tensor, self.name, function)
        return function if x is None else function.__get__(x, owner)


class Absent:
    """A name that tensors of other libraries have and ours do not: AttributeError with ours."""

    def __init__(self, name: str, remedy: str) -> None:
        self.name = name
        self.remedy = remedy

    def __get__(self, x: Tensor | None, owner: type[Tensor]) -> Any:
        raise AttributeError(f"Tensor has no attribute {self.name!r}: {self.remedy}")


ABSENT: dict[str, str] = _core._remedies("Tensor")


def _deep_copy(x: Tensor, memo: dict[int, Any]) -> Tensor:
    from tilewright._engine.pickling import deep_copy  # noqa: PLC0415  (imported on use)

    return deep_copy(x, memo)


def install(load: Callable[[str], Any], names: Iterable[str]) -> None:
    """Gives Tensor the functions that `load` finds by name, where it has none of its own."""
    for name in names:
        if not hasattr(Tensor, name):
            setattr(Tensor, name, LazyMethod(load, name))
    setattr(Tensor, "__deepcopy__", _deep_copy)  # noqa: B010  (known to the stub as a method)
    for name, remedy in ABSENT.items():
        setattr(Tensor, name, Absent(name, remedy))
