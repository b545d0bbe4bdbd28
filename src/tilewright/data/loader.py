"""Batches of a data set: in order, shuffled or sampled; rows are gathered by native code."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.data import items, workers
from tilewright.data import prefetch as ahead
from tilewright.data.checks import generator_of, switch, whole
from tilewright.data.collate import collate as usual_collate
from tilewright.data.collate import converted, pinned
from tilewright.data.dataset import (
    TensorDataset,
    gathers,
    has_items,
    is_column,
    is_iterable_dataset,
)
from tilewright.data.sampler import begun, blocks_of, counted

_WHO = "DataLoader"
# What values of settings must be, when they are given and when they are changed.
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "batch_size": lambda name, value: None if value is None else whole(_WHO, name, value, 1),
    "num_workers": lambda name, value: whole(_WHO, name, value, 0),
    "prefetch": lambda name, value: whole(_WHO, name, value, 0),
    "collate": lambda name, value: _function(value),
    **dict.fromkeys(
        ("shuffle", "drop_last", "pin_memory"), lambda name, value: switch(_WHO, name, value)
    ),
}


class DataLoader:
    """Iterates over batches; each iteration is an epoch with, when shuffling, an order of its own.

    A single tensor gives tensors, a tuple or list of several gives tuples; arrays of NumPy and
    other libraries count as tensors. Without shuffling batches of tensors in memory are views of
    the data. Rows of a `FileTensor` are read `prefetch` batches ahead while the program works on
    earlier ones; OSError is raised at the batch that cannot be read.

    A data set with `gather` (see `Dataset`) is asked for whole batches. Any other object with
    `__getitem__` and `__len__` is asked for its items, one at a time, and `collate_fn` makes a
    batch of a list of them (default: `tw.data.collate`; also called `collate`); a list of items
    that are no tensors is such an object. An `IterableDataset` gives its items in its own order.

    `batch_size` None gives the items themselves, one by one; `collate_fn` is then called with each.

    `num_workers` threads make such batches ahead of their use, `prefetch` a thread, under the modes
    of the thread that takes them: for data sets that wait for files or spend their time in native
    code. Batches, their order and `tw.data.item_generator()` do not depend on how many there are.
    What goes wrong in a data set is raised at its batch, with the item's number; leaving the loop
    early ends the threads.

    `seed` makes the orders reproducible whatever else draws random numbers; `generator` does so
    together with other draws from it; without both the order follows `tw.manual_seed`. A `sampler`
    gives the order in place of `shuffle`, a `batch_sampler` the item numbers of each batch.

    `pin_memory` gives batches whose memory copies to a GPU need not stop for (`Tensor.pin_memory`;
    without a GPU it does nothing). Of PyTorch's other arguments `prefetch_factor` is `prefetch` for
    each worker, `worker_init_fn` is called with its number by each as it starts, and
    `persistent_workers` changes nothing: a thread is quickly started.

    >>> import tilewright as tw
    >>> [batch.tolist() for batch in tw.data.DataLoader(tw.arange(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    collate: Callable[[list[Any]], Any] | None

    def __init__(
        self,
        data: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        *,
        drop_last: bool = False,
        seed: int | None = None,
        generator: Generator | None = None,
        prefetch: int = 2,
        collate: Callable[[list[Any]], Any] | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        pin_memory: bool = False,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        worker_init_fn: Callable[[int], object] | None = None,
    ) -> None:
        # Samplers before the data set: one that has no length will do with them.
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.dataset = data
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.generator = generator_of(_WHO, seed, generator)
        self.num_workers = num_workers
        if prefetch_factor is not None:
            each = whole(_WHO, "prefetch_factor", prefetch_factor, 1)
            prefetch = each * max(self.num_workers, 1)
        self.prefetch = prefetch
        self.pin_memory = pin_memory
        switch(_WHO, "persistent_workers", persistent_workers)
        self.collate = _collate_of(collate, collate_fn)
        self.worker_init_fn = worker_init_fn
        self._check_samplers()
        # Of the current epoch: batches given out, and where its random numbers began.
        self._batch, self._began = 0, self._place()
        self._resumed: Mapping[str, Any] | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        """Settings may be changed; the next epoch follows, the current one has its own."""
        if name == "dataset" and value is not vars(self).get("dataset", self):
            value, self._single = self._as_dataset(value), is_column(value)
        elif name in _CHECKS:
            value = _CHECKS[name](name, value)
        super().__setattr__(name, value)

    @property
    def collate_fn(self) -> Callable[[list[Any]], Any] | None:
        """`collate` by PyTorch's name."""
        return self.collate

    @collate_fn.setter
    def collate_fn(self, function: Callable[[list[Any]], Any] | None) -> None:
        self.collate = function

    @property
    def _size(self) -> int:
        return 1 if self.batch_size is None else self.batch_size

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        if self.batch_sampler is not None:
            return len(self.batch_sampler)  # type: ignore[arg-type]
        rows = len(self.dataset if self.sampler is None else self.sampler)  # type: ignore[arg-type]
        return rows // self._size if self.drop_last else -(-rows // self._size)

    def __repr__(self) -> str:
        named = type(self.dataset).__name__
        count = f" of {len(self.dataset)}" if hasattr(self.dataset, "__len__") else ""
        return (
            f"DataLoader({named}{count}, batch_size={self.batch_size}, "
            f"shuffle={self.shuffle}, drop_last={self.drop_last})"
        )

    def __iter__(self) -> Iterator[Any]:
        self._check_samplers()
        done, batches = self._epoch()
        alone = self._single and self.collate is None and self.batch_size is not None
        pins = self.pin_memory and tw.cuda.is_available()
        for batch in batches:
            done += 1
            self._batch = done
            made = batch[0] if alone else batch
            yield pinned(made) if pins else made
        self._batch, self._began = 0, self._place()

    def state_dict(self) -> dict[str, Any]:
        """Where the current epoch stands: how many batches it gave out, and its random numbers.

        A loader of the same data and settings that loads it goes on with the next batch.
        """
        return {"batch": self._batch, "began": self._began, "now": self._place()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The next iteration is the rest of the epoch that `state_dict` tells of.

        Rows of batches before are not read; an `IterableDataset` must be read up to there. Raises
        ValueError for what is no such state.
        """
        batch = state_dict.get("batch")
        places: list[Any] = [state_dict.get("began"), state_dict.get("now")]
        if type(batch) is not int or batch < 0 or not all(map(_is_place, places)):
            raise ValueError("DataLoader: load_state_dict: not the state of a loader")
        self._resumed = dict(state_dict)
        self._batch, self._began = batch, places[0]
        self._move(places[1])

    def _epoch(self) -> tuple[int, Iterator[Any]]:
        """How many batches are left out, and the others; draws all that the epoch draws."""
        done, now = 0, None
        if self._resumed is not None:
            done, now = self._resumed["batch"], self._resumed["now"]
            self._move(self._resumed["began"] if done else now)
            self._resumed = None
        self._batch, self._began = done, self._place()
        batches = copy.copy(self)._batches(done)  # which no later change of a setting reaches
        if done:
            self._move(now)
        return done, batches

    def _batches(self, done: int) -> Iterator[Any]:
        if is_iterable_dataset(self.dataset):
            return self._made(self._chunks(self.dataset, done), self._collated)
        native = self.collate is None and gathers(self.dataset) and self.batch_size is not None
        if native and type(self.dataset).gather is TensorDataset.gather:
            return self._of_tensors(self.dataset, done)
        orders = self._orders(done)
        make = self.dataset.gather if native else partial(self._items, self._item_seed())
        return self._made(orders, make)

    def _made(self, orders: Iterator[Any], make: Callable[[Any], Any]) -> Iterator[Any]:
        if not self.num_workers:
            return _each(make, orders)
        early = max(self.prefetch, 1) * self.num_workers
        return workers.batches(orders, make, self.num_workers, early, self.worker_init_fn)

    def _of_tensors(self, dataset: TensorDataset, done: int) -> Iterator[tuple[Tensor, ...]]:
        tensors = [tensor for tensor in dataset.tensors if isinstance(tensor, Tensor)]
        if len(tensors) < len(dataset.tensors):
            return ahead.batches(dataset.tensors, self._orders(done), self.prefetch)
        if self.shuffle or self.sampler is not None or self.batch_sampler is not None:
            return _taken(tensors, self._orders(done))
        return self._views(tensors, done)

    def _views(self, tensors: list[Tensor], done: int) -> Iterator[tuple[Tensor, ...]]:
        for start in self._starts(len(self.dataset), done):
            rows = slice(start, start + self._size)
            yield tuple([tensor[rows] for tensor in tensors])

    def _starts(self, rows: int, done: int) -> range:
        size = self._size
        return range(done * size, rows - rows % size if self.drop_last else rows, size)

    def _orders(self, done: int) -> Iterator[Tensor]:
        """The item numbers of each batch; a sampler's epoch begins here, on this thread."""
        if self.batch_sampler is not None:
            return begun(map(_as_rows, itertools.islice(self.batch_sampler, done, None)))
        blocks = self._blocks()
        if blocks is None:
            return begun(map(_as_rows, self._chunks(self.sampler, done)))
        return begun(itertools.islice(_parted(blocks, self._size, self.drop_last), done, None))

    def _blocks(self) -> Iterator[Tensor] | None:
        """The epoch's item numbers in tensors, where the sampler is one that can say so."""
        if self.sampler is not None:
            parts = blocks_of(self.sampler)
            return None if parts is None else map(_as_rows, parts)
        rows = len(self.dataset)
        return (
            iter([tw.randperm(rows, generator=self.generator)]) if self.shuffle else counted(rows)
        )

    def _chunks(self, values: Any, done: int) -> Iterator[list[Any]]:
        """Lists of values, one a batch, without the first `done` lists."""
        rest = itertools.islice(values, done * self._size, None)
        while chunk := list(itertools.islice(rest, self._size)):
            if len(chunk) == self._size or not self.drop_last:
                yield chunk

    def _items(self, seed: int, rows: Tensor) -> Any:
        numbers = rows.tolist()
        read = items.read(self.dataset, numbers, seed)
        return self._collated([item[0] for item in read] if self._single else read, numbers)

    def _collated(self, read: list[Any], rows: list[int] | None = None) -> Any:
        if self.batch_size is None:
            return converted(read[0]) if self.collate is None else self.collate(read[0])
        return usual_collate(read, rows) if self.collate is None else self.collate(read)

    def _item_seed(self) -> int:
        return int(tw.randint(0, 2**63 - 1, (1,), generator=self._random()).item())

    def _random(self) -> Generator:
        """Where an epoch's random numbers come from."""
        inner = getattr(self.batch_sampler, "sampler", None)
        sampler = inner if self.sampler is None else self.sampler
        for generator in (getattr(sampler, "generator", None), self.generator):
            if isinstance(generator, Generator):
                return generator
        return tw._core._default_generator()

    def _place(self) -> tuple[int, int]:
        generator = self._random()
        return generator.seed, generator.position

    def _move(self, place: Any) -> None:
        generator = self._random()
        generator.manual_seed(place[0])
        generator.position = place[1]

    def _as_dataset(self, data: Any) -> Any:
        """The columns of tensors as a TensorDataset, any other data set as it is."""
        if isinstance(data, TensorDataset) or is_iterable_dataset(data):
            return data
        if is_column(data):
            return TensorDataset(data)
        if isinstance(data, tuple):
            return TensorDataset(*data)
        if isinstance(data, list) and (not data or any(map(is_column, data))):
            return TensorDataset(*data)
        samplers = ("sampler", "batch_sampler")
        sampled = any(getattr(self, name, None) is not None for name in samplers)
        gives = hasattr(type(data), "__getitem__") if sampled else has_items(data)
        if not gives or isinstance(data, (str, bytes, bytearray, Mapping)):
            raise TypeError(
                "DataLoader: expected a tensor or array, a sequence of them, an IterableDataset, "
                "an object with __getitem__ and __len__ or a TensorDataset, got "
                f"{type(data).__name__}"
            )
        return data

    def _check_samplers(self) -> None:
        for name in ("sampler", "batch_sampler"):
            value = getattr(self, name)
            if value is not None and not hasattr(value, "__iter__"):
                raise TypeError(f"DataLoader: {name} is a {type(value).__name__}, not iterable")
        own_batches = self.batch_sampler is not None
        if self.batch_size is None and self.drop_last:
            raise ValueError("DataLoader: batch_size=None gives single items; leave drop_last out")
        if self.sampler is not None and (self.shuffle or own_batches):
            other = "batch_sampler" if own_batches else "shuffle"
            raise ValueError(f"DataLoader: give sampler or {other}, not both")
        if own_batches and (self.batch_size != 1 or self.shuffle or self.drop_last):
            raise ValueError(
                "DataLoader: a batch_sampler stands for batch_size, shuffle and drop_last; "
                "leave them out"
            )
        if is_iterable_dataset(self.dataset) and (
            self.shuffle or own_batches or self.sampler is not None
        ):
            raise ValueError(
                f"DataLoader: a {type(self.dataset).__name__} gives its items in its own order; "
                "leave shuffle and samplers out"
            )


def _collate_of(one: Any, other: Any) -> Any:
    if one is not None and other is not None:
        raise ValueError("DataLoader: give collate_fn or collate, not both")
    return other if one is None else one


def _function(value: Any) -> Callable[[list[Any]], Any] | None:
    if value is not None and not callable(value):
        raise TypeError(f"DataLoader: collate is a function, got {type(value).__name__}")
    return value  # type: ignore[no-any-return]


def _taken(tensors: list[Tensor], orders: Iterator[Tensor]) -> Iterator[tuple[Tensor, ...]]:
    # What TensorDataset.gather does, without asking again where each tensor lies.
    for rows in orders:
        yield tuple([tw.take(tensor, rows, axis=0) for tensor in tensors])


def _as_rows(rows: Any) -> Tensor:
    tensor = rows if isinstance(rows, Tensor) else tw.asarray(list(rows), dtype=tw.int64)
    if tensor.ndim != 1 or tensor.dtype != tw.int64:
        raise TypeError(
            "DataLoader: a sampler gives whole numbers, got "
            f"{tensor.dtype.name} of shape {tensor.shape}"
        )
    return tensor


def _each(make: Callable[[Any], Any], orders: Iterator[Any]) -> Iterator[Any]:
    # Unlike map's, a generator's StopIteration is an error, and does not end the epoch.
    for order in orders:
        yield make(order)


def _parted(blocks: Iterator[Tensor], size: int, drop_last: bool) -> Iterator[Tensor]:
    """Parts of `size` of the blocks one behind the other."""
    rest = tw.empty(0, dtype=tw.int64)
    for block in blocks:
        rows = tw.concat([rest, block]) if len(rest) else block
        whole_parts = len(rows) - len(rows) % size
        for start in range(0, whole_parts, size):
            yield rows[start : start + size]
        rest = rows[whole_parts:]
    if len(rest) and not drop_last:
        yield rest


def _is_place(value: Any) -> bool:
    return (
        isinstance(value, (tuple, list))
        and len(value) == 2
        and all(type(number) is int and 0 <= number < 2**64 for number in value)
    )
