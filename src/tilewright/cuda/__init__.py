"""NVIDIA GPUs: device="cuda" makes tensors and computes there.

The driver and its run-time compiler (NVRTC, 12.9 or newer: `pip install nvidia-cuda-nvrtc`, or a
CUDA toolkit) are opened at first use; kernels are compiled then and kept in the cache folder. The
oldest compute capability that kernels are for is 8.0. Names follow torch.cuda.
"""

from __future__ import annotations

from typing import Any, TypedDict

from tilewright import _core
from tilewright.cuda import nvtx
from tilewright.cuda.streams import (
    Event,
    Stream,
    current_stream,
    default_stream,
    gpu_number,
    set_stream,
    stream,
)

__all__ = [
    "Event",
    "Facts",
    "MemoryFigures",
    "Stream",
    "capability",
    "current_stream",
    "default_stream",
    "device_count",
    "empty_cache",
    "facts",
    "get_device_name",
    "is_available",
    "launches",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "nvtx",
    "reset_peak_memory_stats",
    "set_launch_limit",
    "set_per_process_memory_fraction",
    "set_stream",
    "stream",
    "synchronize",
    "why_unavailable",
]


class Facts(TypedDict):
    """What a GPU is."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory_bytes: int
    shared_bytes_per_block: int


class MemoryFigures(TypedDict):
    """What a GPU's memory pool holds; live bytes belong to tensors, reserved ones to the pool.

    Waiting bytes were given back while other streams still used them.
    """

    live_bytes: int
    peak_live_bytes: int
    reserved_bytes: int
    peak_reserved_bytes: int
    waiting_bytes: int
    limit_bytes: int | None
    allocations: int
    releases: int
    driver_allocations: int


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


def manual_seed(seed: int) -> None:
    """Seeds the default generator, which is that of all devices, as `tw.manual_seed` does.

    Raises ValueError for a seed out of range. Source: PyTorch's torch.cuda.manual_seed.
    """
    _core.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """The same: one generator serves all GPUs. Raises ValueError for a seed out of range.

    Source: PyTorch's torch.cuda.manual_seed_all.
    """
    _core.manual_seed(seed)


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
    """Name, compute capability, multiprocessors and memory sizes of a GPU.

    Raises RuntimeError without a usable GPU.
    """
    found: Facts = _core._gpu_facts(gpu_number(device))  # type: ignore[assignment]
    return found


def synchronize(device: int | str | None = None) -> None:
    """Returns when all work of a GPU is done, and raises what went wrong in it.

    Raises RuntimeError without a usable GPU.
    """
    _core._gpu_synchronize(gpu_number(device))


def memory(device: int | str | None = None) -> MemoryFigures:
    """Figures of a GPU's memory pool, in bytes.

    Raises RuntimeError without a usable GPU.
    """
    figures: MemoryFigures = _core._gpu_memory(gpu_number(device))  # type: ignore[assignment]
    return figures


def memory_allocated(device: int | str | None = None) -> int:
    """Bytes that tensors hold.

    Raises RuntimeError without a usable GPU.
    """
    return memory(device)["live_bytes"]


def max_memory_allocated(device: int | str | None = None) -> int:
    """Most bytes that tensors have held at once.

    Raises RuntimeError without a usable GPU.
    """
    return memory(device)["peak_live_bytes"]


def memory_reserved(device: int | str | None = None) -> int:
    """Bytes that the pool holds from the driver.

    Raises RuntimeError without a usable GPU.
    """
    return memory(device)["reserved_bytes"]


def max_memory_reserved(device: int | str | None = None) -> int:
    """Most bytes that the pool has held from the driver.

    Raises RuntimeError without a usable GPU.
    """
    return memory(device)["peak_reserved_bytes"]


def reset_peak_memory_stats(device: int | str | None = None) -> None:
    """Starts the peak figures anew from the current ones.

    Raises RuntimeError without a usable GPU.
    """
    _core._gpu_reset_peaks(gpu_number(device))


def memory_stats(device: int | str | None = None) -> dict[str, Any]:
    """`memory`, with figures of the copies from and to the host and of pinned memory.

    Bytes and counts: `uploads` and `downloads` are copies beside kernels, `staged_bytes` those
    that passed through the ring of pinned memory; `small_uploads` and `small_downloads`, up to
    4,064 bytes, are no copies: they come as a launch's arguments and go to memory of the host that
    the GPU writes to. "pinned" is the memory of `pin_memory`.

    Raises RuntimeError without a usable GPU.
    """
    number = gpu_number(device)
    return {
        **_core._gpu_memory(number),
        **_core._gpu_copies(number),
        "pinned": _core._pinned_memory(),
    }


def mem_get_info(device: int | str | None = None) -> tuple[int, int]:
    """Free and total bytes of a GPU, whichever program holds the rest.

    Raises RuntimeError without a usable GPU.
    """
    free, total = _core._gpu_free_memory(gpu_number(device))
    return int(free), int(total)


def set_per_process_memory_fraction(fraction: float, device: int | str | None = None) -> None:
    """Bounds what this process takes from a GPU to a share of its memory; 1 lifts the bound.

    A request beyond it finds no memory. To have blocks leave for the host instead, make a pool:
    `tw.memory.Pool(quota_bytes, device="cuda")`. Raises ValueError outside (0, 1].
    """
    if not 0 < fraction <= 1:
        raise ValueError(
            f"set_per_process_memory_fraction: fraction must be in (0, 1], got {fraction}"
        )
    number = gpu_number(device)
    total = facts(number)["memory_bytes"]
    _core._gpu_set_limit(number, 0 if fraction == 1 else max(1, int(total * fraction)))


def launches(device: int | str | None = None) -> dict[str, Any]:
    """Launches so far: "streams" by number (0: the default one), "tasks" by the scheduler's number.

    Each with how many "waits" there were for the limits, `in_flight_limit` and
    `in_flight_limit_of_a_task` (0: none of ours); tasks with how many launches are "in_flight" as
    far as anybody has asked, none once the task has ended.

    Raises RuntimeError without a usable GPU.
    """
    return _core._gpu_launch_figures(gpu_number(device))


def set_launch_limit(
    in_flight: int, device: int | str | None = None, *, of: str = "stream"
) -> None:
    """How many launches of one stream may be in flight before the program waits; 0: any number.

    A small one keeps a program that is ahead of its GPU from filling its memory. `of="task"` bounds
    those of one task of a `tw.runtime.Scheduler`, on all streams together, so that a task does not
    fill a queue that others share; its end waits for its launches in any case. Raises ValueError
    for negative numbers and for another `of`.
    """
    if of not in ("stream", "task"):
        raise ValueError(f"set_launch_limit: of must be 'stream' or 'task', got {of!r}")
    _core._gpu_set_launch_limit(gpu_number(device), in_flight, of == "task")


def empty_cache(device: int | str | None = None) -> None:
    """Gives memory that no tensor uses back to the driver, pinned memory to the system.

    Raises RuntimeError without a usable GPU.
    """
    _core._gpu_trim(gpu_number(device))
    _core._pinned_trim()
