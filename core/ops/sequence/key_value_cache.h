// Keys and values of what a model has read, in memory for more rows than are filled: a row is
// written behind the others in place, and queries attend to all of them. No gradients pass.
#pragma once
#include <cstdint>
#include <optional>

#include "core/tensor/operand.h"

namespace tw {

// The memory, row-major and (batch, heads, room, size) each, and how many rows of it are filled: a
// number, or an int64 tensor of one element, which is read as kernels run. Recorded calls go on
// behind other rows by such a tensor.
struct KeyValueRows {
  Tensor keys, values;
  Operand filled;
};

// Writes (batch, heads, rows, size) behind the filled rows. Raises ValueError for other shapes and
// where they do not fit; nothing is written then.
void append_rows(const KeyValueRows& cache, const Tensor& key, const Tensor& value);

// Appends rows, and each query of them attends to all before it and to itself. `scale` is
// 1/sqrt(size) by default; the heads of `query` may be a multiple of the cache's. Few rows are one
// op with a kernel, attend_with_cache; more of them are slices, a mask and attention.
Tensor attend_with_cache(const KeyValueRows& cache, const Tensor& query, const Tensor& key,
                         const Tensor& value, std::optional<double> scale);

}  // namespace tw
