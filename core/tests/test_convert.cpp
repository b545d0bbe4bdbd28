// Conversions: every pair of dtypes, rounding of the short formats, strided and transposed copies,
// on each instruction set of the machine.
#include "core/cpu/copy/convert.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "core/tests/check.h"
#include "core/tests/each_isa.h"

namespace tw {
namespace {

using std::int64_t;

template <class To, class From> To converted(From x) {
  To y;
  convert_elements(DTypeOf<From>::value, DTypeOf<To>::value, 1, &x, sizeof x, &y, sizeof y);
  return y;
}
float through_half(float x) { return converted<float>(converted<Half>(x)); }
float through_bfloat16(float x) { return converted<float>(converted<BFloat16>(x)); }

// Small whole numbers survive every pair of dtypes, at every length and with strides.
void check_pair(DType from, DType to) {
  for (int n = 0; n <= 70; n += n < 40 ? 1 : 13) {
    std::vector<double> values(n), back(n, -1);
    for (int i = 0; i < n; ++i) values[i] = is_bool(from) || is_bool(to) ? i % 2 : i;
    const int64_t a = size_of(from), b = size_of(to);
    std::vector<char> x(n * a + 1), y(2 * n * b + 1), z(n * b + 1);
    convert_elements(DType::float64, from, n, values.data(), 8, x.data(), a);
    convert_elements(from, to, n, x.data(), a, z.data(), b);
    convert_elements(to, DType::float64, n, z.data(), b, back.data(), 8);
    CHECK(back == values);
    if (n == 0) continue;
    convert_elements(from, to, n, x.data() + (n - 1) * a, -a, y.data(), 2 * b);
    convert_elements(to, DType::float64, n, y.data() + 2 * (n - 1) * b, -2 * b, back.data(), 8);
    CHECK(back == values);
  }
}

void check_copy(DType dtype, const Shape& shape, const Strides& x_strides,
                const Strides& y_strides) {
  const int64_t size = size_of(dtype), room = 1 << 16;
  std::vector<char> x(room * size), y(room * size, 1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<char>(i * 37 % 101);
  const char* from = x.data() + room / 2 * size;
  char* to = y.data() + room / 2 * size;
  copy_strided(dtype, dtype, shape, from, x_strides, to, y_strides);
  bool same = true;
  const int64_t count = element_count(shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, a = 0, b = 0;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      a += rest % shape[d] * x_strides[d];
      b += rest % shape[d] * y_strides[d];
      rest /= shape[d];
    }
    same &= std::memcmp(from + a * size, to + b * size, size) == 0;
  }
  CHECK(same);
}

}  // namespace

TW_TEST(convert_every_pair) {
  test::on_each_isa([] {
    for (int from = 0; from < kDTypes; ++from)
      for (int to = 0; to < kDTypes; ++to)
        check_pair(static_cast<DType>(from), static_cast<DType>(to));
  });
}

TW_TEST(convert_halves_survive_a_round_trip) {
  test::on_each_isa([] {
    std::vector<std::uint16_t> bits(65536), again(65536);
    std::vector<float> wide(65536);
    for (int i = 0; i < 65536; ++i) bits[i] = static_cast<std::uint16_t>(i);
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      convert_elements(dtype, DType::float32, 65536, bits.data(), 2, wide.data(), 4);
      convert_elements(DType::float32, dtype, 65536, wide.data(), 4, again.data(), 2);
      for (int i = 0; i < 65536; ++i) CHECK(std::isnan(wide[i]) || again[i] == bits[i]);
    }
  });
}

TW_TEST(convert_rounds_to_nearest_even) {
  test::on_each_isa([] {
    CHECK_EQ(through_half(2049.0f), 2048.0f);
    CHECK_EQ(through_half(2051.0f), 2052.0f);
    CHECK_EQ(through_half(65519.9f), 65504.0f);
    CHECK_EQ(through_half(65520.0f), INFINITY);
    CHECK_EQ(through_half(0x1p-25f), 0.0f);
    CHECK_EQ(through_half(0x1.8p-24f), 0x1p-23f);
    CHECK_EQ(through_bfloat16(257.0f), 256.0f);
    CHECK_EQ(through_bfloat16(259.0f), 260.0f);
    CHECK(std::isnan(through_half(NAN)) && std::isnan(through_bfloat16(NAN)));
    CHECK(std::signbit(through_half(-0.0f)));
    // Rounded once: by way of the nearest float this would be a tie, and go down.
    CHECK_EQ(converted<float>(converted<Half>(2049 + 1e-9)), 2050.0f);
  });
}

TW_TEST(convert_special_targets) {
  test::on_each_isa([] {
    CHECK_EQ(converted<std::int32_t>(-2.9f), -2);
    CHECK_EQ(converted<std::uint64_t>(0x1.8p63), 3ull << 62);
    CHECK(converted<bool>(0.25f) && converted<bool>(NAN) && !converted<bool>(-0.0));
    CHECK(converted<bool>(Complex64{0, 1}));
    CHECK_EQ(converted<float>(Complex64{3, 4}), 3.0f);
    CHECK_EQ(converted<Complex64>(2.5).im, 0.0f);
    (void)converted<std::int8_t>(1e30f);  // unspecified, but defined behaviour
    (void)converted<std::int64_t>(-INFINITY);
    (void)converted<std::uint32_t>(NAN);
  });
}

TW_TEST(copy_strided_matches_a_loop) {
  test::on_each_isa([] {
    for (const DType dtype : {DType::int8, DType::float16, DType::float32, DType::complex64}) {
      check_copy(dtype, {}, {}, {});
      check_copy(dtype, {0, 4}, {4, 1}, {4, 1});
      check_copy(dtype, {100, 101}, {101, 1}, {101, 1});
      check_copy(dtype, {100, 101}, {1, 100}, {101, 1});  // transpose
      check_copy(dtype, {64, 128}, {1, 64}, {128, 1});
      check_copy(dtype, {3, 40, 50}, {2000, 1, 40}, {2000, 50, 1});
      check_copy(dtype, {5, 6, 7}, {1, 5, 30}, {42, 7, 1});  // reversed axes
      check_copy(dtype, {40, 50}, {-50, -1}, {50, 1});
      check_copy(dtype, {40, 50}, {0, 1}, {50, 1});
      check_copy(dtype, {40, 50}, {1, 0}, {50, 1});
      check_copy(dtype, {40, 50}, {2, 90}, {100, 2});
      check_copy(dtype, {2, 3, 2, 3, 2, 3}, {1, 2, 6, 12, 36, 72}, {108, 36, 18, 6, 3, 1});
    }
  });
}

// Rows of a few elements, which are copied many a call.
TW_TEST(copy_strided_of_short_rows) {
  test::on_each_isa([] {
    for (const DType dtype :
         {DType::int8, DType::float16, DType::float32, DType::complex64, DType::complex128})
      for (const int64_t n : {2, 3, 4, 5, 8, 11, 16, 33, 70}) {
        check_copy(dtype, {30, n}, {n + 3, 1}, {n + 1, 1});
        check_copy(dtype, {30, n}, {2 * n + 1, 2}, {n, 1});
        check_copy(dtype, {30, n}, {5, 0}, {n + 1, 1});
        check_copy(dtype, {30, n}, {n, -1}, {n, 1});
        check_copy(dtype, {50, 3, n}, {4 * n, n + 1, 1}, {3 * n + 1, n, 1});
        check_copy(dtype, {3, 60, n}, {0, n, 1}, {60 * n, n, 1});
      }
  });
}

// As many loops as there may be: every second axis repeats in x, so none can be merged.
TW_TEST(copy_strided_over_all_axes) {
  Shape shape;
  Strides x_strides, y_strides;
  for (int i = 0; i < kMaxRank; ++i) {
    const bool is_long = i % 3 == 0;  // 11 of 2 elements, the others of one
    shape.push_back(is_long ? 2 : 1);
    x_strides.push_back(is_long ? i % 2 * (std::int64_t{1} << i / 3) : 5);
    y_strides.push_back(is_long ? std::int64_t{1} << (i * 7 / 3) % 11 : 9);
  }
  check_copy(DType::float32, shape, x_strides, y_strides);
}

}  // namespace tw
