// Reductions over all or some axes.
#pragma once
#include <initializer_list>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace tw {

class Vjp;

// All axes ({}), or those listed: an empty list reduces nothing.
struct Axes {
  bool all = true;
  std::vector<std::int64_t> list;

  Axes() = default;
  Axes(std::initializer_list<std::int64_t> axes) : all(false), list(axes) {}
  Axes(std::vector<std::int64_t> axes) : all(false), list(std::move(axes)) {}
};

// Sum and product of integers are int64 (uint64 for unsigned), unless `dtype` says otherwise.
Tensor sum(const Tensor& x, const Axes& axes, bool keepdims, std::optional<DType> dtype = {});
Tensor prod(const Tensor& x, const Axes& axes, bool keepdims, std::optional<DType> dtype = {});
Tensor mean(const Tensor& x, const Axes& axes, bool keepdims);
// The sum of what is no NaN, that of magnitudes, and the root of that of squares.
Tensor nansum(const Tensor& x, const Axes& axes, bool keepdims, std::optional<DType> dtype = {});
Tensor l1_norm(const Tensor& x, const Axes& axes, bool keepdims);
Tensor l2_norm(const Tensor& x, const Axes& axes, bool keepdims);
// Of what x and y broadcast to.
Tensor sum_of_products(const Tensor& x, const Tensor& y, const Axes& axes);
// The gradient of a product by a factor that was stretched: the sum of g times the other factor,
// without their products in memory, where a kernel reads both as they lie. Returns whether it was
// given. That does not depend on values, nor on whether the gradient is recorded.
bool give_sum_of_products(Vjp& v, int input);
// Variance with `correction` degrees of freedom taken off, and its square root, whose gradient is 0
// where it is 0. Of complex numbers: of their distances from the mean, a real number.
Tensor var(const Tensor& x, const Axes& axes, double correction, bool keepdims);
Tensor standard_deviation(const Tensor& x, const Axes& axes, double correction, bool keepdims);
// NaN where there is one; ValueError over no elements. Ties share the gradient evenly.
Tensor max(const Tensor& x, const Axes& axes, bool keepdims);
Tensor min(const Tensor& x, const Axes& axes, bool keepdims);
// Index (int64) of the first largest or smallest element, or of the first NaN.
Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims);
Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims);
Tensor any(const Tensor& x, const Axes& axes, bool keepdims);
Tensor all(const Tensor& x, const Axes& axes, bool keepdims);
Tensor logsumexp(const Tensor& x, const Axes& axes, bool keepdims);

// Sums the axes that broadcasting added or stretched, so that the result has `shape`.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace tw
