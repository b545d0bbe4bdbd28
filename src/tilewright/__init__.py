"""Tilewright, a glass-box tensor engine: every optimisation is a switch to see and measure."""

from __future__ import annotations

import importlib as _importlib
import os as _os
import typing as _typing

from tilewright import _core
from tilewright import cache as _cache
from tilewright._core import *  # noqa: F403  (the engine's ops; its stub lists them)
from tilewright.grad_mode import enable_grad as enable_grad
from tilewright.grad_mode import no_grad as no_grad
from tilewright.grad_mode import set_grad_enabled as set_grad_enabled

__version__ = "0.1.0"

_core._set_package_folder(_os.path.dirname(__file__) + _os.sep)

# Python's own floats are 64-bit; these are the Array API's constants.
e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793
__array_api_version__ = "2024.12"

# Loaded on first use, to keep the import fast.
_SUBMODULES = (
    "amp", "autograd", "bench", "cli", "cuda", "data", "fft", "io", "kernels", "linalg", "memory",
    "nn", "optim", "runtime", "train", "tune",
)  # fmt: skip
_LAZY = {
    "__array_namespace_info__": "tilewright.array_api",
    "autocast": "tilewright.amp",
    "checkpoint": "tilewright.checkpointing",
    "checkpoint_sequential": "tilewright.checkpointing",
    "tensordot": "tilewright.contraction",
    "vecdot": "tilewright.contraction",
    "outer": "tilewright.contraction",
    "dot": "tilewright.contraction",
    "inner": "tilewright.contraction",
    "mm": "tilewright.contraction",
    "mv": "tilewright.contraction",
    "bmm": "tilewright.contraction",
    "kron": "tilewright.contraction",
    "einsum": "tilewright.contraction",
    "auto_device": "tilewright.placement",
    "explain": "tilewright.explanation",
    "index_put": "tilewright.indexing",
    "profile": "tilewright.profiling",
    "use_batch_invariant": "tilewright.kernels",
    "gradcheck": "tilewright.gradient_check",
    "gradgradcheck": "tilewright.gradient_check",
    "histogram": "tilewright.sets",
    "unique": "tilewright.sets",
    "unique_all": "tilewright.sets",
    "unique_counts": "tilewright.sets",
    "unique_inverse": "tilewright.sets",
    "unique_values": "tilewright.sets",
    "save": "tilewright.io",
    "load": "tilewright.io",
    **dict.fromkeys(("can_cast", "finfo", "iinfo", "isdtype"), "tilewright.array_api"),
    **dict.fromkeys(
        ("atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_arrays",
         "broadcast_tensors", "cartesian_prod", "meshgrid"),
        "tilewright.several",
    ),
}  # fmt: skip


if _typing.TYPE_CHECKING:
    from tilewright import amp as amp
    from tilewright import autograd as autograd
    from tilewright import bench as bench
    from tilewright import cli as cli
    from tilewright import cuda as cuda
    from tilewright import data as data
    from tilewright import fft as fft
    from tilewright import io as io
    from tilewright import kernels as kernels
    from tilewright import linalg as linalg
    from tilewright import memory as memory
    from tilewright import nn as nn
    from tilewright import optim as optim
    from tilewright import runtime as runtime
    from tilewright import train as train
    from tilewright import tune as tune
    from tilewright.amp import autocast as autocast
    from tilewright.array_api import __array_namespace_info__ as __array_namespace_info__
    from tilewright.array_api import can_cast as can_cast
    from tilewright.array_api import finfo as finfo
    from tilewright.array_api import iinfo as iinfo
    from tilewright.array_api import isdtype as isdtype
    from tilewright.checkpointing import checkpoint as checkpoint
    from tilewright.checkpointing import checkpoint_sequential as checkpoint_sequential
    from tilewright.contraction import bmm as bmm
    from tilewright.contraction import dot as dot
    from tilewright.contraction import einsum as einsum
    from tilewright.contraction import inner as inner
    from tilewright.contraction import kron as kron
    from tilewright.contraction import mm as mm
    from tilewright.contraction import mv as mv
    from tilewright.contraction import outer as outer
    from tilewright.contraction import tensordot as tensordot
    from tilewright.contraction import vecdot as vecdot
    from tilewright.explanation import explain as explain
    from tilewright.gradient_check import gradcheck as gradcheck
    from tilewright.gradient_check import gradgradcheck as gradgradcheck
    from tilewright.indexing import index_put as index_put
    from tilewright.io import load as load
    from tilewright.io import save as save
    from tilewright.kernels import use_batch_invariant as use_batch_invariant
    from tilewright.profiling import profile as profile
    from tilewright.sets import histogram as histogram
    from tilewright.sets import unique as unique
    from tilewright.sets import unique_all as unique_all
    from tilewright.sets import unique_counts as unique_counts
    from tilewright.sets import unique_inverse as unique_inverse
    from tilewright.sets import unique_values as unique_values
    from tilewright.several import atleast_1d as atleast_1d
    from tilewright.several import atleast_2d as atleast_2d
    from tilewright.several import atleast_3d as atleast_3d
    from tilewright.several import block_diag as block_diag
    from tilewright.several import broadcast_arrays as broadcast_arrays
    from tilewright.several import broadcast_tensors as broadcast_tensors
    from tilewright.several import cartesian_prod as cartesian_prod
    from tilewright.several import meshgrid as meshgrid
else:

    def __getattr__(name: str) -> _typing.Any:
        if name in _SUBMODULES:
            return _importlib.import_module(f"tilewright.{name}")
        if name in _LAZY:
            value = getattr(_importlib.import_module(_LAZY[name]), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_LAZY})


def _apply_tuning() -> None:
    """Takes over what `tilewright tune` has measured here; without a table, one look for a file."""
    try:
        there = _core.env_text("TUNE") != "0" and _os.path.lexists(_cache.tuning_path())
    except ImportError:  # a system whose cache folder takes platformdirs to find
        there = False
    if there:
        _importlib.import_module("tilewright.tune.table").apply_at_start()


_apply_tuning()
