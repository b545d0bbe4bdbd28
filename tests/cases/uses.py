"""Calls of test records: operands with options that fit them, and gradients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tilewright as tw
from cases import RECORDS, arrays
from cases.check import tensors
from cases.record import OpCase

DIFFERENTIABLE = [case for case in RECORDS if case.differentiable]
# Ops without operands to vary: names by a call that gives the same result each time.
MADE = {
    "arange": lambda: tw.arange(2, 9, 3),
    "bernoulli": lambda: tw.bernoulli(0.3, (50,)),
    "cauchy": lambda: tw.cauchy(0.0, 1.0, (50,)),
    "dropout1d": lambda: tw.dropout1d(tw.ones((5, 6, 3)), 0.3),
    "dropout2d": lambda: tw.dropout2d(tw.ones((5, 6, 3, 2)), 0.3),
    "dropout3d": lambda: tw.dropout3d(tw.ones((5, 6, 3, 2, 1)), 0.3),
    "empty": lambda: tw.empty((0, 3)),
    "eye": lambda: tw.eye(4, 5, k=1),
    "exponential": lambda: tw.exponential(2.0, (50,)),
    "feature_alpha_dropout": lambda: tw.feature_alpha_dropout(tw.ones((5, 6, 3)), 0.3, True),
    "full": lambda: tw.full((3, 2), 2.5),
    "geometric": lambda: tw.geometric(0.3, (50,)),
    "linspace": lambda: tw.linspace(0.0, 1.0, 7),
    "log_normal": lambda: tw.log_normal(0.0, 1.0, (50,)),
    "multinomial": lambda: tw.multinomial(tw.arange(1, 9, dtype=tw.float32), 4),
    "normal": lambda: tw.normal(1.0, 2.0, (50,)),
    "ones": lambda: tw.ones((3,)),
    "binomial": lambda: tw.binomial(tw.full((50,), 9.0), tw.full((50,), 0.3)),
    "poisson": lambda: tw.poisson(tw.full((50,), 3.0)),
    "rand": lambda: tw.rand((50,)),
    "randint": lambda: tw.randint(0, 9, (50,)),
    "randn": lambda: tw.randn((50,)),
    "randperm": lambda: tw.randperm(50),
    "standard_gamma": lambda: tw.standard_gamma(tw.full((50,), 3.0)),
    "tril_indices": lambda: tw.tril_indices(4, 5, 1),
    "triu_indices": lambda: tw.triu_indices(4, 5, -1),
    "uniform": lambda: tw.uniform(-1.0, 1.0, (50,)),
    "zeros": lambda: tw.zeros((3, 1)),
}
# Results like their operand.
LIKE = {
    "copy": tw.Tensor.copy,
    "alpha_dropout": lambda x: tw.alpha_dropout(x, 0.3, True),
    "dropout": lambda x: tw.dropout(x, 0.3),
    "empty_like": lambda x: tw.empty_like(x) * 0,
    "full_like": lambda x: tw.full_like(x, 3),
    "ones_like": tw.ones_like,
    "rand_like": tw.rand_like,
    "randint_like": lambda x: tw.randint_like(x, 9),
    "randn_like": tw.randn_like,
    "zeros_like": tw.zeros_like,
}
# Operands that are large enough for memory to move them, and for calls without Python's lock.
LARGE = (256, 256)
LARGE_SHAPES = {
    "linear": (LARGE, LARGE, (256,)),
    "view_as_complex": ((128, 256, 2),),
    "cross_entropy": (LARGE, (256,)),
    "nll_loss": (LARGE, (256,), (256,)),
    "cosine_embedding_loss": (LARGE, LARGE, (256,)),
    "take": (LARGE, (300,)),
    "take_rows": (LARGE, (300,)),
    "embedding": ((300,), LARGE),
    "embedding_bag": ((256, 8), LARGE),
    "index_select": (LARGE, (256,)),
    "index_add": (LARGE, (256,), LARGE),
    "index_copy": (LARGE, (256,), LARGE),
    "index_fill": (LARGE, (256,)),
    "select_scatter": (LARGE, (256,)),
    "slice_scatter": ((256, 5), (256, 2)),
    "permute_dims": ((16, 64, 64),),
    "contiguous": ((16, 64, 64),),
    "layer_norm": (LARGE, (256,), (256,)),
    "rms_norm": (LARGE, (256,)),
    "prelu": (LARGE, (256,)),
    "group_norm": (LARGE, (256,), (256,)),
    "instance_norm": ((16, 16, 256), (16,), (16,)),
    "batch_norm": (LARGE, (256,), (256,)),
    "squeeze": ((256, 1, 256),),
    "bucketize": (LARGE, (256,)),
    "broadcast_to": ((3, 4),),
    "unflatten": (LARGE,),
    "vander": ((20000,),),
    "combinations": ((50,),),
    "repeat_interleave": ((64, 4, 256), (4,)),
    "diag_embed": ((16, 64),),
    "diagflat": ((250,),),
    "unfold": ((4, 8, 30, 30),),
    "fold": ((90, 36, 30),),
    **{
        f"{name}{axes}d{end}": ((16, 8, *size),)
        for name in ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool")
        for axes, size in ((1, (900,)), (2, (30, 30)), (3, (9, 10, 10)))
        for end in ("", "_with_indices")
    },
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle", "channel_shuffle"), ((8, 8, 32, 32),)),
    "local_response_norm": ((8, 8, 32, 32),),
    "resample": ((8, 8, 9, 10, 10),),
    "grid_sample": ((2, 8, 30, 30), (2, 30, 30, 2)),
    "affine_grid": ((2, 2, 3),),
    "ctc_loss": ((50, 40, 3), (40, 2), (40,), (40,)),
    "multi_margin_loss": (LARGE, (256,)),
    "multilabel_margin_loss": ((64, 40), (64, 40)),
    "cross": ((5000, 3), (5000, 3)),
    "cdist": ((90, 40), (70, 40)),
    "bilinear": ((64, 32), (64, 32), (32, 32, 32), (32,)),
    **{
        f"conv{axes}d": ((4, 8, *size), (8, 8, *[3] * axes), (8,))
        for axes, size in ((1, (900,)), (2, (30, 30)), (3, (9, 10, 10)))
    },
    **{
        f"conv_transpose{axes}d": ((4, 8, *size), (8, 8, *[3] * axes), (8,))
        for axes, size in ((1, (900,)), (2, (30, 30)), (3, (9, 10, 10)))
    },
}
for _cell, _gates, _states in (("rnn", 1, 1), ("lstm", 4, 2), ("gru", 3, 1)):
    _weights = ((_gates * 24, 20), (_gates * 24, 24), (_gates * 24,), (_gates * 24,))
    LARGE_SHAPES[f"{_cell}_layer"] = ((30, 20, 20), *((20, 24),) * _states, *_weights)
    LARGE_SHAPES[f"{_cell}_cell"] = ((200, 20), *((200, 24),) * _states, *_weights)


def per(cases):
    return pytest.mark.parametrize("case", cases, ids=str)


def bits(x: tw.Tensor) -> bytes:
    return arrays.array(x.detach()).tobytes()


def uses(case: OpCase, seed: int) -> Iterator[tuple[list[tw.Tensor], dict]]:
    """Operands of the op's first dtype with options that fit them; the shapes are the seeds'."""
    dtype = next(iter(case.tolerance))
    for args in case.arguments(np.random.default_rng(seed), dtype):
        for options in case.variants:
            if isinstance(options.get("axis"), int) and args[0].ndim == 0:
                continue
            yield tensors(args, dtype), dict(options)


def large_use(case: OpCase, seed: int | list[int]) -> tuple[list[tw.Tensor], dict]:
    """Large operands, in float64 where the op takes it, with the first options."""
    dtype = next(
        d
        for d in ("float64", "int64", "bool", "float32", "complex64", "complex128")
        if d in case.tolerance
    )
    given = case.arguments(np.random.default_rng(seed), dtype)[0]
    shapes = case.large or LARGE_SHAPES.get(case.name, (LARGE,) * len(given))
    return tensors(tuple(map(np.resize, given, shapes)), dtype), dict(case.variants[0])


def smooth_uses(case: OpCase) -> Iterator[tuple[list, dict]]:
    for options in case.variants:
        for args in case.smooth(np.random.default_rng(3)):
            made = [tw.asarray(a, copy=True) if isinstance(a, np.ndarray) else a for a in args]
            yield made, dict(options)


def gradients(case: OpCase, args: list, options: dict, wanted) -> list[tw.Tensor]:
    """Of the sum of squares, by the operands at the places `wanted`."""
    args = [x.detach() if isinstance(x, tw.Tensor) else x for x in args]
    leaves = [args[i].requires_grad_() for i in wanted]
    y = case.call(*args, **options)
    return list(tw.grad((y * y).sum(), leaves))
