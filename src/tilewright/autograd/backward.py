"""Backward passes from several results at once."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright import Tensor, _core
from tilewright._engine.grad_mode import set_grad_enabled


def backward(
    tensors: Tensor | Iterable[Tensor],
    grad_tensors: Tensor | Iterable[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Iterable[Tensor] | None = None,
) -> None:
    """Adds the gradients of all `tensors` together to the grads of the leaves, in one pass.

    `grad_tensors` are the gradients to start from; None stands for 1, of a tensor of one element.
    With `inputs` only their grads are touched; those that `tensors` do not depend on stay as they
    are. Raises RuntimeError for an empty list of them.

    Shapes: tensors of any shapes, each of grad_tensors of its tensor's.
    Types: floating, complex. Result: None.
    Raises RuntimeError for tensors outside any graph and for None beside one of several
    elements, ValueError for gradients of other shapes.
    Source: PyTorch's torch.autograd.backward.

    >>> import tilewright as tw
    >>> x = tw.ones((2,), requires_grad=True)
    >>> tw.autograd.backward([(x * 2.0).sum(), (x * 3.0).sum()]); x.grad.tolist()
    [5.0, 5.0]
    """
    roots = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    seeds: list[Tensor | None]
    if grad_tensors is None:
        seeds = [None] * len(roots)
    else:
        seeds = [grad_tensors] if isinstance(grad_tensors, Tensor) else list(grad_tensors)
    for x in (*roots, *seeds):
        if not isinstance(x, (Tensor, type(None))):
            raise TypeError(f"backward: expected tensors, got {type(x).__name__}")
    if inputs is None:
        _core._backward(roots, seeds, retain_graph, create_graph)
        return
    ends = _listed(inputs)
    grads = _core.grad(roots, ends, seeds, retain_graph, create_graph, allow_unused=True)
    with set_grad_enabled(create_graph):
        for x, g in zip(ends, grads, strict=True):
            _add_grad(x, g)


def _listed(inputs: Tensor | Iterable[Tensor]) -> list[Tensor]:
    if isinstance(inputs, Tensor):
        return [inputs]
    if not isinstance(inputs, Iterable):
        raise TypeError(f"backward: inputs must be a tensor or tensors, got {inputs!r}")
    listed = list(inputs)
    for x in listed:
        if not isinstance(x, Tensor):
            raise TypeError(f"backward: inputs must be tensors, got {type(x).__name__}")
    if not listed:
        raise RuntimeError("backward: inputs are empty; leave them out to reach all leaves")
    return listed


def _add_grad(x: Tensor, g: Tensor | None) -> None:
    if g is not None:
        # One tensor may be the gradient of several inputs, and grads are changed in place.
        x.grad = g.copy() if x.grad is None else x.grad + g
