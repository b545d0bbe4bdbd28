"""Kernels that change with the size: rows in a block, segments, merges, squares, places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn, train
from tilewright.cli import main
from tilewright.train.checkpoint import Checkpoint

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.skipif(not tw.cuda.is_available(), reason=f"no GPU: {tw.cuda.why_unavailable()}"),
]


def there(x) -> tw.Tensor:
    return tw.asarray(np.asarray(x)).to("cuda")


def here(x: tw.Tensor) -> np.ndarray:
    return np.asarray(x.detach().to("cpu"))


SHAPES = [
    ((5,), 0),
    ((3, 1000), 1),
    ((1000, 3), 0),
    ((2, 600, 4), 1),
    ((70000,), 0),
    ((40, 20000), 1),
]


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_reductions_of_long_and_many_rows(shape, axis, rng):
    x = rng.standard_normal(shape)
    y = there(x)
    for ours, theirs in ((tw.sum, np.sum), (tw.max, np.max), (tw.mean, np.mean)):
        np.testing.assert_allclose(here(ours(y, axis=axis)), theirs(x, axis=axis), atol=1e-10)
        np.testing.assert_allclose(here(ours(y)), theirs(x), atol=1e-9)
    np.testing.assert_array_equal(here(tw.argmax(y, axis=axis)), np.argmax(x, axis=axis))
    x.flat[x.size // 2] = np.nan
    assert np.isnan(here(tw.max(there(x))))
    assert here(tw.argmax(there(x))) == x.size // 2


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_scans_in_lines_and_blocks(shape, axis, rng):
    x = rng.standard_normal(shape)
    y = there(x)
    np.testing.assert_allclose(
        here(tw.cumulative_sum(y, axis=axis)), np.cumsum(x, axis=axis), rtol=1e-9, atol=1e-9
    )
    small = 1 + 1e-3 * x
    np.testing.assert_allclose(
        here(tw.cumulative_prod(there(small), axis=axis)), np.cumprod(small, axis=axis), rtol=1e-9
    )
    logs = np.logaddexp.accumulate(x, axis=axis)
    np.testing.assert_allclose(here(tw.logcumsumexp(y, axis)), logs, rtol=1e-9, atol=1e-9)
    values, places = tw.cummax(y, axis)
    np.testing.assert_array_equal(here(values), np.maximum.accumulate(x, axis=axis))
    taken = np.take_along_axis(x, here(places), axis)
    np.testing.assert_array_equal(taken, here(values))


@pytest.mark.parametrize("n", [1, 2, 3, 33, 257, 1025, 5000])
def test_sorting_is_stable_and_puts_nan_last(n, rng):
    x = rng.integers(0, max(n // 3, 1), (3, n)).astype("float32")
    x[0, n // 2] = np.nan
    y = there(x)
    np.testing.assert_array_equal(here(tw.sort(y)), np.sort(x))
    np.testing.assert_array_equal(here(tw.argsort(y, stable=True)), np.argsort(x, kind="stable"))
    clean = rng.permutation(n).astype("int32")
    np.testing.assert_array_equal(
        here(tw.sort(there(clean), descending=True)), np.sort(clean)[::-1]
    )
    values, places = tw.topk(there(clean), min(n, 5))
    np.testing.assert_array_equal(here(values), np.sort(clean)[::-1][:5])
    np.testing.assert_array_equal(clean[here(places)], here(values))
    np.testing.assert_array_equal(
        here(tw.median(there(clean)[None], axis=1)), np.median(clean)[None]
    )


@pytest.mark.parametrize(
    ("places", "length", "inner"), [(10, 3000, 1), (3000, 40, 1), (7, 50, 600)]
)
def test_scatters_join_in_the_order_of_the_index(places, length, inner, rng):
    index = rng.integers(0, places, (length, inner))
    source = rng.standard_normal((length, inner))
    expected, last = np.ones((places, inner)), np.ones((places, inner))
    for j in range(inner):
        np.add.at(expected[:, j], index[:, j], source[:, j])
        last[index[:, j], j] = source[:, j]
    x = tw.ones((places, inner), dtype=tw.float64, device="cuda")
    i, s = there(index), there(source)
    np.testing.assert_allclose(here(tw.scatter_add(x, 0, i, s)), expected, rtol=1e-12)
    np.testing.assert_array_equal(here(tw.scatter(x, 0, i, s)), last)
    np.testing.assert_array_equal(
        here(tw.gather(s, 0, there(np.argsort(index, 0)))),
        np.take_along_axis(source, np.argsort(index, 0), 0),
    )
    with pytest.raises(IndexError, match=r"gather: index .* is out of range for axis 0"):
        tw.gather(x, 0, there(np.full((1, inner), places))).tolist()


def test_rows_added_by_index_have_the_same_bits_every_time(rng):
    weight = tw.asarray(rng.standard_normal((50, 8)).astype("float32")).to("cuda")
    tokens = there(rng.integers(0, 50, (4, 300)))
    grads = []
    for _ in range(2):
        w = weight.detach().requires_grad_()
        (nn.functional.embedding(tokens, w) * 0.1).sum().backward()
        grads.append(here(w.grad))
    np.testing.assert_array_equal(*grads)
    counts = np.bincount(here(tokens).ravel(), minlength=50)
    np.testing.assert_allclose(grads[0], np.repeat(counts[:, None] * 0.1, 8, 1), rtol=1e-5)


def test_transposed_copies(rng):
    for shape in ((40, 70), (5, 33, 64), (2, 3, 40, 50)):
        x = rng.standard_normal(shape).astype("float32")
        np.testing.assert_array_equal(here(there(x).swapaxes(-1, -2).copy()), x.swapaxes(-1, -2))
        np.testing.assert_array_equal(
            here(there(x).swapaxes(-1, -2).astype(tw.float64)), x.swapaxes(-1, -2).astype("float64")
        )


def test_true_elements_and_runs(rng):
    x = rng.random((50, 400)) < 0.1
    found = tw.nonzero(there(x))
    for ours, theirs in zip(found, np.nonzero(x), strict=True):
        np.testing.assert_array_equal(here(ours), theirs)
    values = rng.standard_normal((50, 400))
    np.testing.assert_array_equal(here(there(values)[there(x)]), values[x])
    repeats = rng.integers(0, 4, 700)
    repeats[5:9] = 0
    np.testing.assert_array_equal(
        here(tw.repeat(there(np.arange(700)), there(repeats))), np.repeat(np.arange(700), repeats)
    )
    labels = rng.integers(0, 30, 5000)
    np.testing.assert_array_equal(here(tw.bincount(there(labels))), np.bincount(labels))


CONVOLUTIONS = (
    # batch, in, out, size, kernel, stride, padding, dilation, groups
    (2, 3, 5, 9, 3, 1, 1, 1, 1),
    (1, 4, 6, 11, 3, 2, 0, 2, 2),
    (3, 70, 66, 6, 3, 1, 1, 1, 1),
    (2, 6, 6, 12, 5, 3, 2, 1, 6),
)


@pytest.mark.parametrize("rung", tw.kernels.names("convolution", "cuda"))
@pytest.mark.parametrize("sizes", CONVOLUTIONS)
def test_convolutions_on_every_rung(rung, sizes, rng):
    batch, channels, out, size, kernel, stride, padding, dilation, groups = sizes
    x = rng.standard_normal((batch, channels, size, size + 1))
    w = rng.standard_normal((out, channels // groups, kernel, kernel))
    b = rng.standard_normal(out)

    def run(device: str) -> list[np.ndarray]:
        made = [tw.asarray(a).to(device).requires_grad_() for a in (x, w, b)]
        y = nn.functional.conv2d(*made, stride, padding, dilation, groups)
        (y * y).sum().backward()
        return [here(y), *(here(m.grad) for m in made)]

    ops = ("convolution", "convolution_input_gradient", "convolution_weight_gradient")
    with tw.kernels.use(**dict.fromkeys(ops, "naive")):
        expected = run("cpu")
    with tw.kernels.use(**dict.fromkeys(ops, rung)):
        found = run("cuda")
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-9, atol=1e-9)


# Every shape of a block, phases of a stride, one to three axes, and enough terms to cut.
LARGER_CONVOLUTIONS = (
    # batch, in, out, space, kernel, stride, padding, dilation, groups
    (2, 40, 130, (11, 12), 3, 1, 1, 1, 1),
    (1, 40, 70, (23, 25), 3, 1, 1, 1, 1),
    (1, 64, 64, (16, 16), 3, 2, 1, 1, 1),
    (2, 260, 33, (9, 8), 3, 2, 2, 2, 1),
    (2, 20, 12, (40, 33), (2, 5), (3, 1), (0, 4), (1, 2), 2),
    (1, 4, 5, (40, 41), 3, 1, 1, 1, 1),
    (1, 600, 8, (5, 5), 1, 1, 0, 1, 1),
    (2, 8, 8, (40, 30), 3, 2, 1, 1, 8),
    (4, 24, 32, (130,), 5, 1, 2, 1, 1),
    (2, 12, 10, (8, 9, 10), 3, 2, 1, 1, 2),
    (2, 3, 4, (9, 10), 2, 5, 0, 1, 1),
)


@pytest.mark.parametrize("rung", ["implicit", "pieces"])
@pytest.mark.parametrize("sizes", LARGER_CONVOLUTIONS)
def test_larger_convolutions(rung, sizes, rng):
    batch, channels, out, space, kernel, *geometry, groups = sizes
    kernel = kernel if isinstance(kernel, tuple) else (kernel,) * len(space)
    x = rng.standard_normal((batch, channels, *space)).astype("float32")
    w = rng.standard_normal((out, channels // groups, *kernel)).astype("float32")
    b = rng.standard_normal(out).astype("float32")
    conv = getattr(nn.functional, f"conv{len(space)}d")

    def run(device: str, dtype: str) -> list[np.ndarray]:
        made = [tw.asarray(a.astype(dtype)).to(device).requires_grad_() for a in (x, w, b)]
        y = conv(*made, *geometry, groups)
        (y * y).sum().backward()
        return [here(y), *(here(m.grad) for m in made)]

    ops = ("convolution", "convolution_input_gradient", "convolution_weight_gradient")
    with tw.kernels.use(**dict.fromkeys(ops, "naive")):
        expected = run("cpu", "float64")
    with tw.kernels.use(**dict.fromkeys(ops, rung)):
        found = run("cuda", "float32")
    # Sums of up to 3,000 terms in float32.
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=0, atol=5e-6 * np.abs(e).max())


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_the_command_trains_there(model, capsys):
    command = ["train", "digits", "--model", model, "--epochs", "1", "--hidden", "16"]
    assert main([*command, "--device", "cuda", "--batch", "512"]) == 0
    there_text = capsys.readouterr().out
    assert main([*command, "--batch", "512"]) == 0
    here_text = capsys.readouterr().out
    pick = [text.split("loss ")[1].split()[0] for text in (there_text, here_text)]
    assert abs(float(pick[0]) - float(pick[1])) < 1e-3


def test_a_training_goes_on_on_another_device(tmp_path):
    task = train.load_task("sine")
    options = replace(train.default_options("sine"), epochs=1, batch=256)
    path = tmp_path / "training.safetensors"
    train.train(task, replace(options, device="cuda"), checkpoint=Checkpoint(path))
    longer = replace(options, epochs=2)
    run = train.train(task, longer, checkpoint=Checkpoint(path, resume=True))
    assert [e.number for e in run.epochs] == [1, 2]
    straight = train.train(task, longer)
    assert run.epochs[1].loss == pytest.approx(straight.epochs[1].loss, rel=1e-3)
