"""What is made of distributions, transforms and divergences of users' own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_distribution_methods import own
from test_distributions import ours

import tilewright as tw


class Steps(ours.Distribution):
    """Of public methods alone: 2 or 4, each with probability 1/2, moved by a shift."""

    has_rsample = True

    def __init__(self, shift) -> None:
        self.shift = shift
        super().__init__(shift.shape, (), None)

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.batch_shape)
        return self.shift + 2.0 + 2.0 * (tw.rand(*shape) < 0.5).astype(self.shift.dtype)

    def log_prob(self, value):
        apart = value - self.shift
        return tw.where((apart == 2) | (apart == 4), -math.log(2), -math.inf)

    def cdf(self, value):
        apart = value - self.shift
        return 0.5 * (apart >= 2).astype(value.dtype) + 0.5 * (apart >= 4).astype(value.dtype)

    def entropy(self):
        return tw.full(self.batch_shape, math.log(2))

    @property
    def mean(self):
        return self.shift + 3

    @property
    def variance(self):
        return tw.ones(self.batch_shape)


class Doubling(ours.Normal):
    """A subclass whose every method says something else than the normal distribution's."""

    def sample(self, sample_shape=(), *, generator=None):
        return super().sample(sample_shape, generator=generator) * 0 + 7

    def rsample(self, sample_shape=(), *, generator=None):
        return super().rsample(sample_shape, generator=generator) * 0 + 7

    def log_prob(self, value):
        return value * 0 + 5

    def cdf(self, value):
        return value * 0 + 0.25

    def icdf(self, value):
        return value * 0 + 1.5

    def entropy(self):
        return self.loc * 0 + 9

    @property
    def mean(self):
        return self.loc * 0 + 11

    @property
    def mode(self):
        return self.loc * 0 + 12

    @property
    def variance(self):
        return self.loc * 0 + 13


class Same(ours.Transform):
    sign = 1.0

    def _call(self, x):
        return x * 1

    def _inverse(self, y):
        return y * 1

    def log_abs_det_jacobian(self, x, y):
        return tw.zeros_like(x)


def compositions(base):
    return {
        "independent": ours.Independent(base, 0),
        "transformed": ours.TransformedDistribution(base, [Same()]),
        "mixture": ours.MixtureSameFamily(ours.Categorical(tw.ones(2)), base),
    }


@pytest.mark.parametrize("name", ["independent", "transformed", "mixture"])
def test_methods_of_a_subclass_are_what_is_called(name: str) -> None:
    base = Doubling(tw.zeros(2), 1.0)
    d, x = compositions(base)[name], tw.tensor(0.5)
    known = {
        "sample": d.sample,
        "log_prob": lambda: d.log_prob(x),
        "rsample": d.rsample,
        "cdf": lambda: d.cdf(x),
        "icdf": lambda: d.icdf(x),
        "entropy": d.entropy,
        "mean": lambda: d.mean,
        "mode": lambda: d.mode,
        "variance": lambda: d.variance,
    }
    wanted = {"sample": 7, "rsample": 7, "log_prob": 5, "cdf": 0.25, "icdf": 1.5, "entropy": 9}
    wanted |= {"mean": 11, "mode": 12, "variance": 13}
    told = {
        "independent": set(known) - {"cdf", "icdf"},
        "transformed": {"sample", "rsample", "log_prob", "cdf", "icdf"},
        "mixture": {"sample", "log_prob", "cdf", "mean", "variance"},
    }[name]
    for method, call in known.items():
        if method in told:
            got = call().numpy()
            np.testing.assert_allclose(got, np.full_like(got, wanted[method]), rtol=1e-6)
        else:
            with pytest.raises(NotImplementedError):
                call()


@pytest.mark.parametrize("name", ["independent", "transformed", "mixture"])
def test_a_distribution_of_public_methods_is_a_base(name: str) -> None:
    base = Steps(tw.tensor([0.0, 10.0]))
    d = compositions(base)[name]
    x = d.sample((500,))
    assert x.shape == (500, *d.batch_shape)
    assert not x.requires_grad
    assert set(np.unique(x)) == {2.0, 4.0, 12.0, 14.0}
    share = -math.log(2) * (2 if name == "mixture" else 1)
    np.testing.assert_allclose(d.log_prob(x), np.full_like(x, share), rtol=1e-6)
    shift = tw.zeros(2).requires_grad_()
    leaf = compositions(Steps(shift))[name]
    if name != "mixture":
        leaf.rsample((4,)).sum().backward()
        assert shift.grad.tolist() == [4.0, 4.0]


def test_a_class_of_rsample_alone_has_samples() -> None:
    shift = tw.zeros(3).requires_grad_()
    d = Steps(shift)
    assert d.sample((2,)).shape == (2, 3)
    assert not d.sample().requires_grad
    assert d.rsample().requires_grad
    with pytest.raises(NotImplementedError, match="Distribution: sample"):
        ours.Distribution((2,)).sample()


def test_a_generator_reaches_the_base() -> None:
    for name, d in compositions(ours.Normal(tw.zeros(2), 1.0)).items():
        draws = [d.sample((3,), generator=tw.Generator(4)).tolist() for _ in range(2)]
        assert draws[0] == draws[1], name


def test_transforms_of_ones_own() -> None:
    class Cube(ours.Transform):
        sign = 1.0

        def _call(self, x):
            return x**3

        def _inverse(self, y):
            return tw.sign(y) * tw.abs(y) ** (1 / 3)

        def log_abs_det_jacobian(self, x, y):
            return (3 * x.square()).log()

    cube = Cube(cache_size=1)
    d = ours.TransformedDistribution(ours.Normal(own(1.0), own(1.0)), [cube, ours.ExpTransform()])
    y = own([0.5, 3.0])
    x = np.cbrt(np.log(y.numpy()))
    want = -0.5 * (x - 1) ** 2 - 0.5 * np.log(2 * np.pi) - np.log(3 * x**2) - np.log(y.numpy())
    np.testing.assert_allclose(d.log_prob(y), want, rtol=1e-12)
    np.testing.assert_allclose(d.icdf(d.cdf(y)), y, rtol=1e-9)
    np.testing.assert_allclose(cube.inv(cube(y)), y, rtol=1e-12)

    class Shifted(ours.SigmoidTransform):
        def _call(self, x):
            return super()._call(x + 1)

    assert Shifted()(tw.tensor(-1.0)).item() == 0.5
    for what in (ours.Transform(), ours.ComposeTransform([ours.Transform()])):
        with pytest.raises(NotImplementedError, match="Transform: _call"):
            what(y)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_transforms_stay_where_they_have_an_inverse(dtype: str) -> None:
    x = tw.tensor([-1e4, -100.0, -1.0, 0.0, 1.0, 100.0, 1e4], dtype=getattr(tw, dtype))
    for transform in (ours.ExpTransform(), ours.SigmoidTransform(), ours.TanhTransform()):
        leaf = x.clone().requires_grad_()
        y = transform(leaf)
        assert y.dtype == x.dtype
        for z in (y, transform.inv(y), transform.log_abs_det_jacobian(x, y)):
            assert np.isfinite(z.detach().astype(tw.float64).numpy()).all()
        y.sum().backward()
        assert np.isfinite(leaf.grad.astype(tw.float64).numpy()).all()


# ---- divergences ----


def test_divergences_of_ones_own_kinds() -> None:
    class Base(ours.Normal):
        pass

    class Below(Base):
        pass

    p, q = Below(0.0, 1.0), Below(1.0, 1.0)
    assert ours.kl_divergence(p, q).item() == 0.5

    @ours.register_kl(Base, ours.Normal)
    def of_bases(p, q):
        return p.loc * 0 + 41.0

    @ours.register_kl(Base, ours.Laplace)
    def of_two_kinds(p, q):
        return tw.tensor(42.0)

    assert of_bases(p, q).item() == 41.0  # the decorated function stays
    assert ours.kl_divergence(p, q).item() == 41.0
    assert ours.kl_divergence(p, ours.Normal(0.0, 1.0)).item() == 41.0
    assert ours.kl_divergence(ours.Normal(0.0, 1.0), ours.Normal(1.0, 1.0)).item() == 0.5
    assert ours.kl_divergence(p, ours.Laplace(0.0, 1.0)).item() == 42.0
    with pytest.raises(NotImplementedError, match="of Laplace from Below"):
        ours.kl_divergence(ours.Laplace(0.0, 1.0), p)
    of_rows = ours.Independent(Below(tw.zeros(2, 3), 1.0), 1)
    assert ours.kl_divergence(of_rows, of_rows).tolist() == [123.0, 123.0]
    for kind in (3, tw.Tensor):
        with pytest.raises(TypeError, match="expected classes of distributions"):
            ours.register_kl(ours.Normal, kind)
