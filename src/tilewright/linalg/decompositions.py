"""Decompositions and what is made of them: LAPACK computes, gradients are ours.

Source of the gradients: M. Giles, "An extended collection of matrix derivative results for forward
and reverse mode algorithmic differentiation" (2008); of the pseudo-inverse: G. Golub and
V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
variables separate" (1973). They are made of recorded ops, so they can be differentiated again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.argument_names import other_names
from tilewright._engine.background import call_apart
from tilewright._engine.optional_packages import require
from tilewright.autograd import Function
from tilewright.linalg.checks import check_floats, check_matrices, default_rtol, shape_of
from tilewright.linalg.spectral_gradients import of_eigh, of_svd


class LinAlgError(ValueError, RuntimeError):
    """A matrix is singular, not positive definite, or an iteration did not converge."""


class EighResult(NamedTuple):
    """Of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """Of `qr`."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """Of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """Of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower triangular L of x = L @ L.mH, or the upper one; x is Hermitian, positive definite.

    Only the lower (upper) triangle is read. Raises `LinAlgError` where x is not positive definite.

    Shapes: x (..., n, n); so is the result.
    Types: float32, float64, complex. Result: the same type.
    Raises ValueError for other shapes, TypeError for other types.
    Source: Array API standard 2024.12, linalg.cholesky.
    """
    check_matrices("cholesky", x, square=True)
    factor: Tensor = _Cholesky.apply(_adjoint(x) if upper else x)
    return _adjoint(factor) if upper else factor


@other_names
def inv(x: Tensor, /) -> Tensor:
    """The inverse of square matrices. Raises `LinAlgError` for a singular one.

    Shapes: x (..., n, n); so is the result.
    Types: float32, float64, complex. Result: the same type.
    Raises ValueError for other shapes, TypeError for other types.
    Source: Array API standard 2024.12, linalg.inv.
    """
    check_matrices("inv", x, square=True)
    result: Tensor = _Inverse.apply(x)
    return result


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The x of x1 @ x = x2, for square x1 and a vector or matrices x2; batches broadcast.

    x2 is a vector only where it has one axis. Raises `LinAlgError` where x1 is singular.

    Shapes: x1 (..., n, n), x2 (n,) or (..., n, k); the result is (..., n) or (..., n, k).
    Types: float32, float64, complex. Result: the common type.
    Raises ValueError for other shapes, TypeError for other types.
    Source: Array API standard 2024.12, linalg.solve.
    """
    check_matrices("solve", x1, square=True)
    check_floats("solve", x2)
    if x2.ndim == 0:
        raise ValueError("solve: x2 is a vector or matrices, got shape ()")
    rows = x2.shape[0] if x2.ndim == 1 else x2.shape[-2]
    if rows != x1.shape[-1]:
        raise ValueError(f"solve: x1 of {shape_of(x1)} does not fit x2 of {shape_of(x2)}")
    dtype = tw.result_type(x1, x2)
    a, b = (x if x.dtype == dtype else x.astype(dtype) for x in (x1, x2))
    result: Tensor = _Solve.apply(a, b if b.ndim > 1 else tw.expand_dims(b, -1))
    return result if b.ndim > 1 else tw.squeeze(result, axis=-1)


@other_names
def det(x: Tensor, /) -> Tensor:
    """Determinants of square matrices. Of singular ones the gradient has no gradient.

    Shapes: x (..., n, n); the result is (...).
    Types: float32, float64, complex. Result: the same type.
    Raises ValueError for other shapes, TypeError for other types.
    Source: Array API standard 2024.12, linalg.det.
    """
    check_matrices("det", x, square=True)
    result: Tensor = _Determinant.apply(x)
    return result


@other_names
def slogdet(x: Tensor, /) -> SlogdetResult:
    """Sign (0 for singular matrices) and logarithm of the absolute value of determinants.

    Shapes: x (..., n, n); both results are (...).
    Types: float32, float64, complex. Result: signs of the same type, logarithms of that of its
    parts.
    Raises ValueError for other shapes, TypeError for other types.
    Source: Array API standard 2024.12, linalg.slogdet.
    """
    check_matrices("slogdet", x, square=True)
    return SlogdetResult(*_LogDeterminant.apply(x))


@other_names
def logdet(x: Tensor, /) -> Tensor:
    """Logarithm of the determinant; NaN where that is negative.

    Shapes: x (..., n, n); the result is (...).
    Types: float32, float64, complex. Result: the same type.
    Raises ValueError for other shapes, TypeError for other types.
    Source: PyTorch's torch.logdet.
    """
    sign, size = slogdet(x)
    return tw.where(sign < 0, math.nan, size) if not x.is_complex() else tw.log(sign) + size


def eigh(x: Tensor, /, UPLO: str = "L") -> EighResult:  # noqa: N803  (NumPy's and PyTorch's name)
    """Eigenvalues in ascending order and eigenvectors, as columns, of Hermitian matrices.

    Only the lower triangle is read, or the upper one for UPLO "U". Where eigenvalues coincide,
    functions of the eigenvalues alone, or of vectors alone as far as it does not matter how those
    are turned, have their gradient; that of others is infinite or NaN.

    Shapes: x (..., n, n); eigenvalues (..., n), eigenvectors (..., n, n).
    Types: float32, float64, complex. Result: the type of the parts for
    eigenvalues, the same type for eigenvectors.
    Raises ValueError for other shapes and another UPLO, TypeError for other types.
    Source: Array API standard 2024.12, linalg.eigh.
    """
    check_matrices("eigh", x, square=True)
    return EighResult(*_Eigh.apply(_lower("eigh", x, UPLO)))


def eigvalsh(x: Tensor, /, UPLO: str = "L") -> Tensor:  # noqa: N803  (as eigh)
    """Eigenvalues of Hermitian matrices in ascending order, read from a triangle as by `eigh`.

    Shapes: x (..., n, n); the result is (..., n).
    Types: float32, float64, complex. Result: the same type, of complex numbers that of their
    parts.
    Raises ValueError for other shapes and another UPLO, TypeError for other types.
    Source: Array API standard 2024.12, linalg.eigvalsh.
    """
    check_matrices("eigvalsh", x, square=True)
    x = _lower("eigvalsh", x, UPLO)
    if x.requires_grad:
        return eigh(x).eigenvalues
    return _tensor(_run("eigvalsh", x))


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Q with orthonormal columns and upper triangular R of x = Q @ R.

    "reduced" gives min(n, m) columns of Q, "complete" n of them, which has no gradient for n > m.

    Shapes: x (..., n, m); with k = min(n, m), or n where complete, Q (..., n, k) and R (..., k,
    m).
    Types: float32, float64, complex. Result: the same type.
    Raises ValueError for fewer than two axes and another mode, TypeError for other types.
    Source: Array API standard 2024.12, linalg.qr.
    """
    check_matrices("qr", x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is 'reduced' or 'complete', got {mode!r}")
    return QRResult(*_Qr.apply(x, mode))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """U, S in descending order, and Vh of x = U @ diag(S) @ Vh.

    `full_matrices=False` gives min(n, m) columns of U and rows of Vh; with True there is no
    gradient unless x is square. Where singular values coincide, functions of them alone, or of U
    and Vh alone as far as it does not matter how those are turned together, have their gradient;
    that of others is infinite or NaN.

    Shapes: x (..., n, m); with k = min(n, m) U (..., n, n or k), S (..., k), Vh (..., m or k,
    m).
    Types: float32, float64, complex. Result: U and Vh of the same type, S of that of its parts.
    Raises ValueError for fewer than two axes, TypeError for other types.
    Source: Array API standard 2024.12, linalg.svd.
    """
    check_matrices("svd", x)
    return SVDResult(*_Svd.apply(x, bool(full_matrices)))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values in descending order.

    Shapes: x (..., n, m); the result is (..., min(n, m)).
    Types: float32, float64, complex. Result: the same type, of complex numbers that of their
    parts.
    Raises ValueError for fewer than two axes, TypeError for other types.
    Source: Array API standard 2024.12, linalg.svdvals.
    """
    check_matrices("svdvals", x)
    if x.requires_grad:
        return svd(x, full_matrices=False).S
    return _tensor(_run("svd", x, compute_uv=False))


@other_names
def pinv(
    x: Tensor,
    /,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """The pseudo-inverse (Moore and Penrose): small singular values count as 0.

    Those up to atol and up to rtol times the largest are small. rtol is the larger size of the
    matrix times the distance from 1 to the next number by default, and 0 where there is an atol.
    Of Hermitian matrices only the lower triangle is read.

    Shapes: x (..., n, m); the result is (..., m, n).
    Types: float32, float64, complex. Result: the same type.
    Raises ValueError for fewer than two axes, TypeError for other types.
    Source: Array API standard 2024.12, linalg.pinv.
    """
    check_matrices("pinv", x, square=hermitian)
    if hermitian:
        x = tw.tril(x) + _adjoint(tw.tril(x, k=-1))
    limit = default_rtol(x) if rtol is None else rtol
    if atol is not None and 0 not in x.shape:
        with tw.no_grad():
            largest = tw.max(svdvals(x), axis=-1)
            limit = least_of(x, largest, atol, rtol) / tw.where(largest > 0, largest, 1)
    result: Tensor = _PseudoInverse.apply(x, limit)
    return result


def least_of(
    x: Tensor, largest: Tensor, atol: float | Tensor | None, rtol: float | Tensor | None
) -> Tensor:
    """Singular values up to here count as 0: of which the largest of each matrix is given."""
    if rtol is None:
        rtol = default_rtol(x) if atol is None else 0.0
    return tw.maximum(largest * rtol, 0.0 if atol is None else atol)


# ---- each with its gradient ----


class _Inverse(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = _tensor(_run("inv", x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        adjoint = _adjoint(y)
        return -(adjoint @ g @ adjoint)


class _Solve(Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        x = _tensor(_run("solve", a, b))
        ctx.save_for_backward(a, x)
        ctx.shape = b.shape
        return x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        a, x = ctx.saved_tensors
        of_b = solve(_adjoint(a), g)
        return _summed_to(-(of_b @ _adjoint(x)), a.shape), _summed_to(of_b, ctx.shape)


class _Determinant(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = _tensor(_run("det", x))
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        if tw.all(y != 0).item():
            return _as_matrices(g * tw.conj(y)) * _adjoint(inv(x))
        return _as_matrices(g) * _cofactors(x.detach())


class _LogDeterminant(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        sign, logarithm = (_tensor(part) for part in _run("slogdet", x))
        ctx.save_for_backward(x, sign)
        if not _is_complex(x):
            ctx.mark_non_differentiable(sign)
        return sign, logarithm

    @staticmethod
    def backward(ctx: Any, of_sign: Tensor, g: Tensor) -> Tensor:
        x, sign = ctx.saved_tensors
        if _is_complex(x):
            g = tw.complex(g, -tw.imag(tw.conj(of_sign) * sign))
        return _as_matrices(g) * _adjoint(inv(x))


class _Cholesky(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = _tensor(_run("cholesky", x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        inverse = inv(y)
        inner = _adjoint(y) @ tw.tril(g)
        half = tw.tril(inner) - 0.5 * inner * tw.eye(y.shape[-1], dtype=y.dtype)
        of_x = _adjoint(inverse) @ half @ inverse
        return 0.5 * (of_x + _adjoint(of_x))


class _Eigh(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = (_tensor(part) for part in _run("eigh", x))
        ctx.save_for_backward(values, vectors)
        ctx.set_materialize_grads(False)
        return values, vectors

    @staticmethod
    def backward(ctx: Any, of_values: Tensor | None, of_vectors: Tensor | None) -> Tensor | None:
        values, vectors = ctx.saved_tensors
        return of_eigh(values, vectors, of_values, of_vectors)


class _Qr(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mode: str) -> tuple[Tensor, Tensor]:
        q, r = (_tensor(part) for part in _run("qr", x, mode=mode))
        ctx.save_for_backward(x, q, r)
        ctx.mode = mode
        return q, r

    @staticmethod
    def backward(ctx: Any, of_q: Tensor, of_r: Tensor) -> tuple[Tensor, None]:
        x, q, r = ctx.saved_tensors
        rows, columns = x.shape[-2:]
        if rows > columns and ctx.mode == "complete":
            raise RuntimeError("qr: mode 'complete' has no gradient for matrices with more rows")
        if rows >= columns:
            return _of_tall(q, r, of_q, of_r), None
        # [X | Y] = Q [U | V]: Q and U are of X alone, V = Q.T Y.
        y = x[..., rows:]
        of_x = _of_tall(q, r[..., :rows], of_q + y @ _adjoint(of_r[..., rows:]), of_r[..., :rows])
        return tw.concat([of_x, q @ of_r[..., rows:]], axis=-1), None


def _of_tall(q: Tensor, r: Tensor, of_q: Tensor, of_r: Tensor) -> Tensor:
    inner = r @ _adjoint(of_r) - _adjoint(of_q) @ q
    symmetric = tw.tril(inner) + _adjoint(tw.tril(inner, k=-1))
    if _is_complex(q):  # R's diagonal is real
        symmetric = (symmetric + _adjoint(symmetric)) * 0.5
    return (of_q + q @ symmetric) @ _adjoint(inv(r))


class _Svd(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
        u, s, vh = (_tensor(part) for part in _run("svd", x, full_matrices=full))
        ctx.save_for_backward(u, s, vh)
        ctx.set_materialize_grads(False)
        return u, s, vh

    @staticmethod
    def backward(
        ctx: Any, of_u: Tensor | None, of_s: Tensor | None, of_vh: Tensor | None
    ) -> tuple[Tensor | None, None]:
        u, s, vh = ctx.saved_tensors
        count = s.shape[-1]
        if u.shape[-1] > count or vh.shape[-2] > count:
            if of_u is not None or of_vh is not None:
                raise RuntimeError("svd: U and Vh have a gradient where full_matrices=False alone")
            u, vh = u[..., :count], vh[..., :count, :]
        return of_svd(u, s, vh, of_u, of_s, of_vh), None


class _PseudoInverse(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rtol: float | Tensor) -> Tensor:
        limit = _array(rtol) if isinstance(rtol, Tensor) else rtol
        if 0 in x.shape:
            y = tw.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), dtype=x.dtype)
        else:
            y = _tensor(_run("pinv", x, rcond=limit))
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        x, y = ctx.saved_tensors
        adjoint, of_y = _adjoint(y), _adjoint(g)
        left = of_y - x @ (y @ of_y)
        right = of_y - (of_y @ y) @ x
        return left @ (y @ adjoint) + adjoint @ (y @ right) - adjoint @ g @ adjoint, None


# ---- helpers ----


def _lower(who: str, x: Tensor, triangle: str) -> Tensor:
    """The Hermitian matrix that a triangle stands for, in its lower one."""
    if not isinstance(triangle, str) or triangle.upper() not in ("L", "U"):
        raise ValueError(f"{who}: UPLO is 'L' or 'U', got {triangle!r}")
    return x if triangle.upper() == "L" else _adjoint(x)


def _numpy() -> Any:
    return require("numpy", purpose="tilewright.linalg", install="numpy")


def _array(x: Tensor) -> Any:
    return x.detach().numpy()


def _tensor(array: Any) -> Tensor:
    return tw.asarray(array)


def _run(name: str, *tensors: Tensor, **options: Any) -> Any:
    """LAPACK's, under NumPy's name for it."""
    linalg = _numpy().linalg
    try:
        arrays = [_array(x) for x in tensors]
        operations = float(sum(x.size * x.shape[-1] for x in arrays if x.ndim))
        return call_apart(operations, getattr(linalg, name), *arrays, **options)
    except linalg.LinAlgError as error:
        raise LinAlgError(f"{name}: {error}") from None


def _adjoint(x: Tensor) -> Tensor:
    """Conjugate and transposed."""
    return tw.conj(tw.permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)))


def _is_complex(x: Tensor) -> bool:
    return x.dtype in (tw.complex64, tw.complex128)


def _as_matrices(x: Tensor) -> Tensor:
    return tw.expand_dims(tw.expand_dims(x, -1), -1)


def _summed_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Over the axes along which an operand was stretched."""
    extra = x.ndim - len(shape)
    axes = [*range(extra)] + [
        i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1
    ]
    return tw.reshape(tw.sum(x, axis=tuple(axes)), shape) if axes else x


def _cofactors(x: Tensor) -> Tensor:
    """The gradient of the determinant, by singular values: finite where there is no inverse."""
    np = _numpy()
    u, s, vh = np.linalg.svd(_array(x))
    others = np.stack(
        [math.prod(s[..., j] for j in range(s.shape[-1]) if j != i) for i in range(s.shape[-1])],
        axis=-1,
    )
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return _tensor(
        (sign.conj()[..., None, None] * ((u * others[..., None, :]) @ vh)).astype(u.dtype)
    )
