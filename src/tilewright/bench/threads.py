"""Products that are not alone with the processors: after a rest, behind another library whose
threads still spin, beside another process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from timeit import Timer
from typing import Any

import tilewright as tw
from tilewright.bench.harness import OURS, Case

SIZES = (256, 1024)
_REST_SECONDS = 0.01
_ROUNDS = 25
# What runs beside: products of 1024 x 1024 one after the other, or nothing but a loop.
_COMPANY = {
    "another process multiplies": (
        "import sys, tilewright as tw\n"
        "tw.set_num_threads(int(sys.argv[1]))\n"
        "x = tw.randn(1024, 1024)\n"
        "print(flush=True)\n"
        "while True: x @ x\n"
    ),
    "another process spins": "print(flush=True)\nwhile True: pass\n",
}


def thread_cases(peers: Mapping[str, Any], sizes: Sequence[int] = SIZES) -> Iterator[Case]:
    """Products of n x n float32 with all threads, each in the same company for all contenders."""
    for n in sizes:
        names = _operands(n, peers)
        yield _case(f"{n}: alone", names, setup="pass", once=False)
        yield _case(f"{n}: after {_REST_SECONDS * 1e3:.0f} ms of rest", names, "sleep(rest)")
        if len(names) > 1:
            yield _case(f"{n}: right behind another library", names, "other @ other")
        for what, program in _COMPANY.items():
            with _company(program):
                yield _case(f"{n}: while {what}", names, setup="pass", once=False)


def _operands(n: int, peers: Mapping[str, Any]) -> dict[str, Any]:
    x = tw.randn(n, n)
    operands: dict[str, Any] = {OURS: x}
    if "torch" in peers:
        operands["torch"] = peers["torch"].from_numpy(x.numpy())
    if "numpy" in peers:
        operands["numpy"] = x.numpy()
    return operands


def _case(name: str, operands: Mapping[str, Any], setup: str, once: bool = True) -> Case:
    contenders = {}
    for library, x in operands.items():
        # A peer where there is another one, since it is their threads that spin.
        others = [name for name in (*list(operands)[1:], OURS) if name != library]
        other = operands[others[0]] if others else None
        names = {"x": x, "other": other, "rest": _REST_SECONDS}
        contenders[library] = Timer("x @ x", f"from time import sleep; {setup}", globals=names)
    return Case(name, contenders, rounds=_ROUNDS, once=once)


@contextmanager
def _company(program: str) -> Iterator[None]:
    command = [sys.executable, "-c", program, str(tw.get_num_threads())]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError(f"the process beside ended at once, exit {process.wait()}")
            yield
        finally:
            process.kill()
