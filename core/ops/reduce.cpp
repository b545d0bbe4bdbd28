// Reductions: checks, shapes, types, gradients.
#include "core/ops/reduce.h"

#include <cmath>

#include "core/autograd/node.h"
#include "core/cpu/isa.h"
#include "core/cpu/reduce.h"
#include "core/ops/copy.h"
#include "core/ops/create.h"
#include "core/ops/join.h"
#include "core/ops/pointwise.h"
#include "core/ops/view.h"
#include "core/runtime/profile.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

struct ReducedAxes {
  bool reduced[kMaxRank] = {};
  Shape kept_shape;        // without the reduced axes
  Shape keepdims_shape;    // with them as extent 1
  std::int64_t count = 1;  // elements that go into one result

  Axes axes() const {
    Axes out = std::vector<std::int64_t>();
    for (int i = 0; i < keepdims_shape.rank(); ++i)
      if (reduced[i]) out.list.push_back(i);
    return out;
  }
};

ReducedAxes resolve(const Tensor& x, const Axes& axes, const char* op) {
  ReducedAxes out;
  mark_axes(axes.list, x.rank(), op, out.reduced);
  for (int i = 0; i < x.rank(); ++i) {
    if (axes.all) out.reduced[i] = true;
    if (out.reduced[i])
      out.count *= x.size(i);
    else
      out.kept_shape.push_back(x.size(i));
    out.keepdims_shape.push_back(out.reduced[i] ? 1 : x.size(i));
  }
  return out;
}

constexpr const char* kNames[] = {"sum",    "mean",   "prod", "max", "min",
                                  "argmax", "argmin", "any",  "all"};

Tensor run(ReduceOp op, const Tensor& x, const ReducedAxes& axes, bool keepdims, DType out) {
  const char* name = kNames[static_cast<int>(op)];
  ReduceProblem problem;
  problem.op = op;
  problem.in = x.dtype();
  problem.out = out;
  for (int i = 0; i < x.rank(); ++i) {
    (axes.reduced[i] ? problem.reduced : problem.kept).push_back(x.size(i));
    (axes.reduced[i] ? problem.reduced_strides : problem.kept_strides).push_back(x.strides()[i]);
  }
  Access at;
  problem.x = at(x);
  Tensor y = Tensor::empty(keepdims ? axes.keepdims_shape : axes.kept_shape, out);
  problem.y = at(y);
  const double count = static_cast<double>(x.count());
  dispatch(
      count, count * static_cast<double>(x.item_bytes()), [&] { reduce(problem); },
      [&](Observation& seen) {
        seen.op = name;
        seen.kernel = "vector";
        seen.isa = name_of(active_isa());
        seen.problem = std::string(name_of(x.dtype())) + " " + to_string(x.shape()) + " to " +
                       to_string(y.shape());
      });
  return y;
}

// Gradient `g` of a reduction's result, seen in the shape of its input.
Tensor spread(const Tensor& g, const Shape& keepdims_shape, const Shape& shape) {
  return broadcast_operand(reshape(g, keepdims_shape), shape);
}

DType sum_dtype(DType in, std::optional<DType> asked) {
  if (asked) return *asked;
  if (is_bool(in) || is_signed_int(in)) return DType::int64;
  return is_unsigned_int(in) ? DType::uint64 : in;
}

// The terms converted to the type asked for, before they are combined.
Tensor cast_terms(const Tensor& x, std::optional<DType> dtype, const char* op) {
  if (!dtype) return x;
  if (is_bool(*dtype)) fail(ErrorKind::type, op, ": dtype bool cannot hold it; use any or all");
  return astype(x, *dtype);
}

void check_floating(const Tensor& x, const char* op) {
  if (!is_floating(x.dtype()) && !is_complex(x.dtype()))
    fail(ErrorKind::type, op, ": needs a floating-point input, got ", name_of(x.dtype()),
         "; convert with astype(float32)");
}

void check_ordered(const Tensor& x, const char* op) {
  if (is_complex(x.dtype())) fail(ErrorKind::type, op, ": complex numbers have no order");
}

void check_nonempty(const Tensor& x, const ReducedAxes& axes, const char* op) {
  if (axes.count == 0)
    fail(ErrorKind::value, op, ": no elements along the reduced axes of ", x.shape());
}

}  // namespace

Tensor sum(const Tensor& x_in, const Axes& axes_in, bool keepdims, std::optional<DType> dtype) {
  const Tensor x = cast_terms(x_in, dtype, "sum");
  const ReducedAxes axes = resolve(x, axes_in, "sum");
  const DType out = sum_dtype(x.dtype(), dtype);
  const Tensor y = run(ReduceOp::sum, x, axes, keepdims, out);
  if (should_record(x) && is_floating(out))
    record(
        y, "sum",
        [shape = x.shape(), kept = axes.keepdims_shape, from = x.dtype()](
            Node&, const Tensor& g, Tensor* dx) { dx[0] = astype(spread(g, kept, shape), from); },
        x);
  return y;
}

Tensor mean(const Tensor& x, const Axes& axes_in, bool keepdims) {
  check_floating(x, "mean");
  const ReducedAxes axes = resolve(x, axes_in, "mean");
  const Tensor y = run(ReduceOp::mean, x, axes, keepdims, x.dtype());
  if (should_record(x))
    record(
        y, "mean",
        [shape = x.shape(), kept = axes.keepdims_shape, count = axes.count](Node&, const Tensor& g,
                                                                            Tensor* dx) {
          // float16 does not count beyond 65504.
          const Tensor share = astype(g, working_dtype(g.dtype())) / static_cast<double>(count);
          dx[0] = spread(astype(share, g.dtype()), kept, shape);
        },
        x);
  return y;
}

namespace {

Tensor part_of(const Tensor& x, std::int64_t start, std::int64_t count) {
  std::vector<Range> ranges;
  for (std::int64_t extent : x.shape()) ranges.push_back({0, 1, extent});
  ranges.back() = {start, 1, count};
  return slice(x, ranges);
}

// For each element of the last axis, the product of the others: of pairs, then within each pair.
// No division, so zeros, infinities and products out of range need no care, in any derivative.
Tensor products_of_others(const Tensor& x) {
  const std::int64_t count = x.size(x.rank() - 1), half = count / 2;
  if (count < 2) return full(x.shape(), 1, x.dtype());
  const Tensor a = part_of(x, 0, half), b = part_of(x, half, half);
  const Tensor odd = part_of(x, 2 * half, count % 2);
  const Tensor others = products_of_others(concat({a * b, odd}, -1));
  const Tensor of_pairs = part_of(others, 0, half);
  return concat({of_pairs * b, of_pairs * a, part_of(others, half, count % 2)}, -1);
}

// The type whose range holds every partial product that the forward kernel's accumulators hold.
DType product_dtype(DType dtype) {
  return dtype == DType::float32 ? DType::float64 : working_dtype(dtype);
}

Tensor product_gradient(const Tensor& g, const Tensor& x, const ReducedAxes& axes) {
  if (axes.axes().list.empty()) return reshape(g, x.shape());
  std::vector<std::int64_t> order;  // kept axes, then reduced ones
  for (const bool reduced : {false, true})
    for (int i = 0; i < x.rank(); ++i)
      if (axes.reduced[i] == reduced) order.push_back(i);
  std::vector<std::int64_t> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  const Tensor moved = permute_dims(astype(x, product_dtype(x.dtype())), order);
  Shape rows = axes.kept_shape;
  rows.push_back(axes.count);
  const Tensor others = reshape(products_of_others(reshape(moved, rows)), moved.shape());
  return reshape(g, axes.keepdims_shape) * permute_dims(others, back);
}

}  // namespace

Tensor prod(const Tensor& x_in, const Axes& axes_in, bool keepdims, std::optional<DType> dtype) {
  const Tensor x = cast_terms(x_in, dtype, "prod");
  const ReducedAxes axes = resolve(x, axes_in, "prod");
  const DType out = sum_dtype(x.dtype(), dtype);
  const Tensor y = run(ReduceOp::prod, x, axes, keepdims, out);
  if (should_record(x) && is_floating(out))
    record_saving(y, "prod",
                  with_saved(
                      [axes, from = x.dtype()](Node& node, const Tensor& g, Tensor* dx,
                                               const SavedTensor& x) {
                        dx[0] = astype(product_gradient(g, x.get(node, "input"), axes), from);
                      },
                      SavedTensor(x)),
                  x);
  return y;
}

namespace {

// The real (0) or imaginary part (1) of complex numbers, in the same memory.
Tensor part(const Tensor& x, int which) {
  Strides strides = x.strides();
  for (int i = 0; i < x.rank(); ++i) strides[i] *= 2;
  const auto offset = x->offset_bytes + which * static_cast<std::int64_t>(sizeof(float));
  return Tensor::over(x->storage, offset, x.shape(), strides, DType::float32);
}

Tensor squared_magnitude(const Tensor& x) {
  return is_complex(x.dtype()) ? square(part(x, 0)) + square(part(x, 1)) : x * x;
}

// Variance in the working type.
Tensor variance(const Tensor& x_in, const ReducedAxes& axes, double correction, bool keepdims) {
  const Tensor x = astype(x_in, working_dtype(x_in.dtype()));
  const Tensor squares = squared_magnitude(x - mean(x, axes.axes(), true));
  const double degrees = static_cast<double>(axes.count) - correction;
  return sum(squares, axes.axes(), keepdims) / std::max(degrees, 0.0);
}

DType real_dtype(DType dtype) { return is_complex(dtype) ? DType::float32 : dtype; }

// The root, with gradient 0 instead of NaN where all elements are equal, as in PyTorch.
Tensor deviation(const Tensor& variance) {
  const Tensor zero = variance == 0;
  return where(zero, 0, sqrt(where(zero, 1, variance)));
}

}  // namespace

Tensor var(const Tensor& x, const Axes& axes, double correction, bool keepdims) {
  check_floating(x, "var");
  const ReducedAxes reduced = resolve(x, axes, "var");
  return astype(variance(x, reduced, correction, keepdims), real_dtype(x.dtype()));
}

Tensor standard_deviation(const Tensor& x, const Axes& axes, double correction, bool keepdims) {
  check_floating(x, "std");
  const ReducedAxes reduced = resolve(x, axes, "std");
  return astype(deviation(variance(x, reduced, correction, keepdims)), real_dtype(x.dtype()));
}

namespace {

Tensor extremum(ReduceOp op, const Tensor& x, const Axes& axes_in, bool keepdims) {
  const char* name = kNames[static_cast<int>(op)];
  check_ordered(x, name);
  const ReducedAxes axes = resolve(x, axes_in, name);
  check_nonempty(x, axes, name);
  const Tensor y = run(op, x, axes, keepdims, x.dtype());
  if (should_record(x))
    record_saving(y, name,
                  with_saved(
                      [axes](Node& node, const Tensor& g, Tensor* dx, const SavedTensor& x,
                             const SavedTensor& y) {
                        const Tensor result = reshape(y.get(node, "result"), axes.keepdims_shape);
                        const Tensor best =
                            astype(x.get(node, "input") == result, working_dtype(g.dtype()));
                        const Tensor share = best / sum(best, axes.axes(), true);
                        dx[0] = astype(share * reshape(g, axes.keepdims_shape), g.dtype());
                      },
                      SavedTensor(x), SavedTensor::result(y)),
                  x);
  return y;
}

Tensor arg_extremum(ReduceOp op, const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  const char* name = kNames[static_cast<int>(op)];
  check_ordered(x, name);
  const ReducedAxes axes = resolve(x, axis ? Axes{*axis} : Axes(), name);
  check_nonempty(x, axes, name);
  return run(op, x, axes, keepdims, DType::int64);
}

}  // namespace

Tensor max(const Tensor& x, const Axes& axes, bool keepdims) {
  return extremum(ReduceOp::max, x, axes, keepdims);
}
Tensor min(const Tensor& x, const Axes& axes, bool keepdims) {
  return extremum(ReduceOp::min, x, axes, keepdims);
}
Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return arg_extremum(ReduceOp::argmax, x, axis, keepdims);
}
Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return arg_extremum(ReduceOp::argmin, x, axis, keepdims);
}

Tensor any(const Tensor& x, const Axes& axes, bool keepdims) {
  return run(ReduceOp::any, x, resolve(x, axes, "any"), keepdims, DType::bool_);
}
Tensor all(const Tensor& x, const Axes& axes, bool keepdims) {
  return run(ReduceOp::all, x, resolve(x, axes, "all"), keepdims, DType::bool_);
}

Tensor logsumexp(const Tensor& x_in, const Axes& axes, bool keepdims) {
  check_ordered(x_in, "logsumexp");
  const DType result = floating_dtype(x_in.dtype());
  const Tensor x = astype(x_in, working_dtype(result));
  const ReducedAxes reduced = resolve(x, axes, "logsumexp");
  const Shape shape = keepdims ? reduced.keepdims_shape : reduced.kept_shape;
  Tensor shift = zeros(Shape(), x.dtype());  // of nothing: log(0) is -infinity
  if (reduced.count > 0) {
    GradModeGuard off(false);  // any shift gives the same result, so none needs a gradient
    const Tensor largest = max(x, axes, true);
    shift = where(isfinite(largest), largest, 0.0);
  }
  const Tensor y = log(sum(exp(x - shift), axes, true)) + shift;
  return astype(owned(reshape(y, shape)), result);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int lead = x.rank() - shape.rank();
  std::vector<std::int64_t> axes;
  for (int i = 0; i < x.rank(); ++i)
    if (i < lead || (shape[i - lead] == 1 && x.size(i) != 1)) axes.push_back(i);
  const Tensor y = axes.empty() ? x : sum(x, axes, true);
  return reshape(y, shape);
}

}  // namespace tw
