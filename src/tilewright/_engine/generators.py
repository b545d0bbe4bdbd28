"""The state of the default generator, and what repeats, by PyTorch's names."""

from __future__ import annotations

import secrets

from tilewright import _core
from tilewright._core import Tensor


def get_rng_state() -> Tensor:
    """Seed and position of the default generator, two numbers of uint64 for `set_rng_state`.

    Shapes: the result is (2,).
    Types: uint64. Result: uint64.
    Source: PyTorch's torch.get_rng_state.

    >>> import tilewright as tw
    >>> state = tw.get_rng_state()
    >>> x = tw.rand(3)
    >>> tw.set_rng_state(state)
    >>> tw.rand(3).tolist() == x.tolist()
    True
    """
    return _core._default_generator().get_state()


def set_rng_state(state: Tensor) -> None:
    """Lets the default generator go on from a state that `get_rng_state` gave.

    Raises ValueError for anything else.

    Shapes: state (2,).
    Types: uint64. Result: None.
    Source: PyTorch's torch.set_rng_state.
    """
    if not isinstance(state, Tensor) or state.shape != (2,) or state.dtype != _core.uint64:
        raise ValueError("set_rng_state: state must be what get_rng_state gave")
    _core._default_generator().set_state(state)


def initial_seed() -> int:
    """The seed of the default generator."""
    return _core._default_generator().seed


def seed() -> int:
    """Seeds the default generator with a number that nobody can foresee, and returns that."""
    number = secrets.randbits(63)
    _core.manual_seed(number)
    return number


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Changes nothing: all algorithms give the same bits at each run, with any number of threads.

    For programs that ask for it. Raises TypeError for what is neither True nor False.

    >>> import tilewright as tw
    >>> tw.use_deterministic_algorithms(True)
    """
    for flag in (mode, warn_only):
        if not isinstance(flag, bool):
            raise TypeError(f"use_deterministic_algorithms: expected True or False, got {flag!r}")


def are_deterministic_algorithms_enabled() -> bool:
    """True: there are no others."""
    return True
