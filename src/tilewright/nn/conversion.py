"""Parameters and buffers in another dtype, on another device, or in new memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import tilewright as tw
from tilewright import Tensor, _core
from tilewright.nn.parameter import Parameter

if TYPE_CHECKING:
    from tilewright.nn.module import Module

_CONVERTIBLE = (tw.float16, tw.bfloat16, tw.float32, tw.float64, tw.complex64, tw.complex128)


def requested(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, str | None, bool]:
    """Dtype and device from the arguments of `Module.to`, None for what stays; non_blocking."""
    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    non_blocking = bool(kwargs.get("non_blocking", False))
    unknown = kwargs.keys() - {"dtype", "device", "non_blocking"}
    if unknown or not (args or dtype or device):
        raise TypeError(
            "to: expected a dtype, a device or a tensor"
            + (f", got {', '.join(sorted(unknown))}" if unknown else "")
        )
    for value in args:
        if isinstance(value, Tensor):
            dtype, device = value.dtype, value.device
        elif isinstance(value, str) and _core._is_device_name(value):
            device = value
        elif isinstance(value, bool):
            non_blocking = value
        elif value is not None:
            dtype = value
    if dtype is not None:
        dtype = _dtype_named(dtype)
        if dtype not in _CONVERTIBLE:
            raise TypeError(f"to: modules hold floating or complex numbers, got {dtype.name}")
    return dtype, device, non_blocking


def _dtype_named(name: Any) -> tw.dtype:
    try:
        return tw.empty((0,), dtype=name).dtype
    except TypeError:
        raise TypeError(
            f"to: {name!r} is neither a dtype nor a device, which are 'cpu', 'null' and 'cuda'"
            + ("; tw.auto_device(model, inputs) chooses one" if name == "auto" else "")
        ) from None


def convert(module: Module, dtype: Any, device: str | None, non_blocking: bool = False) -> None:
    """Parameters, gradients and buffers in another dtype or on another device."""

    def converted(x: Tensor) -> Tensor:
        if dtype is not None and x.dtype in _CONVERTIBLE:
            x = x.astype(dtype)
        return x if device is None else x.to(device, non_blocking=non_blocking)

    _replace(module, converted, converted, recurse=True)


def emptied(module: Module, device: str | None, recurse: bool) -> None:
    """New memory on a device for parameters and buffers; gradients are dropped."""
    _replace(
        module,
        lambda x: tw.empty(x.shape, dtype=x.dtype, device=device or x.device),
        lambda _: None,
        recurse,
    )


def _replace(
    module: Module,
    value: Callable[[Tensor], Tensor],
    grad: Callable[[Tensor], Tensor | None],
    recurse: bool,
) -> None:
    """Makes all new values first, so that one that fails changes nothing."""
    with tw.no_grad():
        changed: dict[int, Tensor] = {}
        grads: dict[int, Tensor | None] = {}
        for _, x in module._named_tensors("", recurse=recurse, remove_duplicate=True):
            changed[id(x)] = value(x.detach())
            if isinstance(x, Parameter) and x.grad is not None:
                grads[id(x)] = grad(x.grad.detach())
        parameters = list(module.parameters(recurse))
        for owner in module.modules() if recurse else (module,):
            for name, x in list(owner._own_tensors()):
                if not isinstance(x, Parameter):
                    setattr(owner, name, changed[id(x)])
        for x in parameters:
            tw._core._become(x, changed[id(x)])
            if id(x) in grads:
                x.grad = grads[id(x)]


def assign_tensor(module: Module, name: str, value: Tensor) -> None:
    """Gives a parameter or buffer the memory of another tensor."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    x = dict(owner._own_tensors())[last]
    if isinstance(x, Parameter):
        tw._core._become(x, value.detach())
    else:
        setattr(owner, last, value.detach())
