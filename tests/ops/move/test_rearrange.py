"""Ops that put elements elsewhere, repeat them, take diagonals or give several tensors, against
PyTorch and NumPy: all shapes, types, layouts, gradients, wrong arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import arrays

import tilewright as tw

torch = pytest.importorskip("torch")

SHAPES = ((), (1,), (5,), (0,), (2, 3), (3, 0), (4, 1, 3), (2, 3, 4, 2), (0, 2, 3))


def numbered(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    return np.arange(1, math.prod(shape) + 1, dtype=dtype).reshape(shape)


def layouts(x: np.ndarray) -> list[tuple[tw.Tensor, Any]]:
    """A tensor beside PyTorch's: row-major, and with its axes and steps turned round."""
    plain = (tw.asarray(x, copy=True), torch.tensor(x))
    if x.ndim == 0:
        return [plain]
    turned = np.repeat(x.T, 2, -1).T.copy()
    order = tuple(reversed(range(x.ndim)))
    strided = tw.asarray(np.ascontiguousarray(turned.transpose(order)))
    return [plain, (tw.permute_dims(strided, order)[::2], torch.tensor(turned)[::2])]


def same(y: Any, z: Any) -> None:
    if isinstance(z, (tuple, list)):
        assert len(y) == len(z)
        for a, b in zip(y, z, strict=True):
            same(a, b)
        return
    assert y.shape == tuple(z.shape)
    assert str(y.dtype) == str(z.dtype).removeprefix("torch.")
    np.testing.assert_array_equal(y.detach().numpy(), z.detach().numpy())


def both(call: Callable[[Any, Any], Any], *shapes: tuple[int, ...]) -> None:
    """Values of all shapes and layouts, and gradients, as PyTorch's."""
    for shape in shapes or SHAPES:
        for x, z in layouts(numbered(shape)):
            for a, b in ((x, z), (x.astype(tw.int32), z.to(torch.int32))):
                same(call(tw, a), call(torch, b))
        gradients(call, shape)


def gradients(call: Callable[[Any, Any], Any], shape: tuple[int, ...]) -> None:
    x, z = tw.asarray(numbered(shape)).requires_grad_(), torch.tensor(numbered(shape))
    z.requires_grad_()
    y, w = call(tw, x), call(torch, z)
    y, w = (v if isinstance(v, (tuple, list)) else [v] for v in (y, w))
    if not w:
        return
    total = sum((a * numbered(a.shape)).sum() * (i + 1) for i, a in enumerate(y))
    expected = sum(
        (b * torch.tensor(numbered(tuple(b.shape)))).sum() * (i + 1) for i, b in enumerate(w)
    )
    if not expected.requires_grad:
        return
    expected.backward()
    if not total.requires_grad:  # nothing depends on x
        assert not z.grad.any()
        return
    total.backward()
    np.testing.assert_array_equal(x.grad.numpy(), z.grad.numpy())


def of_rank(least: int, *, filled: bool = False) -> list[tuple[int, ...]]:
    return [s for s in SHAPES if len(s) >= least and (0 not in s or not filled)]


# ---- axes ----


def test_moveaxis() -> None:
    for shape in of_rank(1):
        for a, b in product(range(-len(shape), len(shape)), repeat=2):
            both(lambda m, x, a=a, b=b: m.movedim(x, a, b), shape)
            x = numbered(shape)
            np.testing.assert_array_equal(
                tw.moveaxis(tw.asarray(x), a, b).numpy(), np.moveaxis(x, a, b)
            )
    both(lambda m, x: m.moveaxis(x, (0, 2), (-1, -3)), (2, 3, 4, 2))
    both(lambda m, x: x.movedim((1, 0), (0, 1)), (2, 3))
    both(lambda m, x: m.moveaxis(x, (), ()))
    x = tw.zeros((2, 3))
    tw.moveaxis(x, 0, 1)[0] = 1  # a view
    assert x.tolist() == [[1, 0, 0]] * 2


def test_transpose_and_its_other_names() -> None:
    for name in ("transpose", "swapaxes", "swapdims"):
        both(lambda m, x, n=name: getattr(m, n)(x, 0, -1), *of_rank(1))
        both(lambda m, x, n=name: getattr(x, n)(-2, 1), *of_rank(2))
    assert tw.transpose(tw.ones((2, 3)), dim0=0, dim1=1).shape == (3, 2)
    with pytest.raises(IndexError, match="swapdims: axis 2 is out of range"):
        tw.swapdims(tw.ones((2, 3)), 0, 2)


def test_matrix_transpose() -> None:
    for shape in of_rank(2):
        x = numbered(shape)
        y = tw.matrix_transpose(tw.asarray(x))
        np.testing.assert_array_equal(y.numpy(), np.swapaxes(x, -1, -2))
        np.testing.assert_array_equal(y.numpy(), tw.asarray(x).mT.numpy())


def test_flatten_and_ravel() -> None:
    both(lambda m, x: m.ravel(x))
    both(lambda m, x: x.ravel())
    both(lambda m, x: m.flatten(x))
    both(lambda m, x: m.flatten(x, 1), *of_rank(2))
    x = tw.zeros((2, 3))
    x.ravel()[0] = 1  # a view
    assert x[0, 0].item() == 1


def test_unflatten() -> None:
    both(lambda m, x: m.unflatten(x, 0, (1, -1)), *of_rank(1))
    both(lambda m, x: x.unflatten(-1, (-1, 1, 2)), (2, 4), (3, 2), (2, 0))
    both(lambda m, x: x.unflatten(1, [3, 1]), (2, 3, 4))
    assert tw.unflatten(tw.ones((0, 3)), 0, (0, 5)).shape == (0, 5, 3)
    with pytest.raises(ValueError, match=r"unflatten: sizes \(-1, 0\)"):
        tw.unflatten(tw.ones((0, 3)), 0, (-1, 0))


def test_flips() -> None:
    both(lambda m, x: m.fliplr(x), *of_rank(2))
    both(lambda m, x: m.flipud(x), *of_rank(1))
    both(lambda m, x: x.flip(0, -1), *of_rank(2))
    both(lambda m, x: x.flip((0,)), *of_rank(1))
    assert tw.flip(tw.asarray(3.0)).item() == 3
    assert tw.flip(tw.asarray([1, 2]), axis=()).tolist() == [1, 2]
    with pytest.raises(ValueError, match="flip: axis -2 is repeated"):
        tw.flip(tw.ones((2, 3)), axis=(0, -2))


def test_rot90() -> None:
    for k in range(-5, 6):
        both(lambda m, x, k=k: m.rot90(x, k), *of_rank(2))
        both(lambda m, x, k=k: x.rot90(k, (1, 0)), *of_rank(2))
        both(lambda m, x, k=k: m.rot90(x, k, (0, 2)), *of_rank(3))
    both(lambda m, x: m.rot90(x), *of_rank(2))
    both(lambda m, x: m.rot90(x, k=2, dims=(1, 0)), (2, 3))
    assert tw.rot90(tw.ones((2, 3)), -(2**63)).shape == (2, 3)


# ---- rolled ----


def test_roll() -> None:
    for shift in (0, 1, -1, 2, 7, -13, 10**18):
        both(lambda m, x, s=shift: m.roll(x, s))
        both(lambda m, x, s=shift: m.roll(x, s, 0), *of_rank(1))
        both(lambda m, x, s=shift: x.roll(s, -1), *of_rank(1))
        both(lambda m, x, s=shift: m.roll(x, (s, 1), (0, -1)), *of_rank(2))
    both(lambda m, x: m.roll(x, shifts=1, dims=0), (2, 3))
    for axis in ((0, 1), (1, 0), (-1, 0)):  # one shift for all axes, as in the Array API
        for shape in of_rank(2):
            x = numbered(shape)
            np.testing.assert_array_equal(
                tw.roll(tw.asarray(x), 2, axis=axis).numpy(), np.roll(x, 2, axis)
            )
    np.testing.assert_array_equal(
        tw.roll(tw.asarray([[1, 2], [3, 4]]), (1,)).numpy(), [[4, 1], [2, 3]]
    )


def test_roll_gives_fresh_memory() -> None:
    x = tw.asarray([1.0, 2.0, 3.0])
    for y in (tw.roll(x, 0), tw.roll(x, 3, 0), tw.roll(x, 1), tw.roll(x, 1, ())):
        y[0] = 9
    assert x.tolist() == [1, 2, 3]
    assert tw.roll(tw.ones((0, 3)), 1, 0).shape == (0, 3)


# ---- repeated ----


def test_tile() -> None:
    for times in ((2,), (1,), (0,), (2, 3), (1, 1), (3, 1, 2), (2, 1, 1, 1), (), (1, 0, 2)):
        both(lambda m, x, t=times: m.tile(x, t))
    both(lambda m, x: x.tile(2, 3))
    both(lambda m, x: x.tile(2))
    both(lambda m, x: m.tile(x, dims=(2, 1)))
    np.testing.assert_array_equal(tw.tile(tw.asarray([1, 2]), reps=2).numpy(), [1, 2, 1, 2])


def test_results_of_repeats_are_whole_tensors() -> None:
    """Views of repeated elements could not be changed."""
    x = tw.ones((1,))
    for y in (tw.tile(x, 4), tw.repeat(x, 4), tw.repeat(x, 1), tw.tile(x, 1), tw.tile(x, ())):
        assert y.is_contiguous
        y[0] = 5
    assert x.tolist() == [1]


def test_repeat_by_a_number() -> None:
    for times in (0, 1, 2, 4, 5, 8):
        both(lambda m, x, t=times: m.repeat_interleave(x, t))
        for axis in (0, -1):
            both(lambda m, x, t=times, a=axis: m.repeat_interleave(x, t, a), *of_rank(1))
            both(lambda m, x, t=times, a=axis: x.repeat_interleave(t, dim=a), *of_rank(1))
    np.testing.assert_array_equal(tw.repeat(tw.asarray([[1, 2]]), 2).numpy(), [1, 1, 2, 2])
    assert not hasattr(tw.Tensor, "repeat")  # PyTorch's is tile, NumPy's is this


@pytest.mark.parametrize("dtype", arrays.INTEGERS)
def test_repeat_by_counts(dtype: str, rng: np.random.Generator) -> None:
    for shape in of_rank(1):
        x = numbered(shape)
        for axis in (None, *range(-len(shape), len(shape))):
            n = x.size if axis is None else shape[axis]
            counts = rng.integers(0, 4, n).astype(dtype)
            expected = np.repeat(x, counts.astype(np.int64), axis)
            for t, _ in layouts(x):
                wide = np.repeat(counts, 2)
                for given in (tw.asarray(counts), tw.asarray(wide)[::2]):
                    np.testing.assert_array_equal(tw.repeat(t, given, axis=axis).numpy(), expected)
                size = expected.size if axis is None else expected.shape[axis]
                y = t.repeat_interleave(tw.asarray(counts), axis, output_size=size)
                np.testing.assert_array_equal(y.numpy(), expected)
            one = tw.asarray(np.asarray(3, dtype))
            for single in (one, one.reshape(1)):
                np.testing.assert_array_equal(
                    tw.repeat(tw.asarray(x), single, axis=axis).numpy(), np.repeat(x, 3, axis)
                )


def test_many_runs_of_any_length(threads: Any) -> None:
    rng = np.random.default_rng(5)
    counts = np.concatenate([rng.integers(0, 5, 40_000), [200_000], rng.integers(0, 2, 30_000)])
    x = rng.integers(0, 2**40, counts.size)
    for count in (1, 2):
        tw.set_num_threads(count)
        y = tw.repeat(tw.asarray(x), tw.asarray(counts))
        np.testing.assert_array_equal(y.numpy(), np.repeat(x, counts))


def test_gradients_of_repeats_by_counts() -> None:
    counts = tw.asarray([2, 0, 3])
    for shape, axis in (((3,), 0), ((2, 3), 1), ((3, 2), 0), ((2, 3, 2), 1)):
        x = tw.asarray(numbered(shape)).requires_grad_()
        assert tw.gradcheck(lambda x, a=axis: tw.repeat(x, counts, axis=a), (x,))
        assert tw.gradgradcheck(lambda x, a=axis: tw.repeat(x, counts, axis=a) ** 2, (x,))


@pytest.mark.parametrize("dtype", arrays.ALL)
def test_all_types(dtype: str) -> None:
    x = tw.asarray(numbered((2, 3))).astype(dtype) if dtype != "bool" else tw.ones((2, 3), dtype)
    x = tw.astype(x, getattr(tw, dtype))
    flat = [tw.tile(x, (2, 1)), tw.repeat(x, 2, axis=0), tw.repeat(x, tw.asarray([2, 2]), axis=0)]
    flat += [tw.roll(x, 1, 0), tw.diag(x), tw.diag_embed(x), tw.block_diag(x, x)]
    flat += [*tw.split(x, 1), *tw.unstack(x), *tw.meshgrid(x[0], x[1]), tw.hstack([x, x])]
    flat += [tw.combinations(x[0]), tw.cartesian_prod(x[0], x[1])]
    assert {y.dtype for y in flat} == {x.dtype}


# ---- several tensors ----


def test_unstack() -> None:
    for axis in (0, 1, -1):
        both(lambda m, x, a=axis: m.unbind(x, a), (2, 3), (2, 3, 4))
        both(lambda m, x, a=axis: x.unbind(dim=a), (2, 3), (0, 2, 3))
    both(lambda m, x: m.unbind(x), *of_rank(1))
    found = tw.unstack(tw.asarray([[1, 2], [3, 4]]), axis=1)
    assert isinstance(found, tuple)
    assert [x.tolist() for x in found] == [[1, 3], [2, 4]]
    x = tw.zeros((2, 2))
    tw.unstack(x)[1][0] = 1  # views
    assert x.tolist() == [[0, 0], [1, 0]]


def test_split() -> None:
    for size in (1, 2, 3, 9):
        for axis in (0, -1):
            both(lambda m, x, s=size, a=axis: m.split(x, s, a), *of_rank(1))
            both(lambda m, x, s=size, a=axis: x.split(s, dim=a), *of_rank(1))
    both(lambda m, x: m.split(x, 0), (0,), (0, 2, 3))
    both(lambda m, x: m.split(x, [1, 0, 2], 1), (2, 3), (2, 3, 4, 2), (0, 3))
    both(lambda m, x: x.split((2, 3)), (5,))
    pieces = tw.split(tw.arange(100), [1] * 100)  # more than a tensor has axes
    assert isinstance(pieces, tuple)
    assert [x.tolist() for x in pieces] == [[i] for i in range(100)]
    x = tw.zeros((4,))
    x.split(split_size_or_sections=3)[1][0] = 1  # views
    assert x.tolist() == [0, 0, 0, 1]


def test_chunk() -> None:
    for chunks in (1, 2, 3, 4, 9):
        both(lambda m, x, c=chunks: m.chunk(x, c), *of_rank(1))
        both(lambda m, x, c=chunks: x.chunk(c, dim=-1), *of_rank(1))


def test_tensor_split() -> None:
    for parts in (1, 2, 3, 7, (1,), (0, 2), (2, 1), (-1, 9), (), (-9, 1)):
        both(lambda m, x, p=parts: m.tensor_split(x, p), *of_rank(1))
        both(lambda m, x, p=parts: x.tensor_split(p, dim=-1), *of_rank(1))
    both(lambda m, x: m.tensor_split(x, indices=(1, 2), dim=0), (5,))
    both(lambda m, x: m.tensor_split(x, sections=2, dim=0), (5,))


def test_splits_along_the_first_three_axes() -> None:
    for parts in (1, (1, 2), (1,)):
        both(lambda m, x, p=parts: m.hsplit(x, p), *of_rank(1))
        both(lambda m, x, p=parts: m.vsplit(x, p), *of_rank(2))
        both(lambda m, x, p=parts: x.dsplit(p), *of_rank(3))
    both(lambda m, x: m.hsplit(x, 3), (2, 3), (3,))
    both(lambda m, x: x.vsplit(2), (2, 3), (4, 1, 3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: tw.split(x, 0), ValueError, "split: parts of extent 0 of an axis of 2"),
        (lambda x: tw.split(x, -1), ValueError, "split: parts of extent -1"),
        (lambda x: tw.split(x, [1, 2]), ValueError, "split: the parts' extents add up to more"),
        (lambda x: tw.split(x, [1]), ValueError, "split: the parts' extents add up to 1, not to 2"),
        (lambda x: tw.split(x, [3, -1]), ValueError, "add up to more than 2"),
        (lambda x: tw.split(x, [-1, 3]), ValueError, "a part's extent is negative: -1"),
        (lambda x: tw.split(x, 1, 2), IndexError, "split: axis 2 is out of range"),
        (lambda x: tw.split(tw.ones(()), 1), IndexError, "split: axis 0 is out of range"),
        (lambda x: tw.split(x, 1.5), TypeError, "split: split_size_or_sections must be an int or"),
        (lambda x: x.split(["a"]), TypeError, "split: split_size_or_sections must be"),
        (lambda x: tw.split(x, True), TypeError, "split: split_size_or_sections must be"),
        (lambda x: tw.chunk(x, 0), ValueError, "chunk: needs at least 1 chunk, got 0"),
        (lambda x: tw.chunk(x, 1, -3), IndexError, "chunk: axis -3"),
        (lambda x: tw.tensor_split(x, 0), ValueError, "tensor_split: needs at least 1 part"),
        (lambda x: tw.hsplit(x, 2), ValueError, r"hsplit: axis 1 of \(2, 3\) is no multiple of 2"),
        (lambda x: tw.hsplit(tw.ones(()), 1), ValueError, "hsplit: needs at least 1 dimension,"),
        (lambda x: tw.vsplit(x[0], 1), ValueError, "vsplit: needs at least 2 dimensions"),
        (lambda x: tw.dsplit(x, 1), ValueError, "dsplit: needs at least 3 dimensions"),
        (tw.meshgrid, ValueError, r"meshgrid: needs vectors, got .*\(2, 3\)"),
        (lambda x: tw.meshgrid(x[0], indexing="yx"), ValueError, "meshgrid: indexing must be"),
        (lambda x: tw.meshgrid(3), TypeError, "meshgrid: expected tensors, got 3"),
        (lambda x: tw.broadcast_arrays(x, [1]), TypeError, "broadcast_arrays: expected tensors"),
        (
            lambda x: tw.broadcast_arrays(x, tw.ones((2,))),
            ValueError,
            r"broadcast_arrays: shapes do not broadcast: \(2, 3\) and \(2,\)",
        ),
        (
            lambda x: tw.broadcast_tensors([x, tw.ones((2,))]),
            ValueError,
            "broadcast_tensors: shapes do not broadcast",
        ),
        (lambda x: tw.block_diag(x.reshape(1, 2, 3)), ValueError, "block_diag: needs at most 2"),
        (lambda x: tw.cartesian_prod(), ValueError, "cartesian_prod: no tensors"),
        (tw.cartesian_prod, ValueError, "cartesian_prod: needs vectors"),
        (lambda x: tw.atleast_1d("a"), TypeError, "atleast_1d: expected tensors, got 'a'"),
    ],
)  # fmt: skip
def test_what_is_refused(call: Callable[[tw.Tensor], object], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(tw.ones((2, 3)))


def test_meshgrid() -> None:
    for sizes in ((3,), (3, 2), (2, 3, 4), (0, 2), (1, 1), (2, 1, 3, 2)):
        vectors = [np.arange(n, dtype=np.float32) + 10 * i for i, n in enumerate(sizes)]
        for indexing in ("xy", "ij"):
            ours = [tw.asarray(v) for v in vectors]
            theirs = [torch.tensor(v) for v in vectors]
            expected = torch.meshgrid(*theirs, indexing=indexing)
            same(tw.meshgrid(*ours, indexing=indexing), expected)
            same(tw.meshgrid(ours, indexing=indexing), expected)
            for y, z in zip(
                tw.meshgrid(*ours, indexing=indexing),
                np.meshgrid(*vectors, indexing=indexing),
                strict=True,
            ):
                np.testing.assert_array_equal(y.numpy(), z)
    assert isinstance(tw.meshgrid(tw.ones((2,))), list)
    assert [x.shape for x in tw.meshgrid(tw.ones(()), tw.ones((3,)))] == [(3, 1)] * 2
    assert [x.shape for x in tw.meshgrid(tw.ones((2,)), tw.ones((3,)))] == [(3, 2)] * 2
    assert tw.meshgrid() == []
    x, y = (tw.asarray([1.0, 2.0]).requires_grad_() for _ in range(2))
    a, b = tw.meshgrid(x, y)
    (a * b * b).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([5, 5], [6, 12])


def test_broadcasts() -> None:
    given = [(2, 1, 3), (4, 1), ()]
    ours = [tw.asarray(numbered(s)) for s in given]
    theirs = [torch.tensor(numbered(s)) for s in given]
    expected = torch.broadcast_tensors(*theirs)
    same(tw.broadcast_arrays(*ours), expected)
    same(tw.broadcast_tensors(*ours), expected)
    same(tw.broadcast_tensors(ours), expected)
    assert isinstance(tw.broadcast_arrays(*ours), list)
    assert isinstance(tw.broadcast_tensors(*ours), tuple)
    assert tw.broadcast_arrays() == []
    assert [x.shape for x in tw.broadcast_arrays(tw.ones((0, 1)), tw.ones((3,)))] == [(0, 3)] * 2


def test_at_least_some_axes() -> None:
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        both(lambda m, x, n=name: getattr(m, n)(x))
        both(lambda m, x, n=name: getattr(m, n)((x, x)))
        both(lambda m, x, n=name: getattr(m, n)(x, x))


def test_stacks() -> None:
    for name in ("hstack", "vstack", "row_stack", "dstack", "column_stack"):
        both(lambda m, x, n=name: getattr(m, n)([x, x + 1]), (), (1,), (3,), (2, 3), (0, 2), (0,))
        both(lambda m, x, n=name: getattr(m, n)((x,)), (2, 3, 4), (3,))
    both(lambda m, x: m.hstack(tensors=[x, x]), (2, 3))
    y = tw.hstack([tw.ones((2,), dtype=tw.int8), tw.ones((2,), dtype=tw.float64)])
    assert y.dtype == tw.float64
    for name in ("hstack", "vstack", "row_stack", "dstack", "column_stack"):
        with pytest.raises(ValueError, match=f"{name}: no tensors"):
            getattr(tw, name)([])
        with pytest.raises(ValueError, match=f"{name}: shapes differ"):
            getattr(tw, name)([tw.ones((2, 3, 4)), tw.ones((3, 4, 5))])
        with pytest.raises(TypeError, match=f"{name}: arrays must be a sequence of tensors, got 3"):
            getattr(tw, name)([tw.ones((2,)), 3])


# ---- enumerated ----


def test_combinations() -> None:
    for n, r in product(range(6), range(5)):
        for again in (False, True):
            both(lambda m, x, r=r, a=again: m.combinations(x, r, a), (n,))
    both(lambda m, x: m.combinations(x), (5,))
    y = tw.combinations(tw.arange(30), 29)  # no more on the way than at the end
    assert y.tolist() == [[i for i in range(30) if i != left] for left in range(29, -1, -1)]


def test_cartesian_prod() -> None:
    both(lambda m, x: m.cartesian_prod(x, x + 1), (3,), (0,))
    both(lambda m, x: m.cartesian_prod(x, x[:2], x[:1]), (3,))
    both(lambda m, x: m.cartesian_prod(x), (3,))


def test_block_diag() -> None:
    both(lambda m, x: m.block_diag(x, x + 1, x[..., :1]), (2, 3), (3,), (3, 0))
    both(lambda m, x: m.block_diag(x, x), ())
    same(tw.block_diag(), torch.block_diag())
    y = tw.block_diag(tw.ones((1, 1), dtype=tw.int32), tw.ones((2,)))
    assert (y.dtype, y.tolist()) == (tw.float32, [[1, 0, 0], [0, 1, 1]])


def test_vander() -> None:
    for n in (0, 1, 4):
        for count in (None, 0, 1, 3, 6):
            for increasing in (False, True):
                x = numbered((n,))
                for dtype in ("float64", "int32"):
                    y = tw.vander(tw.asarray(x.astype(dtype)), count, increasing)
                    same(y, torch.vander(torch.tensor(x.astype(dtype)), count, increasing))
    for dtype, expected in (("int8", "int64"), ("uint64", "uint64"), ("bool", "int64")):
        assert str(tw.vander(tw.ones((2,), dtype=dtype)).dtype) == expected


@pytest.mark.parametrize("far", [2**62, 2**63 - 1, 2**63, 2**100])
def test_diagonals_further_than_integers_reach_are_empty(far: int) -> None:
    x = tw.ones((2, 3))
    for k in (far, -far):
        assert tw.sum(tw.eye(2, 3, k=k)).item() == 0
        assert tw.sum(tw.tril(x, k=k)).item() == (6 if k > 0 else 0)
        assert tw.sum(tw.triu(x, k=k)).item() == (0 if k > 0 else 6)
        assert tw.diagonal(x, k).shape == (0,)
        assert tw.linalg.diagonal(x, offset=k).shape == (0,)
        assert tw.trace(x, k).item() == tw.linalg.trace(x, offset=k).item() == 0
    for wrong in (1.5, True, "1", None):
        with pytest.raises(TypeError, match="k"):
            tw.eye(2, 3, k=wrong)  # type: ignore[arg-type]  # what is refused


def test_places_in_triangles() -> None:
    for rows, columns in product(range(5), repeat=2):
        for offset in (*range(-6, 7), 2**40, -(2**40)):
            near = max(-10, min(10, offset))  # PyTorch's overflow beyond
            for name in ("tril_indices", "triu_indices"):
                same(
                    getattr(tw, name)(rows, columns, offset),
                    getattr(torch, name)(rows, columns, near),
                )
    same(tw.tril_indices(3, 3, dtype=tw.int32), torch.tril_indices(3, 3, dtype=torch.int32))
    x = numbered((40, 50))
    for name, part in (("tril_indices", np.tril), ("triu_indices", np.triu)):
        row, column = getattr(tw, name)(40, 50, 3)
        y = tw.zeros((40, 50), dtype=tw.float64)
        y[row, column] = tw.asarray(x)[row, column]
        np.testing.assert_array_equal(y.numpy(), part(x, 3))
    for name in ("tril_indices", "triu_indices"):
        with pytest.raises(ValueError, match=rf"{name}: shape \(-1, 2\) has a negative extent"):
            getattr(tw, name)(-1, 2)
        with pytest.raises(TypeError, match=f"{name}: dtype must be an integer type, got float32"):
            getattr(tw, name)(1, 2, dtype=tw.float32)


def test_enumerations_are_captured_without_reading() -> None:
    def run(x: tw.Tensor) -> tw.Tensor:
        row, column = tw.triu_indices(3, 3, 1)
        return tw.combinations(x[row] + x[column], 2).sum() + tw.repeat_interleave(
            x, tw.asarray([0, 2, 1]), output_size=3
        )

    x = tw.asarray([1.0, 2.0, 3.0])
    captured = tw._core._capture(run, [x])
    other = tw.asarray([4.0, 7.0, 9.0])
    assert captured.replay([other])[0].tolist() == run(other).tolist()


# ---- diagonals ----


def test_diagonal() -> None:
    for offset in (0, 1, -1, 2, -4, 2**62, -(2**62)):
        near = max(-9, min(9, offset))
        for axes in ((0, 1), (1, 0), (-1, -2)):
            both(
                lambda m, x, o=offset, n=near, a=axes: m.diagonal(x, o if m is tw else n, *a),
                *of_rank(2),
            )
        both(lambda m, x, o=offset, n=near: x.diagonal(o if m is tw else n, 0, 2), *of_rank(3))
    both(lambda m, x: m.diagonal(x, offset=1, dim1=0, dim2=1), (3, 3))


def test_diagonals_are_views() -> None:
    x = tw.zeros((3, 4))
    x.diagonal(1).fill_(7)
    x.diagonal()[1] = 2
    np.testing.assert_array_equal(x.numpy(), np.diag([7.0] * 3, 1)[:3] + np.diag([0, 2, 0, 0])[:3])
    leaf = tw.ones((3, 3), requires_grad=True)
    y = leaf * 2
    y.diagonal().mul_(tw.asarray([1.0, 2.0, 3.0]))
    y.sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), 2 * np.ones((3, 3)) + np.diag([0, 2, 4]))
    first = x.version
    tw.diag(x)[0] = 5  # a copy
    assert x.version == first


def test_gradients_of_several_diagonals_add_up() -> None:
    x = tw.asarray(numbered((4, 5))).requires_grad_()
    z = torch.tensor(numbered((4, 5)), requires_grad=True)
    for m, v in ((tw, x), (torch, z)):
        (m.diagonal(v).sum() * 2 + m.diagonal(v, 1).sum() + m.diagonal(v, 0, 1, 0).sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), z.grad.numpy())


def test_diag_and_its_family() -> None:
    for offset in (0, 1, -2):
        both(lambda m, x, o=offset: m.diag(x, o), (3,), (0,), (2, 3), (3, 0), (4, 2))
        both(lambda m, x, o=offset: x.diag(diagonal=o), (3,), (2, 3))
        both(lambda m, x, o=offset: m.diagflat(x, o))
        both(lambda m, x, o=offset: m.diag_embed(x, o), *of_rank(1))
        both(lambda m, x, o=offset: m.diag_embed(x, o, 0, -1), *of_rank(1))
        both(lambda m, x, o=offset: m.diag_embed(x, o, -1, 0), *of_rank(1))
        both(lambda m, x, o=offset: x.diag_embed(offset=o, dim1=1, dim2=0), *of_rank(1))
    with pytest.raises(ValueError, match="diag: needs 1 or 2 dimensions"):
        tw.diag(tw.ones((1, 1, 1)))
    with pytest.raises(ValueError, match="64 bits can count"):
        tw.diag(tw.ones((2,)), 2**63 - 1)
    with pytest.raises(ValueError, match="64 bits can count"):
        tw.diag_embed(tw.ones((2,)), -(2**63))


def test_trace() -> None:
    for shape in ((3, 3), (2, 4), (4, 2), (0, 3), (1, 1)):
        x = numbered(shape)
        for t, z in layouts(x):
            assert tw.trace(t).item() == torch.trace(z).item()
            assert tw.trace(t.astype(tw.int8)).dtype == tw.int64
            assert t.trace(1).item() == np.trace(x, 1)
    gradients(lambda m, x: m.trace(x), (3, 4))


def test_tril_and_triu_are_methods() -> None:
    both(lambda m, x: x.tril(), *of_rank(2))
    both(lambda m, x: x.triu(diagonal=1), *of_rank(2))
    both(lambda m, x: m.tril(x, diagonal=-1), *of_rank(2))


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int8", "bool", "float16"])
def test_triangles_of_any_layout_and_diagonal(dtype: str) -> None:
    for shape in ((5, 7), (7, 5), (0, 3), (3, 0), (2, 3, 4, 5), (1, 1)):
        x = (numbered(shape) + 1).astype(dtype)
        for k in (-(2**70), -100, -6, -1, 0, 1, 3, 100, 2**63 - 1, 2**70):
            near = max(-1000, min(1000, k))
            np.testing.assert_array_equal(tw.tril(tw.asarray(x), k).numpy(), np.tril(x, near))
            np.testing.assert_array_equal(tw.triu(tw.asarray(x), k).numpy(), np.triu(x, near))
        turned = np.swapaxes(x, -1, -2)
        np.testing.assert_array_equal(tw.tril(tw.asarray(x).mT).numpy(), np.tril(turned))
        own, view = tw.asarray(x, copy=True), tw.asarray(x, copy=True)
        np.testing.assert_array_equal(own.tril_().numpy(), np.tril(x))
        view.mT.triu_(1)
        np.testing.assert_array_equal(view.mT.numpy(), np.triu(turned, 1))
    with tw.kernels.use(tril="body"):
        assert tw.tril(tw.ones((2, 3))).tolist() == [[1, 0, 0], [1, 1, 0]]


def test_gradients_of_triangles() -> None:
    gradients(lambda m, x: m.tril(x, 1), (2, 3, 4))
    gradients(lambda m, x: m.triu(x, -1), (4, 3))


def test_ones_on_diagonals() -> None:
    for rows, columns in ((3, 3), (3, 5), (5, 3), (0, 3), (3, 0)):
        for k in (-(2**70), -4, -2, 0, 1, 4, 2**70):
            want = np.eye(rows, columns, max(-9, min(9, k)))
            np.testing.assert_array_equal(tw.eye(rows, columns, k=k).numpy(), want)
    assert tw.eye(2, dtype=tw.bool).tolist() == [[True, False], [False, True]]


# ---- bits ----


@pytest.mark.parametrize("dtype", ["bool", *arrays.INTEGERS])
def test_bitwise_invert(dtype: str) -> None:
    info = None if dtype == "bool" else np.iinfo(dtype)
    x = np.array([True, False] if info is None else [info.min, info.max, 0, 1, 85], dtype)
    t = tw.asarray(x)
    for y in (~t, tw.bitwise_invert(t), tw.bitwise_not(t), t.bitwise_not()):
        assert str(y.dtype) == dtype
        np.testing.assert_array_equal(y.numpy(), ~x)


# ---- devices ----


def test_on_a_device_that_computes_nothing() -> None:
    x = tw.ones((3, 4), device="null")
    found = [
        tw.roll(x, 1),
        tw.tile(x, 2),
        tw.repeat(x, 2),
        tw.diag(x),
        tw.diag_embed(x),
        *x.chunk(2),
    ]
    found += [
        tw.combinations(x[0], 3),
        tw.block_diag(x, x),
        *tw.meshgrid(x[0], x[1]),
        tw.vander(x[0]),
    ]
    found += [tw.tril_indices(3, 4, device="null"), x.flip(0), x.unflatten(1, (2, 2)), ~(x > 0)]
    assert {y.device for y in found} == {"null"}
