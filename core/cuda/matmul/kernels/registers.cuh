// Rung 3, registers: elements of C in a thread's registers, so that what it reads from shared
// memory serves many multiplications.
#include "register_block.cuh"

TW_KERNEL(matmul_registers, Matmul, kBlockThreads) { multiply_block(p); }
