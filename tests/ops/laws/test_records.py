"""Every op against its record: values, layouts, lengths, special values, errors, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from cases import RECORDS, arrays
from cases.check import (
    assert_close,
    assert_signs_of_zeros,
    check,
    dtype_of,
    expected_values,
    tensors,
)
from cases.derivatives import OF_REDUCTIONS
from cases.ops import reductions
from cases.record import OpCase
from subcases import each

import tilewright as tw

DIFFERENTIABLE = [case for case in RECORDS if case.differentiable]
BY_NAME = {case.name: case for case in RECORDS}


def per(cases, key="case"):
    return pytest.mark.parametrize(key, cases, ids=str)


@per(RECORDS)
@each("dtype", lambda case: case.tolerance)
def test_values_dtype_and_shape(case: OpCase, dtype: str, isa: str, rng) -> None:
    for args in case.arguments(rng, dtype):
        for options in case.variants:
            if not fits(args, options):
                continue
            check(case, args, dtype, options, (options, [x.shape for x in args]))


def fits(args, options) -> bool:
    """An axis of the options exists, and has elements where the op needs some."""
    axis = options.get("axis")
    return not (isinstance(axis, int) and args[0].ndim == 0)


# ---- layouts ----

LAYOUTS = {
    "strided": lambda x: spaced(x, 3),
    "negative": lambda x: spaced(x, -2),
    "transposed": lambda x: tw.permute_dims(
        tw.permute_dims(x, tuple(range(x.ndim))[::-1]).copy(), tuple(range(x.ndim))[::-1]
    ),
    "offset": lambda x: offset(x, 1),
}


def spaced(x: tw.Tensor, step: int) -> tw.Tensor:
    """The same values `step` elements apart along every axis, with other values between them."""
    at = slice(None, None, step)
    wide = tw.full(tuple(n * abs(step) for n in x.shape), 1, dtype=x.dtype)
    wide[(at,) * x.ndim] = x
    return wide[(at,) * x.ndim]


def offset(x: tw.Tensor, by: int) -> tw.Tensor:
    buffer = tw.full((x.size + by,), 1, dtype=x.dtype)
    buffer[by:] = x.reshape(-1)
    return buffer[by:].reshape(x.shape)


@per(RECORDS)
def test_layouts(case: OpCase, isa: str, rng) -> None:
    for dtype in (
        "float32",
        "float64",
        "float16",
        "int32",
        "int8",
        "complex64",
        "complex128",
        "bool",
    ):
        if dtype not in case.tolerance:
            continue
        for args in case.arguments(rng, dtype):
            for options in case.variants[:3]:
                if not fits(args, options):
                    continue
                expected = expected_values(case, args, dtype, options)
                for layout, laid_out in LAYOUTS.items():
                    laid = [laid_out(x) if x.ndim else x for x in tensors(args, dtype)]
                    note = (layout, options)
                    assert_close(case, case.call(*laid, **options), expected, dtype, note)


@per([case for case in RECORDS if case.elementwise and case.name != "where"])
def test_broadcast_inputs(case: OpCase, isa: str, rng) -> None:
    """Repeated axes of extent 0 strides, in every position, against whole copies."""
    shapes = ((4, 1, 19), (3, 1), (1, 3, 19))
    for dtype in ("float32", "float64"):
        if dtype not in case.tolerance:
            continue
        flat = case.arguments(rng, dtype)[0]
        args = tuple(
            np.resize(x, (int(np.prod(shape)),)).reshape(shape)
            for x, shape in zip(flat, shapes[: len(flat)], strict=True)
        )
        full = tuple(np.broadcast_to(x, (4, 3, 19)) for x in args)
        repeated = [tw.broadcast_to(x, (4, 3, 19)) for x in tensors(args, dtype)]
        expected = expected_values(case, full, dtype, {})
        assert_close(case, case.call(*repeated), expected, dtype, "stride 0")
        if len(args) > 1:
            implicit = expected_values(case, args, dtype, {})
            assert_close(case, case.call(*tensors(args, dtype)), implicit, dtype, "broadcast")


@per(RECORDS)
def test_arguments_are_left_as_they_were(case: OpCase, rng) -> None:
    dtype = next(iter(case.tolerance))
    for args in case.arguments(rng, dtype):
        made = tensors(args, dtype)
        case.call(*made, **case.variants[0])
        for x, before in zip(made, args, strict=True):
            np.testing.assert_array_equal(arrays.array(x), before)


# ---- lengths ----


def lanes(dtype: str) -> int:
    return 64 // np.dtype(dtype).itemsize  # of the widest vectors


LENGTHS_OF = ("float32", "float64", "int32", "uint8")


@per([case for case in RECORDS if case.elementwise and set(case.tolerance) & set(LENGTHS_OF)])
@each("dtype", lambda case: [dtype for dtype in LENGTHS_OF if dtype in case.tolerance])
def test_every_length_at_odd_offsets(case: OpCase, dtype: str, isa: str, rng) -> None:
    most = 2 * lanes("float32" if dtype == "uint8" else dtype)
    args = [np.resize(x, (most + 4,)) for x in case.arguments(rng, dtype)[0]]
    whole = tensors(tuple(args), dtype)
    want, scale = expected_values(case, tuple(args), dtype, {})
    for start in (1, 3):
        for length in range(most + 1):
            part = slice(start, start + length)
            y = case.call(*(x[part] for x in whole))
            assert_close(case, y, (want[part], scale[part]), dtype, f"[{start}:{start + length}]")


@each("dtype", ["float32", "float64"])
@per([case for case in RECORDS if not case.elementwise and "axis" in case.variants[-1]])
def test_every_length_of_a_reduced_axis(case: OpCase, dtype: str, isa: str, rng) -> None:
    most = 2 * lanes(dtype)
    data = [np.resize(x, (3, most + 4)) for x in case.arguments(rng, dtype)[0]]
    inputs = tensors(tuple(data), dtype)
    for length in range(1, most + 1):
        for start, axis in ((1, -1), (3, -1), (1, 0)):
            # Reduced along the far stride: `length` results.
            place = (slice(2 if axis == 0 else None), slice(start, start + length))
            expected = expected_values(case, tuple(x[place] for x in data), dtype, {"axis": axis})
            y = case.call(*(x[place] for x in inputs), axis=axis)
            note = f"{length} at {start}, axis {axis}"
            assert_close(case, y, expected, dtype, note)


IN_PLACE = {
    "+=": (lambda x, y: x.__iadd__(y), np.add),
    "-=": (lambda x, y: x.__isub__(y), np.subtract),
    "*=": (lambda x, y: x.__imul__(y), np.multiply),
    "/=": (lambda x, y: x.__itruediv__(y), np.divide),
    "fill_": (lambda x, y: x.fill_(3.0), lambda x, y: np.full_like(x, 3)),
    "copy_": (lambda x, y: x.copy_(y), lambda x, y: y),
}


@each("dtype", ["float32", "float64", "float16"])
@each("op", IN_PLACE)
def test_in_place_writes_its_elements_and_no_others(op: str, dtype: str, isa: str, rng) -> None:
    most = 2 * lanes(dtype)
    change, reference = IN_PLACE[op]
    other = rng.integers(1, 9, most).astype(dtype)
    for step in (1, 2, -1):
        for length in range(0, most + 1, 1 if step == 1 else 5):
            data = rng.integers(1, 9, 2 * most + 6).astype(dtype)
            buffer = arrays.tensor(data, dtype)
            place = slice(3, 3 + abs(step) * length, abs(step))
            view, expected = buffer[place], data.copy()
            expected[place] = reference(data[place], other[:length])
            if step < 0:
                view = tw.flip(view)
                expected[place] = reference(data[place], other[:length][::-1])
            change(view, arrays.tensor(other[:length], dtype))
            np.testing.assert_array_equal(arrays.array(buffer), expected, f"{length} by {step}")


# ---- special values ----


@per([case for case in RECORDS if case.special is not None])
def test_special_values(case: OpCase, isa: str) -> None:
    for dtype in arrays.FLOATS:
        if dtype not in case.tolerance:
            continue
        for args in case.special(dtype):
            for options in case.variants[:3]:
                y = case.call(*tensors(args, dtype), **options)
                want, scale = expected_values(case, args, dtype, options)
                assert_close(case, y, (want, scale), dtype, options)
                if case.signed_zero and case.result(dtype) == dtype:
                    assert_signs_of_zeros(case, y, want, dtype)


def bit_patterns(rng: np.random.Generator, dtype: str, count: int) -> np.ndarray:
    """Numbers of every magnitude and sign, infinities, NaN and denormals among them."""
    unsigned = {
        "float16": np.uint16,
        "bfloat16": np.uint16,
        "float32": np.uint32,
        "float64": np.uint64,
    }
    bits = rng.integers(0, np.iinfo(unsigned[dtype]).max, count, unsigned[dtype], endpoint=True)
    if dtype == "bfloat16":
        x = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    else:
        x = bits.view(dtype)
    return np.where(np.isnan(x), x.dtype.type(np.nan), x)  # signalling NaN makes NumPy warn


@per([case for case in RECORDS if case.elementwise and case.name not in ("where", "finite_or")])
def test_the_whole_range_of_the_floating_types(case: OpCase, isa: str, rng) -> None:
    """Tolerances hold for any bits, not only in the record's domain."""
    arity = len(case.arguments(rng, next(iter(case.tolerance)))[0])
    for dtype in arrays.FLOATS:
        if dtype in case.tolerance:
            args = tuple(bit_patterns(rng, dtype, 3001) for _ in range(arity))
            check(case, args, dtype, {}, "bit patterns")


# ---- registered kernels ----


@per([case for case in RECORDS if case.name in tw.kernels.ops()])
def test_every_registered_kernel(case: OpCase, isa: str, rng) -> None:
    """Each kernel gives the reference's values where it accepts the problem, and else says so.

    Those that keep fewer bits than the type has are held to their own bounds in test_matmul_split.
    """
    kernels = tw.kernels.describe(case.name)
    ran = {k["name"]: 0 for k in kernels if k["precision"] in ("ieee", "fp32")}
    for name in ran:
        with tw.kernels.use(**{case.name: name}):
            for dtype in case.tolerance:
                for args in case.arguments(rng, dtype):
                    try:
                        check(case, args, dtype, case.variants[0], name)
                    except tw.InvalidValueError as error:
                        assert f"'{name}'" in str(error), error  # noqa: PT017  (either outcome is right)
                        continue
                    ran[name] += 1
    assert all(ran.values()), f"kernels that never ran: {ran}"


# ---- errors ----


@per([case for case in RECORDS if case.errors])
@each("number", lambda case: range(len(case.errors)))
def test_errors(case: OpCase, number: int) -> None:
    error = case.errors[number]
    with pytest.raises(error.expected) as caught:
        error.call()
    assert error.text in str(caught.value)


# ---- gradients ----


def gradient_problem(case: OpCase, args, options):
    """The op as a function of its differentiable arguments alone."""
    made = tensors(args, "float64")

    def function(*inputs: tw.Tensor) -> tw.Tensor:
        now = list(made)
        for position, x in zip(case.differentiable, inputs, strict=True):
            now[position] = x
        return case.call(*now, **options)

    inputs = tuple(arrays.tensor(args[i], "float64").requires_grad_() for i in case.differentiable)
    return function, inputs


@per(DIFFERENTIABLE)
def test_first_gradients(case: OpCase, isa: str, rng) -> None:
    for args in case.smooth(rng):
        for options in case.variants:
            function, inputs = gradient_problem(case, args, options)
            assert tw.gradcheck(function, inputs), (options, [x.shape for x in args])


@per(DIFFERENTIABLE)
def test_second_gradients(case: OpCase, rng) -> None:
    for args in case.smooth(rng):
        for options in case.variants:
            function, inputs = gradient_problem(case, args, options)
            assert tw.gradgradcheck(function, inputs), (options, [x.shape for x in args])


# ---- gradients where formulas break ----


def gradients(y: tw.Tensor, inputs: list[tw.Tensor], **options) -> list[np.ndarray | tw.Tensor]:
    """Of the sum of y, zeros where y does not depend on an input."""
    if not y.requires_grad:
        return [tw.zeros_like(x) for x in inputs]
    found = tw.grad(y.sum(), inputs, allow_unused=True, **options)
    return [tw.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def assert_derivative(got: tw.Tensor, formula, args, dtype: str, absolute, note) -> None:
    with np.errstate(all="ignore"):
        exact = np.asarray(formula(*args))
        want = np.broadcast_to(exact, got.shape).astype(np.longdouble)
        beyond = np.abs(want) > arrays.largest(dtype)
        loss = absolute(*args) if callable(absolute) else absolute
    found = arrays.array(got).astype(np.longdouble)
    # What leaves the range on the way to a second derivative may do so as NaN.
    allowed = np.isnan(want) | (beyond & ~np.isfinite(found))
    want = np.where(beyond, np.nan, want)
    least = arrays.smallest(dtype) / arrays.eps(dtype)  # denormal results have fewer digits
    bound = arrays.eps(dtype) * (32 * np.abs(want) + loss) + 4 * least
    with np.errstate(invalid="ignore"):
        allowed |= np.abs(found - want) <= bound
    wrong = np.flatnonzero(~allowed)
    assert wrong.size == 0, f"{note} of {dtype} at " + "; ".join(
        f"{tuple(float(x.reshape(-1)[i]) for x in args)}: {found[i]!s}, expected {want[i]!s}"
        for i in wrong[:6]
    )


@each("dtype", ["float32", "float64"])
@per([case for case in DIFFERENTIABLE if case.elementwise])
def test_derivatives_where_formulas_break(case: OpCase, dtype: str, isa: str) -> None:
    """By kernels, and by recorded formulas whose gradients are taken once more."""
    known = case.derivatives
    points = np.array(known.points, np.longdouble).T
    with np.errstate(over="ignore", under="ignore"):
        narrow = points.astype(dtype)
    kept = (narrow == points).all(axis=0)
    args = [x[kept] for x in narrow]
    wide = [x[kept] for x in points]
    made = [arrays.tensor(x, dtype) for x in args]
    inputs = [made[i].requires_grad_() for i in case.differentiable]
    y = case.call(*made)
    recorded = gradients(y, inputs, create_graph=True)
    by_kernels = gradients(y, inputs, retain_graph=True)
    for i, formula in enumerate(known.first):
        for got, how in ((by_kernels[i], "kernel"), (recorded[i].detach(), "formula")):
            note = f"{case.name}: derivative {i} by {how}"
            assert_derivative(got, formula, wide, dtype, known.absolute, note)
        second = gradients(recorded[i], inputs, retain_graph=True)
        for j, row in enumerate(known.second[i]):
            note = f"{case.name}: derivative {i}, {j}"
            assert_derivative(second[j], row, wide, dtype, known.absolute, note)


@each("dtype", ["float32", "float64"])
@per([case for case in reductions.RECORDS if case.differentiable])
def test_derivatives_of_reductions_where_formulas_break(case: OpCase, dtype: str) -> None:
    known = case.derivatives or OF_REDUCTIONS[case.name]
    for row in known.rows:
        wide = np.array(row, np.longdouble)
        with np.errstate(over="ignore", under="ignore"):
            x = wide.astype(dtype)
        if (x != wide).any():
            continue
        t = arrays.tensor(x, dtype).requires_grad_()
        y = case.call(t)
        (recorded,) = gradients(y, [t], create_graph=True)
        for got in (*gradients(y, [t], retain_graph=True), recorded.detach()):
            assert_derivative(got, known.first, (wide,), dtype, known.absolute, (case.name, row))
        for i in range(x.size):
            (second,) = gradients(recorded[i], [t], retain_graph=True)
            assert_derivative(
                second,
                lambda x, i=i: known.second(x)[i],
                (wide,),
                dtype,
                known.absolute,
                (case.name, row, "second", i),
            )


@per(DIFFERENTIABLE)
def test_gradients_through_strided_inputs(case: OpCase, rng) -> None:
    """Leaves whose layout is strided or negative, and a gradient that arrives broadcast."""
    args = case.smooth(rng)[0]
    for layout in ("strided", "negative", "transposed"):
        function, inputs = gradient_problem(case, args, case.variants[0])
        laid = tuple(LAYOUTS[layout](x.detach()).requires_grad_() if x.ndim else x for x in inputs)
        assert tw.gradcheck(function, laid), layout
        plain = tw.grad(function(*inputs).sum(), inputs)
        other = tw.grad(function(*laid).sum(), laid)
        for a, b in zip(plain, other, strict=True):
            np.testing.assert_allclose(arrays.array(a), arrays.array(b), rtol=1e-12, atol=1e-12)


@per(DIFFERENTIABLE)
def test_gradients_in_narrow_types(case: OpCase, isa: str, rng) -> None:
    """float32 and 16-bit gradients have the input's dtype and shape, and the float64 values."""
    for args in case.smooth(rng):
        for options in case.variants:
            for dtype in ("float32", "float16", "bfloat16"):
                if dtype in case.tolerance:
                    compare_gradients(case, args, options, dtype)


def compare_gradients(case: OpCase, args, options, dtype: str) -> None:
    narrow = tuple(
        arrays.rounded(x, dtype) if dtype_of(x, "float64") == "float64" else x for x in args
    )
    grads = []
    for used in ("float64", dtype):
        cast = [
            (x.astype(np.float64) if used == "float64" else x)
            if i in case.differentiable or x.dtype.kind == "f"
            else x
            for i, x in enumerate(narrow)
        ]
        inputs = tensors(tuple(cast), used)
        for i in case.differentiable:
            inputs[i].requires_grad_()
        y = case.call(*inputs, **options)
        y.sum(dtype=tw.float64).backward()
        grads.append([inputs[i].grad for i in case.differentiable])
    for position, wide, got in zip(case.differentiable, *grads, strict=True):
        assert str(got.dtype) == dtype
        assert got.shape == narrow[position].shape
        want = arrays.array(wide)
        # The 16-bit types round each step's result, float32 adds up errors of every term.
        allowed = case.gradient_tolerance if dtype == "float32" else 4 + case.gradient_tolerance
        error = np.abs(arrays.array(got).astype(np.float64) - want)
        limit = allowed * arrays.eps(dtype) * np.maximum(1, np.abs(want).max(initial=0))
        assert (error <= limit).all(), (
            f"{case.name} {options}: gradient of argument {position} in {dtype} off by "
            f"{float((error / arrays.eps(dtype)).max())} eps, allowed {allowed}"
        )


BINARY = [
    case
    for case in RECORDS
    if case.elementwise
    and len(case.arguments(np.random.default_rng(0), next(iter(case.tolerance)))[0]) == 2
]


@per(BINARY)
def test_repeated_input(case: OpCase, isa: str, rng) -> None:
    """f(x, x): the same tensor twice, read right and with both gradients added up."""
    for dtype in ("float32", "int32"):
        if dtype in case.tolerance:
            x = np.abs(case.arguments(rng, dtype)[0][0]) + 1
            t = arrays.tensor(x, dtype)
            assert_close(case, case.call(t, t), expected_values(case, (x, x), dtype, {}), dtype)
    if case.differentiable and case.name not in ("maximum", "minimum", "floor_divide", "remainder"):
        x = tw.asarray(rng.uniform(0.5, 2, (2, 3)), copy=True).requires_grad_()
        assert tw.gradcheck(lambda x: case.call(x, x), (x,))
        assert tw.gradgradcheck(lambda x: case.call(x, x), (x,))


@pytest.mark.parametrize("op", [tw.maximum, tw.minimum])
def test_ties_share_the_gradient(op) -> None:
    x = tw.asarray([1.0, 2.0]).requires_grad_()
    y = tw.asarray([1.0, 2.0]).requires_grad_()
    op(x, y).sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("op", [tw.max, tw.min])
def test_ties_of_a_reduction_share_the_gradient(op) -> None:
    x = tw.asarray([[1.0, 1.0, 1.0, 1.0]]).requires_grad_()
    op(x, axis=1).sum().backward()
    assert x.grad.tolist() == [[0.25] * 4]


def test_every_record_has_its_own_name() -> None:
    assert len(BY_NAME) == len(RECORDS)
