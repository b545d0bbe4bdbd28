"""What training does to all parameters at once, against the peers: steps, clipping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import tilewright as tw
from tilewright.bench.harness import OURS, Case, statement

# The parameters of a GPT of 4 layers, 128 wide, over 65 characters: many small ones; and a few that
# no cache holds.
_GPT = (
    (65, 128),
    (128, 128),
    *(((384, 128), (384,), (128, 128), (128,), (512, 128), (512,), (128, 512), (128,)) * 4),
    *(((128,),) * 18),
)
_LARGE = ((2048, 2048),) * 4
_MODELS = {"GPT 0.8M": _GPT, "16.8M": _LARGE}


class _Step(NamedTuple):
    """An optimizer as both libraries make it; the arrays that a step reads or writes."""

    name: str
    kind: str
    settings: Mapping[str, Any]
    passes: int


_STEPS = (
    _Step("SGD", "SGD", {"lr": 1e-3}, 3),
    _Step("SGD momentum", "SGD", {"lr": 1e-3, "momentum": 0.9}, 5),
    _Step("RMSprop", "RMSprop", {"lr": 1e-3}, 5),
    _Step("AdamW", "AdamW", {"lr": 1e-3}, 7),
    _Step("NAdam", "NAdam", {"lr": 1e-3}, 7),
)


def optimizer_cases(peers: Mapping[str, Any]) -> Iterator[Case]:
    """Steps of optimizers and the norm of all gradients, float32."""
    for model, shapes in _MODELS.items():
        ours = [_with_gradient(tw, shape) for shape in shapes]
        torch = peers.get("torch")
        theirs = [_with_gradient(torch, shape) for shape in shapes] if torch else []
        gigabytes = 4e-9 * sum(p.size for p in ours)
        for step in _STEPS:
            optimizer = getattr(tw.optim, step.kind)(ours, **step.settings)
            contenders = {OURS: statement("o.step()", o=optimizer)}
            if torch:
                other = getattr(torch.optim, step.kind)(theirs, **step.settings)
                contenders["torch"] = statement("o.step()", o=other)
            yield Case(f"{step.name} {model}", contenders, step.passes * gigabytes, "GB")
        call = "clip(p, 1.0)"
        contenders = {OURS: statement(call, clip=tw.nn.utils.clip_grad_norm_, p=ours)}
        if torch:
            clip = torch.nn.utils.clip_grad_norm_
            contenders["torch"] = statement(call, clip=clip, p=theirs)
        yield Case(f"clip_grad_norm_ {model}", contenders, 3 * gigabytes, "GB")


def _with_gradient(library: Any, shape: tuple[int, ...]) -> Any:
    parameter = library.randn(*shape)
    parameter.requires_grad = True
    parameter.grad = library.randn(*shape)
    return parameter
