"""Optimisers against their published formulas, and against PyTorch where it is installed."""

import numpy as np
import pytest
from cases.ops.updates import BEYOND_PYTORCH, FORMULAS

import tilewright as tw
from tilewright import nn, optim
from tilewright.optim.fused import OF_ROW, FusedOptimizer

STEPS = 6


def start_values():
    return [[0.5, -1.25, 2.0, 0.0], [3.0, -0.125]]


def gradients(step):
    return [[0.1 * step, -0.2, 0.3, -1.0 * step], [0.5, 1.5 - step]]


def as_parameter(values):
    tensor = tw.asarray(values, dtype=tw.float64)
    tensor.requires_grad = True
    return tensor


def run_ours(make):
    params = [as_parameter(values) for values in start_values()]
    optimizer = make(params)
    for step in range(STEPS):
        for param, gradient in zip(params, gradients(step), strict=True):
            param.grad = tw.asarray(gradient, dtype=tw.float64)
        optimizer.step()
    return [param.tolist() for param in params]


def by_formula(update):
    """`update(x, g, state, step)` gives the new x of one element; `state` is a dict of its own."""
    results = []
    for i, values in enumerate(start_values()):
        row = []
        for j, x in enumerate(values):
            state, now = {}, x
            for step in range(STEPS):
                now = update(now, gradients(step)[i][j], state, step + 1)
            row.append(now)
        results.append(row)
    return results


CASES = FORMULAS
OF_PYTORCH = [name for name, (kind, *_) in CASES.items() if kind not in BEYOND_PYTORCH]


@pytest.mark.parametrize("name", CASES)
def test_steps_follow_the_formula(name):
    kind, settings, formula = CASES[name]
    ours = run_ours(lambda params: getattr(optim, kind)(params, lr=0.1, **settings))
    for got, want in zip(ours, by_formula(formula), strict=True):
        assert got == pytest.approx(want, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", OF_PYTORCH)
def test_steps_follow_pytorch(name):
    torch = pytest.importorskip("torch")
    kind, settings, _ = CASES[name]
    params = [torch.tensor(values, dtype=torch.float64) for values in start_values()]
    optimizer = getattr(torch.optim, kind)(params, lr=0.1, **settings)
    for step in range(STEPS):
        for param, gradient in zip(params, gradients(step), strict=True):
            param.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    ours = run_ours(lambda own: getattr(optim, kind)(own, lr=0.1, **settings))
    for got, want in zip(ours, params, strict=True):
        assert got == pytest.approx(want.tolist(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("rows", "named", "text"),
    [
        (("no_such_step",), "eps", "no step 'no_such_step'"),
        (("adamax_step",), "eps", "adamax_step: no settings for beta1, beta2"),
        (("average_step",), "eps", "no row has a default for eps"),
    ],
)
def test_a_class_that_its_row_contradicts_is_refused(rows, named, text):
    names = f"self, params, lr=1.0, {named}=OF_ROW, weight_decay=0.0, lr_decay=0.0, maximize=False"
    init = eval(f"lambda {names}: None", {"OF_ROW": OF_ROW})
    with pytest.raises((TypeError, ValueError), match=text):
        type("Wrong", (FusedOptimizer,), {"rows": rows, "__init__": init})


@pytest.mark.parametrize("size", [0, 1, 7, 15, 16, 17, 63, 1000, 100_003])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "Adagrad"])
def test_every_element_of_every_length(kind, size):
    """Equal elements must stay equal: vector bodies and remainders compute alike."""
    param = tw.ones((size,), requires_grad=True)
    optimizer = getattr(optim, kind)([param], lr=0.1)
    for _ in range(2):
        param.grad = tw.full((size,), 0.5)
        optimizer.step()
    if size:
        assert param.min().item() == param.max().item() != 1.0


# Significant bits: rounding to nearest changes a number by at most 2^-bits of its size.
HALF_BITS = {"float16": 11, "bfloat16": 8}


class TestHalfPrecision:
    @pytest.mark.parametrize("dtype", HALF_BITS)
    @pytest.mark.parametrize("size", [4, 1023, 1024, 1025, 70_001])
    @pytest.mark.parametrize("name", CASES)
    def test_each_step_is_the_formula_rounded_once(self, name, dtype, size):
        kind, settings, formula = CASES[name]
        rng = np.random.default_rng(size)
        # An element in every stage and piece, and both ends.
        watched = sorted({0, 1, size // 2, size - 1, *range(0, size, max(1, size // 97))})
        param = tw.asarray(rng.standard_normal(size)).astype(getattr(tw, dtype)).requires_grad_()
        optimizer = getattr(optim, kind)([param], lr=0.1, **settings)
        states = {i: {} for i in watched}
        for step in range(1, 4):
            before = param.detach().astype(tw.float64).tolist()
            param.grad = tw.asarray(rng.standard_normal(size)).astype(param.dtype)
            gradient = param.grad.astype(tw.float64).tolist()
            optimizer.step()
            after = param.detach().astype(tw.float64).tolist()
            for i in watched:
                exact = formula(before[i], gradient[i], states[i], step)
                half_place = abs(exact) * 2.0 ** -HALF_BITS[dtype]
                # 1e-6: what float32 rounds on the way, and the steps of float16's denormals.
                assert abs(after[i] - exact) <= 1.001 * half_place + 1e-6

    @pytest.mark.parametrize("dtype", HALF_BITS)
    @pytest.mark.parametrize(
        ("kind", "settings"),
        [("Adam", {}), ("AdamW", {}), ("Adagrad", {}), ("SGD", {"momentum": 0.9})],
    )
    def test_state_is_float32_and_resumes_from_a_file(self, kind, settings, dtype, tmp_path):
        def start():
            param = tw.full((9,), 0.5, dtype=getattr(tw, dtype), requires_grad=True)
            return param, getattr(optim, kind)([param], lr=0.01, **settings)

        def advance(param, optimizer):
            param.grad = tw.full((9,), 0.25, dtype=param.dtype)
            optimizer.step()

        (param, optimizer), (resumed, other) = start(), start()
        advance(param, optimizer)
        held = optimizer.state_dict()["state"][0]
        assert {v.dtype for v in held.values() if isinstance(v, tw.Tensor)} == {tw.float32}
        tw.save({"param": param, "optimizer": optimizer.state_dict()}, tmp_path / "checkpoint")
        loaded = tw.load(tmp_path / "checkpoint")
        resumed.detach().copy_(loaded["param"])
        other.load_state_dict(loaded["optimizer"])
        for each in ((param, optimizer), (resumed, other)):
            advance(*each)
        assert resumed.tolist() == param.tolist()

    def test_a_mean_square_goes_on_below_the_last_place_of_bfloat16(self):
        """0.999 of a bfloat16 rounds back to it: kept so, the mean would never fall."""
        param = tw.ones((3,), dtype=tw.bfloat16, requires_grad=True)
        optimizer = optim.Adam([param], lr=0.0)
        squares = []
        for gradient in (1.0, 0.0, 0.0):
            param.grad = tw.full((3,), gradient, dtype=tw.bfloat16)
            optimizer.step()
            squares.append(optimizer.state_dict()["state"][0]["exp_avg_sq"][0].item())
        assert squares == pytest.approx([1e-3, 0.999e-3, 0.999**2 * 1e-3], rel=1e-5)

    def test_types_mix_in_a_group(self):
        params = [
            tw.ones((5,), dtype=getattr(tw, name), requires_grad=True)
            for name in ("float16", "bfloat16", "float32", "float64")
        ]
        optimizer = optim.SGD(params, lr=0.25)
        for param in params:
            param.grad = tw.ones((5,), dtype=param.dtype)
        optimizer.step()
        assert [param.tolist() for param in params] == [[0.75] * 5] * 4

    @pytest.mark.parametrize("dtype", HALF_BITS)
    def test_a_model_learns(self, dtype):
        tw.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 8, dtype=getattr(tw, dtype)), nn.Tanh())
        optimizer = optim.Adam(model.parameters(), lr=0.05)
        x = tw.randn((32, 3)).astype(getattr(tw, dtype))
        losses = []
        for _ in range(30):
            loss = ((model(x) - 0.5) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.25 * losses[0]

    def test_state_of_pytorchs_bfloat16_optimiser_loads(self):
        torch = pytest.importorskip("torch")
        theirs = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
        optimizer = torch.optim.Adam([theirs], lr=0.01)
        theirs.grad = torch.full((4,), 0.5, dtype=torch.bfloat16)
        optimizer.step()
        ours = optim.Adam([tw.ones((4,), dtype=tw.bfloat16, requires_grad=True)])
        state = ours.state_dict()
        state["state"] = optimizer.state_dict()["state"]
        ours.load_state_dict(state)
        held = ours.state_dict()["state"][0]
        assert held["step"] == 1
        assert held["exp_avg"].dtype == tw.float32
        assert held["exp_avg"].tolist() == state["state"][0]["exp_avg"].float().tolist()


class TestWhichParameters:
    def test_parameters_without_gradient_stay(self):
        used, unused = as_parameter([1.0]), as_parameter([1.0])
        optimizer = optim.Adam([used, unused], lr=0.1)
        used.grad = tw.asarray([1.0], dtype=tw.float64)
        optimizer.step()
        assert used.item() != 1.0
        assert unused.item() == 1.0

    @pytest.mark.parametrize(
        ("kind", "settings"),
        [("Adam", {}), ("SGD", {"momentum": 0.9, "dampening": 0.5}), ("Adagrad", {})],
    )
    def test_a_late_parameter_starts_at_its_own_first_step(self, kind, settings):
        late, fresh = as_parameter([1.0]), as_parameter([1.0])
        first = as_parameter([1.0])
        optimizer = getattr(optim, kind)([first, late], lr=0.1, **settings)
        for _ in range(5):
            first.grad = tw.asarray([1.0], dtype=tw.float64)
            optimizer.step()
        alone = getattr(optim, kind)([fresh], lr=0.1, **settings)
        for param in (late, fresh):
            param.grad = tw.asarray([1.0], dtype=tw.float64)
        optimizer.step()
        alone.step()
        assert late.item() == fresh.item()

    def test_gradients_of_a_model(self):
        tw.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = optim.Adam(model.parameters(), lr=0.01)
        x, y = tw.randn((16, 3)), tw.randn((16, 1))
        losses = []
        for _ in range(20):
            loss = tw.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]

    def test_zero_grad(self):
        param = as_parameter([1.0])
        param.grad = tw.asarray([1.0], dtype=tw.float64)
        optim.SGD([param], lr=0.1).zero_grad()
        assert param.grad is None

    def test_groups_have_settings_of_their_own(self):
        slow, quick = as_parameter([1.0]), as_parameter([1.0])
        optimizer = optim.SGD([{"params": [slow]}, {"params": [quick], "lr": 0.5}], lr=0.1)
        for param in (slow, quick):
            param.grad = tw.asarray([1.0], dtype=tw.float64)
        optimizer.step()
        assert (slow.item(), quick.item()) == (0.9, 0.5)

    def test_a_changed_learning_rate_counts_at_the_next_step(self):
        param = as_parameter([1.0])
        optimizer = optim.SGD([param], lr=0.1)
        optimizer.param_groups[0]["lr"] = 0.5
        param.grad = tw.asarray([1.0], dtype=tw.float64)
        optimizer.step()
        assert param.item() == 0.5


class TestState:
    def test_resuming_equals_going_on(self):
        params = [as_parameter(values) for values in start_values()]
        resumed_params = [as_parameter(values) for values in start_values()]
        optimizer, resumed = optim.Adam(params, lr=0.1), optim.Adam(resumed_params, lr=0.7)
        self._advance(optimizer, params, range(3))
        resumed.load_state_dict(optimizer.state_dict())
        for target, source in zip(resumed_params, params, strict=True):
            target.detach().copy_(source.detach())
        self._advance(optimizer, params, range(3, 6))
        self._advance(resumed, resumed_params, range(3, 6))
        assert [p.tolist() for p in resumed_params] == [p.tolist() for p in params]

    def test_state_has_pytorchs_form(self):
        params = [as_parameter(values) for values in start_values()]
        optimizer = optim.SGD(params, lr=0.1, momentum=0.9)
        self._advance(optimizer, params, range(1))
        state = optimizer.state_dict()
        assert state["param_groups"][0]["params"] == [0, 1]
        assert state["state"][0]["momentum_buffer"].shape == (4,)
        assert state["state"][0]["step"] == 1

    def test_what_does_not_fit_changes_nothing(self):
        optimizer = optim.Adam([as_parameter([1.0])], lr=0.1)
        with pytest.raises(ValueError, match=r"groups of \[2\] parameters do not fit"):
            optimizer.load_state_dict(
                optim.Adam([as_parameter([1.0]), as_parameter([1.0])]).state_dict()
            )
        other = optim.Adam([param := as_parameter([1.0, 2.0])], lr=0.9)
        self._advance(other, [param], range(1), [[1.0, 1.0]])
        with pytest.raises(ValueError, match=r"exp_avg of parameter 0: shape \(2,\)"):
            optimizer.load_state_dict(other.state_dict())
        assert optimizer.param_groups[0]["lr"] == 0.1

    @pytest.mark.parametrize(
        ("damage", "text"),
        [
            (lambda s: s.pop("state"), "'state' is missing"),
            (lambda s: s.pop("param_groups"), "'param_groups' is missing"),
            (lambda s: s.update(state=[]), "'state' is missing or has another form"),
            (lambda s: s["param_groups"][0].pop("params"), "group 0 has no list 'params'"),
            (lambda s: s["param_groups"][0].update(params=["a", "b"]), "numbers of parameters"),
            (lambda s: s["param_groups"][0].update(params=[0, 0]), "a parameter twice"),
            (lambda s: s["param_groups"][0].update(lr=-1.0), "lr must not be negative"),
            (lambda s: s["param_groups"][0].update(lr=float("nan")), "lr must be finite"),
            (lambda s: s["param_groups"][0].update(betas=(0.9, 1.0)), r"betas lie in \[0, 1\)"),
            (lambda s: s["param_groups"][0].update(betas=3), "betas are two numbers"),
            (lambda s: s["state"].update({7: {}}), "state of 7: no such parameter"),
            (lambda s: s["state"].update({1: 3}), "state of 1: .*no dict"),
            (lambda s: s["state"][1].update(step=-1), "step of parameter 1 .*got -1"),
            (lambda s: s["state"][1].update(step=1.5), "step of parameter 1 .*got 1.5"),
            (lambda s: s["state"][1].update(step=float("nan")), "step of parameter 1"),
            (lambda s: s["state"][1].update(step=2**64), "step of parameter 1"),
            (lambda s: s["state"][1].update(step="3"), "step of parameter 1 .*got '3'"),
            (lambda s: s["state"][1].pop("exp_avg"), "exp_avg of parameter 1 is missing"),
            (
                lambda s: s["state"][1].update(exp_avg=tw.zeros((2,))),
                "exp_avg of parameter 1: float32 does not fit float64",
            ),
            (
                lambda s: s["state"][1].update(exp_avg_sq=tw.zeros((3,), dtype=tw.float64)),
                r"exp_avg_sq of parameter 1: shape \(3,\)",
            ),
        ],
    )
    def test_a_damaged_state_changes_nothing(self, damage, text):
        params = [as_parameter(values) for values in start_values()]
        optimizer = optim.Adam(params, lr=0.1)
        self._advance(optimizer, params, range(1))
        state, before = optimizer.state_dict(), self._as_lists(optimizer)
        state["param_groups"][0]["lr"] = 0.7
        state["state"][0]["step"] = 9
        damage(state)
        with pytest.raises(ValueError, match=text):
            optimizer.load_state_dict(state)
        assert self._as_lists(optimizer) == before

    @pytest.mark.parametrize("name", OF_PYTORCH)
    def test_going_on_from_pytorchs_state(self, name):
        torch = pytest.importorskip("torch")
        kind, settings, _ = CASES[name]
        theirs = [torch.tensor(values, dtype=torch.float64) for values in start_values()]
        optimizer = getattr(torch.optim, kind)(theirs, lr=0.1, **settings)
        ours = [as_parameter(values) for values in start_values()]
        resumed = getattr(optim, kind)(ours, lr=0.7)

        def step_theirs(number):
            for param, gradient in zip(theirs, gradients(number), strict=True):
                param.grad = torch.tensor(gradient, dtype=torch.float64)
            optimizer.step()

        for number in range(3):
            step_theirs(number)
        resumed.load_state_dict(optimizer.state_dict())
        for target, source in zip(ours, theirs, strict=True):
            target.detach().copy_(tw.asarray(source))
        step_theirs(3)
        self._advance(resumed, ours, range(3, 4))
        for got, want in zip(ours, theirs, strict=True):
            assert got.tolist() == pytest.approx(want.tolist(), rel=1e-12, abs=1e-12)

    def test_groups_keep_entries_of_their_users(self):
        a, b = as_parameter([1.0]), as_parameter([2.0])
        optimizer = optim.Adam([{"params": a, "name": "backbone", "lr_scale": 0.5}, {"params": b}])
        optimizer.param_groups[1]["note"] = ["head"]
        resumed = optim.Adam([{"params": as_parameter([1.0])}, {"params": as_parameter([1.0])}])
        resumed.load_state_dict(optimizer.state_dict())
        optimizer.param_groups[1]["note"].append("later")
        first, second = resumed.param_groups
        assert (first["name"], first["lr_scale"], second["note"]) == ("backbone", 0.5, ["head"])

    @pytest.mark.parametrize("state", [None, [], 3])
    def test_a_state_is_a_dict(self, state):
        with pytest.raises(TypeError, match="load_state_dict: expected a dict, got"):
            optim.SGD([as_parameter([1.0])]).load_state_dict(state)

    def test_steps_may_be_tensors_as_pytorchs_are(self):
        params = [as_parameter([1.0])]
        optimizer = optim.Adam(params)
        self._advance(optimizer, params, range(1), [[1.0]])
        state = optimizer.state_dict()
        state["state"][0]["step"] = tw.asarray(4.0)
        optimizer.load_state_dict(state)
        assert optimizer.state_dict()["state"][0]["step"] == 4

    @staticmethod
    def _as_lists(optimizer):
        state = optimizer.state_dict()
        lists = {
            number: {key: v.tolist() if isinstance(v, tw.Tensor) else v for key, v in held.items()}
            for number, held in state["state"].items()
        }
        return state["param_groups"], lists

    @staticmethod
    def _advance(optimizer, params, steps, fixed=None):
        for step in steps:
            for param, gradient in zip(params, fixed or gradients(step), strict=True):
                param.grad = tw.asarray(gradient, dtype=tw.float64)
            optimizer.step()


class TestErrors:
    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (lambda p: optim.SGD(p, lr=-1.0), "SGD: lr must not be negative"),
            (lambda p: optim.SGD(p, lr=float("nan")), "SGD: lr must be finite, got nan"),
            (lambda p: optim.Adam(p, lr=float("inf")), "Adam: lr must be finite, got inf"),
            (lambda p: optim.SGD(p, lr=10**400), "SGD: lr must be finite"),
            (lambda p: optim.SGD(p, dampening=float("nan")), "dampening must be finite"),
            (lambda p: optim.Adam(p, betas=(0.9, 0.9, 0.9)), "betas are two numbers"),
            (lambda p: optim.SGD([{"lr": 0.1}]), "a group needs 'params'"),
            (lambda p: optim.SGD([p[0] * 2]), r"parameter 0, shape \(1,\), is the result of"),
            (lambda p: optim.SGD(p, nesterov=True), "nesterov needs a momentum"),
            (lambda p: optim.Adam(p, betas=(1.0, 0.9)), r"Adam: betas lie in \[0, 1\)"),
            (lambda p: optim.AdamW(p, eps=-1.0), "AdamW: eps must not be negative"),
            (lambda p: optim.Adagrad(p, weight_decay=-1.0), "weight_decay must not be"),
            (lambda p: optim.SGD([]), "no parameters"),
            (lambda p: optim.SGD([*p, *p]), "given twice"),
            (
                lambda p: optim.SGD([{"params": p, "momentun": 0.9}]),
                "unknown settings: momentun; did you mean momentum",
            ),
            (lambda p: optim.Adam([{"params": p, "beta": (0.9, 0.9)}]), "did you mean betas"),
        ],
    )
    def test_settings(self, make, text):
        with pytest.raises(ValueError, match=text):
            make([as_parameter([1.0])])

    def test_parameters_must_be_tensors(self):
        with pytest.raises(TypeError, match="parameter 0 is a float, not a tensor"):
            optim.SGD([1.0])

    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (lambda p: optim.SGD(p, lr="a"), "SGD: lr must be a number, got 'a'"),
            (lambda p: optim.SGD(p, lr=None), "SGD: lr must be a number, got None"),
            (lambda p: optim.Adagrad(p, lr=True), "Adagrad: lr must be a number, got True"),
            (lambda p: optim.Adam(p, betas=("a", 0.9)), "Adam: betas must be a number"),
            (lambda p: optim.SGD(p, nesterov=1), "nesterov is True or False"),
            (lambda p: optim.SGD(None), "expected a list of tensors.* got NoneType"),
            (lambda p: optim.SGD(p[0]), "expected a list of tensors.* got Tensor"),
            (lambda p: optim.SGD(set(p)), "expected a list of tensors.* got set"),
            (lambda p: optim.SGD([{"params": p}, 3]), "a group is a dict, not int"),
        ],
    )
    def test_types_of_settings(self, make, text):
        with pytest.raises(TypeError, match=text):
            make([as_parameter([1.0])])

    @pytest.mark.parametrize("dtype", ["int64", "bool", "complex64"])
    def test_dtypes_that_the_kernels_do_not_take(self, dtype):
        param = tw.zeros((2,), dtype=getattr(tw, dtype))
        with pytest.raises(TypeError, match=f"{dtype}; the fused kernels take float16, bfloat16"):
            optim.SGD([param])

    def test_a_refused_group_is_not_added(self):
        optimizer = optim.SGD([as_parameter([1.0])])
        with pytest.raises(ValueError, match="lr must not be negative"):
            optimizer.add_param_group({"params": as_parameter([1.0]), "lr": -1.0})
        assert len(optimizer.param_groups) == 1

    def test_repr_shows_settings(self):
        text = repr(optim.SGD([as_parameter([1.0])], lr=0.5))
        assert text.startswith("SGD(lr=0.5, momentum=0.0")
        assert text.endswith("1 parameters)")
