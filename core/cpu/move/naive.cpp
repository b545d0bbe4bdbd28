// The definitions of what moves elements by index: for each element, or each row of them, where it
// comes from and where it goes.
#include <cstring>
#include <type_traits>

#include "core/base/error.h"
#include "core/cpu/copy/plain.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/move/problems.h"
#include "core/problems/index_errors.h"

namespace tw {
namespace {

using std::int64_t;

template <class T> inline constexpr bool kIsNumber =
    std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <class T> T sum(T a, T b) {
  if constexpr (is_complex_number<T>)
    return {a.re + b.re, a.im + b.im};
  else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return static_cast<T>(std::uint64_t(a) + std::uint64_t(b));
  else
    return static_cast<T>(a + b);
}
template <class T> T product(T a, T b) {
  if constexpr (is_complex_number<T>)
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return static_cast<T>(std::uint64_t(a) * std::uint64_t(b));
  else
    return static_cast<T>(a * b);
}

// ---- rows by arrays of indices along the leading axes ----

// Where the row of an index tuple begins in the indexed tensor.
int64_t row_at(const RowsProblem& p, int64_t tuple) {
  int64_t offset = 0;
  for (int array = 0; array < p.arrays; ++array) {
    int64_t rest = tuple, at = 0;
    for (int axis = p.index.rank() - 1; axis >= 0; rest /= p.index[axis--])
      at += rest % p.index[axis] * p.steps(array)[axis];
    offset += p.at[array][at] * p.row_step[array];
  }
  return offset;
}
struct GatherRows {
  template <class T> static void run(const RowsProblem& p) {
    for (int64_t row = 0; row < p.rows; ++row)
      for (int64_t i = 0; i < p.row_count; ++i)
        static_cast<T*>(p.y)[row * p.row_count + i] =
            static_cast<const T*>(p.x)[row_at(p, row) + i];
  }
};
// Of rows that meet in one place the last stays.
struct ScatterRows {
  template <class T> static void run(const RowsProblem& p) {
    for (int64_t row = 0; row < p.rows; ++row)
      for (int64_t i = 0; i < p.row_count; ++i)
        static_cast<T*>(p.y)[row_at(p, row) + i] =
            static_cast<const T*>(p.x)[row * p.row_count + i];
  }
};
struct ScatterAddRows {
  template <class T> static void run(const RowsProblem& p) {
    if constexpr (kIsNumber<T> || is_complex_number<T>) {
      auto* const y = static_cast<T*>(p.y);
      for (int64_t i = 0; i < p.count; ++i) y[i] = T{};
      for (int64_t row = 0; row < p.rows; ++row)
        for (int64_t i = 0; i < p.row_count; ++i) {
          T& to = y[row_at(p, row) + i];
          to = sum(to, static_cast<const T*>(p.x)[row * p.row_count + i]);
        }
    } else {
      fail(ErrorKind::type, "scatter_add: no kernel for ", name_of(p.dtype));
    }
  }
};

// ---- rows along one axis ----

void take(const void* problem) {
  const auto& p = *static_cast<const TakeProblem*>(problem);
  char* y = p.y;
  for (int64_t row = 0; row < p.rows; ++row)
    for (int64_t i = 0; i < p.count; ++i) {
      const char* const x = p.x + offset_of(row, p.lead, p.strides) + p.index[i] * p.step;
      for (int64_t byte = 0; byte < p.run; ++byte) *y++ = x[byte];
    }
}

// ---- an index for each element along one axis ----

// Calls f(place in the indexed array, in the other one) for each element of the index.
template <class F> void each_index(const AlongProblem& p, F f) {
  int64_t count = 1;
  for (int axis = 0; axis < p.rank; ++axis) count *= p.axes[axis].count;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, indexed = 0, at = 0, other = 0;
    for (int axis = p.rank - 1; axis >= 0; rest /= p.axes[axis--].count) {
      const int64_t place = rest % p.axes[axis].count;
      indexed += place * p.axes[axis].indexed_step;
      at += place * p.axes[axis].index_step;
      other += place * p.axes[axis].other_step;
    }
    const int64_t index = p.index[at];
    if (index < -p.extent || index >= p.extent)
      fail_along(static_cast<AlongUser>(p.user), index, p.axis, p.extent);
    f(indexed + (index < 0 ? index + p.extent : index) * p.axis_step, other);
  }
}
struct GatherAlong {
  template <class T> static void run(const AlongProblem& p) {
    each_index(p, [&](int64_t from, int64_t to) {
      static_cast<T*>(p.y)[to] = static_cast<const T*>(p.x)[from];
    });
  }
};
// Onto a copy of x; NaN stays where either is.
struct ScatterAlong {
  template <class T> static T joined(ScatterJoin join, T old, T x) {
    if constexpr (std::is_arithmetic_v<T> || is_complex_number<T>) {
      if (join == ScatterJoin::sum) return sum(old, x);
      if (join == ScatterJoin::product) return product(old, x);
      if constexpr (!is_complex_number<T>) {
        if (join == ScatterJoin::largest) return x != x || x > old ? x : old;
        if (join == ScatterJoin::smallest) return x != x || x < old ? x : old;
      }
    }
    return x;
  }
  template <class T> static void run(const AlongProblem& p) {
    auto* const y = static_cast<T*>(p.y);
    for (int64_t i = 0; i < p.shape.product(); ++i)
      y[i] = static_cast<const T*>(p.x)[offset_of(i, p.shape, p.steps)];
    each_index(p, [&](int64_t to, int64_t from) {
      y[to] = joined(p.join, y[to], static_cast<const T*>(p.src)[from]);
    });
  }
};

// ---- arrays behind each other, and runs ----

void join(const void* problem) {
  const auto& p = *static_cast<const JoinProblem*>(problem);
  for (const JoinedPart* part = p.parts(); part < p.parts() + p.count; ++part)
    for (int64_t row = 0; row < p.rows; ++row)
      for (int64_t byte = 0; byte < part->bytes; ++byte)
        p.y[row * p.row_bytes + part->at + byte] = part->x[row * part->bytes + byte];
}
void write_runs(const void* problem) {
  const auto& p = *static_cast<const RunsProblem*>(problem);
  int64_t at = 0;
  for (int64_t run = 0; run < p.count; ++run) {
    if (p.counts[run] < 0) fail(ErrorKind::value, "repeat: repeats is negative: ", p.counts[run]);
    if (p.counts[run] > p.total - at)
      fail(ErrorKind::value, "repeat: the repeats add up to more than ", p.total, " elements");
    for (int64_t i = 0; i < p.counts[run]; ++i) p.y[at++] = p.within ? i : run;
  }
  if (at != p.total)
    fail(ErrorKind::value, "repeat: the repeats add up to ", at, ", not ", p.total, " elements");
}

template <class Op, class Problem> void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  visit(p.dtype, [&](auto sample) { Op::template run<decltype(sample)>(p); });
}

}  // namespace

void register_naive_move_kernels() {
  add_definition("gather_rows", run<GatherRows, RowsProblem>);
  add_definition("scatter_rows", run<ScatterRows, RowsProblem>);
  add_definition("scatter_add_rows", run<ScatterAddRows, RowsProblem>);
  add_definition("take_rows", take);
  add_definition("gather_along", run<GatherAlong, AlongProblem>);
  for (const char* op : {"scatter_along", "scatter_add_along", "scatter_reduce_along"})
    add_definition(op, run<ScatterAlong, AlongProblem>);
  for (const char* op : {"concat", "stack"}) add_definition(op, join);
  add_definition("runs", write_runs);
}

}  // namespace tw
