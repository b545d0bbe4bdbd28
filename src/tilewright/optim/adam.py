"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright import Tensor
from tilewright.optim.fused import OF_ROW, FusedOptimizer, Row
from tilewright.optim.settings import Group


class Adam(FusedOptimizer):
    """Steps scaled by running means of the gradient and its square, with bias correction.

    `weight_decay` is added to the gradient, or shrinks the parameter directly where
    `decoupled_weight_decay`; `amsgrad` scales by the largest mean square so far.
    Source: D. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; S. Reddi
    et al., "On the convergence of Adam and beyond", ICLR 2018.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([1.0], dtype=tw.float32); x.requires_grad = True
    >>> (x * x).sum().backward()
    >>> tw.optim.Adam([x], lr=0.5).step(); round(x.item(), 4)
    0.5
    """

    rows = ("adam_step", "amsgrad_step")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = OF_ROW,
        eps: float = OF_ROW,
        weight_decay: float = OF_ROW,
        amsgrad: bool = False,
        *,
        maximize: bool = OF_ROW,
        decoupled_weight_decay: bool = OF_ROW,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def row_of(self, group: Group) -> Row:
        return self._rows[bool(group["amsgrad"])]


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter directly, not through the gradient.

    Source: I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> tw.optim.AdamW([tw.zeros((2,), requires_grad=True)]).defaults["weight_decay"]
    0.01
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = OF_ROW,
        eps: float = OF_ROW,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = OF_ROW,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            decoupled_weight_decay=True,
        )
