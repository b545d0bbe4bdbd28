// Memory that something other than the default pool's fast path looks after: a user's pool, which
// may spill blocks to a file, or the arena of a planned backward pass.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/modes.h"

namespace tw {

class BlockSource;

struct Block {
  BlockSource* source;
  std::size_t bytes;  // asked for
  void* data;         // null while the block has no memory; use() and pin() say it is filled
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
  // Where new memory on `device` (null: the CPU) comes from while this source is in force; null:
  // from the device's own pool. A source serves the CPU alone unless it says otherwise.
  virtual BlockSource* serving(const Device* device) { return device ? nullptr : this; }
  // The block that has the memory, where this source has it from another one.
  virtual Block& holder(Block& block) { return block; }
  // What the block is for, as text; told while memory is observed.
  virtual void describe(Block&, std::string) {}
  // Keeps the source alive for tasks that run under their submitter's modes; null for a source that
  // ends with a scope, which tasks therefore do not inherit.
  virtual std::shared_ptr<BlockSource> share() { return nullptr; }
};

// Two sources as one: `inner` where it serves a device, `outer` where it does not.
class NestedSource final : public BlockSource {
 public:
  NestedSource(BlockSource* inner, BlockSource* outer) : inner_(inner), outer_(outer) {}
  NestedSource(std::shared_ptr<BlockSource> inner, std::shared_ptr<BlockSource> outer)
      : inner_(inner.get()),
        outer_(outer.get()),
        shared_inner_(std::move(inner)),
        shared_outer_(std::move(outer)) {}
  BlockSource* serving(const Device* device) override {
    BlockSource* const served = inner_ ? inner_->serving(device) : nullptr;
    return served || !outer_ ? served : outer_->serving(device);
  }
  std::shared_ptr<BlockSource> share() override {
    return std::make_shared<NestedSource>(inner_ ? inner_->share() : nullptr,
                                          outer_ ? outer_->share() : nullptr);
  }
  // Blocks are those of the two.
  Block* allocate(std::size_t) override { return nullptr; }
  void release(Block*) noexcept override {}
  bool use(Block&) override { return false; }
  void pin(Block&) override {}
  void unpin(Block&) noexcept override {}

 private:
  BlockSource *const inner_, *const outer_;
  const std::shared_ptr<BlockSource> shared_inner_, shared_outer_;
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
