"""What reading batches from files costs: epochs from memory against epochs from files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright import train as job
from tilewright.bench.harness import OURS, Case
from tilewright.bench.train import run_epoch
from tilewright.data import DataLoader, FileTensor

# An epoch takes a large part of a second: few rounds, each a sample of its own.
_ROUNDS = 7
_BATCH = 64
_HIDDEN = 256

_Source = tuple[Any, Any]


def loader_cases(peers: dict[str, Any], task: job.Task) -> Iterator[Case]:
    """Epochs of training and of loading alone; files are in the page cache after the first.

    Ours reads files two batches ahead. Beside it: the same from memory, from files without reading
    ahead, and PyTorch's DataLoader over the same file, mapped.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.safetensors"
        memory = (task.train_images, task.train_labels)
        tw.save({"images": memory[0], "labels": memory[1]}, path)
        files = _from_safetensors(path)
        for shuffle in (True, False):
            order = "shuffled" if shuffle else "in order"
            images = len(memory[0])
            training = _contenders(partial(_training, task, shuffle), memory, files)
            yield Case(f"{task.name} training, {order}", training, images, "images", _ROUNDS)
            loading = _contenders(partial(_loading, shuffle), memory, files)
            if "torch" in peers:
                loading["torch"] = Timer(_torch_loading(peers["torch"], files, shuffle))
            yield Case(f"{task.name} loading, {order}", loading, images, "images", _ROUNDS)


def _from_safetensors(path: Path) -> tuple[FileTensor, FileTensor]:
    images, labels = (FileTensor.from_safetensors(path, name) for name in ("images", "labels"))
    return images, labels


def _contenders(
    epoch: Callable[[_Source, int], Callable[[], None]], memory: _Source, files: _Source
) -> dict[str, Timer]:
    return {
        OURS: Timer(epoch(files, 2)),
        "memory": Timer(epoch(memory, 0)),
        "prefetch=0": Timer(epoch(files, 0)),
    }


def _training(task: job.Task, shuffle: bool, data: _Source, ahead: int) -> Callable[[], None]:
    options = job.Options(batch=_BATCH, hidden=_HIDDEN)
    model = job.build_model(task, options)
    optimizer = job.build_optimizer(model, options)
    loader = DataLoader(data, _BATCH, shuffle, seed=0, prefetch=ahead)
    return partial(run_epoch, model, optimizer, loader)


def _loading(shuffle: bool, data: _Source, ahead: int) -> Callable[[], None]:
    loader = DataLoader(data, _BATCH, shuffle, seed=0, prefetch=ahead)

    def epoch() -> None:
        for _ in loader:
            pass

    return epoch


def _torch_loading(torch: Any, files: _Source, shuffle: bool) -> Callable[[], None]:
    rows = torch.utils.data.TensorDataset(*(_mapped(torch, file) for file in files))
    loader = torch.utils.data.DataLoader(rows, _BATCH, shuffle)

    def epoch() -> None:
        for _ in loader:
            pass

    return epoch


def _mapped(torch: Any, file: FileTensor) -> Any:
    """A PyTorch tensor over the part of a mapped file that a FileTensor stands for."""
    end = file.offset_bytes + file.nbytes
    content = torch.from_file(file.path, size=end, dtype=torch.uint8)[file.offset_bytes :]
    return content.view(getattr(torch, file.dtype.name)).reshape(file.shape)
