"""Optimisers: each step is one native kernel over all parameters of a group."""

# Made by tools/make_stub.py from the modules beside it.

from tilewright.optim import lr_scheduler, swa_utils
from tilewright.optim.adabelief import AdaBelief
from tilewright.optim.adadelta import Adadelta
from tilewright.optim.adafactor import Adafactor
from tilewright.optim.adagrad import Adagrad
from tilewright.optim.adam import Adam, AdamW
from tilewright.optim.adamax import Adamax
from tilewright.optim.asgd import ASGD
from tilewright.optim.averaged_model import EMA
from tilewright.optim.lbfgs import LBFGS
from tilewright.optim.lion import Lion
from tilewright.optim.muon import Muon
from tilewright.optim.nadam import NAdam
from tilewright.optim.optimizer import Optimizer
from tilewright.optim.radam import RAdam
from tilewright.optim.rmsprop import RMSprop
from tilewright.optim.rprop import Rprop
from tilewright.optim.sgd import SGD

__all__ = [
    "ASGD",
    "EMA",
    "LBFGS",
    "SGD",
    "AdaBelief",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]
