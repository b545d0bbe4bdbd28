"""Modes: what a thread has chosen about the ops it runs.

Recording (`no_grad`), forced kernels and the instruction set (`kernels.use`), observation
(`explain`), the device and the memory pool belong to a thread. A new thread starts with the
defaults; tasks of a `tw.runtime.Scheduler` run under the modes of the thread that submitted them;
`tw.runtime.bind_modes` does so for other threads.

All asyncio tasks of an event loop share its thread, and so its modes: a `with` block around an
`await` is in force for whatever else the loop runs meanwhile. A coroutine function that is
decorated instead (`@tw.no_grad()`) has the mode while it runs itself, and nobody else has.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial, wraps
from typing import Any, TypeVar

from tilewright import _core

_F = TypeVar("_F", bound=Callable[..., Any])


class ModeBlock:
    """A context manager and decorator that changes this thread's modes.

    May be entered again before it is left, by several threads at a time; blocks may end in any
    order. Raises RuntimeError where it ends on a thread that did not enter it.
    """

    def _enter(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> None:
        self._enter()

    def __exit__(self, *exception: object) -> None:
        _core._leave_modes(self)

    def __repr__(self) -> str:
        chosen = (f"{name}={value!r}" for name, value in vars(self).items() if name[0] != "_")
        return f"<{type(self).__name__}: {', '.join(chosen)}>"

    def __call__(self, function: _F) -> _F:
        if not callable(function):
            raise TypeError(
                f"{type(self).__name__}: expected a function, got {type(function).__name__}"
            )
        import inspect  # noqa: PLC0415  # 15 ms of an import that most programs can do without

        if inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{type(self).__name__}: {function.__qualname__} is an asynchronous generator "
                "function; decorate the functions that it calls instead"
            )

        @wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            with self:
                return function(*args, **options)

        @wraps(function)
        def generated(*args: Any, **options: Any) -> Any:
            return (yield from self._steps(function(*args, **options)))

        @wraps(function)
        async def awaited(*args: Any, **options: Any) -> Any:
            return await types.coroutine(self._steps)(function(*args, **options))

        if inspect.isgeneratorfunction(function):
            return generated  # type: ignore[return-value]  # wraps keeps the signature
        chosen = awaited if inspect.iscoroutinefunction(function) else called
        return chosen  # type: ignore[return-value]  # wraps keeps the signature

    def _steps(
        self, inner: Generator[Any, Any, Any] | Coroutine[Any, Any, Any]
    ) -> Generator[Any, Any, Any]:
        """Each step of `inner` within the block; whoever takes what it yields is outside."""
        step: Callable[[], Any] = partial(inner.send, None)
        while True:
            try:
                with self:
                    value = step()
            except StopIteration as end:
                return end.value
            try:
                step = partial(inner.send, (yield value))
            except GeneratorExit:
                with self:
                    inner.close()
                raise
            except BaseException as error:  # which inner may handle
                step = partial(inner.throw, error)


class Switch(ModeBlock):
    """A mode that the call itself sets; as a context manager or decorator, for what is inside."""

    def __init__(self, value: bool) -> None:
        self._before: tuple[int, bool] | None = (threading.get_ident(), self._value())
        self._set(value)

    def _value(self) -> bool:
        raise NotImplementedError

    def _set(self, value: bool) -> None:
        raise NotImplementedError

    def __enter__(self) -> None:
        self._becomes_a_block()
        super().__enter__()

    def __call__(self, function: _F) -> _F:
        self._becomes_a_block()
        return super().__call__(function)

    def _becomes_a_block(self) -> None:
        if self._before is None:
            return
        thread, value = self._before
        self._before = None
        if thread == threading.get_ident():
            self._set(value)


def bind_modes(function: _F) -> _F:
    """`function`, whose calls run under the modes that this thread has now, on whatever thread.

    Recording, forced kernels, instruction set, observers, device and memory pool; what a call
    changes ends with it. Tasks of a `Scheduler` need no binding.

    Raises TypeError for what cannot be called.

    >>> import tilewright as tw
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with tw.no_grad(), ThreadPoolExecutor() as threads:
    ...     threads.submit(tw.runtime.bind_modes(tw.is_grad_enabled)).result()
    False
    """
    if not callable(function):
        raise TypeError(f"bind_modes: expected a function, got {type(function).__name__}")
    modes = _core._Modes()

    @wraps(function)
    def bound(*args: Any, **options: Any) -> Any:
        modes.enter()
        try:
            return function(*args, **options)
        finally:
            modes.leave()

    return bound  # type: ignore[return-value]  # wraps keeps the signature
