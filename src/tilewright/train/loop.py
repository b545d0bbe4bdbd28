"""The loop: batches, steps, the test after each epoch, and checkpoints on the way."""

from __future__ import annotations

import threading
import time
from array import array
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from typing import Any

import tilewright as tw
from tilewright import Tensor, kernels
from tilewright._inspect.placement import Placement, place
from tilewright.nn.dry_run import twin_on
from tilewright.train.checkpoint import Checkpoint
from tilewright.train.options import AUTOMATIC, Options
from tilewright.train.run import Epoch, OnBatch, OnEpoch, Progress, Run
from tilewright.train.task import Trainable, build_model, build_optimizer

# The default generator is everybody's: trainings on other threads must not draw in between.
_FIRST_WEIGHTS = threading.Lock()
# What the current epoch adds up, and checkpoints hold.
_PART = ("batches", "samples", "units", "loss_sum", "seconds")


def train(
    task: Trainable,
    options: Options,
    on_batch: OnBatch | None = None,
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> Run:
    """Trains once; the same seed gives the same first weights and order of images on every rung.

    With a checkpoint it writes one every so often, and goes on from it where that says so. Raises
    ValueError when the forced kernel cannot do a multiplication of this network, and for a
    checkpoint of another training. Device "auto" is decided first (`placed`).
    """
    if options.device == AUTOMATIC:
        options = replace(options, device=placed(task, options).device)
    with forced(options.kernel):
        with _FIRST_WEIGHTS:
            tw.manual_seed(options.seed)
            training = _Training(task, options, on_batch, checkpoint)
        run = training.run
        for number in range(len(run.epochs) + 1, options.epochs + 1):
            run.epochs.append(training.epoch(number))
            if checkpoint and (checkpoint.pays or number == options.epochs):
                training.keep()
            if on_epoch:
                on_epoch(run)
    return run


def placed(task: Trainable, options: Options) -> Placement:
    """Where a step of the training is expected to take least time, and why; trains nothing."""

    def step(device: str) -> None:
        twin = twin_on(model, device)
        optimizer = build_optimizer(twin, options)
        task.loss(twin, *(x.to(device) for x in batch)).backward()
        optimizer.step()

    generator = tw._core._default_generator()
    with _FIRST_WEIGHTS, forced(options.kernel):
        position = generator.position
        try:
            model = build_model(task, options)
            batch = next(iter(task.loader(options)))
            return place(step, sum(x.nbytes for x in batch))
        finally:
            generator.position = position


def forced(kernel: str) -> AbstractContextManager[Any]:
    """The context in which every matmul runs on `kernel`; "auto" changes nothing."""
    return nullcontext() if kernel == AUTOMATIC else kernels.use(matmul=kernel)


class _Training:
    """A model on its way: what stays from epoch to epoch, and how far the present one is."""

    def __init__(
        self,
        task: Trainable,
        options: Options,
        on_batch: OnBatch | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.task, self.options = task, options
        self.on_batch, self.checkpoint = on_batch, checkpoint
        # First weights are drawn here, so that they are the same on all devices.
        self.model = build_model(task, options).to(options.device)
        self.optimizer = build_optimizer(self.model, options)
        self.loader = task.loader(options)
        self.run = Run(
            task.name,
            options,
            tw.get_num_threads(),
            metric=task.metric,
            unit=task.unit,
            model=self.model,
        )
        # What the current epoch adds up.
        self.batches = self.samples = self.units = 0
        self.loss_sum, self.seconds = 0.0, 0.0
        if checkpoint is not None and checkpoint.resume:
            self._restore(checkpoint)

    def epoch(self, number: int) -> Epoch:
        """One pass over the training data, or the rest of one, then the test."""
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.learning_rate_of(number)
        start = time.perf_counter() - self.seconds
        for inputs, targets in self.loader:
            x, y = inputs.to(self.options.device), targets.to(self.options.device)
            loss = self._step(x, y)
            samples = x.shape[0]
            self.samples += samples
            self.units += self.task.count(x)
            self.loss_sum += loss * samples
            self.batches += 1
            self.run.batch_losses.append(loss)
            self.seconds = time.perf_counter() - start
            self._tell(number, loss)
            if self.checkpoint is not None and self.checkpoint.due:
                self.keep()
                start = time.perf_counter() - self.seconds  # without the time of writing
        self.model.eval()
        with tw.no_grad():
            score = self.task.evaluate(self.model, self.options)
        loss, seconds = self.loss_sum / self.samples, self.seconds
        rate = self.units / seconds
        self.batches = self.samples = self.units = 0
        self.loss_sum, self.seconds = 0.0, 0.0
        return Epoch(number, loss, score, seconds, rate)

    def keep(self) -> None:
        """Writes a checkpoint, where there is to be one."""
        if self.checkpoint is not None:
            self.checkpoint.write(self.task, self.options, self._state())

    def _step(self, x: Tensor, y: Tensor) -> float:
        loss = self.task.loss(self.model, x, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.item())

    def _tell(self, number: int, loss: float) -> None:
        if self.on_batch:
            place = (self.options.kernel, number, self.batches, len(self.loader))
            mean, rate = self.loss_sum / self.samples, self.units / self.seconds
            self.on_batch(Progress(*place, mean, rate, loss))

    def _state(self) -> dict[str, Any]:
        generator = tw._core._default_generator()
        return {
            "epochs": [asdict(epoch) for epoch in self.run.epochs],
            "part": {name: getattr(self, name) for name in _PART},
            "loader": self.loader.state_dict(),
            "random": [generator.seed, generator.position],
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "losses": tw.asarray(self.run.batch_losses, dtype=tw.float64),
        }

    def _restore(self, checkpoint: Checkpoint) -> None:
        state = checkpoint.read(self.task, self.options)
        try:
            self._take_over(state)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(
                f"train: {checkpoint.path}: damaged checkpoint: {type(error).__name__}: {error}"
            ) from None

    def _take_over(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.loader.load_state_dict(state["loader"])
        for name in _PART:
            setattr(self, name, state["part"][name])
        self.run.epochs.extend(Epoch(**epoch) for epoch in state["epochs"])
        self.run.batch_losses.extend(array("d", state["losses"].tolist()))
        generator = tw._core._default_generator()
        generator.manual_seed(state["random"][0])
        generator.position = state["random"][1]
