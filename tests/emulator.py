"""The emulated GPU: core/cuda/emulator built once, so that device="cuda" works without a GPU.

TILEWRIGHT_TEST_GPU=1 leaves it out: the tests run on the machine's own GPU then.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from checkout import ROOT

SOURCES = ROOT / "core" / "cuda" / "emulator"
# Additions keep their order and are not joined with products, unless a kernel says so. No symbol is
# weak: what is shared by a block's threads is in a section of its own.
FLAGS = (
    "-std=c++17 -O1 -fPIC -w -fno-strict-aliasing -fno-weak -ffp-contract=off "
    "-fvisibility-inlines-hidden -fno-threadsafe-statics"
)


def build() -> Path:
    """The library that stands in for the driver and for NVRTC."""
    compiler = os.environ.get("CXX", "g++")
    texts = b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))
    key = hashlib.sha256(texts + FLAGS.encode() + compiler.encode()).hexdigest()[:16]
    folder = ROOT / "build" / "emulator" / key
    library = folder / "libemulated.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    header = folder / "emulation.h"
    for text in SOURCES.glob("*.h"):
        shutil.copy(text, folder / text.name)
    # A header compiled ahead makes kernels compile in a quarter of the time.
    subprocess.run(
        [compiler, *FLAGS.split(), "-x", "c++-header", header, "-o", f"{header}.gch"], check=True
    )
    unfinished = folder / f"libemulated.{os.getpid()}.so"
    subprocess.run(
        [
            compiler, "-std=c++17", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror",
            f'-DTW_EMULATION_FLAGS="{FLAGS}"', f'-DTW_EMULATION_HEADER="{header}"',
            *map(str, sorted(SOURCES.glob("*.cpp"))), "-o", str(unfinished), "-ldl",
        ],
        check=True,
    )  # fmt: skip
    unfinished.replace(library)
    return library


def variables() -> dict[str, str]:
    """What the environment names, so that the emulator is the GPU."""
    library = str(build())
    return {"TILEWRIGHT_CUDA_DRIVER": library, "TILEWRIGHT_NVRTC": library}


def is_wanted() -> bool:
    """Whether tests run on the emulator: on x86-64, unless the machine's own GPU is asked for."""
    return os.environ.get("TILEWRIGHT_TEST_GPU", "0") != "1" and os.uname().machine == "x86_64"
