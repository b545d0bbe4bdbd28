"""Checks of arguments that the classes of this package share."""

from __future__ import annotations

import operator
from typing import Any

import tilewright as tw
from tilewright import Generator


def whole(who: str, name: str, value: Any, smallest: int) -> int:
    """The value as an int; raises TypeError for no whole number, ValueError for a smaller one."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{who}: {name} is a whole number, got {value!r}")
    if value < smallest:
        raise ValueError(f"{who}: {name} must be at least {smallest}, got {value}")
    return operator.index(value)


def switch(who: str, name: str, value: Any) -> bool:
    """The value; raises TypeError for anything but True and False."""
    if not isinstance(value, bool):
        raise TypeError(f"{who}: {name} is True or False, got {value!r}")
    return value


def generator_of(who: str, seed: Any, generator: Any) -> Generator | None:
    """A generator made from the seed, or the one given; None for the engine's own."""
    if seed is not None and generator is not None:
        raise ValueError(f"{who}: give a seed or a generator, not both")
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(f"{who}: generator is a {type(generator).__name__}")
    if seed is None:
        return generator
    if (seed := whole(who, "seed", seed, 0)) >= 2**64:
        raise ValueError(f"{who}: seed must be below 2**64, got {seed}")
    return tw.Generator(seed)
