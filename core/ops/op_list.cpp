// The list of all ops.
#include "core/ops/engine/records.h"

#include <iterator>

#include "core/ops/pointwise/pointwise.h"
#include "core/runtime/registry.h"

namespace tw {

namespace {

std::vector<const OpRecord*> listed() {
  std::vector<const OpRecord*> records;
  for (int i = 0; i < kPointwiseOps; ++i)
    records.push_back(&record_of(static_cast<PointwiseOp>(i)));
  append_gradient_records(records);
  const OpRecord* const others[] = {
#define TW_REDUCTION(name, ...) &k_##name,
#include "core/problems/reductions.inc"
#undef TW_REDUCTION
#define TW_UPDATE(name, ...) &k_##name,
#include "core/problems/updates.inc"
#undef TW_UPDATE
#define TW_OP(record) &record,
#include "core/ops/engine/ops.inc"
#undef TW_OP
  };
  records.insert(records.end(), std::begin(others), std::end(others));
  for (const OpRecord* op : records)
    if (op->infer && op->body) register_body(op->name);  // what may run in place of kernels
  return records;
}

}  // namespace

const std::vector<const OpRecord*>& op_records() {
  static const auto* const records = new std::vector<const OpRecord*>(listed());
  return *records;
}

}  // namespace tw
