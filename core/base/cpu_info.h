// What the processor can do, read from CPUID feature bits and sysfs, never from a model name.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace tw {

enum class Isa : std::uint8_t {
#define TW_ISA(name, help) name,
#include "core/base/instruction_sets.inc"
#undef TW_ISA
};
#define TW_ISA(name, help) +1
inline constexpr int kIsas = 0
#include "core/base/instruction_sets.inc"
    ;
#undef TW_ISA
const char* name_of(Isa isa);

struct CpuInfo {
  std::vector<std::string> features;           // e.g. "avx2", "fma", "avx512f", "amx_bf16"
  std::int64_t l1d_bytes, l2_bytes, l3_bytes;  // 0 where unknown
  int vector_path_bits;    // of floating-point units, where the processor tells; 0 where unknown
  int logical_processors;  // of the machine
  int usable_processors;   // min(affinity mask, cgroup quota), at least 1
};
const CpuInfo& cpu_info();
// Whether all of these features are there, by their names in CpuInfo.
bool has_features(std::initializer_list<const char*> names);
// Whether this machine can run kernels compiled for `isa` (the operating system's support
// included).
bool cpu_supports(Isa isa);
// Asks the operating system, once, for the tile registers' room in this process; false where the
// processor has none or the system refuses. Linux: arch_prctl(2), ARCH_REQ_XCOMP_PERM.
bool may_use_tiles();

}  // namespace tw
