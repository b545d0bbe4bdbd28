"""What a training step of a deep network needs: peak resident memory in processes of their own."""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tilewright as tw
from tilewright.extras import available
from tilewright.memory.breakdown import MemoryReport

if TYPE_CHECKING:
    from tilewright.cli.console import Console

# The network of the comparison: hidden layers of one width, trained by SGD.
DEPTH, WIDTH, INPUT, CLASSES, BATCH = 12, 1024, 1024, 10, 512
# The second step finds gradients in place: the peak of training is reached.
STEPS = 3
SEGMENTS = 5
WAYS = ("eager", "planned", "checkpointed", "torch")


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


def peaks(ways: tuple[str, ...] = WAYS) -> Iterator[Peak]:
    """Trains for a few steps in each way, in a fresh process; torch where it is installed."""
    for way in ways:
        if way == "torch" and not available("torch"):
            continue
        done = subprocess.run(
            [sys.executable, "-m", "tilewright.bench.memory", way],
            capture_output=True,
            text=True,
            check=True,
        )
        yield Peak(**json.loads(done.stdout))


def step_report(batch: int = BATCH, width: int = WIDTH, depth: int = DEPTH) -> MemoryReport:
    """The memory report of one step of the same network, PyTorch's beside it where installed."""
    model, x, t = _network(tw, (batch, width, depth))
    theirs: Callable[[], Any] | None = None
    if available("torch"):
        torch = importlib.import_module("torch")
        other, their_x, their_t = _network(torch, (batch, width, depth))
        theirs = lambda: torch.nn.functional.cross_entropy(other(their_x), their_t)  # noqa: E731
    return tw.memory.report(lambda: tw.cross_entropy(model(x), t), torch=theirs)


def run(console: Console) -> int:
    """Reports both; the command `tilewright bench memory`."""
    found = []
    for peak in peaks():
        found.append(peak)
        console.line(f"{peak.way}: {peak.peak_bytes / 2**20:,.0f} MiB")
    torch = next((peak for peak in found if peak.way == "torch"), None)
    rows = [[peak.way, *_cells(peak, torch)] for peak in found]
    console.table(
        f"peak resident memory: {DEPTH} layers of {WIDTH}, batch {BATCH}, SGD",
        ["way", "MiB", "of torch's", "above start, MiB", "of torch's"],
        rows,
    )
    report = step_report()
    console.table("memory of one step", report.columns(), report.rows())
    console.json({"peaks": [vars(peak) for peak in found], "step": dict(report)})
    return 0


def _cells(peak: Peak, torch: Peak | None) -> list[str]:
    cells = []
    for name in ("peak_bytes", "grown_bytes"):
        figure = getattr(peak, name)
        cells.append(f"{figure / 2**20:,.0f}")
        cells.append(f"{figure / getattr(torch, name):.2f}" if torch else "-")
    return cells


def _network(m: Any, sizes: tuple[int, int, int] = (BATCH, WIDTH, DEPTH)) -> tuple[Any, Any, Any]:
    """Model, inputs and targets, of Tilewright or PyTorch."""
    batch, width, depth = sizes
    layers: list[Any] = [m.nn.Linear(INPUT, width), m.nn.ReLU()]
    for _ in range(depth - 1):
        layers += [m.nn.Linear(width, width), m.nn.ReLU()]
    model = m.nn.Sequential(*layers, m.nn.Linear(width, CLASSES))
    return model, m.randn(batch, INPUT), m.randint(0, CLASSES, (batch,))


def _train(way: str) -> Peak:
    m = importlib.import_module("torch") if way == "torch" else tw
    start = _peak_resident()
    model, x, t = _network(m)
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
    print(json.dumps(vars(_train(sys.argv[1]))))
