"""Losses against PyTorch: all options, shapes and weights, gradients, and where formulas break."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import arrays

import tilewright as tw
from tilewright.nn import functional

torch = pytest.importorskip("torch")

REDUCTIONS = ("mean", "sum", "none")


def given(x: Any, library: Any) -> Any:
    return library(x.copy()) if isinstance(x, np.ndarray) else x


def same_as_pytorch(
    name: str, args: tuple[np.ndarray, ...], options: Mapping[str, Any], wanted: tuple[int, ...]
) -> None:
    """Values, and gradients of the arguments at the places `wanted`."""
    ours = [tw.asarray(x, copy=True) for x in args]
    theirs = [torch.tensor(x) for x in args]
    for i in wanted:
        ours[i].requires_grad_()
        theirs[i].requires_grad_()
    y = getattr(functional, name)(*ours, **{k: given(v, tw.asarray) for k, v in options.items()})
    z = getattr(torch.nn.functional, name)(
        *theirs, **{k: given(v, torch.tensor) for k, v in options.items()}
    )
    note = f"{name} {options}"
    assert y.shape == tuple(z.shape), note
    np.testing.assert_allclose(
        y.detach().numpy(), z.detach().numpy(), rtol=1e-9, atol=1e-12, err_msg=note
    )
    if not wanted:
        return
    g = np.random.default_rng(1).normal(size=y.shape)
    y.backward(tw.asarray(g))
    z.backward(torch.tensor(g))
    for i in wanted:
        np.testing.assert_allclose(
            ours[i].grad.numpy(), theirs[i].grad.numpy(), rtol=1e-8, atol=1e-11, err_msg=note
        )


def signs(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.choice([-1.0, 1.0], shape)


# ---- elements ----

Case = tuple[tuple[np.ndarray, ...], dict[str, Any], tuple[int, ...]]


def cases_of(name: str, rng: np.random.Generator) -> list[Case]:
    """Arguments, options, and which arguments have gradients in PyTorch."""
    n = rng.normal
    x, y, w = n(size=(3, 4)) * 2, n(size=(3, 4)), rng.uniform(0.5, 2, 4)
    p, t = rng.uniform(size=(3, 4)), rng.uniform(size=(3, 4))
    p[0, :2], t[0, :2] = (0, 1), 0
    counts = rng.integers(0, 5, (3, 4)).astype(float)
    s, var = signs(rng, (3, 4)), rng.uniform(0.1, 2, (3, 4))
    var[0, 0] = 1e-9
    cases: dict[str, list[Case]] = {
        "mse_loss": [((x, y), {}, (0, 1))],
        "l1_loss": [((x, y), {}, (0, 1)), ((x, x.copy()), {}, (0, 1))],
        "smooth_l1_loss": [((x, y), {"beta": b}, (0, 1)) for b in (0.0, 0.3, 1.0)],
        "huber_loss": [((x, y), {"delta": d}, (0, 1)) for d in (0.3, 1.0)],
        "binary_cross_entropy": [((p, t), {}, (0,)), ((p, t), {"weight": w}, (0,))],
        "binary_cross_entropy_with_logits": [
            ((x, t), {}, (0, 1)),
            ((np.zeros((3, 4)), t), {}, (0, 1)),
            ((x, t), {"weight": w, "pos_weight": w + 1}, (0, 1)),
        ],
        "kl_div": [((x, t), {}, (0,)), ((x, y), {"log_target": True}, (0, 1))],
        "gaussian_nll_loss": [((x, y, var), {"full": full}, (0, 1, 2)) for full in (False, True)]
        + [((x, y, var[:, :1]), {}, (0, 1, 2)), ((x, y, var[:, 0]), {"eps": 0.01}, (0, 1, 2))],
        "poisson_nll_loss": [
            ((np.abs(x), counts), {"log_input": log, "full": full}, (0,))
            for log, full in product((False, True), repeat=2)
        ],
        "soft_margin_loss": [((x, s), {}, (0,))],
        "hinge_embedding_loss": [((x, s), {"margin": m}, (0,)) for m in (1.0, 0.3)],
        "margin_ranking_loss": [((x, y, s), {"margin": m}, (0, 1)) for m in (0.0, 0.3)]
        + [((x, x.copy(), s), {}, (0, 1))],
        "cosine_embedding_loss": [
            ((x, y, s[:, 0]), {"margin": 0.1}, (0, 1)),
            ((x[0], y[0], s[0, 0].reshape(())), {}, (0, 1)),
        ],
        "triplet_margin_loss": [
            ((x, y, n(size=(3, 4))), {"p": norm, "swap": swap}, (0, 1, 2))
            for norm, swap in product((1.0, 2.0, 3.0, math.inf), (False, True))
        ],
    }
    return cases[name]


ELEMENTS = [
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "gaussian_nll_loss",
    "poisson_nll_loss",
    "soft_margin_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "cosine_embedding_loss",
    "triplet_margin_loss",
]


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")  # of PyTorch's kl_div
@pytest.mark.parametrize("name", ELEMENTS)
def test_losses_of_elements(name: str, rng: np.random.Generator) -> None:
    for args, options, wanted in cases_of(name, rng):
        for reduction in (*REDUCTIONS, *(["batchmean"] if name == "kl_div" else [])):
            same_as_pytorch(name, args, {**options, "reduction": reduction}, wanted)


def test_cosines_and_distances(rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(4, 3, 2)), rng.normal(size=(4, 3, 2))
    a[0, :, 0] = 0  # of length 0
    for dim in (0, 1, -1):
        same_as_pytorch("cosine_similarity", (a, b), {"dim": dim}, (0, 1))
    same_as_pytorch("cosine_similarity", (a, b[:1, :, :1]), {"dim": 1, "eps": 0.5}, (0, 1))
    for p, keepdim in product((-1.0, 0.0, 1.0, 2.0, 2.5, math.inf, -math.inf), (False, True)):
        wanted = (0, 1) if p else ()  # a count has no gradient
        same_as_pytorch("pairwise_distance", (a, b), {"p": p, "keepdim": keepdim}, wanted)
    same_as_pytorch("pairwise_distance", (a, b[0, 0]), {}, (0, 1))
    same_as_pytorch("pairwise_distance", (a, a.copy()), {"p": 3.0, "eps": 0.0}, (0, 1))
    b[0, 0] = b[0, 1]
    for p in (1.5, 2.0, 3.0):  # two rows alike
        same_as_pytorch("pdist", (b[0],), {"p": p}, (0,))


# ---- classes ----

SHAPES = ((4, 3), (4, 3, 2), (2, 3, 4, 2), (3,))


def class_numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    t = rng.integers(0, 3, shape[:1] + shape[2:] if len(shape) > 1 else ())
    if t.ndim:
        t.reshape(-1)[0] = 2  # so that ignore_index=1 leaves one
    return np.asarray(t)


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
@pytest.mark.parametrize("shape", SHAPES)
def test_losses_of_classes(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x, t, weight = rng.normal(size=shape), class_numbers(rng, shape), rng.uniform(0.5, 2, 3)
    for reduction, ignored, w, smoothing in product(
        REDUCTIONS, (-100, 1), (None, weight), (0.0, 0.1, 1.0)
    ):
        options = {"reduction": reduction, "ignore_index": ignored, "weight": w}
        if name == "cross_entropy":
            options["label_smoothing"] = smoothing
        elif smoothing:
            continue
        if t.ndim or ignored < 0:
            same_as_pytorch(name, (x, t), options, (0,))


@pytest.mark.parametrize("shape", SHAPES)
def test_cross_entropy_of_probabilities(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x, t, weight = rng.normal(size=shape), rng.uniform(size=shape), rng.uniform(0.5, 2, 3)
    for reduction, w, smoothing in product(REDUCTIONS, (None, weight), (0.0, 0.1)):
        options = {"reduction": reduction, "weight": w, "label_smoothing": smoothing}
        same_as_pytorch("cross_entropy", (x, t), options, (0, 1))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, w: tw.cross_entropy(x, tw.asarray([[0, 1], [2, 1]]), w, label_smoothing=0.2),
        lambda x, w: tw.cross_entropy(x, tw.asarray([[0, 1], [2, 1]]), w, ignore_index=1),
        lambda x, w: tw.cross_entropy(x, tw.softmax(x * 0.5, axis=1), w),
        lambda x, w: (
            tw.binary_cross_entropy(tw.sigmoid(x), tw.sigmoid(-x), reduction="sum")
            + tw.binary_cross_entropy_with_logits(
                x, tw.sigmoid(-x), tw.expand_dims(w, 1), pos_weight=tw.expand_dims(w, 1)
            )
        ),
    ],
)
def test_gradients_twice(call: Callable[..., tw.Tensor], rng: np.random.Generator) -> None:
    x = tw.asarray(rng.normal(size=(2, 3, 2))).requires_grad_()
    w = tw.asarray(rng.uniform(0.5, 2, 3)).requires_grad_()
    assert tw.gradcheck(call, (x, w))
    assert tw.gradgradcheck(call, (x, w))


def test_all_targets_ignored() -> None:
    x, t = np.ones((2, 3)), np.full(2, 1)
    for name in ("nll_loss", "cross_entropy"):
        for reduction in REDUCTIONS:
            same_as_pytorch(name, (x, t), {"ignore_index": 1, "reduction": reduction}, (0,))


def test_targets_may_change_behind_the_call() -> None:
    for call in (tw.nll_loss, tw.cross_entropy):
        x, t = tw.zeros((2, 3)).requires_grad_(), tw.asarray([0, 1])
        y = call(x, t)
        t.fill_(2)
        y.backward()
        assert x.grad.numpy()[0, 0] < 0 <= x.grad.numpy()[0, 2]


def test_errors_of_cross_entropy() -> None:
    x, t = tw.ones((2, 3)), tw.asarray([0, 1])
    for call, error, text in (
        (lambda: tw.cross_entropy(x, t, tw.ones((2,))), ValueError, "weight (2,) does not fit 3"),
        (lambda: tw.cross_entropy(x, t, label_smoothing=1.5), ValueError, "from 0 to 1, got 1.5"),
        (lambda: tw.cross_entropy(x, x, ignore_index=1), ValueError, "not probabilities"),
        (lambda: tw.cross_entropy(tw.ones(()), t), ValueError, "got () and (2,)"),
        (
            lambda: tw.cross_entropy(x, t + 2, tw.ones((3,))),
            IndexError,
            "cross_entropy: target 3 is out of range for 3 classes",
        ),
    ):
        with pytest.raises(error) as caught:
            call()
        assert text in str(caught.value)


def test_pytorchs_keywords() -> None:
    x, t = tw.asarray([[0.5, -1.0]]), tw.asarray([1])
    assert tw.cross_entropy(input=x, target=t).item() == tw.cross_entropy(x, t).item()
    assert tw.mse_loss(input=x, target=x * 2).item() == tw.mse_loss(x, x * 2).item()


# ---- where formulas break ----


def gradient(call: Callable[..., tw.Tensor], x: Any, *rest: Any) -> tuple[Any, Any]:
    leaf = tw.asarray(x, dtype=tw.float32).requires_grad_()
    y = call(leaf, *(tw.asarray(r, dtype=tw.float32) for r in rest))
    return y.tolist(), tw.grad(y.sum(), [leaf])[0].tolist()


def test_logits_far_from_0() -> None:
    """A loss that underflows nowhere, and keeps the digits of what is small."""

    def call(x: tw.Tensor, t: tw.Tensor) -> tw.Tensor:
        return tw.binary_cross_entropy_with_logits(x, t, reduction="none")

    x, t = [40.0, -40.0, 1e4, -1e4, 30.0, 0.0], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    y, g = gradient(call, x, t)
    small = math.exp(-40)
    np.testing.assert_allclose(y, [small, small, 1e4, 1e4, math.exp(-30), math.log(2)], rtol=1e-6)
    np.testing.assert_allclose(g[2:4], [1, -1])
    assert g[5] == -0.5


def test_margins_of_large_products() -> None:
    y, g = gradient(
        lambda x, t: tw.soft_margin_loss(x, t, reduction="none"), [1e4, 1e4], [1.0, -1.0]
    )
    np.testing.assert_allclose(y, [0, 1e4])
    np.testing.assert_allclose(g, [0, 1])


def test_certain_probabilities() -> None:
    y, g = gradient(
        lambda x, t: tw.binary_cross_entropy(x, t, reduction="none"),
        [0.0, 1.0, 0.0, 1.0, math.nan],
        [0.0, 1.0, 1.0, 0.0, 1.0],
    )
    np.testing.assert_allclose(y[:4], [0, 0, 100, 100])
    np.testing.assert_allclose(g[:4], [0, 0, -1e12, 1e12])
    assert math.isnan(y[4])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", [tw.float16, tw.float32, tw.float64])
@pytest.mark.parametrize("wrong", [-0.5, 1.5, -math.inf, math.inf])
def test_probabilities_outside_the_range_are_refused(wrong, dtype, reduction) -> None:
    x, t = tw.asarray([0.5, wrong], dtype=dtype), tw.asarray([1.0, 1.0], dtype=dtype)
    with pytest.raises(ValueError, match="input must lie from 0 to 1"):
        tw.binary_cross_entropy(x.requires_grad_(), t, reduction=reduction)


def test_variances_below_0_are_refused() -> None:
    x = tw.ones(3)
    with pytest.raises(ValueError, match="negative"):
        tw.gaussian_nll_loss(x, x, tw.asarray([1.0, -1.0, 1.0]))


def test_a_capture_takes_what_losses_would_refuse() -> None:
    """It cannot look at values: probabilities outside [0, 1] give NaN in a replay."""
    x = tw.asarray([0.5, 0.5])
    captured = tw._core._capture(lambda p: tw.binary_cross_entropy(p, p), [x])
    assert math.isnan(captured.replay([x * 3])[0].item())


def test_infinite_differences() -> None:
    for call in (tw.smooth_l1_loss, tw.huber_loss, tw.l1_loss):
        y, g = gradient(lambda x, t, c=call: c(x, t, "none"), [math.inf, -math.inf], [0.0, 0.0])
        assert y == [math.inf, math.inf]
        assert g == [1, -1]


@pytest.mark.parametrize("end", [0.3, 1.0, 2.0])
def test_curvature_where_nothing_differs(end: float) -> None:
    for call, curvature in ((tw.huber_loss, 1), (tw.smooth_l1_loss, 1 / end)):
        option = "delta" if call is tw.huber_loss else "beta"
        x = tw.asarray([0.5, 0.6, 0.4, 9.0], dtype=tw.float64).requires_grad_(True)
        y = call(x, tw.full((4,), 0.5, dtype=tw.float64), "sum", **{option: end})
        (g,) = tw.grad(y, x, create_graph=True)
        (h,) = tw.grad(g.sum(), x)
        np.testing.assert_allclose(h.numpy(), [curvature] * 3 + [0])


def test_targets_without_probability() -> None:
    y, g = gradient(lambda t, x: tw.kl_div(x, t, "none"), [0.0, 0.5], [-2.0, -2.0])
    np.testing.assert_allclose(y, [0, 0.5 * (math.log(0.5) + 2)], rtol=1e-6)
    assert np.isfinite(g).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_narrow_types_are_wide(dtype: str, rng: np.random.Generator) -> None:
    """300 * 300 leaves the range of float16, and 4096 terms its digits."""
    x = arrays.rounded(rng.uniform(200, 300, 4096), dtype)
    t = arrays.tensor(x, dtype)
    for call in (tw.l1_loss, tw.huber_loss, tw.smooth_l1_loss):
        y = call(t, tw.zeros_like(t))
        assert str(y.dtype) == dtype
        want = x.astype(np.float64).mean() - (0 if call is tw.l1_loss else 0.5)
        assert abs(y.item() - want) <= want * arrays.eps(dtype)


def test_autocast_computes_losses_in_float32(rng: np.random.Generator) -> None:
    x = tw.asarray(rng.uniform(0.1, 0.9, (4,)), dtype=tw.bfloat16)
    with tw.amp.autocast():
        for name in ("l1_loss", "binary_cross_entropy", "huber_loss", "kl_div"):
            assert getattr(tw, name)(x, x).dtype == tw.float32


def test_no_elements() -> None:
    x = tw.zeros((0, 3))
    assert tw.l1_loss(x, x, "none").shape == (0, 3)
    assert tw.huber_loss(x, x, "sum").item() == 0
    assert math.isnan(tw.l1_loss(x, x).item())
    assert tw.nll_loss(x, tw.zeros((0,), dtype=tw.int64), reduction="sum").item() == 0
