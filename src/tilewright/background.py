"""Long calls of other libraries that Ctrl-C ends: they look for no signals by themselves."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

# Operations that take a twentieth of a second or longer: a thread costs a thousandth of that.
_LONG = 2e8


def call_long(operations: float, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """function(*args, **kwargs), whose result is new and which takes about so many operations.

    On the main thread a long call computes on a thread of its own, so that what a signal's handler
    raises (KeyboardInterrupt) arrives at once. The call then goes on unseen, and its result is
    dropped: it must change nothing that others hold.
    """
    if operations < _LONG or threading.current_thread() is not threading.main_thread():
        return function(*args, **kwargs)
    outcome: list[Any] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            outcome.append((context.run(function, *args, **kwargs), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, name="tilewright-long-call", daemon=True)
    thread.start()
    thread.join()
    result, error = outcome.pop()
    if error is not None:
        raise error
    return result
