"""Calls of modules that somebody watches: hooks, and observers who are told the module's path.

The binding calls `call_observed` and, with the error of a forward, `locate`
(binding/autograd/module_call.cpp).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright.nn.module.error_paths import locate
from tilewright.nn.module.hooks import call_hooked
from tilewright.nn.module.registry import walk

if TYPE_CHECKING:
    from tilewright.nn.module.module import Module

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
        paths = {id(below): path for path, below in walk(module, type(module).__name__)}
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
