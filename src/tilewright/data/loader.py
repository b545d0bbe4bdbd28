"""Batches: whole rows gathered by one native call per tensor."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import tilewright as tw
from tilewright import Generator, Tensor


class TensorDataset:
    """Tensors whose first axes have equal length; item i is a tuple of their rows i.

    >>> import tilewright as tw
    >>> len(tw.data.TensorDataset(tw.zeros((5, 2)), tw.zeros((5,))))
    5
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ValueError("TensorDataset: no tensors")
        for i, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"TensorDataset: item {i} is a {type(tensor).__name__}, not a tensor"
                )
            if tensor.ndim == 0:
                raise ValueError(f"TensorDataset: tensor {i} has no axis to go along")
        if len({tensor.shape[0] for tensor in tensors}) != 1:
            shapes = ", ".join(str(tensor.shape) for tensor in tensors)
            raise ValueError(f"TensorDataset: first axes differ: {shapes}")
        self.tensors = tensors

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)


class DataLoader:
    """Iterates over batches; each iteration is an epoch with, when shuffling, an order of its own.

    A single tensor gives tensors, several give tuples. Without shuffling batches are views of the
    data. `seed` makes the orders reproducible whatever else draws random numbers; `generator` does
    so together with other draws from it; without both the order follows `tw.manual_seed`.

    >>> import tilewright as tw
    >>> [batch.tolist() for batch in tw.data.DataLoader(tw.arange(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        data: Tensor | TensorDataset | Sequence[Tensor],
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        drop_last: bool = False,
        seed: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.batch_size = _whole("batch_size", batch_size, 1)
        if seed is not None and generator is not None:
            raise ValueError("DataLoader: give a seed or a generator, not both")
        if generator is not None and not isinstance(generator, Generator):
            raise TypeError(f"DataLoader: generator is a {type(generator).__name__}")
        self.dataset = _as_dataset(data)
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.generator = generator if seed is None else _seeded(seed)
        self._single = isinstance(data, Tensor)

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        rows = len(self.dataset)
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        batches = self._shuffled() if self.shuffle else self._in_order()
        return (batch[0] for batch in batches) if self._single else batches

    def _starts(self) -> range:
        return range(0, len(self) * self.batch_size, self.batch_size)

    def _in_order(self) -> Iterator[tuple[Tensor, ...]]:
        tensors = self.dataset.tensors
        for start in self._starts():
            rows = slice(start, start + self.batch_size)
            yield tuple([tensor[rows] for tensor in tensors])

    def _shuffled(self) -> Iterator[tuple[Tensor, ...]]:
        tensors = self.dataset.tensors
        order = tw.randperm(len(self.dataset), generator=self.generator)
        for start in self._starts():
            rows = order[start : start + self.batch_size]
            yield tuple([tw.take(tensor, rows, axis=0) for tensor in tensors])


def _as_dataset(data: Tensor | TensorDataset | Sequence[Tensor]) -> TensorDataset:
    if isinstance(data, TensorDataset):
        return data
    if isinstance(data, Tensor):
        return TensorDataset(data)
    if not isinstance(data, Sequence):
        raise TypeError(
            "DataLoader: expected a tensor, a sequence of tensors or a TensorDataset, "
            f"got {type(data).__name__}"
        )
    return TensorDataset(*data)


def _whole(name: str, value: int, smallest: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"DataLoader: {name} is a whole number, got {value!r}")
    if value < smallest:
        raise ValueError(f"DataLoader: {name} must be at least {smallest}, got {value}")
    return operator.index(value)


def _seeded(seed: int) -> Generator:
    seed = _whole("seed", seed, 0)
    if seed >= 2**64:
        raise ValueError(f"DataLoader: seed must be below 2**64, got {seed}")
    return tw.Generator(seed)
