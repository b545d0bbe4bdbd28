"""Calls of public functions that must be refused, beside those that records and signatures tell.

Each is refused with an error that the function's docstring names; together they meet every one that
it names.
"""

from __future__ import annotations

import json
import math
import operator
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import linalg

Calls = list[Callable[[], Any]]

v, w, m, r = tw.ones(3), tw.ones(4), tw.ones((3, 3)), tw.ones((2, 3))
PIVOTS = tw.asarray([1, 2, 3], dtype=tw.int32)
cube, singular, nothing = tw.ones((1, 1, 1)), tw.zeros((2, 2)), object()
ints, far = tw.asarray([0, 1, 2]), tw.asarray([9])
rows, image = tw.ones((2, 3, 4)), tw.ones((1, 2, 4, 4))
Linear = tw.nn.Linear


def each(path: str, names: str, *calls: Callable[[Any], Any]) -> dict[str, Calls]:
    """The same wrong calls of several functions of a module."""
    module: Any = operator.attrgetter(path.partition(".")[2])(tw) if "." in path else tw
    return {f"{path}.{n}": [partial(c, getattr(module, n)) for c in calls] for n in names.split()}


def leaf() -> tw.Tensor:
    return tw.ones(3).requires_grad_()


LEAF = leaf()


def infinite() -> tw.Tensor:
    x = leaf()
    x.grad = tw.full((3,), math.inf)
    return x


def wrong_gradient(x: tw.Tensor) -> tw.Tensor:
    return x.detach() * x


def joined(*tables: dict[str, Calls]) -> dict[str, Calls]:
    out: dict[str, Calls] = {}
    for table in tables:
        for name, calls in table.items():
            out.setdefault(name, []).extend(calls)
    return out


TW, LINALG, FFT = "tilewright", "tilewright.linalg", "tilewright.fft"
F, INIT, UTILS = "tilewright.nn.functional", "tilewright.nn.init", "tilewright.nn.utils"
FUNC, TESTING = "tilewright.func", "tilewright.testing"
DISTRIBUTIONS = "tilewright.distributions"
GPU = """capability current_stream default_stream empty_cache facts get_device_name launches
    max_memory_allocated max_memory_reserved mem_get_info memory memory_allocated memory_reserved
    memory_stats reset_peak_memory_stats synchronize"""
MISSING = str(Path(__file__).with_name("missing") / "x")

PRODUCTS = joined(
    each(TW, "mm mv bmm dot vdot vecdot inner ger kron tensordot", lambda f: f(nothing, v)),
    each(TW, "mm mv dot vdot vecdot inner", lambda f: f(v, w)),
    each(TW, "bmm ger", lambda f: f(m, m)),
    each(TW, "addbmm baddbmm", lambda f: f(m, m, m), lambda f: f(m, nothing, nothing)),
    each(TW, "addmv", lambda f: f(w, m, v), lambda f: f(v, nothing, v)),
    each(TW, "addr", lambda f: f(w, v, v), lambda f: f(v, nothing, v)),
    {
        f"{TW}.tensordot": [lambda: tw.tensordot(m, r, axes=1)],
        f"{TW}.einsum": [
            lambda: tw.einsum("ij,jk", m, r),
            lambda: tw.einsum("i$", m),
            lambda: tw.einsum(3, m),
            lambda: tw.einsum("ij", nothing),
        ],
        f"{LINALG}.matmul": [lambda: linalg.matmul(v, w)],
        f"{LINALG}.multi_dot": [lambda: linalg.multi_dot([m]), lambda: linalg.multi_dot([m, w])],
    },
)

SEVERAL = joined(
    each(
        TW,
        """atleast_1d atleast_2d atleast_3d block_diag broadcast_arrays broadcast_tensors
            cartesian_prod meshgrid argwhere unique_all unique_counts unique_inverse
            unique_values""",
        lambda f: f(nothing),
    ),
    each(TW, "block_diag cov corrcoef", lambda f: f(cube)),
    each(TW, "broadcast_arrays broadcast_tensors", lambda f: f(v, w)),
    each(TW, "meshgrid cartesian_prod", lambda f: f(m)),
    each(TW, "fmax fmin dist", lambda f: f(v, w)),
    each(TW, "gcd lcm", lambda f: f(ints, tw.asarray([1, 2]))),
    each(TW, "std_mean var_mean", lambda f: f(v, 4, correction=1)),
    each(TW, "trapezoid cumulative_trapezoid", lambda f: f(v, axis=4)),
    each(TW, "trapezoid cumulative_trapezoid", lambda f: f(v, v, dx=1.0)),
    each(TW, "unique unique_consecutive", lambda f: f(v, axis=4)),
    each(TW, "unique unique_consecutive", lambda f: f(v, axis=0, dim=0)),
    each(TW, "aminmax mode", lambda f: f(v, axis=4), lambda f: f(tw.ones(0))),
    each(TW, "finfo iinfo", lambda f: f(tw.bool)),
    {
        f"{TW}.broadcast_shapes": [lambda: tw.broadcast_shapes((3,), (4,))],
        f"{TW}.trapezoid": [lambda: tw.trapezoid(v, w)],
        f"{TW}.cdist": [
            lambda: tw.cdist(m, tw.ones((3, 4))),
            lambda: tw.cdist(tw.ones((2, 3, 3)), tw.ones((4, 3, 3))),
        ],
        f"{TW}.pdist": [lambda: tw.pdist(v), lambda: tw.pdist(m, -1.0)],
        f"{TW}.frexp": [lambda: tw.frexp(ints)],
        f"{TW}.renorm": [
            lambda: tw.renorm(v, 2, 0, 1.0),
            lambda: tw.renorm(m, 0, 0, 1.0),
            lambda: tw.renorm(m, 2, 0, -1.0),
            lambda: tw.renorm(m, 2, 2, 1.0),
            lambda: tw.renorm(nothing, 2, 2, 1.0),
        ],
        f"{TW}.index_reduce": [
            lambda: tw.index_reduce(v, 1, tw.asarray([0]), v[:1], "prod"),
            lambda: tw.index_reduce(v, 0, tw.asarray([9]), v[:1], "prod"),
            lambda: tw.index_reduce(v, 0, tw.asarray([0]), v, "prod"),
            lambda: tw.index_reduce(v, 0, tw.asarray([[0]]), v[:1], "prod"),
            lambda: tw.index_reduce(v, 0, tw.asarray([0]), v[:1], "best"),
            lambda: tw.index_reduce(v, 0, v[:1], v[:1], "prod"),
            lambda: tw.index_reduce(v, 0, tw.asarray([0]), ints[:1], "prod"),
        ],
        f"{TW}.diagonal_scatter": [
            lambda: tw.diagonal_scatter(m, v[:1], 0),
            lambda: tw.diagonal_scatter(m, v, 0, 0, 3),
            lambda: tw.diagonal_scatter(m, v, 0, 1, 1),
            lambda: tw.diagonal_scatter(m, ints),
        ],
        f"{TW}.put": [
            lambda: tw.put(m, tw.asarray([99]), v[:1]),
            lambda: tw.put(m, tw.asarray([0]), v[:2]),
            lambda: tw.put(m, tw.asarray([0]), ints[:1]),
            lambda: tw.put(m, tw.asarray([True]), v[:1]),
        ],
        f"{TW}.sum_to_size": [
            lambda: tw.sum_to_size(m, 7),
            lambda: tw.sum_to_size(v, 1, 1, 1),
            lambda: tw.sum_to_size(v, "a"),
        ],
        f"{TW}.cross": [lambda: tw.cross(v, tw.ones((2, 4, 3)), axis=0), lambda: tw.cross(r, m)],
        f"{TW}.norm": [lambda: tw.norm(v, "x"), lambda: tw.norm(v, axis=5)],
        f"{TW}.histogram": [
            lambda: tw.histogram(v, [2.0, 1.0]),
            lambda: tw.histogram(v, weight=w),
        ],
        f"{TW}.index_put": [
            lambda: tw.index_put(v, [far], 1.0),
            lambda: tw.index_put(v, [ints], w),
            lambda: tw.index_put(v, [ints], ints),
        ],
        f"{TW}.index_put_": [
            lambda: tw.index_put_(tw.ones(3), [far], 1.0),
            lambda: tw.index_put_(tw.ones(3), [ints], w),
            lambda: tw.index_put_(tw.ones(3), [ints], ints),
            lambda: tw.index_put_(leaf(), [ints], 1.0),
        ],
        f"{TW}.take_along_dim": [
            lambda: tw.take_along_dim(v, far),
            lambda: tw.take_along_dim(v, v),
            lambda: tw.take_along_dim(m, ints, 0),
        ],
        f"{TW}.unravel_index": [lambda: tw.unravel_index(far, (2, 3))],
        f"{TW}.can_cast": [lambda: tw.can_cast(3.5, "x")],
        f"{TW}.isdtype": [lambda: tw.isdtype(3, "bool"), lambda: tw.isdtype(tw.int8, "x")],
        f"{TW}.promote_types": [tw.promote_types, lambda: tw.promote_types(nothing)],
        f"{TW}.split": [lambda: tw.split(v, 0), lambda: tw.split(v, 1, axis=5)],
        f"{TW}.chunk": [lambda: tw.chunk(v, 0), lambda: tw.chunk(v, 2, axis=5)],
        f"{TW}.tensor_split": [
            lambda: tw.tensor_split(v, 0),
            lambda: tw.tensor_split(v, 2, axis=5),
        ],
        f"{TW}.hsplit": [lambda: tw.hsplit(v, 2), lambda: tw.hsplit(tw.ones(()), 1)],
        f"{TW}.vsplit": [lambda: tw.vsplit(v, 3), lambda: tw.vsplit(m, 2)],
        f"{TW}.dsplit": [lambda: tw.dsplit(m, 3)],
    },
)

MAKING = joined(
    each(
        TW,
        "asarray tensor",
        lambda f: f(nothing),
        lambda f: f([1, [2]]),
        lambda f: f([300], dtype=tw.int8),
    ),
    {
        f"{TW}.asarray": [lambda: tw.asarray([1], copy=False)],
        f"{TW}.tensor": [lambda: tw.tensor([1], requires_grad=True)],
        f"{TW}.as_tensor": [lambda: tw.as_tensor(nothing), lambda: tw.as_tensor([1, [2]])],
        f"{TW}.from_numpy": [lambda: tw.from_numpy([1]), lambda: tw.from_numpy(nothing)],
        f"{TW}.from_dlpack": [
            lambda: tw.from_dlpack(v, device="null", copy=False),
            lambda: tw.from_dlpack(np.ones(3, ">f4")),
        ],
        f"{TW}.frombuffer": [
            lambda: tw.frombuffer(b"1234", tw.float32, shape=(3,)),
            lambda: tw.frombuffer(b"1234", tw.float32, offset=9),
        ],
        f"{TW}.is_tensor": [tw.is_tensor],
        f"{TW}.arange": [lambda: tw.arange(300, dtype=tw.uint8)],
        f"{TW}.linspace": [lambda: tw.linspace(0, 300, 3, dtype=tw.uint8)],
        f"{TW}.logspace": [lambda: tw.logspace(0, 1, -1), lambda: tw.logspace("a", 1, 3)],
        f"{TW}.full": [
            lambda: tw.full((2,), 300, dtype=tw.int8),
            lambda: tw.full((-1,), 1),
        ],
        f"{TW}.full_like": [lambda: tw.full_like(ints.astype(tw.int8), 300)],
        f"{TW}.masked_fill": [lambda: tw.masked_fill(ints.astype(tw.int8), ints > 1, 300)],
        f"{TW}.index_fill": [lambda: tw.index_fill(ints.astype(tw.int8), 0, ints, 300)],
        f"{TW}.one_hot": [lambda: tw.one_hot(ints, -3)],
        f"{TW}.bincount": [lambda: tw.bincount(-ints), lambda: tw.bincount(ints, minlength=-1)],
        f"{TW}.multinomial": [lambda: tw.multinomial(-v, 1)],
        f"{TW}.binomial": [lambda: tw.binomial(-v, v * 0)],
        f"{TW}.poisson": [lambda: tw.poisson(-v)],
        f"{TW}.standard_gamma": [lambda: tw.standard_gamma(-v)],
        f"{TW}.uniform": [lambda: tw.uniform(2.0, 1.0, (2,))],
        f"{TW}.dropout": [lambda: tw.dropout(v, 2.0)],
        f"{TW}.embedding_bag": [lambda: tw.embedding_bag(far[None], m)],
        f"{TW}.multi_margin_loss": [
            lambda: tw.multi_margin_loss(m, tw.asarray([0, 1, 9])),
        ],
        f"{TW}.multilabel_margin_loss": [
            lambda: tw.multilabel_margin_loss(v, tw.asarray([9, -1, -1]))
        ],
        f"{TW}.gaussian_nll_loss": [lambda: tw.gaussian_nll_loss(v, v, -v)],
        f"{TW}.binary_cross_entropy": [lambda: tw.binary_cross_entropy(2 * v, v)],
        f"{TW}.triplet_margin_loss": [lambda: tw.triplet_margin_loss(m, m, m, margin=-1.0)],
        f"{TW}.softshrink": [lambda: tw.softshrink(v, -1.0), lambda: v.copy().softshrink_(-1.0)],
        f"{TW}.hardtanh": [
            lambda: tw.hardtanh(v, 2.0, 1.0),
            lambda: tw.hardtanh(v.copy(), 2.0, 1.0, inplace=True),
        ],
        f"{TW}.celu": [lambda: tw.celu(v, 0.0)],
    },
    each(TW, "dropout1d dropout2d dropout3d feature_alpha_dropout", lambda f: f(v)),
    each(TW, "alpha_dropout", lambda f: f(v, 2.0, True)),
    *(
        {
            f"{TW}.max_unpool{n}d": [
                lambda n=n: getattr(tw, f"max_unpool{n}d")(
                    tw.ones((1, 1, *[1] * n)), far.reshape((1, 1, *[1] * n)) * 9, 2
                )
            ]
        }
        for n in (1, 2, 3)
    ),
)

STATES = {
    f"{TW}.auto_device": [lambda: tw.auto_device(nothing)],
    f"{TW}.checkpoint": [
        lambda: tw.checkpoint(abs, v, use_reentrant=True),
        lambda: differing().backward(),
    ],
    f"{TW}.checkpoint_sequential": [
        lambda: tw.checkpoint_sequential(tw.nn.Sequential(Linear(3, 3)), 9, v)
    ],
    f"{TW}.force_kernel": [lambda: tw.force_kernel("nope", "x")],
    f"{TW}.manual_seed": [lambda: tw.manual_seed(-1)],
    f"{TW}.use_deterministic_algorithms": [lambda: tw.use_deterministic_algorithms(1)],
    "tilewright.cuda.manual_seed": [lambda: tw.cuda.manual_seed(-1)],
    "tilewright.cuda.manual_seed_all": [lambda: tw.cuda.manual_seed_all(-1)],
    f"{TW}.set_default_device": [lambda: tw.set_device("x")],
    f"{TW}.set_float32_matmul_precision": [lambda: tw.set_float32_matmul_precision("x")],
    f"{TW}.set_isa": [lambda: tw.set_isa("x")],
    f"{TW}.set_matmul_tuning": [lambda: tw.set_matmul_tuning("x", 1.0)],
    f"{TW}.set_num_threads": [lambda: tw.set_num_threads(0)],
    f"{TW}.set_printoptions": [lambda: tw.set_printoptions(precision=-1)],
    f"{TW}.set_rng_state": [lambda: tw.set_rng_state(v)],
    f"{TW}.load": [
        lambda: tw.load(MISSING),
        lambda: tw.load(__file__),
        lambda: with_file(tw.load, dtype="F8_E5M2"),
    ],
    f"{TW}.save": [
        lambda: tw.save({"x": nothing}, MISSING),
        lambda: tw.save({"\ud800": v}, MISSING),
        lambda: tw.save({"x": v}, MISSING),
    ],
    f"{TW}.grad": [lambda: tw.grad(v, v), lambda: tw.grad(LEAF * 2, LEAF, w)],
    f"{TW}.gradcheck": [
        lambda: tw.gradcheck(tw.sin, v.astype(tw.float64)),
        lambda: tw.gradcheck(tw.sin, leaf()),
        lambda: tw.gradcheck(wrong_gradient, v.astype(tw.float64).requires_grad_()),
    ],
    f"{TW}.gradgradcheck": [
        lambda: tw.gradgradcheck(tw.sin, v.astype(tw.float64)),
        lambda: tw.gradgradcheck(tw.sin, leaf()),
        lambda: tw.gradgradcheck(
            lambda x: wrong_gradient(x) * x, v.astype(tw.float64).requires_grad_()
        ),
    ],
    "tilewright.autograd.backward": [
        lambda: tw.autograd.backward(v),
        lambda: tw.autograd.backward(leaf() * 2, w),
    ],
    "tilewright.kernels.names": [lambda: tw.kernels.names("nope")],
    "tilewright.kernels.load": [
        lambda: tw.kernels.load(MISSING),
        lambda: with_file(tw.kernels.load),
        lambda: tw.kernels.load(tw._core.__file__),
    ],
    "tilewright.kernels.validate": [
        lambda: tw.kernels.validate("softmax", "vector"),
        lambda: tw.kernels.validate("matmul", "nope"),
    ],
    "tilewright.kernels.describe": [lambda: tw.kernels.describe("nope")],
    "tilewright.memory.report": [lambda: tw.memory.report(v.sum)],
    "tilewright.runtime.bind_modes": [lambda: tw.runtime.bind_modes(3)],
    "tilewright.io.load_metadata": [
        lambda: tw.io.load_metadata(MISSING),
        lambda: tw.io.load_metadata(__file__),
    ],
    "tilewright.io.names": [lambda: tw.io.names(MISSING), lambda: tw.io.names(__file__)],
    "tilewright.io.remove_temporaries": [lambda: tw.io.remove_temporaries(MISSING)],
    "tilewright.io.write_whole": [lambda: tw.io.write_whole(MISSING, b"", "test")],
    "tilewright.io.atomic_writer": [lambda: tw.io.atomic_writer(MISSING, "test").__enter__()],
    "tilewright.io.locate": [lambda: with_file(lambda path: tw.io.locate(path, "y"))],
    "tilewright.cuda.set_launch_limit": [lambda: tw.cuda.set_launch_limit(1, of="x")],
    "tilewright.cuda.set_stream": [lambda: tw.cuda.set_stream(3)],
    "tilewright.cuda.set_per_process_memory_fraction": [
        lambda: tw.cuda.set_per_process_memory_fraction(2.0)
    ],
    **({} if tw.cuda.is_available() else each("tilewright.cuda", GPU, lambda f: f())),
}


def differing() -> tw.Tensor:
    """A checkpoint whose second run saves other values than its first."""
    sizes: Iterable[int] = iter((1, 2))

    def step(x: tw.Tensor) -> tw.Tensor:
        for _ in range(next(sizes)):
            x = tw.exp(x)
        return x.sum()

    return tw.checkpoint(step, leaf())


def with_file(read: Callable[[Path], object], dtype: str = "U8") -> object:
    """Reads a safetensors file of one tensor of one byte."""
    header = json.dumps({"x": {"dtype": dtype, "shape": [1], "data_offsets": [0, 1]}}).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.safetensors")
        path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
        return read(path)


MATRICES = joined(
    each(LINALG, "cholesky eigh eigvalsh det inv logdet slogdet", lambda f: f(r)),
    each(TW, "det logdet slogdet inverse", lambda f: f(r)),
    each(LINALG, "cond matrix_rank qr svd svdvals trace diagonal pinv", lambda f: f(v)),
    each(LINALG, "matrix_norm matrix_transpose", lambda f: f(v)),
    each(
        LINALG,
        "cholesky_ex inv_ex",
        lambda f: f(r),
        lambda f: f(singular, check_errors=True),
    ),
    each(LINALG, "lu lu_factor lu_factor_ex", lambda f: f(v)),
    each(LINALG, "lu_factor", lambda f: f(singular)),
    each(LINALG, "lu_factor_ex", lambda f: f(singular, check_errors=True)),
    each(LINALG, "eig eigvals", lambda f: f(r), lambda f: f(m * math.nan)),
    each(TW, "cholesky_inverse", lambda f: f(r), lambda f: f(singular)),
    each(TW, "lu_unpack", lambda f: f(v, PIVOTS), lambda f: f(r, PIVOTS)),
    each(TW, "pinverse", lambda f: f(v)),
    {
        f"{LINALG}.cholesky": [lambda: linalg.cholesky(-m)],
        f"{LINALG}.diagonal": [lambda: linalg.diagonal(m, dim1=7)],
        f"{LINALG}.norm": [lambda: linalg.norm(m, "x")],
        f"{LINALG}.solve": [
            lambda: linalg.solve(m, w),
            lambda: linalg.solve(singular, tw.ones(2)),
        ],
        f"{LINALG}.solve_ex": [
            lambda: linalg.solve_ex(m, w),
            lambda: linalg.solve_ex(singular, tw.ones(2), check_errors=True),
        ],
        f"{LINALG}.lu_solve": [
            lambda: linalg.lu_solve(m, PIVOTS, r),
            lambda: linalg.lu_solve(m * 0, PIVOTS, m),
        ],
        f"{LINALG}.householder_product": [lambda: linalg.householder_product(r, tw.ones(2))],
        f"{LINALG}.tensorinv": [
            lambda: linalg.tensorinv(r, 1),
            lambda: linalg.tensorinv(singular, 1),
        ],
        f"{LINALG}.tensorsolve": [
            lambda: linalg.tensorsolve(m, w),
            lambda: linalg.tensorsolve(singular, tw.ones(2)),
        ],
        f"{LINALG}.vander": [lambda: linalg.vander(v, N=1), lambda: linalg.vander(nothing)],
        f"{LINALG}.solve_triangular": [
            lambda: linalg.solve_triangular(m, r, upper=True),
            lambda: linalg.solve_triangular(singular * 0, tw.ones(2, 1), upper=True),
        ],
        f"{LINALG}.cholesky_solve": [
            lambda: linalg.cholesky_solve(v, m),
            lambda: linalg.cholesky_solve(tw.ones(2, 1), singular * 0),
        ],
        f"{LINALG}.lstsq": [lambda: linalg.lstsq(m, v)],
        f"{LINALG}.matrix_exp": [lambda: linalg.matrix_exp(r)],
        f"{LINALG}.vector_norm": [
            lambda: linalg.vector_norm(v, axis=5),
            lambda: linalg.vector_norm(tw.ones(0), -math.inf),
        ],
        f"{TW}.inverse": [lambda: tw.inverse(singular)],
        f"{TW}.cholesky_solve": [
            lambda: tw.cholesky_solve(v, m),
            lambda: tw.cholesky_solve(tw.ones(2, 1), singular * 0),
        ],
        f"{TW}.matrix_exp": [lambda: tw.matrix_exp(r)],
        f"{TW}.matrix_power": [
            lambda: tw.matrix_power(r, 2),
            lambda: tw.matrix_power(singular, -1),
            lambda: tw.matrix_power(m, 1.5),
        ],
    },
)

TRANSFORMS = joined(
    each(
        FFT,
        "fft ifft rfft irfft hfft ihfft",
        lambda f: f(v, axis=5),
        lambda f: f(v, norm="x"),
        lambda f: f(v, n=0),
    ),
    each(
        FFT,
        """fftn ifftn rfftn irfftn hfftn ihfftn
            fft2 ifft2 rfft2 irfft2 hfft2 ihfft2""",
        lambda f: f(m, axes=(7,)),
        lambda f: f(m, axes=(0, 0)),
        lambda f: f(m, norm="x"),
    ),
    each(FFT, "fft2 ifft2 irfft2 hfft2", lambda f: f(nothing)),
    each(FFT, "fftshift ifftshift", lambda f: f(v, axes=5)),
    each(FFT, "fftfreq rfftfreq", lambda f: f(0), lambda f: f(4, dtype=tw.int32)),
)

LAYERS = joined(
    each(F, "max_pool1d", lambda f: f(rows, 9)),
    each(F, "max_pool2d", lambda f: f(image, 9)),
    each(F, "max_pool3d", lambda f: f(image, 9)),
    each(F, "adaptive_max_pool1d", lambda f: f(rows, (1, 2))),
    each(F, "adaptive_max_pool2d", lambda f: f(image, (1, 2, 3))),
    each(F, "adaptive_max_pool3d", lambda f: f(image, (1, 2))),
    each(F, "lp_pool1d", lambda f: f(rows, 2.0, 9), lambda f: f(rows, 0.0, 2)),
    each(F, "lp_pool2d", lambda f: f(image, 2.0, 9)),
    each(F, "lp_pool3d", lambda f: f(image, 2.0, 9)),
    each(
        F,
        "fractional_max_pool2d fractional_max_pool2d_with_indices",
        lambda f: f(image, 9, 9),
        lambda f: f(image, 2),
    ),
    each(
        F,
        "fractional_max_pool3d fractional_max_pool3d_with_indices",
        lambda f: f(image, 9, 9),
        lambda f: f(image, 2),
    ),
    each(F, "gumbel_softmax", lambda f: f(v, -1.0), lambda f: f(v, dim=4)),
    each(F, "interpolate upsample", lambda f: f(rows), lambda f: f(nothing, size=3)),
    each(F, "normalize softmin", lambda f: f(v, dim=4)),
    each(F, "pdist", lambda f: f(v), lambda f: f(m, -1.0)),
    each(F, "rrelu", lambda f: f(v, 0.5, 0.1)),
    each(F, "triplet_margin_with_distance_loss", lambda f: f(v, v, v, margin=-1.0)),
    each(F, "ctc_loss", lambda f: f(rows, tw.asarray([[1]]), (1, 2, 3), (1,))),
    each(F, "embedding", lambda f: f(far, m), lambda f: f(v, m), lambda f: f(ints, v)),
    each(
        F,
        "embedding_bag",
        lambda f: f(far[None], m),
        lambda f: f(m, m),
        lambda f: f(ints, m),
    ),
    each(INIT, "calculate_gain", lambda f: f("x")),
    each(INIT, "constant_", lambda f: f(v, "a")),
    each(INIT, "ones_ zeros_", lambda f: f(nothing)),
    each(INIT, "dirac_ eye_ orthogonal_ xavier_normal_ xavier_uniform_", lambda f: f(v)),
    each(INIT, "kaiming_normal_ kaiming_uniform_", lambda f: f(v), lambda f: f(m, mode="x")),
    each(INIT, "sparse_", lambda f: f(v, 0.5)),
    each(INIT, "trunc_normal_", lambda f: f(v, a=2.0, b=1.0)),
    each(INIT, "normal_", lambda f: f(v, 0.0, -1.0)),
    each(INIT, "uniform_", lambda f: f(v, 2.0, 1.0)),
    each(
        UTILS,
        "clip_grad_norm_",
        lambda f: f([infinite()], 1.0, error_if_nonfinite=True),
        lambda f: f([infinite()], -1.0),
    ),
    each(UTILS, "clip_grad_value_", lambda f: f([nothing], 1.0), lambda f: f([], -1.0)),
    each(
        UTILS,
        "clip_grads_with_norm_",
        lambda f: f([nothing], 1.0, tw.ones(())),
        lambda f: f([], -1.0, tw.ones(())),
    ),
    each(UTILS, "fuse_conv_bn_eval", lambda f: f(tw.nn.Conv1d(1, 1, 1), tw.nn.BatchNorm1d(1))),
    each(UTILS, "fuse_linear_bn_eval", lambda f: f(Linear(1, 1), tw.nn.BatchNorm1d(1))),
    each(UTILS, "fuse_conv_bn_weights", lambda f: f(m, None, w, w, 0.0, None, None)),
    each(UTILS, "get_total_norm", lambda f: f([v / 0], error_if_nonfinite=True)),
    each(UTILS, "parameters_to_vector", lambda f: f([]), lambda f: f([nothing])),
    each(UTILS, "vector_to_parameters", lambda f: f(v, [tw.ones(2)])),
    each(UTILS, "spectral_norm weight_norm", lambda f: f(Linear(2, 2), "x")),
    each(UTILS, "remove_spectral_norm remove_weight_norm", lambda f: f(Linear(2, 2))),
)

N, U = tw.distributions.Normal, tw.distributions.Uniform
FUNCTIONALS = joined(
    each(F, "celu_", lambda f: f(tw.ones(2), 0.0)),
    each(F, "hardtanh_", lambda f: f(tw.ones(2), 1.0, -1.0)),
    each(
        TW,
        "bartlett_window blackman_window hamming_window hann_window kaiser_window",
        lambda f: f(-1),
        lambda f: f(3, dtype=tw.int32),
    ),
    each(TW, "stft", lambda f: f(m[None], 8), lambda f: f(ints, 2)),
    each(
        TW, "isreal adjoint ldexp is_nonzero", lambda f: f(*[nothing] * (2 if f is tw.ldexp else 1))
    ),
    each(TW, "resolve_conj", lambda f: f(nothing)),
    each(
        TW,
        "fill_diagonal_",
        lambda f: f(nothing, 1),
        lambda f: f(v, 1),
        lambda f: f(tw.ones((2, 2)).requires_grad_(), 1.0),
    ),
    each(TW, "is_nonzero adjoint", lambda f: f(v)),
    each(TW, "ldexp", lambda f: f(v, w)),
    each(TW, "msort", lambda f: f(v * 1j)),
    each(TW, "mvlgamma", lambda f: f(v, 0)),
    each(TW, "i0", lambda f: f(v * 1j)),
    each("tilewright.special", "erfcx i0e i1 i1e entr log_ndtr ndtr ndtri", lambda f: f(v * 1j)),
    each(
        "tilewright.special",
        "zeta",
        lambda f: f(v, w),
        lambda f: f(leaf(), 2.0).sum().backward(),
    ),
    each(TW, "istft", lambda f: f(v, 8), lambda f: f(m, 4)),
    each(
        TW,
        "gradient",
        lambda f: f(nothing),
        lambda f: f(tw.ones(1)),
        lambda f: f(v, edge_order=3),
        lambda f: f(v, 1.0, 2.0),
        lambda f: f(v, axis=1),
    ),
    each(
        TW,
        "vmap",
        lambda f: f(tw.sin, randomness="some"),
        lambda f: f(tw.sin, in_dims=1)(v),
        lambda f: f(lambda x: 1.0)(v),
        lambda f: f(lambda x: x + tw.rand(()))(v),
    ),
    each(
        FUNC,
        "functional_call",
        lambda f: f(Linear(2, 2), {"x": v}, v),
        lambda f: f(Linear(2, 2), {"weight": 1.0}, v),
    ),
    each(
        FUNC,
        "grad",
        lambda f: f(tw.sin)(v),
        lambda f: f(lambda x: 1.0)(v),
        lambda f: f(tw.sum, argnums=1)(v),
    ),
    each(FUNC, "jacrev jacfwd", lambda f: f(tw.sin)(1.0), lambda f: f(tw.sin, 1)(v)),
    each(
        FUNC,
        "hessian",
        lambda f: f(tw.sin)(v),
        lambda f: f(tw.sum)(1.0),
        lambda f: f(tw.sum, 1)(v),
    ),
    each(FUNC, "vjp", lambda f: f(tw.sin, v)[1](w)),
    each(FUNC, "jvp", lambda f: f(tw.sin, (v,), (w,))),
    each(FUNC, "stack_module_state", lambda f: f([])),
    each(DISTRIBUTIONS, "register_kl", lambda f: f(N, 3)),
    each(DISTRIBUTIONS, "kl_divergence", lambda f: f(N(0.0, 1.0), U(0.0, 1.0))),
    each(
        DISTRIBUTIONS,
        "kl_divergence",
        lambda f: f(*(tw.distributions.Independent(N(m, m), n) for n in (1, 2))),
    ),
    each(
        TESTING,
        "assert_close",
        lambda f: f(v, v + 1),
        lambda f: f(v, v, rtol=1.0),
        lambda f: f(nothing, nothing),
    ),
)

REFUSED = joined(PRODUCTS, SEVERAL, MAKING, STATES, MATRICES, TRANSFORMS, LAYERS, FUNCTIONALS)
