// Rotary position embedding: rows whose pairs are rotated, and copied behind them, in one pass.
#pragma once
#include <cstdint>

namespace tw {

// Rows along one axis of x, whose steps are in elements; those of y have no gaps.
struct RotaryRows {
  std::int64_t rows, width, half;
  std::int64_t x_step, cos_step, sin_step;
  const void *x, *cos, *sin;
  void* y;
};
struct RotaryTable {
  using Loop = void (*)(const RotaryRows& rows);
  Loop halves[2], interleaved[2];  // of float32, of float64
};

}  // namespace tw

#ifdef TW_ISA_NAME  // ---- the loops, once for each instruction set ----
#include "core/cpu/simd/rows.h"

namespace tw::TW_ISA_NAME {
namespace {

template <class T> struct Pair {
  Vec<T> first, second;
};
template <class T> TW_INLINE Pair<T> rotated(Vec<T> a, Vec<T> b, Vec<T> cos, Vec<T> sin) {
  return {fma(a, cos, -(b * sin)), fma(a, sin, b * cos)};
}
template <class T>
TW_INLINE void rotate_halves(std::int64_t half, const T* x, const T* cos, const T* sin, T* y) {
  each_vector<T>(half, [=](std::int64_t at, int count) TW_LAMBDA_INLINE {
    const Pair<T> pair = rotated(load_some(x + at, count), load_some(x + half + at, count),
                                 load_some(cos + at, count), load_some(sin + at, count));
    store_some(y + at, pair.first, count);
    store_some(y + half + at, pair.second, count);
  });
}
template <class T>
TW_INLINE void rotate_neighbours(std::int64_t half, const T* x, const T* cos, const T* sin, T* y) {
  constexpr int L = kLanes<T>;
  using All = typename CountTo<L>::type;
  each_vector<T>(half, [=](std::int64_t at, int count) TW_LAMBDA_INLINE {
    const T* const from = x + 2 * at;
    T* const to = y + 2 * at;
    const Pair<T> pair = rotated(load_every<2>(from, 2, count), load_every<2>(from + 1, 2, count),
                                 load_some(cos + at, count), load_some(sin + at, count));
    if constexpr (L == 1) {
      pair.first.store(to);
      pair.second.store(to + 1);
    } else {
      const int low = 2 * count < L ? 2 * count : L;
      store_some(to, alternated<T, 0>(pair.first, pair.second, All()), low);
      store_some(to + low, alternated<T, 1>(pair.first, pair.second, All()), 2 * count - low);
    }
  });
}
template <class T, bool interleaved> void rotate(const RotaryRows& p) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const T* const x = (const T*)p.x + row * p.x_step;
    const T* const cos = (const T*)p.cos + row * p.cos_step;
    const T* const sin = (const T*)p.sin + row * p.sin_step;
    T* const y = (T*)p.y + row * p.width;
    if constexpr (interleaved)
      rotate_neighbours(p.half, x, cos, sin, y);
    else
      rotate_halves(p.half, x, cos, sin, y);
    const std::int64_t past = 2 * p.half;
    each_vector<T>(p.width - past, [=](std::int64_t at, int count) TW_LAMBDA_INLINE {
      store_some(y + past + at, load_some(x + past + at, count), count);
    });
  }
}

}  // namespace

extern const RotaryTable rotary_table;
const RotaryTable rotary_table = {{rotate<float, false>, rotate<double, false>},
                                  {rotate<float, true>, rotate<double, true>}};

}  // namespace tw::TW_ISA_NAME

#else  // ---- the lowerings, once ----
#include <algorithm>

#include "core/base/thresholds.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Axes of one element are left out; the last one is that of a run of rows.
struct Problem {
  DType dtype;
  bool interleaved;
  int axes;
  int64_t rows, width, half;
  int64_t extent[kMaxRank], x_step[kMaxRank], cos_step[kMaxRank], sin_step[kMaxRank];
  const void *x, *cos, *sin;
  void* y;
};

const char* refuses(const Call& call) {
  for (int i = 0; i < 3; ++i)
    if (const DType dtype = call.in[i].dtype; dtype != DType::float32 && dtype != DType::float64)
      return kTooNarrow;
  const DType dtype = call.in[0].dtype;
  return call.in[1].dtype == dtype && call.in[2].dtype == dtype ? nullptr : kOtherType;
}
// What does not lie close together along its last axis.
std::uint32_t copies(const Call& call) {
  std::uint32_t bits = 0;
  for (int i = 0; i < 3; ++i) {
    const Meta& x = call.in[i];
    const int last = x.rank() - 1;
    if (x.size(last) > 1 && (*x.strides)[last] != 1) bits |= 1u << i;
  }
  return bits;
}
// Along an axis of x, counted from the last one; 0 where angles repeat.
int64_t step_along(const Meta& angles, int from_last) {
  const int axis = angles.rank() - from_last;
  return axis < 0 || angles.size(axis) == 1 ? 0 : (*angles.strides)[axis];
}
void set_up(const Call& call, void* problem) {
  const Meta &x = call.in[0], &cos = call.in[1], &sin = call.in[2];
  Problem& p = *static_cast<Problem*>(problem);
  p.dtype = x.dtype;
  p.interleaved = call.attributes.flag(0);
  p.width = x.size(x.rank() - 1);
  p.half = cos.size(cos.rank() - 1);
  p.rows = p.width ? x.count / p.width : 0;
  p.axes = 0;
  for (int from_last = x.rank(); from_last >= 2; --from_last) {
    const int64_t extent = x.size(x.rank() - from_last);
    if (extent == 1 && (p.axes || from_last > 2)) continue;
    p.extent[p.axes] = extent;
    p.x_step[p.axes] = step_along(x, from_last);
    p.cos_step[p.axes] = step_along(cos, from_last);
    p.sin_step[p.axes++] = step_along(sin, from_last);
  }
}
void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.x = at[0];
  p.cos = at[1];
  p.sin = at[2];
  p.y = at[3];
}
double cost_ns(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  constexpr double elements_per_ns = 4;
  return 100 + static_cast<double>(p.rows) * static_cast<double>(p.width) / elements_per_ns;
}

// Calls f for runs of the rows from begin to end, of one problem's last axis each.
template <class F> void each_run(const Problem& p, int64_t begin, int64_t end, F f) {
  const int last = p.axes - 1;
  const auto bytes = static_cast<int64_t>(size_of(p.dtype));
  while (begin < end) {
    int64_t x = 0, cos = 0, sin = 0, row = begin;
    for (int axis = last; axis >= 0; row /= p.extent[axis--]) {
      const int64_t place = row % p.extent[axis];
      x += place * p.x_step[axis];
      cos += place * p.cos_step[axis];
      sin += place * p.sin_step[axis];
    }
    const int64_t rows = std::min(end - begin, p.extent[last] - begin % p.extent[last]);
    f(RotaryRows{rows, p.width, p.half, p.x_step[last], p.cos_step[last], p.sin_step[last],
                 static_cast<const char*>(p.x) + x * bytes,
                 static_cast<const char*>(p.cos) + cos * bytes,
                 static_cast<const char*>(p.sin) + sin * bytes,
                 static_cast<char*>(p.y) + begin * p.width * bytes});
    begin += rows;
  }
}
void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  const RotaryTable& table = *active_kernels().rotary;
  const auto loop = (p.interleaved ? table.interleaved : table.halves)[p.dtype == DType::float64];
  parallel_ranges(p.rows, thresholds::kGrain / (p.width + 1) + 1,
                  [&](int64_t begin, int64_t end) { each_run(p, begin, end, loop); });
}

// The definition: one pair after the other.
template <class T> void rotate_pairs(const RotaryRows& p, bool interleaved) {
  for (int64_t row = 0; row < p.rows; ++row) {
    const T* const x = static_cast<const T*>(p.x) + row * p.x_step;
    const T* const cos = static_cast<const T*>(p.cos) + row * p.cos_step;
    const T* const sin = static_cast<const T*>(p.sin) + row * p.sin_step;
    T* const y = static_cast<T*>(p.y) + row * p.width;
    for (int64_t i = 0; i < p.half; ++i) {
      const int64_t first = interleaved ? 2 * i : i, second = interleaved ? first + 1 : i + p.half;
      y[first] = x[first] * cos[i] - x[second] * sin[i];
      y[second] = x[first] * sin[i] + x[second] * cos[i];
    }
    for (int64_t i = 2 * p.half; i < p.width; ++i) y[i] = x[i];
  }
}
void run_definition(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  each_run(p, 0, p.rows, [&](const RotaryRows& rows) {
    p.dtype == DType::float64 ? rotate_pairs<double>(rows, p.interleaved)
                              : rotate_pairs<float>(rows, p.interleaved);
  });
}

}  // namespace

void register_rotary_kernels() {
  Lowering& lowering = add_kernel<Problem>(
      "rotary_embedding", "one pass; rows lie anywhere, pairs as they are",
      {.refuses = refuses, .set_up = set_up, .bind = bind, .cost_ns = cost_ns, .run = run});
  lowering.copies = copies;
  add_definition("rotary_embedding", run_definition);
}

}  // namespace tw
#endif
