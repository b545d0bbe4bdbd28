"""Every rung of the GPU's ladder for matrix products: shapes, layouts, epilogues, refusals."""

from __future__ import annotations

import os
import subprocess
import sys

import emulator
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
    ("split_k", "float32"): SUMS_IN_FLOAT,
    ("split_k", "float64"): 1e-14,
    ("tensor", "bfloat16"): SUMS_IN_FLOAT,
    ("tensor", "float16"): SUMS_IN_FLOAT,
    ("hopper", "bfloat16"): SUMS_IN_FLOAT,
    ("hopper", "float16"): SUMS_IN_FLOAT,
    ("split", "float32"): SUMS_IN_FLOAT,
    ("tf32", "float32"): 2.0**-10,
    ("bf16x6", "float32"): SUMS_IN_FLOAT,
    ("bf16x3", "float32"): 2.0**-15,
    ("bf16", "float32"): 2.0**-7,
}
IS_HOPPER = tw.cuda.is_available() and tw.cuda.capability() == (9, 0)
RUNGS = [f"{rung}-{dtype}" for rung, dtype in BOUNDS if rung != "hopper" or IS_HOPPER]
only_hopper = pytest.mark.skipif(not IS_HOPPER, reason="for compute capability 9.0")


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
    """Shapes that a rung takes, by their terms."""
    least = {"split": 512, "split_k": 256, "hopper": 1}.get(rung, 0)
    return [(m, n, max(k, least)) for m, n, k in shapes]


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
    for m, n, k in fitting(name, SHAPES):
        (a, left), (b, right) = drawn(rng, (m, k), dtype), drawn(rng, (k, n), dtype)
        with tw.kernels.use(matmul=name):
            found = laid_out(left, left_layout) @ laid_out(right, right_layout)
        check(found, a @ b, np.abs(a) @ np.abs(b), rung)


@pytest.mark.parametrize("rung", RUNGS)
def test_batches(rung, rng):
    name, dtype = rung.split("-")
    if name == "split":
        shapes = [
            ((3, 1, 20, 516), (4, 516, 40)),
            ((5, 9, 513), (513, 8)),
            ((72, 520), (3, 520, 8)),
        ]
    elif name == "split_k":
        shapes = [
            ((3, 1, 20, 300), (4, 300, 40)),
            ((5, 9, 256), (256, 8)),
            ((72, 999), (3, 999, 8)),
        ]
    else:
        shapes = [((3, 1, 20, 24), (4, 24, 40)), ((5, 9, 16), (5, 16, 8)), ((5, 9, 16), (16, 8)),
                  ((72, 16), (3, 16, 8))]  # fmt: skip
    for left_shape, right_shape in shapes:
        (a, left), (b, right) = drawn(rng, left_shape, dtype), drawn(rng, right_shape, dtype)
        with tw.kernels.use(matmul=name):
            found = left @ right
        check(found, a @ b, np.abs(a) @ np.abs(b), rung)


@pytest.mark.tier("all")
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


@pytest.mark.tier("all")
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


@pytest.mark.parametrize(
    "rung", ["naive", "registers", "split", "tf32", "bf16x6", "bf16x3", "bf16"]
)
def test_infinities_and_nan_go_where_they_should(rung):
    side = 520 if rung == "split" else 70
    x = np.eye(side, dtype="float32")
    x[3, 3], x[5, 5], x[7, 7] = np.inf, np.nan, -np.inf
    ones = np.ones((side, 70), dtype="float32")
    with tw.kernels.use(matmul=rung):
        y = here(tw.asarray(x).to("cuda") @ tw.asarray(ones).to("cuda"))
    assert np.isposinf(y[3]).all()
    assert np.isneginf(y[7]).all()
    assert np.isnan(y[5]).all()
    rest = [i for i in range(70) if i not in (3, 5, 7)]
    assert (y[rest] == 1).all()


def error_of(rung: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    exact, scale = a.astype("float64") @ b, np.abs(a).astype("float64") @ np.abs(b)
    with tw.kernels.use(matmul=rung):
        found = here(tw.asarray(a).to("cuda") @ tw.asarray(b).to("cuda"))
    return np.abs(found - exact) / scale


@pytest.mark.parametrize("terms", [512, 777, 1500])
def test_split_is_as_exact_as_registers(terms, rng):
    """Root of the mean square, and largest error, of normal, positive and uneven numbers."""
    for draw in (rng.standard_normal, rng.random, lambda s: rng.lognormal(0, 2, s)):
        a, b = draw((64, terms)).astype("float32"), draw((terms, 48)).astype("float32")
        ours, theirs = error_of("split", a, b), error_of("registers", a, b)
        assert (ours**2).mean() ** 0.5 <= 1.2 * (theirs**2).mean() ** 0.5
        assert ours.max() <= 1.5 * theirs.max()


def test_split_of_equal_numbers(rng):
    """Errors of parts do not even out there: each is at most 2^-22."""
    for terms in (512, 700, 1000):
        a, b = (np.full(s, rng.random() + 0.5, "float32") for s in ((3, terms), (terms, 5)))
        assert error_of("split", a, b).max() <= 2.0**-21


RANGES = {
    "rows and columns of all magnitudes": lambda rng, a, b: (
        np.ldexp(a, rng.integers(-50, 50, (len(a), 1))),
        np.ldexp(b, rng.integers(-50, 50, b.shape[1])),
    ),
    "terms of all magnitudes": lambda rng, a, b: (
        np.ldexp(a, e := rng.integers(-40, 40, len(b))),
        np.ldexp(b, -e[:, None]),
    ),
    "denormal numbers": lambda rng, a, b: (np.ldexp(a, -140), np.ldexp(b, 100)),
    "rows near the largest number": lambda rng, a, b: (np.ldexp(a, 120), np.ldexp(b, -110)),
    "one small number in a row": lambda rng, a, b: (
        np.where(np.arange(len(b)) == 3, 1e-20, a),
        np.where(np.arange(len(b))[:, None] == 3, 1e20, 0 * b),
    ),
    "zeros": lambda rng, a, b: (a * (rng.random(a.shape) < 0.1), b * (rng.random(b.shape) < 0.1)),
}  # fmt: skip


@pytest.mark.parametrize("numbers", RANGES)
@pytest.mark.parametrize("rung", ["split", "registers"])
def test_float32_keeps_its_range(rung, numbers, rng):
    a = rng.standard_normal((150, 520)).astype("float32")
    b = rng.standard_normal((520, 140)).astype("float32")
    a, b = (x.astype("float32") for x in RANGES[numbers](rng, a, b))
    exact, scale = a.astype("float64") @ b, np.abs(a).astype("float64") @ np.abs(b)
    with tw.kernels.use(matmul=rung):
        found = here(tw.asarray(a).to("cuda") @ tw.asarray(b).to("cuda"))
    assert (np.abs(found - exact) <= 1e-6 * scale + 1e-44).all()


def test_split_leaves_tiles_with_exceptions_to_registers(rng):
    """Their bits are what registers gives; other tiles' are not touched by it."""
    a = rng.standard_normal((300, 512)).astype("float32")
    b = rng.standard_normal((512, 280)).astype("float32")
    plain = {}
    for rung in ("split", "registers"):
        with tw.kernels.use(matmul=rung):
            plain[rung] = here(tw.asarray(a).to("cuda") @ tw.asarray(b).to("cuda"))
    assert (plain["split"] != plain["registers"]).any()
    a[140, 5], b[7, 270] = np.inf, 1e-30
    with tw.kernels.use(matmul="registers"):
        expected = here(tw.asarray(a).to("cuda") @ tw.asarray(b).to("cuda"))
    left = [(slice(128, 256), slice(None)), (slice(None), slice(256, None))]
    for place in left:
        plain["split"][place] = expected[place]
    with tw.kernels.use(matmul="split"):
        found = here(tw.asarray(a).to("cuda") @ tw.asarray(b).to("cuda"))
    np.testing.assert_array_equal(found, plain["split"])


def test_rungs_say_why_they_refuse():
    x = tw.zeros((4, 4), dtype=tw.float64, device="cuda")
    halves, floats = "for bfloat16 and float16", "for float32"
    for rung, reason in {"tensor": halves, "hopper": halves, "tf32": floats, "split": floats,
                         "bf16x6": floats}.items():  # fmt: skip
        with tw.kernels.use(matmul=rung), pytest.raises(ValueError, match=reason):
            x @ x


# On a GPU of 8.0: the same rungs but hopper, which says why not; split on a warp's instructions.
OLDER = """
import numpy as np, tilewright as tw
rng = np.random.default_rng(0)
for shape in ((33, 50, 530), (200, 100, 600)):
    m, n, k = shape
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    bias = rng.standard_normal(n)
    for rung, dtype, bound in (("split", "float32", 1e-6), ("tensor", "float16", 1e-2)):
        x, y, z = (tw.asarray(v).astype(dtype).to("cuda") for v in (a, b, bias))
        transposed = x.T.copy().T, y.T.copy().T
        with tw.kernels.use(matmul=rung):
            for left, right in ((x, y), transposed):
                c = np.asarray(tw.addmm(z, left, right).to("cpu").astype("float64"))
                assert (abs(c - a @ b - bias) <= bound * (abs(a) @ abs(b) + abs(bias))).all()
halves = x.astype("bfloat16")
assert (halves @ y.astype("bfloat16")).shape == (m, n)
with tw.kernels.use(matmul="hopper"):
    try:
        halves @ y.astype("bfloat16")
    except ValueError as error:
        print(error)
"""


@pytest.mark.skipif(not emulator.is_wanted(), reason="the emulator is not in use")
def test_a_gpu_before_hopper():
    environment = {**os.environ, "TW_EMULATED_CAPABILITY": "80"}
    done = subprocess.run(
        [sys.executable, "-c", OLDER], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "for compute capability 9.0; this GPU has 8.0" in done.stdout


@pytest.mark.skipif(not emulator.is_wanted(), reason="other GPUs choose otherwise")
def test_the_choice_follows_shape_and_type():
    """On the emulator's GPU of 9.0 with four multiprocessors."""
    chosen = {
        ("bfloat16", 256, 256, 128): {"hopper"},
        ("float16", 256, 256, 127): {"tensor"},  # copies for hopper would cost more
        ("float32", 256, 256, 512): {"split"},
        ("float32", 64, 64, 512): {"split_k"},
        ("float32", 16, 16, 16): {"naive", "tiled", "registers"},
        ("float64", 128, 128, 32): {"registers"},
    }
    for (dtype, m, n, k), rungs in chosen.items():
        x = tw.zeros((m, k), dtype=getattr(tw, dtype), device="cuda")
        y = tw.zeros((k, n), dtype=getattr(tw, dtype), device="cuda")
        with tw.explain() as report:
            x @ y
        assert report.entries[-1].kernel in rungs, (dtype, m, n, k)


CLASSES = dict.fromkeys(("naive", "tiled", "registers", "tensor", "hopper"), "ieee") | {
    "split": "fp32", "bf16x6": "fp32", "bf16x3": "high", "bf16": "medium", "tf32": "medium",
}  # fmt: skip


@only_hopper
def test_hopper_says_what_it_does_not_take():
    def of(rows: int, columns: int) -> tw.Tensor:
        return tw.ones((rows, columns), dtype=tw.bfloat16, device="cuda")

    refused = [
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


@only_hopper
def test_hopper_copies_what_its_engine_cannot_take(rng):
    """Rows that are no multiples of 16 bytes apart, repeat, go backwards, or begin elsewhere."""
    (a, left), (b, right) = drawn(rng, (2, 37, 75), "bfloat16"), drawn(rng, (2, 75, 43), "bfloat16")
    views = [
        lambda x: x, lambda x: x[:, ::2, ::3], lambda x: x[..., 3:19, 1:17],
        lambda x: x[:, 5:6], lambda x: x[..., 7:8], lambda x: x[1:, :8, 1:9], lambda x: x[0],
    ]  # fmt: skip
    for of_left in views:
        x, y = of_left(a), of_left(left)
        for of_right in (
            lambda z, k: z[:, :k],
            lambda z, k: z[1:, -k:, 1:9],
            lambda z, k: z[0, :k],
        ):
            z, w = (of_right(each, x.shape[-1]) for each in (b, right))
            with tw.kernels.use(matmul="hopper"):
                found = y @ w
            check(found, x @ z, np.abs(x) @ np.abs(z), "hopper-bfloat16")
    repeated = tw.ones((1, 40), dtype=tw.bfloat16, device="cuda").expand(16, 40)
    with tw.kernels.use(matmul="hopper"):
        assert (here(repeated @ repeated.T) == 40).all()


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
