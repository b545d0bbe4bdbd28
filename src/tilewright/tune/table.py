"""The table that `tilewright tune` writes: what it holds, when it counts, and what is in force."""

from __future__ import annotations

import json
import os
import stat
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import _core
from tilewright._engine.cache import make_folder, may_be_of_others, tuning_path

_FORMAT = 2
# A table has some dozens of short lines; whatever is larger is none and is not read.
_LARGEST_BYTES = 64 * 1024
# Beyond any limit, and small enough for every whole number up to it to be a float as well.
_LARGEST_NUMBER = 1e300
_LONGEST_REASON = 200
_TEXTS = ("tilewright", "date")


class TuningWarning(RuntimeWarning):
    """The table of `tilewright tune` is not used, and why."""


class Table(NamedTuple):
    """What was measured: the numbers that replace defaults, and by how much they won.

    `gains` holds the time with the default over the time with the value. `gpus` holds what GPUs'
    estimates stand on, by name and driver: a date and rates by name.
    """

    values: dict[str, float]
    gains: dict[str, float]
    machine: dict[str, Any]
    version: str
    date: str
    seconds: float
    gpus: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

    def as_dict(self) -> dict[str, Any]:
        """As the file has it."""
        return {
            "format": _FORMAT,
            "tilewright": self.version,
            "date": self.date,
            "seconds": self.seconds,
            "machine": self.machine,
            "matmul": self.values,
            "gains": self.gains,
            "gpus": {key: dict(kept) for key, kept in self.gpus.items()},
        }


class _InForce:
    """The table whose values were taken over last, if any."""

    table: Table | None = None


def path() -> str:
    """Where this machine's table is, or would be."""
    return tuning_path()


def machine() -> dict[str, Any]:
    """What a table must agree with to count here; `threads`: processors this process may use."""
    info = _core.cpu_info()
    caches = {key: info[key] for key in ("l1d_bytes", "l2_bytes", "l3_bytes")}
    features = sorted(info["features"])
    return {"features": features, **caches, "threads": info["usable_processors"]}


def current() -> dict[str, float]:
    """The numbers in force, by name.

    >>> import tilewright as tw
    >>> tw.tune.current()["block_bytes"] >= 4096
    True
    """
    return {row["name"]: row["value"] for row in _core.matmul_tunables()}


def defaults() -> dict[str, float]:
    """What the numbers are without a table: taken from the sizes of this machine's caches."""
    return {row["name"]: row["default"] for row in _core.matmul_tunables()}


def differences(table: Table) -> dict[str, tuple[float, float]]:
    """Default and value of each number that a table changes."""
    usual = defaults()
    return {
        name: (usual[name], value) for name, value in table.values.items() if usual[name] != value
    }


def apply(table: Table) -> None:
    """Puts a table's values into force, and the defaults for all others."""
    _core._set_gpu_rates(_rates(table.gpus))
    try:
        set_values(defaults() | table.values)
    except BaseException:
        _core._set_gpu_rates(_rates(gpus_in_force()))
        raise
    _InForce.table = table


def reset() -> None:
    """Puts the defaults into force."""
    set_values(defaults())
    _core._set_gpu_rates({})
    _InForce.table = None


def gpus_in_force() -> Mapping[str, Mapping[str, Any]]:
    """What the table in force holds of GPUs, by name and driver."""
    return _InForce.table.gpus if _InForce.table else {}


def kept_or_empty() -> Table:
    """This machine's table, else one that changes nothing."""
    try:
        return held()
    except (OSError, ValueError):
        date = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return Table({}, {}, machine(), tw.__version__, date, 0.0)


def kept_gpus() -> Mapping[str, Mapping[str, Any]]:
    """What this machine's table holds of GPUs; nothing where there is none that counts."""
    return kept_or_empty().gpus


@contextmanager
def use_gpu_rates(measured: Mapping[str, Mapping[str, float]]) -> Iterator[None]:
    """Rates of GPUs by name and driver, in the place of the table's, within a `with` block."""
    _core._set_gpu_rates({key: dict(rates) for key, rates in measured.items()})
    try:
        yield
    finally:
        _core._set_gpu_rates(_rates(gpus_in_force()))


def _rates(gpus: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    return {key: dict(kept["rates"]) for key, kept in gpus.items()}


@contextmanager
def use(**values: float) -> Iterator[None]:
    """Sets some of the numbers within a `with` block.

    Raises ValueError for an unknown name or a value outside its limits; nothing is changed then.

    >>> import tilewright as tw
    >>> with tw.tune.use(block_bytes=1 << 18):
    ...     y = tw.ones((4, 4)) @ tw.ones((4, 4))
    """
    before = current()
    set_values(values)
    try:
        yield
    finally:
        set_values(before)


def set_values(values: Mapping[str, float]) -> None:
    before = current()
    try:
        for name, value in values.items():
            _core.set_matmul_tuning(name, value)
    except BaseException:
        for name, value in before.items():
            _core.set_matmul_tuning(name, value)
        raise


def source() -> str:
    """Where the numbers in force come from, in one line."""
    table = _InForce.table
    if current() != defaults() | (table.values if table else {}):
        return "set in this process"
    if table is None:
        return "defaults for this machine's caches; `tilewright tune` measures"
    return f"measured on {table.date[:10]}, {path()}"


def load() -> Table | None:
    """Reads this machine's table and puts it into force; None where there is none.

    Raises ValueError that says why a table does not count, OSError where it cannot be read.
    """
    try:
        table = read(path())
    except (FileNotFoundError, NotADirectoryError):
        return None
    apply(table)
    return table


def save(table: Table) -> str:
    """Writes this machine's table, whole or not at all, and puts it into force; returns its path.

    Raises OSError where the folder cannot be written.
    """
    check_writable()
    write(table, path())
    apply(table)
    return path()


def export(target: str | os.PathLike[str]) -> None:
    """Writes this machine's table to a file of one's own.

    Raises FileNotFoundError without a table, ValueError where it does not count, OSError.
    """
    write(held(), os.fspath(target))


def import_(origin: str | os.PathLike[str]) -> Table:
    """Takes over a table from `export`; raises ValueError where it does not count here, OSError."""
    table = read(os.fspath(origin))
    save(table)
    return table


def clear() -> bool:
    """Deletes this machine's table and puts the defaults into force; False where there was none.

    Raises OSError where it cannot be deleted.
    """
    try:
        os.unlink(path())
    except (FileNotFoundError, NotADirectoryError):
        return False
    finally:
        reset()
    return True


def held() -> Table:
    """This machine's table; raises FileNotFoundError without one, ValueError where it is none."""
    try:
        return read(path())
    except (FileNotFoundError, NotADirectoryError):
        text = f"tune: no table at {path()}; `tilewright tune` measures one"
        raise FileNotFoundError(text) from None


def state() -> str:
    """How it stands with this machine's table, in a few words; never an error."""
    try:
        table = held()
    except FileNotFoundError:
        return "none"
    except (OSError, ValueError) as error:
        return f"ignored: {_reason(error)}"
    if _core.env_text("TUNE") == "0":
        return "ignored: TILEWRIGHT_TUNE is 0"
    return f"{len(table.values)} number(s), {table.date[:10]}"


def apply_at_start() -> None:
    """Takes over this machine's table; one that does not count costs one notice, never an error."""
    try:
        load()
    except (OSError, ValueError) as error:
        reason = str(error.strerror if isinstance(error, OSError) else error)
        _notice(
            f"{path()} is ignored: {reason[:_LONGEST_REASON]}; `tilewright tune` makes a new one"
        )


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) else str(error)
    return (text or "")[:_LONGEST_REASON]


def _notice(text: str) -> None:
    try:
        warnings.warn(text, TuningWarning, stacklevel=2)
    except TuningWarning:  # warnings are errors here, but an import must not fail for a cache
        print(f"tilewright: {text}", file=sys.stderr)


def check_writable() -> None:
    """Raises early what would fail at a long measurement's end."""
    folder = os.path.dirname(path())
    try:
        make_folder(folder)
        probe = f"{path()}.{os.getpid()}.probe"
        with open(probe, "xb"):
            pass
        os.unlink(probe)
    except OSError as error:
        raise type(error)(
            error.errno,
            f"tune: cannot write the table: {error.strerror}; set TILEWRIGHT_CACHE_DIR to a folder "
            "that you may write",
            folder,
        ) from None


def write(table: Table, target: str) -> None:
    """Writes a table, whole or not at all."""
    from tilewright.io.atomic import atomic_writer  # noqa: PLC0415  (an import only reads)

    text = json.dumps(table.as_dict(), indent=2, allow_nan=False) + "\n"
    with atomic_writer(target, "tune") as file:
        file.write(text.encode())


def read(origin: str) -> Table:
    """A checked table; raises ValueError that says what is wrong with it, OSError."""
    content = _parse(origin)
    if content.get("format") != _FORMAT:
        raise ValueError(f"damaged: format {content.get('format')!r}, expected {_FORMAT}")
    for key in _TEXTS:
        if not isinstance(content.get(key), str):
            raise ValueError(f"damaged: {key!r} is no text")
    if content["tilewright"] != tw.__version__:
        raise ValueError(f"made by version {content['tilewright']}, this is {tw.__version__}")
    _check_machine(content.get("machine"))
    _check_numbers(content.get("gains"), "gains")
    _check_numbers({"seconds": content.get("seconds")}, "seconds")
    _check_values(content.get("matmul"))
    _check_gpus(content.get("gpus", {}))
    return Table(
        content["matmul"], content["gains"], content["machine"], content["tilewright"],
        content["date"], content["seconds"], content.get("gpus", {}),
    )  # fmt: skip


def _parse(origin: str) -> dict[str, Any]:
    # A pipe would block. What is checked is what is open, whatever the name means by then.
    with open(os.open(origin, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("no regular file")
        if may_be_of_others(status):
            raise ValueError("another user may have written it; only your own table is read")
        if status.st_size > _LARGEST_BYTES:
            raise ValueError(f"damaged: {status.st_size} bytes are no table")
        text = file.read(_LARGEST_BYTES)
    try:
        content = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"damaged: no JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError("damaged: no table")
    return content


def _check_machine(told: Any) -> None:
    here = machine()
    if not isinstance(told, dict) or told.keys() != here.keys():
        raise ValueError("damaged: it does not say for which machine it is")
    for key, mine in here.items():
        if told[key] != mine:
            text = (
                "other CPU features" if key == "features" else f"{key} {told[key]!r}, here {mine}"
            )
            raise ValueError(f"measured on another machine: {text}")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= _LARGEST_NUMBER


def _check_numbers(numbers: Any, key: str) -> None:
    if not isinstance(numbers, dict) or not all(map(_is_number, numbers.values())):
        raise ValueError(f"damaged: {key!r} does not hold numbers")


def _check_gpus(gpus: Any) -> None:
    """Values are checked where they are put into force, names as well."""
    if not isinstance(gpus, dict):
        raise ValueError("damaged: 'gpus' holds no GPUs")
    for kept in gpus.values():
        if not isinstance(kept, dict) or not isinstance(kept.get("date"), str):
            raise ValueError("damaged: 'gpus' does not say when they were measured")
        _check_numbers(kept.get("rates"), "rates")


def _check_values(values: Any) -> None:
    _check_numbers(values, "matmul")
    rows = {row["name"]: row for row in _core.matmul_tunables()}
    for name, value in values.items():
        row = rows.get(name)
        if row is None:
            raise ValueError(f"damaged: no number is called {name!r}")
        if not row["least"] <= value <= row["most"]:
            limits = f"[{row['least']:g}, {row['most']:g}]"
            raise ValueError(f"damaged: {name} must be in {limits}, got {value:g}")
        if isinstance(row["default"], int) and value != int(value):
            raise ValueError(f"damaged: {name} must be a whole number, got {value:g}")
