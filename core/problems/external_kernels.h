// Kernels from outside: functions of tilewright_kernel.h as rungs of the ladders of their ops.
#pragma once
#include "core/problems/tilewright_kernel.h"

namespace tw {

// Registers them all, or none: raises ValueError for another version of the interface, an op that
// takes none, a name that is taken, or more than there is room for. The library's texts and
// functions must stay for as long as the process lives.
void add_external_kernels(const tw_kernels& library);

}  // namespace tw
