// Pinned memory of the host: copies from and to GPUs go on beside the program. A block that a copy
// still reads or writes is waited for before the CPU uses it, and serves again when it is free.
#pragma once
#include <deque>
#include <mutex>
#include <vector>

#include "core/cuda/driver/stream.h"
#include "core/memory/block.h"
#include "core/memory/pool.h"
#include "core/memory/regions.h"

namespace tw::cuda {

struct PinnedBlock : Block {
  std::vector<MarkRef> copies;  // in flight, one a stream
  std::size_t charged = 0;
};

class PinnedBlocks final : public BlockSource {
 public:
  // For all GPUs. Raises RuntimeError where there is none.
  static PinnedBlocks& all();
  // A block of its own, or of a pool over pinned memory.
  static PinnedBlock* find(Block* block);

  Block* allocate(std::size_t bytes) override;  // raises MemoryError
  void release(Block* block) noexcept override;
  bool use(Block& block) override;
  // The same for callers that hold locks: the frontend's is kept.
  void wait_for_copies(PinnedBlock& block);
  void pin(Block& block) override { use(block); }
  void unpin(Block&) noexcept override {}

  // A copy of the block ends at the mark.
  void add_copy(PinnedBlock& block, MarkRef mark);
  // `stream` goes on when the copies so far are done.
  void follow(PinnedBlock& block, const GpuStream& stream);
  PoolStats stats() const;
  std::int64_t trim();

 private:
  PinnedBlocks() = default;
  void take_back(PinnedBlock* block) noexcept;
  void collect(bool wait);
  char* cut(std::size_t bytes);

  mutable std::mutex mutex_;  // guards all below, and copies of blocks
  Regions regions_;
  PoolStats stats_{};
  std::deque<PinnedBlock*> busy_;  // given back, while copies use them
};

}  // namespace tw::cuda
