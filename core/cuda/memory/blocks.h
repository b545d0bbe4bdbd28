// Memory of a GPU, cut from large pieces of the driver's: small blocks by size classes, large ones
// from ranges that are split and joined. Each stream has its own: work on it is in order, so what
// is freed there serves its next request at once. A block that other streams used serves again when
// they are done with it, and consumers wait on one whose contents are in flight.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/cuda/driver/stream.h"
#include "core/memory/block.h"
#include "core/memory/regions.h"
#include "core/memory/size_class.h"

namespace tw::cuda {

struct GpuMemory {
  std::size_t live = 0, reserved = 0, peak = 0, peak_reserved = 0;  // bytes
  std::uint64_t allocations = 0, releases = 0, driver_calls = 0;
  std::size_t limit = 0;    // of reserved bytes; 0: none
  std::size_t waiting = 0;  // bytes that other streams still use
};

// What a request takes.
std::size_t gpu_bytes(std::size_t bytes);

// A piece that small blocks are cut from.
struct GpuChunk {
  char* memory;
  std::uint32_t live = 0;
};

struct GpuBlock : Block {
  GpuStream* home = nullptr;  // whose order its memory serves in
  StreamSet users = 0;        // others that were asked to use it
  MarkRef arrival;            // its contents are there from here on; null: from the start
  MarkRef copied;             // all that was asked of it, and its copy elsewhere, are done
  StreamSet informed = 0;     // streams that wait for the arrival
  const char* op = "";        // that asked for it
  std::unique_ptr<std::string> description;  // tensor and line of the program, while observed
  std::size_t charged = 0;
  GpuChunk* chunk = nullptr;                    // null: a range of its own
  GpuBlock* next = nullptr;                     // in a list of free ones
  GpuBlock *older = nullptr, *newer = nullptr;  // among the live
};

class GpuBlocks final : public BlockSource {
 public:
  explicit GpuBlocks(Gpu& gpu) : gpu_(gpu) {}
  // On this thread's stream of the GPU. Raises MemoryError, which says what holds the memory.
  Block* allocate(std::size_t bytes) override;
  GpuBlock* allocate_on(GpuStream& stream, std::size_t bytes);
  void release(Block* block) noexcept override;
  bool use(Block& block) override;
  void pin(Block& block) override;
  void unpin(Block&) noexcept override {}
  void describe(Block& block, std::string text) override;
  // As use(), by a stream that is not the thread's.
  void use_on(GpuBlock& block, GpuStream& stream);
  // `stream` goes on when the contents are there and everyone who was asked to use them is done.
  void follow(const GpuBlock& block, GpuStream& stream);
  // `stream`, which follows it, has copied the block.
  void note_copy(GpuBlock& block, GpuStream& stream);
  // Nobody used the block since: its home goes on after the copy.
  void hand_back(GpuBlock& block);
  // The contents are there when `stream` has done what it was asked.
  void arrive(GpuBlock& block, GpuStream& stream);

  // Gives unused memory back to the driver, which waits for work that uses it.
  void trim();
  // Of reserved bytes; 0: none.
  void set_limit(std::size_t bytes);
  void reset_peaks();
  GpuMemory memory() const;

 private:
  struct Lane {  // of a stream
    GpuBlock* bins[kSizeClasses] = {};
    Regions regions;
    std::vector<std::unique_ptr<GpuChunk>> chunks;
    char *fresh = nullptr, *fresh_end = nullptr;  // the newest chunk's rest
  };
  struct Parked {  // until other streams have passed
    GpuBlock* block;
    std::vector<MarkRef> marks;
  };
  Lane& lane_of(const GpuStream& stream);
  GpuBlock* new_block();
  GpuBlock* carve(Lane& lane, int size_class, std::size_t bytes);
  char* cut(Lane& lane, std::size_t bytes);
  char* take_from_driver(std::size_t least, std::size_t& bytes);
  void recycle(GpuBlock& block) noexcept;
  void park(GpuBlock& block) noexcept;
  void unpark(bool wait);
  void settle(GpuBlock& block);
  void trim_locked();
  void trim_chunks(Lane& lane);
  void enlist(GpuBlock& block);
  void delist(GpuBlock& block) noexcept;
  [[noreturn]] void refuse(std::size_t bytes) const;
  std::string holders() const;

  Gpu& gpu_;
  mutable std::mutex mutex_;  // guards everything below, and blocks' marks
  GpuMemory memory_;
  std::unique_ptr<Lane> lanes_[kMostStreams];
  std::deque<Parked> parked_;
  GpuBlock* spare_ = nullptr;
  GpuBlock* newest_ = nullptr;  // live
};

}  // namespace tw::cuda
