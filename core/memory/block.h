// Memory that something other than the default pool's fast path looks after: a user's pool, which
// may spill blocks to a file, or the arena of a planned backward pass.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tw {

class BlockSource;

struct Block {
  BlockSource* source;
  std::size_t bytes;  // asked for
  void* data;         // null while the contents lie elsewhere
};

class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // 64-byte aligned, contents unspecified. Raises MemoryError. A block without a source is memory
  // of the default pool, which the storage takes over; its header stays with the source.
  virtual Block* allocate(std::size_t bytes) = 0;
  virtual void release(Block* block) noexcept = 0;
  // Makes `data` valid until the op that is being prepared or run has ended; raises OSError where
  // the contents cannot be brought back.
  virtual void use(Block& block) = 0;
  // While a block is pinned (its address is known outside the engine) it keeps its place.
  virtual void pin(Block& block) = 0;
  virtual void unpin(Block& block) noexcept = 0;
  // An op that used the block has ended; see op_uses.h. The block may have been released since.
  virtual void end_use(Block*, std::uint64_t /*life*/) noexcept {}
};

// Where this thread's new storages come from; null: the default pool. initial-exec: read by every
// eager op.
#ifdef __GLIBC__
extern thread_local BlockSource* block_source __attribute__((tls_model("initial-exec")));
#else
extern thread_local BlockSource* block_source;
#endif

// Puts a source in force for a scope.
class BlockSourceGuard {
 public:
  explicit BlockSourceGuard(BlockSource* source) : before_(block_source) { block_source = source; }
  ~BlockSourceGuard() { block_source = before_; }
  BlockSourceGuard(const BlockSourceGuard&) = delete;
  BlockSourceGuard& operator=(const BlockSourceGuard&) = delete;

 private:
  BlockSource* before_;
};

}  // namespace tw
