"""Records of the ops that move elements without computing: same bits, other places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import ALL, INTEGERS
from cases.generators import exact, same, values
from cases.record import Arrays, ErrorInput, OpCase

EVERY = exact(*ALL)
WIDE = (-1e4, 1e4)


def of_shapes(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator, str], list[Arrays]]:
    def make(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        return [(values(rng, dtype, WIDE, shape),) for shape in shapes]

    return make


def record(
    name: str,
    call: Any,
    reference: Any,
    shapes: tuple[tuple[int, ...], ...],
    *errors: ErrorInput,
    arguments: Any = None,
    smooth: Any = None,
    differentiable: tuple[int, ...] = (0,),
) -> OpCase:
    return OpCase(
        name,
        call,
        reference,
        arguments or of_shapes(*shapes),
        EVERY,
        same,
        differentiable=differentiable,
        gradient_tolerance=0,
        errors=errors,
        smooth=smooth
        or (lambda rng: [(rng.normal(size=s),) for s in shapes if 0 < np.prod(s) < 30]),
    )


def refused(call: Callable[[], object], expected: type[Exception], text: str) -> ErrorInput:
    return ErrorInput(call, expected, text)


def three(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        tuple(values(rng, dtype, WIDE, s) for s in shapes)
        for shapes in (((2, 3), (2, 5), (2, 1)), ((2, 0), (2, 4), (2, 2)))
    ]


def three_alike(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [tuple(values(rng, dtype, WIDE, s) for _ in range(3)) for s in ((4,), (2, 3), (0, 2))]


def taken(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [(values(rng, dtype, WIDE, (7, 5)), rng.integers(-7, 7, 11))]


def taken_inside(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        (values(rng, dtype, WIDE, x), rng.integers(-5, 5, i))
        for x, i in (((7, 5), (11,)), ((2, 5, 3), (2, 2)), ((3, 5), (0,)))
    ]


def gathered(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        (values(rng, dtype, WIDE, x), rng.integers(-4, 4, i))
        for x, i in (((2, 4, 5), (2, 7, 3)), ((3, 4), (3, 1)), ((2, 4), (0, 3)))
    ]


def gathered_values(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    """Along axis 1, in the part of x that the index is as long as."""
    part = tuple(slice(None if axis == 1 else n) for axis, n in enumerate(i.shape))
    return np.take_along_axis(x[part], i, 1)


def padded(x: np.ndarray, mode: str = "constant") -> np.ndarray:
    theirs: Any = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    return np.pad(x[:, :-1], ((0, 0), (1, 0), (2, 1)), theirs)


def classes(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [(rng.integers(0, 5, shape).astype(dtype),) for shape in ((7,), (2, 3), (0, 2), ())]


CUBES = ((2, 3, 4), (1, 17, 33), (3, 0, 2), (5, 1, 1))
x23 = tw.ones((2, 3))

RECORDS = (
    record(
        "reshape",
        lambda x: tw.reshape(x, (-1, x.shape[0])),
        lambda x: x.reshape(-1, x.shape[0]),
        CUBES[:2],
        refused(
            lambda: tw.reshape(x23, (4, 2)),
            ValueError,
            "reshape: cannot view 6 elements of shape (2, 3) as (4, 2)",
        ),
        refused(
            lambda: tw.reshape(x23, (-1, -1)), ValueError, "reshape: only one extent may be -1"
        ),
        refused(lambda: tw.reshape(x23, (-1, 4)), ValueError, "reshape: cannot view"),
        refused(lambda: tw.reshape(x23, (-2, 3)), ValueError, "reshape: negative extent"),
        refused(
            lambda: tw.reshape(tw.reshape(x23, (3, 2)).T, (6,), copy=False),
            ValueError,
            "without a copy",
        ),
    ),
    record(
        "permute_dims",
        lambda x: tw.permute_dims(x, (2, 0, 1)),
        lambda x: x.transpose(2, 0, 1),
        CUBES,
        refused(
            lambda: tw.permute_dims(x23, (0,)), ValueError, "permute_dims: 1 axes for 2 dimensions"
        ),
        refused(
            lambda: tw.permute_dims(x23, (0, 0)), ValueError, "permute_dims: axis 0 is repeated"
        ),
        refused(lambda: tw.permute_dims(x23, (0, 2)), IndexError, "permute_dims: axis 2"),
    ),
    record(
        "broadcast_to",
        lambda x: tw.broadcast_to(x, (2, 3, 4)),
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        ((4,), (3, 1), (2, 3, 4), (1, 1, 4), (1,)),
        refused(
            lambda: tw.broadcast_to(x23, (3,)),
            ValueError,
            "broadcast_to: cannot broadcast (2, 3) to (3,)",
        ),
        refused(lambda: tw.broadcast_to(x23, (2, 4)), ValueError, "broadcast_to"),
    ),
    record(
        "expand_dims",
        lambda x: tw.expand_dims(x, axis=1),
        lambda x: np.expand_dims(x, 1),
        CUBES,
        refused(lambda: tw.expand_dims(x23, axis=3), IndexError, "expand_dims: axis 3"),
    ),
    record(
        "squeeze",
        lambda x: tw.squeeze(x, 1),
        lambda x: np.squeeze(x, 1),
        ((2, 1, 3), (0, 1), (5, 1)),
        refused(
            lambda: tw.squeeze(x23, 0), ValueError, "squeeze: axis 0 of (2, 3) has extent 2, not 1"
        ),
    ),
    record(
        "flip",
        lambda x: tw.flip(x, axis=(0, -1)),
        lambda x: np.flip(x, (0, -1)),
        CUBES,
        refused(lambda: tw.flip(x23, axis=2), IndexError, "flip: axis 2"),
    ),
    record(
        "transpose",
        lambda x: x.transpose(0, -1),
        lambda x: np.swapaxes(x, 0, -1),
        (*CUBES, (4,)),
        refused(lambda: x23.transpose(0, 2), IndexError, "transpose: axis 2"),
        refused(lambda: x23.transpose((0, 0)), ValueError, "transpose: axis 0 is repeated"),
    ),
    record(
        "flatten",
        lambda x: x.flatten(1),
        lambda x: x.reshape(len(x), int(np.prod(x.shape[1:]))),
        (*CUBES, (2, 3, 4, 2)),
        refused(lambda: x23.flatten(1, 0), ValueError, "start axis 1 is behind end axis 0"),
        refused(lambda: x23.flatten(0, 2), IndexError, "flatten: axis 2"),
    ),
    record(
        "contiguous",
        lambda x: tw.permute_dims(x, (2, 0, 1)).contiguous(),
        lambda x: x.transpose(2, 0, 1),
        CUBES,
    ),
    record("astype", lambda x: tw.astype(x, x.dtype), lambda x: x, CUBES),
    record(
        "tril",
        tw.tril,
        np.tril,
        ((3, 4), (2, 5, 3), (4, 0)),
        refused(lambda: tw.tril(tw.ones((3,))), ValueError, "tril: needs at least 2 dimensions"),
    ),
    record(
        "triu",
        tw.triu,
        np.triu,
        ((3, 4), (2, 5, 3), (4, 0)),
        refused(lambda: tw.triu(tw.ones((3,))), ValueError, "triu: needs at least 2 dimensions"),
    ),
    record(
        "concat",
        lambda *x: tw.concat(x, axis=1),
        lambda *x: np.concatenate(x, 1),
        (),
        refused(lambda: tw.concat([]), ValueError, "concat: no tensors"),
        refused(lambda: tw.concat([tw.ones(())]), ValueError, "concat: 0-d tensors have no axis"),
        refused(
            lambda: tw.concat([x23, tw.ones((2, 4))]),
            ValueError,
            "concat: shapes differ outside axis 0: (2, 3) and (2, 4)",
        ),
        refused(lambda: tw.concat([x23], axis=2), IndexError, "concat: axis 2"),
        arguments=three,
        differentiable=(0, 1, 2),
        smooth=lambda rng: three(rng, "float64")[:1],
    ),
    record(
        "stack",
        lambda *x: tw.stack(x, axis=-1),
        lambda *x: np.stack(x, -1),
        (),
        refused(lambda: tw.stack([]), ValueError, "stack: no tensors"),
        refused(
            lambda: tw.stack([x23, tw.ones((3, 2))]),
            ValueError,
            "stack: shapes differ: (2, 3) and (3, 2)",
        ),
        refused(lambda: tw.stack([x23], axis=3), IndexError, "axis 3"),
        arguments=three_alike,
        differentiable=(0, 1, 2),
        smooth=lambda rng: three_alike(rng, "float64")[:2],
    ),
    record(
        "take",
        lambda x, i: tw.take(x, i, axis=0),
        lambda x, i: np.take(x, i.astype(np.int64), 0),
        (),
        refused(
            lambda: tw.take(x23, tw.asarray([2]), axis=0),
            IndexError,
            "2 is out of range for axis 0 with size 2",
        ),
        refused(lambda: tw.take(x23, tw.asarray([0.5]), axis=0), Exception, ""),
        arguments=taken,
        smooth=lambda rng: taken(rng, "float64"),
    ),
    record(
        "take_rows",
        lambda x, i: tw.take(x, i, axis=1),
        lambda x, i: np.take(x, i.astype(np.int64), 1),
        (),
        refused(
            lambda: tw.take(x23, tw.asarray([-4]), axis=1),
            IndexError,
            "-4 is out of range for axis 1 with size 3",
        ),
        arguments=taken_inside,
        smooth=lambda rng: taken_inside(rng, "float64"),
    ),
    record(
        "gather",
        lambda x, i: tw.gather(x, 1, i),
        gathered_values,
        (),
        refused(
            lambda: tw.gather(x23, 1, tw.asarray([[3], [0]])),
            IndexError,
            "gather: index 3 is out of range for axis 1 with size 3",
        ),
        refused(
            lambda: tw.gather(x23, 1, tw.ones((2, 1))),
            IndexError,
            "gather: index must be integers, got float32",
        ),
        refused(
            lambda: tw.gather(x23, 1, tw.asarray([[0], [0], [0]])),
            ValueError,
            "gather: index (3, 1) does not fit (2, 3)",
        ),
        refused(lambda: tw.gather(x23, 2, tw.asarray([[0]])), IndexError, "gather: axis 2"),
        arguments=gathered,
        smooth=lambda rng: gathered(rng, "float64")[:2],
    ),
    OpCase(
        "pad",
        lambda x, mode="constant": tw.pad(x, (2, 1, 1, -1), mode),
        padded,
        of_shapes((2, 3, 4), (1, 4, 33), (0, 3, 3)),
        EVERY,
        same,
        variants=({}, {"mode": "reflect"}, {"mode": "replicate"}, {"mode": "circular"}),
        differentiable=(0,),
        smooth=lambda rng: [(rng.normal(size=(2, 3, 4)),)],
        gradient_tolerance=4,
        errors=(
            refused(
                lambda: tw.pad(x23, (1,)),
                ValueError,
                "pad: expected a pair of widths for some of the last axes of (2, 3), got 1 width",
            ),
            refused(lambda: tw.pad(x23, (1,) * 6), ValueError, "of (2, 3), got 6 widths"),
            refused(
                lambda: tw.pad(x23, (-2, -2)),
                ValueError,
                "pad: widths -2 and -2 leave out more than 3 elements of axis 1 of (2, 3)",
            ),
            refused(
                lambda: tw.pad(x23, (3, 0), "reflect"),
                ValueError,
                "pad: width 3 is more than axis 1 of (2, 3) allows in mode 'reflect'",
            ),
            refused(
                lambda: tw.pad(x23, (0, 4), "circular"),
                ValueError,
                "pad: width 4 is more than axis 1 of (2, 3) allows in mode 'circular'",
            ),
            refused(
                lambda: tw.pad(tw.ones((2, 0)), (0, 1), "replicate"),
                ValueError,
                "pad: width 1 is more than axis 1 of (2, 0) allows in mode 'replicate'",
            ),
            refused(
                lambda: tw.pad(x23, (1, 1), "reflect", 2.0),
                ValueError,
                "pad: value is for mode 'constant'",
            ),
        ),
    ),
    OpCase(
        "one_hot",
        lambda i: tw.one_hot(i, 5),
        lambda i: np.eye(5)[i.astype(np.int64)],
        classes,
        exact(*INTEGERS),
        lambda dtype: "float32",
        errors=(
            refused(
                lambda: tw.one_hot(tw.asarray([0.5]), 3),
                TypeError,
                "one_hot: indices must be integers, got float32",
            ),
            refused(
                lambda: tw.one_hot(tw.asarray([3]), 3),
                IndexError,
                "one_hot: index 3 is out of range for 3 classes",
            ),
        ),
    ),
)
