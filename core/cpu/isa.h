// The kernels of each instruction set as tables of functions, and the set in use.
#pragma once
#include "core/base/cpu_info.h"

namespace tw {

struct PointwiseTable;
struct PointwiseIntegerTable;
struct ConvertTable;
struct ReduceTable;
struct SoftmaxTable;
struct OptimizerTable;
struct MatmulTable;

struct IsaKernels {
#define TW_FAMILY(name, Table, header) const Table* name;
#include "core/cpu/families.inc"
#undef TW_FAMILY
};

// Null where `isa` was not compiled in or this machine cannot run it.
const IsaKernels* kernels_of(Isa isa);

// The set in use: the best of the machine, TILEWRIGHT_ISA, or what set_isa chose.
Isa active_isa();
const IsaKernels& active_kernels();
// Raises ValueError when this machine cannot run `isa`.
void set_isa(Isa isa);

}  // namespace tw
