"""The page of optimizations lists the table and the records."""

import importlib.util
import sys

from checkout import ROOT

import tilewright as tw

_spec = importlib.util.spec_from_file_location(
    "list_optimizations", ROOT / "tools/list_optimizations.py"
)
assert _spec is not None
assert _spec.loader is not None
tool = importlib.util.module_from_spec(_spec)
sys.modules["list_optimizations"] = tool  # where dataclasses look for their module
_spec.loader.exec_module(tool)


def test_the_page_lists_the_table_and_the_records() -> None:
    page = (ROOT / tool.PAGE).read_text()
    assert page == tool.page(tool.read(), tool.records(), page)


def test_the_tool_reads_what_the_engine_has() -> None:
    names = tool.reasons()
    read = [
        (row.name, names[row.reason], row.scope, row.bits == "same", row.families, row.how)
        for row in tool.read()
    ]
    assert read == [
        (row.name, row.reason, row.scope, row.same_bits, row.families, row.how)
        for row in tw.optimizations.table()
    ]


def test_recorded_gains_lie_in_their_intervals() -> None:
    for record in tool.records():
        assert {"version", "processor", "isa", "threads", "date"} <= record.conditions.keys()
        assert record.gains
        for works in record.gains.values():
            for work in works:
                assert 0 < float(work["low"]) <= float(work["gain"]) <= float(work["high"])
                assert float(work["on_us"]) > 0


def test_a_gain_is_told_with_its_interval_and_peaks() -> None:
    row = {"work": "a + b", "gain": "1.5", "low": "1.25", "high": "2"}
    assert tool.gain_text([row | {"on_peak_bytes": "", "off_peak_bytes": ""}]) == (
        "a + b: 1.50x (1.25 to 2.00)"
    )
    peaks = {"on_peak_bytes": str(1 << 20), "off_peak_bytes": str(3 << 20)}
    assert tool.gain_text([row | peaks]).endswith(", 1.0 MiB beside 3.0 MiB")
    assert tool.gain_text([]) == "-"
