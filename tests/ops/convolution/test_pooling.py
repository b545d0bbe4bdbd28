"""Pooling against PyTorch: random windows, winners, ties, NaN, and the same bits everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subcases import each

import tilewright as tw
from tilewright.bench.networks.pooling import pooling_cases

torch = pytest.importorskip("torch")
F = torch.nn.functional


def pair(name: str, data: np.ndarray, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Results and gradients of ours and of PyTorch's, for the same gradient of the result."""
    x, z = tw.asarray(data).requires_grad_(), torch.tensor(data, requires_grad=True)
    y, want = getattr(tw, name)(x, *args, **options), getattr(F, name)(z, *args, **options)
    g = np.random.default_rng(7).normal(size=tuple(want.shape)).astype(data.dtype)
    y.backward(tw.asarray(g))
    want.backward(torch.from_numpy(g))
    return (y.detach().numpy(), x.grad.numpy()), (want.detach().numpy(), z.grad.numpy())


def assert_same(name: str, data: np.ndarray, *args: Any, **options: Any) -> None:
    error = 1e-5 if data.dtype == np.float32 else 1e-12
    ours, theirs = pair(name, data, *args, **options)
    for got, want in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            got, want, rtol=error, atol=error, err_msg=f"{name} {data.shape} {args} {options}"
        )


@st.composite
def regular_windows(draw: Any) -> tuple[tuple[int, ...], dict[str, Any], str]:
    axes = draw(st.integers(1, 3))
    kernel = [draw(st.integers(1, 5)) for _ in range(axes)]
    kind = draw(st.sampled_from(("max", "avg")))
    dilation = [draw(st.integers(1, 3)) if kind == "max" else 1 for _ in range(axes)]
    # PyTorch wants the padding of half a window, dilated or not.
    padding = [draw(st.integers(0, k // 2)) for k in kernel]
    space = [
        draw(st.integers(max(1, d * (k - 1) + 1 - 2 * p), (70, 20, 14)[axes - 1]))
        for k, d, p in zip(kernel, dilation, padding, strict=True)
    ]
    options = {
        "kernel_size": tuple(kernel),
        "stride": tuple(draw(st.integers(1, 4)) for _ in range(axes)),
        "padding": tuple(padding),
        "ceil_mode": draw(st.booleans()),
    }
    if kind == "max":
        options["dilation"] = tuple(dilation)
        for n, k, d, p in zip(space, kernel, dilation, padding, strict=True):
            # What PyTorch finds in windows without an element is not defined.
            if n <= d * (k - 1) and p:
                options["padding"] = (0,) * axes
                options["dilation"] = (1,) * axes
    else:
        options["count_include_pad"] = draw(st.booleans())
    planes = draw(st.sampled_from(((1, 1), (2, 3), (4,))))
    return (*planes, *space), options, f"{kind}_pool{axes}d"


def fits(name: str, shape: tuple[int, ...], options: dict[str, Any]) -> bool:
    """PyTorch's avg_pool3d takes no windows that are larger than the image without padding."""
    kernel = options["kernel_size"]
    dilation = options.get("dilation", (1,) * len(kernel))
    space = shape[-len(kernel) :]
    return all(
        d * (k - 1) + 1 <= n + 2 * p * (name != "avg_pool3d")
        for n, k, d, p in zip(space, kernel, dilation, options["padding"], strict=True)
    )


@settings(max_examples=150, deadline=None)
@given(regular_windows(), st.sampled_from(("float32", "float64")), st.integers(0, 2**31))
def test_random_windows_are_pytorchs(case: Any, dtype: str, seed: int) -> None:
    shape, options, name = case
    if fits(name, shape, options):
        # Small whole numbers: many are equal.
        data = np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)
        assert_same(name, data, **options)


@pytest.mark.parametrize("height", [3, 4, 9])
def test_a_dilation_across_one_element_means_nothing(height: int) -> None:
    """Also where the window covers the whole image, whose rows are then one."""
    x = np.arange(height, dtype="float32").reshape(1, 1, height, 1)
    assert_same("max_pool2d", x, (height, 1), dilation=(1, 2))
    assert_same("max_pool3d", x[None], (1, height, 1), dilation=(3, 1, 2))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 3), st.sampled_from(("max", "avg")), st.data())
def test_random_adaptive_sizes_are_pytorchs(axes: int, kind: str, data: Any) -> None:
    space = tuple(data.draw(st.integers(1, (90, 20, 9)[axes - 1])) for _ in range(axes))
    size = tuple(data.draw(st.integers(1, n + 2)) for n in space)
    x = np.random.default_rng(3).integers(-3, 4, (2, 3, *space)).astype("float32")
    assert_same(f"adaptive_{kind}_pool{axes}d", x, size)


@pytest.mark.parametrize("size", [(2, 1), (1, 2), (3, 1), (2, 2)])
@pytest.mark.parametrize("space", [(1, 1), (1, 5), (5, 1), (2, 3)])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_more_windows_than_elements(
    kind: str, space: tuple[int, int], size: tuple[int, int]
) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (2, 3, *space)).astype("float32")
    assert_same(f"adaptive_{kind}_pool2d", x, size)


@each("dtype", ["float32", "float64"])
@each("width", [*range(1, 40), 63, 64, 65])
def test_every_width_of_a_row(width: int, dtype: str, isa: str, rng) -> None:
    data = rng.normal(size=(2, 5, width)).astype(dtype)
    for kernel, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 1, 1), (3, 3, 0)):
        if kernel <= width + 2 * padding:
            assert_same("max_pool2d", data, kernel, stride, padding)
            assert_same("avg_pool2d", data, kernel, stride, padding)
    assert_same("adaptive_max_pool2d", data, 1)
    assert_same("adaptive_avg_pool2d", data, 1)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 3, 1), (5, 1, 2)]
)
def test_the_last_nan_and_the_first_of_equals_win(
    kernel: int, stride: int, padding: int, isa: str, rng
) -> None:
    data = rng.integers(0, 3, (2, 2, 12, 37)).astype("float32")
    data[rng.random(data.shape) < 0.1] = np.nan
    data[rng.random(data.shape) < 0.3] = -np.inf
    data[1, 1] = -np.inf
    for dtype in ("float32", "float64"):
        x = data.astype(dtype)
        got = tw.max_pool2d_with_indices(tw.asarray(x), kernel, stride, padding)
        want = F.max_pool2d_with_indices(torch.tensor(x), kernel, stride, padding)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    for size in ((1, 5), (5, 1), 1, (12, 2)):
        got = tw.adaptive_max_pool2d_with_indices(tw.asarray(data), size)
        want = F.adaptive_max_pool2d_with_indices(torch.tensor(data), size)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_indices_are_places_in_the_plane(axes: int, rng) -> None:
    x = rng.normal(size=(2, 3, *[6] * axes)).astype("float32")
    for name, size in ((f"max_pool{axes}d", 2), (f"adaptive_max_pool{axes}d", 4)):
        y, indices = getattr(tw, f"{name}_with_indices")(tw.asarray(x), size)
        assert indices.dtype == tw.int64
        flat = x.reshape(2, 3, -1)
        taken = np.take_along_axis(flat, indices.numpy().reshape(2, 3, -1), -1)
        np.testing.assert_array_equal(taken.reshape(y.shape), y.numpy())
        np.testing.assert_array_equal(y.numpy(), getattr(tw, name)(tw.asarray(x), size).numpy())


def test_windows_between_elements_are_minus_infinity() -> None:
    x = tw.asarray([[[3.0]]]).requires_grad_()
    y, indices = tw.max_pool1d_with_indices(x, 2, 1, padding=1, dilation=2)
    assert y.tolist() == [[[-np.inf]]]
    assert indices.tolist() == [[[-1]]]
    y.backward()
    assert x.grad.tolist() == [[[0.0]]]


CALLS = {
    "max": lambda x: tw.max_pool2d(x, 3, 2, 1),
    "mean": lambda x: tw.avg_pool2d(x, 3, 2, 1),
    "global": lambda x: tw.adaptive_avg_pool2d(x, 1),
    "adaptive": lambda x: tw.adaptive_max_pool2d(x, (3, 5)),
}


@pytest.mark.parametrize("name", CALLS)
def test_bits_do_not_depend_on_the_number_of_threads(name: str, rng) -> None:
    data = rng.normal(size=(3, 40, 33, 29)).astype("float32")
    found = []
    before = tw.get_num_threads()
    try:
        for threads in (1, 2, 3):
            tw.set_num_threads(threads)
            x = tw.asarray(data).requires_grad_()
            y = CALLS[name](x)
            (y * y).sum().backward()
            found.append((y.detach().numpy(), x.grad.numpy()))
    finally:
        tw.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_windows_far_larger_than_the_image_cost_no_memory(rng) -> None:
    data = rng.normal(size=(2, 3, 5)).astype("float32")
    half = 1 << 29
    x = tw.asarray(data).requires_grad_()
    y = tw.max_pool1d(x, 2 * half, half, half)
    np.testing.assert_array_equal(y.detach().numpy(), data.max(-1, keepdims=True))
    mean = tw.avg_pool1d(x, 2 * half, half, half, count_include_pad=False)
    np.testing.assert_allclose(mean.detach().numpy(), data.mean(-1, keepdims=True), rtol=1e-5)
    (y + mean).sum().backward()
    want = (data == data.max(-1, keepdims=True)) + np.float32(0.2)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-6)


def test_an_empty_stride_is_the_kernels() -> None:
    x = tw.arange(8, dtype=tw.float32).reshape((1, 8))
    assert tw.max_pool1d(x, 2, ()).tolist() == [[1.0, 3.0, 5.0, 7.0]]


def test_no_windows_at_all() -> None:
    x = tw.ones((2, 3, 4, 4)).requires_grad_()
    for call in (tw.adaptive_avg_pool2d, tw.adaptive_max_pool2d):
        y = call(x, (0, 2))
        assert y.shape == (2, 3, 0, 2)
        (g,) = tw.grad(y.sum(), [x])
        assert g.tolist() == tw.zeros((2, 3, 4, 4)).tolist()


def test_cases_of_the_benchmark_run() -> None:
    for case in pooling_cases({"torch": torch}):
        assert list(case.contenders) == ["tilewright", "torch"]
        for contender in case.contenders.values():
            contender.timeit(1)
