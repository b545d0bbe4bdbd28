"""Rates of GPUs, which their estimates stand on: measured, and kept by GPU and driver.

Each rate is solved for in the engine's own estimate, which is a line in one over the rate: so the
estimate of what was measured is its time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from statistics import median
from typing import Any, NamedTuple, Protocol

import tilewright as tw
from tilewright import _core, cuda, kernels
from tilewright.cuda.streams import gpu_number
from tilewright.tune import table
from tilewright.tune.search import Outcome


class Sizes(NamedTuple):
    """How much is measured at once: waves of tiles, terms of a product, bytes of a copy."""

    waves: int = 4
    terms: int = 2048
    bytes: int = 256 << 20


_SIZES = Sizes()


class Clock(Protocol):
    """Where times come from; tests put a made-up GPU in its place."""

    def device_seconds(self, call: Callable[[], object]) -> float:
        """Seconds of a call among others of its kind, on the GPU's clock."""

    def host_seconds(self, call: Callable[[], object]) -> float:
        """Seconds of a call until all that it asked for is done."""


class Stopwatch:
    """A GPU of this machine: medians of samples that take about `sample_seconds`."""

    def __init__(self, device: str, samples: int = 5, sample_seconds: float = 2e-3) -> None:
        self.device, self.samples, self.sample_seconds = device, samples, sample_seconds

    def device_seconds(self, call: Callable[[], object]) -> float:
        """Seconds of a call among others of its kind, on the GPU's clock."""
        once = self._sample(call, 1)  # compiles
        once = min(once, self._sample(call, 1))
        calls = max(1, min(1000, int(self.sample_seconds / max(once, 1e-7))))
        return median(self._sample(call, calls) for _ in range(self.samples))

    def host_seconds(self, call: Callable[[], object]) -> float:
        """Seconds of a call until all that it asked for is done."""
        return median(self._waited(call) for _ in range(self.samples + 1))

    def _sample(self, call: Callable[[], object], calls: int) -> float:
        begin, end = (cuda.Event(enable_timing=True) for _ in range(2))
        stream = cuda.current_stream(self.device)
        cuda.synchronize(self.device)
        begin.record(stream)
        for _ in range(calls):
            call()
        end.record(stream)
        cuda.synchronize(self.device)
        return max(1e-3 * begin.elapsed_time(end) / calls, 1e-10)

    def _waited(self, call: Callable[[], object]) -> float:
        cuda.synchronize(self.device)
        start = time.perf_counter()
        call()
        cuda.synchronize(self.device)
        return time.perf_counter() - start


class Product(NamedTuple):
    """A product that is measured for a rate, on a rung, in tiles of so many elements."""

    rate: str
    rung: str
    high: int
    wide: int
    dtype: str = "float32"


PRODUCTS = (
    Product("naive", "naive", 8, 32),
    Product("tiled", "tiled", 32, 32),
    Product("registers_small", "registers", 64, 64),
    Product("registers", "registers", 128, 128),
    Product("warps", "tensor", 128, 128, "bfloat16"),
    Product("groups_narrow", "hopper", 128, 128, "bfloat16"),
    Product("groups", "hopper", 128, 256, "bfloat16"),
)


_PASSES = ("launch_ns", "memory", "upload", "download")


def measure(
    number: int,
    clock: Clock,
    sizes: Sizes = _SIZES,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, float]:
    """The rates of a GPU, by name. What cannot be told from its time (too short) is left out."""
    device = f"cuda:{number}"
    limits = {row["name"]: row for row in _core._gpu_rates(number)}
    found: dict[str, float] = {}

    def take(name: str, value: float) -> None:
        if math.isfinite(value) and limits[name]["least"] <= value <= limits[name]["most"]:
            found[name] = float(f"{value:.4g}")

    with tw.no_grad():
        for name, value in _passes(device, clock, sizes, tell):
            take(name, value)
        for product in PRODUCTS:
            take(product.rate, _rate_of_product(number, product, clock, sizes, found, tell))
    return found


def _passes(
    device: str, clock: Clock, sizes: Sizes, tell: Callable[[str], None]
) -> Iterator[tuple[str, float]]:
    """A launch, and bytes a nanosecond of copies within the GPU, to it and from it."""
    tell("launch")
    one = tw.ones((1,), device=device)
    launch_ns = 1e9 * clock.device_seconds(lambda: one + one)
    yield "launch_ns", launch_ns
    tell("memory")
    x = tw.ones((max(1, sizes.bytes // 4),), device=device)
    ns = 1e9 * clock.device_seconds(lambda: tw.negative(x)) - launch_ns
    yield "memory", 2 * x.nbytes / ns if ns > 0 else math.nan
    here = tw.ones((max(1, sizes.bytes // 16),))
    there = here.to(device)
    for name, call in (("upload", lambda: here.to(device)), ("download", lambda: there.to("cpu"))):
        tell(name)
        yield name, here.nbytes / (1e9 * clock.host_seconds(call))


def _rate_of_product(
    number: int,
    product: Product,
    clock: Clock,
    sizes: Sizes,
    known: Mapping[str, float],
    tell: Callable[[str], None],
) -> float:
    m, k, n = _sizes_of(number, product, sizes)
    dtype = getattr(tw, product.dtype)
    line = _estimate_line(number, product, (m, k, n), known)
    if line is None:
        return math.nan
    tell(f"{product.rung}  {m}x{k}x{n} {product.dtype}")
    device = f"cuda:{number}"
    x, y = (tw.ones(shape, dtype=dtype, device=device) for shape in ((m, k), (k, n)))
    with kernels.use(matmul=product.rung):
        ns = 1e9 * clock.device_seconds(lambda: x @ y)
    fixed, slope = line
    return slope / (ns - fixed) if ns > fixed else math.nan


def _sizes_of(number: int, product: Product, sizes: Sizes) -> tuple[int, int, int]:
    """As many whole tiles as fill waves of multiprocessors, in about a square."""
    processors = cuda.facts(number)["multiprocessors"]
    # Rung registers takes its small tiles where there are fewer large ones than multiprocessors.
    waves = sizes.waves if product.rate != "registers_small" else min(sizes.waves, 3)
    tiles = processors * waves
    ratio = product.wide / product.high
    ideal = max(1.0, math.sqrt(tiles * ratio))
    rows = min(
        range(max(1, int(ideal / 2)), int(2 * ideal) + 1),
        key=lambda rows: (tiles - rows * (tiles // rows), abs(rows - ideal)),
    )
    return rows * product.high, sizes.terms, max(1, tiles // rows) * product.wide


def _estimate_line(
    number: int, product: Product, sizes: tuple[int, int, int], known: Mapping[str, float]
) -> tuple[float, float] | None:
    """The rung's estimate as a + b / rate; None where it does not accept the product."""
    key = _core._gpu_rates_key(number)
    points = []
    guess = next(row for row in _core._gpu_rates(number) if row["name"] == product.rate)["guess"]
    for rate in (guess, 2 * guess):
        if not guess:
            return None
        with table.use_gpu_rates({key: {**known, product.rate: rate}}):
            found = _core._gpu_estimates(number, sizes, getattr(tw, product.dtype))
        if product.rung not in found:
            return None
        points.append((1 / rate, found[product.rung]))
    (x0, y0), (x1, y1) = points
    slope = (y0 - y1) / (x0 - x1)
    return y0 - slope * x0, slope


def numbers_of(devices: Sequence[str] | None) -> list[int]:
    """Of the GPUs that are named, or of all there are; raises as using such a GPU does."""
    if devices is None:
        return list(range(cuda.device_count())) if cuda.is_available() else []
    numbers = [gpu_number(device) for device in devices if device != "cpu"]
    for number in numbers:
        cuda.facts(number)
    return numbers


def tuned(
    before: table.Table, number: int, on_progress: Callable[[float, str], None] | None
) -> tuple[table.Table, list[Outcome]]:
    """A table with a GPU's rates measured, written and in force, and what was found of each."""
    table.check_writable()
    steps = len(PRODUCTS) + len(_PASSES)
    done = iter(range(steps + 1))

    def tell(text: str) -> None:
        if on_progress:
            on_progress(next(done, steps) / steps, f"cuda:{number}  {text}")

    rates = measure(number, Stopwatch(f"cuda:{number}"), _SIZES, tell)
    kept = {"date": datetime.now(timezone.utc).isoformat(timespec="seconds"), "rates": rates}
    found = before._replace(gpus={**before.gpus, _core._gpu_rates_key(number): kept})
    table.save(found)
    return found, [_outcome(number, row, rates) for row in _core._gpu_rates(number) if row["guess"]]


def _outcome(number: int, row: Mapping[str, Any], rates: Mapping[str, float]) -> Outcome:
    measured = rates.get(row["name"])
    was = f"guess {row['guess']:g}"
    note = f"{measured:g}, {was}" if measured else f"could not be told from its time: {was} stays"
    return Outcome(f"cuda:{number} {row['name']}", {}, math.nan, math.nan, note)


def source(device: str) -> str:
    """Where the rates of a GPU come from, in one line."""
    number = gpu_number(device)
    kept = table.gpus_in_force().get(_core._gpu_rates_key(number))
    if kept is None:
        return "rates guessed from data sheets; `tilewright tune` measures"
    rows = [row for row in _core._gpu_rates(number) if row["guess"]]
    guessed = [row["name"] for row in rows if row["name"] not in kept["rates"]]
    rest = f" ({', '.join(guessed)} guessed)" if guessed else ""
    return f"rates measured on {kept['date'][:10]}{rest}"
