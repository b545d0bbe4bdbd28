"""The base of optimisers: parameter groups, state by parameter, and which a step touches."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.nn.module.parameter import clear_grads
from tilewright.optim.hooks import HookedOptimizer, with_hooks
from tilewright.optim.saved import copied, number_of, parts_of, steps_of, tensor_of
from tilewright.optim.settings import Group, check_names

_DTYPES = (tw.float16, tw.bfloat16, tw.float32, tw.float64)
# What PyTorch's groups hold beside ours: ways of computing, which change no result here.
TORCH_WAYS = frozenset(("foreach", "fused", "capturable", "differentiable"))
State = dict[str, Any]


class Optimizer(HookedOptimizer):
    """Base class: give a list of tensors, or dicts with "params" and settings of their own.

    Pairs, as `model.named_parameters()` gives them, put names into errors and "param_names".
    Groups keep other entries, such as a "name", which are saved and loaded with them.

    `foreach`, `fused` and `capturable`, PyTorch's ways of computing, are taken and change nothing:
    a step is one fused call for all parameters.

    A subclass sets its defaults, checks a group's settings, names its state and updates a list of
    parameters that have all done the same number of steps; or it defines `step` itself and keeps
    what it needs in `state[param]`. Parameters without a gradient are left alone.

    `state` has a dict for each tensor that was stepped: "step", the number of steps done, and the
    state by name. It belongs to the tensor, wherever that stands in `param_groups`, which may be
    changed at will. What is put there is what the next step reads, and is saved and loaded.

    Steps on float16 and bfloat16 parameters are computed in float32 and rounded to nearest once, at
    their end; state is kept in float32, unlike PyTorch's, because in 8 or 11 bits a running mean
    stops moving. A step smaller than half of a parameter's last place is lost all the same.

    Raises TypeError for parameters that are no floating tensors and for settings that are no
    numbers, ValueError for other parameters that it cannot update in place (results of recorded
    ops, given twice), for settings that make no sense and for misspelt ones.

    >>> import tilewright as tw
    >>> class Signs(tw.optim.Optimizer):
    ...     @tw.no_grad()
    ...     def step(self, closure=None):
    ...         for group in self.param_groups:
    ...             for param in group["params"]:
    ...                 param.sub_(group["lr"] * param.grad.sign())
    >>> x = tw.asarray([1.0]).requires_grad_()
    >>> (x * x).sum().backward()
    >>> Signs([x], {"lr": 0.25}).step(); x.tolist()
    [0.75]
    """

    param_groups: list[Group]
    state: MutableMapping[Any, State]
    numbers: tuple[str, ...] = ()  # states that are a Python number, whatever the shape
    late: tuple[str, ...] = ()  # states that a parameter may have done steps without

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls.step, "calls_hooks"):
            cls.step = with_hooks(cls.step)  # type: ignore[method-assign]  # its own, or a mixin's

    def __init__(self, params: Iterable[Tensor] | Iterable[Group], defaults: Group) -> None:
        self.defaults = defaults
        self.param_groups = []
        self.state = defaultdict(dict)
        super().__init__()
        items = [params] if isinstance(params, Mapping) else self._as_list(params)
        if not items:
            raise ValueError(f"{type(self).__name__}: no parameters to optimise")
        groups = items if isinstance(items[0], Mapping) else [{"params": items}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Adds parameters with settings of their own; settings left out take the defaults.

        A dict becomes the group itself: what its giver changes later is what the steps follow.
        """
        if not isinstance(group, Mapping):
            raise TypeError(f"{type(self).__name__}: a group is a dict, not {type(group).__name__}")
        if "params" not in group:
            raise ValueError(f"{type(self).__name__}: a group needs 'params'")
        params = group["params"]
        params = [params] if isinstance(params, Tensor) else self._as_list(params)
        params, names = _parted(params)
        check_names(type(self).__name__, group, self.defaults)
        full = {**self.defaults, **group, "params": params}
        if names:
            full["param_names"] = names
        self._check_params(params, names)
        self.check_group(full)
        if isinstance(group, dict):
            group.update(full)
            full = group
        self.param_groups.append(full)

    def check_group(self, group: Group) -> None:
        """Raises ValueError where a setting makes no sense."""

    def state_names(self, group: Group) -> tuple[str, ...]:
        """Names of the state tensors that each parameter of the group needs."""
        return ()

    def names_for(self, group: Group, param: Tensor) -> tuple[str, ...]:
        """Those that one parameter needs, where its shape decides; the others are None for it."""
        return self.state_names(group)

    def new_state(self, name: str, group: Group, param: Tensor) -> Any:
        """A parameter's first state, of `state_dtype(param)`, or one of `numbers`."""
        return tw.zeros(param.shape, dtype=state_dtype(param), device=param.device)

    def steps_done(self, group: Group, states: list[State]) -> list[Any]:
        """For each parameter's state the steps that its next `update` has behind it."""
        return [state.get("step", 0) for state in states]

    def update(
        self,
        group: Group,
        params: list[Tensor],
        grads: list[Tensor],
        state: dict[str, list[Any]],
        step: int,
    ) -> None:
        """Changes `params` and `state` in place, from `grads`; `step` counts from 1.

        Tensors are changed themselves, `numbers` are replaced in their list.
        """
        raise NotImplementedError

    @with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient.

        `closure` computes the loss and its gradients first; its result is returned. Hooks are
        called around it.
        """
        tw._core._refuse_in_capture("an optimizer counts its steps in Python")
        loss = None
        if closure is not None:
            with tw.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group: Group) -> None:
        params = [param for param in group["params"] if param.grad is not None]
        if not params:
            return
        grads: list[Any] = [param.grad for param in params]
        held, begin = self.state.get, self.state.setdefault
        states = [held(param) or begin(param, {}) for param in params]
        for done, columns in alike(self.steps_done(group, states), params, grads, states):
            self._step_alike(group, columns, done)

    def _step_alike(self, group: Group, columns: Sequence[list[Any]], done: Any) -> None:
        """Steps parameters, by gradients and states, that have done the same number of steps."""
        params, grads, states = columns
        step = 1 + (done if type(done) is int else steps_of(f"{type(self).__name__}: step", done))
        by_name = self._columns(group, params, states)
        for name in self.numbers:
            by_name[name] = list(map(float, by_name[name]))
        try:
            self.update(group, params, grads, by_name, step)
        except ValueError:
            if not self._moves(group, params, states, by_name):
                raise
            self.update(group, params, grads, by_name, step)
        for name in self.numbers:
            for state, number in zip(states, by_name[name], strict=True):
                state[name] = number
        for state in states:
            state["step"] = step

    def _columns(
        self, group: Group, params: list[Tensor], states: list[State]
    ) -> dict[str, list[Any]]:
        """The states by name, each a list over the parameters."""
        names = self.state_names(group)
        try:
            return {name: [state[name] for state in states] for name in names}
        except KeyError:
            for param, state in zip(params, states, strict=True):
                state.setdefault("step", 0)  # the first entry, as in a state that was loaded
                for name in self.names_for(group, param):
                    if state.get(name) is None:
                        state[name] = self.new_state(name, group, param)
            return {name: [state.get(name) for state in states] for name in names}

    def _moves(
        self,
        group: Group,
        params: list[Tensor],
        states: list[State],
        by_name: dict[str, list[Any]],
    ) -> bool:
        """Takes states to the types and devices that converted parameters have by now.

        False where nothing is to be done.
        """
        moved = False
        for name in by_name.keys() - self.numbers:
            for i, (param, held) in enumerate(zip(params, by_name[name], strict=True)):
                fresh = self.new_state(name, group, param) if isinstance(held, Tensor) else None
                if fresh is None or (held.dtype, held.device) == (fresh.dtype, fresh.device):
                    continue
                fitting = held.to(fresh.device).astype(fresh.dtype)
                by_name[name][i] = states[i][name] = fitting
                moved = True
        return moved

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or with set_to_none=False sets them to 0."""
        for group in self.param_groups:
            clear_grads(group["params"], set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Settings and state by parameter number: {"state": {...}, "param_groups": [...]}.

        State tensors are shared with the optimiser, not copied. State of tensors that stand in no
        group is left out; what `state` has under keys that are no tensors keeps its key.
        """
        self._told(self._save_pre_hooks)
        return self._changed(self._save_post_hooks, self._saved())  # type: ignore[no-any-return]

    def _saved(self) -> dict[str, Any]:
        numbers: dict[Tensor, int] = {}
        groups, first = [], 0
        for group in self.param_groups:
            for number, param in enumerate(group["params"], first):
                numbers.setdefault(param, number)
            groups.append({**group, "params": [numbers[param] for param in group["params"]]})
            first += len(group["params"])
        state = {number: dict(held) for p, number in numbers.items() if (held := self.state.get(p))}
        others = {key: held for key, held in self.state.items() if not isinstance(key, Tensor)}
        return {"state": state | others, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes settings and copies of the state, also from the same optimiser of PyTorch.

        The tensors of the groups are joined to the saved numbers in their order. Raises ValueError
        where something does not fit; the optimiser is then unchanged.
        """
        groups, states = parts_of(type(self).__name__, self._to_be_loaded(state_dict))
        sizes = [len(group["params"]) for group in groups]
        own_sizes = [len(group["params"]) for group in self.param_groups]
        if sizes != own_sizes:
            raise ValueError(
                f"{type(self).__name__}: load_state_dict: groups of {sizes} parameters do not fit "
                f"groups of {own_sizes}"
            )
        merged = [
            {**own, **copy.deepcopy(self._without_torchs(new)), **_identity(own)}
            for own, new in zip(self.param_groups, groups, strict=True)
        ]
        for group in merged:
            self.check_group(group)
        state = self._loaded(merged, groups, states)
        for own, new in zip(self.param_groups, merged, strict=True):
            own.update(new)
        self.state = state
        self._told(self._load_post_hooks)

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

    def _without_torchs(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """The settings without those of PyTorch's that change nothing here."""
        return {
            name: value
            for name, value in group.items()
            if name in self.defaults or name not in TORCH_WAYS
        }

    def _loaded(
        self, groups: list[Group], saved: list[Mapping[str, Any]], states: Mapping[Any, Any]
    ) -> MutableMapping[Any, State]:
        """The state by tensor; `saved` are the groups whose numbers `states` are keyed by."""
        state: MutableMapping[Any, State] = defaultdict(dict)
        numbers = [number for group in saved for number in group["params"]]
        owners = [(group, param) for group in groups for param in group["params"]]
        places = {number: place for place, number in enumerate(numbers)}
        for key, held in states.items():
            if (place := places.get(key)) is None:
                state[key] = copied(held)
            elif loaded := self._loaded_one(*owners[place], held, f"of parameter {place}"):
                state[owners[place][1]] = loaded
        return state

    def _loaded_one(
        self, group: Group, param: Tensor, held: Mapping[str, Any], whose: str
    ) -> State:
        if type(self).update is Optimizer.update:  # what it keeps, its own `step` knows
            return {
                name: copied(value, None if name == "step" else param.device)
                for name, value in held.items()
            }
        where = f"{type(self).__name__}: load_state_dict:"
        names = self.names_for(group, param)
        # PyTorch's SGD keeps no count: a momentum buffer says that a first step was done.
        begun = bool(names) and all(held.get(name) is not None for name in names)
        steps = steps_of(f"{where} step {whose}", held.get("step", int(begun)))
        state: State = {"step": steps} if steps else {}
        for name in names:
            value = held.get(name)
            if value is None and (not steps or name in self.late):
                continue
            state[name] = self._checked(f"{where} {name} {whose}", name, value, group, param)
        own = {"step", *self.state_names(group)}
        return state | {
            name: copied(value, param.device) for name, value in held.items() if name not in own
        }

    def _checked(self, where: str, name: str, value: Any, group: Group, param: Tensor) -> Any:
        if name in self.numbers:
            return number_of(where, value)
        return tensor_of(where, value, self.new_state(name, group, param), param.dtype)


def _parted(params: list[Any]) -> tuple[list[Any], list[str]]:
    """Parameters and their names, where pairs are given as by `model.named_parameters()`."""
    if not params or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in params):
        return params, []
    return [param for _, param in params], [str(name) for name, _ in params]


def _identity(group: Group) -> Group:
    """What of a group a state does not change."""
    return {name: group[name] for name in ("params", "param_names") if name in group}


def alike(keys: list[Any], *columns: list[Any]) -> list[tuple[Any, Sequence[list[Any]]]]:
    """Each key that there is, with what stands beside it in the columns."""
    if keys.count(keys[0]) == len(keys):
        return [(keys[0], columns)]
    places: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        places.setdefault(key, []).append(i)
    return [
        (key, [[column[i] for i in chosen] for column in columns]) for key, chosen in places.items()
    ]


def state_dtype(param: Tensor) -> tw.dtype:
    """The type of a parameter's state: float64 for float64, else float32."""
    return tw.float64 if param.dtype == tw.float64 else tw.float32
