"""Loading a saved state into tensors that are there: all checks come before the first change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright.foreign import as_tensor


class KeyDifferences(NamedTuple):
    """Names that a loaded state lacks, and names that the module lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def load_state(
    module: str,
    own: Mapping[str, Tensor],
    state: Mapping[str, Any],
    strict: bool,
    found: Sequence[str] = (),
    put: Callable[[str, Tensor], None] | None = None,
) -> KeyDifferences:
    """Copies the values of `state` into those of `own` with the same names.

    `found` are problems that are known already; `put` takes the place of copying.
    """
    _check_is_state(module, state)
    keys = KeyDifferences(
        [name for name in own if name not in state],
        [name for name in state if name not in own],
    )
    problems = [*found, *(_key_problems(keys) if strict else [])]
    values = _readable({name: state[name] for name in own if name in state}, problems)
    problems += _value_problems(own, values, copied=put is None)
    if problems:
        raise ValueError(f"load_state_dict: {module}: " + "; ".join(problems))
    with tw.no_grad():
        for name, value in values.items():
            if put:
                put(name, value)
            elif value.size:
                own[name].copy_(value)
    return keys


def _check_is_state(module: str, state: Any) -> None:
    if not isinstance(state, Mapping):
        raise TypeError(
            f"load_state_dict: {module}: expected a dict of tensors by name, "
            f"got {type(state).__name__}"
        )
    for name in state:
        if not isinstance(name, str):
            raise TypeError(f"load_state_dict: {module}: {name!r} cannot name a tensor")


def _key_problems(keys: KeyDifferences) -> list[str]:
    problems = []
    if keys.missing_keys:
        problems.append("missing: " + ", ".join(keys.missing_keys))
    if keys.unexpected_keys:
        problems.append("unexpected: " + ", ".join(keys.unexpected_keys))
    return problems


def _readable(state: Mapping[str, Any], problems: list[str]) -> dict[str, Tensor]:
    """The values as tensors; those that are none are added to the problems."""
    values = {}
    for name, value in state.items():
        try:
            values[name] = as_tensor(value)
        except TypeError as error:
            problems.append(f"{name}: {error}")
    return values


def _value_problems(
    own: Mapping[str, Tensor], state: Mapping[str, Tensor], copied: bool
) -> list[str]:
    problems = []
    for name, value in own.items():
        if name not in state:
            continue
        if state[name].shape != value.shape:
            problems.append(f"{name}: shape {state[name].shape} does not fit {value.shape}")
        elif not (_converts if copied else _of_one_kind)(state[name].dtype, value.dtype):
            problems.append(f"{name}: {state[name].dtype.name} does not fit {value.dtype.name}")
        elif copied and value.size and tw._core._is_read_only(value):
            problems.append(f"{name}: the module's tensor is read-only; give it a copy() first")
    return problems


def _of_one_kind(source: tw.dtype, target: tw.dtype) -> bool:
    return source.kind == target.kind


def _converts(source: tw.dtype, target: tw.dtype) -> bool:
    try:
        tw.empty((0,), dtype=target).copy_(tw.empty((0,), dtype=source))
    except TypeError:
        return False
    return True
