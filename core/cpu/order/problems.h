// What the kernels of this room are given.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/runtime/op.h"

namespace tw {

// Rows in order. k: how many come first; of kth_rows the place from 1 on, or minus what follows.
struct OrderProblem {
  DType dtype;
  bool flag = false;  // descending, or the largest first
  bool sorted = true;
  std::int64_t rows = 0, n = 0, k = 0;
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t* places = nullptr;
};
enum KthOf : Attribute { kNth, kMedian, kNanMedian };

// Where values would stand in rows that are in order.
struct SearchProblem {
  DType dtype;
  bool right;
  std::int64_t rows = 0, n = 0, queries = 0;  // of a row
  const void* x = nullptr;
  const void* values = nullptr;
  std::int64_t* y = nullptr;
};
// Counts of whole numbers, or of numbers between limits.
struct BinsProblem {
  DType dtype;
  std::int64_t n = 0, bins = 0;
  const void* x = nullptr;
  const void* limits = nullptr;
  std::int64_t* y = nullptr;
};
struct SharesProblem {
  std::int64_t n;
  const double* q;
  double* y;
};
// How much is true in the pieces of a mask, added up; and where that is.
struct CountsProblem {
  std::int64_t count, piece, pieces;
  const char* x;
  std::int64_t* y;
};
struct PositionsProblem {
  std::int64_t count, piece, pieces, found;
  int rank;
  std::int64_t extents[kMaxRank];
  const char* x;
  const std::int64_t* counts;
  std::int64_t* y;  // a row for each axis
};

}  // namespace tw
