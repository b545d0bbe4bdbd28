"""Samplers: in which order, how often and in which batches the items of a data set come."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.data.checks import generator_of, switch, whole


class Sampler:
    """Base class: each iteration is an epoch of item numbers. Define `__iter__` and `__len__`.

    One that knows its whole epoch may define `order()`, an int64 tensor, in place of `__iter__`.

    >>> import tilewright as tw
    >>> class Evens(tw.data.Sampler):
    ...     def order(self):
    ...         return tw.arange(0, 6, 2)
    >>> [batch.tolist() for batch in tw.data.DataLoader(tw.arange(6), 2, sampler=Evens())]
    [[0, 2], [4]]
    """

    def __iter__(self) -> Iterator[int]:
        order = getattr(self, "order", None)
        if order is None:
            raise NotImplementedError(f"{type(self).__name__}: define __iter__()")
        return iter(order().tolist())


class SequentialSampler(Sampler):
    """All items in their order.

    >>> import tilewright as tw
    >>> list(tw.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __len__(self) -> int:
        return len(self.data_source)

    def order(self) -> Tensor:
        """The item numbers of an epoch."""
        return tw.arange(len(self))


class RandomSampler(Sampler):
    """Items in random order; with `replacement` each drawn from all.

    `num_samples` is the length of an epoch (default: that of the data set; more than that needs
    `replacement`). Without a generator the order follows `tw.manual_seed`.

    >>> import tilewright as tw
    >>> sorted(tw.data.RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        rows = len(data_source)
        self.data_source = data_source
        self.replacement = switch("RandomSampler", "replacement", replacement)
        self.num_samples = (
            rows if num_samples is None else whole("RandomSampler", "num_samples", num_samples, 0)
        )
        self.generator = generator_of("RandomSampler", None, generator)
        if self.num_samples > rows and not (replacement and rows):
            raise ValueError(
                f"RandomSampler: num_samples {num_samples} is more than the {rows} items there "
                "are; give replacement=True to draw some again"
            )

    def __len__(self) -> int:
        return self.num_samples

    def order(self) -> Tensor:
        """The item numbers of a new epoch."""
        rows = len(self.data_source)
        if self.replacement and self.num_samples:
            return tw.randint(0, rows, (self.num_samples,), generator=self.generator)
        return tw.randperm(rows, generator=self.generator)[: self.num_samples]


class SubsetRandomSampler(Sampler):
    """The items of some numbers in random order; see RandomSampler.

    >>> import tilewright as tw
    >>> sorted(tw.data.SubsetRandomSampler([5, 2, 7]))
    [2, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator_of("SubsetRandomSampler", None, generator)

    def __len__(self) -> int:
        return len(self.indices)

    def order(self) -> Tensor:
        """The item numbers of a new epoch."""
        numbers = tw.asarray(self.indices, dtype=tw.int64)
        return tw.take(numbers, tw.randperm(len(self), generator=self.generator), axis=0)


class WeightedRandomSampler(Sampler):
    """Items drawn with probabilities in proportion to `weights`, one weight an item.

    Without `replacement` an item is drawn once at most (by the largest keys log(u) / weight,
    P. Efraimidis and P. Spirakis, "Weighted random sampling with a reservoir", IPL 2006). Raises
    ValueError for negative weights, and for fewer positive ones than can be drawn.

    >>> import tilewright as tw
    >>> list(tw.data.WeightedRandomSampler([0, 1, 0], 4))
    [1, 1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        values = weights if isinstance(weights, Tensor) else tw.asarray(list(weights))
        self.weights = values.astype(tw.float64)
        self.num_samples = whole("WeightedRandomSampler", "num_samples", num_samples, 0)
        self.replacement = switch("WeightedRandomSampler", "replacement", replacement)
        self.generator = generator_of("WeightedRandomSampler", None, generator)
        numbers = self.weights.tolist() if self.weights.ndim == 1 else []
        if self.weights.ndim != 1 or not all(0 <= w < float("inf") for w in numbers):
            raise ValueError(
                "WeightedRandomSampler: weights are finite numbers from 0, one an item"
            )
        positive = sum(w > 0 for w in numbers)
        if positive < (1 if self.replacement else self.num_samples):
            raise ValueError(
                f"WeightedRandomSampler: {positive} weights above 0 do not give "
                f"{self.num_samples} samples"
            )

    def __len__(self) -> int:
        return self.num_samples

    def order(self) -> Tensor:
        """The item numbers of a new epoch."""
        return tw.asarray(self._drawn(), dtype=tw.int64)

    def _drawn(self) -> list[int]:
        weights = self.weights.tolist()
        if self.replacement:
            return weighted_choices(weights, self._uniform(self.num_samples))
        draws = self._uniform(len(weights))
        # 1 - u, because u may be 0.
        keys = {
            i: math.log(1 - u) / w
            for i, (u, w) in enumerate(zip(draws, weights, strict=True))
            if w > 0
        }
        return sorted(keys, key=lambda i: -keys[i])[: self.num_samples]

    def _uniform(self, count: int) -> list[float]:
        draws: list[float] = tw.rand((count,), dtype=tw.float64, generator=self.generator).tolist()
        return draws


class BatchSampler:
    """Batches of the item numbers that a sampler gives.

    >>> import tilewright as tw
    >>> list(tw.data.BatchSampler(tw.data.SequentialSampler("abcde"), 2, drop_last=True))
    [[0, 1], [2, 3]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        if not hasattr(sampler, "__iter__"):
            raise TypeError(f"BatchSampler: sampler is a {type(sampler).__name__}, not iterable")
        self.sampler = sampler
        self.batch_size = whole("BatchSampler", "batch_size", batch_size, 1)
        self.drop_last = switch("BatchSampler", "drop_last", drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for row in self.sampler:
            batch.append(row)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        rows = len(self.sampler)  # type: ignore[arg-type]
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)


def weighted_choices(weights: Sequence[float], uniform: Iterable[float]) -> list[int]:
    """For each number of [0, 1) the index at which so much of the weights' sum lies before it."""
    sums = list(itertools.accumulate(weights))
    last = max(i for i, weight in enumerate(weights) if weight > 0)
    # A product that rounds up to the whole sum would name an index behind the last.
    return [min(bisect.bisect_right(sums, u * sums[-1]), last) for u in uniform]
