"""What every layer is built on: the base class, its registry, hooks, states, conversions."""

from tilewright.nn.module.module import Module

__all__ = ["Module"]
