"""Checking gradients against differences: `gradcheck` and `gradgradcheck`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tilewright import _core
from tilewright._core import StateError, Tensor
from tilewright._engine.grad_mode import no_grad

_Function = Callable[..., Any]
_Index = tuple[int, ...]


class GradcheckError(StateError):
    """A gradient differs from what differences of the function say."""


class _Settings(NamedTuple):
    eps: float
    atol: float
    rtol: float

    def close(self, analytical: Any, numerical: Any) -> Any:
        """Of numbers or tensors; False for NaN on either side."""
        return abs(analytical - numerical) <= self.atol + self.rtol * abs(numerical)


def gradcheck(
    fn: _Function,
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    fast: bool = False,
) -> bool:
    """Whether the gradients of `fn(*inputs)` agree with central differences, for every element.

    Compares d output[i] / d input[j] of every floating-point output and every input that requires
    grad: |analytical - numerical| <= atol + rtol * |numerical|. `fast` compares one random
    projection instead, at the cost of two calls of `fn` an input. Inputs must be float64 or
    complex128, since differences lose half the digits; their elements are changed and restored in
    place. Complex numbers are taken as pairs of their parts.

    Raises TypeError for inputs of other types, ValueError where no input requires grad or an
    input's elements share memory, and GradcheckError (a RuntimeError) that names the first
    element in disagreement, unless `raise_exception` is False.

    Source: central differences as in Nocedal and Wright, Numerical Optimization (2006), section
    8.1; the projection as in HIPS autograd's test_util.

    Shapes: inputs and outputs of any shapes.
    Types: float64, complex128. Result: a bool of Python.

    >>> import tilewright as tw
    >>> x = tw.asarray([0.5, 2.0], dtype=tw.float64).requires_grad_()
    >>> tw.gradcheck(tw.log, x)
    True
    """
    arguments = _as_tuple(inputs)
    _check_inputs(arguments)
    fn, arguments = _in_parts(fn, arguments)
    settings = _Settings(eps, atol, rtol)
    try:
        if not fast or not _projection_agrees(fn, arguments, settings):
            _compare_all(fn, arguments, settings)
            if fast:
                raise GradcheckError(
                    "gradcheck: a random projection of the gradients differs from differences, "
                    "though every single element is within the tolerance"
                )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    fn: _Function,
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    fast: bool = False,
) -> bool:
    """Whether second gradients of `fn(*inputs)` agree with differences of its first gradients.

    The first gradients are checked as functions of the inputs and of the gradients that come in,
    which are random by default. Arguments and errors are those of `gradcheck`.

    Shapes: inputs and outputs of any shapes.
    Types: float64, complex128. Result: a bool of Python.
    Raises TypeError, ValueError and GradcheckError as `gradcheck`.
    Source: PyTorch's torch.autograd.gradgradcheck.

    >>> import tilewright as tw
    >>> x = tw.asarray([0.5, 2.0], dtype=tw.float64).requires_grad_()
    >>> tw.gradgradcheck(tw.sin, x)
    True
    """
    arguments = _as_tuple(inputs)
    _check_inputs(arguments)
    fn, arguments = _in_parts(fn, arguments)
    outputs = _outputs(fn, arguments)
    given = () if grad_outputs is None else _as_tuple(grad_outputs)
    seeds = _random_like(outputs) if grad_outputs is None else tuple(map(_parts, given))
    seeds = tuple(seed.detach().copy().requires_grad_() for seed in seeds)
    count = len(arguments)

    def first_gradients(*values: Any) -> tuple[Tensor, ...]:
        graded = [x for x in values[:count] if _is_checked(x)]
        recorded = [
            (y, g)
            for y, g in zip(_outputs(fn, values[:count]), values[count:], strict=True)
            if y.requires_grad
        ]
        if not recorded:
            return ()
        ys, gs = zip(*recorded, strict=True)
        grads = _core.grad(ys, graded, gs, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        first_gradients, (*arguments, *seeds), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, fast=fast,
    )  # fmt: skip


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _is_checked(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    if not any(_is_checked(x) for x in inputs):
        raise ValueError("gradcheck: no input is a tensor that requires grad")
    for i, x in enumerate(inputs):
        if not _is_checked(x):
            continue
        if x.dtype not in (_core.float64, _core.complex128):
            wide = _core.complex128 if x.dtype == _core.complex64 else _core.float64
            raise TypeError(
                f"gradcheck: input {i} is {x.dtype}; differences need {wide}, "
                f"use astype({wide}).detach().requires_grad_()"
            )
        if any(step == 0 and extent > 1 for step, extent in zip(x.strides, x.shape, strict=True)):
            raise ValueError(f"gradcheck: elements of input {i} share memory; use copy()")


def _in_parts(fn: _Function, inputs: tuple[Any, ...]) -> tuple[_Function, tuple[Any, ...]]:
    """The same function of real numbers: complex ones are pairs along a last axis."""
    whole = [isinstance(x, Tensor) and x.dtype == _core.complex128 for x in inputs]
    parts = tuple(
        _parts(x.detach()).copy().requires_grad_(x.requires_grad) if is_complex else x
        for x, is_complex in zip(inputs, whole, strict=True)
    )

    def of_parts(*values: Any) -> tuple[Any, ...]:
        joined = (
            _core.view_as_complex(x) if is_complex else x
            for x, is_complex in zip(values, whole, strict=True)
        )
        return tuple(map(_parts, _as_tuple(fn(*joined))))

    return of_parts, parts


def _parts(y: Any) -> Any:
    is_complex = isinstance(y, Tensor) and y.dtype in (_core.complex64, _core.complex128)
    return _core.view_as_real(y) if is_complex else y


def _outputs(fn: _Function, inputs: Sequence[Any]) -> tuple[Tensor, ...]:
    """The floating-point outputs; others have no gradient."""
    outputs = _as_tuple(fn(*inputs))
    for i, y in enumerate(outputs):
        if not isinstance(y, Tensor):
            raise TypeError(f"gradcheck: output {i} is a {type(y).__name__}, not a tensor")
        if y.dtype.name in ("float16", "bfloat16", "float32"):
            raise TypeError(f"gradcheck: output {i} is {y.dtype}; differences need float64")
    return tuple(y for y in outputs if y.dtype == _core.float64)


def _values(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Copies, so that a later change of an input cannot reach an output that is a view of it."""
    return [y.detach().copy() for y in outputs]


def _indices(shape: tuple[int, ...]) -> itertools.product[_Index]:
    return itertools.product(*map(range, shape))


def _compare_all(fn: _Function, inputs: tuple[Any, ...], settings: _Settings) -> None:
    outputs = _outputs(fn, inputs)
    checked = [i for i, x in enumerate(inputs) if _is_checked(x)]
    jacobians = [_jacobian(y, [inputs[i] for i in checked]) for y in outputs]
    for column, i in enumerate(checked):
        places = list(_indices(inputs[i].shape))
        differences = [_difference(fn, inputs, i, at, settings.eps) for at in places]
        wrong = []
        for k, y in enumerate(outputs if places else ()):
            analytical = jacobians[k][column].T
            numerical = _core.stack([each[k].reshape(-1) for each in differences])
            close = settings.close(analytical, numerical)
            if not close.all().item():
                row, element = divmod(close.reshape(-1).tolist().index(False), y.size)
                pair = (x[row, element].item() for x in (analytical, numerical))
                wrong.append((row, k, element, *pair))
        if wrong:
            row, k, element, value, difference = min(wrong, key=lambda each: each[:3])
            out_at = list(_indices(outputs[k].shape))[element]
            raise GradcheckError(
                f"gradcheck: d output {k}{list(out_at)} / d input {i}{list(places[row])}: "
                f"analytical {value:.9g}, numerical {difference:.9g} "
                f"(difference {abs(value - difference):.3g}, "
                f"atol {settings.atol:g}, rtol {settings.rtol:g})"
            )


def _jacobian(y: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    """For each input: gradients of y's elements, a row each; where there is none, it is 0."""
    rows = [_core.zeros((y.size, x.size), dtype=y.dtype) for x in inputs]
    if not y.requires_grad:
        return rows
    for i, at in enumerate(_indices(y.shape)):
        seed = _core.zeros(y.shape, dtype=y.dtype)
        seed[at] = 1.0
        grads = _core.grad(y, inputs, seed, retain_graph=True, allow_unused=True)
        for row, x, g in zip(rows, inputs, grads, strict=True):
            if g is not None:
                _check_gradient(g, x)
                row[i] = g.detach().reshape(-1)
    return rows


def _check_gradient(g: Tensor, x: Tensor) -> None:
    if g.shape != x.shape or g.dtype != x.dtype:
        raise GradcheckError(
            f"gradcheck: gradient is {g.dtype} {g.shape} for an input of {x.dtype} {x.shape}"
        )


def _difference(
    fn: _Function, inputs: tuple[Any, ...], i: int, at: _Index, eps: float
) -> list[Tensor]:
    """(fn(x + eps) - fn(x - eps)) / (2 eps) for one element of input i."""
    memory = inputs[i].detach()
    before = memory[at].item()
    try:
        memory[at] = before + eps
        above = _values(_outputs(fn, inputs))
        memory[at] = before - eps
        below = _values(_outputs(fn, inputs))
    finally:
        memory[at] = before
    return [(p - q) / (2 * eps) for p, q in zip(above, below, strict=True)]


def _random_like(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Unit length in sum, so that a projection is of the size of one gradient."""
    stream = _core.Generator(0)
    raw = [_core.normal(0.0, 1.0, x.shape, dtype=x.dtype, generator=stream) for x in tensors]
    length = math.sqrt(sum((x * x).sum().item() for x in raw)) or 1.0
    return tuple(x / length for x in raw)


def _dot(xs: Sequence[Tensor], ys: Sequence[Tensor]) -> float:
    return float(sum((x * y).sum().item() for x, y in zip(xs, ys, strict=True)))


def _projection_agrees(fn: _Function, inputs: tuple[Any, ...], settings: _Settings) -> bool:
    """Compares v' J u for random v and, for one input after the other, random u."""
    outputs = _outputs(fn, inputs)
    v = _random_like(outputs)
    recorded = [(y, g) for y, g in zip(outputs, v, strict=True) if y.requires_grad]
    checked = [i for i, x in enumerate(inputs) if _is_checked(x)]
    grads: Sequence[Tensor | None] = [None] * len(checked)
    if recorded:
        ys, seeds = zip(*recorded, strict=True)
        grads = _core.grad(ys, [inputs[i] for i in checked], seeds, allow_unused=True)
    for i, g in zip(checked, grads, strict=True):
        (u,) = _random_like([inputs[i]])
        if g is not None:
            _check_gradient(g, inputs[i])
        analytical = 0.0 if g is None else _dot([g.detach()], [u])
        if not settings.close(analytical, _projected_difference(fn, inputs, i, u, v, settings.eps)):
            return False
    return True


def _projected_difference(
    fn: _Function, inputs: tuple[Any, ...], i: int, u: Tensor, v: Sequence[Tensor], eps: float
) -> float:
    memory = inputs[i].detach()
    before = memory.copy()
    try:
        memory.copy_(before + eps * u)
        above = _values(_outputs(fn, inputs))
        memory.copy_(before - eps * u)
        below = _values(_outputs(fn, inputs))
    finally:
        memory.copy_(before)
    with no_grad():
        return (_dot(v, above) - _dot(v, below)) / (2 * eps)
