// A heap: blocks cut from memory of the system. Small ones by size classes, large ones from regions
// that are split and joined. The default pool has one for all threads, a user's pool one of its
// own.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "core/memory/holders.h"
#include "core/memory/pages.h"
#include "core/memory/pool.h"
#include "core/memory/regions.h"
#include "core/memory/size_class.h"

namespace tw {

// Written by one thread, read by any: plain loads and stores on the hot path.
class Counter {
 public:
  std::int64_t get() const { return value_.load(std::memory_order_relaxed); }
  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  std::int64_t add(std::int64_t step) {
    const std::int64_t sum = get() + step;
    set(sum);
    return sum;
  }

 private:
  std::atomic<std::int64_t> value_{0};
};

struct Counts {
  Counter allocations, mapped, releases;  // mapped: allocations that needed new memory
};

// A thread keeps at most this much of one size class, and at least two blocks: an eager op holds
// one temporary while it writes the next.
constexpr std::uint32_t cache_limit(int size_class) {
  const std::size_t blocks = (std::size_t{256} << 10) / class_bytes(size_class);
  return static_cast<std::uint32_t>(blocks < 2 ? 2 : blocks > 128 ? 128 : blocks);
}

struct Classes {
  std::uint32_t bytes[kSizeClasses];
  std::uint32_t limit[kSizeClasses];
  std::uint32_t first[kSizeClasses];  // slot of a cache where the class begins
  std::uint32_t slots;
};
// `limit` is 1 where the cache is off from the start, a row of the table of optimizations.
inline constinit Classes size_classes = [] {
  Classes classes{};
  for (int c = 0; c < kSizeClasses; ++c) {
    classes.bytes[c] = static_cast<std::uint32_t>(class_bytes(c));
    classes.limit[c] = cache_limit(c);
    classes.first[c] = classes.slots;
    classes.slots += classes.limit[c];
  }
  return classes;
}();
inline constexpr std::uint32_t kCacheSlots = [] {
  std::uint32_t slots = 0;
  for (int c = 0; c < kSizeClasses; ++c) slots += cache_limit(c);
  return slots;
}();

// Free blocks lie in stacks of pointers, not in lists through the blocks: handing one out or
// taking it back does not touch its memory, which is seldom in the processor's cache.
struct alignas(64) Cache {
  Counter live, peak_live;  // since the last report to the heap
  Counts counts;
  std::uint32_t count[kSizeClasses] = {};
  void* slots[kCacheSlots];

  void push(int size_class, void* block) {
    slots[size_classes.first[size_class] + count[size_class]++] = block;
  }
  void* pop(int size_class) { return slots[size_classes.first[size_class] + --count[size_class]]; }
};

// A thread reports its live bytes to the heap when they moved by this much. It bounds how far
// the peak can be off when several threads allocate at once; with one thread the peak is exact.
inline constexpr std::int64_t kReportBytes = 1 << 20;

// What a request of `bytes` takes of a heap: its size class, or whole steps.
std::size_t charged_bytes(std::size_t bytes);

// For how long a large block may be unused before it goes back to the system; tests set less.
extern std::atomic<std::int64_t> idle_release_ns;

// How many bytes were free, at the least, during the last while: those nobody has used since.
class IdleWatch {
 public:
  // To be called after a block was taken and now and then: `free_bytes` are free. Returns those
  // that were free all along; most calls only look at a clock, and return 0.
  std::size_t look(std::size_t free_bytes);
  // Of these, so many went back to the system.
  void gave_back(std::size_t bytes);

 private:
  static constexpr int kParts = 5;  // four make the while, one has just begun
  std::int64_t part_began_ns_ = 0;
  std::size_t last_free_ = 0;
  std::size_t least_[kParts] = {};  // in each part, the newest first
};

class Heap {
 public:
  // `limit`: reserved memory is kept below it where nothing live stands against that.
  explicit Heap(std::int64_t limit = std::numeric_limits<std::int64_t>::max()) : limit_(limit) {}
  ~Heap();  // no block is live, no cache attached
  Heap(const Heap&) = delete;

  Cache* attach();
  void detach(Cache* cache);
  // From a cache that only the calling thread uses. Raises MemoryError with the sizes in the text
  // when the system refuses.
  void* allocate(Cache& cache, std::size_t bytes) {
    if (bytes <= kLargestSmallBlock) [[likely]] {
      const int size_class = size_class_of(bytes);
      if (!cache.count[size_class]) [[unlikely]]
        return allocate_refilled(cache, bytes);
      return hand_out(cache, size_class, bytes);
    }
    return allocate_large(cache, bytes);
  }
  // `bytes` as asked for; any cache of this heap will do.
  void release(Cache& cache, void* block, std::size_t bytes) noexcept {
    if (bytes > kLargestSmallBlock) [[unlikely]]
      return release_large(cache, block);
    const int size_class = size_class_of(bytes);
    if (cache.count[size_class] == size_classes.limit[size_class]) [[unlikely]]
      return release_drained(cache, block, bytes);
    take_back(cache, size_class, block);
  }
  PoolStats stats();
  void reset_peaks();
  // Gives unused memory back to the system; returns the bytes given back.
  std::int64_t trim(Cache& cache);
  std::mutex mutex;  // guards everything

 private:
  // What is seldom done is called last: the hot path of a small block needs no frame.
  void* hand_out(Cache& cache, int size_class, [[maybe_unused]] std::size_t bytes) {
    void* block = cache.pop(size_class);
    cache.counts.allocations.add(1);
    const std::int64_t live = cache.live.add(size_classes.bytes[size_class]);
    if (live > cache.peak_live.get()) {
      cache.peak_live.set(live);
      if (live > kReportBytes) [[unlikely]]
        return reported(cache, block, bytes);
    }
    unpoison(block, bytes);
    return block;
  }
  void take_back(Cache& cache, int size_class, void* block) noexcept {
    poison(block, size_classes.bytes[size_class]);
    cache.push(size_class, block);
    cache.counts.releases.add(1);
    const std::int64_t bytes = size_classes.bytes[size_class];
    if (cache.live.add(-bytes) < -kReportBytes) [[unlikely]]
      report(cache);
  }
  void refill(Cache& cache, int size_class);
  void* allocate_refilled(Cache& cache, std::size_t bytes);
  void release_drained(Cache& cache, void* block, std::size_t bytes) noexcept;
  void* reported(Cache& cache, void* block, std::size_t bytes);
  void* allocate_large(Cache& cache, std::size_t bytes);
  void* take_large(Cache& cache, std::size_t bytes);
  std::vector<Holding> large_holdings();
  void release_idle();
  void release_large(Cache& cache, void* block) noexcept;
  void drain(Cache& cache, int size_class, std::uint32_t keep);
  void report(Cache& cache);
  char* map(std::size_t request, std::size_t bytes, std::size_t alignment);
  void unmap(char* memory, std::size_t bytes);
  void carve(Cache& cache, int size_class);
  void absorb(Cache& cache);
  void move_live(Cache& cache, std::int64_t bytes);
  void map_region(std::size_t request, std::size_t bytes);
  bool unmap_oldest();
  void drain_all(Cache& cache);
  void give(Cache& cache, int size_class, std::uint32_t keep);
  std::int64_t trim_locked();
  void drop_free_regions();
  void trim_class(int size_class);
  std::int64_t live_now() const;
  std::int64_t reserved_now() const;
  void note_reserved();
  [[noreturn]] void refuse(std::size_t request) const;

  struct SizeClass {
    std::vector<void*> blocks;  // room for every block there is, so that giving back cannot fail
    std::size_t spans = 0;
    char* fresh = nullptr;  // rest of the newest span, not cut into blocks yet
    int fresh_blocks = 0;
  };
  SizeClass classes_[kSizeClasses];
  Regions regions_;
  std::vector<Cache*> caches_;
  Counts retired_;  // of threads that ended
  const std::int64_t limit_;
  std::int64_t live_ = 0, peak_live_ = 0, highest_live_ = 0;
  std::int64_t mapped_ = 0, peak_reserved_ = 0;
  IdleWatch idle_;
};

}  // namespace tw
