"""NAdam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer
from tilewright.optim.optimizer import alike
from tilewright.optim.settings import Group


class NAdam(FusedOptimizer):
    """Adam with Nesterov's momentum, whose strength grows by `momentum_decay`.

    The state "mu_product" is the product of the momenta of all steps so far.
    Source: T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.NAdam([x], lr=0.5).step(); round(x.item(), 4)
    0.4718
    """

    rows = ("nadam_step",)
    numbers = ("mu_product",)
    adjusted = ("mu_product",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 2e-3,
        betas: tuple[float, float] = OF_ROW,
        eps: float = OF_ROW,
        weight_decay: float = OF_ROW,
        momentum_decay: float = OF_ROW,
        decoupled_weight_decay: bool = OF_ROW,
        *,
        maximize: bool = OF_ROW,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def new_state(self, name: str, group: Group, param: Tensor) -> Any:
        return 1.0 if name == "mu_product" else super().new_state(name, group, param)

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Any]],
        step: int,
    ) -> None:
        row = self.row_of(group)
        mean, square = row.states
        products = state["mu_product"]
        for product, (p, g, m, v) in alike(products, params, grads, state[mean], state[square]):
            row.step(group, step, p, g, {mean: m, square: v}, mu_product=product)
        momentum = group["betas"][0] * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
        products[:] = [product * momentum for product in products]
