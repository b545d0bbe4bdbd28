"""Products that are added to something: in place, with a bias, with a relu behind them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


class TestInPlace:
    def test_adds_to_what_is_there(self):
        x, a, b = normal(20, 30), normal(20, 40, seed=1), normal(40, 30, seed=2)
        t = tw.asarray(x.copy())
        memory = t.data_ptr
        assert t.addmm_(tw.asarray(a), tw.asarray(b), beta=0.5, alpha=2.0) is t
        np.testing.assert_allclose(
            np.asarray(t), 0.5 * wide(x) + 2 * (wide(a) @ wide(b)), 1e-5, 1e-5
        )
        assert t.data_ptr == memory

    def test_beta_0_does_not_read(self):
        t = tw.full((4, 4), float("nan"))
        t.addmm_(tw.eye(4), tw.eye(4), beta=0.0)
        assert np.array_equal(np.asarray(t), np.eye(4))

    @pytest.mark.parametrize("view", ["transposed", "reversed", "strided"])
    def test_through_a_view(self, view):
        base = normal(24, 24)
        t = tw.asarray(base.copy())
        cut = {
            "transposed": lambda x: x.T,
            "reversed": lambda x: x[::-1, ::-1],
            "strided": lambda x: x[::2, ::3],
        }[view]
        a, b = normal(cut(base).shape[0], 9, seed=1), normal(9, cut(base).shape[1], seed=2)
        expected = wide(base)
        cut(expected)[...] += wide(a) @ wide(b)
        cut(t).addmm_(tw.asarray(a), tw.asarray(b))
        np.testing.assert_allclose(np.asarray(t), expected, 1e-5, 1e-5)

    def test_its_own_memory_as_an_operand(self):
        x = normal(12, 12)
        t = tw.asarray(x.copy())
        t.addmm_(t, t.T)
        np.testing.assert_allclose(np.asarray(t), wide(x) + wide(x) @ wide(x).T, 1e-5, 1e-5)

    def test_memory_shared_through_numpy(self):
        x = normal(100, 100)
        t = tw.asarray(x.copy())
        other = tw.asarray(t.numpy())
        assert other.data_ptr == t.data_ptr
        t.addmm_(other, other.T)
        np.testing.assert_allclose(np.asarray(t), wide(x) + wide(x) @ wide(x).T, 1e-4, 1e-4)

    def test_blocks_of_one_matrix(self):
        x = normal(60, 60)
        t = tw.asarray(x.copy())
        t[30:, 30:].addmm_(t[30:, :30], t[:30, 30:], alpha=-1.0)
        expected = wide(x)
        expected[30:, 30:] -= wide(x)[30:, :30] @ wide(x)[:30, 30:]
        np.testing.assert_allclose(np.asarray(t), expected, 1e-4, 1e-4)

    def test_a_refused_call_leaves_no_trace(self):
        x = tw.asarray(normal(5, 5)).astype(tw.float64)
        p = tw.ones((5, 5), dtype=tw.float64, requires_grad=True)
        z = p * x
        ones = tw.ones((5, 5), dtype=tw.float64)
        with tw.kernels.use(matmul="bf16x6"), pytest.raises(ValueError, match="does not accept"):
            x.addmm_(ones, ones)
        z.sum().backward()  # x counts as unchanged
        assert np.array_equal(np.asarray(p.grad), np.asarray(x))

    def test_half_types(self):
        x = normal(6, 7)
        t = tw.asarray(x).astype(tw.bfloat16)
        before = np.asarray(t.astype(tw.float32))
        t.addmm_(tw.ones((6, 3), dtype=tw.bfloat16), tw.ones((3, 7), dtype=tw.bfloat16))
        np.testing.assert_allclose(np.asarray(t.astype(tw.float32)), before + 3, rtol=2**-8)

    def test_gradients(self):
        x, a, b = (tw.asarray(normal(5, 5, seed=i)) for i in range(3))
        a.requires_grad_()
        b.requires_grad_()
        x.requires_grad_()
        y = x * 2
        y.addmm_(a, b, beta=0.5, alpha=3.0)
        y.backward(tw.ones((5, 5)))
        ones, p, q = np.ones((5, 5)), np.asarray(a.detach()), np.asarray(b.detach())
        np.testing.assert_allclose(np.asarray(x.grad), ones, 1e-5)
        np.testing.assert_allclose(np.asarray(a.grad), 3 * ones @ q.T, 1e-4, 1e-5)
        np.testing.assert_allclose(np.asarray(b.grad), 3 * p.T @ ones, 1e-4, 1e-5)

    def test_a_leaf_that_requires_grad_is_refused_and_kept(self):
        x = tw.ones((3, 3), requires_grad=True)
        with pytest.raises(RuntimeError, match="a leaf that requires grad"):
            x.addmm_(tw.ones((3, 3)), tw.ones((3, 3)))
        assert np.array_equal(np.asarray(x.detach()), np.ones((3, 3)))
        with tw.no_grad():
            x.addmm_(tw.ones((3, 3)), tw.ones((3, 3)))
        assert np.array_equal(np.asarray(x.detach()), np.full((3, 3), 4))

    @pytest.mark.parametrize(
        ("a", "b", "error", "text"),
        [
            (tw.ones((3, 4)), tw.ones((5, 3)), ValueError, "inner sizes agree"),
            (tw.ones((4, 2)), tw.ones((2, 3)), ValueError, "cannot be added in place to"),
            (tw.ones(3), tw.ones((3, 3)), ValueError, "two matrices"),
            (tw.ones((3, 3), dtype=tw.float64), tw.ones((3, 3)), TypeError, "float64"),
            (tw.ones((3, 3), dtype=tw.int32), tw.ones((3, 3)), TypeError, "floating point"),
        ],
    )
    def test_refuses(self, a, b, error, text):
        x = tw.ones((3, 3))
        with pytest.raises(error, match=text):
            x.addmm_(a, b)
        assert np.array_equal(np.asarray(x), np.ones((3, 3)))

    def test_read_only_memory_is_refused(self):
        x = np.ones((3, 3), np.float32)
        x.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            tw.asarray(x, copy=False).addmm_(tw.ones((3, 3)), tw.ones((3, 3)))
        assert np.array_equal(x, np.ones((3, 3)))


@pytest.mark.parametrize("dtype", [tw.float16, tw.bfloat16])
def test_half_types_add_what_they_add_whatever_its_shape(dtype):
    a, b = (tw.asarray(normal(*s)).astype(dtype) for s in ((64, 512), (512, 48)))
    row = tw.asarray(normal(48, seed=3)).astype(dtype) * 20
    whole = tw.addmm(tw.broadcast_to(row, (64, 48)), a, b)
    for bias in (row, tw.reshape(row, (1, 48))):
        assert np.array_equal(
            np.asarray(tw.addmm(bias, a, b).astype(tw.float32)),
            np.asarray(whole.astype(tw.float32)),
        )


class TestResult:
    @pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (2, 1, 3, 4)])
    def test_may_be_changed_in_place(self, shape):
        layer = tw.nn.Linear(4, 4)
        x = tw.asarray(normal(*shape))
        y = layer(x)
        z = x @ layer.weight
        y += x
        z += x
        y[0] = 0.0
        z[0] = 0.0
        (y.sum() + z.sum()).backward()
        changed = np.zeros((4, 4))
        rows = wide(np.asarray(x))[1:].reshape(-1, 4)
        changed += np.ones((4, 1)) * rows.sum(axis=0) + rows.sum(axis=0)[:, None]
        np.testing.assert_allclose(np.asarray(layer.weight.grad), changed, 1e-4, 1e-5)


class TestActivation:
    @pytest.mark.parametrize(("inner", "outer"), [(70, 50), (72, 48)])
    def test_linear_with_relu_is_linear_then_relu(self, kernels_of_float32, inner, outer):
        x, w, b = normal(33, inner), normal(outer, inner, seed=1), normal(outer, seed=2)
        with tw.kernels.use(matmul=kernels_of_float32):
            x, w, b = (tw.asarray(v, copy=True).requires_grad_() for v in (x, w, b))
            try:
                apart = tw.relu(tw.linear(x, w, b))
            except tw.InvalidValueError as error:  # without masks, no columns beside whole vectors
                assert (kernels_of_float32, outer) == ("direct", 50)
                pytest.skip(str(error))
            apart.backward(tw.ones((33, outer)))
            expected = [np.asarray(v.grad) for v in (x, w, b)]
            tw.zero_grad([x, w, b])
            fused = tw.linear(x, w, b, activation="relu")
            fused.backward(tw.ones((33, outer)))
        assert np.array_equal(np.asarray(fused.detach()), np.asarray(apart.detach()))
        for value, gradient in zip((x, w, b), expected, strict=True):
            assert np.array_equal(np.asarray(value.grad), gradient)

    @pytest.fixture(params=["naive", "tiled", "simd", "packed", "direct", "strassen"])
    def kernels_of_float32(self, request):
        return request.param

    def test_one_kernel_runs(self):
        x, w, b = (tw.asarray(normal(*s)) for s in ((8, 16), (32, 16), (32,)))
        with tw.explain() as report:
            tw.linear(x, w, b, activation="relu")
        assert [entry.op for entry in report] == ["linear_relu"]
        assert report[0].problem == "float32 8x32x16 + bias, relu"

    def test_nan_stays_and_negative_zero_becomes_zero(self):
        y = tw.linear(
            tw.asarray([[float("nan")], [0.0], [-1.0]]), tw.asarray([[1.0]]), activation="relu"
        )
        values = np.asarray(y)[:, 0]
        assert np.isnan(values[0])
        assert not np.signbit(values[1:]).any()
        assert not values[1:].any()

    def test_batches_of_rows_are_one_product(self):
        x, w, b = normal(2, 3, 4, 8), normal(5, 8, seed=1), normal(5, seed=2)
        with tw.explain() as report:
            y = tw.linear(*map(tw.asarray, (x, w, b)), activation="relu")
        assert len(report) == 1
        expected = np.maximum(wide(x) @ wide(w).T + wide(b), 0)
        np.testing.assert_allclose(np.asarray(y), expected, 1e-5, 1e-5)

    def test_second_gradients(self):
        x, w = (tw.asarray(normal(4, 4, seed=i), copy=True).requires_grad_() for i in (0, 1))
        y = tw.linear(x, w, activation="relu")
        (g,) = tw.grad((y * y).sum(), [x], create_graph=True)
        g.sum().backward()
        mask = np.asarray(y.detach()) > 0
        ones = np.ones((4, 4))
        # sum(g) = 2 sum(mask * (x w^T) * (ones w^T)), differentiated by x.
        expected = 2 * (mask * (ones @ wide(np.asarray(w.detach())).T)) @ np.asarray(w.detach())
        np.testing.assert_allclose(np.asarray(x.grad), expected, 1e-4, 1e-5)

    def test_layer(self):
        layer = tw.nn.Linear(6, 3, activation="relu")
        assert repr(layer) == "Linear(6, 3, bias=True, activation='relu')"
        x = tw.asarray(normal(5, 6))
        expected = tw.relu(tw.linear(x, layer.weight, layer.bias))
        assert np.array_equal(np.asarray(layer(x).detach()), np.asarray(expected.detach()))
        with pytest.raises(ValueError, match="activation must be None or 'relu', got 'gelu'"):
            tw.nn.Linear(6, 3, activation="gelu")
