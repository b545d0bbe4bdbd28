"""Parameters that are computed from others each time they are asked for.

The parameter is replaced by a property of a class of the module's own; what it is computed from
stands in `module.parametrizations`, under the names that PyTorch's states have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.layers.lazy import check_not_lazy
from tilewright.nn.module.container import ModuleDict, ModuleList
from tilewright.nn.module.module import Module
from tilewright.nn.module.parameter import Parameter


class ParametrizationList(ModuleList):
    """What a parameter is computed from, `original` or `original0`, ..., and by which modules."""

    def __init__(self, modules: Sequence[Module], original: Tensor) -> None:
        super().__init__(modules)
        value: Any = original
        with tw.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    value = module.right_inverse(value)
        self._several = not isinstance(value, Tensor)
        if not self._several and value.shape == original.shape and isinstance(original, Parameter):
            if value is not original:
                original.detach().copy_(value)
            self.original = original
            return
        values = list(value) if self._several else [value]
        for i, each in enumerate(values):
            name = f"original{i}" if self._several else "original"
            if each is original and isinstance(original, Parameter):
                setattr(self, name, original)  # which an optimizer may know
            elif isinstance(original, Parameter):
                setattr(self, name, Parameter(each.detach(), original.requires_grad))
            else:
                self.register_buffer(name, each.detach().copy() if each is original else each)
        self._count = len(values)

    def originals(self) -> list[Tensor]:
        """What the first of the modules gets."""
        if not self._several:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self._count)]

    def forward(self) -> Tensor:
        value: Any = self.originals()
        for module in self:
            value = [module(*value)]
        return value[0]  # type: ignore[no-any-return]

    def right_inverse(self, value: Tensor) -> None:
        """Sets what the parameter is computed from, so that it becomes `value`."""
        found: Any = value
        with tw.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"{type(module).__name__}: has no right_inverse method, so that its "
                        "parameter cannot be assigned"
                    )
                found = module.right_inverse(found)
            for own, each in zip(
                self.originals(), [found] if isinstance(found, Tensor) else found, strict=True
            ):
                own.detach().copy_(each)


class _Chains(ModuleDict):
    """The lists by parameter, as attributes too."""

    def __getattr__(self, name: str) -> Module:
        raise AttributeError(f"parametrizations: no parameter {name!r} is computed")

    def _get_name(self) -> str:
        return "ModuleDict"


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes `module.<tensor_name>` the result of `parametrization` on what it was; returns module.

    Several of them are applied one after the other. A `right_inverse` method says what a value is
    computed from, which may be several tensors; without one, the value itself. Raises KeyError
    where there is no such parameter or buffer, ValueError where shape or dtype change, which
    `unsafe` allows, and for a lazy layer before its first call.

    >>> import tilewright as tw
    >>> from tilewright.nn.utils import parametrize
    >>> class Symmetric(tw.nn.Module):
    ...     def forward(self, x):
    ...         return x + x.T
    >>> layer = parametrize.register_parametrization(tw.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    """
    check_not_lazy("register_parametrization", module)
    if is_parametrized(module, tensor_name):
        chain = module.parametrizations[tensor_name]  # type: ignore[attr-defined]
        before = getattr(module, tensor_name)
        if hasattr(parametrization, "right_inverse"):
            raise ValueError(
                f"register_parametrization: {tensor_name!r} is computed already; one more with a "
                "right_inverse method is not supported"
            )
        after = parametrization(before)
        _check_same(before, after, tensor_name, unsafe)
        chain.append(parametrization)
        return module
    original = vars(module).get(tensor_name)
    if not isinstance(original, Tensor):
        raise KeyError(
            f"register_parametrization: {type(module).__name__} has no parameter or buffer "
            f"{tensor_name!r}"
        )
    was = original.detach().copy()
    chain = ParametrizationList([parametrization], original)
    with tw.no_grad():
        _check_same(was, chain(), tensor_name, unsafe)
    delattr(module, tensor_name)
    if is_parametrized(module):
        base = type(module).__bases__[0]
    else:
        base = type(module)
        module.parametrizations = _Chains()
    module.parametrizations[tensor_name] = chain  # type: ignore[attr-defined]
    _give_own_class(module, base)
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a parameter of the module is computed, or the one of that name."""
    chains = vars(module).get("parametrizations")
    if not isinstance(chains, ModuleDict):
        return False
    return len(chains) > 0 if tensor_name is None else tensor_name in chains


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes a parameter one of its own again: its value now, or what it was computed from.

    Raises ValueError where it is not computed, or was from several tensors that are to be left.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"remove_parametrizations: {tensor_name!r} is not parametrized")
    chains: ModuleDict = module.parametrizations  # type: ignore[attr-defined]
    chain = chains[tensor_name]
    assert isinstance(chain, ParametrizationList)
    originals = chain.originals()
    if leave_parametrized:
        with tw.no_grad():
            value = getattr(module, tensor_name).detach().copy()
    elif len(originals) > 1 or chain._several:
        raise ValueError(
            f"remove_parametrizations: {tensor_name!r} is computed from {len(originals)} tensors; "
            "leave_parametrized=True keeps its value"
        )
    else:
        value = originals[0]
    base = type(module).__bases__[0]
    del chains[tensor_name]
    if len(chains):
        _give_own_class(module, base)
    else:
        del module.parametrizations  # type: ignore[attr-defined]
        module.__class__ = base
    if isinstance(originals[0], Parameter):
        module.register_parameter(tensor_name, standing_for(value, originals))
    else:
        module.register_buffer(tensor_name, value)
    return module


def standing_for(value: Tensor, originals: Sequence[Tensor]) -> Parameter:
    """A parameter of that value: of those that it was computed from the one of its shape, if any.

    An optimizer that trained that one goes on.
    """
    for x in originals:
        if isinstance(x, Parameter) and (x.shape, x.dtype) == (value.shape, value.dtype):
            if value is not x:
                x.grad = None  # of what it was
                tw._core._become(x, value)
            return x
    return Parameter(value, requires_grad=originals[0].requires_grad)


def _property(name: str) -> property:
    def get(self: Any) -> Tensor:
        return self.parametrizations[name]()  # type: ignore[no-any-return]

    def set_(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set_)


def _give_own_class(module: Module, base: type[Module]) -> None:
    names = tuple(module.parametrizations.keys())  # type: ignore[attr-defined]
    module.__class__ = _own_class(base, names)


def _own_class(base: type[Module], names: tuple[str, ...]) -> type[Module]:
    """One with a property for each parameter that is computed."""
    # Elsewhere than in the package: Module.__init_subclass__ leaves users' classes as they are.
    members: dict[str, Any] = {"__module__": "__main__", **{n: _property(n) for n in names}}
    members["__reduce_ex__"] = lambda module, protocol: _reduced(module, base, names)
    return type(f"Parametrized{base.__name__}", (base,), members)


def _reduced(module: Any, base: type[Module], names: tuple[str, ...]) -> tuple[Any, ...]:
    """For copies and pickles, which find no class of a module's own by its name."""
    state = module.__getstate__() if hasattr(module, "__getstate__") else module.__dict__
    return _empty, (base, names), state


def _empty(base: type[Module], names: tuple[str, ...]) -> Module:
    module = base.__new__(base)
    module.__class__ = _own_class(base, names)
    return module


def _check_same(before: Tensor, after: Any, name: str, unsafe: bool) -> None:
    if unsafe:
        return
    if not isinstance(after, Tensor):
        raise ValueError(
            f"register_parametrization: {name!r} became no tensor but {type(after).__name__}"
        )
    if after.shape != before.shape or after.dtype != before.dtype:
        raise ValueError(
            f"register_parametrization: {name!r} became {after.shape}, {after.dtype}, and was "
            f"{before.shape}, {before.dtype}; unsafe=True allows it"
        )
