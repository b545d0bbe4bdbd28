// Every rung of the matmul ladder, on every instruction set of this machine, against the definition
// in float64.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/matmul/matmul.h"
#include "core/cpu/matmul/tuning.h"
#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"
#include "core/tests/check.h"
#include "core/tests/random.h"

namespace tw {
namespace {

using test::Random;

// How a matrix lies in memory.
enum class Layout { rows, columns, padded, reversed, spaced, one_row, one_column };
constexpr Layout kAnyLayout[] = {Layout::rows,      Layout::columns, Layout::padded,
                                 Layout::reversed,  Layout::spaced,  Layout::one_row,
                                 Layout::one_column};
constexpr Layout kResultLayout[] = {Layout::rows, Layout::rows, Layout::columns, Layout::padded,
                                    Layout::spaced};

template <class T> struct Matrix {
  std::int64_t rows, columns, row, column, origin = 0;
  std::vector<T> memory;
  Matrix(std::int64_t m, std::int64_t n, Layout layout) : rows(m), columns(n), row(n), column(1) {
    switch (layout) {
      case Layout::rows: break;
      case Layout::columns: row = 1, column = m; break;
      case Layout::padded: row = n + 5; break;
      case Layout::reversed:
        row = -n, column = -1, origin = std::max<std::int64_t>(m * n - 1, 0);
        break;
      case Layout::spaced: row = 6 * n + 4, column = 3; break;
      case Layout::one_row: row = 0; break;
      case Layout::one_column: row = 1, column = 0; break;
    }
    std::int64_t last = origin;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) last = std::max(last, origin + i * row + j * column);
    memory.resize(last + 1);
  }
  T* data() { return memory.data() + origin; }
  T& at(std::int64_t i, std::int64_t j) { return data()[i * row + j * column]; }
};

template <class T> MatmulProblem problem(Matrix<T>& a, Matrix<T>& b, Matrix<T>& c, double alpha = 1,
                                         double beta = 0, MatmulEpilogue epilogue = {}) {
  return {DTypeOf<T>::value, 1,        a.rows, b.columns, a.columns, a.data(), 0, a.row,
          a.column,          b.data(), 0,      b.row,     b.column,  c.data(), 0, c.row,
          c.column,          alpha,    beta,   epilogue};
}

const std::vector<const Kernel*>& ladder() {
  if (kernels_of_op("matmul").empty()) register_matmul_kernels();
  static const std::vector<const Kernel*> exact = [] {
    std::vector<const Kernel*> list;  // of float32's own precision
    for (const Kernel* kernel : kernels_of_op("matmul"))
      if (kernel->precision <= Precision::fp32) list.push_back(kernel);
    return list;
  }();
  return exact;
}
const Kernel& rung(const std::string& name) {
  for (const Kernel* kernel : ladder())
    if (name == kernel->name) return *kernel;
  fail(ErrorKind::value, "no rung ", name);
}

template <class F> void on_every_isa(F body) {
  const Isa before = active_isa();
  for (int i = 0; i < kIsas; ++i)
    if (kernels_of(Isa(i))) {
      set_isa(Isa(i));
      body();
    }
  set_isa(before);
}
template <class F> void with_threads(int count, F body) {
  const int before = num_threads();
  set_num_threads(count);
  body();
  set_num_threads(before);
}

template <class T> void fill(Matrix<T>& x, Random& random) {
  for (T& value : x.memory) value = T(random.real());
}

// |error| <= k ulps of the sum of magnitudes, the bound of any order of summation.
template <class T> bool is_close(Matrix<T>& a, Matrix<T>& b, Matrix<T>& before, Matrix<T>& c,
                                 double alpha, double beta, const MatmulEpilogue& epilogue) {
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.columns; ++j) {
      double sum = 0, magnitude = 0;
      for (std::int64_t l = 0; l < a.columns; ++l) {
        const double product = double(a.at(i, l)) * double(b.at(l, j));
        sum += product;
        magnitude += std::fabs(product);
      }
      sum *= alpha;
      magnitude *= std::fabs(alpha);
      if (beta != 0) {
        sum += beta * double(before.at(i, j));
        magnitude += std::fabs(beta * double(before.at(i, j)));
      }
      if (epilogue.bias) {
        const double bias =
            static_cast<const T*>(epilogue.bias)[i * epilogue.row + j * epilogue.col];
        sum += bias;
        magnitude += std::fabs(bias);
      }
      if (epilogue.relu) sum = std::max(sum, 0.0);
      const double bound = std::numeric_limits<T>::epsilon() * magnitude * (double(a.columns) + 4);
      if (!(std::fabs(double(c.at(i, j)) - sum) <= bound)) return false;
    }
  return true;
}

std::string describe(const Kernel& kernel, const MatmulProblem& p) {
  std::ostringstream text;
  text << kernel.name << " on " << name_of(active_isa()) << ", " << name_of(p.dtype) << " " << p.m
       << " " << p.n << " " << p.k << ", strides a " << p.a_row << " " << p.a_col << ", b "
       << p.b_row << " " << p.b_col << ", c " << p.c_row << " " << p.c_col << ", alpha " << p.alpha
       << ", beta " << p.beta << ", bias along "
       << (!p.epilogue.bias ? "nothing"
           : p.epilogue.row ? "rows"
                            : "columns")
       << ", relu " << p.epilogue.relu;
  return text.str();
}

template <class T>
void check_all_rungs(std::int64_t m, std::int64_t n, std::int64_t k, Random& random) {
  constexpr double factors[] = {1, 1, 0.5, -2}, keeps[] = {0, 0, 1, 0.25};
  Matrix<T> a(m, k, kAnyLayout[random.below(7)]), b(k, n, kAnyLayout[random.below(7)]);
  Matrix<T> before(m, n, kResultLayout[random.below(5)]);
  const double alpha = factors[random.below(4)], beta = keeps[random.below(4)];
  fill(a, random);
  fill(b, random);
  fill(before, random);
  Matrix<T> bias(1, std::max({m, n, std::int64_t{1}}), Layout::rows);
  fill(bias, random);
  const MatmulEpilogue epilogues[] = {{},
                                      {},
                                      {bias.data(), 0, 1, false},
                                      {bias.data(), 1, 0, true},
                                      {bias.data(), 0, 1, true},
                                      {nullptr, 0, 0, true}};
  const MatmulEpilogue& epilogue = epilogues[random.below(6)];
  for (const Kernel* kernel : ladder()) {
    Matrix<T> c = before;
    if (beta == 0)  // C may be uninitialised: what it held must not leak
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) c.at(i, j) = std::numeric_limits<T>::quiet_NaN();
    const MatmulProblem p = problem(a, b, c, alpha, beta, epilogue);
    if (!kernel->accepts(&p, nullptr)) continue;
    kernel->run(&p);
    if (!is_close(a, b, before, c, alpha, beta, epilogue))
      test::report_failure(__FILE__, __LINE__, describe(*kernel, p));
    for (std::int64_t i = 0; i < m; ++i)  // nothing between the elements was touched
      for (std::int64_t j = 0; j < n; ++j) c.at(i, j) = before.at(i, j);
    if (c.memory != before.memory)
      test::report_failure(__FILE__, __LINE__, "wrote beside C: " + describe(*kernel, p));
  }
}

TW_TEST(matmul_rungs_agree_with_float64) {
  constexpr std::int64_t sizes[] = {0, 1, 2, 3, 5, 15, 16, 17, 31, 33, 63, 64, 65, 96, 127};
  Random random;
  on_every_isa([&] {
    for (int i = 0; i < 150; ++i) {
      const std::int64_t m = sizes[random.below(15)], n = sizes[random.below(15)];
      const std::int64_t k = sizes[random.below(15)];
      check_all_rungs<float>(m, n, k, random);
      check_all_rungs<double>(m, n, k, random);
    }
  });
}

TW_TEST(matmul_rungs_agree_beyond_one_block) {
  constexpr std::int64_t shapes[][3] = {{1, 1500, 40},  {1500, 1, 40}, {20, 20, 2300},
                                        {7, 700, 1100}, {700, 9, 70},  {130, 400, 300},
                                        {3, 3, 5000},   {257, 66, 129}};
  Random random;
  on_every_isa([&] {
    for (const auto& s : shapes)
      for (int threads : {1, 3})
        with_threads(threads, [&] { check_all_rungs<float>(s[0], s[1], s[2], random); });
  });
}

// Rows from end to end, and rows no wider than a vector: paths of their own.
TW_TEST(matmul_rungs_agree_on_few_terms) {
  constexpr std::int64_t widths[] = {1, 2, 3, 4, 7, 8, 13, 16, 129, 300, 2100};
  Random random;
  on_every_isa([&] {
    for (std::int64_t n : widths)
      for (std::int64_t k = 1; k <= 18; ++k)
        for (int i = 0; i < 4; ++i) {
          const std::int64_t m = n > 16 ? 1 + random.below(9) : 12 + random.below(40);
          check_all_rungs<float>(m, n, k, random);
          check_all_rungs<double>(m, n, k, random);
        }
  });
}

// Dot products, with columns of B copied or not.
TW_TEST(matmul_rungs_agree_on_few_columns) {
  Random random;
  on_every_isa([&] {
    for (std::int64_t n = 1; n <= 9; ++n)
      for (std::int64_t k : {16, 31, 48, 64, 127, 128, 144, 300})
        for (int i = 0; i < 4; ++i) {
          check_all_rungs<float>(1 + random.below(40), n, k, random);
          check_all_rungs<double>(n, 1 + random.below(40), k, random);
        }
  });
}

template <class T> void check_wrapping(Random& random) {
  Matrix<T> a(5, 9, Layout::columns), b(9, 7, Layout::reversed), c(5, 7, Layout::rows);
  for (T& x : a.memory) x = T(random.next());
  for (T& x : b.memory) x = T(random.next());
  const MatmulProblem p = problem(a, b, c);
  rung("naive").run(&p);
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 7; ++j) {
      std::uint64_t sum = 0;
      for (std::int64_t l = 0; l < 9; ++l)
        sum += std::uint64_t(a.at(i, l)) * std::uint64_t(b.at(l, j));
      CHECK(c.at(i, j) == T(sum));
    }
}

TW_TEST(matmul_of_integers_wraps) {
  Random random;
  check_wrapping<std::int8_t>(random);
  check_wrapping<std::int16_t>(random);
  check_wrapping<std::int32_t>(random);
  check_wrapping<std::int64_t>(random);
  check_wrapping<std::uint8_t>(random);
  check_wrapping<std::uint64_t>(random);
}

TW_TEST(matmul_of_complex_and_short_floats) {
  Complex64 x[] = {{1, 2}, {3, -1}}, y[] = {{0, 1}, {2, 2}}, z[1];
  const MatmulProblem p{DType::complex64, 1, 1, 1, 2, x, 0, 2, 1, y, 0, 1, 1, z, 0, 1, 1};
  rung("naive").run(&p);  // (1+2i)i + (3-i)(2+2i) = -2+i + 8+4i
  CHECK_EQ(z[0].re, 6.0f);
  CHECK_EQ(z[0].im, 5.0f);
  Half h[] = {{0x3c00}, {0x4000}, {0x0001}}, r[1];  // 1, 2, the smallest denormal
  const MatmulProblem q{DType::float16, 1, 1, 1, 3, h, 0, 3, 1, h, 0, 1, 1, r, 0, 1, 1};
  rung("naive").run(&q);
  CHECK_EQ(r[0].bits, 0x4500);  // 5
  BFloat16 f[] = {{0x3f80}, {0x4000}}, s[1];
  const MatmulProblem t{DType::bfloat16, 1, 1, 1, 2, f, 0, 2, 1, f, 0, 1, 1, s, 0, 1, 1};
  rung("naive").run(&t);
  CHECK_EQ(s[0].bits, 0x40a0);
}

TW_TEST(matmul_infinity_and_nan_propagate) {
  on_every_isa([] {
    for (const Kernel* kernel : ladder()) {
      Random random;
      Matrix<float> a(33, 20, Layout::rows), b(20, 48, Layout::rows), c(33, 48, Layout::rows);
      fill(a, random);
      fill(b, random);
      a.at(3, 7) = std::numeric_limits<float>::infinity();
      a.at(9, 0) = std::numeric_limits<float>::quiet_NaN();
      const MatmulProblem p = problem(a, b, c);
      if (!kernel->accepts(&p, nullptr)) continue;
      kernel->run(&p);
      for (std::int64_t i = 0; i < 33; ++i)
        for (std::int64_t j = 0; j < 48; ++j) {
          const float expected = c.at(i, j);
          if (i == 3)
            CHECK(std::isinf(expected) && (expected > 0) == (b.at(7, j) > 0));
          else
            CHECK(std::isnan(expected) == (i == 9));
        }
    }
  });
}

// Under the thread sanitizer, which makes it thirty times as slow, three threads alone.
#ifdef __SANITIZE_THREAD__
constexpr bool kRacesAlone = true;
#else
constexpr bool kRacesAlone = false;
#endif

TW_TEST(matmul_bits_do_not_depend_on_threads) {
  Random random;
  constexpr std::int64_t shapes[][3] = {{128, 256, 300}, {257, 300, 1300}, {1000, 40, 200},
                                        {64, 600, 500},  {60000, 8, 5},    {600, 2100, 4},
                                        {9000, 4, 100}};
  on_every_isa([&] {
    for (const auto& s : shapes)
      for (Layout la : {Layout::rows, Layout::columns})
        for (Layout lb : {Layout::rows, Layout::columns})
          for (const char* name : {"packed", "direct"}) {
            Matrix<float> a(s[0], s[2], la), b(s[2], s[1], lb), c(s[0], s[1], Layout::rows);
            fill(a, random);
            fill(b, random);
            const MatmulProblem p = problem(a, b, c);
            if (!rung(name).accepts(&p, nullptr) || (kRacesAlone && la == lb)) continue;
            const auto run = [&](int threads) {
              with_threads(threads, [&] { rung(name).run(&p); });
              return c.memory;
            };
            const std::vector<float> three = run(3);
            if (!kRacesAlone) CHECK(three == run(1) && three == run(2));
          }
  });
}

// Each rung, whatever its precision, adds the bias to what it gives without one.
TW_TEST(matmul_epilogue_follows_the_product) {
  Random random;
  ladder();
  const double extent = double(std::int64_t(matmul_tuning().strassen_extent));
  set_matmul_tuning("strassen_extent", 32);
  constexpr std::int64_t shapes[][3] = {{3, 5, 4},      {1, 300, 20}, {300, 1, 6},
                                        {65, 130, 300}, {513, 70, 9}, {40, 33, 1300},
                                        {150, 150, 150}};
  on_every_isa([&] {
    for (const auto& s : shapes)
      for (Layout layout : {Layout::rows, Layout::columns, Layout::spaced})
        for (const Kernel* kernel : kernels_of_op("matmul")) {
          Matrix<float> a(s[0], s[2], Layout::rows), b(s[2], s[1], Layout::columns);
          Matrix<float> plain(s[0], s[1], layout), c(s[0], s[1], layout);
          Matrix<float> bias(1, std::max(s[0], s[1]), Layout::rows);
          fill(a, random);
          fill(b, random);
          fill(bias, random);
          const MatmulProblem p = problem(a, b, plain);
          if (!kernel->accepts(&p, nullptr)) continue;
          kernel->run(&p);
          const bool by_rows = random.below(2);
          const MatmulProblem q = problem(a, b, c, 1, 0, {bias.data(), by_rows, !by_rows, true});
          with_threads(1 + int(random.below(2)), [&] { kernel->run(&q); });
          bool same = true;
          for (std::int64_t i = 0; i < s[0]; ++i)
            for (std::int64_t j = 0; j < s[1]; ++j)
              same &= c.at(i, j) == std::max(plain.at(i, j) + bias.memory[by_rows ? i : j], 0.0f);
          if (!same) test::report_failure(__FILE__, __LINE__, describe(*kernel, q));
        }
  });
  set_matmul_tuning("strassen_extent", extent);
}

TW_TEST(matmul_of_a_batch_equals_its_parts) {
  Random random;
  constexpr std::int64_t batch = 5, m = 6, n = 33, k = 40;
  std::vector<float> a(batch * m * k), b(batch * k * n), c(batch * m * n), one(m * n);
  for (float& x : a) x = float(random.real());
  for (float& x : b) x = float(random.real());
  for (std::int64_t b_batch : {k * n, std::int64_t{0}})
    for (const Kernel* kernel : ladder()) {
      MatmulProblem p{DType::float32, batch,   m, n, k,        a.data(), m * k, k, 1,
                      b.data(),       b_batch, n, 1, c.data(), m * n,    n,     1};
      const bool by_rows = random.below(2);
      p.epilogue = {a.data(), by_rows, !by_rows, true};  // whatever numbers, for a bias
      if (!kernel->accepts(&p, nullptr)) continue;
      kernel->run(&p);
      for (std::int64_t i = 0; i < batch; ++i) {
        MatmulProblem q = p;
        q.batch = 1;
        q.a = a.data() + i * m * k;
        q.b = b.data() + i * b_batch;
        q.c = one.data();
        kernel->run(&q);
        CHECK(std::equal(one.begin(), one.end(), c.begin() + i * m * n));
      }
    }
}

TW_TEST(matmul_choice_fits_the_problem) {
  ladder();
  const auto chosen = [](DType t, std::int64_t m, std::int64_t n, std::int64_t k) {
    const MatmulProblem p{t, 1, m, n, k, nullptr, 0, k, 1, nullptr, 0, n, 1, nullptr, 0, n, 1};
    return std::string(choose_kernel(find_op("matmul"), &p).name);
  };
  if (kernels_of(active_isa())->matmul->masked_access)
    CHECK_EQ(chosen(DType::float32, 10, 10, 10), "direct");
  CHECK_EQ(chosen(DType::float32, 64, 64, 64), "direct");
  const std::string large = chosen(DType::float32, 2048, 2048, 2048);  // bf16x6 where there is AMX
  CHECK(large == "packed" || large == "bf16x6");
  CHECK_EQ(chosen(DType::float64, 2048, 2048, 2048), "packed");
  CHECK_EQ(chosen(DType::int32, 64, 64, 64), "packed");
  const MatmulProblem p{DType::int32, 1, 2, 2, 2,       nullptr, 0, 2, 1,
                        nullptr,      0, 2, 1, nullptr, 0,       2, 1};
  std::string reason;
  CHECK(!rung("tiled").accepts(&p, &reason));
  CHECK_EQ(reason, "only float32 and float64 have vector kernels");
}

}  // namespace
}  // namespace tw
