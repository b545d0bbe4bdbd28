"""The base of schedules of the learning rate."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.optim.optimizer import Optimizer
from tilewright.optim.settings import Group, check_number


class LRScheduler:
    """Base class: `get_lr` says what follows from the groups' present rates and `last_epoch`.

    Making a schedule calls `step`, which sets the rates of its first epoch, 0, and then goes on to
    the next one. With `last_epoch` given it goes on from there, with the "initial_lr" that groups
    hold. Groups that the optimiser gets later follow from then on, from the rates they have.

    `state_dict` leaves out functions and keeps the attributes of other callable objects, such as
    factors that are classes; loading sets those and never replaces a function.

    Every schedule raises TypeError for what is no optimiser and for settings that are no numbers,
    ValueError for settings out of range, for lists that do not have one value for each group and
    for rates that are not finite, and KeyError where `last_epoch` is given and groups hold no
    "initial_lr".

    >>> import tilewright as tw
    >>> optimizer = tw.optim.SGD([tw.zeros((2,), requires_grad=True)], lr=1.0)
    >>> schedule = tw.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    >>> schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    optimizer: Optimizer
    last_epoch: int
    base_lrs: list[float]
    _last_lr: list[float]
    _functions: tuple[str, ...] = ()  # attributes that are functions of the user's
    _by_group: tuple[str, ...] = ()  # lists by group beside `base_lrs`, settings in plural
    _known_groups: list[Group]  # those that the lists belong to

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(type(self).__name__, optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: group {i} has no 'initial_lr' to go on from epoch "
                    f"{last_epoch}; load the optimiser's state first"
                )
        self._know_groups()
        self.last_epoch = last_epoch
        self.step()

    def get_lr(self) -> list[float]:
        """The rates of epoch `last_epoch`, by group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates that were set last, by group."""
        return list(self._last_lr)

    def step(self) -> None:
        """Goes on to the next epoch; to be called after the optimiser's step."""
        self._advance(self.last_epoch + 1)

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser and functions."""
        kept = {name: value for name, value in vars(self).items() if _is_saved(name, value)}
        return kept | {name: _state_of(getattr(self, name)) for name in self._functions}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes a state, also that of the same schedule of PyTorch.

        Raises TypeError for what is no dict and ValueError where it lacks a part.
        """
        check_state(type(self).__name__, state_dict)
        own = [name for name in self.state_dict() if name not in self._functions]
        missing = [name for name in own if name not in state_dict]
        if missing:
            raise ValueError(f"{type(self).__name__}: load_state_dict: missing {missing}")
        for name in self._functions:
            _load_into(getattr(self, name), state_dict.get(name))
        vars(self).update({name: state_dict[name] for name in own})
        self._known_groups = list(self._groups())

    def _advance(self, epoch: int) -> None:
        self._follow_groups()
        self.last_epoch = epoch
        rates = self.get_lr()
        for lr in rates:
            check_number(type(self).__name__, "lr", lr)
        for group, lr in zip(self._groups(), rates, strict=True):
            group["lr"] = lr
        self._last_lr = self._rates()

    def _know_groups(self) -> None:
        self._known_groups = list(self._groups())
        self.base_lrs = [group["initial_lr"] for group in self._known_groups]

    def _follow_groups(self) -> None:
        """Joins lists by group to the groups that there are now, in their order."""
        groups, known = self._groups(), self._known_groups
        if len(groups) == len(known) and all(map(operator.is_, groups, known)):
            return
        places = {id(group): i for i, group in enumerate(known)}
        kept = [places[id(group)] for group in groups if id(group) in places]
        if kept or len(groups) != len(known):  # else the same ones anew, as in a copy
            self._join_lists(kept or list(range(len(known))))
        self._known_groups = list(groups)

    def _join_lists(self, kept: list[int]) -> None:
        lists = {name: getattr(self, name) for name in self._by_group}
        joined = {
            name: self._for_groups(name[:-1], [values[i] for i in kept if i < len(values)])
            for name, values in lists.items()
        }
        self._take_groups()
        vars(self).update(joined)

    def _take_groups(self) -> None:
        """What depends on the groups, for those that the optimiser has now."""
        base_lrs = dict(zip(map(id, self._known_groups), self.base_lrs, strict=False))
        for group in self._groups():
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [
            base_lrs[id(group)] if id(group) in base_lrs else group["initial_lr"]
            for group in self._groups()
        ]

    def _for_groups(self, what: str, values: list[Any]) -> list[Any]:
        """Values by group for the groups that there are now, where all have the same."""
        count = len(self._groups())
        if len(values) == count:
            return values
        if any(value != values[0] for value in values):
            raise ValueError(
                f"{type(self).__name__}: {len(values)} values of {what} for {count} groups; make "
                "the schedule anew"
            )
        return values[:1] * count

    def _note_in_groups(self, *names: str) -> None:
        """The same for values that groups hold themselves."""
        for name in names:
            held = [group[name] for group in self._groups() if name in group]
            values = iter(self._for_groups(name, held))
            for group in self._groups():
                group.setdefault(name, next(values))

    def _restart(self) -> None:
        """To epoch 0 from the initial rates."""
        self._follow_groups()
        for group, base_lr in zip(self._groups(), self.base_lrs, strict=True):
            group["lr"] = base_lr
        self._begin()

    def _begin(self) -> None:
        """To epoch 0 from the present rates."""
        self.last_epoch = -1
        self.step()

    def _groups(self) -> list[Group]:
        return self.optimizer.param_groups

    def _rates(self) -> list[float]:
        return [group["lr"] for group in self._groups()]

    def _scaled(self, factor: float) -> list[float]:
        return [rate * factor for rate in self._rates()]


# Callables without a state of their own that is worth keeping.
_FUNCTIONS = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    functools.partial,
    type,
)


def _is_saved(name: str, value: Any) -> bool:
    if name in ("optimizer", "_schedulers", "_known_groups"):
        return False
    items = value if isinstance(value, list) else [value]
    return not any(isinstance(item, _FUNCTIONS) for item in items)


def _state_of(function: Any) -> Any:
    """The attributes of a callable object, None for a function; of a list each one's."""
    if isinstance(function, list):
        return [_state_of(each) for each in function]
    if function is None or isinstance(function, _FUNCTIONS) or not hasattr(function, "__dict__"):
        return None
    return dict(vars(function))


def _load_into(function: Any, state: Any) -> None:
    if isinstance(function, list):
        for each, of_each in zip(function, state or [], strict=False):
            _load_into(each, of_each)
    elif isinstance(state, Mapping) and _state_of(function) is not None:
        vars(function).update(state)


def values_by_group(what: str, value: Any, groups: Sequence[Group]) -> list[float]:
    values = list(value) if isinstance(value, (list, tuple)) else [value] * len(groups)
    if len(values) != len(groups):
        raise ValueError(f"{what}: {len(values)} values for {len(groups)} groups")
    schedule, _, setting = what.partition(": ")
    for each in values:
        check_number(schedule, setting, each)
    return values


def check_optimizer(schedule: str, optimizer: Any) -> None:
    """Raises TypeError for what is no optimiser."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{schedule}: expected an Optimizer, got {type(optimizer).__name__}")


def check_state(schedule: str, state_dict: Any) -> None:
    """Raises TypeError for what is no dict."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            f"{schedule}: load_state_dict: expected a dict, got {type(state_dict).__name__}"
        )


def check_at_least(schedule: str, setting: str, value: Any, least: float) -> None:
    """Raises TypeError where a setting is no number, ValueError where it is not finite or less."""
    check_number(schedule, setting, value)
    if value < least:
        raise ValueError(f"{schedule}: {setting} must be at least {least}, got {value}")


def check_whole(schedule: str, setting: str, value: Any, least: int) -> None:
    """The same for whole numbers; floats that are whole pass."""
    check_at_least(schedule, setting, value, least)
    if value != int(value):
        raise ValueError(f"{schedule}: {setting} is a whole number, got {value}")


def by_group(
    what: str,
    value: Callable[[int], float] | Sequence[Callable[[int], float]],
    optimizer: Optimizer,
) -> list[Callable[[int], float]]:
    check_optimizer(what.partition(":")[0], optimizer)
    count = len(optimizer.param_groups)
    values: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise ValueError(f"{what}: {len(values)} functions for {count} groups")
    for each in values:
        if not callable(each):
            raise TypeError(f"{what}: expected a function, got {type(each).__name__}")
    return values
