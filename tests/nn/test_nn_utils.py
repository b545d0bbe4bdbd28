"""Gradients clipped by norm and by value, parameters as a vector: against PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn
from tilewright.nn import utils

torch = pytest.importorskip("torch")

SHAPES = ((3, 4), (70_001,), (), (5, 1))


def pairs(scale: float = 1.0, dtype: str = "float32"):
    rng = np.random.default_rng(1)
    ours, theirs = [], []
    for shape in SHAPES:
        g = np.asarray(rng.normal(size=shape) * scale)
        p, q = tw.zeros(shape, dtype=getattr(tw, dtype)), torch.zeros(shape)
        q = q.to(getattr(torch, dtype))
        p.grad, q.grad = tw.asarray(g, dtype=p.dtype, copy=True), torch.tensor(g).to(q.dtype)
        ours.append(p)
        theirs.append(q)
    # PyTorch has no largest of nothing.
    empty = tw.zeros((2, 0), dtype=ours[0].dtype)
    empty.grad = empty.copy()
    return [*ours, empty, tw.zeros((2,))], [*theirs, torch.zeros(2)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("norm_type", [1.0, 2.0, math.inf, 3.0, 0.5])
@pytest.mark.parametrize("max_norm", [0.5, 1e9])
def test_norms_are_pytorchs(norm_type, max_norm, dtype) -> None:
    ours, theirs = pairs(dtype=dtype)
    got = utils.clip_grad_norm_(ours, max_norm, norm_type)
    want = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    rtol = 1e-5 if dtype == "float32" else 1e-12
    assert got.dtype == getattr(tw, dtype)
    np.testing.assert_allclose(got.item(), want.item(), rtol=rtol)
    for p, q in zip(ours[: len(SHAPES)], theirs, strict=False):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=rtol)
    assert ours[-1].grad is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_gradients_have_a_wide_norm(dtype) -> None:
    ours, _ = pairs(scale=100.0, dtype=dtype)
    wide = np.concatenate([p.grad.astype(tw.float64).numpy().ravel() for p in ours[:-1]])
    norm = utils.clip_grad_norm_(ours, 1.0)
    assert norm.dtype == tw.float32
    np.testing.assert_allclose(norm.item(), np.linalg.norm(wide), rtol=1e-6)
    after = np.concatenate([p.grad.astype(tw.float64).numpy().ravel() for p in ours[:-1]])
    np.testing.assert_allclose(np.linalg.norm(after), 1.0, rtol=1e-2)


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_squares_of_float32_neither_overflow_nor_vanish(scale) -> None:
    ours, _ = pairs(scale)
    wide = np.concatenate([p.grad.astype(tw.float64).numpy().ravel() for p in ours[:-1]])
    np.testing.assert_allclose(
        utils.get_total_norm([p.grad for p in ours[:-1]]).item(), np.linalg.norm(wide), rtol=1e-6
    )


def test_the_bits_do_not_depend_on_threads() -> None:
    before = tw.get_num_threads()
    norms = set()
    try:
        for threads in (1, 2, 3):
            tw.set_num_threads(threads)
            grads = [p.grad for p in pairs()[0][:-1]] + [tw.arange(100_000, dtype=tw.float64)]
            norms |= {(tw.total_norm(grads, ord=o).item(), o) for o in (1.0, 2.0, math.inf)}
    finally:
        tw.set_num_threads(before)
    assert len(norms) == 3


@pytest.mark.parametrize("ord", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("dtype", [tw.float32, tw.float64, tw.bfloat16])
def test_the_kernel_and_the_body_agree(ord, dtype) -> None:
    tensors = [tw.randn((n,)).astype(dtype) for n in (*range(40), 40_000)]
    for bad in (0.0, math.inf, math.nan):
        tensors[3][1] = bad
        fused = tw.total_norm(tensors, ord=ord)
        with tw.kernels.use(total_norm="body"):
            by_ops = tw.total_norm(tensors, ord=ord)
        assert fused.dtype == by_ops.dtype
        np.testing.assert_allclose(fused.item(), by_ops.item(), rtol=1e-6)


def test_a_norm_can_be_differentiated() -> None:
    x = tw.asarray([[3.0, 0.0], [0.0, 4.0]], dtype=tw.float64).requires_grad_()
    y = tw.asarray([12.0], dtype=tw.float64).requires_grad_()
    tw.total_norm([x.T, y]).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.array([[3.0, 0.0], [0.0, 4.0]]) / 13)
    np.testing.assert_allclose(y.grad.numpy(), [12 / 13])


def test_not_finite() -> None:
    p = tw.zeros((2,))
    p.grad = tw.asarray([1.0, math.nan])
    with pytest.raises(RuntimeError, match="clip_grad_norm_: the norm of 1 gradients is nan"):
        utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    assert p.grad[0].item() == 1.0
    assert math.isnan(utils.clip_grad_norm_(p, 1.0).item())


def test_gradients_with_gaps() -> None:
    p = tw.zeros((3, 2))
    p.grad = tw.asarray(np.arange(6.0, dtype=np.float32).reshape(2, 3)).T
    norm = utils.clip_grad_norm_([p], 1.0)
    assert norm.item() == pytest.approx(math.sqrt(55), rel=1e-6)
    np.testing.assert_allclose(
        p.grad.numpy(), np.arange(6.0).reshape(2, 3).T / math.sqrt(55), rtol=1e-6
    )


def test_values() -> None:
    ours, theirs = pairs(3.0)
    utils.clip_grad_value_(ours, 0.7)
    torch.nn.utils.clip_grad_value_(theirs, 0.7)
    for p, q in zip(ours[: len(SHAPES)], theirs, strict=False):
        np.testing.assert_array_equal(p.grad.numpy(), q.grad.numpy())


def test_a_norm_that_is_known() -> None:
    p = tw.zeros((2,))
    p.grad = tw.asarray([3.0, 4.0])
    utils.clip_grads_with_norm_([p], 2.5, tw.asarray(5.0))
    np.testing.assert_allclose(p.grad.tolist(), [1.5, 2.0], rtol=1e-6)
    assert utils.clip_grad_norm_([tw.zeros((1,))], 1.0).item() == 0.0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tw.total_norm([]), ValueError, "total_norm: no tensors"),
        (lambda: tw.total_norm([tw.ones((1,))], ord=0.0), ValueError, "ord must be above 0, got 0"),
        (lambda: tw.total_norm([tw.ones((2,), dtype=tw.int64)]), TypeError, "floating type, got"),
        (lambda: tw.total_norm([3.0]), TypeError, "total_norm"),
    ],
)
def test_refused(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


def test_parameters_as_a_vector() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    vector = utils.parameters_to_vector(model.parameters())
    assert vector.shape == (13,)
    (vector * vector).sum().backward()
    np.testing.assert_allclose(model[0].weight.grad.numpy(), 2 * model[0].weight.detach().numpy())
    utils.vector_to_parameters(tw.arange(13, dtype=tw.float32), model.parameters())
    assert model[0].bias.tolist() == [6.0, 7.0, 8.0]
    assert model[0].weight.requires_grad
    with pytest.raises(ValueError, match=r"vector of shape \(12,\) for 13 elements of 4 param"):
        utils.vector_to_parameters(tw.zeros((12,)), model.parameters())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(
    ("make", "norm", "shape"),
    [
        (lambda b: nn.Conv2d(4, 6, 3, groups=2, bias=b), nn.BatchNorm2d, (2, 4, 5, 5)),
        (lambda b: nn.Conv1d(4, 6, 3, bias=b), nn.BatchNorm1d, (2, 4, 9)),
        (lambda b: nn.ConvTranspose2d(4, 6, 3, bias=b), nn.BatchNorm2d, (2, 4, 5, 5)),
        (lambda b: nn.Linear(4, 6, bias=b), nn.BatchNorm1d, (7, 4)),
    ],
)
def test_a_layer_and_its_batch_norm_become_one(make, norm, shape, affine: bool, bias: bool) -> None:
    layer, bn = make(bias), norm(6, affine=affine)
    for _ in range(3):
        bn(layer(tw.randn(*shape) * 2 + 1))
    x = tw.randn(*shape)
    if isinstance(layer, nn.Linear):
        fused = nn.utils.fuse_linear_bn_eval(layer.eval(), bn.eval())
    else:
        transpose = isinstance(layer, nn.ConvTranspose2d)
        fused = nn.utils.fuse_conv_bn_eval(layer.eval(), bn.eval(), transpose)
    assert type(fused) is type(layer)
    np.testing.assert_allclose(fused(x).detach(), bn(layer(x)).detach(), rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match="both are to be in evaluation"):
        nn.utils.fuse_conv_bn_eval(layer.train(), bn)
    with pytest.raises(RuntimeError, match="the norm has no running statistics"):
        nn.utils.fuse_conv_bn_eval(layer.eval(), norm(6, track_running_stats=False).eval())


def test_limits_of_gradients_are_not_negative() -> None:
    clips = nn.utils
    x = tw.zeros((2,), requires_grad=True)
    x.grad = tw.asarray([3.0, 4.0])
    for limit in (-1, -1e-300, float("nan")):
        for call in (
            lambda limit=limit: clips.clip_grad_norm_([x], limit),
            lambda limit=limit: clips.clip_grads_with_norm_([x], limit, tw.asarray(5.0)),
            lambda limit=limit: clips.clip_grad_value_([x], limit),
        ):
            with pytest.raises(ValueError, match=r"clip_\w+: \w+ must be at least 0, got"):
                call()
    assert x.grad.tolist() == [3.0, 4.0]
    clips.clip_grad_norm_([x], float("inf"))
    assert x.grad.tolist() == [3.0, 4.0]
    clips.clip_grad_norm_([x], 0)
    assert x.grad.tolist() == [0.0, 0.0]


def test_an_iterator_at_its_end_is_told_of() -> None:
    model = nn.Linear(2, 2)
    parameters = model.parameters()
    clips = nn.utils
    clips.clip_grad_norm_(parameters, 1.0)
    calls = {
        "clip_grad_norm_": lambda: clips.clip_grad_norm_(parameters, 1.0),
        "clip_grad_value_": lambda: clips.clip_grad_value_(parameters, 1.0),
        "clip_grads_with_norm_": lambda: clips.clip_grads_with_norm_(
            parameters, 1.0, tw.asarray(1.0)
        ),
        "get_total_norm": lambda: clips.get_total_norm(parameters),
    }
    for name, call in calls.items():
        with pytest.warns(UserWarning, match=f"{name}: the iterator gives no tensors") as told:
            call()
        assert told[0].filename == __file__
    clips.clip_grad_norm_([], 1.0)  # a list has no end behind it


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_fused_layers_do_what_both_do(kind, groups, axes):
    conv = getattr(tw.nn, f"{kind}{axes}d")(4, 6, 3, groups=groups)
    bn = getattr(tw.nn, f"BatchNorm{axes}d")(6)
    for x in (bn.running_mean, bn.running_var, bn.weight.detach(), bn.bias.detach()):
        x.copy_(tw.rand(6) + 0.5)
    x = tw.randn(2, 4, *(5,) * axes)
    for bias in (True, False):
        if not bias:
            conv.bias = None
        conv.requires_grad_(bias)
        fused = tw.nn.utils.fuse_conv_bn_eval(conv.eval(), bn.eval())
        want = bn(conv(x))
        np.testing.assert_allclose(fused(x).detach().numpy(), want.detach().numpy(), atol=2e-5)
        assert fused.weight.requires_grad is fused.bias.requires_grad is bias
