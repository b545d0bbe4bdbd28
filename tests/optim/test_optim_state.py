"""State of optimisers belongs to tensors: surgery on groups and state beside PyTorch, hooks,
copies, optimisers that others wrote, infinities."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest
from cases.ops.updates import fused_optimizers

import tilewright as tw
from tilewright import optim

torch = pytest.importorskip("torch")

CASES = {
    "sgd": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}),
    "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {"weight_decay": 0.1}),
    "adamw-amsgrad": ("AdamW", {"amsgrad": True}),
    "adamax": ("Adamax", {}),
    "nadam": ("NAdam", {"momentum_decay": 0.05}),
    "radam": ("RAdam", {"betas": (0.9, 0.95)}),
    "adagrad": ("Adagrad", {"lr_decay": 0.1}),
    "adadelta": ("Adadelta", {}),
    "adafactor": ("Adafactor", {}),
    "asgd": ("ASGD", {"lambd": 0.1, "t0": 2.0}),
    "rprop": ("Rprop", {}),
    "rmsprop": ("RMSprop", {"alpha": 0.9}),
    "rmsprop-both": ("RMSprop", {"centered": True, "alpha": 0.9, "momentum": 0.5}),
}
SHAPE = (3, 4)


@pytest.fixture(autouse=True)
def _float64():
    """PyTorch's optimisers keep numbers, such as ASGD's eta, in the default type."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


class Twins:
    """The same optimiser here and in PyTorch, and pairs of parameters that both may hold."""

    def __init__(self, name: str, count: int = 4) -> None:
        kind, settings = CASES[name]
        self.rng = np.random.default_rng(7)
        self.pool = [self.pair() for _ in range(count)]
        self.sides = [
            getattr(library.optim, kind)(
                [
                    {"params": [pair[i] for pair in self.pool[:half]], "lr": 0.05},
                    {"params": [pair[i] for pair in self.pool[half:]], "lr": 0.1},
                ],
                **settings,
            )
            for i, library in enumerate((tw, torch))
            for half in (count // 2,)
        ]

    def pair(self) -> tuple[tw.Tensor, torch.Tensor]:
        values = self.rng.normal(size=SHAPE)
        return tw.asarray(values).requires_grad_(), torch.tensor(values, requires_grad=True)

    def groups(self, which: int = 0) -> list[list]:
        return [side.param_groups[which]["params"] for side in self.sides]

    def step(self) -> None:
        for own, theirs in self.pool:
            g = self.rng.normal(size=SHAPE) * 10.0 ** self.rng.integers(-2, 3)
            skipped = self.rng.random() < 0.1
            own.grad = None if skipped else tw.asarray(g)
            theirs.grad = None if skipped else torch.tensor(g)
        for side in self.sides:
            side.step()

    def agree(self) -> None:
        for own, theirs in self.pool:
            want = theirs.detach().numpy()
            np.testing.assert_allclose(own.detach().numpy(), want, rtol=1e-6, atol=1e-8)


def pop(twins: Twins) -> None:
    for params in twins.groups():
        if len(params) > 1:
            params.pop(0)


def append(twins: Twins) -> None:
    twins.pool.append(twins.pair())
    for i, params in enumerate(twins.groups(1)):
        params.append(twins.pool[-1][i])


def replace(twins: Twins) -> None:
    twins.pool.append(twins.pair())
    for i, params in enumerate(twins.groups()):
        params[-1] = twins.pool[-1][i]


def reorder(twins: Twins) -> None:
    for side in twins.sides:
        side.param_groups[1]["params"] = side.param_groups[1]["params"][::-1]
        side.param_groups.reverse()


def keep_some(twins: Twins) -> None:
    for side in twins.sides:
        group = side.param_groups[0]
        group["params"] = [p for i, p in enumerate(group["params"]) if i % 3 != 1]


def move_group(twins: Twins) -> None:
    for side in twins.sides:
        taken = side.param_groups.pop()
        side.add_param_group({**taken, "lr": 0.02})


def forget(twins: Twins) -> None:
    """The state of one parameter, as lottery tickets and resets of dead units do."""
    for side, params in zip(twins.sides, twins.groups(), strict=True):
        side.state.pop(params[0], None)


def reload(twins: Twins) -> None:
    for side in twins.sides:
        held = {id(p) for group in side.param_groups for p in group["params"]}
        for param in [p for p in side.state if id(p) not in held]:
            del side.state[param]  # which PyTorch's state_dict stumbles over
        side.load_state_dict(copy.deepcopy(side.state_dict()))


def hand_over(twins: Twins) -> None:
    """One tensor's state to another."""
    for side, params in zip(twins.sides, twins.groups(1), strict=True):
        if side.state.get(params[0]):
            side.state[params[-1]] = copy.deepcopy(side.state[params[0]])


def halve(twins: Twins) -> None:
    """Tensors of a state replaced by half of them."""
    for side in twins.sides:
        for params in side.param_groups:
            for param in params["params"]:
                for name, value in dict(side.state.get(param, {})).items():
                    if name != "step" and getattr(value, "shape", ()) == SHAPE:
                        side.state[param][name] = value * 0.5


SURGERY = (pop, append, replace, reorder, keep_some, move_group, forget, hand_over, halve)


@pytest.mark.parametrize("name", CASES)
def test_surgery_between_steps_is_pytorchs(name: str) -> None:
    for operations in [[one] for one in SURGERY] + [[*SURGERY], [*reversed(SURGERY)]]:
        twins = Twins(name)
        for _ in range(3):
            twins.step()
        for operation in operations:
            operation(twins)
            for number in range(3):
                twins.step()
                if number == 1:
                    reload(twins)
            twins.agree()


@pytest.mark.parametrize("name", CASES)
def test_state_removed_from_the_groups_is_kept_and_not_saved(name: str) -> None:
    twins = Twins(name)
    twins.step()
    optimizer = twins.sides[0]
    gone = optimizer.param_groups[0]["params"].pop(0)
    held = dict(optimizer.state.get(gone, {}))
    assert set(optimizer.state_dict()["state"]) <= {0, 1, 2}
    optimizer.load_state_dict({**optimizer.state_dict()})
    assert held or name == "sgd"


@pytest.mark.parametrize("name", CASES)
def test_two_parameters_over_one_memory(name: str) -> None:
    kind, settings = CASES[name]
    ends = []
    for library in (tw, torch):
        dtype = {"dtype": library.float64}
        memory = library.linspace(-1.0, 1.0, 12, **dtype).reshape(SHAPE)
        params = [memory.detach().requires_grad_(), memory.detach()[1:].requires_grad_()]
        optimizer = getattr(library.optim, kind)(params, lr=0.05, **settings)
        for number in range(4):
            for i, p in enumerate(params):
                p.grad = library.full(p.shape, 1.0 + number - 2.0 * i, **dtype)
            optimizer.step()
        assert len(optimizer.state) == 2 or name == "sgd"
        ends.append(memory.numpy())
    np.testing.assert_allclose(*ends, rtol=1e-6)


def test_momentum_follows_its_tensor() -> None:
    a, b, c = (tw.ones(1, dtype=tw.float64, requires_grad=True) for _ in range(3))
    optimizer = optim.SGD([a, b, c], lr=0.001, momentum=0.9)
    for _ in range(3):
        a.grad, b.grad = tw.full((1,), 1e3, dtype=tw.float64), tw.ones(1, dtype=tw.float64)
        c.grad = b.grad.copy()
        optimizer.step()
    before, buffer = b.item(), optimizer.state[b]["momentum_buffer"].item()
    optimizer.param_groups[0]["params"].pop(0)
    optimizer.step()
    assert b.item() == pytest.approx(before - 0.001 * (0.9 * buffer + 1), rel=1e-12)


def test_what_is_assigned_is_what_the_next_step_reads() -> None:
    for name, (kind, settings) in CASES.items():
        twins = Twins(name)
        twins.step()
        (own, theirs), optimizer = twins.pool[0], twins.sides[0]
        for key, value in list(optimizer.state[own].items()):
            if key == "step" or not isinstance(value, tw.Tensor):
                continue
            other = tw.full(value.shape, 0.25, dtype=value.dtype)
            optimizer.state[own][key] = other
            twins.sides[1].state[theirs][key] = torch.full(value.shape, 0.25, dtype=torch.float64)
            assert optimizer.state[own][key] is other, (name, key)
        optimizer.state[own]["mine"] = "kept"
        twins.step()
        twins.agree()
        saved = optimizer.state_dict()
        assert saved["state"][0]["mine"] == "kept"
        fresh = getattr(optim, kind)([{**g} for g in optimizer.param_groups], **settings)
        fresh.load_state_dict(saved)
        assert fresh.state[own]["mine"] == "kept"
        optimizer.state = {own: {}}  # a plain dict will do
        optimizer.step()
        assert twins.pool[1][0] in optimizer.state


@pytest.mark.parametrize("name", ["nadam", "asgd"])
def test_numbers_of_a_state_are_read(name: str) -> None:
    twins = Twins(name)
    for _ in range(4):
        twins.step()
    numbers = {"nadam": ("mu_product",), "asgd": ("eta", "mu")}[name]
    for side, params in zip(twins.sides, zip(*twins.pool, strict=True), strict=True):
        for number in numbers:
            side.state[params[0]][number] = side.state[params[0]][number] * 0.5
        for group in side.param_groups:
            if name == "nadam":
                group["betas"] = (0.5, 0.999)  # as schedules of momentum do
    for _ in range(3):
        twins.step()
        twins.agree()


def momentum_of(library):
    """An optimiser as users write it, in the words of either library."""

    class Momentum(library.optim.Optimizer):
        def __init__(self, params, lr=0.1, beta=0.9):
            super().__init__(params, {"lr": lr, "beta": beta})

        @library.no_grad()
        def step(self, closure=None):
            loss = None
            if closure is not None:
                with library.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    grad = p.grad.data
                    if grad.is_sparse:
                        raise RuntimeError("no sparse gradients")
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"] = library.tensor(0.0)
                        for key in ("mean", "square"):
                            state[key] = library.zeros_like(
                                p, memory_format=library.preserve_format
                            )
                        form = {"memory_format": library.contiguous_format}
                        state["history"] = [p.detach().clone(**form)]
                        self.state["all"].setdefault("calls", 0)
                    self.state["all"]["calls"] += 1
                    state["step"] += 1
                    state["mean"].mul_(group["beta"]).add_(grad, alpha=1 - group["beta"])
                    state["square"].mul_(0.99).addcmul_(grad, grad, value=0.01)
                    denominator = state["square"].sqrt().add_(1e-3)
                    size = group["lr"] / (1 - group["beta"] ** state["step"].item())
                    p.data.addcdiv_(state["mean"], denominator, value=-size)
            return loss

    return Momentum


def test_optimisers_that_others_wrote() -> None:
    ends = []
    for library in (tw, torch):
        kind = momentum_of(library)
        params = [library.ones(3).requires_grad_(), library.ones(2, 2).requires_grad_()]
        optimizer = kind(params)

        def loss(params=params, optimizer=optimizer):
            optimizer.zero_grad()
            value = (params[0] ** 2).sum() + (params[1] ** 4).sum()
            value.backward()
            return value

        for _ in range(3):
            optimizer.step(loss)
        copies = [p.detach().clone().requires_grad_() for p in params]
        resumed = kind(copies)
        resumed.load_state_dict(optimizer.state_dict())
        for _ in range(3):
            for copied, p in zip(copies, params, strict=True):
                p.grad = None
                copied.grad = (copied.detach() * 2).clone()
            resumed.step()
        assert resumed.state["all"]["calls"] == 12
        assert float(resumed.state[copies[0]]["step"]) == 6
        ends.append([x for p in (*params, *copies) for x in p.reshape(-1).tolist()])
    np.testing.assert_allclose(*ends, rtol=1e-5)


def test_a_mapping_that_remembers() -> None:
    class Plain(optim.Optimizer):
        @tw.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    m = self.state[p].setdefault("m", tw.zeros_like(p))
                    m.mul_(0.9).add_(p.grad)
                    p.sub_(m * 0.1)

    w = tw.ones(1, dtype=tw.float64).requires_grad_()
    w.grad = tw.ones(1, dtype=tw.float64)
    optimizer = Plain([w], {"lr": 0.1})
    for _ in range(3):
        optimizer.step()
    assert w.item() == pytest.approx(0.439, rel=1e-12)


class TestHooks:
    @staticmethod
    def weight() -> tw.Tensor:
        w = tw.ones(1).requires_grad_()
        w.grad = tw.ones(1)
        return w

    def test_none_is_lost(self) -> None:
        optimizer, calls = optim.SGD([self.weight()]), []
        for number in range(20):
            optimizer.register_step_post_hook(lambda *_, number=number: calls.append(number))
            gc.collect()
        kept = optimizer.register_step_pre_hook(lambda *_: calls.append("pre"))
        twin, told = pickle.loads(pickle.dumps(optim.SGD([self.weight()]))), []
        for number in range(3):
            twin.register_step_post_hook(lambda *_, number=number: told.append(number))
        optimizer.step()
        twin.step()
        assert (calls, told) == (["pre", *range(20)], [0, 1, 2])
        kept.remove()
        kept.remove()
        optimizer.step()
        assert calls.count("pre") == 1

    def test_they_run_around_every_step(self) -> None:
        class Own(optim.Optimizer):
            def step(self, closure=None):
                return "own"

        class More(optim.Adam):
            def step(self, closure=None):
                return super().step(closure)

        class Mixin:
            def step(self, closure=None, *, scale=1.0):
                return scale

        class Mixed(Mixin, optim.SGD):
            pass

        calls: list = []
        for kind, settings in ((Own, [{}]), (More, []), (Mixed, []), (optim.SGD, [])):
            calls.clear()
            optimizer = kind([self.weight()], *settings)
            optimizer.register_step_pre_hook(lambda o, a, k: calls.append(("pre", a[0] is o, k)))
            optimizer.register_step_post_hook(lambda o, a, k: calls.append(("post", a[0] is o, k)))
            kwargs = {"scale": 2.0} if kind is Mixed else {}
            result = optimizer.step(**kwargs)
            assert result == {Own: "own", Mixed: 2.0}.get(kind)
            assert calls == [("pre", True, kwargs), ("post", True, kwargs)], kind

    def test_lbfgs_has_them(self) -> None:
        w, calls = self.weight(), []
        optimizer = optim.LBFGS([w])
        optimizer.register_step_pre_hook(lambda *_: calls.append("pre"))

        def closure():
            optimizer.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        assert calls == ["pre"]


@pytest.mark.parametrize("name", CASES)
def test_copies_train_and_leave_the_original(name: str) -> None:
    kind, settings = CASES[name]
    for duplicate in (copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))):
        model = tw.nn.Linear(3, 2)
        optimizer = getattr(optim, kind)(model.parameters(), lr=0.05, **settings)

        def train(model, optimizer):
            optimizer.zero_grad()
            (model(tw.ones((1, 3))) ** 2).sum().backward()
            optimizer.step()

        train(model, optimizer)
        other, other_optimizer = duplicate((model, optimizer))
        before = [p.tolist() for p in model.parameters()]
        train(other, other_optimizer)
        assert [p.tolist() for p in model.parameters()] == before
        train(model, optimizer)
        assert [p.tolist() for p in other.parameters()] == [p.tolist() for p in model.parameters()]


def test_lbfgs_keeps_its_state_with_the_first_parameter() -> None:
    x, y = tw.ones(2).requires_grad_(), tw.zeros(1).requires_grad_()
    optimizer = optim.LBFGS([x, y], lr=0.1, max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = (x**4).sum() + (y - 1).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    done = optimizer.state[x]["n_iter"]
    assert done > 0
    optimizer.state[x]["mine"] = 1
    resumed = optim.LBFGS([x, y])
    resumed.load_state_dict(optimizer.state_dict())
    assert (resumed.state[x]["mine"], resumed.state[x]["n_iter"]) == (1, done)


def test_infinities_go_on_as_in_pytorch() -> None:
    """Every case from every parameter, through two gradients of any kind and six usual ones."""
    inf, nan = float("inf"), float("nan")
    grid = np.array(np.meshgrid([1, inf, -inf, nan], [0, 1, inf, -inf, nan], [1, inf, -inf, nan]))
    at, *firsts = grid.reshape(3, -1, 1)
    for name, (kind, settings) in CASES.items():
        for more in ({}, {"maximize": True}):
            own = [tw.asarray(x.copy()).requires_grad_() for x in at]
            theirs = [torch.tensor(x, requires_grad=True) for x in at]
            sides = [
                getattr(tw.optim, kind)(own, **settings, **more),
                getattr(torch.optim, kind)(theirs, **settings, **more),
            ]
            for number in range(8):
                rest = np.full_like(at, (-1.0) ** number)
                for i, g in enumerate(firsts[number] if number < 2 else rest):
                    own[i].grad, theirs[i].grad = tw.asarray(g.copy()), torch.tensor(g)
                for side in sides:
                    side.step()
                got = np.array([p.item() for p in own])
                want = np.array([p.item() for p in theirs])
                np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=f"{name} {number}")

    def test_what_is_saved_and_loaded_passes_them(self) -> None:
        for kind in (optim.SGD, optim.Adam, optim.ASGD):
            optimizer, calls = kind([self.weight()]), []

            def renamed(_, state):
                return {**state, "version": 2}

            def named(_, state, calls=calls):
                calls.append(state["version"])
                state["param_groups"] = [{**g, "lr": 7.0} for g in state["param_groups"]]

            def note(told, calls=calls):
                return lambda *_: calls.append(told)

            optimizer.register_state_dict_post_hook(named)
            handle = optimizer.register_state_dict_post_hook(renamed, prepend=True)
            optimizer.register_state_dict_pre_hook(note("second"))
            optimizer.register_state_dict_pre_hook(note("first"), prepend=True)
            saved = optimizer.state_dict()
            assert calls == ["first", "second", 2]
            assert (saved["version"], saved["param_groups"][0]["lr"]) == (2, 7.0)

            other = kind([self.weight()])

            def halved(_, state):
                state["param_groups"] = [{**g, "lr": 3.5} for g in state["param_groups"]]

            calls.clear()
            other.register_load_state_dict_pre_hook(halved)
            other.register_load_state_dict_pre_hook(note("before"), prepend=True)
            other.register_load_state_dict_post_hook(note("after"))
            other.register_load_state_dict_post_hook(calls.append)
            other.load_state_dict(saved)
            assert calls == ["before", "after", other]
            assert other.param_groups[0]["lr"] == 3.5
            assert saved["param_groups"][0]["lr"] == 7.0
            with pytest.raises(ValueError, match="param_groups"):
                other.load_state_dict({})
            assert calls.count("after") == 1

            handle.remove()
            optimizer.register_state_dict_post_hook(renamed, prepend=True)
            assert optimizer.state_dict()["version"] == 2

    def test_what_is_no_function_is_refused(self) -> None:
        optimizer = optim.SGD([self.weight()])
        for name in dir(optimizer):
            if name.startswith("register_"):
                with pytest.raises(TypeError, match=r"a hook of (steps|states) is a function"):
                    getattr(optimizer, name)(3)


class TestGroups:
    def test_a_dict_is_the_group(self) -> None:
        first = {"params": tw.ones(1).requires_grad_(), "lr": 0.5}
        second = {"params": [tw.ones(2).requires_grad_()], "name": "late"}
        optimizer = optim.SGD([first], lr=1.0)
        optimizer.add_param_group(second)
        assert optimizer.param_groups[0] is first
        assert optimizer.param_groups[1] is second
        assert (first["momentum"], second["lr"]) == (0, 1.0)
        first["lr"] = 0.25
        (w,) = first["params"]
        w.grad = tw.ones(1)
        optimizer.step()
        assert w.tolist() == [0.75]
        optimizer.load_state_dict(optimizer.state_dict())
        assert optimizer.param_groups[0] is first
        refused = {"params": [tw.ones(1).requires_grad_()], "lr": -1.0}
        with pytest.raises(ValueError, match="lr"):
            optimizer.add_param_group(refused)
        assert refused.keys() == {"params", "lr"}
        assert len(optimizer.param_groups) == 2


def test_state_follows_parameters_that_are_converted() -> None:
    """As if the state had been converted by hand, whichever of the parameters is."""
    rng = np.random.default_rng(2)
    grads = [[rng.normal(size=(3, 4)) for _ in range(3)] for _ in range(5)]
    for kind, converted in ((kind, i) for kind in fused_optimizers() for i in range(3)):
        results = []
        for by_hand in (False, True):
            params = [tw.ones((3, 4)).requires_grad_() for _ in range(3)]
            momentum = {"momentum": 0.9} if kind in ("SGD", "RMSprop") else {}
            optimizer = getattr(optim, kind)(params, lr=0.05, **momentum)
            for step, step_grads in enumerate(grads):
                changed = params[converted]
                if step in (2, 4):
                    changed.grad = None
                    changed.data = changed.detach().astype(tw.float64 if step == 2 else tw.float32)
                    for name, held in optimizer.state[changed].items() if by_hand else ():
                        if isinstance(held, tw.Tensor):
                            optimizer.state[changed][name] = held.astype(changed.dtype)
                for param, grad in zip(params, step_grads, strict=True):
                    param.grad = tw.asarray(grad, dtype=param.dtype)
                optimizer.step()
            results.append([param.tolist() for param in params])
        assert results[0] == results[1], (kind, converted)
