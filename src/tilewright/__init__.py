"""Tilewright, a glass-box tensor engine: every optimisation is a switch to see and measure."""

from __future__ import annotations

import importlib as _importlib
import os as _os
import sys as _sys
import typing as _typing

from tilewright import _core
from tilewright._core import *  # noqa: F403  (the engine's ops; its stub lists them)
from tilewright._engine import cache as _cache
from tilewright._engine import lazy_methods as _methods
from tilewright._engine.grad_mode import enable_grad as enable_grad
from tilewright._engine.grad_mode import inference_mode as inference_mode
from tilewright._engine.grad_mode import no_grad as no_grad
from tilewright._engine.grad_mode import set_grad_enabled as set_grad_enabled

__version__ = "0.1.0"

_core._set_package_folder(_os.path.dirname(__file__) + _os.sep)

# Python's own floats are 64-bit; these are the Array API's constants.
e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
# PyTorch's names of the only memory format that there is here: row-major.
contiguous_format = "contiguous_format"
preserve_format = "preserve_format"
Size: type[tuple[_typing.Any, ...]] = tuple  # what `shape` is
pi = 3.141592653589793
__array_api_version__ = "2024.12"

# Loaded on first use, to keep the import fast.
_SUBMODULES = (
    "amp", "autograd", "bench", "cli", "cuda", "data", "distributions", "fft", "func", "io",
    "kernels", "linalg", "memory", "nn", "optim", "runtime", "special", "testing", "train", "tune",
)  # fmt: skip
# Functions of a tensor first, which are its methods as well.
_OF_TENSORS = {
    **dict.fromkeys(
        ("tensordot", "vecdot", "vdot", "outer", "dot", "inner", "mm", "mv", "bmm", "kron",
         "addbmm", "addmv", "addr", "baddbmm"),
        "tilewright._arrays.contraction",
    ),
    "ger": "tilewright._arrays.contraction:outer",
    **dict.fromkeys(("istft", "stft"), "tilewright.fft.short_time"),
    **dict.fromkeys(
        ("adjoint", "diagonal_scatter", "fill_diagonal_", "frexp", "index_reduce", "is_nonzero",
         "isreal", "ldexp", "msort", "mvlgamma", "put", "resolve_conj", "split_with_sizes",
         "sum_to_size"),
        "tilewright._compat.torch_functions",
    ),
    **dict.fromkeys(
        ("histogram", "unique", "unique_all", "unique_consecutive", "unique_counts",
         "unique_inverse", "unique_values"),
        "tilewright._arrays.sets",
    ),
    "i0": "tilewright.special",
    "index_put": "tilewright._arrays.indexing",
    "index_put_": "tilewright._arrays.indexing",
    **dict.fromkeys(("aminmax", "fmax", "fmin", "mode"), "tilewright._arrays.extremes"),
    **dict.fromkeys(("gcd", "lcm"), "tilewright._arrays.integers"),
    **dict.fromkeys(
        ("corrcoef", "cov", "cumulative_trapezoid", "std_mean", "trapezoid", "var_mean"),
        "tilewright._arrays.statistics",
    ),
    "trapz": "tilewright._arrays.statistics:trapezoid",
    **dict.fromkeys(("dist", "norm", "renorm"), "tilewright._arrays.distances"),
    **dict.fromkeys(
        ("argwhere", "take_along_dim", "unravel_index"), "tilewright._arrays.positions"
    ),
    **dict.fromkeys(
        ("cholesky_inverse", "cholesky_solve", "det", "logdet", "lu_unpack", "matrix_exp",
         "matrix_power", "slogdet"),
        "tilewright.linalg",
    ),
    "inverse": "tilewright.linalg:inv",
    "pinverse": "tilewright.linalg:pinv",
}  # fmt: skip
_NEW = ("new", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros")
# Methods that PyTorch has as functions too; and all that end with "_".
_AS_FUNCTIONS = ("clone", "detach", "is_complex", "is_floating_point", "is_signed", "numel", "t")
# PyTorch's names of the types that are no names of ours; not taken by `import *`.
_DTYPES = {
    "double": "float64", "float": "float32", "half": "float16", "int": "int32", "long": "int64",
    "short": "int16",
}  # fmt: skip
_LAZY = {
    **_OF_TENSORS,
    "__array_namespace_info__": "tilewright._compat.array_api",
    "autocast": "tilewright.amp",
    "checkpoint": "tilewright.autograd.checkpointing",
    "checkpoint_sequential": "tilewright.autograd.checkpointing",
    "einsum": "tilewright._arrays.einsum",
    "auto_device": "tilewright._inspect.placement",
    "explain": "tilewright._inspect.explanation",
    "device": "tilewright._engine.device_names",
    **dict.fromkeys(
        ("as_tensor", "from_numpy", "is_tensor", "logspace"), "tilewright._arrays.creation"
    ),
    **dict.fromkeys(
        ("are_deterministic_algorithms_enabled", "get_rng_state", "initial_seed", "seed",
         "set_rng_state", "use_deterministic_algorithms"),
        "tilewright._engine.generators",
    ),
    **dict.fromkeys(
        ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"),
        "tilewright.fft.short_time",
    ),
    "gradient": "tilewright._arrays.differences",
    "pdist": "tilewright.nn.functions.composites",
    "profile": "tilewright._inspect.profiling",
    "use_batch_invariant": "tilewright.kernels",
    "vmap": "tilewright.func",
    "gradcheck": "tilewright.autograd.gradient_check",
    "gradgradcheck": "tilewright.autograd.gradient_check",
    "save": "tilewright.io",
    "load": "tilewright.io",
    "set_printoptions": "tilewright._report.display",
    "promote_types": "tilewright._core:result_type",
    "get_default_device": "tilewright._core:active_device",
    "set_default_device": "tilewright._core:set_device",
    **dict.fromkeys(("can_cast", "finfo", "iinfo", "isdtype"), "tilewright._compat.array_api"),
    **dict.fromkeys(
        ("atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_arrays",
         "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "meshgrid"),
        "tilewright._arrays.broadcasting",
    ),
}  # fmt: skip


if _typing.TYPE_CHECKING:
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
    from tilewright._arrays.contraction import addbmm as addbmm
    from tilewright._arrays.contraction import addmv as addmv
    from tilewright._arrays.contraction import addr as addr
    from tilewright._arrays.contraction import baddbmm as baddbmm
    from tilewright._arrays.contraction import bmm as bmm
    from tilewright._arrays.contraction import dot as dot
    from tilewright._arrays.contraction import inner as inner
    from tilewright._arrays.contraction import kron as kron
    from tilewright._arrays.contraction import mm as mm
    from tilewright._arrays.contraction import mv as mv
    from tilewright._arrays.contraction import outer as outer
    from tilewright._arrays.contraction import tensordot as tensordot
    from tilewright._arrays.contraction import vdot as vdot
    from tilewright._arrays.contraction import vecdot as vecdot
    from tilewright._arrays.creation import as_tensor as as_tensor
    from tilewright._arrays.creation import from_numpy as from_numpy
    from tilewright._arrays.creation import is_tensor as is_tensor
    from tilewright._arrays.creation import logspace as logspace
    from tilewright._arrays.differences import gradient as gradient
    from tilewright._arrays.distances import dist as dist
    from tilewright._arrays.distances import norm as norm
    from tilewright._arrays.distances import renorm as renorm
    from tilewright._arrays.einsum import einsum as einsum
    from tilewright._arrays.extremes import aminmax as aminmax
    from tilewright._arrays.extremes import fmax as fmax
    from tilewright._arrays.extremes import fmin as fmin
    from tilewright._arrays.extremes import mode as mode
    from tilewright._arrays.indexing import index_put as index_put
    from tilewright._arrays.indexing import index_put_ as index_put_
    from tilewright._arrays.integers import gcd as gcd
    from tilewright._arrays.integers import lcm as lcm
    from tilewright._arrays.positions import argwhere as argwhere
    from tilewright._arrays.positions import take_along_dim as take_along_dim
    from tilewright._arrays.positions import unravel_index as unravel_index
    from tilewright._arrays.sets import histogram as histogram
    from tilewright._arrays.sets import unique as unique
    from tilewright._arrays.sets import unique_all as unique_all
    from tilewright._arrays.sets import unique_consecutive as unique_consecutive
    from tilewright._arrays.sets import unique_counts as unique_counts
    from tilewright._arrays.sets import unique_inverse as unique_inverse
    from tilewright._arrays.sets import unique_values as unique_values
    from tilewright._arrays.statistics import corrcoef as corrcoef
    from tilewright._arrays.statistics import cov as cov
    from tilewright._arrays.statistics import cumulative_trapezoid as cumulative_trapezoid
    from tilewright._arrays.statistics import std_mean as std_mean
    from tilewright._arrays.statistics import trapezoid as trapezoid
    from tilewright._arrays.statistics import var_mean as var_mean
    from tilewright._compat.array_api import __array_namespace_info__ as __array_namespace_info__
    from tilewright._compat.array_api import can_cast as can_cast
    from tilewright._compat.array_api import finfo as finfo
    from tilewright._compat.array_api import iinfo as iinfo
    from tilewright._compat.array_api import isdtype as isdtype
    from tilewright._compat.torch_functions import adjoint as adjoint
    from tilewright._compat.torch_functions import diagonal_scatter as diagonal_scatter
    from tilewright._compat.torch_functions import fill_diagonal_ as fill_diagonal_
    from tilewright._compat.torch_functions import frexp as frexp
    from tilewright._compat.torch_functions import index_reduce as index_reduce
    from tilewright._compat.torch_functions import is_nonzero as is_nonzero
    from tilewright._compat.torch_functions import isreal as isreal
    from tilewright._compat.torch_functions import ldexp as ldexp
    from tilewright._compat.torch_functions import msort as msort
    from tilewright._compat.torch_functions import mvlgamma as mvlgamma
    from tilewright._compat.torch_functions import put as put
    from tilewright._compat.torch_functions import resolve_conj as resolve_conj
    from tilewright._compat.torch_functions import split_with_sizes as split_with_sizes
    from tilewright._compat.torch_functions import sum_to_size as sum_to_size
    from tilewright._engine.device_names import device as device
    from tilewright._engine.generators import (
        are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    )
    from tilewright._engine.generators import get_rng_state as get_rng_state
    from tilewright._engine.generators import initial_seed as initial_seed
    from tilewright._engine.generators import seed as seed
    from tilewright._engine.generators import set_rng_state as set_rng_state
    from tilewright._engine.generators import (
        use_deterministic_algorithms as use_deterministic_algorithms,
    )
    from tilewright._inspect.explanation import explain as explain
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
    from tilewright.linalg import cholesky_inverse as cholesky_inverse
    from tilewright.linalg import cholesky_solve as cholesky_solve
    from tilewright.linalg import det as det
    from tilewright.linalg import inv as _inv
    from tilewright.linalg import logdet as logdet
    from tilewright.linalg import lu_unpack as lu_unpack
    from tilewright.linalg import matrix_exp as matrix_exp
    from tilewright.linalg import matrix_power as matrix_power
    from tilewright.linalg import pinv as _pinv
    from tilewright.linalg import slogdet as slogdet
    from tilewright.nn.functions.composites import pdist as pdist
    from tilewright.special import i0 as i0

    clone = _core.Tensor.clone
    detach = _core.Tensor.detach
    is_complex = _core.Tensor.is_complex
    is_floating_point = _core.Tensor.is_floating_point
    is_signed = _core.Tensor.is_signed
    numel = _core.Tensor.numel
    ger = outer
    inverse = _inv
    pinverse = _pinv
    trapz = trapezoid
    t = _core.Tensor.t
    get_default_device = _core.active_device
    promote_types = _core.result_type
    set_default_device = _core.set_device
    double = _core.float64
    half = _core.float16
    long = _core.int64
    short = _core.int16
else:

    def __getattr__(name: str) -> _typing.Any:
        if name in _SUBMODULES:
            return _importlib.import_module(f"tilewright.{name}")
        if name in _LAZY:
            value = _load(name)
            globals()[name] = value
            return value
        if name in _DTYPES:  # not kept: a global `float` would hide Python's here
            return getattr(_core, _DTYPES[name])
        if name in _AS_FUNCTIONS or (name.endswith("_") and not name.startswith("_")):
            value = getattr(_core.Tensor, name, None)
            if value is not None:
                return value
        remedy = "" if name.startswith("_") else _load_remedy(name)
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}{remedy}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_LAZY, *_AS_FUNCTIONS, *_DTYPES})


def _load_remedy(name: str) -> str:
    """What to write instead of a name of PyTorch's."""
    remedy = _importlib.import_module("tilewright._compat.missing_names").REMEDIES.get(name)
    return f": {remedy}" if remedy else ""


def _load(name: str) -> _typing.Any:
    """A function of `_LAZY`, or one that makes tensors like another one."""
    home, _, own = _LAZY.get(name, "tilewright._arrays.creation").partition(":")
    return getattr(_importlib.import_module(home), own or name)


_methods.install(_load, (*_OF_TENSORS, *_NEW))


class _FormerNames:
    """Finds modules by the names that they had before, as pickles have them; asked last."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> _typing.Any:
        if not name.startswith("tilewright."):
            return None
        return _importlib.import_module("tilewright._compat.moved_modules").find_spec(name)


_sys.meta_path.append(_FormerNames)


def _apply_tuning() -> None:
    """Takes over what `tilewright tune` has measured here; without a table, one look for a file."""
    try:
        there = _core.env_text("TUNE") != "0" and _os.path.lexists(_cache.tuning_path())
    except ImportError:  # a system whose cache folder takes platformdirs to find
        there = False
    if there:
        _importlib.import_module("tilewright.tune.table").apply_at_start()


_apply_tuning()
