"""The table of thresholds is the one place of such numbers in kernels, and its page lists them."""

import importlib.util
import re
import sys

import pytest
from checkout import ROOT

_spec = importlib.util.spec_from_file_location("list_thresholds", ROOT / "tools/list_thresholds.py")
assert _spec is not None
assert _spec.loader is not None
table = importlib.util.module_from_spec(_spec)
sys.modules["list_thresholds"] = table  # where dataclasses look for their module
_spec.loader.exec_module(table)

# Names that say "so much, and no more": what is a threshold, a grain, a stage or a piece.
KIND = re.compile(
    r"k\w*(Grain|Piece|Chunk|Stage|Strip|Stream|Short|Long|Few|Many|Most|Least|Narrow|Small|Enough"
    r"|Wide(?!st)|Band|Ahead|Prefetch|Together|AtOnce|Beyond|InCache|InL1|Block|Bytes)"
)
# At file scope: those of a loop belong to it.
DEFINITION = re.compile(
    r"^(?:inline )?constexpr (?:std::)?(?:u?int\d*_t|int|size_t|ptrdiff_t) ([^;]*);", re.MULTILINE
)

# What belongs to one loop or one format.
EXCEPTIONS = {
    "core/cpu/convolution/direct_pixels.cpp": {"kPlanesAtOnce"},  # a multiple of all tiles' rows
    "core/cpu/convolution/tile_loops.h": {"kFewPixels"},  # a tile's shape
    "core/cpu/convolution/winograd_weights.cpp": {"kBandRows"},  # of tiles
    "core/cpu/matmul/blocking.cpp": {"kFewTerms", "kLineBytes"},  # of streaming, a cache line
    "core/cpu/matmul/loops/direct.h": {"kShortDot"},  # of a fold of lanes
    "core/cpu/matmul/loops/few_terms.h": {"kLongRowTerms", "kShortRowTerms"},  # registers
    "core/cpu/matmul/loops/pack.h": {"kColumnsAtOnce"},  # a line's
    "core/cpu/matmul/loops/split_tiles.h": {"kLineBytes"},  # of the packed format
    "core/cpu/matmul/loops/tiled.h": {"kTiledBlock"},  # the plain rung, read first
    "core/cpu/matmul/integer.h": {"kIntegerScratchBytes"},  # a sum of others
    "core/cpu/matmul/matmul.cpp": {"kPageBytes", "kLongColumn", "kLineBytes", "kColdSpanBytes"},
    "core/cpu/matmul/pair_distances_loops.h": {"kPieceRows"},
    "core/cpu/matmul/split.h": {"kSplitBlock"},  # of the packed format
    "core/cpu/matmul/strassen.cpp": {"kMostLevels"},  # an error bound
    "core/cpu/move/gather.cpp": {"kLineBytes"},  # a cache line
    "core/cpu/optim/total_norm_loops.h": {"kBlock"},  # of four chains
    "core/cpu/order/nonzero.cpp": {"kWordBytes", "kGrain"},  # of pieces that its op cuts
    "core/cpu/order/order.cpp": {"kTogether", "kMostCompared"},  # registers; counters of a digit
    "core/cpu/order/order.h": {"kKeyBlock"},
    "core/cpu/order/order_loops.h": {"kColumnBytes", "kBlockRows"},
    "core/cpu/order/rows.h": {"kLongestRow", "kBlock", "kFewest"},  # counts of 32 bits; a vector
    "core/cpu/random/random_loops.h": {"kTogether"},
    "core/cpu/random/rejection.cpp": {"kMostParameters"},  # of the widest distribution
    "core/cpu/reduce/along_rows.h": {"kFew"},
    "core/cpu/reduce/down_columns.h": {"kRowsAtOnce"},
    "core/cpu/reduce/prod.h": {"kNarrowRows", "kShortRow", "kNarrowColumns"},
    "core/cpu/reduce/reduce.cpp": {"kStageRows", "kWideRows"},
    "core/cpu/reduce/reduce.h": {"kFewRows", "kFewFactors"},
}


def named_here(text: str) -> set[str]:
    """Thresholds that a source defines by a number of its own."""
    found = set()
    for definition in DEFINITION.findall(text):
        for part in re.split(r",\s*(?=k[A-Z]\w* =)", definition):
            name, _, value = part.partition("=")
            if KIND.match(name.strip()) and "thresholds::" not in value:
                found.add(name.strip())
    return found


def test_no_kernel_names_a_threshold_for_itself() -> None:
    found = {}
    for path in sorted((ROOT / "core/cpu").rglob("*")):
        if path.suffix not in {".h", ".cpp"} or path.parent.name in {"simd", "math"}:
            continue
        if names := named_here(path.read_text()):
            found[str(path.relative_to(ROOT))] = names
    assert found == EXCEPTIONS


def test_the_page_lists_the_table() -> None:
    page = (ROOT / table.PAGE).read_text()
    assert page == table.page(table.read(), page)


def test_each_row_is_used_and_explained() -> None:
    rows = [row for technique in table.read() for row in technique.rows]
    assert len({row.name for row in rows}) == len(rows) > 50
    sources = "".join(
        path.read_text()
        for top in ("core", "binding")
        for path in (ROOT / top).rglob("*")
        if path.suffix in {".h", ".cpp"}
    )
    for row in rows:
        assert re.search(rf"thresholds::{row.name}\b", sources), f"nothing reads {row.name}"
        assert row.reason
        assert row.number > 0


@pytest.mark.parametrize(
    "text", ["constexpr int64_t kPiece = 32 << 10;", "inline constexpr int kA = 1, kFewRows = 8;"]
)
def test_the_rule_sees_a_definition(text: str) -> None:
    assert named_here(f"\n{text}\n")
    assert not named_here(f"\n  {text}\n")
    assert not named_here("\nconstexpr int64_t kPiece = thresholds::kGrain;\n")
