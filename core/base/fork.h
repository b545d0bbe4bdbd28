// What a fork needs of each floor. A child has the forking thread alone: a lock that another thread
// holds at that moment would stay locked there for ever, what it guards half changed. So a fork
// takes all such locks first, and what is left of threads that are gone is put right in the child.
#pragma once
#include <cstdint>

namespace tw {

// The order in which a fork takes locks: who holds one may ask for any below it, never for one
// above. Each stands in one file.
enum class ForkOrder : std::uint8_t {
  schedulers,
  quota_pools,
  job_queues,
  spill_folders,
  events,
  scratch,
  heap,
  kernel_registry,
  choices,
  warnings,
  origins,
  texts,
  thread_pool
};
inline constexpr int kForkPlaces = static_cast<int>(ForkOrder::thread_pool) + 1;

// To be made at namespace scope, so that a fork finds the same list at any time. `lock` may be
// called before anything has used what it guards; both are null where nothing is to be locked.
// `renew` (null: nothing is to be done) is called in the child once all locks are free.
struct AtFork {
  AtFork(ForkOrder place, void (*lock)(), void (*unlock)(), void (*renew)() = nullptr);
};

}  // namespace tw
