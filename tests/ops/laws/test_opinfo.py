"""PyTorch's own test records (OpInfo) as an outside judge: their samples, values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest
from cases import arrays
from cases.opinfo import op_db, torch

import tilewright as tw

pytestmark = pytest.mark.tier("all")
# Samples of an op and dtype that are tried: the first ones cover its shapes and options.
SAMPLES = 150
# The tolerances of torch.testing.assert_close.
TOLERANCE = {"float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
# At least so many samples must run in all, so that a change of names cannot empty this test.
LEAST_SAMPLES = 1600


class UnsupportedError(Exception):
    """A sample uses an option that Tilewright has not."""


def renamed(function: Callable[..., Any], **names: str) -> Callable[..., Any]:
    """`function` called with PyTorch's keywords; `names` adds to the usual dim and keepdim."""
    names = {"dim": "axis", "keepdim": "keepdims", **names}

    def call(*args: Any, **options: Any) -> Any:
        unknown = set(options) - set(names)
        if unknown:
            raise UnsupportedError(f"options {unknown}")
        return function(*args, **{names[key]: value for key, value in options.items()})

    return call


def reduction(function: Callable[..., Any], **names: str) -> Callable[..., Any]:
    """PyTorch takes an empty tuple of dimensions for all of them."""
    call = renamed(function, **names)

    def all_for_none(x: Any, *args: Any, **options: Any) -> Any:
        options.update(zip(("dim", "keepdim"), args, strict=False))
        if options.get("dim") in ((), []):
            options["dim"] = None
        if x.ndim == 0:
            options.pop("dim", None)
        return call(x, **options)

    return all_for_none


def scaled(function: Callable[..., Any]) -> Callable[..., Any]:
    """add and sub with `alpha`."""

    def call(x: Any, y: Any, alpha: Any = 1) -> Any:
        return function(x, y if alpha == 1 else y * alpha)

    return call


def divide(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "trunc":
        return tw.trunc(tw.divide(x, y))
    return tw.floor_divide(x, y) if rounding_mode == "floor" else tw.divide(x, y)


def deviation(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, *args: Any, **options: Any) -> Any:
        if args and isinstance(args[0], bool):
            options["unbiased"], args = args[0], args[1:]
        if args:
            options["dim"], args = args[0], args[1:]
        if args:
            raise UnsupportedError("positional options")
        axis = options.pop("dim", None)
        correction = options.pop("correction", 1)
        correction = 1 if correction is None else correction
        if not options.pop("unbiased", True):
            correction = 0
        keepdims = options.pop("keepdim", False)
        if options or x.ndim == 0:
            raise UnsupportedError("options or 0-d")
        return function(
            x, axis=None if axis in ((), []) else axis, correction=correction, keepdims=keepdims
        )

    return call


def with_dim(function: Callable[..., Any]) -> Callable[..., Any]:
    """Softmax and its like."""

    def call(x: Any, dim: int, dtype: Any = None) -> Any:
        if dtype is not None:
            x = tw.astype(x, dtype_of(dtype))
        return function(x, axis=dim)

    return call


def dtype_of(dtype: Any) -> Any:
    return getattr(tw, str(dtype).removeprefix("torch.").removesuffix("_"))


def functional(name: str) -> Callable[..., Any]:
    """A function that has PyTorch's options."""

    def call(*args: Any, **options: Any) -> Any:
        if {"size_average", "reduce"} & set(options):
            raise UnsupportedError("options that PyTorch has deprecated")
        return getattr(tw.nn.functional, name)(*args, **options)

    return call


def elu(x: Any, **options: Any) -> Any:
    if options.get("alpha", 1.0) != 1:
        raise UnsupportedError("alpha")
    return tw.elu(x)


def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    return tw.where(x * beta > threshold, x, tw.softplus(x * beta) / beta)


def clamp(x: Any, low: Any = None, high: Any = None, **options: Any) -> Any:
    low, high = options.get("min", low), options.get("max", high)
    return tw.clip(x, low, high)


def without_options(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        options.pop("inplace", None)
        if options:
            raise UnsupportedError(f"options {set(options)}")
        return function(*args)

    return call


def take(x: Any, dim: int, index: Any) -> Any:
    if x.ndim == 0:
        raise UnsupportedError("0-d")
    return tw.take(x, index.reshape((-1,)), axis=dim)


def gather(x: Any, dim: int, index: Any) -> Any:
    if index.ndim != x.ndim:
        raise UnsupportedError("an index with other axes")
    return tw.gather(x, dim, index)


def cat(parts: Any, dim: int = 0) -> Any:
    if any(x.shape == (0,) for x in parts) and any(x.ndim != 1 for x in parts):
        raise UnsupportedError("PyTorch leaves out empty tensors of any shape")
    return tw.concat(parts, axis=dim)


def indexed(x: Any, key: Any) -> Any:
    return x[key]


def squeeze(x: Any, dim: Any = None) -> Any:
    dims = range(x.ndim) if dim is None else (dim if isinstance(dim, (tuple, list)) else (dim,))
    if x.ndim == 0:
        raise UnsupportedError("0-d")
    return tw.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))


def shape_of(args: tuple[Any, ...]) -> Any:
    return args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args


def expand(x: Any, *sizes: Any) -> Any:
    shape = shape_of(sizes)
    lead = len(shape) - x.ndim
    return tw.broadcast_to(
        x, tuple(x.shape[i - lead] if n == -1 else n for i, n in enumerate(shape))
    )


def rounded(x: Any, decimals: int = 0) -> Any:
    if decimals:
        raise UnsupportedError("decimals")
    return tw.round(x)


def diagonal(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, k=0: function(x, k=k)


def where(x: Any, condition: Any, other: Any) -> Any:
    return tw.where(condition, x, other)


def swapped(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: function(y, x)


def extremum(name: str) -> Callable[..., Any]:
    """max and min: of two tensors, of all elements, or along a dimension (then values alone)."""

    def call(x: Any, *args: Any, **options: Any) -> Any:
        if args and isinstance(args[0], tw.Tensor):
            return getattr(tw, name + "imum")(x, args[0])
        if args or options:
            raise UnsupportedError("values and indices")
        return getattr(tw, name)(x)

    return call


SAME = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "hypot",
    "lgamma",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "positive",
    "pow",
    "reciprocal",
    "remainder",
    "rsqrt",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]

FUNCTIONAL = """
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss
    cosine_similarity cross_entropy gaussian_nll_loss hinge_embedding_loss huber_loss kl_div
    l1_loss margin_ranking_loss nll_loss pad.circular pad.constant pad.reflect pad.replicate
    pad.replicate_negative pairwise_distance poisson_nll_loss smooth_l1_loss triplet_margin_loss
"""

# PyTorch's name (and variant) -> the call.
OPS: dict[str, Callable[..., Any]] = {
    **{name: without_options(getattr(tw, name)) for name in SAME},
    "add": scaled(tw.add),
    "sub": scaled(tw.subtract),
    "mul": tw.multiply,
    "neg": tw.negative,
    "div.no_rounding_mode": divide,
    "div.floor_rounding": divide,
    "div.trunc_rounding": divide,
    "true_divide": divide,
    "floor_divide": tw.floor_divide,
    "eq": tw.equal,
    "ne": tw.not_equal,
    "lt": tw.less,
    "le": tw.less_equal,
    "gt": tw.greater,
    "ge": tw.greater_equal,
    "where": where,
    "clamp": clamp,
    "round": rounded,
    "__radd__": swapped(tw.add),
    "__rmul__": swapped(tw.multiply),
    "__rsub__": swapped(tw.subtract),
    "__rdiv__": swapped(tw.divide),
    "__rmod__": swapped(tw.remainder),
    "__rpow__": swapped(tw.pow),
    "nn.functional.relu": without_options(tw.relu),
    "nn.functional.silu": without_options(tw.silu),
    "nn.functional.elu": elu,
    "nn.functional.softplus": softplus,
    "sum": reduction(tw.sum),
    "mean": reduction(tw.mean),
    "prod": reduction(tw.prod),
    "amax": reduction(tw.max),
    "amin": reduction(tw.min),
    "any": reduction(tw.any),
    "all": reduction(tw.all),
    "argmax": reduction(tw.argmax),
    "argmin": reduction(tw.argmin),
    "logsumexp": reduction(tw.logsumexp),
    "max.reduction_no_dim": extremum("max"),
    "min.reduction_no_dim": extremum("min"),
    "max.binary": extremum("max"),
    "min.binary": extremum("min"),
    "var": deviation(tw.var),
    "std": deviation(tw.std),
    "var.unbiased": deviation(tw.var),
    "std.unbiased": deviation(tw.std),
    "softmax": with_dim(tw.softmax),
    "softmax.with_dtype": with_dim(tw.softmax),
    "log_softmax": with_dim(tw.log_softmax),
    "log_softmax.with_dtype": with_dim(tw.log_softmax),
    "matmul": tw.matmul,
    "mm": tw.matmul,
    "bmm": tw.matmul,
    "mv": tw.matmul,
    "dot": tw.matmul,
    "addmm": tw.addmm,
    "nn.functional.linear": tw.linear,
    "nn.functional.mse_loss": renamed(tw.mse_loss, reduction="reduction"),
    **{f"nn.functional.{name}": functional(name.partition(".")[0]) for name in FUNCTIONAL.split()},
    "gather": gather,
    "reshape": lambda x, *s: tw.reshape(x, tuple(shape_of(s))),
    "expand": expand,
    "broadcast_to": expand,
    "permute": lambda x, *axes: tw.permute_dims(x, tuple(shape_of(axes))),
    "transpose": lambda x, a, b: x.transpose(a, b) if x.ndim else x,
    "unsqueeze": lambda x, axis: tw.expand_dims(x, axis=axis),
    "squeeze": squeeze,
    "squeeze.multiple": squeeze,
    "flip": lambda x, dims: tw.flip(x, axis=tuple(dims)),
    "tril": diagonal(tw.tril),
    "triu": diagonal(tw.triu),
    "cat": cat,
    "stack": lambda parts, dim=0: tw.stack(parts, axis=dim),
    "index_select": take,
    "__getitem__": indexed,
}


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


INFOS = {full_name(op): op for op in op_db if full_name(op) in OPS}
PAIRS = [
    (name, dtype)
    for name, op in INFOS.items()
    for dtype in TOLERANCE
    if getattr(torch, dtype) in op.supported_dtypes("cpu")
]
ran: dict[tuple[str, str], int] = {}


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with every tensor in it changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def widened(x: Any) -> Any:
    return x.double() if x.is_floating_point() else x


def leaves_of(sample: Any, dtype: Any = None) -> tuple[Any, list[Any]]:
    """The sample's arguments with floating tensors that require gradients, and those tensors."""
    found: list[Any] = []

    def leaf(x: Any) -> Any:
        y = x.detach() if dtype is None else widened(x.detach())
        if y.is_floating_point():
            y.requires_grad_()
            found.append(y)
        return y

    return mapped((sample.input, *sample.args), leaf), found


def close(got: np.ndarray, want: np.ndarray, dtype: str, note: str) -> None:
    assert got.shape == want.shape, f"{note}: shape {got.shape}, PyTorch has {want.shape}"
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, note)
        return
    rtol, atol = TOLERANCE[dtype]
    # Sums and products of many terms: relative to the largest element.
    most = float(np.abs(want[np.isfinite(want)]).max(initial=0))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol + rtol * most, err_msg=note)


def judge(name: str, sample: Any, dtype: str) -> bool:
    """Compares one sample; False where it uses what Tilewright has not."""
    args, leaves = leaves_of(sample)
    options = mapped(dict(sample.kwargs), lambda x: x.detach())
    own: dict[int, tw.Tensor] = {}

    def to_tensor(x: Any) -> tw.Tensor:
        if id(x) not in own:
            own[id(x)] = tw.asarray(x.detach().clone(memory_format=torch.preserve_format))
            if x.requires_grad:
                own[id(x)].requires_grad_()
        return own[id(x)]

    try:
        y = OPS[name](*mapped(args, to_tensor), **mapped(options, to_tensor))
    except UnsupportedError:
        return False
    want = INFOS[name].op(*args, **options)
    note = f"{name} of {[tuple(x.shape) for x in own.values()]} {sample.args} {sample.kwargs}"[:400]
    close(arrays.array(y), want.detach().numpy(), dtype, note)
    if want.requires_grad and leaves and INFOS[name].supports_autograd:
        compare_gradients(name, sample, y, [to_tensor(x) for x in leaves], dtype, note)
    return True


def compare_gradients(
    name: str, sample: Any, y: tw.Tensor, inputs: list[tw.Tensor], dtype: str, note: str
) -> None:
    """PyTorch's side in float64, where its rounding does not blur the judgement."""
    args, leaves = leaves_of(sample, torch.float64)
    want = INFOS[name].op(*args, **mapped(dict(sample.kwargs), lambda x: widened(x.detach())))
    seed = np.random.default_rng(0).uniform(0.5, 1.5, tuple(want.shape)).astype(str(y.dtype))
    received = torch.from_numpy(np.asarray(seed)).to(want.dtype)
    theirs = torch.autograd.grad(want, leaves, received, allow_unused=True)
    assert y.requires_grad, f"{note}: PyTorch records this op"
    ours = tw.grad(y, inputs, tw.asarray(np.asarray(seed)), allow_unused=True)
    for got, expected, x in zip(ours, theirs, inputs, strict=True):
        zero = np.zeros(x.shape, dtype)
        close(
            zero if got is None else arrays.array(got),
            zero if expected is None else expected.numpy(),
            dtype,
            f"gradient of {note}",
        )


@pytest.mark.filterwarnings("ignore")  # of PyTorch's samples
@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_samples(name: str, dtype: str) -> None:
    torch.manual_seed(0)
    samples = INFOS[name].sample_inputs("cpu", getattr(torch, dtype), requires_grad=False)
    count = sum(judge(name, sample, dtype) for sample in islice(samples, SAMPLES))
    ran[name, dtype] = count
    assert count > 0, "no sample could be used"


def test_every_op_of_the_table_was_found() -> None:
    assert set(INFOS) == set(OPS)


def test_enough_samples_ran() -> None:
    """After the others, in the order of this file."""
    if set(ran) != set(PAIRS):
        pytest.skip("only where all ops were tested in this run")
    print(f"samples that ran: {sum(ran.values())}")
    assert sum(ran.values()) >= LEAST_SAMPLES
