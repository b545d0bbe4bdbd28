"""The strassen rung: any size, layout and depth, its error against the bound, its memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core

EPS = {"float32": 2.0**-24, "float64": 2.0**-53}  # unit roundoff


@pytest.fixture
def extent() -> Iterator[int]:
    """Halves down to 16, so that small products recurse as deeply as large ones."""
    before = tw.tune.current()["strassen_extent"]
    _core.set_matmul_tuning("strassen_extent", 32)
    yield 32
    _core.set_matmul_tuning("strassen_extent", before)


def bound(m: int, n: int, k: int, levels: int, dtype: str) -> float:
    """Higham, Accuracy and Stability, (23.17) for Winograd's form: error over max|A| max|B|.

    [(n / n0)^log2(18) (n0^2 + 6 n0) - 6 n] u for squares of n, recursion down to n0.
    """
    n = max(m, n, k)
    leaf = n / 2**levels
    return (18**levels * (leaf**2 + 6 * leaf) - 6 * n) * EPS[dtype] * 1.01


def levels_of(m: int, n: int, k: int, extent: int) -> int:
    levels = 0
    while levels < 3 and min(m, n, k) >> levels >= extent:
        levels += 1
    return levels


def operand(rng: np.random.Generator, shape: tuple[int, int], dtype: str, layout: str):
    """An array of that layout and its tensor, which shares the memory."""
    x = rng.uniform(-1, 1, shape).astype(dtype)
    if layout == "transposed":
        x = np.ascontiguousarray(x.T).T
    elif layout == "part of a larger one":
        wide = np.full((shape[0] + 3, shape[1] + 5), np.nan, dtype)
        wide[2:-1, 1:-4] = x
        x = wide[2:-1, 1:-4]
    elif layout == "flipped":
        x = x[::-1]
    elif layout == "one row":
        x = np.broadcast_to(x[:1], shape)
    elif layout == "strided":
        x = np.repeat(x, 2, axis=1)[:, ::2]
    return x, tw.asarray(x) if layout != "one row" else tw.broadcast_to(tw.asarray(x[:1]), shape)


def check(a, b, x, y, levels: int) -> None:
    want = a.astype(np.float64) @ b.astype(np.float64)
    with tw.kernels.use(matmul="strassen"):
        got = np.asarray(x @ y)
    assert got.dtype == a.dtype
    error = np.abs(got - want).max()
    limit = bound(a.shape[0], b.shape[1], a.shape[1], levels, str(a.dtype))
    assert error <= limit * np.abs(a).max() * np.abs(b).max()


SIZES = [
    (32, 32, 32),
    (64, 64, 64),
    (65, 67, 71),
    (63, 96, 130),
    (127, 129, 128),
    (255, 257, 259),
    (300, 40, 200),
    (256, 256, 512),
    (31, 300, 300),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sizes(isa, extent, rng, size, dtype) -> None:
    m, n, k = size
    a, x = operand(rng, (m, k), dtype, "plain")
    b, y = operand(rng, (k, n), dtype, "plain")
    check(a, b, x, y, levels_of(m, n, k, extent))


LAYOUTS = ["plain", "transposed", "part of a larger one", "flipped", "one row", "strided"]


@pytest.mark.parametrize("of_a", LAYOUTS)
@pytest.mark.parametrize("of_b", LAYOUTS)
def test_layouts(extent, rng, of_a, of_b) -> None:
    a, x = operand(rng, (130, 100), "float32", of_a)
    b, y = operand(rng, (100, 140), "float32", of_b)
    check(a, b, x, y, levels_of(130, 140, 100, extent))


def test_batches(extent, rng) -> None:
    a = rng.uniform(-1, 1, (3, 70, 90)).astype(np.float32)
    b = rng.uniform(-1, 1, (90, 80)).astype(np.float32)
    for x in (a, a.transpose(0, 2, 1).copy().transpose(0, 2, 1)):
        with tw.kernels.use(matmul="strassen"):
            got = np.asarray(tw.asarray(x) @ tw.asarray(b))
        np.testing.assert_allclose(got, a.astype(np.float64) @ b, atol=1e-4)


def test_gradients(extent, rng) -> None:
    a, b = (rng.uniform(-1, 1, (70, 70)) for _ in range(2))
    x = tw.tensor(a, dtype=tw.float64, requires_grad=True)
    with tw.kernels.use(matmul="strassen"):
        (x @ tw.asarray(b)).sum().backward()
    np.testing.assert_allclose(np.asarray(x.grad), np.ones((70, 70)) @ b.T, atol=1e-12)


@pytest.mark.usefixtures("threads", "extent")
def test_threads_change_no_bit(rng) -> None:
    a, b = (tw.asarray(rng.uniform(-1, 1, (301, 301)).astype(np.float32)) for _ in range(2))
    results = []
    with tw.kernels.use(matmul="strassen"):
        for threads in (1, 2, 3):
            tw.set_num_threads(threads)
            results.append(np.asarray(a @ b).tobytes())
    assert len(set(results)) == 1


def test_whole_numbers_are_exact(extent, rng) -> None:
    a, b = (rng.integers(-9, 10, (200, 200)).astype(np.float32) for _ in range(2))
    with tw.kernels.use(matmul="strassen"):
        np.testing.assert_array_equal(np.asarray(tw.asarray(a) @ tw.asarray(b)), a @ b)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("where", ["a", "b", "both"])
def test_values_that_are_not_finite(extent, rng, value, where) -> None:
    """Infinite and NaN where the definition has them, and nowhere else."""
    a, b = (rng.uniform(-1, 1, (130, 130)).astype(np.float32) for _ in range(2))
    if where != "b":
        a[3, 100] = value
    if where != "a":
        b[77, 5] = value
    with np.errstate(all="ignore"):
        want = a.astype(np.float64) @ b.astype(np.float64)
        want = want.astype(np.float32)
    with tw.kernels.use(matmul="strassen"):
        got = np.asarray(tw.asarray(a) @ tw.asarray(b))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    fine = np.isfinite(want)
    scale = np.abs(want[fine]).max()
    np.testing.assert_allclose(got[fine], want[fine], rtol=1e-4, atol=1e-4 * min(scale, 100))


def test_below_the_extent_it_is_packed(rng) -> None:
    a, b = (tw.asarray(rng.uniform(-1, 1, (300, 300)).astype(np.float32)) for _ in range(2))
    with tw.kernels.use(matmul="strassen"):
        ours = np.asarray(a @ b)
    with tw.kernels.use(matmul="packed"):
        np.testing.assert_array_equal(ours, np.asarray(a @ b))


def test_real_depth(rng) -> None:
    """Two levels at the sizes where they are taken; a sample of rows against float64."""
    m, n, k = 4100, 4130, 4099
    a = rng.standard_normal((m, k), dtype=np.float32)
    b = rng.standard_normal((k, n), dtype=np.float32)
    with tw.kernels.use(matmul="strassen"):
        got = np.asarray(tw.asarray(a) @ tw.asarray(b))
    rows = rng.integers(0, m, 40)
    want = a[rows].astype(np.float64) @ b.astype(np.float64)
    rms = np.sqrt(((got[rows] - want) ** 2).mean() / (want**2).mean())
    assert rms < 1e-5  # SGEMM: about 4e-7; each level multiplies it by about three


def test_memory_is_bounded(extent, rng) -> None:
    """A third of the operands and the result, and the packed rung's own."""
    n = 512
    a, b = (tw.asarray(rng.uniform(-1, 1, (n, n)).astype(np.float32)) for _ in range(2))

    def peak(rung: str) -> int:
        tw.memory.trim()
        tw.memory.reset_peaks()
        with tw.kernels.use(matmul=rung):
            a @ b
        return tw.memory.stats()["temporary_peak_live_bytes"]

    third = 3 * n * n * 4 / 3
    assert 0 < peak("strassen") <= peak("packed") + 1.5 * third  # rows are padded


class TestChoice:
    def chosen(self, n: int, dtype=tw.float32) -> str:
        a, b = tw.zeros((n, n), dtype=dtype), tw.zeros((n, n), dtype=dtype)
        with tw.explain() as report:
            a @ b
        return report[0].kernel

    @pytest.fixture(autouse=True)
    def _precision(self) -> Iterator[None]:
        yield
        tw.set_float32_matmul_precision("highest")

    def test_only_where_the_precision_allows(self) -> None:
        assert self.chosen(2048) != "strassen"
        tw.set_float32_matmul_precision("high")
        assert self.chosen(256) != "strassen"
        # Where tile registers make bf16x3 the faster one, that is chosen.
        assert self.chosen(2048) in ("strassen", "bf16x3")
        assert self.chosen(2048, tw.float64) != "strassen"

    def test_explain_tells_the_class(self) -> None:
        (record,) = (r for r in tw.kernels.describe("matmul") if r["name"] == "strassen")
        assert record["precision"] == "high"
