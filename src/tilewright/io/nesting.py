"""Nested dictionaries of tensors as flat names and a text of their structure, and back.

The text is JSON. A tensor stands as {"tensor": name}, a dict as {"dict": {...}} or, where a key is
no text, as {"items": [[key, value], ...]}, a list as {"list": [...]}, a tuple as {"tuple": [...]},
inf and nan as {"float": "..."}; texts, whole and other numbers, true, false and null as they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from tilewright import Tensor

_VERSION = 1
# Far below Python's own limit on recursion; a structure that holds itself ends here too.
_DEEPEST = 100
# json reads no longer whole numbers than Python's own limit on texts of them.
_LARGEST_INTEGER_BITS = 4096


def is_flat(tree: Mapping[Any, Any]) -> bool:
    """Whether it maps names to nothing but tensors, which needs no text beside them."""
    return all(isinstance(value, Tensor) for value in tree.values())


def flatten(tree: Mapping[str, Any]) -> tuple[dict[str, Tensor], str]:
    """The tensors by dotted names, and the text from which `restore` makes the tree again.

    Raises TypeError for what no file can hold, ValueError for what is nested too deep.
    """
    tensors: dict[str, Tensor] = {}
    root = _encode(tree, (), tensors)
    return tensors, json.dumps({"version": _VERSION, "root": root}, separators=(",", ":"))


def restore(text: str, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The tree that `flatten` took apart; raises ValueError for a text that does not fit."""
    try:
        told = json.loads(text)
        version, root = told["version"], told["root"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("damaged structure: no JSON with a version and a root") from None
    if version != _VERSION:
        raise ValueError(f"structure of version {version!r}; this Tilewright reads {_VERSION}")
    used: set[str] = set()
    tree = _decode(root, tensors, used, 0)
    if not isinstance(tree, dict):
        raise ValueError("damaged structure: the root is no dict")
    if left := [name for name in tensors if name not in used]:
        raise ValueError(f"damaged structure: tensor {left[0]!r} has no place in it")
    return tree


def _encode(value: Any, path: tuple[Any, ...], tensors: dict[str, Tensor]) -> Any:
    if len(path) > _DEEPEST:
        raise ValueError(
            f"save: {_dotted(path[:3])!r} is nested more than {_DEEPEST} deep, or holds itself"
        )
    if isinstance(value, Tensor):
        return {"tensor": _add(value, path, tensors)}
    if isinstance(value, Mapping):
        return _encode_mapping(value, path, tensors)
    if isinstance(value, (list, tuple)):
        parts = [_encode(part, (*path, i), tensors) for i, part in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": parts}
    return _encode_scalar(value, path)


def _encode_mapping(
    value: Mapping[Any, Any], path: tuple[Any, ...], tensors: dict[str, Tensor]
) -> Any:
    for key in value:
        if not isinstance(key, str) and type(key) is not int:
            raise TypeError(
                f"save: {_dotted(path)!r} has the key {key!r}; keys are texts or whole numbers"
            )
    pairs = [
        [_encode_scalar(key, path), _encode(part, (*path, key), tensors)]
        for key, part in value.items()
    ]
    texts = all(isinstance(key, str) for key in value)
    return {"dict": dict(pairs)} if texts else {"items": pairs}


def _encode_scalar(value: Any, path: tuple[Any, ...]) -> Any:
    where = f"save: {_dotted(path)!r}"
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{where}: {value!r} holds a lone surrogate") from None
        return value
    if isinstance(value, int):
        if value.bit_length() > _LARGEST_INTEGER_BITS:
            raise ValueError(f"{where} is a whole number of {value.bit_length()} bits")
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    raise TypeError(
        f"{where} is a {type(value).__name__}, not a tensor, dict, list, tuple, text, number, "
        "bool or None; make a tensor of an array with tw.asarray()"
    )


def _add(tensor: Tensor, path: tuple[Any, ...], tensors: dict[str, Tensor]) -> str:
    name = _dotted(path)
    # {"a.b": x} and {"a": {"b": x}} in one tree; the text tells which is which.
    while name in tensors or name == "__metadata__":
        name += "'"
    tensors[name] = tensor
    return name


def _dotted(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def _decode(value: Any, tensors: Mapping[str, Tensor], used: set[str], depth: int) -> Any:
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise ValueError("damaged structure: a list without its kind")
        return value
    if len(value) != 1 or depth > _DEEPEST + 1:
        raise ValueError("damaged structure: a part that is nothing known")
    ((kind, content),) = value.items()
    if kind == "tensor":
        if not isinstance(content, str) or content not in tensors:
            raise ValueError(f"damaged structure: no tensor {content!r}")
        used.add(content)
        return tensors[content]
    form, make = _READERS.get(kind, (None, None))
    if form is None or make is None:
        raise ValueError(f"damaged structure: a part of kind {kind!r}")
    if not isinstance(content, form):
        raise ValueError(f"damaged structure: a {kind} that is no {form.__name__}")
    try:
        return make(content, lambda part: _decode(part, tensors, used, depth + 1))
    except TypeError:  # a key that is none
        raise ValueError(f"damaged structure: a {kind} of another form") from None


_Reader = Callable[[Any, Callable[[Any], Any]], Any]
# What JSON has for each kind, and how it is read.
_READERS: dict[str, tuple[type, _Reader]] = {
    "dict": (dict, lambda content, read: {key: read(part) for key, part in content.items()}),
    "items": (list, lambda content, read: {key: read(part) for key, part in content}),
    "list": (list, lambda content, read: [read(part) for part in content]),
    "tuple": (list, lambda content, read: tuple(read(part) for part in content)),
    "float": (str, lambda content, read: float(content)),
}
