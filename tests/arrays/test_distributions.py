"""Distributions against PyTorch's: log-probabilities, entropies, divergences, gradients, draws."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import distributions as ours

torch = pytest.importorskip("torch")
theirs = torch.distributions

A, B = np.array([[0.3, -1.2, 2.0]]), np.array([[0.5], [1.7]])
P = np.array([[0.2, 0.5, 0.3], [0.0, 0.9, 0.1]])
COVARIANCE = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.7]])
# How a distribution is made from a library and its tensors, and values of it.
CASES = {
    "normal": (lambda d, t: d.Normal(t(A), t(B)), np.linspace(-3, 3, 6).reshape(2, 3)),
    "uniform": (lambda d, t: d.Uniform(t(A), t(A + B)), A + 0.4 * B),
    "bernoulli": (lambda d, t: d.Bernoulli(t(P * 0.9 + 0.05)), np.array([1.0, 0.0, 1.0])),
    "bernoulli logits": (lambda d, t: d.Bernoulli(logits=t(A * B)), np.array([1.0, 0.0, 1.0])),
    "categorical": (lambda d, t: d.Categorical(t(P * 3 + 0.1)), np.array([[2], [1], [0]])),
    "categorical logits": (lambda d, t: d.Categorical(logits=t(A * B)), np.array([2, 0])),
    "independent": (
        lambda d, t: d.Independent(d.Normal(t(A), t(B)), 1),
        np.linspace(-3, 3, 6).reshape(2, 3),
    ),
    "half normal": (lambda d, t: d.HalfNormal(t(B)), B * 0.7),
    "log normal": (lambda d, t: d.LogNormal(t(A * 0.3), t(B * 0.3)), B * 0.7),
    "laplace": (lambda d, t: d.Laplace(t(A), t(B)), A - 0.4 * B),
    "cauchy": (lambda d, t: d.Cauchy(t(A), t(B)), A - 0.4 * B),
    "gumbel": (lambda d, t: d.Gumbel(t(A), t(B)), A - 0.4 * B),
    "student": (lambda d, t: d.StudentT(t(B + 6), t(A), t(B)), A - 0.4 * B),
    "exponential": (lambda d, t: d.Exponential(t(B)), B * 0.7),
    "gamma": (lambda d, t: d.Gamma(t(B + 1), t(B + 2)), B * 0.7),
    "beta": (lambda d, t: d.Beta(t(B), t(B + 1)), np.array([[0.1, 0.5, 0.9]])),
    "dirichlet": (lambda d, t: d.Dirichlet(t(P + 0.5)), P * 0.7 + 0.1),
    "one hot": (lambda d, t: d.OneHotCategorical(t(P * 3 + 0.1)), np.eye(3)[[2, 1]]),
    "straight through": (
        lambda d, t: d.OneHotCategoricalStraightThrough(logits=t(A * B)),
        np.eye(3)[[2, 1]],
    ),
    "poisson": (lambda d, t: d.Poisson(t(B * 3)), np.array([[0.0, 2.0, 5.0]])),
    "geometric": (lambda d, t: d.Geometric(t(B / 3 + 0.3)), np.array([[0.0, 2.0, 5.0]])),
    "binomial": (lambda d, t: d.Binomial(5, t(P * 0.9 + 0.05)), np.array([0.0, 2.0, 5.0])),
    "binomial logits": (
        lambda d, t: d.Binomial(t(np.array(6.0)), logits=t(A * B)),
        np.array([0.0, 2.0, 5.0]),
    ),
    "geometric logits": (lambda d, t: d.Geometric(logits=t(A * B)), np.array([0.0, 2.0, 5.0])),
    "negative binomial": (
        lambda d, t: d.NegativeBinomial(t(B * 3 + 1), t(P * 0.8 + 0.05)),
        np.array([0.0, 2.0, 5.0]),
    ),
    "negative binomial logits": (
        lambda d, t: d.NegativeBinomial(t(B * 3 + 1), logits=t(A * B - 1)),
        np.array([0.0, 2.0, 5.0]),
    ),
    "multinomial": (
        lambda d, t: d.Multinomial(6, t(P + 0.2)),
        np.array([[1.0, 2.0, 3.0], [0.0, 6.0, 0.0]]),
    ),
    "multinomial logits": (
        lambda d, t: d.Multinomial(6, logits=t(A * B)),
        np.array([[1.0, 2.0, 3.0], [0.0, 6.0, 0.0]]),
    ),
    "half cauchy": (lambda d, t: d.HalfCauchy(t(B)), B * 0.7),
    "vectors": (lambda d, t: d.MultivariateNormal(t(A), t(COVARIANCE)), A - 0.4 * B),
    "vectors by factor": (
        lambda d, t: d.MultivariateNormal(t(A * B), scale_tril=t(np.linalg.cholesky(COVARIANCE))),
        A - 0.4 * B,
    ),
    "vectors by precision": (
        lambda d, t: d.MultivariateNormal(t(A), precision_matrix=t(COVARIANCE)),
        A - 0.4 * B,
    ),
    "relaxed classes": (
        lambda d, t: d.RelaxedOneHotCategorical(t(np.array(0.7)), logits=t(A * B)),
        P * 0.7 + 0.1,
    ),
    "relaxed outcome": (
        lambda d, t: d.RelaxedBernoulli(t(np.array(0.7)), logits=t(A * B)),
        P * 0.7 + 0.1,
    ),
    "squashed": (
        lambda d, t: d.Independent(
            d.TransformedDistribution(
                d.Normal(t(A), t(B)), [d.TanhTransform(), d.AffineTransform(1.0, -2.0)]
            ),
            1,
        ),
        1 - 2 * np.tanh(A - 0.4 * B),
    ),
    "logistic": (
        lambda d, t: d.TransformedDistribution(
            d.Uniform(t(A * B * 0), t(A * B * 0 + 1)),
            [d.ComposeTransform([d.AffineTransform(t(B * 0.1), t(B)), d.SigmoidTransform()])],
        ),
        1 / (1 + np.exp(-B * 0.7 + 0 * A)),
    ),
    "mixture": (
        lambda d, t: d.MixtureSameFamily(d.Categorical(t(P + 0.1)), d.Normal(t(A * B), t(B))),
        np.array([0.3, -1.0]),
    ),
    "mixture of vectors": (
        lambda d, t: d.MixtureSameFamily(
            d.Categorical(t(P[0])), d.Independent(d.Normal(t(A.T * np.ones((1, 2))), t(B.T)), 1)
        ),
        np.array([[0.3, -1.0]]),
    ),
}


def pair(name: str, leaves: bool = True):
    return built(CASES[name][0], leaves)


def built(make, leaves: bool = True):
    """From both libraries, with the tensors that each is made of."""
    made: list = [[], []]

    def own(x):
        made[0].append(tw.asarray(x.copy()).requires_grad_(leaves))
        return made[0][-1]

    def other(x):
        made[1].append(torch.tensor(x, requires_grad=leaves))
        return made[1][-1]

    return make(ours, own), make(theirs, other), made


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_pytorchs(name: str) -> None:
    mine, other, (leaves, their_leaves) = pair(name)
    values = CASES[name][1]
    got = mine.log_prob(tw.asarray(values))
    want = other.log_prob(torch.tensor(values))
    np.testing.assert_allclose(got.detach(), want.detach(), rtol=1e-12, atol=1e-14)
    assert mine.batch_shape == tuple(other.batch_shape)
    assert mine.event_shape == tuple(other.event_shape)
    totals = [got.exp().sum(), want.exp().sum()]
    facts = ["mean", "stddev", "entropy", "perplexity", "mode"]
    for fact in facts[2:] if name.startswith("categorical") else facts:
        both = [asked(each, fact) for each in (mine, other)]
        assert (both[0] is None) == (both[1] is None)
        if both[0] is not None:
            # PyTorch's logarithm of a factorial is of float32 there.
            rtol = 1e-7 if name.startswith("multinomial") else 1e-12
            np.testing.assert_allclose(*(np.asarray(x.detach()) for x in both), rtol, 1e-14)
            if fact == "entropy":
                totals = [a + b.sum() for a, b in zip(totals, both, strict=True)]
    for total in totals:
        total.backward()
    # PyTorch's derivative of digamma has half of float64's digits.
    rtol = 2e-7 if name in ("student", "gamma", "beta", "dirichlet") else 1e-9
    for a, b in zip(leaves, their_leaves, strict=True):
        np.testing.assert_allclose(a.grad, b.grad, rtol=rtol, atol=1e-12)


def asked(distribution, fact: str):
    """A fact, or None where a distribution has none."""
    try:
        value = getattr(distribution, fact)
        return value() if callable(value) else value
    except NotImplementedError:
        return None


# A second distribution of the kind.
OTHERS = {
    "normal": lambda d, t: d.Normal(t(A + 1), t(2 * B)),
    "uniform": lambda d, t: d.Uniform(t(A - 1), t(A + 2 * B)),
    "bernoulli": lambda d, t: d.Bernoulli(t(P * 0.5 + 0.2)),
    "bernoulli logits": lambda d, t: d.Bernoulli(logits=t(A + B)),
    "categorical": lambda d, t: d.Categorical(t(P + 0.3)),
    "categorical logits": lambda d, t: d.Categorical(logits=t(A - B)),
    "independent": lambda d, t: d.Independent(d.Normal(t(A + 1), t(2 * B)), 1),
    "laplace": lambda d, t: d.Laplace(t(A + 1), t(2 * B)),
    "log normal": lambda d, t: d.LogNormal(t(A), t(B)),
    "exponential": lambda d, t: d.Exponential(t(B * 2)),
    "gamma": lambda d, t: d.Gamma(t(B), t(B + 3)),
    "beta": lambda d, t: d.Beta(t(B + 2), t(B)),
    "dirichlet": lambda d, t: d.Dirichlet(t(P * 2 + 0.1)),
    "one hot": lambda d, t: d.OneHotCategorical(t(P + 0.3)),
    "poisson": lambda d, t: d.Poisson(t(B)),
    "geometric": lambda d, t: d.Geometric(t(B / 3 + 0.2)),
    "vectors": lambda d, t: d.MultivariateNormal(t(A * B), t(COVARIANCE * 2)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OTHERS)
def test_divergences_are_pytorchs(name: str) -> None:
    mine, other, (leaves, their_leaves) = pair(name)
    second = OTHERS[name]
    got = ours.kl_divergence(mine, second(ours, tw.asarray))
    want = theirs.kl_divergence(other, second(theirs, torch.tensor))
    np.testing.assert_allclose(got.detach(), want.detach(), rtol=1e-10, atol=1e-14)
    got.sum().backward()
    want.sum().backward()
    for a, b in zip(leaves, their_leaves, strict=True):
        np.testing.assert_allclose(a.grad, b.grad, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_draws(name: str) -> None:
    mine, _, _ = pair(name, leaves=False)
    draws = mine.sample((40_000,), generator=tw.Generator(1))
    assert draws.shape == (40_000, *mine.batch_shape, *mine.event_shape)
    assert not draws.requires_grad
    again = mine.sample((40_000,), generator=tw.Generator(1))
    assert (draws == again).all().item()
    if name.startswith("categorical"):
        assert draws.dtype == tw.int64
        for i, row in enumerate(np.asarray(mine.probs)):
            shares = np.bincount(np.asarray(draws[:, i]), minlength=3) / 40_000
            np.testing.assert_allclose(shares, row, atol=0.015)
    elif name.endswith("cauchy"):
        middle = mine.icdf(tw.asarray(0.5)).expand(mine.batch_shape)
        np.testing.assert_allclose(np.median(draws, axis=0), middle, atol=0.1)
    else:
        other = pair(name, leaves=False)[1]
        torch.manual_seed(0)
        known = other.sample((40_000,)) if asked(other, "mean") is None else None
        mean = other.mean if known is None else known.mean(0)
        spread = other.stddev if known is None else known.std(0)
        np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.05, rtol=0.03)
        np.testing.assert_allclose(draws.std(axis=0), spread, atol=0.05, rtol=0.05)
    assert mine.sample().shape == (*mine.batch_shape, *mine.event_shape)
    assert mine.sample(2).shape[0] == 2
    assert mine.sample((0, 2)).shape[:2] == (0, 2)


def test_gradients_go_through_draws() -> None:
    mu = tw.tensor([1.0, 2.0], requires_grad=True)
    sigma = tw.tensor([0.5, 2.0], requires_grad=True)
    draw = ours.Normal(mu, sigma).rsample(generator=tw.Generator(3))
    draw.sum().backward()
    assert mu.grad is not None
    assert sigma.grad is not None
    assert mu.grad.tolist() == [1.0, 1.0]
    noise = (draw.detach() - mu.detach()) / sigma.detach()
    np.testing.assert_allclose(sigma.grad, noise, rtol=1e-5)
    assert not ours.Normal(mu, sigma).sample().requires_grad
    for name in CASES:
        mine, _, (leaves, _) = pair(name)
        if mine.has_rsample and name != "logistic":
            mine.rsample((3,)).square().sum().backward()
            assert all(np.isfinite(x.grad).all() for x in leaves), name
    with pytest.raises(NotImplementedError, match="Bernoulli: draws have no gradient"):
        ours.Bernoulli(0.5).rsample()


def test_log_probabilities_far_out_are_numbers() -> None:
    chances = ours.Bernoulli(logits=tw.asarray([-200.0, 200.0]))
    assert chances.log_prob(tw.asarray([1.0, 0.0])).tolist() == [-200.0, -200.0]
    assert ours.Uniform(0.0, 1.0).log_prob(tw.asarray([1.0, 0.5])).tolist() == [-np.inf, 0.0]
    assert ours.Normal(0.0, 1.0).cdf(tw.asarray(0.0)).item() == 0.5
    never = ours.Bernoulli(0.0)
    known = theirs.Bernoulli(torch.tensor(0.0)).log_prob(torch.tensor([1.0, 0.0]))  # of eps
    np.testing.assert_allclose(never.log_prob(tw.asarray([1.0, 0.0])), known, 1e-6, 2e-7)
    assert 0 <= never.entropy().item() < 2e-7
    classes = ours.Categorical(tw.asarray([1.0, 0.0]))
    assert 0 <= classes.entropy().item() < 2e-7


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: ours.Normal(0.0, -1.0), ValueError, "Normal: scale must be above 0"),
        (lambda: ours.Normal(0.0, "1"), TypeError, "Normal: scale is a tensor or a number, got"),
        (
            lambda: ours.Normal(tw.asarray([1]), 1.0),
            TypeError,
            "Normal: loc is floating, got int64",
        ),
        (lambda: ours.Uniform(1.0, 1.0), ValueError, "Uniform: low must be below high"),
        (ours.Bernoulli, ValueError, "Bernoulli: give probs or logits"),
        (lambda: ours.Bernoulli(1.5), ValueError, "Bernoulli: probs must be from 0 to 1"),
        (lambda: ours.Categorical(0.5), ValueError, "Categorical: expected probabilities"),
        (lambda: ours.Categorical(-tw.ones(2)), ValueError, "must be at least 0"),
        (
            lambda: ours.Categorical(tw.ones(2)).log_prob(tw.ones(1)),
            TypeError,
            "values are classes, integers, got float32",
        ),
        (lambda: ours.Dirichlet(1.0), ValueError, "Dirichlet: expected concentrations"),
        (lambda: ours.Beta(1.0, 0.0), ValueError, "Beta: concentration0 must be above 0"),
        (lambda: ours.Geometric(0.0), ValueError, "Geometric: probs must be above 0"),
        (lambda: ours.Poisson(-1.0), ValueError, "Poisson: rate must be at least 0"),
        (
            lambda: ours.MultivariateNormal(tw.ones(2)),
            ValueError,
            "give covariance_matrix, precision_matrix or scale_tril",
        ),
        (
            lambda: ours.MultivariateNormal(tw.ones(2), tw.eye(3)),
            ValueError,
            "does not fit a matrix of shape",
        ),
        (
            lambda: ours.TransformedDistribution(ours.Normal(0.0, 1.0), [tw.tanh]),
            TypeError,
            "expected transforms",
        ),
        (lambda: ours.TransformedDistribution(3, []), TypeError, "expected a distribution"),
        (
            lambda: ours.MixtureSameFamily(
                ours.Categorical(tw.ones(2)), ours.Normal(tw.ones(3), 1.0)
            ),
            ValueError,
            "2 classes and a batch",
        ),
        (lambda: ours.Independent(3, 1), TypeError, "expected a distribution, got int"),
        (lambda: ours.Independent(ours.Normal(0.0, 1.0), 1), ValueError, "1 axes of a batch"),
        (
            lambda: ours.kl_divergence(ours.Normal(0.0, 1.0), ours.Uniform(0.0, 1.0)),
            NotImplementedError,
            "of Normal from Uniform",
        ),
    ],
)
def test_wrong_arguments(make, error, text) -> None:
    with pytest.raises(error, match=text):
        make()


def test_one_normal_vector_has_an_entropy() -> None:
    one = ours.MultivariateNormal(tw.zeros(2), tw.eye(2))
    assert one.entropy().shape == ()
    np.testing.assert_allclose(one.entropy(), 1 + np.log(2 * np.pi), rtol=1e-6)
