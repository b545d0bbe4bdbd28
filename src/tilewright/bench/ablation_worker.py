"""One line of an ablation: a training, or a program, whose steps another process grants.

`main` takes READ WRITE KERNELS WHAT [ARGUMENTS] from the command line.
READ and WRITE are pipes. A line on READ grants so many steps; a line on WRITE tells, as JSON, the
seconds of each and the first losses. KERNELS are those to force, as JSON. WHAT is `train:NAME`,
or a Python file, in which a step is what ends with a step of an optimizer.
"""

from __future__ import annotations

import json
import os
import random
import runpy
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import tilewright as tw
from tilewright.bench.small_calls import SHORT_NAMES, training_step
from tilewright.optim.hooks import HookedOptimizer

# The losses of so many steps are told, to be compared between lines.
LOSSES = 20
_SEED = 0


class Steps:
    """Counts steps, and waits after those that were granted."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads = os.fdopen(reads)
        self._writes = os.fdopen(writes, "w")
        self._seconds: list[float] = []
        self._losses: list[float | None] = []
        self._told = 0
        self._granted = self._wait()
        self._begun = perf_counter()

    @property
    def wants_loss(self) -> bool:
        """Whether the loss of this step is among those that are told."""
        return self._told + len(self._losses) < LOSSES

    def end(self, loss: float | None) -> None:
        """A step has ended; returns when another is granted, and not where none will be."""
        self._seconds.append(perf_counter() - self._begun)
        if self.wants_loss:
            self._losses.append(loss)
        if len(self._seconds) == self._granted:
            self.tell()
            self._granted = self._wait()
        self._begun = perf_counter()

    def tell(self, ended: bool = False) -> None:
        """Answers what was granted, with as many steps as there were."""
        told = {"seconds": self._seconds, "losses": self._losses, "ended": ended}
        print(json.dumps(told), file=self._writes, flush=True)
        self._told += len(self._losses)
        self._seconds, self._losses = [], []

    def _wait(self) -> int:
        line = self._reads.readline()
        if not line:
            os._exit(0)  # the program need not end by itself, nor tell that it could not
        return int(line)


class _Watch:
    """What a program's calls tell of its steps and losses."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._loss: tw.Tensor | None = None

    def backward(self, loss: tw.Tensor) -> None:
        """Notes on what `backward` was called last."""
        if self._steps.wants_loss and loss.size == 1:
            self._loss = loss.detach()

    def step(self) -> None:
        """Ends a step."""
        loss, self._loss = self._loss, None
        self._steps.end(None if loss is None else float(loss.item()))


def _watch_program(steps: Steps) -> None:
    """Tensors, and optimizers that the program makes, tell of losses and steps."""
    watch = _Watch(steps)
    engine: Any = tw
    backward, make = tw.Tensor.backward, HookedOptimizer.__init__

    def watched_backward(self: tw.Tensor, *args: Any, **kwargs: Any) -> None:
        watch.backward(self)
        backward(self, *args, **kwargs)

    def make_watched(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        self.register_step_post_hook(lambda *_: watch.step())

    engine.Tensor.backward = watched_backward
    HookedOptimizer.__init__ = make_watched  # type: ignore[method-assign]


def _run(steps: Steps, what: str, arguments: list[str]) -> None:
    name = what.removeprefix("train:")
    if name != what:
        step = training_step(tw, SHORT_NAMES[name])
        while True:
            steps.end(step())
    _watch_program(steps)
    sys.argv = [what, *arguments]
    sys.path.insert(0, str(Path(what).resolve().parent))
    runpy.run_path(what, run_name="__main__")
    steps.tell(ended=True)


def main() -> None:
    """Runs what the command line says."""
    reads, writes, kernels, what, *arguments = sys.argv[1:]
    random.seed(_SEED)
    tw.manual_seed(_SEED)
    with tw.kernels.use(**json.loads(kernels)):
        _run(Steps(int(reads), int(writes)), what, arguments)
