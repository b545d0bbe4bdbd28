"""A value as messages name it. Apart from `argument_errors`, which loads Python's parser."""

from __future__ import annotations

import reprlib
from typing import Any

from tilewright import _core

_shortened = reprlib.Repr()
_shortened.maxstring = _shortened.maxother = 40


def shown(value: object) -> str:
    """A value as messages show it: short ones themselves, others by what they are.

    >>> shown([1, 2]), shown("text")
    ('[1, 2]', "'text'")
    """
    if isinstance(value, _core.Tensor):
        return f"a tensor of shape {value.shape}, {value.dtype}"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return _shortened.repr(value)
    if isinstance(value, (list, tuple)):
        return _shown_sequence(value)
    if isinstance(value, (type, _core.dtype)):
        of_kind = "class" if isinstance(value, type) else "dtype"
        return f"the {of_kind} {value.__name__ if isinstance(value, type) else value}"
    kind = type(value)
    of = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    return f"an object of type {of}{kind.__qualname__}"


def _shown_sequence(value: list[Any] | tuple[Any, ...]) -> str:
    if all(v is None or isinstance(v, (bool, int, float, complex, str)) for v in value):
        return _shortened.repr(value)
    return f"a {type(value).__name__} of {len(value)} elements"
