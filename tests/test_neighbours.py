"""Other libraries work on tensors through the Array API standard and give tensors back."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tilewright as tw


def run(program: str) -> None:
    """In a process of its own: SciPy and scikit-learn read their switch when they are imported."""
    pytest.importorskip("scipy")
    code = "import numpy as np\nimport tilewright as tw\n" + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_array_api_compat_finds_the_namespace() -> None:
    compat = pytest.importorskip("array_api_compat")
    x = tw.asarray([1.0, 4.0])
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x).__name__ == "tilewright"
    assert compat.device(x) == x.device
    assert compat.size(x) == 2


def test_scipy_special_and_statistics() -> None:
    run("""
        from scipy import special, stats
        rng = np.random.default_rng(0)
        values = rng.random((3, 50))
        x = tw.asarray(values, dtype=tw.float64)
        for name in ("logit", "expit", "log_ndtr", "gammaln"):
            got = getattr(special, name)(x)
            assert isinstance(got, tw.Tensor), name
            np.testing.assert_allclose(got.numpy(), getattr(special, name)(values), rtol=1e-12)
        got = special.logsumexp(x, axis=1)
        assert isinstance(got, tw.Tensor)
        np.testing.assert_allclose(got.numpy(), special.logsumexp(values, axis=1), rtol=1e-12)
        got = stats.zscore(x, axis=1)
        assert isinstance(got, tw.Tensor)
        np.testing.assert_allclose(got.numpy(), stats.zscore(values, axis=1), rtol=1e-10)
        got, expected = stats.skew(x, axis=1), stats.skew(values, axis=1)
        assert isinstance(got, tw.Tensor)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-10)
        got, expected = stats.pearsonr(x[0], x[1]), stats.pearsonr(values[0], values[1])
        assert abs(float(got.statistic) - expected.statistic) < 1e-12
        assert abs(float(got.pvalue) - expected.pvalue) < 1e-10
    """)


def test_scipy_signal() -> None:
    run("""
        from scipy import signal
        values = np.random.default_rng(0).random(64)
        x = tw.asarray(values, dtype=tw.float64)
        got = signal.detrend(x)
        assert isinstance(got, tw.Tensor)
        np.testing.assert_allclose(got.numpy(), signal.detrend(values), atol=1e-12)
        narrow = tw.astype(x, tw.float32)  # whose transforms are complex64
        got = signal.fftconvolve(narrow, narrow)
        assert isinstance(got, tw.Tensor)
        np.testing.assert_allclose(got.numpy(), signal.fftconvolve(values, values), atol=1e-4)
    """)


def test_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    run("""
        import sklearn
        from sklearn.decomposition import PCA
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
        from sklearn.linear_model import Ridge
        from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
        from sklearn.preprocessing import StandardScaler
        rng = np.random.default_rng(0)
        values, classes = rng.random((80, 5)), rng.integers(0, 3, 80)
        values[:, 0] += classes
        x, y = tw.asarray(values, dtype=tw.float64), tw.asarray(classes)
        target = values @ np.arange(5.0)
        with sklearn.config_context(array_api_dispatch=True):
            got = StandardScaler().fit_transform(x)
            assert isinstance(got, tw.Tensor)
            np.testing.assert_allclose(
                got.numpy(), StandardScaler().fit_transform(values), atol=1e-12
            )
            got = PCA(2, svd_solver="full").fit_transform(x)
            assert isinstance(got, tw.Tensor)
            np.testing.assert_allclose(
                abs(got.numpy()), abs(PCA(2, svd_solver="full").fit_transform(values)), atol=1e-10
            )
            model = LinearDiscriminantAnalysis().fit(x, y)
            assert isinstance(model.predict(x), tw.Tensor)
            expected = LinearDiscriminantAnalysis().fit(values, classes).predict(values)
            assert (model.predict(x).numpy() == expected).all()
            assert accuracy_score(y, model.predict(x)) == accuracy_score(classes, expected)
            ridge = Ridge(solver="svd").fit(x, tw.asarray(target, dtype=tw.float64))
            assert isinstance(ridge.coef_, tw.Tensor)
            plain = Ridge(solver="svd").fit(values, target)
            np.testing.assert_allclose(ridge.coef_.numpy(), plain.coef_, atol=1e-10)
            guess = ridge.predict(x)
            truth = tw.asarray(target, dtype=tw.float64)
            assert abs(r2_score(truth, guess) - r2_score(target, plain.predict(values))) < 1e-10
            assert mean_squared_error(truth, guess) >= 0
    """)


def test_einops_takes_tensors() -> None:
    einops = pytest.importorskip("einops")
    importlib.import_module("tilewright.einops")
    values = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    x = tw.asarray(values, dtype=tw.float32, copy=True)
    x.requires_grad = True
    for pattern, sizes in (("b h w -> b (h w)", {}), ("b (h k) w -> (b k) w h", {"k": 3})):
        got = einops.rearrange(x, pattern, **sizes)
        assert isinstance(got, tw.Tensor)
        np.testing.assert_array_equal(
            got.detach().numpy(), einops.rearrange(values, pattern, **sizes)
        )
    total = einops.reduce(x, "b h w -> b w", "mean")
    np.testing.assert_allclose(total.detach().numpy(), values.mean(1), rtol=1e-6)
    wide = einops.repeat(x, "b h w -> b h w c", c=2)
    assert wide.shape == (2, 3, 4, 2)
    product = einops.einsum(x, x, "b h w, b h v -> b w v")
    np.testing.assert_allclose(
        product.detach().numpy(), np.einsum("bhw,bhv->bwv", values, values), rtol=1e-6
    )
    wide.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == np.full((2, 3, 4), 2.0).tolist()
