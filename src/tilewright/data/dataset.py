"""Data sets: items by number, or one after another; parts and sums of them."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright._compat.foreign_arrays import as_tensor, is_array
from tilewright.data.file import FileTensor


class Dataset:
    """Base class of data sets whose items have numbers: define `__getitem__` and `__len__`.

    A data set that can make whole batches at once may define `gather(rows)`: the batch of the
    items at `rows`, an int64 tensor of one axis; `DataLoader` then asks for that, not for items.
    `__getitems__(rows)`, of a list of numbers, gives a list of the items, as in PyTorch. Without
    `__len__` a loader needs a sampler that knows the numbers.
    `a + b` is the `ConcatDataset` of both.

    >>> import tilewright as tw
    >>> class Squares(tw.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def __getitem__(self, i):
    ...         return i * i
    >>> [batch.tolist() for batch in tw.data.DataLoader(Squares(), batch_size=3)]
    [[0, 1, 4], [9]]
    """

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: define __getitem__()")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}: define __len__()")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset:
    """Base class of data sets that give their items one after another: define `__iter__`.

    `DataLoader` makes batches in that order. `__len__`, the number of items, is needed for
    `len(loader)` alone. `a + b` is the `ChainDataset` of both.

    >>> import tilewright as tw
    >>> class Countdown(tw.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([3, 2, 1])
    >>> [batch.tolist() for batch in tw.data.DataLoader(Countdown(), batch_size=2)]
    [[3, 2], [1]]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}: define __iter__()")

    def __add__(self, other: Any) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset):
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

    def gather(self, rows: Tensor) -> tuple[Tensor, ...]:
        """The batch of the items at `rows`."""
        return tuple(
            [
                tw.take(tensor, rows, axis=0) if isinstance(tensor, Tensor) else tensor[rows]
                for tensor in self.tensors
            ]
        )

    def __repr__(self) -> str:
        shapes = ", ".join(f"{tensor.dtype.name} {tensor.shape}" for tensor in self.tensors)
        return f"TensorDataset({shapes})"


class ConcatDataset(Dataset):
    """Data sets one behind the other.

    Raises ValueError for none, TypeError for one without items by number.

    >>> import tilewright as tw
    >>> both = tw.data.ConcatDataset([["a", "b"], ["c"]])
    >>> len(both), both[2], both[-3]
    (3, 'c', 'a')
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: no data sets")
        for dataset in self.datasets:
            check_has_items("ConcatDataset", dataset)

    @property
    def cumulative_sizes(self) -> list[int]:
        """Where each data set ends, by the lengths that they have now."""
        return list(itertools.accumulate(len(each) for each in self.datasets))

    def __len__(self) -> int:
        return sum(len(each) for each in self.datasets)

    def __getitem__(self, index: int) -> Any:
        ends = self.cumulative_sizes
        row = checked_index("ConcatDataset", index, ends[-1])
        part = bisect.bisect_right(ends, row)
        return self.datasets[part][row - (ends[part - 1] if part else 0)]


class ChainDataset(IterableDataset):
    """Data sets that give their items one after another, one behind the other.

    >>> import tilewright as tw
    >>> list(tw.data.ChainDataset(["ab", [1]]))
    ['a', 'b', 1]
    """

    def __init__(self, datasets: Iterable[Iterable[Any]]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


class StackDataset(Dataset):
    """Data sets of equal length side by side: items are tuples, or dicts of those given by name.

    Raises ValueError for none or different lengths, TypeError for one without items by number.

    >>> import tilewright as tw
    >>> tw.data.StackDataset("ab", [1, 2])[1], tw.data.StackDataset(x="ab", y=[1, 2])[0]
    (('b', 2), {'x': 'a', 'y': 1})
    """

    def __init__(self, *datasets: Any, **named: Any) -> None:
        if bool(datasets) == bool(named):
            raise ValueError("StackDataset: give data sets, either by place or by name")
        self.datasets: Any = datasets or named
        for dataset in datasets or named.values():
            check_has_items("StackDataset", dataset)
        len(self)

    def __len__(self) -> int:
        named = isinstance(self.datasets, dict)
        lengths = [len(part) for part in (self.datasets.values() if named else self.datasets)]
        if len(set(lengths)) != 1:
            raise ValueError(f"StackDataset: lengths differ: {', '.join(map(str, lengths))}")
        return lengths[0]

    def __getitem__(self, index: int) -> Any:
        row = checked_index("StackDataset", index, len(self))
        if isinstance(self.datasets, dict):
            return {name: dataset[row] for name, dataset in self.datasets.items()}
        return tuple(dataset[row] for dataset in self.datasets)


class Subset(Dataset):
    """The items of a data set at `indices`; batches are gathered as the data set itself does.

    A list of indices is kept, and followed where it changes. Raises IndexError for an index that
    the data set does not have.

    >>> import tilewright as tw
    >>> list(tw.data.Subset("abcd", [3, 0]))
    ['d', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int] | Tensor) -> None:
        check_has_items("Subset", dataset)
        self.dataset = dataset
        self.indices = indices

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "indices":
            value = value.tolist() if isinstance(value, Tensor) else value
            numbers = [checked_index("Subset", index, len(self.dataset)) for index in value]
            value = value if isinstance(value, list) else numbers
        super().__setattr__(name, value)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self._numbers([checked_index("Subset", index, len(self))])[0]]

    def _numbers(self, rows: Iterable[int]) -> list[int]:
        size = len(self.dataset)
        return [checked_index("Subset", self.indices[row], size) for row in rows]

    @property
    def gather(self) -> Callable[[Tensor], Any]:
        """The batch of the items at `rows`, where the data set itself gathers."""
        if not gathers(self.dataset):
            raise AttributeError(f"Subset: a {type(self.dataset).__name__} gathers no batches")
        return lambda rows: self.dataset.gather(
            tw.asarray(self._numbers(rows.tolist()), dtype=tw.int64)
        )

    @property
    def __getitems__(self) -> Callable[[list[int]], Any]:
        """The items at `rows`, where the data set itself gives several at once."""
        give = self.dataset.__getitems__
        return lambda rows: give(self._numbers(rows))


def random_split(
    dataset: Any, lengths: Sequence[float], generator: Generator | None = None
) -> list[Subset]:
    """Parts of a data set, drawn at random without overlap: whole lengths, or fractions of 1.

    Of fractions each part gets the whole number below, and the first parts one of what is left.
    Raises ValueError for lengths that do not sum to the data set's or fractions that do not to 1.

    >>> import tilewright as tw
    >>> parts = tw.data.random_split(range(10), [0.75, 0.25], tw.Generator(0))
    >>> [len(part) for part in parts]
    [8, 2]
    """
    check_has_items("random_split", dataset)
    sizes = _sizes(list(lengths), len(dataset))
    order = tw.randperm(len(dataset), generator=generator).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - n : end]) for n, end in zip(sizes, ends, strict=True)]


def _sizes(lengths: list[float], rows: int) -> list[int]:
    for length in lengths:
        if isinstance(length, bool) or not isinstance(length, (int, float)):
            raise TypeError(f"random_split: lengths are numbers, got {length!r}")
        if not 0 <= length < math.inf:
            raise ValueError(f"random_split: lengths must be at least 0, got {length}")
    if all(isinstance(length, int) for length in lengths):
        if sum(lengths) != rows:
            raise ValueError(
                f"random_split: lengths sum to {sum(lengths)}, the data set has {rows} items"
            )
        return [int(length) for length in lengths]
    if not math.isclose(sum(lengths), 1.0):
        raise ValueError(f"random_split: fractions sum to {sum(lengths):g}, not to 1")
    sizes = [math.floor(length * rows) for length in lengths]
    for i in range(rows - sum(sizes)):
        sizes[i % len(sizes)] += 1
    return sizes


def check_has_items(who: str, dataset: Any) -> None:
    """Raises TypeError for what has no `__getitem__` and `__len__`."""
    if not has_items(dataset):
        raise TypeError(
            f"{who}: expected an object with __getitem__ and __len__, got {type(dataset).__name__}"
        )


def has_items(dataset: Any) -> bool:
    """Whether it has items by number."""
    return all(hasattr(type(dataset), name) for name in ("__getitem__", "__len__"))


def gathers(dataset: Any) -> bool:
    """Whether its batches can be gathered; not where a subclass makes items in a way of its own."""
    for base in type(dataset).__mro__:
        if "gather" in vars(base):
            return hasattr(dataset, "gather")
        if "__getitem__" in vars(base) or "__getitems__" in vars(base):
            return False
    return False


def is_iterable_dataset(data: Any) -> bool:
    """Whether it gives its items one after another: ours, or a data set of PyTorch's class."""
    return any(base.__name__ == "IterableDataset" for base in type(data).__mro__)


def checked_index(who: str, index: Any, length: int) -> int:
    """The index counted from the front; raises IndexError where there is none."""
    try:
        row = operator.index(index)
    except TypeError:
        raise TypeError(f"{who}: an index is a whole number, got {type(index).__name__}") from None
    if not -length <= row < length:
        raise IndexError(f"{who}: index {row} is out of range for {length} items")
    return row + length if row < 0 else row


def is_column(value: Any) -> bool:
    """Whether a TensorDataset can hold it."""
    return isinstance(value, FileTensor) or is_array(value)


def _column(i: int, value: Any) -> Tensor | FileTensor:
    if not is_column(value):
        raise TypeError(f"TensorDataset: item {i} is a {type(value).__name__}, not a tensor")
    try:
        tensor = value if isinstance(value, FileTensor) else as_tensor(value)
    except TypeError as error:
        raise TypeError(f"TensorDataset: item {i}: {error}") from None
    if tensor.ndim == 0:
        raise ValueError(f"TensorDataset: tensor {i} has no axis to go along")
    return tensor
