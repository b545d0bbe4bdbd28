"""Checks float32 functions of one argument over all 2^32 inputs on every instruction set:
`python tests/exhaustive.py [row ...] [--one-in N]`. Minutes a function; `make test-exhaustive` runs
all of them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from cases.accuracy import Worst, float32_errors, function
from cases.bounds import ARITY, BOUNDS

import tilewright as tw

UNARY = [name for name in BOUNDS if ARITY[name] == 1]
CHUNK = 1 << 16  # the arrays of a check stay in a core's cache


def check_chunk(name: str, x: np.ndarray) -> dict[str, Worst]:
    """By instruction set. One that gives the bits of another shares its errors."""
    found: dict[str, Worst] = {}
    call, results = function(name), {}
    argument = tw.asarray(x)
    for isa in tw.kernels.isas():
        with tw.kernels.use(isa=isa):
            y = np.asarray(call(argument))
        if not results:
            found[isa] = float32_errors(name, y, (x,))
        else:
            first, same = next(iter(results.items()))
            other = np.flatnonzero(y.view(np.int32) != same.view(np.int32))
            found[isa] = float32_errors(name, y[other], (x[other],))
            if found[first].ulp > found[isa].ulp and np.float32(found[first].at[0]) not in x[other]:
                found[isa].ulp, found[isa].at = found[first].ulp, found[first].at
        results[isa] = y
    return found


def check_range(task: tuple[str, int, int, int]) -> dict[str, Worst]:
    """Inputs whose bits, taken as a whole number, are start, start + step and so on."""
    name, start, stop, step = task
    tw.set_num_threads(1)
    total = {isa: Worst() for isa in tw.kernels.isas()}
    for at in range(start, stop, CHUNK * step):
        bits = np.arange(at, min(at + CHUNK * step, stop), step, dtype=np.uint64)
        for isa, worst in check_chunk(name, bits.astype(np.uint32).view(np.float32)).items():
            total[isa].merge(worst)
    return total


def check(name: str, pool: ProcessPoolExecutor, one_in: int) -> dict[str, Worst]:
    total = {isa: Worst() for isa in tw.kernels.isas()}
    piece = 1 << 26
    tasks = [(name, start, start + piece, one_in) for start in range(0, 1 << 32, piece)]
    for found in pool.map(check_range, tasks):
        for isa, worst in found.items():
            total[isa].merge(worst)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="row", help=f"of: {' '.join(UNARY)}")
    parser.add_argument("--one-in", type=int, default=1, help="check every n-th input only")
    options = parser.parse_args()
    failed = 0
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name in options.rows or UNARY:
            began = time.perf_counter()
            for isa, worst in check(name, pool, options.one_in).items():
                good = worst.ulp <= BOUNDS[name][0] and not worst.wrong
                failed += not good
                at = float(worst.at[0]).hex() if worst.at else "none"
                print(
                    f"{name:12} {isa:8} {worst.ulp:.4f} ulp at {at}"
                    + (f"  WRONG at {worst.wrong[:3]}" if worst.wrong else "")
                    + ("" if good else f"  FAILED: allowed {BOUNDS[name][0]}"),
                    flush=True,
                )
            print(f"{name:12} took {time.perf_counter() - began:.0f} s", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
