"""PyTorch's functions and attributes of tensors: values and gradients as there."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import tilewright as tw
from tilewright._report import display

A = np.array([[0.3, -0.7, 1.45], [0.9, -0.2, -0.55], [2.0, 0.1, 0.4]])
B = np.array([[1.7, 0.6, 2.3], [0.4, 1.2, 0.8], [-0.3, 0.2, 1.1]])
V, W = A[0].copy(), B[1].copy()
BATCH = np.stack([A, B])
FIRST, SECOND = np.array([[12, -7, 0], [18, 5, 0]]), np.array([[18, 21, 4], [-6, 0, 0]])

# Name, operands, keywords; called as a function and, where a tensor comes first, as a method.
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("addbmm", (A, BATCH, BATCH), {"beta": 0.5, "alpha": 2}),
    ("addcdiv", (A, B, B + 1), {"value": 0.5}),
    ("addcmul", (A, B, B + 1), {"value": 0.5}),
    ("addcmul", (FIRST, SECOND, SECOND), {"value": 2}),
    ("addcmul", (A, FIRST[0], B), {}),
    ("addmv", (V, B, W), {"alpha": 2}),
    ("addr", (A, V, W), {"beta": 0.5}),
    ("amax", (A, 1), {}),
    ("amin", (A,), {"dim": 0, "keepdim": True}),
    ("aminmax", (A,), {"dim": 1}),
    ("argwhere", (A > 0,), {}),
    ("baddbmm", (A, BATCH, BATCH), {"beta": 0}),
    ("baddbmm", (BATCH, BATCH, BATCH), {"alpha": 0.5}),
    ("bmm", (BATCH, BATCH), {}),
    ("cdist", (BATCH, A), {}),
    ("cdist", (A, B), {"p": 1.0}),
    ("corrcoef", (A,), {}),
    ("cov", (A,), {}),
    ("cov", (A,), {"correction": 0}),
    ("cov", (A,), {"fweights": np.array([1, 2, 3]), "aweights": np.array([0.5, 1, 2])}),
    ("cov", (V,), {}),
    ("cov", (A[:1],), {}),
    ("corrcoef", (A[:1],), {}),
    ("cross", (A, B), {"dim": 1}),
    ("cumulative_trapezoid", (A,), {"dim": 0}),
    ("det", (A,), {}),
    ("diagonal_scatter", (A, V), {}),
    ("diagonal_scatter", (BATCH, BATCH[:, 0, :2]), {"offset": 1, "dim1": 1, "dim2": 2}),
    ("dist", (A, B, 3.0), {}),
    ("div", (A, B), {"rounding_mode": "trunc"}),
    ("div", (A, 0.4), {"rounding_mode": "floor"}),
    ("divide", (FIRST, np.array([[5, 2, 3], [-4, -2, 7]])), {"rounding_mode": "trunc"}),
    ("dot", (V, W), {}),
    ("eq", (A, A), {}),
    ("float_power", (B**2, A), {}),
    ("fmax", (A, np.where(B > 1, np.nan, B)), {}),
    ("fmin", (A, B), {}),
    ("frac", (A,), {}),
    ("frexp", (A * 1e300,), {}),
    ("frexp", (np.array([0.0, -0.0, 4.0, 5e-324, -1.7e308]),), {}),
    ("gcd", (FIRST, SECOND), {}),
    ("ge", (A, B), {}),
    ("ger", (V, W), {}),
    ("gt", (A, 0.5), {}),
    ("hypot", (A, B), {}),
    ("index_reduce", (A, 0, np.array([2, 0]), B[:2], "amax"), {}),
    ("index_reduce", (A, 1, np.array([2, 0, 2]), B, "prod"), {"include_self": False}),
    ("index_reduce", (A, -1, np.array([1, 1, 1]), B, "mean"), {}),
    ("inner", (A, B), {}),
    ("inverse", (A,), {}),
    ("isclose", (A + 1j * B, A + 1j * B * (1 + 1e-6)), {}),
    ("isclose", (A + 1j * B, A + 0j), {"rtol": 0.5, "atol": 0.3}),
    ("kron", (A, B), {}),
    ("lcm", (FIRST, SECOND), {}),
    ("le", (A, B), {}),
    ("logaddexp", (A, B), {}),
    ("logdet", (A @ A.T + np.eye(3),), {}),
    ("logical_and", (A > 0, B > 1), {}),
    ("lt", (A, B), {}),
    ("matrix_power", (A, 3), {}),
    ("mm", (A, B), {}),
    ("mv", (A, V), {}),
    ("ne", (A, A), {}),
    ("nextafter", (A, B), {}),
    ("norm", (A,), {}),
    ("norm", (A, 1), {"dim": 1, "keepdim": True}),
    ("nonzero", (A > 0,), {"as_tuple": False}),
    ("nonzero", (A > 0,), {"as_tuple": True}),
    ("norm", (A, "nuc"), {}),
    ("outer", (V, W), {}),
    ("pinverse", (A,), {}),
    ("put", (A, np.array([[0, 8], [3, -2]]), B[:2, :2]), {}),
    ("put", (A, np.array([4, 4, 1]), V), {"accumulate": True}),
    ("renorm", (A, 2, 0, 1.0), {}),
    ("renorm", (BATCH, 1, -1, 3.0), {}),
    ("round", (A,), {"decimals": 1}),
    ("round", (10 * A,), {"decimals": -1}),
    ("slogdet", (A,), {}),
    ("std_mean", (A, 1), {"correction": 1}),
    ("take_along_dim", (A, np.array([[0, 2], [1, 1], [2, 0]]), 1), {}),
    ("take_along_dim", (A, np.array([0, 5])), {}),
    ("tensordot", (A, B), {"dims": 1}),
    ("tensordot", (A, B), {"dims": ([0], [1])}),
    ("trapezoid", (A,), {"dx": 0.5}),
    ("trapezoid", (A, np.array([0.0, 0.5, 2.0])), {}),
    ("trapezoid", (A, np.array([0.0, 0.5, 2.0])), {"dim": 0}),
    ("trapz", (A,), {"dim": 0}),
    ("unique_consecutive", (np.array([1, 1, 2, 2, 1]),), {"return_counts": True}),
    ("unique_consecutive", (np.array([[1, 1], [1, 1], [2, 1]]),), {"dim": 0}),
    ("unravel_index", (np.array([[0, 7], [11, -1]]), (3, 4)), {}),
    ("unravel_index", (np.array([0, 7, 111], np.int8), (30, 40)), {}),
    ("var_mean", (A, 0), {"correction": 1}),
    ("vdot", (V + 1j * W, W + 2j * V), {}),
    ("xlogy", (A, B**2), {}),
]


def made(library: Any, value: Any, grad: bool) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    x = library.asarray(value.copy())
    return x.requires_grad_() if grad and value.dtype.kind in "fc" else x


def test_slices_that_are_not_scaled_have_plain_gradients() -> None:
    for limit in (np.inf, 1e30, 1.0):
        ours, theirs = (made(library, A, True) for library in (tw, torch))
        for library, x in ((tw, ours), (torch, theirs)):
            (library.renorm(x, 2, 0, limit) ** 2).sum().backward()
        np.testing.assert_allclose(ours.grad, theirs.grad, 1e-6)


def test_pairs_of_rows_without_columns_have_distance_0() -> None:
    for p in (0.0, 1.0, 2.0, np.inf):
        assert tw.pdist(tw.zeros((3, 0)), p).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("size", [(3, 1), (1,), (2, 1, 3), (2, 3, 3), ()])
def test_sums_to_a_size(size: tuple[int, ...]) -> None:
    ours, theirs = (made(library, BATCH, True) for library in (tw, torch))
    for x in (ours, theirs):
        (x.sum_to_size(size) ** 2).sum().backward()
    np.testing.assert_allclose(ours.sum_to_size(size).detach(), theirs.sum_to_size(size).detach())
    np.testing.assert_allclose(ours.grad, theirs.grad)


def results(y: Any) -> list[Any]:
    return list(y) if isinstance(y, (tuple, list)) else [y]


def run(library: Any, case: tuple[str, Any, Any], method: bool, grad: bool) -> Any:
    name, args, options = case
    leaves = [made(library, each, grad) for each in args]
    keywords = {key: made(library, each, False) for key, each in options.items()}
    call = getattr(leaves[0], name) if method else getattr(library, name)
    found = results(call(*(leaves[1:] if method else leaves), **keywords))
    values = [np.asarray(y.detach()) for y in found]
    total = sum((abs(y) * y).sum() for y in found if grad and y.requires_grad)
    if grad and not isinstance(total, int):
        total.backward()
    grads = [getattr(x, "grad", None) for x in leaves]
    return values, [None if g is None else np.asarray(g) for g in grads]


@pytest.mark.filterwarnings("ignore:index_reduce")  # which PyTorch may yet change
@pytest.mark.parametrize("case", CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_values_and_gradients_are_pytorchs(case: tuple[str, Any, Any]) -> None:
    differentiable = case[0] not in ("vdot", "nextafter")
    expected, gradients = run(torch, case, False, differentiable)
    for method in (False, True):
        values, got = run(tw, case, method, differentiable)
        assert len(values) == len(expected)
        for a, b in zip(values, expected, strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
        for pair in zip(got, gradients, strict=True):
            a, b = np.broadcast_arrays(*(0 if g is None else g for g in pair))
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "int32", "complex64"])
@pytest.mark.parametrize("name", ["addbmm", "baddbmm", "addmv", "addr"])
def test_products_that_are_added_keep_the_type(name: str, dtype: str) -> None:
    rows, matrix, stack = (3,), (3, 3), (2, 3, 3)
    shapes = {"addbmm": (matrix, stack, stack), "baddbmm": (stack, stack, stack)}
    shapes |= {"addmv": (rows, matrix, rows), "addr": (matrix, rows, rows)}
    got, expected = (
        getattr(lib, name)(*(lib.ones(s, dtype=getattr(lib, dtype)) for s in shapes[name]))
        for lib in (tw, torch)
    )
    assert got.dtype == getattr(tw, dtype)
    assert got.tolist() == expected.tolist()


def test_logspace_and_linspace_by_steps() -> None:
    for base in (10.0, 2.0):
        y = tw.logspace(-1, 2, steps=7, base=base, dtype=tw.float64)
        np.testing.assert_allclose(np.asarray(y), np.logspace(-1, 2, 7, base=base), rtol=1e-14)
    assert tw.linspace(start=0, end=1, steps=3).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_divisors_of_the_least_integer_are_numpys(dtype: Any) -> None:
    least = np.iinfo(dtype).min
    some = np.array([least, least + 1, -6, -1, 0, 7], dtype)
    a, b = np.tile(some, 6), np.repeat(some, 6)
    np.testing.assert_array_equal(np.asarray(tw.gcd(tw.asarray(a), tw.asarray(b))), np.gcd(a, b))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "float32", "complex64"])
def test_integrals_of_samples(count: int, dtype: str) -> None:
    samples = np.random.default_rng(count).integers(-99, 99, (3, count)).astype(np.float64)
    y = tw.asarray(samples).astype(getattr(tw, dtype))
    result = "float32" if dtype == "int8" else dtype
    for axis, dx in ((-1, None), (1, 0.5), (0, None)):
        got = tw.trapezoid(y, axis=axis, dx=dx)
        assert str(got.dtype).endswith(result)
        spread = np.trapezoid if hasattr(np, "trapezoid") else np.trapz
        expected = spread(samples, dx=1.0 if dx is None else dx, axis=axis)
        np.testing.assert_allclose(
            tw.real(got).astype(tw.float64).numpy(), expected, 2**-8 if "16" in dtype else 1e-6
        )


def test_an_integral_with_an_infinite_end_is_infinite() -> None:
    assert tw.trapezoid(tw.asarray([tw.inf, 1.0, 2.0, 3.0])).item() == tw.inf


def test_wrong_arguments_of_the_new_functions() -> None:
    x = tw.asarray(A)
    for call, error, text in (
        (lambda: tw.var_mean(x), TypeError, "correction"),
        (
            lambda: tw.cov(x, fweights=x[0]),
            TypeError,
            r"^cov: fweights must be integers, got float64",
        ),
        (lambda: tw.cov(x, aweights=-abs(x[0])), ValueError, r"^cov: a weight is negative"),
        (
            lambda: tw.div(x, 2, rounding_mode="up"),
            ValueError,
            r"^div: rounding_mode must be None,",
        ),
        (lambda: x.divide(2, rounding_mode=3), TypeError, r"^divide: rounding_mode must be a str"),
        (lambda: tw.take(x, tw.asarray([0])), ValueError, r"^take: axis is missing for \(3, 3\)"),
        (lambda: x.max(dim=7), IndexError, r"^max: axis 7 is out of range for 2 dimensions"),
        (lambda: tw.min(x, dim="a"), TypeError, r"^min: axis must be an int, got 'a'"),
        (lambda: tw.sort(x, dim=9), IndexError, r"^sort: axis 9 is out of range for 2 dimensions"),
        (lambda: tw.amax(x, axis=x), TypeError, r"^amax: axis must be an int, .* got a tensor"),
        (lambda: tw.max(x, axis=x[0, 0]), TypeError, r"^max: axis must be an int, .* got a tensor"),
        (lambda: tw.cdist(x, x[:, :2]), ValueError, r"^cdist: rows of 3 and of 2"),
        (lambda: tw.cdist(x, x, p=-1), ValueError, r"^cdist: p is at least 0, got -1"),
        (lambda: tw.gcd(x, x), TypeError, r"^gcd: needs integers, got float64"),
        (lambda: tw.trapezoid(x, x, dx=1.0), TypeError, r"^trapezoid: x and dx both"),
        (lambda: tw.unravel_index(tw.asarray([12]), (3, 4)), ValueError, "out of range for 12"),
        (lambda: tw.from_numpy([1.0]), TypeError, r"^from_numpy: expected an ndarray, got list"),
        (lambda: tw.isclose(x, x, rtol=-1.0), ValueError, r"^isclose: rtol is negative: -1"),
        (lambda: tw.allclose(x, x, atol=-1.0), ValueError, r"^allclose: atol is negative: -1"),
        (lambda: tw.norm(x, "no"), ValueError, r"^norm: p is a number"),
        (lambda: tw.set_rng_state(x), ValueError, r"^set_rng_state: "),
        (lambda: tw.amax(x, axis=1, dim=1), TypeError, r"^amax: .*two names"),
        (lambda: tw.norm(x, axis=1, dim=1), TypeError, r"^norm: .*two names"),
        (lambda: tw.device("cuda:x"), ValueError, r"^device: expected a name such as"),
        (lambda: tw.device("cuda:1", 2), ValueError, "has an index already"),
        (lambda: x.size(2), IndexError, r"^size: axis 2 is out of range for 2"),
        (lambda: tw.set_printoptions(precision=-1), ValueError, "at least 0, got -1"),
    ):
        with pytest.raises(error, match=text):
            call()


# ---- attributes ----


def test_data_is_the_memory_outside_the_graph() -> None:
    w = tw.tensor([1.0, 2.0], requires_grad=True)
    w.data.add_(tw.ones(2), alpha=-0.5)
    w.data -= 0.5
    assert w.tolist() == [0.0, 1.0]
    assert not w.data.requires_grad
    (w * w).sum().backward()
    replacement = tw.asarray([5.0, 6.0])
    hooks: list[Any] = []
    w.register_hook(hooks.append)
    w.data = replacement
    assert w.is_leaf
    assert w.requires_grad
    assert w.grad.tolist() == [0.0, 2.0]
    replacement += 1
    assert w.tolist() == [6.0, 7.0]
    (w * 3).sum().backward()
    assert w.grad.tolist() == [3.0, 5.0]
    assert len(hooks) == 1
    with pytest.raises(TypeError, match="require grad"):
        w.data = tw.asarray([1, 2])
    with pytest.raises(RuntimeError, match="cannot become another tensor"):
        (w * 2).data = replacement
    assert w.tolist() == [6.0, 7.0]


def test_facts_that_pytorch_names() -> None:
    x = tw.asarray(A).requires_grad_()
    y = x * 2
    assert (x.grad_fn, y.grad_fn) == (None, "multiply")
    assert (x.is_cpu, x.is_cuda, x.get_device()) == (True, False, -1)
    assert x[1:, 1:].storage_offset() == 4
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad
    assert x.type() == tw.float64
    assert x.type(tw.int32).tolist() == x.type("int32").tolist() == A.astype(int).tolist()
    signed = {"int8": True, "uint8": False, "bool": False, "float32": True, "complex64": True}
    for dtype, expected in signed.items():
        z = tw.zeros(1, dtype=dtype)
        assert (
            z.is_signed()
            == tw.is_signed(z)
            == expected
            == torch.zeros(1, dtype=getattr(torch, dtype)).is_signed()
        )
        assert z.is_complex() == tw.is_complex(z) == (dtype == "complex64")
    z = tw.asarray(A + 1j * B)
    np.testing.assert_array_equal(np.asarray(z.H), (A + 1j * B).conj().T)
    with pytest.raises(ValueError, match=r"^H: needs 2 dimensions"):
        tw.ones(3).H  # noqa: B018
    np.testing.assert_array_equal(np.asarray(x.detach().where(x > 0, 0)), np.where(A > 0, A, 0))


def test_size_is_a_number_and_a_method() -> None:
    x = tw.zeros(2, 3, 0)
    y = tw.zeros(4, 5)
    assert x.size == 0
    assert (y.size, y.size(), y.size(0), y.size(-1), y.size(dim=1)) == (20, (4, 5), 4, 5, 5)
    assert isinstance(y.size, int)
    assert y.size + 1 == 21
    assert type(pickle.loads(pickle.dumps(y.size))) is int
    assert isinstance(y.shape, tw.Size)


def test_devices_are_names_with_parts() -> None:
    x = tw.zeros(2)
    assert x.device == "cpu"
    assert (x.device.type, x.device.index) == ("cpu", None)
    assert x.to("null").device.type == "null"
    place = tw.device("cuda", 1)
    assert (place, place.type, place.index) == ("cuda:1", "cuda", 1)
    assert tw.device(place) == place
    assert pickle.loads(pickle.dumps(place)).index == 1
    assert tw.zeros(2, device=tw.device("cpu")).device is x.device


def test_new_tensors_have_type_and_place_of_another() -> None:
    x = tw.zeros(2, dtype=tw.float64).to("null")
    for y in (
        x.new_zeros(2, 3), x.new_ones((2, 3)), x.new_empty(2, 3), x.new_full((2, 3), 7),
        x.new_tensor([[1, 2, 3]] * 2),
    ):  # fmt: skip
        assert (y.dtype, y.device, y.shape) == (tw.float64, "null", (2, 3))
    x = tw.zeros(2, dtype=tw.int16)
    assert x.new_full((2,), 7).tolist() == [7, 7]
    assert x.new_ones(2, dtype=tw.float32, requires_grad=True).requires_grad
    assert x.new_tensor([1.5], dtype="float32").tolist() == [1.5]


# ---- functions ----


def test_tensors_over_others_memory() -> None:
    array = np.zeros(3)
    x = tw.from_numpy(array)
    x += 1
    assert array.tolist() == [1, 1, 1]
    assert tw.as_tensor(x) is x
    assert tw.as_tensor(array, dtype=tw.float32).dtype == tw.float32
    assert tw.is_tensor(x)
    assert not tw.is_tensor(array)


def test_methods_are_functions_where_pytorch_has_them() -> None:
    x = tw.asarray(A)
    y = tw.clone(x)
    assert y is not x
    assert tw.numel(x) == 9
    assert tw.t(x).tolist() == A.T.tolist()
    assert tw.detach(x * 1).is_leaf
    assert tw.relu_(y) is y
    assert y.tolist() == np.maximum(A, 0).tolist()
    with pytest.raises(AttributeError, match="no attribute 'no_such_'"):
        tw.no_such_  # noqa: B018


def test_states_of_the_default_generator() -> None:
    tw.manual_seed(7)
    tw.rand(5)
    state = tw.get_rng_state()
    x = tw.rand(5)
    tw.set_rng_state(state)
    assert tw.rand(5).tolist() == x.tolist()
    assert tw.initial_seed() == 7
    assert tw.seed() == tw.initial_seed() != 7
    tw.manual_seed(0)
    generator = tw.Generator()
    assert generator.manual_seed(3) is generator
    assert generator.initial_seed() == generator.seed == 3


def test_inference_mode_records_nothing() -> None:
    w = tw.ones(2, requires_grad=True)
    with tw.inference_mode():
        assert not (w * 2).requires_grad
        with tw.inference_mode(False):
            assert (w * 2).requires_grad

    @tw.inference_mode()
    def double(x: tw.Tensor) -> tw.Tensor:
        return x * 2

    assert not double(w).requires_grad


def test_print_options() -> None:
    x = tw.asarray([1 / 3, 2.0])
    plain = repr(x)
    try:
        tw.set_printoptions(precision=2)
        assert repr(x).startswith("tensor([0.33, 2.00]")
        tw.set_printoptions(sci_mode=True)
        assert repr(x).startswith("tensor([3.33e-01, 2.00e+00]")
        tw.set_printoptions(sci_mode=False, threshold=5, edgeitems=1)
        assert repr(tw.arange(8)).startswith("tensor([0, ..., 7]")
    finally:
        display._options.__init__()
    assert repr(x) == plain


def test_pytorchs_names_of_types() -> None:
    for name in ("long", "float", "int", "half", "double", "short"):
        expected = str(getattr(torch, name)).removeprefix("torch.")
        assert str(getattr(tw, name)) == expected
    names: dict[str, Any] = {}
    exec("from tilewright import *", names)
    assert "float" not in names
    assert "int" not in names
    assert tw.promote_types(tw.int32, tw.float32) == tw.float32


def test_calls_with_other_arguments() -> None:
    x = tw.asarray(A)
    z, w = A + 1j * B, B - 2j * A
    got = tw.addcmul(*map(tw.asarray, (z, w, A)), value=2)
    np.testing.assert_allclose(np.asarray(got), z + 2 * w * A, rtol=1e-14)
    y = tw.randint(5, (1000,), dtype=tw.int32)
    assert (y.shape, y.dtype, int(y.min()), int(y.max())) == ((1000,), tw.int32, 0, 4)
    assert [z.tolist() for z in tw.where(x > 0)] == [z.tolist() for z in np.nonzero(A > 0)]
    for name in ("add", "sub", "subtract"):
        z = getattr(tw, name)(x, tw.asarray(B), alpha=2)
        expected = getattr(torch, name)(torch.asarray(A), torch.asarray(B), alpha=2)
        np.testing.assert_allclose(np.asarray(z), expected.numpy(), rtol=1e-15)
    with pytest.raises(TypeError, match=r"^relu: unexpected argument 'alpha'"):
        tw.relu(x, alpha=2)
    for condition in (3, None):
        with pytest.raises(TypeError, match=r"^where: missing argument 'b'"):
            tw.where(condition)
    w = tw.tensor([2.0], requires_grad=True)
    (g,) = tw.grad((w * w).sum(), [w], only_inputs=True)
    assert g.tolist() == [4.0]
    with pytest.raises(ValueError, match=r"^grad: only_inputs=False is what backward"):
        tw.grad((w * w).sum(), [w], only_inputs=False)


def test_normal_numbers_about_each_element() -> None:
    means = tw.tensor([[-50.0], [50.0]], dtype=tw.float64, requires_grad=True)
    stds = tw.asarray([0.0, 1.0, 4.0], dtype=tw.float64)
    y = tw.normal(means, stds, generator=tw.Generator(1))
    assert (y.shape, y.dtype, y.requires_grad) == ((2, 3), tw.float64, False)
    assert y[:, 0].tolist() == [-50.0, 50.0]
    many = tw.normal(mean=tw.full((50_000,), 3.0), std=2.0, generator=tw.Generator(2))
    assert abs(float(many.mean()) - 3) < 0.05
    assert abs(float(many.std()) - 2) < 0.05
    assert tw.normal(0.0, std=stds).shape == (3,)
    with pytest.raises(ValueError, match=r"^normal: a standard deviation is negative"):
        tw.normal(means, -stds)
    with pytest.raises(TypeError, match=r"^normal: missing argument 'size'"):
        tw.normal(0.0, 1.0)


def test_chances_for_each_element() -> None:
    p = tw.asarray([[0.0, 1.0], [1.0, 0.0]], dtype=tw.float64)
    for y in (tw.bernoulli(p), p.bernoulli(), tw.bernoulli(p, (2, 2)), tw.bernoulli(input=p)):
        assert y.tolist() == p.tolist()
        assert y.dtype == tw.float64
    many = tw.bernoulli(tw.full((20_000,), 0.25), generator=tw.Generator(1))
    assert abs(float(many.mean()) - 0.25) < 0.015
    with pytest.raises(TypeError, match=r"^bernoulli: missing argument 'size'"):
        tw.bernoulli(0.5)
    with pytest.raises(ValueError, match=r"^bernoulli: probabilities of shape \(2, 2\)"):
        tw.bernoulli(p, (2,))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_in_another_type(name: str) -> None:
    x = tw.asarray(A, dtype=tw.float32).requires_grad_()
    y = getattr(tw, name)(x, dim=1, dtype=tw.float64)
    z = torch.asarray(A, dtype=torch.float32).requires_grad_()
    expected = getattr(torch, name)(z, dim=1, dtype=torch.float64)
    np.testing.assert_allclose(np.asarray(y.detach()), expected.detach().numpy(), rtol=1e-14)
    (y * tw.asarray(B)).sum().backward()
    (expected * torch.asarray(B)).sum().backward()
    assert x.grad.dtype == tw.float32
    np.testing.assert_allclose(np.asarray(x.grad), z.grad.numpy(), rtol=1e-6, atol=1e-7)
    with pytest.raises(TypeError, match=rf"^{name}: dtype must be a floating one, got int32"):
        getattr(tw, name)(x, dtype=tw.int32)


def test_division_in_place_rounds() -> None:
    for mode, of_reals, of_wholes in (
        ("floor", [-4.0, 3.0], [-4, 3]),
        ("trunc", [-3.0, 3.0], [-3, 3]),
        (None, [-3.5, 3.5], None),
    ):
        x, y = tw.asarray([-7.0, 7.0]), tw.asarray([-7, 7])
        window = x[:1]
        assert x.div_(2, rounding_mode=mode) is x
        assert (x.tolist(), window.tolist()) == (of_reals, of_reals[:1])
        if of_wholes is not None:
            assert y.divide_(2, rounding_mode=mode).tolist() == of_wholes
            assert y.dtype == tw.int64
    x = tw.asarray([1.26, -25.0])
    assert x.round_(decimals=-1).tolist() == [0.0, -20.0]


def test_a_number_in_a_tensor_is_an_axis() -> None:
    x, axis = tw.asarray(A), tw.asarray(1)
    expected = A.max(1).tolist()
    for y in (
        tw.amax(x, axis), tw.amax(x, axis=axis), x.amax(dim=axis), tw.max(x, axis=axis),
        x.max(dim=axis).values,
    ):  # fmt: skip
        assert y.tolist() == expected
    assert tw.amin(x, axis=axis, keepdims=True).shape == (3, 1)
    # By place a second tensor of max and min is the other one of two.
    assert tw.max(x, axis).tolist() == np.maximum(A, 1).tolist()


def test_pairs_show_the_public_name() -> None:
    pair = tw.asarray(A).max(dim=1)
    assert repr(pair).startswith("tilewright.ValuesAndIndices(values=tensor(")
    assert type(pickle.loads(pickle.dumps(pair))) is tw.ValuesAndIndices


def test_places_and_identities_with_pytorchs_options() -> None:
    edges, x = tw.asarray([1.0, 2.0, 3.0]), tw.asarray([0.5, 2.0])
    for y in (
        tw.searchsorted(edges, x, out_int32=True), tw.bucketize(x, edges, out_int32=True),
    ):  # fmt: skip
        assert (y.dtype, y.tolist()) == (tw.int32, [0, 1])
    assert tw.searchsorted(edges, x, out_int32=False).dtype == tw.int64
    assert tw.eye(2, requires_grad=True).requires_grad


@pytest.mark.parametrize("name", ["maximum", "minimum", "isnan", "isinf", "isfinite"])
def test_functions_of_truth_values(name: str) -> None:
    a, b = A > 0, B > 1
    args = (a, b) if name.endswith("imum") else (a,)
    expected = getattr(np, name)(*args)
    got = getattr(tw, name)(*map(tw.asarray, args))
    assert got.dtype == tw.bool
    np.testing.assert_array_equal(np.asarray(got), expected)
