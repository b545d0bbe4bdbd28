// Which scheduler task a thread works for: set by the scheduler's workers, read where work is
// queued on a task's behalf.
#pragma once
#include <atomic>
#include <cstdint>

namespace tw {

// 0: no task.
inline thread_local std::uint64_t current_task = 0;

// Waits for what a task that ends has in flight on devices, and raises what went wrong in it;
// installed by their floor with the first one.
inline std::atomic<void (*)(std::uint64_t task)> finish_launches = nullptr;

}  // namespace tw
