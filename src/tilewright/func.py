"""Functions of functions, and calls of modules with other parameters, by PyTorch's names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import tilewright as tw
from tilewright import Tensor
from tilewright.grad_mode import enable_grad

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tilewright.nn import Module


class _Depth(threading.local):
    """How many of these functions a thread is inside of; a new thread in none."""

    value = 0


_depth = _Depth()


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with other tensors in the place of parameters and buffers.

    Tensors are given by dotted name, in one dict or several; the module is afterwards what it was.
    With `tie_weights` a tensor takes the place of a shared parameter under all of its names. `args`
    is a tuple, or the one argument. Raises ValueError for names that the module has not, for one
    name in two dicts and, with `strict`, for names that are left out; TypeError for what is no
    tensor.

    Shapes: those that the module takes. Types: those that the module takes. Result: the module's.
    Source: PyTorch's torch.func.functional_call.

    >>> import tilewright as tw
    >>> layer = tw.nn.Linear(2, 1, bias=False)
    >>> weight = tw.asarray([[2.0, 3.0]])
    >>> tw.func.functional_call(layer, {"weight": weight}, tw.ones((1, 2))).tolist()
    [[5.0]]
    """
    given = _merged(parameter_and_buffer_dicts)
    places: dict[str, tuple[Any, str, Tensor]] = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for slots in (owner._parameters, owner._buffers):
            for name, value in slots.items():
                if value is not None:
                    places[f"{path}.{name}" if path else name] = (slots, name, value)
    unknown = sorted(given.keys() - places.keys())
    missing = sorted(places.keys() - given.keys()) if strict else []
    if unknown or missing:
        raise ValueError(
            "functional_call: "
            + "; ".join(
                f"{what}: {', '.join(which)}"
                for what, which in (("unknown", unknown), ("missing", missing))
                if which
            )
        )
    instead: dict[str, Tensor] = {}
    for name, value in given.items():
        of = places[name][2]
        for other, (_, _, own) in places.items():
            if other == name or (tie_weights and own is of and other not in given):
                instead[other] = value
    call_args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced([(*places[name][:2], value) for name, value in instead.items()]):
        return module(*call_args, **(kwargs or {}))


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes the gradient of func, whose result is one number.

    `argnums` says by which arguments, tensors or dicts, lists and tuples of those; a tuple gives a
    tuple. With `has_aux` func gives (number, anything), and the result is (gradient, anything).
    Such functions can be nested. Called, it raises ValueError where func gives no single number,
    TypeError where it gives no tensor or an argument has none, IndexError for a number of an
    argument that is not there. An argument that nothing depends on has a gradient of 0.

    Shapes: gradients have the arguments' shapes. Types: floating, complex. Result: the same types.
    Source: PyTorch's torch.func.grad.

    >>> import tilewright as tw
    >>> second = tw.func.grad(tw.func.grad(lambda x: x**3))
    >>> second(tw.asarray(2.0)).item()
    12.0
    """
    both = grad_and_value(func, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return gradient


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that gives (gradient, result) of func, or (gradient, (result, aux)).

    Called, its errors are those of `grad`.

    Shapes: gradients have the arguments' shapes. Types: floating, complex. Result: the same types.
    Source: PyTorch's torch.func.grad_and_value.

    >>> import tilewright as tw
    >>> g, y = tw.func.grad_and_value(lambda x: (x * x).sum())(tw.asarray([1.0, 2.0]))
    >>> g.tolist(), y.item()
    ([2.0, 4.0], 5.0)
    """

    def both(*args: Any, **kwargs: Any) -> Any:
        with _level() as nested:
            own, leaves = _leaves("grad", args, argnums)
            result = func(*own, **kwargs)
            y, aux = result if has_aux else (result, None)
            if not isinstance(y, Tensor):
                raise TypeError(
                    f"grad: func gave {type(y).__name__}, expected a tensor of one number"
                )
            if y.numel() != 1:
                raise ValueError(f"grad: func gave shape {y.shape}, expected one number")
            keep = nested or any(x.requires_grad for x in _tensors(args))
            grads = _gradients(y.sum(), leaves, keep)
        if not keep:
            y = y.detach()
            aux = _formed(aux, iter([x.detach() for x in _tensors(aux)]))
        chosen = argnums if isinstance(argnums, tuple) else (argnums,)
        formed = _formed([args[i] for i in chosen], iter(grads))
        return (formed if isinstance(argnums, tuple) else formed[0]), ((y, aux) if has_aux else y)

    return both


def vjp(func: Callable[..., Any], *primals: Tensor) -> tuple[Any, Callable[..., Any]]:
    """func(*primals), and the function that multiplies a vector with its Jacobian.

    That takes a tensor of the result's shape, or as many as func gives, and returns a tuple by
    primal. Raises ValueError for vectors of other shapes.

    Shapes: products have the primals' shapes. Types: floating, complex. Result: the same types.
    Source: PyTorch's torch.func.vjp.

    >>> import tilewright as tw
    >>> y, back = tw.func.vjp(tw.sin, tw.asarray([0.0, 1.0]))
    >>> back(tw.asarray([1.0, 0.0]))[0].tolist()
    [1.0, 0.0]
    """
    with _level() as nested:
        keep = nested or any(x.requires_grad for x in primals)
        ones = _ones_like(func(*primals))
        y, _ = tw.autograd.functional.vjp(func, primals, ones, keep)

    def back(*cotangents: Tensor) -> tuple[Tensor, ...]:
        v = cotangents[0] if len(cotangents) == 1 else cotangents
        with _level():
            _, products = tw.autograd.functional.vjp(func, primals, v, keep)
        return tuple(products)

    return y, back


def jvp(
    func: Callable[..., Any], primals: tuple[Tensor, ...], tangents: tuple[Tensor, ...]
) -> tuple[Any, Any]:
    """func(*primals), and its Jacobian times the tangents.

    Raises ValueError where shapes of primals and tangents differ.

    Shapes: the product has the result's shape. Types: floating, complex. Result: the same types.
    Source: PyTorch's torch.func.jvp.

    >>> import tilewright as tw
    >>> x, v = tw.asarray([1.0, 2.0]), tw.asarray([1.0, 0.0])
    >>> tw.func.jvp(lambda x: x * x, (x,), (v,))[1].tolist()
    [2.0, 0.0]
    """
    with _level() as nested:
        keep = nested or any(x.requires_grad for x in (*primals, *tangents))
        return tw.autograd.functional.jvp(func, tuple(primals), tuple(tangents), keep)


def jacrev(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that computes func's Jacobian by one argument, a row of results at a time.

    A tuple of arguments gives a tuple. Called, it raises IndexError for an argument that is not
    there, TypeError for one that is no tensor.

    Shapes: the Jacobian is (*result's, *argument's). Types: floating, complex. Result: the same
    type.
    Source: PyTorch's torch.func.jacrev.

    >>> import tilewright as tw
    >>> tw.func.jacrev(lambda x: x * x)(tw.asarray([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _of_arguments("jacrev", func, argnums, tw.autograd.functional.jacobian)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that computes the second derivatives of func, one number, by one argument.

    A tuple of arguments gives a tuple of tuples, for each pair. Called, it raises ValueError where
    func gives no single number, IndexError for an argument that is not there, TypeError for one
    that is no tensor.

    Shapes: the result is (*argument's, *argument's). Types: floating, complex. Result: the same
    type.
    Source: PyTorch's torch.func.hessian.

    >>> import tilewright as tw
    >>> tw.func.hessian(lambda x: (x**3).sum())(tw.asarray([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return _of_arguments("hessian", func, argnums, tw.autograd.functional.hessian)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that calls func for each slice of its arguments and stacks what that gives.

    `in_dims` says along which dimension each argument is sliced, or None for one that each call
    gets whole: one number for all of them, or a tuple of the arguments' form; arguments by name
    go whole to each call. `out_dims` says where the new dimension of each result stands. One call
    of func follows the other, so func may be anything, also an `if` on values, and has gradients;
    where a product of whole arguments can be written, that is quicker. `randomness` says what
    becomes of random numbers by the default generator: "error" refuses them, "different" draws
    anew for each call, "same" gives each call the same.
    `chunk_size` is taken and changes nothing.

    Raises ValueError for another randomness. Called, it raises ValueError for dims that do not fit
    the arguments or the results, for extents that differ or are 0 and where nothing is sliced,
    TypeError for results that are no tensors, RuntimeError for random numbers.

    Shapes: arguments with one dimension more than func takes; results with one more than it gives.
    Types: all. Result: func's.
    Source: PyTorch's torch.func.vmap.

    >>> import tilewright as tw
    >>> x = tw.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> tw.func.vmap(tw.func.grad(lambda x: (x**3).sum()))(x).tolist()
    [[3.0, 12.0], [27.0, 48.0]]
    """
    if randomness not in ("error", "different", "same"):
        raise ValueError(f"vmap: randomness is 'error', 'different' or 'same', got {randomness!r}")

    def mapped(*args: Any, **kwargs: Any) -> Any:
        generator = tw._core._default_generator()
        start = generator.position
        given = _placed(args, in_dims, "in_dims")
        count = _extent(given)
        slices = [
            [value] * count if dim is None else tw.unstack(value, axis=dim) for value, dim in given
        ]
        results = []
        for own in zip(*slices, strict=True):
            if randomness == "same":
                generator.position = start
            results.append(func(*_filled(args, iter(own)), **kwargs))
            if randomness == "error" and generator.position != start:
                raise RuntimeError(
                    "vmap: func drew random numbers; randomness='different' draws anew for each "
                    "slice, 'same' gives each the same"
                )
        places = _placed(results[0], out_dims, "out_dims")
        columns = zip(*([x for x, _ in _placed(y, None, "results")] for y in results), strict=True)
        return _filled(
            results[0],
            iter([_stacked(parts, dim) for parts, (_, dim) in zip(columns, places, strict=True)]),
        )

    return mapped


def jacfwd(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that computes func's Jacobian by one argument, an element of it at a time.

    Fewer steps than `jacrev` where the argument has fewer elements than the result; each is a call
    of func and two passes backwards. A tuple of arguments gives a tuple. Called, it raises
    IndexError for an argument that is not there, TypeError for one that is no tensor.

    Shapes: the Jacobian is (*result's, *argument's). Types: floating, complex. Result: the same
    type.
    Source: PyTorch's torch.func.jacfwd.

    >>> import tilewright as tw
    >>> tw.func.jacfwd(lambda x: x * x)(tw.asarray([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _of_arguments("jacfwd", func, argnums, _columns)


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of modules of one kind, each stacked along a new first dimension.

    For `vmap` over `functional_call`: an ensemble as one function. Parameters that require grad
    give leaves that do. Raises ValueError for no modules, for modules of several classes and where
    names or shapes differ.

    Shapes: (number of models, *shape of the tensor). Types: all. Result: the same types.
    Source: PyTorch's torch.func.stack_module_state.

    >>> import tilewright as tw
    >>> models = [tw.nn.Linear(2, 1) for _ in range(3)]
    >>> tw.func.stack_module_state(models)[0]["weight"].shape
    (3, 1, 2)
    """
    if not models or len({type(model) for model in models}) > 1:
        raise ValueError("stack_module_state: expected modules of one class")
    parameters = _stacked_by_name([dict(model.named_parameters()) for model in models])
    buffers = _stacked_by_name([dict(model.named_buffers()) for model in models])
    for name, of_first in models[0].named_parameters():
        if of_first.requires_grad:
            parameters[name].requires_grad_()
    return parameters, buffers


def _of_arguments(
    who: str,
    func: Callable[..., Any],
    argnums: int | tuple[int, ...],
    derivative: Callable[..., Any],
) -> Callable[..., Any]:
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    if not chosen or not all(isinstance(number, int) for number in chosen):
        raise TypeError(f"{who}: argnums is a number or a tuple of them, got {argnums!r}")

    def call(*args: Any, **kwargs: Any) -> Any:
        xs = tuple(_argument(who, args, number) for number in chosen)
        if len({number % len(args) for number in chosen}) < len(chosen):
            raise ValueError(f"{who}: an argument is given twice: argnums={argnums!r}")
        for number, x in zip(chosen, xs, strict=True):
            if not isinstance(x, Tensor):
                raise TypeError(f"{who}: argument {number} is a {type(x).__name__}, not a tensor")

        def of_chosen(*values: Tensor) -> Any:
            given = list(args)
            for number, value in zip(chosen, values, strict=True):
                given[number] = value
            return func(*given, **kwargs)

        with _level() as nested:
            keep = nested or any(x.requires_grad for x in _tensors(args))
            return derivative(of_chosen, xs if isinstance(argnums, tuple) else xs[0], keep)

    return call


def _merged(dicts: Any) -> dict[str, Tensor]:
    merged: dict[str, Tensor] = {}
    for each in [dicts] if isinstance(dicts, Mapping) else dicts:
        for name, value in each.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"functional_call: {name}: expected a tensor, got {value!r}")
            if name in merged:
                raise ValueError(f"functional_call: {name!r} stands in two dicts")
            merged[name] = value
    return merged


@contextmanager
def _replaced(places: list[tuple[Any, str, Tensor]]) -> Iterator[None]:
    """Tensors in slots of modules; what was there comes back last in, first out.

    One slot may have several places: that of a module with several names.
    """
    before: list[tuple[Any, str, Tensor]] = []
    try:
        for slots, name, value in places:
            before.append((slots, name, slots[name]))
            slots[name] = value
        yield
    finally:
        for slots, name, value in reversed(before):
            slots[name] = value


@contextmanager
def _level() -> Iterator[bool]:
    """Recording is on; whether this is inside another such function."""
    nested = _depth.value > 0
    _depth.value += 1
    try:
        with enable_grad():
            yield nested
    finally:
        _depth.value -= 1


def _argument(who: str, args: tuple[Any, ...], i: int) -> Any:
    if not -len(args) <= i < len(args):
        raise IndexError(f"{who}: argument {i} of {len(args)} is not there")
    return args[i]


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value
    return [x for part in parts for x in _tensors(part)] if _holds(value) else []


def _holds(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _formed(value: Any, tensors: Iterator[Tensor]) -> Any:
    """`value` with other tensors in their places."""
    if isinstance(value, Tensor):
        return next(tensors)
    if isinstance(value, Mapping):
        return {key: _formed(part, tensors) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_formed(part, tensors) for part in value])
    return value


def _leaves(
    who: str, args: tuple[Any, ...], argnums: int | tuple[int, ...]
) -> tuple[list[Any], list[Tensor]]:
    """The arguments with tensors of their own by which is derived, and those."""
    own, leaves = list(args), []
    for i in argnums if isinstance(argnums, tuple) else (argnums,):
        value = _argument(who, args, i)
        found = _tensors(value)
        if not found:
            raise TypeError(f"{who}: argument {i} holds no tensor, got {type(value).__name__}")
        # Behind a tensor of an outer function the way leads on to it.
        made = [x.view(x.shape) if x.requires_grad else x.detach() for x in found]
        made = [x if x.requires_grad else x.requires_grad_() for x in made]
        leaves += made
        own[i] = _formed(value, iter(made))
    return own, leaves


def _gradients(y: Tensor, leaves: list[Tensor], keep: bool) -> list[Tensor]:
    if not y.requires_grad:
        return [tw.zeros_like(x) for x in leaves]
    found = tw.grad(y, leaves, create_graph=keep, retain_graph=True, allow_unused=True)
    return [tw.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]


def _ones_like(y: Any) -> Any:
    return tw.ones_like(y) if isinstance(y, Tensor) else tuple(tw.ones_like(x) for x in y)


# ---- vmap ----


def _placed(value: Any, dims: Any, what: str) -> list[tuple[Any, Any]]:
    """What a nested value holds, each beside its dim; one dim stands for all that a part holds."""
    if not _holds(value):
        if _holds(dims):
            raise ValueError(f"vmap: {what} has a {type(dims).__name__} for one value")
        return [(value, dims)]
    keys = list(value) if isinstance(value, Mapping) else range(len(value))
    if _holds(dims):
        same = isinstance(dims, Mapping) == isinstance(value, Mapping)
        if not same or (list(dims) if isinstance(dims, Mapping) else range(len(dims))) != keys:
            raise ValueError(f"vmap: {what} is {dims!r}, which has not the form of the values")
    return [
        pair
        for key in keys
        for pair in _placed(value[key], dims[key] if _holds(dims) else dims, what)
    ]


def _filled(value: Any, leaves: Iterator[Any]) -> Any:
    """A value of the same form that holds the leaves."""
    if isinstance(value, Mapping):
        return {key: _filled(part, leaves) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_filled(part, leaves) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return next(leaves)


def _extent(given: list[tuple[Any, Any]]) -> int:
    extents = set()
    for value, dim in given:
        if dim is None:
            continue
        if not isinstance(value, Tensor):
            raise ValueError(
                f"vmap: in_dims is {dim!r} for a {type(value).__name__}; None is whole"
            )
        if not isinstance(dim, int) or not -value.ndim <= dim < value.ndim:
            raise ValueError(f"vmap: in_dims has {dim!r} for a tensor of shape {value.shape}")
        extents.add(value.shape[dim])
    if len(extents) != 1:
        differ = f"extents {sorted(extents)} differ" if extents else "in_dims slices nothing"
        raise ValueError(f"vmap: {differ}")
    (count,) = extents
    if count == 0:
        raise ValueError("vmap: there is no slice that func could be called with")
    return count


def _stacked(parts: Sequence[Any], dim: Any) -> Tensor:
    for part in parts:
        if not isinstance(part, Tensor):
            raise TypeError(f"vmap: func must give tensors, got {type(part).__name__}")
    if not isinstance(dim, int) or not -parts[0].ndim - 1 <= dim <= parts[0].ndim:
        raise ValueError(f"vmap: out_dims has {dim!r} for results of shape {parts[0].shape}")
    return tw.stack(list(parts), axis=dim)


def _stacked_by_name(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    if any(state.keys() != states[0].keys() for state in states):
        raise ValueError("stack_module_state: modules with different names")
    return {name: tw.stack([state[name].detach() for state in states]) for name in states[0]}


def _columns(func: Callable[..., Any], x: Tensor | tuple[Tensor, ...], create_graph: bool) -> Any:
    """A Jacobian by products with the unit vectors of x, or one by each of several."""
    if isinstance(x, tuple):
        by_each = [
            _columns(lambda value, i=i: func(*x[:i], value, *x[i + 1 :]), x[i], create_graph)
            for i in range(len(x))
        ]
        several = isinstance(by_each[0], tuple)
        return tuple(zip(*by_each, strict=True)) if several else tuple(by_each)
    units = tw.unstack(tw.eye(x.size, dtype=x.dtype, device=x.device)) if x.size else []
    columns = [
        tw.autograd.functional.jvp(func, x, unit.reshape(x.shape), create_graph)[1]
        for unit in units
    ]
    if not columns:
        return _map_one(func(x), lambda y: tw.zeros((*y.shape, *x.shape), dtype=y.dtype))
    if isinstance(columns[0], Tensor):
        return tw.stack(columns, axis=-1).reshape((*columns[0].shape, *x.shape))
    return tuple(
        tw.stack(list(own), axis=-1).reshape((*own[0].shape, *x.shape))
        for own in zip(*columns, strict=True)
    )


def _map_one(value: Any, make: Callable[[Tensor], Tensor]) -> Any:
    return make(value) if isinstance(value, Tensor) else tuple(make(each) for each in value)
