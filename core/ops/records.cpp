// The list of all ops.
#include "core/ops/records.h"

namespace tw {

const std::vector<const OpRecord*>& op_records() {
  static const auto* const records = new std::vector<const OpRecord*>{
#define TW_OP(record) &record,
#include "core/ops/ops.inc"
#undef TW_OP
  };
  return *records;
}

}  // namespace tw
