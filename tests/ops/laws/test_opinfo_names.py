"""PyTorch's test records (OpInfo) of every op that has its name here, called as PyTorch is called.

`test_opinfo.py` holds chosen ops to float32's last digits. Here all ops are walked in PyTorch's own
spelling of arguments: samples and the harder reference inputs, with values, types and gradients,
and the calls that PyTorch refuses. What differs stands below with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from cases.opinfo import op_db, torch

import tilewright as tw

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.filterwarnings("ignore"),  # of PyTorch's samples
]

SAMPLES = {"float64": 50, "int64": 20, "complex128": 20}
REFERENCES = 25  # of float64
LARGEST = 20_000  # elements of a sample
TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "int64": 0.0}
# So many comparisons must be made in all, so that a change of names cannot empty this test.
LEAST_COMPARED = 8_000

F = tw.nn.functional


def along(name: str) -> Callable[..., Any]:
    """PyTorch's axis by place, which by place is another argument here or gives values alone."""
    return lambda x, dim=-1, *args, **options: getattr(x, name)(
        dim=dim, **dict(zip(("descending",), args, strict=False)), **options
    )


# The calls that OpInfo makes of functions whose arguments stand in another order, there or here.
CALLS: dict[str, Callable[..., Any]] = {
    "where": lambda x, condition, y: tw.where(condition, x, y),
    "einsum": lambda operands, text: tw.einsum(text, *operands),
    "polygamma": lambda x, n: tw.polygamma(n, x),
    "special.polygamma": lambda x, n: tw.polygamma(n, x),
    "nn.functional.embedding": lambda weight, i, **options: F.embedding(i, weight, **options),
    "nn.functional.embedding_bag": lambda weight, i, **o: F.embedding_bag(i, weight, **o),
    "repeat": lambda x, *sizes: tw.tile(x, sizes[0] if isinstance(sizes[0], tuple) else sizes),
    "sort": along("sort"),
    "argsort": along("argsort"),
    "max.reduction_with_dim": lambda x, dim, keepdim=False: x.max(dim=dim, keepdim=keepdim),
    "min.reduction_with_dim": lambda x, dim, keepdim=False: x.min(dim=dim, keepdim=keepdim),
    "cdist": lambda x, y, p=2.0, mode=None: tw.cdist(x, y, p),
    "linalg.pinv.hermitian": lambda x, hermitian: tw.linalg.pinv(x + x.mH, hermitian=hermitian),
    "linalg.pinv.singular": lambda a, b: tw.linalg.pinv(a @ b.mT),
    "zero_": lambda x: (x * 1).zero_(),
    "nn.functional.triplet_margin_with_distance_loss": lambda x, y, z, distance_function, **o: (
        F.triplet_margin_with_distance_loss(x, y, z, **o)  # PyTorch's is for its tensors
    ),
}
CASTS = "bfloat16 bool byte char double float half int long short"
for _cast in CASTS.split():
    CALLS[_cast] = lambda x, _name=_cast, **_: getattr(x, _name)()

# What is refused with a word on it, whatever the op.
REFUSALS = {
    r"is out of range for 0 dimensions": "a tensor of no axes has no axis 0: the standard",
    r"(no kernel for|floating point only|floating-point|got|needs|takes|of) .*(complex|int64)": (
        "formulas of floating numbers; the remedy is told"
    ),
    r"complex numbers have no order": "nor a largest element",
    r"would drop the imaginary part": "the standard",
    r"unexpected argument 'memory_format'": "tensors have strides, not formats",
    r"unexpected argument 'layout'": "tensors are dense",
}
# By reason: the ops that differ beside that.
REASONS = {
    "other random numbers, or called in place on a tensor there": """
        bernoulli cauchy exponential geometric log_normal multinomial normal
        normal.in_place normal.number_mean rand_like randint randint_like randn
        randn_like uniform nn.functional.alpha_dropout nn.functional.dropout
        nn.functional.dropout2d nn.functional.dropout3d
        nn.functional.feature_alpha_dropout.with_train
        nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
        nn.functional.rrelu nn.functional.scaled_dot_product_attention
    """,
    "memory that nothing was written to": "empty empty_like new_empty",
    "n is divided by unless correction= says otherwise; the standard": """
        std std.unbiased std_mean std_mean.unbiased var var.unbiased var_mean
        var_mean.unbiased
    """,
    "of equal elements the first, or in stable order": "kthvalue mode topk",
    "of an even number the mean of the two in the middle, as in NumPy": "median nanmedian",
    "the gradient goes to x alone": "quantile nanquantile",
    "longer axes are refused; the standard": "squeeze squeeze.multiple",
    "a 0-d tensor is refused; the standard": "nonzero",
    "a number is no vector of classes": """
        nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss
    """,
    "batch and channels are asked for": """
        nn.functional.feature_alpha_dropout.without_train nn.functional.batch_norm
    """,
    "NaN stays NaN, and at infinity stands the limit": """
        polygamma.polygamma_n_1
        polygamma.polygamma_n_2 polygamma.polygamma_n_3 polygamma.polygamma_n_4 sgn sign
        special.xlog1py i0 special.i1
    """,
    "PyTorch's slope is off by up to a hundredth far below 0": "special.log_ndtr",
    "what is too small for a number is 0, and NaN there": "special.zeta",
    "slopes at poles and jumps": "digamma fmod hypot polar",
    "NaN and infinities are no whole numbers": "long",
    "an axis is asked for; the standard": "take",
    "the index has as many axes as the tensor": "gather",
    "a negative power of whole numbers is refused": "__rpow__",
    "factors are real numbers": "addmm",
    "the number of classes is asked for, and the result floating": "nn.functional.one_hot",
    "a vector has one axis; the standard": "linalg.solve linalg.solve_ex",
    "the diagonal of a Hermitian matrix is real": "linalg.cholesky linalg.cholesky_ex",
    "the gradient goes to the triangle that is read": "cholesky_inverse cholesky_solve",
    "residuals whatever the driver, and no singular values": """
        linalg.lstsq linalg.lstsq.grad_oriented
    """,
    "OpInfo symmetrises inside its function": "linalg.pinv.hermitian",
    "vectors have one of two signs or a phase": "linalg.eig linalg.eigh linalg.svd",
    "of this name the function of nn.functional": "unfold",
    "float32 weights of float64 rows are summed in float64": "cov",
    "the gradient is of log_probs as they are, normalised or not": "nn.functional.ctc_loss",
    "axes of 1 and n are refused, as by NumPy": "tensordot",
    "a product of narrow and wide types rounds once": "addcmul addcdiv",
    "of one axis a tensor, of several a list, and distances one after the other, as by NumPy": """
        gradient
    """,
    "whole numbers are rounded down, as by NumPy": """
        arange linspace linspace.tensor_overload
    """,
    "whole numbers become floating where a bound or factor is one": """
        addbmm addmv baddbmm nn.functional.hardtanh nn.functional.relu6
        nn.functional.threshold
    """,
}
DIFFERENCES = {name: reason for reason, names in REASONS.items() for name in names.split()}
compared: dict[str, int] = {}
used: set[str] = set()


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def call_of(op: Any) -> Callable[..., Any] | None:
    """The function or method of PyTorch's name."""
    for name in (full_name(op), op.name):
        if name in CALLS:
            return CALLS[name]
    found: Any = tw
    for part in op.name.split("."):
        found = getattr(found, part, None)
    found = found or getattr(tw.Tensor, op.name, None)
    return found if callable(found) else None


OPS = {full_name(op): op for op in op_db if call_of(op) is not None}
PAIRS = [
    (name, dtype)
    for name, op in OPS.items()
    for dtype in TOLERANCE
    if getattr(torch, dtype) in op.supported_dtypes("cpu")
]


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """PyTorch's arguments with every tensor in them changed, and its types and shapes as ours."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, torch.dtype):
        return getattr(tw, str(value).removeprefix("torch."))
    return str(value) if isinstance(value, torch.device) else value


def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        return [value]
    return [each for item in value for each in tensors_in(item)]


def array(x: Any) -> np.ndarray:
    if isinstance(x, torch.Tensor):
        x = (x.to_dense() if x.is_sparse else x).detach().resolve_conj().resolve_neg()
        return (x.float() if x.dtype == torch.bfloat16 else x).numpy(force=True)
    x = x.detach()
    return np.asarray(x.astype(tw.float32) if x.dtype == tw.bfloat16 else x)


def difference(got: np.ndarray, want: np.ndarray, tolerance: float) -> str | None:
    if got.shape != want.shape:
        return f"shape {got.shape}, PyTorch has {want.shape}"
    if want.dtype.kind not in "fc":
        return None if np.array_equal(got, want) else f"{got.ravel()[:5]}, not {want.ravel()[:5]}"
    if want.dtype in (np.float16, np.float32, np.complex64):
        tolerance = 2e-3 if want.dtype == np.float16 else 1e-5
    tolerance = max(tolerance, 1e-12)
    # Sums and products of many terms: relative to the largest element.
    most = float(np.abs(want[np.isfinite(want)]).max(initial=0))
    close = np.isclose(got, want, tolerance, tolerance * (1 + most), equal_nan=True)
    if close.all():
        return None
    at = np.unravel_index(np.argmin(close), close.shape)
    return f"{got[at]} at {tuple(map(int, at))}, not {want[at]}"


class Sample:
    """One call there and here."""

    def __init__(self, name: str, sample: Any, dtype: str) -> None:
        self.op, self.dtype = OPS[name], dtype
        grad = self.op.supports_autograd and dtype != "int64"

        def leaf(x: Any) -> Any:
            y = x.detach()
            floats = y.is_floating_point() or y.is_complex()
            return y.clone().requires_grad_() if grad and floats else y

        self.theirs = torch_mapped((sample.input, *sample.args), leaf)
        self.options = torch_mapped(dict(sample.kwargs), leaf)
        self.own: dict[int, tw.Tensor] = {}

    def ours(self, x: Any) -> tw.Tensor:
        if id(x) not in self.own:
            y = tw.asarray(x.detach().resolve_conj().resolve_neg().clone())
            self.own[id(x)] = y.requires_grad_() if x.requires_grad else y
        return self.own[id(x)]

    def fault(self) -> str | None:
        """What differs; None where all is the same, or PyTorch refuses the call."""
        try:
            want = tensors_in(self.op.op(*self.theirs, **self.options))
        except Exception:
            return None
        call = call_of(self.op)
        assert call is not None
        try:
            got = tensors_in(
                call(*mapped(self.theirs, self.ours), **mapped(self.options, self.ours))
            )
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            return None if any(re.search(known, text) for known in REFUSALS) else text
        if len(got) != len(want):
            return f"{len(got)} results, PyTorch has {len(want)}"
        pairs = [(y, z) for y, z in zip(got, want, strict=True) if isinstance(z, torch.Tensor)]
        for y, z in pairs:
            if not isinstance(y, tw.Tensor) or str(y.dtype) != str(z.dtype)[6:]:
                return f"{getattr(y, 'dtype', type(y))}, PyTorch has {z.dtype}"
            if found := difference(array(y), array(z), TOLERANCE[self.dtype]):
                return found
        return self.fault_of_gradients([pair for pair in pairs if pair[1].requires_grad])

    def fault_of_gradients(self, pairs: list[tuple[tw.Tensor, Any]]) -> str | None:
        leaves = [x for x in tensors_in([self.theirs, self.options]) if is_leaf(x)]
        pairs = [(y, z) for y, z in pairs if y.requires_grad]  # ours says what has none
        if not pairs or not all(np.isfinite(array(x)).all() for x in leaves):
            return None  # of NaN the slopes are NaN here, and 0 or 1 there by what a mask leaves
        rng = np.random.default_rng(0)
        seeds = []
        for _, z in pairs:
            seed = rng.uniform(0.5, 1.5, tuple(z.shape))
            seed = seed + 1j * rng.uniform(0.5, 1.5, seed.shape) if z.is_complex() else seed
            seeds.append(np.asarray(seed, array(z).dtype))
        try:
            theirs = torch.autograd.grad(
                [z for _, z in pairs],
                leaves,
                [torch.from_numpy(s) for s in seeds],
                allow_unused=True,
            )
        except Exception:
            return None
        try:
            ours = self.gradients(pairs, leaves, seeds)
        except RuntimeError as error:
            return f"gradient: {error}"
        for g, h, x in zip(ours, theirs, leaves, strict=True):
            zero = np.zeros(tuple(x.shape), array(x).dtype)
            a, b = (zero if each is None else array(each) for each in (g, h))
            if found := difference(a, b, 10 * TOLERANCE[self.dtype]):
                return f"gradient {found}"
        return None

    def gradients(self, pairs: list[Any], leaves: list[Any], seeds: list[np.ndarray]) -> Any:
        return tw.grad(
            [y for y, _ in pairs],
            [self.ours(x) for x in leaves],
            [tw.asarray(s).astype(y.dtype) for s, (y, _) in zip(seeds, pairs, strict=True)],
            allow_unused=True,
        )

    def __str__(self) -> str:
        def told(x: Any) -> str:
            return f"{str(x.dtype)[6:]}{tuple(x.shape)}"

        return f"{torch_mapped(self.theirs, told)} {torch_mapped(self.options, told)}"[:300]


def torch_mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)(torch_mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: torch_mapped(item, change) for key, item in value.items()}
    return value


def is_leaf(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.requires_grad


def samples_of(name: str, dtype: str) -> Iterator[Sample]:
    op, theirs = OPS[name], getattr(torch, dtype)
    torch.manual_seed(0)
    given = list(islice(op.sample_inputs("cpu", theirs), SAMPLES[dtype]))
    harder = op.reference_inputs("cpu", theirs) if dtype == "float64" else ()
    for sample in (*given, *islice(harder, len(given), len(given) + REFERENCES)):
        if size_of(sample) <= LARGEST:
            yield Sample(name, sample, dtype)


def size_of(sample: Any) -> int:
    values = tensors_in([sample.input, list(sample.args)])
    return max((x.numel() for x in values if isinstance(x, torch.Tensor)), default=0)


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_ops_by_pytorchs_names(name: str, dtype: str) -> None:
    faults = []
    compared.setdefault(name, 0)
    for sample in samples_of(name, dtype):
        if found := sample.fault():
            faults.append(f"{found}\n    of {sample}")
        compared[name] += 1
    if faults and name in DIFFERENCES:
        used.add(name)
        return
    assert not faults, f"{len(faults)} samples differ: {faults[0]}"


def test_differences_are_there() -> None:
    """After the others, in the order of this file: the list holds nothing that is mended."""
    if len(compared) < len({name for name, _ in PAIRS}):
        pytest.skip("only where all ops were tested in this process")
    assert set(DIFFERENCES) - used == set()
    assert sum(compared.values()) >= LEAST_COMPARED
