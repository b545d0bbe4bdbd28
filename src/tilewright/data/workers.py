"""Threads that make batches ahead of their use; batches come in order whoever makes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tilewright import _core


def batches(
    orders: Iterable[Any],
    make: Callable[[Any], Any],
    workers: int,
    ahead: int,
    begin: Callable[[int], object] | None = None,
) -> Iterator[Any]:
    """`make` of each of `orders`, in their order, by `workers` threads, at most `ahead` early.

    They run under the modes of the thread that takes the first batch, as it would make them itself.
    Each thread calls `begin` with its number first. What goes wrong with a batch is raised in its
    place, and ends the iteration. However it ends, no thread is left.
    """
    crew = _Crew(orders, make, ahead, begin)
    crew.start(workers)
    try:
        number = 0
        while crew.has(number):
            yield crew.take(number)
            number += 1
    finally:
        crew.stop()


def get_worker_info() -> None:
    """None: what PyTorch's data sets ask to know which share of the items is their process's.

    Here one thread at a time reads a data set, whatever the number of workers, and reads it all.
    """


class _Crew:
    """Who is free reads the next order and leaves what it made of it under the order's number.

    Orders are read by one thread at a time, outside the lock that results are handed over with:
    a data set that is slow to read must not keep a finished batch back.
    """

    def __init__(
        self,
        orders: Iterable[Any],
        make: Callable[[Any], Any],
        ahead: int,
        begin: Callable[[int], object] | None,
    ) -> None:
        self._orders = iter(orders)
        self._make = make
        self._ahead = ahead
        self._begin = begin
        self._modes = _core._Modes()
        self._reading = threading.Lock()
        self._changed = threading.Condition()
        self._results: dict[int, tuple[Any, BaseException | None]] = {}
        self._read = self._taken = 0  # batches
        self._ended = False
        self._threads: list[threading.Thread] = []

    def start(self, workers: int) -> None:
        """Starts the threads; none outlives the process."""
        for i in range(workers):
            name = f"tilewright-data-{i}"
            thread = threading.Thread(target=self._work, args=(i,), name=name, daemon=True)
            self._threads.append(thread)
            self._threads[-1].start()

    def has(self, number: int) -> bool:
        """Whether there is such a batch; waits until that is known."""
        with self._changed:
            self._changed.wait_for(lambda: number < self._read or self._ended)
            return number < self._read

    def take(self, number: int) -> Any:
        """The batch, when it is made; raises what was raised while it was."""
        with self._changed:
            self._changed.wait_for(lambda: number in self._results)
            batch, error = self._results.pop(number)
            self._taken = number + 1
            self._changed.notify_all()
        if error is not None:
            raise error
        return batch

    def stop(self) -> None:
        """Ends the threads; each finishes the batch that it is at."""
        self._end()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _work(self, worker: int) -> None:
        self._modes.enter()
        try:
            self._make_all(worker)
        finally:
            self._modes.leave()

    def _make_all(self, worker: int) -> None:
        try:
            if self._begin is not None:
                self._begin(worker)
        except BaseException as error:
            with self._reading:
                self._fail(error)
            return
        while (order := self._next()) is not None:
            number, rows = order
            try:
                self._leave(number, self._make(rows), None)
            except BaseException as error:  # raised where the batch is taken
                self._leave(number, None, error)

    def _next(self) -> tuple[int, Any] | None:
        """The next order with its number; None where nothing is left to do."""
        with self._reading:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._ended or self._read - self._taken < self._ahead
                )
                if self._ended:
                    return None
                number = self._read
            try:
                rows = next(self._orders)
            except StopIteration:
                self._end()
                return None
            except BaseException as error:
                self._fail(error)
                return None
            self._count()
            return number, rows

    def _fail(self, error: BaseException) -> None:
        """Leaves the error as the next batch, the last one; for who holds `_reading`."""
        number = self._read
        self._count()
        self._leave(number, None, error)
        self._end()

    def _count(self) -> None:
        with self._changed:
            self._read += 1
            self._changed.notify_all()

    def _leave(self, number: int, batch: Any, error: BaseException | None) -> None:
        with self._changed:
            self._results[number] = batch, error
            self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
