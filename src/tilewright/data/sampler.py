"""Samplers: in which order, how often and in which batches the items of a data set come."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright._compat.foreign_arrays import is_array
from tilewright.data.checks import generator_of, switch, whole

# Item numbers that are made at once (8 MiB): an epoch may be longer than memory is large.
BLOCK = 1 << 20


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
        if (parts := _parts(self)) is None:
            raise NotImplementedError(f"{type(self).__name__}: define __iter__()")
        return itertools.chain.from_iterable(part.tolist() for part in begun(parts))


def blocks_of(sampler: Any) -> Iterator[Tensor] | None:
    """A new epoch in tensors, where iterating would give the same; None for all other samplers."""
    own = isinstance(sampler, Sampler) and type(sampler).__iter__ is Sampler.__iter__
    return _parts(sampler) if own else None


def _parts(sampler: Sampler) -> Iterator[Tensor] | None:
    """By what the class defines: an attribute `order` of the sampler is its user's own."""
    for kind in type(sampler).__mro__:
        if "_epoch_blocks" in vars(kind):
            return vars(kind)["_epoch_blocks"](sampler)  # type: ignore[no-any-return]
        if callable(vars(kind).get("order")):
            return iter([vars(kind)["order"].__get__(sampler)()])
    return None


def begun(values: Iterator[Any]) -> Iterator[Any]:
    """The same values, the first of them made now."""
    first = list(itertools.islice(values, 1))
    return itertools.chain(first, values)


def counted(rows: int) -> Iterator[Tensor]:
    """0 to rows - 1 in blocks."""
    return (tw.arange(at, min(at + BLOCK, rows)) for at in range(0, rows, BLOCK))


def _drawn_in_blocks(
    count: int, generator: Generator | None, draw: Callable[[int, Generator | None], Tensor]
) -> Iterator[Tensor]:
    """`draw` of so many numbers; where they are many, from a generator that the given one seeds."""
    if count <= BLOCK:
        yield draw(count, generator)
        return
    own = tw.Generator(int(tw.randint(0, 2**63 - 1, (1,), generator=generator).item()))
    for at in range(0, count, BLOCK):
        yield draw(min(BLOCK, count - at), own)


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

    def _epoch_blocks(self) -> Iterator[Tensor]:
        return counted(len(self))


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
        self.data_source = data_source
        self.replacement = switch("RandomSampler", "replacement", replacement)
        self.generator = generator_of("RandomSampler", None, generator)
        self.num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """The length of an epoch: that of the data set, as it is now, unless another was set."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    @num_samples.setter
    def num_samples(self, value: int | None) -> None:
        self._num_samples = (
            None if value is None else whole("RandomSampler", "num_samples", value, 0)
        )
        self._check_size()

    def _check_size(self) -> None:
        rows = len(self.data_source)
        if self.num_samples > rows and not (self.replacement and rows):
            raise ValueError(
                f"RandomSampler: num_samples {self.num_samples} is more than the {rows} items "
                "there are; give replacement=True to draw some again"
            )

    def __len__(self) -> int:
        return self.num_samples

    def order(self) -> Tensor:
        """The item numbers of a new epoch."""
        return joined(self._epoch_blocks())

    def _epoch_blocks(self) -> Iterator[Tensor]:
        self._check_size()
        rows, count = len(self.data_source), self.num_samples
        if not (self.replacement and count):
            return iter([tw.randperm(rows, generator=self.generator)[:count]])
        return _drawn_in_blocks(
            count,
            self.generator,
            lambda size, generator: tw.randint(0, rows, (size,), generator=generator),
        )


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

    weights: Tensor

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        self.replacement = switch("WeightedRandomSampler", "replacement", replacement)
        self.generator = generator_of("WeightedRandomSampler", None, generator)
        self.num_samples = num_samples
        self.weights = _weights(weights)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "num_samples":
            value = whole("WeightedRandomSampler", "num_samples", value, 0)
        if name == "weights":
            value = _weights(value)
        super().__setattr__(name, value)
        if hasattr(self, "weights"):
            self._check_size()

    def _check_size(self) -> None:
        positive = int(tw.sum(self.weights > 0).item())
        if positive < (1 if self.replacement else self.num_samples):
            raise ValueError(
                f"WeightedRandomSampler: {positive} weights above 0 do not give "
                f"{self.num_samples} samples"
            )

    def __len__(self) -> int:
        return self.num_samples

    def order(self) -> Tensor:
        """The item numbers of a new epoch."""
        return joined(self._epoch_blocks())

    def _epoch_blocks(self) -> Iterator[Tensor]:
        self._check_size()
        weights = self.weights.tolist()
        if not self.replacement:
            return iter([tw.asarray(self._drawn_once(weights), dtype=tw.int64)])

        def draw(size: int, generator: Generator | None) -> Tensor:
            return tw.asarray(weighted_choices(weights, _uniform(size, generator)), dtype=tw.int64)

        return _drawn_in_blocks(self.num_samples, self.generator, draw)

    def _drawn_once(self, weights: list[float]) -> list[int]:
        draws = _uniform(len(weights), self.generator)
        # 1 - u, because u may be 0.
        keys = {
            i: math.log(1 - u) / w
            for i, (u, w) in enumerate(zip(draws, weights, strict=True))
            if w > 0
        }
        return sorted(keys, key=lambda i: -keys[i])[: self.num_samples]


def _weights(values: Any) -> Tensor:
    """In float64, in which Python has its numbers."""
    weights = tw.asarray(values if is_array(values) else list(values), dtype=tw.float64)
    if weights.ndim != 1 or not all(0 <= w < math.inf for w in weights.tolist()):
        raise ValueError("WeightedRandomSampler: weights are finite numbers from 0, one an item")
    return weights


def _uniform(count: int, generator: Generator | None) -> list[float]:
    draws: list[float] = tw.rand((count,), dtype=tw.float64, generator=generator).tolist()
    return draws


def joined(parts: Iterator[Tensor]) -> Tensor:
    """The blocks in one tensor."""
    return tw.concat(list(parts))


class BatchSampler:
    """Batches of the item numbers that a sampler gives.

    >>> import tilewright as tw
    >>> list(tw.data.BatchSampler(tw.data.SequentialSampler("abcde"), 2, drop_last=True))
    [[0, 1], [2, 3]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "sampler" and not hasattr(value, "__iter__"):
            raise TypeError(f"BatchSampler: sampler is a {type(value).__name__}, not iterable")
        if name == "batch_size":
            value = whole("BatchSampler", "batch_size", value, 1)
        if name == "drop_last":
            value = switch("BatchSampler", "drop_last", value)
        super().__setattr__(name, value)

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
