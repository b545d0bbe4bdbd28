"""The names of tilewright.linalg. Made by tools/make_stub.py."""

# Signatures as they are: long, and with names of builtins.
# ruff: noqa
# fmt: off

import builtins
from collections.abc import Sequence
from typing import Any, TypeAlias, overload

from tilewright._core import Generator, Tensor, ValuesAndIndices, _DType, _DTypeLike

_Bool: TypeAlias = builtins.bool
_Int: TypeAlias = builtins.int
_Float: TypeAlias = builtins.float

from tilewright._arrays.contraction import multi_dot as multi_dot
from tilewright._core import cross as cross
from tilewright.linalg.decompositions import EighResult as EighResult
from tilewright.linalg.decompositions import LinAlgError as LinAlgError
from tilewright.linalg.decompositions import QRResult as QRResult
from tilewright.linalg.decompositions import SVDResult as SVDResult
from tilewright.linalg.decompositions import SlogdetResult as SlogdetResult
from tilewright.linalg.decompositions import SlogdetResult as _SlogdetResult
from tilewright.linalg.decompositions import cholesky as cholesky
from tilewright.linalg.decompositions import eigh as eigh
from tilewright.linalg.decompositions import eigvalsh as eigvalsh
from tilewright.linalg.decompositions import qr as qr
from tilewright.linalg.decompositions import solve as solve
from tilewright.linalg.decompositions import svd as svd
from tilewright.linalg.decompositions import svdvals as svdvals
from tilewright.linalg.eigenvalues import EigResult as EigResult
from tilewright.linalg.eigenvalues import eig as eig
from tilewright.linalg.eigenvalues import eigvals as eigvals
from tilewright.linalg.elimination import LUFactorExResult as LUFactorExResult
from tilewright.linalg.elimination import LUFactorResult as LUFactorResult
from tilewright.linalg.elimination import LUResult as LUResult
from tilewright.linalg.elimination import lu as lu
from tilewright.linalg.elimination import lu_factor as lu_factor
from tilewright.linalg.elimination import lu_factor_ex as lu_factor_ex
from tilewright.linalg.elimination import lu_solve as lu_solve
from tilewright.linalg.elimination import lu_unpack as lu_unpack
from tilewright.linalg.matrices import diagonal as diagonal
from tilewright.linalg.matrices import matmul as matmul
from tilewright.linalg.matrices import matrix_transpose as matrix_transpose
from tilewright.linalg.matrices import trace as trace
from tilewright.linalg.matrices import vander as vander
from tilewright.linalg.norms import cond as cond
from tilewright.linalg.norms import matrix_rank as matrix_rank
from tilewright.linalg.reflections import householder_product as householder_product
from tilewright.linalg.reports import CholeskyExResult as CholeskyExResult
from tilewright.linalg.reports import InvExResult as InvExResult
from tilewright.linalg.reports import SolveExResult as SolveExResult
from tilewright.linalg.reports import cholesky_ex as cholesky_ex
from tilewright.linalg.reports import inv_ex as inv_ex
from tilewright.linalg.reports import solve_ex as solve_ex
from tilewright.linalg.solvers import LstsqResult as LstsqResult
from tilewright.linalg.solvers import cholesky_solve as cholesky_solve
from tilewright.linalg.solvers import lstsq as lstsq
from tilewright.linalg.solvers import matrix_exp as matrix_exp
from tilewright.linalg.solvers import solve_triangular as solve_triangular
from tilewright.linalg.tensors import tensorinv as tensorinv
from tilewright.linalg.tensors import tensorsolve as tensorsolve

@overload
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of each element of a vector with each of another: shape (n,) and (m,) ..."""
@overload
def outer(input: Tensor, vec2: Tensor) -> Tensor: ...
@overload
def outer(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def tensordot(
    x1: Tensor,
    x2: Tensor,
    /,
    axes: _Int | tuple[Sequence[_Int], Sequence[_Int]]=2,
    *,
    dims: _Int | tuple[Sequence[_Int], Sequence[_Int]]=...,
) -> Tensor:
    """Sum of products over pairs of axes: the last `axes` of x1 with the first of x2, ..."""
@overload
def tensordot(
    input: Tensor,
    other: Tensor,
    axes: _Int | tuple[Sequence[_Int], Sequence[_Int]]=2,
    *,
    dims: _Int | tuple[Sequence[_Int], Sequence[_Int]]=...,
) -> Tensor: ...
@overload
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: _Int=-1, dim: _Int=..., dims: _Int=...) -> Tensor:
    """Sum of products along an axis, of the conjugates of x1's numbers; other axes ..."""
@overload
def vecdot(
    input: Tensor,
    other: Tensor,
    *,
    axis: _Int=-1,
    dim: _Int=...,
    dims: _Int=...,
) -> Tensor: ...
@overload
def det(x: Tensor, /) -> Tensor:
    """Determinants of square matrices. Of singular ones the gradient has no gradient."""
@overload
def det(input: Tensor) -> Tensor: ...
@overload
def inv(x: Tensor, /) -> Tensor:
    """The inverse of square matrices. Raises `LinAlgError` for a singular one."""
@overload
def inv(input: Tensor) -> Tensor: ...
@overload
def logdet(x: Tensor, /) -> Tensor:
    """Logarithm of the determinant; NaN where that is negative."""
@overload
def logdet(input: Tensor) -> Tensor: ...
@overload
def pinv(
    x: Tensor,
    /,
    *,
    atol: _Float | Tensor | None=None,
    rtol: _Float | Tensor | None=None,
    hermitian: _Bool=False,
) -> Tensor:
    """The pseudo-inverse (Moore and Penrose): small singular values count as 0."""
@overload
def pinv(
    input: Tensor,
    *,
    atol: _Float | Tensor | None=None,
    rtol: _Float | Tensor | None=None,
    hermitian: _Bool=False,
) -> Tensor: ...
@overload
def slogdet(x: Tensor, /) -> _SlogdetResult:
    """Sign (0 for singular matrices) and logarithm of the absolute value of determinants."""
@overload
def slogdet(input: Tensor) -> _SlogdetResult: ...
@overload
def matrix_power(x: Tensor, n: _Int, /) -> Tensor:
    """x multiplied by itself n times, by squaring; of a negative n the inverse's power."""
@overload
def matrix_power(input: Tensor, n: _Int) -> Tensor: ...
@overload
def matrix_norm(
    x: Tensor,
    /,
    ord: _Float | str | None='fro',
    axis: Sequence[_Int]=...,
    keepdims: _Bool=False,
    *,
    dim: Sequence[_Int]=...,
    dims: Sequence[_Int]=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Norm of the matrices in two axes, the last ones by default."""
@overload
def matrix_norm(
    input: Tensor,
    ord: _Float | str | None='fro',
    axis: Sequence[_Int]=...,
    keepdims: _Bool=False,
    *,
    dim: Sequence[_Int]=...,
    dims: Sequence[_Int]=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def norm(
    x: Tensor,
    /,
    ord: _Float | str | None=None,
    axis: _Int | Sequence[_Int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: _Int | Sequence[_Int] | None=...,
    dims: _Int | Sequence[_Int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """Norm of a vector (one axis), of a matrix (two axes and an `ord`), or of all ..."""
@overload
def norm(
    input: Tensor,
    ord: _Float | str | None=None,
    axis: _Int | Sequence[_Int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: _Int | Sequence[_Int] | None=...,
    dims: _Int | Sequence[_Int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def vector_norm(
    x: Tensor,
    /,
    ord: _Float=2,
    axis: _Int | Sequence[_Int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: _Int | Sequence[_Int] | None=...,
    dims: _Int | Sequence[_Int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def vector_norm(
    input: Tensor,
    ord: _Float=2,
    axis: _Int | Sequence[_Int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: _Int | Sequence[_Int] | None=...,
    dims: _Int | Sequence[_Int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def cholesky_inverse(x: Tensor, /, upper: _Bool=False) -> Tensor:
    """The inverse of the matrix of which `cholesky` made x."""
@overload
def cholesky_inverse(input: Tensor, upper: _Bool=False) -> Tensor: ...
