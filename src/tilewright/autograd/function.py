"""Functions whose gradients Python defines."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import tilewright as tw
from tilewright import Tensor, _core
from tilewright.grad_mode import no_grad

_SMOOTH = (tw.float16, tw.bfloat16, tw.float32, tw.float64, tw.complex64, tw.complex128)


class Context:
    """What the forward of a `Function` leaves to its backward; takes any further attributes."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self, function: type[Function], args: tuple[Any, ...]) -> None:
        self._recording = _core.is_grad_enabled()
        self.needs_input_grad = tuple(isinstance(x, Tensor) and x.requires_grad for x in args)
        self._function = function
        self._args = len(args)
        self._tensors = [x for x in args if isinstance(x, Tensor)]  # until forward has run
        self._tensor_args = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        self._to_save: tuple[Tensor | None, ...] = ()
        self._saved: tuple[Tensor | None, ...] | None = None
        self._not_differentiable: tuple[Tensor, ...] = ()
        self._changed: tuple[Tensor, ...] = ()
        self._materializes = True
        # Of each result: shape, dtype and device, or None for one that is no tensor.
        self._results: list[tuple[tuple[int, ...], Any, str] | None] = []

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for backward, which raises where one was changed in place meanwhile.

        Kept so, arguments and results close no cycle, and within a checkpoint nothing is kept.
        """
        for x in tensors:
            if not isinstance(x, (Tensor, type(None))):
                raise TypeError(
                    f"{self._function.__name__}: save_for_backward takes tensors or None, got "
                    f"{type(x).__name__}; other values can be attributes of ctx"
                )
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved, while backward runs."""
        if self._saved is None:
            raise RuntimeError(
                f"{self._function.__name__}: saved_tensors can be read while its backward runs"
            )
        return self._saved

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says which results have no gradient; those of whole numbers never have.

        Raises TypeError for what is no tensor.
        """
        self._check_tensors("mark_non_differentiable", tensors)
        self._not_differentiable = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says which arguments forward changes in place; it returns them.

        They take the call's place in the graph, as after any op in place. Best called before the
        change: raises TypeError for what is no tensor, ValueError for what is no argument, and
        RuntimeError for leaves that require grad while recording is on. `apply` raises RuntimeError
        where forward does not return them, and what ops in place raise for their views.
        """
        self._check_tensors("mark_dirty", tensors)
        name = self._function.__name__
        for x in tensors:
            if not any(x is own for own in self._tensors):
                raise ValueError(f"{name}: mark_dirty takes arguments of forward alone")
            if self._recording and x.requires_grad and x.is_leaf:
                raise RuntimeError(
                    f"{name}: mark_dirty: a leaf that requires grad cannot be changed in place; "
                    "do it under no_grad() or on a copy()"
                )
        self._changed = tensors

    def _check_tensors(self, method: str, tensors: tuple[Any, ...]) -> None:
        for x in tensors:
            if not isinstance(x, Tensor):
                raise TypeError(
                    f"{self._function.__name__}: {method} takes tensors, got {type(x).__name__}"
                )

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default), or None, where nothing depends on a result.

        Raises TypeError for what is neither True nor False.
        """
        if not isinstance(value, bool):
            raise TypeError(
                f"{self._function.__name__}: set_materialize_grads takes True or False, got "
                f"{value!r}"
            )
        self._materializes = value

    def _gradients(self, saved: list[Any], grads: list[Any]) -> list[Any]:
        """Called by the engine: the gradients of the arguments that are tensors."""
        arrived = iter(grads)
        of_results = [None if r is None else self._arrived(next(arrived), r) for r in self._results]
        self._saved = tuple(saved)
        try:
            given = self._function.backward(self, *of_results)
        finally:
            self._saved = None
        return self._checked(given if isinstance(given, tuple) else (given,))

    def _arrived(self, g: Tensor | None, result: tuple[tuple[int, ...], Any, str]) -> Tensor | None:
        if g is not None or not self._materializes:
            return g
        shape, dtype, device = result
        return tw.zeros(shape, dtype=dtype if dtype in _SMOOTH else tw.float32, device=device)

    def _checked(self, given: tuple[Any, ...]) -> list[Any]:
        name = self._function.__name__
        if len(given) < self._args or any(g is not None for g in given[self._args :]):
            raise RuntimeError(
                f"{name}: backward returned {len(given)} gradients for {self._args} arguments of "
                "forward; return None for those without one"
            )
        for i, g in enumerate(given[: self._args]):
            if g is not None and not isinstance(g, Tensor):
                raise TypeError(f"{name}: backward returned a {type(g).__name__} as gradient {i}")
            if g is not None and i not in self._tensor_args:
                raise RuntimeError(
                    f"{name}: backward returned a gradient for argument {i}, which is no tensor; "
                    "return None"
                )
        return [given[i] for i in self._tensor_args]


class Function:
    """Base class of ops with a backward of their own; use them as `MyFunction.apply(*args)`.

    `forward(ctx, *args)` computes, unrecorded, from tensors and anything else, and returns a tensor
    or a tuple; `backward(ctx, *grads)` gets the gradient of each result and returns one for each
    argument, None for those that have none. Where forward takes no `ctx`, `setup_context(ctx,
    inputs, output)` says what is kept. Made of ops of tensors, backward can be differentiated
    again.

    >>> import tilewright as tw
    >>> class Cube(tw.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3.0 * g * x * x
    >>> x = tw.asarray([2.0]); x.requires_grad = True
    >>> Cube.apply(x).sum().backward(); x.grad.tolist()
    [12.0]
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Function: define forward()")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        raise NotImplementedError("Function: define setup_context")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError("Function: define backward()")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Calls forward, and puts the call into the graph where an argument requires grad."""
        ctx = Context(cls, args)
        with no_grad():
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
        outputs = output if isinstance(output, tuple) else (output,)
        recorded = iter(_recorded(ctx, args, outputs))
        outputs = tuple(next(recorded) if isinstance(y, Tensor) else y for y in outputs)
        return outputs if isinstance(output, tuple) else outputs[0]


def _recorded(ctx: Context, args: tuple[Any, ...], outputs: tuple[Any, ...]) -> list[Tensor]:
    """The results with their place in the graph."""
    results = [y for y in outputs if isinstance(y, Tensor)]
    changed = [any(y is x for x in ctx._changed) for y in results]
    if sum(changed) != len(ctx._changed):
        raise RuntimeError(
            f"{ctx._function.__name__}: forward returned {sum(changed)} of the {len(ctx._changed)} "
            "arguments that mark_dirty names; return each of them once"
        )
    ctx._tensors, ctx._changed = [], ()
    apart = {id(y) for y in ctx._not_differentiable}
    smooth = [y.dtype in _SMOOTH and id(y) not in apart for y in results]
    if not (_core.is_grad_enabled() and any(ctx.needs_input_grad) and any(smooth)):
        return [
            y.detach() if y.requires_grad and not same else y
            for y, same in zip(results, changed, strict=True)
        ]
    ctx._results = [
        (y.shape, y.dtype, y.device) if isinstance(y, Tensor) else None for y in outputs
    ]
    inputs = [args[i] for i in ctx._tensor_args]
    saved, ctx._to_save = ctx._to_save, ()
    ctx._not_differentiable = ()
    name = ctx._function.__name__
    return _core._record_custom(ctx, name, inputs, list(saved), results, smooth, changed)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a `backward` that is not made of recorded ops.

    It runs unrecorded, on gradients without a graph. Differentiating through its results raises
    RuntimeError, instead of being wrong without a word.
    """

    @wraps(backward)
    def once(ctx: Context, *grads: Any) -> Any:
        with no_grad():
            given = backward(ctx, *(g if g is None else g.detach() for g in grads))
        if not _core.is_grad_enabled():
            return given
        anchor = tw.zeros((), requires_grad=True)
        results = given if isinstance(given, tuple) else (given,)
        tensors = [g for g in results if isinstance(g, Tensor)]
        refusing = iter(_Once.apply(ctx._function.__name__, anchor, *tensors))
        return tuple(next(refusing) if isinstance(g, Tensor) else g for g in results)

    return once


class _Once(Function):
    """Gradients that have no gradient."""

    @staticmethod
    def forward(ctx: Context, name: str, anchor: Tensor, *grads: Tensor) -> tuple[Tensor, ...]:
        ctx.name = name
        return grads

    @staticmethod
    def backward(ctx: Context, *grads: Any) -> Any:
        raise RuntimeError(
            f"{ctx.name}: its backward is marked once_differentiable, so that its gradients have "
            "none"
        )
