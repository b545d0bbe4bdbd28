// The memory pool: size classes, reuse, exact figures, threads, fork, exhaustion.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "core/memory/pool.h"
#include "core/memory/size_class.h"
#include "core/tests/check.h"

namespace tw {

namespace {

std::int64_t block_bytes(std::size_t bytes) {
  return static_cast<std::int64_t>(class_bytes(size_class_of(bytes)));
}

void fill(void* block, std::size_t bytes, int value) { std::memset(block, value, bytes); }

bool holds(const void* block, std::size_t bytes, int value) {
  const auto* data = static_cast<const unsigned char*>(block);
  for (std::size_t i = 0; i < bytes; ++i)
    if (data[i] != value) return false;
  return true;
}

}  // namespace

TW_TEST(size_classes_fit_with_little_waste) {
  for (std::size_t bytes = 0; bytes <= kLargestSmallBlock; bytes += bytes < 5000 ? 1 : 509) {
    const int c = size_class_of(bytes);
    CHECK(c >= 0 && c < kSizeClasses);
    CHECK(class_bytes(c) >= bytes);
    CHECK(class_bytes(c) % kAlignment == 0);
    if (c > 0) CHECK(class_bytes(c - 1) < bytes);
    if (bytes > 256) CHECK(4 * (class_bytes(c) - bytes) < bytes);
  }
}

TW_TEST(pool_blocks_are_aligned_and_apart) {
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (std::size_t bytes : {0, 0, 1, 64, 65, 300, 4096, 5000, 1 << 20, (1 << 20) + 1, 5 << 20}) {
    void* block = pool_allocate(bytes);
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(block) % kAlignment, 0u);
    fill(block, bytes, static_cast<int>(blocks.size()));
    for (const auto& other : blocks) CHECK(other.first != block);
    blocks.push_back({block, bytes});
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    CHECK(holds(blocks[i].first, blocks[i].second, static_cast<int>(i)));
    pool_release(blocks[i].first, blocks[i].second);
  }
}

TW_TEST(pool_figures_are_exact) {
  pool_trim();
  pool_reset_peaks();
  const PoolStats before = pool_stats();
  CHECK_EQ(before.peak_live_bytes, before.live_bytes);
  CHECK_EQ(before.peak_reserved_bytes, before.reserved_bytes);
  void* small = pool_allocate(1000);
  void* large = pool_allocate(3 << 20);
  PoolStats now = pool_stats();
  CHECK_EQ(now.live_bytes - before.live_bytes, block_bytes(1000) + (3 << 20));
  CHECK_EQ(now.allocations - before.allocations, 2);
  pool_release(large, 3 << 20);
  pool_release(small, 1000);
  void* again = pool_allocate(3 << 20);
  CHECK_EQ(again, large);
  pool_release(again, 3 << 20);
  now = pool_stats();
  CHECK_EQ(now.live_bytes, before.live_bytes);
  CHECK_EQ(now.peak_live_bytes - before.live_bytes, block_bytes(1000) + (3 << 20));
  CHECK_EQ(now.allocations - before.allocations, 3);
  CHECK_EQ(now.releases - before.releases, 3);
  CHECK(now.reuses - before.reuses >= 1);
  CHECK(now.reserved_bytes >= now.live_bytes + (3 << 20));
  CHECK(now.peak_reserved_bytes >= now.reserved_bytes);
}

TW_TEST(pool_splits_large_blocks_and_joins_them_again) {
  pool_trim();
  constexpr std::size_t kMiB = 1 << 20;
  char* whole = static_cast<char*>(pool_allocate(16 * kMiB));
  const std::int64_t reserved = pool_stats().reserved_bytes;
  pool_release(whole, 16 * kMiB);
  std::vector<char*> parts;
  for (int i = 0; i < 8; ++i) parts.push_back(static_cast<char*>(pool_allocate(2 * kMiB)));
  for (char* part : parts) {
    CHECK(part >= whole && part + 2 * kMiB <= whole + 16 * kMiB);
    for (char* other : parts)
      CHECK(other == part || other - part >= 2 << 20 || part - other >= 2 << 20);
    fill(part, 2 * kMiB, 5);
  }
  CHECK_EQ(pool_stats().reserved_bytes, reserved);
  for (int i : {1, 3, 5, 7}) pool_release(parts[i], 2 * kMiB);
  const PoolStats holes = pool_stats();
  CHECK_EQ(holes.largest_free_bytes, 2 << 20);
  CHECK_EQ(holes.free_range_bytes, 8 << 20);
  CHECK_EQ(pool_trim(), 8 << 20);  // the pages of the holes go, the parts between them stay
  CHECK_EQ(pool_stats().reserved_bytes, reserved - (8 << 20));
  for (int i : {0, 2, 4, 6}) CHECK(holds(parts[i], 2 * kMiB, 5));
  for (int i : {0, 2, 4, 6}) pool_release(parts[i], 2 * kMiB);
  CHECK_EQ(pool_stats().largest_free_bytes, 16 << 20);
  char* again = static_cast<char*>(pool_allocate(16 * kMiB));
  CHECK(again == whole);
  CHECK_EQ(pool_stats().reserved_bytes, reserved);
  pool_release(again, 16 * kMiB);
  pool_trim();
}

TW_TEST(pool_keeps_a_bounded_surplus) {
  pool_trim();
  for (std::size_t mib = 2; mib < 400; mib += mib / 4 + 1)
    pool_release(pool_allocate(mib << 20), mib << 20);
  const PoolStats stats = pool_stats();
  CHECK(stats.reserved_bytes <= (std::int64_t{400} << 20) * 5 / 4 + (64 << 20));
  pool_trim();
}

TW_TEST(pool_trim_returns_what_is_free) {
  pool_trim();
  const std::int64_t base = pool_stats().reserved_bytes;
  std::vector<void*> blocks;
  for (int i = 0; i < 2000; ++i) blocks.push_back(pool_allocate(1500));
  const std::int64_t reserved = pool_stats().reserved_bytes;
  CHECK(reserved - base >= 2000 * block_bytes(1500) - 256 * 1024);
  void* survivor = blocks.back();
  blocks.pop_back();
  fill(survivor, 1500, 77);
  for (void* block : blocks) pool_release(block, 1500);
  const std::int64_t given_back = pool_trim();
  CHECK_EQ(given_back, reserved - pool_stats().reserved_bytes);
  CHECK(pool_stats().reserved_bytes <= base + 256 * 1024);
  CHECK(holds(survivor, 1500, 77));
  pool_release(survivor, 1500);
  pool_trim();
  CHECK(pool_stats().reserved_bytes <= base);
}

TW_TEST(pool_refuses_absurd_sizes) {
  const PoolStats before = pool_stats();
  CHECK_THROWS(ErrorKind::memory, pool_allocate(SIZE_MAX), "cannot allocate 18446744073709551615");
  CHECK_THROWS(ErrorKind::memory, pool_allocate(SIZE_MAX / 2), "MiB reserved");
  CHECK_THROWS(ErrorKind::memory, pool_allocate(std::size_t{1} << 50), "are live");
  CHECK_EQ(pool_stats().live_bytes, before.live_bytes);
  CHECK_EQ(pool_stats().allocations, before.allocations);
}

TW_TEST(pool_takes_blocks_back_on_other_threads) {
  const PoolStats before = pool_stats();
  std::vector<std::pair<void*, std::size_t>> blocks;
  std::thread maker([&] {
    for (std::size_t i = 0; i < 3000; ++i) {
      const std::size_t bytes = i * 37 % 9000;
      blocks.push_back({pool_allocate(bytes), bytes});
      fill(blocks.back().first, bytes, 1);
    }
  });
  maker.join();
  for (const auto& [block, bytes] : blocks) pool_release(block, bytes);
  const PoolStats after = pool_stats();
  CHECK_EQ(after.live_bytes, before.live_bytes);
  CHECK_EQ(after.allocations - before.allocations, 3000);
  CHECK_EQ(after.releases - before.releases, 3000);
}

TW_TEST(pool_survives_many_threads) {
  const std::int64_t live = pool_stats().live_bytes;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([t] {
      std::vector<std::pair<void*, std::size_t>> mine;
      for (std::size_t i = 0; i < 4000; ++i) {
        const std::size_t bytes = i % 100 == 0 ? (1 << 20) + i : i * 61 % 5000;
        mine.push_back({pool_allocate(bytes), bytes});
        fill(mine.back().first, bytes < 64 ? bytes : 64, t);
        if (i % 3 == 0) continue;
        const auto [block, size] = mine[mine.size() / 2];
        CHECK(holds(block, size < 64 ? size : 64, t));
        pool_release(block, size);
        mine[mine.size() / 2] = mine.back();
        mine.pop_back();
        if (i % 500 == 0) static_cast<void>(pool_stats());
      }
      for (const auto& [block, size] : mine) pool_release(block, size);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(pool_stats().live_bytes, live);
}

TW_TEST(pool_does_not_grow_over_a_million_operations) {
  const auto run = [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([t] {
        std::vector<std::pair<void*, std::size_t>> mine(64, {nullptr, 0});
        std::uint64_t random = 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(t);
        for (int i = 0; i < 125'000; ++i) {
          random = random * 6364136223846793005u + 1442695040888963407u;
          auto& [block, bytes] = mine[random >> 58];
          if (block) pool_release(block, bytes);
          bytes = (random >> 20) % (i % 64 == 0 ? 4 << 20 : 20'000);
          block = pool_allocate(bytes);
        }
        for (const auto& [block, bytes] : mine)
          if (block) pool_release(block, bytes);
      });
    for (std::thread& thread : threads) thread.join();
  };
  const std::int64_t live = pool_stats().live_bytes;
  run();  // a million operations; the second million needs no more than the first left
  const std::int64_t reserved = pool_stats().reserved_bytes;
  run();
  CHECK_EQ(pool_stats().live_bytes, live);
  CHECK(pool_stats().reserved_bytes <= reserved + reserved / 4 + (64 << 20));
  pool_trim();
}

TW_TEST(pool_drains_the_caches_of_ended_threads) {
  pool_trim();
  std::thread([] { pool_release(pool_allocate(48 << 10), 48 << 10); }).join();
  const std::int64_t reserved = pool_stats().reserved_bytes;
  pool_trim();
  CHECK(pool_stats().reserved_bytes < reserved);
}

// Child processes after other threads ran are beyond the thread sanitizer.
#ifndef __SANITIZE_THREAD__
TW_TEST(pool_works_in_a_forked_child) {
  bool stop = false;
  std::thread busy([&] {  // often holds the lock while the others fork
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) pool_release(pool_allocate(2 << 20), 2 << 20);
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      for (std::size_t bytes : {64, 3000, 3 << 20}) pool_release(pool_allocate(bytes), bytes);
      _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  busy.join();
}
#endif

}  // namespace tw
