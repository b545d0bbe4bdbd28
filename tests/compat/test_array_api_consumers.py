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

pytestmark = pytest.mark.tier("all")


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


def test_medians_of_scikit_learn_are_means_of_the_middle() -> None:
    pytest.importorskip("sklearn")
    run("""
        import sklearn
        from sklearn.metrics import median_absolute_error
        rng = np.random.default_rng(0)
        with sklearn.config_context(array_api_dispatch=True):
            for n in (9, 10):
                a, b = rng.random((2, n, 3))
                own = tw.asarray(a), tw.asarray(b)
                for options in ({}, {"multioutput": "raw_values"}):
                    got = median_absolute_error(*own, **options)
                    expected = median_absolute_error(a, b, **options)
                    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12)
    """)


REDUCTIONS = "sum mean std var min max prod median cumsum argmax argmin any all count"


@pytest.mark.filterwarnings("ignore")
def test_xarray_holds_tensors() -> None:
    """Labels, indices, arithmetic and reductions on tensors; what xarray computes by NumPy's types
    alone (NaN in new places: `shift`, `pad`, `where` without an other) is not asked for."""
    xarray = pytest.importorskip("xarray")
    values = np.arange(12.0).reshape(3, 4) % 5
    coords = {"a": [10, 20, 30]}
    plain = xarray.DataArray(values, dims=("a", "b"), coords=coords)
    ours = xarray.DataArray(tw.asarray(values), dims=("a", "b"), coords=coords)
    assert isinstance(ours.data, tw.Tensor)
    assert "30" in repr(ours)
    for call in (
        lambda x: x + 1, lambda x: 2 * x * x - x, lambda x: x < 3, abs, lambda x: x.clip(1, 3),
        lambda x: x.isel(a=0), lambda x: x.sel(a=[10, 30]), lambda x: x[1:, ::2],
        lambda x: x.transpose("b", "a"), lambda x: x.where(x > 2, 0.0), lambda x: x.fillna(0.0),
        lambda x: x.isnull(), lambda x: x.roll(a=1), lambda x: x.diff("b"),
        lambda x: x.stack(z=("a", "b")), lambda x: xarray.concat([x, x], "a"),
        lambda x: x.expand_dims("q"), lambda x: x.sortby("a", ascending=False),
        lambda x: x + x.isel(a=[0, 1]), xarray.ones_like, lambda x: x.astype("int32"),
        lambda x: x.coarsen(b=2).construct(b=("p", "q")),
    ):  # fmt: skip
        got, want = call(ours), call(plain)
        assert isinstance(got.data, tw.Tensor)
        assert got.dims == want.dims
        np.testing.assert_array_equal(got.values, want.values)
    for name in REDUCTIONS.split():
        for options in ({}, {"dim": "a"}, {"dim": "b"}):
            if name == "cumsum" and not options:
                continue
            got, want = getattr(ours, name)(**options), getattr(plain, name)(**options)
            np.testing.assert_allclose(got.values, want.values, rtol=1e-12)
    kept = ours.mean("a", skipna=False)
    assert isinstance(kept.data, tw.Tensor)
    group = xarray.DataArray([0, 1, 0], dims="a", name="g")
    np.testing.assert_allclose(
        ours.groupby(group).mean().values, plain.groupby(group).mean().values, rtol=1e-12
    )
    assert xarray.Dataset({"x": ours}).mean()["x"].item() == values.mean()
    assert ours.equals(ours.copy(deep=True))


def test_types_are_numpys_where_numpy_asks() -> None:
    for name in ("bool", "int8", "uint64", "float16", "float32", "float64", "complex64"):
        dtype = getattr(tw, name)
        assert np.dtype(dtype) == dtype.dtype == np.dtype(name)
        assert dtype.kind == np.dtype(name).kind
        assert np.zeros(2, dtype=dtype).dtype == name
    assert tw.bfloat16.kind == "f"
    assert not hasattr(tw.bfloat16, "dtype")
    with pytest.raises(TypeError):
        np.zeros(2, dtype=tw.bfloat16)


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


@pytest.mark.filterwarnings("ignore")
def test_xarray_contracts_and_takes_quantiles_of_tensors() -> None:
    xarray = pytest.importorskip("xarray")
    values = np.arange(12.0).reshape(3, 4) % 5
    plain = xarray.DataArray(values, dims=("a", "b"))
    ours = xarray.DataArray(tw.asarray(values), dims=("a", "b"))
    for call in (
        lambda x: x.dot(x), lambda x: x.dot(x, dim="b"), lambda x: xarray.dot(x, x.T, dim="a"),
        lambda x: x @ x.isel(b=0), lambda x: x.quantile(0.3, skipna=False),
        lambda x: x.quantile([0.3, 0.5], dim="b", skipna=False),
        lambda x: x.quantile(0.3, dim="a"), lambda x: x.mean("a", dtype="float32"),
        lambda x: x.mean("a", dtype="float32", skipna=False),
        lambda x: (x > 1).mean(dtype="float64"), lambda x: x.transpose(),
        lambda x: x.differentiate("b"), lambda x: x.integrate("b"),
    ):  # fmt: skip
        got, want = call(ours), call(plain)
        assert got.dims == want.dims
        np.testing.assert_allclose(got.values, want.values, rtol=1e-6)
