// The seam beside the dispatcher: while someone observes, every op leaves a record of what ran.
#pragma once
#include <chrono>
#include <string>
#include <type_traits>
#include <vector>

#include "core/memory/events.h"
#include "core/memory/op_uses.h"
#include "core/runtime/device.h"
#include "core/runtime/registry.h"

namespace tw {

struct Observation {
  std::string op, kernel, isa, problem;  // problem: shapes and types as text
  std::vector<Candidate> candidates;
  double ns = 0, flops = 0, bytes = 0;
};

// What makes dispatch leave its short path.
struct DispatchState {
  std::vector<Observation>* observations = nullptr;  // null while nobody observes
  const Device* device = &cpu_device;
  bool blocks_move = false;  // ops tell the memory floor when they end
  bool plain = true;         // nothing of these: one load on the eager path
  void update() {
    plain = !observations && device == &cpu_device && !blocks_move && !memory_log_on;
  }
};
extern DispatchState dispatch_state;

// Frees the frontend's lock around long kernels; the binding installs the two functions.
struct FrontendLock {
  void* (*release)();
  void (*acquire)(void* state);
};
extern FrontendLock frontend_lock;

class Unlocked {
 public:
  // Giving the lock away costs about 50 ns: worth it from about 20 us of work.
  explicit Unlocked(double work_bytes)
      : state_(work_bytes > 1e6 && frontend_lock.release ? frontend_lock.release() : nullptr) {}
  ~Unlocked() {
    if (state_) frontend_lock.acquire(state_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  void* state_;
};

// Tells the memory floor that an op has ended, also where it fails.
struct OpEnd {
  ~OpEnd() { end_op(); }
};

// Runs `run()` on the active device without a record of its own: memory set to a constant, rows
// moved. Whatever touches a tensor's memory in a gradient goes through here or through dispatch.
template <class Run> inline void launch(Run&& run) {
  if (dispatch_state.device == &cpu_device) [[likely]]
    return run();
  active_device().launch([](void* f) { (*static_cast<std::remove_reference_t<Run>*>(f))(); },
                         const_cast<void*>(static_cast<const void*>(&run)));
  active_device().synchronize();
}

// Runs `run()` as the computation of one op. `describe(observation)` fills in the record's texts
// and is called only while somebody observes.
template <class Run, class Describe>
inline void dispatch(double flops, double bytes, Run&& run, Describe&& describe) {
  if (dispatch_state.plain) [[likely]] {
    Unlocked unlocked(bytes);
    run();
    return;
  }
  const OpEnd end;
  if (!dispatch_state.observations && !memory_log_on) {
    const Unlocked unlocked(bytes);
    return launch(run);
  }
  Observation seen;
  seen.flops = flops;
  seen.bytes = bytes;
  describe(seen);
  if (memory_log_on) note_op(seen.op);
  if (!dispatch_state.observations) return launch(run);
  const auto start = std::chrono::steady_clock::now();
  launch(run);
  const auto stop = std::chrono::steady_clock::now();
  seen.ns = std::chrono::duration<double, std::nano>(stop - start).count();
  if (dispatch_state.observations) dispatch_state.observations->push_back(std::move(seen));
}

}  // namespace tw
