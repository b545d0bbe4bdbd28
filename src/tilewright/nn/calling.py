"""Calls of modules that somebody watches: hooks, and observers who are told the module's path.

The binding calls `call_observed` and, with the error of a forward, `locate`
(binding/module_call.cpp).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright.nn.error_paths import locate
from tilewright.nn.module_hooks import call_hooked

if TYPE_CHECKING:
    from tilewright.nn.module import Module

__all__ = ["call_observed", "locate"]

# Of a thread, while a module's forward is observed: paths by id of what is below the outermost.
_running = threading.local()


def call_observed(module: Module, args: Any, kwargs: Any) -> Any:
    """The forward with its hooks, whose events carry the module's path: "Model.layers.0"."""
    if not _core._observed():
        return _forward(module, args, kwargs)
    paths: dict[int, str] | None = getattr(_running, "paths", None)
    outermost = paths is None
    if paths is None:
        paths = dict(_paths(module, type(module).__name__, set()))
    before = _core._set_module(paths.get(id(module), type(module).__name__))
    try:
        _running.paths = paths
        return _forward(module, args, kwargs)
    finally:
        _core._set_module(before)
        if outermost:
            del _running.paths


def _forward(module: Module, args: Any, kwargs: Any) -> Any:
    hooks = module._call_hooks
    if hooks is None:
        return module.forward(*args, **kwargs)
    return call_hooked(module, hooks, args, kwargs)


def _paths(module: Module, path: str, seen: set[int]) -> Iterator[tuple[int, str]]:
    seen.add(id(module))
    yield id(module), path
    for name, child in module.named_children():
        if id(child) not in seen:
            yield from _paths(child, f"{path}.{name}", seen)
