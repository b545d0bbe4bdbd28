"""Optimisers whose step is a row of core/problems/updates.inc.

The row has the names of states and settings and the settings' defaults. A class has the order of
its arguments, what defaults it has of its own, and what it does beside the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.optim.optimizer import TORCH_WAYS, Optimizer
from tilewright.optim.settings import (
    Group,
    check_betas,
    check_finite,
    check_flag,
    check_not_negative,
)

# A default that the row has. Once the class is made, its signature has the value.
OF_ROW: Any = object()
# Settings that are two of a row's, or have another name there.
_PARTS = {
    "betas": ("beta1", "beta2"),
    "etas": ("eta_minus", "eta_plus"),
    "step_sizes": ("smallest", "largest"),
}
_NAMES_IN_ROWS = {"decoupled_weight_decay": "decoupled"}


class Row:
    """A row, as optimisers with these settings read it."""

    def __init__(self, name: str, settings: Iterable[str], adjusted: Iterable[str]) -> None:
        row = tw._core._update_row(name)
        self.name = name
        self.states = tuple(state.removesuffix("s") for state in row["states"])
        self.defaults: dict[str, Any] = row["settings"]
        self.step = _with_settings(self, {*settings} - {*adjusted}, {*adjusted})

    def default(self, setting: str) -> Any:
        """None where the row has none."""
        if parts := _PARTS.get(setting):
            return tuple(map(self.defaults.get, parts)) if parts[0] in self.defaults else None
        return self.defaults.get(_NAMES_IN_ROWS.get(setting, setting))


def _with_settings(row: Row, settings: set[str], adjusted: set[str]) -> Callable[..., None]:
    """A function of group, step, parameters, gradients and states by name that calls the op.

    It is the call that one would write by hand, and as fast. Settings in `adjusted` are arguments.
    Raises TypeError where the row has others that are not those of the group.
    """
    given: dict[str, str] = {}
    for setting in settings:
        given[_NAMES_IN_ROWS.get(setting, setting)] = f"group[{setting!r}]"
        given |= {
            part: f"group[{setting!r}][{i}]" for i, part in enumerate(_PARTS.get(setting, ()))
        }
    if missing := row.defaults.keys() - given.keys() - adjusted:
        raise TypeError(f"{row.name}: no settings for {', '.join(sorted(missing))}")
    states = "".join(f", state[{name!r}]" for name in row.states)
    own = ["lr", *row.defaults]
    arguments = "".join(f", {name}" for name in own if name in adjusted)
    passed = "".join(f", {name}={given.get(name, name)}" for name in own)
    call: Callable[..., None] = eval(
        f"lambda group, step, params, grads, state{arguments}: "
        f"op(params, grads{states}, step=step{passed})",
        {"op": getattr(tw._core, row.name)},
    )
    return call


class FusedOptimizer(Optimizer):
    """The base of optimisers whose steps are `rows`, one call for all parameters of a group.

    Of the settings, which are the arguments of `__init__`, numbers are finite and from 0, but that
    those in `signed` may be negative; flags are True or False; betas lie in [0, 1).

    Raises TypeError for settings of other types, ValueError for those out of range.
    """

    rows: tuple[str, ...] = ()  # the first one where no setting asks for another
    signed: tuple[str, ...] = ()
    # What `update` passes to the step itself, not as it is in the group.
    adjusted: tuple[str, ...] = ()
    _rows: tuple[Row, ...]
    _kinds: dict[str, type]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if "rows" in own:
            names = _settings_of(cls.__init__)
            cls._rows = tuple(Row(name, names, cls.adjusted) for name in cls.rows)
        if isinstance(init := own.get("__init__"), FunctionType):
            _fill_defaults(init, cls._rows)
        if "rows" in own:
            defaults = _defaults_of(cls.__init__)
            cls._kinds = {name: type(defaults[name]) for name in names}

    def __init__(self, params: Iterable[Tensor] | Iterable[Group], given: Group) -> None:
        """`given` are the local names of a subclass's `__init__`."""
        super().__init__(params, {name: given[name] for name in self._kinds})

    def row_of(self, group: Group) -> Row:
        """The row that steps with a group's settings."""
        return self._rows[0]

    def check_group(self, group: Group) -> None:
        name = type(self).__name__
        numbers = [setting for setting, kind in self._kinds.items() if kind is float]
        check_finite(name, group, *self.signed)
        check_not_negative(name, group, *(n for n in numbers if n not in self.signed))
        if "betas" in self._kinds:
            check_betas(name, group)
        check_flag(name, group, *(s for s, kind in self._kinds.items() if kind is bool))

    def state_names(self, group: Group) -> tuple[str, ...]:
        return self.row_of(group).states + self.numbers

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Any]],
        step: int,
    ) -> None:
        self.row_of(group).step(group, step, params, grads, state)


def _settings_of(init: Any) -> list[str]:
    """Names of an `__init__`'s arguments that change results."""
    code = init.__code__
    names = code.co_varnames[2 : code.co_argcount + code.co_kwonlyargcount]
    return [name for name in names if name not in TORCH_WAYS]


def _defaults_of(init: Any) -> dict[str, Any]:
    code, defaults = init.__code__, init.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)) | (
        init.__kwdefaults__ or {}
    )


def _fill_defaults(init: Any, rows: tuple[Row, ...]) -> None:
    """Puts the rows' values in place of OF_ROW."""

    def filled(name: str, value: Any) -> Any:
        if value is not OF_ROW:
            return value
        found = [default for row in rows if (default := row.default(name)) is not None]
        if not found:
            raise TypeError(f"{init.__qualname__}: no row has a default for {name}")
        return found[0]

    values = {name: filled(name, value) for name, value in _defaults_of(init).items()}
    by_name = init.__kwdefaults__ or {}
    init.__defaults__ = tuple(value for name, value in values.items() if name not in by_name)
    if by_name:
        init.__kwdefaults__ = {name: values[name] for name in by_name}
