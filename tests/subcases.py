"""Many cases in one test, for checks that cost less than a test's set-up.

    @each("dtype", ["float32", "float64"])
    def test_x(dtype): ...

is one test, where `pytest.mark.parametrize` would make two. All its cases run: no failure hides
another, and each that fails is named. `pytest --case REGEX` runs those alone whose id it finds.
"""

from __future__ import annotations

import functools
import inspect
import re
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tilewright as tw

MOST_TOLD = 12
Outcomes = (Exception, pytest.fail.Exception)


def seed_of(request: pytest.FixtureRequest, case: str = "") -> list[int]:
    """Depends on nothing but --seed and the names of file, test and case.

    It is the same on every instruction set, so that a slow reference is computed once for all, and
    in whichever folder the file lies.
    """
    _, _, whole = request.node.nodeid.partition("::")
    test = re.sub(rf"-?({'|'.join(tw.kernels.isas())})\]$", "", whole)
    if case and test != whole:  # the bracket was closed behind the instruction set
        test += case if test.endswith("[") else f"-{case}"
    elif case:
        test = f"{test[:-1]}-{case}]" if test.endswith("]") else f"{test}[{case}]"
    name = f"tests/{request.path.name}::{test}"
    return [request.config.getoption("--seed"), zlib.crc32(name.encode())]


@dataclass(frozen=True)
class Axis:
    """One `each`: names of arguments, and their values, which may follow from other arguments."""

    names: tuple[str, ...]
    values: Iterable[Any] | Callable[..., Iterable[Any]]
    ids: Callable[[Any], str] | Sequence[str] | None

    def cases(self, others: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        found = self.values
        if callable(found):
            found = found(*(others[name] for name in inspect.signature(found).parameters))
        for i, value in enumerate(found):
            values = (value,) if len(self.names) == 1 else tuple(value)
            yield self.id_of(i, value, values), dict(zip(self.names, values, strict=True))

    def id_of(self, i: int, value: Any, values: tuple[Any, ...]) -> str:
        if self.ids is None:
            return "-".join(
                plain_id(name, v, i) for name, v in zip(self.names, values, strict=True)
            )
        return self.ids(value) if callable(self.ids) else self.ids[i]


def plain_id(name: str, value: Any, i: int) -> str:
    """As pytest names a parameter."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (bool, int, float, complex, np.number)):
        return str(value)
    return getattr(value, "__name__", f"{name}{i}")


def each(
    names: str | Sequence[str],
    values: Iterable[Any] | Callable[..., Iterable[Any]],
    ids: Callable[[Any], str] | Sequence[str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, in one test. Values may be a function of other arguments."""
    split = tuple(re.split(r",\s*", names)) if isinstance(names, str) else tuple(names)
    axis = Axis(split, values if callable(values) else tuple(values), ids)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        axes = (axis, *getattr(test, "axes", ()))
        return merged(getattr(test, "one_case", test), axes)

    return decorate


def merged(test: Callable[..., None], axes: tuple[Axis, ...]) -> Callable[..., None]:
    parameters = inspect.signature(test).parameters
    given = {name for axis in axes for name in axis.names}
    of_rng = {"rng", "seed"} & set(parameters)

    @functools.wraps(test)
    def run(*self: Any, request: pytest.FixtureRequest, **fixtures: Any) -> None:
        if "request" in parameters:
            fixtures["request"] = request
        failed: list[tuple[str, BaseException]] = []
        skipped = ""
        count = 0
        wanted = request.config.getoption("--case")
        for case, values in product_of(axes[::-1], fixtures):
            if not re.search(wanted, case):
                continue
            count += 1
            tw.manual_seed(request.config.getoption("--seed"))
            seed = seed_of(request, case)
            drawn = {"rng": np.random.default_rng(seed), "seed": seed}
            arguments = fixtures | values | {name: drawn[name] for name in of_rng}
            try:
                test(*self, **{name: arguments[name] for name in arguments if name in parameters})
            except pytest.skip.Exception as reason:
                skipped = str(reason)
                count -= 1
            except Outcomes as error:
                failed.append((case, error))
        if failed:
            raise AssertionError(told(failed, count)) from failed[0][1]
        assert wanted or count or skipped, "there are no cases"
        if not count:
            pytest.skip(skipped or f"no case with {wanted!r}")

    kept = [p for name, p in parameters.items() if name not in given and name not in of_rng]
    if "request" not in parameters:
        kept.append(inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY))
    run.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
    run.axes, run.one_case = axes, test  # type: ignore[attr-defined]
    return run


def product_of(
    axes: Sequence[Axis], others: dict[str, Any], before: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The axis next to the function stands first in ids, as with `parametrize`."""
    if not axes:
        yield before, {}
        return
    for case, values in axes[0].cases(others):
        name = f"{before}-{case}" if before else case
        for rest, more in product_of(axes[1:], others | values, name):
            yield rest, values | more


def told(failed: list[tuple[str, BaseException]], count: int) -> str:
    lines = [f"{len(failed)} of {count} cases failed: {', '.join(case for case, _ in failed)}"]
    for case, error in failed[:MOST_TOLD]:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        said = "".join(traceback.format_exception_only(type(error), error)).strip()
        lines.append(f"[{case}] {frame.filename}:{frame.lineno}: {said}")
    if len(failed) > MOST_TOLD:
        lines.append(f"and {len(failed) - MOST_TOLD} more")
    return "\n".join(lines)
