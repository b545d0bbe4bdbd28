// Whether arithmetic left the range of its type, as the processor records it.
#pragma once
#include <cfenv>

#include "core/cpu/simd/rows.h"

namespace tw::TW_ISA_NAME {
namespace {

// The processor's record, and its bits of overflow and underflow.
#if defined(__x86_64__)
inline constexpr unsigned kRangeLeft = 8 | 16;
TW_INLINE unsigned exceptions() {
  unsigned status;
  __asm__ volatile("stmxcsr %0" : "=m"(status));
  // Subnormal numbers that are kept, but read as 0: an exact one would lose all digits unseen.
  constexpr unsigned reads_zero = 0x40, keeps_none = 0x8000;
  return (status & (reads_zero | keeps_none)) == reads_zero ? status | kRangeLeft : status;
}
TW_INLINE void forget_exceptions(unsigned status) {
  status &= ~kRangeLeft;
  __asm__ volatile("ldmxcsr %0" ::"m"(status));
}
#elif defined(__aarch64__)
inline constexpr std::uint64_t kRangeLeft = 4 | 8;
TW_INLINE std::uint64_t exceptions() {
  std::uint64_t status;
  __asm__ volatile("mrs %0, fpsr" : "=r"(status));
  return status;
}
TW_INLINE void forget_exceptions(std::uint64_t status) {
  __asm__ volatile("msr fpsr, %0" ::"r"(status & ~kRangeLeft));
}
#else
inline constexpr int kRangeLeft = FE_OVERFLOW | FE_UNDERFLOW;
TW_INLINE int exceptions() { return std::fetestexcept(kRangeLeft); }
TW_INLINE void forget_exceptions(int) { std::feclearexcept(kRangeLeft); }
#endif

// From its construction on, watches arithmetic on numbers that are read through `x`: IEEE 754's
// exceptions of overflow, and of underflow, which is of results below the normal numbers that are
// not exact. Factors that are 0, infinite or NaN are none. What the program itself had noted of the
// two is forgotten.
//
// Compilers are told that nobody looks (-fno-trapping-math): they may compute more than is asked
// for, which notes more, but not less.
class RangeWatch {
 public:
  template <class T> TW_INLINE explicit RangeWatch(const T*& x) {
    if (const auto status = exceptions(); status & kRangeLeft) forget_exceptions(status);
    __asm__ volatile("" : "+r"(x)::"memory");  // nothing is read, and multiplied, before
  }
  // What is watched: nothing that leads to these results is computed after this.
  template <int n> TW_INLINE void await(const Vec<double> (&results)[n]) const {
    for (const Vec<double>& each : results) await(each.v);
  }
  template <int m, int n> TW_INLINE void await(const float (&results)[m][n]) const {
    __asm__ volatile("" ::"m"(results));
  }
  template <class V> TW_INLINE void await(V result) const {
#if defined(__AVX512F__)
    __asm__ volatile("" ::"v"(result));
#elif defined(__AVX2__)
    __asm__ volatile("" ::"x"(result));
#elif defined(__ARM_NEON)
    __asm__ volatile("" ::"w"(result));
#else
    __asm__ volatile("" ::"m"(result));
#endif
  }
  // Whether something left the range.
  TW_INLINE bool left() const { return exceptions() & kRangeLeft; }
};

}  // namespace
}  // namespace tw::TW_ISA_NAME
