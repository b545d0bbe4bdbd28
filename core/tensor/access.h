// Addresses of tensors. Blocks may leave memory between ops (core/memory/block.h), so that an
// address is known only to the launch that pinned its block.
#pragma once
#include "core/tensor/tensor.h"

namespace tw {

// What one launch reads and writes stays in its place while this lives, whatever other ops run
// meanwhile. Take saved values first (they may rerun a checkpoint), then the inputs, then allocate
// the results: fewer blocks move. Lives and ends under the frontend's lock. In a dry run, where no
// kernel runs, it brings nothing back: what reads on the host uses Pinned.
class Access {
 public:
  Access() = default;
  ~Access() {
    if (held_) [[unlikely]]
      release();
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  // The first element of `x`.
  char* operator()(const Tensor& x) { return start_of(*x->storage) + x->offset_bytes; }
  char* start_of(Storage& storage) {
    return static_cast<char*>(storage.block ? pin(storage) : storage.data);
  }
  template <class T> T* as(const Tensor& x) { return reinterpret_cast<T*>((*this)(x)); }

 private:
  struct Held {
    Ref<Storage> storage;
    Held* next;
  };
  [[gnu::noinline, gnu::cold]] void* pin(Storage& storage);
  [[gnu::noinline, gnu::cold]] void release() noexcept;

  Held* held_ = nullptr;
};

}  // namespace tw
