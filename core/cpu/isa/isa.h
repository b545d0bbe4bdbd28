// The kernels of each instruction set as tables of functions, and the set in use.
#pragma once
#include "core/runtime/choice.h"

namespace tw {

#define TW_FAMILY(name, Table, header, loops) struct Table;
#include "core/cpu/isa/families.inc"

struct IsaKernels {
#define TW_FAMILY(name, Table, header, loops) const Table* name;
#include "core/cpu/isa/families.inc"
};

// Null where `isa` was not compiled in or this machine cannot run it.
const IsaKernels* kernels_of(Isa isa);

inline const IsaKernels& active_kernels() { return *isa_in_force().kernels; }
// One element at a time, for definitions; where that set is not built, those in use.
inline const IsaKernels& scalar_kernels() {
  const IsaKernels* const scalar = kernels_of(Isa::scalar);
  return scalar ? *scalar : active_kernels();
}
// The record of a set. Raises ValueError when this machine cannot run it.
const ActiveIsa* find_isa(Isa isa);
// For this thread, and for all that have not chosen. Both raise as find_isa does.
void set_isa(Isa isa);
void set_default_isa(Isa isa);

}  // namespace tw
