// The floating-point environment that the engine computes in: rounding to nearest, subnormal
// numbers read and kept, no traps. A thread may arrive with another one, which other libraries set
// for speed or for interval arithmetic, and results would depend on which thread computed what.
#pragma once
#include <cfenv>
#include <cstdint>

namespace tw {

#if defined(__x86_64__)
// MXCSR, without its record of exceptions (Intel SDM, volume 1, 10.2.3).
using FloatControl = std::uint32_t;
inline constexpr FloatControl kFloatControl = 0x1f80, kFloatRecord = 0x3f;
inline FloatControl float_control() {
  FloatControl control;
  __asm__ volatile("stmxcsr %0" : "=m"(control));
  return control;
}
inline void set_float_control(FloatControl control) {
  __asm__ volatile("ldmxcsr %0" ::"m"(control) : "memory");
}
#elif defined(__aarch64__)
// FPCR; the record of exceptions is a register of its own (Arm ARM, C5.2.8).
using FloatControl = std::uint64_t;
inline constexpr FloatControl kFloatControl = 0, kFloatRecord = 0;
inline FloatControl float_control() {
  FloatControl control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
inline void set_float_control(FloatControl control) {
  __asm__ volatile("msr fpcr, %0" ::"r"(control) : "memory");
}
#else
// The rounding mode is all that C knows of.
using FloatControl = int;
inline constexpr FloatControl kFloatControl = FE_TONEAREST, kFloatRecord = 0;
inline FloatControl float_control() { return std::fegetround(); }
inline void set_float_control(FloatControl control) { std::fesetround(control); }
#endif

constexpr bool is_engines_own(FloatControl control) {
  return (control & ~kFloatRecord) == kFloatControl;
}

// The engine's environment for a scope, and the thread's own behind it. Loading waits for all
// arithmetic that is in flight, so it is done only where the two differ. Compilers may move
// arithmetic across both ends: what is computed inside stands in a function of its own.
class FloatEnvironment {
 public:
  FloatEnvironment() : before_(float_control()) {
    if (!is_engines_own(before_)) [[unlikely]]
      set_float_control(kFloatControl);
  }
  ~FloatEnvironment() {
    if (!is_engines_own(before_)) [[unlikely]]
      set_float_control(before_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  const FloatControl before_;
};

}  // namespace tw
