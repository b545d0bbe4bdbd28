// Extrema of bfloat16 as whole numbers of 16 bits, a whole vector at a time.
#pragma once
#include "core/cpu/simd/bfloat16.h"
#include "core/cpu/reduce/down_columns.h"

namespace tw::TW_ISA_NAME {
namespace {

// Whole numbers in the order of the numbers whose bits these are, -0 below 0 and NaN beyond the
// infinities; of keys it gives bits.
TW_INLINE Vec<Stored16> key_of(Vec<Stored16> bits) {
  return Vec<Stored16>(bits.v ^ ((bits.v >> 15) & (Stored16)0x7fff));
}
inline constexpr Stored16 kKeyOfInfinity = 0x7f80, kKeyOfMinusInfinity = -0x7f81;
inline constexpr Stored16 kNaNBits = 0x7fc0;

// Both ends of the keys are kept, as a NaN may be at either.
struct KeyRange {
  Vec<Stored16> low = (Stored16)0x7fff, high = (Stored16)-0x8000;
  TW_INLINE void add(Vec<Stored16> bits) {
    const Vec<Stored16> key = key_of(bits);
    low = Vec<Stored16>(key.v < low.v ? key.v : low.v);
    high = Vec<Stored16>(key.v > high.v ? key.v : high.v);
  }
  TW_INLINE void merge(KeyRange other) {
    low = Vec<Stored16>(other.low.v < low.v ? other.low.v : low.v);
    high = Vec<Stored16>(other.high.v > high.v ? other.high.v : high.v);
  }
  // Bits of the extremum of each lane.
  template <bool largest> TW_INLINE Vec<Stored16> extremum() const {
    const Mask<Stored16> nan = (high > kKeyOfInfinity) | (low < kKeyOfMinusInfinity);
    return where(nan, kNaNBits, key_of(largest ? high : low));
  }
  TW_INLINE KeyRange of_all_lanes() const {
    KeyRange all;
    all.low = min_of_lanes(low);
    all.high = max_of_lanes(high);
    return all;
  }
};

template <bool largest> float extremum_of_row(std::int64_t n, const Stored16* row) {
  constexpr int L = kLanes<Stored16>, chains = 4;
  KeyRange range[chains];
  std::int64_t at = 0;
  for (; at + chains * L <= n; at += chains * L)
#pragma GCC unroll 4
    for (int c = 0; c < chains; ++c) range[c].add(Vec<Stored16>::load(row + at + c * L));
  for (; at + L <= n; at += L) range[0].add(Vec<Stored16>::load(row + at));
  if (at < n) {
    const int rest = (int)(n - at);
    range[1].add(fill_after(Vec<Stored16>::load(row + at, rest), rest, row[at]));
  }
  range[0].merge(range[1]);
  range[2].merge(range[3]);
  range[0].merge(range[2]);
  return floats_of_bfloat16(range[0].of_all_lanes().extremum<largest>()).even[0];
}
// Bits of the extrema of m rows in `count` columns.
template <bool largest, int m>
TW_INLINE Vec<Stored16> extrema_of_columns(const char* x, std::int64_t row_bytes, int count) {
  KeyRange range;
#pragma GCC unroll 8
  for (int i = 0; i < m; ++i) range.add(load_some((const Stored16*)(x + i * row_bytes), count));
  return range.template extremum<largest>();
}

// Into accumulators of float32.
template <bool largest> void bfloat16_extremum_rows(std::int64_t m, std::int64_t n, const void* x,
                                                    std::int64_t row_bytes, void* acc) {
  for (std::int64_t i = 0; i < m; ++i) {
    const auto* row = (const Stored16*)((const char*)x + i * row_bytes);
    float& best = ((float*)acc)[i];
    best = Extremum<float, largest>::one(best, extremum_of_row<largest>(n, row));
  }
}
template <bool largest, int m> TW_INLINE void join_bfloat16_extrema(std::int64_t n, const char* x,
                                                                    std::int64_t row_bytes,
                                                                    float* acc) {
  constexpr int L = kLanes<float>;
  each_vector<Stored16>(n, [&](std::int64_t at, int count) TW_LAMBDA_INLINE {
    const Vec<Stored16> extrema =
        extrema_of_columns<largest, m>(x + at * sizeof(Stored16), row_bytes, count);
    BFloat16 bits[kLanes<Stored16>];
    __builtin_memcpy(bits, &extrema, sizeof bits);
    for (int part = 0; part < count; part += L) {
      const int here = count - part < L ? count - part : L;
      add_into<Extremum<float, largest>, float>(acc + at + part, load_bfloat16(bits + part), here);
    }
  });
}
template <bool largest> void bfloat16_extremum_columns(std::int64_t m, std::int64_t n,
                                                       const void* x, std::int64_t row_bytes,
                                                       void* acc) {
  auto* row = (const char*)x;
  for (; m >= kRowsAtOnce; m -= kRowsAtOnce, row += kRowsAtOnce * row_bytes)
    join_bfloat16_extrema<largest, kRowsAtOnce>(n, row, row_bytes, (float*)acc);
  for (; m > 0; --m, row += row_bytes)
    join_bfloat16_extrema<largest, 1>(n, row, row_bytes, (float*)acc);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
