"""What optimisers read from saved states: their form, numbers and tensors, checked and copied."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.foreign_arrays import as_tensor, is_array

# The kernels count steps in 64 bits with a sign.
_MOST_STEPS = 2**63 - 2


def parts_of(optimizer: str, state_dict: Any) -> tuple[list[Mapping[str, Any]], Mapping[Any, Any]]:
    """Groups and states of a saved state, checked for their form."""
    where = f"{optimizer}: load_state_dict"
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"{where}: expected a dict, got {type(state_dict).__name__}")
    for key, kind in (("param_groups", (list, tuple)), ("state", Mapping)):
        if not isinstance(state_dict.get(key), kind):
            raise ValueError(f"{where}: {key!r} is missing or has another form")
    groups, states = state_dict["param_groups"], state_dict["state"]
    for i, group in enumerate(groups):
        if not isinstance(group, Mapping) or not isinstance(group.get("params"), (list, tuple)):
            raise ValueError(f"{where}: group {i} has no list 'params'")
    numbers_of_all = [number for group in groups for number in group["params"]]
    if not all(type(number) is int for number in numbers_of_all):
        raise ValueError(f"{where}: 'params' lists numbers of parameters")
    known = set(numbers_of_all)
    if len(known) != len(numbers_of_all):
        raise ValueError(f"{where}: 'params' lists a parameter twice")
    for key, state in states.items():
        if type(key) is int and (key not in known or not isinstance(state, Mapping)):
            raise ValueError(f"{where}: state of {key!r}: no such parameter, or no dict")
    return groups, states


def steps_of(where: str, value: Any) -> int:
    """A number of steps; PyTorch keeps it as a tensor of one float."""
    if type(value) is int and 0 <= value <= _MOST_STEPS:
        return value
    number = value
    if is_array(value) and (tensor := as_tensor(value)).size == 1:
        number = tensor.item()
    whole = type(number) is int or (isinstance(number, float) and number.is_integer())
    if not whole or not 0 <= number <= _MOST_STEPS:
        raise ValueError(f"{where} is a whole number from 0, got {value!r}")
    return int(number)


def number_of(where: str, value: Any) -> float:
    """A state of one number, as such or as a tensor."""
    if is_array(value):
        tensor = as_tensor(value)
        if tensor.size != 1:
            raise ValueError(f"{where}: shape {tensor.shape} does not fit ()")
        value = tensor.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{where} is a number, got {value!r}")
    return float(value)


def tensor_of(where: str, value: Any, own: Tensor, param_dtype: tw.dtype) -> Tensor:
    """A copy of a saved tensor that fits the optimiser's `own`, in its type and on its device."""
    if value is None:
        raise ValueError(f"{where} is missing")
    try:
        tensor = as_tensor(value)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from None
    if tensor.shape != own.shape:
        raise ValueError(f"{where}: shape {tensor.shape} does not fit {own.shape}")
    # PyTorch keeps the state of a bfloat16 parameter in bfloat16.
    if tensor.dtype not in (own.dtype, param_dtype):
        raise ValueError(f"{where}: {tensor.dtype.name} does not fit {own.dtype.name}")
    return tensor.detach().to(own.device).astype(own.dtype).copy()


def copied(value: Any, device: Any = None) -> Any:
    """A copy of what a state holds; arrays become tensors, on `device` where one is given."""
    if is_array(value):
        tensor = as_tensor(value).detach().copy()
        return tensor if device is None else tensor.to(device)
    if isinstance(value, Mapping):
        return {key: copied(each, device) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(copied(each, device) for each in value)
    return copy.deepcopy(value)
