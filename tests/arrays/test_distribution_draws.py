"""Draws: where the density is finite in every type, as counts of any size, and with gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_distribution_methods import ALONE, own
from test_distributions import ours

import tilewright as tw

stats = pytest.importorskip("scipy.stats")

TYPES = ("float16", "bfloat16", "float32", "float64")


# ---- densities of draws ----

# Numbers far out that each type holds.
LARGE = {"float16": 3e4, "bfloat16": 1e30, "float32": 1e30, "float64": 1e250}
SMALL = {"float16": 1e-4, "bfloat16": 1e-30, "float32": 1e-30, "float64": 1e-250}
# How distributions are made at the ends of a type: of what makes tensors, and numbers.
EXTREME = {
    "Normal": lambda d, t, low, high: d.Normal(t([0, high, 1, high]), t([low, low, high, high])),
    "LogNormal": lambda d, t, low, high: d.LogNormal(t([0, 20, -20, 0]), t([low, 1, 1, 20])),
    "HalfNormal": lambda d, t, low, high: d.HalfNormal(t([low, 1, high])),
    "Uniform": lambda d, t, low, high: d.Uniform(t([-low, 1, -high, 0]), t([low, 1.1, high, 1])),
    "Laplace": lambda d, t, low, high: d.Laplace(t([0, high, 1, high]), t([low, low, high, high])),
    "Cauchy": lambda d, t, low, high: d.Cauchy(t([0, high, 1, high]), t([low, low, high, high])),
    "HalfCauchy": lambda d, t, low, high: d.HalfCauchy(t([low, 1, high])),
    "Gumbel": lambda d, t, low, high: d.Gumbel(t([0, high, 1, high]), t([low, low, high, high])),
    "StudentT": lambda d, t, low, high: d.StudentT(
        t([0.01, 0.5, 3, 3000]), t(1), t([1, high, low, 1])
    ),
    "Exponential": lambda d, t, low, high: d.Exponential(t([low, 1, high])),
    "Gamma": lambda d, t, low, high: d.Gamma(t([1e-3, 0.1, 5, 1000]), t([1, high, high, low])),
    "Beta": lambda d, t, low, high: d.Beta(t([1e-3, 0.1, 5, 1000]), t([1e-3, 0.1, 1000, 0.01])),
    "Dirichlet": lambda d, t, low, high: d.Dirichlet(t([[1e-3, 1e-3, 1], [0.1, 10, 500]])),
    "Bernoulli": lambda d, t, low, high: d.Bernoulli(t([0, low, 0.5, 1])),
    "Categorical": lambda d, t, low, high: d.Categorical(t([[0, low, 1], [1, 1, 0]])),
    "OneHotCategorical": lambda d, t, low, high: d.OneHotCategorical(t([0, low, 1])),
    "OneHotCategoricalStraightThrough": lambda d, t, low, high: (
        d.OneHotCategoricalStraightThrough(logits=t([-30, 0, 30]))
    ),
    "RelaxedBernoulli": lambda d, t, low, high: d.RelaxedBernoulli(t(0.05), None, t([-5, 0, 60])),
    "RelaxedOneHotCategorical": lambda d, t, low, high: (
        d.RelaxedOneHotCategorical(t(0.05), None, t([-5, 0, 30]))
    ),
    "Poisson": lambda d, t, low, high: d.Poisson(t([0, low, 5, 20000])),
    "Geometric": lambda d, t, low, high: d.Geometric(t([1, 0.5, 1e-3])),
    "Binomial": lambda d, t, low, high: d.Binomial(t([0, 1, 100, 20000]), t([0.3, low, 1, 0.5])),
    "NegativeBinomial": lambda d, t, low, high: d.NegativeBinomial(
        t([0, 0.01, 100, 1]), t([0.5, 0.5, 0.9, low])
    ),
    "Multinomial": lambda d, t, low, high: d.Multinomial(1000, t([[0, low, 1], [1, 2, 3]])),
    "MultivariateNormal": lambda d, t, low, high: d.MultivariateNormal(
        t([0, 1e4]), scale_tril=t([[1e-4, 0], [1, 1e4]])
    ),
    "Independent": lambda d, t, low, high: d.Independent(d.Beta(t([0.1, 0.2]), t(0.1)), 1),
    "TransformedDistribution": lambda d, t, low, high: d.TransformedDistribution(
        d.Normal(t([0, 5]), t([30, 1])), [d.TanhTransform()]
    ),
    "MixtureSameFamily": lambda d, t, low, high: d.MixtureSameFamily(
        d.Categorical(t([1, 3])), d.Beta(t([0.05, 5]), t([0.05, 0.1]))
    ),
}  # fmt: skip


def kinds() -> set[str]:
    bases = {"Distribution"}
    found = {name for name, x in vars(ours).items() if isinstance(x, type)}
    return {n for n in found if issubclass(getattr(ours, n), ours.Distribution)} - bases


def test_every_distribution_is_walked() -> None:
    assert kinds() == set(EXTREME)


@pytest.mark.parametrize("name", sorted(EXTREME))
def test_every_draw_has_a_finite_density(name: str) -> None:
    for dtype in TYPES:
        if name == "MultivariateNormal" and dtype not in ("float32", "float64"):
            continue

        def made(x, dtype=dtype):
            return tw.tensor(x, dtype=getattr(tw, dtype))

        d = EXTREME[name](ours, made, SMALL[dtype], LARGE[dtype])
        draws = [d.sample((1500,), generator=tw.Generator(3))]
        if d.has_rsample:
            draws.append(d.rsample((1500,), generator=tw.Generator(4)))
        for x in draws:
            assert np.isfinite(x.astype(tw.float64).numpy()).all(), dtype
            logs = d.log_prob(x).astype(tw.float64).numpy()
            assert np.isfinite(logs).all(), (dtype, x.tolist()[int(np.argmin(np.isfinite(logs)))])


@pytest.mark.parametrize("dtype", TYPES[:3])
def test_draws_of_a_narrow_type_are_those_of_a_wide_one_rounded(dtype: str) -> None:
    """Moved by the ends of the type alone: quantiles far out are there."""
    count, narrow = 40_000, getattr(tw, dtype)
    digits = float(tw.finfo(narrow).eps)
    for make, law in (
        (lambda t: ours.Gumbel(t(0.0), t(1.0)), stats.gumbel_r()),
        (lambda t: ours.Cauchy(t(0.0), t(1.0)), stats.cauchy()),
        (lambda t: ours.StudentT(t(2.0), t(0.0), t(1.0)), stats.t(2)),
        (lambda t: ours.Beta(t(2.0), t(3.0)), stats.beta(2, 3)),
    ):
        d = make(lambda x: tw.tensor(x, dtype=narrow))
        x = d.sample((count,), generator=tw.Generator(8)).astype(tw.float64).numpy()
        for share in (0.002, 0.1, 0.5, 0.9, 0.998):
            want, slack = law.ppf(share), 5 * math.sqrt(share * (1 - share) / count)
            low = law.ppf(max(share - slack, 1e-9)) - 2 * digits * abs(want)
            high = law.ppf(min(share + slack, 1 - 1e-9)) + 2 * digits * abs(want)
            assert low <= np.quantile(x, share) <= high, (d, share)


@pytest.mark.parametrize(("a", "b"), [(1e-3, 1e-3), (0.1, 0.1), (0.02, 3.0), (0.5, 800.0)])
def test_shares_of_small_concentrations_have_their_distribution(a: float, b: float) -> None:
    """Numbers of both gamma distributions lie below the least of the type."""
    for dtype in (tw.float32, tw.float64):
        d = ours.Beta(tw.tensor(a, dtype=dtype), tw.tensor(b, dtype=dtype))
        x = d.sample((20_000,), generator=tw.Generator(5)).astype(tw.float64).numpy()
        for point in (1e-6, 0.1, 0.5, 0.9, 1 - 1e-6):
            want = stats.beta(a, b).cdf(point)
            slack = 5 * math.sqrt(max(want * (1 - want), 1e-4) / x.size)
            assert abs((x <= point).mean() - want) < slack
        pair = ours.Dirichlet(tw.tensor([a, b], dtype=dtype))
        y = pair.sample((20_000,), generator=tw.Generator(6)).astype(tw.float64).numpy()
        assert abs((y[:, 0] <= 0.5).mean() - stats.beta(a, b).cdf(0.5)) < 0.02


def test_densities_far_out() -> None:
    far = tw.tensor([1e30, 3e38])
    got = ours.Cauchy(0.0, 1.0).log_prob(far)
    np.testing.assert_allclose(got, -math.log(math.pi) - 2 * np.log([1e30, 3e38]), rtol=1e-6)
    for df in (1e4, 1e8, 1e12):  # nearly normal
        got = ours.StudentT(tw.tensor(df)).log_prob(tw.tensor([0.0, 1.0]))
        np.testing.assert_allclose(got, stats.t(df).logpdf([0, 1]), rtol=1e-6)
    for rate in (1e3, 1e6):  # whose logarithms of factorials have 7 digits before the point
        got = ours.Poisson(tw.tensor(rate)).log_prob(tw.tensor(rate))
        np.testing.assert_allclose(got, stats.poisson(rate).logpmf(rate), rtol=1e-5)
    got = ours.Binomial(tw.tensor(1e7), 0.5).log_prob(tw.tensor(5e6))
    np.testing.assert_allclose(got, stats.binom(10**7, 0.5).logpmf(5 * 10**6), rtol=1e-5)


# ---- counts ----


def agrees(counts: np.ndarray, law, n: int) -> bool:
    """Chi-square over bins of at least 20 expected counts."""
    edges = np.unique(law.ppf(np.linspace(0, 1, 25)[1:-1]))
    below = np.concatenate([[0.0], law.cdf(edges), [1.0]])
    expected = np.diff(below) * counts.size
    bins = np.bincount(np.searchsorted(edges, counts), minlength=expected.size)
    kept = expected > 20
    rest_seen, rest = bins[~kept].sum(), expected[~kept].sum()
    chi = ((bins[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    if rest > 20:
        chi += (rest_seen - rest) ** 2 / rest
    else:
        assert rest_seen <= rest + 6 * math.sqrt(rest + 1)
    return bool(stats.chi2(max(kept.sum() - 1, 1)).sf(chi) > 1e-5)


@pytest.mark.parametrize(
    ("n", "p"),
    [
        (1, 0.3), (5, 0.5), (40, 0.9), (30, 0.01), (19, 0.5), (25, 0.41), (1000, 0.5),
        (1000, 0.0005), (500, 0.97), (10**6, 1e-6), (10**6, 0.2), (10**10, 0.5), (10**10, 2e-10),
        (10**10, 0.999999), (10**15, 0.3),
    ],
)  # fmt: skip
def test_binomial_counts_are_scipys(n: int, p: float) -> None:
    d = ours.Binomial(own(float(n)), own(p))
    x = d.sample((60_000,), generator=tw.Generator(n % 97)).numpy()
    assert (x >= 0).all()
    assert (x <= n).all()
    assert (x == np.floor(x)).all()
    assert agrees(x, stats.binom(n, p), n)
    if n > 2**24:  # odd numbers come as often as even ones
        assert p > 0.99 or n * p < 100 or abs((x % 2).mean() - 0.5) < 0.01


def test_multinomial_counts_are_binomial_and_add_up() -> None:
    p = np.array([0.1, 0.0, 0.4, 0.5, 0.0])
    for n in (3, 100, 10**6, 10**12):
        d = ours.Multinomial(n, own(p.tolist()))
        x = d.sample((20_000,), generator=tw.Generator(2)).numpy()
        assert (x.sum(axis=-1) == n).all()
        assert (x[:, p == 0] == 0).all()
        for i in (0, 2, 3):
            assert agrees(x[:, i], stats.binom(n, p[i]), n)
        if n > 5:
            correlation = np.corrcoef(x[:, 2], x[:, 3])[0, 1]
            want = -math.sqrt(0.4 * 0.5 / (0.6 * 0.5))
            assert correlation == pytest.approx(want, abs=0.02)


def test_counts_depend_on_the_seed_alone(threads) -> None:
    binomial = ours.Binomial(tw.tensor([10.0, 1e4]), tw.tensor([[0.5], [0.01]]))
    multinomial = ours.Multinomial(500, tw.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0]]))
    for d in (binomial, multinomial):
        found = []
        for count in (1, 2, 5):
            tw.set_num_threads(count)
            found.append(d.sample((3000,), generator=tw.Generator(1)).tolist())
        assert found[0] == found[1] == found[2]
        stream = tw.Generator(1)
        assert (
            d.sample((9,), generator=stream).tolist() != d.sample((9,), generator=stream).tolist()
        )


def test_memory_follows_the_result_not_the_trials() -> None:
    for d in (
        ours.Binomial(tw.tensor(1e10), 0.5),
        ours.Multinomial(10**10, tw.tensor([1.0, 2.0, 1.0])),
        ours.Binomial(1000, tw.tensor(0.5)),
    ):
        tw.memory_reset_peaks()
        before = tw.memory_stats()["peak_live_bytes"]
        x = d.sample((50_000,))
        assert tw.memory_stats()["peak_live_bytes"] - before < 24 * x.nbytes


def test_binomial_is_a_function() -> None:
    n, p = tw.tensor([[3.0], [50.0]]), tw.tensor([0.0, 0.5, 1.0])
    x = tw.binomial(n, p, generator=tw.Generator(1))
    assert x.shape == (2, 3)
    assert x.dtype == tw.float32
    assert x[:, 0].tolist() == [0.0, 0.0]
    assert x[:, 2].tolist() == [3.0, 50.0]
    assert tw.binomial(n, p.astype(tw.float64)).dtype == tw.float64
    assert tw.binomial(tw.ones((0, 2)), tw.tensor(0.5)).shape == (0, 2)
    assert not tw.binomial(n, p.requires_grad_()).requires_grad
    for count, chance, error, text in (
        (2.5, 0.5, ValueError, "binomial: count 2.5 is not a whole number of at least 0"),
        (-1.0, 0.5, ValueError, "binomial: count -1 is not"),
        (math.inf, 0.5, ValueError, "binomial: count inf is not"),
        (2.0, 1.5, ValueError, r"binomial: prob 1.5 is not in \[0, 1\]"),
        (2.0, math.nan, ValueError, r"is not in \[0, 1\]"),
        (2, 0.5, TypeError, "needs a floating-point input, got int64"),
    ):
        with pytest.raises(error, match=text):
            tw.binomial(tw.tensor(count), tw.tensor(chance))
    with pytest.raises(ValueError, match="binomial"):
        tw.binomial(tw.ones(2), tw.full((3,), 0.5))


# ---- gradients of draws ----


def moved(cdf, pdf, x, parameter: float) -> np.ndarray:
    """How x moves with a parameter at the same value of the distribution function."""
    h = 1e-5 * max(parameter, 1e-2)
    return -(cdf(x, parameter + h) - cdf(x, parameter - h)) / (2 * h) / pdf(x, parameter)


def gradients(make, parameters, dtype=tw.float64):
    leaves = [tw.full((60,), p, dtype=dtype).requires_grad_() for p in parameters]
    x = make(*leaves).rsample(generator=tw.Generator(7))
    x.sum().backward()
    return x.detach().numpy(), [leaf.grad.numpy() for leaf in leaves]


@pytest.mark.parametrize("a", [0.05, 0.7, 1.0, 3.5, 40.0, 900.0, 5000.0])
def test_gamma_draws_move_as_the_distribution_function(a: float) -> None:
    x, (by_shape, by_rate) = gradients(ours.Gamma, (a, 2.0))
    gamma = stats.gamma
    want = moved(
        lambda x, a: gamma.cdf(x, a, scale=0.5), lambda x, a: gamma.pdf(x, a, scale=0.5), x, a
    )
    usable = (gamma.cdf(x, a, scale=0.5) < 1 - 1e-3) & (x > 1e-250)
    np.testing.assert_allclose(by_shape[usable], want[usable], rtol=2e-5)
    np.testing.assert_allclose(by_rate, -x / 2, rtol=1e-12)
    assert np.isfinite(by_shape).all()


@pytest.mark.parametrize(
    ("a", "b"), [(0.1, 0.1), (0.5, 3.0), (2.0, 2.0), (30.0, 4.0), (400.0, 900.0)]
)
def test_beta_draws_move_as_the_distribution_function(a: float, b: float) -> None:
    x, (by_a, by_b) = gradients(ours.Beta, (a, b))
    beta = stats.beta
    usable = (x > 1e-6) & (x < 1 - 1e-6)
    want = moved(lambda x, a: beta.cdf(x, a, b), lambda x, a: beta.pdf(x, a, b), x, a)
    np.testing.assert_allclose(by_a[usable], want[usable], rtol=2e-5)
    want = moved(lambda x, b: beta.cdf(x, a, b), lambda x, b: beta.pdf(x, a, b), x, b)
    np.testing.assert_allclose(by_b[usable], want[usable], rtol=2e-5)
    assert np.isfinite(by_a).all()
    assert np.isfinite(by_b).all()


@pytest.mark.parametrize("df", [0.6, 1.0, 4.0, 70.0, 1e4])
def test_students_draws_move_as_the_distribution_function(df: float) -> None:
    x, (by_df, by_loc, by_scale) = gradients(ours.StudentT, (df, 0.5, 2.0))
    t = stats.t
    z = (x - 0.5) / 2
    want = 2 * moved(t.cdf, t.pdf, z, df)
    usable = abs(z) < 50
    # The difference has an error of its own where the function hardly changes.
    np.testing.assert_allclose(by_df[usable], want[usable], rtol=1e-4, atol=3e-9)
    np.testing.assert_allclose(by_loc, 1.0)
    np.testing.assert_allclose(by_scale, z, rtol=1e-12)


def test_dirichlet_draws_move_as_their_distribution() -> None:
    """The derivative of a mean is the mean of derivatives; of two shares they are those of beta."""
    a = [0.4, 1.5, 3.0]
    leaf = own(a).requires_grad_()
    x = ours.Dirichlet(leaf.expand((40_000, 3))).rsample(generator=tw.Generator(3))
    (x[:, 0].square() + x[:, 1] * x[:, 2]).mean().backward()

    def expected(a: np.ndarray) -> float:
        total = a.sum() * (a.sum() + 1)
        return (a[0] * (a[0] + 1) + a[1] * a[2]) / total

    steps = 1e-6 * np.eye(3)
    want = [(expected(np.array(a) + s) - expected(np.array(a) - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(leaf.grad, want, atol=5e-3)
    pair = own([[0.7, 2.0]] * 50).requires_grad_()
    both = ours.Dirichlet(pair).rsample(generator=tw.Generator(4))
    both[:, 0].sum().backward()
    y = both.detach().numpy()[:, 0]
    beta = stats.beta
    want = moved(lambda x, a: beta.cdf(x, a, 2.0), lambda x, a: beta.pdf(x, a, 2.0), y, 0.7)
    np.testing.assert_allclose(pair.grad[:, 0], want, rtol=2e-5)
    want = moved(lambda x, b: beta.cdf(x, 0.7, b), lambda x, b: beta.pdf(x, 0.7, b), y, 2.0)
    np.testing.assert_allclose(pair.grad[:, 1], want, rtol=2e-5)


@pytest.mark.parametrize("dtype", TYPES)
def test_gradients_of_draws_have_the_parameters_type_and_are_finite(dtype: str) -> None:
    for make, values in (
        (ours.Gamma, [0.01, 2.0, 300.0]),
        (ours.Beta, [0.01, 2.0, 300.0]),
        (lambda a, b: ours.StudentT(a, 0.0, b), [0.01, 2.0, 300.0]),
        (lambda a, _: ours.Dirichlet(a), [0.01, 2.0, 300.0]),
    ):
        leaf = tw.tensor(values, dtype=getattr(tw, dtype)).requires_grad_()
        x = make(leaf, tw.ones(3, dtype=leaf.dtype)).rsample((20,), generator=tw.Generator(1))
        assert x.dtype == leaf.dtype
        (x.tanh() if make is not ours.Dirichlet else x).sum().backward()
        assert leaf.grad.dtype == leaf.dtype
        assert np.isfinite(leaf.grad.astype(tw.float64).numpy()).all()


def test_second_derivatives_of_draws_are_refused() -> None:
    for make in (lambda a: ours.Gamma(a, 1.0), lambda a: ours.Beta(a, 2.0)):
        a = own([2.0]).requires_grad_()
        (g,) = tw.grad(make(a).rsample().sum(), [a], create_graph=True)
        with pytest.raises(NotImplementedError, match="draws have first derivatives alone"):
            g.sum().backward()


# ---- parameters that are replaced ----


@pytest.mark.parametrize("name", sorted(ALONE))
def test_a_parameter_given_anew_is_followed_everywhere(name: str) -> None:
    make, value = ALONE[name]
    d = make(ours, own)
    for key in d._parameters:
        before = getattr(d, key)
        setattr(d, key, before * 1)
        again = make(ours, own)
        if key == "total_count":
            new = before + 1
        else:
            new = before * 0.5 if name != "uniform" else before * 1.01
        setattr(again, key, new)
        x = tw.asarray(np.asarray(value))
        values = {k: getattr(d, k) for k in d._parameters} | {key: new}
        rest = {k.removesuffix("_given"): v for k, v in values.items()}
        fresh = type(d)(**rest)
        assert again.log_prob(x).tolist() == fresh.log_prob(x).tolist()
        draws = [z.sample((5,), generator=tw.Generator(1)).tolist() for z in (again, fresh)]
        assert draws[0] == draws[1]
        with pytest.raises(ValueError, match="does not fit the batch"):
            setattr(again, key, tw.broadcast_to(before, (7, *before.shape)))
        with pytest.raises(TypeError, match="is a tensor or a number"):
            setattr(again, key, "3")


def test_both_halves_of_beta_follow() -> None:
    d = ours.Beta(1.0, 1.0)
    d.concentration1 = 3
    assert d.mean.item() == pytest.approx(0.75)
    assert d.log_prob(tw.tensor(0.5)).item() == pytest.approx(stats.beta(3, 1).logpdf(0.5))
    assert d.entropy().item() == pytest.approx(stats.beta(3, 1).entropy(), rel=1e-5)
    with pytest.raises(ValueError, match="Beta: concentration0 must be above 0"):
        d.concentration0 = -1.0
    assert d.concentration0.item() == 1.0


def test_deviations_of_scales_whose_squares_leave_their_type() -> None:
    of_scale = {
        "Normal": lambda d, s: d.Normal(0 * s, s),
        "HalfNormal": lambda d, s: d.HalfNormal(s),
        "Laplace": lambda d, s: d.Laplace(0 * s, s),
        "Gumbel": lambda d, s: d.Gumbel(0 * s, s),
        "Uniform": lambda d, s: d.Uniform(0 * s, s),
        "Exponential": lambda d, s: d.Exponential(1 / s),
        "Gamma": lambda d, s: d.Gamma(0 * s + 9, 1 / s),
    }
    for name, make in of_scale.items():
        one, *others = (
            make(tw.distributions, tw.asarray(scale, dtype=tw.float32)).stddev.item() / scale
            for scale in (1.0, 1e30, 1e-30)
        )
        variance = make(tw.distributions, tw.asarray(1.0)).variance.item()
        assert others == [pytest.approx(one, rel=1e-5)] * 2, name
        assert one == pytest.approx(variance**0.5, rel=1e-6), name
