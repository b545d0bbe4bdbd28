"""Writing by an index, in place and without changing the tensor."""

from __future__ import annotations

from collections.abc import Sequence

import tilewright as tw


def index_put(
    x: tw.Tensor,
    indices: Sequence[tw.Tensor],
    values: tw.Tensor | float,
    accumulate: bool = False,
) -> tw.Tensor:
    """A copy `y` of x with `y[indices] = values`, or `y[indices] += values` with accumulate.

    indices are integer tensors that broadcast with each other, or bool masks, for the leading axes;
    values broadcast to what they select, in the dtype of x. Of several values for one place the
    last stays, or all are added. Raises IndexError for indices out of range, ValueError for shapes
    that do not fit, TypeError for values of another dtype.

    Shapes: x of any shape; the result has it.
    Types: all. Result: the same type.
    Source: PyTorch's torch.index_put.

    >>> import tilewright as tw
    >>> tw.index_put(tw.zeros(3), [tw.asarray([0, 2, 0])], 1.0, accumulate=True).tolist()
    [2.0, 0.0, 1.0]
    """
    numbers = tw.arange(x.size, dtype=tw.int64, device=x.device).reshape(x.shape)
    places = numbers[_key("index_put", indices)]
    if isinstance(values, tw.Tensor):
        values = tw.broadcast_to(values, places.shape).reshape(-1)
    write = tw.scatter_add if accumulate else tw.scatter
    return write(x.reshape(-1), 0, places.reshape(-1), values).reshape(x.shape)


def index_put_(
    x: tw.Tensor,
    indices: Sequence[tw.Tensor],
    values: tw.Tensor | float,
    accumulate: bool = False,
) -> tw.Tensor:
    """`index_put` in place, `x[indices] = values`, which gives x.

    Also raises RuntimeError for a leaf that requires grad while recording is on, IndexError for
    indices out of range, ValueError for shapes that do not fit, TypeError for values of another
    dtype.

    Shapes: x of any shape; the result is x.
    Types: all. Result: the same type.
    Source: PyTorch's torch.Tensor.index_put_.

    >>> import tilewright as tw
    >>> x = tw.zeros(3)
    >>> x.index_put_((tw.asarray([0, 2, 0]),), tw.ones(3), accumulate=True).tolist()
    [2.0, 0.0, 1.0]
    """
    if isinstance(values, tw.Tensor) and values.dtype != x.dtype:
        raise TypeError(f"index_put_: values of {values.dtype} for a tensor of {x.dtype}")
    if accumulate:
        return x.copy_(index_put(x, indices, values, accumulate=True))
    x[_key("index_put_", indices)] = values
    return x


def _key(who: str, indices: Sequence[tw.Tensor]) -> tuple[tw.Tensor, ...]:
    """As between brackets."""
    if not all(isinstance(index, tw.Tensor) for index in indices):
        raise TypeError(f"{who}: indices must be tensors")
    return tuple(indices)
