"""Networks trained here and in PyTorch from the same weights on the same batches come out alike."""

import math

import numpy as np
import pytest

import tilewright as tw
from tilewright import train as job
from tilewright.bench.networks.torch_models import twin
from tilewright.bench.networks.training import likeliest, likeliest_of_torch, training_cases
from tilewright.train.models import CharLstm, Cnn, Gpt

torch = pytest.importorskip("torch")

STEPS, HELD, BATCH = 80, 5, 16


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def text_batches(rng, symbols, length, count):
    """A text that can be learnt: each symbol follows from the one before, but for some noise."""
    follows = rng.permutation(symbols)
    text = np.zeros((count, BATCH, length + 1), np.int64)
    text[..., 0] = rng.integers(0, symbols, text.shape[:2])
    for i in range(length):
        noise = rng.random(text.shape[:2]) < 0.1
        text[..., i + 1] = np.where(
            noise, rng.integers(0, symbols, noise.shape), follows[text[..., i]]
        )
    return [(part[:, :-1], part[:, 1:]) for part in text]


def image_batches(_):
    task = job.load_images("digits")
    images, labels = task.train_images.numpy(), task.train_labels.numpy()
    rows = [slice(i * BATCH, (i + 1) * BATCH) for i in range(STEPS + HELD)]
    return [(images[part], labels[part]) for part in rows]


def flat(logits):
    logits = logits[0] if isinstance(logits, tuple) else logits
    return logits.reshape((-1, logits.shape[-1]))


def text(rng):
    return text_batches(rng, 20, 24, STEPS + HELD)


# Adam turns gradients that are zero but for rounding, as pixels of the background have, into whole
# steps: the convolutional network is trained with momentum.
CASES = {
    "cnn": (lambda: Cnn(8, 32, 10), image_batches, "SGD", {"lr": 0.05, "momentum": 0.9}),
    "lstm": (lambda: CharLstm(20, 32, 2), text, "Adam", {"lr": 5e-3}),
    "gpt": (lambda: Gpt(20, 32, 2, 24), text, "AdamW", {"lr": 5e-3}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_validation_loss_is_pytorchs(name, rng):
    make, make_batches, optimizer, settings = CASES[name]
    model, batches = make(), make_batches(rng)
    theirs = twin(torch, model)
    ours_steps = getattr(tw.optim, optimizer)(model.parameters(), **settings)
    their_steps = getattr(torch.optim, optimizer)(theirs.parameters(), **settings)
    first = None
    for x, y in batches[:STEPS]:
        loss = tw.cross_entropy(flat(model(tw.asarray(x))), tw.asarray(y.reshape(-1)))
        ours_steps.zero_grad()
        loss.backward()
        ours_steps.step()
        expected = torch.nn.functional.cross_entropy(
            flat(theirs(torch.tensor(x))), torch.tensor(y.reshape(-1))
        )
        their_steps.zero_grad()
        expected.backward()
        their_steps.step()
        first = first or loss.item()
    held = batches[STEPS:]
    with tw.no_grad(), torch.no_grad():
        ours = [
            tw.cross_entropy(flat(model(tw.asarray(x))), tw.asarray(y.reshape(-1))).item()
            for x, y in held
        ]
        pytorchs = [
            torch.nn.functional.cross_entropy(
                flat(theirs(torch.tensor(x))), torch.tensor(y.reshape(-1))
            ).item()
            for x, y in held
        ]
    assert math.isclose(sum(ours), sum(pytorchs), rel_tol=0.01)
    assert sum(ours) / len(ours) < 0.8 * first  # they learnt something


def test_the_benchmark_runs_both():
    cases = list(training_cases({"torch": torch}))
    wide = [case.name for case in cases if "bfloat16" not in case.name]
    assert [name.partition(" ")[0] for name in wide] == ["MNIST", "character", *["GPT"] * 3]
    for case in cases:
        assert list(case.contenders) == ["tilewright", "torch"]
        for timer in case.contenders.values():
            assert timer.timeit(1) > 0


def test_both_write_the_same_with_a_cache():
    tw.manual_seed(3)
    model = Gpt(20, 32, 2, 24)
    for value in model.parameters():
        value.data = 4 * value.detach()  # far from even odds
    written = likeliest(model)
    assert written == likeliest_of_torch(torch, twin(torch, model))
    assert len(written) == 24
    assert len(set(written)) > 2


def test_rotary_positions_are_those_behind_a_cache_too():
    tw.manual_seed(3)
    model = Gpt(20, 32, 2, 12, rotary=True)
    assert "wpe.weight" not in dict(model.named_parameters())
    for value in model.parameters():
        value.data = 4 * value.detach()
    tokens = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
    with tw.no_grad():
        whole = model(tw.asarray([tokens]))[0]
        logits, cache = model.follow(tokens[:4])
        steps = [logits]
        for token in tokens[4:]:
            logits, cache = model.follow([token], cache)
            steps.append(logits)
    assert abs(tw.stack(steps) - whole[3:]).max().item() < 1e-4
    swapped = [1, 3, *tokens[2:]]  # places matter
    assert abs(model(tw.asarray([swapped]))[0, -1] - whole[-1]).max().item() > 1e-3
