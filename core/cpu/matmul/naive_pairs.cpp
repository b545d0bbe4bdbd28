// The definitions of what is made of pairs of vectors: distances of all rows of one matrix from all
// rows of another and their gradients, cross products, and products of complex vectors.
#include <cmath>

#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/matmul/cross.h"
#include "core/cpu/matmul/matmul.h"
#include "core/cpu/matmul/pair_distances.h"
#include "core/cpu/pointwise/plain.h"

namespace tw {
namespace {

using std::int64_t;

// Powers are those of differences over the largest one, so that they stay in range.
template <class T> Wider<T> distance(const PairProblem& p, const T* a, const T* b) {
  Wider<T> sum = 0, largest = 0;
  for (int64_t i = 0; i < p.k; ++i) {
    const Wider<T> size = std::fabs(Wider<T>(a[i]) - Wider<T>(b[i]));
    if (largest == largest && !(size <= largest)) largest = size;
    if (p.metric == Metric::count) sum += size == 0 ? 0 : size == size ? 1 : size;
    if (p.metric == Metric::magnitudes) sum += size;
    if (p.metric == Metric::squares) sum += size * size;
  }
  if (p.metric == Metric::squares) return std::sqrt(sum);
  if (p.metric == Metric::largest) return largest;
  if (p.metric != Metric::powers) return sum;
  if (!(largest > 0 && largest < __builtin_inf())) return largest;
  double powers = 0;
  for (int64_t i = 0; i < p.k; ++i) {
    const Wider<T> size = std::fabs(Wider<T>(a[i]) - Wider<T>(b[i]));
    powers += plain_value(PointwiseOp::pow, static_cast<double>(size / largest), p.p);
  }
  return largest * plain_value(PointwiseOp::pow, powers, 1 / p.p);
}
struct Distances {
  template <class T> static void run(const PairProblem& p) {
    for (int64_t batch = 0; batch < p.batches; ++batch)
      for (int64_t i = 0; i < p.n; ++i)
        for (int64_t j = 0; j < p.m; ++j) {
          const T* const a = static_cast<const T*>(p.x1) + (batch * p.n + i) * p.k;
          const T* const b = static_cast<const T*>(p.x2) + (batch * p.m + j) * p.k;
          T* const y = static_cast<T*>(p.y) + batch * p.n * p.m;
          y[i * p.row_step + j * p.column_step] = static_cast<T>(distance(p, a, b));
        }
  }
};

double slope(const PairProblem& p, double difference) {
  if (p.metric == Metric::squares) return difference;
  const double sign = difference > 0 ? 1 : difference < 0 ? -1 : difference;
  if (p.metric == Metric::magnitudes || difference == 0) return sign;
  return sign * plain_value(PointwiseOp::pow, std::fabs(difference), p.p - 1);
}
// What each row of x1 gets of the weights w of its pairs.
struct Gradients {
  template <class T> static void run(const PairProblem& p) {
    for (int64_t batch = 0; batch < p.batches; ++batch)
      for (int64_t i = 0; i < p.n; ++i)
        for (int64_t k = 0; k < p.k; ++k) {
          const int64_t place = (batch * p.n + i) * p.k + k;
          const double x = static_cast<const T*>(p.x1)[place];
          Wider<T> sum = 0;
          for (int64_t j = 0; j < p.m; ++j)
            sum += static_cast<const T*>(p.w)[(batch * p.n + i) * p.m + j] *
                   slope(p, x - static_cast<const T*>(p.x2)[(batch * p.m + j) * p.k + k]);
          static_cast<T*>(p.y)[place] = static_cast<T>(sum);
        }
  }
};

struct Cross {
  template <class T> static void run(const CrossProblem& p) {
    for (int64_t outer = 0; outer < p.outer; ++outer)
      for (int64_t inner = 0; inner < p.inner; ++inner) {
        const int64_t first = outer * 3 * p.inner + inner;
        for (int64_t i = 0; i < 3; ++i) {
          const int64_t next = first + (i + 1) % 3 * p.inner, last = first + (i + 2) % 3 * p.inner;
          const auto *const a = static_cast<const T*>(p.a), *const b = static_cast<const T*>(p.b);
          static_cast<T*>(p.y)[first + i * p.inner] = a[next] * b[last] - a[last] * b[next];
        }
      }
  }
};

// The sum of the conjugates of a's elements times b's.
template <class Part> void multiply_vectors(const MatmulProblem& p) {
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    Wider<Part> re = 0, im = 0;
    for (int64_t i = 0; i < p.k; ++i) {
      const auto a = static_cast<const Complex<Part>*>(p.a)[batch * p.a_batch + i * p.a_col];
      const auto b = static_cast<const Complex<Part>*>(p.b)[batch * p.b_batch + i * p.b_row];
      re += Wider<Part>(a.re) * b.re + Wider<Part>(a.im) * b.im;
      im += Wider<Part>(a.re) * b.im - Wider<Part>(a.im) * b.re;
    }
    static_cast<Complex<Part>*>(p.c)[batch * p.c_batch] = {static_cast<Part>(re),
                                                           static_cast<Part>(im)};
  }
}
void run_vectors(const void* problem) {
  const auto& p = *static_cast<const MatmulProblem*>(problem);
  p.dtype == DType::complex64 ? multiply_vectors<float>(p) : multiply_vectors<double>(p);
}

template <class Op, class Problem> void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  p.dtype == DType::float64 ? Op::template run<double>(p) : Op::template run<float>(p);
}

}  // namespace

void register_naive_pairs_kernels() {
  add_definition("pair_distances", run<Distances, PairProblem>);
  add_definition("pair_distances_backward", run<Gradients, PairProblem>);
  add_definition("cross_along", run<Cross, CrossProblem>);
  add_definition("vdot_complex", run_vectors);
}

}  // namespace tw
