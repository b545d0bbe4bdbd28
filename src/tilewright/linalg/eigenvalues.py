"""Eigenvalues of any square matrix, by LAPACK through NumPy.

Source of the gradients: M. Giles, "An extended collection of matrix derivative results for forward
and reverse mode algorithmic differentiation" (2008).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright._engine.background import call_apart
from tilewright._engine.optional_packages import require
from tilewright.autograd import Function
from tilewright.linalg.checks import check_matrices
from tilewright.linalg.decompositions import LinAlgError, solve


class EigResult(NamedTuple):
    """Of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eig(a: Tensor, /) -> EigResult:
    """Eigenvalues, in no order, and eigenvectors of length 1, as columns, which are complex.

    Each vector may be turned by a phase, so that only functions which do not depend on it have a
    gradient that means something. It is infinite or NaN where two eigenvalues are equal.

    Shapes: a (..., n, n); eigenvalues (..., n), eigenvectors (..., n, n).
    Types: float32, float64, complex. Result: the complex type of such parts, of complex numbers the
    same type.
    Raises LinAlgError where the iteration does not converge or an element is not finite, ValueError
    for other shapes, TypeError for other types.
    Source: PyTorch's torch.linalg.eig.

    >>> import tilewright as tw
    >>> tw.linalg.eig(tw.asarray([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.tolist()
    [1j, -1j]
    """
    check_matrices("eig", a, square=True)
    return EigResult(*_Eig.apply(a))


def eigvals(a: Tensor, /) -> Tensor:
    """The eigenvalues that `eig` gives.

    Shapes: a (..., n, n); the result is (..., n).
    Types: float32, float64, complex. Result: the complex type of such parts, of complex numbers the
    same type.
    Raises LinAlgError where the iteration does not converge or an element is not finite, ValueError
    for other shapes, TypeError for other types.
    Source: PyTorch's torch.linalg.eigvals.
    """
    check_matrices("eigvals", a, square=True)
    if a.requires_grad:
        return eig(a).eigenvalues
    return tw.asarray(_of_numpy("eigvals", a)).astype(_complex_type(a))


class _Eig(Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = (tw.asarray(x).astype(_complex_type(a)) for x in _of_numpy("eig", a))
        ctx.save_for_backward(values, vectors)
        ctx.set_materialize_grads(False)
        ctx.real = not a.is_complex()
        return values, vectors

    @staticmethod
    def backward(ctx: Any, of_values: Tensor | None, of_vectors: Tensor | None) -> Tensor | None:
        values, vectors = ctx.saved_tensors
        adjoint = tw.conj(vectors.mT)
        eye = tw.eye(values.shape[-1], dtype=values.dtype)
        inner = None if of_values is None else tw.expand_dims(of_values, -1) * eye
        if of_vectors is not None:
            product = adjoint @ of_vectors
            # Vectors keep their length: what lies along them has no effect.
            lengths = tw.real(tw.sum(product * eye, axis=-2))
            product = product - adjoint @ (vectors * tw.expand_dims(lengths, -2))
            apart = tw.conj(tw.expand_dims(values, -2) - tw.expand_dims(values, -1)) + eye
            mixed = product * (1 - eye) / apart
            inner = mixed if inner is None else inner + mixed
        if inner is None:
            return None
        of_a = solve(adjoint, inner @ adjoint)
        return tw.real(of_a) if ctx.real else of_a


def _complex_type(a: Tensor) -> tw.dtype:
    return tw.complex64 if a.dtype in (tw.float32, tw.complex64) else tw.complex128


def _of_numpy(name: str, a: Tensor) -> Any:
    linalg = require("numpy", purpose="tilewright.linalg", install="numpy").linalg
    try:
        operations = float(a.numel() * a.shape[-1])
        return call_apart(operations, getattr(linalg, name), a.detach().numpy())
    except linalg.LinAlgError as error:
        raise LinAlgError(f"{name}: {error}") from None
