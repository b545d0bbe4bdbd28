// The loop that every pointwise row is compiled into, and the rows as types.
#pragma once
#include <bit>
#include <utility>

#include "core/cpu/simd/mask_bytes.h"
#include "core/cpu/math/functions.h"
#include "core/cpu/pointwise/pointwise.h"
#include "core/problems/pointwise_graphs.h"

namespace tw::TW_ISA_NAME {
namespace {

struct None {};
inline constexpr None none;

template <class T> TW_INLINE void store_lanes(void* y, std::int64_t at, Vec<T> v, int count) {
  if (count == kLanes<T>) return v.store(static_cast<T*>(y) + at);
  v.store(static_cast<T*>(y) + at, count);
}
template <class T> TW_INLINE void store_lanes(void* y, std::int64_t at, Mask<T> m, int count) {
  store_mask(static_cast<std::uint8_t*>(y) + at, m, count);
}

template <bool beyond_l1, class T> TW_INLINE Vec<T> load_lanes(const T* p) {
#ifdef TW_HAS_FAR_LOADS
  if constexpr (beyond_l1 && sizeof(Vec<T>) == kVectorBytes)
    return Vec<T>(load_halves<typename Vec<T>::Raw>(p));
#endif
  return Vec<T>::load(p);
}

// Stores, or writes around the caches. `nontemporal` is asked for each vector: the compiler would
// otherwise make a loop for each answer, with a copy of the formula, and memory hides the question.
template <class T> TW_INLINE void write_lanes(void* y, std::int64_t at, Vec<T> v, int count,
                                              [[maybe_unused]] bool nontemporal) {
#ifdef TW_HAS_STREAMING
  if constexpr (sizeof(Vec<T>) == kVectorBytes) {
    if (!__builtin_constant_p(nontemporal)) asm("" : "+r"(nontemporal));
    if (nontemporal && count == kLanes<T>) return v.stream(static_cast<T*>(y) + at);
  }
#endif
  store_lanes<T>(y, at, v, count);
}
template <class T>
TW_INLINE void write_lanes(void* y, std::int64_t at, Mask<T> m, int count, bool) {
  store_lanes<T>(y, at, m, count);
}

// Whether loops over memory beyond L1 differ from those over L1: by loads of halves, or because
// they ask how to write.
template <class T, class Result> constexpr bool has_beyond_l1_loop() {
  [[maybe_unused]] constexpr bool whole = sizeof(Vec<T>) == kVectorBytes;
#if defined TW_HAS_FAR_LOADS
  return whole;
#elif defined TW_HAS_STREAMING
  return whole && std::is_same_v<Result, Vec<T>>;
#else
  return false;
#endif
}

// How long a function takes: less than memory does; more; or so that two vectors at once take less
// than one after the other.
enum class Work { light, heavy, by_two };

// Applies f(const Vec<T> (&)[N]) to each vector of N inputs; returns how many elements are done.
// Loops over the inputs are unrolled by name: left to the compiler that comes too late for their
// pointers to live in registers.
template <bool beyond_l1, Work work, class T, int N, class F>
TW_INLINE std::int64_t for_whole_vectors(std::int64_t n, void* y, const T* (&p)[N],
                                         const std::int64_t (&advance)[N], bool nontemporal, F f) {
  constexpr int L = kLanes<T>;
  Vec<T> v[N];
  std::int64_t at = 0;
  if constexpr (kPacksMasks<T> && std::is_same_v<decltype(f(v)), Mask<T>>) {
    constexpr int M = kMasksAtOnce<T>;
    for (; at + M * L <= n; at += M * L) {
      Mask<T> masks[M];
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
        for (int k = 0; k < N; ++k) {
          v[k] = load_lanes<beyond_l1>(p[k]);
          p[k] += advance[k];
        }
        masks[m] = f(v);
      }
      store_mask(static_cast<std::uint8_t*>(y) + at, masks);
    }
  }
  // Two at once, so that the compiler interleaves two chains of dependent instructions.
  constexpr bool interleaves = sizeof(T) == 4 && std::is_floating_point_v<T>;
  if constexpr (N == 1 && (interleaves || work == Work::by_two)) {
    for (; at + 2 * L <= n; at += 2 * L) {
      Vec<T> w[1];
      v[0] = load_lanes<beyond_l1>(p[0]);
      w[0] = load_lanes<beyond_l1>(p[0] + advance[0]);
      p[0] += 2 * advance[0];
      const auto first = f(v), second = f(w);
      write_lanes<T>(y, at, first, L, nontemporal);
      write_lanes<T>(y, at + L, second, L, nontemporal);
    }
  }
  if constexpr (work != Work::light) return at;
  for (; at + L <= n; at += L) {
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) {
      v[k] = load_lanes<beyond_l1>(p[k]);
      p[k] += advance[k];
    }
    write_lanes<T>(y, at, f(v), L, nontemporal);
  }
  return at;
}

#ifndef TW_HAS_MASKED_ACCESS
// A longer formula f over `together` vectors at once, in one copy of its code, which is most of
// what these sets' objects hold: what is left at the end goes the same way through memory of its
// own.
template <int together, class T, int N, class F>
TW_INLINE void for_groups_of_vectors(std::int64_t n, T* y, const T* (&p)[N],
                                     const std::int64_t (&advance)[N], F f) {
  constexpr int L = kLanes<T>, group = together * L;
  T rest[N][group], results[group];
  T* out = y;
  std::int64_t groups = n / group;
  const auto left = static_cast<int>(n % group);
  for (bool last = false;; last = true) {
    asm("" : "+r"(groups));  // else what is left gets a copy of the formula
    for (; groups > 0; --groups) {
      Vec<T> v[together][N], of[together];
      for (int u = 0; u < together; ++u) {
#pragma GCC unroll 8
        for (int k = 0; k < N; ++k) {
          v[u][k] = Vec<T>::load(p[k]);
          p[k] += advance[k];
        }
      }
      for (int u = 0; u < together; ++u) of[u] = f(v[u]);
      for (int u = 0; u < together; ++u) of[u].store(out + u * L);
      out += group;
    }
    if (last || left == 0) break;
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) {
      if (advance[k] == 0) continue;
      for (int i = 0; i < group; ++i) rest[k][i] = p[k][i < left ? i : 0];
      p[k] = rest[k];
    }
    out = results;
    groups = 1;
  }
  __builtin_memcpy(y + n - left, results, static_cast<std::size_t>(left) * sizeof(T));
}
#endif

template <class T, int N, Work work = Work::light, class F>
TW_INLINE void for_each_vector(std::int64_t n, void* y, const void* const* inputs, const int* step,
                               Traffic traffic, F f) {
  constexpr int L = kLanes<T>;
  const T* p[N];
  std::int64_t advance[N];
#pragma GCC unroll 8
  for (int k = 0; k < N; ++k) {
    p[k] = static_cast<const T*>(inputs[k]);
    advance[k] = step[k] * L;
  }
#ifndef TW_HAS_MASKED_ACCESS
  // Two of float, so that the compiler interleaves two chains of dependent instructions.
  if constexpr (work == Work::heavy)
    return for_groups_of_vectors<sizeof(T) == 4 ? 2 : 1>(n, static_cast<T*>(y), p, advance, f);
#endif
  const bool nontemporal = traffic == Traffic::nontemporal;
  std::int64_t at = -1;
  if constexpr (work == Work::light && has_beyond_l1_loop<T, decltype(f({Vec<T>()}))>())
    if (traffic != Traffic::in_l1)
      at = for_whole_vectors<true, work>(n, y, p, advance, nontemporal, f);
  if (at < 0)
    at = for_whole_vectors<false, work>(n, y, p, advance, nontemporal && work != Work::light, f);
  // What is left: less than a vector, or all vectors of a longer formula, of which this is a copy.
  Vec<T> v[N];
  for (; at < n; at += L) {
    const int count = n - at < L ? static_cast<int>(n - at) : L;
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) {
      v[k] = work == Work::light || count < L ? Vec<T>::load(p[k], count) : Vec<T>::load(p[k]);
      p[k] += advance[k];
    }
    write_lanes<T>(y, at, f(v), count, nontemporal && work != Work::light);
    if constexpr (work == Work::light) break;
  }
#ifdef TW_HAS_STREAMING
  if (nontemporal) finish_streams();
#endif
}

// A formula need not read every argument.
#define TW_UNREAD [[maybe_unused]]

// Each row: its types, the formula, and its gradients.
#define TW_UNARY(name, types, result, formula, gradient, help)                      \
  struct name##_row {                                                               \
    static constexpr int kinds = kind::types;                                       \
    static constexpr PointwiseOp op = PointwiseOp::name;                            \
    template <class V> static TW_INLINE auto value(const V (&in)[1]) {              \
      TW_UNREAD const V x = in[0];                                                  \
      return formula;                                                               \
    }                                                                               \
    template <int input, class V>                                                   \
    static TW_INLINE auto grad(TW_UNREAD V g, TW_UNREAD V x, V, V, TW_UNREAD V y) { \
      return gradient;                                                              \
    }                                                                               \
  };
#define TW_BINARY(name, types, result, formula, gradient_a, gradient_b, help)                   \
  struct name##_row {                                                                           \
    static constexpr int kinds = kind::types;                                                   \
    static constexpr PointwiseOp op = PointwiseOp::name;                                        \
    template <class V> static TW_INLINE auto value(const V (&in)[2]) {                          \
      const V a = in[0], b = in[1];                                                             \
      return formula;                                                                           \
    }                                                                                           \
    template <int input, class V>                                                               \
    static TW_INLINE auto grad(TW_UNREAD V g, TW_UNREAD V a, TW_UNREAD V b, V, TW_UNREAD V y) { \
      if constexpr (input == 0)                                                                 \
        return gradient_a;                                                                      \
      else                                                                                      \
        return gradient_b;                                                                      \
    }                                                                                           \
  };
#define TW_TERNARY(name, types, result, formula, gradient_a, gradient_b, gradient_c, help) \
  struct name##_row {                                                                      \
    static constexpr int kinds = kind::types;                                              \
    static constexpr PointwiseOp op = PointwiseOp::name;                                   \
    template <class V> static TW_INLINE auto value(const V (&in)[3]) {                     \
      const V a = in[0], b = in[1], c = in[2];                                             \
      return formula;                                                                      \
    }                                                                                      \
    template <int input, class V> static TW_INLINE auto grad(TW_UNREAD V g, TW_UNREAD V a, \
                                                             TW_UNREAD V b, TW_UNREAD V c, \
                                                             TW_UNREAD V y) {              \
      if constexpr (input == 0)                                                            \
        return gradient_a;                                                                 \
      else if constexpr (input == 1)                                                       \
        return gradient_b;                                                                 \
      else                                                                                 \
        return gradient_c;                                                                 \
    }                                                                                      \
  };
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY

template <class T> constexpr int kind_of() {
  if constexpr (is_complex_number<T>)
    return kind::c;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return kind::i | kind::b;
  else if constexpr (std::is_integral_v<T>)
    return kind::i;
  else
    return kind::f;
}

// Functions that are more than an operation or two: those whose results are not the nearest number.
template <class Row> inline constexpr bool kElementary = false;
#define TW_ACCURACY(row, single, wide) \
  template <> inline constexpr bool kElementary<row##_row> = single > 0.5;
#include "core/problems/accuracy.inc"
#undef TW_ACCURACY
template <class Row, class... Rows> inline constexpr bool kIsAmong =
    (std::is_same_v<Row, Rows> || ...);
// Those of float64 whose tables, of 30 lines and more, do not fit in the registers: loads of them
// are most of their time. And some that take a twentieth to an eighth less two at once.
template <class Row> inline constexpr bool kByTwo =
    kIsAmong<Row, tanh_row, erf_row, erfc_row, erfinv_row, exp_row, exp2_row, asin_row, acos_row,
             tan_row>;
template <class Row, class T> constexpr Work work_of() {
  if (!std::is_floating_point_v<T> || !kElementary<Row>) return Work::light;
#ifdef TW_HAS_LANE_TABLES
  if (sizeof(T) == 8 && kByTwo<Row>) return Work::by_two;
#endif
  return Work::heavy;
}

template <class Row, class T, int N> void value_kernel(std::int64_t n, void* y,
                                                       const void* const* inputs, const int* step,
                                                       Traffic traffic) {
  for_each_vector<T, N, work_of<Row, T>()>(n, y, inputs, step, traffic,
                                           [](const Vec<T>(&in)[N])
                                               TW_LAMBDA_INLINE { return Row::value(in); });
}

// The row clip. Two numbers stay in registers; where the lower is NaN, the upper is made so, too,
// and x alone is asked for NaN.
template <class T> void clip_kernel(std::int64_t n, void* y, const void* const* inputs,
                                    const int* step, Traffic traffic) {
  if (step[1] || step[2]) return value_kernel<clip_row, T, 3>(n, y, inputs, step, traffic);
  const Vec<T> low = Vec<T>::load(static_cast<const T*>(inputs[1]));
  const Vec<T> upper = Vec<T>::load(static_cast<const T*>(inputs[2]));
  const Vec<T> high = where(low != low, low, upper);
  for_each_vector<T, 1>(n, y, inputs, step, traffic, [=](const Vec<T>(&in)[1]) TW_LAMBDA_INLINE {
    const Vec<T> x = in[0];
    if constexpr (Integer<T>)
      return minimum(maximum(x, low), high);
    else
      return where(x != x, x, at_most(high, at_least(low, x)));
  });
}

#ifdef TW_HAS_MASKED_ACCESS
// The row divide of float64, by one number.
inline void divide_kernel(std::int64_t n, void* y, const void* const* inputs, const int* step,
                          Traffic traffic) {
  const auto whole = value_kernel<divide_row, double, 2>;
  if (step[1]) return whole(n, y, inputs, step, traffic);  // there may be no element
  const Vec<double> c = *static_cast<const double*>(inputs[1]);
  const double size = __builtin_fabs(c.v[0]);
  if (!(size >= 0x1p-500 && size <= 0x1p500)) return whole(n, y, inputs, step, traffic);
  const Vec<double> z = 1 / c;
  for_each_vector<double, 1>(n, y, inputs, step, traffic,
                             [=](const Vec<double>(&in)[1])
                                 TW_LAMBDA_INLINE { return quotient_by(in[0], c, z); });
}
#endif

// The row sqrt of real numbers.
struct LoneSqrt {
  template <class V> static TW_INLINE V value(const V (&in)[1]) {
    return lone_sqrt(in[0], [](V x) TW_LAMBDA_INLINE { return sqrt(x); });
  }
};

template <class Row, class T, int N> constexpr PointwiseFn value_function() {
  if constexpr ((Row::kinds & kind_of<T>()) == 0) return nullptr;
#ifdef TW_HAS_MASKED_ACCESS
  else if constexpr (std::is_same_v<Row, divide_row> && std::is_same_v<T, double>)
    return divide_kernel;
#endif
  else if constexpr (std::is_same_v<Row, sqrt_row> && std::is_floating_point_v<T>)
    return value_kernel<LoneSqrt, T, 1>;
  else if constexpr (std::is_same_v<Row, clip_row>)
    return clip_kernel<T>;
  else
    return value_kernel<Row, T, N>;
}

template <class Row> using GraphsOf = formula::PointwiseGraphs<Row::op>;

// The formula of the gradient by an input, of g and then those of a, b, c and y that it reads.
template <class Row, int input> inline constexpr std::uint32_t kGradientReads =
    formula::inputs_of(GraphsOf<Row>::gradient[input]) & ~(1u << input_g);
template <class Row, int input> inline constexpr int kGradientInputs =
    1 + std::popcount(kGradientReads<Row, input>);
template <class Row, int input, class T, int N> TW_INLINE Vec<T> slope(const Vec<T> (&in)[N]) {
  constexpr std::uint32_t reads = kGradientReads<Row, input>;
  // What is not read may be anything.
  constexpr auto at = [](PointwiseInput which) {
    return reads >> which & 1 ? 1 + std::popcount(reads & ((1u << which) - 1)) : 0;
  };
  return Vec<T>(Row::template grad<input>(in[0], in[at(input_a)], in[at(input_b)], in[at(input_c)],
                                          in[at(input_y)]));
}

template <class Row, class T, int input> void gradient_kernel(std::int64_t n, void* dx,
                                                              const void* const* inputs,
                                                              const int* step, Traffic traffic) {
  constexpr int N = kGradientInputs<Row, input>;
  // What comes from the result alone is an operation or two.
  constexpr bool reads_a = kGradientReads<Row, input> >> input_a & 1;
  constexpr Work work = reads_a && work_of<Row, T>() != Work::light ? Work::heavy : Work::light;
  for_each_vector<T, N, work>(n, dx, inputs, step, traffic,
                              [](const Vec<T>(&in)[N])
                                  TW_LAMBDA_INLINE { return slope<Row, input>(in); });
}

template <class Row, class T, int input> constexpr PointwiseFn gradient_function() {
  if constexpr ((kind::f & Row::kinds) != 0 &&
                form_of(GraphsOf<Row>::gradient[input]) == GradientForm::formula)
    return gradient_kernel<Row, T, input>;
  else
    return nullptr;
}

// The row xlogy and its gradient by a, with l = log(b).
struct XlogyByLog {
  template <class V> static TW_INLINE V value(const V (&in)[3]) {
    const V a = in[0], b = in[1], l = in[2];
    return where((a == 0) & (b == b), 0, a * l);
  }
};
struct XlogySlopeByLog {
  template <class V> static TW_INLINE V value(const V (&in)[4]) {
    const V g = in[0], a = in[1], b = in[2], l = in[3];
    return g * where((a == 0) & (b <= 0), 0, l);
  }
};

// The row pow by a simple exponent, and its gradient by a for b that is one above it.
template <int which> inline constexpr int kHalves = (int)(2 * kSimplePowers[which]);
template <int which> struct SimplePower {
  template <class V> static TW_INLINE V value(const V (&in)[1]) {
    return simple_power<kHalves<which>>(in[0]);
  }
};
template <int which> struct SimplePowerSlope {
  template <class V> static TW_INLINE V value(const V (&in)[3]) {
    const V g = in[0], a = in[1], b = in[2];
    return g * (b * simple_power<kHalves<which>>(a));
  }
};
template <class T, int... which>
constexpr PointwiseTable with_simple_powers(PointwiseTable table,
                                            std::integer_sequence<int, which...>) {
  ((table.simple_power[which] = value_kernel<SimplePower<which>, T, 1>), ...);
  ((table.simple_power_slope[which] = value_kernel<SimplePowerSlope<which>, T, 3>), ...);
  return table;
}

template <class T> constexpr PointwiseTable make_pointwise_table() {
  const PointwiseTable table = {{
#define TW_UNARY(name, ...) value_function<name##_row, T, 1>(),
#define TW_BINARY(name, ...) value_function<name##_row, T, 2>(),
#define TW_TERNARY(name, ...) value_function<name##_row, T, 3>(),
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
                                },
                                {
#define TW_UNARY(name, ...) {gradient_function<name##_row, T, 0>()},
#define TW_BINARY(name, ...) \
  {gradient_function<name##_row, T, 0>(), gradient_function<name##_row, T, 1>()},
#define TW_TERNARY(name, ...)                                                    \
  {gradient_function<name##_row, T, 0>(), gradient_function<name##_row, T, 1>(), \
   gradient_function<name##_row, T, 2>()},
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
                                },
                                value_kernel<log_row, T, 1>,
                                value_kernel<XlogyByLog, T, 3>,
                                value_kernel<XlogySlopeByLog, T, 4>,
                                {},
                                {}};
  return with_simple_powers<T>(table, std::make_integer_sequence<int, kSimplePowerCount>());
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
