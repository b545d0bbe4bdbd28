"""Shapes of matrix products: sizes, batches and how operands lie in memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import tilewright as tw

# How an operand lies in memory, by letter.
LAYOUTS = {
    "n": "rows one after the other",
    "t": "stored transposed",
    "p": "part of wider rows",
    "s": "every other column",
}
# Wider rows are longer by one cache line of float32, so that they start at other places.
_PADDING = 16


@dataclass(frozen=True)
class Shape:
    """x @ y with x of m x k and y of k x n, or a batch of such products.

    `layout`: a letter of LAYOUTS for x, one for y. `shared`: the batch has one y.
    """

    m: int
    n: int
    k: int
    batch: int = 1
    layout: str = "nn"
    shared: bool = False

    @property
    def name(self) -> str:
        """Such as 8x 64x64x64 nt: batch, m x n x k, layout."""
        batch = f"{self.batch}x " if self.batch > 1 else ""
        shared = ", one y" if self.shared else ""
        return f"{batch}{self.m}x{self.n}x{self.k} {self.layout}{shared}"

    @property
    def flops(self) -> float:
        """Multiplications and additions of the definition."""
        return 2.0 * self.batch * self.m * self.n * self.k

    def operands(self, dtype: tw.dtype) -> tuple[tw.Tensor, tw.Tensor]:
        """Random numbers, never zeros; the same at each call, and others for other shapes."""
        stream = tw.Generator(zlib.crc32(self.name.encode()))
        y_batch = 1 if self.shared else self.batch
        x = _operand(self.m, self.k, self.layout[0], self.batch, dtype, stream)
        y = _operand(self.k, self.n, self.layout[1], y_batch, dtype, stream)
        return x, y


def square(n: int) -> Shape:
    """n x n x n, contiguous."""
    return Shape(n, n, n)


def _operand(
    rows: int, columns: int, layout: str, batch: int, dtype: tw.dtype, stream: tw.Generator
) -> tw.Tensor:
    lead = (batch,) if batch > 1 else ()
    stored = {
        "n": (rows, columns),
        "t": (columns, rows),
        "p": (rows, columns + _PADDING),
        "s": (rows, 2 * columns),
    }[layout]
    x = tw.normal(0.0, 1.0, (*lead, *stored), dtype=dtype, generator=stream)
    if layout == "t":
        return x.mT
    if layout == "p":
        return x[..., :columns]
    return x[..., ::2] if layout == "s" else x


@dataclass(frozen=True)
class Plan:
    """What a map measures: a grid of m x n for each k, and shapes of other kinds."""

    sides: tuple[int, ...]
    depths: tuple[int, ...]
    others: tuple[Shape, ...]
    rounds: int

    def grid(self) -> Iterator[Shape]:
        """All of the grid."""
        return (Shape(m, n, k) for k, m, n in product(self.depths, self.sides, self.sides))

    def shapes(self) -> list[Shape]:
        """All of it, each once."""
        return list(dict.fromkeys([*self.grid(), *self.others]))


def _layouts(sizes: Sequence[int], layouts: Sequence[str]) -> list[Shape]:
    return [Shape(n, n, n, layout=layout) for n, layout in product(sizes, layouts)]


_ODD = tuple(square(n) for n in (17, 63, 100, 257, 1000))
_LONG = (Shape(8192, 32, 32), Shape(32, 8192, 32), Shape(16, 16, 8192), Shape(1024, 1024, 3))
_BATCHED = (
    Shape(64, 64, 64, batch=64),
    Shape(128, 128, 64, batch=16, layout="nt"),
    Shape(128, 128, 128, batch=8, shared=True),
)
# A linear layer of 784 inputs: forward, and the gradient of its weight.
_LAYERS = (Shape(64, 256, 784, layout="nt"), Shape(256, 784, 64, layout="tn"))

QUICK = Plan(
    sides=(1, 16, 128, 1024),
    depths=(16, 128, 1024),
    others=(
        *_ODD,
        *_LONG,
        *_layouts((64, 512), ("nt", "tn", "tt")),
        *_layouts((256,), ("pp", "ss")),
        *_BATCHED,
        *_LAYERS,
    ),
    rounds=5,
)
FULL = Plan(
    sides=(1, 4, 16, 64, 256, 1024, 2048),
    depths=(1, 16, 64, 256, 1024),
    others=(
        *_ODD,
        *(square(n) for n in (3, 31, 33, 65, 127, 129, 255, 500, 1023, 1025)),
        *_LONG,
        Shape(65536, 8, 8),
        Shape(8, 65536, 8),
        Shape(1, 1, 65536),
        Shape(4096, 4096, 1),
        Shape(1, 4096, 4096, layout="nt"),
        Shape(4096, 1, 4096, layout="tn"),
        *_layouts((16, 64, 255, 512, 1024), ("nt", "tn", "tt")),
        *_layouts((64, 255, 1024), ("pn", "np", "pp", "sn", "ns", "ss")),
        *_BATCHED,
        Shape(4, 4, 4, batch=4096),
        Shape(32, 32, 32, batch=256),
        Shape(256, 64, 256, batch=64),
        Shape(64, 64, 64, batch=64, layout="tn"),
        *_LAYERS,
    ),
    rounds=15,
)
