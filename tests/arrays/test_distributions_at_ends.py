"""Distributions at the ends of their domains: what is refused, and finite values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from test_distribution_methods import ALONE, own
from test_distributions import ours, theirs, torch

import tilewright as tw

stats = pytest.importorskip("scipy.stats")

NAN, INF = float("nan"), float("inf")
LOPSIDED = [[2.0, 0.5], [0.4, 1.0]]
FULL = [[1.0, 0.5], [0.5, 1.0]]
# How a distribution is made of a library, its tensors and `validate_args`, and what is wrong.
REFUSED = {
    "normal": (lambda d, t, v: d.Normal(t(NAN), t(1.0), v), "loc must be numbers"),
    "normal of one NaN": (lambda d, t, v: d.Normal(t([0.0, NAN]), t(1.0), v), "loc must be"),
    "log normal": (lambda d, t, v: d.LogNormal(t(NAN), t(1.0), v), "loc must be"),
    "laplace": (lambda d, t, v: d.Laplace(t(NAN), t(1.0), v), "loc must be"),
    "cauchy": (lambda d, t, v: d.Cauchy(t(NAN), t(1.0), v), "loc must be"),
    "gumbel": (lambda d, t, v: d.Gumbel(t(NAN), t(1.0), v), "loc must be"),
    "student": (lambda d, t, v: d.StudentT(t(3.0), t(NAN), t(1.0), v), "loc must be"),
    "a scale": (lambda d, t, v: d.HalfNormal(t(NAN), v), "scale must be above 0"),
    "uniform": (lambda d, t, v: d.Uniform(t(0.0), t(NAN), v), "low must be below high"),
    "bernoulli": (lambda d, t, v: d.Bernoulli(None, t(NAN), v), "logits must be numbers"),
    "geometric": (lambda d, t, v: d.Geometric(None, t(NAN), v), "logits must be"),
    "relaxed outcome": (lambda d, t, v: d.RelaxedBernoulli(t(0.5), None, t(NAN), v), "logits must"),
    "binomial": (lambda d, t, v: d.Binomial(2, None, t(NAN), v), "logits must be"),
    "part of a trial": (
        lambda d, t, v: d.Binomial(t(2.5), t(0.5), None, v),
        "total_count must be a whole number from 0",
    ),
    "endless trials": (lambda d, t, v: d.Binomial(t(INF), t(0.5), None, v), "total_count must"),
    "trials below 0": (lambda d, t, v: d.Binomial(t(-1.0), t(0.5), None, v), "total_count must"),
    "failures below 0": (
        lambda d, t, v: d.NegativeBinomial(t(-0.5), t(0.5), None, v),
        "total_count must be at least 0",
    ),
    "no number of failures": (
        lambda d, t, v: d.NegativeBinomial(t(NAN), t(0.5), None, v),
        "total_count must be",
    ),
    "no class": (lambda d, t, v: d.Categorical(t([0.0, 0.0]), None, v), "probs must be at least 0"),
    "class of NaN": (lambda d, t, v: d.Categorical(t([NAN, 1.0]), None, v), "probs must be"),
    "sure of two": (lambda d, t, v: d.Categorical(t([INF, 1.0]), None, v), "probs must be"),
    "one batch of two": (
        lambda d, t, v: d.OneHotCategorical(t([[1.0, 0.0], [0.0, 0.0]]), None, v),
        "probs must be",
    ),
    "logits of NaN": (lambda d, t, v: d.Categorical(None, t([NAN, 0.0]), v), "logits must be"),
    "logits above all": (lambda d, t, v: d.Categorical(None, t([INF, 0.0]), v), "logits must be"),
    "no logits": (lambda d, t, v: d.Categorical(None, t([-INF, -INF]), v), "logits must be"),
    "multinomial": (lambda d, t, v: d.Multinomial(3, t([0.0, 0.0]), None, v), "probs must be"),
    "relaxed classes": (
        lambda d, t, v: d.RelaxedOneHotCategorical(t(0.5), None, t([NAN, 0.0]), v),
        "logits must be",
    ),
    "vectors": (
        lambda d, t, v: d.MultivariateNormal(
            t([NAN, 0.0]), scale_tril=t(np.eye(2)), validate_args=v
        ),
        "loc must be numbers",
    ),
    "covariance": (
        lambda d, t, v: d.MultivariateNormal(t([0.0, 0.0]), t(LOPSIDED), validate_args=v),
        "covariance_matrix must be symmetric",
    ),
    "precision": (
        lambda d, t, v: d.MultivariateNormal(
            t([0.0, 0.0]), precision_matrix=t(LOPSIDED), validate_args=v
        ),
        "precision_matrix must be symmetric",
    ),
    "factor": (
        lambda d, t, v: d.MultivariateNormal(t([0.0, 0.0]), scale_tril=t(FULL), validate_args=v),
        "scale_tril must be a lower triangle",
    ),
}  # fmt: skip


def double(x):
    return tw.asarray(np.asarray(x), dtype=tw.float64)


def other(x):
    return torch.tensor(np.asarray(x), dtype=torch.float64)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_parameters_out_of_their_domains_are_refused(name: str) -> None:
    make, text = REFUSED[name]
    for validate_args in (None, True):
        with pytest.raises(ValueError, match=text):
            make(ours, double, validate_args)
        with pytest.raises(ValueError):  # noqa: PT011  (PyTorch's text)
            make(theirs, other, validate_args)
    make(ours, double, False)


def test_parameters_at_the_edge_of_their_domains_are_taken() -> None:
    for make in (
        lambda d, t: d.Normal(t(INF), t(INF), True),
        lambda d, t: d.Bernoulli(None, t([-INF, INF]), True),
        lambda d, t: d.Categorical(None, t([[-INF, 0.0], [3.0, -INF]]), True),
        lambda d, t: d.Categorical(t([[0.0, 1e-30], [1e30, 0.0]]), None, True),
        lambda d, t: d.Binomial(t([0.0, 3.0]), t([0.0, 1.0]), None, True),
        lambda d, t: d.NegativeBinomial(t([0.0, 0.5]), t(0.0), None, True),
        lambda d, t: d.MultivariateNormal(
            t([0.0, 0.0]), t([[1.0, 0.5], [0.5 + 1e-7, 1.0]]), validate_args=True
        ),
    ):
        make(ours, double)
        make(theirs, other)


SURE = np.array([0.0, 1.0, 0.3])
WEIGHTS = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
MASKED = np.array([[0.5, -INF, 0.0], [-INF, -INF, 2.0]])
# How a distribution whose probabilities are 0 or 1 is made, and values of it.
CERTAIN = {
    "bernoulli": (lambda d, t: d.Bernoulli(t(SURE)), [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]),
    "geometric": (lambda d, t: d.Geometric(t(SURE[1:])), [[0.0, 0.0], [0.0, 2.0]]),
    "binomial": (lambda d, t: d.Binomial(3, t(SURE)), [[0.0, 3.0, 1.0], [2.0, 2.0, 0.0]]),
    "negative binomial": (
        lambda d, t: d.NegativeBinomial(t(0.5), t([0.0, 0.3])), [[0.0, 0.0], [2.0, 2.0]],
    ),
    "categorical": (lambda d, t: d.Categorical(t(WEIGHTS)), [[0, 2], [2, 0]]),
    "categorical logits": (lambda d, t: d.Categorical(logits=t(MASKED)), [[0, 2], [2, 2]]),
    "one hot": (lambda d, t: d.OneHotCategorical(t(WEIGHTS)), np.eye(3)[[1, 2]]),
    "multinomial": (
        lambda d, t: d.Multinomial(3, t(WEIGHTS)), [[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]],
    ),
    "multinomial logits": (
        lambda d, t: d.Multinomial(3, logits=t(MASKED)), [[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]],
    ),
    "relaxed outcome": (lambda d, t: d.RelaxedBernoulli(t(0.7), t(SURE)), [0.2, 0.9, 0.5]),
    "relaxed classes": (
        lambda d, t: d.RelaxedOneHotCategorical(t(0.7), t(WEIGHTS)), [0.2, 0.7, 0.1],
    ),
    "mixture": (
        lambda d, t: d.MixtureSameFamily(d.Categorical(t(WEIGHTS)), d.Normal(t(WEIGHTS), t(1.0))),
        [0.3, 2.5],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fact", ["log_prob", "entropy"])
@pytest.mark.parametrize("name", CERTAIN)
def test_probabilities_of_0_and_1_have_pytorchs_values_and_gradients(name, fact, dtype) -> None:
    make, values = CERTAIN[name]
    values = np.asarray(values)
    values = values if values.dtype.kind == "i" else values.astype(dtype)
    leaves, their_leaves = [], []

    def mine(x):
        leaves.append(tw.asarray(np.asarray(x, dtype=dtype)).requires_grad_())
        return leaves[-1]

    def torchs(x):
        their_leaves.append(torch.tensor(np.asarray(x, dtype=dtype), requires_grad=True))
        return their_leaves[-1]

    a, b = make(ours, mine), make(theirs, torchs)
    try:
        known = b.entropy() if fact == "entropy" else b.log_prob(torch.tensor(values))
    except NotImplementedError:
        return
    got = a.entropy() if fact == "entropy" else a.log_prob(tw.asarray(values))
    digits = {"rtol": 2e-5, "atol": 2e-5} if dtype == "float32" else {"rtol": 1e-6, "atol": 1e-12}
    # PyTorch's entropy of a multinomial has a logarithm of float32 in it.
    rough = {"atol": 1e-7} if name.startswith("multinomial") and dtype == "float64" else {}
    np.testing.assert_allclose(got.detach(), known.detach(), **(digits | rough))
    got.sum().backward()
    known.sum().backward()
    for x, y in zip(leaves, their_leaves, strict=True):
        if y.grad is None:
            continue
        g, expected = np.asarray(x.grad), np.asarray(y.grad)
        finite = np.isfinite(expected)  # PyTorch's entropies of a -inf have NaN
        np.testing.assert_allclose(g[finite], expected[finite], **digits)
        if name != "geometric":  # a failure before a sure success: -inf
            assert np.isfinite(g).all()


def test_no_event_at_a_rate_of_0_has_a_gradient() -> None:
    rate = tw.tensor(0.0, requires_grad=True)
    got = ours.Poisson(rate).log_prob(tw.asarray(0.0))
    got.backward()
    assert rate.grad is not None
    assert (got.item(), rate.grad.item()) == (0.0, -1.0)
    assert ours.Poisson(0.0).log_prob(tw.asarray(1.0)).item() == -INF


@pytest.mark.parametrize("kind", ["Bernoulli", "Categorical"])
def test_divergences_at_0_and_1_are_pytorchs(kind: str) -> None:
    if kind == "Bernoulli":
        p, q = np.repeat([0.0, 0.3, 1.0], 3), np.tile([0.0, 0.3, 1.0], 3)
    else:
        p = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
        q = np.array([[0.0, 2.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    results = []
    for library, divergence, leaf in (
        (ours, ours.kl_divergence, lambda x: double(x).requires_grad_()),
        (theirs, theirs.kl_divergence, lambda x: other(x).requires_grad_()),
    ):
        a, b = leaf(p), leaf(q)
        y = divergence(getattr(library, kind)(a), getattr(library, kind)(b))
        y.sum().backward()
        results.append([np.asarray(y.detach()), np.asarray(a.grad), np.asarray(b.grad)])
    for mine, torchs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, torchs, rtol=1e-9, atol=1e-12)


def test_divergences_of_a_sure_success() -> None:
    sure, other_one = ours.Geometric(own(1.0)), ours.Geometric(own(0.25))
    assert ours.kl_divergence(sure, sure).item() == pytest.approx(0, abs=1e-13)
    assert ours.kl_divergence(sure, other_one).item() == pytest.approx(np.log(4))
    assert ours.kl_divergence(other_one, sure).item() == INF


@pytest.mark.parametrize("dtype", [tw.float32, tw.float64])
def test_inverses_of_shares_near_0_and_1(dtype) -> None:
    p = [-0.0, 0.0, 1e-30, 1e-10, 0.2, 0.25, 0.4, 0.5, 0.6, 0.75, 0.8, 0.999, 1.0]
    q = tw.asarray(p, dtype=dtype).requires_grad_()
    x, digits = np.asarray(q.detach(), dtype=np.float64), 1e-6 if dtype == tw.float32 else 1e-14
    with np.errstate(divide="ignore"):
        cotangent = np.tan(np.pi * (x - 0.5))
        cotangent = np.where(x < 0.25, -1 / np.tan(np.pi * abs(x)), cotangent)
        cotangent = np.where(x > 0.75, 1 / np.tan(np.pi * (1 - x)), cotangent)
        half = np.where(x > 0.5, 1 / np.tan(np.pi / 2 * (1 - x)), np.tan(np.pi / 2 * x))
    for kind, known in (
        (ours.Cauchy(0.0, tw.tensor(2.0, dtype=dtype)), 2 * cotangent),
        (ours.HalfCauchy(tw.tensor(2.0, dtype=dtype)), 2 * half),
    ):
        got = kind.icdf(q)
        np.testing.assert_allclose(got.detach(), known, rtol=digits, atol=digits)
        q.grad = None
        got.sum().backward()
        assert q.grad is not None
        # dx / dp is pi (1 + x^2) by scale, half of it for the half.
        share = np.pi if isinstance(kind, ours.Cauchy) else np.pi / 2
        slopes = 2 * share * (1 + (known / 2) ** 2)
        with np.errstate(over="ignore"):
            slopes = slopes.astype(np.asarray(q.grad).dtype)
        np.testing.assert_allclose(q.grad, slopes, rtol=10 * digits)


def test_laplaces_share_far_out() -> None:
    x = tw.tensor([-80.0, -19.4, -1.0, 0.0, 1e-3, 19.4, NAN], requires_grad=True)
    got = ours.Laplace(0.0, 1.0).cdf(x)
    known = stats.laplace.cdf(np.asarray(x.detach(), dtype=np.float64))
    np.testing.assert_allclose(got.detach(), known, rtol=1e-6)
    got.sum().backward()
    known = stats.laplace.pdf(np.asarray(x.detach(), dtype=np.float64))  # 1/2 at loc
    np.testing.assert_allclose(x.grad, known, rtol=1e-6)


@pytest.mark.parametrize("name", ALONE)
def test_nan_has_no_probability(name: str) -> None:
    make, value = ALONE[name]
    if isinstance(value, int):
        return
    values = np.array(value)
    values.reshape(-1)[:1] = NAN
    mine = make(ours, own)
    for fact in ("log_prob", "cdf", "icdf"):
        try:
            assert np.isnan(np.asarray(getattr(mine, fact)(tw.asarray(values)))).all()
        except NotImplementedError:
            continue


def test_counts_outside_have_finite_gradients() -> None:
    total = tw.tensor(3.0, requires_grad=True)
    got = ours.Binomial(total, 0.3).log_prob(tw.asarray([-1.0, 2.0, 5.0]))
    assert got.tolist()[::2] == [-INF, -INF]
    got.sum().backward()
    assert total.grad is not None
    assert np.isfinite(total.grad.item())
