"""The rates of the part of a training whose weights are averaged."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.optim.lr_scheduler.schedule import LRScheduler, check_optimizer, values_by_group
from tilewright.optim.optimizer import Optimizer


class SWALR(LRScheduler):
    """From the present rates to `swa_lr` in `anneal_epochs` epochs, and constant from there.

    For the part of a training whose weights are averaged. `anneal_strategy` is "cos" or "linear".
    Raises ValueError for others, for fewer than 0 epochs and for another number of rates than
    groups, TypeError for rates and epochs that are no numbers. Source: P. Izmailov et al.,
    "Averaging weights leads to wider optima and better generalization", UAI 2018.

    >>> import tilewright as tw
    >>> optimizer = tw.optim.SGD([tw.zeros((2,), requires_grad=True)], lr=1.0)
    >>> schedule = tw.optim.swa_utils.SWALR(optimizer, 0.5, 2, "linear")
    >>> [(schedule.get_last_lr()[0], schedule.step())[0] for _ in range(4)]
    [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"SWALR: anneal_strategy is 'cos' or 'linear', got {anneal_strategy!r}"
            )
        if isinstance(anneal_epochs, bool) or not isinstance(anneal_epochs, int):
            raise TypeError(f"SWALR: anneal_epochs is a whole number, got {anneal_epochs!r}")
        if anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs must not be negative, got {anneal_epochs}")
        check_optimizer("SWALR", optimizer)
        self.anneal_epochs = anneal_epochs
        self._anneal_strategy = anneal_strategy
        groups = optimizer.param_groups
        for group, lr in zip(groups, values_by_group("SWALR: swa_lr", swa_lr, groups), strict=True):
            group["swa_lr"] = lr
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        # Another schedule may have set the rates meanwhile: what is left of the way to the end
        # shrinks as it would from where the way began.
        before, now = self._left(self.last_epoch - 1), self._left(self.last_epoch)
        share = now / before if before else 0.0
        return [
            group["swa_lr"] + (group["lr"] - group["swa_lr"]) * share for group in self._groups()
        ]

    def _take_groups(self) -> None:
        self._note_in_groups("swa_lr")
        super()._take_groups()

    def _left(self, epoch: int) -> float:
        """The share of the way that is left at an epoch."""
        if self.anneal_epochs == 0:
            return float(epoch < 0)
        done = min(max(epoch / self.anneal_epochs, 0.0), 1.0)
        return 1 - done if self._anneal_strategy == "linear" else (1 + math.cos(math.pi * done)) / 2
