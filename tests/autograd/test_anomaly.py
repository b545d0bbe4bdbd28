"""What detect_anomaly says of the first NaN in a backward pass."""

from __future__ import annotations

import re
import threading

import pytest

import tilewright as tw
from tilewright.autograd import detect_anomaly, set_detect_anomaly


def line_of(text: str) -> int:
    """The line of this file that holds a text."""
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if text in line and "line_of" not in line)


def test_op_and_line_are_named() -> None:
    x = tw.asarray([0.0, 1.0]).requires_grad_()
    with detect_anomaly():
        root = tw.sqrt(x)  # here 0 has an infinite slope
        y = (root * 0).sum()
        at = re.escape(f"{__file__}:{line_of('here 0 has an')}")
        with pytest.raises(RuntimeError, match=f"gradient of sqrt by its input 0 .* at {at}$"):
            y.backward()
    assert x.grad is None


def test_the_input_is_named() -> None:
    x, y = tw.asarray([0.0]).requires_grad_(), tw.asarray([0.0]).requires_grad_()
    with detect_anomaly(), pytest.raises(RuntimeError, match="gradient of divide by its input"):
        (x / y).sum().backward()


def test_nothing_is_said_where_nothing_is_nan() -> None:
    x = tw.asarray([0.0, 1.0]).requires_grad_()
    with detect_anomaly():
        tw.sqrt(x).sum().backward()  # infinite, and a number
    assert x.grad.tolist() == [float("inf"), 0.5]


def test_bits_are_those_of_other_passes() -> None:
    layer = tw.nn.Sequential(tw.nn.Linear(8, 8), tw.nn.GELU(), tw.nn.Linear(8, 8))
    x = tw.randn(4, 8)
    grads = []
    for looks in (False, True):
        layer.zero_grad()
        with set_detect_anomaly(looks):
            h = layer(x)
            (layer(h) * h).sum().backward()
        grads.append([p.grad.tolist() for p in layer.parameters()])
    assert grads[0] == grads[1]


def test_ops_from_before_have_no_line() -> None:
    x = tw.zeros(1).requires_grad_()
    y = (tw.sqrt(x) * 0).sum()
    with detect_anomaly(), pytest.raises(RuntimeError, match=r"sqrt .* outside detect_anomaly"):
        y.backward()


def test_users_functions_and_changes_in_place() -> None:
    class Spoiled(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    x = tw.ones(1).requires_grad_()
    with detect_anomaly():
        y = Spoiled.apply(x)  # whose gradient is spoiled
        at = line_of("whose gradient is spoiled")
        with pytest.raises(RuntimeError, match=f"Spoiled by its input 0 .*:{at}$"):
            y.sum().backward()
        z = x * 0
        z.sqrt_()  # in the place of z
        at = line_of("in the place of z")
        with pytest.raises(RuntimeError, match=f"sqrt.* by its input 0 .*:{at}$"):
            (z * 0).sum().backward()


def test_second_gradients_and_grad() -> None:
    x = tw.zeros(1).requires_grad_()
    with detect_anomaly():
        (g,) = tw.grad((x**1.5).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="has a NaN"):
            tw.grad((g * 0).sum(), x)


def test_it_belongs_to_a_thread_and_can_be_switched_off_inside() -> None:
    def passes() -> str:
        x = tw.zeros(1).requires_grad_()
        try:
            (tw.sqrt(x) * 0).sum().backward()
        except RuntimeError:
            return "refused"
        return "gone through"

    seen = []
    with detect_anomaly():
        thread = threading.Thread(target=lambda: seen.append(passes()))
        thread.start()
        thread.join()
        with set_detect_anomaly(False):
            seen.append(passes())
        seen.append(passes())
        thread = threading.Thread(target=tw.runtime.bind_modes(lambda: seen.append(passes())))
        thread.start()
        thread.join()
    with detect_anomaly(check_nan=False):
        seen.append(passes())
    seen.append(passes())
    assert seen == ["gone through"] * 2 + ["refused"] * 2 + ["gone through"] * 2
    with pytest.raises(TypeError, match="True or False"):
        detect_anomaly(check_nan=1)


def test_a_plain_call_switches() -> None:
    x = tw.zeros(1).requires_grad_()

    def passes() -> bool:
        x.grad = None
        try:
            (tw.sqrt(x) * 0).sum().backward()
        except RuntimeError:
            return False
        return True

    switched = set_detect_anomaly(True)
    try:
        assert not passes()
        assert tw.is_anomaly_enabled()
        with set_detect_anomaly(False):
            assert passes()
        assert not passes()
        detect_anomaly(False)  # which is a block alone
        assert not passes()
        with switched:
            assert not passes()
        assert passes()
        assert not tw.is_anomaly_enabled()
        set_detect_anomaly(True, check_nan=False)
        assert passes()
    finally:
        set_detect_anomaly(False)
    assert passes()
