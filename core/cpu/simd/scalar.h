// The instruction set that every machine has: one lane, so that the generic code is plain C++.
#pragma once
#define TW_ISA_NAME scalar

namespace tw::scalar {
namespace {
inline constexpr int kVectorBytes = 1;  // rounded up to one element of whatever type
inline constexpr int kRegisters = 16;
}  // namespace
}  // namespace tw::scalar
