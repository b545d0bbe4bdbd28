"""Items of a data set, made into one batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.foreign_arrays import as_tensor, is_array

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

    Tuples, lists, dicts and others of their kind keep form and type, with a batch of each part.
    `rows` are the items' numbers, for errors. Raises ValueError for parts of different shapes, keys
    or lengths and TypeError for other types, mixed ones and different dtypes.

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


def _mapping(part: _Part) -> Any:
    keys = list(part.values[0])
    for at, value in enumerate(part.values):
        if set(value) != set(keys):
            raise ValueError(
                f"{part.name(at)} has keys {list(value)}, that of item {part.rows[0]} {keys}"
            )
    return _like(part.values[0], {key: _collate(part.inside(key)) for key in keys})


def _sequence(part: _Part) -> Any:
    first = part.values[0]
    for at, value in enumerate(part.values):
        if len(value) != len(first):
            raise ValueError(
                f"{part.name(at)} has {len(value)} parts, that of item {part.rows[0]} {len(first)}"
            )
    return _like(first, [_collate(part.inside(i)) for i in range(len(first))])


def _like(first: Any, parts: Any) -> Any:
    """The parts of a batch in the type of an item; where that cannot be made of them, as they are.

    A defaultdict keeps its factory, an object its other attributes.
    """
    kind = type(first)
    if kind in (dict, list):
        return parts
    if isinstance(first, tuple):
        # A named tuple takes its parts as arguments of their own.
        return kind(*parts) if hasattr(first, "_fields") else _made(kind, parts, tuple)
    if isinstance(first, (MutableMapping, MutableSequence)):
        made = copy.copy(first)
        made.clear()
        made.update(parts) if isinstance(made, MutableMapping) else made.extend(parts)
        return made
    return _made(kind, parts, type(parts))


def _made(kind: Callable[[Any], Any], parts: Any, instead: Callable[[Any], Any]) -> Any:
    try:
        return kind(parts)
    except TypeError:
        return instead(parts)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, (bytearray, memoryview))


# The first that fits counts: NumPy's scalars are Python's floats too, and keep their dtype.
_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[_Part], Any]], ...] = (
    (is_array, _stack),
    (lambda value: isinstance(value, (bool, int, float, complex)), _numbers),
    (lambda value: isinstance(value, (str, bytes)), _texts),
    (lambda value: isinstance(value, Mapping), _mapping),
    (lambda value: isinstance(value, Sequence) and not _is_bytes(value), _sequence),
)


def pinned(batch: Any) -> Any:
    """The batch with its tensors in pinned memory; what else has `pin_memory` is asked for it."""
    return _mapped(batch, lambda part: hasattr(part, "pin_memory"), lambda part: part.pin_memory())


def converted(item: Any) -> Any:
    """An item by itself: its arrays become tensors, what is no array, sequence or dict stays."""
    return _mapped(item, is_array, as_tensor)


def _mapped(value: Any, belongs: Callable[[Any], bool], change: Callable[[Any], Any]) -> Any:
    """What belongs changed, wherever it stands in mappings and sequences."""
    if belongs(value):
        return change(value)
    if isinstance(value, Mapping):
        return _like(value, {key: _mapped(each, belongs, change) for key, each in value.items()})
    if isinstance(value, (tuple, MutableSequence)) and not _is_bytes(value):
        return _like(value, [_mapped(each, belongs, change) for each in value])
    return value
