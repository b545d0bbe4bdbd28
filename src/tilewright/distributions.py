"""Distributions to draw from, with log-probabilities that have gradients, by PyTorch's names.

What reinforcement learning and variational models name first: `Normal`, `Uniform`, `Bernoulli`,
`Categorical`, several as one with `Independent`, and `kl_divergence` between two of a kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor

_Number = Tensor | float
_Size = Sequence[int] | int


class Distribution:
    """The base: `batch_shape` is that of the parameters, `event_shape` that of one draw.

    `sample` draws without a gradient, `rsample` with one, where there is one. Both raise TypeError
    or ValueError for sizes that are none. `generator` takes the place of the default one.
    """

    has_rsample = False
    batch_shape: tuple[int, ...] = ()
    event_shape: tuple[int, ...] = ()

    def sample(self, sample_shape: _Size = (), *, generator: Any = None) -> Tensor:
        """Draws of shape (*sample_shape, *batch_shape, *event_shape)."""
        with tw.no_grad():
            return self._draw(self._shape(sample_shape), generator)

    def rsample(self, sample_shape: _Size = (), *, generator: Any = None) -> Tensor:
        """The same as a function of the parameters, through which gradients go."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__}: draws have no gradient; use sample")
        return self._draw(self._shape(sample_shape), generator)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or the probability of values, which broadcast."""
        raise NotImplementedError(f"{type(self).__name__}: log_prob")

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

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: sample")

    def _shape(self, sample_shape: _Size) -> tuple[int, ...]:
        size = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return (*size, *self.batch_shape, *self.event_shape)

    def _set(self, **parameters: _Number) -> None:
        """Parameters as tensors of one shape."""
        name = type(self).__name__
        given = next((x for x in parameters.values() if isinstance(x, Tensor)), None)
        dtype = tw.get_default_dtype() if given is None else given.dtype
        tensors: list[Tensor] = []
        for key, value in parameters.items():
            if isinstance(value, bool) or not isinstance(value, (Tensor, int, float)):
                raise TypeError(
                    f"{name}: {key} is a tensor or a number, got {type(value).__name__}"
                )
            x = value if isinstance(value, Tensor) else tw.asarray(value, dtype=dtype)
            if not tw.is_floating_point(x):
                raise TypeError(f"{name}: {key} is floating, got {x.dtype}")
            tensors.append(x)
        together = tw.broadcast_tensors(*tensors)
        for key, x in zip(parameters, together, strict=True):
            setattr(self, key, x)
        self.batch_shape = together[0].shape

    def _check(self, key: str, holds: Callable[[Tensor], Tensor], told: str) -> None:
        x = getattr(self, key).detach()
        if x.device == "cpu" and not bool(holds(x).all()):
            raise ValueError(f"{type(self).__name__}: {key} must be {told}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch {self.batch_shape}, event {self.event_shape})"


class Normal(Distribution):
    """Normal distributions of mean `loc` and standard deviation `scale`.

    Shapes: loc and scale broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for scales that are not above 0, where they are on the CPU, and TypeError for
    other types. Source: PyTorch's torch.distributions.Normal.

    >>> import tilewright as tw
    >>> round(tw.distributions.Normal(0.0, 1.0).log_prob(tw.asarray(0.0)).item(), 4)
    -0.9189
    """

    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: _Number, scale: _Number) -> None:
        self._set(loc=loc, scale=scale)
        self._check("scale", lambda x: x > 0, "above 0")

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        noise = tw.randn(*shape, dtype=self.loc.dtype, device=self.loc.device, generator=generator)
        return self.loc + self.scale * noise

    def log_prob(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        return -0.5 * z.square() - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        return 0.5 * tw.erfc((self.loc - value) / (self.scale * math.sqrt(2)))

    def entropy(self) -> Tensor:
        return self.scale.log() + 0.5 * math.log(2 * math.pi * math.e)


class Uniform(Distribution):
    """Uniform distributions in [low, high).

    Shapes: low and high broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for a low that is not below high, where they are on the CPU, and TypeError for
    other types. Source: PyTorch's torch.distributions.Uniform.

    >>> import tilewright as tw
    >>> tw.distributions.Uniform(0.0, 2.0).mean.item()
    1.0
    """

    has_rsample = True
    low: Tensor
    high: Tensor

    def __init__(self, low: _Number, high: _Number) -> None:
        self._set(low=low, high=high)
        self._check("low", lambda x: x < self.high.detach(), "below high")

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        share = tw.rand(*shape, dtype=self.low.dtype, device=self.low.device, generator=generator)
        return self.low + (self.high - self.low) * share

    def log_prob(self, value: Tensor) -> Tensor:
        inside = (value >= self.low) & (value < self.high)
        return tw.where(inside, -(self.high - self.low).log(), -math.inf)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Bernoulli(Distribution):
    """1 with probability `probs`, else 0; `logits` are log(probs / (1 - probs)).

    Shapes: probs or logits are the batch. Types: floating. Result: the same type.
    Raises ValueError unless one of both is given and for probs outside [0, 1], where they are on
    the CPU, and TypeError for other types. Source: PyTorch's torch.distributions.Bernoulli.

    >>> import tilewright as tw
    >>> tw.distributions.Bernoulli(0.25).variance.item()
    0.1875
    """

    probs_given: Tensor  # the one or the other
    logits_given: Tensor

    def __init__(self, probs: _Number | None = None, logits: _Number | None = None) -> None:
        self._given = _one_of(self, probs, logits)

    @property
    def probs(self) -> Tensor:
        """The probabilities of 1."""
        return self.logits_given.sigmoid() if self._given == "logits_given" else self.probs_given

    @property
    def logits(self) -> Tensor:
        """log(probs / (1 - probs))."""
        if self._given == "logits_given":
            return self.logits_given
        return tw.log(self.probs_given) - tw.log1p(-self.probs_given)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        p = self.probs
        return p * (1 - p)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        return tw.bernoulli(self.probs, shape, generator=generator)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._given == "probs_given":
            return tw.xlogy(value, self.probs) + tw.xlog1py(1 - value, -self.probs)
        x, t = tw.broadcast_tensors(self.logits, value)
        return -tw.binary_cross_entropy_with_logits(x, t.astype(x.dtype), reduction="none")

    def entropy(self) -> Tensor:
        p = self.probs
        return -tw.xlogy(p, p) - tw.xlog1py(1 - p, -p)


class Categorical(Distribution):
    """Classes 0, 1, ... with probabilities that are proportional to `probs`, or to exp(logits).

    Shapes: probs or logits (..., classes), of which (...) is the batch. Types: floating; draws are
    int64. Result: log-probabilities of the same type.
    Raises ValueError unless one of both is given, for numbers without an axis and for probs below
    0, where they are on the CPU, and TypeError for other types. Source: PyTorch's
    torch.distributions.Categorical.

    >>> import tilewright as tw
    >>> policy = tw.distributions.Categorical(logits=tw.zeros(4))
    >>> round(policy.log_prob(tw.asarray(2)).exp().item(), 4)
    0.25
    """

    probs_given: Tensor  # the one or the other
    logits_given: Tensor

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None) -> None:
        self._given = _one_of(self, probs, logits)
        x = getattr(self, self._given)
        if x.ndim == 0:
            raise ValueError("Categorical: expected probabilities (..., classes), got a number")
        self.batch_shape = x.shape[:-1]

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        if self._given == "logits_given":
            return self.logits_given.log_softmax(-1)
        return self.probs.log()

    @property
    def probs(self) -> Tensor:
        """Probabilities, whose sum is 1."""
        if self._given == "logits_given":
            return self.logits_given.softmax(-1)
        return self.probs_given / self.probs_given.sum(axis=-1, keepdims=True)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        p = self.probs
        count = math.prod(shape[: len(shape) - len(self.batch_shape)])
        rows = p.reshape((-1, p.shape[-1]))
        if not count or not rows.shape[0]:
            return tw.zeros(shape, dtype=tw.int64, device=p.device)
        drawn = tw.multinomial(rows, count, replacement=True, generator=generator)
        return drawn.mT.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        if not tw.isdtype(value.dtype, "integral"):
            raise TypeError(f"Categorical: values are classes, integers, got {value.dtype}")
        shape = tw.broadcast_shapes(value.shape, self.batch_shape)
        logits = tw.broadcast_to(self.logits, (*shape, self.logits.shape[-1]))
        index = tw.broadcast_to(value, shape).unsqueeze(-1)
        return logits.gather(-1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        return -tw.where(self.probs > 0, self.probs * self.logits, 0.0).sum(axis=-1)


class Independent(Distribution):
    """The last axes of a batch as one event, whose log-probabilities add up.

    Raises TypeError for what is no distribution and ValueError for more axes than the batch has.
    Source: PyTorch's torch.distributions.Independent.

    >>> import tilewright as tw
    >>> d = tw.distributions.Independent(tw.distributions.Normal(tw.zeros(2, 3), 1.0), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(tw.zeros(2, 3)).shape
    ((2,), (3,), (2,))
    """

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int) -> None:
        if not isinstance(base_distribution, Distribution):
            kind = type(base_distribution).__name__
            raise TypeError(f"Independent: expected a distribution, got {kind}")
        batch, n = base_distribution.batch_shape, reinterpreted_batch_ndims
        if not 0 <= n <= len(batch):
            raise ValueError(f"Independent: {n} axes of a batch {batch}")
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = n
        self.has_rsample = base_distribution.has_rsample
        self.batch_shape = batch[: len(batch) - n]
        self.event_shape = (*batch[len(batch) - n :], *base_distribution.event_shape)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        return self.base_dist._draw(shape, generator)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self._summed(self.base_dist.entropy())

    def _summed(self, x: Tensor) -> Tensor:
        n = self.reinterpreted_batch_ndims
        return x.sum(axis=tuple(range(-n, 0))) if n else x


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence of p from q, two distributions of one kind.

    Raises NotImplementedError for two kinds and ValueError for events of different axes.

    Shapes: batches that broadcast; the result has their shape. Types: floating. Result: the common
    type.
    Source: Kullback, Leibler, "On information and sufficiency" (1951).

    >>> import tilewright as tw
    >>> N = tw.distributions.Normal
    >>> tw.distributions.kl_divergence(N(1.0, 1.0), N(0.0, 1.0)).item()
    0.5
    """
    if isinstance(p, Independent) and isinstance(q, Independent):
        if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
            raise ValueError(f"kl_divergence: events {p.event_shape} and {q.event_shape}")
        return p._summed(kl_divergence(p.base_dist, q.base_dist))
    for kind, formula in _DIVERGENCES.items():
        if isinstance(p, kind) and isinstance(q, kind):
            return formula(p, q)
    raise NotImplementedError(
        f"kl_divergence: of {type(p).__name__} from {type(q).__name__} no formula is known"
    )


def _of_normals(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).square()
    apart = ((p.loc - q.loc) / q.scale).square()
    divergence: Tensor = 0.5 * (ratio + apart - 1 - ratio.log())
    return divergence


def _of_uniforms(p: Any, q: Any) -> Tensor:
    inside = (q.low <= p.low) & (p.high <= q.high)
    return tw.where(inside, ((q.high - q.low) / (p.high - p.low)).log(), math.inf)


def _of_bernoullis(p: Any, q: Any) -> Tensor:
    a, b = p.probs, q.probs
    return (tw.xlogy(a, a) - tw.xlogy(a, b)) + (tw.xlog1py(1 - a, -a) - tw.xlog1py(1 - a, -b))


def _of_categoricals(p: Any, q: Any) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    return tw.where(p.probs > 0, terms, 0.0).sum(axis=-1)


_DIVERGENCES: dict[type[Distribution], Callable[[Any, Any], Tensor]] = {
    Normal: _of_normals,
    Uniform: _of_uniforms,
    Bernoulli: _of_bernoullis,
    Categorical: _of_categoricals,
}


def _one_of(distribution: Any, probs: _Number | None, logits: _Number | None) -> str:
    """Keeps the one that is given, checked; gives its attribute's name."""
    name = type(distribution).__name__
    if probs is not None and logits is None:
        distribution._set(probs_given=probs)
        known = (lambda x: (x >= 0) & (x <= 1)) if name == "Bernoulli" else (lambda x: x >= 0)
        told = "from 0 to 1" if name == "Bernoulli" else "at least 0"
        distribution._check("probs_given", known, told)
        return "probs_given"
    if probs is None and logits is not None:
        distribution._set(logits_given=logits)
        return "logits_given"
    raise ValueError(f"{name}: give probs or logits, one of them")
