"""Trains many configurations side by side on the task scheduler, within one memory budget."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilewright import train as job
from tilewright.memory import Pool
from tilewright.runtime import Scheduler, current_task

_SWEEP_KEYS = ("data", "epochs")
# The configuration's word to the training's.
_OPTIONS = {
    "lr": "lr", "hidden": "hidden", "batch_size": "batch", "optimizer": "optimizer", "seed": "seed",
    "epochs": "epochs",
}  # fmt: skip
_FLOAT32_BYTES = 4
# Buffers as large as the parameters that each optimiser keeps.
_STATE_BUFFERS = {"sgd": 0, "momentum": 1, "adam": 2}
_TICK_SECONDS = 0.1


@dataclass(frozen=True)
class Configuration:
    """One training of a sweep: the data's name and what differs from its default options."""

    data: str
    settings: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Names the result: equal for equal configurations, in whatever order they are written."""
        told = json.dumps({"data": self.data, **self.settings}, sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def options(self) -> job.Options:
        """The training's options; raises ValueError or TypeError for values that cannot be."""
        given = {_OPTIONS[key]: value for key, value in self.settings.items()}
        for name in ("epochs", "batch", "hidden", "seed"):
            if type(given.get(name, 0)) is not int:
                raise TypeError(f"sweep: {name} must be a whole number, got {given[name]!r}")
        if not (given.get("lr") is None or 0 < given["lr"] < float("inf")):
            raise ValueError(f"sweep: lr must be a number above 0, got {given['lr']!r}")
        return replace(job.default_options(self.data), **given)


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
            "error": self.error,
        }


def read_configurations(path: str | os.PathLike[str]) -> list[Configuration]:
    """The configurations of a TOML or JSON file, each once, in the order of the file.

    `[sweep]` has `data` ("digits" or "mnist") and `epochs`; `[grid]` a list for each option, of
    which all combinations are trained; `[[runs]]` single ones. Raises ValueError for unknown keys,
    with those that are known, and for a file that holds no configuration.
    """
    tables = _parse(Path(path))
    _check_keys(tables, ("sweep", "grid", "runs"), f"{path}")
    common = _table(tables, "sweep", path)
    _check_keys(common, _SWEEP_KEYS, f"{path}: [sweep]")
    data = common.get("data", "digits")
    if data not in ("digits", "mnist"):
        raise ValueError(f"{path}: [sweep] data is digits or mnist, got {data!r}")
    shared = {"epochs": common["epochs"]} if "epochs" in common else {}
    found = [*_grid(_table(tables, "grid", path), path), *_runs(tables.get("runs", []), path)]
    configurations = [Configuration(data, {**shared, **settings}) for settings in found]
    if not configurations:
        raise ValueError(f"{path}: no configuration; write a [grid] or [[runs]]")
    return list({each.digest: each for each in configurations}.values())


def estimate_bytes(task: job.Task, options: job.Options) -> int:
    """Memory of a training in bytes: parameters, gradients, optimiser state and activations.

    The test passes all test images at once, so for small batches its activations are the larger.

    >>> from tilewright import train
    >>> estimate_bytes(train.load_task("digits"), train.Options(hidden=64, batch=32)) > 50_000
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
        with Scheduler(memory_bytes, workers) as scheduler:
            for row in self.rows:
                if not row.done:
                    self._submit(scheduler, row)
            while not scheduler.wait(_TICK_SECONDS):
                on_tick()
        on_tick()
        if trace is not None:
            write = scheduler.trace if Path(trace).suffix == ".json" else scheduler.plot
            write(trace)
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
            job.train(self.task, options, on_batch, on_epoch)
        except CancelledError as error:
            row.state, row.error = "cancelled", str(error)
            raise
        except Exception as error:
            self._end(row, "failed", error)
        else:
            self._end(row, "completed", None)

    def _end(self, row: Row, state: str, error: Exception | None) -> None:
        row.error = None if error is None else f"{type(error).__name__}: {error}"
        # Written before it is shown as done: what was seen to be done is never trained again.
        if self.out is not None:
            _write_json(self._file(row), {**row.as_dict(), "state": state})
        row.state = state

    def _file(self, row: Row) -> Path:
        assert self.out is not None
        return self.out / f"{row.configuration.digest}.json"


def _parse(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    try:
        tables = json.loads(text) if path.suffix == ".json" else _toml().loads(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(tables, dict):
        raise ValueError(f"{path}: expected tables, got {type(tables).__name__}")
    return tables


def _toml() -> Any:
    if sys.version_info < (3, 11):
        raise ImportError("reading TOML needs Python 3.11; write the configuration as .json")
    import tomllib  # noqa: PLC0415  (not there before Python 3.11)

    return tomllib


def _table(tables: Mapping[str, Any], name: str, path: object) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ValueError(f"{path}: {name} must be a table, got {table!r}")
    return table


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in known:
            raise ValueError(f"{place}: unknown key {key!r}; known: {', '.join(known)}")


def _grid(table: dict[str, Any], path: object) -> Iterator[dict[str, Any]]:
    _check_keys(table, tuple(_OPTIONS), f"{path}: [grid]")
    for key, values in table.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{path}: [grid] {key} must be a list of values, got {values!r}")
    if table:
        for values in itertools.product(*table.values()):
            yield dict(zip(table, values, strict=True))


def _runs(runs: Any, path: object) -> Iterator[dict[str, Any]]:
    if not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
        raise ValueError(f"{path}: runs must be tables, each headed [[runs]]")
    for run in runs:
        _check_keys(run, tuple(_OPTIONS), f"{path}: [[runs]]")
        yield run


def _names(configurations: list[Configuration]) -> list[str]:
    """What tells each from the others."""
    keys = [key for key in _OPTIONS if len({_shown(c, key) for c in configurations}) > 1]
    keys = keys or [key for key in _OPTIONS if _shown(configurations[0], key)]
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
            row.epochs, row.seconds = held["epochs"], held["seconds"]
            row.estimate_bytes = held["estimate_bytes"]
            row.total_epochs, row.resumed, row.state = len(row.epochs), True, "completed"
    except (OSError, ValueError, KeyError, TypeError):
        return


def _write_json(path: Path, value: Any) -> None:
    """The file appears whole or not at all."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
