"""A layer and the batch norm after it as one layer, for networks that are done with training."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter

_Layer = TypeVar("_Layer", bound=Module)


def fuse_conv_bn_eval(conv: _Layer, bn: Module, transpose: bool = False) -> _Layer:
    """A convolution that does what conv and then bn do in evaluation, transposed ones too.

    Raises RuntimeError for a layer in training and for a norm without running statistics. Source:
    PyTorch's torch.nn.utils.fuse_conv_bn_eval.

    >>> import tilewright as tw
    >>> conv, bn = tw.nn.Conv2d(1, 2, 3).eval(), tw.nn.BatchNorm2d(2).eval()
    >>> x = tw.ones(1, 1, 4, 4)
    >>> tw.allclose(tw.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-5).item()
    True
    """
    fused: _Layer = _fused("fuse_conv_bn_eval", conv, bn, transpose)
    return fused


def fuse_linear_bn_eval(linear: _Layer, bn: Module) -> _Layer:
    """The same for a linear layer.

    Raises RuntimeError for a layer in training and for a norm without running statistics. Source:
    PyTorch's torch.nn.utils.fuse_linear_bn_eval.
    """
    fused: _Layer = _fused("fuse_linear_bn_eval", linear, bn, False)
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of such a layer, of those of both and the norm's running statistics.

    They require grad where the layer's do.

    Shapes: conv_w (out, in, ...), or (in, out, ...) where transpose; the others (out,). Types:
    floating. Result: the same type.
    Raises ValueError for shapes that do not fit. Source: PyTorch's
    torch.nn.utils.fuse_conv_bn_weights.
    """
    if not tw.isdtype(conv_w.dtype, "real floating"):
        raise TypeError(f"fuse_conv_bn_weights: weights are floating, got {conv_w.dtype.name}")
    with tw.no_grad():
        scale = tw.rsqrt(bn_rv + bn_eps)
        scale = scale if bn_w is None else scale * bn_w
        bias = -bn_rm if conv_b is None else conv_b - bn_rm
        bias = bias * scale if bn_b is None else bias * scale + bn_b
        # Transposed weights are (groups * in, out of one group, ...).
        groups = scale.shape[0] // conv_w.shape[1] if transpose else scale.shape[0]
        grouped = conv_w.reshape((groups, -1, *conv_w.shape[1:]))
        lead = (groups, 1, scale.shape[0] // groups)
        weight = grouped * scale.reshape((*lead, *(1 for _ in conv_w.shape[2:])))
        weight = weight.reshape(conv_w.shape).astype(conv_w.dtype)
        bias = bias.astype(conv_w.dtype)
    trains_bias = conv_b is not None and conv_b.requires_grad
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, trains_bias)


def _fused(who: str, layer: Any, bn: Any, transpose: bool) -> Any:
    if layer.training or bn.training:
        raise RuntimeError(f"{who}: both are to be in evaluation: call eval() before")
    if bn.running_mean is None or bn.running_var is None:
        raise RuntimeError(f"{who}: the norm has no running statistics")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        layer.weight,
        layer.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose or getattr(layer, "transposed", False),
    )
    return fused
