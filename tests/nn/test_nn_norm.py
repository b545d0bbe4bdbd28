"""Normalisation layers and activations against PyTorch: outputs, gradients, states, errors."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core, nn

torch = pytest.importorskip("torch")

NORMS = {
    "LayerNorm": [((5,), (4, 3, 5)), (((3, 5),), (4, 3, 5))],
    "RMSNorm": [((5,), (4, 3, 5))],
    "GroupNorm": [((2, 4), (3, 4, 5)), ((4, 4), (3, 4, 2, 2))],
    "BatchNorm1d": [((4,), (6, 4)), ((4,), (3, 4, 5))],
    "BatchNorm2d": [((4,), (3, 4, 5, 2))],
    "BatchNorm3d": [((4,), (3, 4, 2, 3, 2))],
    "InstanceNorm1d": [((4, 1e-5, 0.1, True, True), (3, 4, 5)), ((4,), (4, 5))],
    "InstanceNorm2d": [((4, 1e-5, 0.1, True, True), (3, 4, 5, 2))],
    "InstanceNorm3d": [((4,), (3, 4, 2, 3, 2))],
}
PLAIN = """ReLU ReLU6 LeakyReLU ELU CELU SELU GELU SiLU Mish Hardtanh Hardswish Hardsigmoid Sigmoid
    Softplus Softsign LogSigmoid Tanh Tanhshrink Softshrink Hardshrink GLU PReLU"""
ACTIVATIONS = {
    **dict.fromkeys(PLAIN.split(), ()),
    "Threshold": (0.1, 3.0),
}
LAYERS = [(name, *case) for name, cases in NORMS.items() for case in cases]


def pair(name: str, args: tuple) -> tuple[nn.Module, torch.nn.Module]:
    """Both in float64, with the same random state."""
    theirs = getattr(torch.nn, name)(*args).double()
    dtype = {"dtype": tw.float64} if theirs.state_dict() else {}
    ours = getattr(nn, name)(*args, **dtype)
    rng = np.random.default_rng(3)
    state = {
        key: torch.tensor(rng.uniform(0.5, 2, tuple(value.shape))).to(value.dtype)
        for key, value in theirs.state_dict().items()
    }
    theirs.load_state_dict(state)
    ours.load_state_dict(state)
    return ours, theirs


def same_step(ours: nn.Module, theirs: torch.nn.Module, shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.normal(size=shape)
    x, z = tw.asarray(data).requires_grad_(), torch.tensor(data, requires_grad=True)
    y, expected = ours(x), theirs(z)
    np.testing.assert_allclose(y.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-10)
    g = rng.normal(size=y.shape)
    y.backward(tw.asarray(g))
    expected.backward(torch.tensor(g))
    np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), rtol=1e-6, atol=1e-7)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-9, atol=1e-10)
        p.grad = q.grad = None


def same_state(ours: nn.Module, theirs: torch.nn.Module) -> None:
    state = theirs.state_dict()
    assert set(ours.state_dict()) == set(state)
    for key, value in ours.state_dict().items():
        np.testing.assert_allclose(value.numpy(), state[key].numpy(), rtol=1e-12, err_msg=key)


@pytest.mark.parametrize(("name", "args", "shape"), LAYERS)
def test_norms_train_and_evaluate_as_in_pytorch(name: str, args: tuple, shape: tuple) -> None:
    ours, theirs = pair(name, args)
    for seed in range(3):
        same_step(ours, theirs, shape, seed)
        same_state(ours, theirs)
    same_step(ours.eval(), theirs.eval(), shape, 9)
    same_state(ours, theirs)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_pytorch(name: str) -> None:
    ours, theirs = pair(name, ACTIVATIONS[name])
    same_step(ours, theirs, (4, 6), 1)


@pytest.mark.parametrize("options", [{"momentum": None}, {"track_running_stats": False}])
def test_other_running_statistics(options: dict) -> None:
    ours = nn.BatchNorm1d(3, **options, dtype=tw.float64)
    theirs = torch.nn.BatchNorm1d(3, **options).double()
    for seed in range(3):
        same_step(ours, theirs, (5, 3), seed)
        same_state(ours, theirs)
    same_step(ours.eval(), theirs.eval(), (5, 3), 4)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.LayerNorm(3), (0, 3)),
        (nn.RMSNorm(3), (0, 3)),
        (nn.GroupNorm(2, 4), (0, 4, 5)),
        (nn.GroupNorm(2, 4), (3, 4, 0)),
        (nn.BatchNorm1d(4), (0, 4)),
        (nn.BatchNorm1d(4), (3, 4, 0)),
        (nn.InstanceNorm1d(4, affine=True), (0, 4, 5)),
    ],
)
def test_parameters_get_zeros_from_inputs_without_elements(layer: nn.Module, shape: tuple) -> None:
    left_behind = [tw.full((size,), 7.0) for size in (2, 3, 4, 8)]
    del left_behind
    x = tw.zeros(shape, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.shape == shape
    for name, parameter in layer.named_parameters():
        assert parameter.grad.tolist() == [0.0] * parameter.shape[0], name


def test_a_replay_moves_running_statistics() -> None:
    layer, other = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    x = [tw.randn(5, 3) for _ in range(3)]
    captured = _core._capture(layer, [x[0]])
    layer.reset_running_stats()
    for batch in x:
        np.testing.assert_array_equal(
            captured.replay([batch])[0].numpy(), other(batch).detach().numpy()
        )
    for key, value in layer.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), other.state_dict()[key].numpy())


@pytest.mark.parametrize(
    ("layer", "shape", "text"),
    [
        (nn.BatchNorm1d(3), (2, 4), "BatchNorm1d: expected 3 channels along axis 1"),
        (nn.BatchNorm2d(3), (2, 3), "BatchNorm2d: expected an input of axes"),
        (nn.BatchNorm1d(3), (1, 3), "batch_norm: expected more than 1 value per channel"),
        (nn.InstanceNorm1d(3), (3, 1), "instance_norm: expected more than 1 value per channel"),
        (nn.InstanceNorm1d(3), (4, 5), "InstanceNorm1d: expected 3 channels along axis 0"),
        (nn.GroupNorm(2, 4), (2, 6, 3), "GroupNorm: expected 4 channels along axis 1"),
        (nn.LayerNorm(4), (2, 3), "layer_norm: normalized_shape"),
    ],
)
def test_refused_inputs_change_nothing(layer: nn.Module, shape: tuple, text: str) -> None:
    before = {key: value.numpy().copy() for key, value in layer.state_dict().items()}
    with pytest.raises(ValueError, match=text):
        layer(tw.ones(shape))
    for key, value in layer.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[key])


def test_refused_layers() -> None:
    with pytest.raises(ValueError, match="GroupNorm: 4 channels cannot be divided into 3 groups"):
        nn.GroupNorm(3, 4)
    with pytest.raises(ValueError, match="LayerNorm: normalized_shape has no axes"):
        nn.LayerNorm(())
    with pytest.raises(TypeError, match="BatchNorm1d: num_features is a whole number"):
        nn.BatchNorm1d(2.5)


def test_the_same_bits_with_any_number_of_threads() -> None:
    before = tw.get_num_threads()
    results = []
    for threads in (1, 2, 5):
        tw.set_num_threads(threads)
        tw.manual_seed(2)
        found = []
        for layer, shape in (
            (nn.LayerNorm(96), (3000, 96)),
            (nn.GroupNorm(4, 8), (40, 8, 33, 9)),
            (nn.BatchNorm2d(9), (20, 9, 17, 11)),
            (nn.BatchNorm1d(200), (300, 200)),
        ):
            x = tw.randn(*shape).requires_grad_()
            (layer(x) * tw.randn(*shape)).sum().backward()
            grads = [x.grad, *(p.grad for p in layer.parameters())]
            found += [g.numpy().tobytes() for g in grads]
        results.append(found)
    tw.set_num_threads(before)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("change", ["none", "untracked"])
def test_statistics_that_nobody_counts_are_pytorchs(momentum, change):
    torch = pytest.importorskip("torch")
    results = []
    for package in (tw, torch):
        norm = package.nn.BatchNorm1d(2, momentum=momentum)
        if change == "none":
            norm.num_batches_tracked = None
        else:
            norm.track_running_stats = False
        norm(package.asarray([[1.0, 2.0], [3.0, 7.0]]))
        counted = norm.num_batches_tracked
        results.append((norm.running_mean.tolist(), counted if counted is None else int(counted)))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    assert results[0][1] == results[1][1]
