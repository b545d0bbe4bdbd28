"""Losses as modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.functions import composites, ctc_loss
from tilewright.nn.module.module import Module


class _Loss(Module):
    """What all of them share: how losses are reduced."""

    reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none")

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in self.reductions:
            raise ValueError(
                f"{type(self).__name__}: reduction is one of {', '.join(self.reductions)}; "
                f"got {reduction!r}"
            )
        self.reduction = reduction

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


class _WeightedLoss(_Loss):
    """With a weight that is saved with the module, but not trained."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


# ---- classes ----


class NLLLoss(_WeightedLoss):
    """-x[target] of log-likelihoods (n, classes, d, ...) and class numbers (n, d, ...).

    >>> import tilewright as tw
    >>> tw.nn.NLLLoss()(tw.asarray([[-1.0, -2.0]]), tw.asarray([1])).item()
    2.0
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """-log softmax(logits)[target]; logits are (n, classes, d, ...), targets class numbers
    (n, d, ...), or probabilities of the logits' shape.

    >>> import tilewright as tw
    >>> loss = tw.nn.CrossEntropyLoss()(tw.zeros((1, 2)), tw.asarray([1]))
    >>> round(loss.item(), 4)
    0.6931
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return tw.cross_entropy(
            logits,
            targets,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
        )


# ---- differences ----


class MSELoss(_Loss):
    """(x - y)²; shapes must be equal.

    >>> import tilewright as tw
    >>> tw.nn.MSELoss()(tw.asarray([1.0, 3.0]), tw.asarray([1.0, 1.0])).item()
    2.0
    """

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return tw.mse_loss(x, y, self.reduction)


class L1Loss(_Loss):
    """|input - target|; shapes must be equal.

    >>> import tilewright as tw
    >>> tw.nn.L1Loss()(tw.asarray([1.0, 4.0]), tw.asarray([1.0, 1.0])).item()
    1.5
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.l1_loss(input, target, self.reduction)


class SmoothL1Loss(_Loss):
    """d² / (2 beta) for differences d below beta, and |d| - beta / 2 above (Girshick, 2015).

    >>> import tilewright as tw
    >>> tw.nn.SmoothL1Loss(reduction="none")(tw.asarray([0.5, 3.0]), tw.zeros((2,))).tolist()
    [0.125, 2.5]
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.smooth_l1_loss(input, target, self.reduction, self.beta)


class HuberLoss(_Loss):
    """d² / 2 for differences d below delta, and delta * (|d| - delta / 2) above (Huber, 1964).

    >>> import tilewright as tw
    >>> tw.nn.HuberLoss("none", delta=2.0)(tw.asarray([1.0, 3.0]), tw.zeros((2,))).tolist()
    [0.5, 4.0]
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.huber_loss(input, target, self.reduction, self.delta)


# ---- likelihoods ----


class BCELoss(_WeightedLoss):
    """-log-likelihood of targets from 0 to 1 under probabilities; shapes must be equal.

    >>> import tilewright as tw
    >>> round(tw.nn.BCELoss()(tw.asarray([0.5, 0.5]), tw.asarray([1.0, 0.0])).item(), 4)
    0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """BCELoss of sigmoid(input), without overflow; pos_weight multiplies what positive targets
    cost.

    >>> import tilewright as tw
    >>> loss = tw.nn.BCEWithLogitsLoss(pos_weight=tw.asarray([2.0]))
    >>> round(loss(tw.asarray([0.0]), tw.asarray([1.0])).item(), 4)
    1.3863
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.binary_cross_entropy_with_logits(
            input, target, self.weight, self.reduction, self.pos_weight
        )


class KLDivLoss(_Loss):
    """target * (log(target) - input) of log-probabilities and probabilities, or their logarithms.

    >>> import tilewright as tw
    >>> p = tw.asarray([[0.25, 0.75]])
    >>> tw.nn.KLDivLoss("batchmean")(tw.log(p), p).item()
    0.0
    """

    reductions = ("mean", "sum", "none", "batchmean")

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.kl_div(input, target, self.reduction, self.log_target)


class GaussianNLLLoss(_Loss):
    """-log-likelihood of targets under normal distributions of means and variances.

    >>> import tilewright as tw
    >>> loss = tw.nn.GaussianNLLLoss()(tw.zeros((2,)), tw.ones((2,)), tw.ones((2,)))
    >>> loss.item()
    0.5
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return tw.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(_Loss):
    """-log-likelihood of counts under Poisson distributions of means, or of their logarithms.

    >>> import tilewright as tw
    >>> tw.nn.PoissonNLLLoss()(tw.zeros((2,)), tw.ones((2,))).item()
    1.0
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.poisson_nll_loss(
            input, target, self.log_input, self.full, self.eps, self.reduction
        )


# ---- margins ----


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)) for targets 1 and -1.

    >>> import tilewright as tw
    >>> round(tw.nn.SoftMarginLoss()(tw.zeros((2,)), tw.ones((2,))).item(), 4)
    0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.soft_margin_loss(input, target, self.reduction)


class HingeEmbeddingLoss(_Loss):
    """Distances where the target is 1, and what they lack of the margin where it is -1.

    >>> import tilewright as tw
    >>> loss = tw.nn.HingeEmbeddingLoss(reduction="none")
    >>> loss(tw.asarray([0.5, 0.25]), tw.asarray([1, -1])).tolist()
    [0.5, 0.75]
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.hinge_embedding_loss(input, target, self.margin, self.reduction)


class MarginRankingLoss(_Loss):
    """max(0, margin - target * (input1 - input2)) for targets 1 and -1.

    >>> import tilewright as tw
    >>> loss = tw.nn.MarginRankingLoss(margin=1.0)
    >>> loss(tw.asarray([2.0]), tw.asarray([1.5]), tw.asarray([1])).item()
    0.5
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return tw.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cosine of pairs (n, d) with target 1, and the cosine above the margin of those with -1.

    >>> import tilewright as tw
    >>> x = tw.asarray([[1.0, 0.0], [1.0, 0.0]])
    >>> tw.nn.CosineEmbeddingLoss(reduction="sum")(x, x, tw.asarray([1, -1])).item()
    1.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return tw.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class TripletMarginLoss(_Loss):
    """max(0, margin + distance to the positive - distance to the negative).

    >>> import tilewright as tw
    >>> anchor, positive, negative = tw.zeros((1, 2)), tw.zeros((1, 2)), tw.ones((1, 2))
    >>> tw.nn.TripletMarginLoss()(anchor, positive, negative).item()
    0.0
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return tw.triplet_margin_loss(
            anchor,
            positive,
            negative,
            self.margin,
            self.p,
            self.eps,
            self.swap,
            self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """max(0, margin + distance to the positive - distance to the negative), by any distance.

    >>> import tilewright as tw
    >>> loss = tw.nn.TripletMarginWithDistanceLoss(
    ...     distance_function=lambda x, y: abs(x - y), margin=2.5
    ... )
    >>> loss(*(tw.asarray([[v]]) for v in (0.0, 1.0, 3.0))).item()
    0.5
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        if not margin > 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: margin must be above 0, got {margin}")
        self.distance_function = distance_function or tw.pairwise_distance
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return composites.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


# ---- classes by margins, and several labels ----


class MultiMarginLoss(_WeightedLoss):
    """max(0, margin - x[target] + x[i]) ** p of all other classes i, over the number of classes.

    >>> import tilewright as tw
    >>> tw.nn.MultiMarginLoss()(tw.asarray([[0.25, 0.75]]), tw.asarray([1])).item()
    0.25
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: p is 1 or 2, got {p}")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(_Loss):
    """max(0, 1 - x[label] + x[i]) of all labels and all classes i that are none; labels stand in
    front of the first -1.

    >>> import tilewright as tw
    >>> tw.nn.MultiLabelMarginLoss()(tw.asarray([[0.25, 0.75]]), tw.asarray([[1, -1]])).item()
    0.25
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.multilabel_margin_loss(input, target, self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over the classes of what BCEWithLogitsLoss costs, for targets of 0 and 1.

    >>> import tilewright as tw
    >>> loss = tw.nn.MultiLabelSoftMarginLoss()(tw.zeros((1, 2)), tw.asarray([[0.0, 1.0]]))
    >>> round(loss.item(), 4)
    0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return tw.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


# ---- sequences ----


class CTCLoss(_Loss):
    """-log of the probability of sequences of labels, in all ways to spread them over the steps.

    log_probs are (steps, batch, classes), targets (batch, labels) or one after the other, lengths
    tensors or sequences; see `tw.nn.functional.ctc_loss`. Source: A. Graves et al., "Connectionist
    temporal classification", ICML 2006.

    >>> import tilewright as tw
    >>> x = tw.zeros((3, 1, 2)).log_softmax(-1)
    >>> round(tw.nn.CTCLoss()(x, tw.asarray([[1]]), (3,), (1,)).item(), 4)
    0.2877
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return ctc_loss.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
