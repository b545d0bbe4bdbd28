// Several tensors into one.
#include "core/ops/join.h"

#include "core/autograd/node.h"
#include "core/cpu/convert.h"
#include "core/ops/copy.h"
#include "core/ops/view.h"
#include "core/runtime/profile.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

std::vector<Range> all_of(const Shape& shape) {
  std::vector<Range> ranges;
  for (std::int64_t extent : shape) ranges.push_back({0, 1, extent});
  return ranges;
}

void check_alike(const Tensor& first, const Tensor& x, int axis) {
  bool alike = x.rank() == first.rank();
  for (int i = 0; alike && i < x.rank(); ++i) alike = i == axis || x.size(i) == first.size(i);
  if (!alike)
    fail(ErrorKind::value, "concat: shapes differ outside axis ", axis, ": ", first.shape(),
         " and ", x.shape());
}

}  // namespace

Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis_in) {
  if (tensors.empty()) fail(ErrorKind::value, "concat: no tensors");
  const Tensor& first = tensors[0];
  if (first.rank() == 0)
    fail(ErrorKind::value, "concat: 0-d tensors have no axis to join along; use stack");
  const int axis = normalize_axis(axis_in, first.rank(), "concat");
  DType dtype = first.dtype();
  Shape shape = first.shape();
  shape[axis] = 0;
  bool recorded = false;
  std::vector<DType> dtypes;
  for (const Tensor& x : tensors) {
    check_alike(first, x, axis);
    dtype = promote(dtype, x.dtype());
    dtypes.push_back(x.dtype());
    if (__builtin_add_overflow(shape[axis], x.size(axis), &shape[axis]))
      fail(ErrorKind::value, "concat: the result has more elements than 64 bits can count");
    recorded |= should_record(x);
  }
  Tensor y = Tensor::empty(shape, dtype);
  const auto bytes = static_cast<std::int64_t>(y.item_bytes());
  std::vector<std::vector<Range>> places;
  std::int64_t at = 0;
  for (const Tensor& x : tensors) {
    Access access;
    const char* const from = access(x);
    copy_strided(x.dtype(), dtype, x.shape(), from, x.strides(),
                 access(y) + at * y.strides()[axis] * bytes, y.strides());
    places.push_back(all_of(x.shape()));
    places.back()[static_cast<std::size_t>(axis)].start = at;
    at += x.size(axis);
  }
  if (recorded && is_floating(dtype))
    record_many(
        y, "concat",
        [places, dtypes](Node& node, const Tensor& g, Tensor* dx) {
          for (std::size_t i = 0; i < places.size(); ++i)
            if (node.wants(static_cast<int>(i))) dx[i] = astype(slice(g, places[i]), dtypes[i]);
        },
        tensors);
  return y;
}

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis) {
  if (tensors.empty()) fail(ErrorKind::value, "stack: no tensors");
  std::vector<Tensor> expanded;
  for (const Tensor& x : tensors) {
    if (!(x.shape() == tensors[0].shape()))
      fail(ErrorKind::value, "stack: shapes differ: ", tensors[0].shape(), " and ", x.shape());
    expanded.push_back(expand_dims(x, axis));
  }
  return concat(expanded, axis < 0 ? normalize_axis(axis, tensors[0].rank() + 1, "stack") : axis);
}

}  // namespace tw
