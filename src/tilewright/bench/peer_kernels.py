"""Which kernels the peers' libraries run, as they say themselves."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import tilewright as tw
from tilewright._engine.optional_packages import available, require

# What libraries call their kernels, by the instruction set these need. OpenBLAS names processors.
_NAMES = {
    "avx512": r"avx-?512|avx10|vector extensions 512|x86_v4|skylakex|cooperlake|sapphirerapids",
    "avx2": r"avx2|vector extensions 2\b|x86_v3|fma3|haswell|zen|excavator",
}
# NEON and AVX2 are never on one machine.
_ORDER = ("scalar", "neon", "avx2", "avx512")


@dataclass(frozen=True)
class Kernel:
    """A library of a peer and what it chose for this machine.

    `isa`: as the engine names instruction sets; empty where the library does not say. `threads`: 0
    where they cannot be told.
    """

    peer: str
    library: str
    runs: str
    isa: str = ""
    threads: int = 0

    def is_below(self, best: str) -> bool:
        """Whether it is known to need less than the machine has."""
        return bool(self.isa) and _rank(self.isa) < _rank(best)

    def text(self) -> str:
        """For a line under a table."""
        isa = f" ({self.isa})" if self.isa and self.isa.lower() != self.runs.lower() else ""
        threads = f", {self.threads} thread{'' if self.threads == 1 else 's'}"
        return f"{self.library}: {self.runs}{isa}{threads if self.threads else ''}"

    def as_dict(self, best: str) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "below_machine": self.is_below(best)}


def isa_of(name: str) -> str:
    """The instruction set that kernels of a library's own name for them need; empty for no name.

    Every 64-bit ARM processor has NEON, and what they are called says nothing more.

    >>> isa_of("SkylakeX"), isa_of("Intel(R) Advanced Vector Extensions 2 (Intel(R) AVX2)")
    ('avx512', 'avx2')
    """
    if not name:
        return ""
    if "neon" in tw.kernels.isas():
        return "neon"
    found = (isa for isa, pattern in _NAMES.items() if re.search(pattern, name, re.IGNORECASE))
    return next(found, "scalar")


def kernels_of(modules: Mapping[str, Any], threads: int) -> Iterator[Kernel]:
    """Those of all peers; a library that does not say is told as such."""
    ask: dict[str, Callable[[Any], Iterator[Kernel]]] = {"torch": _of_torch, "numpy": _of_numpy}
    for name, module in modules.items():
        if name in ask:
            yield from ask[name](module)
        elif name == "jax":
            yield from _of_jax(module, threads)


def _of_numpy(numpy: Any) -> Iterator[Kernel]:
    found = [blas for blas in _loaded_blas() if "torch" not in blas.get("prefix", "")]
    for blas in found:
        runs = blas.get("architecture") or ""
        library = f"{blas['internal_api']} {blas['version']}"
        yield Kernel("numpy", library, runs or "unknown", isa_of(runs), blas["num_threads"])
    if not found:
        hint = "" if available("threadpoolctl") else " (pip install threadpoolctl tells)"
        yield Kernel("numpy", "BLAS", f"unknown{hint}")
    runs = _numpy_loops(numpy)
    yield Kernel("numpy", "NumPy's loops", runs or "unknown", isa_of(runs))


def _loaded_blas() -> list[dict[str, Any]]:
    if not available("threadpoolctl"):
        return []
    control = require("threadpoolctl", purpose="kernels", install="tilewright[bench]")
    return [library for library in control.threadpool_info() if library["user_api"] == "blas"]


def _numpy_loops(numpy: Any) -> str:
    """The last of the instruction sets that NumPy found and was not told to leave."""
    try:
        known = numpy.show_config(mode="dicts")["SIMD Extensions"]
    except (AttributeError, KeyError, TypeError):  # before 1.26
        return ""
    names = [*known.get("baseline", ()), *known.get("found", ())]
    return max(names, key=lambda name: _rank(isa_of(name) or "scalar"), default="")


def _rank(isa: str) -> int:
    return _ORDER.index(isa)


def _of_torch(torch: Any) -> Iterator[Kernel]:
    try:
        runs = str(torch.backends.cpu.get_cpu_capability())
    except AttributeError:  # before 2.1
        runs = ""
    # PyTorch's word for kernels without vectors is DEFAULT.
    threads = torch.get_num_threads()
    yield Kernel("torch", "ATen", runs or "unknown", isa_of(runs), threads)
    said = _said_by_torch()
    for library, version, kernel in (
        (
            "MKL",
            r"\(R\) oneAPI Math Kernel Library Version (\S+)-",
            r"oneMKL .*architecture (.*), ",
        ),
        ("oneDNN", r"MKL-DNN v(\S+)", r"info,cpu,isa:(.*)"),
    ):
        runs = _first(kernel, said)
        number = _first(version, torch.__config__.show()) if hasattr(torch, "__config__") else ""
        if runs or number:
            name = f"{library} {number}".rstrip()
            yield Kernel("torch", name, _short(runs) or "unknown", isa_of(runs))


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1].strip() if found else ""


def _short(runs: str) -> str:
    """MKL's sentence about itself without its trade marks, and without what follows the first."""
    plain = runs.replace("(R)", "").partition(" with support for")[0]
    return _first(r"\((?:Intel )?(AVX[^)]*)\)", plain) or plain


@cache
def _said_by_torch() -> str:
    """What MKL and oneDNN say at their first call that is told; they say it once a process."""
    torch = require("torch", purpose="kernels", install="tilewright[bench]")
    mkl, onednn = torch.backends.mkl, torch.backends.mkldnn
    if not (mkl.is_available() or onednn.is_available()):
        return ""

    def calls() -> None:
        x = torch.ones(64, 64)
        with mkl.verbose(mkl.VERBOSE_ON) if mkl.is_available() else torch.no_grad():
            x @ x
        with onednn.verbose(onednn.VERBOSE_ON) if onednn.is_available() else torch.no_grad():
            x.to_mkldnn().to_dense()

    try:
        return _written_by(calls)
    except (AttributeError, OSError, RuntimeError):  # a build without one of them
        return ""


def _written_by(calls: Callable[[], None]) -> str:
    """What C code writes to standard output meanwhile."""
    c_library = ctypes.CDLL(None)
    sys.stdout.flush()
    c_library.fflush(None)
    kept = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            calls()
        finally:
            c_library.fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        return file.read().decode(errors="replace")


def _of_jax(jax: Any, threads: int) -> Iterator[Kernel]:
    """XLA compiles for the processor it finds; it does not tell for which."""
    jaxlib = require("jaxlib", purpose="kernels", install="jax")
    device = f"device {jax.devices()[0].device_kind}, compiled by XLA"
    yield Kernel("jax", f"jaxlib {jaxlib.__version__}", device, "", threads)
