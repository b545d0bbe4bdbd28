"""Gradients where values coincide, at borders, at NaN and among infinities, against PyTorch's."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from cases.check import tensors

import tilewright as tw
from tilewright import _core
from tilewright.nn import functional

INFINITY, NAN = math.inf, math.nan


def gradient_of(call, *values, dtype=tw.float64) -> list[list[float]]:
    inputs = [tw.tensor(v, dtype=dtype, requires_grad=True) for v in values]
    return [g.tolist() for g in tw.grad(call(*inputs).sum(), inputs)]


# ---- medians and quantiles ----

ROWS = ([1.0, 1.0], [0.0, 0.0, 1.0], [2.0] * 4, [1.0, 2.0, 2.0, 3.0], [3.0, 1.0, 1.0, 1.0, 2.0])


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_weigh_equal_elements_as_others(how: str) -> None:
    for row, q in product(ROWS, (0.0, 0.3, 0.5, 0.75, 1.0)):
        x = torch.tensor(row, dtype=torch.float64, requires_grad=True)
        torch.quantile(x, q, interpolation=how).backward()
        for call in (tw.quantile, tw.nanquantile):
            (ours,) = gradient_of(lambda x, q=q, f=call: f(x, q, interpolation=how), row)
            np.testing.assert_allclose(ours, x.grad, atol=1e-15, err_msg=f"{row} {q}")


def test_both_elements_in_the_middle_share_the_gradient_of_a_median() -> None:
    for median in (tw.median, tw.nanmedian):
        assert gradient_of(median, [1.0, 1.0]) == [[0.5, 0.5]]
        assert gradient_of(median, [5.0, 1.0, 1.0, 0.0]) == [[0.0, 0.5, 0.5, 0.0]]
        assert gradient_of(median, [INFINITY, INFINITY]) == [[0.5, 0.5]]
        # Halves of the smallest numbers are no numbers of the type.
        for least, dtype in ((5e-324, tw.float64), (3 * 5e-324, tw.float64), (1e-45, tw.float32)):
            x = tw.tensor([least, least], dtype=dtype)
            assert median(x).item() == x[0].item()
            assert gradient_of(median, [least, least], dtype=dtype) == [[0.5, 0.5]]


def test_quantiles_between_one_infinity_and_itself() -> None:
    for end in (INFINITY, -INFINITY):
        for q, shares in ((0.0, [1, 0]), (0.3, [0.7, 0.3]), (0.5, [0.5, 0.5]), (1.0, [0, 1])):
            assert tw.quantile(tw.tensor([end, end]), q).item() == end
            (ours,) = gradient_of(lambda x, q=q: tw.quantile(x, q), [end, end])
            np.testing.assert_allclose(ours, shares, atol=1e-15)


# ---- borders ----

# Corners of the image, middles of its outer elements, and places inside and beyond.
PLACES = (-1.0, 1.0, -1.5, 1.5, 0.0, 0.3, -2.0, 2.0, 3.0, -3.0, 0.75, -0.75, 0.8, -0.8, 1.2, 1.25)


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_at_borders(padding: str, align: bool, rng) -> None:
    for axes, modes in ((2, ("bilinear", "nearest", "bicubic")), (3, ("bilinear", "nearest"))):
        image = rng.normal(size=(1, 2, 3, 4, 5)[: axes + 2] if axes == 3 else (1, 2, 4, 5))
        places = PLACES if axes == 2 else PLACES[:8]
        grid = np.stack(np.meshgrid(*[places] * axes), -1)[None]
        for mode in modes:
            options = {"mode": mode, "padding_mode": padding, "align_corners": align}
            ours = [tw.tensor(v, requires_grad=True) for v in (image, grid)]
            theirs = [torch.tensor(v, requires_grad=True) for v in (image, grid)]
            y = functional.grid_sample(*ours, **options)
            z = torch.nn.functional.grid_sample(*theirs, **options)
            y.sum().backward()
            z.sum().backward()
            np.testing.assert_allclose(np.asarray(y.detach()), z.detach(), atol=1e-12)
            for a, b in zip(ours, theirs, strict=True):
                found = 0 if a.grad is None else np.asarray(a.grad)
                np.testing.assert_allclose(found, b.grad, atol=1e-10, err_msg=f"{axes} {mode}")


def test_an_identity_grid_has_no_slope_beyond_the_last_element() -> None:
    image = tw.broadcast_to(tw.arange(5.0), (1, 1, 5, 5))
    identity = functional.affine_grid(tw.tensor([[[1.0, 0, 0], [0, 1, 0]]]), (1, 1, 5, 5), True)
    grid = identity.detach().requires_grad_()
    y = functional.grid_sample(image, grid, padding_mode="border", align_corners=True)
    y.sum().backward()
    assert grid.grad[0, :, :, 0].tolist() == [[0, 2, 2, 2, 0]] * 5


def test_margin_losses_at_their_bend() -> None:
    """Where a margin is kept exactly, PyTorch's multi-class losses have no slope."""
    scores, label = [[1.0, 0.0, 0.5], [1.0, 1.0, 2.0]], [0, 0]
    for ours, theirs, target in (
        (functional.multi_margin_loss, torch.nn.functional.multi_margin_loss, label),
        (
            functional.multilabel_margin_loss,
            torch.nn.functional.multilabel_margin_loss,
            [[0, -1, -1], [2, -1, -1]],
        ),
    ):
        x = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
        theirs(x, torch.tensor(target)).backward()
        (found,) = gradient_of(lambda x, f=ours, t=target: f(x, tw.tensor(t)), scores)
        np.testing.assert_allclose(found, x.grad, atol=1e-15)


# ---- NaN ----

TABLE = [
    row for row in _core.pointwise_table() if any(g not in ("none", "0") for g in row["gradients"])
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_nan_is_not_hidden_by_a_gradient_of_0(row) -> None:
    """What makes a result NaN gets a gradient: NaN itself, or that of the result."""
    count = len(row["gradients"])
    function = getattr(_core, row["name"], None)
    if function is None or row["name"] == "where":
        pytest.skip("no function of tensors alone")
    for place in range(count):
        if row["gradients"][place] in ("none", "0"):
            continue
        for length in (1, 37):
            values = [
                np.full(length, NAN if i == place else other)
                for i, other in enumerate((0.5, 0.75, 0.25)[:count])
            ]
            inputs = tensors(tuple(values), "float64")
            inputs[place].requires_grad_()
            try:
                y = function(*inputs)
            except (TypeError, ValueError):  # the others are numbers
                y = function(*inputs[:1], *(0.5, 0.75)[: count - 1])
            if not bool(tw.isnan(y).all()):
                continue
            (g,) = tw.grad(y.sum(), [inputs[place]])
            assert bool((g != 0).all()), f"argument {place}"


def test_clip_passes_the_gradient_of_nan() -> None:
    for bounds in ((0.0, 1.0), (None, 1.0), (0.0, None)):
        assert gradient_of(lambda x, b=bounds: tw.clip(x, *b), [NAN, 0.5]) == [[1, 1]]
    assert gradient_of(tw.clip, [0.5], [NAN], [1.0]) == [[1], [1], [1]]
    assert gradient_of(tw.clip, [0.5], [0.0], [NAN]) == [[1], [0], [1]]
    assert gradient_of(tw.clip, [2.0], [3.0], [1.0]) == [[0], [0], [1]]


def test_recurrent_cells_pass_the_gradient_of_nan() -> None:
    layer = tw.nn.RNN(3, 4, nonlinearity="relu")
    x = tw.full((2, 1, 3), NAN, requires_grad=True)
    layer(x)[0].sum().backward()
    assert bool((x.grad != 0).any())


# ---- infinities ----


def test_running_log_sums_share_the_gradient_among_equal_infinities() -> None:
    for row in product((-INFINITY, 0.0, 1.0, INFINITY), repeat=3):
        for end in range(3):
            (g,) = gradient_of(lambda x, i=end: tw.logcumsumexp(x, 0)[i], row)
            seen = np.array(row[: end + 1])
            top = seen.max()
            weights = (seen == top) * 1.0 if math.isinf(top) else np.exp(seen - top)
            expected = [*(weights / weights.sum()), *[0.0] * (2 - end)]
            np.testing.assert_allclose(g, expected, atol=1e-15, err_msg=f"{row} {end}")
    reverse = tw.tensor([[INFINITY, 1.0], [INFINITY, -INFINITY]], requires_grad=True)
    tw.logcumsumexp(reverse, 0).sum().backward()
    assert reverse.grad.tolist() == [[1.5, 2.0], [0.5, 0.0]]
