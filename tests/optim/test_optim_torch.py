"""Optimisers against PyTorch's over many steps in float64, and their states in both directions."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import optim

torch = pytest.importorskip("torch")

STEPS = 60
SHAPES = ((5, 7), (13,), (), (2, 3, 4))
CASES = {
    "sgd-maximize": ("SGD", {"momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "adam": ("Adam", {"weight_decay": 0.1, "betas": (0.8, 0.95)}),
    "amsgrad": ("Adam", {"amsgrad": True, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    "adamw-amsgrad": ("AdamW", {"amsgrad": True, "maximize": True, "betas": (0.8, 0.9)}),
    "adam-decoupled": ("Adam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "adamax": ("Adamax", {"weight_decay": 0.1, "betas": (0.8, 0.9)}),
    "nadam": ("NAdam", {"weight_decay": 0.1}),
    "nadam-decoupled": (
        "NAdam",
        {"weight_decay": 0.1, "momentum_decay": 0.05, "decoupled_weight_decay": True},
    ),
    "nadam-no-decay": ("NAdam", {"momentum_decay": 0.0}),
    "radam": ("RAdam", {"weight_decay": 0.1, "betas": (0.9, 0.95)}),
    "radam-decoupled": ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "adagrad": (
        "Adagrad",
        {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1, "maximize": True},
    ),
    "adadelta": ("Adadelta", {"weight_decay": 0.1, "rho": 0.8}),
    "adadelta-maximize": ("Adadelta", {"maximize": True}),
    "adafactor": ("Adafactor", {"weight_decay": 0.1}),
    "adafactor-maximize": (
        "Adafactor",
        {"beta2_decay": -0.5, "eps": (1e-3, 1.5), "d": 1.5, "maximize": True},
    ),
    "asgd": ("ASGD", {"lambd": 0.1, "t0": 3.0, "weight_decay": 0.1}),
    "asgd-maximize": ("ASGD", {"alpha": 0.5, "maximize": True}),
    "rprop": ("Rprop", {}),
    "rprop-maximize": (
        "Rprop",
        {"etas": (0.4, 1.7), "step_sizes": (0.01, 0.3), "maximize": True},
    ),
    "rmsprop": ("RMSprop", {"weight_decay": 0.1, "alpha": 0.9}),
    "rmsprop-momentum": ("RMSprop", {"momentum": 0.5}),
    "rmsprop-centered": ("RMSprop", {"centered": True, "alpha": 0.9, "maximize": True}),
    "rmsprop-both": ("RMSprop", {"centered": True, "alpha": 0.9, "momentum": 0.5}),
}
per_case = pytest.mark.parametrize("name", CASES)


def start() -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=shape) for shape in SHAPES]


def gradient(params: list[np.ndarray], step: int) -> list[np.ndarray]:
    """Of a bowl whose middle moves."""
    rng = np.random.default_rng(step)
    return [p * 0.5 + rng.normal(size=p.shape) for p in params]


class Ours:
    def __init__(self, name: str) -> None:
        kind, settings = CASES[name]
        self.params = [tw.asarray(p).requires_grad_() for p in start()]
        self.optimizer = getattr(optim, kind)(self.params, lr=0.05, **settings)

    def values(self) -> list[np.ndarray]:
        return [np.array(p.detach().numpy()) for p in self.params]

    def step(self, number: int) -> None:
        for p, g in zip(self.params, gradient(self.values(), number), strict=True):
            p.grad = tw.asarray(g)
        self.optimizer.step()


class Theirs:
    def __init__(self, name: str) -> None:
        kind, settings = CASES[name]
        self.params = [torch.tensor(p, requires_grad=True) for p in start()]
        self.optimizer = getattr(torch.optim, kind)(self.params, lr=0.05, **settings)

    def values(self) -> list[np.ndarray]:
        return [p.detach().numpy().copy() for p in self.params]

    def step(self, number: int) -> None:
        for p, g in zip(self.params, gradient(self.values(), number), strict=True):
            p.grad = torch.tensor(g)
        self.optimizer.step()


def assert_alike(ours: Ours, theirs: Theirs) -> None:
    # PyTorch's NAdam keeps the product of its momenta in float32, its ASGD the learning rate.
    scale = 1e4 if isinstance(ours.optimizer, (optim.NAdam, optim.ASGD)) else 1.0
    for got, want in zip(ours.values(), theirs.values(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10 * scale, atol=1e-12 * scale)


@per_case
def test_many_steps(name: str) -> None:
    ours, theirs = Ours(name), Theirs(name)
    for number in range(STEPS):
        ours.step(number)
        theirs.step(number)
    assert_alike(ours, theirs)


@per_case
def test_goes_on_from_pytorchs_state(name: str) -> None:
    ours, theirs = Ours(name), Theirs(name)
    for number in range(5):
        theirs.step(number)
    ours.optimizer.load_state_dict(theirs.optimizer.state_dict())
    for own, value in zip(ours.params, theirs.values(), strict=True):
        own.detach().copy_(tw.asarray(value))
    for number in range(5, 20):
        ours.step(number)
        theirs.step(number)
    assert_alike(ours, theirs)


@per_case
def test_pytorch_goes_on_from_our_state(name: str) -> None:
    ours, theirs = Ours(name), Theirs(name)
    for number in range(5):
        ours.step(number)
    state = ours.optimizer.state_dict()
    for held in state["state"].values():
        for key, value in held.items():
            if isinstance(value, tw.Tensor):
                held[key] = torch.from_dlpack(value.copy())
    full = theirs.optimizer.state_dict()["param_groups"]
    groups = [{**a, **b} for a, b in zip(full, state["param_groups"], strict=True)]
    theirs.optimizer.load_state_dict({"state": state["state"], "param_groups": groups})
    with torch.no_grad():
        for own, value in zip(theirs.params, ours.values(), strict=True):
            own.copy_(torch.tensor(value))
    for number in range(5, 20):
        ours.step(number)
        theirs.step(number)
    assert_alike(ours, theirs)


def test_the_step_of_asgd_follows_a_schedule_as_in_pytorch() -> None:
    ours, theirs = Ours("asgd"), Theirs("asgd")
    schedules = (
        optim.lr_scheduler.StepLR(ours.optimizer, 2, 0.5),
        torch.optim.lr_scheduler.StepLR(theirs.optimizer, 2, 0.5),
    )
    for number in range(12):
        late = number < 4  # a parameter that begins later has an eta of its own
        ours.step(number)
        theirs.step(number)
        for side, schedule in zip((ours, theirs), schedules, strict=True):
            side.params[-1].requires_grad_(not late)
            schedule.step()
        if number == 6:
            saved = theirs.optimizer.state_dict()
            ours.optimizer.load_state_dict(saved)
    assert_alike(ours, theirs)
    bad = ours.optimizer.state_dict()
    bad["state"][0]["eta"] = tw.zeros(2)
    with pytest.raises(ValueError, match=r"ASGD: load_state_dict: eta of parameter 0: shape"):
        ours.optimizer.load_state_dict(bad)


def test_asgd_averages_as_in_pytorch() -> None:
    ours, theirs = Ours("asgd"), Theirs("asgd")
    for number in range(10):
        ours.step(number)
        theirs.step(number)
    held = ours.optimizer.state_dict()["state"]
    for number, parameter in enumerate(theirs.params):
        state = theirs.optimizer.state[parameter]
        for name in ("ax", "eta", "mu"):
            np.testing.assert_allclose(held[number][name].numpy(), state[name].numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"etas": (1.2, 0.5)}, "etas lie in"),
        ({"etas": 0.5}, "etas are two numbers"),
        ({"step_sizes": (1e-6, float("inf"))}, "step_sizes must be finite"),
    ],
)
def test_rprop_refuses(settings: dict, text: str) -> None:
    with pytest.raises(ValueError, match=f"Rprop: {text}"):
        optim.Rprop([tw.zeros(2, requires_grad=True)], **settings)


def test_a_closure_computes_the_loss() -> None:
    x = tw.asarray([2.0]).requires_grad_()
    optimizer = optim.SGD([x], lr=0.25)

    def closure() -> tw.Tensor:
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with tw.no_grad():
        assert optimizer.step(closure).item() == 4.0
    assert x.tolist() == [1.0]


def test_parameters_with_names() -> None:
    ours, theirs = tw.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    mine = optim.SGD(ours.named_parameters(), lr=0.1)
    other = torch.optim.SGD(theirs.named_parameters(), lr=0.1)
    names = other.state_dict()["param_groups"][0]["param_names"]
    assert mine.state_dict()["param_groups"][0]["param_names"] == names == ["weight", "bias"]
    mine.load_state_dict(other.state_dict())
    optim.SGD(ours.parameters(), lr=0.2).load_state_dict(mine.state_dict())
    ours(tw.ones((1, 2))).sum().backward()
    before = ours.bias.item()
    mine.step()
    assert ours.bias.item() == pytest.approx(before - 0.1)
    with pytest.raises(ValueError, match=r"SGD: parameter 1 \(b\), shape \(2,\), is the result of"):
        optim.SGD([("a", tw.ones((1,))), ("b", tw.ones((2,), requires_grad=True) * 2)])


class TestLBFGS:
    """On Rosenbrock's valley, with two parameters that share it."""

    @staticmethod
    def run(library, optimizer_class, steps, **settings):
        if library is tw:
            a = tw.asarray([-1.2, 0.7], dtype=tw.float64).requires_grad_()
            b = tw.asarray([[1.0], [-0.3]], dtype=tw.float64).requires_grad_()
        else:
            a = torch.tensor([-1.2, 0.7], dtype=torch.float64, requires_grad=True)
            b = torch.tensor([[1.0], [-0.3]], dtype=torch.float64, requires_grad=True)
        optimizer = optimizer_class([a, b], **settings)
        calls = []

        def closure():
            optimizer.zero_grad()
            c = b.reshape((2,))
            loss = (100.0 * (c - a * a) ** 2 + (1.0 - a) ** 2).sum()
            loss.backward()
            calls.append(float(loss.detach()))
            return loss

        for _ in range(steps):
            optimizer.step(closure)
        return calls, [*a.tolist(), *b.reshape((2,)).tolist()], optimizer

    @pytest.mark.parametrize(
        ("settings", "steps"),
        [
            ({"lr": 1e-3, "max_iter": 5}, 4),
            ({"lr": 1e-3, "max_iter": 4, "history_size": 2}, 5),
        ],
    )
    def test_the_evaluations_without_a_search_are_pytorchs(self, settings, steps):
        ours, at, _ = self.run(tw, optim.LBFGS, steps, **settings)
        theirs, there, _ = self.run(torch, torch.optim.LBFGS, steps, **settings)
        assert len(ours) == len(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(at, there, rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("settings", [{}, {"max_iter": 3, "history_size": 4}])
    def test_with_a_search_it_arrives_where_pytorch_does(self, settings):
        settings = {"line_search_fn": "strong_wolfe", **settings}
        _, at, _ = self.run(tw, optim.LBFGS, 40, **settings)
        _, there, _ = self.run(torch, torch.optim.LBFGS, 40, **settings)
        np.testing.assert_allclose(at, there, rtol=0, atol=1e-4)

    def test_it_finds_the_lowest_point(self):
        _, at, _ = self.run(tw, optim.LBFGS, 10, line_search_fn="strong_wolfe")
        np.testing.assert_allclose(at, np.ones(4), rtol=1e-4)

    def test_a_state_goes_on(self):
        settings = {"line_search_fn": "strong_wolfe", "max_iter": 3}
        _, _, optimizer = self.run(tw, optim.LBFGS, 2, **settings)
        _, _, theirs = self.run(torch, torch.optim.LBFGS, 2, **settings)
        _, _, other = self.run(tw, optim.LBFGS, 1, **settings)
        for state in (optimizer.state_dict(), theirs.state_dict()):
            other.load_state_dict(state)
            held = other.state_dict()["state"][0]
            assert held["n_iter"] == state["state"][0]["n_iter"] > 2
            np.testing.assert_allclose(held["d"].numpy(), np.asarray(state["state"][0]["d"]))

    def test_settings(self):
        x = tw.zeros((2,), requires_grad=True)
        with pytest.raises(ValueError, match="LBFGS: line_search_fn is None or"):
            optim.LBFGS([x], line_search_fn="armijo")
        with pytest.raises(ValueError, match="LBFGS: takes one group"):
            optim.LBFGS([{"params": [x]}, {"params": [tw.zeros((1,), requires_grad=True)]}])
        with pytest.raises(TypeError, match="LBFGS: step needs a closure"):
            optim.LBFGS([x]).step()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"nesterov": False, "momentum": 0.5},
        {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.5},
        {"adjust_lr_fn": "original", "ns_steps": 3, "ns_coefficients": (2.0, -1.5, 0.5)},
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(12, 5), (5, 12), (6, 6)])
def test_muon(settings, shape) -> None:
    rng = np.random.default_rng(4)
    first = rng.normal(size=shape).astype("float32")
    ours, theirs = tw.asarray(first).requires_grad_(), torch.tensor(first, requires_grad=True)
    own = optim.Muon([ours], lr=0.1, **settings)
    other = torch.optim.Muon([theirs], lr=0.1, **settings)
    for _ in range(5):
        g = rng.normal(size=shape).astype("float32")
        ours.grad, theirs.grad = tw.asarray(g), torch.tensor(g)
        own.step()
        other.step()
    m, n = shape
    rate = 0.1 * (
        0.2 * max(m, n) ** 0.5
        if settings.get("adjust_lr_fn") == "match_rms_adamw"
        else max(1, m / n) ** 0.5
    )
    # Both iterate in bfloat16, whose 8 bits they round at other places.
    np.testing.assert_allclose(ours.detach(), theirs.detach(), atol=5 * rate * 0.04)
    state = own.state_dict()["state"][0]["momentum_buffer"]
    want = other.state_dict()["state"][0]["momentum_buffer"]
    np.testing.assert_allclose(state, want, rtol=1e-5, atol=1e-6)


def test_muon_makes_singular_values_alike() -> None:
    """By the definition in float64: the step is near the orthogonal factor of the gradient."""
    rng = np.random.default_rng(5)
    g = rng.normal(size=(8, 8))
    u, s, vh = np.linalg.svd(g / np.linalg.norm(g))
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    w = tw.zeros((8, 8), dtype=tw.float64).requires_grad_()
    w.grad = tw.asarray(g)
    optim.Muon([w], lr=1.0, weight_decay=0.0, momentum=0.0).step()
    np.testing.assert_allclose(w.detach(), -(u * s) @ vh, atol=0.05)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"ns_steps": 100}, ValueError, "ns_steps"),
        ({"ns_coefficients": (1.0, 2.0)}, ValueError, "ns_coefficients"),
        ({"ns_coefficients": (1.0, 2.0, "3")}, TypeError, "ns_coefficients"),
        ({"adjust_lr_fn": "other"}, ValueError, "adjust_lr_fn"),
        ({"momentum": -0.1}, ValueError, "momentum"),
        ({"nesterov": 1}, TypeError, "nesterov"),
    ],
)
def test_settings_of_muon(settings, error, text) -> None:
    with pytest.raises(error, match=text):
        optim.Muon([tw.ones((2, 2), requires_grad=True)], **settings)
    with pytest.raises(ValueError, match="Muon: parameters are matrices"):
        optim.Muon([tw.ones(2, requires_grad=True)])


@pytest.mark.parametrize(
    "settings",
    [{"lr": -1.0}, {"beta2_decay": 0.1}, {"d": 0.5}, {"eps": 1e-3}, {"eps": (-1.0, 1e-3)}],
)
def test_adafactor_refuses(settings) -> None:
    with pytest.raises(ValueError, match="Adafactor: "):
        optim.Adafactor([tw.ones((2, 2), requires_grad=True)], **settings)


def test_adafactor_keeps_rows_and_columns() -> None:
    params = [tw.ones((6, 4), requires_grad=True), tw.ones(5, requires_grad=True)]
    for p in params:
        p.grad = tw.ones_like(p)
    optimizer = optim.Adafactor(params)
    optimizer.step()
    state = optimizer.state_dict()["state"]
    assert {name: x.shape for name, x in state[0].items() if name != "step"} == {
        "row_var": (6, 1),
        "col_var": (1, 4),
    }
    assert set(state[1]) == {"step", "variance"}
