// Terms of norms, added up in double: the squares of float32 neither overflow nor vanish there.
#pragma once
#include "core/cpu/kernels/wider.h"
#include "core/cpu/math.h"
#include "core/cpu/total_norm.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;
using Wide = Vec<double>;

// 0 adds nothing to any of them.
struct Magnitudes {
  static TW_INLINE Wide join(Wide sum, Wide x) { return sum + abs(x); }
  static TW_INLINE double one(double a, double b) { return a + b; }
};
struct Squares {
  static TW_INLINE Wide join(Wide sum, Wide x) { return sum + x * x; }
  static TW_INLINE double one(double a, double b) { return a + b; }
};
struct Largest {
  static TW_INLINE Wide join(Wide best, Wide x) { return maximum(best, abs(x)); }
  static TW_INLINE double one(double a, double b) { return a != a || a > b ? a : b; }
};

// Four chains hide the latency of an addition. Each lane takes 256 terms at most, so that long sums
// lose few digits; adding up the lanes costs about 5 % then.
inline constexpr int kChains = 4;
inline constexpr int64_t kBlock = 256 * kChains * kLanes<double>;

template <class Kind, class T> TW_INLINE double block_terms(int64_t n, const T* x) {
  constexpr int D = kLanes<double>;
  Wide chain[kChains] = {0.0, 0.0, 0.0, 0.0};
  int64_t at = 0;
  for (; at + kChains * D <= n; at += kChains * D)
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c)
      chain[c] = Kind::join(chain[c], load_wider<double>(x + at + c * D, D));
  for (; at < n; at += D) {
    T some[D] = {};
    for (int i = 0; i < D && at + i < n; ++i) some[i] = x[at + i];
    chain[0] = Kind::join(chain[0], load_wider<double>(some, D));
  }
  double total = 0;
  for (int c = 0; c < kChains; ++c)
    for (int i = 0; i < D; ++i) total = Kind::one(total, chain[c][i]);
  return total;
}

template <class Kind, class T> double norm_terms(int64_t n, const void* data) {
  const auto* x = (const T*)data;
  double total = 0;
  for (int64_t at = 0; at < n; at += kBlock)
    total = Kind::one(total, block_terms<Kind>(n - at < kBlock ? n - at : kBlock, x + at));
  return total;
}

}  // namespace

extern const TotalNormTable total_norm_table;
const TotalNormTable total_norm_table = {
    {norm_terms<Magnitudes, float>, norm_terms<Squares, float>, norm_terms<Largest, float>},
    {norm_terms<Magnitudes, double>, norm_terms<Squares, double>, norm_terms<Largest, double>}};

}  // namespace tw::TW_ISA_NAME
