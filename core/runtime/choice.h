// What a thread's choice of kernels depends on, summed up in one word of its modes.
#pragma once
#include <atomic>
#include <utility>
#include <vector>

#include "core/base/cpu_info.h"
#include "core/base/modes.h"
#include "core/base/optimizations.h"

namespace tw {

struct IsaKernels;
struct Kernel;
struct OpKernels;

struct ActiveIsa {
  Isa isa;
  const IsaKernels* kernels;
};

struct Choice {
  const ActiveIsa* isa = nullptr;  // null: the process's default
  bool batch_invariant = false;    // a row's bits do not depend on the rows beside it
  OptimizationSet off;             // beside those that are off for all threads
  std::vector<std::pair<const OpKernels*, const Kernel*>> forced;

  bool operator==(const Choice&) const = default;
  // Null where none is forced for the op.
  const Kernel* forced_for(const OpKernels* op) const {
    for (const auto& [of, kernel] : forced)
      if (of == op) return kernel;
    return nullptr;
  }
  // Null lifts.
  void force(const OpKernels* op, const Kernel* kernel);
  // Whether a kernel is forced for an op that has a shortcut past its kernels.
  bool forces_plain_op() const;
  // Whether calls must go through all steps: for that reason, or as a shortcut is off.
  bool wants_calls_in_full() const;
};

// The process's default: the best of the machine, TILEWRIGHT_ISA, or what set_default_isa chose;
// null until somebody asks.
extern std::atomic<const ActiveIsa*> known_default_isa;
const ActiveIsa& find_default_isa();
inline const ActiveIsa& default_isa() {
  const ActiveIsa* const known = known_default_isa.load(std::memory_order_acquire);
  return known ? *known : find_default_isa();
}
// The set in use on this thread.
inline const ActiveIsa& isa_in_force() {
  const Choice* choice = modes.choice;
  return choice && choice->isa ? *choice->isa : default_isa();
}
inline Isa active_isa() { return isa_in_force().isa; }

inline bool is_batch_invariant() { return modes.choice && modes.choice->batch_invariant; }

// The record that equals `choice`, the same for all threads and for as long as the process lives;
// null for the defaults.
const Choice* interned(const Choice& choice);

// This thread's, to be changed and put back.
inline Choice current_choice() { return modes.choice ? *modes.choice : Choice(); }
void set_choice(const Choice& choice);

// ---- optimizations: where code asks whether it may use one ----

// Turns exactly these off for all threads; rows of Scope::start stay as they are.
void turn_off_for_all(const OptimizationSet& rows);

// Off for this thread or for all.
inline bool is_off(Optimization row) {
  return is_off_for_all(row) || (modes.choice && modes.choice->off.has(row));
}
// What was used since somebody looked, while ops are observed: for `explain`.
struct Used {
  OptimizationSet rows;
  std::vector<const Kernel*> inner;  // that solved parts of the op's problem, each once
};
extern thread_local Used used;
[[gnu::cold, gnu::noinline]] void note_use(Optimization row);
[[gnu::cold, gnu::noinline]] void note_use(const Kernel& inner);
// Whether the row is on where all else speaks for it, so that it is used now. Asked on the thread
// that makes the call, before its loops.
inline bool uses(Optimization row) {
  if (is_off(row)) [[unlikely]]
    return false;
  if (!modes.plain) [[unlikely]]
    note_use(row);
  return true;
}

}  // namespace tw
