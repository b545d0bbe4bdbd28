"""Powers by one number, most of which are a few operations, against NumPy in more digits."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

SIMPLE = (0, 1, 2, 3, 4, -1, -2, 0.5, -0.5)
OTHERS = (5, -3, 1.5, 2.25)
TYPES = {"float32": (np.longdouble, 40), "float64": (np.longdouble, 300)}


def numbers(dtype: str, exponent: float, count: int = 4099) -> np.ndarray:
    rng = np.random.default_rng(count)
    reach = TYPES[dtype][1]
    x = rng.uniform(1, 2, count) * 2.0 ** rng.uniform(-reach, reach, count)
    signs = 1 if exponent % 1 else rng.choice([-1, 1], count)
    return (x * signs).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("exponent", [*SIMPLE, *OTHERS])
def test_within_one_unit_in_the_last_place(isa: str, exponent: float, dtype: str) -> None:
    x = numbers(dtype, exponent)
    with np.errstate(all="ignore"):
        exact = x.astype(np.longdouble) ** np.longdouble(exponent)
        near = exact.astype(dtype)
    y = (tw.asarray(x) ** exponent).numpy()
    finite = np.isfinite(near)
    np.testing.assert_array_equal(y[~finite], near[~finite])
    unit = np.spacing(np.maximum(np.abs(near), np.finfo(dtype).tiny)).astype(np.longdouble)
    assert np.max(np.abs(y - exact)[finite] / unit[finite]) <= 1


@pytest.mark.parametrize("dtype", [*TYPES, "float16", "bfloat16"])
@pytest.mark.parametrize("exponent", [*SIMPLE, *OTHERS])
def test_special_values_are_those_of_the_standard(exponent: float, dtype: str) -> None:
    special = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, -1.0]
    x = tw.asarray(special).astype(dtype)
    y = (x**exponent).astype(tw.float64).numpy()
    # C's pow, which NumPy leaves for the exponents that are roots.
    with np.errstate(all="ignore"):
        pairs = [np.power(np.float64(v), np.array([exponent, 7.0])) for v in special]
    expected = np.array([pair[0] for pair in pairs])
    if exponent == 0.5:
        expected[1], expected[3] = 0.0, float("inf")
    np.testing.assert_array_equal(y, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(y)[known], np.signbit(expected)[known])


@pytest.mark.parametrize("dtype", [*TYPES, "bfloat16"])
@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_a_special_value_among_others(isa: str, exponent: float, dtype: str) -> None:
    """The vector that holds one may go another way; its other numbers keep their bits."""
    kind = getattr(tw, dtype)
    others = tw.asarray(np.arange(1, 100) / 7, dtype=kind)
    alone = (others**exponent).astype(tw.float64).numpy()
    roots = ((-0.0, 0.0), (float("-inf"), float("inf")), (-1.0, float("nan")), (1e-300, 1e-150))
    for special, root in roots[: 4 if dtype == "float64" else 3]:
        with np.errstate(divide="ignore"):
            expected = root if exponent > 0 else 1 / np.float64(root)
        for place in (0, 5, 31, 98):
            x = others.clone()
            x[place] = special
            y = (x**exponent).astype(tw.float64).numpy()
            np.testing.assert_allclose(y[place], expected, rtol=1e-15)
            assert not np.signbit(y[place]) or np.isnan(expected)
            np.testing.assert_array_equal(np.delete(y, place), np.delete(alone, place))


@pytest.mark.parametrize("exponent", [*SIMPLE, 2.25])
def test_bits_do_not_depend_on_the_layout(exponent: float) -> None:
    x = np.abs(numbers("float32", exponent, 600)).reshape(60, 10)
    expected = (tw.asarray(x) ** exponent).numpy()
    wide = tw.asarray(np.repeat(x, 2, axis=1))
    for y in (
        wide[:, ::2] ** exponent,
        (tw.asarray(np.ascontiguousarray(x.T)).T) ** exponent,
        tw.asarray(x) ** tw.asarray(exponent),
        tw.stack([tw.asarray(v) ** exponent for v in x.ravel()]).reshape((60, 10)),
        tw.concat([tw.asarray(x[:, :3]) ** exponent, tw.asarray(x)[:, 3:] ** exponent], axis=1),
    ):
        np.testing.assert_array_equal(y.numpy(), expected)
    in_place = tw.asarray(x, copy=True)
    in_place **= exponent
    np.testing.assert_array_equal(in_place.numpy(), expected)


@pytest.mark.parametrize("exponent", [*SIMPLE, *OTHERS])
def test_powers_of_every_bfloat16_number_are_those_of_float32_rounded(
    isa: str, exponent: float
) -> None:
    every = tw.asarray((np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32))
    y = every.astype(tw.bfloat16) ** exponent
    assert y.dtype == tw.bfloat16
    expected = (every**exponent).astype(tw.bfloat16)
    np.testing.assert_array_equal(y.astype(tw.float32).numpy(), expected.astype(tw.float32).numpy())
    apart = (every.astype(tw.bfloat16)[::3] ** exponent).astype(tw.float32)
    np.testing.assert_array_equal(apart.numpy(), expected[::3].astype(tw.float32).numpy())


@pytest.mark.parametrize("exponent", [*SIMPLE, *OTHERS])
def test_gradients(exponent: float) -> None:
    values = np.array([0.5, 1.5, 3.0] if exponent % 1 else [-2.0, 0.5, 1.5, 3.0])
    x = tw.asarray(values)
    x.requires_grad = True
    (first,) = tw.grad((x**exponent).sum(), [x], create_graph=True)
    (second,) = tw.grad(first.sum(), [x])
    np.testing.assert_allclose(first.detach().numpy(), exponent * values ** (exponent - 1.0), 1e-14)
    curvature = exponent * (exponent - 1) * values ** (exponent - 2.0)
    np.testing.assert_allclose(second.numpy(), curvature, 1e-14)


@pytest.mark.parametrize(("exponent", "expected"), [(0, 0.0), (1, 1.0), (2, 0.0), (3, 0.0)])
def test_gradients_at_zero(exponent: int, expected: float) -> None:
    x = tw.asarray([0.0, -0.0])
    x.requires_grad = True
    (x**exponent).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [expected] * 2)


def test_exponents_that_change_between_calls() -> None:
    x = tw.asarray([1.5, 2.5, -3.0])
    for exponent in (2, 3, 2.0, 5, -1, 2):
        expected = np.array([1.5, 2.5, -3.0]) ** exponent
        np.testing.assert_allclose((x**exponent).numpy(), expected, 1e-6)
        e = tw.asarray(float(exponent))
        np.testing.assert_allclose((x**e).numpy(), expected, 1e-6)
