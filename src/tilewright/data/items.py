"""Items of a data set, read one by one, each with random numbers of its own."""

from __future__ import annotations

import threading
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


def read(dataset: Any, row: int, seed: int) -> Any:
    """Item `row`, with its number added to what goes wrong; `seed` is the epoch's."""
    before = getattr(_here, "seed", None)
    # Philox, the engine's generator, makes independent streams of neighbouring seeds.
    _here.seed = (seed + row) % 2**64
    try:
        return dataset[row]
    except Exception as error:
        if hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(f"DataLoader: while reading item {row}")
        raise
    finally:
        _here.seed = before
