"""Schedules of the learning rate, with PyTorch's names, values and state."""

from tilewright.optim.lr_scheduler.combined import (
    ChainedScheduler,
    SequentialLR,
)
from tilewright.optim.lr_scheduler.cycle import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    OneCycleLR,
)
from tilewright.optim.lr_scheduler.decay import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from tilewright.optim.lr_scheduler.plateau import (
    ReduceLROnPlateau,
)
from tilewright.optim.lr_scheduler.schedule import (
    LRScheduler,
)

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
