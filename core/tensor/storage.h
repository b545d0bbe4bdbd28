// A run of bytes that tensors share: owned by the pool, or borrowed from another library.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/ref.h"
#include "core/memory/block.h"

namespace tw {

struct Storage : Counted {
  void* data = nullptr;  // null where `block` says where the bytes are
  std::size_t bytes = 0;
  // Counts in-place changes; autograd compares it with what it saved.
  std::uint32_t version = 0;
  // Recorded in-place changes: a view that does not belong to a ViewFamily and is older than the
  // last one shows its values, but not its graph.
  std::uint32_t recorded_changes = 0;
  bool in_graph = false;  // some tensor over these bytes has required grad
  bool writable = true;
  std::uint8_t leaves = 0;  // how often one over these bytes was made a leaf later, up to 254
  // Where the list of shared memory has it, plus one; 0: no other storage can show these bytes.
  std::uint32_t shared_at = 0;
  std::uint32_t run = 0;  // of a checkpointed function, in which it was made; 0: in none
  // For borrowed memory: gives it back to its owner. Null: the bytes belong to the pool.
  void (*give_back)(void* owner) = nullptr;
  void* owner = nullptr;
  const Device* device = nullptr;  // null: the CPU
  // For memory that is not the default pool's own: its source is asked before every use.
  Block* block = nullptr;

  // On this thread's device.
  static Ref<Storage> allocate(std::size_t bytes);
  static Ref<Storage> borrow(void* data, std::size_t bytes, bool writable, void* owner,
                             void (*give_back)(void*));
  static void destroy(Storage* storage) noexcept;
  // Where the bytes are while they are pinned; null while they lie elsewhere.
  void* place() const { return block ? block->data : data; }
  // Pinned bytes stay where they are. Ops pin through Access, addresses that outlast an op here.
  void pin() {
    if (block) block->source->pin(*block);
  }
  void unpin() noexcept {
    if (block) block->source->unpin(*block);
  }
  // Counts an in-place change, also for every storage over the same memory: what NumPy or DLPack
  // hand back is a storage of its own.
  void count_change() {
    ++version;
    if (shared_at) [[unlikely]]
      count_shared_change();
  }
  // Says that other storages may show the bytes from `low` up to `high`.
  void share(const char* low, const char* high);
  // The end of one share().
  void unshare() noexcept;

 private:
  void count_shared_change();
};

// Keeps bytes in place for a scope, beyond the op at work.
class Pinned {
 public:
  explicit Pinned(Ref<Storage> storage) : storage_(std::move(storage)) { storage_->pin(); }
  ~Pinned() { storage_->unpin(); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  const Ref<Storage> storage_;
};

// Bytes that another library has the address of: they keep their place, and changes of them are
// seen by the storages that come back from there.
class Lent {
 public:
  explicit Lent(Ref<Storage> storage) : pinned_(storage), storage_(std::move(storage)) {
    const char* low = static_cast<const char*>(storage_->place());
    storage_->share(low, low + storage_->bytes);
  }
  ~Lent() { storage_->unshare(); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  const Pinned pinned_;
  const Ref<Storage> storage_;
};

}  // namespace tw
