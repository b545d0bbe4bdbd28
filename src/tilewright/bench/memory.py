"""What memory costs: ten thousand allocations and frees, and the peak of a deep network's training
in processes of their own.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright.bench.harness import OURS, Case
from tilewright.memory.breakdown import MemoryReport

# The network of the comparison: hidden layers of one width, trained by SGD.
SIZES = (512, 1024, 12)  # batch, width, hidden layers
INPUT, CLASSES = 1024, 10
# The second step finds gradients in place: the peak of training is reached.
STEPS = 3
SEGMENTS = 5
WAYS = ("eager", "planned", "checkpointed", "torch")

_Make = Callable[[int], Any]
_ALLOCATIONS, _BLOCK_BYTES = 10_000, 4096
# Of a GPU runtime whose pool keeps books without memory behind them; its authors' machine.
_PUBLISHED = {"native": 3.05e-3, "pure Python": 41e-3}


def pool_cases(peers: dict[str, Any]) -> Iterator[Case]:
    """Allocations alone, then frees alone: the default pool beside what Python and PyTorch have for
    bytes, and a pool with a quota beside its reference in pure Python.
    """
    plain: dict[str, _Make] = {OURS: tw.memory.allocate, "bytearray": bytearray}
    if "torch" in peers:
        plain["torch"] = peers["torch"].UntypedStorage
    quota = {OURS: _pool("1").allocate, "reference": _pool("0").allocate}
    for what, published in (("allocations", _PUBLISHED), ("frees", {})):
        name = f"{_ALLOCATIONS:,} {what} of 4 KiB"
        yield _case(name, what, plain, {})
        yield _case(f"{name}, with a quota", what, quota, published)


def _case(
    name: str, what: str, makers: Mapping[str, _Make], published: Mapping[str, float]
) -> Case:
    timers = {of: getattr(_Blocks(make), what)() for of, make in makers.items()}
    return Case(name, timers, _ALLOCATIONS, "blocks", once=True, published=published)


class _Blocks:
    """Makes and drops many blocks of one kind; one of the two is outside the time."""

    def __init__(self, make: _Make) -> None:
        self.make = make
        self.blocks: list[Any] = []

    def allocations(self) -> Timer:
        """A timer of the making."""
        return Timer(self.allocate, self.free)

    def frees(self) -> Timer:
        """A timer of the dropping."""
        return Timer(self.free, self.allocate)

    def allocate(self) -> None:
        make = self.make
        self.blocks = [make(_BLOCK_BYTES) for _ in range(_ALLOCATIONS)]

    def free(self) -> None:
        self.blocks.clear()


def _pool(native: str) -> tw.memory.Pool:
    """A pool that never reaches its quota, with native or Python's bookkeeping."""
    name = "TILEWRIGHT_NATIVE_RUNTIME"
    before = os.environ.get(name)
    os.environ[name] = native
    try:
        return tw.memory.Pool(quota_bytes=4 * _ALLOCATIONS * _BLOCK_BYTES)
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@dataclass(frozen=True)
class Peak:
    """Resident bytes of a process that trains in one way.

    `start_bytes`: when the engine is loaded and nothing is made yet.
    """

    way: str
    peak_bytes: int
    start_bytes: int

    @property
    def grown_bytes(self) -> int:
        """What the training itself added."""
        return self.peak_bytes - self.start_bytes


def peaks(ways: tuple[str, ...]) -> Iterator[Peak]:
    """Trains for a few steps in each way, in a fresh process."""
    for way in ways:
        done = subprocess.run(
            [sys.executable, "-m", "tilewright.bench.memory", way, *map(str, SIZES)],
            capture_output=True,
            text=True,
            check=True,
        )
        yield Peak(**json.loads(done.stdout))


def step_report(with_torch: bool, sizes: Sequence[int]) -> MemoryReport:
    """The memory report of one step of the same network, PyTorch's beside it."""
    ours = _loss_of(tw, tw.cross_entropy, sizes)
    if not with_torch:
        return tw.memory.report(ours)
    torch = importlib.import_module("torch")
    theirs = _loss_of(torch, torch.nn.functional.cross_entropy, sizes)
    return tw.memory.report(ours, torch=theirs)


def _loss_of(m: Any, loss: Callable[..., Any], sizes: Sequence[int]) -> Callable[[], Any]:
    model, x, t = _network(m, sizes)
    return lambda: loss(model(x), t)


def _network(m: Any, sizes: Sequence[int]) -> tuple[Any, Any, Any]:
    """Model, inputs and targets, of Tilewright or PyTorch."""
    batch, width, depth = sizes
    layers: list[Any] = [m.nn.Linear(INPUT, width), m.nn.ReLU()]
    for _ in range(depth - 1):
        layers += [m.nn.Linear(width, width), m.nn.ReLU()]
    model = m.nn.Sequential(*layers, m.nn.Linear(width, CLASSES))
    return model, m.randn(batch, INPUT), m.randint(0, CLASSES, (batch,))


def _train(way: str, sizes: Sequence[int]) -> Peak:
    m = importlib.import_module("torch") if way == "torch" else tw
    start = _peak_resident()
    model, x, t = _network(m, sizes)
    optimizer = m.optim.SGD(model.parameters(), lr=0.01)
    loss_of = m.nn.functional.cross_entropy if way == "torch" else tw.cross_entropy
    for _ in range(STEPS):
        optimizer.zero_grad()
        checkpointed = way == "checkpointed"
        out = tw.checkpoint_sequential(model, SEGMENTS, x) if checkpointed else model(x)
        loss = loss_of(out, t)
        if way == "planned":
            loss.backward(plan=True)
        else:
            loss.backward()
        del out, loss
        optimizer.step()
    return Peak(way, _peak_resident(), start)


def _peak_resident() -> int:
    """Highest resident bytes of this process; the kernel's other figure outlives exec."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    print(json.dumps(vars(_train(sys.argv[1], [int(size) for size in sys.argv[2:]]))))
