"""For each op of the engine, arguments by name with which it can be called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import tilewright as tw
from cases import RECORDS


def ones(*shape: int, dtype: str = "float32") -> tw.Tensor:
    return tw.ones(shape, dtype=getattr(tw, dtype))


def ints(*values: Any) -> tw.Tensor:
    return tw.asarray(list(values))


BY_TYPE: Mapping[str, Any] = {
    "Tensor": ones(4, 4),
    "Operand": ones(4, 4),
    "Number": 1.0,
    "int": 1,
    "float": 0.5,
    "Shape": (2,),
    "dtype": tw.float32,
}
BY_NAME: Mapping[str, Any] = {"axis": 0, "axis0": 0, "axis1": 1, "step": 1, "lr": 0.1}
BITS = {"a": ints(1, 2), "b": ints(1, 2)}
GATES = {"x": ones(2, 1, 4), "h0": ones(1, 4)}
PLACES = {"index": ints([0]), "src": ones(1, 1)}
IMAGE = ones(1, 4, 4, 4)
# Where the parameters' types alone say too little.
BY_OP: Mapping[str, Mapping[str, Any]] = {
    **{f"bitwise_{name}": BITS for name in ["and", "or", "xor", "left_shift", "right_shift"]},
    "bitwise_invert": {"x": ints(1, 2)},
    "prelu": {"weight": ones(1)},
    "layer_norm": {"normalized_shape": (4,)},
    "rms_norm": {"normalized_shape": (4,)},
    "group_norm": {"num_groups": 2},
    "batch_norm": {"running_mean": ones(4), "running_var": ones(4)},
    "instance_norm": {"x": ones(2, 4, 4)},
    "reshape": {"shape": (16,)},
    "permute_dims": {"axes": (1, 0)},
    "broadcast_to": {"shape": (4, 4)},
    "moveaxis": {"source": 0, "destination": 1},
    "unflatten": {"sizes": (2, 2)},
    "roll": {"shift": 1},
    "vander": {"x": ones(3)},
    "repeat": {"repeats": 2},
    "repeat_interleave": {"repeats": 2},
    "combinations": {"x": ones(3)},
    "view_as_real": {"x": ones(3, dtype="complex64")},
    "view_as_complex": {"x": ones(3, 2)},
    "imag": {"x": ones(3, dtype="complex64")},
    "arange": {"start": 3},
    "linspace": {"start": 0, "stop": 1, "num": 3},
    "uniform": {"low": 0.0, "high": 1.0},
    "randint": {"low": 0, "high": 2},
    "randint_like": {"low": 2},
    "bernoulli": {"p": 0.5, "size": (2,)},
    "cross_entropy": {"targets": ints(0, 1, 2, 3)},
    "nll_loss": {"target": ints(0, 1, 2, 3)},
    "cosine_embedding_loss": {"target": ones(4)},
    "multi_margin_loss": {"target": ints(0, 1, 2, 3)},
    "multilabel_margin_loss": {"target": ints(*[[0, -1, -1, -1]] * 4)},
    "ctc_loss": {
        "log_probs": tw.log_softmax(ones(4, 1, 3), -1),
        "targets": ints([1]),
        "input_lengths": ints(4),
        "target_lengths": ints(1),
    },
    "rnn_layer": GATES,
    "lstm_layer": {**GATES, "c0": ones(1, 4), "weight_ih": ones(16, 4), "weight_hh": ones(16, 4)},
    "gru_layer": {**GATES, "weight_ih": ones(12, 4), "weight_hh": ones(12, 4)},
    "lstm_cell": {"weight_ih": ones(16, 4), "weight_hh": ones(16, 4)},
    "gru_cell": {"weight_ih": ones(12, 4), "weight_hh": ones(12, 4)},
    "unfold": {"input": IMAGE, "kernel_size": 2},
    "fold": {"input": ones(1, 4, 4), "output_size": (3, 3), "kernel_size": 2},
    "grid_sample": {"input": IMAGE, "grid": ones(1, 2, 2, 2)},
    "affine_grid": {"theta": ones(1, 2, 3), "size": (1, 1, 2, 2)},
    "pixel_shuffle": {"input": IMAGE, "upscale_factor": 2},
    "pixel_unshuffle": {"input": IMAGE, "downscale_factor": 2},
    "channel_shuffle": {"input": IMAGE, "groups": 2},
    "local_response_norm": {"input": IMAGE},
    "resample": {"input": ones(1, 1, 4)},
    "cross": {"x1": ones(2, 3), "x2": ones(2, 3)},
    "bilinear": {"weight": ones(2, 4, 4)},
    "dropout2d": {"input": IMAGE},
    "dropout3d": {"input": IMAGE},
    "pad": {"pad": (1, 1)},
    "take": {"indices": ints(0), "axis": 0},
    "gather": {"index": ints([0])},
    "take_along_axis": {"indices": ints([0])},
    "scatter": PLACES,
    "scatter_add": PLACES,
    "scatter_reduce": {**PLACES, "reduce": "sum"},
    "index_select": {"index": ints(0)},
    "index_add": {"index": ints(0), "source": ones(1, 4)},
    "index_copy": {"index": ints(0), "source": ones(1, 4)},
    "index_fill": {"index": ints(0), "value": 1.0},
    "masked_fill": {"mask": ones(4, dtype="bool"), "value": 1.0},
    "masked_select": {"mask": ones(4, dtype="bool")},
    "masked_scatter": {"mask": ones(4, dtype="bool")},
    "select": {"index": 0},
    "select_scatter": {"src": ones(4), "index": 0},
    "one_hot": {"indices": ints(0), "num_classes": 2},
    "embedding": {"input": ints(0)},
    "embedding_bag": {"input": ints([0])},
    "searchsorted": {"x1": ones(3)},
    "bucketize": {"boundaries": ones(3)},
    "bincount": {"x": ints(0)},
    "quantile": {"q": 0.5},
    "nanquantile": {"q": 0.5},
    "cumulative_sum": {"axis": 0},
    "cumulative_prod": {"axis": 0},
    "scale_all": {"number": 1.0},
    "clip_all": {"number": 1.0},
    **{
        f"conv{n}d": {"input": ones(1, *[4] * (n + 1)), "weight": ones(2, 4, *[1] * n)}
        for n in (1, 2, 3)
    },
    **{
        f"conv_transpose{n}d": {"input": ones(1, *[4] * (n + 1)), "weight": ones(4, 2, *[1] * n)}
        for n in (1, 2, 3)
    },
    **{
        f"max_unpool{n}d": {
            "input": ones(1, 1, *[1] * n),
            "indices": tw.zeros((1, 1, *[1] * n), dtype=tw.int64),
            "kernel_size": 2,
        }
        for n in (1, 2, 3)
    },
}  # fmt: skip


# Shapes that fit together, by record.
SHAPES = {case.name: case.large for case in RECORDS if case.large}


def arguments(op: Mapping[str, Any]) -> dict[str, Any]:
    """Those that the op must have and those that `BY_OP` lists, in the signature's order."""
    name = op["name"]
    own = dict(BY_OP.get(name, {}))
    if pool := re.match(r"(adaptive_)?(?:max|avg)_pool(\d)d", name):
        own["input"] = ones(1, 2, *[4] * int(pool[2]))
        own["output_size" if pool[1] else "kernel_size"] = 2
    given: dict[str, Any] = {}
    inside = op["signature"][1 : op["signature"].rindex(") ->")]
    operands = re.findall(r"(\w+): Tensor", inside)
    own |= zip(operands, (ones(*shape) for shape in SHAPES.get(name, ())), strict=False)
    for parameter in re.split(r", ", inside):
        key, _, rest = parameter.partition(": ")
        kind = rest.replace("!", "").replace(" | None", "")
        if key in own:
            given[key] = own[key]
        elif rest and " = " not in rest:
            several = kind == "Sequence[Tensor]"
            given[key] = [ones(2), ones(2)] if several else BY_NAME.get(key, BY_TYPE.get(kind))
    return given
