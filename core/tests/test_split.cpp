// Rung split on every backend this machine has, and on tile registers in plain C++: exactness of
// the parts, error, layouts, and operands that the parts cannot carry.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/cpu/isa/isa.h"
#include "core/cpu/matmul/blocking.h"
#include "core/cpu/matmul/split.h"
#include "core/runtime/thread_pool.h"
#include "core/tests/check.h"
#include "core/tests/random.h"

namespace tw::amx_emulated {
extern const SplitTable split_table;
}

namespace tw {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();

std::vector<const SplitTable*> backends() {
  std::vector<const SplitTable*> list{&amx_emulated::split_table};
  if (split_backend()) list.push_back(split_backend());
  return list;
}

using test::Random;

struct Product {
  std::int64_t m, n, k;
  std::vector<float> a, b, c;
  Product(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t seed = 1)
      : m(m), n(n), k(k), a(m * k), b(k * n), c(m * n, kNan) {
    Random random{88172645463325252u + seed};
    for (float& x : a) x = float(random.real());
    for (float& x : b) x = float(random.real());
  }
  template <class F> void change(F f) {
    Random random;
    for (float& x : a) x = f(x, random);
    for (float& x : b) x = f(x, random);
  }
  MatmulProblem problem() {
    return {DType::float32, 1, m, n, k, a.data(), 0, k, 1, b.data(), 0, n, 1, c.data(), 0, n, 1};
  }
  const std::vector<float>& split(const SplitTable& backend, int parts) {
    run_split(backend, parts, problem());
    return c;
  }
  std::vector<float> ieee() {
    std::vector<float> out(m * n);
    MatmulProblem p = problem();
    p.c = out.data();
    run_packed(p);
    return out;
  }
  // Of one element, and the sum of its terms' magnitudes.
  std::pair<double, double> exact(std::int64_t i, std::int64_t j) const {
    double sum = 0, magnitude = 0;
    for (std::int64_t l = 0; l < k; ++l) {
      const double term = double(a[i * k + l]) * double(b[l * n + j]);
      sum += term;
      magnitude += std::fabs(term);
    }
    return {sum, magnitude};
  }
  // Root of the mean square of errors, in units of the magnitudes where `relative`.
  double error(const std::vector<float>& result, bool relative = false) const {
    double sum = 0;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const auto [value, magnitude] = exact(i, j);
        const double off = (double(result[i * n + j]) - value) / (relative ? magnitude : 1);
        sum += off * off;
      }
    return std::sqrt(sum / double(m * n));
  }
};

std::string named(const SplitTable& backend, int parts) {
  return std::string(backend.name) + ", " + std::to_string(parts) + " parts";
}
void expect(bool held, const std::string& what, int line) {
  if (!held) test::report_failure(__FILE__, line, what);
}

float bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); }

TW_TEST(split_parts_add_up_to_the_number) {
  Random random;
  for (const SplitTable* backend : backends())
    for (int i = 0; i < 50; ++i) {
      std::vector<float> x(kSplitBlock);
      for (float& value : x) value = std::ldexp(float(random.real()), int(random.below(200)) - 90);
      const bool columns = i % 2, swapped = i % 4 > 1;
      const SplitSource source{x.data(), 16, 32, swapped ? 1 : 32, swapped ? 16 : 1, false, 3, 1};
      alignas(64) std::uint16_t out[3 * kSplitBlock];
      SplitRange range;
      (columns ? backend->pack_columns : backend->pack_rows)(source, out, &range);
      std::uint32_t largest = 0, smallest = ~0u;
      for (int line = 0; line < 16; ++line)
        for (int term = 0; term < 32; ++term) {
          const int at = columns ? term / 2 * 32 + line * 2 + term % 2 : line * 32 + term;
          const float value = x[line * source.line + term * source.term];
          CHECK_EQ(double(bfloat16(out[at])) + double(bfloat16(out[at + kSplitBlock])) +
                       double(bfloat16(out[at + 2 * kSplitBlock])),
                   double(value));
          const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(std::fabs(value));
          largest = std::max(largest, magnitude);
          if (magnitude) smallest = std::min(smallest, magnitude);
        }
      CHECK_EQ(range.largest, largest);
      CHECK_EQ(range.below_smallest, smallest - 1);
    }
}

void expect_as_exact(Product& p, const SplitTable& backend, double most, int line) {
  const double ratio = p.error(p.split(backend, 3), true) / p.error(p.ieee(), true);
  expect(
      ratio <= most,
      named(backend, 3) + ", k " + std::to_string(p.k) + ", error / ieee " + std::to_string(ratio),
      line);
}

// Six products are as exact as float32's own sums, whatever the numbers; fewer have a bound.
TW_TEST(split_errors) {
  constexpr int shapes[][3] = {{48, 64, 64}, {33, 50, 700}, {64, 17, 1500}, {40, 40, 4096}};
  for (const SplitTable* backend : backends())
    for (const auto& s : shapes) {
      Product p(s[0], s[1], s[2]);
      const double scale = std::sqrt(double(p.k)) / 3;
      expect_as_exact(p, *backend, 1.0, __LINE__);
      expect(p.error(p.split(*backend, 2)) <= 1e-5 * scale, named(*backend, 2), __LINE__);
      expect(p.error(p.split(*backend, 1)) <= 4e-3 * scale, named(*backend, 1), __LINE__);
      p.change([](float x, Random&) { return std::fabs(x); });
      expect_as_exact(p, *backend, 1.0, __LINE__);
      // Over 24 decades a few terms are all of a sum: a few roundings here and there, and in tiles
      // one more where the two halves of a block meet.
      for (const auto& [bits, most] : {std::pair{34, 1.0}, std::pair{80, 1.1}}) {
        p.change([range = bits](float, Random& random) {
          return std::ldexp(float(random.real()), int(random.below(range)) - range / 2);
        });
        expect_as_exact(p, *backend, most, __LINE__);
      }
    }
}

TW_TEST(split_emulates_tiles_to_the_bit) {
  if (!split_backend() || std::string(split_backend()->name) != "amx") return;
  for (int parts : {1, 2, 3}) {
    Product p(70, 50, 1100);
    const std::vector<float> emulated = p.split(amx_emulated::split_table, parts);
    CHECK(p.split(*split_backend(), parts) == emulated);
  }
}

TW_TEST(split_of_any_shape_and_layout) {
  constexpr std::int64_t sizes[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 65, 100};
  Random random;
  for (const SplitTable* backend : backends())
    for (int i = 0; i < 120; ++i) {
      Product p(sizes[random.below(15)], sizes[random.below(15)], sizes[random.below(15)], i);
      const std::vector<float> want = p.ieee();
      MatmulProblem q = p.problem();
      const std::int64_t a_space = 1 + random.below(2), b_space = 1 + random.below(3);
      std::vector<float> a(p.a.size() * a_space + 1), b(p.b.size() * b_space + 1);
      const bool a_transposed = random.below(2), b_transposed = random.below(2),
                 c_transposed = random.below(2);
      q.a = a.data(), q.b = b.data();
      q.a_row = (a_transposed ? 1 : p.k) * a_space, q.a_col = (a_transposed ? p.m : 1) * a_space;
      q.b_row = (b_transposed ? 1 : p.n) * b_space, q.b_col = (b_transposed ? p.k : 1) * b_space;
      q.c_row = c_transposed ? 1 : p.n, q.c_col = c_transposed ? p.m : 1;
      q.alpha = i % 3 ? 1 : -2, q.beta = i % 4 ? 0 : 0.5;
      for (std::int64_t r = 0; r < p.m; ++r)
        for (std::int64_t l = 0; l < p.k; ++l) a[r * q.a_row + l * q.a_col] = p.a[r * p.k + l];
      for (std::int64_t l = 0; l < p.k; ++l)
        for (std::int64_t j = 0; j < p.n; ++j) b[l * q.b_row + j * q.b_col] = p.b[l * p.n + j];
      if (q.beta != 0) std::fill(p.c.begin(), p.c.end(), 3.0f);
      run_split(*backend, 3, q);
      for (std::int64_t r = 0; r < p.m; ++r)
        for (std::int64_t j = 0; j < p.n; ++j) {
          const double sum = q.alpha * want[r * p.n + j] + q.beta * 3;
          const double off = std::fabs(p.c[r * q.c_row + j * q.c_col] - sum);
          expect(off <= 1e-6 * (double(p.k) + 3), named(*backend, 3), __LINE__);
        }
    }
}

TW_TEST(split_bits_do_not_depend_on_threads) {
  const int before = num_threads();
  for (const SplitTable* backend : backends())
    for (int parts : {1, 2, 3}) {
      Product p(300, 130, 600);
      set_num_threads(1);
      const std::vector<float> one = p.split(*backend, parts);
      for (int threads : {2, 3}) {
        set_num_threads(threads);
        CHECK(p.split(*backend, parts) == one);
      }
    }
  set_num_threads(before);
}

// The same class as the ieee kernel's result in each element, and finite ones as close. Where sums
// are denormal the ieee kernel rounds each of its k additions to a whole quantum.
void check_class(Product& p, const char* what) {
  const std::vector<float> want = p.ieee();
  for (const SplitTable* backend : backends())
    for (int parts : {1, 2, 3}) {
      const std::vector<float>& got = p.split(*backend, parts);
      const double allowed = parts == 3 ? 1e-6 : parts == 2 ? 1e-4 : 2e-2;
      for (std::int64_t i = 0; i < p.m; ++i)
        for (std::int64_t j = 0; j < p.n; ++j) {
          const float x = got[i * p.n + j], y = want[i * p.n + j];
          double magnitude = 0;
          for (std::int64_t l = 0; l < p.k; ++l)
            magnitude += std::fabs(double(p.a[i * p.k + l]) * double(p.b[l * p.n + j]));
          const bool same = std::isnan(y)   ? std::isnan(x)
                            : std::isinf(y) ? x == y
                                            : std::fabs(double(x) - double(y)) <=
                                                  allowed * magnitude + 0x1p-149 * double(p.k);
          if (same) continue;
          std::ostringstream text;
          text << what << ": " << named(*backend, parts) << ": " << x << " is not " << y;
          return test::report_failure(__FILE__, __LINE__, text.str());
        }
    }
}

TW_TEST(split_leaves_to_ieee_what_it_cannot_carry) {
  const auto check = [](const char* what, auto change) {
    Product p(40, 50, 600);
    change(p);
    check_class(p, what);
  };
  for (float odd :
       {kInfinity, -kInfinity, kNan, kLargest, -kLargest, 3.3961775e38f, 1e-38f, 1e-45f})
    for (std::int64_t at : {0, 599, 12345}) {
      check("one element of a", [&](Product& p) { p.a[at] = odd; });
      check("one element of b", [&](Product& p) { p.b[at] = odd; });
      check("one in each", [&](Product& p) { p.a[at] = p.b[at] = odd; });
    }
  for (float scale : {1e-30f, 1e-36f, 1e-38f, 1e-43f, 1e30f, 1e37f, 1e38f}) {
    check("a row", [&](Product& p) {
      for (int l = 0; l < 600; ++l) p.a[l] *= scale;
    });
    check("all of a", [&](Product& p) {
      for (float& x : p.a) x *= scale;
    });
    check("all of b", [&](Product& p) {
      for (float& x : p.b) x *= scale;
    });
    check("a large, b small", [&](Product& p) {
      for (float& x : p.a) x *= scale;
      for (float& x : p.b) x /= scale < 1e-38f ? 1e-38f : scale;
    });
    check("huge and tiny in one", [&](Product& p) {
      for (std::size_t i = 0; i < p.a.size(); ++i) p.a[i] *= i % 2 ? scale : 1e-30f;
    });
  }
  check("sums overflow", [&](Product& p) {
    std::fill(p.a.begin(), p.a.end(), 1e18f), std::fill(p.b.begin(), p.b.end(), 1e18f);
  });
  check("products overflow", [&](Product& p) {
    std::fill(p.a.begin(), p.a.end(), -1e30f), std::fill(p.b.begin(), p.b.end(), 1e10f);
  });
  check("zeros", [&](Product& p) { std::fill(p.a.begin(), p.a.end(), -0.0f); });
  check("products below the normal", [&](Product& p) {
    for (float& x : p.a) x *= 1e-20f;
    for (float& x : p.b) x *= 1e-22f;
  });
}

TW_TEST(split_adds_to_c_when_it_falls_back) {
  for (const SplitTable* backend : backends()) {
    Product p(5, 6, 7);
    p.a[3] = kInfinity;
    MatmulProblem q = p.problem();
    std::fill(p.c.begin(), p.c.end(), 2.0f);
    q.beta = 3, q.alpha = 0.5;
    run_split(*backend, 3, q);
    for (std::int64_t j = 0; j < 6; ++j) {
      CHECK(std::isinf(p.c[j]));
      CHECK(std::fabs(double(p.c[6 + j]) - (0.5 * p.exact(1, j).first + 6)) < 1e-5);
    }
  }
}

std::uint16_t narrow(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  return std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

TW_TEST(split_of_bfloat16_rounds_once) {
  for (const SplitTable* backend : backends())
    for (const auto& [m, n, k, batch] :
         {std::array<std::int64_t, 4>{33, 20, 70, 3}, {17, 35, 1100, 1}, {4, 5, 0, 2}})
      for (float scale : {1.0f, 1e-37f}) {
        Random random;
        std::vector<std::uint16_t> a(batch * m * k + 1), b(k * n + 1), c(batch * m * n);
        for (auto& x : a) x = narrow(float(random.real()) * scale);
        for (auto& x : b) x = narrow(float(random.real()));
        const MatmulProblem p{DType::bfloat16, batch, m, n, k,        a.data(), m * k, k, 1,
                              b.data(),        0,     n, 1, c.data(), m * n,    n,     1};
        run_split(*backend, 1, p);
        for (std::int64_t i = 0; i < batch * m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0, magnitude = 0;
            for (std::int64_t l = 0; l < k; ++l) {
              const double product = double(bfloat16(a[i * k + l])) * bfloat16(b[l * n + j]);
              sum += product, magnitude += std::fabs(product);
            }
            const double allowed = std::fabs(sum) * 0x1p-8 + 1e-5 * magnitude + 1e-40;
            CHECK(std::fabs(bfloat16(c[i * n + j]) - sum) <= allowed);
          }
      }
}

TW_TEST(split_refuses_with_a_reason) {
  const MatmulProblem p{DType::float64, 1, 2, 2, 2,       nullptr, 0, 2, 1,
                        nullptr,        0, 2, 1, nullptr, 0,       2, 1};
  std::string reason;
  for (const Kernel& kernel : split_kernels) {
    CHECK(!kernel.accepts(&p, &reason));
    CHECK(reason.find("bfloat16") != std::string::npos);
  }
}

}  // namespace
}  // namespace tw
