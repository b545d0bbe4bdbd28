"""CTC, losses by margins, and the layers beside them, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")
F, TF = nn.functional, torch.nn.functional


def both(data: Any) -> tuple[tw.Tensor, Any]:
    return tw.asarray(data).requires_grad_(), torch.tensor(data, requires_grad=True)


def assert_like_pytorch(y: Any, want: Any, *pairs: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), atol=tolerance)
    (y * y).sum().backward()
    (want * want).sum().backward()
    for x, z in pairs:
        np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), atol=tolerance)


# ---- CTC ----


def sequences(rng, steps: int, batch: int, classes: int, width: int, blank: int) -> Any:
    logits = rng.normal(size=(steps, batch, classes))
    labels = rng.integers(0, classes - 1, (batch, width))
    labels += labels >= blank
    lengths = rng.integers(0, width + 1, batch)
    repeats = np.array(
        [(np.diff(row[:n]) == 0).sum() for row, n in zip(labels, lengths, strict=True)]
    )
    least = lengths + repeats
    inputs = np.minimum(steps, least + rng.integers(0, steps, batch))
    return logits, labels, np.maximum(inputs, 1), lengths


@pytest.mark.parametrize("kernel", ["trellis", "body"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("blank", [0, 2])
def test_ctc(kernel, reduction, blank, rng) -> None:
    for steps, batch, classes, width in ((12, 4, 5, 5), (7, 3, 3, 3), (1, 2, 4, 1), (5, 3, 4, 0)):
        logits, labels, inputs, lengths = sequences(rng, steps, batch, classes, width, blank)
        x, z = both(logits)
        with tw.kernels.use(ctc_terms=kernel, ctc_terms_backward=kernel):
            y = F.ctc_loss(
                x.log_softmax(-1), tw.asarray(labels), tw.asarray(inputs), tw.asarray(lengths),
                blank, reduction, True,
            )  # fmt: skip
            want = TF.ctc_loss(
                z.log_softmax(-1), torch.tensor(labels), torch.tensor(inputs),
                torch.tensor(lengths), blank, reduction, True,
            )  # fmt: skip
            assert_like_pytorch(y, want, (x, z))


def test_ctc_takes_lengths_and_targets_in_pytorchs_forms(rng) -> None:
    logits, labels, inputs, lengths = sequences(rng, 9, 3, 5, 4, 0)
    z = torch.tensor(logits).log_softmax(-1)
    x = tw.asarray(logits).log_softmax(-1)
    flat = np.concatenate([row[:n] for row, n in zip(labels, lengths, strict=True)])
    want = TF.ctc_loss(z, torch.tensor(labels), torch.tensor(inputs), torch.tensor(lengths)).item()
    i, t = tuple(map(int, inputs)), tuple(map(int, lengths))
    for targets in (labels, flat):
        for dtype in (tw.int64, tw.int32):
            given = tw.asarray(targets).astype(dtype)
            assert F.ctc_loss(x, given, i, t).item() == pytest.approx(want, rel=1e-12)
            assert nn.CTCLoss()(x, given, tw.asarray(i), t).item() == pytest.approx(want, rel=1e-12)
    one = F.ctc_loss(x[:, 0], tw.asarray(labels[0]), i[0], t[0], reduction="none")
    of_torch = TF.ctc_loss(
        z[:, 0], torch.tensor(labels[0, : t[0]]), (i[0],), (t[0],), reduction="none"
    )
    assert one.shape == ()
    assert one.item() == pytest.approx(of_torch.item(), rel=1e-12)
    assert F.ctc_loss(x[:, 0], tw.asarray(labels[0]), (i[0],), (t[0],)).shape == ()


def test_ctc_of_what_no_path_spells() -> None:
    x, z = both(np.zeros((2, 2, 3)))
    targets = np.array([[1, 1, 2], [1, 2, 0]])
    for kernel in ("trellis", "body"):
        with tw.kernels.use(ctc_terms=kernel, ctc_terms_backward=kernel):
            losses = F.ctc_loss(
                x.log_softmax(-1), tw.asarray(targets), (2, 2), (3, 2), reduction="none"
            )
            assert losses[0].item() == np.inf
            assert np.isfinite(losses[1].item())
            x.grad = None
            F.ctc_loss(
                x.log_softmax(-1), tw.asarray(targets), (2, 2), (3, 2), zero_infinity=True
            ).backward()
            z.grad = None
            TF.ctc_loss(
                z.log_softmax(-1), torch.tensor(targets), (2, 2), (3, 2), zero_infinity=True
            ).backward()
            np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), atol=1e-12)
            none = F.ctc_loss(
                x.log_softmax(-1), tw.asarray(targets), (0, 0), (0, 1), reduction="none"
            )
            assert none.tolist() == [0.0, np.inf]


def test_ctc_in_float32_of_long_sequences(rng) -> None:
    logits, labels, inputs, lengths = sequences(rng, 300, 4, 30, 40, 0)
    x = tw.asarray(logits.astype(np.float32)).requires_grad_()
    wide = tw.asarray(logits).requires_grad_()
    for each in (x, wide):
        F.ctc_loss(
            each.log_softmax(-1), tw.asarray(labels), tw.asarray(inputs), tw.asarray(lengths)
        ).backward()
    np.testing.assert_allclose(x.grad.numpy(), wide.grad.numpy(), atol=1e-5)
    half = F.ctc_loss(
        tw.asarray(logits).astype(tw.float16).log_softmax(-1), tw.asarray(labels),
        tw.asarray(inputs), tw.asarray(lengths),
    )  # fmt: skip
    assert half.dtype == tw.float16


def test_gradients_of_ctc(rng) -> None:
    x = tw.asarray(rng.normal(size=(5, 2, 3))).requires_grad_()
    targets, inputs, lengths = tw.asarray([[1, 1], [2, 1]]), (5, 4), (2, 1)

    def loss(x: tw.Tensor) -> tw.Tensor:
        return F.ctc_loss(x.log_softmax(-1), targets, inputs, lengths)

    assert tw.gradcheck(loss, (x,))
    assert tw.gradgradcheck(loss, (x,))


CTC_REFUSED: tuple[tuple[Any, type[Exception], str], ...] = (
    ({"input_lengths": (3, 5)}, ValueError, "input_lengths has 5, expected 0 to 4"),
    ({"target_lengths": (3, 1)}, ValueError, "target_lengths has 3, expected 0 to 2"),
    ({"input_lengths": (3,)}, ValueError, "input_lengths .* for a batch of 2"),
    ({"targets": tw.asarray([[1, 7], [1, 1]])}, ValueError, "target 7 is no class of 3"),
    ({"targets": tw.asarray([[1.0, 2.0], [1.0, 1.0]])}, TypeError, "targets must be integers"),
    ({"targets": tw.asarray([[1, 2]])}, ValueError, "targets .* for log_probs"),
    ({"targets": tw.asarray([1, 2])}, ValueError, "target_lengths say 3 labels"),
    ({"blank": 3}, ValueError, "blank 3 is no class of 3"),
    ({"log_probs": tw.ones((4,))}, ValueError, "log_probs must be"),
    ({"reduction": "all"}, ValueError, "reduction must be"),
)


@pytest.mark.parametrize(("changed", "error", "text"), CTC_REFUSED)
def test_wrong_arguments_of_ctc(changed, error, text) -> None:
    given = {
        "log_probs": tw.zeros((4, 2, 3)).log_softmax(-1),
        "targets": tw.asarray([[1, 2], [1, 1]]),
        "input_lengths": (4, 4),
        "target_lengths": (2, 1),
    }
    with pytest.raises(error, match=text):
        F.ctc_loss(**{**given, **changed})


# ---- margins ----


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_multi_margin(reduction, rng) -> None:
    weight = rng.random(5)
    for p in (1, 2):
        for weights in (None, weight):
            x, z = both(rng.normal(size=(7, 5)))
            target = rng.integers(0, 5, 7)
            given = {"p": p, "margin": 0.7, "reduction": reduction}
            y = F.multi_margin_loss(
                x, tw.asarray(target), **given,
                weight=None if weights is None else tw.asarray(weights),
            )  # fmt: skip
            want = TF.multi_margin_loss(
                z, torch.tensor(target), **given,
                weight=None if weights is None else torch.tensor(weights),
            )  # fmt: skip
            assert_like_pytorch(y, want, (x, z))
    x, z = both(rng.normal(size=(5,)))
    y = F.multi_margin_loss(x, tw.asarray(2), reduction=reduction)
    assert_like_pytorch(y, TF.multi_margin_loss(z, torch.tensor(2), reduction=reduction), (x, z))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_multilabel_margin(reduction, rng) -> None:
    target = np.array([[3, 0, -1, 1], [-1, 1, 2, 3], [0, 1, 2, 3], [2, -1, -1, -1]])
    x, z = both(rng.normal(size=(4, 4)))
    y = F.multilabel_margin_loss(x, tw.asarray(target), reduction)
    want = TF.multilabel_margin_loss(z, torch.tensor(target), reduction=reduction)
    assert_like_pytorch(y, want, (x, z))
    x, z = both(rng.normal(size=(4,)))
    y = F.multilabel_margin_loss(x, tw.asarray(target[0]), reduction)
    want = TF.multilabel_margin_loss(z, torch.tensor(target[0]), reduction=reduction)
    assert_like_pytorch(y, want, (x, z))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_multilabel_soft_margin(reduction, rng) -> None:
    target = rng.integers(0, 2, (6, 4)).astype(float)
    weight = rng.random(4)
    x, z = both(rng.normal(size=(6, 4)))
    y = F.multilabel_soft_margin_loss(x, tw.asarray(target), tw.asarray(weight), reduction)
    want = TF.multilabel_soft_margin_loss(
        z, torch.tensor(target), torch.tensor(weight), reduction=reduction
    )
    assert_like_pytorch(y, want, (x, z))


def test_triplets_by_any_distance(rng) -> None:
    data = [rng.normal(size=(5, 3)) for _ in range(3)]
    ours, theirs = zip(*(both(x) for x in data), strict=True)
    for swap in (False, True):
        y = nn.TripletMarginWithDistanceLoss(
            distance_function=lambda a, b: abs(a - b).sum(-1), margin=1.7, swap=swap
        )(*ours)
        want = torch.nn.TripletMarginWithDistanceLoss(
            distance_function=lambda a, b: abs(a - b).sum(-1), margin=1.7, swap=swap
        )(*theirs)
        assert_like_pytorch(y, want, *zip(ours, theirs, strict=True))
    with pytest.raises(ValueError, match="margin must be above 0"):
        F.triplet_margin_with_distance_loss(*ours, margin=0)


MARGINS_REFUSED: tuple[tuple[Any, type[Exception], str], ...] = (
    (
        lambda: F.multi_margin_loss(tw.ones((2, 3)), tw.asarray([0, 1]), p=3),
        ValueError,
        "p is 1 or",
    ),
    (lambda: F.multi_margin_loss(tw.ones((2, 3)), tw.asarray([0])), ValueError, "expected input"),
    (lambda: F.multi_margin_loss(tw.ones((2, 3)), tw.asarray([0, 3])), IndexError, "target 3 is"),
    (lambda: F.multi_margin_loss(tw.ones((2, 3)), tw.ones((2,))), TypeError, "must be integers"),
    (lambda: F.multilabel_margin_loss(tw.ones((3,)), tw.asarray([0])), ValueError, "one shape"),
    (lambda: F.multilabel_soft_margin_loss(tw.ones((3,)), tw.ones((2,))), ValueError, "one shape"),
    (lambda: F.bilinear(*[tw.ones((2, 3))] * 2, tw.ones((4, 3, 2))), ValueError, "do not fit weig"),
    (lambda: F.bilinear(*[tw.ones((2, 3))] * 2, tw.ones((4, 3))), ValueError, "weight must be"),
)


@pytest.mark.parametrize(("call", "error", "text"), MARGINS_REFUSED)
def test_wrong_arguments_are_refused(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


# ---- layers ----


@pytest.mark.parametrize("shape", [(5,), (2, 4, 5), ()])
def test_bilinear(shape, rng) -> None:
    ours, theirs = nn.Bilinear(3, 4, 2, dtype=tw.float64), torch.nn.Bilinear(3, 4, 2).double()
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({k: tw.asarray(v.numpy()) for k, v in theirs.state_dict().items()})
    (a, c), (b, d) = both(rng.normal(size=(*shape, 3))), both(rng.normal(size=(*shape, 4)))
    assert_like_pytorch(ours(a, b), theirs(c, d), (a, c), (b, d))
    np.testing.assert_allclose(ours.weight.grad.numpy(), theirs.weight.grad.numpy(), atol=1e-10)
    assert "bias" not in dict(nn.Bilinear(3, 4, 2, bias=False).named_parameters())


LAYERS = (
    ("Unfold", (2,), {"padding": 1}, (1, 3, 4, 5)),
    ("Fold", ((4, 5), 2), {}, (1, 12, 12)),
    ("Unflatten", (1, (2, 3)), {}, (4, 6)),
    ("Softmax2d", (), {}, (2, 3, 4, 5)),
    ("RReLU", (0.2, 0.4), {}, (3, 4)),
)


@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS)
def test_layers_are_pytorchs(name, args, options, shape, rng) -> None:
    ours, theirs = (getattr(m, name)(*args, **options).eval() for m in (nn, torch.nn))
    assert repr(ours) == repr(theirs)
    x, z = both(rng.normal(size=shape))
    assert_like_pytorch(ours(x), theirs(z), (x, z))


def test_random_slopes_lie_in_their_range() -> None:
    x = -tw.ones((1000,))
    slopes = -nn.RReLU(0.2, 0.4)(x).numpy()
    assert (slopes >= 0.2 - 1e-6).all()
    assert (slopes <= 0.4).all()
    assert slopes.std() > 0.04
    with pytest.raises(ValueError, match=r"lower 0\.5 is above upper 0\.4"):
        F.rrelu(x, 0.5, 0.4)


def test_formulas(rng) -> None:
    data = rng.normal(size=(4, 5))
    for p in (1.0, 2.0, 3.0):
        x, z = both(data)
        assert_like_pytorch(F.normalize(x, p), TF.normalize(z, p), (x, z))
        x, z = both(data)
        assert_like_pytorch(F.pdist(x, p), TF.pdist(z, p), (x, z))
    x, z = both(data)
    assert_like_pytorch(F.softmin(x, 0), TF.softmin(z, 0), (x, z))
    soft = F.gumbel_softmax(x, 0.5)
    np.testing.assert_allclose(soft.sum(axis=-1).detach().numpy(), 1, atol=1e-12)
    hard = F.gumbel_softmax(x, hard=True)
    assert sorted(np.unique(hard.detach().numpy().round(12))) == [0.0, 1.0]
    (hard * hard).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    counts = F.gumbel_softmax(tw.log(tw.asarray([0.2, 0.8])).broadcast_to((4000, 2)), hard=True)
    assert counts.mean(axis=0).numpy() == pytest.approx([0.2, 0.8], abs=0.03)
