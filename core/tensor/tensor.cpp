#include "core/tensor/tensor.h"

#include <cstdlib>
#include <utility>

#include "core/base/error.h"
#include "core/base/free_list.h"
#include "core/memory/events.h"
#include "core/memory/texts.h"
#include "core/runtime/device.h"

namespace tw {

namespace {

bool is_contiguous(const Shape& shape, const Strides& strides) {
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

// Blocks of more are told one by one where memory runs out.
constexpr std::int64_t kLeastToldBytes = 1 << 20;

[[gnu::noinline, gnu::cold]] void announce(const Shape& shape, DType dtype) {
  TextKey key;
  key.add(static_cast<std::uint64_t>(dtype));
  key.add_extents(shape);
  announce_tensor(
      text_of(key, [&] { return std::string(name_of(dtype)) + " " + to_string(shape); }));
}

template <class... Fields> [[gnu::always_inline]] inline Tensor with_header(Fields&&... fields) {
  void* const memory = FreeList<TensorHeader>::take();
  return Tensor(Ref<TensorHeader>(new (memory) TensorHeader(std::forward<Fields>(fields)...)));
}

[[gnu::always_inline]] inline std::int64_t bytes_of(DimsView shape, std::int64_t count, DType dtype,
                                                    ErrorKind otherwise) {
  std::int64_t bytes;
  if (__builtin_mul_overflow(count, static_cast<std::int64_t>(size_of(dtype)), &bytes))
    fail(otherwise, "a ", name_of(dtype), " tensor of shape ", Shape(shape),
         " is too large: its bytes do not fit 64 bits");
  return bytes;
}

[[gnu::always_inline]] inline Ref<Storage> memory_for(DimsView shape, std::int64_t count,
                                                      DType dtype) {
  const std::int64_t bytes = bytes_of(shape, count, dtype, ErrorKind::memory);
  if (logs_memory() || bytes > kLeastToldBytes) [[unlikely]]
    announce(Shape(shape), dtype);
  return Storage::allocate(static_cast<std::size_t>(bytes));
}

}  // namespace

[[gnu::hot]] Tensor Tensor::fresh(const Shape& shape, const Strides& strides, std::int64_t count,
                                  DType dtype) {
  return with_header(
      memory_for(shape, count, dtype), 0, count, dtype, true, [&] { return shape; },
      [&](const Shape&) { return strides; });
}

[[gnu::hot]] Tensor Tensor::fresh(DimsView shape, std::int64_t count, DType dtype) {
  return with_header(
      memory_for(shape, count, dtype), 0, count, dtype, true, [&] { return Shape(shape); },
      [](const Shape& of) { return contiguous_strides(of); });
}

Tensor Tensor::empty_like(const Tensor& x, DType dtype) {
  if (!x.contiguous()) return empty(x.shape(), dtype);
  return fresh(x.shape(), x.strides(), x.count(), dtype);
}

[[gnu::hot]] Tensor Tensor::over(Ref<Storage> storage, std::int64_t offset_bytes,
                                 const Shape& shape, const Strides& strides, DType dtype) {
  const std::int64_t count = element_count(shape);
  bytes_of({shape.begin(), shape.end()}, count, dtype, ErrorKind::value);
  return with_header(
      std::move(storage), offset_bytes, count, dtype, count == 0 || is_contiguous(shape, strides),
      [&] { return shape; }, [&](const Shape&) { return strides; });
}

Tensor Tensor::detached() const {
  const TensorHeader& x = *header_;
  return with_header(
      Ref<Storage>(x.storage), x.offset_bytes, x.count, x.dtype, x.contiguous,
      [&] { return x.shape; }, [&](const Shape&) { return x.strides; });
}

void NodeBase::destroy(NodeBase* node) noexcept {
  static bool taking_apart = false;
  static std::vector<NodeBase*> waiting;
  if (taking_apart) return waiting.push_back(node);
  taking_apart = true;
  for (delete node; !waiting.empty();) {
    node = waiting.back();
    waiting.pop_back();
    delete node;
  }
  taking_apart = false;
}

void (*rebind_wrapper)(void* wrapper, const Tensor& to) = [](void*, const Tensor&) {};
bool (*release_wrapper)(TensorHeader& header) = [](TensorHeader&) { return true; };

void ViewFamily::destroy(ViewFamily* family) noexcept {
  family->~ViewFamily();
  FreeList<ViewFamily>::give(family);
}

void ViewFamily::join(TensorHeader& x, TensorHeader& view) {
  if (!x.family) x.family = Ref<ViewFamily>(new (FreeList<ViewFamily>::take()) ViewFamily(&x));
  view.family = x.family;
  view.recorded_seen = x.family->changes;
  view.behind_function = x.behind_function;
}

namespace {

// The last handle of a base leaves it to its views, where there are some.
bool left_to_views(TensorHeader* header) noexcept {
  const Ref<ViewFamily> family = std::move(header->family);
  if (family->base != header || family->references == 1) return false;
  header->extras.reset();
  family->kept = Ref<TensorHeader>(header);
  return true;
}

}  // namespace

[[gnu::hot]] void TensorHeader::destroy(TensorHeader* header) noexcept {
  if (header->wrapper && !release_wrapper(*header)) return;
  if (header->grad_fn && place_of(*header).retainer == header) place_of(*header).retainer = nullptr;
  if (header->family && left_to_views(header)) return;
  header->~TensorHeader();
  FreeList<TensorHeader>::give(header);
}

void Tensor::check_writable(const char* op) const {
  if (!header_->storage->writable)
    fail(ErrorKind::value, op, ": the tensor's memory is read-only; copy() it first");
  if (shares_elements(*this))
    fail(ErrorKind::value, op, ": elements of ", describe(*this),
         ", broadcast or overlapping windows, share memory; copy() it first");
}

void Tensor::touch(const char* op) const {
  check_writable(op);
  header_->storage->count_change();
}

ByteRange byte_range(const Tensor& x) {
  const auto item = static_cast<std::int64_t>(x.item_bytes());
  ByteRange range{x->offset_bytes, x->offset_bytes};
  if (x.count() == 0) return range;
  range.high += item;
  for (int i = 0; i < x.rank(); ++i) {
    const std::int64_t reach = (x.size(i) - 1) * x.strides()[i] * item;
    (reach < 0 ? range.low : range.high) += reach;
  }
  return range;
}

bool shares_elements(const Tensor& x) {
  if (x.contiguous() || x.count() == 0) return false;
  Strides steps;  // of axes that have some, ascending
  Shape sizes;
  for (int i = 0; i < x.rank(); ++i) {
    if (x.size(i) == 1) continue;
    steps.push_back(std::abs(x.strides()[i]));
    sizes.push_back(x.size(i));
    for (int at = steps.rank() - 1; at > 0 && steps[at - 1] > steps[at]; --at) {
      std::swap(steps[at - 1], steps[at]);
      std::swap(sizes[at - 1], sizes[at]);
    }
  }
  std::int64_t reach = 0;  // of the axes before, from their first element to the last
  for (int i = 0; i < steps.rank(); ++i) {
    if (steps[i] <= reach) return true;
    reach += steps[i] * (sizes[i] - 1);
  }
  return false;
}

TensorExtras& Tensor::extras() const {
  if (!header_->extras) header_->extras = std::make_unique<TensorExtras>();
  return *header_->extras;
}

Tensor Tensor::grad() const { return header_->extras ? header_->extras->grad : Tensor(); }

std::string describe(const Tensor& x) {
  std::string text;
  if (x->extras && !x->extras->name.empty()) text = "'" + x->extras->name + "' ";
  text += name_of(x.dtype()) + (" " + to_string(x.shape()));
  return x->elsewhere ? text + " on '" + x.device()->name + "'" : text;
}
std::string placed(const Tensor& x) { return describe(x) + (x->elsewhere ? "" : " on 'cpu'"); }

}  // namespace tw
