"""What `import tilewright` names beside the engine's functions. Made by tools/make_stub.py."""

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

from tilewright import amp as amp
from tilewright import autograd as autograd
from tilewright import bench as bench
from tilewright import cli as cli
from tilewright import cuda as cuda
from tilewright import data as data
from tilewright import distributions as distributions
from tilewright import fft as fft
from tilewright import func as func
from tilewright import io as io
from tilewright import kernels as kernels
from tilewright import linalg as linalg
from tilewright import memory as memory
from tilewright import nn as nn
from tilewright import optim as optim
from tilewright import optimizations as optimizations
from tilewright import runtime as runtime
from tilewright import special as special
from tilewright import testing as testing
from tilewright import train as train
from tilewright import tune as tune
from tilewright._arrays.broadcasting import atleast_1d as atleast_1d
from tilewright._arrays.broadcasting import atleast_2d as atleast_2d
from tilewright._arrays.broadcasting import atleast_3d as atleast_3d
from tilewright._arrays.broadcasting import block_diag as block_diag
from tilewright._arrays.broadcasting import broadcast_arrays as broadcast_arrays
from tilewright._arrays.broadcasting import broadcast_shapes as broadcast_shapes
from tilewright._arrays.broadcasting import broadcast_tensors as broadcast_tensors
from tilewright._arrays.broadcasting import cartesian_prod as cartesian_prod
from tilewright._arrays.broadcasting import meshgrid as meshgrid
from tilewright._arrays.creation import as_tensor as as_tensor
from tilewright._arrays.creation import from_numpy as from_numpy
from tilewright._arrays.creation import is_tensor as is_tensor
from tilewright._arrays.differences import gradient as gradient
from tilewright._arrays.einsum import einsum as einsum
from tilewright._arrays.extremes import AminmaxResult as _AminmaxResult
from tilewright._arrays.indexing import index_put as index_put
from tilewright._arrays.indexing import index_put_ as index_put_
from tilewright._arrays.positions import unravel_index as unravel_index
from tilewright._arrays.sets import HistogramResult as _HistogramResult
from tilewright._arrays.sets import unique as unique
from tilewright._arrays.sets import unique_all as unique_all
from tilewright._arrays.sets import unique_consecutive as unique_consecutive
from tilewright._arrays.sets import unique_counts as unique_counts
from tilewright._arrays.sets import unique_inverse as unique_inverse
from tilewright._arrays.sets import unique_values as unique_values
from tilewright._compat.array_api import __array_namespace_info__ as __array_namespace_info__
from tilewright._compat.array_api import can_cast as can_cast
from tilewright._compat.array_api import finfo as finfo
from tilewright._compat.array_api import iinfo as iinfo
from tilewright._compat.array_api import isdtype as isdtype
from tilewright._compat.torch_functions import FrexpResult as _FrexpResult
from tilewright._compat.torch_functions import fill_diagonal_ as fill_diagonal_
from tilewright._compat.torch_functions import is_nonzero as is_nonzero
from tilewright._compat.torch_functions import msort as msort
from tilewright._compat.torch_functions import resolve_conj as resolve_conj
from tilewright._compat.torch_functions import split_with_sizes as split_with_sizes
from tilewright._compat.torch_functions import sum_to_size as sum_to_size
from tilewright._core import active_device as _active_device
from tilewright._core import result_type as _result_type
from tilewright._core import set_device as _set_device
from tilewright._engine.device_names import device as device
from tilewright._engine.generators import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from tilewright._engine.generators import get_rng_state as get_rng_state
from tilewright._engine.generators import initial_seed as initial_seed
from tilewright._engine.generators import seed as seed
from tilewright._engine.generators import set_rng_state as set_rng_state
from tilewright._engine.generators import use_deterministic_algorithms as use_deterministic_algorithms
from tilewright._inspect.explanation import explain as explain
from tilewright._inspect.placement import auto_device as auto_device
from tilewright._inspect.profiling import profile as profile
from tilewright._report.display import set_printoptions as set_printoptions
from tilewright.amp import autocast as autocast
from tilewright.autograd.checkpointing import checkpoint as checkpoint
from tilewright.autograd.checkpointing import checkpoint_sequential as checkpoint_sequential
from tilewright.autograd.gradient_check import gradcheck as gradcheck
from tilewright.autograd.gradient_check import gradgradcheck as gradgradcheck
from tilewright.fft.short_time import bartlett_window as bartlett_window
from tilewright.fft.short_time import blackman_window as blackman_window
from tilewright.fft.short_time import hamming_window as hamming_window
from tilewright.fft.short_time import hann_window as hann_window
from tilewright.fft.short_time import istft as istft
from tilewright.fft.short_time import kaiser_window as kaiser_window
from tilewright.fft.short_time import stft as stft
from tilewright.func import vmap as vmap
from tilewright.io import load as load
from tilewright.io import save as save
from tilewright.kernels import use_batch_invariant as use_batch_invariant
from tilewright.linalg import cholesky_solve as cholesky_solve
from tilewright.linalg import lu_unpack as lu_unpack
from tilewright.linalg import matrix_exp as matrix_exp
from tilewright.linalg.decompositions import SlogdetResult as _SlogdetResult
from tilewright.nn.functions.composites import pdist as pdist

@overload
def addbmm(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Float=1, alpha: _Float=1) -> Tensor:
    """beta * x + alpha * the sum of all products of bmm(batch1, batch2)."""
@overload
def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: _Float=1,
    alpha: _Float=1,
) -> Tensor: ...
@overload
def addmv(x: Tensor, mat: Tensor, vec: Tensor, *, beta: _Float=1, alpha: _Float=1) -> Tensor:
    """beta * x + alpha * mv(mat, vec)."""
@overload
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _Float=1, alpha: _Float=1) -> Tensor: ...
@overload
def addr(x: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _Float=1, alpha: _Float=1) -> Tensor:
    """beta * x + alpha * outer(vec1, vec2)."""
@overload
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _Float=1, alpha: _Float=1) -> Tensor: ...
@overload
def baddbmm(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Float=1, alpha: _Float=1) -> Tensor:
    """beta * x + alpha * bmm(batch1, batch2); x broadcasts, and does not count where ..."""
@overload
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: _Float=1,
    alpha: _Float=1,
) -> Tensor: ...
@overload
def bmm(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of as many pairs of matrices: (b, n, k) and (b, k, m) to (b, n, m)."""
@overload
def bmm(input: Tensor, mat2: Tensor) -> Tensor: ...
@overload
def bmm(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def dot(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Sum of the products of two vectors of one size; neither is conjugated."""
@overload
def dot(input: Tensor, tensor: Tensor) -> Tensor: ...
@overload
def dot(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def inner(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Sums of products over the last axis of both: (..., n) and (***, n) to (..., ***)."""
@overload
def inner(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def kron(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Kronecker product: each element of x1 times the whole of x2, as blocks."""
@overload
def kron(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def mm(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Product of two matrices; `matmul` also takes vectors and batches."""
@overload
def mm(input: Tensor, mat2: Tensor) -> Tensor: ...
@overload
def mm(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def mv(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Product of a matrix and a vector."""
@overload
def mv(input: Tensor, vec: Tensor) -> Tensor: ...
@overload
def mv(input: Tensor, other: Tensor) -> Tensor: ...
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
def vdot(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Sum of the products of two vectors of one size; the first is conjugated."""
@overload
def vdot(input: Tensor, other: Tensor) -> Tensor: ...
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
def dist(x1: Tensor, x2: Tensor, p: _Float=2.0) -> Tensor:
    """The `p`-norm of all elements of x1 - x2, which broadcast."""
@overload
def dist(input: Tensor, other: Tensor, p: _Float=2.0) -> Tensor: ...
@overload
def norm(
    x: Tensor,
    p: _Float | str | None='fro',
    axis: _Int | Sequence[_Int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: _Int | Sequence[_Int] | None=...,
    dims: _Int | Sequence[_Int] | None=...,
    keepdim: _Bool=...,
) -> Tensor:
    """The `p`-norm of all elements or along axes, as in PyTorch: "fro" is 2 for any axes."""
@overload
def norm(
    input: Tensor,
    p: _Float | str | None='fro',
    axis: _Int | Sequence[_Int] | None=None,
    keepdims: _Bool=False,
    *,
    dim: _Int | Sequence[_Int] | None=...,
    dims: _Int | Sequence[_Int] | None=...,
    keepdim: _Bool=...,
) -> Tensor: ...
@overload
def renorm(x: Tensor, p: _Float, axis: _Int, maxnorm: _Float) -> Tensor:
    """x with each slice along an axis whose `p`-norm is above `maxnorm` scaled down to it."""
@overload
def renorm(input: Tensor, p: _Float, dim: _Int, maxnorm: _Float) -> Tensor: ...
@overload
def renorm(input: Tensor, p: _Float, dims: _Int, maxnorm: _Float) -> Tensor: ...
@overload
def aminmax(
    x: Tensor,
    *,
    axis: _Int | None=None,
    keepdims: _Bool=False,
    dim: _Int | None=...,
    dims: _Int | None=...,
    keepdim: _Bool=...,
) -> _AminmaxResult:
    """Smallest and largest of all elements, or along an axis."""
@overload
def aminmax(
    input: Tensor,
    *,
    axis: _Int | None=None,
    keepdims: _Bool=False,
    dim: _Int | None=...,
    dims: _Int | None=...,
    keepdim: _Bool=...,
) -> _AminmaxResult: ...
@overload
def fmax(x1: Tensor, x2: Tensor) -> Tensor:
    """Larger of two; of a NaN and a number the number. Of equal ones x1 has the gradient."""
@overload
def fmax(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def fmin(x1: Tensor, x2: Tensor) -> Tensor:
    """Smaller of two; of a NaN and a number the number. Of equal ones x1 has the gradient."""
@overload
def fmin(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def mode(
    x: Tensor,
    axis: _Int=-1,
    keepdims: _Bool=False,
    *,
    dim: _Int=...,
    dims: _Int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices:
    """The most frequent element along an axis, and the last place where it is (int64)."""
@overload
def mode(
    input: Tensor,
    axis: _Int=-1,
    keepdims: _Bool=False,
    *,
    dim: _Int=...,
    dims: _Int=...,
    keepdim: _Bool=...,
) -> ValuesAndIndices: ...
@overload
def gcd(x1: Tensor, x2: Tensor) -> Tensor:
    """Greatest common divisor, by Euclid's algorithm; 0 of two zeros."""
@overload
def gcd(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def lcm(x1: Tensor, x2: Tensor) -> Tensor:
    """Least common multiple; 0 where one is 0. Raises TypeError for types that are not ..."""
@overload
def lcm(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def argwhere(x: Tensor) -> Tensor:
    """The indices of the elements that are not 0, a row for each (n, x.ndim), as int64."""
@overload
def argwhere(input: Tensor) -> Tensor: ...
@overload
def take_along_dim(
    x: Tensor,
    indices: Tensor,
    axis: _Int | None=None,
    *,
    dim: _Int | None=...,
    dims: _Int | None=...,
) -> Tensor:
    """`take_along_axis` by PyTorch's name: without an axis, elements of the flat tensor."""
@overload
def take_along_dim(
    input: Tensor,
    indices: Tensor,
    axis: _Int | None=None,
    *,
    dim: _Int | None=...,
    dims: _Int | None=...,
) -> Tensor: ...
@overload
def histogram(
    x: Tensor,
    bins: _Int | Tensor | Sequence[_Float]=10,
    *,
    range: tuple[_Float, _Float] | None=None,
    weight: Tensor | None=None,
    density: _Bool=False,
) -> _HistogramResult:
    """How many elements lie in each bin, in x's type, and the edges of the bins."""
@overload
def histogram(
    input: Tensor,
    bins: _Int | Tensor | Sequence[_Float]=10,
    *,
    range: tuple[_Float, _Float] | None=None,
    weight: Tensor | None=None,
    density: _Bool=False,
) -> _HistogramResult: ...
@overload
def corrcoef(x: Tensor) -> Tensor:
    """Correlations of the rows of a matrix, of which each column is one observation ..."""
@overload
def corrcoef(input: Tensor) -> Tensor: ...
@overload
def cov(
    x: Tensor,
    *,
    correction: _Int=1,
    fweights: Tensor | None=None,
    aweights: Tensor | None=None,
    ddof: _Int=...,
) -> Tensor:
    """Covariances of the rows of a matrix, of which each column is one observation (n, n)."""
@overload
def cov(
    input: Tensor,
    *,
    correction: _Int=1,
    fweights: Tensor | None=None,
    aweights: Tensor | None=None,
    ddof: _Int=...,
) -> Tensor: ...
def cumulative_trapezoid(
    y: Tensor,
    x: Tensor | None=None,
    *,
    dx: _Float | None=None,
    axis: _Int=-1,
    dim: _Int=...,
    dims: _Int=...,
) -> Tensor:
    """Integrals from the first sample to each other one along an axis, as `trapezoid`."""
@overload
def std_mean(
    x: Tensor,
    axis: _Int | Sequence[_Int] | None=None,
    *,
    correction: _Float,
    keepdims: _Bool=False,
    dim: _Int | Sequence[_Int] | None=...,
    dims: _Int | Sequence[_Int] | None=...,
    keepdim: _Bool=...,
) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean of all elements, or along axes; `correction` as in ..."""
@overload
def std_mean(
    input: Tensor,
    axis: _Int | Sequence[_Int] | None=None,
    *,
    ddof: _Float,
    keepdims: _Bool=False,
    dim: _Int | Sequence[_Int] | None=...,
    dims: _Int | Sequence[_Int] | None=...,
    keepdim: _Bool=...,
) -> tuple[Tensor, Tensor]: ...
def trapezoid(
    y: Tensor,
    x: Tensor | None=None,
    *,
    dx: _Float | None=None,
    axis: _Int=-1,
    dim: _Int=...,
    dims: _Int=...,
) -> Tensor:
    """Integral of samples along an axis by the trapezoidal rule."""
@overload
def var_mean(
    x: Tensor,
    axis: _Int | Sequence[_Int] | None=None,
    *,
    correction: _Float,
    keepdims: _Bool=False,
    dim: _Int | Sequence[_Int] | None=...,
    dims: _Int | Sequence[_Int] | None=...,
    keepdim: _Bool=...,
) -> tuple[Tensor, Tensor]:
    """Variance and mean of all elements, or along axes."""
@overload
def var_mean(
    input: Tensor,
    axis: _Int | Sequence[_Int] | None=None,
    *,
    ddof: _Float,
    keepdims: _Bool=False,
    dim: _Int | Sequence[_Int] | None=...,
    dims: _Int | Sequence[_Int] | None=...,
    keepdim: _Bool=...,
) -> tuple[Tensor, Tensor]: ...
@overload
def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of matrices, x.mH."""
@overload
def adjoint(input: Tensor) -> Tensor: ...
@overload
def diagonal_scatter(x: Tensor, src: Tensor, offset: _Int=0, dim1: _Int=0, dim2: _Int=1) -> Tensor:
    """A copy of x whose `diagonal` is src."""
@overload
def diagonal_scatter(
    input: Tensor,
    src: Tensor,
    offset: _Int=0,
    dim1: _Int=0,
    dim2: _Int=1,
) -> Tensor: ...
@overload
def frexp(x: Tensor) -> _FrexpResult:
    """x as mantissa * 2 ** exponent, exactly: 0.5 <= abs(mantissa) < 1."""
@overload
def frexp(input: Tensor) -> _FrexpResult: ...
@overload
def index_reduce(
    x: Tensor,
    axis: _Int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: _Bool=True,
) -> Tensor:
    """A copy of x with source[i] joined to x[index[i]] along an axis, as ..."""
@overload
def index_reduce(
    input: Tensor,
    dim: _Int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: _Bool=True,
) -> Tensor: ...
@overload
def index_reduce(
    input: Tensor,
    dims: _Int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: _Bool=True,
) -> Tensor: ...
@overload
def isreal(x: Tensor) -> Tensor:
    """Whether the imaginary part of each element is 0."""
@overload
def isreal(input: Tensor) -> Tensor: ...
@overload
def ldexp(x: Tensor, y: Tensor | _Float) -> Tensor:
    """x times 2 to the power of y."""
@overload
def ldexp(input: Tensor, other: Tensor | _Float) -> Tensor: ...
@overload
def mvlgamma(x: Tensor, p: _Int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension p, for x > (p - 1) / 2."""
@overload
def mvlgamma(input: Tensor, p: _Int) -> Tensor: ...
@overload
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: _Bool=False) -> Tensor:
    """A copy of x with elements of source at places of x, counted through x as if it ..."""
@overload
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _Bool=False) -> Tensor: ...
@overload
def cholesky_inverse(x: Tensor, /, upper: _Bool=False) -> Tensor:
    """The inverse of the matrix of which `cholesky` made x."""
@overload
def cholesky_inverse(input: Tensor, upper: _Bool=False) -> Tensor: ...
@overload
def det(x: Tensor, /) -> Tensor:
    """Determinants of square matrices. Of singular ones the gradient has no gradient."""
@overload
def det(input: Tensor) -> Tensor: ...
@overload
def logdet(x: Tensor, /) -> Tensor:
    """Logarithm of the determinant; NaN where that is negative."""
@overload
def logdet(input: Tensor) -> Tensor: ...
@overload
def matrix_power(x: Tensor, n: _Int, /) -> Tensor:
    """x multiplied by itself n times, by squaring; of a negative n the inverse's power."""
@overload
def matrix_power(input: Tensor, n: _Int) -> Tensor: ...
@overload
def slogdet(x: Tensor, /) -> _SlogdetResult:
    """Sign (0 for singular matrices) and logarithm of the absolute value of determinants."""
@overload
def slogdet(input: Tensor) -> _SlogdetResult: ...
@overload
def i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind and order 0."""
@overload
def i0(input: Tensor) -> Tensor: ...
@overload
def logspace(
    start: _Float,
    stop: _Float,
    num: _Int,
    base: _Float=10.0,
    dtype: Any=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor:
    """`num` numbers from base ** start to base ** stop, evenly spaced in their logarithms."""
@overload
def logspace(
    start: _Float,
    end: _Float,
    steps: _Int,
    base: _Float=10.0,
    dtype: Any=None,
    device: str | None=None,
    requires_grad: _Bool=False,
) -> Tensor: ...
@overload
def ger(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of each element of a vector with each of another: shape (n,) and (m,) ..."""
@overload
def ger(input: Tensor, vec2: Tensor) -> Tensor: ...
@overload
def ger(input: Tensor, other: Tensor) -> Tensor: ...
get_default_device = _active_device
@overload
def inverse(x: Tensor, /) -> Tensor:
    """The inverse of square matrices. Raises `LinAlgError` for a singular one."""
@overload
def inverse(input: Tensor) -> Tensor: ...
@overload
def pinverse(
    x: Tensor,
    /,
    *,
    atol: _Float | Tensor | None=None,
    rtol: _Float | Tensor | None=None,
    hermitian: _Bool=False,
) -> Tensor:
    """The pseudo-inverse (Moore and Penrose): small singular values count as 0."""
@overload
def pinverse(
    input: Tensor,
    *,
    atol: _Float | Tensor | None=None,
    rtol: _Float | Tensor | None=None,
    hermitian: _Bool=False,
) -> Tensor: ...
promote_types = _result_type
set_default_device = _set_device
def trapz(
    y: Tensor,
    x: Tensor | None=None,
    *,
    dx: _Float | None=None,
    axis: _Int=-1,
    dim: _Int=...,
    dims: _Int=...,
) -> Tensor:
    """Integral of samples along an axis by the trapezoidal rule."""
clone = Tensor.clone
detach = Tensor.detach
is_complex = Tensor.is_complex
is_floating_point = Tensor.is_floating_point
is_signed = Tensor.is_signed
numel = Tensor.numel
t = Tensor.t
double: _DType
float: _DType
half: _DType
int: _DType
long: _DType
short: _DType
