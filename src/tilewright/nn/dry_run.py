"""A copy of a model that can run without computing, and what it is called with."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter


def twin_on(model: Module, device: str) -> Module:
    """A copy without hooks; on the null device without values."""
    memo: dict[int, Any] = {}
    for module in model.modules():
        for x in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
            if device == "null" and id(x) not in memo:
                empty = tw.empty(x.shape, dtype=x.dtype, device=device)
                memo[id(x)] = (
                    Parameter(empty, x.requires_grad) if isinstance(x, Parameter) else empty
                )
        if module._call_hooks is not None:
            memo[id(module._call_hooks)] = None
    twin = copy.deepcopy(model, memo)
    for module in twin.modules():
        module.__dict__.pop("_call_hooks", None)
    return twin


def input_on(x: Any, device: str) -> Any:
    """A tensor there; a tuple or list of integers is the shape of a float32 one."""
    if isinstance(x, Tensor):
        return x.detach().to(device)
    if isinstance(x, (tuple, list)) and x and all(type(extent) is int for extent in x):
        return tw.zeros(tuple(x), device=device)
    return x


def tensors_in(value: Any) -> Iterable[Tensor]:
    """The tensors in lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
