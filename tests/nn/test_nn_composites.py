"""Layers made of layers call their children: what stands in a child's place, or is attached to it,
is what runs and what is trained."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import nn

X = (5, 3, 8)  # rows, sequences, features


def stack(kind: str, **options: Any) -> nn.Module:
    layer = getattr(nn, f"Transformer{kind}Layer")(8, 2, 12, 0.0, dtype=tw.float64, **options)
    return getattr(nn, f"Transformer{kind}")(layer, 2, nn.LayerNorm(8, dtype=tw.float64))


def of_one(model: nn.Module, x: tw.Tensor) -> tw.Tensor:
    return model(x)


def of_two(model: nn.Module, x: tw.Tensor) -> tw.Tensor:
    return model(x, x * 0.5)


COMPOSITES: dict[str, tuple[Callable[[], nn.Module], Callable[..., tw.Tensor]]] = {
    "sequential": (
        lambda: nn.Sequential(
            nn.Linear(8, 6, dtype=tw.float64),
            nn.ReLU(),
            nn.Sequential(nn.LayerNorm(6, dtype=tw.float64), nn.Linear(6, 4, dtype=tw.float64)),
        ),
        of_one,
    ),
    "attention": (
        lambda: nn.MultiheadAttention(8, 2, dtype=tw.float64),
        lambda model, x: model(x, x, x)[0],
    ),
    "encoder": (lambda: stack("Encoder"), of_one),
    "encoder, norms first": (lambda: stack("Encoder", norm_first=True), of_one),
    "encoder, gelu": (lambda: stack("Encoder", activation="gelu"), of_one),
    "decoder": (lambda: stack("Decoder"), of_two),
    "decoder, norms first": (lambda: stack("Decoder", norm_first=True), of_two),
    "transformer": (
        lambda: nn.Transformer(8, 2, 1, 1, 12, 0.0, dtype=tw.float64),
        of_two,
    ),
}


def leaves(model: nn.Module) -> list[str]:
    return [name for name, module in model.named_modules() if name and not [*module.children()]]


def doubled(module: nn.Module) -> nn.Module:
    """The same layer as an instance of a subclass whose results are twice as large."""

    class Doubled(type(module)):  # type: ignore[misc]
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return super().forward(*args, **kwargs) * 2

    made = copy.copy(module)
    made.__class__ = Doubled
    return made


class Twice(nn.Module):
    def forward(self, x: tw.Tensor) -> tw.Tensor:
        return x * 2


class Adapter(nn.Module):
    """Around a layer, as adapters of low rank are; has no weight of its own."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: tw.Tensor) -> tw.Tensor:
        return self.inner(x) * 2


def patched(module: nn.Module) -> nn.Module:
    own = module.forward
    module.forward = lambda *args, **kwargs: own(*args, **kwargs) * 2  # type: ignore[method-assign]
    return module


def hooked(module: nn.Module) -> nn.Module:
    module.register_forward_hook(lambda module, args, result: result * 2)
    return module


def parametrized(module: nn.Module) -> nn.Module:
    for name, _ in list(module.named_parameters(recurse=False)):
        nn.utils.parametrize.register_parametrization(module, name, Twice())
    return module


# Each makes a child's results twice as large.
CHANGES = {f.__name__: f for f in (doubled, Adapter, patched, hooked, parametrized)}


@pytest.mark.parametrize("name", COMPOSITES)
def test_a_changed_child_is_what_runs(name: str, rng: np.random.Generator) -> None:
    make, call = COMPOSITES[name]
    tw.manual_seed(4)
    model = make()
    x = tw.tensor(rng.normal(size=X))
    for path in leaves(model):
        reference = copy.deepcopy(model)
        child = reference.get_submodule(path)
        weights = dict(child.named_parameters(recurse=False))
        with tw.no_grad():  # linear in weight and bias: both doubled double the result
            for parameter in weights.values():
                parameter.mul_(2)
        if not weights:
            reference.set_submodule(path, nn.Sequential(child, Twice()))
        for title, change in CHANGES.items():
            if title == "parametrized" and not weights:
                continue
            other = copy.deepcopy(model)
            other.set_submodule(path, change(other.get_submodule(path)))
            got, expected = call(other, x), call(reference, x)
            assert np.allclose(got.detach(), expected.detach(), rtol=1e-12, atol=1e-13), (
                path,
                title,
            )
            got.sum().backward()
            for each, parameter in other.named_parameters():
                assert parameter.grad is not None, (path, title, each)


@pytest.mark.parametrize("name", COMPOSITES)
def test_observing_a_child_changes_no_bit(name: str, rng: np.random.Generator) -> None:
    make, call = COMPOSITES[name]
    tw.manual_seed(4)
    model = make()
    x = tw.tensor(rng.normal(size=X))
    call(model, x).sum().backward()
    for path in leaves(model):
        other = copy.deepcopy(model)
        other.zero_grad()
        seen: list[tuple[int, ...]] = []
        other.get_submodule(path).register_forward_hook(
            lambda module, args, result, seen=seen: seen.append(result.shape)
        )
        got = call(other, x)
        assert seen, path
        assert np.array_equal(got.detach(), call(model, x).detach()), path
        got.sum().backward()
        for (each, ours), theirs in zip(other.named_parameters(), model.parameters(), strict=True):
            assert np.array_equal(ours.grad, theirs.grad), (path, each)


@pytest.mark.parametrize("kind", ["Encoder", "Decoder"])
def test_norms_of_weights_in_a_layer_are_trained(kind: str, rng: np.random.Generator) -> None:
    make, call = COMPOSITES[kind.lower()]
    x = tw.tensor(rng.normal(size=X))
    for wrap in (nn.utils.weight_norm, nn.utils.parametrizations.weight_norm):
        tw.manual_seed(4)
        model = make()
        before = call(model, x)
        for path in ("layers.0.linear1", "layers.1.linear2"):
            wrap(model.get_submodule(path))
        after = call(model, x)
        assert np.allclose(after.detach(), before.detach(), rtol=1e-12, atol=1e-13)
        after.sum().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())


class Swapped(nn.Module):
    """A layer whose parameters of forward stand in another order."""

    def forward(self, src: tw.Tensor, is_causal: bool = False, **masks: Any) -> tw.Tensor:
        assert is_causal is False
        (self.mask,) = (masks[name] for name in ("src_mask",))
        return src + masks["src_mask"].sum()


def test_masks_are_passed_by_name(rng: np.random.Generator) -> None:
    x, mask = tw.tensor(rng.normal(size=X)), tw.ones((5, 5), dtype=tw.float64)
    assert np.allclose(nn.TransformerEncoder(Swapped(), 2)(x, mask), np.asarray(x) + 50)


def test_custom_stacks_of_length_0_are_taken(rng: np.random.Generator) -> None:
    class Nothing(nn.Sequential):
        def forward(self, x: tw.Tensor, *memory: tw.Tensor, **masks: Any) -> tw.Tensor:
            return x

    x = tw.tensor(rng.normal(size=X))
    model = nn.Transformer(8, 2, custom_encoder=Nothing(), custom_decoder=Nothing())
    assert not [*model.parameters()]
    assert np.array_equal(model(x, x * 2), x * 2)


def test_blocks_of_transformer_layers_that_a_class_defines_run() -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(3).normal(size=(2, 3, 4)).astype(np.float32)

    def results(lib, convert) -> list[np.ndarray]:
        class Encoder(lib.nn.TransformerEncoderLayer):
            def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
                return 3 * super()._sa_block(x, attn_mask, key_padding_mask, is_causal=is_causal)

            def _ff_block(self, x):
                return super()._ff_block(x) - x

        class Decoder(lib.nn.TransformerDecoderLayer):
            def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
                return 2 * x

            def _ff_block(self, x):
                return x * x

            def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
                return mem * x

        made = []
        for norm_first in (False, True):
            options = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first}
            for layer in (Encoder(4, 2, 8, **options), Decoder(4, 2, 8, **options)):
                with lib.no_grad():
                    for parameter in layer.parameters():
                        parameter.copy_(lib.ones_like(parameter) / 8)
                x = convert(values)
                y = layer(x) if isinstance(layer, Encoder) else layer(x, convert(-values))
                made.append(np.asarray(y.detach()))
        return made

    for got, expected in zip(results(tw, tw.asarray), results(torch, torch.tensor), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-5)
