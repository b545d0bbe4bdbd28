"""MNIST: finds, checks and, when asked, downloads the four files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from tilewright import Tensor, _core, uint8
from tilewright._engine.cache import cache_folder, make_folder
from tilewright._engine.optional_packages import require
from tilewright.data.idx import read_idx

# SHA-256 of the compressed files as published; checked on download only, so that equivalent files
# read too.
_DOWNLOADS = {
    "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_REMEDY = (
    "give their folder as path (tilewright train mnist --data DIR), set TILEWRIGHT_DATA, "
    "or call mnist(download=True) while on line"
)


class Mnist(NamedTuple):
    """Images (n, 28, 28) uint8 with grey levels 0 to 255, labels (n,) uint8 from 0 to 9."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def mnist(path: str | os.PathLike[str] | None = None, download: bool = False) -> Mnist:
    """Reads the four MNIST files (60,000 and 10,000 images), compressed with gzip or not.

    `path` is their folder, or one that has them in a subfolder mnist; None stands for
    TILEWRIGHT_DATA, then the user's cache folder. `download` fetches what is missing into that
    folder (needs pooch), checked by SHA-256. Raises FileNotFoundError for missing files and
    ValueError that says what is wrong with one.
    """
    folder = Path(path) if path is not None else default_folder()
    if not download and not folder.is_dir():
        raise FileNotFoundError(f"mnist: no folder {folder}; {_REMEDY}")
    folder = _with_files(folder)
    train = _read_split(folder, "train", download)
    test = _read_split(folder, "t10k", download)
    return Mnist(*train, *test)


def default_folder(name: str = "mnist") -> Path:
    """TILEWRIGHT_DATA where set, else the user's cache folder for the data set."""
    named = _core.env_text("DATA")
    return Path(named) if named else Path(cache_folder()) / name


def missing_files(folder: Path) -> list[str]:
    """Names of the MNIST files that lie neither in `folder` nor in its subfolder mnist."""
    folder = _with_files(folder)
    return [
        name for name in _DOWNLOADS if not any((folder / held).exists() for held in _names(name))
    ]


def _with_files(folder: Path) -> Path:
    subfolder = folder / "mnist"
    holds_files = any((folder / held).exists() for name in _DOWNLOADS for held in _names(name))
    return subfolder if subfolder.is_dir() and not holds_files else folder


def _names(name: str) -> tuple[str, str]:
    """File names under which a file may lie: plain first, then compressed."""
    return name, name + ".gz"


def _read_split(folder: Path, split: str, download: bool) -> tuple[Tensor, Tensor]:
    image_path = _find(folder, f"{split}-images-idx3-ubyte", download)
    label_path = _find(folder, f"{split}-labels-idx1-ubyte", download)
    images = read_idx(image_path, (None, 28, 28), dtype=uint8)
    labels = read_idx(label_path, (None,), dtype=uint8)
    if images.shape[0] != labels.shape[0]:
        raise ValueError(
            f"mnist: {image_path} has {images.shape[0]} images, "
            f"{label_path} {labels.shape[0]} labels"
        )
    if images.shape[0] == 0:
        raise ValueError(f"{image_path}: holds 0 images")
    if (largest := int(labels.max().item())) > 9:
        raise ValueError(f"{label_path}: labels go from 0 to 9, found {largest}")
    return images, labels


def _find(folder: Path, name: str, download: bool) -> Path:
    for candidate in _names(name):
        if (folder / candidate).exists():
            return folder / candidate
    if download:
        return _download(folder, name)
    raise FileNotFoundError(f"mnist: no {name}[.gz] in {folder}; {_REMEDY}")


def _download(folder: Path, name: str) -> Path:
    pooch: Any = require("pooch", purpose="downloading MNIST", install="tilewright[data]")
    make_folder(os.fspath(folder))
    return Path(
        pooch.retrieve(
            f"{_MIRROR}{name}.gz",
            known_hash=f"sha256:{_DOWNLOADS[name]}",
            fname=f"{name}.gz",
            path=folder,
        )
    )
