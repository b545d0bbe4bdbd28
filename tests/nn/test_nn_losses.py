"""Losses as modules against PyTorch's: values, gradients, states, how they are shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")


def tensors(arrays: tuple[Any, ...], library: Any) -> list[Any]:
    return [library(x.copy()) if isinstance(x, np.ndarray) else x for x in arrays]


def inputs(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    n, shape = rng.normal, (4, 3)
    signs = rng.choice([-1.0, 1.0], shape)
    return {
        "pair": (n(size=shape), n(size=shape)),
        "probabilities": (rng.uniform(size=shape), rng.uniform(size=shape)),
        "logits": (n(size=shape), rng.uniform(size=shape)),
        "normal": (n(size=shape), n(size=shape), rng.uniform(0.5, 2, shape)),
        "counts": (n(size=shape), rng.integers(0, 5, shape).astype(float)),
        "signs": (n(size=shape), signs),
        "two and signs": (n(size=shape), n(size=shape), signs),
        "vectors": (n(size=shape), n(size=shape), signs[:, 0]),
        "three": (n(size=shape), n(size=shape), n(size=shape)),
        "classes": (n(size=shape), rng.integers(0, 3, 4)),
        "labels": (n(size=shape), np.array([[2, 0, -1], [-1, 1, 2], [0, 1, 2], [1, -1, 0]])),
    }[kind]


WEIGHT = np.array([0.5, 1.0, 2.0])
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("NLLLoss", "classes", {}),
    ("NLLLoss", "classes", {"weight": WEIGHT, "ignore_index": 1}),
    ("CrossEntropyLoss", "classes", {}),
    ("CrossEntropyLoss", "classes", {"weight": WEIGHT, "ignore_index": 1, "label_smoothing": 0.1}),
    ("CrossEntropyLoss", "logits", {"weight": WEIGHT}),
    ("MSELoss", "pair", {}),
    ("L1Loss", "pair", {}),
    ("SmoothL1Loss", "pair", {"beta": 0.5}),
    ("HuberLoss", "pair", {"delta": 0.5}),
    ("BCELoss", "probabilities", {}),
    ("BCELoss", "probabilities", {"weight": WEIGHT}),
    ("BCEWithLogitsLoss", "logits", {}),
    ("BCEWithLogitsLoss", "logits", {"weight": WEIGHT, "pos_weight": WEIGHT}),
    ("KLDivLoss", "logits", {}),
    ("KLDivLoss", "pair", {"log_target": True}),
    ("GaussianNLLLoss", "normal", {"full": True, "eps": 1e-3}),
    ("PoissonNLLLoss", "counts", {"full": True}),
    ("SoftMarginLoss", "signs", {}),
    ("HingeEmbeddingLoss", "signs", {"margin": 0.5}),
    ("MarginRankingLoss", "two and signs", {"margin": 0.5}),
    ("CosineEmbeddingLoss", "vectors", {"margin": 0.25}),
    ("TripletMarginLoss", "three", {"margin": 0.5, "p": 1.0, "swap": True}),
    ("TripletMarginWithDistanceLoss", "three", {"margin": 0.5, "swap": True}),
    ("MultiMarginLoss", "classes", {"p": 2, "margin": 0.5, "weight": WEIGHT}),
    ("MultiLabelMarginLoss", "labels", {}),
    ("MultiLabelSoftMarginLoss", "logits", {"weight": WEIGHT}),
]


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")  # of PyTorch's KLDivLoss
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "kind", "options"), CASES)
def test_losses(
    name: str, kind: str, options: dict[str, Any], reduction: str, rng: np.random.Generator
) -> None:
    made = inputs(kind, rng)
    options = {**options, "reduction": reduction}
    values = tuple(options.values())
    ours = getattr(nn, name)(**dict(zip(options, tensors(values, tw.asarray), strict=True)))
    theirs = getattr(torch.nn, name)(
        **dict(zip(options, tensors(values, torch.tensor), strict=True))
    )
    x, z = tensors(made, tw.asarray), tensors(made, torch.tensor)
    x[0].requires_grad_()
    z[0].requires_grad_()
    y, expected = ours(*x), theirs(*z)
    np.testing.assert_allclose(y.detach().numpy(), expected.detach().numpy(), rtol=1e-9)
    g = rng.normal(size=y.shape)
    y.backward(tw.asarray(g))
    expected.backward(torch.tensor(g))
    np.testing.assert_allclose(x[0].grad.numpy(), z[0].grad.numpy(), rtol=1e-8, atol=1e-12)
    assert set(ours.state_dict()) == set(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    assert not list(ours.parameters())


def test_every_loss_is_tried() -> None:
    found = {name for name in nn.__all__ if name.endswith("Loss")}
    # PyTorch's gradient of CTC is one of logits: see test_ctc_and_margins.py.
    # The adaptive softmax has parameters: see test_nn_adaptive_softmax.py.
    assert found - {"CTCLoss", "AdaptiveLogSoftmaxWithLoss"} == {name for name, *_ in CASES}


def test_distances(rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(2, 4, 3, 2))
    for name, options in (
        ("CosineSimilarity", {"dim": 2}),
        ("CosineSimilarity", {}),
        ("PairwiseDistance", {"p": 1.0, "keepdim": True}),
        ("PairwiseDistance", {}),
    ):
        y = getattr(nn, name)(**options)(tw.asarray(a), tw.asarray(b))
        expected = getattr(torch.nn, name)(**options)(torch.tensor(a), torch.tensor(b))
        np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-9)


def test_weights_follow_the_module() -> None:
    loss = nn.CrossEntropyLoss(tw.asarray(WEIGHT))
    assert loss.float().weight.dtype == tw.float32
    with pytest.raises(TypeError, match="buffer 'weight': expected a tensor, got list"):
        nn.NLLLoss([1.0])


def test_unknown_reductions() -> None:
    for name in {name for name in nn.__all__ if name.endswith("Loss")} - {
        "AdaptiveLogSoftmaxWithLoss"
    }:
        with pytest.raises(ValueError, match=f"{name}: reduction is one of mean, sum, none"):
            getattr(nn, name)(reduction="average")
    with pytest.raises(ValueError, match="L1Loss: reduction is one of"):
        nn.L1Loss("batchmean")


def test_how_they_are_shown() -> None:
    assert repr(nn.HuberLoss("sum")) == "HuberLoss(reduction='sum')"
    assert repr(nn.CosineSimilarity()) == "CosineSimilarity(dim=1, eps=1e-08)"
