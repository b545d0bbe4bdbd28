// The loops of updates.inc over a slice of a parameter: each array is read and written once.
#pragma once
#include "core/cpu/math/functions.h"
#include "core/cpu/optim/steps.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// The arrays of a slice at one vector: `count` lanes of them.
template <class T> struct At {
  int64_t at;
  int count;
  TW_INLINE Vec<T> load(const void* p) const {
    auto* from = (const T*)p + at;
    return count == kLanes<T> ? Vec<T>::load(from) : Vec<T>::load(from, count);
  }
  TW_INLINE void store(void* p, Vec<T> v) const {
    auto* to = (T*)p + at;
    count == kLanes<T> ? v.store(to) : v.store(to, count);
  }
};

template <class T> struct Update {
  using V = Vec<T>;
  static TW_INLINE V weighted(V f, V x) { return f * where(f == 0, 0, x); }
#define TW_UPDATE(name, arrays, tensors, attributes, help, factors, update)                        \
  static TW_INLINE void name##_at(At<T> here, const V(&f)[kMaxFactors], const ParameterSlice& s) { \
    V p = here.load(s.param);                                                                      \
    [[maybe_unused]] V g = arrays >= 0 ? here.load(s.grad) : p;                                    \
    [[maybe_unused]] V s1 = arrays > 0 ? here.load(s.states[0]) : p;                               \
    [[maybe_unused]] V s2 = arrays > 1 ? here.load(s.states[1]) : p;                               \
    [[maybe_unused]] V s3 = arrays > 2 ? here.load(s.states[2]) : p;                               \
    update;                                                                                        \
    here.store(s.param, p);                                                                        \
    if (arrays > 0) here.store(s.states[0], s1);                                                   \
    if (arrays > 1) here.store(s.states[1], s2);                                                   \
    if (arrays > 2) here.store(s.states[2], s3);                                                   \
  }                                                                                                \
  static void name(const double* factors_of_all, const ParameterSlice& slice) {                    \
    const ParameterSlice s = slice; /* no store can change it */                                   \
    V f[kMaxFactors];                                                                              \
    for (int i = 0; i < kMaxFactors; ++i) f[i] = (T)factors_of_all[i];                             \
    constexpr int L = kLanes<T>;                                                                   \
    int64_t at = 0;                                                                                \
    for (; at + L <= s.n; at += L) name##_at({at, L}, f, s);                                       \
    if (at < s.n) name##_at({at, (int)(s.n - at)}, f, s);                                          \
  }
#include "core/problems/updates.inc"
#undef TW_UPDATE
};

}  // namespace

extern const UpdateTable update_table;
const UpdateTable update_table = {
#define TW_UPDATE(name, ...) Update<float>::name,
    {
#include "core/problems/updates.inc"
    },
#undef TW_UPDATE
#define TW_UPDATE(name, ...) Update<double>::name,
    {
#include "core/problems/updates.inc"
    }
#undef TW_UPDATE
};

}  // namespace tw::TW_ISA_NAME
