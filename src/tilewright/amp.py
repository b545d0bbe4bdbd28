"""Mixed precision: products in a narrow type over float32 weights, and the scaling of losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilewright import Tensor, _core, bfloat16, dtype, float16, float32, float64, no_grad, stack
from tilewright._engine.modes import ModeBlock
from tilewright.optim import Optimizer


class autocast(ModeBlock):  # noqa: N801  (PyTorch's name)
    """Context manager and decorator: this thread's products run in a narrow type, on any device.

    Inside, the operands of matrix products, linear layers, convolutions, attention and recurrent
    layers become `dtype`, and those of softmax, norms and losses float32; every other op runs in
    the types it is given, and float64 is left alone. Parameters stay float32, and so do their
    gradients: a cast is an op with a gradient. `tw.explain` shows each cast and each op's type.
    Put the forward pass and the loss inside, backward and the optimizer's step outside. With
    float16, whose small gradients underflow, scale the loss: `GradScaler`.

    `device_type`, "cpu" or "cuda", and `cache_enabled` are taken for PyTorch's programs and change
    nothing. Raises TypeError for a `dtype` other than bfloat16 and float16. Source: Micikevicius
    et al., "Mixed precision training" (2018).

    >>> import tilewright as tw
    >>> layer = tw.nn.Linear(4, 3)
    >>> with tw.autocast():
    ...     layer(tw.ones((2, 4))).dtype
    tilewright.bfloat16
    """

    def __init__(
        self,
        device_type: str = "cpu",
        dtype: dtype = bfloat16,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if device_type not in ("cpu", "cuda"):
            raise ValueError(f"autocast: device_type is 'cpu' or 'cuda', got {device_type!r}")
        if dtype not in (bfloat16, float16):
            raise TypeError(f"autocast: dtype is bfloat16 or float16, got {dtype!r}")
        self.dtype = dtype
        self.enabled = bool(enabled)

    def _enter(self) -> None:
        _core._enter_autocast(self, self.dtype if self.enabled else None)


class GradScaler:
    """Multiplies the loss, so that small gradients of float16 do not become 0, and divides them.

    A step whose gradients are not all finite is left out and halves the scale
    (`backoff_factor`); `growth_interval` good ones in a row double it (`growth_factor`).
    Arguments and state as PyTorch's `torch.amp.GradScaler`; `device` changes nothing.

    >>> import tilewright as tw
    >>> weight = tw.ones((2,), requires_grad=True)
    >>> optimizer = tw.optim.SGD([weight], lr=1.0)
    >>> scaler = tw.amp.GradScaler()
    >>> scaler.scale(weight.sum()).backward()
    >>> scaler.step(optimizer)
    True
    >>> scaler.update()
    >>> weight.tolist()
    [0.0, 0.0]
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if device not in ("cpu", "cuda"):
            raise ValueError(f"GradScaler: device is 'cpu' or 'cuda', got {device!r}")
        if not init_scale > 0:
            raise ValueError(f"GradScaler: init_scale must be above 0, got {init_scale!r}")
        if not growth_factor > 1:
            raise ValueError(f"GradScaler: growth_factor must be above 1, got {growth_factor!r}")
        if not 0 < backoff_factor < 1:
            raise ValueError(
                f"GradScaler: backoff_factor lies between 0 and 1, got {backoff_factor!r}"
            )
        if growth_interval < 1:
            raise ValueError(
                f"GradScaler: growth_interval must be at least 1, got {growth_interval!r}"
            )
        self._enabled = bool(enabled)
        self._scale = float(init_scale)
        self._growth_factor = float(growth_factor)
        self._backoff_factor = float(backoff_factor)
        self._growth_interval = growth_interval
        self._good_steps = 0
        # By optimizer since the last update(): whether its gradients, divided, were all finite.
        self._finite: dict[Optimizer, bool] = {}
        self._stepped: set[Optimizer] = set()

    def scale(self, losses: Any) -> Any:
        """A loss, or a list, tuple or dict of them, times the scale."""
        if not self._enabled:
            return losses
        if isinstance(losses, Tensor):
            return (
                losses.astype(float32) * self._scale if _is_half(losses) else losses * self._scale
            )
        if isinstance(losses, Mapping):
            return {name: self.scale(loss) for name, loss in losses.items()}
        if isinstance(losses, (list, tuple)):
            return type(losses)(self.scale(loss) for loss in losses)
        raise TypeError(f"GradScaler: scale: expected a tensor, got {type(losses).__name__}")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the optimizer's gradients by the scale, in place: to clip them before `step`.

        Raises RuntimeError where that was done since the last `update`.
        """
        if not self._enabled:
            return
        if optimizer in self._finite:
            raise RuntimeError("GradScaler: unscale_: these gradients are divided already")
        with no_grad():
            grads = list(_gradients(optimizer))
            for grad in grads:
                grad.mul_(1 / self._scale)
            # Finite numbers times 0 add up to 0, others to NaN: one number is read for all.
            zeros = [(grad.astype(_wide(grad)) * 0).sum().astype(float64) for grad in grads]
            self._finite[optimizer] = not zeros or stack(zeros).sum().item() == 0

    def step(self, optimizer: Optimizer) -> bool:
        """`optimizer.step()` where all gradients are finite; says whether it was done.

        Raises RuntimeError where it was called since the last `update`.
        """
        if optimizer in self._stepped:
            raise RuntimeError("GradScaler: step: call update() before the next step")
        if self._enabled and optimizer not in self._finite:
            self.unscale_(optimizer)
        self._stepped.add(optimizer)
        finite = self._finite.get(optimizer, True)
        if finite:
            optimizer.step()
        return finite

    def update(self, new_scale: float | None = None) -> None:
        """Sets the scale of the next step, from how this one's gradients were.

        Raises RuntimeError where no gradients were looked at since the last `update`, and
        ValueError for a `new_scale` that is not above 0.
        """
        if self._enabled and new_scale is None and not self._finite:
            raise RuntimeError("GradScaler: update: no gradients since the last update; call step")
        finite = all(self._finite.values())
        self._finite.clear()
        self._stepped.clear()
        if not self._enabled:
            return
        if new_scale is not None:
            if not new_scale > 0:
                raise ValueError(f"GradScaler: update: the scale is above 0, got {new_scale!r}")
            self._scale = float(new_scale)
        elif not finite:
            self._scale *= self._backoff_factor
            self._good_steps = 0
        elif self._good_steps + 1 == self._growth_interval:
            grown = self._scale * self._growth_factor
            self._scale = grown if grown < float("inf") else self._scale
            self._good_steps = 0
        else:
            self._good_steps += 1

    def get_scale(self) -> float:
        """What losses are multiplied by; 1 where the scaler is disabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether it scales."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale and what decides the next; empty where the scaler is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._good_steps,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes over a saved state; ValueError where one of its entries is missing."""
        if not self._enabled:
            return
        missing = [name for name in self.state_dict() if name not in state_dict]
        if missing:
            raise ValueError(f"GradScaler: load_state_dict: missing: {', '.join(missing)}")
        self._scale = float(state_dict["scale"])
        self._growth_factor = float(state_dict["growth_factor"])
        self._backoff_factor = float(state_dict["backoff_factor"])
        self._growth_interval = int(state_dict["growth_interval"])
        self._good_steps = int(state_dict["_growth_tracker"])


def _gradients(optimizer: Optimizer) -> Iterator[Tensor]:
    for group in optimizer.param_groups:
        for param in group["params"]:
            if param.grad is not None:
                yield param.grad


def _is_half(x: Tensor) -> bool:
    return x.dtype in (float16, bfloat16)


def _wide(x: Tensor) -> dtype:
    return float32 if _is_half(x) else x.dtype
