"""For each row of the table of optimizations, work in which it should be the difference.

`tilewright bench optimizations` times each piece of work with the row on and off; tests compare the
results of both.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.nn import functional

Run = Callable[[], Any]
"""Does the work once, and gives its results: a tensor, or a sequence of them."""


@dataclass(frozen=True)
class Work:
    """`make` gives the work, with data of its own.

    `threads`: at least so many are needed. `beside`: rows that are off on both sides, as they
    would leave this one nothing to do. `kernels`: forced on both sides. `unseen`: why `tw.explain`
    cannot name the row there, if so. `only_where`: whether the row does something on this machine;
    `where` says on which.
    """

    text: str
    make: Callable[[], Run]
    threads: int = 1
    beside: tuple[str, ...] = ()
    kernels: Mapping[str, str] = field(default_factory=dict)
    unseen: str = ""
    only_where: Callable[[], bool] = lambda: True
    where: str = ""


_OBSERVED = "calls that are observed go through all steps"
_NO_CALL = "it is part of no op's call"


def _of(
    call: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "float32"
) -> Callable[[], Run]:
    """A call of tensors of normal numbers."""

    def make() -> Run:
        operands = [tw.randn(*shape).astype(getattr(tw, dtype)) for shape in shapes]
        return lambda: call(*operands)

    return make


def _positive(call: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[], Run]:
    """The same of numbers from 0.5 to 1.5."""

    def make() -> Run:
        operands = [tw.rand(*shape) + 0.5 for shape in shapes]
        return lambda: call(*operands)

    return make


def _gradients(loss: Callable[..., Tensor], *shapes: tuple[int, ...]) -> Callable[[], Run]:
    """A loss and its gradients by tensors of small normal numbers."""

    def make() -> Run:
        leaves = [(tw.randn(*shape) * 0.1).requires_grad_() for shape in shapes]

        def run() -> list[Tensor]:
            for leaf in leaves:
                leaf.grad = None
            y = loss(*leaves)
            y.backward()
            return [y.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]

        return run

    return make


def _one_weight(x: Tensor, w: Tensor) -> Tensor:
    for _ in range(32):
        x = tw.tanh(x @ w)
    return x.sum()


def _gradients_that_meet(x: Tensor, y: Tensor) -> Tensor:
    # Nothing but the gradients of x, and their sums, is made in the backward pass.
    return (x * y + x * 2 + x * 3 + x * 4).sum()


def _deep_network() -> Run:
    model = tw.nn.Sequential(*(tw.nn.Linear(256, 256) for _ in range(24)))
    x = tw.randn(512, 256)

    def run() -> Tensor:
        model.zero_grad()
        y = tw.tanh(model(x)).sum()
        y.backward()
        return y.detach()

    return run


def _allocations() -> Run:
    sizes = [64 << i % 8 for i in range(1000)]

    def run() -> list[Tensor]:
        held = [tw.memory.allocate(size) for size in sizes]
        held.clear()
        return []

    return run


def _side_by_side() -> Run:
    operands = [(tw.randn(512, 512), tw.randn(512, 512)) for _ in range(2)]
    scheduler = tw.runtime.Scheduler(workers=2)

    def run() -> list[Tensor]:
        tasks = [scheduler.submit(tw.matmul, x, y) for x, y in operands]
        return [task.result() for task in tasks]

    return run


def _rows_of_a_table() -> Run:
    table, rows = tw.randn(1 << 16, 256), tw.randint(0, 1 << 16, (8192,))
    return lambda: tw.take(table, rows, axis=0)


def _short_runs() -> Run:
    x, rows = tw.randn(300, 300, 3), tw.randint(0, 300, (60,))
    return lambda: tw.take(x, rows, axis=1)


def _chosen_by_a_mask() -> Run:
    mask = tw.randn(1024, 1024) > 0
    x, y = (tw.randn(1024, 1024).astype(tw.float64) for _ in range(2))
    return lambda: tw.where(mask, x, y)


def _recorded_sum() -> Run:
    a, b = (tw.randn(8, 8, requires_grad=True) for _ in range(2))

    def run() -> Tensor:
        return (a + b).detach()

    return run


def _loads_halves() -> bool:
    path: int = tw._core.cpu_info()["vector_path_bits"]
    return path == 256 and tw.active_isa() == "avx512"


def _is_beyond_l3() -> bool:
    l3: int = tw._core.cpu_info()["l3_bytes"]
    return 16 << 20 <= l3 < 64 << 20


def _convolution(x: Tensor, w: Tensor) -> Tensor:
    y: Tensor = functional.conv2d(x, w, padding=w.shape[-1] // 2)
    return y


def _pooled(x: Tensor) -> Tensor:
    y: Tensor = functional.max_pool2d(x, 3, padding=1)
    return y


def _enlarged(x: Tensor) -> Tensor:
    y: Tensor = functional.interpolate(x, scale_factor=2, mode="bilinear")
    return y


def _searches() -> Run:
    x, values = tw.sort(tw.randn(1 << 20)), tw.randn(1 << 20)
    return lambda: tw.searchsorted(x, values)


def _equal_bins() -> Run:
    x = tw.full((1 << 20,), 7, dtype=tw.int64)
    return lambda: tw.bincount(x, minlength=256)


def _added_rows() -> Run:
    rows, source = tw.randint(0, 1024, (8192,)), tw.randn(8192, 256)
    weight = tw.randn(1024, 256, requires_grad=True)

    def run() -> Tensor:
        weight.grad = None
        functional.embedding(rows, weight).backward(source)
        assert weight.grad is not None
        return weight.grad

    return run


def _large_blocks() -> Run:
    def run() -> list[Tensor]:
        held = [tw.empty((16 << 20,)) for _ in range(2)]
        held.clear()
        return []

    return run


def _multiplies_bfloat16() -> bool:
    features = tw._core.cpu_info()["features"]
    return tw.active_isa() == "avx512" and bool({"avx512_bf16", "amx_bf16"} & set(features))


_HALVES = "processors that load 32 bytes at a time"
_add, _multiply = operator.add, operator.mul

CASES: dict[str, tuple[Work, ...]] = {
    # ---- calls ----
    "call_shortcuts": (
        Work("a + b, 8 x 8", _of(_add, (8, 8), (8, 8)), unseen=_OBSERVED),
        Work("zeros, 8 x 8", lambda: lambda: tw.zeros((8, 8)), unseen=_OBSERVED),
    ),
    "call_cache": (
        Work("a @ b, 8 x 8", _of(operator.matmul, (8, 8), (8, 8)), unseen=_OBSERVED),
        Work("softmax, 8 x 8", _of(lambda x: tw.softmax(x, -1), (8, 8)), unseen=_OBSERVED),
    ),
    "choice_cache": (
        Work(
            "a @ b, 64 x 64, without call_cache",
            _of(operator.matmul, (64, 64), (64, 64)),
            beside=("call_cache",),
        ),
    ),
    "lock_release": (Work("two tasks, a @ b of 512 x 512 each", _side_by_side, threads=2),),
    # ---- layout ----
    "memory_order": (
        Work("softmax of x.T, 1024 x 1024", _of(lambda x: tw.softmax(x.T, 1), (1024, 1024))),
    ),
    "layout_propagation": (
        Work("x.T + y.T, 1024 x 1024", _of(lambda x, y: x.T + y.T, (1024, 1024), (1024, 1024))),
    ),
    "loop_coalescing": (
        Work(
            "a + b, 4096 x 4 x 4, parts of rows of 8",
            _of(lambda x, y: x[:, :4] + y[:, :4], (4096, 8, 4), (4096, 8, 4)),
        ),
    ),
    "loop_interchange": (
        Work(
            "copy of a permuted 64 x 64 x 64",
            _of(lambda x: tw.astype(x.permute((1, 2, 0)), tw.float64), (64, 64, 64)),
        ),
    ),
    "transpose_tiling": (
        Work("x.T + y, 1024 x 1024", _of(lambda x, y: x.T + y, (1024, 1024), (1024, 1024))),
        Work("copy of x.T, 1024 x 1024", _of(lambda x: x.T.contiguous(), (1024, 1024))),
    ),
    "strip_mining": (
        Work("softmax down 4096 columns", _of(lambda x: tw.softmax(x, 0), (1024, 4096))),
        Work("max down 4096 columns", _of(lambda x: tw.max(x, axis=0), (1024, 4096))),
    ),
    "traversal_choice": (
        Work("sum down columns, 1024 x 1024", _of(lambda x: x.sum(0), (1024, 1024))),
    ),
    # ---- the way to memory ----
    "streaming_stores": (Work("a + b, 4096 x 4096", _of(_add, (4096, 4096), (4096, 4096))),),
    "split_loads": (
        Work(
            "a + b, 2 Mi elements",
            _of(_add, (1 << 21,), (1 << 21,)),
            only_where=_loads_halves,
            where=_HALVES,
        ),
    ),
    "software_prefetch": (Work("8192 rows of 1 KiB, of 64 MiB", _rows_of_a_table),),
    "short_row_batching": (Work("65536 x 8, times a row of 8", _of(_multiply, (65536, 8), (8,))),),
    "short_run_copies": (
        Work("take, 60 of 300 runs of 3", _short_runs),
        Work(
            "copy of 90000 x 3, parts of rows of 4",
            _of(lambda x: x[:, :3].contiguous(), (90000, 4)),
        ),
    ),
    # ---- products and convolutions ----
    "l3_blocking": (
        Work(
            "a @ b, 4096 x 4096",
            _of(operator.matmul, (4096, 4096), (4096, 4096)),
            kernels={"matmul": "packed"},
            only_where=_is_beyond_l3,
            where="processors whose third-level cache has 16 to 64 MiB",
        ),
    ),
    "wide_blocks": (
        Work(
            "a @ b, 64 x 2048 x 512",
            _of(operator.matmul, (64, 512), (512, 2048)),
            kernels={"matmul": "packed"},
        ),
    ),
    "operand_swap": (
        Work(
            "a @ b, 1024 x 8 x 64, both transposed",
            _of(lambda a, b: a.T @ b.T, (64, 1024), (8, 64)),
        ),
    ),
    "batch_folding": (
        Work("256 products, 16 x 64 x 64, one b", _of(operator.matmul, (256, 16, 64), (64, 64))),
    ),
    "dot_product_form": (
        Work(
            "a @ b, 2048 x 64 x 4, b transposed",
            _of(lambda a, b: a @ b.T, (2048, 64), (4, 64)),
            kernels={"matmul": "direct"},
        ),
    ),
    "outer_product_form": (
        Work(
            "a @ b, 65536 x 8 x 8",
            _of(operator.matmul, (65536, 8), (8, 8)),
            kernels={"matmul": "direct"},
        ),
    ),
    "blocked_im2col": (
        Work(
            "convolution 8 x 64 x 56 x 56, 3 x 3",
            _of(_convolution, (8, 64, 56, 56), (64, 64, 3, 3)),
            kernels={"convolution": "im2col"},
        ),
    ),
    "columns_in_place": (
        Work(
            "convolution 1 x 256 x 56 x 56, 1 x 1",
            _of(_convolution, (1, 256, 56, 56), (256, 256, 1, 1)),
            kernels={"convolution": "im2col"},
        ),
    ),
    "batched_columns": (
        Work(
            "convolution 64 x 128 x 7 x 7, 3 x 3",
            _of(_convolution, (64, 128, 7, 7), (128, 128, 3, 3)),
            kernels={"convolution": "im2col"},
        ),
    ),
    "shifted_planes": (
        Work(
            "convolution 32 x 1 x 28 x 28, 3 x 3",
            _of(_convolution, (32, 1, 28, 28), (32, 1, 3, 3)),
            kernels={"convolution": "direct"},
        ),
    ),
    # ---- fewer operations ----
    "broadcast_hoisting": (
        Work("xlogy of a row, 1024 x 1024", _positive(tw.xlogy, (1024, 1024), (1024,))),
    ),
    "strength_reduction": (
        Work("x ** 2, 1024 x 1024", _positive(lambda x: x**2, (1024, 1024))),
        Work("x ** 0.5, 1024 x 1024", _positive(lambda x: x**0.5, (1024, 1024))),
    ),
    "radix_select": (
        Work("kthvalue of 1 Mi elements", _of(lambda x: tw.kthvalue(x, 1 << 19)[0], (1 << 20,))),
    ),
    "tap_trimming": (
        Work("bilinear, 8 x 16 x 64 x 64 to twice that", _of(_enlarged, (8, 16, 64, 64))),
    ),
    # ---- vectors ----
    "native_bfloat16": (
        Work(
            "a + b, 1024 x 1024 bfloat16",
            _of(_add, (1024, 1024), (1024, 1024), dtype="bfloat16"),
        ),
        Work(
            "sums of rows, 1024 x 1024 bfloat16",
            _of(lambda x: x.sum(1), (1024, 1024), dtype="bfloat16"),
        ),
    ),
    "bfloat16_products": (
        Work(
            "a @ b, 1024 x 1024 bfloat16",
            _of(operator.matmul, (1024, 1024), (1024, 1024), dtype="bfloat16"),
            only_where=_multiplies_bfloat16,
            where="processors with AVX512_BF16 or AMX",
        ),
    ),
    "byte_mask_select": (Work("where, 1024 x 1024 float64", _chosen_by_a_mask),),
    "value_repetition": (
        Work("repeat 3 times, 1 Mi elements", _of(lambda x: tw.repeat(x, 3), (1 << 20,))),
        Work(
            "copy of a column, 65536 x 8",
            _of(lambda x: tw.broadcast_to(x, (65536, 8)).contiguous(), (65536, 1)),
        ),
    ),
    "few_row_kernel": (Work("sum of 2 rows of 1 Mi", _of(lambda x: x.sum(0), (2, 1 << 20))),),
    "small_panel_gather": (
        Work("sum of 100000 x 4 x 4 along axis 1", _of(lambda x: x.sum(1), (100000, 4, 4))),
    ),
    "column_folding": (Work("sum down 4 columns of 1 Mi", _of(lambda x: x.sum(0), (1 << 20, 4))),),
    "short_rows_as_columns": (
        Work("softmax, 8192 x 3", _of(lambda x: tw.softmax(x, -1), (8192, 3))),
        Work("sums of rows, 8192 x 5 float16", _of(lambda x: x.sum(1), (8192, 5), dtype="float16")),
    ),
    "sorting_networks": (Work("sort, 4096 x 64", _of(tw.sort, (4096, 64))),),
    "network_by_comparing": (
        Work(
            "sort, 256 x 256",
            _of(tw.sort, (256, 256)),
            unseen="it is asked for where rows are sorted, on any thread",
            only_where=_loads_halves,
            where=_HALVES,
        ),
    ),
    "interleaved_searches": (Work("searchsorted, 1 Mi in 1 Mi", _searches),),
    "privatized_histogram": (Work("bincount of 1 Mi equal numbers", _equal_bins),),
    "vector_scatter_rows": (Work("index_add, 8192 rows of 256", _added_rows),),
    "windows_in_lanes": (
        Work("max_pool2d 3 x 3, 8 x 64 x 112 x 112", _of(_pooled, (8, 64, 112, 112))),
    ),
    "positions_across": (
        Work("argmax of x.T, 1024 x 1024", _of(lambda x: x.T.argmax(), (1024, 1024))),
    ),
    "single_run_reduction": (Work("sum of 1000", _of(lambda x: x.sum(), (1000,))),),
    # ---- threads ----
    "threads": (Work("exp, 4 Mi elements", _of(tw.exp, (1 << 22,)), threads=2),),
    "parallel_segments": (
        Work("sum of 16 Mi elements", _of(lambda x: x.sum(), (1 << 24,)), threads=2),
    ),
    "two_pass_scan": (
        Work(
            "cumulative sum of 16 Mi elements",
            _of(tw.cumulative_sum, (1 << 24,)),
            threads=2,
        ),
    ),
    "chunk_ownership": (
        Work("a + b, 1 Mi elements", _of(_add, (1 << 20,), (1 << 20,)), threads=2),
    ),
    "spin_then_park": (
        Work(
            "a @ b, 128 x 128",
            _of(operator.matmul, (128, 128), (128, 128)),
            threads=2,
            unseen="workers wait between calls",
        ),
    ),
    # ---- gradients ----
    "in_place_accumulation": (
        Work(
            "gradient of four uses, 1024 x 1024",
            _gradients(_gradients_that_meet, (1024, 1024), (1024, 1024)),
        ),
    ),
    "accumulate_into_product": (
        Work(
            "gradient of a weight used 32 times, 256 x 256",
            _gradients(_one_weight, (32, 256), (256, 256)),
        ),
    ),
    "early_release": (
        Work(
            "gradient of 24 layers of 256, batch 512",
            _deep_network,
            unseen="nodes are released between calls",
        ),
    ),
    # ---- memory ----
    "thread_cache": (Work("1000 blocks of up to 8 KiB", _allocations, unseen=_NO_CALL),),
    "block_reuse": (
        Work("a + b, 2048 x 2048", _of(_add, (2048, 2048), (2048, 2048)), unseen=_NO_CALL),
    ),
    "idle_release": (
        Work(
            "2 blocks of 64 MiB, made and dropped",
            _large_blocks,
            unseen="memory goes back between calls",
        ),
    ),
    "huge_pages": (
        Work("a + b, 4096 x 4096", _of(_add, (4096, 4096), (4096, 4096)), unseen=_NO_CALL),
    ),
    "scratch_stack": (
        Work(
            "a @ b, 256 x 256, packed",
            _of(operator.matmul, (256, 256), (256, 256)),
            kernels={"matmul": "packed"},
            unseen=_NO_CALL,
        ),
    ),
    "object_free_lists": (
        Work(
            "recorded a + b, 8 x 8",
            _recorded_sum,
            unseen=_NO_CALL,
        ),
    ),
}
