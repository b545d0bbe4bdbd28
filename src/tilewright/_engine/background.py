"""Calls of other libraries: in the engine's floating-point environment, and ended by Ctrl-C."""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable
from typing import Any

from tilewright import _core

# Operations that take a twentieth of a second or longer: a thread costs a thousandth of that.
_LONG = 2e8


def call_apart(operations: float, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """function(*args, **kwargs), whose result is new and which takes about so many operations.

    Other libraries look for no signals. On the main thread a long call computes on a thread of its
    own, so that what a signal's handler raises (KeyboardInterrupt) arrives at once. The call then
    goes on unseen, and its result is dropped: it must change nothing that others hold.
    """
    call = functools.partial(function, *args, **kwargs)
    if operations < _LONG or threading.current_thread() is not threading.main_thread():
        return _core._in_float_environment(call)
    return _on_own_thread(functools.partial(_core._in_float_environment, call))


def _on_own_thread(call: Callable[[], Any]) -> Any:
    results: list[Any] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            results.append(context.run(call))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="tilewright-call", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors.pop()
    return results.pop()
