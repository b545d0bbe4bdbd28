"""A softmax over many classes in which rare ones cost little."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.nn.functions.random_values import draw_first
from tilewright.nn.layers.linear import Linear
from tilewright.nn.module.container import ModuleList, Sequential
from tilewright.nn.module.module import Module


class OutputAndLoss(NamedTuple):
    """Logarithms of the targets' probabilities, and the mean of their negatives."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of many classes, the most frequent ones first, and their loss.

    Classes below cutoffs[0] stand in the head with one entry for each further cluster, which end
    at the other cutoffs and at n_classes. Cluster i, from 1 on, has its own softmax over features
    that are projected to in_features // div_value^i, and is computed for the rows whose targets lie
    in it. Source: E. Grave et al., "Efficient softmax approximation for GPUs" (2017), as PyTorch's
    torch.nn.AdaptiveLogSoftmaxWithLoss has it.

    Shapes: input (n, in_features), target (n,); output is (n,), loss (). One row (in_features,)
    with a target () has an output ().
    Types: floating input, integer target. Result: the input's type.
    Raises ValueError for cutoffs that do not rise between 0 and n_classes, for shapes that do not
    fit and, where targets are on the CPU, for targets that are no classes; TypeError for targets
    that are no integers.

    >>> import tilewright as tw
    >>> softmax = tw.nn.AdaptiveLogSoftmaxWithLoss(8, 100, [10, 50])
    >>> x = tw.ones((3, 8))
    >>> output, loss = softmax(x, tw.asarray([0, 40, 99]))
    >>> output.shape, softmax.log_prob(x).shape, softmax.predict(x).shape
    ((3,), (3, 100), (3,))
    """

    head: Linear
    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: str | None = None,
        dtype: tw.dtype | None = None,
        *,
        generator: Generator | None = None,
    ) -> None:
        cutoffs = list(cutoffs)
        rising = all(a < b for a, b in pairwise([0, *cutoffs, n_classes]))
        if not cutoffs or not rising or not all(isinstance(c, int) for c in cutoffs):
            raise ValueError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs are whole numbers that rise between 0 and "
                f"n_classes, got {cutoffs} of {n_classes}"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters

        def linear(n: int, m: int, bias: bool = False) -> Linear:
            return Linear(n, m, bias, device=device, dtype=dtype, generator=generator)

        self.head = linear(in_features, self.head_size, head_bias)
        self.tail = ModuleList()
        for i, (first, end) in enumerate(pairwise(self.cutoffs), 1):
            narrow = int(in_features // div_value**i)
            self.tail.append(Sequential(linear(in_features, narrow), linear(narrow, end - first)))

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draws new weights and biases."""
        draw_first(self.head, generator)
        for cluster in self.tail:
            for layer in cluster.children():
                draw_first(layer, generator)

    def forward(self, input: Tensor, target: Tensor) -> OutputAndLoss:
        self._check(input, target)
        if target.ndim == 0:
            output, loss = self.forward(input.unsqueeze(0), target.unsqueeze(0))
            return OutputAndLoss(output.squeeze(0), loss)
        starts = self.cutoffs[:-1]
        cluster: Tensor = tw.stack([target >= start for start in starts]).sum(axis=0)
        entry = tw.where(cluster > 0, cluster + (self.shortlist_size - 1), target)
        output = self._head(input).gather(1, entry.unsqueeze(1)).squeeze(1)
        for i, start in enumerate(starts):
            (rows,) = tw.nonzero(cluster == i + 1)
            if rows.numel():
                inside = target.index_select(0, rows) - start
                scores = self.tail[i](input.index_select(0, rows)).log_softmax(1)
                output = output.index_add(0, rows, scores.gather(1, inside.unsqueeze(1)).squeeze(1))
        return OutputAndLoss(output, -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes: (n, n_classes) of an input (n, in_features).

        Raises ValueError for other shapes.
        """
        self._check_rows(input)
        head = self._head(input)
        parts = [head[:, : self.shortlist_size]]
        for i, layer in enumerate(self.tail, self.shortlist_size):
            parts.append(layer(input).log_softmax(1) + head[:, i : i + 1])
        return tw.concat(parts, axis=1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row: (n,), int64, of an input (n, in_features).

        Clusters are computed for rows alone whose largest entry of the head is a cluster. Raises
        ValueError for other shapes.
        """
        self._check_rows(input)
        found: Tensor = self.head(input).argmax(1)
        (rows,) = tw.nonzero(found >= self.shortlist_size)
        if not rows.numel():
            return found
        best = self.log_prob(input.index_select(0, rows)).argmax(1)
        found = found.index_copy(0, rows, best)
        return found

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.n_classes}, cutoffs={self.cutoffs[:-1]}"

    def _head(self, input: Tensor) -> Tensor:
        scores: Tensor = self.head(input)
        return scores.log_softmax(1)

    def _check_rows(self, input: Tensor) -> None:
        if input.ndim != 2 or input.shape[1] != self.in_features:
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: expected an input (n, {self.in_features}), got "
                f"{input.shape}"
            )

    def _check(self, input: Tensor, target: Tensor) -> None:
        name = type(self).__name__
        if not tw.isdtype(target.dtype, "integral"):
            raise TypeError(f"{name}: targets are classes, integers, got {target.dtype.name}")
        if target.ndim > 1 or input.shape != (*target.shape, self.in_features):
            raise ValueError(
                f"{name}: expected an input (n, {self.in_features}) and a target (n,), or one row, "
                f"got {input.shape} and {target.shape}"
            )
        if target.numel() and target.device == "cpu":
            least, most = (int(each.item()) for each in tw.aminmax(target))
            if least < 0 or most >= self.n_classes:
                raise ValueError(
                    f"{name}: targets are classes from 0 to {self.n_classes - 1}, got {least} to "
                    f"{most}"
                )
