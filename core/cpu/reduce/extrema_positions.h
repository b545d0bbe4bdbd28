// Positions of the largest and the smallest element, of the first where several are equal.
#pragma once
#include "core/base/thresholds.h"
#include "core/cpu/reduce/along_rows.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;
using std::uint8_t;

// Whether x, found later, replaces best.
template <bool largest, class T> TW_INLINE bool replaces(T x, T best) {
  return (largest ? x > best : x < best) | (is_nan(x) & !is_nan(best));
}
#ifdef __AVX2__
#ifndef __AVX512F__  // where a comparison gives such bits itself
template <class T> TW_INLINE std::uint64_t bits_of(Mask<T> equal) {
  if constexpr (sizeof(T) == 4)
    return (unsigned)_mm256_movemask_ps((__m256)equal.v);
  else
    return (unsigned)_mm256_movemask_pd((__m256d)equal.v);
}
#endif
// A bit for each lane of 32 or 64 bits.
template <class T> TW_INLINE std::uint64_t which_equal(Vec<T> a, Vec<T> b) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>)
    return _mm512_cmp_ps_mask((__m512)a.v, (__m512)b.v, _CMP_EQ_OQ);
  else if constexpr (std::is_same_v<T, double>)
    return _mm512_cmp_pd_mask((__m512d)a.v, (__m512d)b.v, _CMP_EQ_OQ);
  else if constexpr (sizeof(T) == 4)
    return _mm512_cmpeq_epi32_mask((__m512i)a.v, (__m512i)b.v);
  else
    return _mm512_cmpeq_epi64_mask((__m512i)a.v, (__m512i)b.v);
#else
  return bits_of<T>(a == b);
#endif
}
// In whole steps of four vectors; -1: it is in none.
template <class T> int64_t first_place_in_steps(int64_t n, const T* row, T x) {
  constexpr int L = kLanes<T>, step = kChains * L;
  for (int64_t from = 0; from + step <= n; from += step) {
#ifndef __AVX512F__
    // One question for four vectors: most have none.
    Mask<T> any = Vec<T>::load(row + from) == Vec<T>(x);
#pragma GCC unroll 4
    for (int c = 1; c < kChains; ++c) any.v |= (Vec<T>::load(row + from + c * L) == Vec<T>(x)).v;
    if (!bits_of<T>(any)) continue;
#endif
    std::uint64_t bits = 0;
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c)
      bits |= which_equal<T>(Vec<T>::load(row + from + c * L), x) << c * L;
    if (bits) return from + __builtin_ctzll(bits);
  }
  return -1;
}
#endif
// The place of the first of n elements that is x, which is among them; NaN is found as NaN.
template <class T> int64_t first_place(int64_t n, const T* row, T x) {
  constexpr int L = kLanes<T>, step = kChains * L;
  int64_t at = 0;
  if constexpr (sizeof(T) == 1) return (const T*)__builtin_memchr(row, (uint8_t)x, n) - row;
#ifdef __AVX2__
  if constexpr (sizeof(T) >= 4) {
    if (const int64_t place = first_place_in_steps(n, row, x); place >= 0) return place;
    at = is_nan(x) ? 0 : n / step * step;
  }
#else
  if constexpr (sizeof(T) >= 4 && L > 1) {
    // From the last step to the first, so that each lane ends with its first place.
    using I = IntLike<T>;
    const I none = highest<I>();
    Vec<I> place[kChains], here = (I)(n / step * step);
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) place[c] = none;
    for (int64_t from = n / step * step - step; from >= 0; from -= step) {
      here -= Vec<I>((I)step);
#pragma GCC unroll 4
      for (int c = 0; c < kChains; ++c) {
        const auto equal = Vec<T>::load(row + from + c * L).v == Vec<T>(x).v;
        place[c] = Vec<I>(equal ? here.v : place[c].v);
      }
    }
    typename Vec<I>::Raw lane = {};
    for (int i = 0; i < L; ++i) lane[i] = (I)i;
    Vec<I> first = none;
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      // Nowhere stays nowhere: none + lane would be beyond the type.
      const auto found = (place[c].v != none ? place[c].v : Vec<I>(I(0)).v) + lane + (I)(c * L);
      first = Vec<I>(place[c].v != none && found < first.v ? found : first.v);
    }
    const I found = min_of_lanes(first);
    if (found != none) return found;
    at = is_nan(x) ? 0 : n / step * step;
  }
#endif
  while (is_nan(x) ? !is_nan(row[at]) : row[at] != x) ++at;
  return at;
}

// A whole number in x's place in the order: both zeros are one, and so are all NaN, which replace
// any number.
template <bool largest, class T> TW_INLINE auto place_in_order(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = IntLike<T>;
    const Bits bits = __builtin_bit_cast(Bits, x), sign = bits >> (8 * sizeof(Bits) - 1);
    const Bits size = bits & highest<Bits>();
    const bool nan = size > __builtin_bit_cast(Bits, (T)__builtin_inf());
    return nan ? (largest ? highest<Bits>() : lowest<Bits>()) : (Bits)((size ^ sign) - sign);
  } else {
    return x;
  }
}
// Of few elements, one after the other.
template <class T> inline constexpr int64_t kFewPlaces = sizeof(T) < 4 ? 12 : 24;
template <class T, bool largest> TW_INLINE int64_t place_in_few(int64_t n, const T* row) {
  auto top = place_in_order<largest>(row[0]);
  int64_t place = 0;
  for (int64_t i = 1; i < n; ++i) {
    const auto here = place_in_order<largest>(row[i]);
    const bool better = largest ? here > top : here < top;
    top = better ? here : top;
    place = better ? i : place;
  }
  return place;
}
// First the extremum of a block; where it is better, its place is looked for in the first-level
// cache.
template <class T, bool largest> void arg_rows(int64_t m, int64_t n, const void* x,
                                               int64_t row_bytes, int64_t base, void* best,
                                               int64_t* index) {
  using Op = Extremum<T, largest>;
  constexpr int64_t block = thresholds::kStageBytes / sizeof(T);
  for (int64_t i = 0; i < m; ++i) {
    const auto* row = (const T*)((const char*)x + i * row_bytes);
    T top = ((T*)best)[i];
    if (n > 0 && n <= kFewPlaces<T>) {
      const int64_t place = place_in_few<T, largest>(n, row);
      if (index[i] >= 0 && !replaces<largest>(row[place], top)) continue;
      index[i] = base + place;
      ((T*)best)[i] = row[place];
      continue;
    }
    for (int64_t at = 0; at < n; at += block) {
      const int64_t count = n - at < block ? n - at : block;
      const T here = block_of_row<Op, T>(count, row + at);
      if (index[i] >= 0 && !replaces<largest>(here, top)) continue;
      top = here;
      index[i] = base + at + first_place(count, row + at, here);
    }
    ((T*)best)[i] = top;
  }
}
template <class T, bool largest> void arg_columns(int64_t m, int64_t n, const void* x,
                                                  int64_t row_bytes, int64_t base, void* best,
                                                  int64_t* index) {
  auto* __restrict top = (T*)best;
  auto* __restrict where_top = index;
  for (int64_t i = 0; i < m; ++i) {
    const auto* __restrict row = (const T*)((const char*)x + i * row_bytes);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const T here = row[j], old = top[j];
      const bool take = (where_top[j] < 0) | replaces<largest>(here, old);
      top[j] = take ? here : old;
      where_top[j] = take ? base + i : where_top[j];
    }
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
