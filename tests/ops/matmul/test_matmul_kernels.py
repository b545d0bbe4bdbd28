"""Every rung of the matmul ladder, on every instruction set, against float64: awkward shapes."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from cases import arrays
from cases.arrays import INTEGERS
from subcases import each

import tilewright as tw

LADDER = [k["name"] for k in tw.kernels.describe("matmul") if k["precision"] == "ieee"]
SIZES = (1, 2, 3, 5, 31, 63, 64, 65, 96, 127, 257)
# A Latin square: every pair of sizes occurs for (m, n), (m, k) and (n, k).
SQUARE = [
    (m, n, SIZES[(i + j) % len(SIZES)]) for i, m in enumerate(SIZES) for j, n in enumerate(SIZES)
]
EXTREMES = [
    (1000, 3, 7),
    (3, 1000, 7),
    (3, 7, 1000),
    (1, 1500, 1),
    (1500, 1, 1),
    (1, 1, 3000),
    (513, 2, 1025),
    (2, 513, 1025),
    (7, 130, 2500),
    (0, 5, 3),
    (5, 0, 3),
    (0, 0, 0),
    (5, 3, 0),
    (1, 1, 0),
]
# Layouts of a matrix, each a view with the same shape and values. 'rows' repeats one row.
LAYOUTS = (
    "plain",
    "transposed",
    "strided",
    "column strided",
    "negative",
    "flipped",
    "rows",
    "columns",
)


@pytest.fixture(params=LADDER)
def rung(request: pytest.FixtureRequest):
    with tw.kernels.use(matmul=request.param):
        yield request.param


@cache
def operands(m: int, n: int, k: int, dtype: str):
    """Random operands, their product in float64 and the product of their magnitudes."""
    rng = np.random.default_rng([m, n, k])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        a, b = (rng.integers(info.min, info.max, s, dtype, endpoint=True) for s in ((m, k), (k, n)))
        return a, b, (a.astype(np.int64) @ b.astype(np.int64)).astype(dtype), None
    a, b = rng.uniform(-1, 1, (m, k)), rng.uniform(-1, 1, (k, n))
    if dtype.startswith("complex"):
        a = (a + 1j * rng.uniform(-1, 1, (m, k))).astype(dtype)
        b = (b + 1j * rng.uniform(-1, 1, (k, n))).astype(dtype)
        wide_a, wide_b = a.astype(complex), b.astype(complex)
    else:
        a, b = arrays.rounded(a, dtype), arrays.rounded(b, dtype)
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    return a, b, wide_a @ wide_b, np.abs(wide_a) @ np.abs(wide_b)


def bound(k: int, dtype: str, magnitude: np.ndarray, product: np.ndarray) -> np.ndarray:
    """Higham, Accuracy and Stability, (3.5): k u |A||B| for any order of sums, u = eps / 2.

    Twice that for float64, whose reference is no better; 16-bit types add in float32, round once;
    a complex term is two real products of each part.
    """
    if dtype in arrays.HALVES:
        summed = (k + 1) * arrays.eps("float32") / 2 * magnitude
        return summed + 0.51 * arrays.eps(dtype) * np.abs(product) + arrays.smallest(dtype)
    terms = {"float32": k, "float64": 2 * k, "complex64": 4 * k, "complex128": 8 * k}[dtype]
    return (terms + 1) * arrays.eps(dtype) / 2 * magnitude


def assert_product(
    c: tw.Tensor, want: np.ndarray, magnitude, k: int, dtype: str, note: object
) -> None:
    assert str(c.dtype) == dtype
    assert c.shape == want.shape, note
    got = arrays.array(c)
    if dtype in INTEGERS:
        np.testing.assert_array_equal(got, want, str(note))
        return
    error = np.abs(got.astype(want.dtype) - want)
    allowed = bound(k, dtype, magnitude, want)
    assert (error <= allowed).all(), (
        f"{note}: {dtype} off by {float((error - allowed).max()):.3g} beyond the bound at "
        f"{np.unravel_index(np.argmax(error - allowed), error.shape)}"
    )


def refused(kernel: str, dtype: str) -> bool:
    """Whole numbers are packed, complex ones are pairs of real ones; or by the definition."""
    if dtype in INTEGERS:
        return kernel not in ("naive", "packed")
    return dtype.startswith("complex") and kernel not in ("naive", "simd", "packed", "direct")


def multiply(a: tw.Tensor, b: tw.Tensor, rung: str):
    """The product, or None where the forced rung refuses; then it says why."""
    try:
        return a @ b
    except tw.InvalidValueError as error:
        assert f"'{rung}'" in str(error)  # noqa: PT017  (either outcome is right)
        assert rung == "direct", error  # noqa: PT017  (either outcome is right)
        return None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_pairs_of_sizes(rung: str, isa: str, dtype: str) -> None:
    solved = 0
    for m, n, k in (*SQUARE, *EXTREMES):
        a, b, want, magnitude = operands(m, n, k, dtype)
        c = multiply(arrays.tensor(a, dtype), arrays.tensor(b, dtype), rung)
        if c is not None:
            assert_product(c, want, magnitude, k, dtype, f"{m}x{n}x{k}")
            solved += 1
    assert solved == len(SQUARE) + len(EXTREMES) or rung == "direct"
    assert solved > len(SQUARE) / 8


def laid_out(x: np.ndarray, layout: str, dtype: str) -> tuple[tw.Tensor, np.ndarray]:
    """A tensor of that layout, and the matrix it is (rows and columns repeat the first one)."""
    if layout == "rows":
        return tw.broadcast_to(arrays.tensor(x[:1], dtype), x.shape), np.broadcast_to(
            x[:1], x.shape
        )
    if layout == "columns":
        one = arrays.tensor(x[:, :1], dtype)
        return tw.broadcast_to(one, x.shape), np.broadcast_to(x[:, :1], x.shape)
    rows, columns = x.shape
    if layout == "transposed":
        return arrays.tensor(x.T, dtype).mT, x
    row, column = {
        "plain": (1, 1),
        "strided": (2, 1),
        "column strided": (1, 3),
        "negative": (-1, 1),
        "flipped": (-1, -2),
    }[layout]
    odd = np.nan if dtype in arrays.FLOATS else 7  # between the elements: must never be read
    space = np.full((rows * abs(row), columns * abs(column)), odd, dtype=x.dtype)
    space[::row, ::column] = x
    return arrays.tensor(space, dtype)[::row, ::column], x


@pytest.mark.parametrize("shape", [(5, 7, 9), (1, 65, 33), (65, 1, 33), (33, 31, 1), (67, 66, 130)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layouts(rung: str, isa: str, dtype: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b, _, _ = operands(m, n, k, dtype)
    for layout_a in LAYOUTS:
        for layout_b in LAYOUTS:
            x, left = laid_out(a, layout_a, dtype)
            y, right = laid_out(b, layout_b, dtype)
            left, right = left.astype(np.float64), right.astype(np.float64)
            c = multiply(x, y, rung)
            if c is not None:
                want, magnitude = left @ right, np.abs(left) @ np.abs(right)
                assert_product(c, want, magnitude, k, dtype, f"{layout_a} @ {layout_b}")


BATCHES = [
    ((3,), (3,)),
    ((3,), ()),
    ((), (3,)),
    ((2, 1), (3,)),
    ((2, 3), (1, 3)),
    ((5, 1, 2), (4, 1)),
    ((0,), (1,)),
    ((2, 3), (2, 3)),
]


@pytest.mark.parametrize("size", [(2, 3, 4), (17, 33, 9), (1, 65, 40)])
@pytest.mark.parametrize(("batch_a", "batch_b"), BATCHES)
def test_batches(rung: str, isa: str, batch_a, batch_b, size, rng) -> None:
    m, n, k = size
    a = rng.uniform(-1, 1, (*batch_a, m, k)).astype(np.float32)
    b = rng.uniform(-1, 1, (*batch_b, k, n)).astype(np.float32)
    want = a.astype(np.float64) @ b.astype(np.float64)
    magnitude = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    swapped = tw.asarray(np.ascontiguousarray(np.swapaxes(a, -1, -2)))
    for x in (tw.asarray(a), swapped.mT, tw.flip(tw.asarray(np.flip(a).copy()))):
        c = multiply(x, tw.asarray(b), rung)
        if c is not None:
            assert_product(c, want, magnitude, k, "float32", (batch_a, batch_b))


@each("dtype", [*arrays.HALVES, *INTEGERS, "complex64", "complex128"])
def test_other_dtypes(rung: str, isa: str, dtype: str) -> None:
    if refused(rung, dtype):
        with pytest.raises(ValueError, match=f"'{rung}'"):
            tw.matmul(
                tw.ones((2, 2), dtype=getattr(tw, dtype)), tw.ones((2, 2), dtype=getattr(tw, dtype))
            )
        return
    for m, n, k in ((1, 1, 1), (5, 3, 31), (17, 64, 65), (2, 0, 3), (3, 2, 0), (33, 7, 127)):
        a, b, want, magnitude = operands(m, n, k, dtype)
        c = multiply(arrays.tensor(a, dtype), arrays.tensor(b, dtype), rung)
        if c is not None:
            assert_product(c, want, magnitude, k, dtype, f"{m}x{n}x{k}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [(3, 5, 7), (33, 65, 40), (70, 130, 600)])
def test_infinities_and_nan_reach_their_rows_and_columns_only(rung, isa, dtype, size) -> None:
    m, n, k = size
    for odd in (np.inf, -np.inf, np.nan):
        for row, inner, column in ((0, 0, 0), (m - 1, k - 1, n - 1), (m // 2, k // 2, n // 2)):
            a, b, _, _ = operands(m, n, k, dtype)
            a, b = a.copy(), b.copy()
            a[row, inner], b[inner, (column + 1) % n] = odd, 0  # infinity times zero is NaN
            b[k - 1 - inner, column] = odd
            with np.errstate(invalid="ignore"):
                want = a.astype(np.float64) @ b.astype(np.float64)
            c = multiply(arrays.tensor(a, dtype), arrays.tensor(b, dtype), rung)
            if c is None:
                continue
            got = arrays.array(c)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
            np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])
            assert np.isfinite(got[np.isfinite(want)]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_denormals_and_overflow(rung: str, isa: str, dtype: str) -> None:
    tiny, big = arrays.smallest(dtype), arrays.largest(dtype)
    for m, n, k in ((2, 3, 4), (18, 70, 33)):
        ones = tw.ones((k, n), dtype=getattr(tw, dtype))
        small = multiply(tw.full((m, k), tiny, dtype=getattr(tw, dtype)), ones, rung)
        assert small is None or (arrays.array(small) == tiny * k).all()
        large = multiply(tw.full((m, k), big, dtype=getattr(tw, dtype)), ones, rung)
        assert large is None or np.isposinf(arrays.array(large)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zero_terms_give_zeros(rung: str, isa: str, dtype: str) -> None:
    """k = 0, into memory that held other values before."""
    chosen = getattr(tw, dtype)
    for m, n in ((3, 5), (64, 65)):
        full = [tw.full((m, n), np.nan, dtype=chosen) for _ in range(3)]
        del full  # the pool hands these blocks out again
        c = multiply(tw.ones((m, 0), dtype=chosen), tw.ones((0, n), dtype=chosen), rung)
        assert c is None or not arrays.array(c).any()


@pytest.mark.parametrize(
    "shape",
    [
        (257, 257, 257),
        (1024, 200, 64),
        (64, 1030, 130),
        (3, 3000, 700),
        (3000, 3, 700),
        (130, 131, 2100),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_change_no_bit(rung: str, isa: str, dtype: str, shape, threads) -> None:
    if rung == "naive" and isa != tw.kernels.isas()[-1]:
        pytest.skip("the definition is slow and the same on every instruction set")
    m, n, k = shape
    a, b, want, magnitude = operands(m, n, k, dtype)
    results = []
    for count in (1, 2, 3):
        tw.set_num_threads(count)
        c = multiply(arrays.tensor(a, dtype), arrays.tensor(b, dtype), rung)
        if c is None:
            return
        assert_product(c, want, magnitude, k, dtype, count)
        results.append(arrays.array(c))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_threads_change_no_bit_of_a_batch(rung: str, isa: str, threads, rng) -> None:
    a = tw.asarray(rng.normal(size=(40, 33, 65)).astype(np.float32))
    b = tw.asarray(rng.normal(size=(40, 65, 63)).astype(np.float32))
    results = []
    for count in (1, 2):
        tw.set_num_threads(count)
        c = multiply(a, b, rung)
        if c is None:
            return
        results.append(arrays.array(c))
    np.testing.assert_array_equal(*results)


def test_a_row_of_a_batch_is_the_same_alone(rung: str, isa: str, rng) -> None:
    """The order of additions depends on k alone, as architecture.md promises for the batch size."""
    a = tw.asarray(rng.normal(size=(64, 700)).astype(np.float32))
    b = tw.asarray(rng.normal(size=(6, 700, 96)).astype(np.float32))
    batch = multiply(tw.broadcast_to(a, (6, 64, 700)), b, rung)
    alone = multiply(a, b[3], rung)
    if batch is not None and alone is not None:
        np.testing.assert_array_equal(arrays.array(batch[3]), arrays.array(alone))


@pytest.mark.parametrize("n", [9, 16, 20, 32, 300])
@pytest.mark.parametrize("k", [256, 257, 600, 1024, 2500])
def test_a_row_alone_is_the_row_of_a_product(isa: str, n: int, k: int, rng) -> None:
    """A single row keeps its sums in L1 or runs its chains side by side: same bits."""
    a = tw.asarray(rng.normal(size=(40, k)).astype(np.float32))
    b = tw.asarray(rng.normal(size=(k, n)).astype(np.float32))
    with tw.kernels.use(matmul="direct"):
        alone, whole = multiply(a[7:8], b, "direct"), multiply(a, b, "direct")
    if alone is not None and whole is not None:
        np.testing.assert_array_equal(arrays.array(alone)[0], arrays.array(whole)[7])


@pytest.mark.parametrize("k", [127, 128, 150, 1000, 2500, 9000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_by_a_column_is_the_same_in_any_company(isa: str, dtype: str, k, threads, rng):
    """Rows are read side by side or in turn, as many as there are: same bits, as alone."""
    a = tw.asarray(rng.normal(size=(300, k)).astype(dtype))
    x = tw.asarray(rng.normal(size=(k, 1)).astype(dtype))
    with tw.kernels.use(matmul="direct"):
        rows = [multiply(a[i : i + 1], x, "direct") for i in range(300)]
        if rows[0] is None:
            pytest.skip("this rung refuses it")
        alone = [arrays.array(row)[0, 0] for row in rows]
        for count in (1, 2):
            tw.set_num_threads(count)
            for m in (2, 5, 16, 37, 300):
                column, row = multiply(a[:m], x, "direct"), multiply(x.T, a[:m].T, "direct")
                np.testing.assert_array_equal(arrays.array(column)[:, 0], alone[:m])
                np.testing.assert_array_equal(arrays.array(row)[0], alone[:m])


# ---- forcing ----


def test_the_ladder_is_in_order() -> None:
    assert LADDER[:5] == ["naive", "tiled", "simd", "packed", "direct"]


def test_use_forces_and_restores() -> None:
    a = tw.ones((40, 40))
    for name in LADDER:
        with tw.kernels.use(matmul=name), tw.explain() as report:
            a @ a
        assert [entry.kernel for entry in report] == [name]
    assert tw._core.forced_kernel("matmul") == ""


def test_use_nests_and_restores_after_an_exception() -> None:
    with tw.kernels.use(matmul="naive"):
        with pytest.raises(KeyError), tw.kernels.use(matmul="tiled"):
            raise KeyError
        assert tw._core.forced_kernel("matmul") == "naive"
    assert tw._core.forced_kernel("matmul") == ""


def test_unknown_names_are_refused_with_the_list() -> None:
    with (
        pytest.raises(
            ValueError, match=r"no kernel 'fastest'; choose from naive, tiled, simd, packed, direct"
        ),
        tw.kernels.use(matmul="fastest"),
    ):
        pass
    refused = pytest.raises(ValueError, match="no instruction set 'mmx'; this machine has: scalar")
    with refused, tw.kernels.use(isa="mmx"):
        pass
    assert tw._core.forced_kernel("matmul") == ""


def test_a_forced_kernel_that_cannot_run_says_why() -> None:
    x = tw.ones((3, 3), dtype=tw.int32)
    with (
        tw.kernels.use(matmul="tiled"),
        pytest.raises(ValueError, match="only float32 and float64"),
    ):
        x @ x


REPORT = """
import tilewright as tw
with tw.explain() as report:
    try:
        tw.ones((40, 40)) @ tw.ones((40, 40))
    except ValueError as error:
        print(error)
print([entry.kernel for entry in report if entry.op == "matmul"])
with tw.kernels.use(matmul="simd"), tw.explain() as report:
    tw.ones((40, 40)) @ tw.ones((40, 40))
print([entry.kernel for entry in report if entry.op == "matmul"])
"""


def run_with(*, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", REPORT],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=check,
    )


def test_the_environment_forces_and_use_overrules_it() -> None:
    done = run_with(TILEWRIGHT_MATMUL="tiled")
    assert done.stdout.splitlines() == ["['tiled']", "['simd']"]


def test_an_unknown_name_in_the_environment_is_refused_with_the_list() -> None:
    done = run_with(TILEWRIGHT_MATMUL="fastest", check=False)
    assert done.stdout.startswith("TILEWRIGHT_MATMUL: ")
    assert "no kernel 'fastest'; choose from naive, tiled, simd, packed, direct" in done.stdout


def test_an_unknown_instruction_set_in_the_environment_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import tilewright as tw; tw.ones((4,)) + 1"],
        env={**os.environ, "TILEWRIGHT_ISA": "mmx"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, "killed by a signal" if done.returncode < 0 else done.stdout
    assert "TILEWRIGHT_ISA: unknown instruction set 'mmx'" in done.stderr


@pytest.mark.parametrize("dtype", [*INTEGERS, "complex64", "complex128"])
def test_no_type_takes_the_definition_where_it_is_slow(dtype: str) -> None:
    x = tw.ones((300, 300), dtype=getattr(tw, dtype))
    with tw.explain() as report:
        x @ x
    assert [entry.kernel for entry in report] != ["naive"]


@each("dtype", [*INTEGERS, "complex64", "complex128"])
@each(("m", "n", "k"), [(7, 300, 600), (300, 7, 520), (1, 130, 70), (130, 1, 70), (65, 66, 257)])
def test_layouts_and_runs_of_other_types(isa: str, dtype: str, m: int, n: int, k: int) -> None:
    """Whatever is chosen: blocks that do not divide, sums of several runs, any strides."""
    a, b, want, magnitude = operands(m, n, k, dtype)
    for layout_a in ("plain", "transposed", "column strided", "flipped"):
        for layout_b in ("plain", "transposed", "column strided", "flipped"):
            c = laid_out(a, layout_a, dtype)[0] @ laid_out(b, layout_b, dtype)[0]
            assert_product(c, want, magnitude, k, dtype, f"{layout_a} @ {layout_b}")


@each("dtype", ["int8", "uint32", "int64", "complex64"])
@each(("batch_a", "batch_b"), BATCHES)
@each("size", [(2, 3, 4), (33, 34, 35), (1, 65, 40)])
def test_batches_of_other_types(rung: str, isa: str, dtype: str, batch_a, batch_b, size) -> None:
    if refused(rung, dtype):
        pytest.skip("this rung refuses the type")
    m, n, k = size
    a = np.resize(operands(97, 31, 53, dtype)[0], (*batch_a, m, k))
    b = np.resize(operands(53, 41, 97, dtype)[0], (*batch_b, k, n))
    wide = np.int64 if dtype in INTEGERS else np.complex128
    want = a.astype(wide) @ b.astype(wide)
    c = multiply(arrays.tensor(a, dtype), arrays.tensor(b, dtype), rung)
    if c is None:
        return
    if dtype in INTEGERS:
        assert_product(c, want.astype(dtype), None, k, dtype, (batch_a, batch_b))
    else:
        assert_product(c, want, np.abs(a) @ np.abs(b), k, dtype, (batch_a, batch_b))


@pytest.mark.parametrize("odd", [np.inf, complex(0, -np.inf), np.nan])
def test_what_is_not_finite_stays_in_its_rows_of_a_complex_product(rung, isa, odd) -> None:
    if refused(rung, "complex64"):
        pytest.skip("this rung refuses the type")
    a, b, _, _ = operands(19, 33, 20, "complex64")
    a = a.copy()
    a[4, 5] = odd
    c = multiply(tw.asarray(a), tw.asarray(b), rung)
    if c is not None:
        finite = np.isfinite(c.numpy())
        assert not finite[4].any()
        assert np.delete(finite, 4, axis=0).all()


def test_gradients_on_every_rung(rung: str, rng) -> None:
    a = tw.asarray(rng.normal(size=(5, 7))).requires_grad_()
    b = tw.asarray(rng.normal(size=(7, 3))).requires_grad_()
    try:
        assert tw.gradcheck(tw.matmul, (a, b))
    except tw.InvalidValueError as error:
        assert rung == "direct"
        assert "'direct'" in str(error)  # noqa: PT017  (either outcome is right)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(2600, 2048, 3), (1100, 2080, 1), (1030, 2050, 5), (1100, 2048, 6), (1100, 2048, 20)],
)
def test_large_results_of_few_terms(isa: str, m: int, n: int, k: int, dtype: str) -> None:
    """Written around the caches where rows begin on lines; (…, 2050, …) they do not."""
    a, b, want, magnitude = operands(m, n, k, dtype)
    c = arrays.tensor(a, dtype) @ arrays.tensor(b, dtype)
    assert_product(c, want, magnitude, k, dtype, f"{m}x{n}x{k}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n", "k"), [(20, 1000, 16), (7, 2048, 7), (64, 1024, 33)])
def test_few_terms_of_rows_whole_pages_apart(rung: str, isa: str, dtype: str, m, n, k) -> None:
    """B's rows begin at the same place of a page: panels of it may be copied."""
    a, b, want, magnitude = operands(m, n, k, dtype)
    wide = np.full((k, 2048), np.nan, dtype=dtype)
    wide[:, :n] = b
    c = multiply(arrays.tensor(a, dtype), arrays.tensor(wide, dtype)[:, :n], rung)
    if c is not None:
        assert_product(c, want, magnitude, k, dtype, f"{m}x{n}x{k}")


@each("dtype", ["float32", "float64"])
@each(("m", "n", "k"), [(9, 70, 300), (13, 40, 1100), (1, 20, 600), (8, 5, 256)])
@each(("alpha", "beta"), [(1, 0), (1, 1), (-0.5, 0), (2, 0.25)])
def test_sums_of_several_chains_and_what_follows(
    rung: str, isa: str, dtype: str, m, n, k, alpha, beta
) -> None:
    a, b, product, magnitude = operands(m, n, k, dtype)
    start = np.random.default_rng(k).uniform(-1, 1, (m, n)).astype(dtype)
    x, y, c = (arrays.tensor(array, dtype) for array in (a, b, start))
    try:
        got = tw.addmm(c, x, y, alpha=alpha, beta=beta)
    except tw.InvalidValueError:
        assert rung == "direct"
        return
    want = alpha * product + beta * start.astype(np.float64)
    assert_product(got, want, abs(alpha) * magnitude + abs(start), k, dtype, f"{m}x{n}x{k}")
    bias = tw.linear(x, y.mT, c[0], activation="relu")
    want = np.maximum(product + start[0], 0)
    assert_product(bias, want, magnitude + abs(start[0]), k, dtype, "bias, relu")
