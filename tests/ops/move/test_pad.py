"""Padding and its layers against PyTorch: every mode, widths of both signs, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")

WIDTHS: dict[tuple[int, ...], list[tuple[int, ...]]] = {
    (2, 3, 5): [(1, 2), (0, 3), (-1, 2), (2, -1), (-1, -2), (-2, 1), (0, 0), (4, 4)],
    (2, 3, 5, 6): [(1, 2, 3, 0), (0, 0, 1, 1), (-1, 2, 2, -1), (2, 2, -1, -2)],
    (2, 2, 3, 4, 5): [(1, 1, 2, 0, 1, 1), (-1, 2, 1, 1, -1, 2)],
}
MODES = ("constant", "reflect", "replicate", "circular")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", WIDTHS)
def test_values_and_gradients(mode: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    for widths in WIDTHS[shape]:
        data = rng.normal(size=shape)
        x, z = tw.asarray(data).requires_grad_(), torch.tensor(data, requires_grad=True)
        y, expected = tw.pad(x, widths, mode), torch.nn.functional.pad(z, widths, mode)
        np.testing.assert_array_equal(y.detach().numpy(), expected.detach().numpy(), f"{widths}")
        g = rng.normal(size=y.shape)
        y.backward(tw.asarray(g))
        expected.backward(torch.tensor(g))
        np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_twice(mode: str, rng: np.random.Generator) -> None:
    x = tw.asarray(rng.normal(size=(2, 3, 4))).requires_grad_()
    for widths in ((2, 1, 1, -1), (-1, 0)):
        assert tw.gradcheck(lambda x, w=widths: tw.pad(x, w, mode), (x,))
        assert tw.gradgradcheck(lambda x, w=widths: tw.square(tw.pad(x, w, mode)), (x,))


@pytest.mark.parametrize("value", [2.5, float("inf"), float("nan"), -0.0])
def test_constants(value: float) -> None:
    x = tw.asarray([[-0.0, 1.0]])
    y = tw.pad(x, (1, 0, 0, 1), value=value).numpy()
    np.testing.assert_array_equal(y, np.pad(x.numpy(), ((0, 1), (1, 0)), constant_values=value))
    assert np.signbit(y[0, 1])


def test_constants_of_integers_keep_every_bit() -> None:
    x = tw.zeros((1,), dtype=tw.int64)
    assert tw.pad(x, (1, 0), value=2**62 + 1).tolist() == [2**62 + 1, 0]
    with pytest.raises(OverflowError, match="256 does not fit uint8"):
        tw.pad(tw.zeros((1,), dtype=tw.uint8), (1, 0), value=256)


def test_results_are_copies() -> None:
    x = tw.zeros((2, 3))
    for widths in ((0, 0), (-1, 0), ()):
        y = tw.pad(x, widths)
        y.fill_(1)
        assert x.sum().item() == 0


# ---- layers ----

LAYERS = [
    (f"{kind}Pad{axes}d", axes, args)
    for kind, args in (
        ("Constant", (2.5,)),
        ("Zero", ()),
        ("Reflection", ()),
        ("Replication", ()),
        ("Circular", ()),
    )
    for axes in (1, 2, 3)
]


@pytest.mark.parametrize(("name", "axes", "args"), LAYERS)
def test_layers(name: str, axes: int, args: tuple[Any, ...], rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, 4, 5, 6)[: 2 + axes])
    for padding in (1, tuple(range(1, 2 * axes + 1))[::-1] if axes == 1 else (1, 2) * axes):
        ours, theirs = (getattr(m, name)(padding, *args) for m in (nn, torch.nn))
        np.testing.assert_array_equal(ours(tw.asarray(x)).numpy(), theirs(torch.tensor(x)).numpy())
        assert repr(ours) == repr(theirs)
        assert not ours.state_dict()


def test_layers_refuse_other_widths() -> None:
    with pytest.raises(ValueError, match="ZeroPad2d: padding is one number or 4"):
        nn.ZeroPad2d((1, 2))
    for padding in (1.5, True, (1, "1")):
        with pytest.raises(TypeError, match="ReflectionPad1d: padding is whole numbers"):
            nn.ReflectionPad1d(padding)


# ---- gather ----


def test_gather_against_pytorch(rng: np.random.Generator) -> None:
    for shape, index, axis in (
        ((3, 4, 2), (2, 7, 2), 1),
        ((3, 4, 2), (3, 4, 1), -1),
        ((5,), (9,), 0),
        ((), (), 0),
    ):
        data = rng.normal(size=shape)
        i = rng.integers(0, shape[axis] if shape else 1, index)
        x, z = tw.asarray(data).requires_grad_(), torch.tensor(data, requires_grad=True)
        y = tw.gather(x, axis, tw.asarray(i))
        expected = torch.gather(z, axis, torch.tensor(i))
        np.testing.assert_array_equal(y.detach().numpy(), expected.detach().numpy())
        g = rng.normal(size=index)
        y.backward(tw.asarray(g))
        expected.backward(torch.tensor(g))
        np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), rtol=1e-12)


def test_gather_by_method_and_keywords() -> None:
    x, i = tw.asarray([[1.0, 2.0], [3.0, 4.0]]), tw.asarray([[1], [-2]])
    assert x.gather(1, i).tolist() == [[2.0], [3.0]]
    assert tw.gather(input=x, dim=1, index=i).tolist() == [[2.0], [3.0]]
