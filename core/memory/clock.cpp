#include "core/memory/clock.h"

#include <time.h>

#include <chrono>
#include <fstream>
#include <string>

namespace tw {

CycleClock cycle_clock;

std::int64_t steady_now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::int64_t coarse_now_ns() {
#ifdef CLOCK_MONOTONIC_COARSE
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
#else
  return steady_now_ns();
#endif
}

#ifdef __x86_64__
namespace {

struct Reading {
  std::uint64_t cycles;
  std::int64_t ns;
};
// Of a few, the one that took least: others may take the processor in between.
Reading read_both() {
  Reading best{};
  std::uint64_t shortest = UINT64_MAX;
  for (int tried = 0; tried < 5; ++tried) {
    const std::uint64_t before = __rdtsc();
    const std::int64_t ns = steady_now_ns();
    const std::uint64_t took = __rdtsc() - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {before + took / 2, ns};
  }
  return best;
}

// The kernel reads the counter itself where it is steady and the same on all processors.
bool kernel_trusts_counter() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return std::getline(file, name) && name == "tsc";
}

// An error of 50 ns in a reading is less than a microsecond in a second then.
constexpr std::int64_t kLeastNs = 100'000'000;
const Reading at_start = read_both();

}  // namespace

void set_cycle_clock() {
  static const bool trusted = kernel_trusts_counter();
  const Reading now = read_both();
  if (!trusted || now.ns - at_start.ns < kLeastNs) return;
  cycle_clock.cycles = now.cycles;
  cycle_clock.ns = now.ns;
  cycle_clock.ns_per_cycle =
      static_cast<double>(now.ns - at_start.ns) / static_cast<double>(now.cycles - at_start.cycles);
}
#else
void set_cycle_clock() {}
#endif

}  // namespace tw
