"""AdaBelief."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer
from tilewright.optim.settings import Group


class AdaBelief(FusedOptimizer):
    """Adam whose scale is how far gradients lie from their running mean, not how large they are.

    Steps are long where the gradient is what its mean foretold. `eps` is added to the mean square
    at each step, and to its root. `weight_decay` is added to the gradient, or shrinks the parameter
    directly where `decoupled_weight_decay`.
    Source: J. Zhuang et al., "AdaBelief optimizer: adapting stepsizes by the belief in observed
    gradients", NeurIPS 2020.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.AdaBelief([x], lr=0.5).step(); round(x.item(), 4)
    0.4444
    """

    rows = ("adabelief_step",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = OF_ROW,
        eps: float = OF_ROW,
        weight_decay: float = OF_ROW,
        *,
        maximize: bool = OF_ROW,
        decoupled_weight_decay: bool = OF_ROW,
    ) -> None:
        super().__init__(params, locals())
