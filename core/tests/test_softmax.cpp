// Softmax and its relatives against formulas in double, rows and columns, with infinities and NaN.
#include "core/cpu/normalization/softmax.h"

#include <cmath>
#include <random>
#include <vector>

#include "core/tests/check.h"
#include "core/tests/each_isa.h"

namespace tw {
namespace {

using std::int64_t;

template <class T> std::vector<T> random_vector(int64_t n, double scale) {
  std::mt19937 generator(2);
  std::normal_distribution<double> normal(0, scale);
  std::vector<T> values(n);
  for (T& v : values) v = static_cast<T>(normal(generator));
  return values;
}

template <class T> bool close(T got, double want) {
  const double tolerance = sizeof(T) == 4 ? 4e-6 : 2e-14;
  return std::abs(got - want) <= tolerance * (1 + std::abs(want));
}

// Every result for one group of n elements `inner` apart, in double.
struct Reference {
  double lse, dot = 0, sum = 0, size = 0;
  template <class T> Reference(const T* x, const T* g, int64_t n, int64_t inner) {
    double top = -INFINITY, exps = 0;
    for (int64_t i = 0; i < n; ++i) top = std::max<double>(top, x[i * inner]);
    for (int64_t i = 0; i < n; ++i) exps += std::exp(x[i * inner] - top);
    lse = top + std::log(exps);
    for (int64_t i = 0; i < n; ++i) {
      dot += std::exp(x[i * inner] - lse) * g[i * inner];
      sum += g[i * inner];
      size += std::abs(g[i * inner]);
    }
  }
};

template <class T> void check_shape(int64_t outer, int64_t n, int64_t inner) {
  const SoftmaxShape shape = {DTypeOf<T>::value, outer, n, inner};
  const int64_t count = outer * n * inner;
  const auto x = random_vector<T>(count, 4);
  const auto g = random_vector<T>(count, 1);
  std::vector<T> y(count), z(count), dy(count), dz(count), lse(outer * inner);
  softmax(shape, x.data(), y.data());
  log_softmax(shape, x.data(), z.data());
  logsumexp(shape, x.data(), lse.data());
  softmax_backward(shape, y.data(), g.data(), false, dy.data());
  log_softmax_backward(shape, z.data(), g.data(), false, dz.data());
  for (int64_t group = 0; group < outer * inner; ++group) {
    const int64_t start = group / inner * n * inner + group % inner;
    const Reference want(&x[start], &g[start], n, inner);
    CHECK(close(lse[group], want.lse));
    for (int64_t i = start; i < start + n * inner; i += inner) {
      const double p = std::exp(x[i] - want.lse);
      CHECK(close(y[i], p) && close(z[i], x[i] - want.lse));
      CHECK(close(dy[i], p * (g[i] - want.dot)));
      CHECK(std::abs(dz[i] - (g[i] - p * want.sum)) <= 1e-6 * (4 + want.size));
    }
  }
}

}  // namespace

TW_TEST(softmax_rows_and_columns) {
  test::on_each_isa([] {
    for (int64_t n = 1; n < 70; ++n) {
      check_shape<float>(3, n, 1);
      check_shape<double>(3, n, 1);
      check_shape<float>(2, 5, n);
      check_shape<double>(2, 5, n);
    }
    check_shape<float>(2, 5000, 1);
    for (int64_t n : {1, 3, 10, 16}) {  // short rows, and narrow planes, of many groups
      check_shape<float>(40, n, 1);
      check_shape<double>(900, n, 1);
      check_shape<float>(700, n, 3);
      check_shape<double>(17, 4 * n, 15);
    }
    check_shape<float>(1, 200, 300);
    check_shape<float>(1100, 2048, 1);  // written around the caches
  });
}

TW_TEST(softmax_special_values) {
  test::on_each_isa([] {
    const float inf = INFINITY;
    const std::vector<float> rows[] = {
        {-inf, -inf, -inf}, {0, inf, 1}, {0, NAN, inf}, {-inf, 0, 0}};
    const float lse[] = {-inf, inf, NAN, std::log(2.0f)};
    for (int i = 0; i < 4; ++i)
      for (int64_t inner : {1, 2}) {
        std::vector<float> x;
        for (const float v : rows[i]) x.insert(x.end(), inner, v);
        std::vector<float> y(x.size()), result(inner);
        const SoftmaxShape shape = {DType::float32, 1, 3, inner};
        logsumexp(shape, x.data(), result.data());
        CHECK(result[0] == lse[i] || (std::isnan(result[0]) && std::isnan(lse[i])));
        softmax(shape, x.data(), y.data());
        CHECK(i == 3 ? y[0] == 0 && close(y[inner], 0.5) : std::isnan(y[inner]));
      }
    float empty[2] = {};
    logsumexp({DType::float32, 2, 0, 1}, nullptr, empty);
    CHECK(empty[0] == -inf && empty[1] == -inf);
  });
}

TW_TEST(cross_entropy_forward_and_backward) {
  test::on_each_isa([] {
    for (const int64_t classes : {1, 3, 10, 16, 33, 100}) {
      const int64_t rows = 5;
      const auto x = random_vector<float>(rows * classes, 3);
      std::vector<int64_t> targets = {0, classes - 1, -100, classes / 2, 0};
      const CrossEntropyProblem p = {DType::float32, rows, classes, x.data(), targets.data(), -100};
      check_targets(p);
      std::vector<float> loss(rows), norms(2 * rows), dx(rows * classes);
      const float g = 0.25f;
      cross_entropy(p, loss.data(), norms.data());
      cross_entropy_backward(p, norms.data(), &g, 0, dx.data());
      for (int64_t i = 0; i < rows; ++i) {
        const float* row = &x[i * classes];
        const Reference want(row, row, classes, 1);
        const bool ignored = targets[i] == -100;
        CHECK(close(loss[i], ignored ? 0 : want.lse - row[targets[i]]));
        for (int64_t j = 0; j < classes; ++j)
          CHECK(close(dx[i * classes + j],
                      ignored ? 0 : g * (std::exp(row[j] - want.lse) - (j == targets[i]))));
      }
      targets[3] = classes;
      CHECK_THROWS(ErrorKind::index, check_targets(p), "out of range");
      targets[3] = 0, targets[1] = -1;
      CHECK_THROWS(ErrorKind::index, check_targets(p), "out of range");
    }
  });
}

}  // namespace tw
