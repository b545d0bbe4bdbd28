"""device="auto": where a step is expected to take least time, of the devices that can hold it.

The step runs once on the null device, which computes nothing: what its ops compute, move and hold
is known then. Each op takes as long as its arithmetic or its memory does, at least a launch; a
device takes their sum, and the copies from this machine's memory. The rates are measured: the
processor's in this process, a GPU's by `tilewright tune` (guesses from data sheets until then).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tilewright as tw
from tilewright import Tensor, _core, cuda, memory, nn
from tilewright._inspect.open_reports import tell_placement
from tilewright._report.text import time_text

AUTOMATIC = "auto"
# What an op costs on the processor beside its kernel.
_CPU_OP_S = 1e-6
# Of a GPU's free memory: kernels have some of their own, other programs take some meanwhile.
_USABLE_SHARE = 0.9


@dataclass(frozen=True)
class Work:
    """What one op does: floating-point operations and bytes, in numbers of such a type."""

    flops: float
    bytes: float
    dtype: str = "float32"


@dataclass(frozen=True)
class Load:
    """What a step asks of a device: its ops, bytes copied to it, most bytes alive at one time."""

    works: tuple[Work, ...]
    copied_bytes: int
    held_bytes: int


@dataclass(frozen=True)
class Speed:
    """What a device does in a second, and what it has free; `source` says where that is from.

    `flops` by dtype, "" for others.
    """

    device: str
    flops: dict[str, float]
    bytes: float
    op_s: float
    copied_bytes: float
    free_bytes: float
    source: str

    def seconds(self, load: Load) -> float:
        """What a step is expected to take."""
        return load.copied_bytes / self.copied_bytes + sum(
            max(
                self.op_s,
                work.flops / self.flops.get(work.dtype, self.flops[""]),
                work.bytes / self.bytes,
            )
            for work in load.works
        )


@dataclass(frozen=True)
class Placement:
    """The device that was chosen, and why; `seconds`: of a step, by device that can hold it."""

    device: str
    reason: str
    load: Load | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"device {self.device}: {self.reason}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON: totals in the place of the single ops."""
        told = {"device": self.device, "reason": self.reason, "seconds": self.seconds}
        if self.load is None:
            return told
        works = self.load.works
        return told | {
            "ops": len(works),
            "flops": sum(work.flops for work in works),
            "bytes": sum(work.bytes for work in works),
            "copied_bytes": self.load.copied_bytes,
            "held_bytes": self.load.held_bytes,
        }


def auto_device(model: nn.Module, *inputs: Any) -> Placement:
    """Where a model's step should run: forward, and backward where it has what to train.

    `inputs` are what it is called with; a tuple or list of integers is the shape of a float32
    tensor. Without a usable GPU it is the CPU, never an error. Model and random numbers stay as
    they are; `model.to(placement.device)` moves it. Raises TypeError for what is no Module, and
    whatever the model raises for such inputs.

    >>> import tilewright as tw
    >>> tw.auto_device(tw.nn.Linear(4, 3), (2, 4)).device
    'cpu'
    """
    from tilewright.nn.dry_run import input_on, tensors_in, twin_on  # noqa: PLC0415  (imported on use)

    if not isinstance(model, nn.Module):
        raise TypeError(f"auto_device: expected a Module, got {type(model).__name__}")

    def step(device: str) -> None:
        twin = twin_on(model, device)
        for x in tensors_in(twin(*[input_on(x, device) for x in inputs])):
            if x.requires_grad:
                x.backward(tw.empty_like(x), retain_graph=True)

    return place(step, sum(_bytes_of(x) for x in inputs))


def place(step: Callable[[str], object], copied_bytes: int = 0, held_bytes: int = 0) -> Placement:
    """Where `step(device)` should run, which copies so many bytes to a GPU each time.

    `held_bytes`: what it needs besides and does not make. It is called once with "null", where
    there is a GPU to choose; the default generator's place is the same afterwards.
    """
    gpus, missing = [], cuda.why_unavailable()
    for number in range(0 if missing else cuda.device_count()):
        try:
            gpus.append(gpu_speed(number))
        except RuntimeError as error:  # too old, or another process's alone
            missing = str(error)
    if not gpus:
        return _told(Placement("cpu", f"no GPU: {missing}"))
    load = measured_load(step, copied_bytes, held_bytes)
    return _told(choose(load, cpu_speed(), gpus))


def choose(load: Load, cpu: Speed, gpus: Sequence[Speed]) -> Placement:
    """The device with the least time of those that hold the step; the CPU where none does.

    The CPU's memory is not weighed: what does not fit there has nowhere else to be.
    """
    fitting = [gpu for gpu in gpus if load.held_bytes <= _USABLE_SHARE * gpu.free_bytes]
    if not fitting:
        most = max(gpus, key=lambda gpu: gpu.free_bytes)
        reason = (
            f"a step holds {_size(load.held_bytes)}, {most.device} has {_size(most.free_bytes)} "
            f"free, of which {_USABLE_SHARE:.0%} count"
        )
        return Placement("cpu", reason, load, {"cpu": cpu.seconds(load)})
    seconds = {speed.device: speed.seconds(load) for speed in (cpu, *fitting)}
    best = min(seconds, key=seconds.__getitem__)
    gpu = min(fitting, key=lambda gpu: seconds[gpu.device])
    other = gpu.device if best == "cpu" else "cpu"
    reason = (
        f"about {_time(seconds[best])} a step, on {other} {_time(seconds[other])} "
        f"({len(load.works)} ops, {_flops(load)}; {_size(load.copied_bytes)} copied, "
        f"{_size(load.held_bytes)} of {_size(gpu.free_bytes)} free on {gpu.device} held; "
        f"{gpu.device}: {gpu.source})"
    )
    return Placement(best, reason, load, seconds)


def measured_load(step: Callable[[str], object], copied_bytes: int, held_bytes: int) -> Load:
    """What a step's ops compute, move and hold: it runs on the null device."""
    generator = _core._default_generator()
    position, before = generator.position, _core.active_device()
    observing = _core._Observing(alone=True)
    try:
        with memory.record() as timeline:
            tw.set_device("null")
            step("null")
    finally:
        events = observing.stop()
        tw.set_device(before)
        generator.position = position
    works = tuple(
        Work(event["flops"], event["bytes"], event["problem"].partition(" ")[0])
        for event in events
        if event["device"] == "null"
    )
    return Load(works, copied_bytes, held_bytes + _most_alive(timeline.events))


def _most_alive(events: Sequence[dict[str, Any]]) -> int:
    """Bytes that this thread's step held on the null device at one time."""
    alive: dict[int, int] = {}
    now = most = 0
    for event in events:
        if event["kind"] == "allocate" and event["device"] == "null":
            alive[event["block"]] = event["bytes"]
            now += event["bytes"]
            most = max(most, now)
        elif event["kind"] == "release":
            now -= alive.pop(event["block"], 0)
    return most


def cpu_speed() -> Speed:
    """This processor's, as `tw.explain` measures it once a process."""
    from tilewright._inspect.machine_peaks import quick_peaks  # noqa: PLC0415  (imported on use)

    single, double = quick_peaks("float32"), quick_peaks("float64")
    flops = {"": single.flops_per_s, "float64": double.flops_per_s}
    return Speed(
        "cpu", flops, single.bytes_per_s, _CPU_OP_S, math.inf, math.inf, "rates of this process"
    )


def gpu_speed(number: int) -> Speed:
    """A GPU's, by the rates that its estimates stand on."""
    from tilewright.tune.gpu import source  # noqa: PLC0415  (imported on use)

    device = f"cuda:{number}"
    rates = {row["name"]: row["value"] for row in _core._gpu_rates(number)}
    products = 2e9 * cuda.facts(number)["multiprocessors"]  # a rate's, as operations a second
    halves = products * max(rates["warps"], rates["groups"])
    flops = {"": products * rates["registers"], "bfloat16": halves, "float16": halves}
    pool = cuda.memory(number)
    unused = pool["reserved_bytes"] - pool["live_bytes"]
    return Speed(
        device,
        flops,
        1e9 * rates["memory"],
        1e-9 * rates["launch_ns"],
        1e9 * rates["upload"],
        cuda.mem_get_info(number)[0] + unused,
        source(device),
    )


def _told(placement: Placement) -> Placement:
    tell_placement(placement)
    return placement


def _bytes_of(x: Any) -> int:
    if isinstance(x, Tensor):
        return x.nbytes
    is_shape = isinstance(x, (tuple, list)) and all(type(extent) is int for extent in x)
    return 4 * math.prod(x) if is_shape else 0


def _time(seconds: float) -> str:
    return time_text(1e9 * seconds)


def _flops(load: Load) -> str:
    total = sum(work.flops for work in load.works)
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if total >= scale:
            return f"{total / scale:.3g} {unit}FLOP"
    return f"{total / 1e3:.3g} kFLOP"


def _size(count: float) -> str:
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"
