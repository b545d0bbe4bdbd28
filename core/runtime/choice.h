// What a thread's choice of kernels depends on, summed up in one word of its modes.
#pragma once
#include <atomic>
#include <utility>
#include <vector>

#include "core/base/cpu_info.h"
#include "core/base/modes.h"

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

// This thread's, to be changed and interned again.
inline Choice current_choice() { return modes.choice ? *modes.choice : Choice(); }

}  // namespace tw
