"""Derivatives of functions: products with vectors, Jacobians and Hessians, by PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor, _core
from tilewright.grad_mode import enable_grad

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
        vs = _vectors("vjp", v, ys)
        grads = _grads(ys, xs, vs, create_graph)
    return _formed(_results(ys, create_graph), ys.single), _formed(grads, xs.single)


def jvp(
    func: Function, inputs: Inputs, v: Inputs | None = None, create_graph: bool = False
) -> tuple[Any, Any]:
    """func(*inputs), and its Jacobian times the vector `v`: tensors of its results' shapes.

    `v` has the form of the inputs, and may be left out where that is one number. By two passes
    backwards: the gradient of a product with a vector, with respect to that. Raises ValueError
    where shapes differ.

    >>> import tilewright as tw
    >>> x, v = tw.asarray([1.0, 2.0]), tw.asarray([1.0, 0.0])
    >>> tw.autograd.functional.jvp(lambda x: x * x, x, v)[1].tolist()
    [2.0, 0.0]
    """
    with enable_grad():
        xs, ys = _called("jvp", func, inputs, create_graph)
        vs = _vectors("jvp", v, xs)
        us = [tw.zeros_like(y).requires_grad_() for y in ys]
        through = _grads(ys, xs, us, create_graph=True)
        products = _grads(_List(through), _List(us), vs, create_graph)
    return _formed(_results(ys, create_graph), ys.single), _formed(products, ys.single)


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
        made = [_formed(_rows(y, xs, create_graph), xs.single) for y in ys]
    return _formed(made, ys.single)


def hessian(func: Function, inputs: Inputs, create_graph: bool = False) -> Any:
    """All second derivatives of a function of one number: (input's, input's) for each pair.

    Of several inputs a tuple of tuples. Raises ValueError for results of more than one element.

    >>> import tilewright as tw
    >>> tw.autograd.functional.hessian(lambda x: (x * x * x).sum(), tw.asarray([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """

    def gradient(*xs: Tensor) -> Any:
        y = _one_number("hessian", func(*xs))
        grads = _grads(_List([y]), _List(xs), [None], create_graph=True)
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
        vs = _vectors("vhp", v, xs)
        y = _one_number("vhp", ys[0] if ys.single else tuple(ys))
        slopes = _grads(_List([y]), xs, [None], create_graph=True)
        products = _grads(_List(slopes), xs, vs, create_graph)
    return _formed(_results(ys, create_graph), ys.single), _formed(products, xs.single)


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


class _List(list[Tensor]):
    """Tensors, and whether they came as one alone."""

    single = False


def _listed(who: str, what: str, given: Any) -> _List:
    tensors = _List([given] if isinstance(given, Tensor) else given)
    tensors.single = isinstance(given, Tensor)
    for x in tensors:
        if not isinstance(x, Tensor):
            raise TypeError(f"{who}: {what} must be tensors, got {type(x).__name__}")
    return tensors


def _called(who: str, func: Function, inputs: Inputs, create_graph: bool) -> tuple[_List, _List]:
    """Inputs of which the function's results are recorded, and these."""
    if not isinstance(inputs, (Tensor, tuple, list)):
        raise TypeError(f"{who}: inputs must be tensors, got {type(inputs).__name__}")
    xs = _listed(who, "inputs", inputs)
    # Views keep the graph of what they are made from; detached copies end it.
    made = [x.view_as(x) if create_graph else x.detach() for x in xs]
    xs[:] = [x if x.requires_grad else x.requires_grad_() for x in made]
    results = func(*xs)
    if not isinstance(results, (Tensor, tuple, list)):
        raise TypeError(f"{who}: func must give tensors, got {type(results).__name__}")
    return xs, _listed(who, "what func gives", results)


def _vectors(who: str, v: Inputs | None, like: _List) -> list[Tensor]:
    if v is None:
        if len(like) != 1 or like[0].size != 1:
            raise ValueError(f"{who}: v may be left out only where it is one number")
        return [tw.ones_like(like[0])]
    vs = _listed(who, "v", v)
    shapes = [x.shape for x in like]
    if [x.shape for x in vs] != shapes:
        raise ValueError(f"{who}: v has shapes {[x.shape for x in vs]}, which must be {shapes}")
    return vs


def _grads(
    ys: Sequence[Tensor], xs: Sequence[Tensor], vs: Sequence[Tensor | None], create_graph: bool
) -> list[Tensor]:
    """Gradients, of zeros where nothing depends on an input."""
    recorded = [(y, v) for y, v in zip(ys, vs, strict=True) if y.requires_grad]
    if not recorded:
        return [tw.zeros_like(x) for x in xs]
    roots, seeds = zip(*recorded, strict=True)
    grads = _core.grad(roots, list(xs), seeds, True, create_graph, allow_unused=True)
    return [tw.zeros_like(x) if g is None else g for x, g in zip(xs, grads, strict=True)]


def _rows(y: Tensor, xs: _List, create_graph: bool) -> list[Tensor]:
    """The derivatives of one result by each input."""
    flat = y.reshape((-1,))
    rows = [_grads([flat[i]], xs, [None], create_graph) for i in range(flat.shape[0])]
    if not rows:
        return [tw.zeros((*y.shape, *x.shape), dtype=y.dtype, device=y.device) for x in xs]
    return [
        tw.stack(of_x).reshape((*y.shape, *x.shape))
        for x, of_x in zip(xs, zip(*rows, strict=True), strict=True)
    ]


def _one_number(who: str, y: Any) -> Tensor:
    if not isinstance(y, Tensor) or y.size != 1:
        got = f"shape {y.shape}" if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(f"{who}: func must give one number, got {got}")
    return y


def _results(ys: _List, create_graph: bool) -> list[Tensor]:
    return list(ys) if create_graph else [y.detach() for y in ys]


def _formed(tensors: Sequence[Any], single: bool) -> Any:
    return tensors[0] if single else tuple(tensors)
