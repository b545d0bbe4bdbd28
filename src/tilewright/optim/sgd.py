"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer, Row
from tilewright.optim.settings import Group


class SGD(FusedOptimizer):
    """x -= lr · v, v = momentum · v + (1 - dampening) · (g + weight_decay · x); first v = g.

    Source of the Nesterov form: Sutskever et al., "On the importance of initialization and
    momentum in deep learning", ICML 2013.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.
    Source: PyTorch's torch.optim.SGD.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.SGD([x], lr=0.25).step(); x.tolist()
    [0.5]
    """

    rows = ("sgd_step", "momentum_step", "nesterov_step")
    signed = ("dampening",)
    late = ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = OF_ROW,
        weight_decay: float = OF_ROW,
        nesterov: bool = False,
        *,
        maximize: bool = OF_ROW,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("SGD: nesterov needs a momentum above 0 and no dampening")

    def row_of(self, group: Group) -> Row:
        if not group["momentum"]:
            return self._rows[0]
        return self._rows[2 if group["nesterov"] else 1]

    def steps_done(self, group: Group, states: list[dict[str, Any]]) -> list[Any]:
        """A parameter without a momentum begins, whatever steps it has done without."""
        if not group["momentum"]:
            return super().steps_done(group, states)
        for state in states:
            if "momentum_buffer" in state and state["momentum_buffer"] is None:
                del state["momentum_buffer"]
        return [state.get("step", 0) or 1 if "momentum_buffer" in state else 0 for state in states]
