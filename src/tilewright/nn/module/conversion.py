"""Parameters and buffers in another dtype, on another device, or in new memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import tilewright as tw
from tilewright import Tensor, _core
from tilewright.nn.module.registry import BUFFERS, PARAMETERS, present, visiting

if TYPE_CHECKING:
    from tilewright.nn.module.parameter import Parameter

M = TypeVar("M", bound="Converted")
Change = Callable[[Tensor], Tensor]

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
            dtype = _dtype_named(value)
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


class Converted:
    """The part of a module that gives its parameters and buffers other memory."""

    __slots__ = ()

    if TYPE_CHECKING:

        def children(self: M) -> Iterator[M]: ...
        def modules(self: M) -> Iterator[M]: ...
        def parameters(self, recurse: bool = True) -> Iterator[Parameter]: ...
        def _register(self, kind: str, name: str, value: Any) -> None: ...

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Converts parameters and buffers in place: `to(dtype)`, `to(device)`, `to(tensor)`.

        A dtype is for those that hold floating or complex numbers. Parameters stay the same
        objects, with their gradients converted; what is of that type and on that device already is
        left alone, with its part in graphs. Each module converts its own, by its `_apply`.
        Optimisers that have steps behind them keep states of the dtype before. With
        non_blocking=True copies to and from a GPU go on when it returns, as those of `Tensor.to`;
        ops wait for them. Raises TypeError for dtypes that are neither floating nor complex.
        """
        dtype, device, non_blocking = requested(args, kwargs)

        def converted(x: Tensor) -> Tensor:
            if dtype is not None and x.dtype in _CONVERTIBLE and x.dtype != dtype:
                x = x.astype(dtype)
            if device is not None and x.device != device:
                x = x.to(device, non_blocking=non_blocking)
            return x

        return self._apply(_made_before(self, converted, recurse=True))

    def to_empty(self: M, *, device: str | None, recurse: bool = True) -> M:
        """Gives parameters and buffers new memory on a device, with whatever lies there as values.

        For modules whose values are set afterwards, by a saved state for example: nothing is
        copied. Parameters stay the same objects, without gradients. `device` None is where each of
        them is; without `recurse` those of submodules stay. Raises TypeError or ValueError for what
        is no device. Source: PyTorch's torch.nn.Module.to_empty.
        """

        def emptied(x: Tensor) -> Tensor:
            return tw.empty(x.shape, dtype=x.dtype, device=device or x.device)

        parameters = list(self.parameters(recurse))
        grads = [x.grad for x in parameters]
        for x in parameters:
            x.grad = None
        try:
            made = _made_before(self, emptied, recurse)
            return self._apply(made) if recurse else self._apply(made, recurse=False)
        except BaseException:
            for x, grad in zip(parameters, grads, strict=True):
                x.grad = grad
            raise

    def type(self: M, dst_type: tw.dtype) -> M:
        """Converts floating parameters and buffers to a dtype."""
        return self.to(dst_type)

    def float(self: M) -> M:
        """Converts floating parameters and buffers to float32."""
        return self.to(tw.float32)

    def double(self: M) -> M:
        """Converts floating parameters and buffers to float64."""
        return self.to(tw.float64)

    def half(self: M) -> M:
        """Converts floating parameters and buffers to float16."""
        return self.to(tw.float16)

    def bfloat16(self: M) -> M:
        """Converts floating parameters and buffers to bfloat16."""
        return self.to(tw.bfloat16)

    def cpu(self: M) -> M:
        """Moves parameters and buffers to the CPU."""
        return self.to("cpu")

    def cuda(self: M, device: int | str | None = None) -> M:
        """Moves parameters and buffers to a GPU: the first, or one by number or name."""
        return self.to(f"cuda:{device}" if isinstance(device, int) else device or "cuda")

    def _apply(self: M, fn: Change, recurse: bool = True) -> M:
        """Puts fn(x) in the place of each parameter, gradient and buffer, below this module first.

        Parameters stay the same objects. What `fn` gives back as it was stays as it was.
        """
        with visiting(("_apply", id(fn)), self, once=True) as enters:
            if not enters:
                return self
            for child in self.children() if recurse else ():
                child._apply(fn)
            for _, x in present(self, PARAMETERS):
                _change_parameter(x, fn)
            for name, x in present(self, BUFFERS):
                with tw.no_grad():
                    changed = fn(x)
                if not _is_same(x, changed):
                    self._register(BUFFERS, name, changed)
        return self


def _change_parameter(x: Tensor, fn: Change) -> None:
    with tw.no_grad():
        changed = fn(x)
        grad = x.grad
        changed_grad = None if grad is None else fn(grad)
    if not _is_same(x, changed):
        tw._core._become(x, changed)
    if grad is not None and changed_grad is not None and not _is_same(grad, changed_grad):
        x.grad = changed_grad


def _is_same(x: Tensor, y: Tensor) -> bool:
    if x is y or x.device != y.device or x.device == "null":
        return x is y
    places = [(z.data_ptr, z.dtype, z.shape, z.strides) for z in (x, y)]
    return places[0] == places[1]


def _made_before(module: Any, fn: Change, recurse: bool) -> Change:
    """`fn` with all its results made in advance, so that one that fails changes nothing.

    Tensors that several modules share have one result.
    """
    made: dict[int, tuple[Tensor, Tensor]] = {}
    with tw.no_grad():
        for owner in module.modules() if recurse else (module,):
            for _, x in (*present(owner, PARAMETERS), *present(owner, BUFFERS)):
                for old in (x, x.grad):
                    if old is not None and id(old) not in made:
                        made[id(old)] = old, fn(old)

    def result(x: Tensor) -> Tensor:
        return made[id(x)][1] if id(x) in made else fn(x)

    return result
