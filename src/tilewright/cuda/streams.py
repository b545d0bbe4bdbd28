"""Streams of GPUs: queues of work that run beside each other, ordered by events.

Names and rules are torch.cuda's, with two differences: memory that another stream used is not
served again before that stream is done (no `record_stream` is needed), and consumers
wait on copies in flight. A stream belongs to a thread's modes: tasks of a
`tw.runtime.Scheduler` start on their submitter's.
"""

from __future__ import annotations

from types import TracebackType

from tilewright import _core


def gpu_number(device: int | str | None) -> int:
    """The number in 1, "cuda:1", "cuda" or None (the first)."""
    if device is None:
        return 0
    if isinstance(device, int):
        return device
    name, _, number = device.partition(":")
    if name != "cuda" or (number and not number.isdecimal()):
        raise ValueError(f"expected a GPU such as 'cuda' or 'cuda:1', got {device!r}")
    return int(number or 0)


class Stream:
    """A queue of work of a GPU, which runs in order; that of others runs beside it.

    Lower priorities go first. A GPU has a few dozen streams: after that the same ones are handed
    out again. Raises RuntimeError without a usable GPU.
    """

    def __init__(self, device: int | str | None = None, priority: int = 0) -> None:
        self._stream = _core._gpu_add_stream(gpu_number(device), priority)

    @classmethod
    def _of(cls, stream: _core._GpuStream) -> Stream:
        made = cls.__new__(cls)
        made._stream = stream
        return made

    @property
    def device(self) -> str:
        """The GPU's name, as "cuda:0"."""
        return f"cuda:{self._stream.gpu}"

    @property
    def priority(self) -> int:
        """As asked for; lower ones go first."""
        return self._stream.priority

    @property
    def cuda_stream(self) -> int:
        """The driver's handle, for other libraries."""
        return self._stream.address

    def query(self) -> bool:
        """Whether all work asked of it is done."""
        return self._stream.query()

    def synchronize(self) -> None:
        """Returns when all work asked of it is done; raises what went wrong in it."""
        self._stream.synchronize()

    def wait_stream(self, stream: Stream) -> None:
        """What is asked of this stream from now on comes after what was asked of the other."""
        self.wait_event(stream.record_event())

    def wait_event(self, event: Event) -> None:
        """What is asked of this stream from now on comes after the event, if it was recorded."""
        event.wait(self)

    def record_event(self, event: Event | None = None) -> Event:
        """The event, a new one unless one is given, after all that was asked of this stream."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<Stream {self._stream.number} of {self.device}>"


class Event:
    """A place in a stream, for the host and other streams to wait for.

    `elapsed_time` needs both events made with enable_timing=True.
    """

    def __init__(self, enable_timing: bool = False) -> None:
        self._event = _core._GpuEvent(enable_timing)

    def record(self, stream: Stream | None = None) -> None:
        """Takes the place after all that was asked of a stream, this thread's by default."""
        self._event.record((current_stream() if stream is None else stream)._stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Has a stream, this thread's by default, go on only after the event."""
        self._event.hold((current_stream() if stream is None else stream)._stream)

    def query(self) -> bool:
        """Whether it has happened; True where it was never recorded."""
        return self._event.query()

    def synchronize(self) -> None:
        """Returns when it has happened."""
        self._event.synchronize()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to another one, both of which have happened."""
        return self._event.elapsed_ms(end._event)


class stream:  # noqa: N801  (a context manager, as torch.cuda's)
    """Work of this thread on the stream's GPU goes to the stream within a `with` block.

    Memory that the block's ops make belongs to the stream. None changes nothing.
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[_core._GpuStream] = []

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            self._before.append(_core._gpu_choose_stream(self.stream._stream))
        return self.stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.stream is not None:
            _core._gpu_choose_stream(self._before.pop())


def current_stream(device: int | str | None = None) -> Stream:
    """The stream of a GPU that this thread's work goes to.

    Raises RuntimeError without a usable GPU.
    """
    return Stream._of(_core._gpu_current_stream(gpu_number(device)))


def default_stream(device: int | str | None = None) -> Stream:
    """The stream of a GPU that work goes to where none is chosen. It is not the driver's own.

    Raises RuntimeError without a usable GPU.
    """
    return Stream._of(_core._gpu_own_stream(gpu_number(device)))


def set_stream(stream: Stream) -> None:
    """Makes a stream this thread's, for good.

    Raises TypeError for what is no stream.
    """
    if not isinstance(stream, Stream):
        raise TypeError(f"set_stream: expected a Stream, got {type(stream).__name__}")
    _core._gpu_choose_stream(stream._stream)
