"""Averages of a model's weights along the way: exponential, or equal."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import tilewright as tw
from tilewright import Tensor, nn
from tilewright.nn import Module
from tilewright.optim.lr_scheduler.schedule import check_state
from tilewright.optim.settings import check_number

_Average = Callable[[Sequence[Tensor], Sequence[Tensor], int], None]
_OneAverage = Callable[[Tensor, Tensor, Any], Tensor]
_HALVES = (tw.float16, tw.bfloat16)


def _check_decay(name: str, decay: Any) -> None:
    check_number(name, "decay", decay)
    if not 0 <= decay <= 1:
        raise ValueError(f"{name}: decay lies in [0, 1], got {decay}")


# Functions of the module, so that models which hold them can be pickled.
def _exponential(
    decay: float, averages: Sequence[Tensor], weights: Sequence[Tensor], count: int
) -> None:
    _move(averages, weights, 1 - decay)


def _equal(averages: Sequence[Tensor], weights: Sequence[Tensor], count: int) -> None:
    _move(averages, weights, 1 / (count + 1))


def _exponential_of_one(decay: float, average: Tensor, weight: Tensor, count: Any) -> Tensor:
    return decay * average + (1 - decay) * weight


def _equal_of_one(average: Tensor, weight: Tensor, count: Any) -> Tensor:
    moved: Tensor = average + (weight - average) / (count + 1)
    return moved


def get_ema_multi_avg_fn(decay: float = 0.999) -> _Average:
    """average = decay · average + (1 - decay) · weight, for `AveragedModel`.

    Raises TypeError for a decay that is no number and ValueError for one outside [0, 1].
    """
    _check_decay("get_ema_multi_avg_fn", decay)
    return partial(_exponential, decay)


def get_swa_multi_avg_fn() -> _Average:
    """The equal average of all weights so far, for `AveragedModel`."""
    return _equal


def get_ema_avg_fn(decay: float = 0.999) -> _OneAverage:
    """The same of one tensor, as `avg_fn` of `AveragedModel`; errors likewise."""
    _check_decay("get_ema_avg_fn", decay)
    return partial(_exponential_of_one, decay)


def get_swa_avg_fn() -> _OneAverage:
    """The equal average of one tensor's values so far, as `avg_fn` of `AveragedModel`."""
    return _equal_of_one


def _move(averages: Sequence[Tensor], weights: Sequence[Tensor], share: float) -> None:
    """One native pass over all floating tensors; others take the newest value."""
    pairs = list(zip(averages, weights, strict=True))
    floating = [(a, w) for a, w in pairs if a.is_floating_point()]
    if floating:
        tw._core.average_step([a for a, _ in floating], [w for _, w in floating], step=1, lr=share)
    for average, weight in pairs:
        if not average.is_floating_point():
            average.copy_(weight)


class AveragedModel(Module):
    """A copy of `model`, whose weights become averages of those that the model has in time.

    `update_parameters(model)` after each step of the optimiser; the first call copies. Averages are
    equal unless `multi_avg_fn` says otherwise, such as `get_ema_multi_avg_fn(0.999)`, or `avg_fn`,
    avg_fn(average, weight, count) of each tensor; both may be changed later. Tensors are paired by
    name; averages of 16-bit ones go on in float32, and the module's are those rounded. Buffers are
    averaged with `use_buffers`, else they are the model's newest. Source: P. Izmailov et al.,
    "Averaging weights leads to wider optima and better generalization", UAI 2018; B. Polyak and A.
    Juditsky, "Acceleration of stochastic approximation by averaging" (1992).

    Raises TypeError for what is no module or no function, ValueError for both functions at once
    and, on updates, for a model whose parameters or buffers have other names or shapes; the
    averages are then as they were.

    >>> import tilewright as tw
    >>> model = tw.nn.Linear(2, 1)
    >>> averaged = tw.optim.swa_utils.AveragedModel(model)
    >>> averaged.update_parameters(model); averaged.n_averaged.item()
    1
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: str | None = None,
        avg_fn: _OneAverage | None = None,
        multi_avg_fn: _Average | None = None,
        use_buffers: bool = False,
    ) -> None:
        _check_module("AveragedModel", model)
        for name, function in (("avg_fn", avg_fn), ("multi_avg_fn", multi_avg_fn)):
            if function is not None and not callable(function):
                raise TypeError(
                    f"AveragedModel: {name} is a function, got {type(function).__name__}"
                )
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: give avg_fn or multi_avg_fn, not both")
        super().__init__()
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", tw.zeros((), dtype=tw.int64))
        self.avg_fn, self.multi_avg_fn = avg_fn, multi_avg_fn
        self.use_buffers = use_buffers
        self._wide: dict[str, Tensor] = {}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the model's present weights into the averages."""
        _check_module("AveragedModel", model)
        _check_fits(self.module, model)
        averaged, others = _tensors(self.module.named_parameters()), {}
        buffers = _tensors(self.module.named_buffers())
        if self.use_buffers:
            averaged |= buffers
        else:
            others = buffers
        now = _tensors(model.named_parameters()) | _tensors(model.named_buffers())
        count = int(self.n_averaged.item())
        with tw.no_grad():
            if count:
                self._average(averaged, now, count)
            for name, tensor in others.items() if count else (averaged | others).items():
                tensor.copy_(now[name])
            self.n_averaged += 1

    def _average(self, averaged: dict[str, Tensor], now: dict[str, Tensor], count: int) -> None:
        averages = [self._widened(name, tensor) for name, tensor in averaged.items()]
        pairs = zip(averaged, averages, strict=True)
        weights = [now[name].to(own.device).astype(own.dtype) for name, own in pairs]
        if self.avg_fn is not None and self.multi_avg_fn is None:
            _each(self.avg_fn)(averages, weights, count)
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, weights, count)
        for tensor, average in zip(averaged.values(), averages, strict=True):
            if average is not tensor:
                tensor.copy_(average)

    def _widened(self, name: str, tensor: Tensor) -> Tensor:
        """The average to go on with: that of 16 bits in float32, which the module's is rounded
        from, unless that was changed meanwhile. In 8 or 11 bits it would stand still."""
        if tensor.dtype not in _HALVES:
            return tensor
        wide = self._wide.get(name)
        if wide is None or wide.device != tensor.device or not _is_rounded(tensor, wide):
            wide = self._wide[name] = tensor.astype(tw.float32)
        return wide


def _is_rounded(tensor: Tensor, wide: Tensor) -> bool:
    return wide.shape == tensor.shape and bool((wide.astype(tensor.dtype) == tensor).all())


def update_bn(loader: Iterable[Any], model: Module) -> None:
    """Running statistics of the model's batch norms, anew from all batches of a loader.

    Averaged weights have other activations than those of which the statistics are. Of batches that
    are tuples or lists the first part is the model's input. Modes and momenta are afterwards what
    they were. Source: P. Izmailov et al. (2018), section 3.1.

    >>> import tilewright as tw
    >>> model = tw.nn.BatchNorm1d(1)
    >>> tw.optim.swa_utils.update_bn([tw.ones((2, 1)), 3 * tw.ones((2, 1))], model)
    >>> model.running_mean.item()
    2.0
    """
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    norms = [
        (module, module.momentum)
        for module in model.modules()
        if isinstance(module, kinds) and module.track_running_stats
    ]
    if not norms:
        return
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.train()
        for norm, _ in norms:
            norm.reset_running_stats()
            norm.momentum = None  # of all batches alike
        with tw.no_grad():
            for batch in loader:
                model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    finally:
        for norm, momentum in norms:
            norm.momentum = momentum
        for module, training in modes:
            module.training = training


def _check_module(name: str, model: Any) -> None:
    if not isinstance(model, Module):
        raise TypeError(f"{name}: expected a Module, got {type(model).__name__}")


def _check_fits(own: Module, model: Module) -> None:
    def shapes(module: Module) -> dict[str, tuple[int, ...]]:
        tensors = (*module.named_parameters(), *module.named_buffers())
        return {name: x.shape for name, x in tensors}

    a, b = shapes(own), shapes(model)
    for name in (*a, *b):
        if a.get(name) != b.get(name):
            raise ValueError(
                f"AveragedModel: {name} has shape {a.get(name)} here, {b.get(name)} in the model"
            )


def _each(function: _OneAverage) -> _Average:
    def average(averages: Sequence[Tensor], weights: Sequence[Tensor], count: int) -> None:
        for own, weight in zip(averages, weights, strict=True):
            own.copy_(function(own, weight, count))

    return average


def _tensors(named: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    return {name: tensor.detach() for name, tensor in named}


def _for_sums(x: Tensor) -> Tensor:
    return x.astype(tw.float32) if x.dtype in _HALVES else x


class EMA:
    """Exponential averages of a model's parameters, beside it: one native pass an update.

    `update()` after each step of the optimiser; within `with ema.averaged():` the model has the
    averages, and its own weights again behind it. With `warmup` the first updates forget faster:
    the decay is at most (1 + n) / (10 + n) at update n. Averages of 16-bit parameters are kept in
    float32, where they go on below the last place of the parameters. Raises TypeError for what is
    no module and a decay that is no number, ValueError for one outside [0, 1]; `update` raises
    KeyError where the model has lost a parameter.

    >>> import tilewright as tw
    >>> model = tw.nn.Linear(2, 1)
    >>> ema = tw.optim.EMA(model, decay=0.9)
    >>> ema.update()
    >>> with ema.averaged():
    ...     y = model(tw.ones((1, 2)))
    """

    def __init__(self, model: Module, decay: float = 0.999, warmup: bool = False) -> None:
        _check_module("EMA", model)
        _check_decay("EMA", decay)
        self.model = model
        self.decay = decay
        self.warmup = warmup
        self.updates = 0
        self.averages = {
            name: _for_sums(value.detach()).copy() for name, value in model.named_parameters()
        }

    def update(self) -> None:
        """Moves the averages towards the model's present parameters."""
        decay = self.decay
        if self.warmup:
            decay = min(decay, (1 + self.updates) / (10 + self.updates))
        weights = [_for_sums(weight) for weight in self._weights()]
        _move(list(self.averages.values()), weights, 1 - decay)
        self.updates += 1

    @contextmanager
    def averaged(self) -> Iterator[Module]:
        """The model with the averages as its parameters; what they were comes back at the end."""
        own = [weight.copy() for weight in self._weights()]
        self.copy_to(self.model)
        try:
            yield self.model
        finally:
            for weight, before in zip(self._weights(), own, strict=True):
                weight.copy_(before)

    def copy_to(self, model: Module) -> None:
        """Writes the averages into the parameters of a model.

        Raises ValueError where its parameters have other names or shapes; none is then changed.
        """
        targets = {name: value.detach() for name, value in model.named_parameters()}
        if targets.keys() != self.averages.keys():
            differ = sorted(targets.keys() ^ self.averages.keys())
            raise ValueError(f"EMA: copy_to: parameters differ: {', '.join(differ)}")
        for name, average in self.averages.items():
            if targets[name].shape != average.shape:
                raise ValueError(
                    f"EMA: copy_to: {name}: shape {targets[name].shape} does not fit "
                    f"{average.shape}"
                )
        for name, average in self.averages.items():
            targets[name].copy_(average)

    def state_dict(self) -> dict[str, Any]:
        """Averages by name, shared, and the number of updates."""
        return {"averages": dict(self.averages), "updates": self.updates}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes copies of the averages.

        Raises TypeError for what is no dict, ValueError where a part is missing and where names or
        shapes do not fit; nothing is then changed.
        """
        check_state("EMA", state_dict)
        missing = {"averages", "updates"} - state_dict.keys()
        if missing:
            raise ValueError(f"EMA: load_state_dict: missing {sorted(missing)}")
        averages = state_dict["averages"]
        if averages.keys() != self.averages.keys():
            differ = sorted(averages.keys() ^ self.averages.keys())
            raise ValueError(f"EMA: load_state_dict: averages differ: {', '.join(differ)}")
        for name, own in self.averages.items():
            if averages[name].shape != own.shape:
                raise ValueError(
                    f"EMA: load_state_dict: {name}: shape {averages[name].shape} does not fit "
                    f"{own.shape}"
                )
        for name, own in self.averages.items():
            own.copy_(averages[name])
        self.updates = int(state_dict["updates"])

    def _weights(self) -> list[Tensor]:
        by_name = {name: value.detach() for name, value in self.model.named_parameters()}
        return [by_name[name] for name in self.averages]
