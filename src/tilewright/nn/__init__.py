"""Neural network layers: modules with parameters, after PyTorch's names."""

from tilewright.nn import init
from tilewright.nn.activation import ReLU, Sigmoid, Softmax, Tanh
from tilewright.nn.container import ModuleList, Sequential
from tilewright.nn.dropout import Dropout
from tilewright.nn.flatten import Flatten
from tilewright.nn.linear import Linear
from tilewright.nn.loss import CrossEntropyLoss, MSELoss
from tilewright.nn.module import Module
from tilewright.nn.parameter import Parameter

__all__ = [
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "Linear",
    "MSELoss",
    "Module",
    "ModuleList",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "init",
]
