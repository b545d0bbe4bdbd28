"""Schedules made of others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tilewright.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tilewright.optim.lr_scheduler.schedule import LRScheduler, check_state, check_whole
from tilewright.optim.optimizer import Optimizer


class SequentialLR(LRScheduler):
    """One schedule after the other: at each of the `milestones` the next one starts afresh.

    Raises ValueError for no schedules, another number of milestones than one less, milestones that
    do not rise, schedules of another optimiser and a ReduceLROnPlateau among them, TypeError for
    what is no schedule and for milestones that are no numbers.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        _check_of_one("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: {len(schedulers)} schedules need {len(schedulers) - 1} milestones, "
                f"got {len(milestones)}"
            )
        for milestone in milestones:
            check_whole("SequentialLR", "a milestone", milestone, 0)
        if any(a > b for a, b in pairwise(milestones)):
            raise ValueError(f"SequentialLR: milestones must rise, got {list(milestones)}")
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.optimizer = optimizer
        self._know_groups()
        self._restart()
        self.last_epoch = last_epoch + 1

    def step(self) -> None:
        """Goes on to the next epoch."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        current = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            current._restart()
        else:
            current.step()
        self._last_lr = self._rates()

    def _begin(self) -> None:
        self.last_epoch = 0
        self._schedulers[bisect_right(self._milestones, 0)]._restart()
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": _states(self._schedulers)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        _load_states(type(self).__name__, self._schedulers, state_dict)
        for name in ("last_epoch", "_last_lr", "_milestones"):
            setattr(self, name, state_dict[name])


class ChainedScheduler(LRScheduler):
    """Several schedules at once, each changing the rates that the one before has set.

    Raises ValueError for no schedules, for schedules of several optimisers and a ReduceLROnPlateau
    among them, TypeError for what is no schedule.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        first = schedulers[0] if schedulers else None
        _check_of_one(
            "ChainedScheduler", schedulers, optimizer or getattr(first, "optimizer", None)
        )
        self._schedulers = list(schedulers)
        self.optimizer = schedulers[0].optimizer
        self._know_groups()
        self._last_lr = self._rates()

    def step(self) -> None:
        """Goes on to the next epoch of all."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()

    def _begin(self) -> None:
        for scheduler in self._schedulers:
            scheduler._begin()
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        return {"_last_lr": self._last_lr, "_schedulers": _states(self._schedulers)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        _load_states(type(self).__name__, self._schedulers, state_dict)
        self._last_lr = state_dict["_last_lr"]


def _check_of_one(name: str, schedulers: Sequence[LRScheduler], optimizer: Any) -> None:
    if not schedulers:
        raise ValueError(f"{name}: no schedules")
    for i, scheduler in enumerate(schedulers):
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(f"{name}: {i} is a {type(scheduler).__name__}, not a schedule")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(f"{name}: {i} is a ReduceLROnPlateau, whose steps need a measure")
        if scheduler.optimizer is not optimizer:
            raise ValueError(f"{name}: schedule {i} belongs to another optimiser")


def _states(schedulers: Sequence[LRScheduler]) -> list[dict[str, Any]]:
    return [scheduler.state_dict() for scheduler in schedulers]


def _load_states(
    name: str, schedulers: Sequence[LRScheduler], state_dict: Mapping[str, Any]
) -> None:
    check_state(name, state_dict)
    states = state_dict.get("_schedulers", ())
    if len(states) != len(schedulers):
        raise ValueError(
            f"{name}: load_state_dict: {len(states)} schedules do not fit {len(schedulers)}"
        )
    for scheduler, state in zip(schedulers, states, strict=True):
        scheduler.load_state_dict(state)
