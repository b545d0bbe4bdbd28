"""What a module has registered: its parameters, buffers and submodules by name, in order.

Each kind is a dict in the module's `__dict__`, which its walks read. The attribute of a name is a
second way to the same value, as quick to read as any other; `Module._register` and
`Module._unregister` are the only writers, and keep both as one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, MutableMapping, Reversible
from contextlib import contextmanager
from typing import Any, Protocol

PARAMETERS, BUFFERS, MODULES = KINDS = ("_parameters", "_buffers", "_modules")
UNSAVED = "_non_persistent_buffers_set"  # names of buffers that are no part of a state

_nothing: dict[str, Any] = {}


def held(module: Any, kind: str) -> dict[str, Any]:
    """What a module has of a kind, to be read; None stands for a name that waits for a value."""
    registered: dict[str, Any] = module.__dict__.get(kind, _nothing)
    return registered


def present(module: Any, kind: str) -> list[tuple[str, Any]]:
    """The same without names that wait. A list: other threads may register meanwhile."""
    return [(name, value) for name, value in list(held(module, kind).items()) if value is not None]


def walk(module: Any, path: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Paths and modules as registered, parents first, each once: asks no method of theirs."""
    seen = set() if seen is None else seen
    seen.add(id(module))
    yield path, module
    for name, child in present(module, MODULES):
        if id(child) not in seen:
            yield from walk(child, join_names(path, name), seen)


def join_names(prefix: str, name: str) -> str:
    """A dotted name."""
    return f"{prefix}.{name}" if prefix else name


class Registering(Protocol):
    """A module, as far as what it has registered is concerned."""

    def _register(self, kind: str, name: str, value: Any) -> None: ...
    def _unregister(self, kind: str, name: str) -> None: ...


class Registered(MutableMapping[str, Any], Reversible[str]):
    """One kind of what a module has registered: what is changed here is changed in the module."""

    __slots__ = ("_kind", "_module")

    def __init__(self, module: Registering, kind: str) -> None:
        self._module, self._kind = module, kind

    def __getitem__(self, name: str) -> Any:
        return held(self._module, self._kind)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._module._register(self._kind, name, value)

    def __delitem__(self, name: str) -> None:
        self._module._unregister(self._kind, name)

    def __iter__(self) -> Iterator[str]:
        return iter(held(self._module, self._kind))

    def __reversed__(self) -> Iterator[str]:
        return reversed(held(self._module, self._kind))

    def __len__(self) -> int:
        return len(held(self._module, self._kind))

    def __repr__(self) -> str:
        return repr(held(self._module, self._kind))

    def copy(self) -> dict[str, Any]:
        """A dict of its own."""
        return dict(self)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


def kind_of_registered(kind: str) -> property:
    """The attribute of a module that shows a kind, and takes another mapping in its place."""

    def get(module: Registering) -> Registered:
        return Registered(module, kind)

    def put(module: Registering, values: Any) -> None:
        values = dict(values)
        for name in list(held(module, kind)):
            module._unregister(kind, name)
        for name, value in values.items():
            module._register(kind, name, value)

    return property(get, put)


class _Visits(threading.local):
    def __init__(self) -> None:
        self.by_walk: dict[object, set[int]] = {}


_visits = _Visits()


@contextmanager
def visiting(walk: object, module: object, once: bool = False) -> Iterator[bool]:
    """Whether a walk of this thread is to enter a module, whose children it then calls.

    Not one that it is in already: a module may be below itself. With `once` none that it has left
    either, until the walk ends where it began.
    """
    visited = _visits.by_walk.setdefault(walk, set())
    outermost, enters = not visited, id(module) not in visited
    visited.add(id(module))
    try:
        yield enters
    finally:
        if enters and not once:
            visited.discard(id(module))
        if outermost:
            del _visits.by_walk[walk]
