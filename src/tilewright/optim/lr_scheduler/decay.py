"""Schedules that multiply the learning rate epoch by epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tilewright.optim.lr_scheduler.schedule import (
    LRScheduler,
    by_group,
    check_at_least,
    check_whole,
)
from tilewright.optim.optimizer import Optimizer
from tilewright.optim.settings import check_number


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(epoch)`; one function, or a list by group.

    Raises TypeError for what is no function and for results that are no numbers, ValueError for
    another number of functions than groups and for results that are not finite.
    """

    _functions = _by_group = ("lr_lambdas",)

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = by_group("LambdaLR: lr_lambda", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [
            base_lr * factor(self.last_epoch)
            for factor, base_lr in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(LRScheduler):
    """The rate before times `lr_lambda(epoch)`; one function, or a list by group.

    Raises TypeError for what is no function and for results that are no numbers, ValueError for
    another number of functions than groups and for results that are not finite.
    """

    _functions = _by_group = ("lr_lambdas",)

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = by_group("MultiplicativeLR: lr_lambda", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._rates()
        return [
            rate * factor(self.last_epoch)
            for factor, rate in zip(self.lr_lambdas, self._rates(), strict=True)
        ]


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` epochs.

    Raises ValueError for a step_size that is no whole number from 1 and for a gamma that is not
    finite, TypeError where they are no numbers.
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        check_whole("StepLR", "step_size", step_size, 1)
        check_number("StepLR", "gamma", gamma)
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma if due else 1.0)


class MultiStepLR(LRScheduler):
    """Times `gamma` at each of the `milestones`.

    Raises ValueError for milestones that are no whole numbers from 0 and for a gamma that is not
    finite, TypeError where they are no numbers.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        for milestone in self.milestones:
            check_whole("MultiStepLR", "a milestone", milestone, 0)
        check_number("MultiStepLR", "gamma", gamma)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(self.gamma ** self.milestones.get(self.last_epoch, 0))


class ConstantLR(LRScheduler):
    """The initial rate times `factor` until epoch `total_iters`.

    Raises ValueError for a factor outside (0, 1] and for total_iters below 0, TypeError where they
    are no numbers.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        check_number("ConstantLR", "factor", factor)
        if not 0 < factor <= 1:  # the way back divides by it
            raise ValueError(f"ConstantLR: factor lies in (0, 1], got {factor}")
        check_at_least("ConstantLR", "total_iters", total_iters, 0)
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1.0 / self.factor if self.last_epoch == self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """The initial rate times a factor that goes evenly from start to end in `total_iters`.

    Raises ValueError for a start_factor outside (0, 1], an end_factor outside [0, 1] and
    total_iters below 0, TypeError where they are no numbers.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        check_number("LinearLR", "start_factor", start_factor)
        check_number("LinearLR", "end_factor", end_factor)
        check_at_least("LinearLR", "total_iters", total_iters, 0)
        if not 0 < start_factor <= 1:
            raise ValueError(f"LinearLR: start_factor lies in (0, 1], got {start_factor}")
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: end_factor lies in [0, 1], got {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self.last_epoch > self.total_iters:
            return self._rates()
        rise = (self.end_factor - self.start_factor) / self.total_iters
        before = self.start_factor + rise * (self.last_epoch - 1)
        return self._scaled(1 + rise / before)


class ExponentialLR(LRScheduler):
    """Times `gamma` every epoch.

    Raises TypeError for a gamma that is no number and ValueError for one that is not finite.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        check_number("ExponentialLR", "gamma", gamma)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(self.gamma if self.last_epoch else 1.0)


class PolynomialLR(LRScheduler):
    """The initial rate times (1 - epoch / total_iters) ** power, then 0.

    Raises ValueError for total_iters below 0 and a power that is not finite, TypeError where they
    are no numbers.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        check_at_least("PolynomialLR", "total_iters", total_iters, 0)
        check_number("PolynomialLR", "power", power)
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._rates()
        left = self.total_iters - self.last_epoch
        return self._scaled((left / (left + 1)) ** self.power)
