"""Normal distributions of vectors."""

from __future__ import annotations

import copy
import math
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright._arrays.broadcasting import broadcast_shapes
from tilewright.distributions.distribution import REAL, Distribution, Size, Support

# As PyTorch's constraints have it; the factorisation tells whether a matrix is positive definite.
SYMMETRIC = Support("symmetric", lambda _, x: tw.isclose(x, x.mT, atol=1e-6))
LOWER = Support(
    "a lower triangle whose diagonal is above 0",
    lambda _, x: (x == x.tril()).all() & (x.diagonal(0, -2, -1) > 0).all(),
)


class MultivariateNormal(Distribution):
    """Vectors that are normal about `loc`, with a covariance that is given in one of three ways.

    `scale_tril` is the lower triangular factor of `covariance_matrix`, and `precision_matrix` is
    its inverse.

    Shapes: loc (..., n), the matrices (..., n, n); batches broadcast, (n,) is the event. Types:
    float32, float64. Result: the common type.
    Raises ValueError unless one matrix is given, for shapes that do not fit and, where they are on
    the CPU, for a loc with NaN, a covariance or precision that is not symmetric (to 1e-6 and 1e-5
    of the values) and a scale_tril that is no lower triangle with a diagonal above 0, LinAlgError
    for a matrix that is not positive definite, and TypeError for other types. Source: PyTorch's
    torch.distributions.MultivariateNormal.

    >>> import tilewright as tw
    >>> d = tw.distributions.MultivariateNormal(tw.zeros(2), tw.eye(2))
    >>> round(d.log_prob(tw.zeros(2)).item(), 4)
    -1.8379
    """

    has_rsample = True
    _domains: ClassVar = {
        "loc": REAL,
        "covariance_matrix": SYMMETRIC,
        "precision_matrix": SYMMETRIC,
        "scale_tril": LOWER,
    }

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        ways = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = {key: x for key, x in ways.items() if x is not None}
        if len(given) != 1:
            raise ValueError(
                "MultivariateNormal: give covariance_matrix, precision_matrix or scale_tril, one"
            )
        for x in (loc, *given.values()):
            if not isinstance(x, Tensor) or not x.is_floating_point():
                raise TypeError("MultivariateNormal: loc and matrix are floating tensors")
        (matrix,) = given.values()
        if loc.ndim == 0 or matrix.shape[-2:] != (loc.shape[-1], loc.shape[-1]):
            raise ValueError(
                f"MultivariateNormal: loc of shape {loc.shape} does not fit a matrix of shape "
                f"{matrix.shape}"
            )
        self._validate = validate_args
        self._check({"loc": loc, **given})
        if scale_tril is None:
            if precision_matrix is not None:
                matrix = tw.linalg.inv(matrix)
            matrix = tw.linalg.cholesky(matrix)
        self.batch_shape = broadcast_shapes(loc.shape[:-1], matrix.shape[:-2])
        self.event_shape = loc.shape[-1:]
        self.loc = loc.expand((*self.batch_shape, *self.event_shape))
        self._factor = matrix

    def expand(self, batch_shape: Size) -> MultivariateNormal:
        new = copy.copy(self)
        new.batch_shape = (batch_shape,) if isinstance(batch_shape, int) else tuple(batch_shape)
        new.loc = tw.broadcast_to(self.loc, (*new.batch_shape, *self.event_shape))
        return new

    @property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor of the covariance."""
        return self._factor.expand((*self.batch_shape, *self.event_shape, *self.event_shape))

    @property
    def covariance_matrix(self) -> Tensor:
        """What differs from the mean by what else does."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return tw.cholesky_inverse(self.scale_tril)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale_tril.square().sum(axis=-1)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        noise = tw.randn(*shape, dtype=self.loc.dtype, device=self.loc.device, generator=generator)
        return self.loc + (self._factor @ noise.unsqueeze(-1)).squeeze(-1)

    def _log_prob(self, value: Tensor) -> Tensor:
        squares = self.distances(value - self.loc)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + squares) - self.log_volume()

    def entropy(self) -> Tensor:
        half = 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi))
        return (half + self.log_volume()).expand(self.batch_shape)

    def distances(self, apart: Tensor) -> Tensor:
        """Squared lengths of vectors (..., n), measured by the covariance."""
        columns = apart.unsqueeze(-1)
        return tw.linalg.solve_triangular(self._factor, columns, upper=False).square().sum((-2, -1))

    def log_volume(self) -> Tensor:
        """Half of the logarithm of the covariance's determinant."""
        return self._factor.diagonal(0, -2, -1).log().sum(axis=-1)
