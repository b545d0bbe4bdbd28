"""Tilewright, a glass-box tensor engine: every optimisation is a switch to see and measure."""

from __future__ import annotations

import builtins as _builtins
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
inf = _builtins.float("inf")  # `tw.float` is a type
nan = _builtins.float("nan")
newaxis = None
# PyTorch's names of the only memory format that there is here: row-major.
contiguous_format = "contiguous_format"
preserve_format = "preserve_format"
Size: type[tuple[_typing.Any, ...]] = tuple  # what `shape` is
pi = 3.141592653589793
__array_api_version__ = "2024.12"

# Loaded on first use, to keep the import fast. `make stub` writes _names.pyi from these lists.
_SUBMODULES = (
    "amp", "autograd", "bench", "cli", "cuda", "data", "distributions", "fft", "func", "io",
    "kernels", "linalg", "memory", "nn", "optim", "optimizations", "runtime", "special", "testing",
    "train", "tune",
)  # fmt: skip
# Functions of a tensor first, which are its methods as well.
_OF_TENSORS = {
    **dict.fromkeys(
        ("addbmm", "addmv", "addr", "baddbmm", "bmm", "dot", "inner", "kron", "mm", "mv", "outer",
         "tensordot", "vdot", "vecdot"),
        "tilewright._arrays.contraction",
    ),
    **dict.fromkeys(("dist", "norm", "renorm"), "tilewright._arrays.distances"),
    **dict.fromkeys(("aminmax", "fmax", "fmin", "mode"), "tilewright._arrays.extremes"),
    **dict.fromkeys(("index_put", "index_put_"), "tilewright._arrays.indexing"),
    **dict.fromkeys(("gcd", "lcm"), "tilewright._arrays.integers"),
    **dict.fromkeys(
        ("argwhere", "take_along_dim", "unravel_index"), "tilewright._arrays.positions"
    ),
    **dict.fromkeys(
        ("histogram", "unique", "unique_all", "unique_consecutive", "unique_counts",
         "unique_inverse", "unique_values"),
        "tilewright._arrays.sets",
    ),
    **dict.fromkeys(
        ("corrcoef", "cov", "cumulative_trapezoid", "std_mean", "trapezoid", "var_mean"),
        "tilewright._arrays.statistics",
    ),
    **dict.fromkeys(
        ("adjoint", "diagonal_scatter", "fill_diagonal_", "frexp", "index_reduce", "is_nonzero",
         "isreal", "ldexp", "msort", "mvlgamma", "put", "resolve_conj", "split_with_sizes",
         "sum_to_size"),
        "tilewright._compat.torch_functions",
    ),
    **dict.fromkeys(("istft", "stft"), "tilewright.fft.short_time"),
    **dict.fromkeys(
        ("cholesky_inverse", "cholesky_solve", "det", "logdet", "lu_unpack", "matrix_exp",
         "matrix_power", "slogdet"),
        "tilewright.linalg",
    ),
    "i0": "tilewright.special",
}  # fmt: skip
_LAZY = {
    **_OF_TENSORS,
    **dict.fromkeys(
        ("atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_arrays",
         "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "meshgrid"),
        "tilewright._arrays.broadcasting",
    ),
    **dict.fromkeys(
        ("as_tensor", "from_numpy", "is_tensor", "logspace"), "tilewright._arrays.creation"
    ),
    "gradient": "tilewright._arrays.differences",
    "einsum": "tilewright._arrays.einsum",
    **dict.fromkeys(
        ("__array_namespace_info__", "can_cast", "finfo", "iinfo", "isdtype"),
        "tilewright._compat.array_api",
    ),
    "device": "tilewright._engine.device_names",
    **dict.fromkeys(
        ("are_deterministic_algorithms_enabled", "get_rng_state", "initial_seed", "seed",
         "set_rng_state", "use_deterministic_algorithms"),
        "tilewright._engine.generators",
    ),
    "explain": "tilewright._inspect.explanation",
    "auto_device": "tilewright._inspect.placement",
    "profile": "tilewright._inspect.profiling",
    "set_printoptions": "tilewright._report.display",
    "autocast": "tilewright.amp",
    **dict.fromkeys(
        ("checkpoint", "checkpoint_sequential"), "tilewright.autograd.checkpointing"
    ),
    **dict.fromkeys(("gradcheck", "gradgradcheck"), "tilewright.autograd.gradient_check"),
    **dict.fromkeys(
        ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"),
        "tilewright.fft.short_time",
    ),
    "vmap": "tilewright.func",
    **dict.fromkeys(("load", "save"), "tilewright.io"),
    "use_batch_invariant": "tilewright.kernels",
    "pdist": "tilewright.nn.functions.composites",
}  # fmt: skip
_NEW = ("new", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros")
# Methods that PyTorch has as functions too; and all that end with "_".
_AS_FUNCTIONS = ("clone", "detach", "is_complex", "is_floating_point", "is_signed", "numel", "t")


if _typing.TYPE_CHECKING:
    from tilewright._names import *  # noqa: F403  (all names; the module is for type checkers)
else:

    def __getattr__(name: str) -> _typing.Any:
        if name in _SUBMODULES:
            return _importlib.import_module(f"tilewright.{name}")
        if name in _LAZY or name in _core._other_names:
            value = _load(name)
            globals()[name] = value
            return value
        if name in _core._other_dtypes:  # not kept: a global `float` would hide Python's here
            return getattr(_core, _core._other_dtypes[name])
        if name in _AS_FUNCTIONS or (name.endswith("_") and not name.startswith("_")):
            value = getattr(_core.Tensor, name, None)
            if value is not None:
                return value
        told = "" if name.startswith("_") else _load_remedy(name)
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}{told}")


def __dir__() -> list[str]:
    others = (*_core._other_names, *_core._other_dtypes)
    return sorted({*globals(), *_SUBMODULES, *_LAZY, *_AS_FUNCTIONS, *others})


def _load_remedy(name: str) -> str:
    """What to write instead of a name of PyTorch's."""
    remedy: str = _importlib.import_module("tilewright._compat.missing_names").remedy(name)
    return remedy


def _load(name: str) -> _typing.Any:
    """A function of `_LAZY` or `_core`, by its own name or another one, or one of `_NEW`."""
    folder, _, own = _core._other_names.get(name, name).rpartition(".")
    if own != name and own in vars(_core):
        return getattr(_core, own)
    home = f"tilewright.{folder}" if folder else _LAZY.get(own, "tilewright._arrays.creation")
    return getattr(_importlib.import_module(home), own)


_METHODS = (
    *_OF_TENSORS,
    *(name for name, ours in _core._other_names.items() if ours not in vars(_core)),
    *_NEW,
)
_methods.install(_load, _METHODS)


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


if _core.env_text("OFF"):
    _importlib.import_module("tilewright.optimizations").check_environment()
_apply_tuning()
