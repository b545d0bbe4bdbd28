// The bits of elements as those of another type.
#include <cstdint>

#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

void infer_view_dtype(Call& call, Result* results) {
  const Meta& x = call.in[0];
  Result& y = results[0];
  y.dtype = call.attributes.dtype(0);
  if (is_bool(y.dtype))
    fail(ErrorKind::type, "view: bytes other than 0 and 1 are no bool; compare with != 0");
  y.shape = *x.shape;
  y.strides = *x.strides;
  y.alias = 0;
  const auto from = static_cast<std::int64_t>(size_of(x.dtype));
  const auto to = static_cast<std::int64_t>(size_of(y.dtype));
  if (from == to) return;
  const auto refuse = [&](const auto&... why) {
    fail(ErrorKind::value, "view: ", name_of(x.dtype), " as ", name_of(y.dtype), " takes ", why...);
  };
  if (x.rank() == 0) refuse("an axis for the elements, but x has none");
  const int last = x.rank() - 1;
  if ((*x.strides)[last] != 1 && x.size(last) > 1)
    refuse("a last axis without gaps, but its stride is ", (*x.strides)[last]);
  if (from > to) {
    for (int i = 0; i < last; ++i) y.strides[i] *= from / to;
    y.shape[last] *= from / to;
  } else {
    const std::int64_t parts = to / from;
    if (x.size(last) % parts) refuse("a last axis that ", parts, " divides, but x is ", *x.shape);
    for (int i = 0; i < last; ++i) {
      if (y.strides[i] % parts && x.size(i) > 1)
        refuse("strides that ", parts, " divides, but those of x are ", *x.strides);
      y.strides[i] /= parts;
    }
    y.shape[last] /= parts;
  }
  y.strides[last] = 1;
}

}  // namespace

constexpr OpRecord kViewDtype = {
    .name = "view_dtype",
    .signature = "(x: Tensor, dtype: DType) -> Tensor",
    .help =
        "The same memory as elements of another type, bit for bit; of another size where the last\n"
        "axis has no gaps, which becomes longer or shorter. It takes no part in the graph.\n"
        "Raises ValueError for shapes, strides and addresses that the type does not fit, TypeError "
        "for\n"
        "bool.\n"
        "Shapes: x (..., n); the result is (..., n * x.itemsize / dtype.itemsize).\n"
        "Types: all. Result: dtype.\n"
        "Source: PyTorch's torch.Tensor.view.",
    .flags = kConstant,
    .rewrite =
        [](const Use& use, Tensor* out) {
          const Tensor& x = use.in[0].tensor;
          const DType to = use.attributes.dtype(0);
          if (x.dtype() == to) {
            out[0] = x;
            return true;
          }
          const auto at = reinterpret_cast<std::uintptr_t>(x.pinned_bytes());
          if (x.count() > 0 && at % size_of(part_dtype(to)))
            fail(ErrorKind::value, "view: ", name_of(to),
                 " cannot begin at this address; copy() first");
          return false;
        },
    .infer = infer_view_dtype};

Tensor view_dtype(const Tensor& x, DType dtype) {
  return apply(kViewDtype, {x}, AttributeList(1).set(0, attribute_of(dtype)));
}

}  // namespace tw
