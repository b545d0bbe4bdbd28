"""Products and their gradients against NumPy's longer floating type, factor by factor: zeros, what
is not finite, and partial products far outside the range of the type."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tilewright as tw

LAYOUTS = [
    ((5,), None),
    ((70,), None),
    ((4100,), None),
    ((7, 128), 1),
    ((7, 100), 0),
    ((100, 7), 0),
    ((130, 70), 0),
    ((9, 256), 1),
    ((3, 40, 5), 1),
    ((3, 40, 5), (1, 2)),
    ((3, 40, 5), (0, 2)),
    ((4, 5, 6), None),
    ((1,), 0),
    ((3, 1), 0),
]
KINDS = ("plain", "zeros", "infinite", "nan", "wide", "zeros and infinite")


def factors(kind: str, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(KINDS) + sum(shape))
    x = rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
    some = rng.random(shape) < 0.03
    if kind.startswith("zeros"):
        x[some] = rng.choice([0.0, -0.0], shape)[some]
    if kind == "nan":
        x[some] = np.nan
    if kind.endswith("infinite"):
        x[rng.random(shape) < 0.02] = -np.inf
    if kind == "wide":  # neighbours outweigh each other
        first = rng.choice([1, -1], x.size // 2 + 1)
        exponents = np.stack([first, -first], axis=-1).ravel()[: x.size].reshape(shape)
        x *= (1e30 if dtype == "float32" else 1e200) ** exponents
    return x.astype(dtype)


def others(x: np.ndarray, axis: int | tuple[int, ...] | None) -> np.ndarray:
    """For each element the product of the others along the axes."""
    axes = tuple(range(x.ndim)) if axis is None else tuple(np.atleast_1d(axis))
    last = tuple(range(-len(axes), 0))
    moved = np.moveaxis(x.astype(np.longdouble), axes, last)
    rows = moved.reshape(*moved.shape[: x.ndim - len(axes)], -1)
    before, behind = np.ones_like(rows), np.ones_like(rows)
    np.cumprod(rows[..., :-1], axis=-1, out=before[..., 1:])
    np.cumprod(rows[..., :0:-1], axis=-1, out=behind[..., -2::-1])
    result = before * behind
    return np.moveaxis(result.reshape(moved.shape), last, axes)


@pytest.fixture(autouse=True)
def without_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.skipif(np.finfo(np.longdouble).maxexp < 16000, reason="needs a longer type")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "axis"), LAYOUTS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_against_a_longer_type(
    dtype: str, shape: tuple[int, ...], axis: int | tuple[int, ...] | None, kind: str
) -> None:
    if kind == "wide" and axis == (0, 2):
        pytest.skip("axes that are no neighbours: pairs of factors may leave the range")
    x = factors(kind, shape, dtype)
    tiny = float(np.finfo(dtype).smallest_subnormal) if kind == "wide" else 0.0
    # Every rounding counts once; those of float32 along rows and down columns are float32's.
    bound = (x.size + 8) ** 0.5 * 2 * float(np.finfo(dtype).eps)
    leaf = tw.asarray(x).requires_grad_()
    y = tw.prod(leaf, axis=axis)
    want = np.prod(x.astype(np.longdouble), axis=axis).astype(dtype)
    down = axis == 0 or (axis == 1 and len(shape) == 3)
    if not (kind == "wide" and down):  # a column's are multiplied in order, in float64
        np.testing.assert_allclose(y.detach().numpy(), want, rtol=bound, atol=tiny)

    g = np.random.default_rng(1).uniform(0.5, 1.5, want.shape).astype(dtype)
    (y * tw.asarray(g)).sum().backward()
    assert leaf.grad is not None
    got = leaf.grad.numpy()
    along = g if axis is None else np.expand_dims(g, axis)
    gradient = (others(x, axis) * along).astype(dtype)
    np.testing.assert_allclose(got, gradient, rtol=bound, atol=tiny)
    known = ~np.isnan(gradient)
    np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(gradient)[known])


@pytest.mark.usefixtures("isa")
def test_partial_products_may_leave_the_range() -> None:
    """A lane gets only large factors, its neighbour only small ones."""
    for dtype, large in (("float32", 2.0**100), ("float64", 2.0**900)):
        x = np.resize([large, 1 / large], 4096).astype(dtype)
        assert tw.prod(tw.asarray(x)).item() == 1
        leaf = tw.asarray(x).requires_grad_()
        leaf.prod().backward()
        assert leaf.grad is not None
        np.testing.assert_array_equal(leaf.grad.numpy(), 1 / x)


def test_a_column_does_not_depend_on_those_beside_it() -> None:
    x = factors("plain", (64, 200), "float32")
    alone = tw.prod(tw.asarray(x), axis=0).numpy()
    x[:, ::3] *= 2.0**-60  # these leave the range of float32 on the way
    together = tw.prod(tw.asarray(x), axis=0).numpy()
    np.testing.assert_array_equal(np.delete(together, np.s_[::3]), np.delete(alone, np.s_[::3]))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_whole_numbers_wrap(dtype: str) -> None:
    x = np.random.default_rng(3).integers(1, 100, (40, 130)).astype(dtype)
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(
            tw.prod(tw.asarray(x), axis=axis).numpy(), np.prod(x, axis=axis)
        )


def test_second_gradients() -> None:
    x = tw.asarray(np.random.default_rng(4).normal(size=(4, 5)))
    leaf = tw.where(x > 1.0, 0.0, x).requires_grad_()
    for axis in (None, 0, 1):
        assert tw.gradgradcheck(lambda x, axis=axis: tw.prod(x, axis=axis), [leaf])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_of_no_elements(shape: tuple[int, ...]) -> None:
    leaf = tw.zeros(*shape, requires_grad=True)
    y = tw.prod(leaf, axis=0)
    np.testing.assert_array_equal(y.detach().numpy(), np.ones(shape[1:]))
    y.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.shape == shape


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbours_out_of_range_change_nothing(dtype: str, axis: int) -> None:
    # Of 16 rows or columns some leave the range, some reach it exactly (a subnormal that is a power
    # of two, 0, an infinity), the others stay within.
    rng = np.random.default_rng(7)
    lines = rng.uniform(0.5, 2, (16, 203)).astype(dtype)
    tiny = np.finfo(dtype).smallest_normal
    lines[1, 5:9] = tiny * 1.7
    lines[4, 8:12] = np.finfo(dtype).max / 3
    lines[6, 16:19] = tiny, 2.0**-9, 2.0**14
    lines[8, 100] = 0
    lines[10, 3] = np.inf
    lines[13, 200:] = tiny * 1.3, tiny * 1.1, tiny
    x = np.ascontiguousarray(lines if axis == 1 else lines.T)
    together = tw.prod(tw.asarray(x), axis=axis).numpy()
    for i in range(16):
        alone = np.ones_like(lines)
        alone[i] = lines[i]
        alone = np.ascontiguousarray(alone if axis == 1 else alone.T)
        assert tw.prod(tw.asarray(alone), axis=axis).numpy()[i] == together[i], i
    expected = np.prod(lines.astype(np.longdouble), axis=1).astype(dtype)
    np.testing.assert_allclose(together, expected, rtol=203 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("n", [1024, 20000])
@pytest.mark.parametrize("step", [8, 32, 64, 128])
def test_digits_that_come_back(step: int, n: int, isa: str) -> None:
    # In one lane of some instruction set a partial product of float32 is below its normal numbers
    # and comes back; an earlier op has left the range already.
    tw.exp(tw.asarray([-100.0, 1000.0]))
    x = np.ones((2, n), "float32")
    x[0, [0, step, 2 * step]] = 1.3 * 2.0**-100, 1.7 * 2.0**-45, 1.1 * 2.0**90
    x[0, [3 * step, 4 * step]] = 1.9 * 2.0**30, 1.3 * 2.0**20
    expected = np.prod(x.astype(np.longdouble), axis=1).astype("float32")
    np.testing.assert_allclose(tw.prod(tw.asarray(x), axis=1).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(tw.prod(tw.asarray(x)).numpy(), expected[0], rtol=1e-6)
    x = np.ascontiguousarray(np.repeat(x[:1, : 5 * step : step], 40, axis=0).T)
    expected = np.prod(x.astype(np.longdouble), axis=0).astype("float32")
    columns = np.concatenate([x, np.ones((11, 40), "float32")])
    np.testing.assert_allclose(tw.prod(tw.asarray(columns), axis=0).numpy(), expected, rtol=1e-6)
