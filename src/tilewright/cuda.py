"""NVIDIA GPUs: device="cuda" makes tensors and computes there.

The driver and its run-time compiler (NVRTC, 12.9 or newer: `pip install nvidia-cuda-nvrtc`, or a
CUDA toolkit) are opened at first use; kernels are compiled then and kept in the cache folder. The
oldest compute capability that kernels are for is 8.0. Names follow torch.cuda.
"""

from __future__ import annotations

from typing import TypedDict

from tilewright import _core


class Facts(TypedDict):
    """What a GPU is."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory_bytes: int
    shared_bytes_per_block: int


class MemoryFigures(TypedDict):
    """What a GPU's memory pool holds; live bytes belong to tensors, reserved ones to the pool."""

    live_bytes: int
    peak_live_bytes: int
    reserved_bytes: int
    allocations: int
    driver_allocations: int


def _number(device: int | str | None) -> int:
    """The number in 1, "cuda:1", "cuda" or None (the first)."""
    if device is None:
        return 0
    if isinstance(device, int):
        return device
    name, _, number = device.partition(":")
    if name != "cuda" or (number and not number.isdecimal()):
        raise ValueError(f"expected a GPU such as 'cuda' or 'cuda:1', got {device!r}")
    return int(number or 0)


def is_available() -> bool:
    """Whether there are a GPU, its driver and NVRTC; never raises."""
    return not why_unavailable()


def why_unavailable() -> str:
    """What is missing for device="cuda", and what to do about it; "" where nothing is."""
    if fault := _core._gpu_driver_fault():
        return fault
    if _core._gpu_count() == 0:
        return "the CUDA driver sees no GPU"
    return _core._gpu_compiler_fault()


def device_count() -> int:
    """Number of GPUs; 0 without a driver."""
    return _core._gpu_count()


def capability(device: int | str | None = None) -> tuple[int, int]:
    """Compute capability, as (9, 0). Raises RuntimeError without a usable GPU."""
    return facts(device)["capability"]


def get_device_name(device: int | str | None = None) -> str:
    """The GPU's name. Raises RuntimeError without a usable GPU."""
    return facts(device)["name"]


def facts(device: int | str | None = None) -> Facts:
    """Name, compute capability, multiprocessors and memory sizes of a GPU."""
    found: Facts = _core._gpu_facts(_number(device))  # type: ignore[assignment]
    return found


def synchronize(device: int | str | None = None) -> None:
    """Returns when all work of a GPU is done, and raises what went wrong in it."""
    _core._gpu_synchronize(_number(device))


def memory(device: int | str | None = None) -> MemoryFigures:
    """Figures of a GPU's memory pool, in bytes."""
    figures: MemoryFigures = _core._gpu_memory(_number(device))  # type: ignore[assignment]
    return figures


def memory_allocated(device: int | str | None = None) -> int:
    """Bytes that tensors hold."""
    return memory(device)["live_bytes"]


def max_memory_allocated(device: int | str | None = None) -> int:
    """Most bytes that tensors have held at once."""
    return memory(device)["peak_live_bytes"]


def memory_reserved(device: int | str | None = None) -> int:
    """Bytes that the pool holds from the driver."""
    return memory(device)["reserved_bytes"]


def empty_cache(device: int | str | None = None) -> None:
    """Gives memory that no tensor uses back to the driver."""
    _core._gpu_trim(_number(device))
