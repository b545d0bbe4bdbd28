"""Tensors in pickles and copies: elements as one buffer, out of band where that is possible."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from tilewright import _core

_FIRST_PROTOCOL_WITH_BUFFERS = 5


def reduce(tensor: _core.Tensor, protocol: int) -> tuple[Any, ...]:
    """What `Tensor.__reduce_ex__` returns: dtype, shape, elements, requires_grad, class, name.

    Elements of another device go through the CPU and come back to where they were.
    From protocol 5 on the elements travel as a `pickle.PickleBuffer` (PEP 574), without a copy. The
    result of a recorded op is stored as a value, without the graph that it came from.
    """
    elements = _core._as_bytes(tensor.detach().cpu().contiguous())
    buffer = (
        pickle.PickleBuffer(elements)
        if protocol >= _FIRST_PROTOCOL_WITH_BUFFERS
        else bytes(memoryview(elements))
    )
    requires_grad = tensor.requires_grad and tensor.is_leaf
    arguments: tuple[Any, ...] = (
        type(tensor), buffer, tensor.dtype.name, tensor.shape, requires_grad, tensor.name
    )  # fmt: skip
    if tensor.device != "cpu":
        arguments += (tensor.device,)
    state = getattr(tensor, "__dict__", None)
    return (rebuild, arguments, dict(state)) if state else (rebuild, arguments)


def deep_copy(tensor: _core.Tensor, memo: dict[int, Any], with_grad: bool = True) -> _core.Tensor:
    """What `copy.deepcopy` makes of a tensor: its gradient is copied too, unless told otherwise."""
    function, arguments, *state = tensor.__reduce_ex__(_FIRST_PROTOCOL_WITH_BUFFERS - 1)
    copied: _core.Tensor = function(*copy.deepcopy(arguments, memo))
    memo[id(tensor)] = copied
    if state:
        vars(copied).update(copy.deepcopy(state[0], memo))
    if with_grad and tensor.is_leaf and tensor.grad is not None:
        copied.grad = copy.deepcopy(tensor.grad, memo)
    return copied


def rebuild(
    cls: type[_core.Tensor],
    buffer: Any,
    dtype: str,
    shape: tuple[int, ...],
    requires_grad: bool,
    name: str,
    device: str = "cpu",
) -> _core.Tensor:
    """The tensor over `buffer`, or over a copy of it where that cannot be written to."""
    view = memoryview(buffer)
    elements = _core.frombuffer(view, dtype=_core._dtype_named(dtype), shape=shape)
    if view.readonly or device != "cpu":
        elements = elements.copy().to(device)
    tensor = elements if cls is _core.Tensor else _core.Tensor.__new__(cls, elements)
    tensor.requires_grad = requires_grad
    if name:
        tensor.name = name
    return tensor
