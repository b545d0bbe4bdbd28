// Counts calls in a file that processes share, so that children, crashes and _exit lose nothing.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tw::blas {

enum class Symbol { sgemm, dgemm, cblas_sgemm, cblas_dgemm };
inline constexpr int kSymbols = 4;
// The file, in 64-bit words of this machine: calls and floating-point operations of each symbol,
// then calls that each kernel of the ladder computed. `tilewright blas` reads the same.
inline constexpr int kTallyKernels = 24;
inline constexpr int kTallyWords = 2 * kSymbols + kTallyKernels;

// Nothing happens unless TILEWRIGHT_BLAS_COUNT names a file of this size.
void count_call(Symbol symbol, double flops) noexcept;
void count_kernel(std::ptrdiff_t rung) noexcept;  // its place in the ladder

}  // namespace tw::blas
