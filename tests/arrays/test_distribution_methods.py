"""Shares and their inverses, other batches, and what is checked, against PyTorch's and SciPy's."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from test_distributions import CASES, A, B, asked, built, ours, pair, theirs, torch

import tilewright as tw

stats = pytest.importorskip("scipy.stats")
special = pytest.importorskip("scipy.special")


def mixture(d, t):
    return d.MixtureSameFamily(d.Categorical(t([0.2, 0.8])), d.Normal(t([0, 1]), 1.0))


# How a distribution without a batch is made, and a value of it.
ALONE = {
    "normal": (lambda d, t: d.Normal(t(0.3), t(1.7)), 0.2),
    "log normal": (lambda d, t: d.LogNormal(t(0.3), t(0.7)), 1.2),
    "half normal": (lambda d, t: d.HalfNormal(t(1.7)), 0.2),
    "uniform": (lambda d, t: d.Uniform(t(0.3), t(1.7)), 0.8),
    "laplace": (lambda d, t: d.Laplace(t(0.3), t(1.7)), 0.2),
    "cauchy": (lambda d, t: d.Cauchy(t(0.3), t(1.7)), 0.2),
    "half cauchy": (lambda d, t: d.HalfCauchy(t(1.7)), 0.2),
    "gumbel": (lambda d, t: d.Gumbel(t(0.3), t(1.7)), 0.2),
    "student": (lambda d, t: d.StudentT(t(3.3), t(0.3), t(1.7)), 0.2),
    "exponential": (lambda d, t: d.Exponential(t(1.7)), 0.2),
    "gamma": (lambda d, t: d.Gamma(t(1.3), t(1.7)), 0.2),
    "beta": (lambda d, t: d.Beta(t(1.3), t(1.7)), 0.2),
    "dirichlet": (lambda d, t: d.Dirichlet(t([1.3, 1.7])), [0.2, 0.8]),
    "bernoulli": (lambda d, t: d.Bernoulli(t(0.3)), 1.0),
    "bernoulli logits": (lambda d, t: d.Bernoulli(logits=t(0.3)), 1.0),
    "categorical": (lambda d, t: d.Categorical(t([0.2, 0.5, 0.3])), 2),
    "categorical logits": (lambda d, t: d.Categorical(logits=t([0.2, 0.5, 0.3])), 2),
    "one hot": (lambda d, t: d.OneHotCategorical(t([0.2, 0.5, 0.3])), [0.0, 1.0, 0.0]),
    "straight through": (
        lambda d, t: d.OneHotCategoricalStraightThrough(t([0.2, 0.5, 0.3])),
        [0.0, 1.0, 0.0],
    ),
    "relaxed classes": (
        lambda d, t: d.RelaxedOneHotCategorical(t(0.7), t([0.2, 0.5, 0.3])),
        [0.2, 0.7, 0.1],
    ),
    "relaxed outcome": (lambda d, t: d.RelaxedBernoulli(t(0.7), t(0.2)), 0.3),
    "poisson": (lambda d, t: d.Poisson(t(1.7)), 2.0),
    "geometric": (lambda d, t: d.Geometric(t(0.3)), 2.0),
    "binomial": (lambda d, t: d.Binomial(5, t(0.3)), 2.0),
    "negative binomial": (lambda d, t: d.NegativeBinomial(t(2.5), t(0.3)), 2.0),
    "multinomial": (lambda d, t: d.Multinomial(5, t([0.3, 0.7])), [2.0, 3.0]),
    "vectors": (lambda d, t: d.MultivariateNormal(t([0, 1]), t([[2, 1], [1, 2]])), [0.3, 0.2]),
    "vectors by factor": (
        lambda d, t: d.MultivariateNormal(t([0, 1]), scale_tril=t([[2, 0], [1, 2]])),
        [0.3, 0.2],
    ),
    "vectors by precision": (
        lambda d, t: d.MultivariateNormal(t([0, 1]), precision_matrix=t([[2, 1], [1, 2]])),
        [0.3, 0.2],
    ),
    "independent": (lambda d, t: d.Independent(d.Normal(t([0, 1]), t(1.7)), 1), [0.3, 0.2]),
    "nothing independent": (lambda d, t: d.Independent(d.Normal(t(0.3), t(1.7)), 0), 0.3),
    "squashed": (
        lambda d, t: d.TransformedDistribution(d.Normal(t(0.3), t(1.7)), [d.TanhTransform()]),
        0.3,
    ),
    "mixture": (mixture, 0.3),
}
FACTS = (
    "mean", "variance", "stddev", "mode", "entropy", "perplexity", "probs", "logits",
    "covariance_matrix", "precision_matrix", "scale_tril",
)  # fmt: skip


def own(x):
    return tw.asarray(x, dtype=None if isinstance(x, int) else tw.float64)


def other(x):
    return torch.tensor(x, dtype=torch.float64)


def same(a, b, rtol: float = 1e-12) -> None:
    assert a.shape == tuple(b.shape)
    np.testing.assert_allclose(np.asarray(a.detach()), b.detach(), rtol=rtol, atol=1e-14)


def fact(distribution, name: str):
    return asked(distribution, name) if hasattr(type(distribution), name) else None


def agree(mine, torchs, value) -> None:
    """Shapes, facts, log-probabilities and shares of a value."""
    assert mine.batch_shape == tuple(torchs.batch_shape)
    assert mine.event_shape == tuple(torchs.event_shape)
    for name in FACTS:
        a, b = fact(mine, name), fact(torchs, name)
        if not (a is None and name in ("mean", "variance", "stddev")):  # of classes: NaN there
            assert (a is None) == (b is None), name
        if a is not None:
            # PyTorch's logarithm of a factorial is of float32 there.
            same(a, b, 1e-7 if isinstance(mine, ours.Multinomial) else 1e-12)
    x, y = tw.asarray(value), torch.tensor(value)
    same(mine.log_prob(x), torchs.log_prob(y))
    for name in ("cdf", "icdf"):
        try:
            got = getattr(mine, name)(x)
        except NotImplementedError:
            continue
        same(got, getattr(torchs, name)(y))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALONE)
def test_without_a_batch(name: str) -> None:
    make, value = ALONE[name]
    mine, torchs = make(ours, own), make(theirs, other)
    value = np.asarray(value, dtype=None if isinstance(value, int) else "float64")
    agree(mine, torchs, value)
    for shape in ((), (3,), (2, 0)):
        assert mine.sample(shape).shape == (*shape, *mine.event_shape)
        if mine.has_rsample:
            assert mine.rsample(shape).shape == (*shape, *mine.event_shape)
    for shape in ((), (2, 3), (0,)):
        wide = mine.expand(shape)
        assert type(wide) is type(mine)
        assert wide.sample((4,)).shape == (4, *shape, *mine.event_shape)
        # PyTorch's wider Multinomial has lost what its entropy is computed with.
        if shape != (0,) and name != "multinomial":
            agree(wide, torchs.expand(shape), value)
    try:
        expected = theirs.kl_divergence(torchs, torchs.expand((2,)))
        got = ours.kl_divergence(mine, mine.expand((2,)))
    except NotImplementedError:
        return
    assert got.shape == tuple(expected.shape)
    np.testing.assert_allclose(got, expected, atol=1e-14)


@pytest.mark.parametrize("dtype", [tw.float32, tw.float64])
@pytest.mark.parametrize("name", ALONE)
def test_results_are_of_the_parameters_type(name: str, dtype) -> None:
    make, value = ALONE[name]
    mine = make(ours, lambda x: tw.asarray(x, dtype=dtype))
    whole = isinstance(value, int)
    x = tw.asarray(value, dtype=None if whole else dtype)
    results = [mine.log_prob(x), mine.expand((2,)).log_prob(x)]
    if not whole:
        results += [mine.sample(), mine.expand((2,)).sample()]
    results += [y for y in (fact(mine, name) for name in FACTS) if y is not None]
    for share in (mine.cdf, mine.icdf):
        try:
            results.append(share(x))
        except NotImplementedError:
            continue
    for result in results:
        assert result.dtype == dtype or (whole and result.dtype == tw.int64)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_wider_batch_has_the_same_gradients(name: str) -> None:
    mine, torchs, (leaves, their_leaves) = pair(name)
    values = CASES[name][1]
    shape = (3, *mine.batch_shape)
    wide, known = mine.expand(shape), torchs.expand(shape)
    assert wide.batch_shape == shape
    assert mine.batch_shape == shape[1:]
    got, expected = wide.log_prob(tw.asarray(values)), known.log_prob(torch.tensor(values))
    same(got, expected)
    got.sum().backward()
    expected.sum().backward()
    # PyTorch's derivative of digamma has half of float64's digits.
    for a, b in zip(leaves, their_leaves, strict=True):
        np.testing.assert_allclose(a.grad, b.grad, rtol=2e-7, atol=1e-12)


def test_batches_that_do_not_fit_and_what_is_not_told() -> None:
    class Own(ours.Distribution):
        pass

    with pytest.raises(NotImplementedError, match="Own: expand"):
        Own().expand((2,))

    class Falling(ours.Transform):
        def inv(self, y):
            return -y

    falling = ours.TransformedDistribution(ours.Normal(0.0, 1.0), Falling())
    with pytest.raises(NotImplementedError, match="Falling: sign"):
        falling.cdf(tw.asarray(0.5))
    for wide in (ours.Normal(tw.zeros(3), 1.0), ours.MultivariateNormal(tw.zeros(3, 2), tw.eye(2))):
        with pytest.raises(ValueError, match="broadcast"):
            wide.expand((2,))


def squashed(d, t):
    down = d.AffineTransform(1.0, -2.0)
    return d.TransformedDistribution(d.Normal(t(A), t(B)), [d.TanhTransform(), down])


def squashed_by_tensors(d, t):
    either_way = d.AffineTransform(t(A), t(A * B))
    return d.TransformedDistribution(d.Laplace(t(A), t(B)), [d.SigmoidTransform(), either_way])


INVERTIBLE = {
    **{
        name: CASES[name][0]
        for name in (
            "normal", "uniform", "laplace", "cauchy", "half cauchy", "half normal", "gumbel",
            "exponential", "log normal",
        )
    },
    "squashed": squashed,
    "squashed by tensors": squashed_by_tensors,
}  # fmt: skip
SHARES = np.array([[1e-6, 0.02, 0.3], [0.45, 0.77, 0.999]])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", INVERTIBLE)
def test_shares_and_their_inverses(name: str) -> None:
    mine, torchs, (leaves, their_leaves) = built(INVERTIBLE[name])
    p, q = tw.asarray(SHARES.copy()).requires_grad_(), torch.tensor(SHARES, requires_grad=True)
    x, y = mine.icdf(p), torchs.icdf(q)
    # PyTorch's inverse loses digits of shares near 0.
    np.testing.assert_allclose(x.detach(), y.detach(), rtol=1e-9)
    np.testing.assert_allclose(mine.cdf(x).detach(), SHARES + 0 * x.detach(), rtol=1e-9)
    x0 = mine.icdf(tw.asarray(SHARES * 0.9)).detach()
    share, known = mine.cdf(x0), torchs.cdf(torch.tensor(np.asarray(x0)))
    np.testing.assert_allclose(share.detach(), known.detach(), rtol=1e-9, atol=1e-15)
    (x.sum() + share.sum()).backward()
    (y.sum() + known.sum()).backward()
    for a, b in zip([p, *leaves], [q, *their_leaves], strict=True):
        np.testing.assert_allclose(a.grad, b.grad, rtol=1e-8, atol=1e-12)


def test_inverses_are_scipys_far_out() -> None:
    p = np.array([1e-300, 1e-20, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-12])
    q = tw.asarray(p)
    for mine, known in (
        (ours.Normal(own(0.3), 1.7), stats.norm(0.3, 1.7)),
        (ours.Exponential(own(1.7)), stats.expon(scale=1 / 1.7)),
        (ours.Gumbel(own(0.3), 1.7), stats.gumbel_r(0.3, 1.7)),
        (ours.LogNormal(own(0.3), 1.7), stats.lognorm(1.7, scale=np.exp(0.3))),
        (ours.Laplace(own(0.3), 1.7), stats.laplace(0.3, 1.7)),
    ):
        np.testing.assert_allclose(mine.icdf(q), known.ppf(p), rtol=1e-9, err_msg=str(mine))
    known = 1.7 * np.sqrt(2) * special.erfinv(p)
    np.testing.assert_allclose(ours.HalfNormal(own(1.7)).icdf(q), known, rtol=1e-14)
    np.testing.assert_allclose(ours.Uniform(own(0.3), 1.7).icdf(q), 0.3 + p * 1.4, rtol=1e-14)
    # SciPy's lose digits near 0 or 1: cot x is tan(pi / 2 - x).
    known = 0.3 - 1.7 / np.tan(np.pi * np.where(p < 0.5, p, p - 1))
    np.testing.assert_allclose(ours.Cauchy(own(0.3), 1.7).icdf(q), known, rtol=1e-14)
    known = 1.7 * np.where(p < 0.9, np.tan(np.pi / 2 * p), 1 / np.tan(np.pi / 2 * (1 - p)))
    np.testing.assert_allclose(ours.HalfCauchy(own(1.7)).icdf(q), known, rtol=1e-14)
    half = own(0.5).requires_grad_()
    ours.Laplace(own(0.3), 1.7).icdf(half).backward()
    assert half.grad is not None
    assert half.grad.item() == pytest.approx(3.4)
    for mine in (ours.Normal(own(0.3), 1.7), ours.Laplace(own(0.3), 1.7)):
        assert mine.icdf(own([0.0, 1.0])).tolist() == [-np.inf, np.inf]
    assert ours.Exponential(1.0).icdf(own([0.0, 1.0])).tolist() == [0.0, np.inf]
    assert ours.HalfNormal(1.0).cdf(own([-1.0, 0.0])).tolist() == [0.0, 0.0]
    assert ours.Uniform(0.0, 2.0).cdf(own([-1.0, 0.5, 3.0])).tolist() == [0.0, 0.25, 1.0]


def test_a_mixtures_share_is_pytorchs() -> None:
    x = np.linspace(-2, 3, 7)
    same(mixture(ours, own).cdf(tw.asarray(x)), mixture(theirs, other).cdf(torch.tensor(x)))


def test_counts_are_scipys() -> None:
    k = np.arange(7.0)
    for n, p in ((6.0, 0.3), (2.0, 0.9), (0.5, 0.01)):
        mine, known = ours.NegativeBinomial(own(n), p), stats.nbinom(n, 1 - p)
        np.testing.assert_allclose(mine.log_prob(tw.asarray(k)), known.logpmf(k), rtol=1e-12)
        np.testing.assert_allclose(mine.variance, known.var(), rtol=1e-12)
    for n, p in ((6, 0.3), (40, 0.9), (0, 0.2), (5, 0.0), (5, 1.0)):
        got = ours.Binomial(n, own(p)).entropy()
        # A probability of 0 counts as eps, as PyTorch's does.
        np.testing.assert_allclose(got, stats.binom(n, p).entropy(), rtol=1e-12, atol=1e-13)
    different = ours.Binomial(own([6.0, 40.0]), own([0.3, 0.9])).entropy()
    known = [stats.binom(6, 0.3).entropy(), stats.binom(40, 0.9).entropy()]
    np.testing.assert_allclose(different, known, rtol=1e-12)
    p = np.array([0.2, 0.5, 0.3])
    for n in (1, 4, 9):
        got = ours.Multinomial(n, own(p)).entropy()
        np.testing.assert_allclose(got, stats.multinomial(n, p).entropy(), rtol=1e-12)
    nothing = ours.Multinomial(0, own(p))
    assert nothing.sample((2,)).tolist() == [[0.0] * 3] * 2
    assert nothing.log_prob(own([0.0, 0.0, 0.0])).item() == 0.0
    certain = ours.NegativeBinomial(own(0.0), 0.5)
    assert certain.sample((3,)).tolist() == [0.0] * 3
    assert certain.log_prob(own([0.0, 1.0])).tolist() == [0.0, -np.inf]
    never = ours.Multinomial(2, own([0.5, 0.5, 0.0]))
    np.testing.assert_allclose(never.log_prob(own([1.0, 1.0, 0.0])).exp(), 0.5)


def test_examples_in_docstrings() -> None:
    runner, finder = doctest.DocTestRunner(), doctest.DocTestFinder(recurse=False)
    kinds = [x for x in vars(ours).values() if isinstance(x, type)]
    for kind in kinds:
        for test in finder.find(kind, kind.__name__, globs={}):
            runner.run(test)
    assert runner.summarize().failed == 0
    assert runner.summarize().attempted > len(kinds)


def test_whole_numbers_are_values() -> None:
    for make, value in (
        (lambda v: ours.Poisson(own(2.0), v), 3),
        (lambda v: ours.Bernoulli(own(0.3), None, v), 1),
        (lambda v: ours.Binomial(5, own(0.3), None, v), 3),
        (lambda v: ours.NegativeBinomial(5, own(0.3), None, v), 3),
        (lambda v: ours.Normal(own(0.3), 1.0, v), 3),
        (lambda v: ours.Multinomial(5, own([0.3, 0.7]), None, v), [2, 3]),
    ):
        whole, wide = tw.asarray(value), tw.asarray(value).astype(tw.float64)
        for validate_args in (None, True):
            d = make(validate_args)
            np.testing.assert_allclose(d.log_prob(whole), d.log_prob(wide), rtol=1e-6)


def test_modes() -> None:
    assert ours.Beta(3.0, 2.0).mode.item() == pytest.approx(2 / 3)
    assert ours.Beta(own([0.5, 1.0]), own([0.5, 1.0])).mode.isnan().all().item()  # none is
    assert ours.Binomial(4.0, tw.asarray([0.0, 0.5, 1.0])).mode.tolist() == [0.0, 2.0, 4.0]
    assert ours.NegativeBinomial(0.5, 0.5).mode.item() == 0.0


# Values outside the support, and events of another shape.
OUTSIDE = {
    "normal": np.nan,
    "log normal": -1.0,
    "half normal": -0.1,
    "uniform": 1.8,
    "laplace": np.nan,
    "cauchy": np.nan,
    "half cauchy": -0.1,
    "gumbel": np.nan,
    "student": np.nan,
    "exponential": -0.1,
    "gamma": -0.1,
    "beta": 1.1,
    "dirichlet": [0.2, 0.7],
    "bernoulli": 0.5,
    "bernoulli logits": 2.0,
    "categorical": 3,
    "categorical logits": -1,
    "one hot": [0.0, 1.0, 1.0],
    "straight through": [0.0, 0.5, 0.5],
    "relaxed classes": [0.2, 0.7, 0.2],
    "relaxed outcome": 1.1,
    "poisson": 0.5,
    "geometric": -1.0,
    "binomial": 6.0,
    "negative binomial": 0.5,
    "multinomial": [3.0, 3.0],
    "vectors": [0.3, 0.2, 0.1],
    "vectors by factor": [0.3, np.nan],
    "vectors by precision": [0.3],
    "independent": [0.3, np.nan],
    "nothing independent": np.nan,
    "squashed": 1.5,
    "mixture": np.nan,
}


class Checked:
    """Classes of a library with `validate_args`."""

    def __init__(self, library, validate_args: bool | None) -> None:
        self.library, self.validate = library, validate_args

    def __getattr__(self, name: str):
        made = getattr(self.library, name)
        if name.endswith("Transform"):
            return made
        return lambda *args, **named: made(*args, **named, validate_args=self.validate)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALONE)
def test_values_are_checked_when_asked(name: str) -> None:
    make, value = ALONE[name]
    mine = make(Checked(ours, True), own)
    inside = tw.asarray(np.asarray(value))
    assert mine.log_prob(inside).tolist() == make(ours, own).log_prob(inside).tolist()
    wide = mine.expand((2,))
    outside = tw.asarray(np.asarray(OUTSIDE[name]))
    for checked in (mine, wide):
        checked.log_prob(checked.sample((50,)))
        with pytest.raises(ValueError, match=r": (values must be|events have)"):
            checked.log_prob(outside)
    with pytest.raises(ValueError):  # noqa: PT011  (PyTorch's text)
        make(Checked(theirs, True), other).log_prob(torch.tensor(OUTSIDE[name]))
    if not name.startswith(("categorical", "vectors")):
        for unchecked in (make(ours, own), make(Checked(ours, False), own)):
            unchecked.log_prob(outside)


def test_shares_are_checked_when_asked() -> None:
    assert ours.Exponential(1.0).cdf(own(-1.0)).item() == 0.0
    with pytest.raises(ValueError, match="Exponential: values must be at least 0"):
        ours.Exponential(1.0, validate_args=True).cdf(own(-1.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda v: ours.Normal(0.0, -1.0, v),
        lambda v: ours.LogNormal(0.0, -1.0, v),
        lambda v: ours.HalfNormal(-1.0, v),
        lambda v: ours.HalfCauchy(-1.0, v),
        lambda v: ours.Uniform(1.0, 0.0, v),
        lambda v: ours.Laplace(0.0, -1.0, v),
        lambda v: ours.StudentT(-1.0, 0.0, 1.0, v),
        lambda v: ours.Exponential(-1.0, v),
        lambda v: ours.Gamma(1.0, -1.0, v),
        lambda v: ours.Beta(1.0, -1.0, v),
        lambda v: ours.Dirichlet(tw.asarray([1.0, -1.0]), v),
        lambda v: ours.Bernoulli(1.5, None, v),
        lambda v: ours.Categorical(tw.asarray([1.0, -1.0]), None, v),
        lambda v: ours.OneHotCategorical(tw.asarray([1.0, -1.0]), None, v),
        lambda v: ours.RelaxedOneHotCategorical(1.0, tw.asarray([1.0, -1.0]), None, v),
        lambda v: ours.RelaxedBernoulli(1.0, -1.0, None, v),
        lambda v: ours.Poisson(-1.0, v),
        lambda v: ours.Geometric(0.0, None, v),
        lambda v: ours.Binomial(-1.0, 0.5, None, v),
        lambda v: ours.Binomial(1.0, 1.5, None, v),
        lambda v: ours.NegativeBinomial(-1.0, 0.5, None, v),
        lambda v: ours.NegativeBinomial(1.0, 1.0, None, v),
        lambda v: ours.Multinomial(1, tw.asarray([1.0, -1.0]), None, v),
        lambda v: ours.MultivariateNormal(tw.ones(2), scale_tril=-tw.eye(2), validate_args=v),
    ],
)
def test_parameters_are_checked_unless_told_otherwise(make) -> None:
    for asked_for in (None, True):
        with pytest.raises(ValueError, match="must be"):
            make(asked_for)
    make(False)
