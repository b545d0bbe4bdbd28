"""Weight norm and spectral norm under the names of parameters that older states have.

The weight is computed before each forward pass and stands in the module as a plain tensor. New
models use `parametrizations`.
"""

from __future__ import annotations

from typing import Any, TypeVar

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.functions.composites import normalize
from tilewright.nn.layers.lazy import check_not_lazy
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter
from tilewright.nn.utils.parametrizations import SpectralNorm, WeightNorm
from tilewright.nn.utils.parametrize import standing_for

M = TypeVar("M", bound=Module)


class _SpectralNorm(SpectralNorm):
    """With the steps in the order that older states go on with."""

    def _improve(self, matrix: Tensor, steps: int) -> None:
        for _ in range(steps):
            self._v.copy_(normalize(matrix.T @ self._u, dim=0, eps=self.eps))
            self._u.copy_(normalize(matrix @ self._v, dim=0, eps=self.eps))


class _Computed:
    """One weight of a module: what it is called, and how it is computed."""

    def __init__(self, module: Module, name: str, method: WeightNorm | SpectralNorm) -> None:
        self.name = name
        self.method = method
        self.hook = module.register_forward_pre_hook(self)

    def value(self, module: Any) -> Tensor:
        if isinstance(self.method, WeightNorm):
            length, direction = (getattr(module, self.name + part) for part in ("_g", "_v"))
            return self.method.forward(length, direction)
        self.method.train(module.training)
        self.method._u = getattr(module, f"{self.name}_u")
        self.method._v = getattr(module, f"{self.name}_v")
        return self.method.forward(getattr(module, f"{self.name}_orig"))

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self.name, self.value(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Makes a parameter a length, `<name>_g`, times a direction, `<name>_v`, by index of `dim`.

    Raises ValueError where the module has no such parameter, or no sizes before its first call.

    >>> import tilewright as tw
    >>> layer = tw.nn.utils.weight_norm(tw.nn.Linear(4, 3))
    >>> sorted(layer.state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    weight = _taken("weight_norm", module, name)
    method = WeightNorm(dim)
    with tw.no_grad():
        length, _ = method.right_inverse(weight.detach())
    module.register_parameter(f"{name}_g", Parameter(length, weight.requires_grad))
    module.register_parameter(f"{name}_v", weight)  # which an optimizer may know
    return _computed(module, name, method)


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Makes the value of the weight a parameter again. Raises ValueError where there is none."""
    return _removed("weight_norm", module, name, ("_g", "_v"))


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Makes a parameter `<name>_orig` over its largest singular value, found while training.

    Raises ValueError where the module has no such parameter, or no sizes before its first call.

    >>> import tilewright as tw
    >>> layer = tw.nn.utils.spectral_norm(tw.nn.Linear(4, 3))
    >>> sorted(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    check_not_lazy("spectral_norm", module)
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    weight = vars(module).get(name)
    if not isinstance(weight, Parameter) or weight.ndim < 2:
        raise ValueError(f"spectral_norm: {type(module).__name__} has no matrix {name!r}")
    method = _SpectralNorm(weight, n_power_iterations, dim, eps)
    _taken("spectral_norm", module, name)
    module.register_parameter(f"{name}_orig", weight)
    module.register_buffer(f"{name}_u", method._u)
    module.register_buffer(f"{name}_v", method._v)
    return _computed(module, name, method)


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Makes the value of the weight a parameter again. Raises ValueError where there is none."""
    return _removed("spectral_norm", module, name, ("_orig", "_u", "_v"))


def _taken(function: str, module: Module, name: str) -> Parameter:
    check_not_lazy(function, module)
    weight = vars(module).get(name)
    if not isinstance(weight, Parameter):
        raise ValueError(f"{function}: {type(module).__name__} has no parameter {name!r}")
    delattr(module, name)
    return weight


def _computed(module: M, name: str, method: WeightNorm | SpectralNorm) -> M:
    computed = _Computed(module, name, method)
    known = vars(module).setdefault("_computed_weights", {})
    known[name] = computed
    with tw.no_grad():  # a leaf until the first pass, so that the module can be copied
        training = module.training
        module.training = False
        computed(module, ())
        module.training = training
    return module


def _removed(function: str, module: M, name: str, parts: tuple[str, ...]) -> M:
    known = vars(module).get("_computed_weights", {})
    if name not in known or not hasattr(module, name + parts[0]):
        raise ValueError(f"{function} of {name!r} not found in {type(module).__name__}")
    computed = known.pop(name)
    computed.hook.remove()
    with tw.no_grad():
        training = module.training
        module.training = False
        value = computed.value(module).detach().copy()
        module.training = training
    originals = [getattr(module, name + part) for part in parts]
    for part in ("", *parts):
        delattr(module, name + part)
    module.register_parameter(name, standing_for(value, originals))
    return module
