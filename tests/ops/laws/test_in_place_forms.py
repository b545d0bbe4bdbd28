"""The forms `name_` and `inplace=True`: values and gradients against PyTorch, from the records.

Where PyTorch has no such form, its function computes the values and gradients out of place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from subcases import each
from torch.nn import functional

import tilewright as tw
from tilewright import _core

OPS = {op["name"]: op for op in _core._op_records()}
FORMS = sorted(name for name, op in OPS.items() if op["in_place"])

# Points at which the ops are smooth; those that are defined elsewhere only, by what they take.
VALUES = np.array([[0.3, -0.7, 0.45], [0.9, -0.2, -0.55]])
OTHER = np.array([[1.7, 0.6, 2.3], [0.4, 1.2, 0.8]])
POSITIVE = {"sqrt", "rsqrt", "log", "log2", "log10", "log1p", "logit", "pow", "float_power"}
ABOVE_ONE = {"acosh"}
INTEGERS = {
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"),
    "bitwise_invert",
}
# Other arguments than a second tensor of the same shape.
INDEX = np.array([[0, 1, 1], [1, 0, 0]])
MASK = np.array([[True, False, True], [False, False, True]])
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "addcdiv": (OTHER, OTHER[::-1].copy()), "addcmul": (OTHER, OTHER[::-1].copy()),
    "clamp_max": (0.4,), "clamp_min": (0.1,),
    "clip": (-0.5, 0.5), "cumulative_prod": (1,), "cumulative_sum": (0,),
    "index_add": (1, np.array([0, 2]), OTHER[:, :2].copy()),
    "index_copy": (1, np.array([0, 2]), OTHER[:, :2].copy()),
    "index_fill": (1, np.array([0, 2]), 0.5), "lerp": (OTHER, 0.3), "masked_fill": (MASK, 0.5),
    "masked_scatter": (MASK, OTHER), "scatter": (0, INDEX[:1], OTHER[:1].copy()),
    "scatter_add": (0, INDEX, OTHER), "scatter_reduce": (0, INDEX, OTHER, "sum"),
    "threshold": (0.1, 0.25), "nan_to_num": (), "tril": (), "triu": (), "xlogy": (OTHER,),
}  # fmt: skip
BINARY = {name for name in FORMS if OPS[name]["signature"].count("Operand") > 1}
NAMES = {
    "bitwise_invert": "bitwise_not", "cumulative_prod": "cumprod", "cumulative_sum": "cumsum",
    "equal": "eq",
}  # fmt: skip
# PyTorch has these in float64 with float32's sixth.
# The gradient of digamma is summed up from six terms in PyTorch.
ROUGH = {"hardsigmoid": 1e-7, "hardswish": 1e-7, "digamma": 1e-8}


def first(name: str) -> np.ndarray:
    if name in INTEGERS:
        return np.array([[5, 12, 3], [9, 6, 10]])
    return VALUES**2 + 1.1 if name in ABOVE_ONE else VALUES**2 if name in POSITIVE else VALUES


def arguments(name: str) -> tuple[Any, ...]:
    if name in ARGUMENTS:
        return ARGUMENTS[name]
    if name in INTEGERS:
        return () if name == "bitwise_invert" else (np.array([[1, 2, 3], [3, 1, 2]]),)
    tensors = OPS[name]["signature"].partition(" ->")[0]
    return (
        (OTHER,)
        if tensors.count("Operand") + tensors.count("Tensor") > 1
        and not any(word in tensors for word in ("Number", "= 0.01"))
        else ()
    )


def ours(values: Any) -> Any:
    return tw.asarray(values.copy()) if isinstance(values, np.ndarray) else values


def theirs(values: Any) -> Any:
    return torch.asarray(values.copy()) if isinstance(values, np.ndarray) else values


def function_of(name: str) -> Callable[..., torch.Tensor]:
    own = NAMES.get(name, name)
    for place in (torch, torch.special, functional, torch.Tensor):
        if hasattr(place, own):
            return getattr(place, own)
    pytest.fail(f"say where PyTorch has {name}")


def rtol(name: str) -> float:
    return ROUGH.get(name, 1e-11)


def as_array(x: Any) -> np.ndarray:
    return np.asarray(x.detach())


@each("name", FORMS)
def test_every_form_gives_what_pytorch_gives(name: str) -> None:
    reference = function_of(name)
    x = ours(first(name))
    given = [ours(each) for each in arguments(name)]
    assert getattr(x, f"{name}_")(*given) is x
    expected = reference(theirs(first(name)), *[theirs(each) for each in arguments(name)])
    assert str(x.dtype) == str(first(name).dtype)
    np.testing.assert_allclose(as_array(x), np.asarray(expected, first(name).dtype), rtol(name))
    window = ours(np.ones((4, 3), first(name).dtype))[1:3]
    window[...] = ours(first(name))
    getattr(window, f"{name}_")(*given)
    np.testing.assert_array_equal(as_array(window), as_array(x))


def gradients(make: Any, change: Any, name: str) -> list[np.ndarray | None]:
    """Gradients of a weighted sum of the changed tensor, for it and the other tensors."""
    leaf = make(first(name))
    others = [make(x) for x in arguments(name)]
    leaves = [leaf, *(x for x in others if hasattr(x, "shape") and "float" in str(x.dtype))]
    for x in leaves:
        x.requires_grad_()
    y = change(leaf * 1, others)
    if not y.requires_grad:
        return [None] * len(leaves)
    try:
        (y * make(np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]]))).sum().backward()
    except RuntimeError as error:
        if "is not implemented" not in str(error):  # PyTorch's of steps, which are 0
            raise
        return [None] * len(leaves)
    return [None if each.grad is None else as_array(each.grad) for each in leaves]


# The next number is a step here, and the identity in PyTorch.
SMOOTH = [name for name in FORMS if name not in {*INTEGERS, "nextafter"}]


@each("name", SMOOTH)
def test_gradients_of_every_form_are_pytorchs(name: str) -> None:
    reference = function_of(name)

    def change(y: Any, others: Any) -> Any:
        view = y.reshape(2, 3)
        assert getattr(y, f"{name}_")(*others) is y
        np.testing.assert_array_equal(as_array(view), as_array(y))
        return y

    got = gradients(ours, change, name)
    want = gradients(theirs, lambda y, others: reference(y, *others), name)
    for pair in zip(got, want, strict=True):
        # PyTorch's function of a constant result is outside the graph, the changed tensor is not.
        a, b = np.broadcast_arrays(*(0 if each is None else each for each in pair))
        np.testing.assert_allclose(a, b, rtol(name), 1e-14)


def test_other_names_have_their_forms() -> None:
    for theirs_, own in (
        ("neg", "negative"), ("clamp", "clip"), ("absolute", "abs"), ("sub", "subtract"),
        ("mul", "multiply"), ("div", "divide"), ("eq", "equal"), ("arctan2", "atan2"),
        ("cumsum", "cumulative_sum"),
        ("bitwise_not", "bitwise_invert"), ("fix", "trunc"),
    ):  # fmt: skip
        a, b = getattr(tw.Tensor, f"{theirs_}_"), getattr(tw.Tensor, f"{own}_")
        assert a.__name__ == f"{theirs_}_"
        assert a.__doc__.partition("\n\n")[2] == b.__doc__.partition("\n\n")[2]


# ---- inplace=True ----

ACTIVATIONS = sorted(name for name in FORMS if "in_place" in OPS[name]["signature"])


def test_all_activations_that_pytorch_changes_in_place_take_it() -> None:
    assert (
        sorted(
            [
                "celu",
                "elu",
                "hardsigmoid",
                "hardswish",
                "hardtanh",
                "leaky_relu",
                "mish",
                "relu",
                "relu6",
                "selu",
                "silu",
                "threshold",
            ]
        )
        == ACTIVATIONS
    )


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_inplace_changes_the_operand_and_returns_it(name: str) -> None:
    given = (0.1, 0.25) if name == "threshold" else ()
    grads = {}
    for library, make, call in (
        ("ours", ours, getattr(tw, name)), ("PyTorch's", theirs, getattr(functional, name)),
    ):  # fmt: skip
        for keywords in ({}, {"inplace": True}, {"inplace": False}):
            leaf = make(VALUES).requires_grad_()
            x = leaf * 2
            before = as_array(x).copy()
            y = call(x, *given, **keywords)
            changed = bool(keywords.get("inplace"))
            assert (y is x) == changed
            assert changed or (as_array(x) == before).all()
            (y * y).sum().backward()
            grads[library, str(keywords)] = as_array(leaf.grad)
            if changed:
                with pytest.raises(RuntimeError, match=r"leaf .*requires grad|in-place operation"):
                    call(leaf, *given, inplace=True)
    for keys, got in grads.items():
        np.testing.assert_allclose(got, grads["PyTorch's", "{}"], rtol(name), err_msg=str(keys))


def test_what_another_gradient_needs_is_not_lost_without_a_word() -> None:
    leaf = tw.asarray(VALUES).requires_grad_()
    x = leaf * 2
    y = x * x
    tw.relu(x, inplace=True)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()


def test_refusals_leave_the_tensor_as_it_was() -> None:
    for call, error, text in (
        (lambda x: x.exp_(), TypeError, r"^exp_: a float32 result .* into int64"),
        (lambda x: x.hypot_(x), TypeError, r"^hypot_: "),
        (lambda x: x.add_(0.5), TypeError, r"float32 result .* into int64"),
        (lambda x: x.pow_(tw.ones((2, 3), dtype=tw.int64)), ValueError, r"^pow_: .*\(2, 3\)"),
        (lambda x: x.cumsum_(4), IndexError, r"^cumsum_: axis 4"),
        (lambda x: x.clamp_("a"), TypeError, r"^clamp_: min must be"),
        (lambda x: x.lerp_(1), TypeError, r"^lerp_: missing argument 'weight'"),
    ):
        x = tw.asarray([1, 2, 3])
        with pytest.raises(error, match=text):
            call(x)
        assert x.tolist() == [1, 2, 3]
        assert x.version == 0
    with pytest.raises(TypeError, match=r"^relu: inplace=True changes a tensor, got 3.0"):
        tw.relu(3.0, inplace=True)


def test_alpha_of_sums_and_differences() -> None:
    x, y = ours(VALUES), ours(OTHER)
    for call, sign in (("add", 1), ("sub", -1), ("subtract", -1)):
        expected = VALUES + sign * 0.5 * OTHER
        np.testing.assert_allclose(as_array(getattr(x, call)(y, alpha=0.5)), expected, rtol=1e-15)
        z = x.copy()
        assert getattr(z, f"{call}_")(y, alpha=0.5) is z
        np.testing.assert_allclose(as_array(z), expected, rtol=1e-15)
    assert tw.asarray([1, 2]).add(3, alpha=2).tolist() == [7, 8]
    assert tw.asarray([1, 2]).sub_(3, alpha=2).tolist() == [-5, -4]
