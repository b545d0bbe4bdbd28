"""How often each kind of step comes."""

from __future__ import annotations

from programs import compute, effects, views, writes
from programs.generator import State

CHOICES = [
    (6, lambda s: s.leaf()),
    (15, compute.unary),
    (18, compute.binary),
    (4, compute.mixed),
    (3, compute.choice_by_mask),
    (9, compute.reduction),
    (8, compute.product),
    (4, compute.normalised),
    (3, compute.loss),
    (5, compute.join),
    (6, compute.gathered),
    (16, views.view),
    (24, writes.write),
    (6, effects.gradient_hook),
    (3, effects.forward_hook),
    (6, effects.switch),
    (3, effects.backward),
    (3, effects.constant),
    (6, effects.checkpoint),
]
_STEPS = [step for _, step in CHOICES]
_WEIGHTS = [weight for weight, _ in CHOICES]


def next_step(s: State) -> None:
    """Adds a step, or some, or none where the drawn one does not apply."""
    s.rng.choices(_STEPS, _WEIGHTS)[0](s)
