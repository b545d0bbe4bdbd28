"""Attention, recurrent layers, images, losses and draws on the GPU, at sizes of many blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.skipif(not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"),
]


def here(x: tw.Tensor) -> np.ndarray:
    return np.asarray(x.detach().to("cpu").astype(tw.float64))


def results(
    device: str, dtype: tw.dtype, arrays: list[np.ndarray], function: Callable[..., tw.Tensor]
) -> list[np.ndarray]:
    """The value, and the gradients of a weighted sum of it by all arrays."""
    leaves = [tw.asarray(a).astype(dtype).to(device).requires_grad_() for a in arrays]
    y = function(*leaves)
    weights = tw.asarray(np.cos(np.arange(y.size)).reshape(y.shape)).astype(dtype).to(device)
    (y * weights).sum().backward()
    return [here(x) for x in (y, *(leaf.grad for leaf in leaves))]


def assert_near(found: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> None:
    for x, y in zip(found, expected, strict=True):
        scale = max(1.0, float(np.abs(y).max(initial=0)))
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * scale)


def launches(function: Callable[[], object]) -> int:
    """Of the second call: the first may have more to do."""
    function()
    before = tw._core._gpu_launches(0)
    function()
    return tw._core._gpu_launches(0) - before


# ---- attention ----

TOLERANCES = {tw.float64: 1e-12, tw.float32: 1e-5, tw.float16: 4e-3, tw.bfloat16: 4e-2}
# batch, heads, heads of keys, queries, keys, size, size of values
ATTENTIONS = [(2, 2, 2, 70, 130, 16, 8), (1, 4, 2, 65, 64, 72, 150), (1, 2, 1, 3, 200, 33, 65)]
MASKS = ["none", "causal", "bool", "added", "far"]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("sizes", ATTENTIONS)
def test_attention_of_many_tiles(sizes, mask, rng):
    batch, heads, groups, queries, keys, size, value_size = sizes
    arrays = [
        rng.standard_normal((batch, *shape))
        for shape in ((heads, queries, size), (groups, keys, size), (groups, keys, value_size))
    ]
    masks = {
        "bool": rng.random((queries, keys)) < 0.7,
        "added": rng.standard_normal((batch, 1, queries, keys)),
        "far": np.where(rng.random((queries, 1)) < 0.5, -1e30, 0.0),  # whole rows
    }

    def attention(*qkv: tw.Tensor) -> tw.Tensor:
        given = tw.asarray(masks[mask]).to(qkv[0].device) if mask in masks else None
        return tw.scaled_dot_product_attention(
            *qkv, attn_mask=given, is_causal=mask == "causal", enable_gqa=heads != groups
        )

    with tw.kernels.use(attention="body", attention_backward="body"):
        expected = results("cpu", tw.float64, arrays, attention)
    for dtype, tolerance in TOLERANCES.items():
        assert_near(results("cuda", dtype, arrays, attention), expected, tolerance)


# Of the tensor cores' kernels: queries, keys, size, size of values, mask.
ALIGNED = [
    (70, 130, 16, 8, "bool"), (200, 200, 64, 64, "causal"), (130, 70, 40, 200, "none"),
    (70, 130, 128, 128, "added"), (130, 200, 200, 72, "causal"), (65, 130, 24, 16, "far"),
    (3, 0, 8, 8, "none"), (150, 40, 8, 8, "causal"),
]  # fmt: skip
RUNGS = ["tensor64", "tensor128"]


def transposed(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)


def attention_and_roundings(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, g: np.ndarray, mask: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """In float64 the value and the gradients of q, k and v, and how far roundings can take each.

    Rounded are weights, the scores' gradients and results; in largest errors of one rounding.
    """
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ transposed(k) * scale + mask
    p = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-1e300))
    p /= p.sum(axis=-1, keepdims=True)
    y, size = p @ v, np.abs
    y_off = p @ size(v) + size(y)
    dp = g @ transposed(v)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    # The sum in it is that of the rounded results.
    ds_off = size(ds) + p * (size(g) * y_off).sum(axis=-1, keepdims=True)
    dq, dk, dv = ds @ k * scale, transposed(ds) @ q * scale, transposed(p) @ g
    return [
        (y, y_off),
        (dq, ds_off @ size(k) * scale + size(dq)),
        (dk, transposed(ds_off) @ size(q) * scale + size(dk)),
        (dv, transposed(p) @ size(g) + size(dv)),
    ]


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("sizes", ALIGNED, ids=lambda s: "-".join(map(str, s)))
def test_attention_on_tensor_cores_is_off_by_its_roundings(sizes, rung, rng):
    queries, keys, size, value_size, kind = sizes
    if kind in ("bool", "added", "far") and rung == "tensor128":
        return  # it refuses masks
    shapes = ((queries, size), (keys, size), (keys, value_size), (queries, value_size))
    arrays = [rng.standard_normal((2, *shape)) for shape in shapes]
    given = {
        "bool": rng.random((queries, keys)) < 0.7,
        "added": rng.standard_normal((queries, keys)).astype(np.float32),
        "far": np.float32(-1e30) * (rng.random((queries, 1)) < 0.5) + np.zeros((1, keys), "f4"),
    }.get(kind)
    seen = given if kind == "bool" else np.tri(queries, keys, dtype=bool)
    added = given if kind == "added" else np.where(seen, 0, -np.inf)
    # A far row has the same score for all keys, since float32 rounds the rest away.
    mask = np.zeros((queries, keys)) if kind == "none" else added
    for dtype, unit in ((tw.bfloat16, 2**-8), (tw.float16, 2**-11)):
        q, k, v, g = (here(tw.asarray(a).astype(dtype)) for a in arrays)
        *leaves, gradient = (tw.asarray(x).astype(dtype).to("cuda") for x in (q, k, v, g))
        for leaf in leaves:
            leaf.requires_grad_()
        with tw.kernels.use(attention=rung, attention_backward="tensor"):
            y = tw.scaled_dot_product_attention(
                *leaves,
                attn_mask=None if given is None else tw.asarray(given).to("cuda"),
                is_causal=kind == "causal",
            )
            found = [here(x) for x in (y, *tw.autograd.grad(y, leaves, gradient))]
        if kind == "far":
            far = given[:, :1] != 0
            q, mask = np.where(far, 0, q), np.zeros((queries, keys))
        for i, (x, (exact, off)) in enumerate(
            zip(found, attention_and_roundings(q, k, v, g, mask), strict=True)
        ):
            if kind == "far" and i == 2:
                continue  # far rows' queries are in this gradient as they are
            # A little more for sums in float32, and because half has no digits below 2^-24.
            excess = np.abs(x - exact) - (1.02 * unit * off + 1e-5)
            assert excess.max(initial=-1) <= 0


@pytest.mark.parametrize("rung", RUNGS)
def test_attention_on_tensor_cores_refuses_what_does_not_suit(rung):
    def attend(dtype: tw.dtype, shape: tuple[int, ...], **options: object) -> None:
        x = tw.ones(shape, dtype=dtype, device="cuda")
        tw.scaled_dot_product_attention(x, x, x, **options)

    with tw.kernels.use(attention=rung):
        for reason, dtype, shape, options in (
            ("for bfloat16 and float16", tw.float32, (4, 8), {}),
            ("more than 256 columns", tw.bfloat16, (4, 264), {}),
            ("not a multiple of 16 bytes apart", tw.bfloat16, (4, 12), {}),
            ("the scale is not positive", tw.bfloat16, (4, 8), {"scale": -1.0}),
        ):
            with pytest.raises(ValueError, match=reason):
                attend(dtype, shape, **options)


def test_attention_of_views_that_suit_no_tensor_core(rng):
    """Rows that begin off 16 bytes, and columns of a wider matrix: the same values."""
    wide = tw.asarray(rng.standard_normal((2, 70, 48))).astype(tw.bfloat16).to("cuda")
    for view in (wide[..., 1:17], wide[..., 8:24], wide[..., :32:2], wide[:, ::-1, :16]):
        plain = view.copy()
        y = tw.scaled_dot_product_attention(view, view, view, is_causal=True)
        z = tw.scaled_dot_product_attention(plain, plain, plain, is_causal=True)
        assert np.abs(here(y) - here(z)).max() <= 2**-6


@pytest.mark.parametrize("dtype", [tw.float32, tw.bfloat16])
def test_attention_to_nothing_is_zero(dtype, rng):
    arrays = [rng.standard_normal((2, 70, 8)) for _ in range(3)]
    seen = rng.random((70, 70)) < 0.5
    seen[[0, 65]] = False

    def attention(*qkv: tw.Tensor) -> tw.Tensor:
        return tw.scaled_dot_product_attention(*qkv, attn_mask=tw.asarray(seen).to(qkv[0].device))

    y, dq, *_ = results("cuda", dtype, arrays, attention)
    assert (y[:, [0, 65]] == 0).all()
    assert (dq[:, [0, 65]] == 0).all()
    assert np.isfinite(y).all()


@pytest.mark.parametrize("dtype", [tw.float32, tw.bfloat16])
def test_attention_has_the_same_bits_every_time(dtype, rng):
    arrays = [rng.standard_normal((2, 300, 16)) for _ in range(3)]
    first, second = (
        results("cuda", dtype, arrays, tw.scaled_dot_product_attention) for _ in range(2)
    )
    for x, y in zip(first, second, strict=True):
        np.testing.assert_array_equal(x, y)


def test_attention_has_no_matrix_of_scores():
    x = tw.ones((8, 1024, 8), device="cuda").requires_grad_()
    tw.cuda.empty_cache()
    before = tw.cuda.memory_reserved()
    tw.scaled_dot_product_attention(x, x, x, is_causal=True).sum().backward()
    assert tw.cuda.memory_reserved() - before < 8 * 1024 * 1024 * 4


# ---- recurrent layers ----

CELLS = {"RNN": 1, "LSTM": 4, "GRU": 3}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_recurrent_layers_of_many_blocks(cell, reverse, rng):
    steps, batch, size, hidden = 4, 35, 5, 40
    gates = CELLS[cell] * hidden
    shapes = [(steps, batch, size), (batch, hidden), (batch, hidden)]
    if cell != "LSTM":
        shapes = shapes[:2]
    shapes += [(gates, size), (gates, hidden), (gates,), (gates,)]
    arrays = [rng.standard_normal(shape) * 0.4 for shape in shapes]
    layer = getattr(tw, f"{cell.lower()}_layer")

    def last_and_all(*leaves: tw.Tensor) -> tw.Tensor:
        made = layer(*leaves, reverse=reverse)
        return tw.concat([made[0].reshape((-1,)), *(m.reshape((-1,)) for m in made[1:])])

    expected = results("cpu", tw.float64, arrays, last_and_all)
    assert_near(results("cuda", tw.float64, arrays, last_and_all), expected, 1e-12)
    assert_near(results("cuda", tw.float32, arrays, last_and_all), expected, 1e-4)


# ---- launches ----


def test_launches_of_each_family():
    """Counted, so that nothing is split and nothing runs that was not asked for."""
    x = tw.ones((4, 6, 64), device="cuda")
    rows, targets = tw.ones((32, 10), device="cuda"), tw.zeros((32,), dtype=tw.int64, device="cuda")
    many, firsts = tw.ones((300, 600), device="cuda"), tw.zeros((300,), tw.int64, device="cuda")
    w, b = tw.ones((64,), device="cuda"), tw.ones((64,), device="cuda")
    image = tw.ones((2, 4, 8, 8), device="cuda")
    steps = tw.ones((5, 3, 16), device="cuda")
    state, weight = tw.ones((3, 16), device="cuda"), tw.ones((64, 16), device="cuda")
    functional = nn.functional
    counts = {
        "softmax": (1, lambda: tw.softmax(x)),
        "log_softmax": (1, lambda: tw.log_softmax(x, axis=1)),
        "cross_entropy": (1, lambda: tw.cross_entropy(rows, targets)),
        "its sum": (1, lambda: tw.cross_entropy(rows, targets, reduction="sum")),
        "of many blocks": (1, lambda: tw.cross_entropy(many, firsts)),
        "layer_norm": (1, lambda: functional.layer_norm(x, (64,), w, b)),
        "rms_norm": (1, lambda: functional.rms_norm(x, (64,), w)),
        "group_norm": (1, lambda: functional.group_norm(image, 2)),
        "attention": (1, lambda: tw.scaled_dot_product_attention(x, x, x)),
        "causal": (1, lambda: tw.scaled_dot_product_attention(x, x, x, is_causal=True)),
        "resampling, its bands first": (2, lambda: tw.resample(image, (16, 16), "bilinear")),
        "the product of the inputs, and a launch a step": (
            1 + 5,
            lambda: tw.lstm_layer(steps, state, state, weight, weight),
        ),
    }
    found = {name: launches(call) for name, (_, call) in counts.items()}
    assert found == {name: count for name, (count, _) in counts.items()}


def test_launches_of_gradients():
    """Those of the ops alone, by a pass that begins with a gradient that is there."""
    w = tw.ones((64,), device="cuda").requires_grad_()
    x = tw.ones((4, 6, 64), device="cuda").requires_grad_()
    g = tw.ones((4, 6, 64), device="cuda")
    steps = tw.ones((5, 3, 64), device="cuda").requires_grad_()
    state, weight = tw.ones((3, 16), device="cuda"), tw.ones((64, 16), device="cuda")

    def backward(y: tw.Tensor, gradient: tw.Tensor) -> int:
        before = tw._core._gpu_launches(0)
        tw.autograd.grad(y, [x], gradient)
        return tw._core._gpu_launches(0) - before

    assert backward(tw.softmax(x), g) == 1
    assert backward(nn.functional.layer_norm(x, (64,), w.detach()), g) == 1
    targets = tw.zeros((4 * 6,), dtype=tw.int64, device="cuda")
    one = tw.ones((), device="cuda")
    loss = tw.cross_entropy(x.reshape((-1, 64)), targets)
    assert backward(loss, one) == 1
    assert backward(tw.scaled_dot_product_attention(x, x.detach(), x.detach()), g) == 2
    y = tw.lstm_layer(steps, state, state, tw.eye(64, device="cuda"), weight)[0]
    before = tw._core._gpu_launches(0)
    tw.autograd.grad(y, [steps], tw.ones(y.shape, device="cuda"))
    # ones; the steps and the first states'; the product of the inputs
    assert tw._core._gpu_launches(0) - before == 1 + (5 + 1) + 1


STATES = {"sgd_step": 0, "adam_step": 2, "lion_step": 1, "rmsprop_step": 1, "rprop_step": 2}


@pytest.mark.parametrize("step", STATES)
def test_a_step_of_an_optimizer_is_one_launch_for_all_parameters(step):
    states = STATES[step]

    def made() -> list[tw.Tensor]:
        return [tw.ones((n, 3), device="cuda") for n in (1, 20, 7)]

    params, grads, more = made(), made(), [made() for _ in range(states)]
    function = getattr(tw, step)
    assert launches(lambda: function(params, grads, *more, step=1, lr=0.1)) == 1


# ---- images, sequences of labels ----

MODES = ["nearest", "nearest-exact", "bilinear", "bicubic"]


@pytest.mark.parametrize("sizes", [((7, 9), (20, 33)), ((31, 24), (9, 11)), ((5, 6), (5, 6))])
@pytest.mark.parametrize("mode", MODES)
def test_resampling_by_every_mode(mode, sizes, rng):
    x = rng.standard_normal((2, 3, *sizes[0]))
    smooth = mode in ("bilinear", "bicubic")
    for options in ({}, {"align_corners": True}, {"antialias": True})[: 3 if smooth else 1]:

        def resample(leaf: tw.Tensor, options: dict[str, bool] = options) -> tw.Tensor:
            return nn.functional.interpolate(leaf, size=sizes[1], mode=mode, **options)

        expected = results("cpu", tw.float64, [x], resample)
        assert_near(results("cuda", tw.float64, [x], resample), expected, 1e-12)
        assert_near(results("cuda", tw.float32, [x], resample), expected, 1e-5)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_samples_of_many_channels(padding, rng):
    arrays = [rng.standard_normal((2, 11, 20, 18)), rng.uniform(-1.3, 1.3, (2, 9, 40, 2))]

    def sample(x: tw.Tensor, grid: tw.Tensor) -> tw.Tensor:
        return nn.functional.grid_sample(
            x, grid, mode="bilinear", padding_mode=padding, align_corners=False
        )

    expected = results("cpu", tw.float64, arrays, sample)
    found, again = (results("cuda", tw.float64, arrays, sample) for _ in range(2))
    assert_near(found, expected, 1e-11)
    for x, y in zip(found, again, strict=True):
        np.testing.assert_array_equal(x, y)


def test_ctc_of_long_sequences(rng):
    steps, batch, classes, width = 60, 3, 7, 20
    x = rng.standard_normal((steps, batch, classes))
    targets = rng.integers(1, classes, (batch, width))
    lengths, widths = np.array([60, 50, 41]), np.array([20, 0, 13])

    def loss(leaf: tw.Tensor) -> tw.Tensor:
        moved = [tw.asarray(a).to(leaf.device) for a in (targets, lengths, widths)]
        return tw.ctc_loss(tw.log_softmax(leaf, axis=-1), *moved, reduction="none")

    expected = results("cpu", tw.float64, [x], loss)
    assert_near(results("cuda", tw.float64, [x], loss), expected, 1e-11)
    assert_near(results("cuda", tw.float32, [x], loss), expected, 1e-4)


def test_wrong_labels_and_lengths_are_told():
    x = tw.zeros((4, 1, 3), device="cuda")
    for targets, steps, widths, text in (
        ([[1, 3]], [4], [2], "ctc_loss: target 3 is no class of 3"),
        ([[1, 2]], [5], [2], "ctc_loss: input_lengths has 5, expected 0 to 4"),
        ([[1, 2]], [4], [3], "ctc_loss: target_lengths has 3, expected 0 to 2"),
    ):
        moved = [tw.asarray(a).to("cuda") for a in (targets, steps, widths)]
        with pytest.raises(ValueError, match=text):
            tw.ctc_loss(x, *moved).tolist()


# ---- draws ----


def both(draw: Callable[[str], tw.Tensor]) -> tuple[np.ndarray, np.ndarray]:
    made = []
    for device in ("cpu", "cuda"):
        tw.manual_seed(11)
        made.append(here(draw(device)))
    return made[0], made[1]


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 3000])
def test_permutations_are_the_cpus(n):
    for _ in range(3):
        on_cpu, on_gpu = both(lambda device: tw.randperm(n, device=device))
        np.testing.assert_array_equal(on_gpu, on_cpu)
        np.testing.assert_array_equal(np.sort(on_gpu), np.arange(n))


@pytest.mark.parametrize("replacement", [True, False])
def test_classes_are_the_cpus(replacement, rng):
    p = rng.random((5, 700)) * (rng.random((5, 700)) < 0.5)

    def draw(device: str) -> tw.Tensor:
        return tw.multinomial(tw.asarray(p).to(device), 300, replacement=replacement)

    on_cpu, on_gpu = both(draw)
    np.testing.assert_array_equal(on_gpu, on_cpu)
    assert (np.take_along_axis(p, on_gpu.astype(int), 1) > 0).all()
    if not replacement:
        assert all(len(set(row)) == 300 for row in on_gpu.tolist())


def test_counts_and_gamma_numbers_are_the_cpus(rng):
    rates = np.concatenate([rng.uniform(0, 9, 500), rng.uniform(10, 400, 500)])
    on_cpu, on_gpu = both(lambda device: tw.poisson(tw.asarray(rates).to(device)))
    # A last digit of a logarithm may decide a try otherwise.
    assert (on_cpu != on_gpu).mean() < 0.005
    on_cpu, on_gpu = both(lambda device: tw.standard_gamma(tw.asarray(rates).to(device)))
    assert (np.abs(on_cpu - on_gpu) > 1e-12 * np.abs(on_cpu)).mean() < 0.005
    chances = tw.asarray(rng.uniform(0, 1, 1000))
    counts = tw.asarray(np.floor(rates))
    on_cpu, on_gpu = both(lambda d: tw.binomial(counts.to(d), chances.to(d)))
    assert (on_cpu != on_gpu).mean() < 0.005

    def gradients(device: str) -> tw.Tensor:
        a = tw.asarray(rates[::5].copy()).to(device).requires_grad_()
        of = tw.distributions
        for draw in (of.Gamma(a, 1.0), of.Beta(a, a * 2), of.StudentT(a)):
            draw.rsample(generator=tw.Generator(2)).sum().backward()
        return a.grad

    on_cpu, on_gpu = both(gradients)
    assert (np.abs(on_cpu - on_gpu) > 1e-8 * np.abs(on_cpu)).mean() < 0.02
    for draw in (
        lambda device: tw.exponential(2.0, (1000,), dtype=tw.float64, device=device),
        lambda device: tw.cauchy(0.0, 1.0, (1000,), dtype=tw.float64, device=device),
        lambda device: tw.log_normal(0.0, 1.0, (1000,), dtype=tw.float64, device=device),
        lambda device: tw.geometric(0.2, (1000,), device=device),
    ):
        on_cpu, on_gpu = both(draw)
        np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-12, atol=1e-12)


def test_parameters_out_of_range_are_told():
    for call, text in (
        (lambda: tw.poisson(tw.asarray([1.0, -2.0]).to("cuda")), "poisson: rate -2"),
        (lambda: tw.standard_gamma(tw.zeros((3,), device="cuda")), "standard_gamma: shape 0"),
        (
            lambda: tw.binomial(tw.asarray([1.5]).to("cuda"), tw.asarray([0.5]).to("cuda")),
            "binomial: count 1.5",
        ),
        (
            lambda: tw.binomial(tw.asarray([1.0]).to("cuda"), tw.asarray([1.5]).to("cuda")),
            "binomial: prob 1.5",
        ),
        (
            lambda: tw.multinomial(tw.asarray([[0.5, -1.0]]).to("cuda"), 1),
            "multinomial: probability -1 of class 1 in row 0",
        ),
        (
            lambda: tw.multinomial(tw.zeros((2, 3), device="cuda"), 1),
            "has no probability above 0",
        ),
        (
            lambda: tw.multinomial(tw.asarray([[1.0, 0.0, 2.0]]).to("cuda"), 3),
            "row 0 has 2 classes of a probability above 0, too few for 3 samples",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            call().tolist()


# ---- cross-entropy as one launch ----


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(("rows", "classes"), [(1, 3), (33, 10), (700, 20), (9, 1500), (0, 4)])
def test_cross_entropy_of_all_rows(rows: int, classes: int, reduction: str, dtype: str) -> None:
    """Rows of one block and of many, in warps and blocks, some of which do not count."""
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, classes)) * 3
    y = rng.integers(0, classes, rows)
    y[::5] = -100
    found = []
    for device in ("cpu", "cuda"):
        logits = tw.asarray(x, dtype=getattr(tw, dtype)).to(device).requires_grad_()
        loss = tw.cross_entropy(logits, tw.asarray(y).to(device), reduction=reduction)
        (loss * 3).backward()
        found.append(
            [np.array(t.astype(tw.float64).to("cpu")) for t in (loss.detach(), logits.grad)]
        )
    tolerance = {"float32": 1e-5, "float64": 1e-13, "bfloat16": 1e-2}[dtype]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


def test_cross_entropy_again_has_the_same_bits() -> None:
    x = tw.rand((900, 33), device="cuda")
    y = tw.zeros((900,), dtype=tw.int32, device="cuda")
    first = tw.cross_entropy(x, y).item()
    assert all(tw.cross_entropy(x, y).item() == first for _ in range(3))
    rows = tw.cross_entropy(x, y, reduction="none")
    assert tw.mean(rows).item() == pytest.approx(first, rel=1e-6)


def test_targets_may_change_before_backward() -> None:
    x = tw.rand((6, 4), device="cuda").requires_grad_()
    y = tw.zeros((6,), dtype=tw.int64, device="cuda")
    loss, kept = tw.cross_entropy(x, y), tw.cross_entropy(x, y.copy())
    y[:] = 3
    (g,) = tw.autograd.grad(loss, [x])
    (expected,) = tw.autograd.grad(kept, [x])
    np.testing.assert_array_equal(np.array(g.to("cpu")), np.array(expected.to("cpu")))


def test_second_gradients_of_cross_entropy() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(5, 4)), rng.integers(0, 4, 5)
    found = []
    for device in ("cpu", "cuda"):
        logits = tw.asarray(x).to(device).requires_grad_()
        loss = tw.cross_entropy(logits * logits, tw.asarray(y).to(device))
        (g,) = tw.autograd.grad(loss, [logits], create_graph=True)
        (again,) = tw.autograd.grad(tw.sum(g * g), [logits])
        found.append(np.array(again.to("cpu")))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-13)


def test_a_target_out_of_range_is_told() -> None:
    x, y = tw.ones((3, 4), device="cuda"), tw.asarray([0, 4, 1]).to("cuda")
    with pytest.raises(IndexError, match="target 4 in row 1 is out of range for 4 classes"):
        tw.cross_entropy(x, y).item()
