// Products of floating numbers along rows and down columns, and the gradient of each factor. Lanes
// multiply on their own, so that their products may leave the range of float64 where the whole one
// does not: each lane is a value and a power of two.
#pragma once
#include "core/cpu/simd/range_exceptions.h"
#include "core/cpu/simd/widen.h"
#include "core/cpu/reduce/reduce.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

using Wide = Vec<double>;
using Power = Vec<int64_t>;

inline constexpr int64_t kExponentField = 0x7ffLL << 52, kExponentOfOne = 1023LL << 52;

TW_INLINE Power exponent_of(Wide x) {
  return Power((bit_cast<int64_t>(x) & Power(kExponentField)).v >> 52);
}

// value * 2^power, lane by lane.
struct Scaled {
  Wide value = 1.0;
  Power power = (int64_t)0;

  // Brings the value's magnitude into [1, 2); 0, infinities and NaN stay.
  TW_INLINE void normalize() {
    const Mask<int64_t> small = exponent_of(value) == Power((int64_t)0);
    const Wide whole = small.v ? value.v * 0x1p64 : value.v;  // no denormal
    const Power exponent = exponent_of(whole);
    const Mask<int64_t> stays =
        (exponent == Power((int64_t)0)) | (exponent == Power((int64_t)0x7ff));
    const Power taken = exponent - Power((int64_t)1023) - Power(small.v & 64);
    power += Power(stays.v ? Power((int64_t)0).v : taken.v);
    const Power bits = bit_cast<int64_t>(whole);
    const Power one = (bits & Power(~kExponentField)) | Power(kExponentOfOne);
    value = bit_cast<double>(Power(stays.v ? bits.v : one.v));
  }
  TW_INLINE void multiply(Scaled x) {
    value = value * x.value;
    power += x.power;
  }
};

TW_INLINE Power within(Power x, int64_t bound) {
  const Power low(-bound), high(bound);
  const Power above(x.v < low.v ? low.v : x.v);
  return Power(above.v > high.v ? high.v : above.v);
}
TW_INLINE Wide two_to_power(Power power) {
  return bit_cast<double>(Power((power + Power((int64_t)1023)).v << 52));
}
// As a number of float64, rounded once; the value's magnitude is in (1/2, 4), or none that is
// finite and not 0.
TW_INLINE Wide unscaled(Scaled x) {
  const Power first = within(x.power, 1000);
  return x.value * two_to_power(first) * two_to_power(within(x.power - first, 1000));
}

TW_INLINE bool is_normal(double x) {
  const double size = __builtin_fabs(x);
  return size >= 0x1p-1022 && size <= 0x1.fffffffffffffp1023;
}

// ---- products of lanes ----

// Rows of a matrix of vectors of float64 that are multiplied between two looks at their range: 64
// factors of one size in [2^-15, 2^15] are within it. Of float32 16 in [2^-7, 2^7], as many as are
// added up in float32.
inline constexpr int64_t kRowsBetween = 64, kNarrowRows = 16;
// Factors that fit the lanes together, whatever they are.
template <class T> inline constexpr int kFitting = sizeof(double) > sizeof(T) ? 4 : 1;

template <class A, class T> TW_INLINE Vec<A> factor(const T* x, int count) {
  const Vec<A> v = load_wider<A>(x, count);
  return count == kLanes<A> ? v : fill_after(v, count, (A)1);
}

// Multiplies n rows into `value`, `step` elements apart.
template <int vectors, class T> TW_INLINE void multiply_quickly(int64_t n, const T* x, int64_t step,
                                                                int count, Wide (&value)[vectors]) {
  constexpr int L = kLanes<double>, group = kFitting<T>;
  const auto take = [&](auto rows, const T* from) TW_LAMBDA_INLINE {
#pragma GCC unroll 8
    for (int c = 0; c < vectors; ++c) {
      Wide product = factor<double>(from + c * L, count);
#pragma GCC unroll 4
      for (int i = 1; i < rows.value; ++i)
        product = product * factor<double>(from + i * step + c * L, count);
      value[c] = value[c] * product;
    }
  };
  int64_t i = 0;
  for (; i + group <= n; i += group) take(std::integral_constant<int, group>(), x + i * step);
  for (; i < n; ++i) take(std::integral_constant<int, 1>(), x + i * step);
}

template <int vectors, class T>
void multiply_carefully(int64_t n, const T* x, int64_t step, int count, Scaled (&total)[vectors]) {
  for (int64_t i = 0; i < n; ++i)
    for (int c = 0; c < vectors; ++c) {
      Scaled each{factor<double>(x + i * step + c * kLanes<double>, count)};
      each.normalize();
      total[c].multiply(each);
    }
}
// Multiplies n rows of `vectors` vectors of float64 into `total`, which is normalized before and
// after; of a single vector `count` elements.
template <int vectors, class T> TW_INLINE void multiply_rows(int64_t n, const T* x, int64_t step,
                                                             int count, Scaled (&total)[vectors]) {
  for (int64_t i = 0; i < n; i += kRowsBetween) {
    const int64_t rows = n - i < kRowsBetween ? n - i : kRowsBetween;
    Wide value[vectors];
    for (int c = 0; c < vectors; ++c) value[c] = total[c].value;
    const T* from = x + i * step;
    const RangeWatch range(from);
    multiply_quickly<vectors>(rows, from, step, count, value);
    range.await(value);
    if (!range.left())
      for (int c = 0; c < vectors; ++c) total[c].value = value[c];
    else
      multiply_carefully<vectors>(rows, from, step, count, total);
    for (int c = 0; c < vectors; ++c) total[c].normalize();
  }
}

// Four vectors hide the latency of a multiplication.
inline constexpr int kProductVectors = 4;

// How a row is multiplied: as a matrix of vectors of lanes of type A, whose product is that of
// `wides` vectors of float64. Of float32 a block is kNarrowRows factors a lane, in two chains; the
// products of some blocks are multiplied before powers are taken out.
template <class T, bool narrow> struct RowLanes {
  static constexpr int L = kLanes<double>;
  using A = std::conditional_t<narrow, float, double>;
  static constexpr int chains = narrow ? 2 * kProductVectors : kProductVectors;
  static constexpr int width = chains * kLanes<A>;
  static constexpr int wides = narrow ? kLanes<float> / L : kProductVectors;
  static constexpr int64_t rows = narrow ? kNarrowRows / 2 : kRowsBetween;
  static constexpr int64_t most_rows = narrow ? 8 * rows : rows;

  // A block of float32: the product of its lanes goes into `value`.
  static TW_INLINE void multiply_block(int64_t n, const T* x, Wide (&value)[wides]) {
    constexpr int F = kLanes<float>;
    Vec<float> lanes[chains];
#pragma GCC unroll 8
    for (int c = 0; c < chains; ++c) lanes[c] = Vec<float>::load(x + c * F);
    for (int64_t i = 1; i < n; ++i)
#pragma GCC unroll 8
      for (int c = 0; c < chains; ++c)
        lanes[c] = lanes[c] * Vec<float>::load(x + i * width + c * F);
    Wide low = 1.0, high = 1.0;  // four factors of float32 fit float64, whatever they are
#pragma GCC unroll 4
    for (int c = 0; c < kProductVectors; ++c) {
      const Vec<float> both = lanes[c] * lanes[c + kProductVectors];
      low = low * widened_half<false>(both);
      if constexpr (wides == 2) high = high * widened_half<true>(both);
    }
    value[0] = value[0] * low;
    if constexpr (wides == 2) value[1] = value[1] * high;
  }
  // Of at most most_rows rows.
  static TW_INLINE void multiply_quickly(int64_t n, const T* x, Wide (&value)[wides]) {
    if constexpr (narrow) {
      for (int64_t i = 0; i < n; i += rows)
        multiply_block(n - i < rows ? n - i : rows, x + i * width, value);
    } else {
      TW_ISA_NAME::multiply_quickly<kProductVectors>(n, x, width, L, value);
    }
  }
  // Of a row that is looked at once, lane by lane.
  static constexpr int64_t most_elements = most_rows * width;
  static TW_INLINE Wide product_of_few(int64_t n, const T* x) {
    Wide value[wides], rest[1] = {Wide(1.0)};
    for (Wide& each : value) each = Wide(1.0);
    const int64_t done = n / width * width, vectors = (n - done) / L, at = done + vectors * L;
    multiply_quickly(n / width, x, value);
    TW_ISA_NAME::multiply_quickly<1>(vectors, x + done, L, L, rest);
    if (at < n) TW_ISA_NAME::multiply_quickly<1>(1, x + at, 0, (int)(n - at), rest);
    for (const Wide& each : value) rest[0] = rest[0] * each;
    return rest[0];
  }
  static void multiply(int64_t n, const T* x, int64_t at_once, Scaled (&total)[wides]) {
    for (int64_t i = 0; i < n; i += at_once) {
      const int64_t some = n - i < at_once ? n - i : at_once;
      Wide value[wides];
      for (int c = 0; c < wides; ++c) value[c] = total[c].value;
      const T* from = x + i * width;
      const RangeWatch range(from);
      multiply_quickly(some, from, value);
      range.await(value);
      if (!range.left()) {
        for (int c = 0; c < wides; ++c) total[c].value = value[c];
      } else if (some > rows) {
        multiply(some, from, rows, total);
      } else {
        constexpr int each = wides * L;
        multiply_carefully<wides>(some * width / each, from, each, L, total);
      }
      for (int c = 0; c < wides; ++c) total[c].normalize();
    }
  }
};
TW_INLINE double product_of_lanes(Wide x) {
  return fold_lanes<double, kLanes<double>>(x.v,
                                            [](auto a, auto b) TW_LAMBDA_INLINE { return a * b; });
}

// Of all lanes, which are normalized: normalized, in the first lane.
template <int wides> TW_INLINE Scaled product_of_all(const Scaled (&total)[wides]) {
  Scaled all = total[0];
  for (int c = 1; c < wides; ++c) all.multiply(total[c]);
  all.normalize();
  Scaled one;
  one.value = product_of_lanes(all.value);
  one.power = sum_of_lanes(all.power);
  one.normalize();
  return one;
}
// Of one row, normalized, in the first lane.
template <bool narrow, class T> Scaled product_of_row(int64_t n, const T* x) {
  using Row = RowLanes<T, narrow>;
  constexpr int L = kLanes<double>;
  Scaled total[Row::wides], rest[1];
  Row::multiply(n / Row::width, x, Row::most_rows, total);
  const int64_t done = n / Row::width * Row::width, vectors = (n - done) / L;
  multiply_rows<1>(vectors, x + done, L, L, rest);
  const int64_t at = done + vectors * L;
  if (at < n) multiply_rows<1>(1, x + at, 0, (int)(n - at), rest);
  total[0].multiply(rest[0]);
  return product_of_all(total);
}
// Times the product of lanes that are all near 1: that it fits float64 needs no powers, and no
// underflow, which can cost a hundred cycles. False: it may not.
TW_INLINE bool multiply_near_one(Wide lanes, double& product) {
  constexpr int64_t bound = 960 / kLanes<double>;
  const Power power = exponent_of(lanes) - Power((int64_t)(1023 - bound));
  const auto far = (power.v < Power((int64_t)0).v) | (power.v > Power(2 * bound).v);
  const auto either = [](auto a, auto b) TW_LAMBDA_INLINE { return a | b; };
  if (fold_lanes<int64_t, kLanes<int64_t>>(Power(far).v, either) != 0) return false;
  product *= product_of_lanes(lanes);
  return true;
}
TW_INLINE double times(double a, Scaled row) {
  Scaled product{Wide(a)};
  product.normalize();
  product.multiply(row);
  return unscaled(product)[0];
}

// Rows of so few elements that powers are taken out at their ends alone; shorter ones than
// kShortRow are multiplied one factor after the other. Some rows are looked at together: a look
// waits for all that was begun.
inline constexpr int64_t kShortRow = 20, kRowsAtOneLook = 32;
// m rows, at most kRowsAtOneLook, of at most RowLanes::most_elements. False: one left the range.
template <bool narrow, class T>
bool multiply_short_rows(int64_t m, int64_t n, const char* x, int64_t row_bytes, double* acc) {
  Wide products[kRowsAtOneLook];
  const RangeWatch range(x);
  for (int64_t i = 0; i < m; ++i) {
    products[i] = RowLanes<T, narrow>::product_of_few(n, (const T*)(x + i * row_bytes));
    range.await(products[i].v);
  }
  if (range.left()) return false;
  for (int64_t i = 0; i < m; ++i)
    if (!multiply_near_one(products[i], acc[i])) {
      Scaled row[1] = {{products[i]}};
      row[0].normalize();
      acc[i] = times(acc[i], product_of_all(row));
    }
  return true;
}

template <class T>
void prod_rows(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  constexpr bool narrow = std::is_same_v<T, float>;
  auto* a = (double*)acc;
  const auto* row = (const char*)x;
  for (int64_t i = 0, some; i < m; i += some, row += some * row_bytes, a += some) {
    some = m - i < kRowsAtOneLook ? m - i : kRowsAtOneLook;
    if (n >= kShortRow && n <= RowLanes<T, narrow>::most_elements &&
        multiply_short_rows<narrow, T>(some, n, row, row_bytes, a))
      continue;
    for (int64_t k = 0; k < some; ++k) {
      const auto* factors = (const T*)(row + k * row_bytes);
      // In a register: factors may be where a is, for all the compiler knows.
      double product = a[k];
      if (n >= kShortRow)
        product = times(product, product_of_row<narrow>(n, factors));
      else
        for (int64_t j = 0; j < n; ++j) product *= (double)factors[j];
      a[k] = product;
    }
  }
}

// Rows that are multiplied in one visit to the accumulators: as many lines as a set of the
// first-level cache has, where rows are a power of two apart.
inline constexpr int kFactorRows = 8;
template <int m, class T>
TW_INLINE Wide product_down(const T* x, int64_t step, int count, Wide product) {
#pragma GCC unroll 16
  for (int i = 0; i < m; ++i) product = product * load_wider<double>(x + i * step, count);
  return product;
}
template <class T, int m>
TW_INLINE void multiply_columns(int64_t n, const T* x, int64_t step, double* acc) {
  each_vector<double>(n, [&](int64_t at, int count) TW_LAMBDA_INLINE {
    store_some(acc + at, product_down<m>(x + at, step, count, load_some(acc + at, count)), count);
  });
}
// Products of float32 where they keep their range, of float64 else: what a column gets does not
// depend on those beside it.
TW_INLINE double narrow_product(const float* x, int64_t step) {
  const RangeWatch range(x);
  float narrow = x[0];
  for (int i = 1; i < kFactorRows; ++i) narrow *= x[i * step];
  range.await(narrow);
  if (!range.left()) return narrow;
  double wide = x[0];
  for (int i = 1; i < kFactorRows; ++i) wide *= x[i * step];
  return wide;
}
// Groups of kFactorRows rows of so many columns are looked at together; their products stay in the
// first-level cache.
inline constexpr int kGroupsAtOneLook = 4, kNarrowColumns = 1024;
template <int groups>
TW_INLINE void multiply_narrow_columns(int64_t n, const float* x, int64_t step, double* acc) {
  float products[groups][kNarrowColumns];
  const RangeWatch range(x);
  for (int g = 0; g < groups; ++g) {
    const float* const rows = x + g * kFactorRows * step;
    each_vector<float>(n, [&](int64_t at, int count) TW_LAMBDA_INLINE {
      Vec<float> product = factor<float>(rows + at, count);
#pragma GCC unroll 8
      for (int i = 1; i < kFactorRows; ++i)
        product = product * factor<float>(rows + i * step + at, count);
      store_some(products[g] + at, product, count);
    });
  }
  range.await(products);
  if (range.left()) {
    for (int g = 0; g < groups; ++g)
      for (int64_t j = 0; j < n; ++j)
        acc[j] *= narrow_product(x + g * kFactorRows * step + j, step);
    return;
  }
  each_vector<double>(n, [&](int64_t at, int count) TW_LAMBDA_INLINE {
    Wide product = load_some(acc + at, count);
#pragma GCC unroll 4
    for (int g = 0; g < groups; ++g)
      product = product * load_wider<double>(products[g] + at, count);
    store_some(acc + at, product, count);
  });
}
// As many rows as fit whole groups, which m and row are then less.
template <int groups, class T>
TW_INLINE void multiply_groups(int64_t& m, int64_t n, const T*& row, int64_t step, double* acc) {
  constexpr int rows = groups * kFactorRows;
  for (; m >= rows; m -= rows, row += rows * step)
    if constexpr (std::is_same_v<T, float>)
      for (int64_t at = 0; at < n; at += kNarrowColumns)
        multiply_narrow_columns<groups>(n - at < kNarrowColumns ? n - at : kNarrowColumns, row + at,
                                        step, acc + at);
    else
      multiply_columns<T, rows>(n, row, step, acc);
}
template <class T>
void prod_columns(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  auto* a = (double*)acc;
  const auto* row = (const T*)x;
  const int64_t step = row_bytes / (int64_t)sizeof(T);
  if constexpr (std::is_same_v<T, float>) multiply_groups<kGroupsAtOneLook>(m, n, row, step, a);
  multiply_groups<1>(m, n, row, step, a);
  const auto by = [&](auto together) TW_LAMBDA_INLINE {
    constexpr int rows = together;
    for (; m >= rows; m -= rows, row += rows * step) multiply_columns<T, rows>(n, row, step, a);
  };
  by(std::integral_constant<int, 4>());
  by(std::integral_constant<int, 2>());
  by(std::integral_constant<int, 1>());
}

// ---- gradients: g times the product of all other factors ----

// Where there are zeros, infinities or NaN, one factor after the other: what is left without a
// factor follows from how many of each there are, and from the product of the rest.
template <class T> struct Exceptions {
  int64_t zeros = 0, infinities = 0, nans = 0;
  bool negative = false;
  Scaled rest;  // of the magnitudes of the others

  TW_INLINE static bool sign_of(double x) { return __builtin_signbit(x); }
  TW_INLINE void count(double x) {
    negative ^= sign_of(x);
    const double size = __builtin_fabs(x);
    zeros += size == 0;
    infinities += size == __builtin_inf();
    nans += x != x;
    if (!(size > 0 && size < __builtin_inf())) return;
    Scaled each{Wide(size)};
    each.normalize();
    rest.multiply(each);
    rest.normalize();
  }
  TW_INLINE double others(double x) const {
    const double size = __builtin_fabs(x);
    const int64_t none = zeros - (size == 0), all = infinities - (size == __builtin_inf());
    if (nans - (x != x) > 0 || (none > 0 && all > 0)) return __builtin_nan("");
    double result = 0;
    if (all > 0) {
      result = __builtin_inf();
    } else if (none == 0) {
      Scaled left = rest;
      if (size > 0 && size < __builtin_inf()) {
        Scaled each{Wide(size)};
        each.normalize();
        left.value = left.value / each.value;
        left.power -= each.power;
      }
      result = unscaled(left)[0];
    }
    return negative != sign_of(x) ? -result : result;
  }
};
template <class T> void exceptional_gradient(int64_t n, const T* x, int64_t step, double g, T* dx) {
  Exceptions<T> all;
  for (int64_t i = 0; i < n; ++i) all.count((double)x[i * step]);
  for (int64_t i = 0; i < n; ++i) dx[i * step] = (T)(g * all.others((double)x[i * step]));
}

// The product without the factor x of type T, which is neither 0 nor infinite.
template <class T> TW_INLINE Wide without(Scaled product, Wide x) {
  if constexpr (std::is_same_v<T, float>) {  // normal numbers of float64, as is the quotient
    const Power first = within(product.power, 800), second = product.power - first;
    // What is 0 in the end comes by a factor of 0: underflow can cost a hundred cycles.
    const Wide scale = two_to_power(within(second, 1000));
    const Wide rest = (second < Power((int64_t)-1000)).v ? Wide(0.0).v : scale.v;
    return product.value / x * two_to_power(first) * rest;
  } else {
    Scaled factor{x};
    factor.normalize();
    product.value = product.value / factor.value;
    product.power -= factor.power;
    return unscaled(product);
  }
}

// m rows one after the other, each with a gradient of its own.
template <class T>
void prod_rows_backward(int64_t m, int64_t n, const void* x, const void*, const void* g, void* dx) {
  for (int64_t i = 0; i < m; ++i) {
    const T* row = (const T*)x + i * n;
    T* to = (T*)dx + i * n;
    const double slope = (double)((const T*)g)[i];
    const Scaled product = product_of_row<false>(n, row);
    const double whole = unscaled(product)[0];
    if (!is_normal(product.value[0])) {
      exceptional_gradient(n, row, 1, slope, to);
    } else if (is_normal(whole)) {
      each_vector<double>(n, [&](int64_t at, int count) TW_LAMBDA_INLINE {
        const Wide factors = load_wider<double>(row + at, count);
        store_narrower(to + at, Wide(slope) * (Wide(whole) / factors), count);
      });
    } else {
      each_vector<double>(n, [&](int64_t at, int count) TW_LAMBDA_INLINE {
        const Wide others = without<T>(product, load_wider<double>(row + at, count));
        store_narrower(to + at, Wide(slope) * others, count);
      });
    }
  }
}

// A strip of columns, row by row, as in softmax: products and powers of all stay in the caches.
struct ProductStrip {
  static constexpr int L = kLanes<double>;
  static constexpr int most = kStripBackward / L + kProductVectors;
  Scaled product[most];
  Wide whole[most], slope[most];
};
// Calls f(at, vectors, count) for columns of four vectors, then of one, of which `count` count.
template <class F> TW_INLINE void each_of_strip(int64_t m, F f) {
  constexpr int L = kLanes<double>, width = kProductVectors * L;
  int64_t at = 0;
  for (; at + width <= m; at += width) f(at, std::integral_constant<int, kProductVectors>(), L);
  for (; at < m; at += L) f(at, std::integral_constant<int, 1>(), m - at < L ? (int)(m - at) : L);
}
// m columns of n factors, `step` apart.
template <class T> void prod_columns_backward(int64_t m, int64_t n, int64_t step, const void* xs,
                                              const void*, const void* gs, void* dxs) {
  constexpr int L = kLanes<double>;
  // Rows between two visits to the products: so many lines and pages are read side by side.
  constexpr int64_t rows = 32;
  const auto *x = (const T*)xs, *g = (const T*)gs;
  auto* dx = (T*)dxs;
  ProductStrip strip;
  for (int64_t i = 0; i < n; i += rows)
    each_of_strip(m, [&](int64_t at, auto vectors, int count) TW_LAMBDA_INLINE {
      auto& product = *(Scaled(*)[vectors.value])(strip.product + at / L);
      multiply_rows<vectors.value>(n - i < rows ? n - i : rows, x + i * step + at, step, count,
                                   product);
    });
  bool in_range = true;
  each_vector<double>(m, [&](int64_t at, int count) TW_LAMBDA_INLINE {
    const Wide whole = unscaled(strip.product[at / L]);
    for (int j = 0; j < count; ++j) in_range &= is_normal(whole[j]);
    strip.whole[at / L] = whole;
    strip.slope[at / L] = load_wider<double>(g + at, count);
  });
  for (int64_t i = 0; i < n; ++i)
    each_vector<double>(m, [&](int64_t at, int count) TW_LAMBDA_INLINE {
      const Wide factors = factor<double>(x + i * step + at, count);
      const Wide others =
          in_range ? strip.whole[at / L] / factors : without<T>(strip.product[at / L], factors);
      store_narrower(dx + i * step + at, strip.slope[at / L] * others, count);
    });
  if (in_range) return;
  for (int64_t j = 0; j < m; ++j)
    if (!is_normal(strip.product[j / L].value[j % L]))
      exceptional_gradient(n, x + j, step, strip.slope[j / L][j % L], dx + j);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
