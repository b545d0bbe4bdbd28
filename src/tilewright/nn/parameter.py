"""A tensor that a module trains, and its gradient before the next step."""

from __future__ import annotations

import tilewright as tw
from tilewright import Tensor


class Parameter(Tensor):
    """A tensor that `Module.parameters` finds; shares the memory of `data`.

    >>> import tilewright as tw
    >>> tw.nn.Parameter(tw.zeros((2, 3))).requires_grad
    True
    """

    def __new__(cls, data: Tensor, requires_grad: bool = True) -> Parameter:
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: expected a tensor, got {type(data).__name__}")
        self = Tensor.__new__(cls, data)
        self.requires_grad = requires_grad
        return self


def clear_grads(params: list[Tensor], set_to_none: bool) -> None:
    """Drops the gradients of tensors, or sets those that there are to 0 where they stand."""
    if set_to_none:
        tw._core.zero_grad(params)
        return
    for param in params:
        if param.grad is not None:
            param.grad = param.grad.detach()
            param.grad.zero_()
