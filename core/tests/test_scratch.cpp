// Scratch stacks: alignment, order, growth, figures, other threads, fork.
#include "core/memory/scratch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "core/memory/pool.h"
#include "core/tests/check.h"

namespace tw {

TW_TEST(scratch_is_aligned_and_apart) {
  const Scratch none(0), a(1), b(1000), c(5 << 20), d(64);
  std::memset(b.as<char>(), 1, 1000);
  std::memset(c.as<char>(), 2, 5 << 20);
  std::memset(d.as<char>(), 3, 64);
  *a.as<char>() = 4;
  for (const Scratch* each : {&a, &b, &c, &d})
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(each->as<char>()) % kAlignment, 0u);
  CHECK_EQ(b.as<char>()[999], 1);
  CHECK_EQ(c.as<char>()[(5 << 20) - 1], 2);
  CHECK_EQ(d.as<char>()[63], 3);
}

TW_TEST(scratch_is_no_pool_traffic_and_is_reused) {
  pool_trim();
  const PoolStats before = pool_stats();
  const ScratchStats empty = scratch_stats();
  void* first = nullptr;
  for (int i = 0; i < 10; ++i) {
    const Scratch outer(3000), inner(100);
    if (i) CHECK_EQ(outer.as<void>(), first);
    first = outer.as<void>();
  }
  CHECK_EQ(pool_stats().allocations, before.allocations);
  CHECK_EQ(scratch_stats().reserved_bytes - empty.reserved_bytes, 2 << 20);
  CHECK_EQ(pool_trim(), 2 << 20);
  CHECK_EQ(scratch_stats().reserved_bytes, empty.reserved_bytes);
}

TW_TEST(scratch_figures_are_exact) {
  pool_trim();
  scratch_reset_peaks();
  const ScratchStats before = scratch_stats();
  {
    const Scratch a(100);
    {
      const Scratch b(1000);
    }
    CHECK_EQ(scratch_stats().live_bytes - before.live_bytes, 128);
    CHECK_EQ(scratch_trim(), 0);  // in use
  }
  const ScratchStats after = scratch_stats();
  CHECK_EQ(after.live_bytes, before.live_bytes);
  CHECK_EQ(after.peak_live_bytes - before.peak_live_bytes, 128 + 1024);
}

TW_TEST(scratch_joins_its_segments_once_it_is_empty) {
  pool_trim();
  const std::int64_t base = scratch_stats().reserved_bytes;
  {
    const Scratch a(1 << 20), b(3 << 20), c(1 << 20);
  }
  CHECK_EQ(scratch_stats().reserved_bytes, base);
  {
    const Scratch small(64);
  }
  const std::int64_t joint = scratch_stats().reserved_bytes - base;
  CHECK(joint >= 5 << 20);
  {
    const Scratch a(1 << 20), b(3 << 20), c(1 << 20);
  }
  CHECK_EQ(scratch_stats().reserved_bytes - base, joint);
  scratch_trim();
}

TW_TEST(scratch_below_an_empty_segment_is_given_back) {
  const Scratch a(1 << 20);
  for (int i = 0; i < 3; ++i) {
    const Scratch large(4 << 20);
    std::memset(large.as<char>(), i, 4 << 20);
  }
  const Scratch b(64);
  std::memset(b.as<char>(), 1, 64);
}

TW_TEST(scratch_keeps_no_giants) {
  pool_trim();
  const std::int64_t base = scratch_stats().reserved_bytes;
  {
    const Scratch giant(100 << 20);
  }
  CHECK_EQ(scratch_stats().reserved_bytes, base);
}

TW_TEST(scratch_refuses_absurd_sizes) {
  CHECK_THROWS(ErrorKind::memory, Scratch(SIZE_MAX), "cannot allocate 18446744073709551615 bytes");
  CHECK_THROWS(ErrorKind::memory, Scratch(std::size_t{1} << 50), "temporary memory");
  const Scratch still_works(64);
  *still_works.as<char>() = 1;
}

TW_TEST(scratch_of_ended_threads_is_given_back) {
  const std::int64_t base = scratch_stats().reserved_bytes;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (std::size_t i = 1; i < 400; ++i) {
        const Scratch a(i * 97), b(i * 11000);
        std::memset(a.as<char>(), t, i * 97);
        std::memset(b.as<char>(), -t, i * 11000);
        CHECK_EQ(a.as<char>()[i * 97 - 1], t);
        static_cast<void>(scratch_stats());
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(scratch_stats().reserved_bytes, base);
}

// Child processes after other threads ran are beyond the thread sanitizer.
#ifndef __SANITIZE_THREAD__
TW_TEST(scratch_works_in_a_forked_child) {
  const Scratch held(1000);
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    const Scratch a(1000), b(3 << 20);
    std::memset(b.as<char>(), 1, 3 << 20);
    static_cast<void>(scratch_stats());
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}
#endif

}  // namespace tw
