// The end of a launch: on the thread's device, without the frontend's lock where the work is long;
// observers are notified of what ran.
#pragma once

#include "core/memory/events.h"
#include "core/runtime/device.h"
#include "core/runtime/interruption.h"
#include "core/runtime/registry.h"
#include "core/runtime/op.h"

namespace tw {

// Frees the frontend's lock around long kernels; the binding installs the two functions, before any
// other thread asks.
struct FrontendLock {
  void* (*release)();
  void (*acquire)(void* state);
};
extern FrontendLock frontend_lock;

// Giving the lock away costs about 50 ns: worth it from about 20 us of work, which are 1 MB, or
// twice as many operations.
inline bool is_long(const Estimate& work) { return work.bytes > 1e6 || work.flops > 2e6; }

class Unlocked {
 public:
  explicit Unlocked(const Estimate& work)
      : state_(is_long(work) && modes.unlocks && frontend_lock.release ? frontend_lock.release()
                                                                       : nullptr) {}
  ~Unlocked() {
    if (state_) frontend_lock.acquire(state_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  explicit operator bool() const { return state_; }

 private:
  void* state_;
};

// Keeps the frontend's lock for a scope: what other threads would do in between must not happen.
class LockKept {
 public:
  LockKept() : before_(modes.unlocks) { modes.unlocks = false; }
  ~LockKept() { modes.unlocks = before_; }
  LockKept(const LockKept&) = delete;
  LockKept& operator=(const LockKept&) = delete;

 private:
  const bool before_;
};

// Runs `run()` as the computation of one op. `describe(event)` fills in the event's texts and is
// called only while ops are observed. A signal's handler may end what `makes_results` alone,
// without changing anything that is held.
template <class Run, class Describe> inline void run_prepared(const Estimate& estimate, Run&& run,
                                                              Describe&& describe,
                                                              bool makes_results = false) {
  const auto launch = [&] {
    const Unlocked unlocked(estimate);
    const MayEndEarly early(makes_results && unlocked);
    if (modes.plain) [[likely]]
      return static_cast<void>(run());
    if (modes.dry_run) return;
    if (active_device().computes) run();
  };
  if (!is_observed(kinds_of(EventKind::op)) || modes.dry_run) [[likely]]
    return launch();
  Event event;
  event.device = active_device().name;
  event.flops = estimate.flops;
  event.bytes = estimate.bytes;
  describe(event);
  active_device().synchronize(active_device());  // what ran before is not this op's time
  event.start_ns = now_ns();
  launch();
  active_device().synchronize(active_device());
  event.ns = now_ns() - event.start_ns;
  publish(event);
}

}  // namespace tw
