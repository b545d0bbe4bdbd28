"""An epoch of training against the peers: same network, data, shuffling and arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright import train as job
from tilewright.bench.harness import OURS, Case
from tilewright.data import DataLoader

# An epoch takes a large part of a second: few rounds, each a sample of its own.
_ROUNDS = 7


def train_cases(peers: dict[str, Any], task: job.Task, options: job.Options) -> Iterator[Case]:
    """One epoch of plain SGD, eager in PyTorch and jitted in JAX."""
    contenders = {OURS: Timer(_our_epoch(task, options))}
    if "torch" in peers:
        contenders["torch"] = Timer(_torch_epoch(peers["torch"], task, options))
    if "jax" in peers:
        contenders["jax"] = Timer(_jax_epoch(peers["jax"], task, options))
    images = task.train_images.shape[0]
    name = f"{task.name} epoch, batch {options.batch}"
    yield Case(name, contenders, images, "images", rounds=_ROUNDS)


def _our_epoch(task: job.Task, options: job.Options) -> Any:
    model = job.build_model(task, options)
    optimizer = tw.optim.SGD(model.parameters(), lr=0.1)
    data = (task.train_images, task.train_labels)
    loader = DataLoader(data, options.batch, shuffle=True, seed=options.seed)
    return partial(run_epoch, model, optimizer, loader)


def run_epoch(model: tw.nn.Module, optimizer: tw.optim.Optimizer, loader: DataLoader) -> None:
    """What is timed: each batch forward and backward, a step, and the loss read."""
    for x, y in loader:
        loss = tw.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()


def _torch_epoch(torch: Any, task: job.Task, options: job.Options) -> Any:
    nn = torch.nn
    pixels = task.train_images.shape[1]
    model = nn.Sequential(
        nn.Linear(pixels, options.hidden), nn.ReLU(), nn.Linear(options.hidden, task.classes)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = torch.from_numpy(task.train_images.numpy())
    labels = torch.from_numpy(task.train_labels.numpy())

    def epoch() -> None:
        # Indexing whole batches; torch's own DataLoader would cost it several times more.
        for rows in torch.randperm(len(images)).split(options.batch):
            loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()

    return epoch


def _jax_epoch(jax: Any, task: job.Task, options: job.Options) -> Any:
    jnp = jax.numpy
    images = jnp.asarray(task.train_images.numpy())
    labels = jnp.asarray(task.train_labels.numpy(), "int32")
    model = job.build_model(task, options)
    weights = [jnp.asarray(p.detach().numpy()) for p in model.parameters()]

    def loss_of(weights: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = weights
        logits = jax.nn.relu(x @ w1.T + b1) @ w2.T + b2
        scores = jax.nn.log_softmax(logits)
        return -jnp.mean(jnp.take_along_axis(scores, y[:, None], axis=1))

    def sgd(weights: Any, rows: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(weights, images[rows], labels[rows])
        return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)], loss

    step = jax.jit(sgd)
    key = jax.random.PRNGKey(options.seed)

    def epoch() -> None:
        nonlocal key, weights
        key, draw = jax.random.split(key)
        order = jax.random.permutation(draw, jnp.arange(images.shape[0], dtype="int32"))
        for start in range(0, images.shape[0], options.batch):
            weights, loss = step(weights, order[start : start + options.batch])
            loss.item()

    return epoch
