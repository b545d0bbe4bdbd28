// What pointwise kernels are fed by: how much is staged and taken at a time, and rows that are
// short.
#pragma once
#include "core/base/thresholds.h"
#include "core/cpu/pointwise/pointwise.h"

namespace tw {

inline constexpr int kMaxOperands = kMaxPointwiseInputs + 1;
// For a run of the result that begins at y.
inline Traffic traffic_at(Traffic whole, const void* y) {
  const bool is_line = reinterpret_cast<std::uintptr_t>(y) % 64 == 0;
  return whole == Traffic::nontemporal && !is_line ? Traffic::beyond_l1 : whole;
}

inline bool same_representation(DType a, DType b) {
  return a == b || (size_of(a) == 1 && size_of(b) == 1 && !is_signed_int(a) && !is_signed_int(b));
}

// Whether rows are so short that many are computed as one run, in a buffer where need be.
bool has_short_rows(const PointwiseProblem& p);
// On all threads.
void run_short_rows(const PointwiseProblem& p);

}  // namespace tw
