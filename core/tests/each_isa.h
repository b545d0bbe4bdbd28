// Runs a piece of a test on every instruction set that this machine has.
#pragma once
#include "core/cpu/isa/isa.h"

namespace tw::test {

template <class F> void on_each_isa(F&& f) {
  const Isa before = active_isa();
  for (int i = 0; i < kIsas; ++i) {
    if (!kernels_of(static_cast<Isa>(i))) continue;
    set_isa(static_cast<Isa>(i));
    f();
  }
  set_isa(before);
}

}  // namespace tw::test
