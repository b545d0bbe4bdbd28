"""concat and stack of tensors that all lie along the same order of axes give a result that lies so,
too; others give row-major memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as tw


def lying(x: np.ndarray, order: tuple[int, ...]) -> tw.Tensor:
    """The same numbers, in memory along `order`."""
    return tw.asarray(np.ascontiguousarray(x.transpose(order))).permute(*np.argsort(order).tolist())


def order_of(x: tw.Tensor) -> tuple[int, ...]:
    """Its axes of more than one element from the widest stride to the narrowest."""
    axes = [axis for axis in range(x.ndim) if x.shape[axis] > 1]
    return tuple(sorted(axes, key=lambda axis: -x.strides[axis]))


@pytest.mark.parametrize("shape", [(7, 5), (3, 4, 5), (2, 1, 3, 4), (1, 6), (6, 1)])
def test_values_and_order(shape: tuple[int, ...], rng) -> None:
    rank = len(shape)
    for order, axis in itertools.product(itertools.permutations(range(rank)), range(rank)):
        longer = list(shape)
        longer[axis] += 2
        a, b, c = rng.normal(size=shape), rng.normal(size=longer), rng.normal(size=shape)
        tensors = [lying(x, order) for x in (a, b, c)]
        y = tw.concat(tensors, axis)
        np.testing.assert_array_equal(y.numpy(), np.concatenate([a, b, c], axis))
        last = sum((extent - 1) * step for extent, step in zip(y.shape, y.strides, strict=True))
        assert last == y.size - 1  # no gaps
        if all(extent > 1 for extent in shape):
            assert order_of(y) == order
            assert y.is_contiguous == (order == tuple(range(rank)))
        wanted = np.concatenate([a, b, c], axis)
        np.testing.assert_array_equal(y.reshape(-1).numpy(), wanted.reshape(-1))
        np.testing.assert_array_equal((y + tw.asarray(wanted)).numpy(), 2 * wanted)
        np.testing.assert_array_equal(y.max(axis).numpy(), wanted.max(axis))
        stacked = tw.stack([tensors[0], tensors[2]], axis)
        np.testing.assert_array_equal(stacked.numpy(), np.stack([a, c], axis))
        moved = tw.stack([tensors[0], tensors[2]], -1)
        np.testing.assert_array_equal(moved.numpy(), np.stack([a, c], -1))


def test_pairs_along_a_new_last_axis_stay_together(rng) -> None:
    re, im = rng.normal(size=(2, 3, 4))
    pairs = tw.stack([lying(re, (1, 0)), lying(im, (1, 0))], -1)
    assert pairs.strides == (2, 6, 1)
    np.testing.assert_array_equal(tw.view_as_complex(pairs).numpy(), re + 1j * im)


def test_operands_that_lie_otherwise(rng) -> None:
    a, b = rng.normal(size=(2, 4, 6))
    across, row = lying(a, (1, 0)), tw.asarray(b)
    for operands in ([across, row], [row, across]):
        y = tw.concat(operands, 0)
        assert y.is_contiguous
        np.testing.assert_array_equal(y.numpy(), np.concatenate([t.numpy() for t in operands], 0))
    repeated = tw.broadcast_to(tw.asarray(b[:, :1]), (4, 6))
    gaps = lying(np.repeat(a, 2, axis=0), (1, 0))[::2]
    backwards = tw.flip(across, (0,))
    for x in (repeated, gaps, backwards):
        y = tw.concat([across, x], 1)
        np.testing.assert_array_equal(y.numpy(), np.concatenate([a, x.numpy()], 1))
    empty = lying(np.zeros((0, 6)), (1, 0))
    np.testing.assert_array_equal(tw.concat([across, empty], 0).numpy(), a)


def test_gradients_and_types(rng) -> None:
    a, b = rng.normal(size=(2, 3, 4))
    x, y = lying(a, (1, 0)).requires_grad_(), lying(b.astype(np.float32), (1, 0)).requires_grad_()
    weights = rng.normal(size=(6, 4))
    joined = tw.concat([x, y])
    assert joined.dtype == tw.float64
    (joined * tw.asarray(weights)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), weights[:3])
    np.testing.assert_allclose(y.grad.numpy(), weights[3:], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
def test_many_short_operands(dtype: str) -> None:
    """Rows of each length that is copied in its own way, and what is left to copies one by one."""
    rng = np.random.default_rng(11)
    for sizes in ((1,) * 40, (2,) * 9, (4, 0, 4), (3, 1, 2, 9, 33), (8, 16), (70000, 5)):
        parts = [(rng.normal(size=(3, size)) * 50).astype(dtype) for size in sizes]
        made = [tw.asarray(part) for part in parts]
        for axis in (1, -1):
            y = tw.concat(made, axis=axis)
            np.testing.assert_array_equal(y.numpy(), np.concatenate(parts, axis))
        transposed = [tw.asarray(part.T.copy()).T for part in parts]
        gaps = [tw.asarray(np.repeat(part, 2, 0))[::2] for part in parts]
        for others in (transposed, gaps, [*made[:-1], gaps[-1]]):
            y = tw.concat(others, axis=1)
            np.testing.assert_array_equal(y.numpy(), np.concatenate(parts, 1))
        if len({*sizes}) == 1:
            for axis in range(-3, 3):
                y = tw.stack(made, axis=axis)
                np.testing.assert_array_equal(y.numpy(), np.stack(parts, axis))
                assert y.is_contiguous
