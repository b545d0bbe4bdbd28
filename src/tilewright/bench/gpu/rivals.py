"""PyTorch beside this engine on a GPU: the same arrays for both, and a clock for each."""

from __future__ import annotations

import time
from collections.abc import Callable
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright._engine.optional_packages import available, require
from tilewright.bench.gpu.lines import Calls

_MOST_SETS = 16
# Twice the second-level cache of the largest GPUs.
_CACHED_BYTES = 128 << 20


class EventTimer(Timer):
    """Time on the GPU between two marks around the calls."""

    def __init__(self, calls: Calls, measure: Callable[[Callable[[], None]], float]) -> None:
        super().__init__()
        self.calls, self.measure = calls, measure
        self._next = 0

    def timeit(self, number: int = 1) -> float:
        """Seconds of so many calls, on one input after the other."""

        def run() -> None:
            calls, at = self.calls, self._next
            for i in range(at, at + number):
                calls[i % len(calls)]()
            self._next = (at + number) % len(calls)

        return self.measure(run)


class Rivals:
    """Who takes part. `torch`: the module or None; `device`: where its tensors are.

    `compiles` adds what torch.compile makes of the same calls.
    """

    def __init__(self, torch: Any = None, device: str = "cuda", compiles: bool = True) -> None:
        self.torch, self.device, self.compiles = torch, device, compiles
        self._marks = [tw._core._GpuEvent(True) for _ in range(2)]

    @classmethod
    def found(cls) -> Rivals:
        """PyTorch where it is installed and has a GPU."""
        if not available("torch"):
            return cls()
        torch = require("torch", purpose="the comparison", install="torch")
        return cls(torch if torch.cuda.is_available() else None)

    @property
    def what(self) -> str:
        """With whom ours is compared, in words."""
        if self.torch is not None:
            return f"PyTorch {self.torch.__version__}"
        return "nobody: no PyTorch with CUDA is installed, so ratios are missing"

    def sets(self, nbytes: int) -> int:
        """How many sets of inputs of so many bytes no cache holds."""
        return max(1, min(_MOST_SETS, -(-_CACHED_BYTES // max(nbytes, 1))))

    def pairs(self, x: tw.Tensor) -> tuple[tw.Tensor, Any]:
        """The same values on the GPU for us and for PyTorch."""
        return x.to("cuda"), self.theirs(x)

    def theirs(self, x: tw.Tensor) -> Any:
        """For PyTorch; None without it."""
        if self.torch is None:
            return None
        if x.dtype == tw.bfloat16:
            wide = self.torch.from_dlpack(x.astype(tw.float32))
            return wide.to(self.torch.bfloat16).to(self.device)
        return self.torch.from_dlpack(x).to(self.device)

    def ours_timer(self, calls: Calls) -> Timer:
        """By events of the driver."""

        def measure(run: Callable[[], None]) -> float:
            (start, end), stream = self._marks, tw._core._gpu_current_stream(0)
            start.record(stream)
            run()
            end.record(stream)
            tw.cuda.synchronize()
            return 1e-3 * start.elapsed_ms(end)

        return EventTimer(calls, measure)

    def torch_timer(self, calls: Calls) -> Timer:
        """By PyTorch's events; on a CPU by the host's clock."""
        torch = self.torch

        def measure(run: Callable[[], None]) -> float:
            if self.device == "cpu":
                return _host_seconds(run, lambda: None)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            run()
            end.record()
            end.synchronize()
            return 1e-3 * float(start.elapsed_time(end))

        return EventTimer(calls, measure)

    def ours_host_timer(self, calls: Calls) -> Timer:
        """By the host's clock, until the GPU is done."""
        return EventTimer(calls, lambda run: _host_seconds(run, tw.cuda.synchronize))

    def torch_host_timer(self, calls: Calls) -> Timer:
        """The same."""
        return EventTimer(calls, lambda run: _host_seconds(run, self.synchronize))

    def synchronize(self) -> None:
        """Waits for PyTorch's GPU."""
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any] | None:
        """By torch.compile; None where that is off or fails."""
        if self.torch is None or not self.compiles:
            return None
        made: Callable[..., Any] = self.torch.compile(function)
        return made


def _host_seconds(run: Callable[[], None], wait: Callable[[], Any]) -> float:
    wait()
    start = time.perf_counter()
    run()
    wait()
    return time.perf_counter() - start
