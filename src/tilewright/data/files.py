"""Data sets from files, by the file's ending."""

from __future__ import annotations

import os
from typing import Any

from tilewright import io
from tilewright.data.csv import read_csv
from tilewright.data.dataset import TensorDataset
from tilewright.data.file import FileTensor
from tilewright.data.npy import read_npy, read_npz

_ENDINGS = (".csv", ".npy", ".npz", ".safetensors", ".csv.gz")


def from_file(path: str | os.PathLike[str], *names: str, in_memory: bool = True) -> TensorDataset:
    """The tensors of a .safetensors, .npz, .npy, .csv or .csv.gz file as one data set.

    `names` chooses tensors, or columns, in the order that items have them (default: all, in the
    file's order; a .npy file holds one, without a name). With `in_memory=False` the rows stay in
    the file until they are asked for (.safetensors and .npy). Raises FileNotFoundError, ValueError
    for a damaged file, for another ending and where first axes differ, KeyError for a name that is
    not in the file.

    >>> import tempfile, tilewright as tw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tw.save({"x": tw.zeros((3, 2)), "y": tw.arange(3)}, f"{folder}/set.safetensors")
    ...     tw.data.from_file(f"{folder}/set.safetensors", "x", "y")
    TensorDataset(float32 (3, 2), int64 (3,))
    """
    name = os.fspath(path)
    ending = next((each for each in _ENDINGS if name.lower().endswith(each)), None)
    if ending is None:
        raise ValueError(f"from_file: {name}: the ending is one of {', '.join(_ENDINGS)}")
    if ending == ".npy":
        if names:
            raise KeyError(f"{name}: a .npy file holds one array, without a name")
        return TensorDataset(read_npy(path) if in_memory else FileTensor.from_npy(path))
    if not in_memory and ending != ".safetensors":
        raise ValueError(
            f"from_file: {name}: rows of a {ending} file cannot be read alone; save it with save()"
        )
    if not in_memory:
        chosen = names or tuple(io.names(path))
        return TensorDataset(*(FileTensor.from_safetensors(path, each) for each in chosen))
    return TensorDataset(*_chosen(name, _read(path, ending), names))


def _read(path: str | os.PathLike[str], ending: str) -> dict[str, Any]:
    if ending.startswith(".csv"):
        return read_csv(path)
    return read_npz(path) if ending == ".npz" else io.load(path)


def _chosen(path: str, tensors: dict[str, Any], names: tuple[str, ...]) -> list[Any]:
    for name in names:
        if name not in tensors:
            known = ", ".join(map(repr, tensors)) or "none"
            raise KeyError(f"{path}: no tensor {name!r}; there are: {known}")
    return [tensors[name] for name in names or tensors]
