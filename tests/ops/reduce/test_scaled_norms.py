"""Norms, and what is divided by them, of numbers whose squares leave the range of their type.

All are homogeneous: f(s x) = s^k f(x), so that numbers times a power of two judge themselves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import tilewright as tw
from tilewright import Tensor
from tilewright.nn import functional as F  # noqa: N812  (PyTorch's name)

linalg = tw.linalg


class Homogeneous(NamedTuple):
    """A function of x (4, 6, 5) and the power of a factor of x that comes out of it."""

    of: Callable[[Tensor], Tensor]
    degree: int
    tolerance: float = 4e-6


def _of_pairs(f: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: f(x[0], x[1])


def _norm_of_grads(x: Tensor) -> Tensor:
    parameters = [tw.zeros(30, dtype=x.dtype, requires_grad=True) for _ in range(4)]
    for parameter, grad in zip(parameters, x.detach().reshape(4, 30), strict=True):
        parameter.grad = grad.clone()
    tw.nn.utils.clip_grad_norm_(parameters, 1.0)
    return tw.stack([parameter.grad for parameter in parameters])


ALIKE = (1.0,) * 5
NORMS: dict[str, Homogeneous] = {
    **{
        f"vector norm of order {p}": Homogeneous(
            lambda x, p=p: linalg.vector_norm(x, ord=p, axis=-1), 1
        )
        for p in (2, 1, 3, 0.5, -2, 7.5, math.inf)
    },
    "vector norm of all": Homogeneous(linalg.vector_norm, 1),
    "vector norm along columns": Homogeneous(lambda x: linalg.vector_norm(x, axis=0), 1),
    "vector norm of two axes apart": Homogeneous(lambda x: linalg.vector_norm(x, axis=(0, 2)), 1),
    "vector norm of transposed rows": Homogeneous(lambda x: linalg.vector_norm(x.mT, axis=1), 1),
    "vector norm of complex": Homogeneous(
        lambda x: linalg.vector_norm(tw.complex(x[0], x[1]), axis=-1), 1
    ),
    "matrix norm": Homogeneous(linalg.matrix_norm, 1),
    "nuclear norm": Homogeneous(lambda x: linalg.matrix_norm(x, ord="nuc"), 1, 1e-4),
    "norm": Homogeneous(lambda x: tw.norm(x, dim=1), 1),
    "dist": Homogeneous(_of_pairs(tw.dist), 1),
    "dist of order 3": Homogeneous(_of_pairs(lambda a, b: tw.dist(a, b, 3)), 1),
    "std": Homogeneous(lambda x: tw.std(x, axis=-1), 1),
    "std of columns": Homogeneous(lambda x: tw.std(x, axis=(0, 1), correction=1), 1),
    **{
        f"cdist of order {p}": Homogeneous(_of_pairs(lambda a, b, p=p: tw.cdist(a, b, p)), 1)
        for p in (2.0, 1.0, 3.0, math.inf)
    },
    "cdist of long rows": Homogeneous(
        lambda x: tw.cdist(
            tw.tile(x[:2].reshape(2, 30), (1, 20)), tw.tile(x[2:].reshape(2, 30), (1, 20))
        ),
        1,
    ),
    **{
        f"pairwise distance of order {p}": Homogeneous(
            _of_pairs(lambda a, b, p=p: F.pairwise_distance(a, b, p, eps=0.0)), 1
        )
        for p in (2.0, 3.0)
    },
    **{
        f"normalize of order {p}": Homogeneous(lambda x, p=p: F.normalize(x, p, dim=-1, eps=0.0), 0)
        for p in (2.0, 3.0)
    },
    "cosine similarity": Homogeneous(
        _of_pairs(lambda a, b: tw.cosine_similarity(a, b, 1, eps=0.0)), 0
    ),
    "cosine similarity of one": Homogeneous(
        lambda x: tw.cosine_similarity(x[0], tw.asarray(ALIKE, dtype=x.dtype), 1, eps=0.0), 0
    ),
    "layer norm": Homogeneous(lambda x: F.layer_norm(x, (5,), eps=0.0), 0, 1e-5),
    "layer norm of two axes": Homogeneous(lambda x: F.layer_norm(x, (6, 5), eps=0.0), 0, 1e-5),
    "rms norm": Homogeneous(lambda x: F.rms_norm(x, (5,), eps=0.0), 0, 1e-5),
    "group norm": Homogeneous(lambda x: F.group_norm(x, 2, eps=0.0), 0, 1e-5),
    "instance norm": Homogeneous(lambda x: F.instance_norm(x, eps=0.0), 0, 1e-5),
    "batch norm": Homogeneous(
        lambda x: F.batch_norm(x, None, None, training=True, eps=0.0), 0, 1e-5
    ),
    "batch norm of columns": Homogeneous(
        lambda x: F.batch_norm(x.reshape(24, 5), None, None, training=True, eps=0.0), 0, 1e-5
    ),
    "correlations": Homogeneous(lambda x: tw.corrcoef(x[0]), 0, 1e-5),
    "clipped gradients": Homogeneous(_norm_of_grads, 0),
    "total norm of order 3": Homogeneous(
        lambda x: tw.nn.utils.get_total_norm([x[0], x[1].mT], norm_type=3.0), 1
    ),
    "renorm": Homogeneous(lambda x: tw.renorm(x, 2, 0, 1e-30 if x.max() < 1 else 1.0), 0),
}
# With a constant beside the norm, which outweighs the smallest ones.
WITH_MORE = ("clipped gradients", "renorm")


def numbers(dtype: str, exponent: int) -> Tensor:
    """About 1, times a power of two."""
    x = np.random.default_rng(7).normal(size=(4, 6, 5)).round(3)
    return tw.asarray(np.ldexp(x, exponent).astype(dtype))


def value_and_gradient(f: Homogeneous, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
    x = x.clone().requires_grad_()
    y = f.of(x)
    if not y.requires_grad:
        return np.asarray(y), np.zeros(x.shape)
    weights = tw.asarray(np.random.default_rng(8).normal(size=y.shape), dtype=y.dtype)
    (g,) = tw.grad((y * weights).sum(), [x])
    return np.asarray(y.detach()), np.asarray(g)


@pytest.mark.parametrize("name", NORMS)
def test_factors_come_out(name: str) -> None:
    f = NORMS[name]
    for dtype, exponents in (("float32", (70, 110, -80)), ("float64", (600, 1000, -600))):
        y, g = value_and_gradient(f, numbers(dtype, 0))
        exact = dtype == "float64" and name not in WITH_MORE
        tolerance = f.tolerance * 1e-7 if exact else f.tolerance
        for exponent in exponents[:2] if name in WITH_MORE else exponents:
            far_y, far_g = value_and_gradient(f, numbers(dtype, exponent))
            degree = exponent * f.degree
            message = f"{name}, {dtype}, 2^{exponent}"
            np.testing.assert_allclose(
                np.ldexp(far_y, -degree), y, rtol=tolerance, atol=tolerance, err_msg=message
            )
            np.testing.assert_allclose(
                np.ldexp(far_g.astype(float), exponent - degree),
                g,
                rtol=50 * tolerance,
                atol=50 * tolerance * abs(g).max(),
                err_msg=message,
            )


ROWS = [name for name in NORMS if name.startswith(("vector norm of order", "normalize", "layer"))]


@pytest.mark.parametrize("name", ["std", "rms norm", "group norm", *ROWS])
def test_ordinary_rows_keep_their_bits_beside_others(name: str) -> None:
    for dtype, exponent in (("float32", 90), ("float64", 700)):
        x = numbers(dtype, 0)
        alone = NORMS[name].of(x)
        y = NORMS[name].of(tw.concat([x[:2], numbers(dtype, exponent)[2:]]))
        assert np.array_equal(np.asarray(alone)[:2], np.asarray(y)[:2]), (name, dtype)


def test_weights_and_shifts_of_norms_of_large_numbers() -> None:
    for dtype, exponent in (("float32", 90), ("float32", -90), ("float64", 700)):
        for shape, kind in (((4, 6, 5), "group"), ((4, 6, 5), "batch"), ((24, 5), "batch")):
            results = []
            for power in (0, exponent):
                x = numbers(dtype, power).reshape(shape).requires_grad_()
                weight, bias = (
                    tw.asarray(np.linspace(a, 2, shape[1]), dtype=x.dtype).requires_grad_()
                    for a in (0.5, -1)
                )
                if kind == "group":
                    y = F.group_norm(x, 3, weight, bias, eps=0.0)
                else:
                    y = F.batch_norm(x, None, None, weight, bias, training=True, eps=0.0)
                g = tw.grad((y * tw.arange(y.size).reshape(y.shape)).sum(), [weight, bias])
                results.append([np.asarray(part.detach()) for part in (y, *g)])
            for got, want in zip(*results, strict=True):
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["layer norm", "rms norm", "group norm", "batch norm", "std"])
def test_second_derivatives_of_norms_of_large_numbers(name: str) -> None:
    f = NORMS[name]
    for exponent in (700, -700):
        found = []
        for power in (0, exponent):
            x = numbers("float64", power).requires_grad_()
            y = f.of(x)
            weights = tw.asarray(np.random.default_rng(8).normal(size=y.shape))
            (g,) = tw.grad((y * weights).sum(), [x], create_graph=True)
            of_g = tw.asarray(np.random.default_rng(9).normal(size=g.shape))
            scaled = g * of_g * math.ldexp(1.0, power * (1 - f.degree))
            (second,) = tw.grad(scaled.square().sum(), [x])
            found.append(np.ldexp(np.asarray(second), power))
        np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-11)


def test_lengths_beyond_the_type() -> None:
    """Vectors have directions though their length is no number of the type."""
    x = tw.asarray([[2e38, 3e38]])
    for y in (F.normalize(x), tw.renorm(x, 2, 0, 1.0)):
        np.testing.assert_allclose(y, [[0.5547002, 0.8320503]], rtol=1e-6)
    rows = F.embedding(tw.asarray([0]), x.clone(), max_norm=1.0)
    np.testing.assert_allclose(rows, [[0.5547002, 0.8320503]], rtol=1e-6)
    ones = tw.ones((1, 2))
    assert tw.cosine_similarity(x, ones).item() == pytest.approx(0.9805807, rel=1e-6)
    assert tw.cosine_similarity(ones * 1e30, ones * 1e30).item() == pytest.approx(1.0, rel=1e-6)
    loss = F.cosine_embedding_loss(x, ones, tw.ones(1))
    assert loss.item() == pytest.approx(1 - 0.9805807, rel=1e-5)
    loss = F.cosine_embedding_loss(ones * 1e15, ones * 1e15, tw.ones(1))
    assert loss.item() == pytest.approx(0.0, abs=1e-6)
    near = functools.partial(pytest.approx, rel=1e-15, abs=0.0)
    assert linalg.vector_norm(tw.asarray([3e200, 4e200], dtype=tw.float64)).item() == near(5e200)
    assert linalg.vector_norm(tw.asarray([3e-200, 4e-200], dtype=tw.float64)).item() == near(5e-200)


def test_what_is_no_number_stays() -> None:
    for odd in (math.inf, -math.inf, math.nan):
        for dtype in (tw.float32, tw.float64):
            x = tw.asarray([1.0, odd, 2.0], dtype=dtype)
            for ord in (2, 3):
                want = np.linalg.norm(np.asarray(x), ord)
                got = linalg.vector_norm(x, ord=ord).item()
                assert got == want or (math.isnan(got) and math.isnan(want))
            assert np.isnan(np.asarray(F.layer_norm(x, (3,)))).all()
            assert math.isnan(tw.std(x).item())
    for dtype in (tw.float32, tw.float64):
        zeros = tw.zeros((2, 3), dtype=dtype)
        assert not np.any(np.asarray(linalg.vector_norm(zeros, axis=1)))
        assert not np.any(np.asarray(tw.cdist(zeros, zeros)))
        assert not np.any(np.asarray(F.layer_norm(zeros, (3,))))
        assert not np.any(np.asarray(tw.std(zeros + 1, axis=1)))


def test_captures_find_norms_of_other_numbers() -> None:
    """A recording cannot look at values: what it repeats holds for all."""
    step = tw._core._capture(
        lambda x: (tw.std(x, axis=-1), linalg.vector_norm(x, ord=3, axis=-1)),
        [numbers("float64", 0)],
    )
    for exponent in (0, 600, -600):
        far = numbers("float64", exponent)
        for got, name in zip(step.replay([far]), ("std", "vector norm of order 3"), strict=True):
            np.testing.assert_allclose(got, NORMS[name].of(far), rtol=1e-14)
