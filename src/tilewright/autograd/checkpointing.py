"""Gradient checkpointing: less memory between forward and backward for a second forward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from tilewright import Tensor, _core

_T = TypeVar("_T")


class Stages(Protocol):
    """Modules that are called one after the other, such as an `nn.Sequential`."""

    def __len__(self) -> int: ...
    def __getitem__(self, at: slice, /) -> Callable[[Any], Any]: ...


class _Place:
    """Stands for a tensor among the arguments, which the engine keeps and checks."""

    def __init__(self, index: int) -> None:
        self.index = index


def checkpoint(
    function: Callable[..., _T],
    *args: Any,
    use_reentrant: bool = False,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    **kwargs: Any,
) -> _T:
    """`function(*args, **kwargs)`, whose intermediate values backward computes again.

    Nothing that ops save inside is kept, except `function` and its arguments; backward runs it a
    second time, with the same random numbers, when it needs the first of them. Whatever else it
    does happens twice, seeding included, and threads that it starts draw anew. Tensors are found
    among the arguments and in lists, tuples and dicts of them. Raises RuntimeError in backward
    where the second run saves values of another number, shape or type, draws other random numbers,
    or saves what comes from tensors that were changed in place since; numbers that Python took out
    of such tensors are not compared. It works as PyTorch's with `use_reentrant=False`, which may be
    said; ValueError for the other way. `preserve_rng_state` and `determinism_check` are taken and
    change nothing. Source: Chen et al., "Training deep nets with sublinear memory cost" (2016).

    >>> import tilewright as tw
    >>> x = tw.ones((2,), requires_grad=True)
    >>> tw.checkpoint(lambda v: tw.exp(v).sin(), x).sum().backward()
    """
    _check_way("checkpoint", use_reentrant)
    if not _core.is_grad_enabled():
        return function(*args, **kwargs)
    tensors: list[Tensor] = []
    places = _parted((args, kwargs), tensors)

    def run(values: list[Tensor]) -> _T:
        positional, named = _joined(places, values)
        return function(*positional, **named)

    return _core._checkpoint(run, tensors)  # type: ignore[no-any-return]  # run's result


def checkpoint_sequential(
    model: Stages, segments: int, x: Any, *, use_reentrant: bool = False
) -> Any:
    """`model(x)` with its modules in `segments` runs, all but the last of them checkpointed.

    Kept are the inputs of the runs; the last one is needed first, so that it is not run again.
    Raises ValueError for fewer than 1 or more than `len(model)` segments, and as `checkpoint`.

    >>> import tilewright as tw
    >>> model = tw.nn.Sequential(*(tw.nn.Linear(4, 4) for _ in range(6)))
    >>> tw.checkpoint_sequential(model, 3, tw.ones((2, 4))).shape
    (2, 4)
    """
    _check_way("checkpoint_sequential", use_reentrant)
    if not 1 <= segments <= len(model):
        raise ValueError(
            f"checkpoint_sequential: {segments} segments for {len(model)} modules; "
            "give 1 to the number of modules"
        )
    ends = [len(model) * (i + 1) // segments for i in range(segments)]
    for start, end in zip([0, *ends], ends[:-1], strict=False):
        x = checkpoint(model[start:end], x)
    return model[ends[-2] if segments > 1 else 0 :](x)


def _check_way(op: str, use_reentrant: bool) -> None:
    if use_reentrant:
        raise ValueError(
            f"{op}: use_reentrant={use_reentrant!r}: there is only the way without a second "
            "backward inside backward; give use_reentrant=False, or leave it out"
        )


def _parted(value: Any, tensors: list[Tensor]) -> Any:
    """`value` with places instead of tensors, which are added to `tensors`."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _Place(len(tensors) - 1)
    if type(value) in (list, tuple):
        return type(value)(_parted(item, tensors) for item in value)
    if type(value) is dict:
        return {key: _parted(item, tensors) for key, item in value.items()}
    return value


def _joined(value: Any, tensors: list[Tensor]) -> Any:
    if isinstance(value, _Place):
        return tensors[value.index]
    if type(value) in (list, tuple):
        return type(value)(_joined(item, tensors) for item in value)
    if type(value) is dict:
        return {key: _joined(item, tensors) for key, item in value.items()}
    return value
