"""PyTorch's records of refused calls (OpInfo's error inputs): what it refuses is refused here.

Each call that raises there raises here a TypeError, ValueError, IndexError or RuntimeError and
leaves its operands as they were. What is taken here all the same stands below with its reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
names = pytest.importorskip("test_opinfo_names")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of PyTorch's own imports
    from torch.testing._internal.common_modules import ModuleErrorEnum, module_db
    from torch.testing._internal.common_optimizers import optim_db

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.filterwarnings("ignore"),  # of PyTorch's samples
]

REFUSALS = (TypeError, ValueError, IndexError, RuntimeError)
# So many refusals must be found in all, so that a change of names cannot empty this test.
LEAST_REFUSED = 420

# By reason: ops that take what PyTorch refuses.
REASONS = {
    "a number stands for a tensor of it; the standard": """
        atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign eq
        fmax fmin fmod ge gt hypot ldexp le logaddexp logical_and logical_or logical_xor lt maximum
        minimum ne nextafter pow remainder xlogy
    """,
    "a range that leads away from its end is empty; the standard": "arange",
    "operands of several types are promoted": """
        nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d
    """,
    "of no channels and no samples there are no windows": """
        nn.functional.max_pool1d nn.functional.max_pool3d
    """,
    "axes are broadcast; the standard": "linalg.cross",
}
TAKEN = {name: reason for reason, ops in REASONS.items() for name in ops.split()}
OPS = [name for name, op in names.OPS.items() if op.error_inputs_func is not None]
refused: dict[str, int] = {}
used: set[str] = set()


def calls_of(name: str) -> Iterator[Any]:
    """The calls that PyTorch refuses, as samples."""
    torch.manual_seed(0)
    op = names.OPS[name]
    for each in op.error_inputs("cpu"):
        sample = each.sample_input
        try:
            op.op(sample.input, *sample.args, **sample.kwargs)
        except Exception:
            yield sample


def fault(name: str, sample: Any) -> str | None:
    """None where the call is refused."""
    own: dict[int, tw.Tensor] = {}

    def ours(x: Any) -> tw.Tensor:
        if id(x) not in own:
            own[id(x)] = tw.asarray(x.detach().resolve_conj().resolve_neg().clone())
        return own[id(x)]

    before = {}
    try:
        args = names.mapped((sample.input, *sample.args), ours)
        options = names.mapped(dict(sample.kwargs), ours)
        before = {key: names.array(x).copy() for key, x in own.items()}
        names.call_of(names.OPS[name])(*args, **options)
    except REFUSALS:
        same = all(
            np.array_equal(names.array(own[key]), x, equal_nan=x.dtype.kind in "fc")
            for key, x in before.items()
        )
        return None if same else "an operand has changed"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "is taken"


@pytest.mark.parametrize("name", OPS)
def test_what_pytorch_refuses(name: str) -> None:
    refused.setdefault(name, 0)
    faults = []
    for sample in calls_of(name):
        if found := fault(name, sample):
            told = names.torch_mapped(
                [sample.input, *sample.args, sample.kwargs],
                lambda x: f"{str(x.dtype)[6:]}{tuple(x.shape)}",
            )
            faults.append(f"{found}: {told}")
        else:
            refused[name] += 1
    if faults and name in TAKEN:
        assert all(each.startswith("is taken") for each in faults), faults
        used.add(name)
        return
    assert not faults, f"{len(faults)} calls: {faults[0]}"


def test_the_list_holds_nothing_that_is_mended() -> None:
    """After the others, in the order of this file."""
    if len(refused) < len(OPS):
        pytest.skip("only where all ops were tested in this process")
    assert set(TAKEN) - used == set()
    assert sum(refused.values()) >= LEAST_REFUSED


# ---- layers and optimisers ----

# By reason: layers that take what PyTorch refuses; said as above.
LAYERS = {
    "operands of several types are promoted": "NLLLoss RNN GRU LSTM",
    "a setting is looked at when it is used": "HuberLoss",
    "eps may be 0": "BatchNorm1d BatchNorm2d BatchNorm3d",
    "axes in front of the padded ones are as many as there are": "CircularPad1d",
}
TAKEN_BY_LAYERS = {name: reason for reason, each in LAYERS.items() for name in each.split()}


def own_arguments(value: Any, made: dict[int, tw.Tensor]) -> Any:
    """With every tensor once, as a leaf that requires grad where it can."""

    def ours(x: Any) -> tw.Tensor:
        if id(x) not in made:
            made[id(x)] = tw.asarray(x.detach().clone())
            made[id(x)].requires_grad = x.requires_grad
        return made[id(x)]

    return names.mapped(value, ours)


def layer_infos() -> list[Any]:
    found = [info for info in module_db if info.module_error_inputs_func is not None]
    return [info for info in found if hasattr(tw.nn, info.module_cls.__name__)]


@pytest.mark.parametrize("info", layer_infos(), ids=lambda info: info.module_cls.__name__)
def test_what_layers_refuse(info: Any) -> None:
    name = info.module_cls.__name__
    taken, count = [], 0
    for each in info.module_error_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
    ):
        made: dict[int, tw.Tensor] = {}
        built, called = each.module_error_input.constructor_input, None
        if each.error_on != ModuleErrorEnum.CONSTRUCTION_ERROR:
            called = each.module_error_input.forward_input
        try:
            options = own_arguments(dict(built.kwargs), made)
            layer = getattr(tw.nn, name)(*own_arguments(built.args, made), **options)
            if called is not None:
                layer(*own_arguments(called.args, made), **own_arguments(dict(called.kwargs), made))
            taken.append(f"{built.args} {built.kwargs}: {each.error_regex}")
        except REFUSALS:
            count += 1
    assert bool(taken) == (name in TAKEN_BY_LAYERS), taken
    assert len(taken) <= 1, taken
    assert count or taken


# Optimisers with named and unnamed parameters in several groups: each group is asked for itself.
NAMES_BY_GROUP = "all optimizer param groups should be with/without names."


@pytest.mark.parametrize(
    "info",
    [info for info in optim_db if hasattr(tw.optim, info.optim_cls.__name__)],
    ids=lambda info: info.optim_cls.__name__,
)
def test_what_optimisers_refuse(info: Any) -> None:
    each_input = info.optim_error_inputs_func(device="cpu", dtype=torch.float64)
    assert each_input
    for each in each_input:
        given = each.optimizer_error_input
        if given.desc == NAMES_BY_GROUP:
            continue
        made: dict[int, tw.Tensor] = {}
        params = given.params
        if params is None:
            params = [torch.zeros(1, requires_grad=True)]
        with pytest.raises(REFUSALS):
            getattr(tw.optim, info.optim_cls.__name__)(
                own_arguments(params, made), **own_arguments(dict(given.kwargs), made)
            )
