// What g++ reads before the text of a kernel, so that the same text runs on this machine's
// processor: each GPU thread is a fiber of the stand-in driver (fibers.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
// C's functions alone, and below those of float by the same names: the rest of <cmath> doubles the
// time that a small kernel takes to compile.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#undef isnan
#undef isinf
#undef isfinite
#undef signbit

#define TW_EMULATED 1
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define TW_DEVICE inline
#define TW_INFINITY (__builtin_inff())
#define TW_NAN (__builtin_nanf(""))
#define __shared__ static __attribute__((section("tw_shared")))
// Threads of a block, and what may follow: how many blocks a multiprocessor should hold.
constexpr unsigned tw_first(unsigned threads, ...) { return threads; }
#define TW_KERNEL(name, Parameters, threads)                    \
  static void name##_body(const Parameters& p);                 \
  extern "C" const unsigned name##_bytes = sizeof(Parameters);  \
  extern "C" const unsigned name##_threads = tw_first(threads); \
  extern "C" void name(const void* p) {                         \
    tw_begin_warp_state();                                      \
    tw_begin_hopper_state();                                    \
    name##_body(*static_cast<const Parameters*>(p));            \
  }                                                             \
  static void name##_body(const Parameters& p)
#define TW_DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(tw_module.dynamic)

#define TW_FLOAT(name) \
  static inline float name(float x) { return name##f(x); }
#define TW_FLOATS(name) \
  static inline float name(float x, float y) { return name##f(x, y); }
// clang-format off
TW_FLOAT(acos) TW_FLOAT(acosh) TW_FLOAT(asin) TW_FLOAT(asinh) TW_FLOAT(atan) TW_FLOAT(atanh)
TW_FLOAT(cbrt) TW_FLOAT(ceil) TW_FLOAT(cos) TW_FLOAT(cosh) TW_FLOAT(erf) TW_FLOAT(erfc) TW_FLOAT(exp)
TW_FLOAT(exp2) TW_FLOAT(expm1) TW_FLOAT(fabs) TW_FLOAT(floor) TW_FLOAT(lgamma) TW_FLOAT(log)
TW_FLOAT(log10) TW_FLOAT(log1p) TW_FLOAT(log2) TW_FLOAT(nearbyint) TW_FLOAT(rint) TW_FLOAT(round)
TW_FLOAT(sin) TW_FLOAT(sinh) TW_FLOAT(sqrt) TW_FLOAT(tan) TW_FLOAT(tanh) TW_FLOAT(tgamma)
TW_FLOAT(trunc)
TW_FLOATS(atan2) TW_FLOATS(copysign) TW_FLOATS(fdim) TW_FLOATS(fmax) TW_FLOATS(fmin) TW_FLOATS(fmod)
TW_FLOATS(hypot) TW_FLOATS(nextafter) TW_FLOATS(pow) TW_FLOATS(remainder);
// clang-format on
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
static inline float ldexp(float x, int by) { return ldexpf(x, by); }
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }
static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline long abs(long x) { return x < 0 ? -x : x; }

struct dim3 {
  unsigned x, y, z;
};

// Calls of a kernel to the stand-in driver.
struct TwCalls {
  void (*block_barrier)();
  void (*warp_barrier)(unsigned mask);
  // What lane `source` of this thread's warp gave; every lane of the mask takes part.
  void (*exchange)(unsigned mask, void* value, unsigned bytes, int source);
  // Lets others go on; for what is asked again and again.
  void (*pause)();
};
// What the driver sets before a thread goes on.
extern "C" {
struct TwModule {
  dim3 thread, block, block_size, grid;
  char* dynamic;
  const TwCalls* calls;
  char *shared_begin, *shared_end;
  std::uint64_t changes;  // counts what threads that pause may wait for
  bool (*settle)();       // called when no thread can go on: whether something changed
};
__attribute__((visibility("hidden"), weak)) extern char __start_tw_shared[], __stop_tw_shared[];
TwModule tw_module = {{}, {},     {}, {}, nullptr, nullptr, __start_tw_shared, __stop_tw_shared,
                      0,  nullptr};
}
#define threadIdx tw_module.thread
#define blockIdx tw_module.block
#define blockDim tw_module.block_size
#define gridDim tw_module.grid

static inline void __syncthreads() { tw_module.calls->block_barrier(); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) { tw_module.calls->warp_barrier(mask); }
static inline int tw_lane() { return int(threadIdx.x % 32); }
template <class T> static inline T tw_exchange(unsigned mask, T value, int source) {
  tw_module.calls->exchange(mask, &value, sizeof value, source);
  return value;
}
template <class T> static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  return tw_exchange(mask, value, tw_lane() / width * width + source % width);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int = 32) {
  return tw_exchange(mask, value, tw_lane() ^ bits);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, int by, int width = 32) {
  const int lane = tw_lane();
  return tw_exchange(mask, value, lane % width + by < width ? lane + by : lane);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, int by, int width = 32) {
  const int lane = tw_lane();
  return tw_exchange(mask, value, lane % width >= by ? lane - by : lane);
}

// One fiber runs at a time.
template <class T> static inline T atomicAdd(T* at, T value) {
  const T before = *at;
  *at = before + value;
  return before;
}
template <class T> static inline T atomicMax(T* at, T value) {
  const T before = *at;
  if (value > before) *at = value;
  return before;
}
template <class T> static inline T atomicMin(T* at, T value) {
  const T before = *at;
  if (value < before) *at = value;
  return before;
}
template <class T> static inline T atomicCAS(T* at, T expected, T value) {
  const T before = *at;
  if (before == expected) *at = value;
  return before;
}
template <class T> static inline T atomicExch(T* at, T value) {
  const T before = *at;
  *at = value;
  return before;
}
static inline void __threadfence() {}
template <class T> static inline T __ldg(const T* at) { return *at; }
template <class To, class From> static inline To tw_bits(From x) {
  To y;
  static_assert(sizeof x == sizeof y);
  std::memcpy(&y, &x, sizeof y);
  return y;
}
static inline int __float_as_int(float x) { return tw_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return tw_bits<unsigned>(x); }
static inline float __int_as_float(int x) { return tw_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return tw_bits<float>(x); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return unsigned((std::uint64_t(a) * b) >> 32);
}
// Newer C libraries have functions of these names, of C23.
#define sinpif tw_sinpif
#define cospif tw_cospif
#define sinpi tw_sinpi
#define cospi tw_cospi
static inline float sinpif(float x) { return float(sin(x * 3.141592653589793)); }
static inline float cospif(float x) { return float(cos(x * 3.141592653589793)); }
static inline double sinpi(double x) { return double(sinl(x * 3.14159265358979323846L)); }
static inline double cospi(double x) { return double(cosl(x * 3.14159265358979323846L)); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }

// For the types of prelude.cuh.
#define TW_HALF_CONVERSIONS                                                                    \
  static inline float to_float(half x) { return float(tw_bits<_Float16>(x.bits)); }            \
  static inline half to_half(float x) { return {tw_bits<uint16_t>(_Float16(x))}; }             \
  static inline float to_float(bfloat16 x) { return __uint_as_float(uint32_t(x.bits) << 16); } \
  static inline bfloat16 to_bfloat16(float x) {                                                \
    const uint32_t bits = __float_as_uint(x);                                                  \
    if (x != x) return {uint16_t(bits >> 16 | 0x40)};                                          \
    return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};                               \
  }

#include "tensor_core.h"

#include "sm90.h"
