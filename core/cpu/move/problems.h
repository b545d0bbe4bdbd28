// What the kernels of this room are given.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/problems/attribute_values.h"
#include "core/runtime/op.h"

namespace tw {

// Rows by arrays of indices along the leading axes.
struct RowsProblem {
  DType dtype;
  int arrays;
  std::int64_t rows, row_count;
  std::int64_t count;               // of what is filled with zeros first
  std::int64_t row_step[kMaxRank];  // elements of the indexed tensor, by array
  PlainDims index;
  const std::int64_t* at[kMaxRank];
  const void* x;
  void* y;
  // Elements of an array by axis of the index. They lie behind the problem, whose size they are.
  std::int64_t* steps(int array) {
    return reinterpret_cast<std::int64_t*>(this + 1) + array * index.rank();
  }
  const std::int64_t* steps(int array) const {
    return const_cast<RowsProblem*>(this)->steps(array);
  }
};

// Rows along one axis, the axes before it as they are.
struct TakeProblem {
  DType dtype;
  std::int64_t rows, count, step,
      run;                  // of the lead, indices, bytes from one row to the next, of a row
  PlainDims lead, strides;  // in bytes
  const std::int64_t* index;
  const char* x;
  char* y;
};
// Indices to be checked.
struct IndexProblem {
  std::int64_t count, extent, axis;
  bool is_uint64;
  std::int64_t user;  // as the signature lists them
  const std::int64_t* x;
  std::int64_t* y;
};

// One axis of the index, or several that are evenly spaced in all arrays. Steps of the indexed
// array do not count the axis that is indexed.
struct AlongAxis {
  std::int64_t count, indexed_step, index_step, other_step;
};

struct AlongProblem {
  DType dtype;
  int rank;
  std::int64_t axis, extent, axis_step;  // of the indexed array
  ScatterJoin join;
  Attribute user;  // as the signatures list them
  AlongAxis axes[kMaxRank];
  PlainDims shape, steps;  // of what a scatter copies first
  const void* x;
  const std::int64_t* index;
  const void* src;
  void* y;
};

// Of each row of the result: where the operand's part begins, and how long it is.
struct JoinedPart {
  std::int64_t at, bytes;
  const char* x = nullptr;
};

// What the kernel runs on; the parts lie behind it.
struct JoinProblem {
  int count;
  std::int64_t rows, row_bytes;
  char* y = nullptr;
  JoinedPart* parts() { return reinterpret_cast<JoinedPart*>(this + 1); }
  const JoinedPart* parts() const { return reinterpret_cast<const JoinedPart*>(this + 1); }
};

// Runs of elements by their counts: the number of the run, or the place within it.
struct RunsProblem {
  std::int64_t count, total;
  bool within;
  const std::int64_t* counts;
  std::int64_t* y;
};

}  // namespace tw
