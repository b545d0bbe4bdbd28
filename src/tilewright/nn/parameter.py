"""A tensor that a module trains."""

from __future__ import annotations

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
