// Elements around a tensor: constant ones, or its own.
#include <algorithm>
#include <array>

#include "core/autograd/op_node.h"
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

using std::int64_t;

enum Mode { kConstant, kReflect, kReplicate, kCircular };

// Elements in front of an axis and behind it; of negative ones, that many are left out.
struct Sides {
  int64_t before = 0, behind = 0;
};

// The pairs of the signature count from the last axis on.
std::vector<Sides> sides_of(const Use& use) {
  const Tensor& x = use.in[0].tensor;
  const List widths = use.attributes.list(0);
  if (widths.count % 2 || widths.count / 2 > x.rank())
    fail(ErrorKind::value, "pad: expected a pair of widths for some of the last axes of ",
         x.shape(), ", got ", widths.count, widths.count == 1 ? " width" : " widths");
  std::vector<Sides> sides(static_cast<std::size_t>(x.rank()));
  for (int i = 0; i < widths.count / 2; ++i)
    sides[static_cast<std::size_t>(x.rank() - 1 - i)] = {widths[2 * i], widths[2 * i + 1]};
  for (int i = 0; i < x.rank(); ++i) {
    const Sides& s = sides[static_cast<std::size_t>(i)];
    const int64_t left = x.size(i) + std::min<int64_t>(s.before, 0);
    if (left < 0 || left + std::min<int64_t>(s.behind, 0) < 0)
      fail(ErrorKind::value, "pad: widths ", s.before, " and ", s.behind, " leave out more than ",
           x.size(i), " elements of axis ", i, " of ", x.shape());
  }
  return sides;
}

// How long an axis becomes. Raises ValueError beyond 64 bits.
int64_t extent_with(const Sides& s, int64_t size) {
  return (Checked("pad", size) + s.before + s.behind).get();
}

std::vector<Range> whole(const Tensor& x) {
  std::vector<Range> ranges;
  for (const int64_t extent : x.shape()) ranges.push_back({0, 1, extent});
  return ranges;
}

// What negative widths leave; they are 0 then.
Tensor cropped(const Tensor& x, std::vector<Sides>& sides) {
  std::vector<Range> ranges = whole(x);
  bool any = false;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const int64_t front = std::max<int64_t>(-sides[i].before, 0);
    const int64_t end = std::max<int64_t>(-sides[i].behind, 0);
    any |= front || end;
    ranges[i] = {front, 1, ranges[i].count - front - end};
    sides[i] = {std::max<int64_t>(sides[i].before, 0), std::max<int64_t>(sides[i].behind, 0)};
  }
  return any ? slice(x, ranges) : x;
}

Tensor with_constant(const Tensor& x, const std::vector<Sides>& sides, const Operand& value) {
  std::vector<int64_t> ranges;
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    const Sides& s = sides[static_cast<std::size_t>(i)];
    ranges.insert(ranges.end(), {s.before, 1, x.size(i)});
    shape.push_back(extent_with(s, x.size(i)));
  }
  return apply(kPadConstant, {x, value.absent() ? Operand(0) : value},
               AttributeList(2).set_list(0, ranges).set_list(1, shape));
}

// ---- elements of x itself ----

// Attributes of both: mode, and the widths of each axis, from the first on.
enum OwnAttribute { kMode, kWidths, kOwnAttributes };

Sides sides_at(Attributes attributes, int axis) {
  const List widths = attributes.list(kWidths);
  return {widths[2 * axis], widths[2 * axis + 1]};
}

// What is copied to one end of an axis, as places of the result: `count` from `to` on are those
// from `from` on, `step` apart: 0 for one place again and again.
struct Edge {
  int64_t to, count, from, step;
};
std::array<Edge, 2> edges_of(Mode mode, const Sides& s, int64_t size) {
  const int64_t end = s.before + size;
  switch (mode) {
    case kReflect: return {{{0, s.before, 2 * s.before, -1}, {end, s.behind, end - 2, -1}}};
    case kCircular: return {{{0, s.before, size, 1}, {end, s.behind, s.before, 1}}};
    default: return {{{0, s.before, s.before, 0}, {end, s.behind, end - 1, 0}}};
  }
}
// The part of y that is x along the first axes up to `axis`, and along `axis` has the range.
Tensor window(const Tensor& y, Attributes attributes, int axis, const Range& range) {
  std::vector<Range> ranges = whole(y);
  for (int i = 0; i < axis; ++i) {
    const Sides s = sides_at(attributes, i);
    ranges[static_cast<std::size_t>(i)] = {s.before, 1, y.size(i) - s.before - s.behind};
  }
  ranges[static_cast<std::size_t>(axis)] = range;
  return slice(y, ranges);
}
Tensor source_of(const Tensor& y, Attributes attributes, int axis, const Edge& edge) {
  return window(y, attributes, axis,
                {edge.from, edge.step ? edge.step : 1, edge.step ? edge.count : 1});
}
std::vector<Range> middle_of(const Tensor& y, Attributes attributes) {
  std::vector<Range> ranges;
  for (int i = 0; i < y.rank(); ++i) {
    const Sides s = sides_at(attributes, i);
    ranges.push_back({s.before, 1, y.size(i) - s.before - s.behind});
  }
  return ranges;
}
std::array<Edge, 2> edges_at(const Tensor& y, Attributes attributes, int axis) {
  const Sides s = sides_at(attributes, axis);
  return edges_of(static_cast<Mode>(attributes[kMode]), s, y.size(axis) - s.before - s.behind);
}

// x in the middle, then the ends of the last axis, those of the one before it from all of that.
void pad_own_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  Shape shape = x.shape();
  for (int i = 0; i < x.rank(); ++i) shape[i] = extent_with(sides_at(use.attributes, i), x.size(i));
  const Tensor y = Tensor::empty(shape, x.dtype());
  copy_into(slice(y, middle_of(y, use.attributes)), x);
  for (int axis = x.rank() - 1; axis >= 0; --axis)
    for (const Edge& edge : edges_at(y, use.attributes, axis)) {
      if (edge.count == 0) continue;
      const Tensor to = window(y, use.attributes, axis, {edge.to, 1, edge.count});
      copy_into(to, broadcast_to(source_of(y, use.attributes, axis, edge), to.shape()));
    }
  out[0] = y;
}
// The same backwards: what an end received goes back to where it came from.
void pad_own_backward_body(const Use& use, Tensor* out) {
  const Tensor g = copy(use.in[0].tensor);
  for (int axis = 0; axis < g.rank(); ++axis)
    for (const Edge& edge : edges_at(g, use.attributes, axis)) {
      if (edge.count == 0) continue;
      const Tensor received = window(g, use.attributes, axis, {edge.to, 1, edge.count});
      const Tensor from = source_of(g, use.attributes, axis, edge);
      copy_into(from, from + (edge.step ? received : sum(received, {axis}, true)));
    }
  out[0] = copy(slice(g, middle_of(g, use.attributes)));
}

void check_own(const Tensor& x, int axis, const Sides& s, Mode mode) {
  const int64_t size = x.size(axis), most = std::max(s.before, s.behind);
  const int64_t limit = mode == kReflect ? size - 1 : mode == kCircular ? size : most;
  constexpr const char* kNames[] = {"constant", "reflect", "replicate", "circular"};
  if (most > 0 && (most > limit || size < 1))
    fail(ErrorKind::value, "pad: width ", most, " is more than axis ", axis, " of ", x.shape(),
         " allows in mode '", kNames[mode], "'");
}

// What negative widths leave out of a circle is left out first; but mirrors and repetitions are
// those of all of x, so that it is left out of the result.
Tensor with_own(const Tensor& x, std::vector<Sides> sides, Mode mode) {
  std::vector<Sides> left_out(sides.size());
  for (std::size_t i = 0; mode != kCircular && i < sides.size(); ++i) {
    left_out[i] = {std::min<int64_t>(sides[i].before, 0), std::min<int64_t>(sides[i].behind, 0)};
    sides[i] = {std::max<int64_t>(sides[i].before, 0), std::max<int64_t>(sides[i].behind, 0)};
  }
  const Tensor given = cropped(x, sides);
  std::vector<int64_t> widths;
  for (int i = 0; i < x.rank(); ++i) {
    const Sides& s = sides[static_cast<std::size_t>(i)];
    check_own(given, i, s, mode);
    widths.insert(widths.end(), {s.before, s.behind});
  }
  const Tensor y = apply(kPadOwn, {given},
                         AttributeList(kOwnAttributes).set(kMode, mode).set_list(kWidths, widths));
  const Tensor kept = cropped(y, left_out);
  return kept.is(y) ? y : copy(kept);
}

void pad_body(const Use& use, Tensor* out) {
  const auto mode = static_cast<Mode>(use.attributes[1]);
  const Operand& value = use.in[1];
  if (mode != kConstant && !value.absent())
    fail(ErrorKind::value, "pad: value is for mode 'constant'");
  std::vector<Sides> sides = sides_of(use);
  const auto grows = [](const Sides& s) { return s.before > 0 || s.behind > 0; };
  const Tensor& x = use.in[0].tensor;
  if (!std::any_of(sides.begin(), sides.end(), grows)) {
    out[0] = copy(cropped(x, sides));
  } else if (mode == kConstant) {
    const Tensor kept = cropped(x, sides);
    out[0] = with_constant(kept, sides, value);
  } else {
    out[0] = with_own(x, sides, mode);
  }
}

// Attributes: ranges that x fills, shape.
std::vector<Range> filled(Attributes attributes) {
  std::vector<Range> ranges;
  const List list = attributes.list(0);
  for (int i = 0; i < list.count; i += 3) ranges.push_back({list[i], list[i + 1], list[i + 2]});
  return ranges;
}
void pad_constant_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  out[0] = full(use.attributes.dims(1), use.in[1].scalar, x.dtype());
  copy_into(slice(out[0], filled(use.attributes)), x);
}

}  // namespace

constexpr OpRecord kPadConstant = {
    .name = "pad_constant",
    .signature = "(x: Tensor, value: Number, ranges: Shape, shape: Shape) -> Tensor",
    .help = "A number everywhere but at the ranges, where x is.",
    .body = pad_constant_body,
    .vjp = [](Vjp& v) { v.give(0, slice(v.g(), filled(v.attributes()))); }};
constexpr OpRecord kPadOwn = {
    .name = "pad_own",
    .signature = "(x: Tensor, mode: int, widths: Shape) -> Tensor",
    .help =
        "Elements of x around it: mirrored (1), the last ones again (2), from the other end (3).",
    .body = pad_own_body,
    .vjp = [](Vjp& v) { v.give(0, apply(kPadOwnBackward, {v.g()}, v.attributes())); }};
constexpr OpRecord kPadOwnBackward = {
    .name = "pad_own_backward",
    .signature = "(g: Tensor, mode: int, widths: Shape) -> Tensor",
    .help = "The gradient of pad_own: what stands around is added where it came from.",
    .body = pad_own_backward_body,
    .vjp = [](Vjp& v) { v.give(0, apply(kPadOwn, {v.g()}, v.attributes())); }};
constexpr OpRecord kPad = {
    .name = "pad",
    .signature =
        "(x: Tensor, pad: Shape, mode: 'constant' | 'reflect' | 'replicate' | 'circular' = "
        "'constant', value: Number | None = None) -> Tensor",
    .help =
        "Elements around x: widths in front of and behind the last axis, then the one before it, "
        "and so on; negative widths leave elements out.\n"
        "They are value (0), or those of x: mirrored at its ends, the last ones again, or from the "
        "other end. Raises ValueError for widths that the axis does not allow.\n"
        "Shapes: x of any shape; the result has its extents plus the widths.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.pad.",
    .flags = kFunction,
    .body = pad_body};

}  // namespace tw
