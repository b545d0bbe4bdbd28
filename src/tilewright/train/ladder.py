"""The same training once per rung of the matmul ladder."""

from __future__ import annotations

from dataclasses import replace

import tilewright as tw
from tilewright import kernels
from tilewright.train import loop
from tilewright.train.options import AUTOMATIC, Options
from tilewright.train.run import OnBatch, OnEpoch, Run
from tilewright.train.task import Trainable


def ladder(
    task: Trainable,
    options: Options,
    on_batch: OnBatch | None = None,
    on_epoch: OnEpoch | None = None,
    on_run: OnEpoch | None = None,
) -> list[Run]:
    """The same training once per rung, then with the engine's own choice.

    A rung that refuses one of the network's shapes gives a run without epochs and with the reason.
    """
    runs = []
    for kernel in [*kernels.names("matmul"), AUTOMATIC]:
        rung = replace(options, kernel=kernel)
        try:
            run = loop.train(task, rung, on_batch, on_epoch)
        except ValueError as error:
            run = Run(task.name, rung, tw.get_num_threads(), error=str(error))
        runs.append(run)
        if on_run:
            on_run(run)
    return runs
