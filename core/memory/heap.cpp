#include "core/memory/heap.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <unordered_map>

#include "core/base/error.h"
#include "core/memory/clock.h"
#include "core/memory/events.h"
#include "core/memory/pages.h"

namespace tw {

namespace {

// Large blocks come in steps of this size, under 1/16 of waste, so that near sizes share blocks.
constexpr std::size_t kLargeStep = 64 << 10;
// Kept memory may exceed the highest live bytes by a quarter and this; the oldest regions go first.
constexpr std::int64_t kSlackBytes = 64 << 20;
// A new region has this share of what is mapped, up to a bound: an eighth more than needed.
constexpr std::size_t kRegionShare = 8;
constexpr std::size_t kLargestGrowth = 32 << 20;

// Without a cache, threads fetch and return blocks one by one.
const bool known_at_start = [] {
  if (is_off_at_start(Optimization::thread_cache))
    for (std::uint32_t& limit : size_classes.limit) limit = 1;
  return true;
}();

}  // namespace

std::size_t charged_bytes(std::size_t bytes) {
  if (bytes <= kLargestSmallBlock) return class_bytes(size_class_of(bytes));
  return (bytes + kLargeStep - 1) / kLargeStep * kLargeStep;
}

Heap::~Heap() { trim_locked(); }

Cache* Heap::attach() {
  auto cache = std::make_unique<Cache>();
  std::lock_guard lock(mutex);
  caches_.push_back(cache.get());
  return cache.release();
}

void Heap::detach(Cache* cache) {
  std::lock_guard lock(mutex);
  drain_all(*cache);
  absorb(*cache);
  retired_.allocations.add(cache->counts.allocations.get());
  retired_.mapped.add(cache->counts.mapped.get());
  retired_.releases.add(cache->counts.releases.get());
  caches_.erase(std::find(caches_.begin(), caches_.end(), cache));
  delete cache;
}

char* Heap::map(std::size_t request, std::size_t bytes, std::size_t alignment) {
  while (reserved_now() + static_cast<std::int64_t>(bytes) > limit_ && unmap_oldest()) {
  }
  char* memory = map_block(bytes, alignment);
  if (!memory && trim_locked() > 0) memory = map_block(bytes, alignment);
  if (!memory) refuse(request);
  mapped_ += static_cast<std::int64_t>(bytes);
  note_reserved();
  poison(memory, bytes);
  return memory;
}

void Heap::unmap(char* memory, std::size_t bytes) {
  unpoison(memory, bytes);  // the address may come back through another mapping
  munmap(memory, bytes);
  mapped_ -= static_cast<std::int64_t>(bytes);
}

std::int64_t Heap::reserved_now() const {
  return mapped_ - static_cast<std::int64_t>(regions_.purged_bytes());
}

void Heap::note_reserved() { peak_reserved_ = std::max(peak_reserved_, reserved_now()); }

void Heap::refuse(std::size_t request) const {
  constexpr double kMiB = 1 << 20;
  fail(ErrorKind::memory, "cannot allocate ", request, " bytes (",
       static_cast<double>(request) / kMiB, " MiB): the system refuses; ",
       static_cast<double>(live_now()) / kMiB, " MiB are live, ",
       static_cast<double>(reserved_now()) / kMiB, " MiB reserved");
}

// Gives the cache half of what it may hold, so that neither side of a wave locks for each block.
void Heap::refill(Cache& cache, int size_class) {
  std::lock_guard lock(mutex);
  release_idle();
  SizeClass& from = classes_[size_class];
  if (from.blocks.empty() && !from.fresh_blocks) carve(cache, size_class);
  std::uint32_t wanted = (size_classes.limit[size_class] + 1) / 2;
  for (; wanted && !from.blocks.empty(); --wanted) {
    cache.push(size_class, from.blocks.back());
    from.blocks.pop_back();
  }
  if (!wanted || !from.fresh_blocks) return;
  for (; wanted && from.fresh_blocks; --wanted, --from.fresh_blocks) {
    cache.push(size_class, from.fresh);
    from.fresh += class_bytes(size_class);
  }
  // A vector may reach beyond a block's end with lanes that are masked off. In a page that was
  // never touched they cost 150 ns a time, so the page behind these blocks comes now, not later.
  if (from.fresh_blocks) touch(from.fresh);
}

void Heap::carve(Cache& cache, int size_class) {
  const std::size_t bytes = span_bytes(size_class);
  SizeClass& c = classes_[size_class];
  c.blocks.reserve(std::bit_ceil((c.spans + 1) * blocks_per_span(size_class)));
  c.fresh = map(class_bytes(size_class), bytes, bytes);
  c.fresh_blocks = blocks_per_span(size_class);
  ++c.spans;
  cache.counts.mapped.add(1);
}

void Heap::give(Cache& cache, int size_class, std::uint32_t keep) {
  while (cache.count[size_class] > keep)
    classes_[size_class].blocks.push_back(cache.pop(size_class));
}

void Heap::drain(Cache& cache, int size_class, std::uint32_t keep) {
  std::lock_guard lock(mutex);
  release_idle();
  give(cache, size_class, keep);
}

void Heap::drain_all(Cache& cache) {
  for (int c = 0; c < kSizeClasses; ++c) give(cache, c, 0);
}

void Heap::absorb(Cache& cache) {
  peak_live_ = std::max(peak_live_, live_ + cache.peak_live.get());
  live_ += cache.live.get();
  highest_live_ = std::max(highest_live_, peak_live_);
  cache.live.set(0);
  cache.peak_live.set(0);
}

void Heap::report(Cache& cache) {
  std::lock_guard lock(mutex);
  absorb(cache);
}

std::int64_t Heap::live_now() const {
  std::int64_t live = live_;
  for (const Cache* cache : caches_) live += cache->live.get();
  return live;
}

void Heap::move_live(Cache& cache, std::int64_t bytes) {
  absorb(cache);
  live_ += bytes;
  peak_live_ = std::max(peak_live_, live_);
  highest_live_ = std::max(highest_live_, peak_live_);
}

// A region has at least the request and otherwise grows with the heap, so that the blocks of a
// large program find neighbours to join with, and a small one reserves little.
void Heap::map_region(std::size_t request, std::size_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes);
  const std::int64_t highest = std::max(highest_live_, live_now() + size);
  const std::int64_t keep = std::min(limit_, highest + highest / 4 + kSlackBytes);
  while (reserved_now() + size > keep && unmap_oldest()) {
  }
  std::size_t region = std::clamp<std::size_t>(static_cast<std::size_t>(mapped_) / kRegionShare,
                                               bytes, std::max(bytes, kLargestGrowth));
  region = (region + kLargeStep - 1) / kLargeStep * kLargeStep;
  if (reserved_now() + static_cast<std::int64_t>(region) > limit_) region = bytes;
  char* memory = map(request, region, kHugePage);
  try {
    regions_.add(memory, region);
  } catch (...) {
    unmap(memory, region);
    throw;
  }
}

void* Heap::allocate_refilled(Cache& cache, std::size_t bytes) {
  const int size_class = size_class_of(bytes);
  refill(cache, size_class);
  return hand_out(cache, size_class, bytes);
}

void Heap::release_drained(Cache& cache, void* block, std::size_t bytes) noexcept {
  const int size_class = size_class_of(bytes);
  drain(cache, size_class, size_classes.limit[size_class] / 2);
  take_back(cache, size_class, block);
}

void* Heap::reported(Cache& cache, void* block, [[maybe_unused]] std::size_t bytes) {
  report(cache);
  unpoison(block, bytes);
  return block;
}

std::atomic<std::int64_t> idle_release_ns{10'000'000'000};

std::size_t IdleWatch::look(std::size_t free_bytes) {
  const std::int64_t part = idle_release_ns.load(std::memory_order_relaxed) / (kParts - 1);
  const std::int64_t now = coarse_now_ns();
  const std::size_t before = std::exchange(last_free_, free_bytes);
  const std::int64_t parts = (now - part_began_ns_) / std::max<std::int64_t>(part, 1);
  if (parts < 1) [[likely]] {
    least_[0] = std::min(least_[0], free_bytes);
    return 0;
  }
  // In parts that passed without a look, what was free at the last one stayed so.
  for (std::int64_t i = 0; i < std::min<std::int64_t>(parts, kParts); ++i) {
    std::copy_backward(least_, least_ + kParts - 1, least_ + kParts);
    least_[0] = before;
  }
  part_began_ns_ = now;
  least_[0] = std::min(before, free_bytes);
  return *std::min_element(least_, least_ + kParts);
}

void IdleWatch::gave_back(std::size_t bytes) {
  last_free_ -= std::min(bytes, last_free_);
  for (std::size_t& least : least_) least -= std::min(bytes, least);
}

// Gives back what nobody has used for a while, the blocks that were released longest ago first.
void Heap::release_idle() {
  std::size_t idle = idle_.look(regions_.idle_bytes());
  if (!idle || is_off_for_all(Optimization::idle_release)) return;
  while (idle) {
    bool whole = false;
    const Regions::Mapping found = regions_.pop_idle(idle, &whole);
    if (!found.memory) return;
    const std::size_t paged = found.bytes - found.purged;
    if (whole)
      unmap(found.memory, found.bytes);
    else
      madvise(found.memory, found.bytes, MADV_DONTNEED);
    idle -= paged;
    idle_.gave_back(paged);
  }
}

std::vector<Holding> Heap::large_holdings() {
  std::lock_guard lock(mutex);
  std::vector<Holding> blocks;
  regions_.each_live([&](const char* label, std::size_t bytes) {
    blocks.push_back({.tensor = label, .bytes = static_cast<double>(bytes)});
  });
  return blocks;
}

// Where memory runs out, who holds it is told; no lock is held then.
void* Heap::allocate_large(Cache& cache, std::size_t request) {
  try {
    return take_large(cache, request);
  } catch (const Error& refused) {
    const std::vector<Holding> logged = logged_holdings("cpu");
    throw Error(refused.kind,
                refused.message + largest_holders(logged.empty() ? large_holdings() : logged));
  }
}

void* Heap::take_large(Cache& cache, std::size_t request) {
  std::lock_guard lock(mutex);
  if (request > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) / 2)
    refuse(request);
  const std::size_t bytes = charged_bytes(request);
  const char* const label = announced_tensor();
  char* memory = regions_.take(bytes, label);
  if (!memory) {
    map_region(request, bytes);
    memory = regions_.take(bytes, label);
    cache.counts.mapped.add(1);
  }
  note_reserved();
  release_idle();
  move_live(cache, static_cast<std::int64_t>(bytes));
  cache.counts.allocations.add(1);
  unpoison(memory, request);
  return memory;
}

void Heap::release_large(Cache& cache, void* block) noexcept {
  std::lock_guard lock(mutex);
  const std::size_t bytes = regions_.give(static_cast<char*>(block));
  poison(block, bytes);
  move_live(cache, -static_cast<std::int64_t>(bytes));
  cache.counts.releases.add(1);
  if (is_off_for_all(Optimization::block_reuse)) [[unlikely]]
    drop_free_regions();
  release_idle();
}

bool Heap::unmap_oldest() {
  const Regions::Mapping oldest = regions_.pop_oldest();
  if (oldest.memory) unmap(oldest.memory, oldest.bytes);
  return oldest.memory != nullptr;
}

// Unmaps the spans whose blocks are all here.
void Heap::trim_class(int size_class) {
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

std::int64_t Heap::trim_locked() {
  const std::int64_t before = reserved_now();
  for (int c = 0; c < kSizeClasses; ++c) trim_class(c);
  drop_free_regions();
  return before - reserved_now();
}

// Gives large blocks back that nobody uses.
void Heap::drop_free_regions() {
  while (unmap_oldest()) {
  }
  regions_.purge([](char* memory, std::size_t bytes) { madvise(memory, bytes, MADV_DONTNEED); });
}

std::int64_t Heap::trim(Cache& cache) {
  std::lock_guard lock(mutex);
  drain_all(cache);
  return trim_locked();
}

PoolStats Heap::stats() {
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
  stats.reserved_bytes = reserved_now();
  stats.free_bytes = stats.reserved_bytes - stats.live_bytes;
  stats.largest_free_bytes = static_cast<std::int64_t>(regions_.largest_free());
  stats.free_range_bytes = static_cast<std::int64_t>(regions_.free_bytes());
  stats.peak_reserved_bytes = peak_reserved_;
  return stats;
}

void Heap::reset_peaks() {
  std::lock_guard lock(mutex);
  peak_live_ = live_now();
  peak_reserved_ = reserved_now();
  for (Cache* cache : caches_) cache->peak_live.set(cache->live.get());
}

}  // namespace tw
