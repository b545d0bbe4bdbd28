"""Random changes of image batches, one draw an image, each a few native operations a batch.

Images are (n, height, width) or (n, channels, height, width), of any dtype. Without `seed` or
`generator` the draws follow `tw.manual_seed`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tilewright as tw
from tilewright import Generator, Tensor
from tilewright.data.checks import generator_of, whole

Transform = Callable[[Tensor], Tensor]


class Compose:
    """Transforms one after the other.

    >>> import tilewright as tw
    >>> from tilewright.data import Compose, Normalize, RandomShift
    >>> augment = Compose([RandomShift(2, seed=0), Normalize(0.5, 0.25)])
    >>> augment(tw.ones((8, 1, 28, 28))).shape
    (8, 1, 28, 28)
    """

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = list(transforms)
        for transform in self.transforms:
            if not callable(transform):
                raise TypeError(f"Compose: {type(transform).__name__} is no transform")

    def __call__(self, images: Tensor) -> Tensor:
        for transform in self.transforms:
            images = transform(images)
        return images


class Normalize:
    """(image - mean) / std, with one number each, or one a channel.

    >>> import tilewright as tw
    >>> tw.data.Normalize([0.0, 1.0], [1.0, 2.0])(tw.ones((1, 2, 1, 1))).tolist()
    [[[[1.0]], [[0.0]]]]
    """

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        self.mean, self.std = _a_channel("mean", mean), _a_channel("std", std)
        if any(value == 0 for value in _listed(self.std)):
            raise ValueError("Normalize: std must not be 0")

    def __call__(self, images: Tensor) -> Tensor:
        channels = _sizes("Normalize", images)[0]
        for name, value in (("mean", self.mean), ("std", self.std)):
            if value.size not in (1, channels):
                raise ValueError(
                    f"Normalize: {name} of {value.size} channels does not fit images of {channels}"
                )
        if not images.is_floating_point():
            raise TypeError(
                f"Normalize: images are {images.dtype.name}; convert them with astype()"
            )
        mean, std = self.mean.astype(images.dtype), self.std.astype(images.dtype)
        return (images - mean) / std


class RandomHorizontalFlip:
    """Mirrors each image with probability `p`.

    >>> import tilewright as tw
    >>> tw.data.RandomHorizontalFlip(1.0)(tw.asarray([[[1, 2, 3]]])).tolist()
    [[[3, 2, 1]]]
    """

    def __init__(
        self, p: float = 0.5, seed: int | None = None, generator: Generator | None = None
    ) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"RandomHorizontalFlip: p lies in [0, 1], got {p}")
        self.p = p
        self.generator = generator_of("RandomHorizontalFlip", seed, generator)

    def __call__(self, images: Tensor) -> Tensor:
        _sizes("RandomHorizontalFlip", images)
        draws = tw.rand(len(images), generator=self.generator)
        chosen = (draws < self.p).reshape((-1,) + (1,) * (images.ndim - 1))
        return tw.where(chosen, tw.flip(images, axis=-1), images)


class RandomCrop:
    """A window of `size` pixels (height, width, or one number for both) at a random place of each
    image, which gets `padding` pixels of `fill` around it first.

    >>> import tilewright as tw
    >>> tw.data.RandomCrop(28, padding=4)(tw.zeros((16, 3, 28, 28))).shape
    (16, 3, 28, 28)
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        padding: int = 0,
        fill: float = 0.0,
        seed: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        height, width = size if isinstance(size, (tuple, list)) else (size, size)
        self.size = (
            whole("RandomCrop", "size", height, 1),
            whole("RandomCrop", "size", width, 1),
        )
        self.padding, self.fill = whole("RandomCrop", "padding", padding, 0), fill
        self.generator = generator_of("RandomCrop", seed, generator)

    def __call__(self, images: Tensor) -> Tensor:
        _, *sizes = _sizes("RandomCrop", images)
        free = [size + 2 * self.padding - part for size, part in zip(sizes, self.size, strict=True)]
        if min(free) < 0:
            raise ValueError(
                f"RandomCrop: windows of {self.size} are larger than images of {tuple(sizes)} "
                f"with {self.padding} pixels around them"
            )
        tops, lefts = (
            tw.randint(0, room + 1, (len(images),), generator=self.generator) for room in free
        )
        return _windows(pad(images, self.padding, self.fill), self.size, tops, lefts)


class RandomShift:
    """Moves each image by up to `pixels` in both directions; what comes in is `fill`.

    >>> import tilewright as tw
    >>> tw.data.RandomShift(2)(tw.ones((5, 28, 28))).shape
    (5, 28, 28)
    """

    def __init__(
        self,
        pixels: int,
        fill: float = 0.0,
        seed: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.pixels, self.fill = whole("RandomShift", "pixels", pixels, 0), fill
        self.generator = generator_of("RandomShift", seed, generator)

    def __call__(self, images: Tensor) -> Tensor:
        _, height, width = _sizes("RandomShift", images)
        window = RandomCrop((height, width), self.pixels, self.fill, generator=self.generator)
        return window(images)


def pad(images: Tensor, pixels: int, fill: float = 0.0) -> Tensor:
    """The images with so many pixels of `fill` on all four sides."""
    if not whole("pad", "pixels", pixels, 0):
        return images
    *before, height, width = images.shape
    sizes = (*before, height + 2 * pixels, width + 2 * pixels)
    padded = tw.full(sizes, _checked_fill(fill, images.dtype), dtype=images.dtype)
    padded[..., pixels : pixels + height, pixels : pixels + width] = images
    return padded


def _checked_fill(fill: Any, dtype: Any) -> Any:
    """The fill; raises ValueError for one that pixels of the type would not keep."""
    if not isinstance(fill, (bool, int, float)):
        raise TypeError(f"pad: fill is a number, got {fill!r}")
    if dtype.name.startswith(("float", "bfloat", "complex")):
        kept = not math.isfinite(fill) or abs(fill) <= tw.finfo(dtype).max
    elif dtype == tw.bool:
        kept = fill in (0, 1)
    else:
        limits = tw.iinfo(dtype)
        kept = limits.min <= fill <= limits.max and fill == int(fill)
    if not kept:
        raise ValueError(f"pad: fill {fill} is no {dtype.name}, the type of the images")
    return fill


def crop(images: Tensor, size: tuple[int, int], tops: Tensor, lefts: Tensor) -> Tensor:
    """Of each image the window of `size` that begins at its `tops` and `lefts`.

    Raises ValueError for windows that do not lie in their images.
    """
    count, (_, height, width) = len(images), _sizes("crop", images)
    for name, starts, part, extent in (
        ("tops", tops, size[0], height),
        ("lefts", lefts, size[1], width),
    ):
        if starts.shape != (count,) or whole("crop", "size", part, 1) > extent:
            raise ValueError(
                f"crop: windows of {size} with {name} of shape {starts.shape}, for {count} images "
                f"of {(height, width)}"
            )
        if count and not 0 <= starts.min().item() <= starts.max().item() <= extent - part:
            raise ValueError(f"crop: {name} lie in [0, {extent - part}], got {starts.tolist()}")
    return _windows(images, size, tops, lefts)


def _windows(images: Tensor, size: tuple[int, int], tops: Tensor, lefts: Tensor) -> Tensor:
    count, (_, height, width) = len(images), _sizes("crop", images)
    plane = height * width
    pixels = tw.arange(size[0]).reshape((-1, 1)) * width + tw.arange(size[1]).reshape((1, -1))
    planes = images.size // max(count * plane, 1)
    starts = tw.arange(count * planes).reshape((count, planes)) * plane
    starts = starts + (tops * width + lefts).reshape((-1, 1))
    places = starts.reshape((count, planes, 1, 1)) + pixels
    taken = tw.take(images.reshape((-1,)), places.reshape((-1,)), axis=0)
    return taken.reshape((*images.shape[:-2], *size))


def _sizes(who: str, images: Tensor) -> tuple[int, int, int]:
    """Channels, height and width."""
    if not isinstance(images, Tensor) or images.ndim not in (3, 4):
        told = f"shape {images.shape}" if isinstance(images, Tensor) else type(images).__name__
        raise ValueError(
            f"{who}: images are (n, height, width) or (n, channels, height, width), got {told}"
        )
    return (images.shape[1] if images.ndim == 4 else 1, images.shape[-2], images.shape[-1])


def _a_channel(name: str, value: Any) -> Tensor:
    numbers = list(value) if isinstance(value, (tuple, list)) else [value]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise TypeError(f"Normalize: {name} is a number or one a channel, got {value!r}")
    return tw.asarray(list(map(float, numbers)), dtype=tw.float64).reshape((-1, 1, 1))


def _listed(x: Tensor) -> list[float]:
    numbers: list[float] = x.reshape((-1,)).tolist()
    return numbers
