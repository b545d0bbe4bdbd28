// Norms whose terms leave the range of their type: found, and computed again of scaled numbers.
#include "core/ops/copy/arange.h"

#include <algorithm>
#include <limits>

#include "core/autograd/grad_mode.h"
#include "core/base/modes.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/read.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduction_records.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

bool is_double(DType dtype) { return dtype == DType::float64; }

template <class T> bool any_of_outside(const Tensor& sizes, SafeRange range) {
  const HostValues values(sizes, "a norm");
  const T* const at = values.as<T>();
  return !std::all_of(at, at + sizes.count(),
                      [=](T x) { return x >= range.least && x <= range.most; });
}

// Where a gradient is asked for, without the slopes of 0.
Tensor sum_of_powers(const Tensor& size, double p, const Axes& axes) {
  if (!modes.grad || !size.requires_grad()) return sum(pow(size, p), axes, true);
  const Tensor zero = size == 0;
  return sum(where(zero, p > 0 ? 0 : kNoBound, pow(where(zero, 1, size), p)), axes, true);
}
Tensor root(const Tensor& total, double p) {
  if (!modes.grad || !total.requires_grad()) return pow(total, 1 / p);
  const Tensor none = total == 0;
  return where(none, 0, pow(where(none, 1, total), 1 / p));
}

}  // namespace

// Terms below the least normal number lose digits, of which such a sum has none to spare.
SafeRange range_of_sums(DType dtype) {
  return is_double(dtype) ? SafeRange{1e-290, std::numeric_limits<double>::max()}
                          : SafeRange{1e-30, std::numeric_limits<float>::max()};
}
SafeRange range_of_lengths(DType dtype) {
  return is_double(dtype) ? SafeRange{1e-145, 1e150} : SafeRange{1e-15, 1e18};
}

bool any_outside(const Tensor& sizes, SafeRange range) {
  if (!sizes.count() || sizes.device() || modes.dry_run) return false;
  if (!shows_values(sizes)) return true;
  const Tensor known = contiguous(sizes.detached());
  return is_double(known.dtype()) ? any_of_outside<double>(known, range)
                                  : any_of_outside<float>(known, range);
}

Tensor scale_of(const Tensor& result, SafeRange range, const Tensor& top) {
  const GradModeGuard off(false);
  const double most = is_double(top.dtype()) ? 1022 : 126;  // powers whose inverses are normal too
  const Tensor kept = ((result >= range.least) & (result <= range.most)) |
                      logical_not((top > Operand(0)) & (top < Operand(kNoBound)));
  const Tensor power = clip(-floor(log2(where(kept, 1, top))), -most, most);
  return where(kept, 1, exp2(power));
}

Tensor power_norm(const Tensor& size, double p, const Axes& axes, bool keepdims) {
  const Shape& shape = size.shape();
  std::uint32_t bits = 0;
  for (int i = 0; i < shape.rank(); ++i) bits |= std::uint32_t{axes.all} << i;
  for (const std::int64_t axis : axes.list)
    bits |= 1u << normalize_axis(axis, shape.rank(), "power_norm");
  const Tensor total = sum_of_powers(size, p, axes);
  const SafeRange range = range_of_sums(size.dtype());
  Tensor y;
  if (!size.count() || !any_outside(total, range)) {
    y = root(total, p);
  } else {
    const Tensor known = size.detached();
    const Tensor scale =
        scale_of(total.detached(), range, p > 0 ? max(known, axes, true) : min(known, axes, true));
    y = root(sum_of_powers(size * scale, p, axes), p) / scale;
  }
  return reshape(y, kept_shape(shape, bits, keepdims));
}

constexpr OpRecord kPowerNorm = {
    .name = "power_norm",
    .signature =
        "(x: Tensor, ord: float = 2.0, axis: Axes = None, keepdims: bool = False) -> Tensor",
    .help =
        "(Sum of x ** ord) ** (1 / ord) of numbers from 0 on, over all or some axes, whatever the "
        "range of the powers.\n"
        "Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where "
        "keepdims.\n"
        "Types: floating. Result: the same type; 16-bit ones are summed in float32.\n"
        "Raises TypeError for other types, IndexError for an axis out of range.\n"
        "Source: PyTorch's torch.linalg.vector_norm.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      check_floating(x.dtype(), "power_norm", false);
      const std::uint32_t axes = use.attributes.axes(1, x.rank(), use.op.name);
      const DType type = working_dtype(x.dtype());
      out[0] = astype(power_norm(astype(x, type), use.attributes.real(0), list_of(axes),
                                 use.attributes.flag(2)),
                      x.dtype());
    }};

}  // namespace tw
