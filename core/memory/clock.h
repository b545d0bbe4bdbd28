// The clock of events: that of std::chrono::steady_clock, read from the processor's counter of
// cycles where the system's own clock is that too. A reading takes half the time.
#pragma once
#include <atomic>
#include <cstdint>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace tw {

std::int64_t steady_now_ns();
// Some milliseconds behind at most, in a fifth of the time.
std::int64_t coarse_now_ns();

// A line through two readings of both clocks.
struct CycleClock {
  std::atomic<double> ns_per_cycle{0};  // 0: not known, or not to be used
  std::atomic<std::uint64_t> cycles{0};
  std::atomic<std::int64_t> ns{0};
};
extern CycleClock cycle_clock;
// To be called where nobody observes: readings before and after may differ by microseconds.
void set_cycle_clock();

// Nanoseconds of the steady clock.
inline std::int64_t now_ns() {
#ifdef __x86_64__
  if (const double scale = cycle_clock.ns_per_cycle.load(std::memory_order_relaxed); scale > 0) {
    const auto since =
        static_cast<std::int64_t>(__rdtsc() - cycle_clock.cycles.load(std::memory_order_relaxed));
    return cycle_clock.ns.load(std::memory_order_relaxed) +
           static_cast<std::int64_t>(static_cast<double>(since) * scale);
  }
#endif
  return steady_now_ns();
}

}  // namespace tw
