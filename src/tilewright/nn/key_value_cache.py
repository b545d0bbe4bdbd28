"""Keys and values of what a model has read, kept while it writes on."""

from __future__ import annotations

import tilewright as tw
from tilewright import Tensor


class KeyValueCache:
    """Room for `length` keys and values of one attention layer, filled in place without gradients.

    Keys are (batch, heads, length, size), values (batch, heads, length, value_size). Sampling then
    costs one query a step instead of the whole sequence.

    >>> import tilewright as tw
    >>> cache = tw.nn.KeyValueCache(batch=1, heads=2, length=16, size=4)
    >>> x = tw.ones((1, 2, 3, 4))
    >>> cache.attend(x, x, x).shape, len(cache)
    ((1, 2, 3, 4), 3)
    """

    def __init__(
        self,
        batch: int,
        heads: int,
        length: int,
        size: int,
        value_size: int | None = None,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        dtype = dtype or tw.get_default_dtype()
        self._keys = tw.zeros((batch, heads, length, size), device=device, dtype=dtype)
        width = size if value_size is None else value_size
        self._values = tw.zeros((batch, heads, length, width), device=device, dtype=dtype)
        self._filled = 0
        self.length = length

    def __len__(self) -> int:
        """How many rows are filled."""
        return self._filled

    @property
    def keys(self) -> Tensor:
        """A view of the keys that are filled."""
        return self._keys[:, :, : self._filled]

    @property
    def values(self) -> Tensor:
        """A view of the values that are filled."""
        return self._values[:, :, : self._filled]

    def append(self, key: Tensor, value: Tensor) -> None:
        """Writes rows behind the others; ValueError where they do not fit, and nothing changes."""
        for name, x, room in (("key", key, self._keys), ("value", value, self._values)):
            if x.ndim != 4 or x.shape[:2] != room.shape[:2] or x.shape[3] != room.shape[3]:
                raise ValueError(
                    f"KeyValueCache: {name} has shape {x.shape}; expected "
                    f"({room.shape[0]}, {room.shape[1]}, rows, {room.shape[3]})"
                )
        rows = key.shape[2]
        if value.shape[2] != rows:
            raise ValueError(f"KeyValueCache: {rows} rows of keys, but {value.shape[2]} of values")
        past = self._filled + rows
        if past > self.length:
            raise ValueError(
                f"KeyValueCache: {rows} rows do not fit: {self._filled} of {self.length} are "
                "filled; make it longer, or call reset()"
            )
        with tw.no_grad():
            self._keys[:, :, self._filled : past] = key
            self._values[:, :, self._filled : past] = value
        self._filled = past

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
    ) -> Tensor:
        """Appends, and attends causally: each query to all before it and to itself.

        query, key and value are (batch, heads, rows, size) of the same new rows; query may have a
        multiple of the cache's heads. No gradients pass.
        """
        before = self._filled
        if query.ndim != 4 or query.shape[2] != key.shape[2]:
            raise ValueError(
                f"KeyValueCache: query {query.shape} and key {key.shape} have other rows"
            )
        self.append(key, value)
        past, rows = self._filled, query.shape[2]
        mask = None
        if before and rows > 1:
            mask = tw.arange(past) <= tw.expand_dims(tw.arange(before, past), 1)
        with tw.no_grad():
            return tw.scaled_dot_product_attention(
                query,
                self._keys[:, :, :past],
                self._values[:, :, :past],
                mask,
                is_causal=not before and rows > 1,
                scale=scale,
                enable_gqa=query.shape[1] != key.shape[1],
            )

    def reset(self) -> None:
        """Forgets what was appended; the memory stays."""
        self._filled = 0
