"""First values of parameters: PyTorch's gains, distributions and structures."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as tw
from tilewright.nn import init

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "name",
    ["linear", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "sigmoid", "tanh", "relu", "selu"],
)
def test_gains(name):
    assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)


def test_gains_of_slopes():
    for slope in (None, 0.2, 1):
        want = torch.nn.init.calculate_gain("leaky_relu", slope)
        assert init.calculate_gain("leaky_relu", slope) == pytest.approx(want)
    with pytest.raises(TypeError, match="the slope of leaky_relu is a number, got 'a'"):
        init.calculate_gain("leaky_relu", "a")


@pytest.mark.parametrize(
    ("a", "b"),
    [(-2.0, 2.0), (-0.1, 0.1), (1.0, 1.5), (-3.0, -2.5), (4.0, 50.0), (0.0, math.inf), (6.0, 6.1)],
)
def test_truncated_normal(a, b):
    """Kolmogorov-Smirnov: 20,000 values stay within 2.2/sqrt(n) (one in 60,000) of the truth."""
    n, mean, std = 20_000, 0.5, 1.5
    x = init.trunc_normal_(
        tw.empty((n,), dtype=tw.float64), mean, std, a, b, generator=tw.Generator(1)
    )
    values = np.sort(x.numpy())
    assert a <= values[0]
    assert values[-1] <= b

    def above(t: float) -> float:
        return math.erfc((t - mean) / std / math.sqrt(2)) / 2

    cdf = np.array([(above(a) - above(t)) / (above(a) - above(b)) for t in values])
    steps = np.arange(n) / n
    assert np.abs(cdf - steps).max() < 2.2 / math.sqrt(n)


@pytest.mark.parametrize(
    ("shape", "gain"), [((5, 5), 1.0), ((70, 40), 2.0), ((3, 100), 1.0), ((4, 3, 5), 0.5)]
)
@pytest.mark.parametrize("dtype", [tw.float32, tw.float64])
def test_orthogonal(shape, gain, dtype):
    q = init.orthogonal_(tw.empty(shape, dtype=dtype), gain)
    m = q.numpy().reshape(shape[0], -1).astype(np.float64)
    m = m if m.shape[0] < m.shape[1] else m.T
    atol = 1e-13 if dtype == tw.float64 else 1e-6
    np.testing.assert_allclose(m @ m.T, gain**2 * np.eye(len(m)), atol=atol * gain**2)


def test_orthogonal_matrices_are_equally_likely():
    """Of 2 x 2 ones half are rotations, and the angle is uniform: four standard deviations."""
    count, stream = 2000, tw.Generator(5)
    drawn = [init.orthogonal_(tw.empty((2, 2)), generator=stream).numpy() for _ in range(count)]
    rotations = sum(np.linalg.det(q) > 0 for q in drawn)
    assert abs(rotations - count / 2) < 4 * math.sqrt(count / 4)
    angles = np.array([math.atan2(q[1, 0], q[0, 0]) for q in drawn])
    quarters = np.histogram(angles, bins=4, range=(-math.pi, math.pi))[0]
    assert np.abs(quarters - count / 4).max() < 4 * math.sqrt(count * 3 / 16)


@pytest.mark.parametrize(
    ("shape", "groups"), [((3, 3, 3), 1), ((4, 2, 3, 3), 2), ((2, 5, 2, 3, 4), 1), ((6, 1, 3), 6)]
)
def test_dirac(shape, groups):
    want = torch.nn.init.dirac_(torch.empty(shape), groups)
    assert init.dirac_(tw.empty(shape), groups).tolist() == want.tolist()


def test_fixed_values():
    assert init.ones_(tw.empty((2,))).tolist() == [1.0, 1.0]
    assert init.zeros_(tw.empty((2,))).tolist() == [0.0, 0.0]
    assert init.constant_(tw.empty((2,)), val=3.0).tolist() == [3.0, 3.0]
    want = torch.nn.init.eye_(torch.empty(2, 3)).tolist()
    assert init.eye_(tw.empty((2, 3))).tolist() == want
    assert init.uniform_(tw.empty((9,)), a=2.0, b=2.5).min().item() >= 2.0


def test_sparse():
    x = init.sparse_(tw.empty((20, 6)), 0.33, std=2.0)
    assert [(column == 0).sum() for column in x.numpy().T] == [7] * 6
    assert len({tuple(np.flatnonzero(column == 0)) for column in x.numpy().T}) > 1


def test_parameters_keep_recording():
    for fill in (
        init.ones_, init.eye_, init.orthogonal_, init.trunc_normal_, lambda p: init.sparse_(p, 0.5)
    ):  # fmt: skip
        parameter = tw.nn.Parameter(tw.empty((3, 3)))
        assert fill(parameter) is parameter
        assert parameter.requires_grad


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: init.trunc_normal_(tw.empty((2,)), a=1.0, b=1.0), "needs a < b and std > 0"),
        (lambda: init.orthogonal_(tw.empty((2,))), "orthogonal_: needs at least 2 axes"),
        (lambda: init.eye_(tw.empty((2,))), r"eye_: needs 2 axes, got shape \(2,\)"),
        (lambda: init.dirac_(tw.empty((2, 2))), "dirac_: needs 3 to 5 axes"),
        (lambda: init.dirac_(tw.empty((3, 2, 2)), groups=2), "3 output channels cannot be split"),
        (lambda: init.sparse_(tw.empty((2, 2)), 1.5), "sparsity lies between 0 and 1, got 1.5"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()
