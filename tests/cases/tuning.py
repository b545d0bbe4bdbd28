"""Made-up machines for the tests of tuning."""

from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright import tune
from tilewright.tune import rungs
from tilewright.tune.timing import Work


class Machine:
    """A made-up machine. `best`: the values it likes; each factor of 2 off costs `loss`.

    `rates`: overhead and ns a flop of each rung. `noise`: how far times stray, as a share.
    """

    def __init__(self, best=None, loss=0.2, rates=None, noise=0.0, speed=1.0, seed=0):
        self.best, self.loss, self.noise, self.speed = best or {}, loss, noise, speed
        self.rates = rates or {}
        self.random = np.random.default_rng(seed)
        self.time = 0.0
        self.samples = 0
        self.seen: list[Work] = []
        self.usual = tune.defaults()
        self.known: dict[object, dict[str, rungs.Estimate]] = {}

    def now(self):
        return self.time

    def forget(self):
        pass

    def seconds(self, work):
        self.samples += 1
        self.seen.append(work)
        current = tune.current()
        estimates = self._estimates(work, current)
        rung = work.kernel or next(name for name, rung in estimates.items() if rung.chosen)
        overhead, rate = self.rates.get(rung, self._usual(rung))
        ns = overhead + rate * 2 * work.m * work.k * work.n
        # With packing free for columns, it makes no difference here which of them are dot products.
        ns += 0 if work.transposed else estimates[rung].fixed_ns
        for name, value in self.best.items():
            ns *= 1 + self.loss * abs(np.log2(max(current[name], 1) / value))
        ns *= 1 + self.noise * abs(self.random.standard_normal())
        self.time += max(1e-3, 1e-9 * ns * self.speed)
        return 1e-9 * ns * self.speed

    def _estimates(self, work, current):
        """They follow from the product, the numbers in force and how many threads there are."""
        key = (work, *current.values(), tw.get_num_threads())
        if key not in self.known:
            self.known[key] = rungs.estimates(work)
        return self.known[key]

    def _usual(self, rung):
        usual = self.usual
        # A rung that stands on another has no rates of its own.
        own = rung if f"{rung}_overhead_ns" in usual else "packed"
        return usual[f"{own}_overhead_ns"], usual[f"{own}_ns_per_flop"]
