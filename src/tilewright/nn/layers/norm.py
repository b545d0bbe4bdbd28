"""Normalisation layers, with PyTorch's names, arguments and states."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import SupportsIndex

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter


class _LastAxes(Module):
    """What normalises over the last axes: their shape, and a weight for each of their elements."""

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: SupportsIndex | Sequence[SupportsIndex],
        eps: float | None,
        elementwise_affine: bool,
        device: str | None,
        dtype: tw.dtype | None,
    ) -> None:
        name = type(self).__name__
        shape = normalized_shape if isinstance(normalized_shape, Sequence) else (normalized_shape,)
        self.normalized_shape = tuple(_count(name, "normalized_shape", n) for n in shape)
        if not self.normalized_shape:
            raise ValueError(f"{name}: normalized_shape has no axes")
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter(
            "weight", _parameter(tw.ones, self.normalized_shape, elementwise_affine, device, dtype)
        )

    def reset_parameters(self) -> None:
        """Weights of 1, biases of 0."""
        _reset(self)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class LayerNorm(_LastAxes):
    """The last axes, of `normalized_shape`, with mean 0 and variance 1, times weight, plus bias.

    Source: Ba, Kiros, Hinton, "Layer normalization" (2016). Raises ValueError for inputs whose last
    axes differ.

    >>> import tilewright as tw
    >>> tw.nn.LayerNorm(2)(tw.asarray([[1.0, 3.0]])).tolist()
    [[-0.9999949932098389, 0.9999949932098389]]
    """

    bias: Parameter | None
    eps: float

    def __init__(
        self,
        normalized_shape: SupportsIndex | Sequence[SupportsIndex],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, device, dtype)
        has_bias = elementwise_affine and bias
        self.register_parameter(
            "bias", _parameter(tw.zeros, self.normalized_shape, has_bias, device, dtype)
        )
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return tw.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_LastAxes):
    """The last axes, of `normalized_shape`, over the root of their mean square, times weight.

    `eps` None is the step after 1 of the input's type. Source: Zhang, Sennrich, "Root mean square
    layer normalization" (2019). Raises ValueError for inputs whose last axes differ.

    >>> import tilewright as tw
    >>> tw.nn.RMSNorm(2)(tw.asarray([[3.0, 3.0]])).tolist()
    [[1.0, 1.0]]
    """

    def __init__(
        self,
        normalized_shape: SupportsIndex | Sequence[SupportsIndex],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, device, dtype)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return tw.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Groups of the channels of (batch, channels, ...) with mean 0 and variance 1 in each sample.

    Source: Wu, He, "Group normalization" (2018). Raises ValueError where `num_channels` is no
    multiple of `num_groups`, and for inputs with other channels.

    >>> import tilewright as tw
    >>> tw.nn.GroupNorm(2, 4)(tw.randn(3, 4, 5)).shape
    (3, 4, 5)
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        self.num_groups = _count("GroupNorm", "num_groups", num_groups)
        self.num_channels = _count("GroupNorm", "num_channels", num_channels)
        if self.num_groups == 0 or self.num_channels % self.num_groups:
            raise ValueError(
                f"GroupNorm: {num_channels} channels cannot be divided into {num_groups} groups"
            )
        self.eps = eps
        self.affine = affine
        self.register_parameter(
            "weight", _parameter(tw.ones, (self.num_channels,), affine, device, dtype)
        )
        self.register_parameter(
            "bias", _parameter(tw.zeros, (self.num_channels,), affine, device, dtype)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights of 1, biases of 0."""
        _reset(self)

    def forward(self, x: Tensor) -> Tensor:
        _check_channels(self, x, 1, self.num_channels)
        return tw.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class _OfChannels(Module):
    """What normalises by channel and may keep running statistics, as buffers."""

    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    _axes: tuple[str, ...]  # of a batch

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        self.num_features = _count(type(self).__name__, "num_features", num_features)
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (self.num_features,)
        self.register_parameter("weight", _parameter(tw.ones, shape, affine, device, dtype))
        self.register_parameter("bias", _parameter(tw.zeros, shape, affine, device, dtype))
        if track_running_stats:
            self.register_buffer("running_mean", tw.zeros(shape, device=device, dtype=dtype))
            self.register_buffer("running_var", tw.ones(shape, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", tw.zeros((), device=device, dtype=tw.int64))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Running means of 0 and variances of 1, of no batches."""
        for buffer, value in (
            (self.running_mean, 0),
            (self.running_var, 1),
            (self.num_batches_tracked, 0),
        ):
            if buffer is not None:
                buffer.fill_(value)

    def reset_parameters(self) -> None:
        """Weights of 1, biases of 0, and fresh running statistics."""
        self.reset_running_stats()
        _reset(self)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_OfChannels):
    def forward(self, x: Tensor) -> Tensor:
        _check_axes(self, x, self._axes, ("batch", "channels") if len(self._axes) == 3 else ())
        _check_channels(self, x, 1, self.num_features)
        tracks = not self.training or self.track_running_stats
        counts = self.training and tracks
        y = tw.batch_norm(
            x,
            self.running_mean if tracks else None,
            self.running_var if tracks else None,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            self._factor() if counts else 0.0,
            self.eps,
        )
        if counts and self.num_batches_tracked is not None:
            with tw.no_grad():
                self.num_batches_tracked.add_(1)
        return y

    def _factor(self) -> float | Tensor:
        """How far running statistics move: by default a tenth; a batch's share where all count."""
        if self.momentum is not None:
            return self.momentum
        if self.num_batches_tracked is None:  # nobody counts
            return 0.0
        with tw.no_grad():
            return 1 / (self.num_batches_tracked + 1).astype(tw.float64)


class BatchNorm1d(_BatchNorm):
    """Each channel of (batch, channels) or (batch, channels, length) with mean 0 and variance 1.

    In training over the batch, whose statistics the running ones follow by `momentum` (None: the
    average of all batches); in evaluation by the running ones. Source: Ioffe, Szegedy, "Batch
    normalization" (2015). Raises ValueError for other channels, and in training for one value each.

    >>> import tilewright as tw
    >>> tw.nn.BatchNorm1d(2).eval()(tw.zeros((3, 2))).tolist()[0]
    [0.0, 0.0]
    """

    _axes = ("batch", "channels", "length")


class BatchNorm2d(_BatchNorm):
    """BatchNorm1d's work on (batch, channels, height, width).

    >>> import tilewright as tw
    >>> tw.nn.BatchNorm2d(2)(tw.randn(3, 2, 4, 4)).shape
    (3, 2, 4, 4)
    """

    _axes = ("batch", "channels", "height", "width")


class BatchNorm3d(_BatchNorm):
    """BatchNorm1d's work on (batch, channels, depth, height, width).

    >>> import tilewright as tw
    >>> tw.nn.BatchNorm3d(2)(tw.randn(3, 2, 4, 4, 4)).shape
    (3, 2, 4, 4, 4)
    """

    _axes = ("batch", "channels", "depth", "height", "width")


class _InstanceNorm(_OfChannels):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        device: str | None = None,
        dtype: tw.dtype | None = None,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype
        )

    def forward(self, x: Tensor) -> Tensor:
        _check_axes(self, x, self._axes, self._axes[1:])
        single = x.ndim < len(self._axes)
        _check_channels(self, x, 0 if single else 1, self.num_features)
        y = tw.instance_norm(
            tw.expand_dims(x, 0) if single else x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return tw.squeeze(y, 0) if single else y


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each sample of (batch, channels, length) with mean 0 and variance 1.

    One sample may come without the batch axis. With `track_running_stats`, running statistics
    follow those of the samples, and take their place in evaluation. Source: Ulyanov, Vedaldi,
    Lempitsky, "Instance normalization" (2016). Raises ValueError for other channels, and for one
    value each.

    >>> import tilewright as tw
    >>> tw.nn.InstanceNorm1d(2)(tw.randn(3, 2, 8)).shape
    (3, 2, 8)
    """

    _axes = ("batch", "channels", "length")


class InstanceNorm2d(_InstanceNorm):
    """InstanceNorm1d's work on (batch, channels, height, width).

    >>> import tilewright as tw
    >>> tw.nn.InstanceNorm2d(2)(tw.randn(3, 2, 4, 4)).shape
    (3, 2, 4, 4)
    """

    _axes = ("batch", "channels", "height", "width")


class InstanceNorm3d(_InstanceNorm):
    """InstanceNorm1d's work on (batch, channels, depth, height, width).

    >>> import tilewright as tw
    >>> tw.nn.InstanceNorm3d(2)(tw.randn(3, 2, 4, 4, 4)).shape
    (3, 2, 4, 4, 4)
    """

    _axes = ("batch", "channels", "depth", "height", "width")


def _parameter(
    make: Callable[..., Tensor],
    shape: tuple[int, ...],
    wanted: bool,
    device: str | None,
    dtype: tw.dtype | None,
) -> Parameter | None:
    return Parameter(make(shape, device=device, dtype=dtype)) if wanted else None


def _reset(module: Module) -> None:
    with tw.no_grad():
        for name, value in (("weight", 1), ("bias", 0)):
            parameter = getattr(module, name, None)
            if parameter is not None:
                parameter.fill_(value)


def _count(module: str, name: str, value: SupportsIndex) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{module}: {name} is a whole number, got {value!r}")
    if operator.index(value) < 0:
        raise ValueError(f"{module}: {name} is negative: {value}")
    return operator.index(value)


def _check_axes(module: Module, x: Tensor, axes: tuple[str, ...], others: tuple[str, ...]) -> None:
    if x.ndim != len(axes) and x.ndim != len(others):
        known = " or ".join(f"({', '.join(names)})" for names in (axes, others) if names)
        raise ValueError(
            f"{type(module).__name__}: expected an input of axes {known}, got shape {x.shape}"
        )


def _check_channels(module: Module, x: Tensor, axis: int, channels: int) -> None:
    if x.ndim > axis and x.shape[axis] != channels:
        raise ValueError(
            f"{type(module).__name__}: expected {channels} channels along axis {axis}, "
            f"got shape {x.shape}"
        )


class LocalResponseNorm(Module):
    """Channels of x (batch, channels, length, ...) over a power of the mean square around them.

    Source: A. Krizhevsky et al., "ImageNet classification with deep convolutional neural networks",
    NIPS 2012.

    >>> import tilewright as tw
    >>> tw.nn.LocalResponseNorm(2)(tw.ones((1, 3, 2))).shape
    (1, 3, 2)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, x: Tensor) -> Tensor:
        return tw.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
