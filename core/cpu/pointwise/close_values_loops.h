// Whether numbers are close to others, as float64 has it, in one pass.
#pragma once
#include <cstdint>

#include "core/cpu/pointwise/close_values.h"

namespace tw {

struct CloseValuesTable {
  // y[i] is 1 where a[i] and b[i] are equal or abs(a - b) <= atol + rtol * abs(b), else 0.
  using Loop = void (*)(std::int64_t n, const void* a, const void* b, double rtol, double atol,
                        bool equal_nan, std::uint8_t* y);
  Loop float32, float64;
};

}  // namespace tw

#ifdef TW_ISA_NAME  // ---- the loops, once for each instruction set ----
#include "core/cpu/simd/mask_bytes.h"
#include "core/cpu/simd/widen.h"
#include "core/cpu/math/functions.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// ---- in float64, whatever the values ----

template <class T, bool equal_nan> void close_in_double(int64_t n, const T* x, const T* y,
                                                        double rtol, double atol,
                                                        std::uint8_t* out) {
  constexpr int D = kLanes<double>, masks_at_once = kMasksAtOnce<double>;
  const auto close = [=](int64_t at, int count) TW_LAMBDA_INLINE {
    const Vec<double> a = load_wider<double>(x + at, count), b = load_wider<double>(y + at, count);
    const Vec<double> bound = abs(b) * rtol + atol;
    const Mask<double> alike = (a == b) | (isfinite(b) & (abs(a - b) <= bound));
    if constexpr (equal_nan)
      return alike | (isnan(a) & isnan(b));
    else
      return alike;
  };
  int64_t at = 0;
  if constexpr (masks_at_once > 1)
    for (; at + masks_at_once * D <= n; at += masks_at_once * D) {
      Mask<double> masks[masks_at_once];
#pragma GCC unroll 8
      for (int i = 0; i < masks_at_once; ++i) masks[i] = close(at + i * D, D);
      store_mask<double>(out + at, masks);
    }
  for (; at + D <= n; at += D) store_mask<double>(out + at, close(at, D), D);
  if (at < n) {
    const int rest = (int)(n - at);
    store_mask<double>(out + at, close(at, rest), rest);
  }
}

// ---- of float32 where that decides ----

// What rounding moves a difference and its bound by is well below these.
constexpr float kSlack = 0x1p-20f, kLeast = 0x1p-120f;

// Whether a and b are close; and whether that is certain, which it is not of infinities and NaN,
// nor where their distance is near the bound or one of both is more than float32 holds.
TW_INLINE Mask<float> close_floats(Vec<float> a, Vec<float> b, float rtol, float atol,
                                   Mask<float>& certain) {
  const Vec<float> apart = abs(a - b), bound = fma(abs(b), rtol, atol);
  const Vec<float> inside = at_most(fma(bound, 1 - kSlack, -kLeast), 0x1p127f);  // keeps NaN
  const Mask<float> alike = (a == b) | (apart < inside);
  certain = alike | (apart > fma(bound, 1 + kSlack, kLeast));
  return alike;
}
template <bool equal_nan> void close_values(int64_t n, const float* x, const float* y, double rtol,
                                            double atol, std::uint8_t* out) {
  constexpr int L = kLanes<float>, vectors = 4;
  int64_t at = 0;
  for (; at + vectors * L <= n; at += vectors * L) {
    Mask<float> masks[vectors], certain[vectors];
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i)
      masks[i] = close_floats(Vec<float>::load(x + at + i * L), Vec<float>::load(y + at + i * L),
                              (float)rtol, (float)atol, certain[i]);
    if (any(!(certain[0] & certain[1] & certain[2] & certain[3]))) {
      close_in_double<float, equal_nan>(vectors * L, x + at, y + at, rtol, atol, out + at);
    } else if constexpr (kMasksAtOnce<float> == vectors) {
      store_mask<float>(out + at, masks);
    } else {
#pragma GCC unroll 4
      for (int i = 0; i < vectors; ++i) store_mask<float>(out + at + i * L, masks[i], L);
    }
  }
  close_in_double<float, equal_nan>(n - at, x + at, y + at, rtol, atol, out + at);
}
template <bool equal_nan> void close_values(int64_t n, const double* x, const double* y,
                                            double rtol, double atol, std::uint8_t* out) {
  close_in_double<double, equal_nan>(n, x, y, rtol, atol, out);
}
template <class T> void close_values_as(int64_t n, const void* a, const void* b, double rtol,
                                        double atol, bool equal_nan, std::uint8_t* y) {
  const auto *const x = (const T*)a, *const other = (const T*)b;
  if (equal_nan)
    close_values<true>(n, x, other, rtol, atol, y);
  else
    close_values<false>(n, x, other, rtol, atol, y);
}

}  // namespace

extern const CloseValuesTable close_values_table;
const CloseValuesTable close_values_table = {close_values_as<float>, close_values_as<double>};

}  // namespace tw::TW_ISA_NAME

#else  // ---- the lowerings, once ----
#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

using Problem = CloseValuesProblem;

const char* refuses(const Call& call) {
  const Meta &a = call.in[0], &b = call.in[1];
  if (a.dtype != b.dtype || (a.dtype != DType::float32 && a.dtype != DType::float64))
    return "kernels are for two operands of float32 or of float64";
  return *a.shape == *b.shape ? nullptr : "kernels are for operands of one shape";
}
void set_up(const Call& call, void* problem) {
  const Meta& a = call.in[0];
  *static_cast<Problem*>(problem) = {a.dtype,
                                     a.count,
                                     call.attributes.real(0),
                                     call.attributes.real(1),
                                     call.attributes.flag(2),
                                     nullptr,
                                     nullptr,
                                     nullptr};
}
void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.a = at[0];
  p.b = at[1];
  p.y = static_cast<std::uint8_t*>(at[2]);
}
double cost_ns(const void* problem) {
  constexpr double elements_per_ns = 4;
  return 100 + static_cast<double>(static_cast<const Problem*>(problem)->n) / elements_per_ns;
}
void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  const CloseValuesTable& table = *active_kernels().close_values;
  const auto loop = p.dtype == DType::float64 ? table.float64 : table.float32;
  const auto bytes = static_cast<int64_t>(size_of(p.dtype));
  parallel_ranges(p.n, thresholds::kGrain, [&](int64_t begin, int64_t end) {
    loop(end - begin, static_cast<const char*>(p.a) + begin * bytes,
         static_cast<const char*>(p.b) + begin * bytes, p.rtol, p.atol, p.equal_nan, p.y + begin);
  });
}

}  // namespace

void register_close_values_kernels() {
  add_kernel<Problem>("close_values", "one pass; in float64 where float32 leaves a doubt",
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind,
                       .cost_ns = cost_ns,
                       .run = run,
                       .contiguous = 3});
}

}  // namespace tw
#endif
