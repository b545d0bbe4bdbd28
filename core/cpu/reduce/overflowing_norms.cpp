// Roots of sums of squares of float64 that left its range, found again of scaled numbers.
#include <cmath>

#include "core/cpu/reduce/reduce.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// A root whose square has lost nothing to overflow and underflow.
bool is_safe(double root) { return root >= 1e-145 && root < HUGE_VAL; }

template <class F> void each_term(const ReduceProblem& p, const double* x, int axis, F f) {
  if (axis == p.reduced.rank()) return f(*x);
  for (int64_t i = 0; i < p.reduced[axis]; ++i, x += p.reduced_strides[axis])
    each_term(p, x, axis + 1, f);
}

double scaled_root(const ReduceProblem& p, const double* x, double root) {
  double top = 0, squares = 0;
  each_term(p, x, 0, [&top](double term) {
    const double size = std::fabs(term);
    top = size <= top || top != top ? top : size;
  });
  if (!(top > 0 && top < HUGE_VAL)) return root;
  const int exponent = std::ilogb(top);
  each_term(p, x, 0, [&](double term) {
    const double scaled = std::scalbn(term, -exponent);
    squares += scaled * scaled;
  });
  return std::scalbn(std::sqrt(squares), exponent);
}

int64_t offset_of(const ReduceProblem& p, int64_t result) {
  int64_t offset = 0;
  for (int axis = p.kept.rank() - 1; axis >= 0; --axis) {
    offset += result % p.kept[axis] * p.kept_strides[axis];
    result /= p.kept[axis];
  }
  return offset;
}

}  // namespace

void find_lost_norms(const ReduceProblem& p) {
  const auto* x = static_cast<const double*>(p.x);
  auto* const y = static_cast<double*>(p.y);
  const int64_t count = p.kept.product();
  int64_t first = 0;
  while (first < count && is_safe(y[first])) ++first;
  if (first == count) return;
  parallel_ranges(count - first, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = first + begin; i < first + end; ++i)
      if (!is_safe(y[i])) y[i] = scaled_root(p, x + offset_of(p, i), y[i]);
  });
}

}  // namespace tw
