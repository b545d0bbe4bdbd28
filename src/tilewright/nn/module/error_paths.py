"""Errors of a layer say where in the model it is: "layers.2.conv: conv2d: ..."."""

from __future__ import annotations

from typing import Any

from tilewright.nn.module.registry import walk

_ATTRIBUTE = "_tilewright_where"


class _Where:
    """How far out an error has come: the path below `outermost` of the module that raised it."""

    def __init__(self, module: object = None, args: tuple[Any, ...] = ()) -> None:
        self.outermost = module
        self.args = args
        self.path = ""

    def __reduce__(self) -> tuple[type[_Where], tuple[()]]:
        """Errors go to other processes without the model."""
        return _Where, ()


def locate(error: Exception, module: object) -> None:
    """Notes that an error leaves the forward of `module`.

    The path grows outwards, call by call, and stands in front of the message where that is the
    error's one argument; where it is not (other arguments, a `__str__` of its own) it is a note,
    which Python shows below the message from 3.11 on. Modules that their callers do not hold as
    submodules are left out of the path.
    """
    # Not by setattr, which classes of the program may refuse.
    where: _Where | None = error.__dict__.get(_ATTRIBUTE)
    if where is None:
        error.__dict__[_ATTRIBUTE] = _Where(module, error.args)
        return
    for name, below in walk(module):
        if below is where.outermost:
            where.outermost = module
            if name:
                where.path = f"{name}.{where.path}" if where.path else name
                _tell(error, where)
            return


def _tell(error: Exception, where: _Where) -> None:
    args = where.args
    plain = type(error).__str__ is BaseException.__str__
    if plain and len(args) == 1 and isinstance(args[0], str):
        BaseException.__setattr__(error, "args", (f"{where.path}: {args[0]}",))
    elif isinstance(error, AssertionError) and not args:
        BaseException.__setattr__(error, "args", (f"in {where.path}",))
    else:
        _set_note(error, f"in {where.path}")


def _set_note(error: Exception, note: str) -> None:
    """In place of the note of a shorter path."""
    notes = [old for old in getattr(error, "__notes__", ()) if not isinstance(old, _Note)]
    error.__dict__["__notes__"] = [*notes, _Note(note)]


class _Note(str):
    """A note of ours."""

    __slots__ = ()
