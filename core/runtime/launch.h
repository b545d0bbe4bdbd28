// The end of a launch: on the thread's device, without the frontend's lock where the work is long;
// observers are notified of what ran.
#pragma once

#include <utility>

#include "core/base/frontend_lock.h"
#include "core/base/thresholds.h"
#include "core/memory/events.h"
#include "core/runtime/choice.h"
#include "core/runtime/device.h"
#include "core/runtime/interruption.h"
#include "core/runtime/registry.h"
#include "core/runtime/op.h"

namespace tw {

// Giving the frontend's lock away costs about 50 ns: worth it from about 20 us of work, which are 1
// MB, or twice as many operations.
inline bool is_long(const Estimate& work) {
  return work.bytes > thresholds::kLongCallBytes || work.flops > thresholds::kLongCallFlops;
}

// Moves what was used into an event.
void add_used(Event& event);

// Runs `run()` as the computation of one op. `describe(event)` fills in the event's texts and is
// called only while ops are observed. A signal's handler may end what `makes_results` alone,
// without changing anything that is held.
template <class Run, class Describe> inline void run_prepared(const Estimate& estimate, Run&& run,
                                                              Describe&& describe,
                                                              bool makes_results = false) {
  const auto launch = [&] {
    const Unlocked unlocked(is_long(estimate) && uses(Optimization::lock_release));
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
  locate(event);
  active_device().synchronize(active_device());  // what ran before is not this op's time
  event.start_ns = now_ns();
  launch();
  active_device().synchronize(active_device());
  event.ns = now_ns() - event.start_ns;
  if (!modes.plain) [[unlikely]]
    add_used(event);
  publish(event);
}

}  // namespace tw
