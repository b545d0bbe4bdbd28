"""The base of optimisers: parameter groups, state, and which parameters a step touches."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.foreign import as_tensor, is_array
from tilewright.nn.parameter import clear_grads

Group = dict[str, Any]
_DTYPES = (tw.float16, tw.bfloat16, tw.float32, tw.float64)
# What PyTorch's groups hold beside ours: ways of computing, which change no result here.
_TORCH_WAYS = frozenset(("foreach", "fused", "capturable", "differentiable"))
# What schedules of the learning rate note in groups.
_OF_SCHEDULES = frozenset(
    ("initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum", "swa_lr")
)
_KNOWN = _OF_SCHEDULES | {"params", "param_names"}
# The kernels count steps in 64 bits with a sign.
_MOST_STEPS = 2**63 - 2


class Slots:
    """State of one group, aligned with its parameters: steps done, and tensors by state name."""

    def __init__(self, size: int) -> None:
        self.steps = [0] * size
        self.tensors: list[dict[str, Tensor]] = [{} for _ in range(size)]


class StepHook:
    """A registered hook of steps: `remove` ends it."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        if not callable(hook):
            raise TypeError(f"a hook of steps is a function, got {type(hook).__name__}")
        self._hooks = hooks
        self._number = id(self)
        hooks[self._number] = hook

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        self._hooks.pop(self._number, None)


class Optimizer:
    """Base class: give a list of tensors, or dicts with "params" and settings of their own.

    Pairs, as `model.named_parameters()` gives them, put names into errors and "param_names".

    `foreach`, `fused` and `capturable`, PyTorch's ways of computing, are taken and change nothing:
    a step is one fused call for all parameters.

    A subclass sets its defaults, checks a group's settings, names its state and updates a list of
    parameters that have all done the same number of steps. Parameters without a gradient are left
    alone.

    Steps on float16 and bfloat16 parameters are computed in float32 and rounded to nearest once, at
    their end; state is kept in float32, unlike PyTorch's, because in 8 or 11 bits a running mean
    stops moving. A step smaller than half of a parameter's last place is lost all the same.

    Raises TypeError for parameters that are no floating tensors and for settings that are no
    numbers, ValueError for other parameters that it cannot update in place (results of recorded
    ops, given twice) and for settings that make no sense.
    """

    param_groups: list[Group]
    numbers: tuple[str, ...] = ()  # states of one number, whatever the parameter's shape

    def __init__(self, params: Iterable[Tensor] | Iterable[Group], defaults: Group) -> None:
        self.defaults = defaults
        self.param_groups = []
        self._slots: list[Slots] = []
        self._pre_hooks: dict[int, Callable[..., Any]] = {}
        self._post_hooks: dict[int, Callable[..., None]] = {}
        items = [params] if isinstance(params, Mapping) else self._as_list(params)
        if not items:
            raise ValueError(f"{type(self).__name__}: no parameters to optimise")
        groups = items if isinstance(items[0], Mapping) else [{"params": items}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Adds parameters with settings of their own; settings left out take the defaults."""
        if not isinstance(group, Mapping):
            raise TypeError(f"{type(self).__name__}: a group is a dict, not {type(group).__name__}")
        if "params" not in group:
            raise ValueError(f"{type(self).__name__}: a group needs 'params'")
        params = group["params"]
        params = [params] if isinstance(params, Tensor) else self._as_list(params)
        params, names = _parted(params)
        self._check_settings(group)
        full = {**self.defaults, **group, "params": params}
        if names:
            full["param_names"] = names
        self._check_params(params, names)
        self.check_group(full)
        self.param_groups.append(full)
        self._slots.append(Slots(len(params)))

    def check_group(self, group: Group) -> None:
        """Raises ValueError where a setting makes no sense."""

    def state_names(self, group: Group) -> tuple[str, ...]:
        """Names of the state tensors that each parameter of the group needs."""
        return ()

    def names_for(self, group: Group, param: Tensor) -> tuple[str, ...]:
        """Those that one parameter needs, where its shape decides; the others are None for it."""
        return self.state_names(group)

    def new_state(self, name: str, group: Group, param: Tensor) -> Tensor:
        """A parameter's first state tensor, of `state_dtype(param)`."""
        return tw.zeros(param.shape, dtype=state_dtype(param), device=param.device)

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Tensor]],
        step: int,
    ) -> None:
        """Changes `params` and `state` in place, from `grads`; `step` counts from 1."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient.

        `closure` computes the loss and its gradients first; its result is returned. Hooks are
        called around it.
        """
        if not (self._pre_hooks or self._post_hooks):
            return self._run(closure)
        args: tuple[Any, ...] = (self,) if closure is None else (self, closure)
        kwargs: dict[str, Any] = {}
        for hook in list(self._pre_hooks.values()):
            if (instead := hook(self, args, kwargs)) is not None:
                args, kwargs = instead
        result = self._run(*args[1:], **kwargs)
        for hook in list(self._post_hooks.values()):
            hook(self, args, kwargs)
        return result

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> StepHook:
        """Calls hook(optimizer, args, kwargs) before each step; (args, kwargs) replace the step's.

        As in PyTorch `args` begins with the optimizer. Raises TypeError for what is no function.
        Source: PyTorch's torch.optim.Optimizer.register_step_pre_hook.
        """
        return StepHook(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> StepHook:
        """Calls hook(optimizer, args, kwargs) after each step.

        Raises TypeError for what is no function. Source: PyTorch's
        torch.optim.Optimizer.register_step_post_hook.
        """
        return StepHook(self._post_hooks, hook)

    def _run(self, closure: Callable[[], Any] | None = None) -> Any:
        tw._core._refuse_in_capture("an optimizer counts its steps in Python")
        loss = None
        if closure is not None:
            with tw.enable_grad():
                loss = closure()
        for group, slots in zip(self.param_groups, self._slots, strict=True):
            params = group["params"]
            grads = [param.grad for param in params]
            for step, indices in _with_gradient(grads, slots.steps).items():
                state = self._state(group, slots, indices)
                chosen = [params[i] for i in indices], [grads[i] for i in indices]
                self.update(group, *chosen, state, step + 1)
                for i in indices:
                    slots.steps[i] = step + 1
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or with set_to_none=False sets them to 0."""
        for group in self.param_groups:
            clear_grads(group["params"], set_to_none)

    @property
    def state(self) -> dict[Tensor, dict[str, Any]]:
        """State by parameter, as in `state_dict`; empty before a parameter's first step.

        The tensors are the optimiser's own; what else is changed in the dicts is not.
        """
        by_number = self.state_dict()["state"]
        params = [param for group in self.param_groups for param in group["params"]]
        return {param: by_number.get(number, {}) for number, param in enumerate(params)}

    def state_dict(self) -> dict[str, Any]:
        """Settings and state by parameter number: {"state": {...}, "param_groups": [...]}.

        State tensors are shared with the optimiser, not copied.
        """
        state: dict[int, dict[str, Any]] = {}
        groups = []
        first = 0
        for group, slots in zip(self.param_groups, self._slots, strict=True):
            numbers = range(first, first + len(group["params"]))
            first = numbers.stop
            for number, steps, tensors in zip(numbers, slots.steps, slots.tensors, strict=True):
                if steps:
                    state[number] = {"step": steps, **tensors}
            groups.append({**group, "params": list(numbers)})
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes settings and copies of the state, also from the same optimiser of PyTorch.

        Raises ValueError where something does not fit; the optimiser is then unchanged.
        """
        groups, states = self._parts(state_dict)
        sizes = [len(group["params"]) for group in groups]
        own_sizes = [len(group["params"]) for group in self.param_groups]
        if sizes != own_sizes:
            raise ValueError(
                f"{type(self).__name__}: load_state_dict: groups of {sizes} parameters do not fit "
                f"groups of {own_sizes}"
            )
        merged = [
            {**own, **self._without_torchs(new), **_identity(own)}
            for own, new in zip(self.param_groups, groups, strict=True)
        ]
        for group in merged:
            self._check_settings(group)
            self.check_group(group)
        slots = [
            self._load_slots(group, [states.get(number, {}) for number in new["params"]])
            for group, new in zip(merged, groups, strict=True)
        ]
        for own, new in zip(self.param_groups, merged, strict=True):
            own.update(new)
        self._slots = slots

    def __repr__(self) -> str:
        groups = [
            ", ".join(f"{key}={value!r}" for key, value in group.items() if key != "params")
            + f", {len(group['params'])} parameters"
            for group in self.param_groups
        ]
        return f"{type(self).__name__}(" + "; ".join(groups) + ")"

    def _as_list(self, params: Any) -> list[Any]:
        # A tensor would give its rows, a set an order that no other run repeats.
        if isinstance(params, (Tensor, set, frozenset)) or not isinstance(params, Iterable):
            raise TypeError(
                f"{type(self).__name__}: expected a list of tensors, such as model.parameters(), "
                f"got {type(params).__name__}"
            )
        return list(params)

    def _check_settings(self, group: Mapping[str, Any]) -> None:
        unknown = sorted(str(name) for name in set(group) - set(self.defaults) - _KNOWN)
        if unknown:
            raise ValueError(f"{type(self).__name__}: unknown settings: {', '.join(unknown)}")

    def _check_params(self, params: list[Any], names: list[str]) -> None:
        name = type(self).__name__
        seen = {id(p) for group in self.param_groups for p in group["params"]}
        for i, param in enumerate(params):
            which = f"{name}: parameter {i}" + (f" ({names[i]})" if names else "")
            if not isinstance(param, Tensor):
                raise TypeError(f"{which} is a {type(param).__name__}, not a tensor")
            where = f"{which}, shape {param.shape}"
            if param.dtype not in _DTYPES:
                raise TypeError(
                    f"{where}, is {param.dtype.name}; the fused kernels take "
                    f"{', '.join(dtype.name for dtype in _DTYPES)}"
                )
            if not param.is_leaf:
                raise ValueError(
                    f"{where}, is the result of a recorded op; give the tensor it was made from, "
                    "or detach() it"
                )
            if id(param) in seen:
                raise ValueError(f"{where}, is given twice")
            seen.add(id(param))

    def _state(self, group: Group, slots: Slots, indices: list[int]) -> dict[str, list[Any]]:
        for i in indices:
            param, tensors = group["params"][i], slots.tensors[i]
            for name in self.names_for(group, param):
                if name not in tensors:
                    tensors[name] = self.new_state(name, group, param)
        return {
            name: [slots.tensors[i].get(name) for i in indices] for name in self.state_names(group)
        }

    def _without_torchs(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """The settings without those of PyTorch's that change nothing here."""
        return {
            name: value
            for name, value in group.items()
            if name in self.defaults or name not in _TORCH_WAYS
        }

    def _parts(self, state_dict: Any) -> tuple[list[Mapping[str, Any]], Mapping[Any, Any]]:
        """Groups and states of a saved state, checked for their form."""
        where = f"{type(self).__name__}: load_state_dict"
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"{where}: expected a dict, got {type(state_dict).__name__}")
        for key, kind in (("param_groups", (list, tuple)), ("state", Mapping)):
            if not isinstance(state_dict.get(key), kind):
                raise ValueError(f"{where}: {key!r} is missing or has another form")
        groups, states = state_dict["param_groups"], state_dict["state"]
        for i, group in enumerate(groups):
            if not isinstance(group, Mapping) or not isinstance(group.get("params"), (list, tuple)):
                raise ValueError(f"{where}: group {i} has no list 'params'")
        numbers_of_all = [number for group in groups for number in group["params"]]
        if not all(type(number) is int for number in numbers_of_all):
            raise ValueError(f"{where}: 'params' lists numbers of parameters")
        known = set(numbers_of_all)
        if len(known) != len(numbers_of_all):
            raise ValueError(f"{where}: 'params' lists a parameter twice")
        for number, state in states.items():
            if number not in known or not isinstance(state, Mapping):
                raise ValueError(f"{where}: state of {number!r}: no such parameter, or no dict")
        return groups, states

    def _load_slots(self, group: Group, states: list[Mapping[str, Any]]) -> Slots:
        slots = Slots(len(states))
        for i, (param, state) in enumerate(zip(group["params"], states, strict=True)):
            names = self.names_for(group, param)
            # PyTorch's SGD keeps no count: a momentum buffer says that a first step was done.
            begun = all(state.get(name) is not None for name in names) if names else False
            slots.steps[i] = self._checked_steps(state.get("step", int(begun)), i)
            for name in names if slots.steps[i] else ():
                slots.tensors[i][name] = self._checked_copy(name, state.get(name), i, param, group)
        return slots

    def _checked_steps(self, value: Any, i: int) -> int:
        # PyTorch keeps its steps as tensors of one float.
        number = value
        if is_array(value) and (tensor := as_tensor(value)).size == 1:
            number = tensor.item()
        whole = type(number) is int or (isinstance(number, float) and number.is_integer())
        if not whole or not 0 <= number <= _MOST_STEPS:
            raise ValueError(
                f"{type(self).__name__}: load_state_dict: step of parameter {i} is a whole number "
                f"from 0, got {value!r}"
            )
        return int(number)

    def _checked_copy(self, name: str, value: Any, i: int, param: Tensor, group: Group) -> Tensor:
        where = f"{type(self).__name__}: load_state_dict: {name} of parameter {i}"
        if value is None:
            raise ValueError(f"{where} is missing")
        try:
            tensor = as_tensor(value)
        except TypeError as error:
            raise ValueError(f"{where}: {error}") from None
        own = self.new_state(name, group, param)
        if tensor.shape != own.shape:
            raise ValueError(f"{where}: shape {tensor.shape} does not fit {own.shape}")
        # PyTorch keeps the state of a bfloat16 parameter in bfloat16, and numbers in float32.
        theirs = tw.float32 if name in self.numbers else param.dtype
        if tensor.dtype not in (own.dtype, theirs):
            raise ValueError(f"{where}: {tensor.dtype.name} does not fit {own.dtype.name}")
        return tensor.detach().to(own.device).astype(own.dtype).copy()


def _parted(params: list[Any]) -> tuple[list[Any], list[str]]:
    """Parameters and their names, where pairs are given as by `model.named_parameters()`."""
    if not params or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in params):
        return params, []
    return [param for _, param in params], [str(name) for name, _ in params]


def _identity(group: Group) -> Group:
    """What of a group a state does not change."""
    return {name: group[name] for name in ("params", "param_names") if name in group}


def _with_gradient(grads: list[Tensor | None], steps: list[int]) -> dict[int, list[int]]:
    """Indices of the parameters that have a gradient, by the steps they have done."""
    by_step: dict[int, list[int]] = {}
    for i, grad in enumerate(grads):
        if grad is not None:
            by_step.setdefault(steps[i], []).append(i)
    return by_step


def state_dtype(param: Tensor) -> tw.dtype:
    """The type of a parameter's state: float64 for float64, else float32."""
    return tw.float64 if param.dtype == tw.float64 else tw.float32


def check_not_negative(optimizer: str, group: Group, *names: str) -> None:
    """Raises TypeError or ValueError for the first setting that is no finite number from 0."""
    check_finite(optimizer, group, *names)
    for name in names:
        if group[name] < 0:
            raise ValueError(f"{optimizer}: {name} must not be negative, got {group[name]}")


def check_finite(optimizer: str, group: Group, *names: str) -> None:
    """Raises TypeError for the first setting that is no number, ValueError for inf and NaN."""
    for name in names:
        check_number(optimizer, name, group[name])


def check_number(optimizer: str, name: str, value: Any) -> None:
    """Raises TypeError where a setting is no number, ValueError where it is not finite."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{optimizer}: {name} must be a number, got {value!r}")
    size: Any = abs(value)
    # Python compares whole numbers of any length with a float; converting them would overflow.
    if not size <= sys.float_info.max:
        raise ValueError(f"{optimizer}: {name} must be finite, got {value}")


def check_flag(optimizer: str, group: Group, *names: str) -> None:
    """Raises TypeError for the first setting that is neither True nor False."""
    for name in names:
        if not isinstance(group[name], bool):
            raise TypeError(f"{optimizer}: {name} is True or False, got {group[name]!r}")


def check_betas(optimizer: str, group: Group) -> None:
    """Raises TypeError or ValueError where "betas" are not two numbers in [0, 1)."""
    betas = group["betas"]
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ValueError(f"{optimizer}: betas are two numbers, got {betas!r}")
    for beta in betas:
        check_number(optimizer, "betas", beta)
        if not 0 <= beta < 1:
            raise ValueError(f"{optimizer}: betas lie in [0, 1), got {tuple(betas)}")
