"""Calls of public functions that are no test records, with operands of a dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import tilewright as tw

fft, linalg, F, init, utils = tw.fft, tw.linalg, tw.nn.functional, tw.nn.init, tw.nn.utils
_MATRIX = np.array([[4, 1, 0], [1, 5, 1], [0, 1, 3]])


def matrix(dtype: str) -> tw.Tensor:
    """Symmetric and positive definite."""
    return tw.asarray(_MATRIX).astype(getattr(tw, dtype))


def vector(dtype: str) -> tw.Tensor:
    return tw.asarray([1, 2, 3]).astype(getattr(tw, dtype))


def image(dtype: str) -> tw.Tensor:
    return tw.ones((1, 2, 4, 4), dtype=getattr(tw, dtype))


INDEX = tw.asarray([0, 2])
PIVOTS = tw.asarray([1, 2, 3], dtype=tw.int32)


def each(path: str, names: str, call: Callable[[Any, str], Any]) -> dict[str, Callable[[str], Any]]:
    """The same call of several functions of a module."""
    module: Any = operator.attrgetter(path.partition(".")[2])(tw) if "." in path else tw
    return {f"{path}.{name}": partial(call, getattr(module, name)) for name in names.split()}


# By full name: a call whose operands have the dtype.
BY_DTYPE: dict[str, Callable[[str], Any]] = {
    **each(
        "tilewright",
        "dot vdot vecdot inner fmax fmin gcd lcm dist cartesian_prod",
        lambda f, d: f(vector(d), vector(d)),
    ),
    **each(
        "tilewright",
        """argwhere atleast_1d atleast_2d atleast_3d aminmax mode trapezoid
            cumulative_trapezoid norm unique unique_all unique_counts unique_inverse
            unique_values unique_consecutive meshgrid broadcast_arrays broadcast_tensors
            block_diag""",
        lambda f, d: f(vector(d)),
    ),
    **each(
        "tilewright",
        """det logdet slogdet corrcoef cov inverse pdist pinverse clone detach t
            frexp""",
        lambda f, d: f(matrix(d)),
    ),
    **each("tilewright", "mm kron", lambda f, d: f(matrix(d), matrix(d))),
    **each("tilewright", "std_mean var_mean", lambda f, d: f(vector(d), correction=1)),
    "tilewright.addbmm": lambda d: tw.addbmm(matrix(d), matrix(d)[None], matrix(d)[None]),
    "tilewright.addmv": lambda d: tw.addmv(vector(d), matrix(d), vector(d)),
    "tilewright.addr": lambda d: tw.addr(matrix(d), vector(d), vector(d)),
    "tilewright.baddbmm": lambda d: tw.baddbmm(matrix(d), matrix(d)[None], matrix(d)[None]),
    "tilewright.bmm": lambda d: tw.bmm(matrix(d)[None], matrix(d)[None]),
    "tilewright.mv": lambda d: tw.mv(matrix(d), vector(d)),
    "tilewright.ger": lambda d: tw.outer(vector(d), vector(d)),
    "tilewright.einsum": lambda d: tw.einsum("ij,jk->ik", matrix(d), matrix(d)),
    "tilewright.tensordot": lambda d: tw.tensordot(matrix(d), matrix(d), axes=1),
    "tilewright.diagonal_scatter": lambda d: tw.diagonal_scatter(matrix(d), vector(d)),
    "tilewright.index_reduce": lambda d: tw.index_reduce(vector(d), 0, INDEX, vector(d)[:2], "sum"),
    "tilewright.put": lambda d: tw.put(matrix(d), INDEX, vector(d)[:2]),
    "tilewright.sum_to_size": lambda d: tw.sum_to_size(matrix(d), 1, 3),
    "tilewright.renorm": lambda d: tw.renorm(matrix(d), 2, 0, 1.0),
    "tilewright.matrix_power": lambda d: tw.matrix_power(matrix(d), 2),
    "tilewright.histogram": lambda d: tw.histogram(vector(d), 3),
    **each("tilewright", "i0", lambda f, d: f(vector(d))),
    **each(
        "tilewright.special",
        "entr erfcx i0e i1 i1e log_ndtr ndtr ndtri",
        lambda f, d: f(vector(d)),
    ),
    "tilewright.special.zeta": lambda d: tw.special.zeta(vector(d), vector(d)),
    "tilewright.index_put_": lambda d: tw.index_put_(vector(d), [INDEX], vector(d)[1]),
    "tilewright.index_put": lambda d: tw.index_put(vector(d), [INDEX], vector(d)[1]),
    "tilewright.take_along_dim": lambda d: tw.take_along_dim(vector(d), INDEX, 0),
    "tilewright.unravel_index": lambda d: tw.unravel_index(vector(d), (2, 3)),
    "tilewright.split": lambda d: tw.split(vector(d), 1),
    "tilewright.chunk": lambda d: tw.chunk(vector(d), 2),
    "tilewright.tensor_split": lambda d: tw.tensor_split(vector(d), 2),
    "tilewright.hsplit": lambda d: tw.hsplit(vector(d), 3),
    "tilewright.vsplit": lambda d: tw.vsplit(matrix(d), 3),
    "tilewright.dsplit": lambda d: tw.dsplit(matrix(d)[None], 3),
    **each("tilewright", "isreal msort", lambda f, d: f(vector(d))),
    "tilewright.resolve_conj": lambda d: tw.resolve_conj(vector(d)),
    "tilewright.fill_diagonal_": lambda d: tw.fill_diagonal_(matrix(d).copy(), 1),
    "tilewright.adjoint": lambda d: tw.adjoint(matrix(d)),
    "tilewright.ldexp": lambda d: tw.ldexp(vector(d), 2.0),
    "tilewright.mvlgamma": lambda d: tw.mvlgamma(vector(d), 1),
    "tilewright.split_with_sizes": lambda d: tw.split_with_sizes(vector(d), [1, 2]),
    "tilewright.gradient": lambda d: tw.gradient(vector(d)),
    "tilewright.stft": lambda d: tw.stft(vector(d), 2, 1),
    "tilewright.istft": lambda d: tw.istft(matrix(d), 4, 2),
    **each(
        "tilewright",
        "bartlett_window blackman_window hamming_window hann_window kaiser_window",
        lambda f, d: f(3, dtype=getattr(tw, d)),
    ),
    "tilewright.logspace": lambda d: tw.logspace(0, 1, 3, dtype=getattr(tw, d)),
    "tilewright.as_tensor": lambda d: tw.as_tensor([1, 0], dtype=getattr(tw, d)),
    "tilewright.asarray": lambda d: tw.asarray([1, 0], dtype=getattr(tw, d)),
    "tilewright.tensor": lambda d: tw.tensor([1, 0], dtype=getattr(tw, d)),
    "tilewright.frombuffer": lambda d: tw.frombuffer(bytes(16), getattr(tw, d)),
    **each("tilewright", "zeros ones empty rand randn", lambda f, d: f((2,), dtype=getattr(tw, d))),
    "tilewright.full": lambda d: tw.full((2,), 1, dtype=getattr(tw, d)),
    "tilewright.arange": lambda d: tw.arange(3, dtype=getattr(tw, d)),
    "tilewright.linspace": lambda d: tw.linspace(0, 1, 3, dtype=getattr(tw, d)),
    "tilewright.eye": lambda d: tw.eye(2, dtype=getattr(tw, d)),
    "tilewright.tril_indices": lambda d: tw.tril_indices(2, 2, dtype=getattr(tw, d)),
    "tilewright.triu_indices": lambda d: tw.triu_indices(2, 2, dtype=getattr(tw, d)),
    **each(
        "tilewright",
        "zeros_like ones_like empty_like rand_like randn_like",
        lambda f, d: f(vector(d)),
    ),
    "tilewright.full_like": lambda d: tw.full_like(vector(d), 1),
    "tilewright.randint_like": lambda d: tw.randint_like(vector(d), 0, 2),
    "tilewright.uniform": lambda d: tw.uniform(0, 1, (2,), dtype=getattr(tw, d)),
    "tilewright.normal": lambda d: tw.normal(0, 1, (2,), dtype=getattr(tw, d)),
    "tilewright.exponential": lambda d: tw.exponential(1.0, (2,), dtype=getattr(tw, d)),
    "tilewright.cauchy": lambda d: tw.cauchy(0.0, 1.0, (2,), dtype=getattr(tw, d)),
    "tilewright.log_normal": lambda d: tw.log_normal(0.0, 1.0, (2,), dtype=getattr(tw, d)),
    "tilewright.geometric": lambda d: tw.geometric(0.5, (2,), dtype=getattr(tw, d)),
    "tilewright.randint": lambda d: tw.randint(0, 2, (2,), dtype=getattr(tw, d)),
    "tilewright.bernoulli": lambda d: tw.bernoulli(0.5, (2,), dtype=getattr(tw, d)),
    **each("tilewright", "dropout alpha_dropout poisson standard_gamma", lambda f, d: f(vector(d))),
    "tilewright.binomial": lambda d: tw.binomial(vector(d).floor(), vector(d) * 0),
    "tilewright.dropout1d": lambda d: tw.dropout1d(image(d)[0]),
    "tilewright.dropout2d": lambda d: tw.dropout2d(image(d)),
    "tilewright.dropout3d": lambda d: tw.dropout3d(image(d)),
    "tilewright.feature_alpha_dropout": lambda d: tw.feature_alpha_dropout(image(d)),
    "tilewright.multinomial": lambda d: tw.multinomial(vector(d), 2),
    "tilewright.nonzero": lambda d: tw.nonzero(vector(d)),
    "tilewright.masked_select": lambda d: tw.masked_select(vector(d), vector("int32") > 1),
    "tilewright.bincount": lambda d: tw.bincount(vector(d)),
    "tilewright.sgd_step": lambda d: tw.sgd_step([vector(d)], [vector(d)], step=1, lr=0.1),
    "tilewright.scale_all": lambda d: tw.scale_all([vector(d)], number=2.0),
    **each(
        "tilewright.linalg",
        """cholesky cholesky_ex cholesky_inverse cond diagonal eig eigvals eigh eigvalsh
            inv_ex lu lu_factor lu_factor_ex matrix_norm matrix_rank matrix_transpose norm qr svd
            svdvals trace vander vector_norm""",
        lambda f, d: f(matrix(d)),
    ),
    "tilewright.linalg.matmul": lambda d: linalg.matmul(matrix(d), matrix(d)),
    "tilewright.linalg.multi_dot": lambda d: linalg.multi_dot([matrix(d), matrix(d)]),
    "tilewright.linalg.solve": lambda d: linalg.solve(matrix(d), vector(d)),
    "tilewright.linalg.solve_ex": lambda d: linalg.solve_ex(matrix(d), matrix(d)),
    "tilewright.linalg.lu_solve": lambda d: linalg.lu_solve(matrix(d), PIVOTS, matrix(d)),
    "tilewright.lu_unpack": lambda d: tw.lu_unpack(matrix(d), PIVOTS),
    "tilewright.linalg.householder_product": (
        lambda d: linalg.householder_product(matrix(d), vector(d))
    ),
    "tilewright.linalg.tensorinv": lambda d: linalg.tensorinv(matrix(d), 1),
    "tilewright.linalg.tensorsolve": lambda d: linalg.tensorsolve(matrix(d), vector(d)),
    "tilewright.linalg.solve_triangular": (
        lambda d: linalg.solve_triangular(matrix(d), matrix(d), upper=True)
    ),
    **each("tilewright.linalg", "cholesky_solve lstsq", lambda f, d: f(matrix(d), matrix(d))),
    "tilewright.linalg.matrix_exp": lambda d: linalg.matrix_exp(matrix(d)),
    **each(
        "tilewright.fft",
        """fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn hfftn ihfftn
            fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftshift ifftshift""",
        lambda f, d: f(matrix(d)),
    ),
    "tilewright.fft.fftfreq": lambda d: fft.fftfreq(4, dtype=getattr(tw, d)),
    "tilewright.fft.rfftfreq": lambda d: fft.rfftfreq(4, dtype=getattr(tw, d)),
    **each(
        "tilewright.nn.functional", "max_pool2d adaptive_max_pool2d", lambda f, d: f(image(d), 2)
    ),
    "tilewright.nn.functional.lp_pool2d": lambda d: F.lp_pool2d(image(d), 2.0, 2),
    "tilewright.nn.functional.fractional_max_pool2d": lambda d: F.fractional_max_pool2d(
        image(d), 2, 2
    ),
    "tilewright.nn.functional.embedding": lambda d: F.embedding(INDEX, matrix(d)),
    "tilewright.nn.functional.embedding_bag": lambda d: F.embedding_bag(INDEX[None], matrix(d)),
    "tilewright.nn.functional.gumbel_softmax": lambda d: F.gumbel_softmax(vector(d)),
    "tilewright.nn.functional.interpolate": lambda d: F.interpolate(image(d), size=2),
    "tilewright.nn.functional.upsample": lambda d: F.upsample(image(d), size=2),
    "tilewright.nn.functional.normalize": lambda d: F.normalize(matrix(d)),
    "tilewright.nn.functional.pdist": lambda d: F.pdist(matrix(d)),
    "tilewright.nn.functional.softmin": lambda d: F.softmin(vector(d)),
    "tilewright.nn.functional.rrelu": lambda d: F.rrelu(vector(d), training=True),
    "tilewright.nn.functional.triplet_margin_with_distance_loss": (
        lambda d: F.triplet_margin_with_distance_loss(matrix(d), matrix(d), matrix(d))
    ),
    "tilewright.nn.init.constant_": lambda d: init.constant_(vector(d), 1),
    "tilewright.nn.init.dirac_": lambda d: init.dirac_(image(d)),
    **each(
        "tilewright.nn.init",
        """eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ zeros_ orthogonal_
            trunc_normal_ uniform_ xavier_normal_ xavier_uniform_""",
        lambda f, d: f(matrix(d)),
    ),
    "tilewright.nn.init.sparse_": lambda d: init.sparse_(matrix(d), 0.5),
    "tilewright.nn.utils.fuse_conv_bn_weights": (
        lambda d: utils.fuse_conv_bn_weights(matrix(d), *[vector(d)] * 3, 1e-5, None, None)
    ),
    "tilewright.nn.utils.get_total_norm": lambda d: utils.get_total_norm([vector(d)]),
    "tilewright.nn.utils.parameters_to_vector": lambda d: utils.parameters_to_vector([vector(d)]),
}
