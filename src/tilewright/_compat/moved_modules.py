"""Modules by the names that they had before: pickles and programs may name them.

A row stays for good: a pickle names the module of its class, and nobody knows which are kept.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

_ROOMS = {
    "_arrays": {
        "contraction": "contraction",
        "contraction_plan": "contraction_order",
        "creation": "creation",
        "differences": "differences",
        "distances": "distances",
        "extremes": "extremes",
        "indexing": "indexing",
        "integers": "integers",
        "positions": "positions",
        "sets": "sets",
        "several": "broadcasting",
        "statistics": "statistics",
        "subscripts": "einsum",
    },
    "_compat": {
        "absent": "missing_names",
        "array_api": "array_api",
        "foreign": "foreign_arrays",
        "numpy_functions": "numpy_functions",
        "other_names": "argument_names",
        "torch_functions": "torch_functions",
    },
    "_engine": {
        "argument_errors": "argument_errors",
        "background": "background",
        "cache": "cache",
        "devices": "device_names",
        "extents": "element_count",
        "extras": "optional_packages",
        "generators": "generators",
        "grad_mode": "grad_mode",
        "methods": "lazy_methods",
        "modes": "modes",
        "pickling": "pickling",
    },
    "_inspect": {
        "bench.machine": "machine_peaks",
        "explanation": "explanation",
        "placement": "placement",
        "profiling": "profiling",
    },
    "_report": {
        "display": "display",
        "pictures": "figures",
        "trace_file": "trace",
    },
    "autograd": {
        "checkpointing": "checkpointing",
        "gradient_check": "gradient_check",
    },
    "cuda": {
        "nvtx": "nvtx",
        "streams": "streams",
    },
    "fft": {
        "fourier": "transforms",
        "spectra": "short_time",
    },
    "io": {
        "nesting": "nesting",
    },
    "nn.functions": {
        "nn.bags": "embedding_bag",
        "nn.formulas": "composites",
        "nn.random_values": "random_values",
        "nn.resizing": "interpolate",
        "nn.sequences": "ctc_loss",
        "nn.windows": "pooling",
    },
    "nn.layers": {
        "nn.activation": "activation",
        "nn.adaptive_softmax": "adaptive_softmax",
        "nn.attention": "attention",
        "nn.convolution": "convolution",
        "nn.distance": "distance",
        "nn.dropout": "dropout",
        "nn.embedding": "embedding",
        "nn.flatten": "flatten",
        "nn.fold": "fold",
        "nn.identity": "identity",
        "nn.key_value_cache": "key_value_cache",
        "nn.lazy": "lazy",
        "nn.linear": "linear",
        "nn.loss": "loss",
        "nn.norm": "norm",
        "nn.packed_sequence": "packed_sequence",
        "nn.padding": "padding",
        "nn.pooling": "pooling",
        "nn.recurrent": "recurrent",
        "nn.recurrent_cells": "recurrent_cells",
        "nn.recurrent_weights": "recurrent_weights",
        "nn.shuffle": "shuffle",
        "nn.transformer": "transformer",
        "nn.upsampling": "upsampling",
    },
    "nn.module": {
        "nn.calling": "calling",
        "nn.container": "container",
        "nn.conversion": "conversion",
        "nn.error_paths": "error_paths",
        "nn.module_hooks": "hooks",
        "nn.parameter": "parameter",
        "nn.registry": "registry",
        "nn.state": "state",
    },
    "train": {
        "sweep": "sweep",
        "sweep_file": "sweep_file",
    },
}
NEW_NAMES = {
    f"tilewright.{old}": f"tilewright.{room}.{new}"
    for room, names in _ROOMS.items()
    for old, new in names.items()
}


class _Loader:
    """Gives a former name the module that has another one now."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # An import ends with what stands there, and leaves a module's own spec alone this way.
        sys.modules[module.__name__] = importlib.import_module(NEW_NAMES[module.__name__])


def find_spec(name: str) -> ModuleSpec | None:
    """For names that no file has."""
    # A loader is what has these two methods; the stub asks for the abstract class.
    return ModuleSpec(name, _Loader()) if name in NEW_NAMES else None  # type: ignore[arg-type]
