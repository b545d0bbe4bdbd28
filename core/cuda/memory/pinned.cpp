#include "core/cuda/memory/pinned.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/base/frontend_lock.h"
#include "core/cuda/gpu/gpu.h"

namespace tw::cuda {

namespace {

// Pages, so that blocks do not share one with what the CPU writes meanwhile.
constexpr std::size_t kStep = 4 << 10;
// Pinning costs some 100 us a call, and as much again for each MiB.
constexpr std::size_t kPieceBytes = 8 << 20;

std::size_t whole(std::size_t bytes, std::size_t unit) {
  return (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
}

}  // namespace

PinnedBlocks& PinnedBlocks::all() {
  static auto* const blocks = new PinnedBlocks;  // outlives other objects
  return *blocks;
}

PinnedBlock* PinnedBlocks::find(Block* block) {
  if (!block) return nullptr;
  Block& found = block->source->holder(*block);
  return found.source == &all() ? static_cast<PinnedBlock*>(&found) : nullptr;
}

Block* PinnedBlocks::allocate(std::size_t bytes) {
  if (bytes > SIZE_MAX / 4) fail(ErrorKind::memory, "pinned memory: cannot allocate that much");
  Gpu::at(0).enter();
  const std::lock_guard lock(mutex_);
  collect(false);
  auto block = std::make_unique<PinnedBlock>();
  block->charged = whole(bytes, kStep);
  block->data = cut(block->charged);
  block->source = this;
  block->bytes = bytes;
  ++stats_.allocations;
  stats_.live_bytes += static_cast<std::int64_t>(block->charged);
  stats_.peak_live_bytes = std::max(stats_.peak_live_bytes, stats_.live_bytes);
  return block.release();
}

char* PinnedBlocks::cut(std::size_t bytes) {
  if (char* memory = regions_.take(bytes)) return memory;
  collect(true);
  if (char* memory = regions_.take(bytes)) return memory;
  void* piece = nullptr;
  const std::size_t added = whole(bytes, kPieceBytes);
  const Result result =
      fault_point() ? kOutOfMemory : driver().allocate_host(&piece, added, kHostIsPortable);
  if (result == kOutOfMemory)
    fail(ErrorKind::memory, "pinned memory: the system refuses ", added, " bytes; ",
         stats_.live_bytes, " are live, ", stats_.reserved_bytes, " reserved");
  check(result, "host memory cannot be pinned");
  stats_.reserved_bytes += static_cast<std::int64_t>(added);
  stats_.peak_reserved_bytes = std::max(stats_.peak_reserved_bytes, stats_.reserved_bytes);
  regions_.add(static_cast<char*>(piece), added);
  return regions_.take(bytes);
}

void PinnedBlocks::release(Block* released) noexcept {
  const std::lock_guard lock(mutex_);
  auto* block = static_cast<PinnedBlock*>(released);
  ++stats_.releases;
  stats_.live_bytes -= static_cast<std::int64_t>(block->charged);
  if (block->copies.empty())
    take_back(block);
  else
    busy_.push_back(block);
}

void PinnedBlocks::take_back(PinnedBlock* block) noexcept {
  regions_.give(static_cast<char*>(block->data));
  delete block;
}

void PinnedBlocks::collect(bool wait) {
  std::erase_if(busy_, [&](PinnedBlock* block) {
    for (const MarkRef& copy : block->copies) {
      if (wait)
        copy->wait();
      else if (!copy->reached())
        return false;
    }
    take_back(block);
    return true;
  });
}

bool PinnedBlocks::use(Block& used) {
  auto& block = static_cast<PinnedBlock&>(used);
  if (block.copies.empty()) [[likely]]
    return false;
  const UnlockedWait unlocked;
  wait_for_copies(block);
  return false;
}

void PinnedBlocks::wait_for_copies(PinnedBlock& block) {
  std::vector<MarkRef> copies;
  {
    const std::lock_guard lock(mutex_);
    copies = block.copies;
  }
  for (const MarkRef& copy : copies) copy->wait();
  const std::lock_guard lock(mutex_);
  std::erase_if(block.copies, [&](const MarkRef& copy) {
    return std::find(copies.begin(), copies.end(), copy) != copies.end();
  });
}

void PinnedBlocks::add_copy(PinnedBlock& block, MarkRef mark) {
  const std::lock_guard lock(mutex_);
  std::erase_if(block.copies,
                [&](const MarkRef& copy) { return &copy->stream() == &mark->stream(); });
  block.copies.push_back(std::move(mark));
}

void PinnedBlocks::follow(PinnedBlock& block, const GpuStream& stream) {
  const std::lock_guard lock(mutex_);
  for (const MarkRef& copy : block.copies)
    if (&copy->stream() != &stream) copy->hold(stream);
}

PoolStats PinnedBlocks::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::int64_t PinnedBlocks::trim() {
  const std::lock_guard lock(mutex_);
  collect(true);
  std::int64_t bytes = 0;
  for (;;) {
    const Regions::Mapping piece = regions_.pop_oldest();
    if (!piece.memory) break;
    driver().release_host(piece.memory);
    bytes += static_cast<std::int64_t>(piece.bytes);
  }
  stats_.reserved_bytes -= bytes;
  return bytes;
}

}  // namespace tw::cuda
