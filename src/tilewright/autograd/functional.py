"""Derivatives of functions: products with vectors, Jacobians and Hessians, by PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import Tensor
from tilewright._engine.grad_mode import enable_grad
from tilewright.autograd.derivatives import (
    Tangents,
    TensorList,
    formed,
    gradients,
    listed,
    one_number,
    rows,
    slopes,
    vectors,
)

Inputs = Tensor | Sequence[Tensor]
Function = Callable[..., Any]


def vjp(
    func: Function, inputs: Inputs, v: Inputs | None = None, create_graph: bool = False
) -> tuple[Any, Any]:
    """func(*inputs), and the vector `v` times its Jacobian: tensors of the inputs' shapes.

    `v` has the form of what func gives, and may be left out where that is one number. Raises
    ValueError where shapes differ.

    >>> import tilewright as tw
    >>> tw.autograd.functional.vjp(lambda x: (x * x).sum(), tw.asarray([1.0, 2.0]))[1].tolist()
    [2.0, 4.0]
    """
    with enable_grad():
        xs, ys = _called("vjp", func, inputs, create_graph)
        vs = vectors("vjp", v, ys)
        grads = gradients(ys, xs, vs, create_graph)
    return formed(_results(ys, create_graph), ys.single), formed(grads, xs.single)


def jvp(
    func: Function, inputs: Inputs, v: Inputs | None = None, create_graph: bool = False
) -> tuple[Any, Any]:
    """func(*inputs), and its Jacobian times the vector `v`: tensors of its results' shapes.

    `v` has the form of the inputs, and may be left out where that is one number. Hooks of gradients
    have no part in it. Raises ValueError where shapes differ, RuntimeError where func goes through
    a `Function` whose backward is marked `once_differentiable`.

    >>> import tilewright as tw
    >>> x, v = tw.asarray([1.0, 2.0]), tw.asarray([1.0, 0.0])
    >>> tw.autograd.functional.jvp(lambda x: x * x, x, v)[1].tolist()
    [2.0, 0.0]
    """
    with enable_grad():
        xs, ys = _called("jvp", func, inputs, create_graph)
        products = Tangents(ys, xs)(vectors("jvp", v, xs), create_graph)
    return formed(_results(ys, create_graph), ys.single), formed(products, ys.single)


def jacobian(func: Function, inputs: Inputs, create_graph: bool = False) -> Any:
    """All derivatives of func's results: a tensor of shape (result's, input's) for each pair.

    Of several results a tuple, of several inputs a tuple each. One pass backwards for each element
    of the results.

    >>> import tilewright as tw
    >>> tw.autograd.functional.jacobian(lambda x: x * x, tw.asarray([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    with enable_grad():
        xs, ys = _called("jacobian", func, inputs, create_graph)
        made = [formed(rows(y, xs, create_graph), xs.single) for y in ys]
    return formed(made, ys.single)


def hessian(func: Function, inputs: Inputs, create_graph: bool = False) -> Any:
    """All second derivatives of a function of one number: (input's, input's) for each pair.

    Of several inputs a tuple of tuples. Raises ValueError for results of more than one element,
    RuntimeError where func goes through a `Function` whose backward is not made of recorded ops.

    >>> import tilewright as tw
    >>> tw.autograd.functional.hessian(lambda x: (x * x * x).sum(), tw.asarray([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """

    def gradient(*xs: Tensor) -> Any:
        grads = slopes("hessian", one_number("hessian", func(*xs)), xs, [])
        return grads[0] if isinstance(inputs, Tensor) else tuple(grads)

    return jacobian(gradient, inputs, create_graph)


def vhp(
    func: Function, inputs: Inputs, v: Inputs | None = None, create_graph: bool = False
) -> tuple[Any, Any]:
    """func(*inputs), one number, and the vector `v` times its Hessian, without making that.

    `v` and the product have the form of the inputs. Raises ValueError for results of more than one
    element and where shapes differ.

    >>> import tilewright as tw
    >>> x, v = tw.asarray([1.0, 2.0]), tw.asarray([1.0, 1.0])
    >>> tw.autograd.functional.vhp(lambda x: (x * x * x).sum(), x, v)[1].tolist()
    [6.0, 12.0]
    """
    with enable_grad():
        xs, ys = _called("vhp", func, inputs, create_graph)
        vs = vectors("vhp", v, xs)
        y = one_number("vhp", ys[0] if ys.single else tuple(ys))
        products = gradients(slopes("vhp", y, xs, []), xs, vs, create_graph)
    return formed(_results(ys, create_graph), ys.single), formed(products, xs.single)


def hvp(
    func: Function, inputs: Inputs, v: Inputs | None = None, create_graph: bool = False
) -> tuple[Any, Any]:
    """`vhp`: a Hessian is symmetric, so its product with a vector is the vector's with it.

    >>> import tilewright as tw
    >>> x, v = tw.asarray([1.0, 2.0]), tw.asarray([1.0, 1.0])
    >>> tw.autograd.functional.hvp(lambda x: (x * x * x).sum(), x, v)[1].tolist()
    [6.0, 12.0]
    """
    return vhp(func, inputs, v, create_graph)


def _called(
    who: str, func: Function, inputs: Inputs, create_graph: bool
) -> tuple[TensorList, TensorList]:
    """Inputs of which the function's results are recorded, and these."""
    if not isinstance(inputs, (Tensor, tuple, list)):
        raise TypeError(f"{who}: inputs must be tensors, got {type(inputs).__name__}")
    xs = listed(who, "inputs", inputs)
    # Views keep the graph of what they are made from; detached copies end it.
    made = [x.view_as(x) if create_graph else x.detach() for x in xs]
    xs[:] = [x if x.requires_grad else x.requires_grad_() for x in made]
    results = func(*xs)
    if not isinstance(results, (Tensor, tuple, list)):
        raise TypeError(f"{who}: func must give tensors, got {type(results).__name__}")
    return xs, listed(who, "what func gives", results)


def _results(ys: TensorList, create_graph: bool) -> list[Tensor]:
    return list(ys) if create_graph else [y.detach() for y in ys]
