"""The test record of an op: all that a test needs to know about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cases.derivatives import Derivatives, RowDerivatives

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class ErrorInput:
    """A call that must be refused, with the exception's type and a part of its text."""

    call: Callable[[], object]
    expected: type[Exception]
    text: str


@dataclass(frozen=True)
class OpCase:
    """One op. Arguments are NumPy arrays; `call` gets tensors of them, `reference` wide arrays."""

    name: str
    # The op on tensors, with the keyword arguments of one variant.
    call: Callable[..., Any]
    # The same on float64 (longdouble for float64), int64/uint64, complex128 or bool arrays.
    reference: Callable[..., Any]
    # Arguments of a dtype, in the op's domain: (random generator, dtype name) -> argument lists.
    arguments: Callable[[np.random.Generator, str], list[Arrays]]
    # Largest error by dtype of the arguments, in units in the last place of `scale` in the
    # result's dtype. 0 demands the same bits. The keys are the dtypes that the op takes.
    tolerance: Mapping[str, float]
    # Result's dtype from the arguments'.
    result: Callable[[str], str]
    # Magnitude that an error is measured against; the reference's own where None.
    scale: Callable[..., Any] | None = None
    # Keyword arguments to try.
    variants: tuple[Mapping[str, Any], ...] = ({},)
    # Arguments with infinities, NaN, zeros of both signs and denormals, for a floating dtype.
    special: Callable[[str], list[Arrays]] | None = None
    # Whether the sign of a zero result is defined.
    signed_zero: bool = True
    # Positions of the arguments that have gradients; none where the op has none.
    differentiable: tuple[int, ...] = ()
    # float64 arguments where the op is smooth; required where it is differentiable.
    smooth: Callable[[np.random.Generator], list[Arrays]] | None = None
    # Largest error of a float32 gradient in units of eps * max(1, |gradient|), against float64.
    gradient_tolerance: float | None = None
    # Exact first and second derivatives where formulas break; required of elementwise ops, and of
    # reductions.
    derivatives: Derivatives | RowDerivatives | None = None
    # Elements of the result depend on elements at the same place only.
    elementwise: bool = False
    errors: tuple[ErrorInput, ...] = field(default=())
    # Shapes of operands that are large and fit together, where (256, 256) of each do not.
    large: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.differentiable and (self.smooth is None or self.gradient_tolerance is None):
            raise ValueError(
                f"{self.name}: a differentiable op needs smooth points and a tolerance"
            )
        if self.differentiable and self.elementwise and self.derivatives is None:
            raise ValueError(f"{self.name}: a differentiable row needs its derivatives")

    def __str__(self) -> str:
        return self.name
