// Terms of a norm over the elements of many tensors.
#pragma once
#include <cstdint>

namespace tw {

// Of n contiguous elements: the sum of magnitudes, the sum of squares, the largest magnitude (NaN
// where any is), each in double.
enum class NormTerms { magnitudes, squares, largest };
inline constexpr int kNormTerms = 3;

struct TotalNormTable {
  using Terms = double (*)(std::int64_t n, const void* x);
  Terms float32[kNormTerms], float64[kNormTerms];
};

}  // namespace tw
