"""Schedules along cosines, in one cycle and in many."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.optim.lr_scheduler.schedule import LRScheduler, check_optimizer, values_by_group
from tilewright.optim.optimizer import Optimizer
from tilewright.optim.settings import Group, check_number


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to `eta_min` along half a cosine of `T_max` epochs, and back.

    Source: I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts",
    ICLR 2017, without the restarts. Raises ValueError for a T_max that is not above 0 and an
    eta_min that is not finite, TypeError where they are no numbers.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: float,  # noqa: N803  (PyTorch's name)
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        check_number("CosineAnnealingLR", "T_max", T_max)
        check_number("CosineAnnealingLR", "eta_min", eta_min)
        if not T_max > 0:
            raise ValueError(f"CosineAnnealingLR: T_max must be above 0, got {T_max}")
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        epoch = self.last_epoch
        if epoch == 0:
            return self._rates()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # from the lowest point up
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                rate + (base_lr - self.eta_min) * rise
                for base_lr, rate in zip(self.base_lrs, self._rates(), strict=True)
            ]
        now = 1 + math.cos(math.pi * epoch / self.T_max)
        before = 1 + math.cos(math.pi * (epoch - 1) / self.T_max)
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in self._rates()]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines from the initial rate to `eta_min`, each `T_mult` times as long as the one
    before; the first takes `T_0` epochs.

    `step(epoch)` takes fractions of epochs. Source: I. Loshchilov and F. Hutter, "SGDR: stochastic
    gradient descent with warm restarts", ICLR 2017. Raises ValueError for a T_0 or T_mult that is
    no whole number from 1, an eta_min that is not finite and epochs below 0, TypeError where
    eta_min is no number.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803  (PyTorch's names)
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"CosineAnnealingWarmRestarts: {name} is a whole number from 1, got {value!r}"
                )
        check_number("CosineAnnealingWarmRestarts", "eta_min", eta_min)
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        if last_epoch >= 0:
            self._place(last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base_lr - self.eta_min) * share for base_lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next epoch, or to the one given."""
        if epoch is not None and epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: epoch is at least 0, got {epoch}")
        if epoch is not None or self.last_epoch < 0:
            self._place(epoch or 0)
            self._advance(math.floor(epoch or 0))
            return
        self.T_cur += 1
        if self.T_cur >= self.T_i:
            self.T_cur %= self.T_i
            self.T_i *= self.T_mult
        self._advance(self.last_epoch + 1)

    def _place(self, epoch: float) -> None:
        """The cycle of an epoch, and how far it is in there."""
        self.T_i, self.T_cur = self.T_0, epoch
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
            return
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult


class OneCycleLR(LRScheduler):
    """Up from `max_lr / div_factor` to `max_lr`, then down to the start / `final_div_factor`.

    The momentum (or first beta) goes the other way between `max_momentum` and `base_momentum`. With
    `three_phase` the rate first comes back to its start. Give `total_steps`, or `epochs` and
    `steps_per_epoch`. Source: L. Smith and N. Topin, "Super-convergence: very fast training of
    neural networks using large learning rates" (2017). Raises ValueError for steps that are no
    whole numbers from 1, a pct_start outside [0, 1], factors that are not above 0, another
    anneal_strategy, an optimiser without momentum and steps behind the last, TypeError for rates
    and factors that are no numbers.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None and epochs is not None and steps_per_epoch is not None:
            total_steps = epochs * steps_per_epoch
        if not isinstance(total_steps, int) or total_steps < 1:
            raise ValueError(
                "OneCycleLR: give total_steps, or epochs and steps_per_epoch, from 1; got "
                f"{total_steps}, {epochs} and {steps_per_epoch}"
            )
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: pct_start lies in [0, 1], got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy is cos or linear: {anneal_strategy!r}")
        for name, factor in (("div_factor", div_factor), ("final_div_factor", final_div_factor)):
            check_number("OneCycleLR", name, factor)
            if not factor > 0:
                raise ValueError(f"OneCycleLR: {name} must be above 0, got {factor}")
        check_optimizer("OneCycleLR", optimizer)
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        self.phases = _one_cycle_phases(total_steps, pct_start, three_phase)
        groups = optimizer.param_groups
        if last_epoch == -1:
            self._note_bounds(groups, max_lr, base_momentum, max_momentum)
            for group in groups:
                group["initial_lr"] = group["max_lr"] / div_factor
                group["min_lr"] = group["initial_lr"] / final_div_factor
        super().__init__(optimizer, last_epoch)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """As `LRScheduler.load_state_dict`; PyTorch's has other names for two of the parts."""
        given = dict(state_dict)
        if "_anneal_func_type" in given:
            given["anneal_strategy"] = given["_anneal_func_type"]
        if "_schedule_phases" in given:
            given["phases"] = [tuple(phase.values()) for phase in given["_schedule_phases"]]
        super().load_state_dict(given)

    def _note_bounds(
        self,
        groups: list[Group],
        max_lr: float | Sequence[float],
        base_momentum: float | Sequence[float],
        max_momentum: float | Sequence[float],
    ) -> None:
        if self.cycle_momentum:
            _check_momentum("OneCycleLR", groups)
        bounds = {"max_lr": max_lr}
        if self.cycle_momentum:
            bounds |= {"base_momentum": base_momentum, "max_momentum": max_momentum}
        for name, value in bounds.items():
            values = values_by_group(f"OneCycleLR: {name}", value, groups)
            for group, of_group in zip(groups, values, strict=True):
                group[name] = of_group

    def _take_groups(self) -> None:
        momenta = ("base_momentum", "max_momentum") if self.cycle_momentum else ()
        self._note_in_groups("max_lr", "initial_lr", "min_lr", *momenta)
        super()._take_groups()

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: step {step} of {self.total_steps} in all")
        ends = [phase[0] for phase in self.phases]
        at = min(bisect_left(ends, step), len(ends) - 1)
        start = ends[at - 1] if at else 0.0
        bounds = self.phases[at][1:]
        share = (step - start) / (ends[at] - start) if ends[at] != start else 1.0
        if self.cycle_momentum:
            for group in self._groups():
                _set_momentum(group, self._between(group, bounds[2], bounds[3], share))
        return [self._between(group, bounds[0], bounds[1], share) for group in self._groups()]

    def _between(self, group: Group, start: str, end: str, share: float) -> float:
        a, b = group[start], group[end]
        if self.anneal_strategy == "linear":
            return (b - a) * share + a  # type: ignore[no-any-return]  # settings are numbers
        return b + (a - b) / 2 * (1 + math.cos(math.pi * share))  # type: ignore[no-any-return]


class CyclicLR(LRScheduler):
    """From `base_lr` up to `max_lr` in `step_size_up` steps and back in `step_size_down`, for ever.

    `mode` "triangular" repeats that; "triangular2" halves the height with each cycle; "exp_range"
    scales it by `gamma` at each step. In their place `scale_fn` gives the share of the height, from
    the number of the cycle, from 1, or with `scale_mode` "iterations" from that of the step. The
    momentum (or first beta) goes the other way between `max_momentum` and `base_momentum`. Source:
    L. Smith, "Cyclical learning rates for training neural networks", WACV 2017.

    Raises ValueError for steps that are not above 0, another mode or scale_mode and an optimiser
    without momentum, TypeError for rates and steps that are no numbers.

    >>> import tilewright as tw
    >>> optimizer = tw.optim.SGD([tw.zeros((2,), requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = tw.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2)
    >>> rates = [(schedule.get_last_lr()[0], schedule.step())[0] for _ in range(6)]; rates
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.5]
    """

    _functions = ("_scale_fn_custom",)

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[int], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer("CyclicLR", optimizer)
        down = step_size_up if step_size_down is None else step_size_down
        _check_cycle(step_size_up, down, mode, scale_mode, scale_fn is not None)
        groups = optimizer.param_groups
        base_lrs = values_by_group("CyclicLR: base_lr", base_lr, groups)
        self.max_lrs = values_by_group("CyclicLR: max_lr", max_lr, groups)
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn  # its name in PyTorch's states
        self.scale_mode = "iterations" if scale_fn is None and mode == "exp_range" else scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _check_momentum("CyclicLR", groups)
            what = "CyclicLR: base_momentum", "CyclicLR: max_momentum"
            self.base_momentums = values_by_group(what[0], base_momentum, groups)
            self.max_momentums = values_by_group(what[1], max_momentum, groups)
        if last_epoch == -1:
            for group, lr in zip(groups, base_lrs, strict=True):
                group["lr"] = group["initial_lr"] = lr
        super().__init__(optimizer, last_epoch)

    @property
    def _by_group(self) -> tuple[str, ...]:  # type: ignore[override]
        momenta = ("base_momentums", "max_momentums") if self.cycle_momentum else ()
        return ("max_lrs", *momenta)

    def _take_groups(self) -> None:
        self._note_in_groups("initial_lr")
        super()._take_groups()

    def get_lr(self) -> list[float]:
        cycles, place = divmod(self.last_epoch / self.total_size, 1.0)
        up, down = self.step_ratio, 1 - self.step_ratio
        height = place / up if place <= up else (1 - place) / down
        height *= self._scale(int(cycles) + 1)
        if self.cycle_momentum:
            ends = zip(self._groups(), self.max_momentums, self.base_momentums, strict=True)
            for group, most, least in ends:
                _set_momentum(group, most + (least - most) * height)
        ends_of_rates = zip(self.base_lrs, self.max_lrs, strict=True)
        return [base + (most - base) * height for base, most in ends_of_rates]

    def _scale(self, cycle: int) -> float:
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(cycle if self.scale_mode == "cycle" else self.last_epoch)
        by_mode = {"triangular2": 0.5 ** (cycle - 1), "exp_range": self.gamma**self.last_epoch}
        return by_mode.get(self.mode, 1.0)


def _check_cycle(up: int, down: int, mode: str, scale_mode: str, has_function: bool) -> None:
    for name, size in (("step_size_up", up), ("step_size_down", down)):
        check_number("CyclicLR", name, size)
        if not size > 0:
            raise ValueError(f"CyclicLR: {name} must be above 0, got {size}")
    if mode not in ("triangular", "triangular2", "exp_range") and not has_function:
        raise ValueError(
            f"CyclicLR: mode is 'triangular', 'triangular2' or 'exp_range', got {mode!r}"
        )
    if scale_mode not in ("cycle", "iterations"):
        raise ValueError(f"CyclicLR: scale_mode is 'cycle' or 'iterations', got {scale_mode!r}")


_Phase = tuple[float, str, str, str, str]


def _one_cycle_phases(total_steps: int, pct_start: float, three_phase: bool) -> list[_Phase]:
    """The last step of each phase, and what rate and momentum go from and to."""
    top = pct_start * total_steps - 1
    up = (top, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    last = total_steps - 1
    if not three_phase:
        return [up, (last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    back = (2 * top, "max_lr", "initial_lr", "base_momentum", "max_momentum")
    return [up, back, (last, "initial_lr", "min_lr", "max_momentum", "max_momentum")]


def _check_momentum(schedule: str, groups: list[Group]) -> None:
    if not all("momentum" in group or "betas" in group for group in groups):
        raise ValueError(
            f"{schedule}: the optimiser has no momentum to cycle; give cycle_momentum=False"
        )


def _set_momentum(group: Group, momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
