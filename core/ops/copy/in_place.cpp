// The rules of in-place changes, and the gradients of changes made through views.
#include "core/ops/copy/in_place.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/base/error.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/move/scatter.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

bool is_tracked_view(const Tensor& x) { return x->is_view && x->family; }
Tensor base_of(const Tensor& view) { return Tensor(Ref<TensorHeader>(view->family->base)); }

// Whether no two elements share a place, as far as the strides tell.
bool is_spread(const Tensor& x) {
  if (x.contiguous()) return true;
  int axes[kMaxRank], count = 0;
  for (int i = 0; i < x.rank(); ++i)
    if (x.size(i) > 1) axes[count++] = i;
  const auto step = [&](int axis) { return std::abs(x.strides()[axis]); };
  std::sort(axes, axes + count, [&](int a, int b) { return step(a) < step(b); });
  std::int64_t reach = 0;
  for (int i = 0; i < count; ++i) {
    if (step(axes[i]) <= reach) return false;
    reach += (x.size(axes[i]) - 1) * step(axes[i]);
  }
  return true;
}

// ---- a view as a window on its base: a gradient of the base, laid out like it, shows the view's
// part of the gradient through the same strides ----

struct Window {
  Shape base_shape, shape;
  Strides base_strides, strides;
  std::int64_t offset;     // of the window's first element from the base's
  std::int64_t low, span;  // of the base's elements: the lowest offset, and how many places

  Window(const Tensor& base, const Tensor& view)
      : base_shape(base.shape()),
        shape(view.shape()),
        base_strides(base.strides()),
        strides(view.strides()) {
    const auto item = static_cast<std::int64_t>(base.item_bytes());
    const ByteRange range = byte_range(base);
    offset = (view->offset_bytes - base->offset_bytes) / item;
    low = (range.low - base->offset_bytes) / item;
    span = (range.high - range.low) / item;
  }

  // Memory for a gradient of the base, the places between its elements included.
  Tensor buffer(DType dtype) const { return Tensor::empty({span}, dtype); }
  Tensor filled(const Tensor& g) const {
    Tensor whole = buffer(g.dtype()), base = base_in(whole);
    assign(base, g);
    return whole;
  }
  // Whether `g` has its elements where a buffer has them.
  bool laid_out(const Tensor& g) const { return low == 0 && g.strides() == base_strides; }
  Tensor base_in(const Tensor& buffer) const { return in(buffer, -low, base_shape, base_strides); }
  Tensor window_in(const Tensor& buffer) const { return in(buffer, offset - low, shape, strides); }
  // The same with repeated axes once.
  Tensor places_in(const Tensor& buffer) const {
    return in(buffer, offset - low, places(), strides);
  }
  Shape places() const {
    Shape out = shape;
    for (int i = 0; i < out.rank(); ++i)
      if (strides[i] == 0 && out[i] > 1) out[i] = 1;
    return out;
  }

 private:
  static Tensor in(const Tensor& buffer, std::int64_t at, const Shape& shape,
                   const Strides& strides) {
    const auto item = static_cast<std::int64_t>(buffer.item_bytes());
    return Tensor::over(buffer->storage, buffer->offset_bytes + at * item, shape, strides,
                        buffer.dtype());
  }
};

// A linear map of gradients, whose own gradient is another one.
using Map = Tensor (*)(const Tensor& g, const Window& window);
template <class Value>
Tensor mapped(const char* op, const Tensor& g, const Window& window, Value value, Map gradient) {
  Tensor y;
  {
    GradModeGuard off(false);
    y = value();
  }
  if (should_record(g))
    record(
        y, op,
        [window, gradient](Node&, const Tensor& gg, Tensor* dx) { dx[0] = gradient(gg, window); },
        g);
  return y;
}

Tensor put_window(const Tensor& g, const Window& window);

// The window's part of a gradient of the base.
Tensor take_window(const Tensor& g, const Window& window) {
  const auto value = [&] {
    return copy(window.laid_out(g) ? window.window_in(g) : window.window_in(window.filled(g)));
  };
  return mapped("take_window", g, window, value, put_window);
}

// `all` with the parts added at their places.
Tensor added(const Tensor& all, const Tensor& places, const Tensor& parts) {
  return scatter_add_along(all, reshape(places, {-1}), reshape(parts, {-1}), 0,
                           AlongUser::index_add);
}

// Its transpose: zeros like the base, with `g` added in the window.
Tensor put_window(const Tensor& g, const Window& window) {
  const auto value = [&] {
    const Tensor buffer = window.buffer(g.dtype());
    Tensor all = buffer, places = window.places_in(buffer);
    assign(all, 0);
    const Tensor parts = sum_to(g, window.places());
    if (is_spread(places))
      assign(places, parts);
    else  // windows that overlap
      all = added(all, window.places_in(arange(0, window.span, 1, DType::int64)), parts);
    return window.base_in(all);
  };
  return mapped("put_window", g, window, value, take_window);
}

// A gradient of the base without the window's part.
Tensor clear_window(const Tensor& g, const Window& window) {
  const auto value = [&] {
    const Tensor buffer = window.filled(g);
    Tensor places = window.places_in(buffer);
    assign(places, 0);
    return window.base_in(buffer);
  };
  return mapped("clear_window", g, window, value, clear_window);
}

// ---- places in the graph ----

// A new header over the memory of `x` that takes over its hooks, name, family and frontend object:
// it can get a new place in the graph while nodes that saved the old header keep the old place, and
// no cycle can form. The old header is of no further use, and says so.
Tensor moved_header(const Tensor& x, ViewFamily* family) {
  ++x->storage->recorded_changes;
  Tensor y = Tensor::over(x->storage, x->offset_bytes, x.shape(), x.strides(), x.dtype());
  y->extras = std::move(x->extras);
  y->family = std::move(x->family);
  x->is_view = true;
  x->recorded_seen = x->storage->recorded_changes - 1;
  if (family) {
    ++family->changes;
    family->base = y.get();
    if (family->kept) family->kept = Ref<TensorHeader>(y.get());
  }
  if (x->wrapper) rebind_wrapper(x->wrapper, y);
  return y;
}

bool take_retainer(const Tensor& x) {
  if (!x->grad_fn || place_of(*x.get()).retainer != x.get()) return false;
  place_of(*x.get()).retainer = nullptr;
  return true;
}

// The base after a change of its view: the gradient of the window goes to the view's new place.
void write_through(const Tensor& view) {
  const Ref<ViewFamily> family = view->family;
  const Tensor base = base_of(view);
  const bool retained = take_retainer(base);
  const Tensor y = moved_header(base, family.get());
  record(
      y, "change of a view",
      [window = Window(base, view)](Node& node, const Tensor& g, Tensor* dx) {
        if (node.wants(0)) dx[0] = clear_window(g, window);
        if (node.wants(1)) dx[1] = take_window(g, window);
      },
      base, view);
  if (retained) place_of(*y.get()).retainer = y.get();
  // From now on the view shows the change through its base, as views taken before do: hooks and
  // retained gradients of the base see what reaches it through any view. It is renewed when used.
  view->recorded_seen = family->changes - 1;
  view->behind_function = false;
  if (y->wrapper || family->kept) return;
  y->family.reset();
  family->kept = Ref<TensorHeader>(y.get());
}

void renew_in_family(const Tensor& view) {
  const Tensor base = base_of(view);
  if (view->behind_function && base.requires_grad()) fail_behind_function(view);
  view->recorded_seen = view->family->changes;
  if (!base.requires_grad()) return;
  const bool retained = take_retainer(view);
  record(
      view, "view",
      [window = Window(base, view)](Node&, const Tensor& g, Tensor* dx) {
        dx[0] = put_window(g, window);
      },
      base);
  if (retained) place_of(*view.get()).retainer = view.get();
}

// How many bytes the storage of `b` starts behind that of `a`. Storages are apart, unless both show
// memory that another library knows of, which also keeps it in its place.
std::optional<std::int64_t> distance(const Tensor& a, const Tensor& b) {
  if (a->storage == b->storage) return 0;
  if (!a->storage->shared_at || !b->storage->shared_at) return std::nullopt;
  return static_cast<const char*>(b->storage->place()) -
         static_cast<const char*>(a->storage->place());
}

[[maybe_unused]] const bool installed = [] {
  renew_view = renew_in_family;
  return true;
}();

}  // namespace

void check_kind_in_place(const char* op, DType type, const Tensor& target) {
  const auto rank = [](DType t) {
    return is_bool(t) ? 0 : is_integer(t) ? 1 : is_floating(t) ? 2 : 3;
  };
  if (rank(type) > rank(target.dtype()))
    fail(ErrorKind::type, op, ": a ", name_of(type), " result cannot be written in place into ",
         name_of(target.dtype()));
}

void InPlaceChange::check_device(const Tensor& source) const {
  if (source && source.device() != target_.device())
    fail(ErrorKind::value, op_, ": operands are on different devices: ", describe(target_), " and ",
         describe(source), "; move one of them with to(device)");
}

void InPlaceChange::check() const {
  const Tensor& x = target_;
  x.check_writable(op_);
  if (!modes.grad) return;
  if (recorded_ && x.requires_grad() && x.is_leaf())
    fail(ErrorKind::runtime, op_, ": in-place change of ", describe(x),
         ", a leaf that requires grad; do it under no_grad() or on a copy()");
  if (recorded_ && !is_spread(is_tracked_view(x) ? base_of(x) : x))
    fail(ErrorKind::runtime, op_, ": recorded in-place change of ", describe(x),
         ", whose memory shows elements several times; copy() it first");
  if (!x->is_view) return;
  if (!x->family) {
    if (recorded_ && x->behind_function) fail_behind_function(x);
    if (recorded_)
      fail(ErrorKind::runtime, op_, ": recorded in-place change of ", describe(x),
           ", a view taken while recording was off; write through the tensor it was taken from "
           "instead: base[index] = value");
    if (x->storage->in_graph && x->outside_graph != x->storage->leaves + 1)
      fail(ErrorKind::runtime, op_, ": in-place change of ", describe(x),
           ", a view of a tensor in the graph taken while recording was off; write through that "
           "tensor: base[index] = value, or under no_grad()");
    return;
  }
  const Tensor base = base_of(x);
  if (base.requires_grad() && base.is_leaf())
    fail(ErrorKind::runtime, op_, ": in-place change of ", describe(x),
         ", a view of a tensor in the graph, ", describe(base),
         ", which is a leaf that requires grad; do it under no_grad() or on a copy()");
}

bool InPlaceChange::may_overlap(const Tensor& x) const {
  const std::optional<std::int64_t> from = distance(x, target_);
  if (!from) return false;
  const ByteRange a = byte_range(x), b = byte_range(target_);
  return a.low < b.high + *from && b.low + *from < a.high;
}

bool InPlaceChange::is_target(const Tensor& x) const {
  if (x.dtype() != target_.dtype() || !(x.shape() == target_.shape()) ||
      !(x.strides() == target_.strides()))
    return false;
  const std::optional<std::int64_t> from = distance(x, target_);
  return from && x->offset_bytes == target_->offset_bytes + *from;
}

bool InPlaceChange::changes_nothing(const Tensor& x) const {
  if (!is_target(x)) return false;
  return !recorded_ || x.is(target_) || (x->family && x->family == target_->family);
}

Tensor InPlaceChange::apart(const Tensor& x) const {
  return overwrites(x) && !is_target(x) ? copy(x) : x;
}

// The target's own header moves on even where there is no element to overwrite.
Tensor InPlaceChange::before(const Tensor& x) const {
  return overwrites(x) || x.is(target_) ? copy(x) : x;
}

Tensor InPlaceChange::moved() const {
  return is_tracked_view(target_) ? target_ : moved_header(target_, target_->family.get());
}

bool InPlaceChange::give_up_retainer() const { return take_retainer(target_); }

void InPlaceChange::settle(const Tensor& y, bool retained) const {
  if (retained) place_of(*y.get()).retainer = y.get();
  if (is_tracked_view(y)) write_through(y);
}

}  // namespace tw
