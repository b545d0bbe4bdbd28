// A run of bytes that tensors share: owned by the pool, or borrowed from another library.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/ref.h"
#include "core/memory/block.h"

namespace tw {

struct Storage : Counted {
  void* data = nullptr;
  std::size_t bytes = 0;
  // Counts in-place changes; autograd compares it with what it saved.
  std::uint32_t version = 0;
  // Recorded in-place changes: views taken before the last one show its values, but not its graph.
  std::uint32_t recorded_changes = 0;
  bool in_graph = false;  // some tensor over these bytes has required grad
  bool writable = true;
  // For borrowed memory: gives it back to its owner. Null: the bytes belong to the pool.
  void (*give_back)(void* owner) = nullptr;
  void* owner = nullptr;
  // For memory that is not the default pool's own: asked before every use of `data`.
  Block* block = nullptr;

  static Ref<Storage> allocate(std::size_t bytes);
  static Ref<Storage> borrow(void* data, std::size_t bytes, bool writable, void* owner,
                             void (*give_back)(void*));
  static void destroy(Storage* storage) noexcept;
  // Where the bytes are, brought back first where they lie elsewhere. Valid until the op that is
  // being prepared or run has ended.
  void* use() {
    if (block) [[unlikely]]
      use_block();
    return data;
  }
  // Pinned bytes stay where they are: for addresses that outlast an op.
  void pin() {
    if (!block) return;
    block->source->pin(*block);
    data = block->data;
  }
  void unpin() noexcept {
    if (block) block->source->unpin(*block);
  }

 private:
  void use_block();
};

// Keeps bytes in place for a scope.
class Pinned {
 public:
  explicit Pinned(Ref<Storage> storage) : storage_(std::move(storage)) { storage_->pin(); }
  ~Pinned() { storage_->unpin(); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  const Ref<Storage> storage_;
};

}  // namespace tw
