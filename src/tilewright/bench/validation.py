"""Whether a matrix product is right: its rows and columns against float64, before it is timed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import tilewright as tw
from tilewright._engine.optional_packages import available

PASSED, FAILING, REFUSED, SKIPPED = "passed", "failing", "refused", "skipped"

# bfloat16 is summed in float32.
_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53, "bfloat16": 2.0**-24}
# n roundings of independent sign grow as the root of n. The worst of the ladder, one running sum,
# has a root mean square of sqrt(k / 6) roundoffs; this leaves a factor of ten.
_ROUNDINGS = 4.0
# By precision class: how many times more roundings another algorithm may have (Strassen's form
# triples the error a level), and what operands of fewer bits add: 16 bits, or bfloat16's 8, each
# rounded by half a unit at most, with a factor of four to spare.
_CLASSES = {
    "ieee": (1.0, 0.0),
    "fp32": (1.0, 0.0),
    "high": (4.0, 2.0**-14),
    "medium": (4.0, 2.0**-6),
}
# Of millions of elements the worst lies five or six deviations out, further where rows are short.
_MAX_OVER_RMS = 16.0

# What the true rows and columns may cost: all of a 1024 product by NumPy's threads and vectors, a
# tenth of a second of the naive kernel, or of NumPy's plain loops over wider numbers.
_NUMPY_FLOPS, _NAIVE_FLOPS, _WIDE_FLOPS = 2.2e9, 1e8, 2e7
_FEWEST = 2
_BATCHES = 3


class Error(NamedTuple):
    """Largest and root mean square difference from the true product, relative to its own rms."""

    max: float
    rms: float


@dataclass(frozen=True)
class Check:
    """What became of one contender: its error against float64, or why there is none.

    `kernel` is the engine's choice, where it had one.
    """

    name: str
    contender: str
    precision: str
    status: str
    reason: str = ""
    error: Error | None = None
    bound: Error | None = None
    kernel: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        flat = {key: value for key, value in asdict(self).items() if key not in ("error", "bound")}
        for key, value in (("error", self.error), ("bound", self.bound)):
            flat[f"{key}_max"], flat[f"{key}_rms"] = value or (None, None)
        return flat


def bound_of(precision: str, dtype: tw.dtype, k: int) -> Error:
    """The error that a kernel of a precision class may have for sums of k products.

    Random operands of mean 0 are assumed. A product that is rounded to bfloat16 has its error.
    """
    more, cut = _CLASSES["medium" if dtype == tw.bfloat16 else precision]
    rms = more * _ROUNDINGS * _ROUNDOFF[dtype.name] * (math.sqrt(k) + 1) + cut
    return Error(_MAX_OVER_RMS * rms, rms)


class Reference:
    """True values of x @ y: of all of it where that is cheap, else of rows and columns at random.

    One row is drawn from each of equal bands, and so are columns: every tile of a fair size is met.
    The reference of float32 is NumPy's float64 product, that of float64 NumPy's in long double,
    rounded; where NumPy is missing it is the naive kernel's in float64.
    """

    def __init__(self, x: tw.Tensor, y: tw.Tensor) -> None:
        batch = x.shape[0] if len(x.shape) > 2 else 1
        some = sorted({0, batch // 2, batch - 1})[:_BATCHES]
        self._parts = [
            part for at in some for part in _true_parts(_matrix(x, at), _matrix(y, at), at)
        ]
        self._scale = math.sqrt(_mean_square([true for _, true in self._parts]))

    def error(self, product: tw.Tensor) -> Error:
        """NaN where the product has one."""
        differences = [pick(product).astype(tw.float64) - true for pick, true in self._parts]
        worst = [float(difference.abs().max().item()) for difference in differences]
        rms = math.sqrt(_mean_square(differences))
        return Error(rms if math.isnan(rms) else max(worst) / self._scale, rms / self._scale)

    def check(
        self, name: str, contender: str, precision: str, k: int, product: Callable[[], tw.Tensor]
    ) -> Check:
        """Runs a contender and holds its product against its class's bound."""
        try:
            found = product()
        except (ValueError, MemoryError) as refusal:
            text = str(refusal).rpartition("does not accept this problem: ")[2]
            return Check(name, contender, precision, REFUSED, text)
        error, bound = self.error(found), bound_of(precision, found.dtype, k)
        right = error.max <= bound.max and error.rms <= bound.rms
        reason = "" if right else _verdict(error, bound)
        status = PASSED if right else FAILING
        return Check(name, contender, precision, status, reason, error, bound)


_Part = tuple[Callable[[tw.Tensor], tw.Tensor], tw.Tensor]


def _verdict(error: Error, bound: Error) -> str:
    return (
        f"error max {error.max:.1e}, rms {error.rms:.1e}; "
        f"allowed {bound.max:.1e} and {bound.rms:.1e}"
    )


def _matrix(x: tw.Tensor, at: int) -> tw.Tensor:
    return x[at] if len(x.shape) > 2 else x


def _true_parts(x: tw.Tensor, y: tw.Tensor, at: int) -> Iterator[_Part]:
    (m, k), n = x.shape, y.shape[1]
    multiply, flops = _true_product(x.dtype)
    x64, y64 = x.astype(tw.float64), y.astype(tw.float64)
    rows = _sample(m, flops / (2.0 * k * n))
    yield lambda c: _matrix(c, at)[rows], multiply(x64[rows], y64)
    if len(rows) < m:
        columns = _sample(n, flops / (2.0 * k * m))
        yield lambda c: _matrix(c, at)[:, columns], multiply(x64, y64[:, columns])


def _sample(count: int, affordable: float) -> tw.Tensor:
    """Positions below `count`, one from each of as many equal bands as can be afforded."""
    bands = min(count, max(_FEWEST, int(affordable)))
    draw = random.Random(count)
    edges = [band * count // bands for band in range(bands + 1)]
    return tw.tensor([draw.randrange(low, high) for low, high in pairwise(edges)])


def _true_product(dtype: tw.dtype) -> tuple[Callable[[tw.Tensor, tw.Tensor], tw.Tensor], float]:
    """What multiplies float64 matrices as they would be without rounding, and for how many FLOP."""
    if not available("numpy"):
        return _by_naive, _NAIVE_FLOPS
    return (_by_long_double, _WIDE_FLOPS) if dtype == tw.float64 else (_by_numpy, _NUMPY_FLOPS)


def _by_naive(x: tw.Tensor, y: tw.Tensor) -> tw.Tensor:
    with tw.kernels.use(matmul="naive"):
        return x @ y


def _by_numpy(x: tw.Tensor, y: tw.Tensor) -> tw.Tensor:
    return tw.asarray(x.numpy() @ y.numpy())


def _by_long_double(x: tw.Tensor, y: tw.Tensor) -> tw.Tensor:
    wide = [t.numpy().astype("longdouble") for t in (x, y)]
    return tw.asarray((wide[0] @ wide[1]).astype("float64"))


def _mean_square(parts: list[tw.Tensor]) -> float:
    total = sum(float((part * part).sum().item()) for part in parts)
    return total / sum(math.prod(part.shape) for part in parts)
