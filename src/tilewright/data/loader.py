"""Batches: whole rows gathered by one native call per tensor, or items read one by one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.data import prefetch as ahead
from tilewright.data.collate import collate as usual_collate
from tilewright.data.file import FileTensor
from tilewright.foreign import as_tensor, is_array


class TensorDataset:
    """Tensors, in memory or in files, whose first axes have equal length; item i is a tuple of
    their rows i. Arrays of NumPy and other libraries become tensors over their memory.

    >>> import tilewright as tw
    >>> len(tw.data.TensorDataset(tw.zeros((5, 2)), tw.zeros((5,))))
    5
    """

    def __init__(self, *tensors: Any) -> None:
        if not tensors:
            raise ValueError("TensorDataset: no tensors")
        self.tensors = tuple(_column(i, tensor) for i, tensor in enumerate(tensors))
        if len({tensor.shape[0] for tensor in self.tensors}) != 1:
            shapes = ", ".join(str(tensor.shape) for tensor in self.tensors)
            raise ValueError(f"TensorDataset: first axes differ: {shapes}")

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{tensor.dtype.name} {tensor.shape}" for tensor in self.tensors)
        return f"TensorDataset({shapes})"


class DataLoader:
    """Iterates over batches; each iteration is an epoch with, when shuffling, an order of its own.

    A single tensor gives tensors, a tuple or list of several gives tuples; arrays of NumPy and
    other libraries count as tensors. Without shuffling batches of tensors in memory are views of
    the data. Rows of a `FileTensor` are read `prefetch` batches ahead while the program works on
    earlier ones; OSError is raised at the batch that cannot be read.

    Any other object with `__getitem__` and `__len__` is asked for its items 0 to len - 1, one at a
    time on this thread, and `collate` makes a batch of a list of them (default:
    `tw.data.collate`); a list of items that are no tensors is such an object.

    `seed` makes the orders reproducible whatever else draws random numbers; `generator` does so
    together with other draws from it; without both the order follows `tw.manual_seed`.

    >>> import tilewright as tw
    >>> [batch.tolist() for batch in tw.data.DataLoader(tw.arange(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        data: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        drop_last: bool = False,
        seed: int | None = None,
        generator: Generator | None = None,
        prefetch: int = 2,
        collate: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        self.batch_size = _whole("batch_size", batch_size, 1)
        if seed is not None and generator is not None:
            raise ValueError("DataLoader: give a seed or a generator, not both")
        if generator is not None and not isinstance(generator, Generator):
            raise TypeError(f"DataLoader: generator is a {type(generator).__name__}")
        if collate is not None and not callable(collate):
            raise TypeError(f"DataLoader: collate is a function, got {type(collate).__name__}")
        self.dataset = _as_dataset(data)
        self.shuffle = _switch("shuffle", shuffle)
        self.drop_last = _switch("drop_last", drop_last)
        self.generator = generator if seed is None else _seeded(seed)
        self.prefetch = _whole("prefetch", prefetch, 0)
        self.collate = collate
        self._single = isinstance(data, FileTensor) or is_array(data)

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        rows = len(self.dataset)
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)

    def __repr__(self) -> str:
        named = type(self.dataset).__name__
        return (
            f"DataLoader({named} of {len(self.dataset)}, batch_size={self.batch_size}, "
            f"shuffle={self.shuffle}, drop_last={self.drop_last})"
        )

    def __iter__(self) -> Iterator[Any]:
        if self.collate is not None or not isinstance(self.dataset, TensorDataset):
            return self._from_items()
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

    def _from_items(self) -> Iterator[Any]:
        order = (self._order() if self.shuffle else tw.arange(len(self.dataset))).tolist()
        for start in self._starts():
            rows = order[start : start + self.batch_size]
            items = [self._item(row) for row in rows]
            yield usual_collate(items, rows) if self.collate is None else self.collate(items)

    def _item(self, row: int) -> Any:
        try:
            item = self.dataset[row]
        except Exception as error:
            if hasattr(error, "add_note"):  # from Python 3.11 on
                error.add_note(f"DataLoader: while reading item {row}")
            raise
        return item[0] if self._single else item

    def _order(self) -> Tensor:
        return tw.randperm(len(self.dataset), generator=self.generator)


def _as_dataset(data: Any) -> Any:
    """The columns of tensors as a TensorDataset, any other data set as it is."""
    if isinstance(data, TensorDataset):
        return data
    if isinstance(data, FileTensor) or is_array(data):
        return TensorDataset(data)
    if isinstance(data, tuple):
        return TensorDataset(*data)
    if isinstance(data, list) and (not data or any(map(_is_column, data))):
        return TensorDataset(*data)
    has_items = all(hasattr(type(data), name) for name in ("__getitem__", "__len__"))
    if not has_items or isinstance(data, (str, bytes, bytearray, Mapping)):
        raise TypeError(
            "DataLoader: expected a tensor or array, a sequence of them, an object with "
            f"__getitem__ and __len__ or a TensorDataset, got {type(data).__name__}"
        )
    return data


def _is_column(value: Any) -> bool:
    return isinstance(value, FileTensor) or is_array(value)


def _column(i: int, value: Any) -> Tensor | FileTensor:
    if not _is_column(value):
        raise TypeError(f"TensorDataset: item {i} is a {type(value).__name__}, not a tensor")
    try:
        tensor = value if isinstance(value, FileTensor) else as_tensor(value)
    except TypeError as error:
        raise TypeError(f"TensorDataset: item {i}: {error}") from None
    if tensor.ndim == 0:
        raise ValueError(f"TensorDataset: tensor {i} has no axis to go along")
    return tensor


def _switch(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"DataLoader: {name} is True or False, got {value!r}")
    return value


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
