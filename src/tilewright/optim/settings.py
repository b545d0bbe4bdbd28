"""Settings of optimisers: the entries of a group, and checks of their values."""

from __future__ import annotations

import difflib
import numbers
import sys
from collections.abc import Iterable
from typing import Any

Group = dict[str, Any]
# What schedules of the learning rate note in groups.
_OF_SCHEDULES = frozenset(
    ("initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum", "swa_lr")
)
_LIKE = 0.8  # difflib's measure, above which a name is taken for another one misspelt


def check_names(optimizer: str, group: Iterable[str], settings: Iterable[str]) -> None:
    """Raises ValueError for names that are nearly those of settings; others are the user's own."""
    known = list(settings)
    for name in group:
        if name in known or name in _OF_SCHEDULES or name in ("params", "param_names"):
            continue
        if meant := difflib.get_close_matches(str(name), map(str, known), 1, _LIKE):
            raise ValueError(f"{optimizer}: unknown settings: {name}; did you mean {meant[0]}?")


def check_not_negative(optimizer: str, group: Group, *names: str) -> None:
    """Raises TypeError or ValueError for the first setting that is no finite number from 0."""
    check_finite(optimizer, group, *names)
    for name in names:
        if group[name] < 0:
            raise ValueError(f"{optimizer}: {name} must not be negative, got {group[name]}")


def check_finite(optimizer: str, group: Group, *names: str) -> None:
    """Raises TypeError for the first setting that is no number, ValueError for inf and NaN."""
    for name in names:
        check_number(optimizer, name, group[name])


def check_number(optimizer: str, name: str, value: Any) -> None:
    """Raises TypeError where a setting is no number, ValueError where it is not finite."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{optimizer}: {name} must be a number, got {value!r}")
    size: Any = abs(value)
    # Python compares whole numbers of any length with a float; converting them would overflow.
    if not size <= sys.float_info.max:
        raise ValueError(f"{optimizer}: {name} must be finite, got {value}")


def check_flag(optimizer: str, group: Group, *names: str) -> None:
    """Raises TypeError for the first setting that is neither True nor False."""
    for name in names:
        if not isinstance(group[name], bool):
            raise TypeError(f"{optimizer}: {name} is True or False, got {group[name]!r}")


def check_betas(optimizer: str, group: Group) -> None:
    """Raises TypeError or ValueError where "betas" are not two numbers in [0, 1)."""
    betas = group["betas"]
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ValueError(f"{optimizer}: betas are two numbers, got {betas!r}")
    for beta in betas:
        check_number(optimizer, "betas", beta)
        if not 0 <= beta < 1:
            raise ValueError(f"{optimizer}: betas lie in [0, 1), got {tuple(betas)}")
