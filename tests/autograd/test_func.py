"""Functions of functions, calls with other parameters, hooks of steps, and comparisons."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tilewright as tw
from tilewright import func, nn

torch = pytest.importorskip("torch")

X = np.array([0.5, -1.5, 2.0])


@pytest.mark.filterwarnings("ignore")  # of PyTorch's
@pytest.mark.parametrize(
    "make",
    [
        lambda f: f.grad(lambda x, y: (x**2 * y).sum()),
        lambda f: f.grad(lambda x, y: (x**2 * y).sum(), argnums=1),
        lambda f: f.grad(lambda x, y: (x**2 * y).sum(), argnums=(0, 1)),
        lambda f: f.grad(lambda x, y: f.grad(lambda z: (z**3 * y).sum())(x).sum()),
        lambda f: f.grad(lambda x, y: (x * f.grad(lambda z: (z**2 * x).sum())(y)).sum()),
        lambda f: f.grad_and_value(lambda x, y: ((x * y).sum(), x + y), has_aux=True),
        lambda f: f.jacrev(lambda x, y: x**2 * y),
        lambda f: f.jacrev(lambda x, y: x**2 * y, argnums=1),
        lambda f: f.hessian(lambda x, y: (x**3 * y).sum()),
        lambda f: lambda x, y: f.jvp(lambda a: a**2, (x,), (y,)),
        lambda f: lambda x, y: f.vjp(lambda a, b: a**2 * b, x, y)[1](y),
    ],
)
def test_derivatives_are_pytorchs(make) -> None:
    x, y = tw.asarray(X), tw.asarray(X + 1)
    got = make(func)(x, y)
    want = make(torch.func)(torch.tensor(X), torch.tensor(X + 1))

    def flat(value):
        if not isinstance(value, (tuple, list)):
            return [value]
        return [each for part in value for each in flat(part)]

    for a, b in zip(flat(got), flat(want), strict=True):
        assert not a.requires_grad
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert not x.requires_grad


def test_gradients_of_dicts_of_parameters() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    parameters = {name: x.detach() for name, x in model.named_parameters()}
    x = tw.asarray(X)[None]

    def loss(values, x):
        return func.functional_call(model, values, x).square().sum()

    grads = func.grad(loss)(parameters, x)
    model(x).square().sum().backward()
    assert grads.keys() == parameters.keys()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(grads[name], parameter.grad, rtol=1e-12)


def test_gradients_lead_outwards_and_to_nowhere() -> None:
    w = tw.tensor([2.0], requires_grad=True)
    inner = func.grad(lambda x: (x**3).sum())(w)
    inner.sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [12.0]
    assert func.grad(lambda x: tw.asarray(3.0))(tw.asarray([1.0])).tolist() == [0.0]
    with tw.no_grad():
        assert func.grad(lambda x: x * x)(tw.asarray(3.0)).item() == 6.0


def test_calls_with_other_parameters() -> None:
    class Tied(nn.Module):
        def __init__(self):
            self.a = nn.Parameter(tw.ones(2))
            self.b = self.a
            self.more = nn.ParameterList([tw.ones(1)])
            self.by_name = nn.ParameterDict({"c": tw.ones(1)})
            self.register_buffer("mean", tw.zeros(1))

        def forward(self, x, scale=1.0):
            total = self.a.sum() + 10 * self.b.sum() + 100 * self.more[0].sum()
            return x + scale * (total + 1000 * self.by_name["c"].sum() + 10000 * self.mean.sum())

    module = Tied()
    x = tw.asarray(0.0)
    two = {"a": 2 * tw.ones(2)}
    rest = {"more.0": 3 * tw.ones(1), "by_name.c": 4 * tw.ones(1), "mean": tw.ones(1)}
    assert func.functional_call(module, two, (x,)).item() == 4 + 40 + 100 + 1000
    assert func.functional_call(module, two, x, tie_weights=False).item() == 4 + 20 + 100 + 1000
    full = func.functional_call(module, (two, rest), x, {"scale": 0.5})
    assert full.item() == 0.5 * (44 + 300 + 4000 + 10000)
    assert module(x).item() == 2 + 20 + 100 + 1000
    assert module.a is module.b
    with pytest.raises(ZeroDivisionError):
        func.functional_call(module, two, (1 / 0,) if x.ndim else (_Fails(),))
    assert isinstance(module.a, nn.Parameter)
    for given, options, error, text in (
        ({"q": x}, {}, ValueError, "unknown: q"),
        (two, {"strict": True}, ValueError, "missing: b, by_name.c, mean, more.0"),
        ((two, two), {}, ValueError, "'a' stands in two dicts"),
        ({"a": 3}, {}, TypeError, "a: expected a tensor, got 3"),
    ):
        with pytest.raises(error, match=f"functional_call: .*{text}"):
            func.functional_call(module, given, x, **options)


class _Fails:
    def __add__(self, other):
        raise ZeroDivisionError


def test_refused_derivatives() -> None:
    x = tw.asarray([1.0, 2.0])
    for call, error, text in (
        (lambda: func.grad(lambda x: x)(x), ValueError, r"gave shape \(2,\), expected one number"),
        (lambda: func.grad(lambda x: 3.0)(x), TypeError, "gave float, expected a tensor"),
        (lambda: func.grad(lambda x: x.sum(), 1)(x), IndexError, "argument 1 of 1 is not there"),
        (lambda: func.grad(lambda x: x)(3.0), TypeError, "argument 0 holds no tensor, got float"),
        (lambda: func.jacrev(lambda x: x)(3.0), TypeError, "argument 0 is a float, not a tensor"),
        (lambda: func.hessian(lambda x: x, 2)(x), IndexError, "argument 2 of 1 is not there"),
    ):
        with pytest.raises(error, match=text):
            call()


# ---- hooks of steps ----


def test_hooks_around_steps_are_pytorchs() -> None:
    logs = []
    for library in (tw, torch):
        log: list = []
        p = library.asarray(np.ones(2)).requires_grad_()
        for make in (
            lambda q, lib=library: lib.optim.SGD([q], lr=0.5),
            lambda q, lib=library: lib.optim.LBFGS([q], lr=0.5, max_iter=1),
        ):
            optimizer = make(p)

            def closure(optimizer=optimizer, p=p, log=log):
                optimizer.zero_grad()
                loss = (p * p).sum()
                loss.backward()
                log.append("closure")
                return loss

            before = optimizer.register_step_pre_hook(
                lambda o, args, kwargs, log=log: log.append(("before", len(args), kwargs))
            )
            after = optimizer.register_step_post_hook(
                lambda o, args, kwargs, log=log, p=p: log.append(("after", p.tolist()))
            )
            optimizer.step(closure)
            before.remove()
            before.remove()
            optimizer.step(closure)
            after.remove()
            swap = optimizer.register_step_pre_hook(lambda o, a, k, c=closure: ((o, c), {}))
            optimizer.step()
            swap.remove()
        logs.append(log)
    assert logs[0] == logs[1]
    with pytest.raises(TypeError, match="a hook of steps is a function, got int"):
        tw.optim.SGD([tw.zeros(1, requires_grad=True)]).register_step_pre_hook(3)


# ---- comparisons ----


@pytest.mark.parametrize(
    ("a", "b", "options", "text"),
    [
        ([1.0, 2.0], [1.0, 2.0], {}, None),
        ([1.0, 2.0], [1.0, 2.0 + 1e-6], {}, None),
        ([1.0, 2.0], [1.0, 2.1], {}, r"1 of 2 elements are not close .* 2.0 at \(1,\), expected"),
        ([1.0, np.nan], [1.0, np.nan], {}, "1 of 2"),
        ([1.0, np.nan], [1.0, np.nan], {"equal_nan": True}, None),
        ([np.inf, -np.inf], [np.inf, -np.inf], {}, None),
        ([np.inf, 1.0], [-np.inf, 1.0], {}, "1 of 2"),
        ([1.0, 2.0], [1.0, 2.1], {"rtol": 0.1, "atol": 0.0}, None),
        ([1.0], [1.0, 2.0], {}, r"shape \(1,\), expected \(2,\)"),
        (3.0, 3.1, {}, r"3.0 at \(\), expected 3"),
    ],
)
def test_comparisons_are_pytorchs(a, b, options, text) -> None:
    for library, error in ((torch.testing, AssertionError), (tw.testing, AssertionError)):
        make = torch.tensor if library is torch.testing else tw.tensor
        if text is None:
            library.assert_close(make(a), make(b), **options)
            continue
        with pytest.raises(error, match=text if library is tw.testing else None):
            library.assert_close(make(a), make(b), **options)


def test_comparisons_of_other_things() -> None:
    close = tw.testing.assert_close
    x = tw.asarray([1, 2])
    close({"a": [x, 3.0]}, {"a": [x, 3.0]})
    close(np.ones(2), tw.ones(2, dtype=tw.float64))
    close(tw.ones(2), tw.ones(2, dtype=tw.float64), check_dtype=False)
    close(tw.asarray([1 + 2j]), tw.asarray([1 + 2j]))
    close(True, True)
    close(tw.ones(0), tw.ones(0))
    for a, b, options, error, text in (
        (x, tw.asarray([1, 3]), {}, AssertionError, "2 at"),
        (x, x.astype(tw.int32), {}, AssertionError, "int64, expected int32"),
        (x.to("null"), x, {}, AssertionError, "lies on null, expected cpu"),
        ({"a": x}, {"b": x}, {}, AssertionError, "keys differ: a, b"),
        ({"a": [x]}, {"a": [x, x]}, {}, AssertionError, r"\['a'\]: 1 parts, expected 2"),
        ([x, x + 1], [x, x], {}, AssertionError, r"^\[1\]: 2 of 2 elements"),
        (x, x + 1, {"msg": "told"}, AssertionError, "^told$"),
        (x, "x", {}, TypeError, "expected tensors, arrays or numbers, got str"),
        (x, x, {"rtol": 0.1}, ValueError, "give rtol and atol, or neither"),
        (x, x, {"rtol": -0.1, "atol": 0.0}, ValueError, "rtol must be at least 0, got -0.1"),
    ):
        with pytest.raises(error, match=text):
            close(a, b, **options)


def test_other_threads_are_not_inside() -> None:
    """What is a gradient for one thread is no gradient's gradient because another one derives."""
    inside, leave = threading.Event(), threading.Event()

    def waits(x: tw.Tensor) -> tw.Tensor:
        inside.set()
        assert leave.wait(30)
        return (x * x).sum()

    other = threading.Thread(target=lambda: tw.func.grad(waits)(tw.ones(3)))
    other.start()
    try:
        assert inside.wait(30)
        found = tw.func.grad(lambda x: (x * x * x).sum())(tw.ones(3))
    finally:
        leave.set()
        other.join()
    assert not found.requires_grad
    assert found.tolist() == [3, 3, 3]


def test_a_module_with_two_names_is_afterwards_what_it_was():
    class Twice(tw.nn.Module):
        def __init__(self):
            self.a = tw.nn.Linear(2, 2)
            self.b = self.a
            self.norm = tw.nn.BatchNorm1d(2)
            self.list = tw.nn.ParameterList([tw.ones(2)])
            self.list_again = self.list

        def forward(self, x):
            return self.norm(self.b(self.a(x))) + self.list[0]

    model = Twice()
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    before = {name: (x, x.tolist()) for name, x in model.state_dict(keep_vars=True).items()}
    x = tw.asarray([[1.0, 2.0], [3.0, 5.0]])
    for tie in (True, False):
        given = {name: y.detach() * 2 for name, y in model.named_parameters(remove_duplicate=tie)}
        given["norm.running_mean"] = tw.zeros(2)
        tw.func.functional_call(model, given, x, tie_weights=tie)
        with pytest.raises(ValueError, match="linear"):
            tw.func.functional_call(model, given, tw.ones((2, 7)), tie_weights=tie)
        after = model.state_dict(keep_vars=True)
        assert [name for name, _ in model.named_parameters(remove_duplicate=False)] == names
        for name, (tensor, values) in before.items():
            assert after[name] is tensor
            assert after[name].tolist() == values or name.startswith("norm.")
    model.eval()
    only = {"a.weight": tw.ones((2, 2))}
    want = model.norm(tw.linear(tw.linear(x, only["a.weight"], model.a.bias), only["a.weight"],
                                model.a.bias)) + model.list[0]  # fmt: skip
    assert tw.func.functional_call(model, only, x).tolist() == want.tolist()
