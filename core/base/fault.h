// Faults on demand: tests make the n-th allocation or file operation fail, to see that every
// failure ends in a clear error and loses nothing.
#pragma once
#include <atomic>
#include <cstdint>

namespace tw {

// How many more points pass before one fails; negative: none does.
extern std::atomic<std::int64_t> faults_after;

// True where this point must behave as if the system had refused.
inline bool fault_point() {
  if (faults_after.load(std::memory_order_relaxed) < 0) [[likely]]
    return false;
  return faults_after.fetch_sub(1, std::memory_order_relaxed) == 0;
}

}  // namespace tw
