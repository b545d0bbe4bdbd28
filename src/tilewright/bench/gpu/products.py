"""Products of matrices on a GPU against cuBLAS, which PyTorch calls."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import matmul
from timeit import Timer

import tilewright as tw
from tilewright._engine.optional_packages import require
from tilewright.bench.gpu.lines import Line
from tilewright.bench.gpu.rivals import Rivals
from tilewright.bench.harness import OURS

CUBLAS = "cuBLAS"
_SIDES = (1, 3, 17, 31, 63, 65, 100, 129, 257, 333, 511, 777, 1023, 1025, 2049, 3001, 4097)
_MOST_FLOPS = 4e10
_QUICK_SHAPES = ((32, 32, 32), (17, 33, 9), (1, 65, 31))


def product_lines(rivals: Rivals, quick: bool) -> Iterator[Line]:
    """The two large ones, float32's two ways, sizes by powers of two, and odd shapes."""
    for n in (48, 64) if quick else (4096, 8192):
        yield _line(rivals, "bfloat16", f"bfloat16 {n}", (n, n, n), tw.bfloat16, 0.9)
    n = 64 if quick else 4096
    exact = _line(rivals, "float32", f"float32 {n}, free choice", (n, n, n), tw.float32, 2.5)
    yield Line(**{**vars(exact), "errors": lambda: _errors(rivals, n)})
    yield _line(
        rivals, "float32", f"float32 {n}, rung registers", (n, n, n), tw.float32, 0.9, "registers"
    )
    squares = [(n, n, n) for n in (2**i for i in range(5, 14))]
    shapes = _QUICK_SHAPES if quick else (*squares, *odd_shapes(60))
    for dtype in (tw.bfloat16, tw.float32):
        for m, k, n in shapes:
            name = f"{dtype.name} {m}x{k} @ {k}x{n}"
            yield _line(rivals, f"shapes {dtype.name}", name, (m, k, n), dtype, 0.8)


def odd_shapes(count: int) -> list[tuple[int, int, int]]:
    """Shapes m, k, n whose sides are no multiples of anything; the same ones each time."""
    draws = random.Random(0)
    found: list[tuple[int, int, int]] = []
    while len(found) < count:
        m, k, n = (draws.choice(_SIDES) for _ in range(3))
        if (m, k, n) not in found and 2.0 * m * k * n < _MOST_FLOPS:
            found.append((m, k, n))
    return found


def _normal(shape: tuple[int, int], dtype: tw.dtype, seed: int) -> tw.Tensor:
    return tw.randn(shape, generator=tw.Generator(seed)).astype(dtype)


def _line(
    rivals: Rivals,
    group: str,
    name: str,
    shape: tuple[int, int, int],
    dtype: tw.dtype,
    least: float,
    rung: str = "",
) -> Line:
    m, k, n = shape

    def make() -> Mapping[str, Timer]:
        nbytes = (m * k + k * n + m * n) * dtype.itemsize
        ours: list[Callable[[], object]] = []
        theirs: list[Callable[[], object]] = []
        for i in range(rivals.sets(nbytes)):
            (a, x), (b, y) = (
                rivals.pairs(_normal(sides, dtype, 2 * i + j))
                for j, sides in enumerate(((m, k), (k, n)))
            )
            ours.append(_forced(rung, partial(matmul, a, b)))
            theirs.append(partial(matmul, x, y))
        timers = {OURS: rivals.ours_timer(ours)}
        if rivals.torch is not None:
            rivals.torch.backends.cuda.matmul.allow_tf32 = False
            timers[CUBLAS] = rivals.torch_timer(theirs)
        return timers

    flops = 2e-12 * m * n * k
    return Line(name, group, make, least, CUBLAS, work=flops, unit="TFLOP")


def _forced(rung: str, call: Callable[[], object]) -> Callable[[], object]:
    if not rung:
        return call

    def run() -> object:
        with tw.kernels.use(matmul=rung):
            return call()

    return run


def _errors(rivals: Rivals, n: int) -> Mapping[str, float]:
    """The largest error over |a| |b|, of a few rows against double precision."""
    np = require("numpy", purpose="the error of a product", install="numpy")
    rows = min(n, 64)
    x, y = (_normal((n, n), tw.float32, seed) for seed in (0, 1))
    a, b = (np.asarray(z, dtype=np.float64) for z in (x, y))
    exact, scale = a[:rows] @ b, np.abs(a[:rows]) @ np.abs(b)
    found = {OURS: np.asarray((x.to("cuda") @ y.to("cuda")).to("cpu"))[:rows]}
    if rivals.torch is not None:
        found[CUBLAS] = (rivals.theirs(x) @ rivals.theirs(y)).cpu().numpy()[:rows]
    return {name: float((np.abs(z - exact) / scale).max()) for name, z in found.items()}
