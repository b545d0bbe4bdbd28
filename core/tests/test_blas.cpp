// The BLAS symbols on every rung and instruction set, against the definition in float64; and what
// they do where memory runs out. Wrong arguments and real programs: tests/ops/matmul/test_blas.py.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/fault.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/matmul/matmul.h"
#include "core/memory/scratch.h"
#include "core/runtime/registry.h"
#include "core/tests/check.h"
#include "core/tests/random.h"
#include "core/tests/each_isa.h"

extern "C" {
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*,
            const float*, const int*, const float*, const int*, const float*, float*, const int*);
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*,
            const double*, const int*, const double*, const int*, const double*, double*,
            const int*);
void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                 float*, int);
void cblas_dgemm(int, int, int, int, int, int, double, const double*, int, const double*, int,
                 double, double*, int);
}

namespace tw {
namespace {

constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;

void fortran(char ta, char tb, int m, int n, int k, float alpha, const float* a, int lda,
             const float* b, int ldb, float beta, float* c, int ldc) {
  sgemm_(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}
void fortran(char ta, char tb, int m, int n, int k, double alpha, const double* a, int lda,
             const double* b, int ldb, double beta, double* c, int ldc) {
  dgemm_(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}
template <class... Arguments> void by_rows(float, Arguments... arguments) {
  cblas_sgemm(kRowMajor, arguments...);
}
template <class... Arguments> void by_rows(double, Arguments... arguments) {
  cblas_dgemm(kRowMajor, arguments...);
}

using test::Random;

// A matrix by columns whose columns lie `lead` elements apart.
template <class T> struct Matrix {
  int rows, columns, lead;
  std::vector<T> memory;
  Matrix(int rows, int columns, Random& random)
      : rows(rows), columns(columns), lead(std::max(1, rows) + random.below(3)) {
    memory.resize(std::size_t(lead) * columns + 1);
    for (T& x : memory) x = T(random.real());
  }
  T at(int i, int j) const { return memory[std::size_t(j) * lead + i]; }
};
template <class T> T element(const Matrix<T>& x, bool transposed, int i, int j) {
  return transposed ? x.at(j, i) : x.at(i, j);
}

constexpr int kSizes[] = {0, 1, 2, 3, 7, 16, 17, 33, 70};
constexpr double kAlpha[] = {0, 1, -0.5}, kBeta[] = {0, 1, 0.25};

// One random call; with `rows` the same through CBLAS by rows, where C^T = B^T A^T is asked for.
template <class T> void check_call(Random& random, bool rows) {
  const int m = kSizes[random.below(9)], n = kSizes[random.below(9)], k = kSizes[random.below(9)];
  const bool ta = random.below(2), tb = random.below(2);
  const T alpha = T(kAlpha[random.below(3)]), beta = T(kBeta[random.below(3)]);
  Matrix<T> a(ta ? k : m, ta ? m : k, random), b(tb ? n : k, tb ? k : n, random);
  Matrix<T> c(m, n, random);
  const T nan = std::numeric_limits<T>::quiet_NaN();
  if (alpha == 0) a.memory.assign(a.memory.size(), nan);  // must not be read
  const Matrix<T> before = c;
  if (beta == 0)
    for (int j = 0; j < n; ++j) std::fill_n(c.memory.begin() + j * c.lead, m, nan);
  if (rows)
    by_rows(T(), tb ? kTrans : kNoTrans, ta ? kTrans : kNoTrans, n, m, k, alpha, b.memory.data(),
            b.lead, a.memory.data(), a.lead, beta, c.memory.data(), c.lead);
  else
    fortran(ta ? 'T' : 'n', tb ? 'c' : 'N', m, n, k, alpha, a.memory.data(), a.lead,
            b.memory.data(), b.lead, beta, c.memory.data(), c.lead);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; alpha != 0 && l < k; ++l)
        sum += double(alpha) * double(element(a, ta, i, l)) * double(element(b, tb, l, j));
      if (beta != 0) sum += double(beta) * double(before.at(i, j));
      const double bound = std::numeric_limits<T>::epsilon() * (k + 3);
      CHECK(std::fabs(double(c.at(i, j)) - sum) <= bound);
      c.memory[std::size_t(j) * c.lead + i] = before.at(i, j);
    }
  CHECK(c.memory == before.memory);  // nothing beside C was touched
}

// Those that are as exact as float32.
std::vector<std::string> rungs() {
  if (kernels_of_op("matmul").empty()) register_matmul_kernels();
  std::vector<std::string> names{""};  // the free choice
  for (const Kernel* kernel : kernels_of_op("matmul"))
    if (kernel->precision <= Precision::fp32) names.push_back(kernel->name);
  return names;
}

TW_TEST(blas_agrees_with_float64_on_every_rung) {
  Random random;
  test::on_each_isa([&] {
    for (const std::string& rung : rungs()) {
      force_kernel("matmul", rung);
      for (int i = 0; i < 60; ++i) {
        check_call<float>(random, i % 2);
        check_call<double>(random, i % 2);
      }
    }
  });
  force_kernel("matmul", "");
}

TW_TEST(blas_without_memory_takes_a_rung_without_scratch) {
  constexpr int n = 40;
  rungs();
  force_kernel("matmul", "simd");
  const std::vector<double> a(n * n, 1), b(n * n, 2);
  std::vector<double> c(n * n, 7);
  scratch_trim();
  faults_after = 0;  // the next mapping
  fortran('N', 'N', n, n, n, 1.0, a.data(), n, b.data(), n, 0.0, c.data(), n);
  const bool failed = faults_after < 0;
  faults_after = -1;
  force_kernel("matmul", "");
  CHECK(failed);
  CHECK(c == std::vector<double>(n * n, 2 * n));
}

}  // namespace
}  // namespace tw
