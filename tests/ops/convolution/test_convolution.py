"""Convolutions: every rung and every part against PyTorch, over random geometries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Tensor
from tilewright.bench.harness import OURS, Result, Timing
from tilewright.bench.networks.convolution import (
    PARTS,
    Layer,
    case_name,
    convolution_cases,
    network_layers,
)
from tilewright.cli.picture_layers import draw_layers, layers_figure

torch = pytest.importorskip("torch")
# PyTorch warns that it copies its input.
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")

OPS = ("convolution", "convolution_input_gradient", "convolution_weight_gradient")
RUNGS = tw.kernels.names("convolution")
# Relative to the largest value: float32 sums of a few hundred terms; rungs of fewer bits.
ERROR = {"ieee": 4e-6, "fp32": 8e-6, "high": 4e-4}
PRECISION = {kernel["name"]: kernel["precision"] for kernel in tw.kernels.describe("convolution")}


@dataclass(frozen=True)
class Case:
    """One call of conv1d, conv2d or conv3d."""

    x: tuple[int, ...]
    weight: tuple[int, ...]
    options: dict[str, Any]
    bias: bool = True

    @property
    def name(self) -> str:
        return f"conv{len(self.weight) - 2}d"


def results(library: Any, case: Case, arrays: list[Any], g: Any) -> list[Any]:
    """The result and the gradients of input, weight and bias, where g arrives."""
    functions = tw if library is tw else torch.nn.functional
    leaves = [a if a is None else a.requires_grad_() for a in arrays]
    y = getattr(functions, case.name)(*leaves, **case.options)
    wanted = [a for a in leaves if a is not None]
    grad = tw.grad if library is tw else torch.autograd.grad
    return [y.detach(), *grad(y, wanted, [g(y.shape)])]


def compare(case: Case, dtype: str, error: float, seed: int = 0) -> None:
    off = largest_error(case, dtype, seed)
    assert off <= error, (case, off)


def largest_error(case: Case, dtype: str, seed: int = 0) -> float:
    """Of the result and all gradients, each as a share of its largest value."""
    rng = np.random.default_rng(seed)
    shapes = [case.x, case.weight, case.weight[:1] if case.bias else None]
    arrays = [None if s is None else rng.normal(size=s).astype(dtype) for s in shapes]
    steps: dict[tuple[int, ...], np.ndarray] = {}

    def g(shape: Any) -> np.ndarray:
        return steps.setdefault(tuple(shape), rng.normal(size=tuple(shape)).astype(dtype))

    def made(make: Any) -> list[Any]:
        return [None if a is None else make(a) for a in arrays]

    ours = results(
        tw, case, made(lambda a: tw.asarray(a, copy=True)), lambda s: tw.asarray(g(s), copy=True)
    )
    wide = made(lambda a: torch.tensor(a, dtype=torch.float64))
    exact = results(torch, case, wide, lambda s: torch.tensor(g(s), dtype=torch.float64))
    largest = 0.0
    for got, want in zip(ours, exact, strict=True):
        assert tuple(got.shape) == tuple(want.shape), (case, got.shape, want.shape)
        assert str(got.dtype) == dtype
        scale = max(1.0, float(want.abs().max())) if want.numel() else 1.0
        off = np.abs(got.numpy().astype(np.float64) - want.numpy()).max(initial=0) / scale
        largest = max(largest, float(off))
    return largest


# Plain, strided, dilated, grouped, depthwise; spans of every sort; several images in a block.
CASES = (
    Case((2, 3, 9, 11), (5, 3, 3, 3), {"padding": 1}),
    Case((1, 16, 13, 13), (16, 16, 3, 3), {"padding": 1}),
    Case((3, 16, 14, 14), (32, 16, 3, 3), {"padding": 1}),
    Case((5, 32, 7, 7), (33, 32, 3, 3), {"padding": 1}, bias=False),
    Case((2, 3, 31, 30), (18, 3, 7, 7), {"stride": 2, "padding": 3}),
    Case((2, 8, 9, 9), (17, 8, 1, 1), {}),
    Case((9, 8, 4, 4), (17, 8, 1, 1), {}, bias=False),
    Case((2, 8, 9, 8), (16, 8, 1, 1), {"stride": 2}),
    Case((2, 8, 15, 16), (16, 8, 3, 3), {"stride": 2, "padding": 1}),
    Case((2, 12, 10, 9), (12, 1, 3, 3), {"padding": 1, "groups": 12}),
    Case((2, 12, 10, 9), (24, 1, 5, 5), {"padding": 2, "groups": 12, "stride": 2}),
    Case((2, 12, 6, 7), (6, 4, 2, 3), {"groups": 3, "dilation": (2, 1), "padding": (1, 2)}),
    Case((1, 2, 21, 20), (3, 2, 4, 2), {"padding": "same", "dilation": (2, 4)}),
    Case((1, 1, 5, 400), (2, 1, 1, 3), {"padding": (0, 1)}),
    Case((1, 4, 3, 3), (2, 4, 3, 3), {"padding": 4, "stride": 3}),
    Case((2, 3, 500), (4, 3, 5), {"padding": 2}),
    Case((2, 6, 40), (4, 3, 4), {"stride": 3, "groups": 2, "padding": "valid"}),
    Case((2, 2, 6, 7, 8), (3, 2, 3, 3, 3), {"padding": 1}),
    Case((1, 4, 5, 6, 7), (4, 2, 2, 3, 1), {"stride": (1, 2, 1), "groups": 2, "dilation": 2}),
    Case((0, 3, 6, 6), (4, 3, 3, 3), {}),
    Case((8, 3, 40, 37), (32, 3, 3, 3), {"padding": 1}),
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rung", RUNGS)
def test_every_rung_gives_pytorchs_results(rung: str, dtype: str, isa: str) -> None:
    """A rung may refuse a problem, with a reason; of those here it takes one at least."""
    ran = 0
    for case in CASES:
        for op in OPS:
            error = 1e-13 if dtype == "float64" and PRECISION[rung] == "ieee" else None
            with tw.kernels.use(**{op: rung}):
                try:
                    compare(case, dtype, error or ERROR[PRECISION[rung]])
                except tw.InvalidValueError as refusal:
                    assert f"'{rung}'" in str(refusal), refusal  # noqa: PT017  (either outcome is right)
                    continue
            ran += 0 not in case.x
    assert ran or dtype == "float64", "the rung never ran"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_free_choice_gives_pytorchs_results(case: Case) -> None:
    compare(case, "float32", ERROR["fp32"])
    compare(case, "float64", 1e-12)


@st.composite
def geometries(draw: st.DrawFn) -> Case:
    axes = draw(st.integers(1, 3))
    small = st.integers(1, 3)

    def each(numbers: st.SearchStrategy[int]) -> tuple[int, ...]:
        return tuple(draw(numbers) for _ in range(axes))

    kernel, dilation, stride, padding = each(small), each(small), each(small), each(small)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    space = tuple(
        max(r - 2 * p, 1) + draw(st.integers(0, 6)) for r, p in zip(reach, padding, strict=True)
    )
    groups, each_in, each_out = draw(small), draw(small), draw(small)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if set(stride) == {1} and draw(st.booleans()):
        options["padding"] = "same"
        space = tuple(max(n, r) for n, r in zip(space, reach, strict=True))
    batch = draw(st.integers(0, 5))
    x = (batch, groups * each_in, *space)
    return Case(x, (groups * each_out, each_in, *kernel), options, draw(st.booleans()))


@settings(max_examples=150, deadline=None)
@given(geometries(), st.sampled_from(["naive", "im2col", ""]))
def test_random_geometries_give_pytorchs_results(case: Case, rung: str) -> None:
    forced = dict.fromkeys(OPS, rung) if rung else {}
    with tw.kernels.use(**forced):
        compare(case, "float64", 1e-13)


@settings(max_examples=60, deadline=None)
@given(geometries(), st.data())
def test_random_transposed_geometries_give_pytorchs_results(
    case: Case, data: st.DataObject
) -> None:
    options = {k: v for k, v in case.options.items() if k != "padding"}
    least = zip(case.options["stride"], case.options["dilation"], strict=True)
    options["output_padding"] = tuple(data.draw(st.integers(0, max(s, d) - 1)) for s, d in least)
    axes = len(case.weight) - 2
    options["padding"] = 0
    weight = (case.x[1], case.weight[0] // options["groups"], *case.weight[2:])
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=case.x), rng.normal(size=weight)
    b = rng.normal(size=(weight[1] * options["groups"],))
    name = f"conv_transpose{axes}d"
    ours = getattr(tw, name)(*map(tw.asarray, (x, w, b)), **options)
    want = getattr(torch.nn.functional, name)(*map(torch.tensor, (x, w, b)), **options)
    assert ours.shape == tuple(want.shape)
    np.testing.assert_allclose(ours.numpy(), want.numpy(), rtol=1e-12, atol=1e-12)


# ---- the engine's promises ----


def bits(case: Case, dtype: str = "float32") -> list[bytes]:
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=s).astype(dtype) for s in (case.x, case.weight, case.weight[:1])]
    leaves = [tw.asarray(a, copy=True).requires_grad_() for a in arrays]
    y = getattr(tw, case.name)(*leaves, **case.options)
    return [x.detach().numpy().tobytes() for x in (y, *tw.grad((y * y).sum(), leaves))]


@pytest.mark.parametrize("rung", [*RUNGS, ""])
def test_threads_change_no_bit(rung: str, threads: None) -> None:
    larger = (
        Case((4, 16, 40, 41), (24, 16, 3, 3), {"padding": 1}),
        Case((6, 3, 33, 32), (20, 3, 5, 5), {"stride": 2}),
        CASES[-1],
        Case((2, 24, 30, 30), (24, 1, 3, 3), {"padding": 1, "groups": 24}),
    )
    for case in (*CASES[:12], *larger):
        found = []
        for count in (1, 2, 3):
            tw.set_num_threads(count)
            try:
                with tw.kernels.use(**(dict.fromkeys(OPS, rung) if rung else {})):
                    found.append(bits(case))
            except tw.InvalidValueError:
                break
        assert all(b == found[0] for b in found), case


@pytest.mark.parametrize("rung", ["naive", "im2col"])
def test_forcing_a_rung_is_seen(rung: str) -> None:
    x, w = tw.ones((1, 2, 6, 6)).requires_grad_(), tw.ones((3, 2, 3, 3)).requires_grad_()
    with tw.kernels.use(**dict.fromkeys(OPS, rung)), tw.explain() as report:
        tw.conv2d(x, w).sum().backward()
    ran = {entry.op: entry.kernel for entry in report._recorded}
    assert {op: ran[op] for op in OPS} == dict.fromkeys(OPS, rung)
    entry = next(e for e in report._recorded if e.op == "convolution")
    assert [c.name for c in entry.candidates] == RUNGS
    assert entry.problem == "float32 1x2x6x6 to 3x4x4, kernel 3x3"


# Of up to 4,608 terms, as the records of the rungs say.
LAYERS = (
    Case((2, 64, 28, 28), (64, 64, 3, 3), {"padding": 1}, bias=False),
    Case((1, 512, 7, 7), (256, 512, 3, 3), {"padding": 1}, bias=False),
    Case((2, 3, 56, 56), (64, 3, 7, 7), {"stride": 2, "padding": 3}, bias=False),
    Case((4, 96, 14, 14), (96, 1, 3, 3), {"padding": 1, "groups": 96}, bias=False),
)


@pytest.mark.parametrize("rung", RUNGS)
def test_errors_that_rungs_tell_are_those_measured(rung: str, isa: str) -> None:
    told = {kernel["name"]: kernel["error"] for kernel in tw.kernels.describe("convolution")}[rung]
    found = []
    for case in LAYERS:
        try:
            with tw.kernels.use(**dict.fromkeys(OPS, rung)):
                found.append(largest_error(case, "float32"))
        except tw.InvalidValueError:
            continue  # a layer that is not for this rung
    assert told / 8 <= max(found) <= told


def test_explain_shows_the_errors_of_rungs() -> None:
    with tw.explain() as report:
        tw.conv2d(tw.ones((1, 16, 14, 14)), tw.ones((16, 16, 3, 3)), padding=1)
    errors = {c.name: c.error for e in report._recorded for c in e.candidates}
    assert errors["winograd4"] > errors["winograd"] > errors["naive"] > 0
    assert f"error {errors['winograd4']:.0e}" in str(report)


def test_nan_and_infinity_stay_in_their_windows() -> None:
    for rung in ("naive", "im2col", ""):
        with tw.kernels.use(**({"convolution": rung} if rung else {})):
            x = tw.zeros((1, 1, 8, 8))
            x[0, 0, 3, 4] = float("nan")
            y = tw.conv2d(x, tw.ones((1, 1, 3, 3)), padding=1).numpy()[0, 0]
        assert np.isnan(y[2:5, 3:6]).all()
        assert np.isnan(y).sum() == 9


def test_no_input_channels_leave_the_bias() -> None:
    b = tw.arange(4, dtype=tw.float32).requires_grad_()
    w = tw.ones((4, 0, 3, 3)).requires_grad_()
    y = tw.conv2d(tw.ones((2, 0, 6, 6)), w, b)
    assert y.shape == (2, 4, 4, 4)
    assert (y.detach().numpy() == np.arange(4).reshape(4, 1, 1)).all()
    y.sum().backward()
    assert (w.grad.shape, b.grad.tolist()) == ((4, 0, 3, 3), [32.0] * 4)


def test_types_are_promoted() -> None:
    x, w = tw.ones((1, 1, 4), dtype=tw.float32), tw.ones((1, 1, 2), dtype=tw.float64)
    assert tw.conv1d(x, w).dtype == tw.float64
    assert tw.conv1d(tw.ones((1, 1, 4), dtype=tw.int32), w).dtype == tw.float64


def test_third_gradients() -> None:
    rng = np.random.default_rng(5)
    x, w = (tw.asarray(rng.normal(size=s)).requires_grad_() for s in ((1, 2, 5), (2, 2, 3)))

    def gradient(x: Tensor, w: Tensor) -> Tensor:
        y = tw.conv1d(x, w, stride=2, padding=1)
        return tw.grad((y**3).sum(), [x, w], create_graph=True)[1]

    assert tw.gradgradcheck(gradient, (x, w))


def test_transposing_undoes_the_geometry() -> None:
    """conv_transpose is the gradient of conv's input, so <conv(x), g> = <x, transpose(g)>."""
    rng = np.random.default_rng(7)
    x, w = tw.asarray(rng.normal(size=(2, 4, 9, 9))), tw.asarray(rng.normal(size=(6, 2, 3, 3)))
    options = {"stride": 2, "padding": 1, "groups": 2}
    y = tw.conv2d(x, w, **options)
    g = tw.asarray(rng.normal(size=y.shape))
    back = tw.conv_transpose2d(g, w, **options)
    assert back.shape == x.shape
    np.testing.assert_allclose((y * g).sum().item(), (x * back).sum().item(), rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_windows_are_pytorchs(data: st.DataObject) -> None:
    def pair(least: int, most: int) -> tuple[int, int]:
        return data.draw(st.tuples(*[st.integers(least, most)] * 2))

    names = {"kernel_size": (1, 3), "dilation": (1, 2), "padding": (0, 2), "stride": (1, 3)}
    options = {name: pair(*limits) for name, limits in names.items()}
    channels, (height, width) = data.draw(st.integers(1, 4)), pair(5, 9)
    x = np.random.default_rng(2).normal(size=(2, channels, height, width))
    functions = torch.nn.functional
    columns = tw.unfold(tw.asarray(x), **options)
    want = functions.unfold(torch.tensor(x), **options)
    assert (columns.numpy() == want.numpy()).all()
    back = tw.fold(columns, (height, width), **options)
    np.testing.assert_allclose(
        back.numpy(), functions.fold(want, (height, width), **options).numpy(), rtol=1e-13
    )


# ---- benchmarks ----


def test_layers_of_networks_are_those_of_the_papers() -> None:
    layers = network_layers(2)
    assert {name: len(found) for name, found in layers.items()} == {
        "ResNet-18": 11,
        "ResNet-50": 23,
        "MobileNetV2": 30,
    }
    assert layers["MobileNetV2"][-1] == Layer(2, 320, 7, 1280, 1)
    assert sum(layer.gflop for layer in layers["ResNet-18"][1:5]) == pytest.approx(4 * 0.4624, 1e-3)


def test_benchmarks_time_the_same_work_in_each_library() -> None:
    layer = Layer(2, 4, 6, 4, 3, 2, True)
    cases = list(convolution_cases({"torch": torch}, [layer]))
    assert [case.name.split(": ")[1] for case in cases] == list(PARTS)
    for case in cases:
        assert list(case.contenders) == ["tilewright", "torch"]
        assert case.work == pytest.approx(2e-9 * 2 * 4 * 9 * 9)
        for timer in case.contenders.values():
            timer.timeit(1)


def test_the_picture_of_layers_holds_each_ratio(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    cases = [
        case_name(layer, part)
        for layers in network_layers(3).values()
        for layer in layers
        for part in PARTS
    ]
    timing = {name: Timing(seconds, seconds, 1) for name, seconds in (("torch", 2.34), ("x", 9.0))}
    results = [Result(name, {OURS: Timing(1, 1, 1), **timing}, 1, "", {}) for name in cases]
    figure = layers_figure(results[:-1], (3,))
    cells = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert cells == ["2.34"] * ((11 + 23 + 30) * 3 - 1)  # one was not measured
    draw_layers(str(tmp_path / "layers.svg"), results, (3,))
    assert "MobileNetV2" in (tmp_path / "layers.svg").read_text()


@pytest.mark.parametrize("rung", ["winograd", "winograd4"])
@pytest.mark.parametrize(("channels", "out"), [(150, 100), (512, 512)])
def test_blocks_of_weights_depend_on_neither_images_nor_threads(rung, channels, out, rng) -> None:
    """One piece transforms weights as it goes, several share them, and those that come back from
    memory are transformed anew by each; the weights' gradient is by blocks where tiles are few."""
    x = tw.asarray(rng.normal(size=(7, channels, 7, 7)), dtype=tw.float32)
    w = tw.asarray(rng.normal(size=(out, channels, 3, 3)), dtype=tw.float32).requires_grad_()
    g = tw.asarray(rng.normal(size=(7, out, 7, 7)), dtype=tw.float32)
    ops = ("convolution", "convolution_input_gradient", "convolution_weight_gradient")

    def results(images: int) -> list[np.ndarray]:
        leaf = x[:images].copy().requires_grad_()
        with tw.kernels.use(**dict.fromkeys(ops, rung)):
            y = tw.conv2d(leaf, w, padding=1)
            dx, dw = tw.grad(y, [leaf, w], [g[:images]])
        return [y.detach().numpy(), dx.numpy(), dw.numpy()]

    threads = tw.get_num_threads()
    try:
        tw.set_num_threads(2)
        several = results(7)
        tw.set_num_threads(1)
        for got, want in zip(results(7), several, strict=True):
            np.testing.assert_array_equal(got, want)
        y, dx, _ = results(1)
        np.testing.assert_array_equal(y, several[0][:1])
        np.testing.assert_array_equal(dx, several[1][:1])
    finally:
        tw.set_num_threads(threads)
    with tw.kernels.use(**dict.fromkeys(ops, "im2col")):
        wide = [a.detach().astype(tw.float64).requires_grad_() for a in (x, w)]
        y = tw.conv2d(*wide, padding=1)
        exact = [y.detach(), *tw.grad(y, wide, [g.astype(tw.float64)])]
    for got, want in zip(several, exact, strict=True):
        largest = abs(want).max().item()
        assert np.abs(got - want.numpy()).max() <= (3e-5 if rung == "winograd4" else 2e-6) * largest


def test_arithmetic_is_estimated_by_the_width_of_vectors() -> None:
    x, w = tw.ones((1, 64, 56, 56)), tw.ones((64, 64, 3, 3))

    def estimate(isa: str) -> float:
        with tw.kernels.use(isa=isa), tw.explain() as seen:
            tw.conv2d(x, w, padding=1)
        return next(c.cost_ns for c in seen[0].candidates if c.name == "direct")

    isas = tw.kernels.isas()
    by_width = [estimate(isa) for isa in ("scalar", "avx2") if isa in isas]
    assert by_width == sorted(by_width, reverse=True)
    path = tw._core.cpu_info()["vector_path_bits"]
    assert path in (0, 128, 256, 512)
