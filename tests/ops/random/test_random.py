"""Random numbers: streams are fixed by their seed, and have the distributions that they claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import arrays

import tilewright as tw

COUNT = 200_000
MAKERS = {
    "uniform": lambda g, n: tw.uniform(0.0, 1.0, (n,), generator=g),
    "uniform float64": lambda g, n: tw.uniform(-2.0, 5.0, (n,), dtype=tw.float64, generator=g),
    "normal": lambda g, n: tw.normal(0.0, 1.0, (n,), generator=g),
    "normal float64": lambda g, n: tw.normal(3.0, 2.0, (n,), dtype=tw.float64, generator=g),
    "normal bfloat16": lambda g, n: tw.normal(0.0, 1.0, (n,), dtype=tw.bfloat16, generator=g),
    "randint": lambda g, n: tw.randint(-5, 9, (n,), generator=g),
    "randperm": lambda g, n: tw.randperm(n, generator=g),
    "bernoulli": lambda g, n: tw.bernoulli(0.3, (n,), generator=g),
    "dropout": lambda g, n: tw.dropout(tw.ones((n,)), 0.25, generator=g),
}


def sample(name: str, seed: int, count: int = COUNT) -> np.ndarray:
    return arrays.array(MAKERS[name](tw.Generator(seed), count))


@pytest.fixture(params=MAKERS)
def maker(request: pytest.FixtureRequest) -> str:
    return request.param


def test_the_same_seed_gives_the_same_numbers(maker: str) -> None:
    np.testing.assert_array_equal(sample(maker, 7, 1001), sample(maker, 7, 1001))
    assert (sample(maker, 7, 1001) != sample(maker, 8, 1001)).any()
    assert (sample(maker, 7, 1001) != sample(maker, 7 + 2**32, 1001)).any(), "high half of the seed"


def test_the_stream_moves_on(maker: str) -> None:
    g = tw.Generator(7)
    first, second = (arrays.array(MAKERS[maker](g, 1001)) for _ in range(2))
    assert (first != second).any()
    g.manual_seed(7)
    assert g.position == 0
    np.testing.assert_array_equal(arrays.array(MAKERS[maker](g, 1001)), first)


def test_a_position_can_be_restored(maker: str) -> None:
    g = tw.Generator(3)
    MAKERS[maker](g, 13)
    at = g.position
    assert at > 0
    assert at % 4 == 0
    after = arrays.array(MAKERS[maker](g, 50))
    other = tw.Generator(3)
    other.position = at
    np.testing.assert_array_equal(arrays.array(MAKERS[maker](other, 50)), after)


def test_threads_and_instruction_sets_change_no_number(maker: str, threads) -> None:
    """To the bit over threads; normal numbers differ in the last places between vector widths."""
    results = []
    for count in (1, 2, 3):
        tw.set_num_threads(count)
        results.append(sample(maker, 11))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    for isa in tw.kernels.isas():
        with tw.kernels.use(isa=isa):
            if maker.startswith("normal"):
                np.testing.assert_allclose(sample(maker, 11), results[0], rtol=1e-2, atol=1e-5)
            else:
                np.testing.assert_array_equal(sample(maker, 11), results[0])


def test_manual_seed_seeds_the_default_generator() -> None:
    tw.manual_seed(5)
    first = [tw.rand(3, 2).tolist(), tw.randn(4).tolist(), tw.randperm(9).tolist()]
    tw.manual_seed(5)
    assert [tw.rand(3, 2).tolist(), tw.randn(4).tolist(), tw.randperm(9).tolist()] == first
    tw.manual_seed(5)
    g = tw.Generator(5)
    assert tw.rand(7).tolist() == tw.uniform(0.0, 1.0, (7,), generator=g).tolist()


def test_a_generator_of_its_own_leaves_the_default_alone() -> None:
    tw.manual_seed(5)
    expected = tw.rand(4).tolist()
    tw.manual_seed(5)
    tw.uniform(0.0, 1.0, (100,), generator=tw.Generator(1))
    assert tw.rand(4).tolist() == expected


# ---- distributions ----


def kolmogorov(x: np.ndarray, distribution) -> float:
    """Largest distance to the distribution function, in units where 1.95 has probability 0.001."""
    ordered = np.sort(x.astype(np.float64))
    f = distribution(ordered)
    steps = np.arange(ordered.size + 1) / ordered.size
    return float(max(np.abs(f - steps[1:]).max(), np.abs(f - steps[:-1]).max()) * math.sqrt(x.size))


_normal = np.vectorize(lambda t: 0.5 * math.erfc(-t / math.sqrt(2)))


@pytest.mark.parametrize("seed", [0, 1, 2**63])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_numbers(seed: int, dtype: str) -> None:
    chosen = getattr(tw, dtype)
    x = arrays.array(tw.uniform(-1.0, 3.0, (COUNT,), dtype=chosen, generator=tw.Generator(seed)))
    assert x.dtype == dtype
    assert x.min() >= -1
    assert x.max() < 3
    assert kolmogorov((x + 1) / 4, lambda t: t) < 1.95
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / math.sqrt(COUNT)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_uniform_numbers_of_16_bits_stay_below_the_end(dtype: str) -> None:
    x = arrays.array(
        tw.uniform(0.0, 1.0, (COUNT,), dtype=getattr(tw, dtype), generator=tw.Generator(0))
    )
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(float(x.astype(np.float64).mean()) - 0.5) < 0.01
    y = arrays.array(
        tw.uniform(1.0, 2.0, (COUNT,), dtype=getattr(tw, dtype), generator=tw.Generator(0))
    )
    assert y.min() >= 1
    assert y.max() < 2
    assert abs(float(y.astype(np.float64).mean()) - 1.5) < 0.01


@pytest.mark.parametrize("seed", [0, 1, 2**63])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers(seed: int, dtype: str) -> None:
    chosen = getattr(tw, dtype)
    x = arrays.array(tw.normal(2.0, 3.0, (COUNT,), dtype=chosen, generator=tw.Generator(seed)))
    z = (x.astype(np.float64) - 2) / 3
    assert np.isfinite(z).all()
    assert kolmogorov(z, _normal) < 1.95
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - moment) < 4 * math.sqrt(variance / COUNT)
    assert 4 < np.abs(z).max() < 7
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 4 / math.sqrt(COUNT)


@pytest.mark.parametrize("seed", [0, 1])
def test_whole_numbers_are_equally_frequent(seed: int) -> None:
    x = arrays.array(tw.randint(-5, 9, (COUNT,), generator=tw.Generator(seed)))
    found, counts = np.unique(x, return_counts=True)
    assert found.tolist() == list(range(-5, 9))
    expected = COUNT / 14
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 34.5  # 13 degrees of freedom, probability 0.001


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-(2**63), 2**63 - 1), (2**62, 2**62 + 3)])
def test_whole_numbers_of_extreme_ranges(low: int, high: int) -> None:
    x = arrays.array(tw.randint(low, high, (5000,), generator=tw.Generator(0)))
    assert x.min() >= low
    assert x.max() < high
    if high - low > 1000:
        assert (x < 0).mean() == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_permutations(n: int) -> None:
    assert sorted(tw.randperm(n, generator=tw.Generator(4)).tolist()) == list(range(n))


def test_all_permutations_are_equally_frequent() -> None:
    g = tw.Generator(4)
    found: dict[tuple[int, ...], int] = {}
    for _ in range(6000):
        p = tuple(tw.randperm(3, generator=g).tolist())
        found[p] = found.get(p, 0) + 1
    assert len(found) == 6
    assert sum((c - 1000) ** 2 / 1000 for c in found.values()) < 20.5  # 5 degrees, 0.001


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_bernoulli(p: float) -> None:
    x = arrays.array(tw.bernoulli(p, (COUNT,), generator=tw.Generator(0)))
    assert set(np.unique(x)) <= {0.0, 1.0}
    assert abs(x.mean() - p) <= 4 * math.sqrt(p * (1 - p) / COUNT) + 1e-6


@pytest.mark.parametrize("p", [0.0, 0.25, 0.9, 1.0])
def test_dropout(p: float) -> None:
    x = tw.ones((COUNT,), dtype=tw.float64).requires_grad_()
    y = tw.dropout(x, p, generator=tw.Generator(1))
    kept = arrays.array(y) != 0
    assert abs(kept.mean() - (1 - p)) <= 4 * math.sqrt(p * (1 - p) / COUNT)
    if p < 1:
        np.testing.assert_allclose(arrays.array(y)[kept], 1 / (1 - p), rtol=1e-15)
    y.sum().backward()
    np.testing.assert_array_equal(arrays.array(x.grad), arrays.array(y))
    assert tw.dropout(x, p, training=False) is x


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3, 4)])
def test_shapes_and_options(shape: tuple[int, ...]) -> None:
    for make in (tw.rand, tw.randn):
        y = make(shape, dtype=tw.float64, requires_grad=True)
        assert y.shape == shape
        assert y.dtype == tw.float64
        assert y.requires_grad
    assert tw.randint(0, 5, shape, dtype=tw.uint8).shape == shape
    assert tw.bernoulli(0.5, shape, dtype=tw.bool).dtype == tw.bool


def test_errors() -> None:
    for call, expected, text in (
        (lambda: tw.rand(-1), ValueError, "rand: shape (-1,) has a negative extent"),
        (
            lambda: tw.randn(2, dtype=tw.int32),
            TypeError,
            "randn: needs a floating-point dtype, got int32",
        ),
        (lambda: tw.normal(0.0, -1.0, (2,)), ValueError, "normal: standard deviation is negative"),
        (lambda: tw.randint(3, 3, (2,)), ValueError, "randint: empty range from 3 to 3"),
        (lambda: tw.randperm(-1), ValueError, "randperm: n is negative"),
        (lambda: tw.bernoulli(1.5, (2,)), ValueError, "bernoulli: p = 1.5 is not in [0, 1]"),
        (lambda: tw.bernoulli(0.5, (-2,)), ValueError, "negative extent"),
        (lambda: tw.dropout(tw.ones((2,)), -0.5), ValueError, "dropout: p = -0.5 is not in [0, 1]"),
        (
            lambda: tw.dropout(tw.ones((2,), dtype=tw.int32)),
            TypeError,
            "dropout: needs a floating-point",
        ),
    ):
        with pytest.raises(expected) as caught:
            call()
        assert text in str(caught.value)


def test_numbers_do_not_join_the_graph() -> None:
    assert not tw.rand(3).requires_grad
    assert tw.rand(3, requires_grad=True).is_leaf


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 7, 1024, 1025, 5001, 40_000])
def test_normal_numbers_are_box_and_muller_s(count: int, dtype: str) -> None:
    chosen = getattr(tw, dtype)
    words = tw.uniform(0.0, 1.0, (-(-count // 4) * 4,), dtype=chosen, generator=tw.Generator(3))
    units = words.numpy().astype(np.float64)
    expected = np.empty(count)
    for begin in range(0, count, 1024):  # the pairs of a block: distances, then angles
        n = min(1024, count - begin)
        half = (n + 1) // 2
        u, v = units[begin : begin + half], units[begin + half : begin + 2 * half]
        r = np.sqrt(-2 * np.log1p(-u))
        both = np.concatenate([r * np.cos(2 * np.pi * v), r * np.sin(2 * np.pi * v)])
        expected[begin : begin + n] = both[:n]
    x = tw.normal(0.0, 1.0, (count,), dtype=chosen, generator=tw.Generator(3)).numpy()
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(x, expected, rtol=tolerance, atol=tolerance)


def test_partners_of_normal_numbers_are_independent() -> None:
    x = tw.normal(0.0, 1.0, (512, 1024), generator=tw.Generator(8)).numpy().astype(np.float64)
    a, b = x[:, :512].ravel(), x[:, 512:].ravel()
    for f in (lambda t: t, np.square, np.abs):
        assert abs(np.corrcoef(f(a), f(b))[0, 1]) < 4 / math.sqrt(a.size)


def test_philox_known_answer() -> None:
    """Salmon et al. 2011, the reference implementation's vectors: counter and key of zeros."""
    words = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    x = tw.uniform(0.0, 1.0, (4,), generator=tw.Generator(0)).tolist()
    assert x == [(w >> 8) * 2.0**-24 for w in words]
