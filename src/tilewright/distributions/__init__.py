"""Distributions to draw from, with log-probabilities that have gradients, by PyTorch's names.

What reinforcement learning, variational and mixture models name: several distributions as one with
`Independent`, what transforms make of them, mixtures, and `kl_divergence` between two of a kind.
"""

from __future__ import annotations

from tilewright.distributions.bernoulli import Bernoulli as Bernoulli
from tilewright.distributions.categorical import Categorical as Categorical
from tilewright.distributions.categorical import OneHotCategorical as OneHotCategorical
from tilewright.distributions.categorical import (
    OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough,
)
from tilewright.distributions.counts import Binomial as Binomial
from tilewright.distributions.counts import Geometric as Geometric
from tilewright.distributions.counts import Multinomial as Multinomial
from tilewright.distributions.counts import NegativeBinomial as NegativeBinomial
from tilewright.distributions.counts import Poisson as Poisson
from tilewright.distributions.distribution import Distribution as Distribution
from tilewright.distributions.gamma import Beta as Beta
from tilewright.distributions.gamma import Dirichlet as Dirichlet
from tilewright.distributions.gamma import Exponential as Exponential
from tilewright.distributions.gamma import Gamma as Gamma
from tilewright.distributions.independent import Independent as Independent
from tilewright.distributions.kl import kl_divergence as kl_divergence
from tilewright.distributions.kl import register_kl as register_kl
from tilewright.distributions.mixture import MixtureSameFamily as MixtureSameFamily
from tilewright.distributions.multivariate_normal import MultivariateNormal as MultivariateNormal
from tilewright.distributions.normal import HalfNormal as HalfNormal
from tilewright.distributions.normal import Normal as Normal
from tilewright.distributions.relaxed import RelaxedBernoulli as RelaxedBernoulli
from tilewright.distributions.relaxed import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from tilewright.distributions.tails import Cauchy as Cauchy
from tilewright.distributions.tails import Gumbel as Gumbel
from tilewright.distributions.tails import HalfCauchy as HalfCauchy
from tilewright.distributions.tails import Laplace as Laplace
from tilewright.distributions.tails import StudentT as StudentT
from tilewright.distributions.transformed import LogNormal as LogNormal
from tilewright.distributions.transformed import TransformedDistribution as TransformedDistribution
from tilewright.distributions.transforms import AffineTransform as AffineTransform
from tilewright.distributions.transforms import ComposeTransform as ComposeTransform
from tilewright.distributions.transforms import ExpTransform as ExpTransform
from tilewright.distributions.transforms import SigmoidTransform as SigmoidTransform
from tilewright.distributions.transforms import TanhTransform as TanhTransform
from tilewright.distributions.transforms import Transform as Transform
from tilewright.distributions.uniform import Uniform as Uniform
