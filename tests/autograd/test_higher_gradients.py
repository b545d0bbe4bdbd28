"""Gradients that can be differentiated again are those that cannot, whatever types the operands
have: their formula, op by op, is computed as widely as a kernel computes it."""

from __future__ import annotations

import numpy as np
import pytest
from cases import RECORDS, arrays
from cases.record import OpCase
from subcases import each

import tilewright as tw

ELEMENTWISE = [case for case in RECORDS if case.elementwise and case.differentiable]


def operands_of(case: OpCase, rng: np.random.Generator) -> list[np.ndarray]:
    """Arrays where the op is smooth; some operands of some ops are numbers and stay."""
    return list(case.smooth(rng)[0])


def places_of_arrays(case: OpCase) -> list[int]:
    args = operands_of(case, np.random.default_rng(3))
    return [i for i in case.differentiable if isinstance(args[i], np.ndarray)]


MIXED = [
    (case, place)
    for case in ELEMENTWISE
    if len(places_of_arrays(case)) > 1
    for place in places_of_arrays(case)
]


def twice(case: OpCase, args: list, places: list[int]) -> list[np.ndarray]:
    """Value, gradients and their gradients, in float64."""
    leaves = [args[i].detach().requires_grad_() for i in places]
    for i, leaf in zip(places, leaves, strict=True):
        args[i] = leaf
    y = case.call(*args)
    first = tw.grad(y, leaves, tw.ones_like(y), create_graph=True)
    found = [y, *first]
    for g in first:
        if g.requires_grad:
            second = tw.grad(g, leaves, tw.ones_like(g), retain_graph=True, allow_unused=True)
            found += [dx for dx in second if dx is not None]
    return [arrays.array(x.detach().astype(tw.float64)) for x in found]


@pytest.mark.parametrize(("case", "place"), MIXED, ids=str)
def test_beside_a_wider_operand_a_narrow_one_is_wide(case: OpCase, place: int, rng) -> None:
    given, places = operands_of(case, rng), places_of_arrays(case)
    given[place] = given[place].astype(np.float16).astype(np.float64)
    wide = [tw.asarray(a) if isinstance(a, np.ndarray) else a for a in given]
    mixed = list(wide)
    mixed[place] = wide[place].astype(tw.float16)
    expected, found = twice(case, wide, places), twice(case, mixed, places)
    assert len(found) == len(expected)
    # What belongs to the narrow operand is rounded to its type, the rest is not.
    exact = 0
    for got, want in zip(found, expected, strict=True):
        scale = 1 + np.abs(want)
        exact += bool((np.abs(got - want) <= 1e-13 * scale).all())
        assert (np.abs(got - want) <= 2.0**-10 * scale).all()
    assert exact >= 1 + (len(places) - 1)


@each("dtype", arrays.HALVES)
@pytest.mark.parametrize("case", ELEMENTWISE, ids=str)
def test_of_16_bits_the_gradient_alone_is_rounded(case: OpCase, dtype: str, rng) -> None:
    if dtype not in case.tolerance:
        pytest.skip("not for this type")
    places = places_of_arrays(case)
    args = [
        arrays.tensor(arrays.rounded(a, dtype), dtype) if isinstance(a, np.ndarray) else a
        for a in operands_of(case, rng)
    ]
    leaves = []
    for i in places:
        args[i] = args[i].requires_grad_()
        leaves.append(args[i])
    y = case.call(*args)
    seed = tw.full_like(y, 3)
    at_once = tw.grad(y, leaves, seed, retain_graph=True, allow_unused=True)
    recorded = tw.grad(y, leaves, seed, create_graph=True, allow_unused=True)
    for a, b in zip(at_once, recorded, strict=True):
        if a is None or b is None:
            assert a is b
            continue
        want, got = (arrays.array(x.detach()).astype(float) for x in (a, b))
        assert (np.abs(got - want) <= arrays.eps(dtype) * np.abs(want)).all()


def test_whole_numbers_beside_floats_do_not_wrap() -> None:
    a = tw.asarray(np.array([100, -100, 7], np.int8))
    b = tw.asarray(np.array([3.0, 4.0, 5.0])).requires_grad_()
    (g,) = tw.grad(tw.atan2(a, b).sum(), b, create_graph=True)
    x, y = np.array([3.0, 4.0, 5.0]), np.array([100.0, -100.0, 7.0])
    np.testing.assert_allclose(g.tolist(), -y / (x * x + y * y), rtol=1e-14)
    (second,) = tw.grad(g.sum(), b)
    np.testing.assert_allclose(second.tolist(), 2 * x * y / (x * x + y * y) ** 2, rtol=1e-13)
