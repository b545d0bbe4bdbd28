"""Names of devices, with the parts that PyTorch's have."""

from __future__ import annotations

import operator


class device(str):  # noqa: N801  (PyTorch's name)
    """The name of a device, such as "cpu" or "cuda:1": a string with `type` and `index`.

    `device("cuda", 1)` is `device("cuda:1")`. Raises ValueError for another index than 0, 1, ...
    Whether such a device is there, is told when it is used.

    >>> import tilewright as tw
    >>> place = tw.device("cuda:1")
    >>> place == "cuda:1", place.type, place.index
    (True, 'cuda', 1)
    """

    __slots__ = ()

    def __new__(cls, type: str, index: int | None = None) -> device:
        """The device of a name, or of a kind and a number."""
        if not isinstance(type, str):
            raise TypeError(f"device: type must be a name such as 'cpu', got {type!r}")
        name = str(type)
        kind, colon, number = name.partition(":")
        if index is not None:
            if colon:
                raise ValueError(f"device: {name!r} has an index already, got {index} as well")
            name, number, colon = f"{kind}:{operator.index(index)}", str(index), ":"
        if not kind.isidentifier() or (colon and not (number.isascii() and number.isdigit())):
            raise ValueError(f"device: expected a name such as 'cpu' or 'cuda:1', got {name!r}")
        return super().__new__(cls, name)

    @property
    def type(self) -> str:
        """The kind of device: "cpu" of all names that start so."""
        return self.partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """Its number among those of its kind, or None where the name has none."""
        number = self.partition(":")[2]
        return int(number) if number else None
