"""Weights as direction and length, and weights whose largest singular value is 1."""

from __future__ import annotations

from typing import TypeVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.functions.composites import normalize
from tilewright.nn.layers.lazy import check_not_lazy
from tilewright.nn.module.module import Module
from tilewright.nn.utils.parametrize import register_parametrization

M = TypeVar("M", bound=Module)


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Makes a parameter a length, original0, times a direction, original1, for each index of `dim`.

    With dim None there is one length for all of it. Source: T. Salimans and D. Kingma, "Weight
    normalization", NIPS 2016.

    >>> import tilewright as tw
    >>> layer = tw.nn.utils.parametrizations.weight_norm(tw.nn.Linear(4, 3))
    >>> [(name, x.shape) for name, x in layer.named_parameters()][1:]
    [('parametrizations.weight.original0', (3, 1)), ('parametrizations.weight.original1', (3, 4))]
    """
    register_parametrization(module, name, WeightNorm(dim), unsafe=True)
    return module


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Makes a parameter what it was over its largest singular value, as a matrix with `dim` first.

    The value is found by the power method, `n_power_iterations` steps each time that the parameter
    is asked for in training. `dim` is 0, or 1 for transposed convolutions. Source: T. Miyato et
    al., "Spectral normalization for generative adversarial networks", ICLR 2018.

    >>> import tilewright as tw
    >>> layer = tw.nn.utils.parametrizations.spectral_norm(tw.nn.Linear(4, 3), dim=0).eval()
    >>> round(tw.linalg.matrix_norm(layer.weight, ord=2).item(), 2)
    1.0
    """
    check_not_lazy("spectral_norm", module)
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"spectral_norm: {type(module).__name__} has no parameter {name!r}")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    register_parametrization(module, name, SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


class WeightNorm(Module):
    """A direction times a length by index of an axis, or one length."""

    def __init__(self, dim: int | None) -> None:
        self.dim = dim

    def _length(self, weight: Tensor) -> Tensor:
        if self.dim is None:
            return tw.linalg.vector_norm(weight.reshape((-1,)))
        own = self.dim % weight.ndim
        others = tuple(axis for axis in range(weight.ndim) if axis != own)
        return tw.linalg.vector_norm(weight, axis=others, keepdims=True)

    def forward(self, length: Tensor, direction: Tensor) -> Tensor:
        return direction * (length / self._length(direction))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return self._length(weight), weight


class SpectralNorm(Module):
    """A matrix over its largest singular value, which steps of the power method find."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"spectral_norm: dim {dim} is out of range for shape {weight.shape}")
        if n_power_iterations <= 0:
            raise ValueError(
                f"spectral_norm: n_power_iterations must be above 0, got {n_power_iterations}"
            )
        self.dim = dim % weight.ndim
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if weight.ndim > 1:
            with tw.no_grad():
                matrix = self._matrix(weight.detach())
                for key, size in zip(("_u", "_v"), matrix.shape, strict=True):
                    start = tw.randn((size,), dtype=weight.dtype)
                    self.register_buffer(key, normalize(start, dim=0, eps=eps))
                self._improve(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        if self.dim:
            others = [axis for axis in range(weight.ndim) if axis != self.dim]
            weight = tw.permute_dims(weight, (self.dim, *others))
        return weight.reshape((weight.shape[0], -1))

    def _improve(self, matrix: Tensor, steps: int) -> None:
        for _ in range(steps):
            self._u.copy_(normalize(matrix @ self._v, dim=0, eps=self.eps))
            self._v.copy_(normalize(matrix.T @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            with tw.no_grad():
                self._improve(matrix.detach(), self.n_power_iterations)
        # Copies: the next call changes both, and this one's gradient reads them.
        u, v = self._u.copy(), self._v.copy()
        return weight / (u @ (matrix @ v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value
