"""L-BFGS, in Python over all parameters as one vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.utils import parameters_to_vector, vector_to_parameters
from tilewright.optim.line_search import Point, strong_wolfe
from tilewright.optim.optimizer import Optimizer
from tilewright.optim.settings import Group, check_not_negative

# Curvature below this would make the inverse Hessian's estimate explode.
_LEAST_CURVATURE = 1e-10


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last `history_size` changes of parameters and gradients.

    `step` needs a closure that drops the gradients, computes the loss, calls backward and returns
    the loss; it is called up to `max_eval` times (by default 1.25 · `max_iter`) a step.
    `line_search_fn` is None, for steps of `lr`, or "strong_wolfe". Takes one group of parameters of
    one dtype. Source: J. Nocedal and S. Wright, "Numerical optimization" (2006), chapters 3 and 7.

    Shapes: parameters of any shapes.
    Types: floating; states of float32 for 16-bit parameters. Result: the same type.
    Raises ValueError for settings out of range and for no parameters, TypeError for parameters that
    are no tensors of a floating type.

    >>> import tilewright as tw
    >>> x = tw.asarray([3.0], dtype=tw.float64); x.requires_grad = True
    >>> optimizer = tw.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def loss():
    ...     optimizer.zero_grad()
    ...     value = ((x - 1.0) ** 2).sum()
    ...     value.backward()
    ...     return value
    >>> _ = optimizer.step(loss); round(x.item(), 6)
    1.0
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        if self.param_groups:
            raise ValueError("LBFGS: takes one group of parameters")
        super().add_param_group(group)

    def check_group(self, group: Group) -> None:
        names = ("lr", "max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size")
        check_not_negative("LBFGS", group, *names)
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ValueError(
                f"LBFGS: line_search_fn is None or 'strong_wolfe', got {group['line_search_fn']!r}"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to `max_iter` iterations; returns the loss of the first evaluation."""
        tw._core._refuse_in_capture("an optimizer decides in Python")
        if closure is None:
            raise TypeError("LBFGS: step needs a closure that computes the loss and its gradients")
        group = self.param_groups[0]
        # As in PyTorch, what is known of all parameters is kept with the first.
        memory = self.state.setdefault(group["params"][0], {})
        return _Run(group, group["params"], memory, closure).run()


class _Run:
    """One step: the state as it goes along."""

    def __init__(
        self,
        group: Group,
        params: list[Tensor],
        memory: dict[str, Any],
        closure: Callable[[], Any],
    ) -> None:
        self.group = group
        self.params = params
        self.memory = memory
        self.closure = closure
        self.evaluations = 0
        memory.setdefault("func_evals", 0)
        memory.setdefault("n_iter", 0)

    def run(self) -> Any:
        first, point = self._evaluate()
        tolerance = self.group["tolerance_grad"]
        if _largest(point.gradient) <= tolerance:
            return first
        for iteration in range(1, self.group["max_iter"] + 1):
            direction = self._direction(point)
            slope = _dot(point.gradient, direction)
            self.memory["prev_flat_grad"], self.memory["prev_loss"] = point.gradient, point.loss
            lr = self.group["lr"]
            length = lr
            if self.memory["n_iter"] == 1:
                length = min(1.0, 1.0 / tw.sum(tw.abs(point.gradient)).item()) * lr
            self.memory["t"] = length
            if slope > -self.group["tolerance_change"]:
                break
            before = point
            last = iteration == self.group["max_iter"]
            length, point = self._move(direction, length, slope, point, evaluate=not last)
            self.memory["t"] = length
            if last or self.evaluations >= self.group["max_eval"]:
                break
            change = abs(point.loss - before.loss)
            moved = _largest(direction * length)
            least = self.group["tolerance_change"]
            if _largest(point.gradient) <= tolerance or moved <= least or change < least:
                break
        return first

    def _move(
        self, direction: Tensor, length: float, slope: float, point: Point, evaluate: bool
    ) -> tuple[float, Point]:
        """Changes the parameters; the length of the step, and what is known where it ends."""
        start = self._vector()
        if self.group["line_search_fn"] is not None:

            def probe(t: float) -> Point:
                self._place(start + direction * t)
                return self._evaluate()[1]

            length, point = strong_wolfe(
                probe, direction, length, point, slope, self.group["tolerance_change"]
            )
            self._place(start + direction * length)
            return length, point
        self._place(start + direction * length)
        # The last evaluation of all would serve for nothing.
        return length, self._evaluate()[1] if evaluate else point

    def _direction(self, point: Point) -> Tensor:
        memory = self.memory
        memory["n_iter"] += 1
        if memory["n_iter"] == 1:
            memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            memory["d"] = -point.gradient
        else:
            self._remember(point)
            memory["d"] = _two_loops(memory, point.gradient)
        return memory["d"]  # type: ignore[no-any-return]  # a tensor

    def _remember(self, point: Point) -> None:
        memory = self.memory
        y = point.gradient - memory["prev_flat_grad"]
        s = memory["d"] * memory["t"]
        curvature = _dot(y, s)
        if curvature <= _LEAST_CURVATURE:
            return
        if len(memory["old_dirs"]) == self.group["history_size"]:
            for name in ("old_dirs", "old_stps", "ro"):
                memory[name].pop(0)
        memory["old_dirs"].append(y)
        memory["old_stps"].append(s)
        memory["ro"].append(1.0 / curvature)
        memory["H_diag"] = curvature / _dot(y, y)

    def _evaluate(self) -> tuple[Any, Point]:
        with tw.enable_grad():
            loss = self.closure()
        self.evaluations += 1
        self.memory["func_evals"] += 1
        return loss, Point(float(loss), self._gradient())

    def _gradient(self) -> Tensor:
        grads = [tw.zeros_like(p) if p.grad is None else p.grad for p in self.params]
        with tw.no_grad():
            return tw.concat([grad.reshape((-1,)) for grad in grads])

    def _vector(self) -> Tensor:
        with tw.no_grad():
            return parameters_to_vector(self.params)

    def _place(self, vector: Tensor) -> None:
        vector_to_parameters(vector, self.params)


def _two_loops(memory: Mapping[str, Any], gradient: Tensor) -> Tensor:
    """The inverse Hessian's estimate times -gradient."""
    history = list(zip(memory["old_dirs"], memory["old_stps"], memory["ro"], strict=True))
    q = -gradient
    weights = []
    for y, s, ro in reversed(history):
        weights.append(_dot(s, q) * float(ro))
        q = q - y * weights[-1]
    d = q * float(memory["H_diag"])
    for (y, s, ro), weight in zip(history, reversed(weights), strict=True):
        d = d + s * (weight - _dot(y, d) * float(ro))
    return d


def _dot(a: Tensor, b: Tensor) -> float:
    return tw.sum(a * b).item()  # type: ignore[no-any-return]  # of a floating tensor


def _largest(x: Tensor) -> float:
    return tw.max(tw.abs(x)).item() if x.size else 0.0
