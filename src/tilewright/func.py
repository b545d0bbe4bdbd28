"""Functions of functions, and calls of modules with other parameters, by PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import tilewright as tw
from tilewright import Tensor, _core
from tilewright._engine.grad_mode import enable_grad
from tilewright.autograd import derivatives as _derivatives
from tilewright.autograd import function as _function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tilewright.nn import Module


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
        with _derivation() as seen:
            own, leaves = _leaves("grad", args, argnums)
            y, aux = _with_aux("grad", func(*own, **kwargs), has_aux)
            if not isinstance(y, Tensor):
                raise TypeError(
                    f"grad: func gave {type(y).__name__}, expected a tensor of one number"
                )
            if y.numel() != 1:
                raise ValueError(f"grad: func gave shape {y.shape}, expected one number")
            grads = _derivatives.gradients([y.sum()], leaves, [None], seen.needs_graph([y], leaves))
        chosen = argnums if isinstance(argnums, tuple) else (argnums,)
        by_argument = _with_tensors([args[i] for i in chosen], iter(grads))
        g = tuple(by_argument) if isinstance(argnums, tuple) else by_argument[0]
        g, y, aux = seen.settled((g, y, aux), leaves)
        return g, ((y, aux) if has_aux else y)

    return both


def vjp(
    func: Callable[..., Any], *primals: Tensor, has_aux: bool = False
) -> tuple[Any, Callable[..., Any]] | tuple[Any, Callable[..., Any], Any]:
    """func(*primals), and the function that multiplies a vector with its Jacobian.

    That takes a tensor of the result's shape, or as many as func gives, and returns a tuple by
    primal. func is called once. With `has_aux` it gives (results, anything), and the latter comes
    third. Raises ValueError for vectors of other shapes.

    Shapes: products have the primals' shapes. Types: floating, complex. Result: the same types.
    Source: PyTorch's torch.func.vjp.

    >>> import tilewright as tw
    >>> y, back = tw.func.vjp(tw.sin, tw.asarray([0.0, 1.0]))
    >>> back(tw.asarray([1.0, 0.0]))[0].tolist()
    [1.0, 0.0]
    """
    with _derivation() as seen:
        xs = _own("vjp", primals)
        result, aux = _with_aux("vjp", func(*xs), has_aux)
        ys = _results("vjp", result)

    def back(*cotangents: Tensor) -> tuple[Tensor, ...]:
        with _derivation() as seen:
            _set_derived(xs, True)
            vs = _derivatives.vectors(
                "vjp", cotangents[0] if len(cotangents) == 1 else cotangents, ys
            )
            grads = _derivatives.gradients(ys, xs, vs, seen.needs_graph([*ys, *vs], xs))
        settled: tuple[Tensor, ...] = seen.settled(tuple(grads), xs)
        return settled

    result, aux = seen.settled((result, aux), xs)
    return (result, back, aux) if has_aux else (result, back)


def jvp(
    func: Callable[..., Any],
    primals: tuple[Tensor, ...],
    tangents: tuple[Tensor, ...],
    *,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """func(*primals), and its Jacobian times the tangents.

    With `has_aux` func gives (results, anything), and the latter comes third. Hooks of gradients
    have no part in it, and a `Function` with a `jvp` has that called; one whose backward is marked
    `once_differentiable` is refused. Raises ValueError where shapes of primals and tangents differ.

    Shapes: the product has the result's shape. Types: floating, complex. Result: the same types.
    Source: PyTorch's torch.func.jvp.

    >>> import tilewright as tw
    >>> x, v = tw.asarray([1.0, 2.0]), tw.asarray([1.0, 0.0])
    >>> tw.func.jvp(lambda x: x * x, (x,), (v,))[1].tolist()
    [2.0, 0.0]
    """
    with _derivation() as seen:
        xs = _own("jvp", primals)
        result, aux = _with_aux("jvp", func(*xs), has_aux)
        ys = _results("jvp", result)
        vs = _derivatives.vectors("jvp", tuple(tangents), xs)
        product = _derivatives.Tangents(ys, xs)
        made = _derivatives.formed(product(vs, seen.needs_graph([*ys, *vs], xs)), ys.single)
    settled: tuple[Any, ...] = seen.settled((result, made, aux), [*xs, *product.us])
    return settled if has_aux else settled[:2]


def jacrev(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes func's Jacobian by one argument, a row of results at a time.

    A tuple of arguments gives a tuple. With `has_aux` func gives (results, anything), and the
    result is (Jacobian, anything). Called, it raises IndexError for an argument that is not there,
    TypeError for one that is no tensor.

    Shapes: the Jacobian is (*result's, *argument's). Types: floating, complex. Result: the same
    type.
    Source: PyTorch's torch.func.jacrev.

    >>> import tilewright as tw
    >>> tw.func.jacrev(lambda x: x * x)(tw.asarray([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    def by_rows(
        ys: _derivatives.TensorList, xs: _derivatives.TensorList, graph: bool, own: list[Tensor]
    ) -> Any:
        return _derivatives.formed(
            [_derivatives.formed(_derivatives.rows(y, xs, graph), xs.single) for y in ys], ys.single
        )

    return _of_arguments("jacrev", func, argnums, by_rows, has_aux)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that computes the second derivatives of func, one number, by one argument.

    A tuple of arguments gives a tuple of tuples, for each pair. Called, it raises ValueError where
    func gives no single number, IndexError for an argument that is not there, TypeError for one
    that is no tensor. A `Function` whose backward is not made of recorded ops is refused.

    Shapes: the result is (*argument's, *argument's). Types: floating, complex. Result: the same
    type.
    Source: PyTorch's torch.func.hessian.

    >>> import tilewright as tw
    >>> tw.func.hessian(lambda x: (x**3).sum())(tw.asarray([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """

    def of_slopes(
        ys: _derivatives.TensorList, xs: _derivatives.TensorList, graph: bool, own: list[Tensor]
    ) -> Any:
        by_each = _derivatives.slopes(
            "hessian",
            _derivatives.one_number("hessian", _derivatives.formed(ys, ys.single)),
            xs,
            own,
        )
        return _derivatives.formed(
            [_derivatives.formed(_derivatives.rows(g, xs, graph), xs.single) for g in by_each],
            xs.single,
        )

    return _of_arguments("hessian", func, argnums, of_slopes)


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
    TypeError for results that are no tensors, RuntimeError for random numbers. A `Function` with a
    `vmap` of its own, which would not be used, is refused.

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
            with _function.calls_by_slice():
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


def jacfwd(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes func's Jacobian by one argument, an element of it at a time.

    Fewer steps than `jacrev` where the argument has fewer elements than the result. func is called
    once. A tuple of arguments gives a tuple. With `has_aux` func gives (results, anything), and the
    result is (Jacobian, anything). Called, it raises IndexError for an argument that is not there,
    TypeError for one that is no tensor, and what `jvp` raises.

    Shapes: the Jacobian is (*result's, *argument's). Types: floating, complex. Result: the same
    type.
    Source: PyTorch's torch.func.jacfwd.

    >>> import tilewright as tw
    >>> tw.func.jacfwd(lambda x: x * x)(tw.asarray([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _of_arguments("jacfwd", func, argnums, _columns, has_aux)


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of modules of one kind, each stacked along a new first dimension.

    For `vmap` over `functional_call`: an ensemble as one function. Parameters that require grad
    give leaves that do. Raises ValueError for no modules, for modules of several classes or modes
    and where names, shapes or what requires grad differ.

    Shapes: (number of models, *shape of the tensor). Types: all. Result: the same types.
    Source: PyTorch's torch.func.stack_module_state.

    >>> import tilewright as tw
    >>> models = [tw.nn.Linear(2, 1) for _ in range(3)]
    >>> tw.func.stack_module_state(models)[0]["weight"].shape
    (3, 1, 2)
    """
    if not models or len({type(model) for model in models}) > 1:
        raise ValueError("stack_module_state: expected modules of one class")
    if len({model.training for model in models}) > 1:
        raise ValueError(
            "stack_module_state: some modules train, others do not; call train or eval"
        )
    parameters = _stacked_by_name([dict(model.named_parameters()) for model in models])
    buffers = _stacked_by_name([dict(model.named_buffers()) for model in models])
    for name in parameters:
        asked = {model.get_parameter(name).requires_grad for model in models}
        if len(asked) > 1:
            raise ValueError(f"stack_module_state: {name} requires grad in some modules alone")
        parameters[name].requires_grad_(asked.pop())
    return parameters, buffers


def _of_arguments(
    who: str,
    func: Callable[..., Any],
    argnums: int | tuple[int, ...],
    derivative: Callable[
        [_derivatives.TensorList, _derivatives.TensorList, bool, list[Tensor]], Any
    ],
    has_aux: bool = False,
) -> Callable[..., Any]:
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    if not chosen or not all(isinstance(number, int) for number in chosen):
        raise TypeError(f"{who}: argnums is a number or a tuple of them, got {argnums!r}")

    def call(*args: Any, **kwargs: Any) -> Any:
        values = tuple(_argument(who, args, number) for number in chosen)
        if len({number % len(args) for number in chosen}) < len(chosen):
            raise ValueError(f"{who}: an argument is given twice: argnums={argnums!r}")
        for number, x in zip(chosen, values, strict=True):
            if not isinstance(x, Tensor):
                raise TypeError(f"{who}: argument {number} is a {type(x).__name__}, not a tensor")
        given = list(args)
        with _derivation() as seen:
            xs = _own(who, values)
            xs.single = not isinstance(argnums, tuple)
            for number, x in zip(chosen, xs, strict=True):
                given[number] = x
            result, aux = _with_aux(who, func(*given, **kwargs), has_aux)
            ys = _results(who, result)
            own = list(xs)  # leaves that the derivative makes come to them
            made = derivative(ys, xs, seen.needs_graph(ys, xs), own)
        made, aux = seen.settled((made, aux), own)
        return (made, aux) if has_aux else made

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


class _Derivation:
    """Which results keep their graph: the graph says, not the arguments.

    A function may go through tensors that it was not given, such as a model's parameters or what an
    outer function derives by.
    """

    def __init__(self, recording: bool) -> None:
        self._recording = recording  # of whoever asked for the derivative

    def needs_graph(self, ys: Sequence[Tensor], own: Sequence[Tensor]) -> bool:
        """Whether gradients may depend on other leaves: functions may hide what they read."""
        return self._recording and any(_core._behind(list(ys), list(own)))

    def settled(self, value: Any, own: Sequence[Tensor]) -> Any:
        """The same value; tensors that lead to the own ones alone have no graph.

        To whoever goes on with a graph that is left, the own tensors are constants.
        """
        settled = [self._settled(x, own) for x in _parts(value)]
        _set_derived(own, False)
        return _filled(value, iter(settled))

    def _settled(self, x: Any, own: Sequence[Tensor]) -> Any:
        if not isinstance(x, Tensor) or not x.requires_grad:
            return x
        leads_on = self._recording and _core._behind([x], list(own))[0]
        return x if leads_on else x.detach()


@contextmanager
def _derivation() -> Iterator[_Derivation]:
    """Recording is on, whatever it was."""
    recording = _core.is_grad_enabled()
    with enable_grad():
        yield _Derivation(recording)


def _own(who: str, values: Sequence[Tensor]) -> _derivatives.TensorList:
    """Tensors of a call's own in the place of its arguments."""
    xs = _derivatives.listed(who, "inputs", values)
    # Behind a tensor of an outer function the way leads on to it.
    xs[:] = [x.view(x.shape) if x.requires_grad else x.detach().requires_grad_() for x in xs]
    return xs


def _set_derived(own: Sequence[Tensor], value: bool) -> None:
    """Whether the leaves among tensors of a call's own count as such."""
    for x in own:
        if x.is_leaf:
            x.requires_grad_(value)


def _results(who: str, given: Any) -> _derivatives.TensorList:
    if not isinstance(given, (Tensor, tuple, list)):
        raise TypeError(f"{who}: func must give tensors, got {type(given).__name__}")
    return _derivatives.listed(who, "what func gives", given)


def _with_aux(who: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"{who}: func gives (results, anything) where has_aux=True, got {result!r}")
    return result


def _argument(who: str, args: tuple[Any, ...], i: int) -> Any:
    if not -len(args) <= i < len(args):
        raise IndexError(f"{who}: argument {i} of {len(args)} is not there")
    return args[i]


def _holds(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _parts(value: Any) -> list[Any]:
    """What a nested value holds, in order."""
    if not _holds(value):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value
    return [x for part in parts for x in _parts(part)]


def _with_tensors(value: Any, tensors: Iterator[Tensor]) -> Any:
    """`value` with other tensors in their places."""
    parts = [next(tensors) if isinstance(x, Tensor) else x for x in _parts(value)]
    return _filled(value, iter(parts))


def _leaves(
    who: str, args: tuple[Any, ...], argnums: int | tuple[int, ...]
) -> tuple[list[Any], list[Tensor]]:
    """The arguments with tensors of their own by which is derived, and those."""
    own, leaves = list(args), list[Tensor]()
    for i in argnums if isinstance(argnums, tuple) else (argnums,):
        value = _argument(who, args, i)
        tensors = [x for x in _parts(value) if isinstance(x, Tensor)]
        if not tensors:
            raise TypeError(f"{who}: argument {i} holds no tensor, got {type(value).__name__}")
        made = _own(who, tensors)
        leaves += made
        own[i] = _with_tensors(value, iter(made))
    return own, leaves


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


def _columns(
    ys: _derivatives.TensorList, xs: _derivatives.TensorList, graph: bool, own: list[Tensor]
) -> Any:
    """A Jacobian by products with the unit vectors of each input."""
    tangents = _derivatives.Tangents(ys, xs)
    own += tangents.us
    by_input = [_columns_by(i, ys, xs, tangents, graph) for i in range(len(xs))]
    return _derivatives.formed(
        [_derivatives.formed(of_y, xs.single) for of_y in zip(*by_input, strict=True)], ys.single
    )


def _columns_by(
    i: int,
    ys: _derivatives.TensorList,
    xs: _derivatives.TensorList,
    tangents: _derivatives.Tangents,
    graph: bool,
) -> list[Tensor]:
    """The derivatives of each result by one input."""
    x = xs[i]
    vs = [tw.zeros_like(other) for other in xs]
    columns = []
    for unit in tw.unstack(tw.eye(x.size, dtype=x.dtype, device=x.device)) if x.size else []:
        vs[i] = unit.reshape(x.shape)
        columns.append(tangents(vs, graph))
    if not columns:
        return [tw.zeros((*y.shape, *x.shape), dtype=y.dtype, device=y.device) for y in ys]
    return [
        tw.stack(list(of_y), axis=-1).reshape((*y.shape, *x.shape))
        for y, of_y in zip(ys, zip(*columns, strict=True), strict=True)
    ]
