"""Items of a data set, read one by one, each with random numbers of its own."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import tilewright as tw
from tilewright import Generator

_here = threading.local()


def item_generator() -> Generator:
    """Random numbers for the item that `DataLoader` reads on this thread: the same for any number
    of workers, others in each epoch.

    Raises RuntimeError outside a data set's `__getitem__` that a loader calls.

    >>> import tilewright as tw
    >>> class Noise(tw.data.Dataset):
    ...     def __len__(self):
    ...         return 6
    ...
    ...     def __getitem__(self, i):
    ...         return tw.rand((2,), generator=tw.data.item_generator())
    >>> def first(workers):
    ...     return next(iter(tw.data.DataLoader(Noise(), 3, seed=1, num_workers=workers))).tolist()
    >>> first(0) == first(2)
    True
    """
    seed = getattr(_here, "seed", None)
    if seed is None:
        raise RuntimeError("item_generator: no item is being read by a DataLoader on this thread")
    return tw.Generator(seed)


def read(dataset: Any, rows: list[int], seed: int) -> list[Any]:
    """The items at `rows`; `seed` is the epoch's."""
    give = getattr(dataset, "__getitems__", None)
    if give is None:
        give = partial(operator.getitem, dataset)
        return [_with_seed(give, row, seed + row, f"item {row}") for row in rows]
    items = list(_with_seed(give, rows, seed + sum(rows[:1]), f"items {rows}"))
    if len(items) != len(rows):
        raise ValueError(f"DataLoader: __getitems__ gave {len(items)} items for {len(rows)} rows")
    return items


def _with_seed(give: Callable[[Any], Any], what: Any, seed: int, told: str) -> Any:
    """What the data set gives, with its number added to what goes wrong."""
    before = getattr(_here, "seed", None)
    # Philox, the engine's generator, makes independent streams of neighbouring seeds.
    _here.seed = seed % 2**64
    try:
        return give(what)
    except Exception as error:
        if hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(f"DataLoader: while reading {told}")
        raise
    finally:
        _here.seed = before
