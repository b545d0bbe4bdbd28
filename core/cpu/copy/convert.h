// Element conversion between all dtypes, and copies of any strided array into any other.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/base/thresholds.h"

namespace tw {

// Strides in bytes, zero and negative allowed; x and y do not overlap. Floating to integer
// truncates (out of range unspecified), anything to bool is x != 0, complex to real drops the
// imaginary part, narrowing to a floating type rounds to nearest even.
using ConvertFunction = void (*)(std::int64_t n, const void* x, std::int64_t x_stride_bytes,
                                 void* y, std::int64_t y_stride_bytes);
// y[j][i] = x[i][j] for i < rows, j < cols; elements contiguous along j in x and along i in y.
// `stream`: y is too large to be read back from a cache, so write around them.
using TransposeFunction = void (*)(std::int64_t rows, std::int64_t cols, const void* x,
                                   std::int64_t x_row_bytes, void* y, std::int64_t y_row_bytes,
                                   bool stream);

// Rows of `count` elements, `run` bytes of y where they have no gaps; steps from one element to the
// next and from one row to the next are in bytes.
struct CopiedRows {
  std::int64_t rows, count, run, x_step, x_row, y_step, y_row;
};
using CopyRowsFunction = void (*)(const CopiedRows& rows, const void* x, void* y);

// Tiles that are transposed into a buffer on the way somewhere else: as many rows as a cache line
// of the source has elements, so that each of its lines is read once, and half of a first-level
// cache.
inline constexpr std::int64_t kTileBytes = thresholds::kHalfL1Bytes, kTileWidth = kTileBytes / 64;

struct ConvertTable {
  ConvertFunction convert[kDTypes][kDTypes];  // [from][to]
  TransposeFunction transpose[5];             // by log2 of the element size
  CopyRowsFunction copy_rows[5];              // by log2 of the element size, as the next
  // y[i][0:inner] = x[i], by log2 of the element size; up to 64 bytes behind the last are written.
  void (*spread[5])(std::int64_t rows, std::int64_t inner, const void* x, void* y);
};

// n elements on the calling thread, with the instruction set in use.
void convert_elements(DType from, DType to, std::int64_t n, const void* x,
                      std::int64_t x_stride_bytes, void* y, std::int64_t y_stride_bytes);

// y[i...] = x[i...] over `shape`, strides in elements (x: any; y: any without overlap). Orders the
// loops by stride, transposes through registers and shares large work between threads.
void copy_strided(DType from, DType to, DimsView shape, const void* x, DimsView x_strides, void* y,
                  DimsView y_strides);

}  // namespace tw
