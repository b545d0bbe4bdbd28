// Products of complex numbers: long rows and columns beside each other by the loops, what leaves
// their range one factor after the other.
#include <algorithm>
#include <cmath>

#include "core/cpu/isa/isa.h"
#include "core/cpu/reduce/reduce.h"
#include "core/cpu/reduce/axes.h"

namespace tw {
namespace {

using std::int64_t;

// One factor after the other.
template <class Part> Complex<Part> product_of(const char* x, const OrderedAxes& reduced) {
  double re = 1, im = 0;
  for (int64_t j = 0; j < reduced.count(); ++j) {
    const auto& z = *reinterpret_cast<const Complex<Part>*>(x + reduced.offset(j, reduced.rank));
    const double real = re * z.re - im * z.im;
    im = re * z.im + im * z.re;
    re = real;
  }
  return {static_cast<Part>(re), static_cast<Part>(im)};
}
template <class Part> Complex<Part> narrow(const double* z) {
  return {static_cast<Part>(z[0]), static_cast<Part>(z[1])};
}
template <class Part> bool is_finite(Complex<Part> z) {
  return std::isfinite(z.re) && std::isfinite(z.im);
}

template <class Part> void multiply(const ReduceProblem& p) {
  constexpr auto size = int64_t(sizeof(Complex<Part>));
  // So many columns are multiplied together.
  constexpr int64_t most = 128;
  OrderedAxes kept, reduced;
  for (int i = 0; i < p.kept.rank(); ++i) kept.append({p.kept[i], p.kept_strides[i] * size, 0});
  for (int i = 0; i < p.reduced.rank(); ++i)
    if (p.reduced[i] != 1)
      reduced.insert_by_width({p.reduced[i], p.reduced_strides[i] * size, 0}, 0);
  if (!p.by_place || reduced.rank == 0) reduced.merge();
  const ReduceTable& table = *active_kernels().reduce;
  constexpr int type = sizeof(Part) == sizeof(double);
  const bool kept_is_last = p.by_place && kept.rank > 0 && kept.last().x_bytes == size;
  const bool is_row = reduced.rank == 1 && reduced.last().x_bytes == size && !kept_is_last;
  const auto row = is_row ? table.complex_row[type] : nullptr;
  const bool has_columns =
      !row && reduced.rank == 1 && kept.rank > 0 && kept.last().x_bytes == size;
  const auto columns = has_columns ? table.complex_columns[type] : nullptr;
  auto* const y = static_cast<Complex<Part>*>(p.y);
  const int64_t count = kept.count();
  for (int64_t i = 0, together; i < count; i += together) {
    const auto at = [&](int64_t k) {
      return static_cast<const char*>(p.x) + kept.offset(i + k, kept.rank);
    };
    const int64_t beside = columns ? kept.last().count - i % kept.last().count : 1;
    together = std::min(beside, most);
    double products[2 * most];
    const auto multiply = [&](int64_t k, int64_t points) {
      if (row) return row(reduced.count(), at(k), products);
      return columns && columns(points, reduced.count(), at(k),
                                reduced.last().x_bytes / int64_t(sizeof(Part)), products + 2 * k);
    };
    const bool all_found = multiply(0, together);
    for (int64_t k = 0; k < together; ++k) {
      const bool found = all_found || (together > 1 && multiply(k, 1));
      // What is infinite or NaN follows from the order of factors.
      if (found) y[i + k] = narrow<Part>(products + 2 * k);
      if (!found || !is_finite(y[i + k])) y[i + k] = product_of<Part>(at(k), reduced);
    }
  }
}

}  // namespace

void complex_product(const ReduceProblem& p) {
  p.in == DType::complex64 ? multiply<float>(p) : multiply<double>(p);
}

}  // namespace tw
