"""The table of optimizations: what a row says, and that results are right without it."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from cases import RECORDS, arrays
from cases.check import check
from cases.record import OpCase
from checkout import ROOT

import tilewright as tw
from tilewright import optimizations

TABLE = optimizations.table()
OF_CALLS = optimizations.names(scope="call")


def source_text() -> str:
    return "".join(
        path.read_text()
        for path in (ROOT / "core").rglob("*")
        if path.suffix in {".h", ".cpp"} and "tests" not in path.parts
    )


def test_each_row_says_what_it_is_and_is_asked_for() -> None:
    assert len({row.name for row in TABLE}) == len(TABLE) > 50
    text = source_text()
    for row in TABLE:
        assert row.reason in optimizations.REASONS
        assert row.how.endswith(".")
        assert row.families
        assert re.search(rf"Optimization::{row.name}\b", text), f"nothing asks for {row.name}"


@pytest.mark.parametrize("case", RECORDS, ids=str)
def test_results_are_right_without_any(case: OpCase, rng) -> None:
    with optimizations.off(*OF_CALLS):
        for dtype in case.tolerance:
            for args in case.arguments(rng, dtype):
                check(case, args, dtype, case.variants[0], "all off")


# Large enough, or of such a layout, that most rows have a say.
def programs() -> list[tw.Tensor]:
    tw.manual_seed(3)
    x, y = tw.randn(300, 257), tw.randn(257, 300)
    narrow = tw.randn(4096, 5)
    keys = tw.randint(0, 9, (3000,))
    w = tw.randn(40, 257, requires_grad=True)
    (tw.linear(tw.linear(x, w) @ w, w)).sum().backward()
    image, kernel = tw.randn(3, 4, 14, 14), tw.randn(32, 4, 3, 3)
    return [
        x + y.T, (y.T + 1) * x, x**2, tw.where(x > 0, x, 0), x.T.copy(), narrow + tw.arange(5),
        x.sum(0), x.sum(1), x.T.sum(0), narrow.sum(0), narrow.sum(1), tw.softmax(narrow, axis=1),
        tw.softmax(x, axis=0), tw.softmax(y.T, axis=1), tw.cumsum(x, axis=0), y.T.argmax(),
        tw.sort(x, axis=1)[0], tw.bincount(keys), x[keys[:50]],
        tw.searchsorted(tw.arange(99), keys), x @ y, y.T @ y, (x[:, :3] @ y[:3]),
        tw.xlogy(x, tw.ones(257)), x.repeat_interleave(3, axis=1),
        tw.nn.functional.conv2d(image, kernel), tw.nn.functional.max_pool2d(image, 2),
        x.astype(tw.bfloat16) + 1, x.astype(tw.bfloat16).sum(1), tw.median(x.reshape(-1)),
        tw.nn.functional.interpolate(image, scale_factor=2, mode="bilinear"), w.grad,
    ]  # fmt: skip


@pytest.mark.parametrize("name", OF_CALLS)
def test_one_off_changes_bits_only_where_its_row_says_so(name: str) -> None:
    row = TABLE[[row.name for row in TABLE].index(name)]
    want = programs()
    with optimizations.off(name):
        got = programs()
    for a, b in zip(want, got, strict=True):
        assert a.dtype == b.dtype
        if row.same_bits:
            np.testing.assert_array_equal(
                arrays.array(a.contiguous()), arrays.array(b.contiguous())
            )
        else:
            np.testing.assert_allclose(
                arrays.array(a.contiguous()).astype("f8"),
                arrays.array(b.contiguous()).astype("f8"),
                rtol=2e-5, atol=2e-3,
            )  # fmt: skip


def test_explain_names_what_was_used_and_not_what_is_off() -> None:
    x = tw.randn(256, 256)
    with tw.explain() as report:
        x.T + x
    assert "transpose_tiling" in report[-1].optimizations
    assert "transpose tiling" in str(report)
    with optimizations.off("transpose_tiling"), tw.explain() as report:
        x.T + x
    assert "transpose_tiling" not in report[-1].optimizations


def test_explain_never_names_what_is_off() -> None:
    with optimizations.off(*OF_CALLS), tw.explain() as report:
        programs()
    named = {name for entry in report for name in entry.optimizations}
    assert not named & set(OF_CALLS)


def test_inner_products_are_told_and_forced() -> None:
    image, kernel = tw.randn(2, 8, 20, 20), tw.randn(16, 8, 3, 3)
    tw.set_num_threads(1)
    want = tw.nn.functional.conv2d(image, kernel)
    for rung in ("packed", "tiled"):
        with tw.kernels.use(convolution="im2col", matmul=rung), tw.explain() as report:
            got = tw.nn.functional.conv2d(image, kernel)
        assert report[-1].inner == (f"matmul {rung}",)
        np.testing.assert_allclose(arrays.array(got), arrays.array(want), rtol=1e-4, atol=1e-4)


# ---- where a row is off ----


def test_off_is_for_this_thread_and_its_tasks_until_the_block_ends() -> None:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    def is_on() -> bool:
        return optimizations.is_on("call_cache")

    with optimizations.off("call_cache"), ThreadPoolExecutor(1) as others:
        assert not is_on()
        assert others.submit(is_on).result()
        assert not others.submit(tw.runtime.bind_modes(is_on)).result()
        with tw.runtime.Scheduler() as scheduler:
            assert not scheduler.submit(is_on).result()
    assert is_on()


def test_blocks_nest_and_end_in_any_order() -> None:
    outer, inner = optimizations.off("call_cache", "threads"), optimizations.off("threads")
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert optimizations.is_on("call_cache")
    assert not optimizations.is_on("threads")
    inner.__exit__(None, None, None)
    assert optimizations.is_on("threads")


def test_disabled_is_for_all_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    optimizations.disable("spin_then_park", "call_cache")
    try:
        with ThreadPoolExecutor(1) as others:
            assert not others.submit(optimizations.is_on, "spin_then_park").result()
            assert not others.submit(optimizations.is_on, "call_cache").result()
    finally:
        optimizations.enable("spin_then_park", "call_cache")
    assert optimizations.is_on("spin_then_park")


def test_small_calls_are_right_whatever_shortcut_is_off() -> None:
    a, b = tw.arange(6.0), tw.ones(6)
    for names in (["call_shortcuts"], ["call_cache"], ["call_shortcuts", "call_cache"]):
        with optimizations.off(*names):
            for _ in range(3):
                assert (a + b).tolist() == [1, 2, 3, 4, 5, 6]
                assert tw.zeros(2).tolist() == [0, 0]
                assert tw.softmax(b, axis=0).sum().item() == pytest.approx(1)


def test_a_forced_kernel_is_not_passed_by() -> None:
    a = tw.arange(6.0)
    with tw.kernels.use(add="naive"), tw.explain() as report:
        a + a
    assert report[-1].kernel == "naive"


def test_a_recording_is_current_under_the_rows_it_was_made_with() -> None:
    recorded = tw._core._capture(lambda x: x.T + x, [tw.ones(64, 64)])
    assert recorded.is_current()
    with optimizations.off("transpose_tiling"):
        assert not recorded.is_current()
    assert recorded.is_current()
    optimizations.disable("transpose_tiling")
    optimizations.enable("transpose_tiling")
    assert not recorded.is_current()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: optimizations.off("streeming_stores"), "did you mean 'streaming_stores'"),
        (lambda: optimizations.off("spin_then_park"), "tw.optimizations.disable"),
        (lambda: optimizations.off("huge_pages"), "TILEWRIGHT_OFF=huge_pages"),
        (lambda: optimizations.disable("huge_pages"), "TILEWRIGHT_OFF=huge_pages"),
        (lambda: optimizations.names(reason="magic"), "reason must be one of"),
        (lambda: optimizations.names(scope="magic"), "scope must be one of"),
    ],
)
def test_errors_say_what_to_write(call, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        call()


def in_process(code: str, off: str) -> subprocess.CompletedProcess[str]:
    import os  # noqa: PLC0415

    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "TILEWRIGHT_OFF": off},
    )  # fmt: skip


def test_the_environment_turns_rows_off_from_the_start() -> None:
    names = ",".join(row.name for row in TABLE)
    code = (
        "import tilewright as tw; x = tw.randn(600, 600); (x @ x).sum(); "
        "print(sum(row.on for row in tw.optimizations.table()))"
    )
    assert in_process(code, names).stdout.split() == ["0"]


def test_an_unknown_name_in_the_environment_is_an_error() -> None:
    ran = in_process("import tilewright", "huge_page")
    assert ran.returncode == 1
    assert "TILEWRIGHT_OFF: no optimization 'huge_page'; did you mean 'huge_pages'?" in ran.stderr
