"""What distributions have in common: shapes, draws, and parameters that are checked."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeVar

import tilewright as tw
from tilewright import Tensor
from tilewright._arrays.broadcasting import broadcast_tensors

Number = Tensor | float
Size = Sequence[int] | int
_Kind = TypeVar("_Kind", bound="Distribution")


@cache
def finite(dtype: tw.dtype) -> tuple[float, float]:
    """The least and the largest number of a type."""
    return float(tw.finfo(dtype).min), float(tw.finfo(dtype).max)


@cache
def above_0(dtype: tw.dtype) -> tuple[float, float]:
    """The ends of a type's normal numbers above 0."""
    return float(tw.finfo(dtype).smallest_normal), float(tw.finfo(dtype).max)


@cache
def between_0_and_1(dtype: tw.dtype) -> tuple[float, float]:
    """The ends of a type's numbers that are neither 0 nor 1."""
    return float(tw.finfo(dtype).smallest_normal), 1 - float(tw.finfo(dtype).eps) / 2


@cache
def _narrower(wide: str) -> tuple[tw.dtype, ...]:
    """The types of fewer bits."""
    known = (tw.float16, tw.bfloat16, tw.float32, tw.float64)
    bits = tw.finfo(getattr(tw, wide)).bits
    return tuple(dtype for dtype in known if tw.finfo(dtype).bits < bits)


class Support(NamedTuple):
    """What values a distribution or its parameter has: in words, and whether given ones are such.

    What holds may be told by element or by row. Draws lie between the ends, where the density is
    finite: rounding to a type must not take them to an infinity, or to a 0 or 1 of an open range.
    """

    told: str
    holds: Callable[[Any, Tensor], Tensor]  # of the distribution and values
    ends: Callable[[tw.dtype], tuple[float, float]] = finite


REAL = Support("numbers, not NaN", lambda _, x: ~tw.isnan(x))
POSITIVE = Support("above 0", lambda _, x: x > 0)
NONNEGATIVE = Support("at least 0", lambda _, x: x >= 0)
UNIT = Support("from 0 to 1", lambda _, x: (x >= 0) & (x <= 1))
WHOLE = Support("whole numbers from 0", lambda _, x: (x >= 0) & (x == tw.floor(x)))
INSIDE_UNIT = UNIT._replace(ends=between_0_and_1)
SHARES = Support(
    "shares that add up to 1",
    lambda _, x: (x >= 0).all(axis=-1) & (tw.abs(x.sum(axis=-1) - 1) < 1e-6 + _rounding(x)),
    between_0_and_1,
)


def _rounding(x: Tensor) -> float:
    return float(tw.finfo(x.dtype).eps) if x.is_floating_point() else 0.0


class Distribution:
    """The base: `batch_shape` is that of the parameters, `event_shape` that of one draw.

    `sample` draws without a gradient, `rsample` with one, where there is one. Both raise TypeError
    or ValueError for sizes that are none. `generator` takes the place of the default one.

    All take `validate_args`. With True, parameters out of their domain and values outside the
    support, which `log_prob` and `cdf` are called with, raise ValueError. With None, the default,
    parameters alone are checked, and those on the CPU alone, as a check waits for the device; with
    False, nothing is. What is not checked counts as the formulas have it: -inf, NaN, or a number
    without a meaning.

    A class of one's own calls `super().__init__` with its shapes and defines `sample` or `rsample`
    and `log_prob`; whatever is made of distributions calls these.
    """

    has_rsample = False
    _support = REAL
    _domains: ClassVar[dict[str, Support]] = {}  # of the parameters, by name
    _validate: bool | None = None
    _parameters: tuple[str, ...] = ()  # whose first axes are the batch
    batch_shape: tuple[int, ...] = ()
    event_shape: tuple[int, ...] = ()
    # Draws and densities of narrower types are computed in this one and rounded once. None: as the
    # parts of the distribution compute them.
    _computed_in: ClassVar[str | None] = "float32"
    _given_type: tw.dtype | None = None  # of parameters that were widened

    def __init__(
        self,
        batch_shape: Size = (),
        event_shape: Size = (),
        validate_args: bool | None = None,
    ) -> None:
        self.batch_shape, self.event_shape = _tuple(batch_shape), _tuple(event_shape)
        self._validate = validate_args

    def __setattr__(self, name: str, value: Any) -> None:
        """A parameter that is given anew is checked and converted as the first was."""
        if name in self._parameters:
            value = self._replacement(name, value)
        super().__setattr__(name, value)

    def sample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        """Draws of shape (*sample_shape, *batch_shape, *event_shape)."""
        kind = type(self)
        with tw.no_grad():
            if kind._draw is Distribution._draw and kind.rsample is not Distribution.rsample:
                return draws(self.rsample, sample_shape, generator)
            return self._drawn(self._shape(sample_shape), generator)

    def rsample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        """The same as a function of the parameters, through which gradients go."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__}: draws have no gradient; use sample")
        return self._drawn(self._shape(sample_shape), generator)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or the probability of values, which broadcast."""
        self._check_value(value)
        wide = self._in_wider_type(self._computed_in)
        if wide is self:
            return self._log_prob(value)
        return self._rounded(wide._log_prob(wide._as_computed(value)), value)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        self._check_value(value)
        wide = self._in_wider_type(self._computed_in)
        if wide is self:
            return self._cdf(value)
        return self._rounded(wide._cdf(wide._as_computed(value)), value)

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`: below which draws have the probability `value`, from 0 to 1."""
        raise NotImplementedError(f"{type(self).__name__}: icdf")

    def expand(self: _Kind, batch_shape: Size) -> _Kind:
        """The same with a batch of another shape, to which the parameters broadcast.

        Raises ValueError where they do not.
        """
        shape, new, axes = _tuple(batch_shape), copy.copy(self), len(self.batch_shape)
        parts = {key: x for key, x in vars(self).items() if isinstance(x, Distribution)}
        if not parts and not self._parameters:
            raise NotImplementedError(f"{type(self).__name__}: expand")
        for key, part in parts.items():
            setattr(new, key, part.expand((*shape, *part.batch_shape[axes:])))
        for key in self._parameters:
            x = getattr(self, key)
            vars(new)[key] = tw.broadcast_to(x, (*shape, *x.shape[axes:]))
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
        return (*_tuple(sample_shape), *self.batch_shape, *self.event_shape)

    def _drawn(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        """Draws, rounded to the parameters' type and inside the support."""
        wide = self._in_wider_type(self._computed_in)
        y = wide._draw(shape, generator)
        if not y.is_floating_point():
            return y
        own = self._type()
        return self._inside(y if wide is self or own is None else y.astype(own))

    def _inside(self, y: Tensor) -> Tensor:
        return y.clip(*self._support.ends(y.dtype))

    def _type(self) -> tw.dtype | None:
        """The parameters' type, of which results are; None without any."""
        if self._parameters:
            x: Tensor = vars(self)[self._parameters[0]]
            return x.dtype
        parts = (x._type() for x in vars(self).values() if isinstance(x, Distribution))
        return next(parts, None)

    def _in_wider_type(self: _Kind, wanted: str | None) -> _Kind:
        """The same of parameters in a type of at least so many bits."""
        if wanted is None:
            return self
        own = self._type()
        if own is None or own not in _narrower(wanted):
            return self
        new, wide = copy.copy(self), getattr(tw, wanted)
        for key, x in vars(self).items():
            if key in self._parameters:
                vars(new)[key] = x.astype(wide)
            elif isinstance(x, Distribution):
                vars(new)[key] = x._in_wider_type(wanted)
        vars(new)["_given_type"] = own
        return new

    def _as_computed(self, value: Any) -> Any:
        """A floating value of a type no narrower than the parameters'."""
        own = self._type()
        if own is None or not isinstance(value, Tensor) or not self._widens(value):
            return value
        return value.astype(tw.result_type(value.dtype, own))

    def _widens(self, value: Tensor) -> bool:
        return value.is_floating_point()

    def _rounded(self, result: Tensor, value: Any) -> Tensor:
        """In the common type of parameters and values."""
        own = self._type()
        if own is not None and isinstance(value, Tensor) and value.is_floating_point():
            own = tw.result_type(own, value.dtype)
        return result if own is None else result.astype(own)

    def _set(self, validate_args: bool | None, **parameters: Number) -> None:
        """Parameters as tensors of one shape."""
        given = next((x for x in parameters.values() if isinstance(x, Tensor)), None)
        tensors = [self._tensor(key, value, given) for key, value in parameters.items()]
        together = broadcast_tensors(*tensors)
        own = vars(self)  # the first ones are no replacements
        own.update(zip(parameters, together, strict=True))
        own["batch_shape"] = together[0].shape
        own["_parameters"], own["_validate"] = tuple(parameters), validate_args
        self._check({key.removesuffix("_given"): own[key] for key in parameters})

    def _tensor(self, key: str, value: Any, like: Tensor | None) -> Tensor:
        name = type(self).__name__
        if isinstance(value, bool) or not isinstance(value, (Tensor, int, float)):
            raise TypeError(f"{name}: {key} is a tensor or a number, got {type(value).__name__}")
        if not isinstance(value, Tensor):
            dtype = tw.get_default_dtype() if like is None else like.dtype
            return tw.asarray(value, dtype=dtype, device=None if like is None else like.device)
        if not tw.is_floating_point(value):
            raise TypeError(f"{name}: {key} is floating, got {value.dtype}")
        return value

    def _replacement(self, key: str, value: Any) -> Tensor:
        before: Tensor = getattr(self, key)
        x = self._tensor(key, value, before)
        try:
            x = tw.broadcast_to(x, before.shape)
        except ValueError:
            raise ValueError(
                f"{type(self).__name__}: {key} of shape {x.shape} does not fit the batch "
                f"{self.batch_shape}; make a new distribution"
            ) from None
        self._check({key.removesuffix("_given"): x})
        return x

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


def clamped(probs: Tensor, given_type: tw.dtype | None = None) -> Tensor:
    """Probabilities in [eps, 1 - eps] of their type, whose logarithms have finite gradients.

    `given_type` is the one that they had before they were widened. Source: PyTorch's
    torch.distributions.utils.clamp_probs.
    """
    eps = float(tw.finfo(given_type or probs.dtype).eps)
    return probs.clip(eps, 1 - eps)


def draws(method: Callable[..., Tensor], sample_shape: Size, generator: Any) -> Tensor:
    """Of a distribution's `sample` or `rsample`, which may know of no generator."""
    if generator is None:
        return method(sample_shape)
    return method(sample_shape, generator=generator)


def _tuple(size: Size) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(size)
