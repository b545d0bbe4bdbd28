// Softmax, log-softmax and cross-entropy: checks, layout for the kernels, gradients.
#include "core/ops/softmax.h"

#include <algorithm>

#include "core/autograd/node.h"
#include "core/cpu/isa.h"
#include "core/cpu/softmax.h"
#include "core/ops/copy.h"
#include "core/ops/create.h"
#include "core/ops/operand.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/view.h"
#include "core/runtime/profile.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

bool computes_natively(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

SoftmaxShape shape_for(const Tensor& x, int axis) {
  SoftmaxShape shape{x.dtype(), 1, x.size(axis), 1};
  for (int i = 0; i < axis; ++i) shape.outer *= x.size(i);
  for (int i = axis + 1; i < x.rank(); ++i) shape.inner *= x.size(i);
  return shape;
}

template <class Run> void observed(const char* op, const Tensor& x, double passes, Run run) {
  const double count = static_cast<double>(x.count());
  dispatch(
      // An exponential, a subtraction, a sum and a division for each element.
      4 * count, passes * count * static_cast<double>(x.item_bytes()), run, [&](Observation& seen) {
        seen.op = op;
        seen.kernel = "vector";
        seen.isa = name_of(active_isa());
        seen.problem = std::string(name_of(x.dtype())) + " " + to_string(x.shape());
      });
}

// What differs between softmax and log-softmax.
struct Flavour {
  const char* name;
  void (*forward)(const SoftmaxShape&, const void*, void*);
  void (*backward)(const SoftmaxShape&, const void*, const void*, void*);
  Tensor (*gradient)(const Tensor& y, const Tensor& g, int axis);  // for gradients of gradients
};

Tensor softmax_gradient(const Tensor& y, const Tensor& g, int axis) {
  return y * (g - sum(y * g, {axis}, true));
}
Tensor log_softmax_gradient(const Tensor& y, const Tensor& g, int axis) {
  return g - exp(y) * sum(g, {axis}, true);
}
constexpr Flavour kSoftmax = {"softmax", softmax, softmax_backward, softmax_gradient};
constexpr Flavour kLogSoftmax = {"log_softmax", log_softmax, log_softmax_backward,
                                 log_softmax_gradient};

Tensor kernel_gradient(const Flavour& flavour, const Tensor& y, const Tensor& g_in, int axis) {
  const Tensor g = contiguous(g_in);
  Access at;
  const char *const y_at = at(y), *const g_at = at(g);
  Tensor dx = Tensor::empty_like(y);
  char* const dx_at = at(dx);
  observed(flavour.name, y, 3, [&] { flavour.backward(shape_for(y, axis), y_at, g_at, dx_at); });
  return dx;
}

Tensor normalised(const Flavour& flavour, const Tensor& x_in, std::int64_t axis_in) {
  if (is_complex(x_in.dtype())) fail(ErrorKind::type, flavour.name, ": no kernel for complex64");
  if (!computes_natively(x_in.dtype())) {
    const DType result = floating_dtype(x_in.dtype());
    return astype(normalised(flavour, astype(x_in, DType::float32), axis_in), result);
  }
  if (x_in.rank() == 0)
    return owned(reshape(normalised(flavour, reshape(x_in, {1}), axis_in), Shape()));
  const int axis = normalize_axis(axis_in, x_in.rank(), flavour.name);
  const Tensor x = contiguous(x_in);
  Access at;
  const char* const x_at = at(x);
  Tensor y = Tensor::empty_like(x);
  char* const y_at = at(y);
  observed(flavour.name, x, 2, [&] { flavour.forward(shape_for(x, axis), x_at, y_at); });
  if (should_record(x))
    record_saving(
        y, flavour.name,
        with_saved(
            [&flavour, axis](Node& node, const Tensor& g, Tensor* dx, const SavedTensor& y) {
              const Tensor result = y.get(node, "result");
              dx[0] = modes.grad ? flavour.gradient(result, g, axis)
                                 : kernel_gradient(flavour, result, g, axis);
            },
            SavedTensor::result(y)),
        x);
  return y;
}

}  // namespace

Tensor softmax(const Tensor& x, std::int64_t axis) { return normalised(kSoftmax, x, axis); }
Tensor log_softmax(const Tensor& x, std::int64_t axis) { return normalised(kLogSoftmax, x, axis); }

namespace {

void check_cross_entropy(const Tensor& logits, const Tensor& targets) {
  if (logits.rank() != 2 || targets.rank() != 1 || targets.size(0) != logits.size(0))
    fail(ErrorKind::value, "cross_entropy: expected logits (n, classes) and targets (n,), got ",
         logits.shape(), " and ", targets.shape());
  if (!is_integer(targets.dtype()))
    fail(ErrorKind::type, "cross_entropy: targets must be class indices (integers), got ",
         name_of(targets.dtype()));
  if (!is_floating(logits.dtype()))
    fail(ErrorKind::type, "cross_entropy: logits must be floating-point, got ",
         name_of(logits.dtype()));
}

CrossEntropyProblem problem_for(Access& at, const Tensor& x, const Tensor& targets,
                                std::int64_t ignore_index) {
  return {x.dtype(), x.size(0), x.size(1), at(x), at.as<std::int64_t>(targets), ignore_index};
}

// Gradient of the losses `g` (rows,) with respect to the logits, in one fused pass.
Tensor losses_gradient(const Tensor& x, const Tensor& targets, const Tensor& lse,
                       const Tensor& g_in, std::int64_t ignore_index) {
  const bool one_for_all = g_in.strides()[0] == 0;
  const Tensor g = one_for_all ? g_in : contiguous(g_in);
  Access at;
  const CrossEntropyProblem problem = problem_for(at, x, targets, ignore_index);
  const char *const lse_at = at(lse), *const g_at = at(g);
  Tensor dx = Tensor::empty_like(x);
  char* const dx_at = at(dx);
  observed("cross_entropy", x, 2,
           [&] { cross_entropy_backward(problem, lse_at, g_at, one_for_all ? 0 : 1, dx_at); });
  return dx;
}

// The same out of recorded ops.
Tensor recorded_losses_gradient(const Tensor& x, const Tensor& targets, const Tensor& g,
                                std::int64_t ignore_index) {
  const Tensor counts = astype(targets != Operand(Scalar(ignore_index)), x.dtype());
  const Tensor columns = expand_dims(arange(0, Scalar(x.size(1)), 1, DType::int64), 0);
  const Tensor hot = astype(expand_dims(targets, 1) == columns, x.dtype());
  return (softmax(x, 1) - hot) * expand_dims(g * counts, 1);
}

// Losses (rows,) of contiguous float32 or float64 logits.
Tensor row_losses(const Tensor& x, const Tensor& targets, std::int64_t ignore_index) {
  Access at;
  const CrossEntropyProblem problem = problem_for(at, x, targets, ignore_index);
  const std::int64_t bad = first_bad_target(problem);
  if (bad >= 0)
    fail(ErrorKind::index, "cross_entropy: target ", problem.targets[bad], " in row ", bad,
         " is out of range for ", x.size(1), " classes");
  Tensor losses = Tensor::empty({x.size(0)}, x.dtype());
  Tensor lse = Tensor::empty({x.size(0)}, x.dtype());
  char *const losses_at = at(losses), *const lse_at = at(lse);
  observed("cross_entropy", x, 1, [&] { cross_entropy(problem, losses_at, lse_at); });
  if (should_record(x))
    record_saving(losses, "cross_entropy",
                  with_saved(
                      [targets, lse, ignore_index](Node& node, const Tensor& g, Tensor* dx,
                                                   const SavedTensor& x) {
                        const Tensor logits = x.get(node, "logits");
                        dx[0] = modes.grad
                                    ? recorded_losses_gradient(logits, targets, g, ignore_index)
                                    : losses_gradient(logits, targets, lse, g, ignore_index);
                      },
                      SavedTensor(x)),
                  x);
  return losses;
}

}  // namespace

namespace {

std::int64_t count_targets(const Tensor& targets, std::int64_t ignore_index) {
  Access at;
  const std::int64_t* const first = at.as<std::int64_t>(targets);
  return targets.count() - std::count(first, first + targets.count(), ignore_index);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets_in, Reduction reduction,
                     std::int64_t ignore_index) {
  check_cross_entropy(logits, targets_in);
  const DType wide = computes_natively(logits.dtype()) ? logits.dtype() : DType::float32;
  const Tensor x = contiguous(astype(logits, wide));
  // A copy, so that later changes of the targets do not reach backward.
  const Tensor targets = copy(astype(targets_in, DType::int64));
  const Tensor losses = row_losses(x, targets, ignore_index);
  Tensor y = losses;
  if (reduction == Reduction::sum) y = sum(losses, {}, false);
  if (reduction == Reduction::mean) {
    const std::int64_t counted = count_targets(targets, ignore_index);
    y = counted == targets.count() ? mean(losses, {}, false)
                                   : sum(losses, {}, false) / static_cast<double>(counted);
  }
  return astype(y, logits.dtype());
}

}  // namespace tw
