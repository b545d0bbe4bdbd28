// Tensor: a counted header (shape, strides, dtype, place in the autograd graph) over shared
// storage.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/ref.h"
#include "core/base/shape.h"
#include "core/tensor/storage.h"

namespace tw {

class Tensor;
struct TensorHeader;

// The tensor floor's view of an autograd node: something counted that a result keeps alive.
struct NodeBase : Counted {
  TensorHeader* retainer = nullptr;  // the result that asked to keep its gradient; weak
  virtual ~NodeBase() = default;
  // Long chains are taken apart in a loop, not by recursion.
  static void destroy(NodeBase* node) noexcept;
};

// Called with a value or gradient; a non-empty result replaces it.
using Hook = std::function<Tensor(const Tensor&)>;
struct HookEntry {
  std::uint64_t id;
  Hook call;
};

// What few tensors need, kept out of the header.
struct TensorExtras;

struct TensorHeader : Counted {
  Ref<Storage> storage;
  std::int64_t offset_bytes = 0;
  std::int64_t count = 0;  // elements
  DType dtype = DType::float32;
  bool contiguous = true;      // row-major without gaps
  bool requires_grad = false;  // set for leaves and for results of recorded ops
  bool is_view = false;        // shares its storage with the tensor it was made from
  // The storage's recorded_changes when this header was made; kUntracked for headers outside any
  // graph.
  std::uint32_t recorded_seen = 0;
  Ref<NodeBase> grad_fn;  // the op that made this; null for leaves
  Shape shape;
  Strides strides;  // in elements
  std::unique_ptr<TensorExtras> extras;
  void* wrapper = nullptr;  // weak link to the frontend's object, owned by the binding

  static void destroy(TensorHeader* header) noexcept;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorHeader> header) : header_(std::move(header)) {}
  // Fresh contiguous memory, contents unspecified.
  static Tensor empty(const Shape& shape, DType dtype);
  // Fresh contiguous memory of the shape of `x`.
  static Tensor empty_like(const Tensor& x, DType dtype);
  static Tensor empty_like(const Tensor& x) { return empty_like(x, x.dtype()); }
  // A header over existing storage; strides in elements.
  static Tensor over(Ref<Storage> storage, std::int64_t offset_bytes, const Shape& shape,
                     const Strides& strides, DType dtype);

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
  char* bytes() const {
    return static_cast<char*>(header_->storage->use()) + header_->offset_bytes;
  }
  // The same for bytes that are pinned, without counting as used by the op at work.
  char* pinned_bytes() const {
    return static_cast<char*>(header_->storage->data) + header_->offset_bytes;
  }
  template <class T> T* data() const { return reinterpret_cast<T*>(bytes()); }
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

inline constexpr std::uint32_t kUntracked = 0xffffffffu;

// Whether several elements lie in one place, as broadcasting makes it.
bool shares_elements(const Tensor& x);

struct TensorExtras {
  Tensor grad;
  std::vector<HookEntry> forward_hooks, backward_hooks;
  std::string name;  // shown in errors
};

// "float32 (2, 3)", with the tensor's name in front where it has one.
std::string describe(const Tensor& x);

}  // namespace tw
