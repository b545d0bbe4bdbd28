// arm64 Advanced SIMD: 128-bit vectors, 32 registers, fused multiply-add.
#pragma once
#define TW_ISA_NAME neon

namespace tw::neon {
namespace {
inline constexpr int kVectorBytes = 16;
inline constexpr int kRegisters = 32;
}  // namespace
}  // namespace tw::neon
