// The pool: per-thread caches of small blocks over central lists, and large blocks kept for reuse.
// The hot path touches only its thread's cache: no lock, no atomic read-modify-write.
#include "core/memory/pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/memory/pages.h"
#include "core/memory/scratch.h"
#include "core/memory/size_class.h"

namespace tw {

namespace {

// A thread keeps at most this much of one size class, and at least two blocks: an eager op holds
// one temporary while it writes the next.
constexpr std::size_t kCacheBytes = 256 << 10;
constexpr std::size_t kCacheBlocks = 128;
// A thread reports its live bytes to the centre when they moved by this much. It bounds how far
// the peak can be off when several threads allocate at once; with one thread the peak is exact.
constexpr std::int64_t kReportBytes = 1 << 20;
// Large blocks come in steps of this size, under 1/16 of waste, so that near sizes share blocks.
constexpr std::size_t kLargeStep = 64 << 10;
// Kept memory may exceed the highest live bytes by a quarter and this; the oldest blocks go first.
constexpr std::int64_t kSlackBytes = 64 << 20;

// Written by one thread, read by any: plain loads and stores on the hot path.
class Counter {
 public:
  std::int64_t get() const { return value_.load(std::memory_order_relaxed); }
  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  std::int64_t add(std::int64_t step) {
    set(get() + step);
    return get();
  }

 private:
  std::atomic<std::int64_t> value_{0};
};

struct Counts {
  Counter allocations, mapped, releases;  // mapped: allocations that needed new memory
};

constexpr std::uint32_t cache_limit(int size_class) {
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(kCacheBytes / class_bytes(size_class), 2, kCacheBlocks));
}

struct Classes {
  std::uint32_t bytes[kSizeClasses];
  std::uint32_t limit[kSizeClasses];
  std::uint32_t first[kSizeClasses];  // slot of a cache where the class begins
  std::uint32_t slots;
};
constexpr Classes kClasses = [] {
  Classes classes{};
  for (int c = 0; c < kSizeClasses; ++c) {
    classes.bytes[c] = static_cast<std::uint32_t>(class_bytes(c));
    classes.limit[c] = cache_limit(c);
    classes.first[c] = classes.slots;
    classes.slots += classes.limit[c];
  }
  return classes;
}();

// Free blocks lie in stacks of pointers, not in lists through the blocks: handing one out or
// taking it back does not touch its memory, which is seldom in the processor's cache.
struct alignas(64) Cache {
  Counter live, peak_live;  // since the last report to the centre
  Counts counts;
  std::uint32_t count[kSizeClasses] = {};
  void* slots[kClasses.slots];

  void push(int size_class, void* block) {
    slots[kClasses.first[size_class] + count[size_class]++] = block;
  }
  void* pop(int size_class) { return slots[kClasses.first[size_class] + --count[size_class]]; }
};

struct KeptBlock {
  char* memory;
  std::uint64_t released;  // clock of releases, for eviction of the oldest
};
using KeptBlocks = std::multimap<std::size_t, KeptBlock>;  // by size

class Central {
 public:
  Central();
  Cache* attach();
  void detach(Cache* cache);
  void refill(Cache& cache, int size_class);
  void drain(Cache& cache, int size_class, std::uint32_t keep);
  void report(Cache& cache);
  void* allocate_large(Cache& cache, std::size_t bytes);
  void release_large(Cache& cache, void* block) noexcept;
  PoolStats stats();
  void reset_peaks();
  std::int64_t trim(Cache& cache);
  std::mutex mutex;  // guards everything; held across fork

 private:
  char* map(std::size_t request, std::size_t bytes, std::size_t alignment);
  void unmap(char* memory, std::size_t bytes);
  void carve(Cache& cache, int size_class);
  void absorb(Cache& cache);
  void move_live(Cache& cache, std::int64_t bytes);
  bool unmap_oldest();
  void drain_all(Cache& cache);
  void give(Cache& cache, int size_class, std::uint32_t keep);
  std::int64_t trim_locked();
  void trim_class(int size_class);
  std::int64_t live_now() const;
  [[noreturn]] void refuse(std::size_t request) const;

  struct SizeClass {
    std::vector<void*> blocks;  // room for every block there is, so that giving back cannot fail
    std::size_t spans = 0;
    char* fresh = nullptr;  // rest of the newest span, not cut into blocks yet
    int fresh_blocks = 0;
  };
  SizeClass classes_[kSizeClasses];
  KeptBlocks kept_;
  std::unordered_map<void*, KeptBlocks::node_type> live_large_;  // its node waits for the release
  std::vector<Cache*> caches_;
  Counts retired_;  // of threads that ended
  std::int64_t live_ = 0, peak_live_ = 0, highest_live_ = 0;
  std::int64_t reserved_ = 0, peak_reserved_ = 0;
  std::uint64_t clock_ = 0;
};

// Never destroyed: blocks may be released while the process exits.
Central& central() {
  static Central* const instance = new Central;
  return *instance;
}

#ifdef __GLIBC__
// A module loaded at run time pays a call for each thread-local access in the default model;
// glibc sets room aside for small ones like this pointer.
#define TW_TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define TW_TLS_MODEL
#endif
thread_local Cache* own_cache TW_TLS_MODEL = nullptr;
pthread_key_t exit_key;

// Runs after C++'s thread-local destructors, and again if one of the later ones allocates.
void on_thread_exit(void* cache) {
  own_cache = nullptr;
  central().detach(static_cast<Cache*>(cache));
}

Cache& cache_of_thread() {
  if (!own_cache) own_cache = central().attach();
  return *own_cache;
}

Central::Central() {
  pthread_key_create(&exit_key, on_thread_exit);
  // A child owns the forking thread's cache; what other threads had cached stays reserved there.
  pthread_atfork([] { central().mutex.lock(); }, [] { central().mutex.unlock(); },
                 [] { central().mutex.unlock(); });
}

Cache* Central::attach() {
  Cache* cache = new Cache;
  pthread_setspecific(exit_key, cache);
  std::lock_guard lock(mutex);
  caches_.push_back(cache);
  return cache;
}

void Central::detach(Cache* cache) {
  std::lock_guard lock(mutex);
  drain_all(*cache);
  absorb(*cache);
  retired_.allocations.add(cache->counts.allocations.get());
  retired_.mapped.add(cache->counts.mapped.get());
  retired_.releases.add(cache->counts.releases.get());
  caches_.erase(std::find(caches_.begin(), caches_.end(), cache));
  delete cache;
}

char* Central::map(std::size_t request, std::size_t bytes, std::size_t alignment) {
  char* memory = map_block(bytes, alignment);
  if (!memory && trim_locked() > 0) memory = map_block(bytes, alignment);
  if (!memory) refuse(request);
  reserved_ += static_cast<std::int64_t>(bytes);
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  poison(memory, bytes);
  return memory;
}

void Central::unmap(char* memory, std::size_t bytes) {
  unpoison(memory, bytes);  // the address may come back through another mapping
  munmap(memory, bytes);
  reserved_ -= static_cast<std::int64_t>(bytes);
}

void Central::refuse(std::size_t request) const {
  constexpr double kMiB = 1 << 20;
  fail(ErrorKind::memory, "cannot allocate ", request, " bytes (",
       static_cast<double>(request) / kMiB, " MiB): the system refuses; ",
       static_cast<double>(live_now()) / kMiB, " MiB are live, ",
       static_cast<double>(reserved_) / kMiB, " MiB reserved");
}

// Gives the cache half of what it may hold, so that neither side of a wave locks for each block.
void Central::refill(Cache& cache, int size_class) {
  std::lock_guard lock(mutex);
  SizeClass& from = classes_[size_class];
  if (from.blocks.empty() && !from.fresh_blocks) carve(cache, size_class);
  const std::size_t bytes = class_bytes(size_class);
  for (std::uint32_t wanted = (cache_limit(size_class) + 1) / 2; wanted; --wanted) {
    if (!from.blocks.empty()) {
      cache.push(size_class, from.blocks.back());
      from.blocks.pop_back();
    } else if (from.fresh_blocks) {
      cache.push(size_class, from.fresh);
      from.fresh += bytes;
      --from.fresh_blocks;
    } else {
      return;
    }
  }
}

void Central::carve(Cache& cache, int size_class) {
  const std::size_t bytes = span_bytes(size_class);
  SizeClass& c = classes_[size_class];
  c.blocks.reserve(std::bit_ceil((c.spans + 1) * blocks_per_span(size_class)));
  c.fresh = map(class_bytes(size_class), bytes, bytes);
  c.fresh_blocks = blocks_per_span(size_class);
  ++c.spans;
  cache.counts.mapped.add(1);
}

void Central::give(Cache& cache, int size_class, std::uint32_t keep) {
  while (cache.count[size_class] > keep)
    classes_[size_class].blocks.push_back(cache.pop(size_class));
}

void Central::drain(Cache& cache, int size_class, std::uint32_t keep) {
  std::lock_guard lock(mutex);
  give(cache, size_class, keep);
}

void Central::drain_all(Cache& cache) {
  for (int c = 0; c < kSizeClasses; ++c) give(cache, c, 0);
}

void Central::absorb(Cache& cache) {
  peak_live_ = std::max(peak_live_, live_ + cache.peak_live.get());
  live_ += cache.live.get();
  highest_live_ = std::max(highest_live_, peak_live_);
  cache.live.set(0);
  cache.peak_live.set(0);
}

void Central::report(Cache& cache) {
  std::lock_guard lock(mutex);
  absorb(cache);
}

std::int64_t Central::live_now() const {
  std::int64_t live = live_;
  for (const Cache* cache : caches_) live += cache->live.get();
  return live;
}

void Central::move_live(Cache& cache, std::int64_t bytes) {
  absorb(cache);
  live_ += bytes;
  peak_live_ = std::max(peak_live_, live_);
  highest_live_ = std::max(highest_live_, peak_live_);
}

// The smallest kept block that fits and wastes at most an eighth; of equals the last released, the
// warmest in cache.
KeptBlocks::iterator best_fit(KeptBlocks& kept, std::size_t bytes) {
  const auto found = kept.lower_bound(bytes);
  if (found == kept.end() || found->first - found->first / 8 > bytes) return kept.end();
  return std::prev(kept.upper_bound(found->first));
}

void* Central::allocate_large(Cache& cache, std::size_t request) {
  std::lock_guard lock(mutex);
  if (request > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) / 2)
    refuse(request);
  const std::size_t bytes = (request + kLargeStep - 1) / kLargeStep * kLargeStep;
  auto found = best_fit(kept_, bytes);
  if (found == kept_.end()) {
    const auto size = static_cast<std::int64_t>(bytes);
    const std::int64_t highest = std::max(highest_live_, live_now() + size);
    while (reserved_ + size > highest + highest / 4 + kSlackBytes && unmap_oldest()) {
    }
    char* memory = map(request, bytes, kHugePage);
    cache.counts.mapped.add(1);
    found = kept_.insert({bytes, KeptBlock{memory, 0}});
  }
  char* memory = found->second.memory;
  move_live(cache, static_cast<std::int64_t>(found->first));
  cache.counts.allocations.add(1);
  live_large_.emplace(memory, kept_.extract(found));
  unpoison(memory, request);
  return memory;
}

void Central::release_large(Cache& cache, void* block) noexcept {
  std::lock_guard lock(mutex);
  const auto found = live_large_.find(block);
  KeptBlocks::node_type node = std::move(found->second);
  live_large_.erase(found);
  node.mapped().released = ++clock_;
  move_live(cache, -static_cast<std::int64_t>(node.key()));
  cache.counts.releases.add(1);
  poison(block, node.key());
  kept_.insert(std::move(node));
}

bool Central::unmap_oldest() {
  const auto oldest = std::min_element(kept_.begin(), kept_.end(), [](auto& a, auto& b) {
    return a.second.released < b.second.released;
  });
  if (oldest == kept_.end()) return false;
  unmap(oldest->second.memory, oldest->first);
  kept_.erase(oldest);
  return true;
}

// Unmaps the spans whose blocks are all here.
void Central::trim_class(int size_class) {
  SizeClass& c = classes_[size_class];
  const std::uintptr_t mask = ~(static_cast<std::uintptr_t>(span_bytes(size_class)) - 1);
  const auto span_of = [mask](void* p) { return reinterpret_cast<std::uintptr_t>(p) & mask; };
  std::unordered_map<std::uintptr_t, int> free_blocks;
  if (c.fresh_blocks) free_blocks[span_of(c.fresh)] += c.fresh_blocks;
  for (void* block : c.blocks) ++free_blocks[span_of(block)];
  const auto idle = [&](void* p) { return free_blocks[span_of(p)] == blocks_per_span(size_class); };
  std::erase_if(c.blocks, idle);
  if (c.fresh_blocks && idle(c.fresh)) c.fresh_blocks = 0;
  for (const auto& [span, count] : free_blocks) {
    if (count != blocks_per_span(size_class)) continue;
    unmap(reinterpret_cast<char*>(span), span_bytes(size_class));
    --c.spans;
  }
}

std::int64_t Central::trim_locked() {
  const std::int64_t before = reserved_;
  for (int c = 0; c < kSizeClasses; ++c) trim_class(c);
  while (unmap_oldest()) {
  }
  return before - reserved_;
}

std::int64_t Central::trim(Cache& cache) {
  std::lock_guard lock(mutex);
  drain_all(cache);
  return trim_locked();
}

PoolStats Central::stats() {
  std::lock_guard lock(mutex);
  PoolStats stats{};
  stats.live_bytes = live_now();
  stats.peak_live_bytes = std::max(peak_live_, stats.live_bytes);
  std::int64_t mapped = retired_.mapped.get();
  stats.allocations = retired_.allocations.get();
  stats.releases = retired_.releases.get();
  for (const Cache* cache : caches_) {
    stats.peak_live_bytes = std::max(stats.peak_live_bytes, live_ + cache->peak_live.get());
    stats.allocations += cache->counts.allocations.get();
    stats.releases += cache->counts.releases.get();
    mapped += cache->counts.mapped.get();
  }
  stats.reuses = stats.allocations - mapped;
  stats.reserved_bytes = reserved_;
  stats.peak_reserved_bytes = peak_reserved_;
  return stats;
}

void Central::reset_peaks() {
  std::lock_guard lock(mutex);
  peak_live_ = live_now();
  peak_reserved_ = reserved_;
  for (Cache* cache : caches_) cache->peak_live.set(cache->live.get());
}

inline void* hand_out(Cache& cache, int size_class, [[maybe_unused]] std::size_t bytes) {
  void* block = cache.pop(size_class);
  cache.counts.allocations.add(1);
  const std::int64_t live = cache.live.add(kClasses.bytes[size_class]);
  if (live > cache.peak_live.get()) {
    cache.peak_live.set(live);
    if (live > kReportBytes) [[unlikely]]
      central().report(cache);
  }
  unpoison(block, bytes);
  return block;
}

[[gnu::noinline, gnu::cold]] void* allocate_slowly(std::size_t bytes) {
  Cache& cache = cache_of_thread();
  if (bytes > kLargestSmallBlock) return central().allocate_large(cache, bytes);
  const int size_class = size_class_of(bytes);
  if (!cache.count[size_class]) central().refill(cache, size_class);
  return hand_out(cache, size_class, bytes);
}

}  // namespace

void* pool_allocate(std::size_t bytes) {
  if (bytes <= kLargestSmallBlock) [[likely]] {
    const int size_class = size_class_of(bytes);
    if (Cache* cache = own_cache) [[likely]]
      if (cache->count[size_class]) [[likely]]
        return hand_out(*cache, size_class, bytes);
  }
  return allocate_slowly(bytes);
}

void pool_release(void* block, std::size_t bytes) noexcept {
  Cache& cache = cache_of_thread();
  if (bytes > kLargestSmallBlock) [[unlikely]]
    return central().release_large(cache, block);
  const int size_class = size_class_of(bytes);
  const std::uint32_t limit = kClasses.limit[size_class];
  poison(block, kClasses.bytes[size_class]);
  if (cache.count[size_class] == limit) [[unlikely]]
    central().drain(cache, size_class, limit / 2);
  cache.push(size_class, block);
  cache.counts.releases.add(1);
  const std::int64_t live = cache.live.add(-static_cast<std::int64_t>(kClasses.bytes[size_class]));
  if (live < -kReportBytes) [[unlikely]]
    central().report(cache);
}

PoolStats pool_stats() { return central().stats(); }
void pool_reset_peaks() { central().reset_peaks(); }
std::int64_t pool_trim() { return central().trim(cache_of_thread()) + scratch_trim(); }

}  // namespace tw
