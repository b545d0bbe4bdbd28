"""Records of the ops that put elements elsewhere, repeat them, or take diagonals."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import FLOATS, INTEGERS
from cases.generators import exact, floats, same, values
from cases.ops.reductions import magnitude, summed
from cases.ops.shapes import CUBES, WIDE, record, refused, x23
from cases.record import Arrays, OpCase

MATRICES = ((3, 4), (5, 2), (1, 17), (0, 3), (4, 0))
COUNTS = (0, 3, 1, 2)


def several(*shapes: tuple[tuple[int, ...], ...]) -> Any:
    def make(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        return [tuple(values(rng, dtype, WIDE, shape) for shape in each) for each in shapes]

    return make


def joined(name: str, reference: Any, *shapes: tuple[tuple[int, ...], ...], **options: Any) -> Any:
    make = several(*shapes)
    function = getattr(tw, name)
    return record(
        name,
        lambda *x: function(x),
        lambda *x: reference(x),
        (),
        refused(lambda: function([]), ValueError, f"{name}: no tensors"),
        refused(
            lambda: function([tw.ones((2, 3, 4)), tw.ones((3, 2, 5))]), ValueError, f"{name}: shape"
        ),
        arguments=make,
        differentiable=(0, 1),
        smooth=lambda rng: make(rng, "float64")[:2],
        **options,
    )


def repeated(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        (values(rng, dtype, WIDE, shape), rng.permutation(COUNTS))
        for shape in ((2, 4, 3), (1, 4), (3, 4, 1), (0, 4))
    ]


def chosen(x: np.ndarray, size: int) -> np.ndarray:
    rows = list(combinations(range(len(x)), size))
    return x[np.array(rows, int).reshape(-1, size)]


def embedded(x: np.ndarray) -> np.ndarray:
    """On the diagonal below the main one of the planes of axes 0 and 2."""
    n = x.shape[-1] + 1
    y = np.zeros((*x.shape[:-1], n, n), x.dtype)
    i = np.arange(n - 1)
    y[..., i + 1, i] = x
    return np.moveaxis(y, (-2, -1), (0, 2))


def powers(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.int64) if x.dtype == bool else x
    return np.stack([x * x, x, np.ones_like(x)], -1)


def power_type(dtype: str) -> str:
    return dtype if dtype in (*FLOATS, "complex64", "complex128", "uint64") else "int64"


RECORDS = (
    record(
        "moveaxis",
        lambda x: tw.moveaxis(x, (0, -1), (-1, 0)),
        lambda x: np.moveaxis(x, (0, -1), (-1, 0)),
        CUBES,
        refused(lambda: tw.moveaxis(x23, 2, 0), IndexError, "moveaxis: axis 2"),
        refused(lambda: tw.moveaxis(x23, 0, -3), IndexError, "moveaxis: axis -3"),
        refused(
            lambda: tw.moveaxis(x23, (0, -2), (0, 1)), ValueError, "moveaxis: axis 0 is repeated"
        ),
        refused(lambda: tw.moveaxis(x23, (0, 1), (1, 1)), ValueError, "axis 1 is repeated"),
        refused(
            lambda: tw.moveaxis(x23, (0, 1), 0),
            ValueError,
            "moveaxis: source has 2 axes, destination 1",
        ),
    ),
    record(
        "matrix_transpose",
        tw.matrix_transpose,
        lambda x: np.swapaxes(x, -1, -2),
        (*CUBES, (4, 3)),
        refused(
            lambda: tw.matrix_transpose(tw.ones((3,))),
            ValueError,
            "matrix_transpose: needs at least 2 dimensions, got (3,)",
        ),
    ),
    record(
        "unstack",
        lambda x: tw.stack(tw.unstack(x, axis=1), -1),
        lambda x: np.moveaxis(x, 1, -1),
        ((2, 3, 4), (1, 17, 33), (0, 3, 2), (5, 1)),
        refused(lambda: tw.unstack(x23, axis=2), IndexError, "unstack: axis 2"),
        refused(lambda: tw.unstack(tw.ones(())), IndexError, "unstack: axis 0"),
    ),
    record(
        "unflatten",
        lambda x: tw.unflatten(x, 1, (-1, 2)),
        lambda x: x.reshape(x.shape[0], x.shape[1] // 2, 2, *x.shape[2:]),
        ((2, 6), (3, 4, 5), (0, 2), (2, 0)),
        refused(
            lambda: tw.unflatten(x23, 1, (2, 2)),
            ValueError,
            "unflatten: sizes (2, 2) do not divide axis 1 of extent 3",
        ),
        refused(lambda: tw.unflatten(x23, 1, (-1, 2)), ValueError, "unflatten: sizes (-1, 2)"),
        refused(lambda: tw.unflatten(x23, 1, (-1, -1, 3)), ValueError, "unflatten: sizes"),
        refused(lambda: tw.unflatten(x23, 1, ()), ValueError, "unflatten: sizes ()"),
        refused(lambda: tw.unflatten(x23, 2, (1, 2)), IndexError, "unflatten: axis 2"),
    ),
    record("ravel", tw.ravel, np.ravel, (*CUBES, (), (4,))),
    record(
        "rot90",
        lambda x: tw.rot90(x, 3, (1, 0)),
        lambda x: np.rot90(x, 3, (1, 0)),
        (*CUBES, (4, 3)),
        refused(lambda: tw.rot90(x23, 1, (0, -2)), ValueError, "rot90: axis 0 is repeated"),
        refused(lambda: tw.rot90(x23, 1, (0, 2)), IndexError, "rot90: axis 2"),
        refused(lambda: tw.rot90(x23, 1, (0, 1, 2)), ValueError, "rot90: axes must be two, got 3"),
        refused(lambda: tw.rot90(tw.ones((3,))), ValueError, "rot90: needs at least 2 dimensions"),
    ),
    record(
        "fliplr",
        tw.fliplr,
        np.fliplr,
        (*CUBES, (4, 3)),
        refused(lambda: tw.fliplr(tw.ones((3,))), ValueError, "fliplr: needs at least 2"),
    ),
    record(
        "flipud",
        tw.flipud,
        np.flipud,
        (*CUBES, (4,)),
        refused(lambda: tw.flipud(tw.ones(())), ValueError, "flipud: needs at least 1 dimension,"),
    ),
    record(
        "roll",
        lambda x: tw.roll(x, (-1, 5), (0, -1)),
        lambda x: np.roll(x, (-1, 5), (0, -1)),
        (*CUBES, (4, 3)),
        refused(lambda: tw.roll(x23, (1, 1), (0, 0)), ValueError, "roll: axis 0 is repeated"),
        refused(lambda: tw.roll(x23, (1, 1), 0), ValueError, "roll: 2 shifts for 1 axes"),
        refused(lambda: tw.roll(x23, (1, 1)), ValueError, "roll: 2 shifts need as many axes"),
        refused(lambda: tw.roll(x23, 1, 2), IndexError, "roll: axis 2"),
    ),
    joined("hstack", np.hstack, ((2, 3), (2, 4)), ((3,), ()), ((2, 0, 3), (2, 2, 3))),
    joined("vstack", np.vstack, ((2, 3), (3,)), ((4,), (4,)), ((), ()), ((0, 2), (3, 2))),
    joined("dstack", np.dstack, ((2, 3), (2, 3, 2)), ((4,), (4,)), ((), ()), ((0, 2), (0, 2, 3))),
    joined(
        "column_stack", np.column_stack, ((3,), (3, 2)), ((), (1,)), ((4, 0), (4,)), ((0,), (0, 2))
    ),
    OpCase(
        "vander",
        lambda x: tw.vander(x, 3),
        powers,
        lambda rng, dtype: [(values(rng, dtype, (-90, 90), (n,)),) for n in (5, 1, 0, 67)],
        {**exact("bool", *INTEGERS), **floats(0.51, 0.51), "complex64": 2, "complex128": 2},
        power_type,
        differentiable=(0,),
        smooth=lambda rng: [(rng.uniform(0.5, 2, 4),)],
        gradient_tolerance=4,
        errors=(
            refused(lambda: tw.vander(x23), ValueError, "vander: needs 1 dimension, got (2, 3)"),
            refused(lambda: tw.vander(tw.ones((2,)), -1), ValueError, "vander: N is negative: -1"),
        ),
    ),
    record(
        "tile",
        lambda x: tw.tile(x, (2, 1, 3)),
        lambda x: np.tile(x, (2, 1, 3)),
        (*CUBES, (4,), (3, 2), ()),
        refused(lambda: tw.tile(x23, (2, -1)), ValueError, "tile: negative repetitions in (2, -1)"),
        refused(
            lambda: tw.tile(x23, (2**40, 2**40)),
            ValueError,
            "tile: shape (",
        ),
    ),
    record(
        "repeat",
        lambda x: tw.repeat(x, 3, axis=1),
        lambda x: np.repeat(x, 3, 1),
        (*CUBES, (4, 3)),
        refused(lambda: tw.repeat(x23, -1), ValueError, "repeat: repeats is negative: -1"),
        refused(lambda: tw.repeat(x23, 1.0), TypeError, "repeat: repeats must be whole numbers"),
        refused(lambda: tw.repeat(x23, True), TypeError, "repeat: repeats must be whole numbers"),
        refused(
            lambda: tw.repeat(x23, tw.ones((3,)), axis=1),
            TypeError,
            "repeat: repeats must be whole numbers, got float32",
        ),
        refused(
            lambda: tw.repeat(x23, tw.asarray([1, 2]), axis=1),
            ValueError,
            "repeat: repeats of shape (2,) for 3 elements",
        ),
        refused(lambda: tw.repeat(x23, tw.asarray([1, -2, 4]), axis=1), ValueError, "negative: -2"),
        refused(lambda: tw.repeat(x23, 2, axis=2), IndexError, "repeat: axis 2"),
    ),
    record(
        "repeat_interleave",
        lambda x, n: tw.repeat_interleave(x, n, 1, output_size=sum(COUNTS)),
        lambda x, n: np.repeat(x, n.astype(np.int64), 1),
        (),
        refused(
            lambda: tw.repeat_interleave(x23, tw.asarray([1, 2, 3]), 1, output_size=7),
            ValueError,
            "repeat_interleave: the repeats add up to 6, not 7 elements",
        ),
        refused(
            lambda: tw.repeat_interleave(x23, tw.asarray([1, 2, 3]), 1, output_size=5),
            ValueError,
            "repeat_interleave: the repeats add up to more than 5 elements",
        ),
        refused(
            lambda: tw.repeat_interleave(x23, tw.asarray([1, -2, 3]), 1, output_size=2),
            ValueError,
            "repeat_interleave: repeats is negative: -2",
        ),
        arguments=repeated,
        smooth=lambda rng: repeated(rng, "float64")[:2],
    ),
    record(
        "combinations",
        lambda x: tw.combinations(x, 3),
        lambda x: chosen(x, 3),
        ((6,), (3,), (2,), (0,)),
        refused(lambda: tw.combinations(x23), ValueError, "combinations: needs 1 dimension"),
        refused(lambda: tw.combinations(tw.ones((2,)), -1), ValueError, "r is negative: -1"),
        smooth=lambda rng: [(rng.normal(size=5),)],
    ),
    record(
        "diagonal",
        lambda x: tw.diagonal(x, -1, -1, 0),
        lambda x: np.diagonal(x, -1, -1, 0),
        (*CUBES, *MATRICES),
        refused(
            lambda: tw.diagonal(tw.ones((3,))),
            ValueError,
            "diagonal: needs at least 2 dimensions, got (3,)",
        ),
        refused(lambda: tw.diagonal(x23, 0, 0, -2), ValueError, "diagonal: axis 0 is repeated"),
        refused(lambda: tw.diagonal(x23, 0, 0, 2), IndexError, "diagonal: axis 2"),
        smooth=lambda rng: [(rng.normal(size=s),) for s in ((3, 4), (2, 3, 4), (5, 2))],
    ),
    record(
        "diag",
        lambda x: tw.diag(x, 1),
        lambda x: np.diag(x, 1),
        (*MATRICES, (5,), (1,), (0,)),
        refused(lambda: tw.diag(tw.ones(())), ValueError, "diag: needs 1 or 2 dimensions, got ()"),
        refused(lambda: tw.diag(tw.ones((1, 2, 3))), ValueError, "diag: needs 1 or 2 dimensions"),
        smooth=lambda rng: [(rng.normal(size=s),) for s in ((3, 4), (3,), (4, 2))],
    ),
    record(
        "diag_embed",
        lambda x: tw.diag_embed(x, -1, 0, 2),
        embedded,
        ((2, 3), (2, 2, 2), (0, 3), (3, 0)),
        refused(
            lambda: tw.diag_embed(tw.ones(())),
            ValueError,
            "diag_embed: needs at least 1 dimension, got ()",
        ),
        refused(lambda: tw.diag_embed(x23, 0, 1, -2), ValueError, "diag_embed: axis 1 is repeated"),
        refused(lambda: tw.diag_embed(x23, 0, 0, 3), IndexError, "diag_embed: axis 3"),
    ),
    record(
        "diagflat",
        lambda x: tw.diagflat(x, -2),
        lambda x: np.diagflat(x, -2),
        ((3,), (2, 3), (), (0,)),
    ),
    OpCase(
        "trace",
        lambda x: tw.trace(x, 1),
        lambda x: np.trace(x, 1, dtype=np.int64 if x.dtype == bool else None),
        lambda rng, dtype: [(values(rng, dtype, (-90, 90), s),) for s in MATRICES],
        {**exact("bool", *INTEGERS), **floats(2, 2), "complex64": 2, "complex128": 2},
        summed,
        scale=magnitude(np.trace),
        differentiable=(0,),
        smooth=lambda rng: [(rng.normal(size=s),) for s in ((3, 4), (4, 2))],
        gradient_tolerance=0,
        errors=(
            refused(
                lambda: tw.trace(tw.ones((1, 2, 3))),
                ValueError,
                "trace: needs 2 dimensions, got (1, 2, 3)",
            ),
        ),
    ),
    OpCase(
        "bitwise_invert",
        tw.bitwise_invert,
        lambda x: ~x,
        lambda rng, dtype: [
            (np.asarray(values(rng, dtype, (-1e19, 1e19), s)),) for s in ((67,), (3, 5), (0, 2), ())
        ],
        exact("bool", *INTEGERS),
        same,
        elementwise=True,
        errors=(
            refused(
                lambda: tw.bitwise_invert(x23), TypeError, "bitwise_invert: no kernel for float32"
            ),
        ),
    ),
)
