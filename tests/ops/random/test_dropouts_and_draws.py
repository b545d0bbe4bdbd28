"""Dropouts of channels, and random numbers of further distributions, made anew and in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cases import arrays

import tilewright as tw
from tilewright import nn

F = nn.functional
COUNT = 40_000

# ---- dropouts ----

CHANNELS = (
    ("dropout1d", (40, 50, 3)),
    ("dropout1d", (900, 3)),
    ("dropout2d", (40, 50, 3, 2)),
    ("dropout2d", (40, 50, 3)),
    ("dropout3d", (40, 50, 2, 1, 3)),
    ("dropout3d", (900, 2, 1, 3)),
)


@pytest.mark.parametrize(("name", "shape"), CHANNELS)
def test_channels_are_dropped_whole(name, shape) -> None:
    y = getattr(F, name)(tw.ones(shape), 0.25, generator=tw.Generator(1)).numpy()
    lacks_batch = name != "dropout2d" and len(shape) == {"dropout1d": 2, "dropout3d": 4}[name]
    rows = y.reshape(shape[0], -1) if lacks_batch else y.reshape(shape[0] * shape[1], -1)
    assert (rows == rows[:, :1]).all()
    assert set(np.unique(rows)) == {np.float32(0), np.float32(1 / 0.75)}
    assert (rows[:, 0] == 0).mean() == pytest.approx(0.25, abs=0.05)


ALL = ("dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


def input_of(name: str, dtype: tw.dtype = tw.float32) -> tw.Tensor:
    rank = 5 if name == "dropout3d" else 4 if name == "dropout2d" else 3
    return tw.randn((4, 30, 3, 2, 5)[:rank], dtype=dtype, generator=tw.Generator(3))


@pytest.mark.parametrize("name", ALL)
def test_dropouts_pass_everything_in_evaluation_and_with_p_0(name) -> None:
    x = input_of(name)
    for y in (getattr(F, name)(x, 0.5, training=False), getattr(F, name)(x, 0.0, training=True)):
        np.testing.assert_array_equal(y.numpy(), x.numpy())
    assert not getattr(F, name)(x, 1.0, training=True).numpy().any()


@pytest.mark.parametrize("name", ALL)
def test_gradients_have_the_mask_of_the_result(name) -> None:
    function = getattr(F, name)
    x = input_of(name, tw.float64).requires_grad_()
    y = function(x, 0.4, training=True, generator=tw.Generator(5))
    zero = function(
        tw.zeros_like(x), 0.4, training=True, generator=tw.Generator(5)
    )  # what is added to x
    (dx,) = tw.grad(y.sum(), [x])
    np.testing.assert_allclose((dx * x).detach().numpy(), (y - zero).detach().numpy(), atol=1e-12)
    assert tw.gradcheck(
        lambda x: function(x, 0.4, training=True, generator=tw.Generator(5)), (x[:2, :3],)
    )


@pytest.mark.parametrize("name", ALL)
def test_masks_are_the_same_for_all_threads_and_in_checkpoints(name, threads) -> None:
    x = input_of(name).requires_grad_()
    found = []
    for count in (1, 2, 5):
        tw.set_num_threads(count)
        tw.manual_seed(7)
        y = getattr(F, name)(x, training=True)
        found.append(y.detach().numpy().tobytes())
    assert found[0] == found[1] == found[2]

    def loss(x: tw.Tensor) -> tw.Tensor:
        return tw.exp(getattr(F, name)(x, training=True)).sum()

    grads = []
    for wrapped in (loss, lambda x: tw.checkpoint(loss, x)):
        tw.manual_seed(8)
        grads.append(tw.grad(wrapped(x), [x])[0].numpy().tobytes())
    assert grads[0] == grads[1]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_alpha_dropout_keeps_mean_and_variance(p) -> None:
    x = tw.randn((300, 400), generator=tw.Generator(2))
    x = F.selu(x)
    y = F.alpha_dropout(x, p, training=True, generator=tw.Generator(4)).numpy()
    assert y.mean() == pytest.approx(0, abs=0.03)
    assert y.std() == pytest.approx(1, abs=0.03)
    y = F.feature_alpha_dropout(tw.randn((300, 400, 2)), p, True, generator=tw.Generator(4)).numpy()
    assert y.mean() == pytest.approx(0, abs=0.03)
    assert y.std() == pytest.approx(1, abs=0.03)
    of_zeros = F.feature_alpha_dropout(tw.zeros((30, 40, 3)), p, True).numpy()
    assert (of_zeros == of_zeros[..., :1]).all()
    assert len(np.unique(of_zeros)) == 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dropouts_of_other_types(dtype) -> None:
    for name in ALL:
        x = input_of(name).astype(getattr(tw, dtype))
        assert getattr(F, name)(x, training=True).dtype == x.dtype


LAYERS = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


@pytest.mark.parametrize("name", LAYERS)
def test_dropout_layers(name) -> None:
    layer = getattr(nn, name)(0.3)
    assert repr(layer) == f"{name}(p=0.3)"
    x = input_of(name.lower())
    assert (layer(x).numpy() != x.numpy()).any()
    np.testing.assert_array_equal(layer.eval()(x).numpy(), x.numpy())
    with pytest.raises(ValueError, match=f"{name}: probability lies between 0 and 1"):
        getattr(nn, name)(1.5)


@pytest.mark.parametrize("name", ["dropout", *ALL])
def test_dropouts_in_place(name) -> None:
    function, x = getattr(F, name), input_of(name) + 1
    leaf = x.copy().requires_grad_()
    changed = leaf * 1
    kept = function(x, 0.4, True, generator=tw.Generator(5))
    assert function(changed, 0.4, True, True, generator=tw.Generator(5)) is changed
    np.testing.assert_array_equal(changed.detach().numpy(), kept.numpy())
    changed.sum().backward()
    twin = x.copy().requires_grad_()
    function(twin, 0.4, True, generator=tw.Generator(5)).sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), twin.grad.numpy())
    # In evaluation nothing changes: relu's gradient still finds the result that it keeps.
    y = F.relu(twin)
    assert function(y, 0.4, training=False, inplace=True) is y
    y.sum().backward()


DROPOUTS_REFUSED: tuple[tuple[Any, type[Exception], str], ...] = (
    (lambda: F.dropout1d(tw.ones((3,))), ValueError, "dropout1d: input must have 2 or 3"),
    (lambda: F.dropout2d(tw.ones((3, 2))), ValueError, "dropout2d: input must have 3 or 4"),
    (lambda: F.dropout3d(tw.ones((3, 2))), ValueError, "dropout3d: input must have 4 or 5"),
    (lambda: F.dropout1d(tw.ones((3, 2)), 1.5), ValueError, r"p = 1.5 is not in \[0, 1\]"),
    (lambda: F.alpha_dropout(tw.ones((3,)), -1.0), ValueError, r"p = -1 is not in \[0, 1\]"),
    (lambda: F.dropout1d(tw.ones((3, 2), dtype=tw.int32)), TypeError, "floating-point input"),
    (lambda: F.feature_alpha_dropout(tw.ones((3,)), 0.5, True), ValueError, "input must be"),
)


@pytest.mark.parametrize(("call", "error", "text"), DROPOUTS_REFUSED)
def test_dropouts_refuse(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


# ---- draws ----


def moments(x: tw.Tensor) -> tuple[float, float]:
    values = arrays.array(x).astype(np.float64)
    return float(values.mean()), float(values.std())


def generator() -> tw.Generator:
    return tw.Generator(11)


DRAWS: dict[str, tuple[Any, float, float]] = {
    "exponential": (lambda **o: tw.exponential(2.0, (COUNT,), **o), 0.5, 0.5),
    "log_normal": (
        lambda **o: tw.log_normal(0.0, 0.5, (COUNT,), **o),
        math.exp(0.125),
        math.sqrt((math.exp(0.25) - 1) * math.exp(0.25)),
    ),
    "geometric": (lambda **o: tw.geometric(0.25, (COUNT,), **o), 4.0, math.sqrt(12)),
    "rand_like": (lambda **o: tw.rand_like(tw.ones((COUNT,)), **o), 0.5, math.sqrt(1 / 12)),
    "randn_like": (lambda **o: tw.randn_like(tw.ones((COUNT,)), **o), 0.0, 1.0),
    "randint_like": (
        lambda **o: tw.randint_like(tw.ones((COUNT,)), -3, 8, **o),
        2.0,
        math.sqrt(10),
    ),
    **{
        f"poisson {rate}": (
            lambda r=rate, **o: tw.poisson(tw.full((COUNT,), r), **o),
            rate,
            math.sqrt(rate),
        )
        for rate in (0.3, 5.0, 12.0, 100.0, 5000.0)
    },
    **{
        f"standard_gamma {shape}": (
            lambda a=shape, **o: tw.standard_gamma(tw.full((COUNT,), a), **o),
            shape,
            math.sqrt(shape),
        )
        for shape in (0.3, 1.0, 7.5)
    },
}


@pytest.mark.parametrize("name", DRAWS)
def test_moments_and_bits(name, threads) -> None:
    draw, mean, deviation = DRAWS[name]
    found = []
    for count in (1, 2, 5):
        tw.set_num_threads(count)
        found.append(draw(generator=generator()))
    assert found[0].tolist() == found[1].tolist() == found[2].tolist()
    got_mean, got_deviation = moments(found[0])
    assert got_mean == pytest.approx(mean, abs=5 * deviation / math.sqrt(COUNT))
    assert got_deviation == pytest.approx(deviation, rel=0.05)
    stream = generator()
    assert draw(generator=stream).tolist() != draw(generator=stream).tolist()


def test_distributions_as_scipy_has_them() -> None:
    stats = pytest.importorskip("scipy.stats")
    of = {"dtype": tw.float64, "generator": generator()}
    shapes = [tw.full((COUNT,), shape, dtype=tw.float64) for shape in (0.4, 3.5)]
    for drawn, law in (
        (tw.exponential(2.0, (COUNT,), **of), stats.expon(0, 0.5)),
        (tw.cauchy(1.0, 2.0, (COUNT,), **of), stats.cauchy(1, 2)),
        (tw.standard_gamma(shapes[0], of["generator"]), stats.gamma(0.4)),
        (tw.standard_gamma(shapes[1], of["generator"]), stats.gamma(3.5)),
    ):
        assert stats.kstest(drawn.numpy(), law.cdf).pvalue > 1e-4
    for rate in (0.7, 8.0, 10.5, 60.0):
        counts = tw.poisson(tw.full((COUNT,), rate), generator()).numpy().astype(int)
        most = counts.max()
        seen = np.bincount(counts, minlength=most + 1) / COUNT
        law = stats.poisson(rate).pmf(np.arange(most + 1))
        assert np.abs(seen - law).max() < 0.012
    counts = tw.geometric(0.3, (COUNT,), generator=generator()).numpy()
    assert counts.min() == 1
    seen = np.bincount(counts)[1:8] / COUNT
    assert np.abs(seen - stats.geom(0.3).pmf(np.arange(1, 8))).max() < 0.012


def test_types_and_edges() -> None:
    assert tw.geometric(1.0, (5,)).tolist() == [1] * 5
    assert tw.poisson(tw.zeros((3,))).tolist() == [0.0] * 3
    assert tw.poisson(tw.full((2,), 3.0, dtype=tw.float16)).dtype == tw.float16
    assert tw.exponential(1.0, (0, 3)).shape == (0, 3)
    assert tw.rand_like(tw.ones((2, 3), dtype=tw.float16)).dtype == tw.float16
    assert tw.randn_like(tw.ones((2,), dtype=tw.int64), dtype=tw.float64).dtype == tw.float64
    assert tw.randint_like(tw.ones((2,), dtype=tw.int8), 5).dtype == tw.int8
    assert set(tw.randint_like(tw.zeros((200,)), 3).tolist()) == {0.0, 1.0, 2.0}
    assert tw.exponential(1.0, (2,), dtype=tw.float64, requires_grad=True).is_leaf
    x = tw.ones((3,)).requires_grad_()
    assert not tw.poisson(x).requires_grad


# ---- in place ----

IN_PLACE: dict[str, tuple[tuple[Any, ...], float, float]] = {
    "uniform_": ((-1.0, 3.0), 1.0, 4 / math.sqrt(12)),
    "normal_": ((2.0, 3.0), 2.0, 3.0),
    "log_normal_": ((0.0, 0.5), *DRAWS["log_normal"][1:]),
    "exponential_": ((2.0,), 0.5, 0.5),
    "geometric_": ((0.25,), 4.0, math.sqrt(12)),
    "bernoulli_": ((0.25,), 0.25, math.sqrt(3) / 4),
    "random_": ((-3, 8), 2.0, math.sqrt(10)),
}


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_in_place(name, dtype) -> None:
    args, mean, deviation = IN_PLACE[name]
    base = tw.zeros((2, COUNT), dtype=getattr(tw, dtype))
    view = base[0]
    assert getattr(view, name)(*args, generator=generator()) is view
    assert not base[1].numpy().any()
    got_mean, got_deviation = moments(base[0])
    assert got_mean == pytest.approx(mean, abs=6 * deviation / math.sqrt(COUNT) + 2e-3)
    assert got_deviation == pytest.approx(deviation, rel=0.05)
    again = getattr(tw.zeros((COUNT,), dtype=view.dtype), name)(*args, generator=generator())
    assert again.tolist() == base[0].tolist()
    with pytest.raises(RuntimeError):  # as every other change of a leaf
        getattr(tw.ones((2,)).requires_grad_(), name)(*args)


def test_cauchy_in_place() -> None:
    x = tw.zeros((COUNT,)).cauchy_(1.0, 2.0, generator=generator())
    assert np.median(x.numpy()) == pytest.approx(1.0, abs=0.06)
    assert np.subtract(*np.percentile(x.numpy(), [75, 25])) == pytest.approx(4.0, abs=0.2)


def test_random_of_a_type() -> None:
    for dtype, most in (("uint8", 255), ("int8", 127), ("bool", 1), ("int16", 32767)):
        x = tw.zeros((COUNT,), dtype=getattr(tw, dtype)).random_(generator=generator())
        values = x.astype(tw.int64).numpy()
        assert values.min() == 0 or dtype == "int16"
        assert values.max() <= most
        assert values.max() > 0.99 * most
    assert tw.zeros((COUNT,)).random_().numpy().max() > 0.99 * 2**24
    assert tw.zeros((COUNT,), dtype=tw.int64).random_(10).numpy().max() == 9
    chances = tw.asarray([[0.0, 1.0]])
    assert (tw.ones((50, 2)).bernoulli_(chances).numpy() == [0.0, 1.0]).all()


@pytest.mark.parametrize("dtype", [tw.float16, tw.bfloat16, tw.float32])
def test_draws_of_narrow_types_are_finite(dtype: tw.dtype) -> None:
    of: Any = {"dtype": dtype, "generator": generator()}
    for x in (
        tw.exponential(1e-5, (COUNT,), **of),
        tw.cauchy(1.0, 1e3, (COUNT,), **of),
        tw.log_normal(8.0, 4.0, (COUNT,), **of),
        tw.zeros((COUNT,), dtype=dtype).cauchy_(0.0, 1e3, generator=of["generator"]),
    ):
        assert x.dtype == dtype
        assert tw.isfinite(x).all()
        assert tw.abs(x).max().item() >= 65504


DRAWS_REFUSED: tuple[tuple[Any, type[Exception], str], ...] = (
    (lambda: tw.exponential(0.0, (2,)), ValueError, "lambd must be above 0"),
    (lambda: tw.exponential(1.0, (-2,)), ValueError, "negative extent"),
    (lambda: tw.exponential(1.0, (2,), dtype=tw.int64), TypeError, "needs a floating-point dtype"),
    (lambda: tw.cauchy(0.0, -1.0, (2,)), ValueError, "sigma must be above 0"),
    (lambda: tw.log_normal(0.0, 0.0, (2,)), ValueError, "std must be above 0"),
    (lambda: tw.geometric(0.0, (2,)), ValueError, "is not in"),
    (lambda: tw.poisson(tw.asarray([-1.0])), ValueError, "rate -1 is not at least 0"),
    (lambda: tw.poisson(tw.asarray([math.nan])), ValueError, "is not at least 0"),
    (lambda: tw.poisson(tw.asarray([1])), TypeError, "needs a floating-point input"),
    (lambda: tw.standard_gamma(tw.asarray([0.0])), ValueError, "shape 0 is not above 0"),
    (lambda: tw.randint_like(tw.ones((2,)), 3, 3), ValueError, "empty range"),
    (lambda: tw.ones((2,)).random_(5, 2), ValueError, "empty range"),
    (lambda: tw.ones((2,)).normal_(0, -1), ValueError, "standard deviation is negative"),
    (lambda: tw.ones((2,), dtype=tw.int64).normal_(), TypeError, "needs a floating-point dtype"),
    (lambda: tw.ones((2,)).bernoulli_(1.5), ValueError, "is not in"),
    (lambda: tw.ones((2,)).uniform_("0"), TypeError, "uniform_"),
)


@pytest.mark.parametrize(("call", "error", "text"), DRAWS_REFUSED)
def test_draws_refuse(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()
