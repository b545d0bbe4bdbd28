"""What core/problems/accuracy.inc promises: the largest errors in float32 and float64, in ulp."""

from __future__ import annotations

from tilewright import _core

_TABLE = _core.pointwise_table()
BOUNDS: dict[str, tuple[float, float]] = {row["name"]: row["ulp"] for row in _TABLE if "ulp" in row}
ARITY: dict[str, int] = {row["name"]: row["arity"] for row in _TABLE}
