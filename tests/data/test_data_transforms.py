"""Transforms of image batches, each held against a loop over images in NumPy."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import data
from tilewright.data.transforms import crop, pad

SHAPES = [(6, 5, 7), (6, 1, 5, 7), (4, 3, 8, 8), (0, 3, 4, 4)]
TYPES = [tw.float32, tw.uint8, tw.float16]


def images(shape, dtype, rng):
    return tw.asarray(rng.integers(0, 200, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_crops_are_the_windows_at_their_places(shape, dtype, rng):
    x = images(shape, dtype, rng)
    tops = tw.asarray(rng.integers(0, 3, shape[0]))
    lefts = tw.asarray(rng.integers(0, 2, shape[0]))
    y = crop(x, (2, 3), tops, lefts)
    places = zip(x.numpy(), tops.tolist(), lefts.tolist(), strict=True)
    expected = [image[..., t : t + 2, w : w + 3] for image, t, w in places]
    assert y.dtype == dtype
    assert y.shape == (*shape[:-2], 2, 3)
    assert y.tolist() == [image.tolist() for image in expected]


@pytest.mark.parametrize("shape", SHAPES)
def test_padding(shape, rng):
    x = images(shape, tw.float32, rng)
    sides = [(0, 0)] * (len(shape) - 2) + [(2, 2)] * 2
    np.testing.assert_array_equal(
        pad(x, 2, 3.0).numpy(), np.pad(x.numpy(), sides, constant_values=3)
    )


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_shifts_reach_every_place_and_fill_with_zeros(dtype):
    x = tw.zeros((4000, 1, 5, 5))
    x[:, :, 2, 2] = 7
    y = data.RandomShift(2, seed=0)(x.astype(dtype))
    assert y.dtype == dtype
    assert y.shape == x.shape
    where = np.argwhere(y.numpy() == 7)
    assert len(where) == 4000
    counts = np.zeros((5, 5))
    np.add.at(counts, tuple(where[:, 2:].T), 1)
    # 160 in each of the 25 places, give or take five standard deviations of 12.4.
    assert np.abs(counts - 160).max() < 62


def test_random_crops_with_padding():
    x = tw.ones((500, 3, 6, 4))
    y = data.RandomCrop((5, 3), padding=1, fill=9.0, seed=3)(x)
    assert y.shape == (500, 3, 5, 3)
    assert set(np.unique(y.numpy())) == {1.0, 9.0}
    assert (y[:, 0] == y[:, 2]).all().item()  # channels move together
    assert data.RandomCrop(4, seed=3)(x).shape == (500, 3, 4, 4)


def test_flips():
    x = tw.arange(1000 * 6).reshape((1000, 2, 3))
    y = data.RandomHorizontalFlip(0.25, seed=1)(x).numpy()
    flipped = [(a == b[:, ::-1]).all() for a, b in zip(y, x.numpy(), strict=True)]
    kept = [(a == b).all() for a, b in zip(y, x.numpy(), strict=True)]
    assert all(a != b for a, b in zip(flipped, kept, strict=True))
    # 250 of 1,000, give or take five standard deviations of 13.7.
    assert abs(sum(flipped) - 250) < 69
    assert data.RandomHorizontalFlip(0.0)(x).tolist() == x.tolist()


def test_normalising():
    x = tw.asarray(np.random.default_rng(0).random((4, 3, 5, 5)), dtype=tw.float32)
    mean, std = [0.5, 0.1, 0.2], [1.0, 2.0, 0.5]
    y = data.Normalize(mean, std)(x)
    expected = (x.numpy() - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    assert y.dtype == tw.float32
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6, atol=1e-7)
    assert data.Normalize(1, 2)(tw.ones((2, 3, 3))).tolist() == tw.zeros((2, 3, 3)).tolist()


def test_a_seed_gives_the_same_changes_again():
    x = tw.randn(8, 1, 9, 9)

    def changed(transform):
        return [transform(x).tolist() for _ in range(2)]

    def augment():
        return data.Compose([data.RandomShift(2, seed=4), data.RandomHorizontalFlip(seed=5)])

    first, second = changed(augment())
    assert first != second
    assert changed(augment()) == [first, second]
    shared = tw.Generator(1)
    assert (
        changed(data.RandomCrop(4, generator=shared))[0]
        != changed(data.RandomCrop(4, generator=shared))[0]
    )


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: data.RandomShift(-1), ValueError, "RandomShift: pixels must be at least 0"),
        (lambda: data.RandomCrop(0), ValueError, "RandomCrop: size must be at least 1"),
        (lambda: data.RandomCrop(9)(tw.zeros((1, 8, 8))), ValueError, r"windows of \(9, 9\) are"),
        (lambda: data.RandomHorizontalFlip(2), ValueError, r"p lies in \[0, 1\], got 2"),
        (lambda: data.RandomHorizontalFlip(seed=1, generator=tw.Generator(1)), ValueError, "both"),
        (lambda: data.RandomShift(1)(tw.zeros((8, 8))), ValueError, r"got shape \(8, 8\)"),
        (lambda: data.RandomShift(1)([1]), ValueError, "got list"),
        (lambda: data.Normalize(0, 0), ValueError, "std must not be 0"),
        (lambda: data.Normalize("a", 1), TypeError, "mean is a number or one a channel"),
        (lambda: data.Normalize([0, 0], 1)(tw.zeros((1, 3, 2, 2))), ValueError, "images of 3"),
        (lambda: data.Normalize(0, 1)(tw.zeros((1, 2, 2), dtype=tw.uint8)), TypeError, "uint8"),
        (lambda: data.Compose([3]), TypeError, "Compose: int is no transform"),
    ],
)
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize(
    ("size", "tops", "lefts", "message"),
    [
        ((2, 3), [0, -1], [0, 0], r"tops lie in \[0, 3\], got \[0, -1\]"),
        ((2, 3), [0, 4], [0, 0], r"tops lie in \[0, 3\], got \[0, 4\]"),
        ((2, 3), [0, 0], [5, 0], r"lefts lie in \[0, 4\], got \[5, 0\]"),
        ((2, 3), [0], [0, 0], r"tops of shape \(1,\), for 2 images"),
        ((6, 3), [0, 0], [0, 0], r"windows of \(6, 3\) with tops"),
        ((-1, 3), [0, 0], [0, 0], "size must be at least 1, got -1"),
    ],
)
def test_windows_outside_of_their_images_are_refused(size, tops, lefts, message):
    """They would show what lies beside them in memory, of other images as well."""
    with pytest.raises(ValueError, match=message):
        crop(tw.zeros((2, 3, 5, 7)), size, tw.asarray(tops), tw.asarray(lefts))


def test_negative_padding_is_refused():
    with pytest.raises(ValueError, match="pad: pixels must be at least 0, got -1"):
        pad(tw.zeros((2, 3, 5, 7)), -1)
