// Which scheduler task a thread works for: set by the scheduler's workers, read where work is
// queued on a task's behalf.
#pragma once
#include <cstdint>

namespace tw {

// 0: no task.
inline thread_local std::uint64_t current_task = 0;

}  // namespace tw
