// AVX2 + FMA + F16C: 256-bit vectors, 16 registers.
#pragma once
#define TW_ISA_NAME avx2

namespace tw::avx2 {
namespace {
inline constexpr int kVectorBytes = 32;
inline constexpr int kRegisters = 16;
}  // namespace
}  // namespace tw::avx2
