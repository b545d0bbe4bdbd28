"""Functions whose gradients Python defines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import tilewright as tw
from tilewright import Tensor, _core
from tilewright._engine.grad_mode import no_grad

_SMOOTH = (tw.float16, tw.bfloat16, tw.float32, tw.float64, tw.complex64, tw.complex128)


class _Seen:
    """What a pass found: a function whose gradients were made outside of the graph."""

    cut: str | None = None


class _Pass(threading.local):
    """What the pass that a thread runs wants of functions' gradients beyond their values."""

    linear = False
    seen: _Seen | None = None
    slices = 0  # how many `vmap` the thread is inside of


_pass = _Pass()


@contextmanager
def watched_pass(linear: bool = False) -> Iterator[_Seen]:
    """A pass that says whose gradients did not depend on those that arrived, if any did not.

    A `linear` one wants gradients as a map of those that arrive, and nothing else: hooks of modules
    are left out, and a function with a `jvp` has that for the gradient of its gradient.
    """
    before = _pass.linear, _pass.seen
    _pass.linear, _pass.seen = linear, _Seen()
    try:
        yield _pass.seen
    finally:
        _pass.linear, _pass.seen = before


def is_linear_pass() -> bool:
    """Whether hooks of modules are left out."""
    return _pass.linear


@contextmanager
def calls_by_slice() -> Iterator[None]:
    """Within `vmap`, which knows nothing of a function's own."""
    _pass.slices += 1
    try:
        yield
    finally:
        _pass.slices -= 1


class Context:
    """What the forward of a `Function` leaves to its backward; takes any further attributes."""

    _last = False  # whether the gradients that backward gave have none themselves

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
        self._to_push: tuple[Tensor | None, ...] = ()
        self._saved: tuple[Tensor | None, ...] | None = None
        self._not_differentiable: tuple[Tensor, ...] = ()
        self._changed: tuple[Tensor, ...] = ()
        self._materializes = True
        # Of each result: shape, dtype and device, or None for one that is no tensor.
        self._results: list[tuple[tuple[int, ...], Any, str] | None] = []
        # The same of the arguments that are tensors, where the function has a jvp.
        self._inputs: list[tuple[tuple[int, ...], Any, str]] = []

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for backward, which raises where one was changed in place meanwhile.

        Kept so, arguments and results close no cycle, and within a checkpoint nothing is kept.
        """
        self._check_saved("save_for_backward", tensors)
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for jvp, which gets what `save_for_backward` keeps without this."""
        self._check_saved("save_for_forward", tensors)
        self._to_push = tensors

    def _check_saved(self, method: str, tensors: tuple[Any, ...]) -> None:
        for x in tensors:
            if not isinstance(x, (Tensor, type(None))):
                raise TypeError(
                    f"{self._function.__name__}: {method} takes tensors or None, got "
                    f"{type(x).__name__}; other values can be attributes of ctx"
                )

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved, while backward or jvp runs."""
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
        backward, forward = self._parts(saved)
        if _pass.linear and self._inputs:
            return self._transposed(forward, grads)
        arrived = iter(grads)
        of_results = [None if r is None else self._arrived(next(arrived), r) for r in self._results]
        self._last = False
        given = self._with_saved(backward, self._function.backward, of_results)
        checked = self._checked(given if isinstance(given, tuple) else (given,))
        if _pass.seen and not self._last and any(g is not None and g.requires_grad for g in grads):
            self._note_cut(_pass.seen, checked)
        return checked

    def _parts(self, saved: list[Any]) -> tuple[list[Any], list[Any]]:
        """What backward and what jvp has saved."""
        of_backward = saved[: len(saved) - len(self._to_push)]
        return of_backward, saved[len(of_backward) :] or of_backward

    def _with_saved(self, saved: list[Any], call: Callable[..., Any], given: list[Any]) -> Any:
        self._saved = tuple(saved)
        try:
            return call(self, *given)
        finally:
            self._saved = None

    def _note_cut(self, seen: _Seen, given: list[Any]) -> None:
        for i, g in zip(self._tensor_args, given, strict=True):
            if g is None or g.requires_grad or not self.needs_input_grad[i]:
                continue
            if _pass.linear or bool((g != 0).any()):  # no change of what is 0 is lost
                seen.cut = self._function.__name__

    def _transposed(self, saved: list[Any], grads: list[Any]) -> list[Any]:
        """Gradients of which only their gradient by what arrived is of use: jvp."""
        places = [i for i, g in enumerate(grads) if g is not None]
        if not places:
            return [None] * len(self._inputs)
        arrived = [grads[i] for i in places]
        return list(_Transposed.apply(self, saved, places, *arrived))

    def _pushed(self, saved: list[Any], tangents: tuple[Any, ...]) -> list[Any]:
        """The tangents of the results that are tensors."""
        by_argument: list[Any] = [None] * self._args
        for i, t, (shape, dtype, device) in zip(
            self._tensor_args, tangents, self._inputs, strict=True
        ):
            missing = t is None and self._materializes and dtype in _SMOOTH
            by_argument[i] = tw.zeros(shape, dtype=dtype, device=device) if missing else t
        made = self._with_saved(saved, self._function.jvp, by_argument)
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != len(self._results):
            raise RuntimeError(
                f"{self._function.__name__}: jvp returned {len(made)} tangents for "
                f"{len(self._results)} results of forward; return None for those without one"
            )
        return [t for t, result in zip(made, self._results, strict=True) if result is not None]

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

    A result that shows memory of an argument is a view of it: a recorded change in place of the
    result is one of the argument too. After one of the argument, the result cannot be used any
    more (RuntimeError), as backward knows nothing of that.

    `jvp(ctx, *tangents)`, where it is defined, gets a tangent for each argument and returns one for
    each result: `tilewright.func.jvp` and `jacfwd` call it, and differentiate backward otherwise.
    `vmap`, where it is defined, is refused inside of `tilewright.func.vmap`, which calls functions
    slice by slice.

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

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise NotImplementedError("Function: define jvp")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        raise NotImplementedError("Function: define vmap()")

    _passes_on = False  # whether each result is an argument, and so is its gradient

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Calls forward, and puts the call into the graph where an argument requires grad."""
        if _pass.slices and cls.vmap is not Function.vmap:
            raise NotImplementedError(
                f"{cls.__name__}: vmap calls functions slice by slice and would not use "
                f"{cls.__name__}.vmap; call that itself, or use a Function without one"
            )
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
    if ctx._function.jvp is not Function.jvp:
        ctx._inputs = [(x.shape, x.dtype, x.device) for x in inputs]
    saved = [*ctx._to_save, *ctx._to_push]
    ctx._to_save, ctx._to_push = (), (None,) * len(ctx._to_push)
    ctx._not_differentiable = ()
    function = ctx._function
    return _core._record_custom(
        ctx, function.__name__, inputs, saved, results, smooth, changed, function._passes_on
    )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a `backward` that is not made of recorded ops.

    It runs unrecorded, on gradients without a graph. Differentiating through its results raises
    RuntimeError, instead of being wrong without a word.
    """

    @wraps(backward)
    def once(ctx: Context, *grads: Any) -> Any:
        with no_grad():
            given = backward(ctx, *(g if g is None else g.detach() for g in grads))
        ctx._last = True
        return given

    return once


class _Transposed(Function):
    """Zeros in the place of a function's gradients, whose own gradient is the function's jvp."""

    @staticmethod
    def forward(
        ctx: Context, of: Context, saved: list[Any], places: list[int], *grads: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.of, ctx.tensors, ctx.places = of, saved, places
        return tuple(
            tw.zeros(shape, dtype=dtype, device=device) for shape, dtype, device in of._inputs
        )

    @staticmethod
    def backward(ctx: Context, *tangents: Any) -> Any:
        pushed = ctx.of._pushed(ctx.tensors, tangents)
        return (None, None, None, *(pushed[i] for i in ctx.places))
