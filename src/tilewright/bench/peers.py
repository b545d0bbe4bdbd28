"""The peers at their best: nothing in the environment holds them back, and each says what it runs.

A variable can cost a library half its speed without a word (OPENBLAS_CORETYPE=Haswell keeps NumPy
from AVX-512), and a ratio against such a peer is worth nothing. So every family of variables that
the peers read is cleared before they load; what can no longer be cleared is told. Afterwards each
library is asked for its kernels, and one below the machine's instruction set is marked.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tilewright as tw
from tilewright._engine.optional_packages import available, require
from tilewright.bench.peer_kernels import Kernel, kernels_of

PEERS = ("torch", "numpy", "jax")

# How the names of variables begin, and who reads them, once, on being imported. Those that nobody
# is named for are read by the C library when the process starts.
_READERS: dict[str, tuple[str, ...]] = {
    "OPENBLAS_": ("numpy",),
    "GOTO_": ("numpy",),
    "BLIS_": ("numpy",),
    "VECLIB_": ("numpy",),
    "NPY_": ("numpy",),
    "NUMPY_": ("numpy",),
    "MKL_": ("torch", "numpy"),
    "OMP_": ("torch", "numpy"),
    "GOMP_": ("torch", "numpy"),
    "KMP_": ("torch", "numpy"),
    "ATEN_": ("torch",),
    "DNNL_": ("torch",),
    "ONEDNN_": ("torch",),
    "TORCH": ("torch",),
    "PYTORCH_": ("torch",),
    "LRU_CACHE_CAPACITY": ("torch",),  # oneDNN's primitives
    "JAX_": ("jax",),
    "PJRT_": ("jax",),
    "XLA_": ("jax",),
    "GLIBC_TUNABLES": (),
    "MALLOC_": (),
}
# These say where files lie.
_HARMLESS = ("_CACHE", "_DIR", "_HOME", "_PATH", "_ROOT")
# What a preloaded library replaces is not known, and without it the program may not run at all.
_KEPT = ("LD_PRELOAD",)
# A restarted process learns from it what was cleared, and that it must not restart again.
_HANDED_OVER = "TILEWRIGHT_BENCH_CLEARED"
# Beyond the threads asked for, a probe may find the calling thread busy for a part of the time.
_BUSY_MARGIN = 0.4
_PROBE_SECONDS = 0.05


class _State:
    """What this module has set: its own settings are nobody's shackles."""

    settings: dict[str, str] = {}  # noqa: RUF012  (one for the process, as its environment is)


@dataclass(frozen=True)
class Clearing:
    """Variables with their values: removed in time, and found when their reader had loaded."""

    cleared: dict[str, str] = field(default_factory=dict)
    too_late: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Peers:
    """The peers that take part, with all that their figures depend on."""

    modules: dict[str, Any]
    threads: int
    clearing: Clearing = Clearing()
    left_out: dict[str, str] = field(default_factory=dict)
    kernels: tuple[Kernel, ...] = ()

    @property
    def below(self) -> list[str]:
        """Those of which a kernel stays below the machine's instruction set."""
        best = machine_isa()
        return list(dict.fromkeys(k.peer for k in self.kernels if k.is_below(best)))

    def label(self, name: str) -> str:
        """A contender's name in a table: with a star where it runs below the machine."""
        return f"{name}*" if name.partition(",")[0] in self.below else name

    def conditions(self) -> dict[str, Any]:
        """For JSON: what a figure depends on."""
        best = machine_isa()
        return {
            "isa": tw.active_isa(),
            "machine_isa": best,
            "threads": self.threads,
            "processors": _processors(),
            **({"load": round(os.getloadavg()[0], 1)} if hasattr(os, "getloadavg") else {}),
            "tilewright": tw.__version__,
            **{name: str(module.__version__) for name, module in self.modules.items()},
            "kernels": [kernel.as_dict(best) for kernel in self.kernels],
            "below_machine": self.below,
            "cleared": self.clearing.cleared,
            "too_late": self.clearing.too_late,
            "kept": {name: os.environ[name] for name in _KEPT if name in os.environ},
            "left_out": self.left_out,
        }

    def heading(self) -> list[str]:
        """Lines above all tables: the machine, and what was done to its environment."""
        known = self.conditions()
        plain = {key: value for key, value in known.items() if isinstance(value, (str, int, float))}
        lines = [", ".join(f"{key} {value}" for key, value in plain.items())]
        texts = {
            "cleared": "cleared, as it may hold peers back",
            "too_late": "SET WHEN A PEER HAD LOADED, its figures are not to be compared",
            "kept": "left as it is",
        }
        lines += [
            f"{text}: {_assignments(known[key])}" for key, text in texts.items() if known[key]
        ]
        lines += [f"left out: {name}, {reason}" for name, reason in self.left_out.items()]
        if self.threads > known["processors"]:
            lines.append(f"{self.threads} threads share {known['processors']} processors")
        return lines

    def footing(self) -> list[str]:
        """Lines under each table: the kernels of each peer, the slow ones marked."""
        best = machine_isa()
        lines = [
            f"{self.label(name)} runs "
            + "; ".join(k.text() for k in self.kernels if k.peer == name)
            for name in self.modules
            if any(kernel.peer == name for kernel in self.kernels)
        ]
        for name in self.below:
            slow = ", ".join(
                f"{k.library} ({k.isa})"
                for k in self.kernels
                if k.peer == name and k.is_below(best)
            )
            lines.append(f"* {name} runs BELOW this machine's {best}: {slow}")
        return lines


def machine_isa() -> str:
    """The best instruction set that the machine has and the engine knows, in use or not."""
    return tw.kernels.isas()[-1]


def shackles(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that may hold a peer back, with their values."""
    return {name: value for name, value in environ.items() if _family(name) is not None}


def unshackle(
    threads: int, start: Mapping[str, str] | None = None, program: bool = False
) -> Clearing:
    """Clears what may hold a peer back, and gives each the same number of threads.

    `start`: what the process must have been started with, such as GLIBC_TUNABLES. A `program` that
    finds something that can no longer be cleared, or lacks some of `start`, runs itself once more.
    """
    wanted = _settings(threads)
    start = start or {}
    before = json.loads(os.environ.pop(_HANDED_OVER, "null"))
    mine = (_State.settings, wanted, start)
    found = {
        name: value
        for name, value in shackles(os.environ).items()
        if all(settings.get(name) != value for settings in mine)
    }
    late = {name: v for name, v in found.items() if name not in wanted and _is_read(name)}
    missing = {name: value for name, value in start.items() if os.environ.get(name) != value}
    for name in found:
        del os.environ[name]
    if (late or missing) and program and before is None:
        _restart(found, start)
    if missing:
        raise ValueError(
            f"bench: {_assignments(missing)} must be set when the process starts; "
            "run it as a program: tilewright bench"
        )
    os.environ.update(wanted)
    _State.settings = wanted
    cleared = {name: value for name, value in found.items() if name not in late}
    return Clearing({**(before or {}), **cleared}, late)


def child_environment(start: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that is to unshackle its peers itself, with `start` added."""
    return {**_without_settings(), **start}


def load_peers(
    names: Sequence[str],
    threads: int,
    start: Mapping[str, str] | None = None,
    program: bool = False,
) -> Peers:
    """Imports those that are installed, unshackled, each with the same number of threads.

    Call it before anything else imports them. JAX is left out where its threads cannot be held.
    """
    jax_threads = os.environ.get("PJRT_NPROC") if "jax" in sys.modules else str(threads)
    clearing = unshackle(threads, start, program)
    modules, left_out = {}, {}
    for name in names:
        if available(name):
            modules[name] = require(name, purpose="the comparison", install="tilewright[bench]")
        else:
            left_out[name] = "which is not installed"
    if "jax" in modules and jax_threads != str(threads):
        del modules["jax"]
        left_out["jax"] = "which this process has loaded with another number of threads"
    if "jax" in modules:
        # Without it float64 becomes float32 on the way in, and half of the work is gone.
        modules["jax"].config.update("jax_enable_x64", True)
        busy = _busy_processors(_jax_product(modules["jax"]), threads)
        if busy > threads + _BUSY_MARGIN:
            del modules["jax"]
            left_out["jax"] = f"which keeps {busy:.1f} processors busy where {threads} is asked for"
    for setter in thread_setters(modules).values():
        setter(threads)
    return Peers(modules, threads, clearing, left_out, tuple(kernels_of(modules, threads)))


def thread_setters(modules: Mapping[str, Any]) -> dict[str, Callable[[int], object]]:
    """What changes the threads of those peers that can change them while they run.

    NumPy's library needs threadpoolctl for it; JAX keeps what it started with.
    """
    setters: dict[str, Callable[[int], object]] = {}
    if "torch" in modules:
        setters["torch"] = modules["torch"].set_num_threads
    if "numpy" in modules and available("threadpoolctl"):
        control = require("threadpoolctl", purpose="threads", install="tilewright[bench]")
        blas = control.ThreadpoolController().select(user_api="blas")
        setters["numpy"] = lambda threads: blas.limit(limits=threads)
    return setters


def _settings(threads: int) -> dict[str, str]:
    """PJRT_NPROC sizes the pool of JAX's processor device, which knows no other bound."""
    counted = (
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "PJRT_NPROC",
    )
    return {**dict.fromkeys(counted, str(threads)), "JAX_PLATFORMS": "cpu"}


def _family(name: str) -> str | None:
    """The beginning of a variable's name that says who reads it; None for all others."""
    if name.endswith(_HARMLESS):
        return None
    return next((start for start in _READERS if name.startswith(start)), None)


def _is_read(name: str) -> bool:
    """Whether a variable has had its effect: its reader is loaded, or is the process itself."""
    readers = _READERS[_family(name) or ""]
    return not readers or any(reader in sys.modules for reader in readers)


def _restart(found: Mapping[str, str], start: Mapping[str, str]) -> None:
    environ: MutableMapping[str, str] = child_environment(start)
    environ[_HANDED_OVER] = json.dumps(dict(found))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)


def _without_settings() -> dict[str, str]:
    settings = _State.settings
    return {name: v for name, v in os.environ.items() if settings.get(name) != v}


def _assignments(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _processors() -> int:
    """As many as this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _jax_product(jax: Any) -> Callable[[], object]:
    x = jax.random.normal(jax.random.key(0), (512, 512), "float32")
    multiply = jax.jit(lambda x: x @ x)
    return lambda: multiply(x).block_until_ready()


def _busy_processors(work: Callable[[], object], threads: int) -> float:
    """Processor time over time while `work` runs: the least of three, as others may be at work."""
    if _processors() <= threads:
        return 0.0
    work()
    return min(_busy_once(work) for _ in range(3))


def _busy_once(work: Callable[[], object]) -> float:
    start, used = time.perf_counter(), time.process_time()
    while (took := time.perf_counter() - start) < _PROBE_SECONDS:
        work()
    return (time.process_time() - used) / took
