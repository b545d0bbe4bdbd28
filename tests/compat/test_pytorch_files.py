"""Files that PyTorch programs save load into models of the same layers, with the same results.

A family of layers joins by a line in MODELS: how a library's `nn` makes the model, and an input.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")


def recurrent_model(nn):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru = nn.LSTM(6, 8, 2, bidirectional=True), nn.GRU(16, 4)
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.gru(self.lstm(x)[0])[0][-1])

    return Model()


MODELS = {
    "mlp": (
        lambda nn: nn.Sequential(
            nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 8, bias=False), nn.ReLU(), nn.Linear(8, 3)
        ),
        (5, 12),
    ),
    "lstm and gru": (recurrent_model, (5, 3, 6)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_models(name, dtype, tmp_path):
    make, shape = MODELS[name]
    torch.manual_seed(0)
    theirs = make(torch.nn).to(getattr(torch, dtype))
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_file(theirs.state_dict(), path)
    ours = make(tw.nn).to(getattr(tw, dtype))
    ours.load_state_dict(tw.load(path))
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    y, z = ours(tw.asarray(x)), theirs(torch.tensor(x))
    rtol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=rtol, atol=rtol)
    (y * y).sum().backward()
    (z * z).sum().backward()
    wanted = dict(theirs.named_parameters())
    assert [n for n, _ in ours.named_parameters()] == list(wanted)
    for parameter_name, parameter in ours.named_parameters():
        np.testing.assert_allclose(
            parameter.grad.numpy(), wanted[parameter_name].grad.numpy(), rtol=rtol * 10, atol=rtol
        )


@pytest.mark.parametrize("name", MODELS)
def test_our_files_load_there(name, tmp_path):
    make, _ = MODELS[name]
    ours, theirs = make(tw.nn), make(torch.nn)
    path = tmp_path / "model.safetensors"
    tw.save(ours.state_dict(), path)
    theirs.load_state_dict(safetensors_torch.load_file(path))
    for parameter_name, value in theirs.state_dict().items():
        assert ours.state_dict()[parameter_name].tolist() == value.tolist()
