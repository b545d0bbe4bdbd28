// Compiled once for each (instruction set, kernel family): the build defines TW_ISA_HEADER, the
// header that fixes vector width and namespace, and TW_FAMILY_HEADER, the kernels.
#include TW_ISA_HEADER
#include "core/cpu/simd/vec.h"
#include TW_FAMILY_HEADER
