"""Tensors that a module trains or keeps, and gradients before the next step."""

from __future__ import annotations

from typing import Any

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

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        """Without the gradient, as PyTorch has it: copies of models begin without."""
        from tilewright._engine.pickling import deep_copy  # noqa: PLC0415  (imported on use)

        return deep_copy(self, memo, with_grad=False)  # type: ignore[return-value]


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned to an attribute.

    It shares the memory of `data` and has no gradient; `persistent` says whether it is saved with
    the module. Shapes: any. Types: all. Raises TypeError for what is no tensor.
    Source: PyTorch's torch.nn.Buffer.

    >>> import tilewright as tw
    >>> layer = tw.nn.Module()
    >>> layer.mean = tw.nn.Buffer(tw.zeros((3,)))
    >>> list(layer.state_dict())
    ['mean']
    """

    persistent: bool

    def __new__(cls, data: Tensor, *, persistent: bool = True) -> Buffer:
        if not isinstance(data, Tensor):
            raise TypeError(f"Buffer: expected a tensor, got {type(data).__name__}")
        if not isinstance(persistent, bool):
            raise TypeError(f"Buffer: persistent is True or False, got {persistent!r}")
        self = Tensor.__new__(cls, data.detach())
        self.persistent = persistent
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
