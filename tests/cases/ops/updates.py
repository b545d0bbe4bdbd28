"""Steps of optimizers: the states and settings of each, and optimizers by their formulas."""

import math

from tilewright import optim
from tilewright.optim.fused import FusedOptimizer

OPS = {
    "sgd_step": (0, {}),
    "momentum_step": (1, {"momentum": 0.9}),
    "nesterov_step": (1, {"momentum": 0.9, "weight_decay": 0.1}),
    "adam_step": (2, {"weight_decay": 0.1}),
    "adagrad_step": (1, {"lr_decay": 0.1}),
    "amsgrad_step": (3, {"weight_decay": 0.1, "decoupled": True}),
    "adamax_step": (2, {"weight_decay": 0.1}),
    "nadam_step": (2, {"weight_decay": 0.1, "momentum_decay": 0.01}),
    "radam_step": (2, {"weight_decay": 0.1, "maximize": True}),
    "adabelief_step": (2, {"weight_decay": 0.1}),
    "lion_step": (1, {"weight_decay": 0.1}),
    "asgd_step": (1, {"lambd": 0.1, "t0": 1.0, "weight_decay": 0.1}),
    "rprop_step": (2, {"largest": 2.0}),
    "adadelta_step": (2, {"weight_decay": 0.1}),
    "rmsprop_step": (1, {"weight_decay": 0.1}),
    "rmsprop_momentum_step": (2, {"momentum": 0.5}),
    "rmsprop_centered_step": (2, {"alpha": 0.5}),
    "rmsprop_centered_momentum_step": (3, {"momentum": 0.5, "alpha": 0.5}),
    "average_step": (0, {}),
}
# What takes all parameters at once beside them.
OTHERS = ("clip_all", "scale_all")


def sgd(x, g, state, step, momentum=0.0, dampening=0.0, decay=0.0, nesterov=False):
    g += decay * x
    if momentum:
        state["v"] = g if step == 1 else momentum * state["v"] + (1 - dampening) * g
        g = g + momentum * state["v"] if nesterov else state["v"]
    return x - 0.1 * g


def adam(x, g, state, step, decay=0.0, decoupled=False):
    if decoupled:
        x -= 0.1 * decay * x
    else:
        g += decay * x
    state["m"] = 0.9 * state.get("m", 0.0) + 0.1 * g
    state["v"] = 0.99 * state.get("v", 0.0) + 0.01 * g * g
    mean, square = state["m"] / (1 - 0.9**step), state["v"] / (1 - 0.99**step)
    return x - 0.1 * mean / (math.sqrt(square) + 1e-8)


def adabelief(x, g, state, step, decay=0.0, decoupled=False):
    if decoupled:
        x -= 0.1 * decay * x
    else:
        g += decay * x
    state["m"] = 0.9 * state.get("m", 0.0) + 0.1 * g
    state["s"] = 0.99 * state.get("s", 0.0) + 0.01 * (g - state["m"]) ** 2 + 1e-16
    mean, square = state["m"] / (1 - 0.9**step), state["s"] / (1 - 0.99**step)
    return x - 0.1 * mean / (math.sqrt(square) + 1e-16)


def lion(x, g, state, step, decay=0.0):
    m = state.get("m", 0.0)
    c = 0.9 * m + 0.1 * g
    state["m"] = 0.99 * m + 0.01 * g
    return x - 0.1 * ((c > 0) - (c < 0) + decay * x)


def adagrad(x, g, state, step):
    g += 0.05 * x
    state["s"] = state.get("s", 0.5) + g * g
    return x - 0.1 * g / (math.sqrt(state["s"]) + 1e-10)


# Optimisers by their published formulas, one element at a time: name, class, settings beside lr=0.1
# (PyTorch's are the same, where it has the optimiser), formula.
FORMULAS = {
    "sgd": ("SGD", {}, sgd),
    "sgd-decay": ("SGD", {"weight_decay": 0.05}, lambda *a: sgd(*a, decay=0.05)),
    "momentum": ("SGD", {"momentum": 0.9}, lambda *a: sgd(*a, momentum=0.9)),
    "dampening": (
        "SGD",
        {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.05},
        lambda *a: sgd(*a, momentum=0.9, dampening=0.5, decay=0.05),
    ),
    "nesterov": (
        "SGD",
        {"momentum": 0.9, "nesterov": True},
        lambda *a: sgd(*a, momentum=0.9, nesterov=True),
    ),
    "adam": ("Adam", {"betas": (0.9, 0.99)}, adam),
    "adam-decay": (
        "Adam",
        {"betas": (0.9, 0.99), "weight_decay": 0.05},
        lambda *a: adam(*a, decay=0.05),
    ),
    "adamw": (
        "AdamW",
        {"betas": (0.9, 0.99), "weight_decay": 0.05},
        lambda *a: adam(*a, decay=0.05, decoupled=True),
    ),
    "adagrad": ("Adagrad", {"weight_decay": 0.05, "initial_accumulator_value": 0.5}, adagrad),
    "adabelief": ("AdaBelief", {"betas": (0.9, 0.99)}, adabelief),
    "adabelief-decay": (
        "AdaBelief",
        {"betas": (0.9, 0.99), "weight_decay": 0.05},
        lambda *a: adabelief(*a, decay=0.05),
    ),
    "adabelief-decoupled": (
        "AdaBelief",
        {"betas": (0.9, 0.99), "weight_decay": 0.05, "decoupled_weight_decay": True},
        lambda *a: adabelief(*a, decay=0.05, decoupled=True),
    ),
    "adabelief-maximize": (
        "AdaBelief",
        {"betas": (0.9, 0.99), "maximize": True},
        lambda x, g, *a: adabelief(x, -g, *a),
    ),
    "lion": ("Lion", {"weight_decay": 0.05}, lambda *a: lion(*a, decay=0.05)),
}
BEYOND_PYTORCH = ("AdaBelief", "Lion")


def fused_optimizers() -> list[str]:
    """Names of the classes whose steps are ops."""
    values = {name: getattr(optim, name) for name in optim.__all__}
    return [
        name
        for name, value in values.items()
        if isinstance(value, type) and issubclass(value, FusedOptimizer)
    ]
