// Running sums, products and log-sums along rows and down columns, and linear recurrences.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/thresholds.h"

namespace tw {

enum class ScanKind : std::uint8_t { sum, product, log_sum };

// An array as [outer, n, inner], scanned along n.
struct ScanLayout {
  std::int64_t outer, n, inner;
  bool are_rows;  // else columns
};
struct ScanProblem {
  DType dtype;
  ScanKind kind;
  bool reverse;
  ScanLayout layout;
  const char* x;
  char* y;
};
// y[i] = a[i] * y[i - 1] + b[i], the first b's, or with `reverse` from the end.
struct RecurrenceProblem {
  DType dtype;
  bool reverse;
  ScanLayout layout;
  const char *a, *b;
  char* y;
};
// The largest or smallest so far, and its place.
struct ExtremesProblem {
  DType dtype;
  bool largest;
  ScanLayout layout;
  const void* x;
  void* y;
  std::int64_t* places;
};

// Accumulators are double for floating types, else int64. With `reverse` a scan begins at the end.
struct ScanLoops {
  // y[i] = what x up to i comes to. Rows of sums may be taken in parts: `before` is added to each
  // y, `total` becomes the sum of the n alone, and where y is null there is that alone.
  using Row = void (*)(std::int64_t n, const void* x, void* y, const void* before, void* total,
                       bool reverse);
  // n rows of `width` columns, at most kScanStrip; rows are `inner` elements apart.
  using Columns = void (*)(std::int64_t n, std::int64_t width, std::int64_t inner, const void* x,
                           void* y, bool reverse);
  // Rows of at most kShortScan elements, one after the other; null: they are taken as others are.
  using Rows = void (*)(std::int64_t rows, std::int64_t n, const void* x, void* y, bool reverse);
  Row row;
  Columns columns;
  Rows short_rows;
};
inline constexpr std::int64_t kShortScan = thresholds::kNarrow;
inline constexpr std::int64_t kScanStrip = thresholds::kScanStrip;

// y[i] = a[i] * y[i - 1] + b[i], or y[i + 1] with `reverse`; the first is b's. Columns as above.
using RecurrenceLoop = void (*)(std::int64_t n, std::int64_t width, std::int64_t inner,
                                const void* a, const void* b, void* y, bool reverse);

struct ScanTable {
  ScanLoops float32[3], float64[3], int64[2];  // by kind
  RecurrenceLoop recurrence32, recurrence64;
};

}  // namespace tw
