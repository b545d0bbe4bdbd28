// Reductions: checks, shapes, types, gradients.
#include "core/ops/reduce.h"

#include <cmath>

#include "core/autograd/node.h"
#include "core/cpu/isa.h"
#include "core/cpu/reduce.h"
#include "core/ops/copy.h"
#include "core/ops/create.h"
#include "core/ops/pointwise.h"
#include "core/ops/view.h"
#include "core/runtime/profile.h"

namespace tw {

namespace {

struct ReducedAxes {
  bool reduced[kMaxRank] = {};
  Shape kept_shape;        // without the reduced axes
  Shape keepdims_shape;    // with them as extent 1
  std::int64_t count = 1;  // elements that go into one result
};

ReducedAxes resolve(const Tensor& x, const Axes& axes, const char* op) {
  ReducedAxes out;
  for (std::int64_t axis : axes) {
    const int i = normalize_axis(axis, x.rank(), op);
    if (out.reduced[i]) fail(ErrorKind::value, op, ": axis ", axis, " is repeated");
    out.reduced[i] = true;
  }
  for (int i = 0; i < x.rank(); ++i) {
    if (axes.empty()) out.reduced[i] = true;
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
  Tensor y = Tensor::empty(keepdims ? axes.keepdims_shape : axes.kept_shape, out);
  problem.x = x.bytes();
  problem.y = y.bytes();
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
  return broadcast_to(reshape(g, keepdims_shape), shape);
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
          dx[0] = spread(g / static_cast<double>(count), kept, shape);
        },
        x);
  return y;
}

namespace {

// Product of all elements but one, for each: exact where elements are zero.
Tensor product_gradient(const Tensor& g, const Tensor& x, const Tensor& y,
                        const ReducedAxes& axes) {
  const Tensor zero = x == 0;
  std::vector<std::int64_t> list;
  for (int i = 0; i < x.rank(); ++i)
    if (axes.reduced[i]) list.push_back(i);
  if (list.empty()) return reshape(g, x.shape());
  const Tensor zeros_here = sum(zero, list, true);
  const Tensor nonzero_product = prod(where(zero, 1.0, x), list, true);
  const Tensor whole = reshape(y, axes.keepdims_shape);
  const Tensor others =
      where(zero, where(zeros_here == 1, nonzero_product, 0.0), whole / where(zero, 1.0, x));
  return reshape(g, axes.keepdims_shape) * others;
}

}  // namespace

Tensor prod(const Tensor& x_in, const Axes& axes_in, bool keepdims, std::optional<DType> dtype) {
  const Tensor x = cast_terms(x_in, dtype, "prod");
  const ReducedAxes axes = resolve(x, axes_in, "prod");
  const DType out = sum_dtype(x.dtype(), dtype);
  const Tensor y = run(ReduceOp::prod, x, axes, keepdims, out);
  if (should_record(x) && is_floating(out))
    record_saving(
        y, "prod",
        [x = SavedTensor(x), y = SavedTensor::result(y), axes, from = x.dtype()](
            Node& node, const Tensor& g, Tensor* dx) {
          dx[0] =
              astype(product_gradient(g, x.get(node, "input"), y.get(node, "result"), axes), from);
        },
        x);
  return y;
}

Tensor var(const Tensor& x, const Axes& axes_in, double correction, bool keepdims) {
  check_floating(x, "var");
  const ReducedAxes axes = resolve(x, axes_in, "var");
  const Tensor centred = x - mean(x, axes_in, true);
  const double degrees = static_cast<double>(axes.count) - correction;
  return sum(centred * centred, axes_in, keepdims) / std::max(degrees, 0.0);
}

namespace {

Tensor extremum(ReduceOp op, const Tensor& x, const Axes& axes_in, bool keepdims) {
  const char* name = kNames[static_cast<int>(op)];
  check_ordered(x, name);
  const ReducedAxes axes = resolve(x, axes_in, name);
  check_nonempty(x, axes, name);
  const Tensor y = run(op, x, axes, keepdims, x.dtype());
  if (should_record(x))
    record_saving(
        y, name,
        [x = SavedTensor(x), y = SavedTensor::result(y), axes](Node& node, const Tensor& g,
                                                               Tensor* dx) {
          const Tensor input = x.get(node, "input");
          std::vector<std::int64_t> list;
          for (int i = 0; i < input.rank(); ++i)
            if (axes.reduced[i]) list.push_back(i);
          const Tensor best =
              astype(input == reshape(y.get(node, "result"), axes.keepdims_shape), g.dtype());
          const Tensor ties = list.empty() ? best : sum(best, list, true);
          dx[0] = best / ties * reshape(g, axes.keepdims_shape);
        },
        x);
  return y;
}

Tensor arg_extremum(ReduceOp op, const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  const char* name = kNames[static_cast<int>(op)];
  check_ordered(x, name);
  const ReducedAxes axes = resolve(x, axis ? Axes{*axis} : Axes{}, name);
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
  const Tensor x = astype(x_in, floating_dtype(x_in.dtype()));
  const ReducedAxes reduced = resolve(x, axes, "logsumexp");
  if (reduced.count == 0) return log(sum(exp(x), axes, keepdims));  // of nothing: -infinity
  Tensor shift;
  {
    GradModeGuard off(false);  // any shift gives the same result, so none needs a gradient
    const Tensor largest = max(x, axes, true);
    shift = where(isfinite(largest), largest, 0.0);
  }
  const Tensor y = log(sum(exp(x - shift), axes, true)) + shift;
  return keepdims ? y : reshape(y, reduced.kept_shape);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int lead = x.rank() - shape.rank();
  Axes axes;
  for (int i = 0; i < x.rank(); ++i)
    if (i < lead || (shape[i - lead] == 1 && x.size(i) != 1)) axes.push_back(i);
  const Tensor y = axes.empty() ? x : sum(x, axes, true);
  return reshape(y, shape);
}

}  // namespace tw
