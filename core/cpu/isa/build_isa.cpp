// Compiled once for each (instruction set, kernel family): the build defines TW_ISA_HEADER, the
// header that fixes vector width and namespace, and TW_FAMILY_HEADER, the kernels. Without those it
// stands for the headers that families share.
#include TW_ISA_HEADER
#include "core/cpu/simd/vec.h"
#ifdef TW_FAMILY_HEADER
#include TW_FAMILY_HEADER
#endif
