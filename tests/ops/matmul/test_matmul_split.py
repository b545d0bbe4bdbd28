"""Rung split: float32 products from bfloat16 parts. Error, hard operands, and who may be chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from cases import arrays

import tilewright as tw

SPLITS = ("bf16x6", "bf16x3", "bf16")
# What the parts leave out, in units of |a||b|: below 2^-24, 2^-15 and 2^-7.
LEFT_OUT = {"bf16x6": 2.0**-24, "bf16x3": 2.0**-15, "bf16": 2.0**-7}


def reason_to_skip() -> str:
    if "avx512" not in tw.kernels.isas():
        return "this machine has no AVX-512, which the dot products of bfloat16 come with"
    try:
        with tw.kernels.use(isa="avx512", matmul="bf16"):
            tw.ones((2, 2)) @ tw.ones((2, 2))
    except tw.InvalidValueError as error:
        return str(error)
    return ""


pytestmark = pytest.mark.skipif(bool(reason_to_skip()), reason=reason_to_skip() or "runs")


@pytest.fixture(autouse=True)
def _on_avx512() -> Iterator[None]:
    with tw.kernels.use(isa="avx512"):
        yield


@pytest.fixture(params=SPLITS)
def rung(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def precision() -> Iterator[Callable[[str], None]]:
    before = tw.get_float32_matmul_precision()
    yield tw.set_float32_matmul_precision
    tw.set_float32_matmul_precision(before)


def product(kernel: str, a: object, b: object) -> np.ndarray:
    with tw.kernels.use(matmul=kernel):
        return arrays.array(tw.asarray(a) @ tw.asarray(b))


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


def magnitude(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)


def allowed(rung: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The parts' error and that of k sums in float32 (Higham, (3.5))."""
    terms = (a.shape[-1] + 1) * arrays.eps("float32") / 2
    return (LEFT_OUT[rung] + terms) * magnitude(a, b)


# ---- error ----

DISTRIBUTIONS = {
    "uniform": lambda rng, s: rng.uniform(-1, 1, s),
    "normal": lambda rng, s: rng.normal(size=s),
    "positive": lambda rng, s: rng.uniform(0, 1, s),
    "wide": lambda rng, s: rng.normal(size=s) * np.exp(rng.uniform(-12, 12, s)),
    "far": lambda rng, s: rng.normal(size=s) * 2.0 ** rng.uniform(-40, 40, s),
}
SIZES = [(64, 64, 64), (100, 90, 256), (129, 257, 513), (300, 200, 1500), (70, 65, 4096)]


def errors_of(rung: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """In units of the sum of magnitudes of the terms."""
    return (product(rung, a, b) - exact(a, b)) / magnitude(a, b)


def tail_of(errors: np.ndarray) -> np.ndarray:
    """Root mean square, the size that one in a thousand exceeds, and the largest."""
    sizes = np.abs(errors)
    return np.array([np.sqrt(np.mean(sizes**2)), np.quantile(sizes, 0.999), sizes.max()])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_six_products_are_as_exact_as_float32(rng, distribution: str, size) -> None:
    m, n, k = size
    errors: dict[str, list[np.ndarray]] = {"bf16x6": [], "packed": []}
    for _ in range(6):  # samples enough that their largest says something
        a, b = (DISTRIBUTIONS[distribution](rng, s).astype(np.float32) for s in ((m, k), (k, n)))
        for rung, list_of in errors.items():
            list_of.append(errors_of(rung, a, b))
    split, ieee = (tail_of(np.stack(list_of)) for list_of in errors.values())
    # Over 24 decades a few terms are all of a sum, so single errors scatter; tiles round once more.
    most = (1.1, 1.2, 1.5) if distribution == "far" else (1.0, 1.0, 1.2)
    assert (split <= ieee * np.array(most)).all(), split / ieee


@pytest.mark.parametrize("size", SIZES)
def test_fewer_products_keep_their_bits(rng, rung: str, size) -> None:
    m, n, k = size
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))
    off = np.abs(product(rung, a, b) - exact(a, b))
    assert (off <= allowed(rung, a, b)).all()


def test_whole_numbers_of_24_bits_are_exact() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-(2**24), 2**24, (40, 1)).astype(np.float32)
    b = 2.0 ** rng.integers(-8, 8, (1, 50)).astype(np.float32)
    np.testing.assert_array_equal(product("bf16x6", a, b), a * b)


# ---- shapes and layouts ----

EDGES = (1, 2, 15, 16, 17, 31, 33, 47, 49, 65, 97)


def test_odd_shapes(rung: str) -> None:
    rng = np.random.default_rng(1)
    for i, m in enumerate(EDGES):
        for j, n in enumerate(EDGES):
            k = EDGES[(i + j) % len(EDGES)]
            a, b = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((m, k), (k, n)))
            off = np.abs(product(rung, a, b) - exact(a, b))
            assert (off <= allowed(rung, a, b)).all(), (m, n, k)


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (5, 3, 0), (0, 0, 0)])
def test_no_elements_and_no_terms(rung: str, shape) -> None:
    m, n, k = shape
    c = product(rung, np.ones((m, k), np.float32), np.ones((k, n), np.float32))
    assert c.shape == (m, n)
    assert not c.any()


LAYOUTS: dict[str, Callable[[np.ndarray], tw.Tensor]] = {
    "rows": tw.asarray,
    "columns": lambda x: tw.asarray(np.ascontiguousarray(x.T)).mT,
    "reversed": lambda x: tw.flip(tw.asarray(np.flip(x).copy())),
    "every second": lambda x: tw.asarray(np.repeat(np.repeat(x, 2, 0), 2, 1))[::2, ::2],
    "one row": lambda x: tw.broadcast_to(tw.asarray(x[:1]), x.shape),
    "one column": lambda x: tw.broadcast_to(tw.asarray(x[:, :1].copy()), x.shape),
}


@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
def test_layouts(rng, rung: str, layout_a: str, layout_b: str) -> None:
    for m, n, k in ((5, 70, 40), (130, 37, 96), (64, 96, 600)):
        x = LAYOUTS[layout_a](rng.uniform(-1, 1, (m, k)).astype(np.float32))
        y = LAYOUTS[layout_b](rng.uniform(-1, 1, (k, n)).astype(np.float32))
        a, b = arrays.array(x), arrays.array(y)
        off = np.abs(product(rung, x, y) - exact(a, b))
        assert (off <= allowed(rung, a, b)).all()


@pytest.mark.parametrize("batches", [((3,), (3,)), ((9,), ()), ((), (7,)), ((2, 1), (3,))])
def test_batches(rng, rung: str, batches, threads) -> None:
    a = rng.uniform(-1, 1, (*batches[0], 20, 70)).astype(np.float32)
    b = rng.uniform(-1, 1, (*batches[1], 70, 50)).astype(np.float32)
    for count in (1, 2):
        tw.set_num_threads(count)
        off = np.abs(product(rung, a, b) - exact(a, b))
        assert (off <= allowed(rung, a, b)).all()


@pytest.mark.parametrize(
    "shape", [(257, 300, 200), (1000, 40, 700), (40, 1000, 700), (130, 131, 2100)]
)
def test_threads_change_no_bit(rng, rung: str, shape, threads) -> None:
    m, n, k = shape
    a, b = (tw.asarray(rng.normal(size=s).astype(np.float32)) for s in ((m, k), (k, n)))
    results = []
    for count in (1, 2, 3):
        tw.set_num_threads(count)
        results.append(product(rung, a, b))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_more_lines_than_are_packed_at_once(rung: str) -> None:
    """Operands beyond the packing buffer (16 MiB) are packed in turns."""
    rng = np.random.default_rng(2)
    a, b = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((20000, 530), (530, 33)))
    off = np.abs(product(rung, a, b) - exact(a, b))
    assert (off <= allowed(rung, a, b)).all()


def test_gradients(rng) -> None:
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((33, 40), (40, 17)))
    x, y = (tw.asarray(v).requires_grad_() for v in (a, b))
    with tw.kernels.use(matmul="bf16x6"):
        (x @ y).sum().backward()
    np.testing.assert_allclose(arrays.array(x.grad), np.ones((33, 17)) @ b.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(arrays.array(y.grad), a.T @ np.ones((33, 17)), rtol=1e-5, atol=1e-5)


# ---- operands that the parts cannot carry ----

FLT_MAX = float(np.finfo(np.float32).max)
ROUNDS_UP = float(np.float32(3.3961775e38))  # to infinity as bfloat16
SIZE = (45, 52, 700)


def assert_same_class(rung: str, a: np.ndarray, b: np.ndarray, note: object = "") -> None:
    """NaN and infinities where the ieee kernel has them, the rest as close as the rung promises."""
    with np.errstate(all="ignore"):
        want, got = product("packed", a, b), product(rung, a, b)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want), str(note))
        odd = ~np.isfinite(want)
        np.testing.assert_array_equal(got[odd], want[odd], str(note))
        assert np.isfinite(got[~odd]).all(), note
        off = np.abs(got.astype(np.float64) - want.astype(np.float64))
        bound = 2 * allowed(rung, a, b) + arrays.smallest("float32") * a.shape[1]
    assert (off <= bound)[~odd].all(), note


def operands(rng) -> tuple[np.ndarray, np.ndarray]:
    m, n, k = SIZE
    return tuple(rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))


ODD = [np.inf, -np.inf, np.nan, FLT_MAX, -FLT_MAX, ROUNDS_UP, 1e36, 1e-36, 1e-38, 1e-42, 1.4e-45]


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_element(rng, rung: str, odd: float) -> None:
    for where in ((0, 0), (17, 333), (44, 699)):
        a, b = operands(rng)
        a[where] = odd
        assert_same_class(rung, a, b, where)
        b[where[::-1]] = odd
        assert_same_class(rung, a, b, where)
        assert_same_class(rung, b.T.copy(), a.T.copy(), where)


def test_one_odd_element_among_millions(rung: str) -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(size=(1500, 1400)).astype(np.float32)
    b = rng.normal(size=(1400, 40)).astype(np.float32)
    for odd in (np.nan, np.inf, FLT_MAX, 1e-40):
        x = a.copy()
        x[1499, 1399] = odd
        assert_same_class(rung, x, b, odd)


@pytest.mark.parametrize("odd", ODD)
def test_whole_rows_and_columns(rng, rung: str, odd: float) -> None:
    for row in (0, 44):
        a, b = operands(rng)
        a[row] = odd
        assert_same_class(rung, a, b)
        a, b = operands(rng)
        with np.errstate(over="ignore"):
            b[:, row] *= np.float32(odd)
        assert_same_class(rung, a, b)


@pytest.mark.parametrize(
    "exponent", [-145, -130, -126, -120, -110, -104, -103, -100, -60, 60, 100, 120, 126]
)
def test_scaled_operands(rng, rung: str, exponent: int) -> None:
    a, b = (np.clip(x, -1.9, 1.9) for x in operands(rng))
    with np.errstate(all="ignore"):
        scaled = np.ldexp(a, exponent)
        assert_same_class(rung, scaled, b, exponent)
        assert_same_class(rung, scaled, np.ldexp(b, -exponent), exponent)
        assert_same_class(rung, scaled, np.ldexp(b, exponent), exponent)
        assert_same_class(rung, a, np.ldexp(b, exponent), exponent)


def test_small_operands_keep_all_bits(rng) -> None:
    """A product of numbers whose low parts vanish in bfloat16 is as exact as any other."""
    a, b = operands(rng)
    for scale_a, scale_b in ((2.0**-115, 1), (2.0**-125, 2.0**60), (2.0**-60, 2.0**-60)):
        x, y = (a * scale_a).astype(np.float32), (b * scale_b).astype(np.float32)
        split, ieee = (tail_of(errors_of(rung, x, y)) for rung in ("bf16x6", "packed"))
        assert (split <= ieee).all()


def test_huge_and_tiny_in_one_operand(rng, rung: str) -> None:
    for huge, tiny in ((1e30, 1e-36), (1e37, 1e-43), (1, 1e-40), (1e38, 1e-10)):
        a, b = operands(rng)
        with np.errstate(over="ignore"):
            a[::2] *= np.float32(tiny)
            a[1::2] *= np.float32(huge)
        assert_same_class(rung, a, b, (huge, tiny))
        a[:, ::3] *= np.float32(tiny)
        assert_same_class(rung, a, b, (huge, tiny))


def test_sums_and_products_that_overflow(rung: str) -> None:
    m, n, k = SIZE
    for x, y in ((1e19, 1e18), (1e18, 3e17), (FLT_MAX, 1.0), (FLT_MAX, 1 / k), (1e30, -1e30)):
        a, b = np.full((m, k), x, np.float32), np.full((k, n), y, np.float32)
        assert_same_class(rung, a, b, (x, y))
    a, b = np.full((m, k), 3e38, np.float32), np.ones((k, n), np.float32)
    a[:, ::2] *= -1
    assert_same_class(rung, a, b, "alternating")


def test_zeros(rng, rung: str) -> None:
    a, b = operands(rng)
    assert not product(rung, np.zeros_like(a), b).any()
    assert not product(rung, a, -np.zeros_like(b)).any()
    a[::2] = 0
    a[:, 5:] = -0.0
    assert_same_class(rung, a, b)


# ---- the choice ----


def chosen(a: tw.Tensor, b: tw.Tensor) -> tuple[str, dict[str, tw.Candidate]]:
    with tw.explain() as report:
        a @ b
    return report[-1].kernel, {c.name: c for c in report[-1].candidates}


def test_names_and_classes() -> None:
    classes = {k["name"]: k["precision"] for k in tw.kernels.describe("matmul")}
    assert [classes[name] for name in SPLITS] == ["fp32", "high", "medium"]


def test_the_setting_decides_what_may_be_chosen(precision) -> None:
    a, b = tw.randn(512, 512), tw.randn(512, 512)
    for setting, names in (("highest", SPLITS[:1]), ("high", SPLITS[:2]), ("medium", SPLITS)):
        precision(setting)
        assert tw.get_float32_matmul_precision() == setting
        kernel, candidates = chosen(a, b)
        for name in SPLITS:
            text = f"less exact than the precision setting '{setting}' allows"
            assert candidates[name].reason == ("" if name in names else text)
        # The cheapest estimate of those that the setting allows.
        free = {c.name: c.cost_ns for c in candidates.values() if c.accepted and not c.reason}
        assert kernel == min(free, key=free.__getitem__)
    assert kernel == "bf16"


def test_forcing_overrules_the_setting() -> None:
    assert tw.get_float32_matmul_precision() == "highest"
    with tw.kernels.use(matmul="bf16"):
        assert chosen(tw.ones((64, 64)), tw.ones((64, 64)))[0] == "bf16"


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ValueError, match="'highest', 'high' or 'medium', got 'low'"):
        tw.set_float32_matmul_precision("low")
    assert tw.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize("other", [i for i in tw.kernels.isas() if i != "avx512"])
def test_other_instruction_sets_refuse(other: str, rung: str) -> None:
    refused = pytest.raises(ValueError, match=f"'{rung}' does not accept .*: use avx512")
    with refused, tw.kernels.use(isa=other, matmul=rung):
        tw.ones((4, 4)) @ tw.ones((4, 4))


def test_other_types_are_refused(rung: str) -> None:
    x = tw.ones((4, 4), dtype=tw.float64)
    with tw.kernels.use(matmul=rung), pytest.raises(ValueError, match="only float32"):
        x @ x


# ---- bfloat16 tensors ----


def halves(rng, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [arrays.to_bfloat16(rng.normal(size=s).astype(np.float32)) for s in shapes]


def assert_rounded_once(c: tw.Tensor, a: np.ndarray, b: np.ndarray) -> None:
    assert c.dtype == tw.bfloat16
    want = exact(a, b)
    off = np.abs(arrays.array(c).astype(np.float64) - want)
    summed = (a.shape[-1] + 1) * arrays.eps("float32") / 2 * magnitude(a, b)
    narrow = 0.51 * arrays.eps("bfloat16") * np.abs(want) + arrays.smallest("bfloat16")
    assert (off <= summed + narrow).all()


@pytest.mark.parametrize("shape", [(1, 1, 1), (33, 50, 70), (100, 129, 513), (64, 65, 2100)])
def test_bfloat16_is_summed_in_float32_and_rounded_once(rng, shape) -> None:
    m, n, k = shape
    a, b = halves(rng, (m, k), (k, n))
    x, y = arrays.tensor(a, "bfloat16"), arrays.tensor(b, "bfloat16")
    transposed = [arrays.tensor(v.T.copy(), "bfloat16").mT for v in (a, b)]
    for kernel in ("bf16", "packed", "naive"):
        with tw.kernels.use(matmul=kernel):
            assert_rounded_once(x @ y, a, b)
            assert_rounded_once(transposed[0] @ transposed[1], a, b)
    assert_rounded_once(x @ y, a, b)


def test_bfloat16_needs_no_copies_where_that_is_faster(rng) -> None:
    a, b = (arrays.tensor(v, "bfloat16") for v in halves(rng, (256, 256), (256, 256)))
    with tw.explain() as report:
        a @ b
    assert [(e.op, e.kernel) for e in report] == [("matmul", "bf16")]
    assert report[0].problem == "bfloat16 256x256x256"


def test_bfloat16_batches_and_gradients(rng) -> None:
    a, b = halves(rng, (3, 40, 64), (64, 50))
    x, y = (arrays.tensor(v, "bfloat16").requires_grad_() for v in (a, b))
    with tw.kernels.use(matmul="bf16"):
        c = x @ y
        assert_rounded_once(c, a, b)
        c.sum().backward()
    want = np.broadcast_to(b.sum(1), a.shape)
    off = np.abs(arrays.array(x.grad) - want)
    assert (off <= 0.51 * arrays.eps("bfloat16") * np.abs(want) + 1e-4).all()


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan, 3e38, 1e-38, 1e-40])
def test_bfloat16_of_hard_values(rng, odd: float) -> None:
    a, b = halves(rng, (20, 600), (600, 33))
    a[3] = arrays.to_bfloat16(np.float32(odd))
    x, y = arrays.tensor(a, "bfloat16"), arrays.tensor(b, "bfloat16")
    with np.errstate(all="ignore"), tw.kernels.use(matmul="bf16"):
        got = arrays.array(x @ y)
        with tw.kernels.use(matmul="packed"):
            want = arrays.array(x @ y)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])
        finite = np.isfinite(want)
        off = np.abs(got - want)[finite]
        bound = (arrays.eps("bfloat16") * np.abs(want) + 1e-6 * magnitude(a, b))[finite]
    assert (off <= bound + 600 * arrays.smallest("float32")).all()
