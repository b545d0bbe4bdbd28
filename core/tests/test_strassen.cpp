// Strassen's recursion on small whole numbers, whose products and sums are exact: it must give the
// very values of the definition, for any alpha, beta, layout and depth.
#include <vector>

#include "core/cpu/matmul/strassen.h"
#include "core/cpu/matmul/tuning.h"
#include "core/tests/check.h"
#include "core/tests/each_isa.h"

namespace tw {

namespace {

struct Depth {  // for the length of a test
  explicit Depth(double extent) { set_matmul_tuning("strassen_extent", extent); }
  ~Depth() { set_matmul_tuning("strassen_extent", before); }
  const double before = double(std::int64_t(matmul_tuning().strassen_extent));
};

template <class T> struct Matrix {
  std::int64_t row, col;
  std::vector<T> memory;
  Matrix(std::int64_t rows, std::int64_t cols, bool by_rows, std::int64_t pad)
      : row(by_rows ? cols + pad : 1),
        col(by_rows ? 1 : rows + pad),
        memory(static_cast<std::size_t>((rows + pad) * (cols + pad))) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = T(int(i * 7919 % 13) - 6);
  }
  T at(std::int64_t i, std::int64_t j) const {
    return memory[static_cast<std::size_t>(i * row + j * col)];
  }
};

template <class T>
void check(std::int64_t m, std::int64_t n, std::int64_t k, int layouts, double alpha, double beta) {
  const Matrix<T> a(m, k, layouts & 1, 3), b(k, n, layouts & 2, 0);
  Matrix<T> c(m, n, layouts & 4, 5);
  const Matrix<T> before = c;
  run_strassen({DTypeOf<T>::value, 1, m, n, k, a.memory.data(), 0, a.row, a.col, b.memory.data(), 0,
                b.row, b.col, c.memory.data(), 0, c.row, c.col, alpha, beta});
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (std::int64_t l = 0; l < k; ++l) sum += a.at(i, l) * b.at(l, j);
      CHECK_EQ(c.at(i, j), T(alpha) * sum + T(beta) * before.at(i, j));
    }
}

}  // namespace

TW_TEST(strassen_is_exact_where_sums_are) {
  test::on_each_isa([] {
    for (int layouts = 0; layouts < 8; ++layouts) {
      const Depth depth(32);
      check<float>(70, 90, 67, layouts, 1, 0);
      check<double>(131, 129, 140, layouts, -2, 3);
    }
  });
}

TW_TEST(strassen_takes_the_packed_rung_where_nothing_is_halved) {
  check<float>(40, 50, 60, 7, 1, 1);
  check<double>(1, 3000, 2, 7, 2, 0);
}

}  // namespace tw
