"""Optimisers: each step is one native kernel over all parameters of a group."""

from tilewright.optim.adagrad import Adagrad
from tilewright.optim.adam import Adam, AdamW
from tilewright.optim.optimizer import Optimizer
from tilewright.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer"]
