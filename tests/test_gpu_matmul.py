"""Every rung of the GPU's ladder for matrix products: shapes, layouts, epilogues, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

pytestmark = pytest.mark.skipif(
    not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"
)

# Largest error of a sum in units of |a| |b|, and of its rounding to the type, by rung and type.
SUMS_IN_FLOAT = 1e-6
ROUNDING = {"float32": 0, "float64": 0, "bfloat16": 2.0**-8, "float16": 2.0**-11}
BOUNDS = {
    ("naive", "float32"): SUMS_IN_FLOAT,
    ("tiled", "float32"): SUMS_IN_FLOAT,
    ("registers", "float32"): SUMS_IN_FLOAT,
    ("registers", "float64"): 1e-14,
    ("registers", "bfloat16"): SUMS_IN_FLOAT,
    ("tensor", "bfloat16"): SUMS_IN_FLOAT,
    ("tensor", "float16"): SUMS_IN_FLOAT,
    ("hopper", "bfloat16"): SUMS_IN_FLOAT,
    ("hopper", "float16"): SUMS_IN_FLOAT,
    ("tf32", "float32"): 2.0**-10,
    ("bf16x6", "float32"): SUMS_IN_FLOAT,
    ("bf16x3", "float32"): 2.0**-15,
    ("bf16", "float32"): 2.0**-7,
}
RUNGS = [f"{rung}-{dtype}" for rung, dtype in BOUNDS]


def drawn(rng, shape, dtype: str) -> tuple[np.ndarray, tw.Tensor]:
    """What a type can hold of random numbers, in float64 and on the GPU."""
    x = tw.asarray(rng.standard_normal(shape)).astype(dtype)
    return np.asarray(x.astype(tw.float64)), x.to("cuda")


def here(x: tw.Tensor) -> np.ndarray:
    return np.asarray(x.to("cpu").astype(tw.float64))


def check(found: tw.Tensor, exact: np.ndarray, scale: np.ndarray, rung: str) -> None:
    name, dtype = rung.split("-")
    assert str(found.dtype).endswith(dtype)
    bound = BOUNDS[name, dtype] * scale + ROUNDING[dtype] * np.abs(exact) + 1e-30
    if dtype == "float16":
        bound = bound + 2.0**-24
    error = np.abs(here(found) - exact)
    assert (error <= bound).all(), (rung, exact.shape, (error / bound).max())


def fitting(rung: str, shapes: list) -> list:
    """Shapes that a rung takes: rows of hopper's operands are multiples of 16 bytes."""
    if not rung.startswith("hopper"):
        return shapes
    return [tuple(max(8, -(-size // 8) * 8) for size in shape) for shape in shapes]


def laid_out(x: tw.Tensor, layout: str) -> tw.Tensor:
    """The same numbers otherwise in memory."""
    rows, columns = x.shape[-2:]
    if layout == "transposed":
        return x.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    if layout == "offset":  # no row is on 16 bytes
        wide = tw.zeros((*x.shape[:-1], columns + 3), dtype=x.dtype, device="cuda")
        wide[..., 1 : columns + 1] = x
        return wide[..., 1 : columns + 1]
    if layout == "strided":
        wide = tw.zeros((*x.shape[:-2], 2 * rows, 3 * columns), dtype=x.dtype, device="cuda")
        wide[..., ::2, ::3] = x
        return wide[..., ::2, ::3]
    return x


# Odd ones, tall, wide, whole tiles, one and none of a thing, more terms than tiles.
SHAPES = [(1, 1, 1), (5, 7, 3), (33, 65, 17), (130, 72, 40), (64, 1, 100), (1, 200, 64), (3, 4, 0)]


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("layouts", ["plain plain", "transposed plain", "plain transposed",
                                     "offset strided", "strided offset"])  # fmt: skip
def test_shapes_and_layouts(rung, layouts, rng):
    name, dtype = rung.split("-")
    left_layout, right_layout = layouts.split()
    if name == "hopper" and "strided" in layouts:
        pytest.skip("refused: tested below")
    for m, n, k in fitting(name, SHAPES):
        (a, left), (b, right) = drawn(rng, (m, k), dtype), drawn(rng, (k, n), dtype)
        with tw.kernels.use(matmul=name):
            found = laid_out(left, left_layout) @ laid_out(right, right_layout)
        check(found, a @ b, np.abs(a) @ np.abs(b), rung)


@pytest.mark.parametrize("rung", RUNGS)
def test_batches(rung, rng):
    name, dtype = rung.split("-")
    for left_shape, right_shape in [((3, 1, 20, 24), (4, 24, 40)), ((5, 9, 16), (5, 16, 8)),
                                    ((5, 9, 16), (16, 8)), ((72, 16), (3, 16, 8))]:  # fmt: skip
        (a, left), (b, right) = drawn(rng, left_shape, dtype), drawn(rng, right_shape, dtype)
        with tw.kernels.use(matmul=name):
            found = left @ right
        check(found, a @ b, np.abs(a) @ np.abs(b), rung)


@pytest.mark.parametrize("rung", RUNGS)
def test_epilogues(rung, rng):
    name, dtype = rung.split("-")
    for m, n, k in fitting(name, [(9, 12, 30), (70, 66, 64), (20, 24, 1100)]):
        (x, left), (w, weight) = drawn(rng, (m, k), dtype), drawn(rng, (n, k), dtype)
        (bias, there), (c, into) = drawn(rng, (n,), dtype), drawn(rng, (m, n), dtype)
        scale = np.abs(x) @ np.abs(w.T)
        with tw.kernels.use(matmul=name):
            y = tw.linear(left, weight, there)
            z = tw.linear(left, weight, there, activation="relu")
            s = into.copy().addmm_(left, weight.T, beta=2.0, alpha=-0.5)
            t = tw.addmm(there, left, weight.T, alpha=0.25)
        check(y, x @ w.T + bias, scale + np.abs(bias), rung)
        check(z, np.maximum(x @ w.T + bias, 0), scale + np.abs(bias), rung)
        check(t, bias + 0.25 * (x @ w.T), scale + np.abs(bias), rung)
        check(s, 2 * c - 0.5 * (x @ w.T), scale + 2 * np.abs(c), rung)


@pytest.mark.parametrize("rung", RUNGS)
def test_many_terms_and_many_tiles(rung, rng):
    name, dtype = rung.split("-")
    for m, n, k in fitting(name, [(20, 30, 2100), (150, 16, 1024), (300, 280, 64)]):
        (a, left), (b, right) = drawn(rng, (m, k), dtype), drawn(rng, (k, n), dtype)
        with tw.kernels.use(matmul=name):
            found, again = left @ right, left @ right
        check(found, a @ b, np.abs(a) @ np.abs(b), rung)
        np.testing.assert_array_equal(here(found), here(again))


@pytest.mark.parametrize("rung", ["tensor", "tf32"])
def test_sums_of_pieces_are_joined_in_one_order(rung, rng):
    """k is cut by the shape alone: the pieces, and their sums' order, are the same on every GPU."""
    dtype = "float32" if rung == "tf32" else "bfloat16"
    (_, left), (_, right) = drawn(rng, (16, 4096), dtype), drawn(rng, (4096, 16), dtype)
    with tw.kernels.use(matmul=rung):
        whole = here(left.astype("float32") @ right.astype("float32")
                     if rung == "tf32" else left @ right)  # fmt: skip
        parts = [left[:, i : i + 512] @ right[i : i + 512] for i in range(0, 4096, 512)]
    if rung == "tf32":  # of 512 terms each, as pieces_of cuts them
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        np.testing.assert_array_equal(whole, here(total))
    else:
        np.testing.assert_allclose(whole, sum(map(here, parts)), rtol=0.02, atol=1)


@pytest.mark.parametrize("rung", ["naive", "registers", "tf32", "bf16x6", "bf16x3", "bf16"])
def test_infinities_and_nan_go_where_they_should(rung):
    x = np.eye(70, dtype="float32")
    x[3, 3], x[5, 5], x[7, 7] = np.inf, np.nan, -np.inf
    ones = np.ones((70, 70), dtype="float32")
    with tw.kernels.use(matmul=rung):
        y = here(tw.asarray(x).to("cuda") @ tw.asarray(ones).to("cuda"))
    assert np.isposinf(y[3]).all()
    assert np.isneginf(y[7]).all()
    assert np.isnan(y[5]).all()
    rest = [i for i in range(70) if i not in (3, 5, 7)]
    assert (y[rest] == 1).all()


def test_rungs_say_why_they_refuse():
    x = tw.zeros((4, 4), dtype=tw.float64, device="cuda")
    for rung, reason in [("tensor", "for bfloat16 and float16"), ("tf32", "for float32"),
                         ("bf16x6", "for float32"), ("hopper", "for bfloat16 and float16")]:  # fmt: skip
        with tw.kernels.use(matmul=rung), pytest.raises(ValueError, match=reason):
            x @ x


CLASSES = dict.fromkeys(("naive", "tiled", "registers", "tensor", "hopper"), "ieee") | {
    "bf16x6": "fp32", "bf16x3": "high", "bf16": "medium", "tf32": "medium",
}  # fmt: skip


def test_hopper_says_what_its_copy_engine_cannot_take():
    def of(rows: int, columns: int) -> tw.Tensor:
        return tw.ones((rows, columns), dtype=tw.bfloat16, device="cuda")

    refused = [
        (of(8, 12), of(12, 8), "not a multiple of 16 bytes apart"),
        (of(8, 16)[:, ::2], of(8, 8), "no axis whose elements lie together"),
        (of(8, 8), of(1, 8).expand(8, 8), "rows repeat or go backwards"),
        (of(8, 0), of(0, 8), "nothing to add up"),
        (of(8, 8).astype(tw.float32), of(8, 8).astype(tw.float32), "for bfloat16 and float16"),
    ]
    for left, right, reason in refused:
        with tw.kernels.use(matmul="hopper"), pytest.raises(ValueError, match=reason):
            left @ right
        with tw.explain() as report:
            y = left @ right
        assert report.entries[-1].kernel != "hopper"
        assert (here(y) == left.shape[1]).all()


def test_hopper_goes_elsewhere_with_views_that_begin_off_16_bytes(rng):
    (a, left), (b, right) = drawn(rng, (16, 24), "bfloat16"), drawn(rng, (16, 16), "bfloat16")
    with tw.kernels.use(matmul="hopper"):
        found = left[:, 3:19] @ right
    check(found, a[:, 3:19] @ b, np.abs(a[:, 3:19]) @ np.abs(b), "hopper-bfloat16")


def test_precision_decides_what_is_free_to_choose():
    x = tw.zeros((256, 256), device="cuda")
    allowed = {"highest": {"ieee", "fp32"}, "high": {"ieee", "fp32", "high"},
               "medium": {"ieee", "fp32", "high", "medium"}}  # fmt: skip
    for precision, classes in allowed.items():
        tw.set_float32_matmul_precision(precision)
        try:
            with tw.explain() as report:
                x @ x
        finally:
            tw.set_float32_matmul_precision("highest")
        assert CLASSES[report.entries[-1].kernel] in classes, precision
