// Copies between the host and a GPU beside its other work: a stream for each direction, and a ring
// of pinned memory that pageable memory passes through.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <mutex>

#include "core/cuda/memory/blocks.h"
#include "core/cuda/memory/small_transfers.h"
#include "core/memory/events.h"
#include "core/runtime/device.h"

namespace tw::cuda {

struct CopyFigures {
  std::uint64_t uploads = 0, downloads = 0, upload_bytes = 0, download_bytes = 0;
  std::uint64_t staged_bytes = 0;                        // of both, through the ring
  std::uint64_t small_uploads = 0, small_downloads = 0;  // by small transfers
};

// New memory for copies from the host: it serves in the order of the stream they are on, so that
// they need not wait for the kernels before them.
class Arrivals final : public BlockSource {
 public:
  explicit Arrivals(Gpu& gpu) : gpu_(gpu) {}
  Block* allocate(std::size_t bytes) override;
  BlockSource* serving(const Device*) override { return this; }
  // Its blocks are the GPU's.
  void release(Block*) noexcept override {}
  bool use(Block&) override { return false; }
  void pin(Block&) override {}
  void unpin(Block&) noexcept override {}

 private:
  Gpu& gpu_;
};

class Copier {
 public:
  explicit Copier(Gpu& gpu) : gpu_(gpu), small_transfers_(gpu) {}
  // Behind this thread's work on the GPU. Returns when `from` may change and `to`, where it is the
  // host's, may be read; with `waits` false and pinned memory at once: consumers of that or of the
  // GPU's memory wait on the copy inside the engine.
  void move(const Place& to, const Place& from, std::size_t bytes, bool waits);
  CopyFigures figures() const;
  // Tells observers of copies that are done; with `all` it waits for the others.
  void tell(bool all);
  class CopyTimer;

 private:
  static constexpr int kSlots = 4;
  struct Ring {
    std::mutex mutex;  // held for a whole copy
    char* memory = nullptr;
    std::array<MarkRef, kSlots> busy;
    int next = 0;
  };
  void upload(GpuBlock& to_block, void* to, const Place& from, std::size_t bytes, bool waits);
  void download(const Place& to, GpuBlock& from_block, const void* from, std::size_t bytes,
                bool waits);
  void within(const Place& to, const Place& from, std::size_t bytes);
  void move_small(const Place& to, const Place& from, std::size_t bytes);
  char* slot(Ring& ring, int& index);
  void stage_up(void* to, const void* from, std::size_t bytes);
  void stage_down(void* to, const void* from, std::size_t bytes);

  // An observed copy: the time between two events of its stream.
  struct ObservedCopy {
    Event begin, end;
    tw::Event event;
  };
  Event timed_event();
  void set_clock();

  Gpu& gpu_;
  SmallTransfers small_transfers_;
  Ring up_, down_;
  mutable std::mutex mutex_;
  CopyFigures figures_;
  std::mutex observed_mutex_;  // guards what follows
  std::deque<ObservedCopy> observed_;
  GpuStream* clock_ = nullptr;  // without work of its own
  Event zero_ = nullptr;        // the event that happened at zero_ns_ of the steady clock
  std::int64_t zero_ns_ = 0;
};

// Puts events around a copy, where copies are observed.
class Copier::CopyTimer {
 public:
  CopyTimer(Copier& copier, const GpuStream& stream, const char* direction, std::size_t bytes);
  ~CopyTimer();
  CopyTimer(const CopyTimer&) = delete;
  CopyTimer& operator=(const CopyTimer&) = delete;

 private:
  Copier& copier_;
  const GpuStream& stream_;
  ObservedCopy entry_{};
};

}  // namespace tw::cuda
