"""The peers: imports those that are installed and gives each the same number of threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import tilewright as tw
from tilewright.extras import available, require

PEERS = ("torch", "numpy", "jax")


def load_peers(names: Sequence[str], threads: int) -> dict[str, Any]:
    """Modules by name, for those installed. Call it before anything else imports them."""
    _limit_threads(threads)
    peers = {
        name: require(name, purpose="the comparison", install="tilewright[bench]")
        for name in names
        if available(name)
    }
    if "torch" in peers:
        peers["torch"].set_num_threads(threads)
    if "numpy" in peers and available("threadpoolctl"):
        # Reaches an OpenBLAS that was loaded before the variables were set.
        require("threadpoolctl", purpose="threads", install="tilewright[bench]").threadpool_limits(
            threads
        )
    return peers


def versions(peers: dict[str, Any]) -> dict[str, str]:
    """Versions for the report."""
    return {name: str(module.__version__) for name, module in peers.items()}


def conditions(peers: dict[str, Any]) -> dict[str, Any]:
    """What a figure depends on: instruction set, threads, other work (load average), versions."""
    load = {"load": round(os.getloadavg()[0], 1)} if hasattr(os, "getloadavg") else {}
    return {
        "isa": tw.active_isa(),
        "threads": tw.get_num_threads(),
        **load,
        "tilewright": tw.__version__,
        **versions(peers),
    }


def thread_setters(peers: dict[str, Any]) -> dict[str, Callable[[int], object]]:
    """What changes the threads of those peers that can change them while they run.

    NumPy's library needs threadpoolctl for it; JAX keeps what it started with.
    """
    setters: dict[str, Callable[[int], object]] = {}
    if "torch" in peers:
        setters["torch"] = peers["torch"].set_num_threads
    if "numpy" in peers and available("threadpoolctl"):
        control = require("threadpoolctl", purpose="threads", install="tilewright[bench]")
        blas = control.ThreadpoolController().select(user_api="blas")
        setters["numpy"] = lambda threads: blas.limit(limits=threads)
    return setters


def _limit_threads(threads: int) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ["PJRT_NPROC"] = str(threads)  # JAX's pool; read when its first array is made
    if threads == 1:
        os.environ.setdefault(
            "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        )
