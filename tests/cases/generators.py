"""Arguments of test records: random ones of a dtype, odd values, points where an op is smooth."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from cases import arrays
from cases.arrays import FLOATS, INTEGERS, rounded
from cases.record import Arrays

Domain = tuple[float, float]
COUNT = 67  # four vectors of 16 and a tail
ONCE_ROUNDED = 0.51


def floats(single: float, double: float) -> dict[str, float]:
    return {
        "float16": ONCE_ROUNDED,
        "bfloat16": ONCE_ROUNDED,
        "float32": single,
        "float64": double,
    }


def exact(*dtypes: str) -> dict[str, float]:
    return dict.fromkeys(dtypes, 0.0)


EXACT_FLOATS = exact(*FLOATS)
WHOLE = exact(*INTEGERS)


def promoted(single: float) -> dict[str, float]:
    """Whole numbers and bool become float32 first."""
    return dict.fromkeys(("bool", *INTEGERS), single)


def same(dtype: str) -> str:
    return dtype


def floating(dtype: str) -> str:
    return "float32" if dtype == "bool" or dtype in INTEGERS else dtype


def truth(_: str) -> str:
    return "bool"


def values(
    rng: np.random.Generator, dtype: str, domain: Domain, shape: tuple[int, ...] = (COUNT,)
) -> np.ndarray:
    """Random values of a dtype within a domain, whole ones for integers."""
    low, high = domain
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in arrays.COMPLEX:
        pair = rng.uniform(low, high, (2, *shape))
        return (pair[0] + 1j * pair[1]).astype(dtype)
    if dtype in FLOATS:
        return rounded(rng.uniform(low, high, shape), dtype)
    info = np.iinfo(dtype)
    first, last = max(math.ceil(low), info.min), min(math.floor(high), info.max)
    return rng.integers(first, last, shape, dtype=dtype, endpoint=True)


def ordinary(dtype: str) -> list[float]:
    """The values at which formulas break."""
    big, tiny = arrays.largest(dtype), arrays.smallest(dtype)
    return [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -2.5,
        3.0,
        math.inf,
        -math.inf,
        math.nan,
        big,
        -big,
        tiny,
        -tiny,
        tiny / arrays.eps(dtype),
        -tiny / arrays.eps(dtype),
    ]


def special_values(arity: int) -> Callable[[str], list[Arrays]]:
    def arguments(dtype: str) -> list[Arrays]:
        columns = zip(*product(ordinary(dtype), repeat=arity), strict=True)
        return [tuple(rounded(np.array(column), dtype) for column in columns)]

    return arguments


def generator(domains: tuple[Domain, ...], whole: tuple[Domain, ...]) -> Any:
    def arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        chosen = whole if dtype in INTEGERS else domains
        return [
            tuple(values(rng, dtype, domain, shape) for domain in chosen)
            for shape in ((COUNT,), (3, 5), (1,), (2, 0, 3))
        ] + [tuple(values(rng, dtype, domain, (1,)).reshape(()) for domain in chosen)]

    return arguments


def away_from(points: tuple[float, ...], domains: tuple[Domain, ...], apart: bool = False) -> Any:
    """Points inside the domains, at least 0.05 away from kinks, and from each other if `apart`."""

    def arguments(rng: np.random.Generator) -> list[Arrays]:
        found = []
        for shapes in _smooth_shapes(len(domains)):
            made = [
                rng.uniform(low, high, s) for (low, high), s in zip(domains, shapes, strict=True)
            ]
            for x in made:
                for point in points:
                    x[np.abs(x - point) < 0.05] += 0.1
            if apart:
                made[1] = made[1] + np.where(np.abs(made[0] - made[1]) < 0.05, 0.1, 0)
            found.append(tuple(made))
        return found

    return arguments


def _smooth_shapes(arity: int) -> list[tuple[tuple[int, ...], ...]]:
    alike = ((2, 3),) * arity
    if arity == 1:
        return [alike, ((),)]
    broadcast = {2: ((2, 3), (3,)), 3: ((2, 1), (3,), (1, 3))}[arity]
    return [alike, broadcast]


def where_arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    shapes = (((COUNT,),) * 3, ((4, 1), (3,), (1, 3)), ((0,), (0,), ()), ((), (), ()))
    return [
        (
            np.asarray(rng.integers(0, 2, chosen[0]).astype(bool)),
            *(
                np.asarray(values(rng, dtype, (-1e4, 1e4), (*shape, 1))[..., 0])
                for shape in chosen[1:]
            ),
        )
        for chosen in shapes
    ]


def where_special(dtype: str) -> list[Arrays]:
    x = rounded(np.array(ordinary(dtype)), dtype)
    return [(np.arange(x.size) % 2 == 0, x, x[::-1].copy())]


def where_smooth(rng: np.random.Generator) -> list[Arrays]:
    condition = rng.integers(0, 2, (2, 3)).astype(bool)
    return [
        (condition, rng.normal(size=(2, 3)), rng.normal(size=(2, 3))),
        (condition, rng.normal(size=(3,)), rng.normal(size=())),
    ]
