"""Tensors as text: what `repr` shows. Reads only the elements that it prints."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from tilewright import _core


@dataclasses.dataclass
class _Options:
    """PyTorch's and NumPy's limits: all elements up to a thousand, then three at either end of an
    axis."""

    precision: int = 4  # digits behind the point
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None  # None: where four decimals would say little


_options = _Options()
# Outside this range, or where elements differ by more than this ratio, four decimals would say
# little: the exponent is shown instead.
_LARGEST_FIXED = 1e8
_SMALLEST_FIXED = 1e-4
_LARGEST_RATIO = 1e5

_Nested = Any  # a number, or a list of nested ones


def display(x: _core.Tensor) -> str:
    """The text of a tensor: nested brackets, aligned columns, dtype and place in the graph.

    More than a thousand elements are summarised, with the shape told beside them.

    >>> import tilewright as tw
    >>> tw.asarray([[1.5, -2.0], [0.25, 3.0]])
    tensor([[ 1.5000, -2.0000],
            [ 0.2500,  3.0000]], dtype=float32)
    """
    prefix = "tensor(" if type(x) is _core.Tensor else f"{type(x).__name__}("
    summarised = x.size > _options.threshold
    cuts = [summarised and extent > 2 * _options.edgeitems for extent in x.shape]
    values = _corners(x.detach(), cuts).tolist()
    format_one = _formatter(x.dtype.name, _flatten(values))
    body = _nested(values, cuts, format_one, len(prefix)) if x.size else "[]"
    return prefix + _with_facts(body, _facts(x, summarised), len(prefix)) + ")"


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are shown, in all threads, from now on; what is left out stays as it is.

    `precision` digits behind the point, all elements up to `threshold` and then `edgeitems` at
    either end of an axis, lines of `linewidth` characters, with sci_mode=True always exponents and
    with False never. Raises ValueError for negative numbers.

    >>> import tilewright as tw
    >>> tw.set_printoptions(precision=2)
    >>> tw.asarray(1 / 3)
    tensor(0.33, dtype=float32)
    >>> tw.set_printoptions(precision=4)
    """
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
        "sci_mode": sci_mode,
    }
    for name, value in given.items():
        if value is not None and value < 0:
            raise ValueError(f"set_printoptions: {name} is at least 0, got {value}")
    for name, value in given.items():
        if value is not None:
            setattr(_options, name, value)


def _facts(x: _core.Tensor, summarised: bool) -> list[str]:
    facts = []
    if summarised or (x.size == 0 and x.shape != (0,)):
        facts.append(f"shape={x.shape}")
    facts.append(f"dtype={x.dtype}")
    if x.device != "cpu":
        facts.append(f"device={x.device!r}")
    if x.op is not None:
        facts.append(f"op={x.op}")
    elif x.requires_grad:
        facts.append("requires_grad=True")
    if x.name:
        facts.append(f"name={x.name!r}")
    return facts


def _with_facts(body: str, facts: list[str], indent: int) -> str:
    """The facts behind the last row, or below it where the line would grow too long."""
    text = ", ".join(facts)
    last_line = body.rpartition("\n")[2]
    first_indent = 0 if "\n" in body else indent
    if first_indent + len(last_line) + len(text) + 3 <= _options.linewidth:
        return f"{body}, {text}"
    return f"{body},\n{' ' * indent}{text}"


def _corners(x: _core.Tensor, cuts: Sequence[bool]) -> _core.Tensor:
    """The elements at the ends of the axes that are cut, as one small tensor."""
    for axis, cut in enumerate(cuts):
        if cut:
            before = (slice(None),) * axis
            ends = [
                x[(*before, slice(_options.edgeitems))],
                x[(*before, slice(-_options.edgeitems, None))],
            ]
            x = _core.concat(ends, axis=axis)
    return x


def _flatten(values: _Nested) -> list[Any]:
    if not isinstance(values, list):
        return [values]
    return [number for item in values for number in _flatten(item)]


def _nested(
    values: _Nested, cuts: Sequence[bool], format_one: Callable[[Any], str], indent: int
) -> str:
    if not isinstance(values, list):
        return format_one(values)
    if len(cuts) == 1:
        return _row([format_one(value) for value in values], cuts[0], indent)
    parts = [_nested(value, cuts[1:], format_one, indent + 1) for value in values]
    if cuts[0]:
        parts.insert(_options.edgeitems, "...")
    # One empty line more between the blocks of each further axis.
    gap = ",\n" + "\n" * (len(cuts) - 2) + " " * (indent + 1)
    return "[" + gap.join(parts) + "]"


def _row(cells: list[str], cut: bool, indent: int) -> str:
    if cut:
        cells.insert(_options.edgeitems, "...")
    width = max((len(cell) for cell in cells), default=0) + 2
    in_line = max(1, (_options.linewidth - indent) // width)
    lines = [", ".join(cells[i : i + in_line]) for i in range(0, len(cells), in_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _formatter(dtype: str, numbers: list[Any]) -> Callable[[Any], str]:
    """How to write one element so that all have the same width."""
    if dtype == "bool" or "int" in dtype:
        plain: Callable[[Any], str] = str
    elif dtype.startswith("complex"):
        plain = _complex_style(numbers)
    else:
        plain = _float_style(numbers)
    width = max((len(plain(number)) for number in numbers), default=0)
    return lambda number: plain(number).rjust(width)


def _float_style(numbers: Sequence[float]) -> Callable[[float], str]:
    sizes = [abs(number) for number in numbers if math.isfinite(number) and number != 0]
    if sizes and _needs_exponent(min(sizes), max(sizes)):
        return lambda number: f"{number:.{_options.precision}e}"
    if all(size == int(size) for size in sizes):
        return lambda number: f"{number:.0f}." if math.isfinite(number) else str(number)
    return lambda number: f"{number:.{_options.precision}f}"


def _needs_exponent(smallest: float, largest: float) -> bool:
    if _options.sci_mode is not None:
        return _options.sci_mode
    if largest >= _LARGEST_FIXED or smallest < _SMALLEST_FIXED:
        return True
    return smallest < 1 and largest / smallest > _LARGEST_RATIO


def _complex_style(numbers: Sequence[complex]) -> Callable[[complex], str]:
    style = _float_style([part for number in numbers for part in (number.real, number.imag)])
    width = max((len(style(number.imag).lstrip("-")) for number in numbers), default=0)

    def write(number: complex) -> str:
        sign = "-" if math.copysign(1.0, number.imag) < 0 else "+"
        return f"{style(number.real)}{sign}{style(abs(number.imag)).rjust(width)}j"

    return write
