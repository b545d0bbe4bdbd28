"""The schedule that waits for a measure to stop improving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.optim.lr_scheduler.schedule import (
    LRScheduler,
    check_at_least,
    check_optimizer,
    check_whole,
    values_by_group,
)
from tilewright.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a measure has not improved for more than `patience` epochs.

    `step(metrics)` is told the measure, which is to become smaller (`mode` "min") or larger
    ("max"), by `threshold` relative to the best ("rel") or absolutely ("abs"). Raises ValueError
    for a factor outside [0, 1), patience, cooldown, threshold or eps below 0 and other modes,
    TypeError where they are no numbers and for a measure that is none.
    """

    _by_group = ("min_lrs",)

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        name = "ReduceLROnPlateau"
        check_at_least(name, "factor", factor, 0)
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau: factor must be below 1, got {factor}")
        for setting, count in (("patience", patience), ("cooldown", cooldown)):
            check_whole(name, setting, count, 0)
        check_at_least(name, "threshold", threshold, 0)
        check_at_least(name, "eps", eps, 0)
        check_optimizer(name, optimizer)
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau: mode is min or max, got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: threshold_mode is rel or abs: {threshold_mode!r}")
        self.optimizer = optimizer
        self.factor = factor
        self.min_lrs = values_by_group("ReduceLROnPlateau: min_lr", min_lr, self._groups())
        self._known_groups = list(self._groups())
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0
        self.last_epoch = 0
        self._last_lr = self._rates()

    def step(self, metrics: Any) -> None:  # type: ignore[override]  # as PyTorch's
        """Goes on to the next epoch, with its measure: a number or a tensor of one."""
        if isinstance(metrics, str):
            raise TypeError(f"ReduceLROnPlateau: a measure is a number, got {metrics!r}")
        value = float(metrics)
        self.last_epoch += 1
        if self.is_better(value, self.best):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs do not count because the rate was reduced a short time ago."""
        return self.cooldown_counter > 0

    def is_better(self, value: float, best: float) -> bool:
        """Whether a measure is an improvement."""
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "abs":
            return sign * value < sign * best - self.threshold
        return sign * value < sign * (best * (1 - sign * self.threshold))

    def _take_groups(self) -> None:
        """Their present rates are all that it goes on from."""

    def _reduce(self) -> None:
        self._follow_groups()
        for group, lowest in zip(self._groups(), self.min_lrs, strict=True):
            rate = max(group["lr"] * self.factor, lowest)
            if group["lr"] - rate > self.eps:
                group["lr"] = rate
