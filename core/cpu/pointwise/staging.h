// What pointwise kernels are fed by: how much is staged and taken at a time, and rows that are
// short.
#pragma once
#include "core/base/cpu_info.h"
#include "core/cpu/pointwise/pointwise.h"

namespace tw {

inline constexpr int kMaxOperands = kMaxPointwiseInputs + 1;
// Bytes of an operand staged at a time: six fit half of a 48 KiB L1 cache.
inline constexpr std::int64_t kStageBytes = 4096;
// Elements a thread takes at a time: large enough to hide the hand-over (about 1 us).
inline constexpr std::int64_t kGrain = 32768;

// Results larger than this are written around the caches: reading a line only to overwrite it costs
// a quarter of an addition's traffic. Smaller ones may still be in the last cache when the next op
// reads them, which is worth more (measured both ways in docs/notes/pointwise.md).
inline constexpr std::int64_t kStreamBytes = 32 << 20;

// Results from this size on are made of operands that lie beyond the first-level cache. Kernels
// then load by halves of a vector, where units are no wider: others would lose
// (docs/notes/pointwise.md).
inline constexpr std::int64_t kBeyondL1Bytes = 64 << 10;
inline Traffic traffic_of(const PointwiseProblem& p) {
  static const bool loads_halves = cpu_info().vector_path_bits == 256;
  const std::int64_t bytes = p.count * static_cast<std::int64_t>(size_of(p.dtype[0]));
  if (bytes >= kStreamBytes) return Traffic::nontemporal;
  return bytes >= kBeyondL1Bytes && loads_halves ? Traffic::beyond_l1 : Traffic::in_l1;
}
// For a run of the result that begins at y.
inline Traffic traffic_at(Traffic whole, const void* y) {
  const bool is_line = reinterpret_cast<std::uintptr_t>(y) % 64 == 0;
  return whole == Traffic::nontemporal && !is_line ? Traffic::beyond_l1 : whole;
}

inline bool same_representation(DType a, DType b) {
  return a == b || (size_of(a) == 1 && size_of(b) == 1 && !is_signed_int(a) && !is_signed_int(b));
}

// Rows up to this long are not worth a call of the kernel each.
inline constexpr std::int64_t kShortRow = 128;
// Nor where one value for each row must be laid out, if rows are no longer than this.
inline constexpr std::int64_t kSpreadBytes = 384;
// Nor up to this where the result's rows lie apart, so that they must be copied to their places.
inline constexpr std::int64_t kShortBytesApart = 160;
// Whether rows are so short that many are computed as one run, in a buffer where need be.
bool has_short_rows(const PointwiseProblem& p);
// On all threads.
void run_short_rows(const PointwiseProblem& p);

}  // namespace tw
