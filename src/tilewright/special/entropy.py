"""Terms of entropies."""

from __future__ import annotations

import math
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.argument_names import other_names
from tilewright.autograd import Function
from tilewright.special.checks import real_numbers


@other_names
def entr(x: Tensor) -> Tensor:
    """-x log(x), a term of an entropy: 0 at 0 and negative infinity below.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.entr.

    >>> import tilewright as tw
    >>> tw.special.entr(tw.asarray([0.0, 1.0, -1.0])).tolist()
    [0.0, 0.0, -inf]
    """
    result: Tensor = _Entropy.apply(real_numbers("entr", x))
    return result


class _Entropy(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return tw.where(x < 0, -math.inf, 0 - tw.xlogy(x, x))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * (-tw.log(x) - 1)
