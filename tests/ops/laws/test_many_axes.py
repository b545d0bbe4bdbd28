"""Tensors of up to 32 axes, held against NumPy: every family of ops, exchange and saving."""

import pickle

import numpy as np
import pytest

import tilewright as tw

LIMIT = 32
REFUSED = "at most 32 dimensions, got 33"


def shape_of(rank):
    """No axis of 2 beside another one where the rank allows, else twos only."""
    return (2,) * rank if rank <= 16 else (2, 1, 1) * (rank // 3) + (2,) * (rank % 3)


SHAPES = {9: shape_of(9), 16: shape_of(16), 20: (2, 1) * 8 + (2,) * 4, 32: shape_of(32)}
RANKS = list(SHAPES)


def numbers(shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def order_of(rank, seed=1):
    """A permutation in which few neighbours stay neighbours."""
    return tuple(int(i) for i in np.random.default_rng(seed).permutation(rank))


def pairs(rank, dtype=np.float64):
    """Layouts of one tensor beside their NumPy twins: as made, permuted, reversed."""
    x = numbers(SHAPES[rank], dtype=dtype)
    t = tw.asarray(x)
    order = order_of(rank)
    return [
        (t, x),
        (tw.permute_dims(t, order), x.transpose(order)),
        (tw.flip(t, axis=tuple(range(0, rank, 2))), np.flip(x, tuple(range(0, rank, 2)))),
    ]


def same(t, x):
    assert t.shape == x.shape
    np.testing.assert_array_equal(np.asarray(t), x)


def close(t, x, tolerance=1e-12):
    assert t.shape == x.shape
    np.testing.assert_allclose(np.asarray(t.detach()), x, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rank", RANKS)
class TestOps:
    def test_pointwise(self, rank):
        (a, x), *others = pairs(rank)
        order = order_of(rank, 2)
        for t, z in others:
            b, y = tw.permute_dims(t, order), z.transpose(order)
            if np.prod(np.broadcast_shapes(x.shape, y.shape)) > 1 << 21:  # axes of 1 stretch
                continue
            same(a + b, x + y)
            same(b * a - 2.0, y * x - 2.0)
            same(tw.where(a > b, a, b), np.where(x > y, x, y))

    def test_strides_that_cannot_be_merged(self, rank):
        x = numbers((2,) * 16 if rank > 16 else (2,) * rank)
        t = tw.asarray(x)
        first, second = order_of(x.ndim, 3), order_of(x.ndim, 4)
        same(
            tw.permute_dims(t, first) + tw.permute_dims(t, second) * t,
            x.transpose(first) + x.transpose(second) * x,
        )

    def test_broadcasting_of_alternate_axes(self, rank):
        twos = [axis for axis, n in enumerate(SHAPES[rank]) if n > 1]
        even = [n if axis in twos[::2] else 1 for axis, n in enumerate(SHAPES[rank])]
        odd = [n if axis in twos[1::2] else 1 for axis, n in enumerate(SHAPES[rank])]
        x, y = numbers(even), numbers(odd, 1)
        same(tw.asarray(x) + tw.asarray(y), x + y)
        same(tw.broadcast_to(tw.asarray(x), SHAPES[rank]), np.broadcast_to(x, SHAPES[rank]))
        tail = numbers(SHAPES[rank][-3:], 2)
        same(tw.asarray(x) * tw.asarray(tail), x * tail)

    @pytest.mark.parametrize("start", [0, 1])
    def test_reductions_over_alternate_axes(self, rank, start):
        axes = tuple(range(start, rank, 2))
        for t, x in pairs(rank):
            for keepdims in (False, True):
                close(t.sum(axis=axes, keepdims=keepdims), x.sum(axis=axes, keepdims=keepdims))
            close(tw.mean(t, axis=axes), x.mean(axis=axes))
            same(tw.max(t, axis=axes), x.max(axis=axes))
            same(tw.any(t > 2, axis=axes), (x > 2).any(axis=axes))
            close(t.sum(), x.sum())

    def test_positions_of_extremes(self, rank):
        for t, x in pairs(rank):
            for axis in (0, rank // 2, -1):
                same(tw.argmax(t, axis=axis), x.argmax(axis=axis))
            assert int(tw.argmin(t)) == x.argmin()

    def test_complex_sums(self, rank):
        x = (numbers(SHAPES[rank]) + 1j * numbers(SHAPES[rank], 1)).astype(np.complex64)
        t = tw.permute_dims(tw.asarray(x), order_of(rank))
        x = x.transpose(order_of(rank))
        for axes in ((), (0,), tuple(range(0, rank, 2)), tuple(range(rank))):
            close(tw.sum(t, axis=axes), x.sum(axis=axes), 1e-4)

    def test_copies_and_types(self, rank):
        for t, x in pairs(rank):
            same(t.copy(), x)
            same(t.contiguous(), x)
            for dtype in ("float32", "int16", "bool", "complex64", "complex128"):
                same(t.astype(getattr(tw, dtype)), x.astype(dtype))

    def test_views(self, rank):
        for t, x in pairs(rank):
            same(t.reshape((-1,)), x.reshape(-1))
            same(t.reshape(x.shape[::-1]), x.reshape(x.shape[::-1]))
            same(tw.squeeze(t), x.squeeze())
            same(t.transpose(0, rank - 1), x.swapaxes(0, rank - 1))
            same(t.mT, x.swapaxes(-1, -2))
            same(t.flatten(2, rank - 3), x.reshape(*x.shape[:2], -1, *x.shape[-2:]))
            if rank < LIMIT:
                same(tw.expand_dims(t, axis=rank // 2), np.expand_dims(x, rank // 2))

    def test_indexing(self, rank):
        keys = [
            0,
            slice(1, None),
            (Ellipsis, 0),
            (slice(None, None, -1),) * rank,
            (0,) * rank,
            (0, slice(None)) * (rank // 2),
            (slice(None), -1) * (rank // 2),
            (0, 0, None, Ellipsis, None, slice(1)),
            (0, 0, Ellipsis) + (None,) * (LIMIT - rank + 2),
        ]
        for t, x in pairs(rank):
            for key in keys:
                same(t[key], x[key])

    def test_index_arrays(self, rank):
        x = numbers(SHAPES[rank])
        t = tw.asarray(x)
        random = np.random.default_rng(5)
        some = [random.integers(n, size=(2, 3)) for n in x.shape]
        for count in (1, 2, rank // 2, rank):
            arrays = some[:count] if rank + 2 - count <= LIMIT else [a[0] for a in some[:count]]
            if rank + arrays[0].ndim - count > LIMIT:
                continue
            same(t[tuple(tw.asarray(a) for a in arrays)], x[tuple(arrays)])
        apart = (some[0][0], slice(None), some[2][0])
        same(t[tw.asarray(apart[0]), :, tw.asarray(apart[2])], x[apart])
        mask = x > 0.5
        same(t[tw.asarray(mask)], x[mask])

    def test_writing_by_index(self, rank):
        x = numbers(SHAPES[rank])
        t = tw.asarray(x, copy=True)
        places = [np.random.default_rng(6).integers(n, size=4) for n in x.shape]
        x[tuple(places)] = 3.0
        t[tuple(tw.asarray(p) for p in places)] = 3.0
        mask = x < -0.5
        x[mask] = 0.0
        t[tw.asarray(mask)] = 0.0
        x[(0, slice(None)) * (rank // 2)] *= 2.0
        t[(0, slice(None)) * (rank // 2)] *= 2.0
        same(t, x)

    def test_joining(self, rank):
        for t, x in pairs(rank):
            for axis in (0, rank // 2, -1):
                same(tw.concat([t, t * 2.0], axis=axis), np.concatenate([x, x * 2.0], axis))
            if rank < LIMIT:
                same(tw.stack([t, t], axis=rank // 2), np.stack([x, x], rank // 2))

    def test_matmul_over_many_batch_axes(self, rank):
        batch = (2, 1, 1) * 3 + (1,) * (rank - 11) if rank > 11 else (2, 1) * 3 + (2,) * (rank - 8)
        batch = (batch + (1,) * rank)[: rank - 2]
        a, b = numbers((*batch, 3, 4)), numbers((*batch[::-1], 4, 5), 1)
        close(tw.asarray(a) @ tw.asarray(b), a @ b)
        order = (*order_of(rank - 2), rank - 1, rank - 2)
        columns = tw.asarray(b.swapaxes(-1, -2).copy()).mT[..., :3, :]
        close(tw.permute_dims(tw.asarray(a), order) @ columns, a.transpose(order) @ b[..., :3, :])
        close(tw.asarray(a) @ tw.asarray(b[(0,) * (rank - 2)]), a @ b[(0,) * (rank - 2)])

    def test_softmax_over_an_axis(self, rank):
        for t, x in pairs(rank):
            for axis in (0, rank // 2, rank - 1):
                e = np.exp(x - x.max(axis=axis, keepdims=True))
                close(tw.softmax(t, axis=axis), e / e.sum(axis=axis, keepdims=True))

    def test_in_place(self, rank):
        order = order_of(rank)
        x = numbers(SHAPES[rank])
        t = tw.asarray(x, copy=True)
        view = tw.permute_dims(t, order)
        view += tw.asarray(x.transpose(order).copy())
        view *= 3.0
        same(t, (x + x) * 3.0)
        view[0] = 1.0
        expected = (x + x) * 3.0
        expected.transpose(order)[0] = 1.0
        same(t, expected)

    def test_nonzero(self, rank):
        x = numbers(SHAPES[rank]) > 1.0
        found = tw.nonzero(tw.asarray(x))
        assert len(found) == rank
        for positions, expected in zip(found, x.nonzero(), strict=True):
            same(positions, expected)


@pytest.mark.parametrize("rank", RANKS)
class TestGradients:
    def gradient(self, f, x):
        t = tw.asarray(x).requires_grad_()
        f(t).sum().backward()
        assert t.grad.shape == x.shape
        return np.asarray(t.grad)

    def test_of_permuted_and_stretched(self, rank):
        x = numbers(SHAPES[rank])
        order = order_of(rank)
        weights = numbers([x.shape[i] for i in order], 1)
        g = self.gradient(lambda t: tw.permute_dims(t, order) * tw.asarray(weights), x)
        np.testing.assert_array_equal(g, weights.transpose(np.argsort(order)))
        small = numbers([n if i % 2 else 1 for i, n in enumerate(x.shape)], 2)
        g = self.gradient(lambda t: t * tw.asarray(x), small)
        stretched = tuple(
            i for i, (n, m) in enumerate(zip(small.shape, x.shape, strict=True)) if n != m
        )
        np.testing.assert_allclose(g, x.sum(axis=stretched, keepdims=True), atol=1e-12)

    def test_of_reductions(self, rank):
        x = numbers(SHAPES[rank])
        axes = tuple(range(0, rank, 2))
        g = self.gradient(lambda t: t.sum(axis=axes) ** 2.0, x)
        expected = 2 * np.broadcast_to(x.sum(axis=axes, keepdims=True), x.shape)
        np.testing.assert_allclose(g, expected, atol=1e-10)

    def test_of_index_arrays(self, rank):
        x = numbers(SHAPES[rank])
        places = [np.random.default_rng(7).integers(n, size=6) for n in x.shape]
        for count in (1, rank // 2, rank - 1, rank):
            key = tuple(places[:count])
            weights = numbers(x[key].shape, 3)
            g = self.gradient(
                lambda t, key=key, weights=weights: (
                    t[tuple(tw.asarray(p) for p in key)] * tw.asarray(weights)
                ),
                x,
            )
            expected = np.zeros_like(x)
            np.add.at(expected, key, weights)
            np.testing.assert_allclose(g, expected, atol=1e-12)

    def test_of_slices_and_joins(self, rank):
        x = numbers(SHAPES[rank])
        key = (slice(1, None), slice(None, None, -1)) * (rank // 2)
        key = tuple(slice(None) if n == 1 else k for k, n in zip(key, x.shape, strict=False))
        expected = np.zeros_like(x)
        expected[key] = 2 * x[key]
        np.testing.assert_array_equal(self.gradient(lambda t: t[key] ** 2.0, x), expected)
        g = self.gradient(lambda t: tw.concat([t, t * 3.0], axis=rank // 2), x)
        np.testing.assert_array_equal(g, np.full_like(x, 4.0))

    def test_of_recorded_changes_of_a_view(self, rank):
        order = order_of(rank)
        x = numbers(SHAPES[rank])

        def changed(t):
            y = t * 1.0
            tw.permute_dims(y, order).mul_(3.0)
            return y

        np.testing.assert_array_equal(self.gradient(changed, x), np.full_like(x, 3.0))

    def test_of_matmul(self, rank):
        batch = ((2, 1) * rank)[:6] + (1,) * (rank - 8)
        a, b = numbers((*batch, 3, 4)), numbers((4, 2), 1)
        g = self.gradient(lambda t: t @ tw.asarray(b), a)
        np.testing.assert_allclose(g, np.broadcast_to(b.sum(axis=1), a.shape), atol=1e-12)


@pytest.mark.parametrize("rank", RANKS)
class TestExchange:
    def test_numpy_and_dlpack(self, rank):
        for t, x in pairs(rank):
            # What steps backwards is copied for DLPack.
            forwards = [np.from_dlpack(t)] if all(step >= 0 for step in t.strides) else []
            for back in (np.asarray(t), t.numpy(), *forwards):
                assert back.strides == tuple(8 * step for step in t.strides)
                np.testing.assert_array_equal(back, x)
            np.testing.assert_array_equal(np.from_dlpack(t), x)
            same(tw.asarray(x), x)
            same(tw.from_dlpack(x), x)
            assert memoryview(t).shape == t.shape

    def test_pickles(self, rank):
        for t, x in pairs(rank):
            same(pickle.loads(pickle.dumps(t)), x)

    def test_files(self, rank, tmp_path):
        t, x = pairs(rank)[1]
        tw.save({"x": t}, tmp_path / "x.safetensors")
        same(tw.load(tmp_path / "x.safetensors")["x"], x)

    def test_lists(self, rank):
        shape = tuple(min(n, 2) if i % 3 == 0 else 1 for i, n in enumerate(SHAPES[rank]))
        x = numbers(shape)
        t = tw.asarray(x)
        assert t.tolist() == x.tolist()
        same(tw.asarray(x.tolist()).astype(tw.float64), np.float64(np.float32(x)))

    def test_printing(self, rank):
        x = tw.zeros((1,) * (rank - 1) + (2,))
        text = f"tensor({'[' * rank}0., 0.{']' * rank}, dtype=float32)"
        assert repr(x).split() == text.split()
        t = tw.zeros((1,) * (rank - 1) + (5000,))
        assert f"shape={t.shape}" in repr(t)

    def test_captured_calls(self, rank):
        x = numbers(SHAPES[rank])
        order = order_of(rank)
        places = tuple(tw.asarray([0, 0, 0]) for _ in range(rank))

        def f(t):
            y = tw.permute_dims(t, order)
            return [
                y * 2.0,
                y.sum(axis=tuple(range(0, rank, 2))),
                y.copy(),
                t[places],
            ]

        expected = f(tw.asarray(x + 1.0))
        captured = tw._core._capture(f, [tw.asarray(x)])
        for a, b in zip(captured.replay([tw.asarray(x + 1.0)]), expected, strict=True):
            same(a, np.asarray(b))


def test_32_axes_that_cannot_be_merged():
    """Without elements, as two of each axis would be 2**32."""
    x = np.zeros((2,) * 31 + (0,), np.float32)
    t, order = tw.asarray(x), order_of(32)
    permuted = tw.permute_dims(t, order)
    same(permuted + 1.0, x.transpose(order))
    same(permuted + tw.permute_dims(t, order), x.transpose(order))
    same(permuted.copy(), x.transpose(order))
    same(permuted.astype(tw.int16), x.transpose(order).astype(np.int16))
    same(tw.sum(permuted, axis=tuple(range(0, 32))), x.sum())
    same(tw.concat([permuted, permuted], axis=order.index(31)), x.transpose(order))
    c = tw.asarray(x.astype(np.complex64))
    same(tw.sum(tw.permute_dims(c, order), axis=()), x.transpose(order).astype(np.complex64))
    y = permuted.mT.requires_grad_()
    y.sum().backward()
    assert y.grad.shape == y.shape


class TestLimit:
    """One axis more than there may be is refused, and leaves everything as it was."""

    def test_of_what_is_made(self):
        for make in (
            lambda: tw.zeros((1,) * 33),
            lambda: tw.ones((1,) * 33),
            lambda: tw.empty((1,) * 33),
            lambda: tw.full((1,) * 33, 2.0),
            lambda: tw.rand((1,) * 33),
            lambda: tw.rand(*(1,) * 33),
            lambda: tw.asarray(np.zeros((1,) * 33)),
            lambda: tw.from_dlpack(np.zeros((1,) * 33)),
            lambda: tw.asarray(np.zeros((1,) * 33).tolist()),
        ):
            with pytest.raises(ValueError, match=REFUSED):
                make()

    def test_of_views_and_results(self):
        x = tw.zeros((1,) * 32)
        for make in (
            lambda: tw.expand_dims(x, axis=0),
            lambda: tw.expand_dims(x, axis=-1),
            lambda: x[None],
            lambda: x[..., None],
            lambda: x.reshape((1,) * 33),
            lambda: tw.broadcast_to(x, (2,) + (1,) * 32),
            lambda: tw.stack([x, x]),
            lambda: x[tw.asarray([[0, 0]])],
            lambda: x.sum(axis=tuple(range(33))),
        ):
            with pytest.raises(ValueError, match=REFUSED):
                make()
        assert x.shape == (1,) * 32

    def test_of_axes(self):
        x = tw.zeros((1,) * 32)
        assert x.sum(axis=31).shape == (1,) * 31
        with pytest.raises(IndexError, match="axis 32 is out of range for 32 dimensions"):
            x.sum(axis=32)
        with pytest.raises(IndexError, match="33 indices for 32 dimensions"):
            x[(0,) * 33]
