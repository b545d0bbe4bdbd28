// Moving rows by index, on raw pointers.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

// Row i of y (row_count elements, contiguous) = row at x + offsets[i] elements.
void gather_rows(DType dtype, std::int64_t rows, std::int64_t row_count, const void* x,
                 const std::int64_t* offsets, void* y);
// The rows of x are written to y + offsets[i]; of repeated offsets the last wins.
void scatter_rows(DType dtype, std::int64_t rows, std::int64_t row_count, const void* x,
                  const std::int64_t* offsets, void* y);
// The rows of x are added to y + offsets[i], in order: repeated offsets accumulate.
void scatter_add_rows(DType dtype, std::int64_t rows, std::int64_t row_count, const void* x,
                      const std::int64_t* offsets, void* y);

}  // namespace tw
