// The definition of softmax, its relatives and cross-entropy: of each group of n elements the
// largest, then the exponentials of what the others lie below it, their sum, and the results, in a
// pass each.
#include <cmath>
#include <vector>

#include "core/cpu/copy/convert.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/normalization/softmax.h"
#include "core/cpu/pointwise/pointwise.h"

namespace tw {
namespace {

using std::int64_t;

void apply_formula(PointwiseOp op, int64_t n, const float* x, float* y) {
  const int step = 1;
  const void* const in[] = {x};
  pointwise_value(op, ComputeType::f32, scalar_kernels())(n, y, in, &step, Traffic::in_l1);
}
void apply_formula(PointwiseOp op, int64_t n, const double* x, double* y) {
  const int step = 1;
  const void* const in[] = {x};
  pointwise_value(op, ComputeType::f64, scalar_kernels())(n, y, in, &step, Traffic::in_l1);
}
template <class T> T log_of(double x) {
  const auto value = static_cast<T>(x);
  T y;
  apply_formula(PointwiseOp::log, 1, &value, &y);
  return y;
}

// The elements of a group, of which y may be x.
template <class T> struct Group {
  std::vector<T> below, powers;  // x - top, and exp of that
  T top = -__builtin_inf();      // NaN where there is one
  double sum = 0;

  Group(int64_t n, const T* x, int64_t step) : below(n), powers(n) {
    for (int64_t i = 0; i < n; ++i)
      if (x[i * step] > top || x[i * step] != x[i * step]) {
        top = x[i * step];
        if (top != top) break;
      }
    for (int64_t i = 0; i < n; ++i) below[i] = x[i * step] - top;
    apply_formula(PointwiseOp::exp, n, below.data(), powers.data());
    for (int64_t i = 0; i < n; ++i) sum += powers[i];
  }
};

// f(first, i): the group's first element, and its number.
template <class F> void each_group(const SoftmaxShape& s, F f) {
  for (int64_t outer = 0; outer < s.outer; ++outer)
    for (int64_t inner = 0; inner < s.inner; ++inner)
      f(outer * s.n * s.inner + inner, outer * s.inner + inner);
}

struct Softmax {
  template <class T> static void run(const SoftmaxProblem& p) {
    const SoftmaxShape& s = p.shape;
    each_group(s, [&](int64_t first, int64_t) {
      const Group<T> group(s.n, static_cast<const T*>(p.at[0]) + first, s.inner);
      T* const y = static_cast<T*>(p.at[1]) + first;
      for (int64_t i = 0; i < s.n; ++i)
        y[i * s.inner] = static_cast<T>(group.powers[i] / group.sum);
    });
  }
};
struct LogSoftmax {
  template <class T> static void run(const SoftmaxProblem& p) {
    const SoftmaxShape& s = p.shape;
    each_group(s, [&](int64_t first, int64_t) {
      const Group<T> group(s.n, static_cast<const T*>(p.at[0]) + first, s.inner);
      const T log_sum = log_of<T>(group.sum);
      T* const y = static_cast<T*>(p.at[1]) + first;
      for (int64_t i = 0; i < s.n; ++i) y[i * s.inner] = group.below[i] - log_sum;
    });
  }
};
struct LogSumExp {
  template <class T> static void run(const SoftmaxProblem& p) {
    const SoftmaxShape& s = p.shape;
    each_group(s, [&](int64_t first, int64_t at) {
      const Group<T> group(s.n, static_cast<const T*>(p.at[0]) + first, s.inner);
      const bool is_infinite = std::isinf(group.top);  // also of no elements
      static_cast<T*>(p.at[1])[at] = is_infinite ? group.top : group.top + log_of<T>(group.sum);
    });
  }
};
struct LogSumExpBackward {
  template <class T> static void run(const SoftmaxProblem& p) {
    const SoftmaxShape& s = p.shape;
    each_group(s, [&](int64_t first, int64_t at) {
      const Group<T> group(s.n, static_cast<const T*>(p.at[0]) + first, s.inner);
      const T g = static_cast<const T*>(p.at[1])[at];
      T* const dx = static_cast<T*>(p.at[2]) + first;
      for (int64_t i = 0; i < s.n; ++i)
        dx[i * s.inner] = static_cast<T>(group.powers[i] / group.sum) * g;
    });
  }
};
// From the result y and the gradient g, which may be one element.
template <bool is_log> struct Backward {
  template <class T> static void run(const SoftmaxProblem& p) {
    const SoftmaxShape& s = p.shape;
    each_group(s, [&](int64_t first, int64_t) {
      const T* const y = static_cast<const T*>(p.at[0]) + first;
      const T* const g = static_cast<const T*>(p.at[1]) + (p.repeated ? 0 : first);
      const int64_t step = p.repeated ? 0 : s.inner;
      T* const dx = static_cast<T*>(p.at[2]) + first;
      std::vector<T> powers(s.n);
      for (int64_t i = 0; i < s.n; ++i) powers[i] = y[i * s.inner];
      if (is_log) apply_formula(PointwiseOp::exp, s.n, powers.data(), powers.data());
      double sum = 0;
      for (int64_t i = 0; i < s.n; ++i) sum += is_log ? g[i * step] : powers[i] * g[i * step];
      for (int64_t i = 0; i < s.n; ++i) {
        const T slope = g[i * step];
        dx[i * s.inner] =
            static_cast<T>(is_log ? slope - powers[i] * sum : powers[i] * (slope - sum));
      }
    });
  }
};

struct CrossEntropy {
  template <class T> static void run(const LossProblem& p) {
    const CrossEntropyProblem& rows = p.rows;
    check_targets(rows);
    auto* const norms = static_cast<T*>(p.norms_out);
    T counted = 0;
    for (int64_t row = 0; row < rows.rows; ++row) {
      const T* const x = static_cast<const T*>(rows.x) + row * rows.classes;
      const int64_t target = rows.targets[row];
      const bool is_ignored = target == rows.ignore_index;
      const Group<T> group(rows.classes, x, 1);
      norms[2 * row] = group.top;
      norms[2 * row + 1] = log_of<T>(group.sum);
      static_cast<T*>(p.loss)[row] = is_ignored ? 0 : norms[2 * row + 1] - (x[target] - group.top);
      counted += !is_ignored;
    }
    *static_cast<T*>(p.counted) = counted;
  }
};
struct CrossEntropyBackward {
  template <class T> static void run(const LossProblem& p) {
    const CrossEntropyProblem& rows = p.rows;
    for (int64_t row = 0; row < rows.rows; ++row) {
      const T* const x = static_cast<const T*>(rows.x) + row * rows.classes;
      const T* const norms = static_cast<const T*>(p.norms) + 2 * row;
      const T g = static_cast<const T*>(p.g)[row * p.g_step];
      T* const dx = static_cast<T*>(p.dx) + row * rows.classes;
      const int64_t target = rows.targets[row];
      for (int64_t i = 0; i < rows.classes; ++i) dx[i] = (x[i] - norms[0]) - norms[1];
      apply_formula(PointwiseOp::exp, rows.classes, dx, dx);
      for (int64_t i = 0; i < rows.classes; ++i)
        dx[i] = target == rows.ignore_index ? 0 : (dx[i] - (i == target)) * g;
    }
  }
};

template <class Op> void run(const void* problem) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  p.shape.dtype == DType::float64 ? Op::template run<double>(p) : Op::template run<float>(p);
}
// Of 16-bit numbers too, which are computed in float32.
template <class Op> void run_values(const void* problem) {
  const auto& p = *static_cast<const SoftmaxProblem*>(problem);
  if (size_of(p.shape.dtype) > 2) return run<Op>(problem);
  const ConvertTable& table = *scalar_kernels().convert;
  const auto narrow = index_of(p.shape.dtype), single = index_of(DType::float32);
  const int64_t n = p.shape.outer * p.shape.n * p.shape.inner;
  std::vector<float> x(n), y(n);
  table.convert[narrow][single](n, p.at[0], 2, x.data(), 4);
  SoftmaxProblem wide = p;
  wide.shape.dtype = DType::float32;
  wide.at[0] = x.data();
  wide.at[1] = y.data();
  run<Op>(&wide);
  table.convert[single][narrow](n, y.data(), 4, p.at[1], 2);
}
template <class Op> void run_loss(const void* problem) {
  const auto& p = *static_cast<const LossProblem*>(problem);
  p.rows.dtype == DType::float64 ? Op::template run<double>(p) : Op::template run<float>(p);
}

}  // namespace

void register_naive_softmax_kernels() {
  add_definition("softmax", run_values<Softmax>);
  add_definition("log_softmax", run_values<LogSoftmax>);
  add_definition("logsumexp_along", run<LogSumExp>);
  add_definition("logsumexp_backward", run<LogSumExpBackward>);
  add_definition("softmax_backward", run<Backward<false>>);
  add_definition("log_softmax_backward", run<Backward<true>>);
  add_definition("cross_entropy_rows", run_loss<CrossEntropy>);
  add_definition("cross_entropy_rows_backward", run_loss<CrossEntropyBackward>);
}

}  // namespace tw
