"""Classes drawn by their probabilities: frequencies, order, repeatability, refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as tw

# The quantile 1 - 1e-6 of chi-square, by degrees of freedom.
LIMIT = {1: 24.0, 2: 27.7, 3: 30.7, 5: 35.9, 9: 45.1, 11: 49.8}


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    expected = counts.sum() * probabilities / probabilities.sum()
    assert not counts[expected == 0].any()
    counts, expected = counts[expected > 0], expected[expected > 0]
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_frequencies_with_replacement(dtype: str) -> None:
    p = np.array([[1, 2, 0, 5, 4, 8, 0.5, 3, 1, 1, 2], [0, 0, 1, 1, 0, 0, 0, 0, 0, 2, 0]])
    made = tw.astype(tw.asarray(p), getattr(tw, dtype))
    y = tw.multinomial(made, 100_000, replacement=True, generator=tw.Generator(5))
    assert (y.shape, y.dtype) == ((2, 100_000), tw.int64)
    for row, probabilities, free in zip(y.numpy(), p, (9, 2), strict=True):
        assert chi_square(np.bincount(row, minlength=11), probabilities) < LIMIT[free]


def test_orders_without_replacement() -> None:
    """Each sample is drawn by what is left."""
    p = np.array([0.5, 0.2, 0.0, 0.2, 0.1])
    rows = tw.broadcast_to(tw.asarray(p), (60_000, 5))
    y = tw.multinomial(rows, 2, generator=tw.Generator(6)).numpy()
    counts, expected = [], []
    for first, second in itertools.permutations((0, 1, 3, 4), 2):
        counts.append(((y[:, 0] == first) & (y[:, 1] == second)).sum())
        expected.append(p[first] * p[second] / (1 - p[first]))
    assert sum(counts) == len(y)
    assert chi_square(np.array(counts), np.array(expected)) < LIMIT[11]


def test_one_sample_for_each_row() -> None:
    """What a language model draws its next token by."""
    p = tw.broadcast_to(tw.asarray([0.1, 0.2, 0.3, 0.4]), (50_000, 4))
    y = tw.multinomial(p, 1, generator=tw.Generator(7))
    assert y.shape == (50_000, 1)
    assert chi_square(np.bincount(y.numpy()[:, 0]), np.arange(1, 5)) < LIMIT[3]


def test_all_classes_without_replacement() -> None:
    y = tw.multinomial(tw.arange(1, 65, dtype=tw.float32), 64)
    assert sorted(y.tolist()) == list(range(64))


def test_tiny_and_huge_probabilities() -> None:
    for p in ([5e-324, 5e-324], [1e308, 0.0], [1e-300, 1e300]):
        for again in (False, True):
            y = tw.multinomial(tw.asarray(p, dtype=tw.float64), 1, again)
            assert 0 <= y.item() < 2


def test_a_seed_gives_the_same_classes_on_any_number_of_threads() -> None:
    p = tw.rand((300, 200))
    before = tw.get_num_threads()
    for again in (False, True):
        drawn = []
        try:
            for threads in (1, 2):
                tw.set_num_threads(threads)
                drawn.append(tw.multinomial(p, 5, again, tw.Generator(3)).tolist())
        finally:
            tw.set_num_threads(before)
        assert drawn[0] == drawn[1]


def test_the_generator_moves_on_unless_the_call_is_refused() -> None:
    g, p = tw.Generator(1), tw.asarray([0.25, 0.25, 0.5])
    first = tw.multinomial(p, 50, True, generator=g).tolist()
    with pytest.raises(ValueError, match="too few for 4 samples"):
        tw.multinomial(p, 4, generator=g)
    second = tw.multinomial(p, 50, True, generator=g).tolist()
    assert first != second
    g = tw.Generator(1)
    assert first == tw.multinomial(p, 50, True, generator=g).tolist()
    assert second == tw.multinomial(p, 50, True, generator=g).tolist()


def test_no_rows() -> None:
    assert tw.multinomial(tw.ones((0, 3)), 2).shape == (0, 2)


@pytest.mark.parametrize(
    ("p", "samples", "error", "text"),
    [
        ([1.0, -1.0], 1, ValueError, "probability -1 of class 1 in row 0 is not a finite number"),
        ([1.0, float("nan")], 1, ValueError, "probability nan of class 1"),
        ([float("inf"), 1.0], 1, ValueError, "probability inf of class 0"),
        ([[1.0], [0.0]], 1, ValueError, "row 1 has no probability above 0"),
        ([1.0, 0.0], 2, ValueError, "row 0 has 1 class of a probability above 0, too few for 2"),
        ([1.0], 0, ValueError, "num_samples must be above 0, got 0"),
        (1.0, 1, ValueError, "expected probabilities (classes,) or (n, classes), got ()"),
        ([1, 2], 1, TypeError, "needs floating-point probabilities, got int64"),
    ],
)
def test_errors(p: object, samples: int, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        tw.multinomial(tw.asarray(p), samples)
    assert text in str(caught.value)


@pytest.mark.parametrize("total", [1, 9])
def test_counts_of_what_is_no_probability_are_refused(total: int) -> None:
    """Unchecked by the distribution, refused by the draws: nothing is counted as 0."""
    nan, inf = float("nan"), float("inf")
    for p in ([nan, 1.0], [inf, 1.0], [0.0, 0.0], [1.0, 1.0, nan], [-1.0, 2.0], [2.0, -1.0]):
        counts = tw.distributions.Multinomial(total, tw.tensor(p), validate_args=False)
        with pytest.raises(ValueError, match=r"nan|probability -1|prob"):
            counts.sample()
