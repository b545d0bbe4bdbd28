"""All ops that a peer has too: sizes, layouts, element types, forward and with the gradient.

The pointwise ops are the rows of the engine's own table, so a new row is measured without a line
here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from timeit import Timer
from typing import Any, NamedTuple

import tilewright as tw
from tilewright.bench.harness import OURS, Case, statement

# Elements of the smallest problem, sides of the others.
SIZES = (64, 256, 1024, 4096)
DTYPES = ("float32", "float64", "bfloat16", "int32")
LAYOUTS = ("contiguous", "transposed", "row", "column")
QUICK_SIZES, QUICK_LAYOUTS, QUICK_DTYPES = (64, 1024), ("contiguous", "row"), ("float32",)
_FLOATING = ("float32", "float64", "bfloat16")

# Where an op is not defined or not smooth everywhere.
_RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal"), (0.1, 4.0)),
    **dict.fromkeys(("lgamma", "digamma", "xlogy", "pow", "prod"), (0.5, 1.5)),
    **dict.fromkeys(("cumulative_prod",), (0.9, 1.1)),
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), (-0.9, 0.9)),
    "log1p": (-0.9, 4.0),
    "acosh": (1.1, 4.0),
    "logit": (0.1, 0.9),
}
_DEFAULT_RANGE = (-3.0, 3.0)
# The second argument of these is a number in PyTorch.
_NUMBERS = {"leaky_relu": 0.1, "elu": 1.0, "celu": 1.0, "hardshrink": 0.5, "softshrink": 0.5}
_TERNARY = ("where", "clip", "lerp")  # others take numbers in PyTorch, or are not there


_Calls = Callable[[str, Any], Callable[..., Any]]


class Op(NamedTuple):
    """One op as each library calls it: `call` of a library's namespace gives a function of arrays.

    A library in which a name is missing takes no part. `mirrored` is the same work on the
    transposes, as far as that has a name: itself of one number for each element, along the other
    axis of a reduction.
    """

    name: str
    arity: int
    dtypes: tuple[str, ...]
    smooth: bool
    layouts: tuple[str, ...]
    call: _Calls
    mirrored: _Calls | None = None


class Problem(NamedTuple):
    """What is measured of an op."""

    op: str
    dtype: str
    layout: str
    size: int
    backward: bool

    def __str__(self) -> str:
        size = "64" if self.size == SIZES[0] else f"{self.size}x{self.size}"
        more = " +backward" if self.backward else ""
        return f"{self.op} {self.dtype} {size} {self.layout}{more}"


def all_ops() -> dict[str, Op]:
    """By name: the table's rows, reductions along rows, columns and all, what moves data, and
    further calls that people write.
    """
    found = [_row(row) for row in tw._core.pointwise_table()]
    for name in ("sum", "mean", "prod", "max", "min", "argmax", "argmin", "any", "all", "var"):
        found += [_reduction(name, axis) for axis in (None, 0, 1)]
    for name in ("softmax", "log_softmax", "logsumexp", "cumulative_sum", "cumulative_prod"):
        found += [_along(name, axis) for axis in (0, 1)]
    found += [_along(name, 1, smooth=name == "sort") for name in ("sort", "argsort")]
    found += [_flip(), _joined("concat"), _joined("stack"), _copy()]
    found += [_called(name, call) for name, call in _CALLS.items()]
    return {op.name: op for op in found if _is_public(op)}


def op_cases(
    peers: Mapping[str, Any],
    ops: Sequence[str] = (),
    sizes: Sequence[int] = SIZES,
    layouts: Sequence[str] = LAYOUTS,
    dtypes: Sequence[str] = DTYPES,
    done: frozenset[str] = frozenset(),
) -> Iterator[Case]:
    """Cases by op, `ops` of all where named, without those whose name is in `done`.

    Raises ValueError for an unknown op.
    """
    known = all_ops()
    for name in ops:
        if name not in known:
            raise ValueError(f"bench ops: no op {name!r}; known: {', '.join(known)}")
    for name in ops or known:
        for problem in problems_of(known[name], sizes, layouts, dtypes):
            if str(problem) not in done:
                case = _case(peers, known[name], problem)
                if len(case.contenders) > 1:
                    yield case


def problems_of(
    op: Op, sizes: Sequence[int], layouts: Sequence[str], dtypes: Sequence[str]
) -> Iterator[Problem]:
    """In which an op has a meaning; 64 elements are one contiguous row."""
    for dtype in (dtype for dtype in dtypes if dtype in op.dtypes):
        for size in sizes:
            known = set(op.layouts) if size != SIZES[0] else {"contiguous"} & set(op.layouts)
            for layout in (each for each in layouts if each in known):
                yield Problem(op.name, dtype, layout, size, False)
                if op.smooth and dtype in _FLOATING:
                    yield Problem(op.name, dtype, layout, size, True)


# ---- ops ----


def _row(row: Mapping[str, Any]) -> Op:
    name, arity = row["name"], row["arity"]
    integers = "integer" in row["kinds"] and not row["promotes"]
    dtypes = (_FLOATING if "floating" in row["kinds"] else ()) + ("int32",) * integers
    smooth = any(text not in ("none", "0") for text in row["gradients"])
    number = _NUMBERS.get(name)
    taken = arity if number is None else 1
    if arity == 3 and name not in _TERNARY:
        dtypes = ()
    layouts = LAYOUTS if taken > 1 else LAYOUTS[:2]

    def call(library: str, module: Any) -> Callable[..., Any]:
        function = _function(library, module, name)
        return function if number is None else lambda x: function(x, number)

    return Op(name, taken, dtypes, smooth, layouts, call, call)


def _reduction(name: str, axis: int | None) -> Op:
    smooth = name in ("sum", "mean", "prod", "max", "min", "var")

    def along(axis: int | None) -> _Calls:
        def call(library: str, module: Any) -> Callable[..., Any]:
            function = _function(library, module, name)
            if library == "torch":
                return _torch_reduction(module, name, function, axis)
            return lambda x: function(x, axis=axis)

        return call

    where = {None: "of all", 0: "along columns", 1: "along rows"}[axis]
    dtypes = DTYPES if name not in ("mean", "var") else _FLOATING
    if axis is None and name in ("argmax", "argmin"):  # whose places are counted along rows
        mirrored = None
    else:
        mirrored = along(None if axis is None else 1 - axis)
    return Op(f"{name} {where}", 1, dtypes, smooth, LAYOUTS[:2], along(axis), mirrored)


def _torch_reduction(
    torch: Any, name: str, function: Callable[..., Any], axis: int | None
) -> Callable[..., Any]:
    if name == "var":
        return lambda x: function(x, dim=axis, correction=0)
    if axis is None:
        return function
    if name in ("max", "min"):  # with an axis PyTorch's give places too
        function = torch.amax if name == "max" else torch.amin
    return lambda x: function(x, dim=axis)


def _along(name: str, axis: int, smooth: bool = True) -> Op:
    def along(axis: int) -> _Calls:
        def call(library: str, module: Any) -> Callable[..., Any]:
            function = _function(library, module, name)
            if name == "argsort" and library in _STABLE:  # as ours and JAX's are by default
                function = functools.partial(function, **_STABLE[library])
            if library == "torch":
                if name == "sort":
                    return lambda x: function(x, dim=axis)[0]
                return lambda x: function(x, dim=axis)
            return lambda x: function(x, axis=axis)

        return call

    where = "along columns" if axis == 0 else "along rows"
    dtypes = DTYPES if name in ("sort", "argsort", "cumulative_sum") else _FLOATING
    return Op(f"{name} {where}", 1, dtypes, smooth, LAYOUTS[:2], along(axis), along(1 - axis))


def _flip() -> Op:
    def call(library: str, module: Any) -> Callable[..., Any]:
        # NumPy's is a view: it is copied, as the others' results are.
        if library == "torch":
            return lambda x: module.flip(x, (-1,))
        if library == "numpy":
            return lambda x: module.ascontiguousarray(module.flip(x, -1))
        function = _function(library, module, "flip")
        return lambda x: function(x, axis=-1)

    return Op("flip", 1, DTYPES, True, LAYOUTS[:1], call)


def _joined(name: str) -> Op:
    def along(axis: int) -> _Calls:
        def call(library: str, module: Any) -> Callable[..., Any]:
            function = _function(library, module, name)
            return lambda x, y: function((x, y), **{"dim" if library == "torch" else "axis": axis})

        return call

    mirrored = along(1) if name == "concat" else None
    return Op(name, 2, DTYPES, True, LAYOUTS[:2], along(0), mirrored)


def _copy() -> Op:
    names = {OURS: "contiguous", "torch": "contiguous", "numpy": "ascontiguousarray"}

    def call(library: str, module: Any) -> Callable[..., Any]:
        if library == "numpy":
            copied: Callable[..., Any] = module.ascontiguousarray
            return copied
        if library not in names:
            raise AttributeError(library)
        return lambda x: x.contiguous()

    return Op("contiguous", 1, DTYPES, True, LAYOUTS[1:2], call)


class _Call(NamedTuple):
    """A call that all libraries have in one form but for the keyword of an axis."""

    of: Callable[..., Any]  # of the library, that keyword and the arguments
    arity: int = 1
    dtypes: tuple[str, ...] = _FLOATING
    smooth: bool = True
    mirrored: Callable[..., Any] | None = None


def _each(of: Callable[..., Any], **options: Any) -> _Call:
    """A call that has no direction."""
    return _Call(of, mirrored=of, **options)


def _on_transposes(of: Callable[..., Any], mirrored: Callable[..., Any], **options: Any) -> _Call:
    """A call that is another one on the transposes."""
    return _Call(of, mirrored=mirrored, **options)


def _norm(m: Any, x: Any, **axis: int) -> Any:
    return (m.linalg.vector_norm if hasattr(m.linalg, "vector_norm") else m.linalg.norm)(x, **axis)


def _pow(exponent: float) -> _Call:
    return _each(lambda m, axis, x: x**exponent)


_CALLS = {
    **{f"pow {exponent}": _pow(exponent) for exponent in (2, 3, 0.5, -1)},
    "norm of all": _each(lambda m, axis, x: _norm(m, x)),
    "norm along columns": _on_transposes(
        lambda m, axis, x: _norm(m, x, **{axis: 0}), lambda m, axis, x: _norm(m, x, **{axis: 1})
    ),
    "norm along rows": _on_transposes(
        lambda m, axis, x: _norm(m, x, **{axis: 1}), lambda m, axis, x: _norm(m, x, **{axis: 0})
    ),
    "nansum of all": _each(lambda m, axis, x: m.nansum(x)),
    "nansum along rows": _on_transposes(
        lambda m, axis, x: m.nansum(x, **{axis: 1}), lambda m, axis, x: m.nansum(x, **{axis: 0})
    ),
    "nan_to_num": _each(lambda m, axis, x: m.nan_to_num(x)),
    "clip by numbers": _each(lambda m, axis, x: m.clip(x, -1, 1), dtypes=DTYPES),
    "divide by a number": _each(lambda m, axis, x: x / 3),
    "diff along rows": _on_transposes(
        lambda m, axis, x: m.diff(x, **{axis: 1}),
        lambda m, axis, x: m.diff(x, **{axis: 0}),
        dtypes=DTYPES,
    ),
    "trapezoid along rows": _on_transposes(
        lambda m, axis, x: m.trapezoid(x, **{axis: 1}),
        lambda m, axis, x: m.trapezoid(x, **{axis: 0}),
    ),
    "tril": _on_transposes(
        lambda m, axis, x: m.tril(x), lambda m, axis, x: m.triu(x), dtypes=DTYPES
    ),
    "triu": _on_transposes(
        lambda m, axis, x: m.triu(x), lambda m, axis, x: m.tril(x), dtypes=DTYPES
    ),
    "roll along rows": _on_transposes(
        lambda m, axis, x: m.roll(x, 5, 1), lambda m, axis, x: m.roll(x, 5, 0), dtypes=DTYPES
    ),
    "tile": _on_transposes(
        lambda m, axis, x: m.tile(x, (2, 1)), lambda m, axis, x: m.tile(x, (1, 2)), dtypes=DTYPES
    ),
    "rows of products": _on_transposes(
        lambda m, axis, x, y: m.einsum("ij,ij->i", x, y),
        lambda m, axis, x, y: m.einsum("ij,ij->j", x, y),
        arity=2,
    ),
    "isclose": _each(
        lambda m, axis, x, y: m.isclose(x, y),
        arity=2,
        dtypes=("float32", "float64"),
        smooth=False,
    ),
    "mask to zero": _each(lambda m, axis, x: m.where(x > 0, x, 0), dtypes=DTYPES),
}


def _called(name: str, its: _Call) -> Op:
    def calls(of: Callable[..., Any]) -> _Calls:
        def call(library: str, module: Any) -> Callable[..., Any]:
            m = module.numpy if library == "jax" else module
            return functools.partial(of, m, "dim" if library == "torch" else "axis")

        return call

    mirrored = None if its.mirrored is None else calls(its.mirrored)
    return Op(name, its.arity, its.dtypes, its.smooth, LAYOUTS[:2], calls(its.of), mirrored)


# ---- libraries ----

# Names that differ from ours.
_OTHER_NAMES: dict[str, dict[str, str]] = {
    "torch": {
        "equal": "eq",
        "not_equal": "ne",
        "cumulative_sum": "cumsum",
        "cumulative_prod": "cumprod",
    },
    "numpy": {"cumulative_sum": "cumsum", "cumulative_prod": "cumprod"},
    "jax": {
        "cumulative_sum": "cumsum",
        "cumulative_prod": "cumprod",
        "lgamma": "gammaln",
        "hardsigmoid": "hard_sigmoid",
        "hardswish": "hard_swish",
        "softsign": "soft_sign",
        "logsigmoid": "log_sigmoid",
    },
}
# How an argsort keeps the order of what is equal.
_STABLE: dict[str, dict[str, Any]] = {"torch": {"stable": True}, "numpy": {"kind": "stable"}}
# What gives back its very argument does nothing that could be timed.
_NOTHING = {("torch", "positive")}


def _function(library: str, module: Any, name: str) -> Callable[..., Any]:
    """Raises AttributeError where the library has no such function, or one that does nothing."""
    if (library, name) in _NOTHING:
        raise AttributeError(f"{library}.{name} returns its argument")
    name = _OTHER_NAMES.get(library, {}).get(name, name)
    places = [module]
    if library == "torch":
        places.append(module.nn.functional)
    if library == "jax":
        places = [module.numpy, module.nn, module.scipy.special, module.lax]
    for place in places:
        if hasattr(place, name):
            function: Callable[..., Any] = getattr(place, name)
            return function
    raise AttributeError(f"{library} has no {name}")


def _is_public(op: Op) -> bool:
    try:
        op.call(OURS, tw)
    except AttributeError:
        return False
    return bool(op.dtypes)


# ---- problems ----


def _case(peers: Mapping[str, Any], op: Op, problem: Problem) -> Case:
    arrays = arrays_of(op, problem)
    contenders = {OURS: _timer(OURS, tw, op, problem, arrays)}
    for name, module in peers.items():
        try:
            contenders[name] = _timer(name, module, op, problem, arrays)
        except (AttributeError, TypeError, NotImplementedError, RuntimeError):
            continue  # it has no such function, or not for this type
    return Case(str(problem), contenders, rounds=9, budget_s=0.5)


def arrays_of(op: Op, problem: Problem) -> list[tw.Tensor]:
    """Arguments of float32, or int32, as they lie for the layout contiguous."""
    low, high = _RANGES.get(op.name.partition(" ")[0], _DEFAULT_RANGE)
    generator = tw.Generator(0)
    arrays = []
    for i in range(op.arity):
        shape: tuple[int, ...] = (problem.size,) * 2 if problem.size != SIZES[0] else (1, SIZES[0])
        if i and problem.layout == "row":
            shape = (1, shape[1])
        if i and problem.layout == "column":
            shape = (shape[0], 1)
        values = tw.rand(*shape, generator=generator)
        if problem.dtype == "int32":
            arrays.append((values * 100 + 1).astype(tw.int32))
        else:
            arrays.append(values * (high - low) + low)
    if op.name == "where":
        arrays[0] = arrays[0] > (50 if problem.dtype == "int32" else 0)
    return arrays


def _timer(
    library: str, module: Any, op: Op, problem: Problem, arrays: Sequence[tw.Tensor]
) -> Timer:
    function = op.call(library, module)
    own = [argument_of(library, module, x, problem) for x in arrays]
    if library == "jax" and problem.layout == "transposed":
        function = of_lying(library, module, op, problem, arrays)
    names = {f"x{i}": x for i, x in enumerate(own)}
    call = f"f({', '.join(names)})"
    if problem.backward:
        return _backward(library, module, function, call, names)
    if library == "jax":
        call, function = f"wait({call})", module.jit(function)
        names["wait"] = module.block_until_ready
    timer = statement(call, f=function, **names)
    timer.timeit(1)  # what it refuses, it refuses here
    return timer


def argument_of(library: str, module: Any, x: tw.Tensor, problem: Problem) -> Any:
    """An argument as a library has it, in the problem's type and layout."""
    if problem.dtype != "int32" and str(x.dtype) != "bool":
        x = x.astype(getattr(tw, problem.dtype))
    if problem.layout == "transposed":
        lying = x.T.contiguous()
        x = lying if library == "jax" else lying.T  # JAX has no views: it gets memory as it lies
    if library == OURS:
        return x
    if library == "torch":
        return module.from_dlpack(x)
    if str(x.dtype) == "bfloat16":
        if library == "numpy":
            raise TypeError("no bfloat16")
        return module.numpy.asarray(x.astype(tw.float32).numpy()).astype(module.numpy.bfloat16)
    return x.numpy() if library == "numpy" else module.numpy.asarray(x.numpy())


def of_lying(
    library: str, module: Any, op: Op, problem: Problem, arrays: Sequence[tw.Tensor]
) -> Callable[..., Any]:
    """For a library without views, of arguments as they lie: the result lies as ours does.

    The mirrored op where its result lies so, else the op of the transposes, with which its
    compiler may do what it finds best. (Transposes that change nothing it leaves out of some ops
    alone: `any` of all took 7 times as long with one.)
    """
    ours = op.call(OURS, tw)(*(argument_of(OURS, tw, x, problem) for x in arrays))
    in_rows = ours.ndim == 2 and bool(ours.is_contiguous)
    if op.mirrored is not None and ours.ndim <= 2 and not in_rows:
        return op.mirrored(library, module)
    function = op.call(library, module)

    def of_transposes(*lying: Any) -> Any:
        result = function(*(x.T for x in lying))
        return result if in_rows or ours.ndim != 2 else result.T

    return of_transposes


def _backward(
    library: str,
    module: Any,
    function: Callable[..., Any],
    call: str,
    names: dict[str, Any],
) -> Timer:
    """The sum of the result, and its gradients with respect to all floating arguments."""
    if library == "numpy":
        raise AttributeError("NumPy has no gradients")
    if library == "jax":
        places = tuple(i for i, x in enumerate(names.values()) if "float" in str(x.dtype))
        compiled = module.jit(module.value_and_grad(lambda *x: function(*x).sum(), places))
        timer = statement(f"wait({call})", f=compiled, wait=module.block_until_ready, **names)
    else:
        names = {
            name: x.detach().requires_grad_("float" in str(x.dtype)) for name, x in names.items()
        }
        leaves = [x for x in names.values() if x.requires_grad]
        grad = tw.grad if library == OURS else module.autograd.grad
        timer = statement(
            f"grad({call}.sum(), leaves)", f=function, grad=grad, leaves=leaves, **names
        )
    timer.timeit(1)
    return timer
