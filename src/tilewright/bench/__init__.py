"""Comparisons against installed peers, interleaved in one process."""

from tilewright.bench.harness import Case, Result, Timing, compare, run_cases

__all__ = ["Case", "Result", "Timing", "compare", "run_cases"]
