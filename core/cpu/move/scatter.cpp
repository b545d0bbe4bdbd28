// Elements by an index for each of them along one axis: gather_along reads them, the scatters join
// others to them. Axes of the index are merged where steps allow.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/thresholds.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/move/problems.h"
#include "core/problems/attribute_values.h"
#include "core/problems/index_errors.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

using Axis = AlongAxis;

bool merges(const Axis& a, const Axis& b) {
  return a.indexed_step == b.indexed_step * b.count && a.index_step == b.index_step * b.count &&
         a.other_step == b.other_step * b.count;
}

void set_axes(AlongProblem& p, const Meta& index, const Strides& indexed, const Strides& other,
              int axis) {
  p.rank = 0;
  for (int i = 0; i < index.rank(); ++i) {
    const Axis next = {index.size(i), i == axis ? 0 : indexed[i], (*index.strides)[i], other[i]};
    if (next.count == 1) continue;
    if (p.rank && merges(p.axes[p.rank - 1], next)) {
      const int64_t count = p.axes[p.rank - 1].count * next.count;
      p.axes[p.rank - 1] = next;
      p.axes[p.rank - 1].count = count;
    } else {
      p.axes[p.rank++] = next;
    }
  }
  if (p.rank == 0) p.axes[p.rank++] = {1, 0, 0, 0};
}

[[noreturn, gnu::cold]] void fail_index(const AlongProblem& p, int64_t index) {
  fail_along(static_cast<AlongUser>(p.user), index, p.axis, p.extent);
}

// Elements from the start of the indexed array; negative indices count from the end. A copy of what
// it takes, which writes to the results cannot change: compilers need not read it again.
struct Places {
  explicit Places(const AlongProblem& p) : p(&p), extent(p.extent), step(p.axis_step) {}
  int64_t operator()(int64_t index) const { return position(index) * step; }
  int64_t position(int64_t index) const {
    if (static_cast<std::uint64_t>(index) >= static_cast<std::uint64_t>(extent)) [[unlikely]]
      index = from_end(index);
    return index;
  }
  [[gnu::noinline]] int64_t from_end(int64_t index) const {
    if (index >= 0 || index < -extent) fail_index(*p, index);
    return index + extent;
  }
  const AlongProblem* const p;
  const int64_t extent, step;
};

// Calls run(indexed, index, other) with the offsets of each run along the last axis, for the part
// of one axis from `begin` to `end`; what runs along the last axis is in `last`.
template <class F>
void each_run(const AlongProblem& p, int split, int64_t begin, int64_t end, F&& run) {
  Axis axes[kMaxRank];
  std::copy_n(p.axes, p.rank, axes);
  axes[split].count = end - begin;
  int64_t at[3] = {begin * axes[split].indexed_step, begin * axes[split].index_step,
                   begin * axes[split].other_step};
  int64_t place[kMaxRank] = {};
  const Axis& last = axes[p.rank - 1];
  for (;;) {
    run(at[0], at[1], at[2], last);
    int i = p.rank - 2;
    for (; i >= 0; --i) {
      const bool wraps = ++place[i] == axes[i].count;
      const int64_t times = wraps ? 1 - axes[i].count : 1;
      at[0] += times * axes[i].indexed_step;
      at[1] += times * axes[i].index_step;
      at[2] += times * axes[i].other_step;
      if (!wraps) break;
      place[i] = 0;
    }
    if (i < 0) return;
  }
}

// The axis that is shared between threads: of a scatter one that is not indexed, so that no two
// threads write to one place and each place is written in the order of the index. The longest, but
// the last only where no other has a part for each thread: its runs are read one after the other.
// -1: there is none.
int shared_axis(const AlongProblem& p, bool writes) {
  const int last = p.rank - 1;
  int best = -1;
  const auto consider = [&](int i) {
    if (writes && p.axes[i].indexed_step == 0) return;
    if (best < 0 || p.axes[i].count > p.axes[best].count) best = i;
  };
  for (int i = 0; i < last; ++i) consider(i);
  if (best < 0 || p.axes[best].count < num_threads()) consider(last);
  return best;
}
template <class F> void each_run_shared(const AlongProblem& p, bool writes, F&& run) {
  int64_t total = 1;
  for (int i = 0; i < p.rank; ++i) total *= p.axes[i].count;
  if (total == 0) return;
  const int split = shared_axis(p, writes);
  if (split < 0) return each_run(p, 0, 0, p.axes[0].count, run);
  const int64_t count = p.axes[split].count;
  int64_t grain = thresholds::kGrain / (total / count) + 1;
  if (split == p.rank - 1) {  // whole cache lines, and no shorter than threads ask for
    constexpr int64_t kLines = 64;
    grain = std::max(grain, (count / num_threads() + kLines) / kLines * kLines);
  }
  parallel_ranges(count, grain,
                  [&](int64_t begin, int64_t end) { each_run(p, split, begin, end, run); });
}

// ---- gather ----

template <class T> void gather(const AlongProblem& p) {
  each_run_shared(p, false, [&](int64_t at, int64_t first, int64_t to, const Axis& run) {
    const Places place(p);
    const Axis steps = run;
    const int64_t* __restrict index = p.index + first;
    const T* __restrict x = static_cast<const T*>(p.x) + at;
    T* __restrict y = static_cast<T*>(p.y) + to;
    if (steps.index_step == 0) {
      x += place(*index);
      if (steps.indexed_step == 1)
        std::memcpy(y, x, static_cast<std::size_t>(steps.count) * sizeof(T));
      else
        for (int64_t j = 0; j < steps.count; ++j) y[j] = x[j * steps.indexed_step];
    } else if (steps.index_step == 1 && steps.indexed_step == 0 && place.step == 1) {
#pragma GCC unroll 4
      for (int64_t j = 0; j < steps.count; ++j) y[j] = x[place.position(index[j])];
    } else if (steps.index_step == 1 && steps.indexed_step == 0) {
      for (int64_t j = 0; j < steps.count; ++j) y[j] = x[place(index[j])];
    } else {
      for (int64_t j = 0; j < steps.count; ++j)
        y[j] = x[j * steps.indexed_step + place(index[j * steps.index_step])];
    }
  });
}

// ---- scatter ----

template <class T> inline constexpr bool kWraps = std::is_integral_v<T> && !std::is_same_v<T, bool>;

struct Second {
  template <class T> static T join(T, T b) { return b; }
};
struct Sum {
  template <class T> static T join(T a, T b) {
    if constexpr (is_complex_number<T>)
      return {a.re + b.re, a.im + b.im};
    else if constexpr (kWraps<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
      return static_cast<T>(a + b);
  }
};
struct Product {
  template <class T> static T join(T a, T b) {
    if constexpr (is_complex_number<T>)
      return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    else if constexpr (kWraps<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    else
      return static_cast<T>(a * b);
  }
};
// NaN where either is.
struct Largest {
  template <class T> static T join(T a, T b) { return b != b || b > a ? b : a; }
};
struct Smallest {
  template <class T> static T join(T a, T b) { return b != b || b < a ? b : a; }
};

// Whole vectors where the compiler sees that nothing else is written.
template <class Join, class T> void join_row(int64_t n, const T* __restrict x, T* __restrict y) {
  for (int64_t j = 0; j < n; ++j) y[j] = Join::join(y[j], x[j]);
}
template <class Join, class T> void scatter(const AlongProblem& p) {
  each_run_shared(p, true, [&](int64_t at, int64_t first, int64_t from, const Axis& run) {
    const Places place(p);
    const Axis steps = run;
    const int64_t* __restrict index = p.index + first;
    const T* __restrict x = static_cast<const T*>(p.src) + from;
    T* __restrict y = static_cast<T*>(p.y) + at;
    const auto join = [](T& old, T value) { old = Join::join(old, value); };
    if (steps.index_step == 0) {
      y += place(*index);
      if (steps.indexed_step == 1 && steps.other_step == 1)
        join_row<Join>(steps.count, x, y);
      else
        for (int64_t j = 0; j < steps.count; ++j)
          join(y[j * steps.indexed_step], x[j * steps.other_step]);
    } else if (steps.index_step == 1 && steps.indexed_step == 0 && steps.other_step == 1) {
      for (int64_t j = 0; j < steps.count; ++j) join(y[place(index[j])], x[j]);
    } else {
      for (int64_t j = 0; j < steps.count; ++j)
        join(y[j * steps.indexed_step + place(index[j * steps.index_step])],
             x[j * steps.other_step]);
    }
  });
}

// ---- the ops' kernels and lowerings ----

void set_up_gather(const Call& call, void* problem) {
  AlongProblem& p = *static_cast<AlongProblem*>(problem);
  const Meta &x = call.in[0], &index = call.in[1], &y = call.out[0];
  const int axis = static_cast<int>(call.attributes[0]);
  p.dtype = x.dtype;
  p.axis = axis;
  p.extent = x.size(axis);
  p.axis_step = (*x.strides)[axis];
  p.user = call.attributes[1];
  set_axes(p, index, *x.strides, *y.strides, axis);
}
void bind_gather(void* problem, void* const* at) {
  AlongProblem& p = *static_cast<AlongProblem*>(problem);
  p.x = at[0];
  p.index = static_cast<const int64_t*>(at[1]);
  p.y = at[2];
}
// Attributes: axis, user; then the kind of a reduction.
template <ScatterJoin join, bool by_attribute = false>
void set_up_scatter(const Call& call, void* problem) {
  AlongProblem& p = *static_cast<AlongProblem*>(problem);
  const Meta &x = call.in[0], &index = call.in[1], &src = call.in[2], &y = call.out[0];
  const int axis = static_cast<int>(call.attributes[0]);
  p.dtype = x.dtype;
  p.axis = axis;
  p.extent = x.size(axis);
  p.axis_step = (*y.strides)[axis];
  p.user = call.attributes[1];
  p.join = by_attribute ? static_cast<ScatterJoin>(call.attributes[2]) : join;
  p.shape.assign(*x.shape);
  p.steps.assign(*x.strides);
  set_axes(p, index, *y.strides, *src.strides, axis);
}
void bind_scatter(void* problem, void* const* at) {
  AlongProblem& p = *static_cast<AlongProblem*>(problem);
  p.x = at[0];
  p.index = static_cast<const int64_t*>(at[1]);
  p.src = at[2];
  p.y = at[3];
}
// Calls `f` with an object of a type of the size.
template <class F> void visit_size(std::size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    case 8: return f(std::uint64_t{});
    default: return f(Complex128{});
  }
}
void run_gather(const void* problem) {
  const auto& p = *static_cast<const AlongProblem*>(problem);
  visit_size(size_of(p.dtype), [&](auto sample) { gather<decltype(sample)>(p); });
}
void copy_target(const AlongProblem& p) {
  Strides steps(p.shape.rank(), 1);
  for (int i = p.shape.rank() - 2; i >= 0; --i) steps[i] = steps[i + 1] * p.shape[i + 1];
  copy_strided(p.dtype, p.dtype, {p.shape.begin(), p.shape.end()}, p.x,
               {p.steps.begin(), p.steps.end()}, p.y, {steps.begin(), steps.end()});
}
void run_assign(const void* problem) {
  const auto& p = *static_cast<const AlongProblem*>(problem);
  copy_target(p);
  visit_size(size_of(p.dtype), [&](auto sample) { scatter<Second, decltype(sample)>(p); });
}
void run_scatter(const void* problem) {
  const auto& p = *static_cast<const AlongProblem*>(problem);
  copy_target(p);
  visit(p.dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (std::is_arithmetic_v<T> || is_complex_number<T>) {
      if (p.join == ScatterJoin::sum) return scatter<Sum, T>(p);
      if (p.join == ScatterJoin::product) return scatter<Product, T>(p);
      if constexpr (!is_complex_number<T>)
        p.join == ScatterJoin::largest ? scatter<Largest, T>(p) : scatter<Smallest, T>(p);
    }
  });
}
const char* refuses_half(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return is_floating(dtype) && size_of(dtype) == 2 ? kTooNarrow : nullptr;
}

}  // namespace

void register_scatter_kernels() {
  add_kernel<AlongProblem>(
      "gather_along", "one by one, or in rows, shared between threads",
      {.set_up = set_up_gather, .bind = bind_gather, .run = run_gather, .name = "index_runs"});
  static constexpr char kHelp[] = "in the order of the index, other axes shared between threads";
  add_kernel<AlongProblem>("scatter_along", kHelp,
                           {.set_up = set_up_scatter<ScatterJoin::later>,
                            .bind = bind_scatter,
                            .run = run_assign,
                            .name = "index_runs"});
  add_kernel<AlongProblem>("scatter_add_along", kHelp,
                           {.refuses = refuses_half,
                            .set_up = set_up_scatter<ScatterJoin::sum>,
                            .bind = bind_scatter,
                            .run = run_scatter,
                            .name = "index_runs"});
  add_kernel<AlongProblem>("scatter_reduce_along", kHelp,
                           {.refuses = refuses_half,
                            .set_up = set_up_scatter<ScatterJoin::product, true>,
                            .bind = bind_scatter,
                            .run = run_scatter,
                            .name = "index_runs"});
}

}  // namespace tw
