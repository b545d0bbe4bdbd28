"""Linear algebra by the names of the Array API standard's extension.

Products run on the engine's own kernels. Decompositions are LAPACK's, through NumPy, which is
imported on first use, but for LU, which is ours; they take float32, float64 and complex numbers,
batches in front, and lie on the CPU. All but `matrix_rank` have gradients.
"""

from __future__ import annotations

from tilewright._arrays.contraction import multi_dot as multi_dot
from tilewright._arrays.contraction import outer as outer
from tilewright._arrays.contraction import tensordot as tensordot
from tilewright._arrays.contraction import vecdot as vecdot
from tilewright._core import cross as cross
from tilewright.linalg.decompositions import EighResult as EighResult
from tilewright.linalg.decompositions import LinAlgError as LinAlgError
from tilewright.linalg.decompositions import QRResult as QRResult
from tilewright.linalg.decompositions import SlogdetResult as SlogdetResult
from tilewright.linalg.decompositions import SVDResult as SVDResult
from tilewright.linalg.decompositions import cholesky as cholesky
from tilewright.linalg.decompositions import det as det
from tilewright.linalg.decompositions import eigh as eigh
from tilewright.linalg.decompositions import eigvalsh as eigvalsh
from tilewright.linalg.decompositions import inv as inv
from tilewright.linalg.decompositions import logdet as logdet
from tilewright.linalg.decompositions import pinv as pinv
from tilewright.linalg.decompositions import qr as qr
from tilewright.linalg.decompositions import slogdet as slogdet
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
from tilewright.linalg.matrices import matrix_power as matrix_power
from tilewright.linalg.matrices import matrix_transpose as matrix_transpose
from tilewright.linalg.matrices import trace as trace
from tilewright.linalg.matrices import vander as vander
from tilewright.linalg.norms import cond as cond
from tilewright.linalg.norms import matrix_norm as matrix_norm
from tilewright.linalg.norms import matrix_rank as matrix_rank
from tilewright.linalg.norms import norm as norm
from tilewright.linalg.norms import vector_norm as vector_norm
from tilewright.linalg.reflections import householder_product as householder_product
from tilewright.linalg.reports import CholeskyExResult as CholeskyExResult
from tilewright.linalg.reports import InvExResult as InvExResult
from tilewright.linalg.reports import SolveExResult as SolveExResult
from tilewright.linalg.reports import cholesky_ex as cholesky_ex
from tilewright.linalg.reports import inv_ex as inv_ex
from tilewright.linalg.reports import solve_ex as solve_ex
from tilewright.linalg.solvers import LstsqResult as LstsqResult
from tilewright.linalg.solvers import cholesky_inverse as cholesky_inverse
from tilewright.linalg.solvers import cholesky_solve as cholesky_solve
from tilewright.linalg.solvers import lstsq as lstsq
from tilewright.linalg.solvers import matrix_exp as matrix_exp
from tilewright.linalg.solvers import solve_triangular as solve_triangular
from tilewright.linalg.tensors import tensorinv as tensorinv
from tilewright.linalg.tensors import tensorsolve as tensorsolve
