// Reductions against plain loops in double: axes, strides, dtypes, NaN, ties, empty ones, and
// results that do not depend on the number of threads.
#include "core/cpu/reduce/reduce.h"

#include <cmath>
#include <random>
#include <vector>

#include "core/cpu/copy/convert.h"
#include "core/runtime/thread_pool.h"
#include "core/tests/check.h"
#include "core/tests/each_isa.h"

namespace tw {
namespace {

using std::int64_t;

int64_t offset(const Shape& shape, const Strides& strides, int64_t index) {
  int64_t at = 0;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    at += index % shape[d] * strides[d];
    index /= shape[d];
  }
  return at;
}

bool beats(ReduceOp op, double x, double best) {
  if (std::isnan(best)) return false;
  if (std::isnan(x)) return true;
  return join_of(op) == ReduceJoin::largest ? x > best : x < best;
}
// By the table's formulas, which the tests of Python hold against NumPy.
double where(bool c, double a, double b) { return c ? a : b; }
double product_term(double a, double b) { return a * b; }
double term_of(ReduceOp op, double x) {
  using std::abs;
  switch (op) {
#define TW_COMBINATION(name, join, keeps, term, whole) \
  case ReduceOp::name: return term;
#include "core/problems/combinations.inc"
  }
  return x;
}
double expected(ReduceOp op, const std::vector<double>& elements) {
  double sum = 0, product = 1, any = 0, all = 1;
  std::size_t best = 0;
  std::vector<double> terms;
  for (const double x : elements) terms.push_back(term_of(op, x));
  for (std::size_t i = 0; i < terms.size(); ++i) {
    sum += terms[i];
    product *= terms[i];
    any = any != 0 || terms[i] != 0;
    all = all != 0 && terms[i] != 0;
    if (beats(op, terms[i], terms[best])) best = i;
  }
  switch (join_of(op)) {
    case ReduceJoin::sum: return sum;
    case ReduceJoin::product: return product;
    case ReduceJoin::either: return any;
    case ReduceJoin::both: return all;
    case ReduceJoin::largest:
    case ReduceJoin::smallest: break;
  }
  return is_arg(op) ? double(best) : terms[best];
}

DType result_of(ReduceOp op, DType in) {
  if (is_logic(op)) return DType::bool_;
  if (is_arg(op)) return DType::int64;
  if (is_additive(op) && !is_floating(in))
    return is_unsigned_int(in) ? DType::uint64 : DType::int64;
  return in;
}

// Rounding of the result, and a few of the sum's.
double tolerance_of(DType in, DType out) {
  if (!is_floating(out)) return 0;
  switch (in) {
    case DType::float16: return 0x1p-10;
    case DType::bfloat16: return 0x1p-7;
    case DType::float32: return 1e-6;
    default: return 1e-14;
  }
}

// The finish of a mean.
void divide(int64_t n, ReducedCount count, double* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] / count;
}

struct Case {
  Shape kept;
  Strides kept_strides;
  Shape reduced;
  Strides reduced_strides;
};
constexpr int64_t kRoom = 1 << 16;

// `values` holds the elements of x in float64, of which the strides start in the middle.
void check_case(ReduceOp op, DType in, const Case& c, const std::vector<double>& values) {
  std::vector<char> x(kRoom * size_of(in));
  convert_elements(DType::float64, in, kRoom, values.data(), 8, x.data(), size_of(in));
  std::vector<double> stored(kRoom);
  convert_elements(in, DType::float64, kRoom, x.data(), size_of(in), stored.data(), 8);
  const int64_t points = element_count(c.kept), count = element_count(c.reduced);
  const DType out = result_of(op, in);
  std::vector<char> y(points * size_of(out) + 1);
  std::vector<double> got(points);
  reduce({op, in, out, c.kept, c.kept_strides, c.reduced, c.reduced_strides,
          x.data() + kRoom / 2 * size_of(in), y.data()});
  convert_elements(out, DType::float64, points, y.data(), size_of(out), got.data(), 8);
  std::vector<double> means(points);
  if (op == ReduceOp::sum)
    reduce({op, in, DType::float64, c.kept, c.kept_strides, c.reduced, c.reduced_strides,
            x.data() + kRoom / 2 * size_of(in), means.data(), nullptr, divide});
  for (int64_t i = 0; i < points; ++i) {
    std::vector<double> terms(count);
    for (int64_t j = 0; j < count; ++j)
      terms[j] = stored[kRoom / 2 + offset(c.kept, c.kept_strides, i) +
                        offset(c.reduced, c.reduced_strides, j)];
    const double want = expected(op, terms);
    double scale = 1 + std::abs(want);
    for (const double t : terms) scale += std::abs(t);
    const double tolerance = tolerance_of(in, out);
    CHECK(got[i] == want || (std::isnan(got[i]) && std::isnan(want)) ||
          std::abs(got[i] - want) <= tolerance * scale);
    if (op == ReduceOp::sum)
      CHECK(std::abs(means[i] * double(count) - want) <= tolerance_of(in, DType::float64) * scale);
  }
}

const Case kCases[] = {
    {{}, {}, {1000}, {1}},          {{}, {}, {333}, {-2}},
    {{7}, {300}, {300}, {1}},       {{300}, {1}, {7}, {300}},
    {{50}, {2}, {9}, {150}},        {{4, 5}, {100, 1}, {6}, {7}},
    {{5, 4}, {1, 100}, {6}, {7}},  // kept axes against the order of x
    {{6}, {40}, {3, 10}, {300, 2}}, {{3, 6}, {600, 1}, {10, 4}, {60, 6}},
    {{5}, {0}, {8}, {3}},           {{5}, {3}, {8}, {0}},
    {{1}, {1}, {1}, {1}},           {{40}, {1}, {1}, {1}},
    {{0}, {1}, {3}, {1}},
};
std::vector<double> random_values(double low, double high, bool whole) {
  std::mt19937 generator(1);
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<double> values(kRoom);
  for (double& v : values) v = whole ? std::floor(uniform(generator)) : uniform(generator);
  return values;
}

}  // namespace

TW_TEST(reduce_matches_loops) {
  const auto whole = random_values(0, 5, true), real = random_values(-1.5, 1.5, false);
  test::on_each_isa([&] {
    for (int t = 0; t < index_of(DType::complex64); ++t)
      for (int row = 0; row < kReduceOps; ++row)
        for (const Case& c : kCases) {
          const DType in = static_cast<DType>(t);
          const auto op = static_cast<ReduceOp>(row);
          if (!is_of_elements(op) && !is_floating(in)) continue;
          if (op == ReduceOp::prod && is_floating(in) && element_count(c.reduced) > 50) continue;
          if (op == ReduceOp::prod && !is_floating(in) && element_count(c.reduced) > 20) continue;
          check_case(op, in, c, is_floating(in) ? real : whole);
        }
  });
}

TW_TEST(reduce_every_length_and_nan) {
  auto values = random_values(-9, 9, false);
  test::on_each_isa([&] {
    for (const DType in : {DType::float32, DType::float64})
      for (int n = 1; n < 70; ++n) {
        auto with_nan = values;
        with_nan[kRoom / 2 + n * 5 / 7] = NAN;
        with_nan[kRoom / 2 + n - 1] = n % 2 ? INFINITY : NAN;
        for (const ReduceOp op :
             {ReduceOp::max, ReduceOp::min, ReduceOp::argmax, ReduceOp::argmin}) {
          check_case(op, in, {{}, {}, {n}, {1}}, values);
          check_case(op, in, {{}, {}, {n}, {1}}, with_nan);
          check_case(op, in, {{n}, {1}, {5}, {n + 3}}, with_nan);
        }
      }
  });
}

TW_TEST(reduce_of_nothing) {
  test::on_each_isa([] {
    float y[2] = {7, 7};
    bool truth = true;
    const ReduceProblem none = {
        ReduceOp::sum, DType::float32, DType::float32, {2}, {1}, {0}, {2}, nullptr, y};
    reduce(none);
    CHECK(y[0] == 0 && y[1] == 0);
    ReduceProblem other = none;
    other.op = ReduceOp::prod;
    reduce(other);
    CHECK(y[0] == 1 && y[1] == 1);
    other.op = ReduceOp::sum;
    other.finish = divide;
    reduce(other);
    CHECK(std::isnan(y[0]));
    reduce({ReduceOp::any, DType::float32, DType::bool_, {}, {}, {0}, {1}, nullptr, &truth});
    CHECK(!truth);
  });
}

// Of float32, whose squares lie beyond its range: exact to the last places all the same.
TW_TEST(reduce_squares_beyond_the_range) {
  test::on_each_isa([] {
    for (const float size : {1e-40f, 1e-30f, 1e30f})
      for (const int n : {1, 5, 40, 3000}) {
        const std::vector<float> x(n * 7, size);
        for (const bool by_rows : {true, false}) {
          double y[7];
          reduce({ReduceOp::squares,
                  DType::float32,
                  DType::float64,
                  {7},
                  {by_rows ? n : 1},
                  {n},
                  {by_rows ? 1 : 7},
                  x.data(),
                  y});
          for (const double sum : y) CHECK(std::abs(sum / (double(size) * size * n) - 1) < 1e-6);
        }
      }
  });
}

TW_TEST(reduce_complex) {
  test::on_each_isa([] {
    const Complex64 x[3] = {{1, 2}, {3, -1}, {0, 1}};
    Complex64 y;
    ReduceProblem p = {ReduceOp::sum, DType::complex64, DType::complex64, {}, {}, {3}, {1}, x, &y};
    reduce(p);
    CHECK(y.re == 4 && y.im == 2);
    p.op = ReduceOp::prod;
    reduce(p);
    CHECK(y.re == -5 && y.im == 5);
  });
}

TW_TEST(reduce_is_exact_enough_and_independent_of_threads) {
  const int64_t n = 3'000'017;
  std::vector<float> x(n);
  double want = 0;
  for (int64_t i = 0; i < n; ++i) want += x[i] = 0.1f + float(i % 7) * 0.01f;
  const int before = num_threads();
  test::on_each_isa([&] {
    float y[2];
    for (int threads = 1; threads <= 2; ++threads) {
      set_num_threads(threads);
      reduce({ReduceOp::sum,
              DType::float32,
              DType::float32,
              {},
              {},
              {n},
              {1},
              x.data(),
              &y[threads - 1]});
    }
    CHECK_EQ(y[0], y[1]);
    CHECK(std::abs(y[0] - want) < 3e-7 * want);
  });
  set_num_threads(before);
}

}  // namespace tw
