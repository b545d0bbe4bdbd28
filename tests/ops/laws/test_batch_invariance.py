"""A row has the same bits whatever the batch, where that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tilewright as tw

SIZES = ((1, 1), (3, 5), (8, 64), (10, 784), (64, 20), (1, 300), (256, 100), (65, 513), (520, 1000))
BATCHES = (1, 2, 3, 7, 8, 16, 33, 64, 130)


def bits(x: tw.Tensor) -> np.ndarray:
    return x.detach().numpy().view(np.uint32 if x.dtype == tw.float32 else np.uint64)


def rows_agree(f: Callable[[tw.Tensor], tw.Tensor], x: tw.Tensor, label: str) -> None:
    whole = bits(f(x))
    for count in BATCHES:
        for start in (0, x.shape[0] - count):
            part = bits(f(x[start : start + count]))
            np.testing.assert_array_equal(part, whole[start : start + count], f"{label}, {count}")


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def uniform(rng: np.random.Generator, dtype: str, *shape: int) -> tw.Tensor:
    return tw.asarray(rng.uniform(-1, 1, shape), dtype=getattr(tw, dtype))


@pytest.mark.parametrize("precision", ["highest", "medium"])
def test_products(rng: np.random.Generator, dtype: str, isa: str, precision: str) -> None:
    tw.set_float32_matmul_precision(precision)
    try:
        with tw.use_batch_invariant():
            for n, k in SIZES:
                x = uniform(rng, dtype, BATCHES[-1], k)
                w, b = uniform(rng, dtype, n, k), uniform(rng, dtype, n)
                plain = w.T.contiguous()
                rows_agree(lambda x, w=w, b=b: tw.linear(x, w, b), x, f"linear {n} {k}")
                rows_agree(lambda x, w=plain: x @ w, x, f"matmul {n} {k}")
                rows_agree(lambda x, w=w: x[:, None] @ w.T, x, f"vectors {n} {k}")
    finally:
        tw.set_float32_matmul_precision("highest")


def test_products_of_any_threads(rng: np.random.Generator, threads: None) -> None:
    x, w = uniform(rng, "float32", 130, 513), uniform(rng, "float32", 65, 513)
    with tw.use_batch_invariant():
        tw.set_num_threads(1)
        one = bits(tw.linear(x, w))
        tw.set_num_threads(2)
        np.testing.assert_array_equal(one, bits(tw.linear(x, w)))
        rows_agree(lambda x: tw.linear(x, w), x, "two threads")


ROW_OPS: dict[str, Callable[[tw.Tensor], Any]] = {
    "softmax": tw.softmax,
    "log_softmax": tw.log_softmax,
    "sum": lambda x: x.sum(axis=-1),
    "mean": lambda x: x.mean(axis=-1),
    "var": lambda x: x.var(axis=-1),
    "tanh": tw.tanh,
}


@pytest.mark.parametrize("name", list(ROW_OPS))
def test_ops_along_rows(rng: np.random.Generator, dtype: str, isa: str, name: str) -> None:
    with tw.use_batch_invariant():
        for k in (1, 5, 33, 300, 1000):
            rows_agree(ROW_OPS[name], uniform(rng, dtype, BATCHES[-1], k), f"{name} {k}")


def test_without_it_some_rows_differ(rng: np.random.Generator) -> None:
    """Else the mode would be worth nothing: few long columns are dot products from 8 rows on."""
    x, w = uniform(rng, "float32", 130, 1000), uniform(rng, "float32", 1000, 3)
    assert (bits(x @ w)[:1] != bits(x[:1] @ w)).any()
    with tw.use_batch_invariant():
        assert (bits(x @ w)[:1] == bits(x[:1] @ w)).all()


def test_explain_shows_what_is_left_out_and_its_price(rng: np.random.Generator) -> None:
    x, w = uniform(rng, "float32", 2, 1000), uniform(rng, "float32", 100, 1000)
    with tw.use_batch_invariant(), tw.explain() as seen:
        tw.linear(x, w)
    text = str(seen)
    assert "strassen" in text
    assert "its bits depend on the number of rows: batch invariance is on" in text
    assert "of it for batch invariance" in text


def test_explain_tells_the_price_of_all_samples(rng: np.random.Generator) -> None:
    """What is chosen for one of many small images costs more for all of them."""
    x, w = uniform(rng, "float32", 64, 64, 7, 7), uniform(rng, "float32", 64, 64, 3, 3)
    with tw.explain() as free:
        tw.conv2d(x, w, padding=1)
    with tw.use_batch_invariant(), tw.explain() as seen:
        tw.conv2d(x, w, padding=1)
    costs = {c.name: c.cost_ns for c in free._recorded[0].candidates if c.accepted}
    entry = seen._recorded[0]
    assert {c.name: c.cost_ns for c in entry.candidates if c.accepted} == costs
    best = next(c for c in free._recorded[0].candidates if c.chosen)
    chosen = next(c for c in entry.candidates if c.chosen)
    price = dict(chosen.terms).get("for batch invariance", 0)
    assert price == chosen.cost_ns - best.cost_ns
    if chosen.name != best.name:
        assert price > 0
        assert "costs more for one sample: batch invariance is on" in str(seen)


def test_a_forced_kernel_runs_all_the_same(rng: np.random.Generator) -> None:
    x = uniform(rng, "float32", 64, 64)
    with tw.use_batch_invariant(), tw.kernels.use(matmul="naive"), tw.explain() as seen:
        x @ x
    assert [e["kernel"] for e in seen.as_dict()["entries"]] == ["naive"]


def test_as_a_call_a_block_and_a_decorator() -> None:
    assert not tw.is_batch_invariant()
    tw.use_batch_invariant(True)
    assert tw.is_batch_invariant()
    with tw.use_batch_invariant(False):
        assert not tw.is_batch_invariant()
    assert tw.is_batch_invariant()
    tw.use_batch_invariant(False)
    assert not tw.is_batch_invariant()

    @tw.use_batch_invariant()
    def inside() -> bool:
        return tw.is_batch_invariant()

    assert not tw.is_batch_invariant()
    assert inside()
    assert not tw.is_batch_invariant()
    with tw.kernels.use(isa="scalar"), tw.use_batch_invariant():
        assert tw.active_isa() == "scalar"
        assert tw.is_batch_invariant()


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_convolutions(rng: np.random.Generator, isa: str, kernel: int) -> None:
    """A sample's result and its input gradient do not depend on the samples beside it."""
    for channels, out, side in ((1, 8, 12), (16, 32, 9)):
        w = uniform(rng, "float32", out, channels, kernel, kernel)
        x = uniform(rng, "float32", BATCHES[-1], channels, side, side)
        g = uniform(rng, "float32", BATCHES[-1], out, side, side)
        with tw.use_batch_invariant():
            rows_agree(lambda x, w=w: tw.conv2d(x, w, padding="same"), x, f"conv {channels}")
            rows_agree(lambda g, w=w: tw.conv_transpose2d(g, w, padding=w.shape[2] // 2), g, "dx")


def any_layout(rng: np.random.Generator, name: str) -> tuple[tw.Tensor, int]:
    """A tensor of random extents, order of axes, gaps and repetition, and the axis of its batch."""
    rank = int(rng.integers(2, 5))
    shape = [int(n) for n in rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 17, 33, 70, 300], rank)]
    batch = int(rng.integers(0, rank))
    shape[batch] = max(shape[batch], 2)
    while np.prod(shape) > 100_000:
        shape[int(np.argmax(shape))] = 2
    order = rng.permutation(rank)
    x = uniform(rng, "float64", *(shape[i] for i in order)).astype(getattr(tw, name))
    x = tw.permute_dims(x, tuple(map(int, np.argsort(order))))
    steps = rng.choice([1, 1, 1, 2, -1], rank)
    x = x[tuple(slice(None, None, None if i == batch else int(steps[i])) for i in range(rank))]
    axis = int(rng.integers(0, rank))
    if axis != batch and rng.random() < 0.5:
        x = tw.broadcast_to(part_of(x, axis, 1), x.shape)
    return x, batch


def part_of(x: tw.Tensor, axis: int, count: int) -> tw.Tensor:
    return x[tuple(slice(count if i == axis else None) for i in range(x.ndim))]


def parts_of(x: tw.Tensor, axis: int) -> Iterator[tuple[int, tw.Tensor]]:
    """Of one, two and half of all: as views, and as tensors of their own, whose strides differ."""
    for count in {1, 2, x.shape[axis] // 2}:
        part = part_of(x, axis, count)
        yield count, part
        yield count, tw.asarray(part, copy=True)
        yield count, part.contiguous()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_reductions_of_any_layout(rng: np.random.Generator, dtype: str, isa: str) -> None:
    with tw.use_batch_invariant():
        for _ in range(200):
            x, batch = any_layout(rng, dtype)
            others = [i for i in range(x.ndim) if i != batch]
            axes = tuple(i for i in others if rng.random() < 0.6) or (others[0],)
            for op in (tw.sum, tw.var, tw.prod):
                whole = op(x, axis=axes, keepdims=True).astype(tw.float64)
                for count, part in parts_of(x, batch):
                    y = op(part, axis=axes, keepdims=True)
                    np.testing.assert_array_equal(
                        np.asarray(y.astype(tw.float64)),
                        np.asarray(part_of(whole, batch, count)),
                        f"{op} of {x.shape} with strides {part.strides} over {axes}, {count}",
                    )


def gradient_of(f: Callable[..., tw.Tensor]) -> Callable[..., tw.Tensor]:
    def gradient(x: tw.Tensor, axis: int) -> tw.Tensor:
        x = x.detach().requires_grad_(True)
        y = f(x, axis=axis)
        y.backward(tw.cos(y.detach()))
        assert x.grad is not None
        return x.grad

    return gradient


AXIS_OPS: dict[str, Callable[..., tw.Tensor]] = {
    "softmax": tw.softmax,
    "log_softmax": tw.log_softmax,
    "logsumexp": lambda x, axis: tw.logsumexp(x, axis=axis, keepdims=True),
    "norm": lambda x, axis: tw.norm(x, axis=axis, keepdims=True),
    "cumulative_sum": tw.cumulative_sum,
    "cumulative_prod": tw.cumulative_prod,
    "logcumsumexp": tw.logcumsumexp,
    "prod": lambda x, axis: tw.prod(x, axis=axis, keepdims=True),
}
AXIS_OPS |= {f"gradient of {name}": gradient_of(f) for name, f in AXIS_OPS.items()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", AXIS_OPS)
def test_an_axis_of_any_layout(rng: np.random.Generator, dtype: str, isa: str, name: str) -> None:
    """Batches that lie innermost, too, and of one."""
    f = AXIS_OPS[name]
    with tw.use_batch_invariant():
        for _ in range(60):
            x, batch = any_layout(rng, dtype)
            axis = int(rng.choice([i for i in range(x.ndim) if i != batch]))
            whole = f(x, axis=axis)
            for count, part in parts_of(x, batch):
                np.testing.assert_array_equal(
                    bits(f(part, axis=axis)),
                    bits(part_of(whole, batch, count)),
                    f"{name} of {x.shape} with strides {part.strides} along {axis}, {count}",
                )


def test_no_rows() -> None:
    with tw.use_batch_invariant():
        for shape in ((0, 300_000), (0, 3), (3, 0, 4)):
            assert tw.sum(tw.zeros(shape), axis=-1).shape == shape[:-1]


def test_columns_beside_one_that_overflows(rng: np.random.Generator) -> None:
    x = rng.standard_normal((300, 40)) + 1j * rng.standard_normal((300, 40))
    alone = tw.prod(tw.asarray(x), axis=0).numpy()
    x[:, 3] *= 1e10
    beside = tw.prod(tw.asarray(x), axis=0).numpy()
    others = np.arange(40) != 3
    np.testing.assert_array_equal(beside[others], alone[others])
    assert not np.isfinite(beside[3])


def test_long_rows_that_threads_share(rng: np.random.Generator) -> None:
    """One long row is cut into segments: so are those of a batch."""
    with tw.use_batch_invariant():
        for shape, axes in (
            ((20, 300_001), (1,)),
            ((40, 70_001, 4), (1,)),
            ((40, 3, 100_003), (1, 2)),
        ):
            x = uniform(rng, "float64", *shape)
            whole = tw.sum(x, axis=axes)
            for count in (1, 2, 16):
                np.testing.assert_array_equal(
                    bits(tw.sum(x[:count], axis=axes)), bits(whole[:count])
                )
