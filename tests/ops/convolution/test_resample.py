"""Images of another size and at other places, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

torch = pytest.importorskip("torch")
F, TF = nn.functional, torch.nn.functional

SIZES = (
    ("nearest", (7,), (11,)),
    ("nearest", (7,), (3,)),
    ("nearest", (5, 6), (13, 4)),
    ("nearest", (2, 3, 5), (4, 3, 9)),
    ("nearest-exact", (7,), (11,)),
    ("nearest-exact", (5, 6), (13, 4)),
    ("nearest-exact", (2, 3, 5), (4, 3, 9)),
    ("linear", (7,), (19,)),
    ("linear", (9,), (4,)),
    ("linear", (1,), (4,)),
    ("bilinear", (5, 6), (10, 12)),
    ("bilinear", (5, 6), (3, 17)),
    ("bilinear", (5, 6), (1, 1)),
    ("bilinear", (1, 40), (40, 1)),
    ("bicubic", (5, 6), (10, 12)),
    ("bicubic", (5, 2), (3, 17)),
    ("bicubic", (1, 1), (3, 2)),
    ("trilinear", (2, 3, 5), (4, 5, 9)),
    ("trilinear", (4, 3, 5), (2, 1, 10)),
    ("area", (7,), (3,)),
    ("area", (5, 6), (3, 8)),
    ("area", (4, 3, 5), (2, 1, 10)),
)


def options_of(mode: str) -> list[dict[str, Any]]:
    if mode in ("nearest", "nearest-exact", "area"):
        return [{}]
    found: list[dict[str, Any]] = [{}, {"align_corners": True}]
    if mode in ("bilinear", "bicubic"):
        found += [{"antialias": True}, {"antialias": True, "align_corners": True}]
    return found


def both(data: Any) -> tuple[tw.Tensor, Any]:
    return tw.asarray(data).requires_grad_(), torch.tensor(data, requires_grad=True)


def assert_like_pytorch(ours: Any, theirs: Any, pairs: Any, tolerance: float = 1e-10) -> None:
    """The result, its gradients, and the gradients of those where PyTorch has them."""
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance
    )
    (ours * ours).sum().backward()
    (theirs * theirs).sum().backward()
    for x, z in pairs:
        np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("mode", "image", "size"), SIZES)
def test_interpolate_to_a_size(mode, image, size, isa, rng) -> None:
    for options in options_of(mode):
        x, z = both(rng.normal(size=(2, 3, *image)))
        # PyTorch computes these weights in another order.
        tolerance = 1e-6 if options.get("antialias") else 1e-10
        assert_like_pytorch(
            F.interpolate(x, size, mode=mode, **options),
            TF.interpolate(z, size, mode=mode, **options),
            [(x, z)],
            tolerance,
        )


@pytest.mark.parametrize("factor", [0.37, 0.5, 1.0, 1.3, 2.0, 2.6])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_interpolate_by_a_factor(mode, factor, rng) -> None:
    for again in (None, True):
        for options in options_of(mode):
            x, z = both(rng.normal(size=(1, 2, 9, 14)))
            given = {"scale_factor": factor, "recompute_scale_factor": again, **options}
            assert_like_pytorch(
                F.interpolate(x, mode=mode, **given),
                TF.interpolate(z, mode=mode, **given),
                [(x, z)],
                1e-6 if options.get("antialias") else 1e-10,
            )
    x, z = both(rng.normal(size=(1, 2, 9, 14)))
    got = F.interpolate(x, scale_factor=(factor, 1.7), mode=mode)
    assert_like_pytorch(got, TF.interpolate(z, scale_factor=(factor, 1.7), mode=mode), [(x, z)])


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_takes_pytorchs_neighbour_for_every_size(mode, rng) -> None:
    for n in (1, 2, 3, 7, 10, 49, 64):
        data = rng.normal(size=(1, 1, n)).astype(np.float32)
        for size in (*range(1, 60), 97, 98, 100, 147):
            got = F.interpolate(tw.asarray(data), size, mode=mode).numpy()
            want = TF.interpolate(torch.tensor(data), size, mode=mode).numpy()
            np.testing.assert_array_equal(got, want, str((n, size)))


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool", "int32"])
def test_nearest_takes_every_type(dtype) -> None:
    x = tw.asarray(
        np.arange(24).reshape(1, 2, 3, 4) % 2
        if dtype == "bool"
        else np.arange(24).reshape(1, 2, 3, 4)
    )
    x = x.astype(getattr(tw, dtype))
    y = F.interpolate(x, (5, 3))
    assert y.dtype == x.dtype
    want = TF.interpolate(torch.tensor(x.numpy().astype(np.float64)), (5, 3))
    np.testing.assert_array_equal(y.numpy().astype(np.float64), want.numpy())
    with pytest.raises(TypeError, match="mode 'bilinear' is for floating point"):
        F.interpolate(x, (5, 3), mode="bilinear")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_interpolate_of_narrow_types(dtype, rng) -> None:
    data = rng.normal(size=(2, 3, 8, 9)).astype(np.float32)
    for mode in ("nearest", "bilinear", "bicubic"):
        x = tw.asarray(data).astype(getattr(tw, dtype))
        y = F.interpolate(x, (5, 13), mode=mode)
        wide = F.interpolate(x.astype(tw.float64), (5, 13), mode=mode)
        assert y.dtype == x.dtype
        eps = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-7}[dtype]
        np.testing.assert_allclose(y.astype(tw.float64).numpy(), wide.numpy(), rtol=eps, atol=eps)


def test_interpolate_of_views_and_empty_batches(rng) -> None:
    data = rng.normal(size=(4, 5, 3, 2))
    x = tw.asarray(data).permute(0, 3, 2, 1)[::2, :, ::-1]
    z = torch.tensor(np.ascontiguousarray(data.transpose(0, 3, 2, 1)[::2, :, ::-1]))
    got = F.interpolate(x, (4, 7), mode="bilinear")
    want = TF.interpolate(z, (4, 7), mode="bilinear")
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)
    assert F.interpolate(tw.ones((0, 3, 4, 4)), 8, mode="bicubic").shape == (0, 3, 8, 8)
    assert F.interpolate(tw.ones((2, 0, 4)), 8).shape == (2, 0, 8)


def test_what_has_no_weight_does_not_count() -> None:
    x = tw.asarray([[[1.0, np.inf, 3.0]]])
    assert F.interpolate(x, 5, mode="linear", align_corners=True).tolist() == [
        [[1.0, np.inf, np.inf, np.inf, 3.0]]
    ]


def test_gradients_of_gradients_of_interpolate(rng) -> None:
    x = tw.asarray(rng.normal(size=(1, 1, 3, 4))).requires_grad_()
    for mode in ("nearest", "bilinear", "bicubic"):
        assert tw.gradcheck(lambda x, m=mode: F.interpolate(x, (5, 3), mode=m), (x,))
        assert tw.gradgradcheck(lambda x, m=mode: F.interpolate(x * x, (5, 3), mode=m), (x,))


def test_bits_do_not_depend_on_threads(rng) -> None:
    x = tw.asarray(rng.normal(size=(1, 3, 61, 83)).astype(np.float32)).requires_grad_()
    found = []
    before = tw.get_num_threads()
    try:
        for threads in (1, 2, 5):
            tw.set_num_threads(threads)
            y = F.interpolate(x, (211, 157), mode="bicubic")
            found.append(
                (y.detach().numpy().tobytes(), tw.grad((y * y).sum(), [x])[0].numpy().tobytes())
            )
    finally:
        tw.set_num_threads(before)
    assert found[0] == found[1] == found[2]


REFUSED: tuple[tuple[Any, type[Exception], str], ...] = (
    (F.interpolate, ValueError, "give either size or scale_factor"),
    (lambda x: F.interpolate(x, 3, 2.0), ValueError, "give either size or scale_factor"),
    (lambda x: F.interpolate(x, 3, mode="cubic"), ValueError, "mode is one of nearest,"),
    (lambda x: F.interpolate(x, 3, mode="linear"), ValueError, "mode 'linear' is for inputs of 3"),
    (lambda x: F.interpolate(x, (3,)), ValueError, "size is one number or 2"),
    (lambda x: F.interpolate(x, 0), ValueError, "size must be at least 1"),
    (lambda x: F.interpolate(x, 2.5), TypeError, "size is whole numbers"),
    (lambda x: F.interpolate(x, scale_factor=0.1), ValueError, "size must be at least 1"),
    (lambda x: F.interpolate(x, scale_factor=-1), ValueError, "scale_factor must be above 0"),
    (lambda x: F.interpolate(x, scale_factor="2"), TypeError, "scale_factor is numbers"),
    (lambda x: F.interpolate(x[0, 0], 3), ValueError, "input must have 3 to 5 dimensions"),
    (lambda x: F.interpolate(x, 3, align_corners=True), ValueError, "align_corners is not for"),
    (lambda x: F.interpolate(x, 3, antialias=True), ValueError, "antialias is for modes"),
    (
        lambda x: F.interpolate(x, 3, recompute_scale_factor=True),
        ValueError,
        "recompute_scale_factor is for scale_factor",
    ),
    (lambda x: F.interpolate(x[:, :, :0], 3), ValueError, "has an axis of size 0"),
    (lambda x: F.interpolate([1.0], 3), TypeError, "input must be a Tensor"),
    (lambda x: F.grid_sample(x, tw.ones((1, 3, 3, 3))), ValueError, "grid .* does not fit"),
    (lambda x: F.grid_sample(x[0], tw.ones((1, 3, 3, 2))), ValueError, "input must be"),
    (lambda x: F.grid_sample(x, tw.ones((1, 3, 3, 2), dtype=tw.float64)), TypeError, "same floati"),
    (lambda x: F.grid_sample(x, tw.ones((1, 3, 3, 2)), "linear"), ValueError, "mode must be"),
    (lambda x: F.affine_grid(x, (1, 2, 3, 4)), ValueError, "theta must be"),
    (lambda x: F.affine_grid(tw.ones((1, 2, 3)), (1, 2, 3)), ValueError, "size must be"),
    (lambda x: F.affine_grid(tw.ones((1, 2, 3)), (1, 2, 0, 3)), ValueError, "must be above 0"),
)


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_wrong_arguments_are_refused(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call(tw.ones((1, 2, 4, 4)))


# ---- layers ----

LAYERS = (
    ("Upsample", (), {"size": 7}, (1, 2, 5)),
    ("Upsample", (), {"size": (7, 3), "mode": "bilinear"}, (1, 2, 5, 5)),
    ("Upsample", (), {"scale_factor": 2, "mode": "bicubic", "align_corners": True}, (1, 2, 5, 5)),
    ("Upsample", (), {"scale_factor": (2, 1.5), "mode": "nearest"}, (1, 2, 5, 5)),
    ("Upsample", (), {"scale_factor": 2.0, "mode": "trilinear"}, (1, 2, 2, 3, 4)),
    ("UpsamplingNearest2d", (), {"scale_factor": 2}, (1, 2, 5, 5)),
    ("UpsamplingNearest2d", ((3, 4),), {}, (1, 2, 5, 5)),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, (1, 2, 5, 5)),
)


@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS)
def test_layers_are_pytorchs(name, args, options, shape, rng) -> None:
    ours, theirs = (getattr(m, name)(*args, **options) for m in (nn, torch.nn))
    assert repr(ours) == repr(theirs)
    x, z = both(rng.normal(size=shape))
    assert_like_pytorch(ours(x), theirs(z), [(x, z)])


# ---- places ----


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode, padding, align, rng) -> None:
    shapes = [((2, 3, 5, 7), (2, 4, 6, 2)), ((1, 2, 1, 4), (1, 3, 3, 2))]
    if mode != "bicubic":
        shapes += [((2, 3, 3, 4, 5), (2, 2, 3, 4, 3))]
    for shape, grid_shape in shapes:
        x, z = both(rng.normal(size=shape))
        grid, torch_grid = both(rng.uniform(-2.3, 2.3, size=grid_shape))
        ours = F.grid_sample(x, grid, mode, padding, align)
        theirs = TF.grid_sample(z, torch_grid, mode, padding, align)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), atol=1e-10)
        (ours * ours).sum().backward()
        (theirs * theirs).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), atol=1e-9)
        if mode == "nearest":
            assert grid.grad is None or not grid.grad.numpy().any()
        else:
            np.testing.assert_allclose(grid.grad.numpy(), torch_grid.grad.numpy(), atol=1e-8)


def test_grid_sample_of_odd_places() -> None:
    x = tw.asarray(np.arange(4.0).reshape(1, 1, 2, 2))
    grid = tw.asarray(
        [[[[np.nan, np.nan], [np.inf, 0.0], [-1e30, 1e30], [1.0, 1.0]]]], dtype=tw.float64
    )
    for mode in ("bilinear", "nearest"):
        y = F.grid_sample(x, grid, mode, "border", True).numpy().ravel()
        assert y[0] == 0.0
        assert y[3] == 3.0
        assert np.isfinite(y[2])
    assert F.grid_sample(tw.ones((0, 2, 3, 3)), tw.ones((0, 4, 4, 2))).shape == (0, 2, 4, 4)


def test_gradients_of_gradients_of_grid_sample(rng) -> None:
    x = tw.asarray(rng.normal(size=(1, 1, 3, 4))).requires_grad_()
    grid = tw.asarray(rng.uniform(-0.6, 0.6, size=(1, 2, 2, 2))).requires_grad_()
    for mode in ("bilinear", "bicubic"):
        assert tw.gradcheck(lambda x, g, m=mode: F.grid_sample(x, g, m), (x, grid))
        assert tw.gradgradcheck(lambda x, g, m=mode: F.grid_sample(x, g, m), (x, grid))


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (1, 1, 1, 6), (2, 3, 2, 4, 5)])
def test_affine_grid(size, align, rng) -> None:
    axes = len(size) - 2
    theta, z = both(rng.normal(size=(size[0], axes, axes + 1)))
    assert_like_pytorch(
        F.affine_grid(theta, size, align), TF.affine_grid(z, size, align), [(theta, z)]
    )
