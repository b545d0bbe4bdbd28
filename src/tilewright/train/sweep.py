"""Trains many configurations side by side on the task scheduler, within one memory budget."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright import train as job
from tilewright.io.atomic import write_whole
from tilewright.memory import Pool
from tilewright.runtime import Scheduler, current_task
from tilewright.runtime.timeline import EARLIER, draw_timeline, write_timeline
from tilewright.train.sweep_file import KEYS, Configuration, read_configurations

__all__ = ["Configuration", "Row", "Sweep", "estimate_bytes", "read_configurations"]

_FLOAT32_BYTES = 4
# Buffers as large as the parameters that each optimiser keeps.
_STATE_BUFFERS = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}
_TICK_SECONDS = 0.1


@dataclass
class Row:
    """Where a configuration stands."""

    configuration: Configuration
    name: str
    state: str = "pending"
    epochs: list[dict[str, Any]] = field(default_factory=list)
    total_epochs: int = 0
    estimate_bytes: int = 0
    seconds: float = 0.0
    error: str | None = None
    resumed: bool = False
    # Where and when it ran: worker, and submitted_ns, started_ns and ended_ns since session_ns, the
    # start of its sweep since 1970. None before, and in results of earlier versions.
    timing: dict[str, int] | None = None

    @property
    def done(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in ("completed", "failed", "cancelled")

    @property
    def loss(self) -> float:
        """Mean training loss of the last epoch; NaN before."""
        return float(self.epochs[-1]["loss"]) if self.epochs else float("nan")

    @property
    def accuracy(self) -> float:
        """Test accuracy after the last epoch, 0 to 1; NaN before."""
        return float(self.epochs[-1]["accuracy"]) if self.epochs else float("nan")

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "digest": self.configuration.digest,
            "data": self.configuration.data,
            "configuration": dict(self.configuration.settings),
            "name": self.name,
            "state": self.state,
            "accuracy": self.accuracy if self.epochs else None,
            "loss": self.loss if self.epochs else None,
            "seconds": self.seconds,
            "estimate_bytes": self.estimate_bytes,
            "epochs": self.epochs,
            "timing": self.timing,
            "error": self.error,
        }


def estimate_bytes(task: job.Task, options: job.Options) -> int:
    """Memory of a training in bytes: parameters, gradients, optimiser state and activations.

    The test passes all test images at once, so for small batches its activations are the larger.

    >>> from tilewright import train
    >>> estimate_bytes(train.load_images("digits"), train.Options(hidden=64, batch=32)) > 50_000
    True
    """
    pixels, hidden, classes = task.train_images.shape[1], options.hidden, task.classes
    parameters = (pixels + 1) * hidden + (hidden + 1) * classes
    buffers = 2 + _STATE_BUFFERS[options.optimizer]
    # Each layer's output and, in training, its gradient; the batch is a copy of its images.
    training = options.batch * (pixels + 4 * hidden + 4 * classes)
    testing = task.test_images.shape[0] * (2 * hidden + 2 * classes)
    return _FLOAT32_BYTES * (buffers * parameters + max(training, testing))


class Sweep:
    """The configurations of a file on their way; `rows` says where each stands.

    With a folder `out` each result is written there as it comes, and completed results of the
    same configurations are taken over from an earlier sweep that was cut off.
    """

    def __init__(
        self,
        configurations: list[Configuration],
        task: job.Task,
        out: str | os.PathLike[str] | None = None,
    ) -> None:
        self.task = task
        self.out = None if out is None else Path(out)
        names = _names(configurations)
        self.rows = [Row(each, name) for each, name in zip(configurations, names, strict=True)]
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            for row in self.rows:
                _take_over(row, self._file(row))

    def run(
        self,
        workers: int | None = None,
        memory_bytes: int | None = None,
        on_tick: Callable[[], None] = lambda: None,
        trace: str | os.PathLike[str] | None = None,
    ) -> list[Row]:
        """Trains what is left; the rows, best accuracy first. `on_tick` is called ten times a
        second on this thread. A configuration that fails is a row with its error. `trace` names a
        file for the timeline of the trainings: a picture, or Chrome's trace format for .json.
        """
        self._session_ns, self._clock_ns = time.time_ns(), time.monotonic_ns()
        with Scheduler(memory_bytes, workers) as scheduler:
            for row in self.rows:
                if not row.done:
                    self._submit(scheduler, row)
            while not scheduler.wait(_TICK_SECONDS):
                on_tick()
        on_tick()
        if trace is not None:
            records = earlier_records(self.rows)
            end = max((record["ended_ns"] for record in records), default=0)
            records += [_shifted(record, end - self._clock_ns) for record in scheduler.tasks()]
            (write_timeline if Path(trace).suffix == ".json" else draw_timeline)(records, trace)
        ordered = sorted(self.rows, key=lambda row: -row.accuracy if row.epochs else 1.0)
        if self.out is not None:
            _write_json(self.out / "results.json", [row.as_dict() for row in ordered])
        return ordered

    def _submit(self, scheduler: Scheduler, row: Row) -> None:
        try:
            options = row.configuration.options()
            row.total_epochs = options.epochs
            row.estimate_bytes = estimate_bytes(self.task, options)
            scheduler.submit(
                self._train,
                row,
                options,
                memory_bytes=row.estimate_bytes,
                name=row.name,
                pool=Pool(),  # tells the scheduler what the training really holds
            )
        except (ValueError, TypeError) as error:
            self._end(row, "failed", error)

    def _train(self, row: Row, options: job.Options) -> None:
        row.state = "running"
        start = time.perf_counter()

        def on_epoch(run: job.Run) -> None:
            row.epochs = run.as_dict()["epochs"]
            row.seconds = time.perf_counter() - start

        def on_batch(_: job.Progress) -> None:
            current_task().check()

        try:
            try:
                job.train(self.task, options, on_batch, on_epoch)
            finally:
                row.timing = self._timing(current_task().stats())
        except CancelledError as error:
            row.state, row.error = "cancelled", str(error)
            raise
        except Exception as error:
            self._end(row, "failed", error)
        else:
            self._end(row, "completed", None)

    def _timing(self, stats: Mapping[str, Any]) -> dict[str, int]:
        times = {name: int(stats[name]) for name in ("submitted_ns", "started_ns")}
        times["ended_ns"] = time.monotonic_ns()
        return {
            "session_ns": self._session_ns,
            "worker": int(stats["worker"]),
            **{name: value - self._clock_ns for name, value in times.items()},
        }

    def _end(self, row: Row, state: str, error: Exception | None) -> None:
        row.error = None if error is None else f"{type(error).__name__}: {error}"
        # Written before it is shown as done: what was seen to be done is never trained again.
        if self.out is not None:
            _write_json(self._file(row), {**row.as_dict(), "state": state})
        row.state = state

    def _file(self, row: Row) -> Path:
        assert self.out is not None
        return self.out / f"{row.configuration.digest}.json"


def _names(configurations: list[Configuration]) -> list[str]:
    """What tells each from the others."""
    keys = [key for key in KEYS if len({_shown(c, key) for c in configurations}) > 1]
    keys = keys or [key for key in KEYS if _shown(configurations[0], key)]
    told = [", ".join(filter(None, (_shown(c, key) for key in keys))) for c in configurations]
    return [text or "defaults" for text in told]


def _shown(configuration: Configuration, key: str) -> str:
    settings = configuration.settings
    return f"{key} {settings[key]}" if key in settings else ""


def _take_over(row: Row, path: Path) -> None:
    """Fills the row from an earlier result, unless that is another's, damaged or not complete."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        same = held["configuration"] == dict(row.configuration.settings)
        if same and held["data"] == row.configuration.data and held["state"] == "completed":
            epochs, seconds = held["epochs"], held["seconds"]
            loss, accuracy = float(epochs[-1]["loss"]), float(epochs[-1]["accuracy"])
            memory, timing = int(held["estimate_bytes"]), _checked_timing(held.get("timing"))
            if not math.isnan(loss) and 0 <= accuracy <= 1 and seconds >= 0:
                row.epochs, row.seconds, row.timing = epochs, seconds, timing
                row.estimate_bytes = memory
                row.total_epochs, row.resumed, row.state = len(row.epochs), True, "completed"
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return


def _checked_timing(held: Any) -> dict[str, int] | None:
    names = ("session_ns", "worker", "submitted_ns", "started_ns", "ended_ns")
    if not isinstance(held, dict):
        return None
    timing = {name: held.get(name) for name in names}
    if not all(type(value) is int and value >= 0 for value in timing.values()):
        return None
    return timing  # type: ignore[return-value]  # checked above


def earlier_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What the taken over rows did, as `Scheduler.tasks` tells it: sessions laid end to end."""
    records: list[dict[str, Any]] = []
    sessions: dict[int, list[Row]] = {}
    for row in rows:
        if row.resumed:
            sessions.setdefault(row.timing["session_ns"] if row.timing else 0, []).append(row)
    for session in sorted(sessions):
        begin = max((record["ended_ns"] for record in records), default=0)
        at = begin  # of rows that do not tell when they ran: one after another
        for row in sessions[session]:
            length = int(1e9 * row.seconds)
            untold = {"worker": 0, "submitted_ns": 0, "started_ns": at - begin}
            timing = row.timing or {**untold, "ended_ns": at - begin + length}
            at += length
            records.append(
                _shifted(
                    {
                        **timing,
                        "id": -1 - len(records),
                        "name": row.name,
                        "state": EARLIER,
                        "quality": None,
                        "estimate_bytes": row.estimate_bytes,
                        "peak_use_bytes": None,
                    },
                    begin,
                )
            )
    return records


def _shifted(record: Mapping[str, Any], by_ns: int) -> dict[str, Any]:
    moved = {
        name: record[name] + by_ns
        for name in ("submitted_ns", "started_ns", "ended_ns")
        if record[name] is not None
    }
    return {**record, **moved}


def _write_json(path: Path, value: Any) -> None:
    """The file appears whole or not at all."""
    write_whole(path, json.dumps(value, indent=2).encode(), "sweep")
