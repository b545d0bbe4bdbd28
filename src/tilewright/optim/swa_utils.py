"""Averages of weights and the rates for them, under PyTorch's name of the module."""

# Pickles of averaged models name the private ones here.
from tilewright.optim.averaged_model import (
    EMA,
    AveragedModel,
    _equal,  # noqa: F401
    _equal_of_one,  # noqa: F401
    _exponential,  # noqa: F401
    _exponential_of_one,  # noqa: F401
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)
from tilewright.optim.lr_scheduler.swa import SWALR

__all__ = [
    "EMA",
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]
