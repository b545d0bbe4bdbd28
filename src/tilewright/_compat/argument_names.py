"""PyTorch's names of arguments, for functions written in Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_SAME = {"dim": "axis", "keepdim": "keepdims", "steps": "num", "end": "stop", "dims": "axes"}
# What PyTorch calls the second argument where it is not `other`.
_SECOND = {
    "addbmm": "batch1", "addmv": "mat", "addr": "vec1", "baddbmm": "batch1", "bmm": "mat2",
    "dot": "tensor", "histogram": "bins", "matrix_power": "n", "mm": "mat2", "mv": "vec",
    "outer": "vec2",
}  # fmt: skip


def other_names(function: _Function) -> _Function:
    """Takes `dim`, `keepdim`, ... for ours, `input` for the first and `other` for the second.

    Arguments that are positional only in the Array API are taken by these names as well.
    """
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    names = {other: ours for other, ours in _SAME.items() if ours in own and other not in own}
    places: dict[str, int] = {}  # of arguments that have no name but these
    for place, other in enumerate(("input", _SECOND.get(function.__name__, "other"))):
        if other in own[code.co_posonlyargcount :] or place >= code.co_argcount:
            continue
        if place < code.co_posonlyargcount:
            places[other] = place
        else:
            names[other] = own[place]

    others = names.keys() | places.keys()

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if others.isdisjoint(keywords):  # a call that uses none pays little
            return function(*args, **keywords)
        for other in names.keys() & keywords.keys():
            ours = names[other]
            if ours in keywords:
                raise TypeError(f"{function.__name__}: argument {ours!r} given twice, by two names")
            keywords[ours] = keywords.pop(other)
        for other, place in places.items():
            if other in keywords:
                if len(args) > place:
                    raise TypeError(
                        f"{function.__name__}: argument {own[place]!r} given twice, by place and "
                        "by name"
                    )
                if len(args) < place:
                    raise TypeError(f"{function.__name__}: missing argument {own[0]!r}")
                args = (*args, keywords.pop(other))
        return function(*args, **keywords)

    return call  # type: ignore[return-value]
