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
        self._keys = tw.empty((batch, heads, length, size), device=device, dtype=dtype)
        width = size if value_size is None else value_size
        self._values = tw.empty((batch, heads, length, width), device=device, dtype=dtype)
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
        tw._core._append_rows(self._keys, self._values, self._filled, key, value)
        self._filled += key.shape[2]

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float | None = None,
        *,
        filled: Tensor | None = None,
    ) -> Tensor:
        """Appends, and attends causally: each query to all before it and to itself.

        query, key and value are (batch, heads, rows, size) of the same new rows; query may have a
        multiple of the cache's heads. No gradients pass. `filled`, an int64 tensor of one element,
        stands for the number of filled rows and leaves `len` as it is, so that a recorded step can
        run again behind other rows; `advance` then counts them.
        """
        known = self._filled if filled is None else filled
        y = tw._core._attend_with_cache(self._keys, self._values, known, query, key, value, scale)
        if filled is None:
            self._filled += key.shape[2]
        return y

    def advance(self, rows: int) -> None:
        """Counts rows that `attend` wrote behind a tensor's number; ValueError beyond the room."""
        if not 0 <= self._filled + rows <= self.length:
            raise ValueError(
                f"KeyValueCache: {rows} rows behind {self._filled} of {self.length} cannot be"
            )
        self._filled += rows

    def reset(self) -> None:
        """Forgets what was appended; the memory stays."""
        self._filled = 0
