"""Schedules of the learning rate against PyTorch's, value by value."""

from __future__ import annotations

import copy
import functools
import math

import numpy as np
import pytest

import tilewright as tw
from tilewright import optim
from tilewright.optim import lr_scheduler as ours
from tilewright.optim import swa_utils

torch = pytest.importorskip("torch")
theirs = torch.optim.lr_scheduler

EPOCHS = 40
# How a schedule is made from a library's module and an optimizer.
CASES = {
    "step": lambda s, o: s.StepLR(o, 3, gamma=0.5),
    "multistep": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 11], gamma=0.5),
    "constant": lambda s, o: s.ConstantLR(o, factor=0.25, total_iters=4),
    "linear": lambda s, o: s.LinearLR(o, start_factor=0.1, end_factor=0.8, total_iters=6),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "polynomial": lambda s, o: s.PolynomialLR(o, total_iters=7, power=1.7),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, T_max=6, eta_min=0.01),
    "cosine-none": lambda s, o: s.CosineAnnealingLR(o, T_max=50),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=4, T_mult=2, eta_min=0.01),
    "restarts-even": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=5),
    "lambda": lambda s, o: s.LambdaLR(o, lambda epoch: 1 / (1 + epoch)),
    "lambdas": lambda s, o: s.LambdaLR(o, [lambda epoch: 0.5**epoch, lambda epoch: 1.0]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95 + epoch / 1000),
    "one-cycle": lambda s, o: s.OneCycleLR(o, max_lr=1.0, total_steps=EPOCHS + 1),
    "one-cycle-linear": lambda s, o: s.OneCycleLR(
        o, max_lr=[1.0, 2.0], epochs=7, steps_per_epoch=6, anneal_strategy="linear"
    ),
    "one-cycle-three": lambda s, o: s.OneCycleLR(
        o, max_lr=1.0, total_steps=50, three_phase=True, pct_start=0.2
    ),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.1, 1.0, step_size_up=4),
    "cyclic-uneven": lambda s, o: s.CyclicLR(
        o, [0.1, 0.2], [1.0, 2.0], 3, 7, "triangular2", base_momentum=0.6, max_momentum=[0.9, 0.8]
    ),
    "cyclic-decay": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 5, 2, mode="exp_range", gamma=0.97),
    "cyclic-function": lambda s, o: s.CyclicLR(
        o, 0.1, 1.0, 4, scale_fn=lambda cycle: 1 / cycle, cycle_momentum=False
    ),
    "cyclic-function-of-steps": lambda s, o: s.CyclicLR(
        o, 0.1, 1.0, 4, scale_fn=lambda step: 0.9**step, scale_mode="iterations"
    ),
    "sequential": lambda s, o: s.SequentialLR(
        o,
        [s.LinearLR(o, 0.1, total_iters=4), s.CosineAnnealingLR(o, 10), s.ExponentialLR(o, 0.9)],
        milestones=[5, 17],
    ),
    "chained": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, total_iters=3), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 9)]
    ),
}
per_case = pytest.mark.parametrize("name", CASES)


def optimizers(momentum: float = 0.9):
    a, b = tw.zeros((2,), requires_grad=True), tw.zeros((3,), requires_grad=True)
    mine = optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.3}], lr=0.2, momentum=momentum)
    p, q = torch.zeros(2, requires_grad=True), torch.zeros(3, requires_grad=True)
    other = torch.optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.3}], 0.2, momentum=momentum)
    return mine, other


def settings(optimizer) -> list[float]:
    return [group[key] for group in optimizer.param_groups for key in ("lr", "momentum")]


@per_case
@pytest.mark.filterwarnings("ignore")
def test_every_epoch(name: str) -> None:
    mine, other = optimizers()
    schedule, reference = CASES[name](ours, mine), CASES[name](theirs, other)
    for epoch in range(EPOCHS):
        assert settings(mine) == pytest.approx(settings(other), rel=1e-11, abs=1e-14), epoch
        rates = [group["lr"] for group in mine.param_groups]
        assert schedule.get_last_lr() == rates
        schedule.step()
        other.step()
        reference.step()


@per_case
@pytest.mark.filterwarnings("ignore")
def test_states_go_on(name: str) -> None:
    mine, _ = optimizers()
    schedule = CASES[name](ours, mine)
    for _ in range(7):
        schedule.step()
    resumed, _ = optimizers()
    other = CASES[name](ours, resumed)
    resumed.load_state_dict(mine.state_dict())
    other.load_state_dict(schedule.state_dict())
    for _ in range(EPOCHS - 8):
        schedule.step()
        other.step()
        assert settings(resumed) == settings(mine)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_states_of_pytorch_load(name: str) -> None:
    mine, other = optimizers()
    schedule, reference = CASES[name](ours, mine), CASES[name](theirs, other)
    for _ in range(5):
        other.step()
        reference.step()
    mine.load_state_dict(other.state_dict())
    schedule.load_state_dict(reference.state_dict())
    for _ in range(8):
        schedule.step()
        reference.step()
        assert settings(mine) == pytest.approx(settings(other), rel=1e-12)


def test_going_on_from_an_epoch() -> None:
    mine, _ = optimizers()
    with pytest.raises(KeyError, match="StepLR: group 0 has no 'initial_lr'"):
        ours.StepLR(mine, 3, last_epoch=4)
    first = ours.StepLR(mine, 3)
    for _ in range(5):
        first.step()
    second = ours.StepLR(mine, 3, last_epoch=first.last_epoch)
    assert second.last_epoch == 6
    assert second.base_lrs == [0.2, 0.3]


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2, "cooldown": 1},
        {"mode": "max", "patience": 1, "threshold_mode": "abs", "threshold": 0.05},
        {"mode": "max", "patience": 0, "factor": 0.5, "min_lr": [0.06, 0.01]},
        {"patience": 1, "threshold": 0.1, "eps": 0.5},
    ],
)
def test_plateaus(options: dict) -> None:
    mine, other = optimizers()
    schedule = ours.ReduceLROnPlateau(mine, **options)
    reference = theirs.ReduceLROnPlateau(other, **options)
    measures = [1.0, 0.9, 0.91, 0.9, 0.95, 0.5, 0.5, 0.5, 0.5, 0.49, 0.6, float("nan"), 0.6, 0.6]
    for measure in measures:
        schedule.step(tw.asarray(measure))
        reference.step(measure)
        assert settings(mine) == settings(other)
    resumed = ours.ReduceLROnPlateau(mine, **options)
    resumed.load_state_dict(schedule.state_dict())
    assert resumed.best == schedule.best


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda o: ours.StepLR("o", 3), TypeError, "StepLR: expected an Optimizer, got str"),
        (lambda o: ours.StepLR(o, 0), ValueError, "step_size must be at least 1, got 0"),
        (lambda o: ours.LinearLR(o, 0.0), ValueError, "start_factor lies in"),
        (lambda o: ours.ConstantLR(o, 2.0), ValueError, "factor lies in"),
        (lambda o: ours.OneCycleLR(o, 1.0), ValueError, "give total_steps, or epochs and"),
        (
            lambda o: ours.CyclicLR(o, 0.1, 1.0, 0),
            ValueError,
            "step_size_up must be above 0, got 0",
        ),
        (
            lambda o: ours.CyclicLR(o, 0.1, 1.0, 1, mode="square"),
            ValueError,
            "CyclicLR: mode is 'triangular', .*, got 'square'",
        ),
        (
            lambda o: ours.CyclicLR(o, 0.1, 1.0, 1, scale_mode="epoch"),
            ValueError,
            "scale_mode is 'cycle' or 'iterations', got 'epoch'",
        ),
        (lambda o: ours.CyclicLR(o, [0.1], 1.0), ValueError, "1 values for 2 groups"),
        (lambda o: ours.LambdaLR(o, [len]), ValueError, "1 functions for 2 groups"),
        (lambda o: ours.SequentialLR(o, [], []), ValueError, "SequentialLR: no schedules"),
        (
            lambda o: ours.SequentialLR(o, [ours.StepLR(o, 1)], [3]),
            ValueError,
            "1 schedules need 0 milestones, got 1",
        ),
        (
            lambda o: ours.ChainedScheduler([ours.ReduceLROnPlateau(o)]),
            ValueError,
            "steps need a measure",
        ),
        (
            lambda o: ours.ChainedScheduler([ours.StepLR(o, 1), ours.StepLR(optimizers()[0], 1)]),
            ValueError,
            "schedule 1 belongs to another optimiser",
        ),
        (
            lambda o: ours.StepLR(o, 3).load_state_dict({"gamma": 1}),
            ValueError,
            "load_state_dict: missing",
        ),
    ],
)
def test_errors(make, error, text) -> None:
    with pytest.raises(error, match=text):
        make(optimizers()[0])


@pytest.mark.parametrize("options", [{}, {"anneal_strategy": "linear"}, {"anneal_epochs": 0}])
@pytest.mark.parametrize("swa_lr", [0.05, [0.5, 0.01]])
@pytest.mark.filterwarnings("ignore")
def test_rates_of_averages_behind_another_schedule(swa_lr, options) -> None:
    mine, other = optimizers()
    first, their_first = ours.ExponentialLR(mine, 0.9), theirs.ExponentialLR(other, 0.9)
    for _ in range(4):
        first.step()
        other.step()
        their_first.step()
    schedule = swa_utils.SWALR(mine, swa_lr, **options)
    reference = torch.optim.swa_utils.SWALR(other, swa_lr, **options)
    for epoch in range(15):
        assert settings(mine) == pytest.approx(settings(other), rel=1e-11), epoch
        schedule.step()
        reference.step()
    assert settings(mine)[0] == pytest.approx(swa_lr if isinstance(swa_lr, float) else swa_lr[0])
    resumed = swa_utils.SWALR(optimizers()[0], swa_lr)
    resumed.load_state_dict(reference.state_dict())
    assert resumed.state_dict() == schedule.state_dict()


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((0.1, 5, "cubic"), ValueError, "anneal_strategy is 'cos' or 'linear', got 'cubic'"),
        ((0.1, -1), ValueError, "anneal_epochs must not be negative, got -1"),
        ((0.1, 2.5), TypeError, "anneal_epochs is a whole number, got 2.5"),
        (([0.1],), ValueError, "swa_lr: 1 values for 2 groups"),
    ],
)
def test_refused_rates_of_averages(args, error, text) -> None:
    with pytest.raises(error, match=f"SWALR: {text}"):
        swa_utils.SWALR(optimizers()[0], *args)


def test_momentum_that_is_not_there_cannot_be_cycled() -> None:
    x = tw.zeros((2,), requires_grad=True)
    with pytest.raises(ValueError, match="no momentum to cycle"):
        ours.OneCycleLR(optim.Adagrad([x]), 1.0, total_steps=10)
    with pytest.raises(ValueError, match=r"CyclicLR: .* no momentum to cycle"):
        ours.CyclicLR(optim.Adagrad([x]), 0.1, 1.0)


def test_one_cycle_moves_the_first_beta() -> None:
    x = tw.zeros((2,), requires_grad=True)
    optimizer = optim.Adam([x])
    schedule = ours.OneCycleLR(optimizer, 1.0, total_steps=10)
    assert optimizer.param_groups[0]["betas"] == (0.95, 0.999)
    for _ in range(10):
        schedule.step()
    with pytest.raises(ValueError, match="step 11 of 10"):
        schedule.step()


REFUSED = [
    (lambda o: ours.StepLR(3, 2), TypeError, "StepLR: expected an Optimizer, got int"),
    (lambda o: ours.LambdaLR(3, float), TypeError, "LambdaLR: expected an Optimizer, got int"),
    (lambda o: ours.CyclicLR(3, 0.1, 1), TypeError, "CyclicLR: expected an Optimizer, got int"),
    (lambda o: ours.OneCycleLR(3, 1, 5), TypeError, "OneCycleLR: expected an Optimizer, got int"),
    (lambda o: swa_utils.SWALR(3, 1), TypeError, "SWALR: expected an Optimizer, got int"),
    (lambda o: ours.StepLR(o, 0), ValueError, "StepLR: step_size must be at least 1, got 0"),
    (lambda o: ours.StepLR(o, 2.5), ValueError, "StepLR: step_size is a whole number, got 2.5"),
    (lambda o: ours.StepLR(o, "2"), TypeError, "StepLR: step_size must be a number, got '2'"),
    (lambda o: ours.StepLR(o, 2, "a"), TypeError, "StepLR: gamma must be a number, got 'a'"),
    (
        lambda o: ours.MultiStepLR(o, "ab"),
        TypeError,
        "MultiStepLR: a milestone must be a number, got 'a'",
    ),
    (
        lambda o: ours.MultiStepLR(o, [1.5]),
        ValueError,
        "MultiStepLR: a milestone is a whole number, got 1.5",
    ),
    (lambda o: ours.ConstantLR(o, 2), ValueError, r"ConstantLR: factor lies in \(0, 1\], got 2"),
    (lambda o: ours.ConstantLR(o, 0.5, -1), ValueError, "ConstantLR: total_iters must be at least"),
    (lambda o: ours.LinearLR(o, 0), ValueError, r"LinearLR: start_factor lies in \(0, 1\]"),
    (lambda o: ours.LinearLR(o, 1, 2), ValueError, r"LinearLR: end_factor lies in \[0, 1\]"),
    (lambda o: ours.LinearLR(o, 1, 1, -1), ValueError, "LinearLR: total_iters must be at least 0"),
    (
        lambda o: ours.ExponentialLR(o, float("nan")),
        ValueError,
        "ExponentialLR: gamma must be finite, got nan",
    ),
    (lambda o: ours.PolynomialLR(o, -1), ValueError, "PolynomialLR: total_iters must be at least"),
    (lambda o: ours.PolynomialLR(o, 3, "1"), TypeError, "PolynomialLR: power must be a number"),
    (lambda o: ours.CosineAnnealingLR(o, 0), ValueError, "T_max must be above 0, got 0"),
    (lambda o: ours.CosineAnnealingLR(o, 5, "a"), TypeError, "eta_min must be a number, got 'a'"),
    (lambda o: ours.CosineAnnealingWarmRestarts(o, 1.5), ValueError, "T_0 is a whole number from"),
    (lambda o: ours.CosineAnnealingWarmRestarts(o, 2, 0), ValueError, "T_mult is a whole number"),
    (
        lambda o: ours.CosineAnnealingWarmRestarts(o, 2, eta_min=None),
        TypeError,
        "eta_min must be a number, got None",
    ),
    (
        lambda o: ours.CosineAnnealingWarmRestarts(o, 2).step(-1),
        ValueError,
        "epoch is at least 0, got -1",
    ),
    (lambda o: ours.LambdaLR(o, 3), TypeError, "lr_lambda: expected a function, got int"),
    (lambda o: ours.LambdaLR(o, [float] * 3), ValueError, "lr_lambda: 3 functions for 2 groups"),
    (lambda o: ours.LambdaLR(o, lambda e: float("inf")), ValueError, "lr must be finite, got inf"),
    (lambda o: ours.LambdaLR(o, lambda e: 1j), TypeError, "LambdaLR: lr must be a number, got"),
    (lambda o: ours.MultiplicativeLR(o, "x"), TypeError, "expected a function, got str"),
    (lambda o: ours.CyclicLR(o, 0.1, "1"), TypeError, "CyclicLR: max_lr must be a number"),
    (lambda o: ours.CyclicLR(o, 0.1, 1, 0), ValueError, "step_size_up must be above 0, got 0"),
    (lambda o: ours.CyclicLR(o, 0.1, 1, mode="x"), ValueError, "CyclicLR: mode is 'triangular'"),
    (lambda o: ours.OneCycleLR(o, 1), ValueError, "give total_steps, or epochs and"),
    (lambda o: ours.OneCycleLR(o, 1, 5, div_factor=0), ValueError, "div_factor must be above 0"),
    (lambda o: ours.OneCycleLR(o, 1, 5, pct_start=2), ValueError, "pct_start lies in"),
    (lambda o: ours.OneCycleLR(o, 1, 5, anneal_strategy="x"), ValueError, "is cos or linear"),
    (lambda o: ours.ReduceLROnPlateau(o, "x"), ValueError, "mode is min or max, got 'x'"),
    (lambda o: ours.ReduceLROnPlateau(o, factor=1), ValueError, "factor must be below 1, got 1"),
    (lambda o: ours.ReduceLROnPlateau(o, factor=-1), ValueError, "factor must be at least 0"),
    (lambda o: ours.ReduceLROnPlateau(o, patience=-1), ValueError, "patience must be at least 0"),
    (lambda o: ours.ReduceLROnPlateau(o, cooldown=0.5), ValueError, "cooldown is a whole number"),
    (lambda o: ours.ReduceLROnPlateau(o, min_lr=[1]), ValueError, "min_lr: 1 values for 2 groups"),
    (lambda o: ours.ReduceLROnPlateau(o).step("1"), TypeError, "a measure is a number, got '1'"),
    (lambda o: ours.SequentialLR(o, [], []), ValueError, "SequentialLR: no schedules"),
    (lambda o: ours.SequentialLR(o, [3], []), TypeError, "SequentialLR: 0 is a int, not a"),
    (
        lambda o: ours.SequentialLR(o, [ours.StepLR(o, 2)] * 3, [5, 2]),
        ValueError,
        r"milestones must rise, got \[5, 2\]",
    ),
    (lambda o: ours.ChainedScheduler([]), ValueError, "ChainedScheduler: no schedules"),
    (lambda o: ours.StepLR(o, 2).load_state_dict(3), TypeError, "expected a dict, got int"),
    (lambda o: ours.StepLR(o, 2).load_state_dict({}), ValueError, "missing"),
    (
        lambda o: ours.ChainedScheduler([ours.StepLR(o, 2)]).load_state_dict([]),
        TypeError,
        "ChainedScheduler: load_state_dict: expected a dict, got list",
    ),
]


@pytest.mark.parametrize(("make", "error", "text"), REFUSED)
def test_wrong_settings_are_told(make, error, text) -> None:
    with pytest.raises(error, match=text):
        make(optimizers()[0])


def test_settings_at_the_edge_are_taken() -> None:
    mine, _ = optimizers()
    for make in (
        lambda o: ours.StepLR(o, 2.0),
        lambda o: ours.LinearLR(o, 1, 0, 2.5),
        lambda o: ours.ConstantLR(o, 1.0, 0),
        lambda o: ours.PolynomialLR(o, 0),
        lambda o: ours.CosineAnnealingLR(o, 2.5),
        lambda o: ours.ReduceLROnPlateau(o, factor=0, patience=0),
        lambda o: ours.MultiStepLR(o, []),
    ):
        assert isinstance(make(mine), ours.LRScheduler)


class Factor:
    """A callable object with a state, as users write them."""

    def __init__(self, base: float) -> None:
        self.base = base

    def __call__(self, epoch: int) -> float:
        return self.base**epoch

    def method(self, epoch: int) -> float:
        return self.base**epoch


def _root(epoch: int, base: float) -> float:
    return base ** (epoch / 2)


FUNCTIONS = {
    "function": lambda base: lambda epoch: base**epoch,
    "object": Factor,
    "method": lambda base: Factor(base).method,
    "partial": lambda base: functools.partial(_root, base=base),
    "builtin": lambda base: math.cos,
    "class": lambda base: float,
}
WITH_FUNCTIONS = {
    "lambda": (lambda s, o, f: s.LambdaLR(o, f), "lr_lambdas"),
    "multiplicative": (lambda s, o, f: s.MultiplicativeLR(o, f), "lr_lambdas"),
    "cyclic": (
        lambda s, o, f: s.CyclicLR(o, 0.1, 1.0, 4, scale_fn=f, cycle_momentum=False),
        "_scale_fn_custom",
    ),
}


@pytest.mark.parametrize("name", WITH_FUNCTIONS)
@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_states_with_functions(name: str, kind: str) -> None:
    """An object's attributes are saved and loaded, and no function is replaced by another."""
    make, attribute = WITH_FUNCTIONS[name]
    saved, rates = [], []
    for library, side in ((ours, 0), (theirs, 1)):
        if library is theirs and kind in ("builtin", "class"):
            continue  # which PyTorch stumbles over
        first = make(library, optimizers()[side], FUNCTIONS[kind](0.5))
        optimizer = optimizers()[side]
        function = FUNCTIONS[kind](0.75)
        second = make(library, optimizer, function)
        first.step()
        state = first.state_dict()
        second.load_state_dict(copy.deepcopy(state))
        held = getattr(second, attribute)
        assert (held[0] if isinstance(held, list) else held) == function
        second.step()
        kept = state[attribute]
        saved.append([each or None for each in kept] if isinstance(kept, list) else kept or None)
        rates.append([group["lr"] for group in optimizer.param_groups])
    assert saved[0] == saved[-1]
    assert rates[0] == pytest.approx(rates[-1])


@per_case
@pytest.mark.filterwarnings("ignore")
def test_groups_that_come_later_are_followed(name: str) -> None:
    mine, _ = optimizers()
    schedule = CASES[name](ours, mine)
    schedule.step()
    mine.add_param_group({"params": tw.zeros((1,), requires_grad=True), "lr": 0.3})
    before = settings(mine)
    parts = getattr(schedule, "_schedulers", [schedule])
    apart = [n for n in ("lambdas", "one-cycle-linear", "cyclic-uneven") if n == name]
    if apart:  # other values for each group: nobody can say which the new one has
        with pytest.raises(ValueError, match=r"values of \w+ for 3 groups; make the sched"):
            schedule.step()
        return
    for _ in range(8):
        schedule.step()
        assert len(schedule.get_last_lr()) == 3
        assert all(len(part.base_lrs) == 3 for part in parts[:1])
    if name.startswith(("one-cycle", "cyclic")):  # which set the rates, whatever they were
        assert len(set(settings(mine)[::2])) == 1
    else:
        ratio = [now / then for now, then in zip(settings(mine)[::2], before[::2], strict=True)]
        if name in ("step", "multistep", "exponential", "multiplicative", "polynomial"):
            assert ratio[2] == pytest.approx(ratio[1])
    mine.param_groups.pop()
    schedule.step()
    assert len(schedule.get_last_lr()) == 2


def test_plateaus_and_averages_follow_groups() -> None:
    for min_lr, error in ((0.01, None), ([0.01, 0.02], ValueError)):
        mine, _ = optimizers()
        plateau = ours.ReduceLROnPlateau(mine, patience=0, factor=0.1, min_lr=min_lr)
        mine.add_param_group({"params": tw.zeros((1,), requires_grad=True), "lr": 0.3})
        plateau.step(1.0)
        if error:
            with pytest.raises(error, match="2 values of min_lr for 3 groups"):
                plateau.step(2.0)
        else:
            plateau.step(2.0)
            assert plateau.get_last_lr() == pytest.approx([0.02, 0.03, 0.03])
    mine, _ = optimizers()
    schedule = swa_utils.SWALR(mine, 0.05, 2, "linear")
    mine.add_param_group({"params": tw.zeros((1,), requires_grad=True), "lr": 0.3})
    schedule.step()
    schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.05] * 3)


@pytest.mark.filterwarnings("ignore")
def test_an_overridden_step_is_called_from_the_beginning() -> None:
    calls = []
    for library, side in ((ours, 0), (theirs, 1)):

        class Own(library.LRScheduler):
            def step(self, *args):
                calls.append((self.last_epoch, args))
                super().step(*args)

            def get_lr(self):
                return [0.5 * (1 + self.last_epoch)] * 2

        schedule = Own(optimizers()[side])
        schedule.step()
        assert schedule.get_last_lr() == [1.0, 1.0]
    assert calls[:2] == calls[2:] == [(-1, ()), (0, ())]
    optimizer, _ = optimizers()
    calls.clear()

    class Halved(ours.ExponentialLR):
        def step(self):
            calls.append(self.last_epoch)
            super().step()

    parts = [ours.ConstantLR(optimizer, 0.5, 2), Halved(optimizer, 0.5)]
    sequence = ours.SequentialLR(optimizer, parts, [2])
    for _ in range(3):
        sequence.step()
    assert calls == [-1, -1, 0]


def test_values_by_group_belong_to_the_groups() -> None:
    """Reordered, removed and copied groups go on with the rates that they have otherwise."""

    def powers() -> list:
        return [lambda epoch, base=base: base**epoch for base in (0.5, 0.9, 1.0)]

    three = [1.0, 2.0, 3.0]
    kinds = {
        "lambda": lambda o: ours.LambdaLR(o, powers()),
        "multiplicative": lambda o: ours.MultiplicativeLR(o, powers()),
        "cyclic": lambda o: ours.CyclicLR(o, [0.1, 0.2, 0.3], three, 4, mode="triangular2"),
        "one": lambda o: ours.OneCycleLR(o, three, 20),
        "plateau": lambda o: ours.ReduceLROnPlateau(o, factor=0.5, patience=0, min_lr=three),
        "restarts": lambda o: ours.CosineAnnealingWarmRestarts(o, 5),
        "chained": lambda o: ours.ChainedScheduler([ours.LinearLR(o), ours.LambdaLR(o, powers())]),
        "sequence": lambda o: ours.SequentialLR(
            o, [ours.LinearLR(o), ours.LambdaLR(o, powers())], [4]
        ),
    }
    changes = {
        "none": lambda groups: groups,
        "reversed": lambda groups: groups[::-1],
        "removed": lambda groups: groups[1:],
        "copied": lambda groups: [dict(group) for group in groups],
    }
    for kind, make in kinds.items():
        rates = {}
        for change, of_groups in changes.items():
            params = [{"params": [tw.ones(1).requires_grad_()], "name": i} for i in range(3)]
            optimizer = tw.optim.SGD(params, lr=8.0, momentum=0.9)
            for i, group in enumerate(optimizer.param_groups):
                group["lr"] = 8.0 + i
            schedule = make(optimizer)
            rates[change] = []
            for epoch in range(7):
                schedule.step(*([1.0] if kind == "plateau" else []))
                if epoch == 2:
                    optimizer.param_groups = of_groups(optimizer.param_groups)
                rates[change].append({g["name"]: g["lr"] for g in optimizer.param_groups})
            for want, got in zip(rates["none"], rates[change], strict=True):
                assert got == {name: want[name] for name in got}, (kind, change)


def test_a_group_that_is_replaced_starts_from_its_own_rate() -> None:
    optimizer = tw.optim.SGD(
        [{"params": [tw.ones(1).requires_grad_()], "lr": r} for r in (1.0, 2.0)]
    )
    schedule = ours.ExponentialLR(optimizer, 0.5)
    fixed = ours.LambdaLR(optimizer, lambda epoch: 1.0)
    del optimizer.param_groups[0]
    optimizer.add_param_group({"params": [tw.ones(1).requires_grad_()], "lr": 16.0})
    fixed.step()
    assert [group["lr"] for group in optimizer.param_groups] == [2.0, 16.0]
    schedule.step()
    assert schedule.get_last_lr() == [1.0, 8.0]


def test_lists_that_do_not_fit_new_groups_are_kept() -> None:
    optimizer = tw.optim.SGD(
        [{"params": [tw.ones(1).requires_grad_()], "lr": r} for r in (1.0, 2.0)]
    )
    functions = [lambda epoch: 1.0, lambda epoch: 3.0]
    schedule = ours.LambdaLR(optimizer, functions)
    removed = optimizer.param_groups.pop(0)
    optimizer.add_param_group({"params": [tw.ones(1).requires_grad_()], "lr": 4.0})
    optimizer.add_param_group({"params": [tw.ones(1).requires_grad_()], "lr": 4.0})
    optimizer.param_groups.insert(0, removed)
    for _ in range(2):
        with pytest.raises(ValueError, match="2 values of lr_lambda for 4 groups"):
            schedule.step()
        assert schedule.lr_lambdas == functions
    del optimizer.param_groups[2:]
    schedule.step()
    assert schedule.get_last_lr() == [1.0, 6.0]


def test_restarts_go_on_from_a_part_of_an_epoch_and_from_what_is_set() -> None:
    rates = []
    for lib in (tw, pytest.importorskip("torch")):
        optimizer = lib.optim.SGD([lib.ones(1).requires_grad_()], lr=1.0)
        schedule = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, 2)
        found = []
        for epoch in (None, None, 1.5, None, None, None, 7.25, None, 2, None, None, None):
            schedule.step(*([] if epoch is None else [epoch]))
            found.append((*schedule.get_last_lr(), schedule.T_cur, schedule.T_i))
        schedule.T_i = 5
        for _ in range(6):
            schedule.step()
            found.append((*schedule.get_last_lr(), schedule.T_cur, schedule.T_i))
        rates.append(found)
    np.testing.assert_allclose(*rates, atol=1e-12)
