"""Layers that take the size of their input from the first one they see."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.layers.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from tilewright.nn.layers.linear import Linear
from tilewright.nn.layers.norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from tilewright.nn.module.module import Module
from tilewright.nn.module.registry import KINDS, UNSAVED
from tilewright.nn.module.state import put_off


class _Lazy(Module):
    """A layer without the size of its input, its first argument.

    Parameters exist from the start, so that optimisers can be made before the first call, but have
    another size until then. The first call draws them, on the device and in the dtype that the
    layer has by then, and turns the layer into one of its regular class. A layer of a user's class
    on one of these stays of that class, whose methods run, and is lazy no more.
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

    def reset_parameters(self, *args: Any) -> None:
        """Leaves the drawing to the first call."""
        if not is_lazy(self):
            self._regular.reset_parameters(self, *args)

    def __call__(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not is_lazy(self):
            return super().__call__(x, *args, **kwargs)
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
        draws_itself = type(self).reset_parameters is not _Lazy.reset_parameters
        self._take_over(self._made(self._input_size(x)))
        if draws_itself:
            self.reset_parameters()

    def _made(self, size: int) -> Any:
        """A regular layer for inputs of a size."""
        args, kwargs = self._made_of
        for own in [*self.parameters(recurse=False), *self.buffers(recurse=False)][:1]:
            kwargs = {**kwargs, "device": own.device, "dtype": own.dtype}
        return self._regular(size, *args, **kwargs)

    def _take_over(self, made: Any) -> None:
        """Becomes what was made, with the parameters that this layer has, and its mode."""
        for name, parameter in made.named_parameters(recurse=False):
            tw._core._become(self._parameters[name], parameter)
        for name, buffer in made.named_buffers(recurse=False):
            self._buffers[name] = buffer
        del self._made_of, self._size_for_now
        registered = {*KINDS, UNSAVED, *made._parameters, *made._buffers}
        for name in made.__dict__.keys() - registered - {"training"}:
            setattr(self, name, made.__dict__[name])
        if "_regular" in vars(type(self)):
            self.__class__ = self._regular

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """A state says the size, as an input does."""
        size = self._size_in(state_dict, prefix) if is_lazy(self) else None
        if size is None:
            super()._load_from_state_dict(state_dict, prefix, *rest)
            return
        made = self._made(size)
        made._load_from_state_dict(state_dict, prefix, *rest)
        put_off(rest[-1], partial(self._take_over, made))

    def _size_in(self, state: dict[str, Any], prefix: str) -> int | None:
        """The input's size in a state for this layer, None where that does not say it."""
        axis = int(issubclass(self._regular, (Linear, Conv1d, Conv2d, Conv3d)))
        for name in ("weight", "running_mean"):
            shape = getattr(state.get(prefix + name), "shape", ())
            if len(shape) > axis:
                return int(shape[axis]) * (getattr(self, "groups", 1) if axis else 1)
        return None

    def extra_repr(self) -> str:
        settings: str = self._regular.extra_repr(self)
        if not is_lazy(self):
            return settings
        return "?" + settings[len(str(self._size_for_now)) :]


def is_lazy(module: Module) -> bool:
    """Whether a layer waits for its first input, and its parameters for their sizes."""
    return "_made_of" in vars(module) and isinstance(module, _Lazy)


def check_not_lazy(who: str, module: Module) -> None:
    """Raises ValueError for a layer whose parameters have no sizes yet."""
    if is_lazy(module):
        raise ValueError(
            f"{who}: parameters of {type(module).__name__} have no sizes before its first call; "
            "call it once, or load a state, first"
        )


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
