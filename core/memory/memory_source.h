// Where a pool with a quota has its bytes, and the tier that they leave to: the processor's memory
// above files; for a GPU its own memory above pinned memory, and that above files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/memory/block.h"
#include "core/memory/heap.h"
#include "core/memory/spill.h"

namespace tw {

// Called under the lock of the pool it belongs to, unless a method says otherwise.
class PoolMemory {
 public:
  struct Piece {
    void* data = nullptr;
    Block* inner = nullptr;  // of the memory's own source, where it has one
  };
  virtual ~PoolMemory() = default;
  virtual const Device* device() const { return nullptr; }  // null: the CPU
  virtual const char* device_name() const { return "cpu"; }
  // What a request takes of the quota.
  virtual std::int64_t charged(std::size_t bytes) const = 0;
  virtual Piece allocate(std::size_t bytes) = 0;  // raises MemoryError
  virtual void release(const Piece& piece, std::size_t bytes) noexcept = 0;
  // A launch uses the piece; also without the lock.
  virtual void use(const Piece&) {}
  // Someone outside reads or writes it from now on, or the CPU does.
  virtual void expose(const Piece&) {}
  virtual PoolStats stats() = 0;
  virtual void reset_peaks() = 0;
  virtual std::int64_t trim() = 0;
  virtual std::shared_ptr<SpillTier> make_tier() = 0;  // without the lock
  // Whether copies to the tier go on beside the program, so that they may be made before they must.
  virtual bool copies_beside() const { return false; }
  // Around the copy of a piece to the tier, without the lock; the piece leaves then, or later,
  // unused until then.
  virtual void before_copy(const Piece&) {}
  virtual void after_copy(const Piece&) {}
  virtual void leave(const Piece&) {}
  // Around the copy of a piece back; what is after it, without the lock.
  virtual void before_arriving(const Piece&) {}
  virtual void after_arriving(const Piece&) {}
};

class HeapMemory final : public PoolMemory {
 public:
  // Reserved memory is kept below `limit` where nothing live stands against that.
  HeapMemory(std::int64_t limit, std::string spill_parent)
      : heap_(limit), cache_(heap_.attach()), spill_parent_(std::move(spill_parent)) {}
  ~HeapMemory() override { heap_.detach(cache_); }
  std::int64_t charged(std::size_t bytes) const override {
    return static_cast<std::int64_t>(charged_bytes(bytes));
  }
  Piece allocate(std::size_t bytes) override { return {heap_.allocate(*cache_, bytes), nullptr}; }
  void release(const Piece& piece, std::size_t bytes) noexcept override {
    heap_.release(*cache_, piece.data, bytes);
  }
  PoolStats stats() override { return heap_.stats(); }
  void reset_peaks() override { heap_.reset_peaks(); }
  std::int64_t trim() override { return heap_.trim(*cache_); }
  std::shared_ptr<SpillTier> make_tier() override { return SpillFolder::create(spill_parent_); }

 private:
  Heap heap_;
  Cache* const cache_;
  const std::string spill_parent_;
};

}  // namespace tw
