// Views: shape arithmetic, and for each the gradient, which is another view (or a scatter).
#include "core/ops/view.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/cpu/convert.h"
#include "core/ops/copy.h"
#include "core/ops/create.h"
#include "core/ops/reduce.h"
#include "core/runtime/profile.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

Tensor view_of(const Tensor& x, const Shape& shape, const Strides& strides,
               std::int64_t offset_elements = 0) {
  Tensor y = Tensor::over(
      x->storage, x->offset_bytes + offset_elements * static_cast<std::int64_t>(x.item_bytes()),
      shape, strides, x.dtype());
  y->is_view = true;
  if (x->is_view && !x->family)
    y->recorded_seen = x->recorded_seen;
  else if (modes.grad && is_floating(x.dtype()))
    ViewFamily::join(*x.get(), *y.get());
  return y;
}

// Strides of `x` seen as `shape`, by matching runs of axes with equal element counts; false where a
// run of several old axes is not evenly spaced.
bool strides_as(const Tensor& x, const Shape& shape, Strides& out) {
  out = contiguous_strides(shape);
  if (x.contiguous() || x.count() == 0) return true;
  int from = 0, to = 0;
  const int old_rank = x.rank(), new_rank = shape.rank();
  while (from < old_rank || to < new_rank) {
    std::int64_t old_count = from < old_rank ? x.size(from) : 1;
    std::int64_t new_count = to < new_rank ? shape[to] : 1;
    int old_end = from + 1, new_end = to + 1;
    while (old_count != new_count) {
      if (old_count < new_count)
        old_count *= x.size(old_end++);
      else
        new_count *= shape[new_end++];
    }
    old_end = std::min(old_end, old_rank);
    new_end = std::min(new_end, new_rank);
    std::int64_t step = 0, span = 1;  // of the run's innermost axis that has more than one element
    for (int i = old_end - 1; i >= from; --i) {
      if (x.size(i) == 1) continue;
      if (span == 1)
        step = x.strides()[i];
      else if (x.strides()[i] != step * span)
        return false;
      span *= x.size(i);
    }
    for (int i = new_end - 1; i >= to; --i) {
      out[i] = step;
      step *= shape[i];
    }
    from = old_end;
    to = new_end;
  }
  return true;
}

Shape resolve(const Tensor& x, Shape shape) {
  int open = -1;
  std::int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1) {
      if (open >= 0) fail(ErrorKind::value, "reshape: only one extent may be -1, got ", shape);
      open = i;
    } else if (shape[i] < 0) {
      fail(ErrorKind::value, "reshape: negative extent in ", shape);
    } else {
      known *= shape[i];
    }
  }
  if (open >= 0 && known > 0 && x.count() % known == 0) shape[open] = x.count() / known;
  if ((open >= 0 && shape[open] < 0) || element_count(shape) != x.count())
    fail(ErrorKind::value, "reshape: cannot view ", x.count(), " elements of shape ", x.shape(),
         " as ", shape);
  return shape;
}

}  // namespace

bool can_view_as(const Tensor& x, const Shape& shape) {
  Strides strides;
  return strides_as(x, resolve(x, shape), strides);
}

Tensor owned(Tensor view) {
  view->is_view = false;
  view->family = Ref<ViewFamily>();
  return view;
}

Tensor reshape(const Tensor& x, const Shape& wanted, bool copy_allowed) {
  const Shape shape = resolve(x, wanted);
  Strides strides;
  if (!strides_as(x, shape, strides)) {
    if (!copy_allowed)
      fail(ErrorKind::value, "reshape: shape ", x.shape(), " with strides ", x.strides(),
           " cannot become ", shape, " without a copy");
    return owned(reshape(copy(x), shape));
  }
  Tensor y = view_of(x, shape, strides);
  if (should_record(x))
    record(
        y, "reshape",
        [old = x.shape()](Node&, const Tensor& g, Tensor* dx) { dx[0] = reshape(g, old); }, x);
  return y;
}

Tensor permute_dims(const Tensor& x, const std::vector<std::int64_t>& axes) {
  const int rank = x.rank();
  if (static_cast<int>(axes.size()) != rank)
    fail(ErrorKind::value, "permute_dims: ", axes.size(), " axes for ", rank, " dimensions");
  Shape shape(rank, 0);
  Strides strides(rank, 0);
  std::vector<std::int64_t> inverse(static_cast<std::size_t>(rank), -1);
  for (int i = 0; i < rank; ++i) {
    const int from = normalize_axis(axes[static_cast<std::size_t>(i)], rank, "permute_dims");
    if (inverse[static_cast<std::size_t>(from)] >= 0)
      fail(ErrorKind::value, "permute_dims: axis ", from, " is repeated");
    inverse[static_cast<std::size_t>(from)] = i;
    shape[i] = x.size(from);
    strides[i] = x.strides()[from];
  }
  Tensor y = view_of(x, shape, strides);
  if (should_record(x))
    record(
        y, "permute_dims",
        [inverse](Node&, const Tensor& g, Tensor* dx) { dx[0] = permute_dims(g, inverse); }, x);
  return y;
}

Tensor swap_axes(const Tensor& x, int a, int b) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  Tensor y = view_of(x, shape, strides);
  if (should_record(x))
    record(
        y, "swap_axes", [a, b](Node&, const Tensor& g, Tensor* dx) { dx[0] = swap_axes(g, a, b); },
        x);
  return y;
}

Tensor broadcast_operand(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : broadcast_to(x, shape);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  const int lead = shape.rank() - x.rank();
  for (std::int64_t extent : shape)
    if (extent < 0) fail(ErrorKind::value, "broadcast_to: negative extent in ", shape);
  if (lead < 0 || !(broadcast_shapes(x.shape(), shape, "broadcast_to") == shape))
    fail(ErrorKind::value, "broadcast_to: cannot broadcast ", x.shape(), " to ", shape);
  Strides strides(shape.rank(), 0);
  for (int i = 0; i < x.rank(); ++i)
    strides[lead + i] = x.size(i) == 1 && shape[lead + i] != 1 ? 0 : x.strides()[i];
  Tensor y = view_of(x, shape, strides);
  if (should_record(x))
    record(
        y, "broadcast_to",
        [old = x.shape()](Node&, const Tensor& g, Tensor* dx) { dx[0] = sum_to(g, old); }, x);
  return y;
}

Tensor expand_dims(const Tensor& x, std::int64_t axis) {
  const int at = normalize_axis(axis, x.rank() + 1, "expand_dims");
  Shape shape = x.shape();
  shape.insert(at, 1);
  return reshape(x, shape);
}

Tensor squeeze(const Tensor& x, const std::vector<std::int64_t>& axes) {
  bool drop[kMaxRank] = {};
  mark_axes(axes, x.rank(), "squeeze", drop);
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (!drop[i])
      shape.push_back(x.size(i));
    else if (x.size(i) != 1)
      fail(ErrorKind::value, "squeeze: axis ", i, " of ", x.shape(), " has extent ", x.size(i),
           ", not 1");
  }
  return reshape(x, shape);
}

namespace {

Tensor slice_view(const Tensor& x, const std::vector<Range>& ranges) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  std::int64_t offset = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const Range& range = ranges[static_cast<std::size_t>(i)];
    if (range.count > 0) offset += range.start * x.strides()[i];
    shape[i] = range.count;
    strides[i] = x.strides()[i] * range.step;
  }
  return view_of(x, shape, strides, offset);
}

}  // namespace

Tensor slice(const Tensor& x, const std::vector<Range>& ranges) {
  Tensor y = slice_view(x, ranges);
  if (should_record(x))
    record(
        y, "slice",
        [shape = x.shape(), ranges](Node&, const Tensor& g, Tensor* dx) {
          dx[0] = unslice(g, shape, ranges);
        },
        x);
  return y;
}

Tensor unslice(const Tensor& x, const Shape& shape, const std::vector<Range>& ranges) {
  Tensor y = zeros(shape, x.dtype());
  const Tensor window = slice_view(y, ranges);
  Access at;
  const char* const from = at(x);
  char* const to = at(window);
  launch([&] {
    copy_strided(x.dtype(), x.dtype(), x.shape(), from, x.strides(), to, window.strides());
  });
  if (should_record(x))
    record(
        y, "unslice", [ranges](Node&, const Tensor& g, Tensor* dx) { dx[0] = slice(g, ranges); },
        x);
  return y;
}

Tensor flip(const Tensor& x, const std::vector<std::int64_t>& axes) {
  bool flipped[kMaxRank] = {};
  mark_axes(axes, x.rank(), "flip", flipped);
  std::vector<Range> ranges;
  for (int i = 0; i < x.rank(); ++i)
    ranges.push_back(flipped[i] ? Range{x.size(i) - 1, -1, x.size(i)} : Range{0, 1, x.size(i)});
  return slice(x, ranges);
}

}  // namespace tw
