// Changes of a thread's modes that end again: with a block of the user's program, in whatever order
// blocks end, or with a task that took its submitter's modes on.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/runtime/choice.h"
#include "core/memory/events.h"

namespace tw {

// What a block changes.
struct ModeChanges {
  std::optional<bool> grad;
  std::optional<std::uint8_t> autocast;
  std::optional<bool> batch_invariant;
  std::optional<bool> anomaly;
  const ActiveIsa* isa = nullptr;
  std::vector<std::pair<const OpKernels*, const Kernel*>> forced;  // null kernel: lifted
  std::vector<const OptimizationRow*> off;                         // of Scope::call
};
// `owner` names the block to leave_modes(); the same one may be entered again before it is left.
void enter_modes(const void* owner, const ModeChanges& changes);
// Undoes the newest change of `owner` on this thread. What blocks inside it changed, and have not
// left yet, stays in force until they do. False where this thread has none.
bool leave_modes(const void* owner);

// What devices keep of a thread beside the record, their streams; installed by their floor. Null:
// the defaults.
struct DeviceModes {
  std::shared_ptr<const void> (*taken)() = [] { return std::shared_ptr<const void>(); };
  void (*put)(const void* modes) = [](const void*) {};
};
extern DeviceModes device_modes;

// A thread's modes, for another one to run under. No checkpoint, dry run or planned pass.
struct InheritedModes {
  bool grad;
  bool anomaly;
  std::uint8_t autocast;
  const Choice* choice;
  const Device* device;
  Observers observers;
  std::shared_ptr<BlockSource> source;
  std::shared_ptr<const void> streams;  // of devices
};
// This thread's; null for the defaults.
std::unique_ptr<const InheritedModes> inherited_modes();

// The part of a thread's modes that owns something, beside the record that ops read.
class ThreadModes {
 public:
  struct Change {
    const void* owner;
    std::uint64_t block;  // equal for what one block changed
    enum class Part : std::uint8_t {
      none,
      grad,
      autocast,
      batch_invariant,
      anomaly,
      isa,
      forced,
      off
    } part;
    const void* of;  // the op of a forced kernel, the row of an optimization
    const void* before;
  };
  std::vector<Change> changes;
  std::uint64_t last_block = 0;
  Observers observers;

  // Tells the record of the observers.
  void announce();
};
ThreadModes& thread_modes();

// Adds to, and removes from, this thread's observers. One that another thread stopped goes with the
// next op that it would have observed.
void observe(std::shared_ptr<Observer> observer);
void stop_observing(const Observer* observer);

// Runs under other modes for a scope; none of it is left behind, whatever the scope changed.
class ModesGuard {
 public:
  explicit ModesGuard(const InheritedModes* inherited);  // null: the defaults
  ~ModesGuard();
  ModesGuard(const ModesGuard&) = delete;
  ModesGuard& operator=(const ModesGuard&) = delete;

 private:
  Modes before_;
  ThreadModes own_before_;
  std::shared_ptr<const void> streams_before_;
};

}  // namespace tw
