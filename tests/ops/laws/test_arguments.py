"""Arguments at the edge of their meaning: what NumPy computes is computed, what it refuses is
refused with the same kind of error, and nothing passes without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw

NAN, INFINITY = float("nan"), float("inf")


# ---- powers ----

SIGNED = ("int8", "int16", "int32", "int64")


@pytest.mark.parametrize("dtype", SIGNED)
def test_whole_numbers_have_no_negative_powers(dtype: str) -> None:
    x = tw.asarray([0, 1, 2], dtype=getattr(tw, dtype))
    powers = tw.asarray([1, -3, 2], dtype=getattr(tw, dtype))
    for call in (
        lambda: x**-1,
        lambda: x**powers,
        lambda: 2 ** (-x),
        lambda: tw.pow(x, powers),
        lambda: tw.pow(x.reshape(3, 1), powers[::-1]),
    ):
        with pytest.raises(ValueError, match="integers to the negative power -"):
            call()
    assert (x**0).tolist() == [1, 1, 1]
    assert (x ** (powers * 0 + 2)).tolist() == [0, 1, 4]
    assert (x[:0] ** powers[:0]).tolist() == []
    assert (x**-1.0).dtype == tw.float32
    assert (tw.astype(x, tw.float64) ** powers).tolist() == [0, 1, 4]


def test_unsigned_exponents_are_never_negative() -> None:
    x = tw.asarray([2, 3], dtype=tw.int64)
    assert (x ** tw.asarray([200, 1], dtype=tw.uint8)).tolist() == [0, 3]
    with pytest.raises(OverflowError):
        tw.asarray([2], dtype=tw.uint8) ** -1


def test_powers_take_no_modulus() -> None:
    x = tw.asarray([2, 3])
    for call in (lambda: pow(x, 2, 5), lambda: pow(2, x, 5), lambda: pow(2, 3, x)):
        with pytest.raises(TypeError):
            call()


# ---- limits ----


@pytest.mark.parametrize("value", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_one_bound_has_the_gradient_that_two_have(value: float) -> None:
    def gradient(**bounds: float) -> float:
        x = tw.asarray([value], dtype=tw.float64).requires_grad_()
        tw.clip(x, **bounds).sum().backward()
        return float(x.grad.item())

    assert gradient(min=0.0) == gradient(min=0.0, max=INFINITY) == float(value >= 0)
    assert gradient(max=1.0) == gradient(min=-INFINITY, max=1.0) == float(value <= 1)
    assert gradient() == 1


def test_a_bound_that_is_a_tensor_has_a_gradient_below_it_alone() -> None:
    x = tw.asarray([-1.0, 0.0, 1.0]).requires_grad_()
    low = tw.asarray([0.0, 0.0, 0.0]).requires_grad_()
    tw.clip(x, min=low).sum().backward()
    assert x.grad.tolist() == [0, 1, 1]
    assert low.grad.tolist() == [1, 0, 0]


@pytest.mark.parametrize("dtype", [*SIGNED, "uint8", "uint16", "uint32", "uint64"])
def test_bounds_beyond_the_type_bound_nothing(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, 3, info.max], dtype)
    t = tw.asarray(x)
    for low, high in (
        (None, 5),
        (3, None),
        (info.min - 1, 5),
        (3, info.max + 1),
        (-(2**70), 2**70),
        (info.min, info.max),
    ):
        y = tw.clip(t, low, high)
        expected = [int(v) if low is None else max(int(v), low) for v in x]
        expected = [v if high is None else min(v, high) for v in expected]
        assert (str(y.dtype), y.tolist()) == (dtype, expected), (low, high)
    with pytest.raises(OverflowError):
        tw.clip(t, info.max + 1)


def test_bounds_of_another_kind_promote() -> None:
    x = tw.asarray([0, 1, 2])
    assert tw.clip(x, 0.5).tolist() == [0.5, 1, 2]
    assert tw.clip(x, max=tw.asarray(1.5, dtype=tw.float64)).dtype == tw.float64
    assert np.isnan(np.asarray(tw.clip(tw.asarray([1.0]), NAN))).all()
    assert np.isnan(np.asarray(tw.clip(tw.asarray([NAN]), max=1.0))).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_numbers_bound_as_tensors_do(dtype: str, isa: str) -> None:
    special = [NAN, -np.inf, -2.0, -0.0, 0.0, 1.5, np.inf]
    x = tw.asarray(special * 7, dtype=getattr(tw, dtype))
    for low in special:
        for high in special:
            every = [tw.full_like(x, bound) for bound in (low, high)]
            got, want = (
                tw.clip(x, *bounds).astype(tw.float64).numpy() for bounds in ((low, high), every)
            )
            np.testing.assert_array_equal(got, want, f"{low} to {high}")
            number = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


# ---- one_hot, nonzero ----


@pytest.mark.parametrize(
    ("indices", "classes", "error", "text"),
    [
        ([0, 1], -1, ValueError, "num_classes is negative: -1"),
        ([0, 3], 3, IndexError, "index 3 is out of range for 3 classes"),
        ([-1, 0], 3, IndexError, "index -1 is out of range for 3 classes"),
        ([0], 0, IndexError, "index 0 is out of range for 0 classes"),
        ([0], True, TypeError, ""),
        ([0], 2.0, TypeError, ""),
    ],
)
def test_one_hot_has_a_place_for_every_index(
    indices: list[int], classes: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        tw.one_hot(tw.asarray(indices), classes)
    assert text in str(caught.value)


def test_one_hot_of_nothing() -> None:
    assert tw.one_hot(tw.zeros((0,), dtype=tw.int64), 0).shape == (0, 0)


def test_positions_need_an_axis() -> None:
    with pytest.raises(ValueError, match="nonzero: a 0-d tensor has no positions"):
        tw.nonzero(tw.asarray(1.0))


# ---- signs ----


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_sign_of_zero_is_zero(dtype: str, isa: str) -> None:
    y = tw.sign(tw.asarray([-0.0, 0.0] * 17, dtype=getattr(tw, dtype)))
    assert not tw.any(y != 0).item()
    assert not tw.any(tw.signbit(y)).item()


# ---- ranges ----


@pytest.mark.parametrize(
    "bounds",
    [
        (2**62, 2**62 + 3),
        (2**60, 2**60 + 5, 2),
        (-(2**63), -(2**63) + 2),
        (2**63 - 1, 2**63 - 4, -1),
        (5, 0, -2),
        (0, 0),
        (3, 5, -1),
        (True,),
        (0, 2**63 - 1, 2**62),
        (-(2**63), 2**63 - 1, 2**62),
    ],
)
def test_ranges_of_whole_numbers_are_exact(bounds: tuple[int, ...]) -> None:
    assert tw.arange(*bounds).tolist() == list(range(*map(int, bounds)))


def test_ranges_beyond_int64() -> None:
    y = tw.arange(2**63, 2**63 + 3, dtype=tw.uint64)
    assert y.tolist() == [2**63, 2**63 + 1, 2**63 + 2]
    with pytest.raises(TypeError, match="arange: complex numbers have no order"):
        tw.arange(3j)


@pytest.mark.parametrize(
    ("bounds", "dtype", "culprit"),
    [
        ((0, 257), "uint8", "256"),
        ((250, 300, 10), "uint8", "290"),
        ((-1, 5), "uint8", "-1"),
        ((-5, -140, -5), "int8", "-135"),
        ((0.0, 300.0), "uint8", "299"),
        ((-1.5, 5), "uint16", "-1"),
        ((2**63 - 1, 2**63 + 1), "int64", str(2**63)),
        ((2**64 - 1, 2**64 + 4096), "uint64", "1.84467"),
        ((-1, 3), "uint64", "-1"),
        ((3, -2, -1), "uint32", "-1"),
    ],
)
def test_ranges_that_a_type_does_not_hold(bounds: Any, dtype: str, culprit: str) -> None:
    with pytest.raises(OverflowError, match=rf"arange: .*{culprit}.* does not fit {dtype}"):
        tw.arange(*bounds, dtype=getattr(tw, dtype))


def test_ranges_up_to_the_last_number_of_a_type() -> None:
    assert tw.arange(0, 256, dtype=tw.uint8).tolist() == list(range(256))
    assert tw.arange(250, 300, 50, dtype=tw.uint8).tolist() == [250]
    assert tw.arange(-128, 128, 85, dtype=tw.int8).tolist() == [-128, -43, 42, 127]
    assert tw.arange(2**64 - 2, 2**64, dtype=tw.uint64).tolist() == [2**64 - 2, 2**64 - 1]
    assert tw.arange(300, 0, dtype=tw.uint8).shape == (0,)
    assert tw.linspace(0, 255, 2, dtype=tw.uint8).tolist() == [0, 255]
    assert tw.linspace(0, 300, 3, dtype=tw.uint8, endpoint=False).tolist() == [0, 100, 200]
    np.testing.assert_array_equal(
        np.asarray(tw.linspace(0, 2.0**64 - 2**11, 9, dtype=tw.uint64)),
        np.linspace(0, 2.0**64 - 2**11, 9, dtype=np.uint64),
    )
    assert tw.full((2,), 2.0**63, dtype=tw.uint64).tolist() == [2**63] * 2
    assert tw.full((2,), -(2.0**63), dtype=tw.int64).tolist() == [-(2**63)] * 2
    for number in (2.0**64, -1.0, float("inf"), float("nan")):
        with pytest.raises(OverflowError, match=r"full: .* does not fit uint64"):
            tw.full((2,), number, dtype=tw.uint64)
    for start, stop in ((0, 300), (-0.5, 5)):
        with pytest.raises(OverflowError, match=r"linspace: .* does not fit uint8"):
            tw.linspace(start, stop, 3, dtype=tw.uint8)


@pytest.mark.parametrize("k", [-(2**63), 2**63 - 1, -3, 3, -2, 2, 0])
def test_diagonals_far_away(k: int) -> None:
    reach = max(min(k, 9), -9)
    np.testing.assert_array_equal(np.asarray(tw.eye(2, 3, k=k)), np.eye(2, 3, k=reach))
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(tw.tril(tw.asarray(x), k)), np.tril(x, reach))
    np.testing.assert_array_equal(np.asarray(tw.triu(tw.asarray(x), k)), np.triu(x, reach))


def test_evenly_spaced_numbers() -> None:
    whole = tw.linspace(-2.5, 2.5, 6, dtype=tw.int32)
    assert whole.tolist() == np.linspace(-2.5, 2.5, 6, dtype=np.int32).tolist()
    wide = tw.linspace(-1.7e308, 1.7e308, 3, dtype=tw.float64)
    assert wide.tolist() == [-1.7e308, 0, 1.7e308]
    assert tw.linspace(3, 5, 1).tolist() == [3]
    assert tw.linspace(3, 5, 0).tolist() == []


# ---- random numbers ----


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("uint8", 0, 257),
        ("uint8", -1, 3),
        ("int8", -129, 3),
        ("int8", 0, 129),
        ("bool", 0, 3),
        ("bool", -1, 2),
        ("uint64", -1, 2),
        ("float16", 0, 70_000),
    ],
)
def test_random_whole_numbers_fit_their_type(dtype: str, low: int, high: int) -> None:
    with pytest.raises(ValueError, match=f"randint: {dtype} does not hold"):
        tw.randint(low, high, (4,), dtype=getattr(tw, dtype))


def test_random_whole_numbers_are_real() -> None:
    with pytest.raises(TypeError, match="randint: needs a real dtype, got complex64"):
        tw.randint(0, 2, (4,), dtype=tw.complex64)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("uint8", 0, 256),
        ("int8", -128, 128),
        ("bool", 0, 2),
        ("int64", -(2**63), 2**63 - 1),
        ("uint64", 0, 2**63 - 1),
        ("float16", -2048, 2048),
    ],
)
def test_random_whole_numbers_of_the_whole_type(dtype: str, low: int, high: int) -> None:
    y = np.asarray(tw.astype(tw.randint(low, high, (99,), dtype=getattr(tw, dtype)), tw.float64))
    assert (y >= low).all()
    assert (y <= high).all()


@pytest.mark.parametrize(
    ("low", "high"), [(NAN, 1), (0, INFINITY), (-INFINITY, 0), (-1e308, 1e308)]
)
def test_uniform_numbers_need_a_finite_range(low: float, high: float) -> None:
    with pytest.raises(ValueError, match="uniform: the range from"):
        tw.uniform(low, high, (3,))


# ---- numbers of things ----

INTEGER_ARGUMENTS: dict[str, Callable[[Any], object]] = {
    "eye": tw.eye,
    "linspace": lambda n: tw.linspace(0, 1, n),
    "tril": lambda n: tw.tril(tw.ones((2, 2)), n),
    "randperm": tw.randperm,
    "randint": lambda n: tw.randint(0, n, (2,)),
    "zeros": tw.zeros,
    "reshape": lambda n: tw.ones((1,)).reshape(n),
    "cross_entropy": lambda n: tw.cross_entropy(
        tw.ones((1, 2)), tw.zeros((1,), dtype=tw.int64), ignore_index=n
    ),
}


@pytest.mark.parametrize("value", [True, 1.0, NAN, "1", None, 1j], ids=str)
@pytest.mark.parametrize("name", INTEGER_ARGUMENTS)
def test_only_whole_numbers_count(name: str, value: Any) -> None:
    with pytest.raises(ValueError if value == 2**70 else TypeError):
        INTEGER_ARGUMENTS[name](value)


@pytest.mark.parametrize("name", INTEGER_ARGUMENTS)
def test_numpy_integers_count(name: str) -> None:
    INTEGER_ARGUMENTS[name](np.int32(1))


@pytest.mark.parametrize("name", INTEGER_ARGUMENTS)
def test_tensors_of_one_integer_count(name: str) -> None:
    INTEGER_ARGUMENTS[name](tw.asarray(1))


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x, i: m.sum(x, i),
        lambda m, x, i: m.zeros(i),
        lambda m, x, i: m.arange(i * 3),
        lambda m, x, i: x.split(i),
        lambda m, x, i: x.reshape(i * 12),
        lambda m, x, i: m.moveaxis(x, i, 0),
        lambda m, x, i: m.mode(x, i),
        lambda m, x, i: m.max(x, i),
        lambda m, x, i: x.min(i),
        lambda m, x, i: m.min(x, other=i),
        lambda m, x, i: x.max(other=x * i),
    ],
)
def test_a_tensor_of_one_integer_is_an_axis_or_an_operand(call: Callable[..., Any]) -> None:
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(0).integers(-3, 3, (3, 4))
    ours = call(tw, tw.asarray(numbers), tw.asarray(1))
    theirs = call(torch, torch.from_numpy(numbers), torch.tensor(1))
    np.testing.assert_equal([np.asarray(y) for y in ours], [np.asarray(y) for y in theirs])


def test_tensors_of_several_integers_are_no_axes() -> None:
    with pytest.raises(TypeError, match=r"source must be an int or .*got a tensor of shape \(2,\)"):
        tw.moveaxis(tw.ones((2, 3)), tw.asarray([0, 1]), -1)
    with pytest.raises(ValueError, match="arange: cannot take start=a tensor"):
        tw.arange(tw.asarray(2.0).requires_grad_())
    with pytest.raises(TypeError, match="axis must be an int"):
        tw.sum(tw.ones((2, 3)), tw.asarray(1.0))
