"""How far one distribution is from another of its kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.bernoulli import Bernoulli
from tilewright.distributions.categorical import Categorical, OneHotCategorical
from tilewright.distributions.counts import Geometric, Poisson
from tilewright.distributions.distribution import Distribution
from tilewright.distributions.gamma import Beta, Dirichlet, Exponential, Gamma
from tilewright.distributions.independent import Independent
from tilewright.distributions.multivariate_normal import MultivariateNormal
from tilewright.distributions.normal import Normal
from tilewright.distributions.tails import Laplace
from tilewright.distributions.transformed import LogNormal
from tilewright.distributions.uniform import Uniform

_Formula = Callable[[Any, Any], Tensor]
_DIVERGENCES: dict[tuple[type, type], _Formula] = {}


def register_kl(kind_p: type, kind_q: type) -> Callable[[_Formula], _Formula]:
    """Decorates a function of p and q as the divergence of one kind from another.

    Subclasses have it too, unless there is one of their own; the kind of p decides first. Raises
    TypeError for what is no class of distributions. Source: PyTorch's
    torch.distributions.register_kl.

    >>> import tilewright as tw
    >>> class Own(tw.distributions.Normal):
    ...     pass
    >>> @tw.distributions.register_kl(Own, Own)
    ... def _own(p, q):
    ...     return tw.zeros(p.batch_shape)
    >>> tw.distributions.kl_divergence(Own(1.0, 1.0), Own(0.0, 1.0)).item()
    0.0
    """
    for kind in (kind_p, kind_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"register_kl: expected classes of distributions, got {kind!r}")

    def keep(formula: _Formula) -> _Formula:
        _DIVERGENCES[kind_p, kind_q] = formula
        return formula

    return keep


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence of p from q, by the formula that is known for their kinds.

    Raises NotImplementedError where none is (`register_kl` adds one) and ValueError for events of
    different axes.

    Shapes: batches that broadcast; the result has their shape. Types: floating. Result: the common
    type.
    Source: Kullback, Leibler, "On information and sufficiency" (1951).

    >>> import tilewright as tw
    >>> N = tw.distributions.Normal
    >>> tw.distributions.kl_divergence(N(1.0, 1.0), N(0.0, 1.0)).item()
    0.5
    """
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            formula = _DIVERGENCES.get((kind_p, kind_q))
            if formula is not None:
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
    (success, failure), (success_of_q, failure_of_q) = p.logarithms(), q.logarithms()
    of_success = tw.where(b == 0, math.inf, a * (success - success_of_q))
    of_failure = tw.where(b == 1, math.inf, (1 - a) * (failure - failure_of_q))
    return tw.where(a == 0, 0.0, of_success) + tw.where(a == 1, 0.0, of_failure)


def _of_categoricals(p: Any, q: Any) -> Tensor:
    apart = tw.where(p.probs == 0, 0.0, p.logits - q.logits)
    never = (p.probs > 0) & (q.probs == 0)
    return tw.where(never, math.inf, p.probs * apart).sum(axis=-1)


def _of_exponentials(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    divergence: Tensor = ratio - ratio.log() - 1
    return divergence


def _of_laplaces(p: Any, q: Any) -> Tensor:
    ratio, apart = p.scale / q.scale, tw.abs(p.loc - q.loc)
    divergence: Tensor = apart / q.scale + ratio * tw.exp(-apart / p.scale) - ratio.log() - 1
    return divergence


def _of_gammas(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    divergence: Tensor = (
        b * (p.rate / q.rate).log()
        + tw.lgamma(b)
        - tw.lgamma(a)
        + (a - b) * tw.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )
    return divergence


def _of_dirichlets(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    slopes = tw.digamma(a) - tw.digamma(a.sum(axis=-1, keepdims=True))
    divergence: Tensor = q.log_beta() - p.log_beta() + ((a - b) * slopes).sum(axis=-1)
    return divergence


def _of_betas(p: Any, q: Any) -> Tensor:
    return _of_dirichlets(p.pair, q.pair)


def _of_poissons(p: Any, q: Any) -> Tensor:
    divergence: Tensor = tw.xlogy(p.rate, p.rate) - tw.xlogy(p.rate, q.rate) - (p.rate - q.rate)
    return divergence


def _of_geometrics(p: Any, q: Any) -> Tensor:
    a = p.probs
    finite = -p.entropy() - q.log_chance(a, 1 - a) / a
    return tw.where((a < 1) & (q.probs == 1), math.inf, finite)


def _of_vectors(p: Any, q: Any) -> Tensor:
    mixed = tw.linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    squares = mixed.square().sum(axis=(-2, -1)) + q.distances(p.loc - q.loc)
    divergence: Tensor = q.log_volume() - p.log_volume() + 0.5 * (squares - float(p.event_shape[0]))
    return divergence


def _of_transformed(p: Any, q: Any) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


def _of_independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise ValueError(f"kl_divergence: events {p.event_shape} and {q.event_shape}")
    summed: Tensor = p.summed(kl_divergence(p.base_dist, q.base_dist))
    return summed


_OF_ONE_KIND: dict[type[Distribution], _Formula] = {
    Normal: _of_normals,
    Uniform: _of_uniforms,
    Bernoulli: _of_bernoullis,
    Categorical: _of_categoricals,
    OneHotCategorical: _of_categoricals,
    Exponential: _of_exponentials,
    Laplace: _of_laplaces,
    Gamma: _of_gammas,
    Dirichlet: _of_dirichlets,
    Beta: _of_betas,
    Poisson: _of_poissons,
    Geometric: _of_geometrics,
    MultivariateNormal: _of_vectors,
    LogNormal: _of_transformed,
    Independent: _of_independent,
}
_DIVERGENCES.update({(kind, kind): formula for kind, formula in _OF_ONE_KIND.items()})
