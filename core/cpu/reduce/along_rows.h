// Reductions along rows, whose elements lie one after the other.
#pragma once
#include "core/cpu/reduce/accumulators.h"
#include "core/cpu/simd/lane_sums.h"
#include "core/cpu/reduce/overflowing_squares.h"
#include "core/cpu/simd/widen.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// Four vectors in flight hide the latency of an addition (4 cycles, two a cycle, half of it spent
// on loads from the second-level cache). Each lane takes 16 terms at most, as in NumPy; blocks are
// then added pairwise.
inline constexpr int kChains = 4;
template <class T> inline constexpr int64_t kBlock = 16 * kChains * kLanes<T>;

// Whether two vectors of T come from one of bfloat16 at once, as its even and its odd numbers: half
// the instructions of widening in order.
template <class T, class P> inline constexpr bool kByPairs =
    std::is_same_v<P, const BFloat16*> && kLanes<Stored16> == 2 * kLanes<T>;
// The numbers of kChains vectors from p on, not always in order.
template <class T, class P, class V> TW_INLINE void load_chains(P p, V* v) {
  constexpr int L = kLanes<T>, step = kByPairs<T, P> ? 2 : 1;
#pragma GCC unroll 4
  for (int c = 0; c < kChains; c += step)
    if constexpr (kByPairs<T, P>) {
      const FloatPair pair = floats_of_bfloat16(Vec<Stored16>::load((const Stored16*)p + c * L));
      v[c] = pair.even;
      v[c + 1] = pair.odd;
    } else {
      v[c] = load_as<T>(p + c * L);
    }
}

template <class Op, class T, class P, class Of = Itself>
TW_INLINE Op lanes_of_block(int64_t n, P x, Of of = {}) {
  constexpr int L = kLanes<T>;
  Op chain[kChains];
  int64_t at = 0;
  for (; at + kChains * L <= n; at += kChains * L) {
    decltype(load_as<T>(x)) v[kChains];
    load_chains<T>(x + at, v);
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) chain[c].add(of(v[c]));
  }
  chain[0].merge(chain[1]);
  chain[2].merge(chain[3]);
  chain[0].merge(chain[2]);
  for (; at + L <= n; at += L) chain[0].add(of(load_as<T>(x + at)));
  if (at < n) {
    const int rest = (int)(n - at);
    chain[0].add(fill_after(of(load_as<T>(x + at, rest)), rest, Op::identity));
  }
  return chain[0];
}
template <class Op, class T, class P, class Of = Itself>
TW_INLINE T block_of_row(int64_t n, P x, Of of = {}) {
  return lanes_of_block<Op, T>(n, x, of).value();
}
// Whole blocks of float32 join accumulators of double lane by lane, which leaves nothing between
// two blocks that waits for a result.
template <class P, class Of> Vec<double> lanes_of_float_blocks(int64_t n, P x, Of of) {
  constexpr int L = kLanes<float>;
  constexpr bool halves = L > kLanes<double>;
  Vec<double> low = 0.0, high = 0.0;
  for (int64_t at = 0; at < n; at += kBlock<float>) {
    Vec<float> chain[kChains];
    decltype(load_as<float>(x)) v[kChains];
    load_chains<float>(x + at, v);
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) chain[c] = of(v[c]);
#pragma GCC unroll 1
    for (int64_t i = at + kChains * L; i < at + kBlock<float>; i += kChains * L) {
      load_chains<float>(x + i, v);
#pragma GCC unroll 4
      for (int c = 0; c < kChains; ++c) chain[c] += of(v[c]);
    }
    const Vec<float> block = (chain[0] + chain[1]) + (chain[2] + chain[3]);
    low += widened_half<false>(block);
    if constexpr (halves) high += widened_half<true>(block);
  }
  return low + high;
}
template <class P, class Of> double long_float_row(int64_t n, P x, Of of) {
  const int64_t blocks = n / kBlock<float> * kBlock<float>;
  return sum_of_lanes(lanes_of_float_blocks(blocks, x, of)) +
         block_of_row<Sum<float>, float>(n - blocks, x + blocks, of);
}
// Pairwise by lanes, which are folded once.
template <class Op, class T, class P, class Of> Op lanes_of_row(int64_t n, P x, Of of) {
  if (n <= kBlock<T>) return lanes_of_block<Op, T>(n, x, of);
  const int64_t half = (n / 2 + kBlock<T> - 1) / kBlock<T> * kBlock<T>;
  // One after the other: arguments may be computed last first, and memory read backwards by blocks
  // comes at half the rate on some processors.
  Op first = lanes_of_row<Op, T>(half, x, of);
  first.merge(lanes_of_row<Op, T>(n - half, x + half, of));
  return first;
}
template <class Op, class T, class P, class Of>
typename Op::Accumulator long_row(int64_t n, P x, Of of) {
  if constexpr (std::is_same_v<Op, Sum<float>>)
    return long_float_row(n, x, of);
  else
    return lanes_of_row<Op, T>(n, x, of).value();
}
template <class Op, class T>
TW_INLINE typename Op::Accumulator row_of(int64_t n, auto row, auto of) {
  const bool whole = !Op::rounds || n <= kBlock<T>;
  return whole ? block_of_row<Op, T>(n, row, of) : long_row<Op, T>(n, row, of);
}
// Rows of complex numbers, n parts each: sums of the real and of the imaginary ones.
template <class T>
void pair_rows(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  auto* a = (double*)acc;
  for (int64_t i = 0; i < m; ++i, a += 2) {
    auto* row = (const T*)((const char*)x + i * row_bytes);
    const auto add = [a](auto pair) TW_LAMBDA_INLINE {
      a[0] += pair[0];
      a[1] += pair[1];
    };
    if constexpr (std::is_same_v<T, float>) {
      const int64_t blocks = n / kBlock<float> * kBlock<float>;
      if (blocks > 0) add(pair_of_lanes<double>(lanes_of_float_blocks(blocks, row, Itself()).v));
      add(pair_of_lanes<float>(
          lanes_of_block<Sum<float>, float>(n - blocks, row + blocks).total.v));
    } else {
      add(pair_of_lanes<double>(lanes_of_row<Sum<double>, double>(n, row, Itself()).total.v));
    }
  }
}

// Fewer elements one after the other take less time than to fold the lanes of a vector.
inline constexpr int64_t kFew = 8;
template <class Op, class T, class S = T, class Of = Itself>
void rows(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  auto* a = (typename Op::Accumulator*)acc;
  const auto each = [=](auto combined) TW_LAMBDA_INLINE {
    for (int64_t i = 0; i < m; ++i) {
      const S* row = beyond((const S*)x, i * row_bytes);
      typename Op::Accumulator part = combined(row);
      if constexpr (std::is_same_v<Of, Square>) part = whole_squares(part, n, row, (T)0);
      a[i] = Op::one(a[i], part);
    }
  };
  if constexpr (std::is_floating_point_v<T> || !Op::rounds)
    if (n > 0 && n < kFew)
      return each([=](const S* row) TW_LAMBDA_INLINE { return Op::of_few(n, row, Of()); });
  each([=](const S* row) TW_LAMBDA_INLINE { return row_of<Op, T>(n, row, Of()); });
}
template <class T> void squares_rows(int64_t m, int64_t n, const void* x, int64_t row_bytes,
                                     const void* centres, void* acc) {
  auto* centre = (const T*)centres;
  auto* a = (double*)acc;
  for (int64_t i = 0; i < m; ++i) {
    const T* row = beyond((const T*)x, i * row_bytes);
    const double part = row_of<Sum<T>, T>(n, row, SquaredDistance<T>{centre[i]});
    a[i] += whole_squares(part, n, row, centre[i]);
  }
}
template <class T, class S> void product_rows(int64_t m, int64_t n, const void* x,
                                              int64_t row_bytes, const void* y, void* acc) {
  const Products<S> first = {(const S*)x, (const S*)y};
  auto* a = (double*)acc;
  if (n > 0 && n < kFew) {
    for (int64_t i = 0; i < m; ++i)
      a[i] += Sum<T>::of_few(n, beyond(first, i * row_bytes), Itself());
    return;
  }
  for (int64_t i = 0; i < m; ++i)
    a[i] += row_of<Sum<T>, T>(n, beyond(first, i * row_bytes), Itself());
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
