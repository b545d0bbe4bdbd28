// The norm over all elements of many tensors: what its kernels are given.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

// Of n contiguous elements: the sum of magnitudes, the sum of squares, the largest magnitude (NaN
// where any is), each in double.
enum class NormTerms { magnitudes, squares, largest };
inline constexpr int kNormTerms = 3;

struct NormSlice {
  DType dtype;
  std::int64_t n;
  const void* data = nullptr;
};

// What the kernel runs on; the slices lie behind it.
struct TotalNormProblem {
  NormTerms terms;
  int count;
  DType result_type;
  void* result = nullptr;
  NormSlice* slices() { return reinterpret_cast<NormSlice*>(this + 1); }
  const NormSlice* slices() const { return reinterpret_cast<const NormSlice*>(this + 1); }
};

}  // namespace tw
