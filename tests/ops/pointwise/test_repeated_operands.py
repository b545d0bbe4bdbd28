"""Operands that repeat: in `xlogy` (logarithms once), `where` (by bytes), reductions, gradients of
softmax, of pointwise ops and of tiles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from subcases import each

import tilewright as tw

SPECIAL = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, -2, 0.5, 3])
REPEATED = [
    ((37, 300), (1, 300)),
    ((37, 300), (37, 1)),
    ((300, 40), (1, 40)),
    ((4, 37, 200), (37, 1)),
    ((9, 10, 130), (9, 1, 130)),
    ((50, 60, 70), (60, 1)),
    ((64, 200), (1, 1)),
]
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
DTYPES += ("complex64", "complex128")


def bits(x: tw.Tensor) -> np.ndarray:
    """Values with the signs of zeros; every NaN is like another."""
    values = np.asarray(x.detach().astype(tw.float64))
    return np.stack([values, np.signbit(values) & ~np.isnan(values)])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("shape", "repeated"), REPEATED)
def test_xlogy_of_what_repeats_has_the_bits_of_the_whole(
    shape: tuple[int, ...],
    repeated: tuple[int, ...],
    dtype: str,
    isa: str,
    rng: np.random.Generator,
) -> None:
    kind = getattr(tw, dtype)
    few = rng.choice(SPECIAL, repeated)
    b, whole = (tw.asarray(x).astype(kind) for x in (few, np.broadcast_to(few, shape).copy()))
    plain = tw.asarray(rng.choice(SPECIAL, shape)).astype(kind)
    transposed = plain.swapaxes(-1, -2).contiguous().swapaxes(-1, -2)
    for a in (plain, transposed):
        slopes = []
        for other in (b, whole):
            leaf = a.detach().requires_grad_()
            y = tw.xlogy(leaf, other)
            y.sum().backward()
            assert leaf.grad is not None
            slopes.append((bits(y), bits(leaf.grad)))
        np.testing.assert_array_equal(slopes[0][0], slopes[1][0])
        np.testing.assert_array_equal(slopes[0][1], slopes[1][1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_by_masks_of_any_layout(dtype: str, isa: str, rng: np.random.Generator) -> None:
    shapes = ((37, 300), (1, 300), (37, 1))
    for condition, first, second in itertools.product(shapes, repeat=3):
        c = rng.random(condition) > 0.5
        b, d = (rng.integers(0, 2, s).astype(dtype) * 3 for s in (first, second))
        b, d = b.astype(dtype), d.astype(dtype)
        expected = np.where(c, b, d)
        every_second = tw.asarray(np.repeat(c, 2, axis=1))[:, ::2]
        for layout in (tw.asarray(c), tw.asarray(c.T.copy()).T, every_second):
            got = np.asarray(tw.where(layout, tw.asarray(b), tw.asarray(d)))
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


def test_where_by_masks_beside_numbers_and_large_results(isa: str) -> None:
    c = np.arange(9_000_001) % 3 == 0
    x = np.arange(9_000_001, dtype=np.float32)
    got = tw.where(tw.asarray(c), tw.asarray(x), -1)
    np.testing.assert_array_equal(np.asarray(got), np.where(c, x, np.float32(-1)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((37, 300), 1),
        ((300, 37), 0),
        ((3, 5, 4111), 1),
        ((1, 7), 0),
        ((5, 1), 1),
        ((0, 4), 1),
        ((6,), 0),
    ],
)
def test_softmax_of_one_gradient_for_all_has_the_bits_of_many(
    shape: tuple[int, ...], axis: int, name: str, dtype: str, isa: str, rng: np.random.Generator
) -> None:
    kind = getattr(tw, dtype)
    x = tw.asarray(rng.normal(size=shape)).astype(kind)
    slopes = []
    for gradient in (tw.full((), 1.7, dtype=kind).expand(*shape), tw.full(shape, 1.7, dtype=kind)):
        leaf = x.detach().requires_grad_()
        getattr(tw, name)(leaf, axis).backward(gradient)
        assert leaf.grad is not None
        slopes.append(bits(leaf.grad))
    np.testing.assert_array_equal(*slopes)


@each("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@each("name", ["multiply", "divide", "subtract", "add", "pow", "square", "exp"])
@pytest.mark.parametrize("along", [(), (7,), (5, 1), (4, 1, 1), (4, 5, 1)])
@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        ((4, 5, 7), (4, 5, 7)),
        ((4, 5, 7), (7,)),
        ((4, 5, 7), (5, 1)),
        ((1, 5, 7), (4, 1, 7)),
        ((4, 5, 7), ()),
        ((1,), (4, 5, 1)),
    ],
)
def test_gradients_of_what_repeats_are_those_of_the_whole(
    a_shape: tuple[int, ...],
    b_shape: tuple[int, ...],
    along: tuple[int, ...],
    name: str,
    dtype: str,
    rng: np.random.Generator,
) -> None:
    kind = getattr(tw, dtype)
    arrays = [rng.uniform(0.5, 2, s) for s in (a_shape, b_shape)]
    if dtype.startswith("complex"):
        arrays = [x * np.exp(1j * rng.uniform(-1, 1, x.shape)) for x in arrays]
    arrays = arrays[:1] if name in ("square", "exp") else arrays
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    if np.broadcast_shapes(shape, along) != shape:
        pytest.skip("the result is smaller")
    seed = tw.asarray(rng.uniform(0.5, 2, along)).astype(kind)
    slopes = []
    for g in (tw.broadcast_to(seed, shape), tw.broadcast_to(seed, shape).copy()):
        leaves = [tw.asarray(x).astype(kind).requires_grad_() for x in arrays]
        slopes.append(tw.grad(getattr(tw, name)(*leaves), leaves, g))
    tolerance = {"float16": 2e-3, "bfloat16": 1.2e-2, "float64": 1e-14}.get(dtype, 2e-6)
    for once, whole, x in zip(*slopes, arrays, strict=True):
        assert once.shape == whole.shape == x.shape
        assert once.dtype == whole.dtype == kind
        wide = tw.complex128 if dtype.startswith("complex") else tw.float64
        got, expected = (np.asarray(y.astype(wide)) for y in (once, whole))
        if x.shape == shape:
            np.testing.assert_array_equal(got, expected)
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("stretched", [(160,), (130, 1), (), (1, 160), (1, 1, 160), (3, 1, 160)])
@pytest.mark.parametrize("across", [False, True])
def test_gradients_by_a_stretched_factor_are_sums_of_products(
    across: bool, stretched: tuple[int, ...], dtype: str, rng: np.random.Generator
) -> None:
    """Of an upstream gradient that is one number, finite or not, and of one for each element; what
    lies in the other order of axes, too. 20,800 elements and three times as many."""
    kind = getattr(tw, dtype)
    shape = np.broadcast_shapes((130, 160), stretched)

    def made(x: np.ndarray) -> tuple[tw.Tensor, np.ndarray]:
        order = range(x.ndim)[::-1] if across else range(x.ndim)
        t = tw.asarray(np.ascontiguousarray(x.transpose(order))).astype(kind).permute(*order)
        return t, np.asarray(t.astype(tw.float64))

    other, wide = made(rng.uniform(-1, 2, shape))
    general, wide_general = made(rng.uniform(-1, 2, shape))
    infinite, wide_infinite = made(np.where(wide > 1.99, np.inf, wide))
    numbers = [tw.full((), g, dtype=kind).expand(*shape) for g in (0.75, -np.inf, np.nan, 0.0)]
    cases = [(g, float(g.flatten()[0]), other, wide) for g in numbers]
    cases += [(general, wide_general, other, wide), (numbers[3], 0.0, infinite, wide_infinite)]
    scale = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-6, "float64": 1e-14}[dtype]
    lead = len(shape) - len(stretched)
    axes = tuple(i for i in range(len(shape)) if i < lead or stretched[i - lead] == 1)
    for g, wide_g, factor, wide_factor in cases:
        leaf = tw.ones(stretched, dtype=kind).requires_grad_()
        y = leaf * factor
        (slope,) = tw.grad(y, [leaf], g, retain_graph=True)
        (recorded,) = tw.grad(y, [leaf], g, create_graph=True)
        np.testing.assert_array_equal(bits(slope), bits(recorded.detach()))
        with np.errstate(invalid="ignore"):
            products = wide_g * wide_factor
            expected = products.sum(axis=axes).reshape(stretched)
            size = np.nan_to_num(np.abs(products), posinf=0).sum(axis=axes).max()
        assert slope.dtype == kind
        got = np.asarray(slope.astype(tw.float64))
        np.testing.assert_allclose(got, expected, rtol=scale, atol=scale * size)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gradient_that_fits_though_the_sum_of_the_factors_does_not(dtype: str) -> None:
    largest = float(np.finfo(dtype).max)
    x = tw.full((3, 8192), largest, dtype=getattr(tw, dtype))
    row = tw.ones((8192,), dtype=x.dtype).requires_grad_()
    (row * x).backward(tw.full((), 0.25, dtype=x.dtype).expand(3, 8192))
    assert row.grad is not None
    np.testing.assert_array_equal(
        np.asarray(row.grad), np.full(8192, np.dtype(dtype).type(largest * 0.75))
    )


def test_more_terms_than_float16_counts() -> None:
    x = tw.ones((500, 400), dtype=tw.float16)
    scale = tw.ones((), dtype=tw.float16).requires_grad_()
    g = tw.full((), 2.0**-8, dtype=tw.float16).expand(500, 400)
    (slope,) = tw.grad(x + scale, [scale], g)
    assert float(slope) == 781.0  # of 781.25: float16 has whole and half numbers there


def test_gradients_that_a_program_gets_can_be_written_to() -> None:
    x = tw.ones((3, 4)).requires_grad_()
    for plan in (False, True):
        (g,) = tw.grad((x * 3).sum(), [x], plan=plan)
        g += 1
        np.testing.assert_array_equal(np.asarray(g), np.full((3, 4), 4.0))
        np.asarray(g)[0, 0] = 9
        assert float(g.sum()) == 4 * 11 + 9
    (g,) = tw.grad((x * tw.ones(4)).mean(), [x])
    g[0] = 0
    g, _ = tw.func.grad_and_value(lambda w: (w * 2).sum())(tw.ones((3, 4)))
    g /= 2
    np.testing.assert_array_equal(np.asarray(g), np.ones((3, 4)))
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward()
    assert y.grad is not None
    y.grad[0] = 0
    np.testing.assert_array_equal(np.asarray(x.grad), np.full((3, 4), 6.0))


@pytest.mark.parametrize("rows", [1, 2])
def test_hooks_and_functions_may_write_to_what_they_get(rows: int) -> None:
    def double(g: tw.Tensor) -> None:
        g *= 2

    class Half(tw.autograd.Function):
        @staticmethod
        def forward(context: object, x: tw.Tensor) -> tw.Tensor:
            return x * 1

        @staticmethod
        def backward(context: object, g: tw.Tensor) -> tw.Tensor:
            g /= 2
            return g

    x = tw.ones((rows, 3)).requires_grad_()
    x.register_hook(double)
    y = tw.relu(x)
    y.register_hook(double)
    (Half.apply(y) * tw.full((3,), 5.0)).sum().backward()
    np.testing.assert_array_equal(np.asarray(x.grad), np.full((rows, 3), 10.0))


def test_the_gradient_of_a_sum_is_a_view() -> None:
    x = tw.ones((3, 4)).requires_grad_()
    (g,) = tw.grad(x.sum(), [x])
    with pytest.raises(ValueError, match="copy"):
        g += 1


def test_no_terms_of_a_gradient_that_is_infinite() -> None:
    row = tw.ones((4,)).requires_grad_()
    (slope,) = tw.grad((tw.ones((0, 4)) + row).sum(), [row], tw.asarray(np.float32(np.inf)))
    np.testing.assert_array_equal(np.asarray(slope), np.zeros(4))


def test_second_gradients_of_what_repeats() -> None:
    x, row = tw.ones((3, 4)).requires_grad_(), tw.full((4,), 2.0).requires_grad_()
    (g,) = tw.grad((x * x * row).sum(), [row], create_graph=True)
    (second,) = tw.grad(g.sum(), [x])
    np.testing.assert_array_equal(np.asarray(second), np.full((3, 4), 2.0))


# What repeats, to which shape, and the axes reduced.
REDUCED = [
    ((1, 40, 33), (2, 40, 33), (0,)),
    ((1, 40, 33), (3, 40, 33), (0, 1, 2)),
    ((1, 40, 33), (3, 40, 33), (1,)),
    ((1, 40, 33), (3, 40, 33), (2,)),
    ((1, 40, 33), (70, 40, 33), (0, 2)),
    ((40, 1, 33), (40, 2, 33), (1,)),
    ((40, 1, 33), (40, 2, 33), (0, 2)),
    ((40, 1, 33), (40, 5, 33), (0, 1)),
    ((40, 33, 1), (40, 33, 2), (2,)),
    ((40, 33, 1), (40, 33, 2), (0,)),
    ((40, 33, 1), (40, 33, 3), (0, 1, 2)),
    ((40, 9, 1), (40, 9, 64), (1, 2)),
    ((1, 1, 33), (4, 5, 33), (0, 1)),
    ((1, 1, 1), (4, 5, 33), (0, 2)),
]
REDUCTIONS = ("sum", "mean", "max", "min", "prod", "var", "any", "argmax", "logsumexp")


@each("dtype", ["float32", "float64", "bfloat16", "int32"])
@each(("few", "shape", "axes"), REDUCED)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_what_repeats(
    name: str,
    few: tuple[int, ...],
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    dtype: str,
    isa: str,
    rng: np.random.Generator,
) -> None:
    if dtype == "int32" and name in ("mean", "var", "logsumexp"):
        pytest.skip("of floating-point numbers")
    if name == "argmax" and len(axes) > 1:
        pytest.skip("along one axis")
    values = tw.asarray(rng.uniform(-1.2, 1.2, few) * (3 if dtype == "int32" else 1))
    x = values.astype(getattr(tw, dtype))
    axis = axes[0] if len(axes) == 1 else axes
    rtol = {"bfloat16": 2.0**-7, "float32": 1e-5, "float64": 1e-12}.get(dtype, 0)
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        for there in (x, tw.flip(x)):
            transposed = tw.broadcast_to(there, shape).permute(order)
            got = getattr(tw, name)(transposed, axis=axis)
            want = getattr(tw, name)(transposed.contiguous(), axis=axis)
            got, want = (np.asarray(y.astype(tw.float64)) for y in (got, want))
            np.testing.assert_allclose(got, want, rtol=rtol, atol=4 * rtol)


@pytest.mark.parametrize("rows", range(1, 11))
def test_sums_of_few_rows(rows: int, isa: str, rng: np.random.Generator) -> None:
    for n in (1, 3, 7, 8, 9, 16, 31, 1000, 70_000):
        x = (rng.normal(size=(rows, 2 * n)) * 10.0 ** rng.integers(-3, 4, (rows, 2 * n))).astype(
            "f"
        )
        x[:, 0] = -0.0
        whole = tw.asarray(x)
        for part, of in ((whole, x), (whole[:, :n], x[:, :n]), (whole[::-1, n:], x[::-1, n:])):
            got = np.asarray(tw.sum(part, axis=0))
            error = np.abs(got - of.sum(0, dtype="float64"))
            assert (error <= 2.0**-24 * 4 * np.abs(of).sum(0, dtype="float64")).all()
            assert not np.signbit(got[got == 0]).any()
        x[0, -1], x[-1, -1] = np.inf, -np.inf
        x[0, -2] = np.nan
        got = np.asarray(tw.sum(tw.asarray(x), axis=0))
        assert np.isnan(got[-2])
        assert np.isnan(got[-1]) if rows > 1 else np.isinf(got[-1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_gradients_of_tiles(dtype: str, rng: np.random.Generator) -> None:
    x = tw.asarray(rng.integers(-4, 5, (3, 5))).astype(getattr(tw, dtype)).requires_grad_()
    for repetitions in ((2, 1), (4, 3), (2, 1, 3)):
        x.grad = None
        y = tw.tile(x, repetitions)
        y.backward(tw.full_like(y.detach(), 0.5))
        want = 0.5 * np.prod(repetitions)
        assert x.grad is not None
        np.testing.assert_array_equal(np.asarray(x.grad.astype(tw.complex128)), want)
        x.grad *= 2  # all of its elements are there
        np.testing.assert_array_equal(np.asarray(x.grad.astype(tw.complex128)), 2 * want)
