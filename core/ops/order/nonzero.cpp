// Positions of the elements that are not zero: they are counted, the count is read, and an op whose
// result has that size finds them.
#include "core/ops/engine/apply.h"
#include "core/base/error.h"
#include "core/ops/copy/copy.h"
#include "core/ops/move/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/read.h"
#include "core/ops/engine/records.h"

namespace tw {

namespace {

// Elements that are counted together, so that threads can start in many places: the counts are a
// ten-thousandth of the mask.
constexpr Attribute kPiece = 1 << 16;

std::int64_t pieces_of(std::int64_t count, Attribute piece) { return (count + piece - 1) / piece; }

// The count decides the size of memory: nothing is counted in a dry run.
std::int64_t read_count(const Tensor& counts) {
  const HostValues values(counts, "nonzero reads how many elements are not zero");
  return modes.dry_run ? 0 : values.as<std::int64_t>()[counts.count() - 1];
}

// One row an axis.
Tensor positions(const Tensor& x) {
  if (x.rank() == 0)
    fail(ErrorKind::value, "nonzero: a 0-d tensor has no positions; use reshape((1,)) first");
  const Tensor mask = contiguous(is_bool(x.dtype()) ? x : not_equal(x, 0));
  const Tensor counts = apply(kNonzeroCounts, {mask}, AttributeList(1).set(0, kPiece));
  return apply(kNonzeroPositions, {mask, counts},
               AttributeList(2).set(0, kPiece).set(1, read_count(counts)));
}

}  // namespace

constexpr OpRecord kNonzeroCounts = {
    .name = "nonzero_counts",
    .signature = "(mask: Tensor, piece: int) -> Tensor",
    .help = "How many elements are true before each piece of a mask, and in all of it.",
    .flags = kConstant,
    .infer = [](Call& call, Result* results) {
      results[0].shape = {pieces_of(call.in[0].count, call.attributes[0]) + 1};
      results[0].dtype = DType::int64;
    }};
constexpr OpRecord kNonzeroPositions = {
    .name = "nonzero_positions",
    .signature = "(mask: Tensor, counts: Tensor, piece: int, count: int) -> Tensor",
    .help = "Where a mask is true, one row an axis, given the counts of its pieces.",
    .flags = kConstant,
    .infer = [](Call& call, Result* results) {
      results[0].shape = {call.in[0].rank(), call.attributes[1]};
      results[0].dtype = DType::int64;
    }};
constexpr OpRecord kNonzero = {
    .name = "nonzero",
    .signature = "(x: Tensor) -> tuple[Tensor, ...]",
    .help =
        "Positions of the nonzero elements: one int64 tensor for each axis, in row-major order.\n"
        "Shapes: x of n dimensions; n results (elements that are not zero,).\n"
        "Types: all. Result: int64.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction | kConstant,
    .body = [](const Use& use, Tensor* out) { out[0] = positions(use.in[0].tensor); }};

std::vector<Tensor> rows_of(const Tensor& x) {
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < x.size(0); ++i)
    rows.push_back(index(x, {.kind = IndexItem::Kind::integer, .integer = i}));
  return rows;
}

std::vector<Tensor> nonzero(const Tensor& x) { return rows_of(apply(kNonzero, {x})); }

}  // namespace tw
