"""Random values that no op draws: cut normal distributions, and orthogonal matrices."""

from __future__ import annotations

import math
from typing import Any

import tilewright as tw
from tilewright import Generator, Tensor

# Where the density is below this part of its largest value, float64 cannot tell.
_LEAST_DENSITY = 1e-18
_BLOCK = 32


def truncated_normal(
    shape: tuple[int, ...], low: float, high: float, generator: Generator | None
) -> Tensor:
    """float64 values of a standard normal distribution, given that they lie in [low, high].

    By rejection: from the normal distribution itself where the range holds much of it, else from a
    uniform one.
    """
    within = (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2
    nearest = min(max(0.0, low), high)
    reach = math.sqrt(nearest**2 - 2 * math.log(_LEAST_DENSITY))
    low, high = max(low, -reach), min(high, reach)
    x = tw.full(shape, math.nan, dtype=tw.float64)
    while True:
        missing = tw.isnan(x)
        if not tw.any(missing).item():
            return x
        if within > 1 / 4:
            drawn = tw.normal(0.0, 1.0, shape, dtype=tw.float64, generator=generator)
            fits = (drawn >= low) & (drawn <= high)
        else:
            drawn = tw.uniform(low, high, shape, dtype=tw.float64, generator=generator)
            chance = tw.rand(shape, dtype=tw.float64, generator=generator)
            fits = chance < tw.exp((nearest**2 - drawn * drawn) / 2)
        x = tw.where(missing & fits, drawn, x)


def orthogonal_columns(rows: int, columns: int, generator: Generator | None) -> Tensor:
    """A float64 matrix whose columns have length 1 and are at right angles, all equally likely.

    Gram-Schmidt on normal numbers, done twice so that rounding leaves nothing behind: blocks of
    columns against those before them by products of matrices, then column by column. Source: L.
    Giraud et al., "Rounding error analysis of the classical Gram-Schmidt orthogonalization process"
    (2005).
    """
    raw = tw.normal(0.0, 1.0, (rows, columns), dtype=tw.float64, generator=generator)
    done = raw[:, :0]
    for first in range(0, columns, _BLOCK):
        block = raw[:, first : first + _BLOCK]
        for _ in range(2 if first else 0):
            block = block - done @ (done.T @ block)
        inner: list[Tensor] = []
        for i in range(block.shape[1]):
            column = block[:, i : i + 1]
            for _ in range(2 if inner else 0):
                known = tw.concat(inner, axis=1)
                column = column - known @ (known.T @ column)
            inner.append(column / tw.sqrt(tw.sum(column * column)))
        done = tw.concat([done, *inner], axis=1)
    return done


def draw_first(module: Any, generator: Generator | None) -> None:
    """The first values of a layer: its `reset_parameters`, which a class may define without one."""
    if generator is None:
        module.reset_parameters()
    else:
        module.reset_parameters(generator)
