// Tensor: a counted header (shape, strides, dtype, place in the autograd graph) over shared
// storage.
#pragma once
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/ref.h"
#include "core/base/shape.h"
#include "core/tensor/hooks.h"
#include "core/tensor/storage.h"

namespace tw {

class Tensor;
struct TensorHeader;
struct ViewFamily;

// Types whose tensors take part in the graph.
constexpr bool is_differentiable(DType t) { return is_floating(t) || is_complex(t); }

// The tensor floor's view of an autograd node: something counted that its results keep alive, with
// a place for what concerns the gradient of each of them.
struct ResultPlace;
struct NodeBase : Counted {
  std::uint8_t results = 1;
  ResultPlace* places = nullptr;  // by result
  virtual ~NodeBase() = default;
  // Long chains are taken apart in a loop, not by recursion.
  static void destroy(NodeBase* node) noexcept;
};

// What few tensors need, kept out of the header.
struct TensorExtras;

// What every op asks of its operands, in one word for all of them.
struct Marks {
  bool contiguous = false;     // row-major without gaps
  bool requires_grad = false;  // set for leaves and for results of recorded ops
  bool elsewhere = false;      // not on the CPU: its storage says where
  bool is_view = false;        // shares its storage with the tensor it was made from

  constexpr std::uint32_t word() const { return std::bit_cast<std::uint32_t>(*this); }
};

struct TensorHeader : Counted, Marks {
  // Of a view: how many recorded in-place changes (its family's, or the storage's where it has
  // none) its place in the graph takes in.
  std::uint32_t recorded_seen;
  DType dtype;
  std::uint8_t result = 0;  // which of its node's results it is
  // Of a view without a family, of a tensor that was detached: the storage's leaves then, plus one.
  std::uint8_t outside_graph = 0;
  // Of a view: a function with a gradient of its own stands between it and its base.
  bool behind_function = false;
  Ref<Storage> storage;
  std::int64_t offset_bytes;
  std::int64_t count;      // elements
  Ref<NodeBase> grad_fn;   // the op that made this; null for leaves
  Ref<ViewFamily> family;  // of a tensor and the views of it
  Shape shape;
  Strides strides;  // in elements
  std::unique_ptr<TensorExtras> extras;
  void* wrapper = nullptr;  // weak link to the frontend's object, owned by the binding

  // Shape and strides are made where they stay.
  template <class MakeShape, class MakeStrides>
  TensorHeader(Ref<Storage>&& memory, std::int64_t offset_bytes, std::int64_t count, DType dtype,
               bool contiguous, MakeShape make_shape, MakeStrides make_strides)
      : Marks{.contiguous = contiguous, .elsewhere = memory->device != nullptr},
        recorded_seen(memory->recorded_changes),
        dtype(dtype),
        storage(std::move(memory)),
        offset_bytes(offset_bytes),
        count(count),
        shape(make_shape()),
        strides(make_strides(shape)) {}
  static void destroy(TensorHeader* header) noexcept;
};

// A tensor (the base) and its recordable views, which have a place in the graph each and one memory
// in common: a recorded in-place change of one moves the places of all. Views taken while recording
// was off have no family: their changes cannot be recorded.
struct ViewFamily : Counted {
  TensorHeader* base;         // its header now; weak
  Ref<TensorHeader> kept;     // the same, once the views alone hold it
  std::uint32_t changes = 0;  // recorded ones

  explicit ViewFamily(TensorHeader* base) : base(base) {}
  static void destroy(ViewFamily* family) noexcept;
  // Makes `view` one more view of what `x` shows. `x` is no view, or one with a family.
  static void join(TensorHeader& x, TensorHeader& view);
};

// Makes the frontend's object behind a header stand for another one; installed by the binding.
extern void (*rebind_wrapper)(void* wrapper, const Tensor& to);
// Frees the frontend's object that a header holds (a leaf's that the program has dropped and the
// graph has not), as the header ends. False where the program has the object again: it then holds
// the header. Installed by the binding.
extern bool (*release_wrapper)(TensorHeader& header);

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorHeader> header) : header_(std::move(header)) {}
  // Fresh contiguous memory, contents unspecified.
  static Tensor empty(const Shape& shape, DType dtype) {
    return fresh(shape, element_count(shape), dtype);
  }
  // Fresh contiguous memory of the shape of `x`.
  static Tensor empty_like(const Tensor& x, DType dtype);
  static Tensor empty_like(const Tensor& x) { return empty_like(x, x.dtype()); }
  // Fresh memory whose number of elements, and row-major strides, are known.
  static Tensor fresh(DimsView shape, std::int64_t count, DType dtype);
  static Tensor fresh(const Shape& shape, const Strides& strides, std::int64_t count, DType dtype);
  // A header over existing storage; strides in elements.
  static Tensor over(Ref<Storage> storage, std::int64_t offset_bytes, const Shape& shape,
                     const Strides& strides, DType dtype);

  // A second header over the same elements, without a place in the graph.
  Tensor detached() const;

  explicit operator bool() const { return static_cast<bool>(header_); }
  TensorHeader* get() const { return header_.get(); }
  TensorHeader* operator->() const { return header_.get(); }
  bool is(const Tensor& other) const { return header_ == other.header_; }

  const Shape& shape() const { return header_->shape; }
  const Strides& strides() const { return header_->strides; }
  std::int64_t size(int axis) const { return header_->shape[axis]; }
  int rank() const { return header_->shape.rank(); }
  std::int64_t count() const { return header_->count; }
  DType dtype() const { return header_->dtype; }
  bool contiguous() const { return header_->contiguous; }
  bool requires_grad() const { return header_->requires_grad; }
  bool is_leaf() const { return !header_->grad_fn; }
  std::size_t item_bytes() const { return size_of(header_->dtype); }
  // The first element of bytes that are pinned; Access yields addresses of any others.
  char* pinned_bytes() const {
    return static_cast<char*>(header_->storage->place()) + header_->offset_bytes;
  }
  const Device* device() const { return header_->storage->device; }  // null: the CPU
  std::uint32_t version() const { return header_->storage->version; }
  // Raises ValueError for read-only memory and for tensors whose elements share memory.
  void check_writable(const char* op) const;
  // Call before every in-place write: checks, then counts the change.
  void touch(const char* op) const;

  TensorExtras& extras() const;  // created on first use
  Tensor grad() const;           // empty where there is none

 private:
  Ref<TensorHeader> header_;
};

// Whether several elements lie in one place, as broadcasting makes it, and windows over an array
// that come from another library. Of strides that no view of ours has (an axis within the reach of
// smaller ones) it says so too where the elements happen to miss each other.
bool shares_elements(const Tensor& x);

// The bytes from a tensor's first to its last element, from the start of its storage's memory.
struct ByteRange {
  std::int64_t low, high;
};
ByteRange byte_range(const Tensor& x);

struct ResultPlace {
  Tensor pending;                    // the gradient so far, while a pass runs
  TensorHeader* retainer = nullptr;  // the result that asked to keep its gradient; weak
  std::unique_ptr<HookList> hooks;
};
// The place of a result of a recorded op.
inline ResultPlace& place_of(const TensorHeader& x) { return x.grad_fn->places[x.result]; }

struct TensorExtras {
  Tensor grad;
  HookList forward_hooks, backward_hooks;
  HookList grad_hooks;  // of leaves, called with the leaf once a pass has added to its grad
  // Whether a pass must call something with the complete gradient.
  bool has_gradient_hooks() const { return !backward_hooks.empty() || !grad_hooks.empty(); }
  std::string name;  // shown in errors
};

// "float32 (2, 3)", with the tensor's name in front where it has one.
std::string describe(const Tensor& x);
// The same, with the device where that is the CPU.
std::string placed(const Tensor& x);

}  // namespace tw
