"""Batches: whole rows gathered by one native call per tensor."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.data import prefetch as ahead
from tilewright.data.file import FileTensor


class TensorDataset:
    """Tensors, in memory or in files, whose first axes have equal length; item i is a tuple of
    their rows i.

    >>> import tilewright as tw
    >>> len(tw.data.TensorDataset(tw.zeros((5, 2)), tw.zeros((5,))))
    5
    """

    def __init__(self, *tensors: Tensor | FileTensor) -> None:
        if not tensors:
            raise ValueError("TensorDataset: no tensors")
        for i, tensor in enumerate(tensors):
            if not isinstance(tensor, (Tensor, FileTensor)):
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

    A single tensor gives tensors, several give tuples. Without shuffling batches of tensors in
    memory are views of the data. Rows of a `FileTensor` are read `prefetch` batches ahead while the
    program works on earlier ones; OSError is raised at the batch that cannot be read. `seed` makes
    the orders reproducible whatever else draws random numbers; `generator` does so together with
    other draws from it; without both the order follows `tw.manual_seed`.

    >>> import tilewright as tw
    >>> [batch.tolist() for batch in tw.data.DataLoader(tw.arange(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        data: Tensor | FileTensor | TensorDataset | Sequence[Tensor | FileTensor],
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        drop_last: bool = False,
        seed: int | None = None,
        generator: Generator | None = None,
        prefetch: int = 2,
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
        self.prefetch = _whole("prefetch", prefetch, 0)
        self._single = isinstance(data, (Tensor, FileTensor))

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        rows = len(self.dataset)
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        tensors = [tensor for tensor in self.dataset.tensors if isinstance(tensor, Tensor)]
        if len(tensors) < len(self.dataset.tensors):
            batches = self._from_files()
        else:
            batches = self._shuffled(tensors) if self.shuffle else self._in_order(tensors)
        return (batch[0] for batch in batches) if self._single else batches

    def _starts(self) -> range:
        return range(0, len(self) * self.batch_size, self.batch_size)

    def _in_order(self, tensors: list[Tensor]) -> Iterator[tuple[Tensor, ...]]:
        for start in self._starts():
            rows = slice(start, start + self.batch_size)
            yield tuple([tensor[rows] for tensor in tensors])

    def _shuffled(self, tensors: list[Tensor]) -> Iterator[tuple[Tensor, ...]]:
        order = self._order()
        for start in self._starts():
            rows = order[start : start + self.batch_size]
            yield tuple([tw.take(tensor, rows, axis=0) for tensor in tensors])

    def _from_files(self) -> Iterator[tuple[Tensor, ...]]:
        order = self._order() if self.shuffle else tw.arange(len(self.dataset))
        yield from ahead.batches(self.dataset.tensors, order, self._starts(), self.prefetch)

    def _order(self) -> Tensor:
        return tw.randperm(len(self.dataset), generator=self.generator)


def _as_dataset(
    data: Tensor | FileTensor | TensorDataset | Sequence[Tensor | FileTensor],
) -> TensorDataset:
    if isinstance(data, TensorDataset):
        return data
    if isinstance(data, (Tensor, FileTensor)):
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
