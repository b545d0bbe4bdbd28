"""Checkpoints of trainings: written whole or not at all, checked before anything is taken over."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

from tilewright.io import load, save
from tilewright.io.atomic import remove_temporaries
from tilewright.train.options import Options
from tilewright.train.task import Trainable

_FORMAT = "tilewright training 1"
# Seconds of training for each second of writing, where epochs are short: the file holds all losses,
# so that one after each of many epochs would cost more and more.
_SECONDS_A_SECOND = 20
_PARTS = ("epochs", "part", "loader", "random", "model", "optimizer", "losses")


@dataclass
class Checkpoint:
    """The file that a training writes every so many seconds, after the last epoch, and after each
    other one that took long beside the writing (20 times): a training of short epochs spends a
    twentieth of its time on it at most.

    With `resume` the training goes on from what stands there, to the same bits that it would have
    come to without the interruption. Without it a file must not be there yet: nothing is
    overwritten by mistake. What a killed process left of a file that it was writing goes with the
    first one that follows it.
    """

    path: str | PathLike[str]
    every_seconds: float = 60.0
    resume: bool = False

    def __post_init__(self) -> None:
        self._written = time.monotonic()
        self._cost_s = 0.0
        self._swept = False
        there = os.path.exists(self.path)
        if self.resume and not there:
            raise FileNotFoundError(
                f"train: no checkpoint {os.fspath(self.path)} to go on from; leave resume out to "
                "start a training"
            )
        if there and not self.resume:
            raise FileExistsError(
                f"train: a checkpoint {os.fspath(self.path)} is there already; go on from it with "
                "resume, or remove it"
            )

    @property
    def due(self) -> bool:
        """Whether the time for the next one has come."""
        return time.monotonic() - self._written >= self.every_seconds

    @property
    def pays(self) -> bool:
        """Whether the last one took little time beside that since."""
        return time.monotonic() - self._written >= _SECONDS_A_SECOND * self._cost_s

    def write(self, task: Trainable, options: Options, state: Mapping[str, Any]) -> None:
        """Takes the place of the file before."""
        head = {
            "format": _FORMAT,
            "task": task.name,
            "facts": dict(task.facts()),
            "options": asdict(options),
        }
        start = time.monotonic()
        save({**head, **state}, self.path)
        self._written = time.monotonic()
        self._cost_s = self._written - start
        if self.resume and not self._swept:
            remove_temporaries(self.path)
            self._swept = True

    def options(self, task: str) -> Options:
        """With which the training was begun; raises ValueError where it is of another task."""
        return _options(self.path, self._of_task(task))

    def read(self, task: Trainable, options: Options) -> dict[str, Any]:
        """What was written; raises ValueError where it is of another task, data or options.

        A larger number of epochs makes a training longer.
        """
        state, name = self._of_task(task.name), os.fspath(self.path)
        written = asdict(_options(self.path, state))
        for key, value in asdict(options).items():
            if key not in ("epochs", "device") and written[key] != value:
                raise ValueError(
                    f"train: {name} is a training with {key} {written[key]}, not {value}"
                )
        for key, value in task.facts().items():
            if state["facts"].get(key) != value:
                raise ValueError(
                    f"train: {name} was trained on other data: {key} {state['facts'].get(key)!r}, "
                    f"here {value!r}"
                )
        if (done := len(state["epochs"])) > options.epochs:
            raise ValueError(
                f"train: {name} has {done} epochs behind it, more than {options.epochs}"
            )
        return state

    def _of_task(self, task: str) -> dict[str, Any]:
        state, name = load(self.path), os.fspath(self.path)
        if state.get("format") != _FORMAT:
            raise ValueError(f"train: {name} is no checkpoint of a training")
        if missing := [part for part in (*_PARTS, "task", "options", "facts") if part not in state]:
            raise ValueError(f"train: {name}: damaged checkpoint: no {missing[0]!r}")
        if state["task"] != task:
            raise ValueError(f"train: {name} is a training of {state['task']}, not of {task}")
        return state


def _options(path: str | PathLike[str], state: Mapping[str, Any]) -> Options:
    try:
        return Options(**state["options"])
    except TypeError as error:
        raise ValueError(f"train: {os.fspath(path)}: damaged options: {error}") from None
