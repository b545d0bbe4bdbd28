"""Other libraries' names of arguments, for functions written in Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from tilewright import _core

_Function = TypeVar("_Function", bound=Callable[..., Any])


def other_names(function: _Function) -> _Function:
    """Takes `dim`, `input`, ... for our names of arguments, as the engine's functions do.

    Arguments that are positional only in the Array API are taken by these names as well.
    """
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    others: dict[str, str] = _core._other_arguments(function.__name__, own, code.co_posonlyargcount)
    places = {  # of arguments that have no name but these, in their order
        other: place
        for place, ours in enumerate(own[: code.co_posonlyargcount])
        for other in others
        if others[other] == ours
    }
    names = {other: ours for other, ours in others.items() if other not in places}
    taken = frozenset(others)

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if taken.isdisjoint(keywords):  # a call that uses none pays little
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

    call.other_arguments = others  # type: ignore[attr-defined]  # as the engine's functions have it
    return call  # type: ignore[return-value]
