"""Items of a data set, made into one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright.foreign import as_tensor, is_array

_REMEDY = "give DataLoader a collate function, which makes a batch of a list of items"


class _Part(NamedTuple):
    """The same place in every item, such as ['image'][0], and the items' numbers."""

    values: Sequence[Any]
    rows: Sequence[int]
    place: str = ""

    def name(self, at: int) -> str:
        return f"DataLoader: item {self.rows[at]}{self.place}"

    def inside(self, key: Any) -> _Part:
        values = [value[key] for value in self.values]
        return self._replace(values=values, place=f"{self.place}[{key!r}]")


def collate(items: Sequence[Any], rows: Sequence[int] | None = None) -> Any:
    """A batch: tensors and arrays are stacked, numbers become a tensor, texts a list.

    Tuples, lists and dicts keep their form, with a batch of each part. `rows` are the items'
    numbers, for errors. Raises ValueError for parts of different shapes, keys or lengths and
    TypeError for other types, mixed ones and different dtypes.

    >>> import tilewright as tw
    >>> batch = tw.data.collate([{"x": tw.ones((2,)), "y": 0}, {"x": tw.zeros((2,)), "y": 1}])
    >>> batch["x"].shape, batch["y"].tolist()
    ((2, 2), [0, 1])
    """
    if not items:
        raise ValueError("collate: no items")
    return _collate(_Part(items, range(len(items)) if rows is None else rows))


def default_collate(batch: Sequence[Any]) -> Any:
    """`collate` by the name that PyTorch has for it."""
    return collate(batch)


def _collate(part: _Part) -> Any:
    first = part.values[0]
    for belongs, make in _KINDS:
        if belongs(first):
            _check_kind(part, belongs)
            return make(part)
    raise TypeError(f"{part.name(0)} is a {type(first).__name__}; {_REMEDY}")


def _check_kind(part: _Part, belongs: Callable[[Any], bool]) -> None:
    for at, value in enumerate(part.values):
        if not belongs(value):
            raise TypeError(
                f"{part.name(at)} is a {type(value).__name__}, "
                f"that of item {part.rows[0]} a {type(part.values[0]).__name__}; {_REMEDY}"
            )


def _stack(part: _Part) -> Tensor:
    tensors = []
    for at, value in enumerate(part.values):
        try:
            tensors.append(as_tensor(value))
        except TypeError as error:
            raise TypeError(f"{part.name(at)}: {error}") from None
        if tensors[at].shape != tensors[0].shape:
            raise ValueError(
                f"{part.name(at)} has shape {tensors[at].shape}, "
                f"that of item {part.rows[0]} {tensors[0].shape}; pad them, or {_REMEDY}"
            )
        if tensors[at].dtype != tensors[0].dtype:
            raise TypeError(
                f"{part.name(at)} is {tensors[at].dtype.name}, "
                f"that of item {part.rows[0]} {tensors[0].dtype.name}; convert one with astype()"
            )
    return tw.stack(tensors)


def _numbers(part: _Part) -> Tensor:
    return tw.asarray(list(part.values))


def _texts(part: _Part) -> list[Any]:
    return list(part.values)


def _mapping(part: _Part) -> dict[Any, Any]:
    keys = list(part.values[0])
    for at, value in enumerate(part.values):
        if set(value) != set(keys):
            raise ValueError(
                f"{part.name(at)} has keys {list(value)}, that of item {part.rows[0]} {keys}"
            )
    return {key: _collate(part.inside(key)) for key in keys}


def _sequence(part: _Part) -> Any:
    first = part.values[0]
    for at, value in enumerate(part.values):
        if len(value) != len(first):
            raise ValueError(
                f"{part.name(at)} has {len(value)} parts, that of item {part.rows[0]} {len(first)}"
            )
    batches = [_collate(part.inside(i)) for i in range(len(first))]
    if isinstance(first, list):
        return batches
    # A named tuple takes its parts as arguments of their own.
    return type(first)(*batches) if hasattr(first, "_fields") else tuple(batches)


# The first that fits counts: NumPy's scalars are Python's floats too, and keep their dtype.
_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[_Part], Any]], ...] = (
    (is_array, _stack),
    (lambda value: isinstance(value, (bool, int, float, complex)), _numbers),
    (lambda value: isinstance(value, (str, bytes)), _texts),
    (lambda value: isinstance(value, Mapping), _mapping),
    (lambda value: isinstance(value, (tuple, list)), _sequence),
)


def pinned(batch: Any) -> Any:
    """The batch with its tensors in pinned memory; what is no tensor, tuple, list or dict stays."""
    if isinstance(batch, Tensor):
        return batch.pin_memory()
    if isinstance(batch, Mapping):
        return {key: pinned(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(pinned, batch))
    return type(batch)(map(pinned, batch)) if isinstance(batch, (tuple, list)) else batch


def converted(item: Any) -> Any:
    """An item by itself: its arrays become tensors, what is no array, tuple, list or dict stays."""
    if is_array(item):
        return as_tensor(item)
    if isinstance(item, Mapping):
        return {key: converted(value) for key, value in item.items()}
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*map(converted, item))
    return type(item)(map(converted, item)) if isinstance(item, (tuple, list)) else item
