// Where every tensor's bytes come from: size classes, per-thread caches, 64-byte alignment, huge
// pages for large blocks, no page faults on reuse. Thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tw {

inline constexpr std::size_t kAlignment = 64;

// Two ideas kept apart: live bytes are checked out, reserved bytes are held from the system (live
// + kept for reuse).
struct PoolStats {
  std::int64_t live_bytes, peak_live_bytes;
  std::int64_t reserved_bytes, peak_reserved_bytes;
  std::int64_t allocations;  // blocks handed out since the start
  std::int64_t reuses;       // of those, served from memory already reserved
  std::int64_t releases;
  // Of the reserved bytes not live: all of them, those in free ranges of large blocks, and the
  // largest of these. A wide gap between the last two is fragmentation.
  std::int64_t free_bytes, free_range_bytes, largest_free_bytes;
};

// Returns at least `bytes` bytes, 64-byte aligned, contents unspecified; never null (0 bytes give
// a valid unique block). Raises MemoryError with the sizes in the text when the system refuses.
void* pool_allocate(std::size_t bytes);
// `bytes` must equal what was asked for.
void pool_release(void* block, std::size_t bytes) noexcept;
PoolStats pool_stats();
void pool_reset_peaks();
// Gives unused memory, this thread's scratch too, back to the system; returns the bytes given back.
std::int64_t pool_trim();

}  // namespace tw
