"""PyTorch's names of arguments, for functions written in Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_SAME = {
    "dim": "axis", "dims": "axes", "keepdim": "keepdims", "steps": "num", "end": "stop",
}  # fmt: skip


def other_names(function: _Function) -> _Function:
    """Takes `dim`, `keepdim`, ... for ours, `input` for the first and `other` for the second."""
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    names = {other: ours for other, ours in _SAME.items() if ours in own and other not in own}
    for other, place in (("input", 0), ("other", 1)):
        if code.co_posonlyargcount <= place < code.co_argcount and other not in own:
            names[other] = own[place]

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        for other in names.keys() & keywords.keys():
            ours = names[other]
            if ours in keywords:
                raise TypeError(f"{function.__name__}: argument {ours!r} given twice, by two names")
            keywords[ours] = keywords.pop(other)
        return function(*args, **keywords)

    return call  # type: ignore[return-value]
