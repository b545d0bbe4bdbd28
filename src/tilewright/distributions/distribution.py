"""What distributions have in common: shapes, draws, and parameters that are checked."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import tilewright as tw
from tilewright import Tensor

Number = Tensor | float
Size = Sequence[int] | int
_Kind = TypeVar("_Kind", bound="Distribution")


class Support(NamedTuple):
    """What values a distribution or its parameter has: in words, and whether given ones are such.

    What holds may be told by element or by row.
    """

    told: str
    holds: Callable[[Any, Tensor], Tensor]  # of the distribution and values


REAL = Support("numbers, not NaN", lambda _, x: ~tw.isnan(x))
POSITIVE = Support("above 0", lambda _, x: x > 0)
NONNEGATIVE = Support("at least 0", lambda _, x: x >= 0)
UNIT = Support("from 0 to 1", lambda _, x: (x >= 0) & (x <= 1))
WHOLE = Support("whole numbers from 0", lambda _, x: (x >= 0) & (x == tw.floor(x)))
SHARES = Support(
    "shares that add up to 1",
    lambda _, x: (x >= 0).all(axis=-1) & (tw.abs(x.sum(axis=-1) - 1) < 1e-6),
)


class Distribution:
    """The base: `batch_shape` is that of the parameters, `event_shape` that of one draw.

    `sample` draws without a gradient, `rsample` with one, where there is one. Both raise TypeError
    or ValueError for sizes that are none. `generator` takes the place of the default one.

    All take `validate_args`. With True, parameters out of their domain and values outside the
    support, which `log_prob` and `cdf` are called with, raise ValueError. With None, the default,
    parameters alone are checked, and those on the CPU alone, as a check waits for the device; with
    False, nothing is. What is not checked counts as the formulas have it: -inf, NaN, or a number
    without a meaning.
    """

    has_rsample = False
    _support = REAL
    _domains: ClassVar[dict[str, Support]] = {}  # of the parameters, by name
    _validate: bool | None = None
    _parameters: tuple[str, ...] = ()  # whose first axes are the batch
    batch_shape: tuple[int, ...] = ()
    event_shape: tuple[int, ...] = ()

    def sample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        """Draws of shape (*sample_shape, *batch_shape, *event_shape)."""
        with tw.no_grad():
            return self._draw(self._shape(sample_shape), generator)

    def rsample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        """The same as a function of the parameters, through which gradients go."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__}: draws have no gradient; use sample")
        return self._draw(self._shape(sample_shape), generator)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or the probability of values, which broadcast."""
        self._check_value(value)
        return self._log_prob(value)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        self._check_value(value)
        return self._cdf(value)

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`: below which draws have the probability `value`, from 0 to 1."""
        raise NotImplementedError(f"{type(self).__name__}: icdf")

    def expand(self: _Kind, batch_shape: Size) -> _Kind:
        """The same with a batch of another shape, to which the parameters broadcast.

        Raises ValueError where they do not.
        """
        shape = (batch_shape,) if isinstance(batch_shape, int) else tuple(batch_shape)
        new, axes = copy.copy(self), len(self.batch_shape)
        parts = {key: x for key, x in vars(self).items() if isinstance(x, Distribution)}
        if not parts and not self._parameters:
            raise NotImplementedError(f"{type(self).__name__}: expand")
        for key, part in parts.items():
            setattr(new, key, part.expand((*shape, *part.batch_shape[axes:])))
        for key in self._parameters:
            x = getattr(self, key)
            setattr(new, key, tw.broadcast_to(x, (*shape, *x.shape[axes:])))
        new.batch_shape = shape
        return new

    def entropy(self) -> Tensor:
        """Of each distribution of the batch, in nats."""
        raise NotImplementedError(f"{type(self).__name__}: entropy")

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise NotImplementedError(f"{type(self).__name__}: mean")

    @property
    def variance(self) -> Tensor:
        """The expected squared distance from the mean."""
        raise NotImplementedError(f"{type(self).__name__}: variance")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    @property
    def mode(self) -> Tensor:
        """The likeliest value."""
        raise NotImplementedError(f"{type(self).__name__}: mode")

    def perplexity(self) -> Tensor:
        """exp(entropy): how many outcomes of the same probability would have it."""
        return self.entropy().exp()

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: sample")

    def _log_prob(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: log_prob")

    def _cdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: cdf")

    def _shape(self, sample_shape: Size) -> tuple[int, ...]:
        size = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return (*size, *self.batch_shape, *self.event_shape)

    def _set(self, validate_args: bool | None, **parameters: Number) -> None:
        """Parameters as tensors of one shape."""
        name = type(self).__name__
        given = next((x for x in parameters.values() if isinstance(x, Tensor)), None)
        dtype = tw.get_default_dtype() if given is None else given.dtype
        device = None if given is None else given.device
        tensors: list[Tensor] = []
        for key, value in parameters.items():
            if isinstance(value, bool) or not isinstance(value, (Tensor, int, float)):
                raise TypeError(
                    f"{name}: {key} is a tensor or a number, got {type(value).__name__}"
                )
            x = value
            if not isinstance(x, Tensor):
                x = tw.asarray(x, dtype=dtype, device=device)
            if not tw.is_floating_point(x):
                raise TypeError(f"{name}: {key} is floating, got {x.dtype}")
            tensors.append(x)
        together = tw.broadcast_tensors(*tensors)
        for key, x in zip(parameters, together, strict=True):
            setattr(self, key, x)
        self.batch_shape = together[0].shape
        self._parameters, self._validate = tuple(parameters), validate_args
        self._check({key.removesuffix("_given"): getattr(self, key) for key in parameters})

    def _check(self, parameters: Mapping[str, Tensor]) -> None:
        """Raises ValueError for parameters out of their domains, where that is to be checked."""
        for key, x in parameters.items():
            domain = self._domains[key]
            wanted = x.device == "cpu" if self._validate is None else self._validate
            with tw.no_grad():
                if wanted and not bool(domain.holds(self, x.detach()).all()):
                    raise ValueError(f"{type(self).__name__}: {key} must be {domain.told}")

    def _check_value(self, value: Any) -> None:
        if not self._validate:
            return
        name, event = type(self).__name__, self.event_shape
        x = value.detach() if isinstance(value, Tensor) else tw.asarray(value)
        if event and x.shape[-len(event) :] != event:
            raise ValueError(f"{name}: events have the shape {event}, got values of {x.shape}")
        with tw.no_grad():
            if not bool(self._support.holds(self, x).all()):
                raise ValueError(f"{name}: values must be {self._support.told}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch {self.batch_shape}, event {self.event_shape})"


class LocationScale(Distribution):
    """Of one form, moved by `loc`, its likeliest value, and stretched by `scale`."""

    has_rsample = True
    _domains: ClassVar = {"loc": REAL, "scale": POSITIVE}
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Number, scale: Number, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    @property
    def mode(self) -> Tensor:
        return self.loc


def one_of(
    distribution: Any,
    validate_args: bool | None,
    probs: Number | None,
    logits: Number | None,
    **others: Number,
) -> str:
    """Keeps the one that is given beside other parameters; gives its attribute's name."""
    if (probs is None) == (logits is None):
        raise ValueError(f"{type(distribution).__name__}: give probs or logits, one of them")
    if probs is None:
        distribution._set(validate_args, **others, logits_given=logits)
        return "logits_given"
    distribution._set(validate_args, **others, probs_given=probs)
    return "probs_given"


def clamped(probs: Tensor) -> Tensor:
    """Probabilities in [eps, 1 - eps] of their type, whose logarithms have finite gradients.

    Source: PyTorch's torch.distributions.utils.clamp_probs.
    """
    eps = float(tw.finfo(probs.dtype).eps)
    return probs.clip(eps, 1 - eps)
