// Memory of a pass whose allocations are known beforehand: their lifetimes are recorded in a dry
// run, laid out in one arena, and handed out again in the same order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/memory/block.h"

namespace tw {

struct PlannedBlock {
  std::size_t bytes;         // asked for
  std::uint32_t begin, end;  // ticks of the recording at which it lives: [begin, end)
  bool own = false;          // outlives the pass, so it lies outside the arena
  std::size_t offset = 0;    // in the arena, a multiple of 64
};

struct ArenaPlan {
  std::vector<PlannedBlock> blocks;  // in order of allocation
  std::vector<std::size_t> steps;    // index of the first block of each step
  std::size_t arena_bytes = 0;
  std::size_t sum_bytes = 0;          // of the blocks in the arena
  std::size_t lower_bound_bytes = 0;  // most of them alive at one time
  std::size_t live_bytes = 0;         // most alive at one time, own blocks included
  std::size_t own_blocks = 0;
};

// Gives every block that is not its own an offset, so that blocks alive at one time lie apart:
// best fit in order of time, and for few blocks greedily by size (Pisarchyk and Lee, "Efficient
// memory management for deep neural net inference", 2020) where that needs less.
void lay_out(ArenaPlan& plan);

// Records allocations and releases. The blocks all lie in one place that nothing may read or write:
// reserved addresses without memory behind them.
class ArenaRecorder final : public BlockSource {
 public:
  // Of allocations on one device; null: the CPU.
  explicit ArenaRecorder(const Device* device = nullptr) : device_(device) {}
  ~ArenaRecorder() override;
  Block* allocate(std::size_t bytes) override;
  void release(Block* block) noexcept override;
  bool use(Block&) override { return false; }
  void pin(Block&) override {}
  void unpin(Block&) noexcept override {}
  BlockSource* serving(const Device* device) override { return device == device_ ? this : nullptr; }

  // The blocks that follow belong to the next step.
  void begin_step() { plan_.steps.push_back(plan_.blocks.size()); }
  // Someone may keep this block: it gets memory of its own.
  void expose(const Block* block);
  // The pass is over: blocks that live now outlive it.
  void end();
  // What was recorded, laid out. Call once, after end().
  ArenaPlan plan();

 private:
  struct Recorded : Block {
    std::size_t index;
  };
  struct Reserve {
    char* memory;
    std::size_t bytes;
  };
  const Device* const device_;
  ArenaPlan plan_;
  std::vector<Reserve> reserves_;
  std::uint32_t tick_ = 0;
  bool ended_ = false;
};

// Hands out the blocks of a plan in its order. The plan is a proposal: a block of another size, or
// one whose place is still taken, comes from the source that was in force before, and is counted.
class Arena final : public BlockSource {
 public:
  // Takes the arena and the own blocks from `outer` (null: the default pool of the CPU), whose
  // memory is on `device`; what is on others comes from `before`. Raises MemoryError.
  static Arena* open(ArenaPlan plan, BlockSource* outer, const Device* device = nullptr,
                     BlockSource* before = nullptr);
  // No allocation follows; the memory goes back once the last block of the arena is released.
  void close() noexcept;

  Block* allocate(std::size_t bytes) override;
  void release(Block* block) noexcept override;
  bool use(Block& block) override;
  void pin(Block&) override {}
  void unpin(Block&) noexcept override {}
  BlockSource* serving(const Device* device) override {
    if (device == device_) return this;
    return before_ ? before_->serving(device) : nullptr;
  }

  // Goes on with the blocks of step `step`, wherever the one before ended.
  void begin_step(std::size_t step);
  std::size_t fallbacks() const { return fallbacks_; }
  const ArenaPlan& plan() const { return plan_; }

 private:
  Arena(ArenaPlan plan, BlockSource* outer, const Device* device, BlockSource* before);
  void reserve();
  Block* take_outside(std::size_t bytes);
  void give_outside(Block* block) noexcept;
  bool occupy(std::size_t index);

  struct Slot : Block {
    Block* own = nullptr;  // where the block lies outside the arena, until it is handed out
  };
  struct Extent {
    std::size_t begin, end;
  };
  ArenaPlan plan_;
  BlockSource* outer_;
  const Device* const device_;
  BlockSource* const before_;
  Block* memory_ = nullptr;
  std::vector<Slot> slots_;         // one a planned block
  std::vector<Block> pool_blocks_;  // headers of own blocks from the default pool
  Block fallback_ = {};
  std::vector<Extent> occupied_;  // by address
  std::size_t next_ = 0, fallbacks_ = 0;
  bool closed_ = false;
};

}  // namespace tw
