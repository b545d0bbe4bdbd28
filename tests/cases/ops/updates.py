"""Steps of optimizers: how many states each has, and settings to call it with."""

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
