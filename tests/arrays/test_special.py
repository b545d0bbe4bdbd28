"""Special functions against mpmath, SciPy and PyTorch."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import tilewright as tw

scipy_special = pytest.importorskip("scipy.special")
special = tw.special

RNG = np.random.default_rng(3)
EVERYWHERE = np.concatenate(
    [RNG.uniform(-12, 12, 200), RNG.uniform(-85, 85, 100), RNG.normal(size=50) * 1e-4, [0.0, 8.0]]
)
ABOVE = np.concatenate([RNG.uniform(0, 12, 200), 10 ** RNG.uniform(-8, 2, 100)])
BELOW = np.concatenate([RNG.uniform(-12, 0, 200), RNG.uniform(-36, 0, 100)])
SHARES = np.concatenate(
    [RNG.uniform(0, 1, 200), RNG.uniform(0, 0.03, 100), 10 ** RNG.uniform(-300, -1, 60)]
)


def place(share: Any) -> Any:
    """By Newton's steps in the logarithm from SciPy's."""
    y = mp.mpf(float(scipy_special.ndtri(float(share))))
    for _ in range(4):
        below = mp.erfc(-y / mp.sqrt(2)) / 2
        y -= mp.log(below / share) * below * mp.sqrt(2 * mp.pi) * mp.exp(y * y / 2)
    return y


def share(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


# The function of mpmath's, where it is tried, and the error that the docstring states.
JUDGED: dict[str, tuple[Any, np.ndarray, float]] = {
    "i0": (lambda x: mp.besseli(0, x), EVERYWHERE, 4),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), EVERYWHERE, 4),
    "i1": (lambda x: mp.besseli(1, x), EVERYWHERE, 4),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), EVERYWHERE, 4),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), ABOVE, 5),
    "ndtr": (share, np.concatenate([BELOW, ABOVE]), 3),
    "log_ndtr": (lambda x: mp.log(share(x)), BELOW, 3),
    "ndtri": (place, SHARES, 5),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", JUDGED)
def test_errors_are_within_what_is_told(name: str, dtype: str) -> None:
    reference, numbers, bound = JUDGED[name]
    x = numbers.astype(dtype)
    x = x[(x != 0) | (numbers == 0)]
    y = np.asarray(getattr(special, name)(tw.asarray(x))).astype(float)
    with mp.workprec(160):
        exact = [reference(mp.mpf(float(v))) for v in x]
        rounded = np.array([float(v) for v in exact])
        least, most = np.finfo(dtype).tiny, np.finfo(dtype).max
        fits = (abs(rounded) >= least) & (abs(rounded) <= most)
        unit = np.spacing(abs(np.where(fits, rounded, 1)).astype(dtype)).astype(float)
        errors = [
            float(abs(mp.mpf(a) - b)) if fit else 0.0
            for a, b, fit in zip(y, exact, fits, strict=True)
        ]
    assert fits.sum() > 100
    assert max(errors / unit) <= (bound if dtype == "float64" else 0.51)


ENDS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e300, -1e300, 700.0, 1e-300])


@pytest.mark.parametrize("name", [*JUDGED, "entr"])
def test_ends_of_the_range_are_scipys(name: str) -> None:
    got = np.asarray(getattr(special, name)(tw.asarray(ENDS)))
    want = getattr(scipy_special, name)(ENDS)
    if name in ("i0", "i1"):  # NaN there, where the functions grow without end
        want[2:4] = [np.inf, np.inf if name == "i0" else -np.inf]
    np.testing.assert_allclose(got, want, rtol=1e-13)


@pytest.mark.parametrize("name", [*JUDGED, "entr"])
def test_first_and_second_gradients(name: str) -> None:
    numbers = [0.02, 0.3, 0.5, 0.97] if name in ("ndtri", "entr") else [-3.0, -0.5, 0.7, 8.5]
    x = tw.asarray(np.array(numbers)).requires_grad_()
    function = getattr(special, name)
    if name in ("i0", "i1"):
        x = tw.asarray([-3.0, 0.0, 1.5], dtype=tw.float64).requires_grad_()
    assert tw.gradcheck(function, (x,))
    assert tw.gradgradcheck(function, (x,))


def test_slopes_at_0() -> None:
    for name, slope in (("i0", 0.0), ("i1", 0.5), ("i1e", 0.5), ("i0e", 0.0)):
        x = tw.zeros(1, requires_grad=True)
        (g,) = tw.grad(getattr(special, name)(x).sum(), [x])
        assert g.item() == slope


X = 1 + 10 ** RNG.uniform(-3, 1.5, 300)
Q = 10 ** RNG.uniform(-3, 3, 300)


def test_zeta_is_scipys() -> None:
    got, want = np.asarray(special.zeta(tw.asarray(X), tw.asarray(Q))), scipy_special.zeta(X, Q)
    np.testing.assert_allclose(got, want, rtol=3e-15)
    x, q = np.meshgrid([1.0, 1.5, 2.0, 3.0, 0.5, 50.0], [-2.5, -2.0, -0.5, 0.0, 1.0, 1e9, np.nan])
    want = torch_zeta(x, q)
    np.testing.assert_allclose(special.zeta(tw.asarray(x), tw.asarray(q)), want, rtol=1e-13)
    assert special.zeta(2, tw.ones(1)).tolist() == special.zeta(tw.asarray([2.0]), 1).tolist()


def test_functions_at_the_ends_of_their_range() -> None:
    far = np.array([1e200, 1e100, 1e307])
    for s in (1.5, 2.0, 2.5):
        got = np.asarray(special.zeta(s, tw.asarray(far)))
        np.testing.assert_allclose(got, far ** (1 - s) / (s - 1), rtol=1e-13)
    x = np.array([9e307, 1e308, 1.7e308])
    got = np.asarray(special.erfcx(tw.asarray(x)))
    np.testing.assert_allclose(got, 1 / np.sqrt(np.pi) / x, rtol=1e-15)
    assert math.copysign(1, special.entr(tw.asarray(0.0)).item()) == 1
    below = tw.nn.functional.hardswish(tw.asarray([-3.0, -4.0, -math.inf]))
    assert [math.copysign(1, y) for y in below.tolist()] == [1, 1, 1]
    assert below.tolist() == [0, 0, 0]


def test_zeta_far_below_0_ends() -> None:
    """By the reflection of polygamma(1, .); from 2^52 on all numbers are whole, which are poles."""
    q = np.array([-1e3 - 0.25, -1e9 - 0.5, -1e300, -np.inf])
    got = np.asarray(special.zeta(2, tw.asarray(q)))
    want = np.pi**2 / np.sin(np.pi * q[:2]) ** 2 - scipy_special.polygamma(1, 1 - q[:2])
    np.testing.assert_allclose(got[:2], want, rtol=1e-9)
    assert np.isinf(got[2:]).all()


def torch_zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    torch = pytest.importorskip("torch")
    return torch.special.zeta(torch.tensor(x), torch.tensor(q)).numpy()


def test_the_gradient_of_zeta() -> None:
    x = tw.asarray([[1.5], [4.0]], dtype=tw.float64)
    q = tw.asarray([0.5, 3.0, 20.0], dtype=tw.float64).requires_grad_()
    assert tw.gradcheck(lambda q: special.zeta(x, q), (q,))
    assert tw.gradcheck(lambda q: special.zeta(x[0], q), (q[:1].detach().requires_grad_(),))
    with pytest.raises(RuntimeError, match="zeta: x has no gradient"):
        special.zeta(x.requires_grad_(), q).sum().backward()


def test_names_are_the_ops_under_another_name() -> None:
    for name, ours in (("expit", "sigmoid"), ("gammaln", "lgamma"), ("psi", "digamma")):
        assert getattr(special, name) is getattr(tw, ours)
    assert special.multigammaln is tw.mvlgamma
    assert tw.i0(input=tw.zeros(1)).item() == tw.zeros(1).i0().item() == 1.0
    assert set(special.__all__) <= set(dir(special))


@pytest.mark.parametrize("name", [*JUDGED, "entr"])
def test_other_numbers(name: str) -> None:
    function = getattr(special, name)
    assert function(tw.asarray([True])).dtype == function(tw.asarray([1])).dtype == tw.float32
    assert function(tw.zeros((0, 3), dtype=tw.float64)).shape == (0, 3)
    with pytest.raises(TypeError, match=f"{name}: takes real numbers, got complex64"):
        function(tw.ones(1, dtype=tw.complex64))
    with pytest.raises(TypeError, match=f"{name}: takes tensors, got float"):
        function(1.0)


@pytest.mark.skipif(not tw.cuda.is_available(), reason="no GPU, and no emulator")
@pytest.mark.parametrize("name", [*JUDGED, "entr", "zeta"])
def test_results_on_a_gpu_are_the_cpus(name: str) -> None:
    numbers = np.linspace(0.01, 0.99, 40) if name == "ndtri" else np.linspace(-9.7, 9.4, 40)
    results = []
    for device in ("cpu", "cuda"):
        x = tw.asarray(numbers).to(device).requires_grad_()
        function = getattr(special, name)
        y = function(2.5, x * x) if name == "zeta" else function(x)
        y.sum().backward()
        assert y.device.type == x.grad.device.type == device
        results.append([np.asarray(each.to("cpu")) for each in (y.detach(), x.grad)])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
