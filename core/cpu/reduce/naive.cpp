// The definition of reductions: for each result, one loop over its terms. Floating sums and
// products are made in a wider type, those of whole numbers in 64 bits.
#include <cmath>
#include <type_traits>

#include "core/cpu/copy/plain.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/reduce/reduce.h"

namespace tw {
namespace {

using std::int64_t;

// What terms of an element type are joined in.
template <class T> struct WideOf {
  using type =
      std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>,
                         std::conditional_t<std::is_unsigned_v<T>, std::uint64_t, int64_t>, double>;
};
template <> struct WideOf<double> {
  using type = long double;
};
template <> struct WideOf<bool> {
  using type = std::uint64_t;
};
template <class Part> struct WideOf<Complex<Part>> {
  using type = Complex<double>;
};
template <class T> typename WideOf<T>::type wide(T x) {
  using Wide = typename WideOf<T>::type;
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<Wide>(x);
  } else if constexpr (is_complex_number<T>) {
    return {x.re, x.im};
  } else {
    double y;
    convert_plainly(DTypeOf<T>::value, &x, DType::float64, &y);
    return y;
  }
}

Complex<double> operator+(Complex<double> a, Complex<double> b) {
  return {a.re + b.re, a.im + b.im};
}
Complex<double> operator*(Complex<double> a, Complex<double> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class Wide> bool is_zero(Wide x) {
  if constexpr (std::is_arithmetic_v<Wide>)
    return x == 0;
  else
    return x.re == 0 && x.im == 0;
}

// The square of what lies between an element and the centre.
template <class Wide> Wide apart(Wide x, double centre) {
  if constexpr (std::is_floating_point_v<Wide>)
    return (x - centre) * (x - centre);
  else
    return x;
}
// What of an element is combined: the rows of combinations.inc, whose terms are written in these.
template <class Wide> Wide where(bool condition, Wide a, Wide b) { return condition ? a : b; }
template <class Wide> Wide where(bool condition, Wide a, int b) { return condition ? a : Wide(b); }
inline int where(bool condition, int a, int b) { return condition ? a : b; }
template <class Wide> Wide product_term(Wide a, Wide b) { return a * b; }
template <class Wide> Wide abs(Wide x) {
  if constexpr (std::is_floating_point_v<Wide>)
    return std::fabs(x);
  else
    return x < 0 ? Wide(0) - x : x;
}
template <class Wide> Wide term_of(ReduceOp op, Wide x) {
  if constexpr (std::is_arithmetic_v<Wide>) {
    switch (op) {
#define TW_COMBINATION(name, join, keeps, term, whole) \
  case ReduceOp::name: return static_cast<Wide>(term);
#include "core/problems/combinations.inc"
#undef TW_COMBINATION
    }
  }
  return x;
}

template <class T> void reduce(const ReduceProblem& p) {
  using Wide = typename WideOf<T>::type;
  const auto* const x = static_cast<const T*>(p.x);
  const auto* const factors = static_cast<const T*>(p.factors);
  int64_t result = 0;
  const auto write = [&](DType type, const void* value) {
    convert_plainly(type, value, p.out, static_cast<char*>(p.y) + result * int64_t(size_of(p.out)));
  };
  each_place(p.kept, p.kept_strides, [&](int64_t kept) {
    double centre = 0;
    if (p.centres) {
      const DType type = p.in == DType::float64 ? DType::float64 : DType::float32;
      convert_plainly(type, static_cast<const char*>(p.centres) + result * int64_t(size_of(type)),
                      DType::float64, &centre);
    }
    Wide sum = {}, product = {1}, best = {};
    int64_t place = 0, best_place = -1;
    bool any = false, all = true;
    each_place(p.reduced, p.reduced_strides, [&](int64_t offset) {
      const Wide element = wide(x[kept + offset]);
      if (join_of(p.op) == ReduceJoin::sum) {
        if (p.factors)
          sum = sum + element * wide(factors[kept + offset]);
        else
          sum = sum + (p.centres ? apart(element, centre) : term_of(p.op, element));
      }
      if (join_of(p.op) == ReduceJoin::product) product = product * element;
      if constexpr (std::is_arithmetic_v<Wide>)
        if (is_extremum(p.op)) {
          const bool later = takes_larger(p.op) ? element > best : element < best;
          if (best_place < 0 || (best == best && (later || element != element))) {
            best = element;
            best_place = place;
          }
        }
      any |= !is_zero(element);
      all &= !is_zero(element);
      ++place;
    });
    if (is_logic(p.op)) {
      const bool holds = p.op == ReduceOp::any ? any : all;
      write(DType::bool_, &holds);
    } else if (is_arg(p.op)) {
      write(DType::int64, &best_place);
    } else {
      Wide joined = is_extremum(p.op) ? best : join_of(p.op) == ReduceJoin::sum ? sum : product;
      if constexpr (std::is_arithmetic_v<Wide>) {
        if (p.finish) {
          auto finished = static_cast<double>(joined);
          p.finish(1, ReducedCount(p.reduced.product(), p.out), &finished);
          write(DType::float64, &finished);
        } else if constexpr (std::is_floating_point_v<Wide>) {
          const auto value = static_cast<double>(joined);
          write(DType::float64, &value);
        } else {
          write(DTypeOf<Wide>::value, &joined);
        }
      } else {
        if (p.finish) p.finish(2, ReducedCount(p.reduced.product(), p.out), &joined.re);
        write(DType::complex128, &joined);
      }
    }
    ++result;
  });
}

void run(const void* problem) {
  const auto& p = *static_cast<const ReduceProblem*>(problem);
  visit(p.in, [&](auto sample) { reduce<decltype(sample)>(p); });
}

}  // namespace

void register_naive_reduce_kernels() {
#define TW_REDUCTION(name, ...) add_definition(#name, run);
#include "core/problems/reductions.inc"
#undef TW_REDUCTION
  add_definition("squares_about", run);
  add_definition("sum_of_products", run);
}

}  // namespace tw
