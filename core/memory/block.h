// Memory that something other than the default pool's fast path looks after: a user's pool, which
// may spill blocks to a file, or the arena of a planned backward pass.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/modes.h"

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
  // 64-byte aligned, contents unspecified. Raises MemoryError. Where the result's `source` is null,
  // its `data` is memory of the default pool: the storage then owns that memory as if it had asked
  // the pool itself, while this source keeps the Block object.
  virtual Block* allocate(std::size_t bytes) = 0;
  virtual void release(Block* block) noexcept = 0;
  // Makes `data` valid for a launch and counts as use of the block. True where the launch holds a
  // pin now, which it owes an unpin at its end; blocks that never move need none. Raises OSError
  // where the contents cannot be brought back.
  virtual bool use(Block& block) = 0;
  // While a block is pinned it keeps its place.
  virtual void pin(Block& block) = 0;
  virtual void unpin(Block& block) noexcept = 0;
  // For tasks that take this source on; null where it is no longer than a scope.
  virtual std::shared_ptr<BlockSource> share() { return nullptr; }
};

// Where this thread's new storages come from, for a scope.
class BlockSourceGuard {
 public:
  explicit BlockSourceGuard(BlockSource* source) : before_(modes.source) { modes.source = source; }
  ~BlockSourceGuard() { modes.source = before_; }
  BlockSourceGuard(const BlockSourceGuard&) = delete;
  BlockSourceGuard& operator=(const BlockSourceGuard&) = delete;

 private:
  BlockSource* before_;
};

}  // namespace tw
