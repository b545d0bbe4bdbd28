"""Layers that take the size of their input from the first one they see."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from tilewright.nn.linear import Linear
from tilewright.nn.module import Module
from tilewright.nn.norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)


class _Lazy(Module):
    """A layer without the size of its input, its first argument.

    Parameters exist from the start, so that optimisers can be made before the first call, but have
    another size until then. The first call draws them, on the device and in the dtype that the
    layer has by then, and turns the layer into one of its regular class.
    """

    _regular: ClassVar[Any]  # its class

    def __init_subclass__(cls, regular: type[Module] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if regular is None:  # a user's class on one of these
            return
        cls._regular = regular
        signature = inspect.signature(regular)
        known = list(signature.parameters.values())[1:]
        cls.__signature__ = signature.replace(parameters=known)  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            given = inspect.signature(type(self)).bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        # A size that all settings allow stands for the one to come.
        self._size_for_now: int = given.get("groups", 1)
        self._made_of = args, kwargs
        self._regular.__init__(self, self._size_for_now, *args, **kwargs)

    def reset_parameters(self, *_: Any) -> None:
        """Leaves the drawing to the first call."""

    def __call__(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        self._become_regular(x)
        return self(x, *args, **kwargs)

    def _input_size(self, x: Tensor) -> int:
        """Of the axis of channels; there may be no batch."""
        spatial = int(self._regular.__name__[-2])
        ranks = [spatial + 1, spatial + 2]
        if self._regular is BatchNorm1d:
            ranks = [2, 3]
        elif issubclass(self._regular, (BatchNorm2d, BatchNorm3d)):
            ranks = [spatial + 2]
        if x.ndim not in ranks:
            expected = " or ".join(map(str, ranks))
            raise ValueError(
                f"{type(self).__name__}: expected {expected} dimensions, got shape {x.shape}"
            )
        has_batch = x.ndim == ranks[-1] or self._regular is BatchNorm1d
        return int(x.shape[1 if has_batch else 0])

    def _become_regular(self, x: Tensor) -> None:
        if not isinstance(x, Tensor):
            raise TypeError(f"{type(self).__name__}: expected a Tensor, got {type(x).__name__}")
        args, kwargs = self._made_of
        own = dict(self.named_parameters(recurse=False))
        for held in [*own.values(), *self.buffers(recurse=False)][:1]:
            kwargs = {**kwargs, "device": held.device, "dtype": held.dtype}
        made = self._regular(self._input_size(x), *args, **kwargs)
        for name, parameter in made.named_parameters(recurse=False):
            tw._core._become(own[name], parameter)
        mine = {name: self.__dict__[name] for name in (*own, "training") if name in self.__dict__}
        del self._made_of, self._size_for_now
        self.__dict__.update(made.__dict__)
        self.__dict__.update(mine)
        self.__class__ = self._regular

    def extra_repr(self) -> str:
        settings: str = self._regular.extra_repr(self)
        return "?" + settings[len(str(self._size_for_now)) :]


class LazyLinear(_Lazy, Linear, regular=Linear):
    """Linear without `in_features`: the last extent of the first input.

    >>> import tilewright as tw
    >>> layer = tw.nn.LazyLinear(2)
    >>> layer
    LazyLinear(?, 2, bias=True)
    >>> layer(tw.ones((5, 3))).shape, layer
    ((5, 2), Linear(3, 2, bias=True))
    """

    def _input_size(self, x: Tensor) -> int:
        if x.ndim < 1:
            raise ValueError(f"LazyLinear: expected (..., in_features), got shape {x.shape}")
        return int(x.shape[-1])


class LazyConv1d(_Lazy, Conv1d, regular=Conv1d):
    """Conv1d without `in_channels`: that of the first input."""


class LazyConv2d(_Lazy, Conv2d, regular=Conv2d):
    """Conv2d without `in_channels`: that of the first input."""


class LazyConv3d(_Lazy, Conv3d, regular=Conv3d):
    """Conv3d without `in_channels`: that of the first input."""


class LazyConvTranspose1d(_Lazy, ConvTranspose1d, regular=ConvTranspose1d):
    """ConvTranspose1d without `in_channels`: that of the first input."""


class LazyConvTranspose2d(_Lazy, ConvTranspose2d, regular=ConvTranspose2d):
    """ConvTranspose2d without `in_channels`: that of the first input."""


class LazyConvTranspose3d(_Lazy, ConvTranspose3d, regular=ConvTranspose3d):
    """ConvTranspose3d without `in_channels`: that of the first input."""


class LazyBatchNorm1d(_Lazy, BatchNorm1d, regular=BatchNorm1d):
    """BatchNorm1d without `num_features`: the channels of the first input."""


class LazyBatchNorm2d(_Lazy, BatchNorm2d, regular=BatchNorm2d):
    """BatchNorm2d without `num_features`: the channels of the first input."""


class LazyBatchNorm3d(_Lazy, BatchNorm3d, regular=BatchNorm3d):
    """BatchNorm3d without `num_features`: the channels of the first input."""


class LazyInstanceNorm1d(_Lazy, InstanceNorm1d, regular=InstanceNorm1d):
    """InstanceNorm1d without `num_features`: the channels of the first input."""


class LazyInstanceNorm2d(_Lazy, InstanceNorm2d, regular=InstanceNorm2d):
    """InstanceNorm2d without `num_features`: the channels of the first input."""


class LazyInstanceNorm3d(_Lazy, InstanceNorm3d, regular=InstanceNorm3d):
    """InstanceNorm3d without `num_features`: the channels of the first input."""
