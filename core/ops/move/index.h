// Indexing by NumPy's rules: integers, slices, ellipsis, None, boolean masks and integer arrays.
#pragma once
#include <optional>
#include <vector>

#include "core/problems/index_errors.h"
#include "core/tensor/operand.h"

namespace tw {

struct IndexItem {
  enum class Kind { integer, slice, ellipsis, new_axis, truth, tensor };
  Kind kind;
  std::int64_t integer = 0;  // of a bool 0 or 1
  std::optional<std::int64_t> start = {}, stop = {}, step = {};
  Tensor tensor = {};  // bool or integer
};

// A view where there are only integers, slices, ellipsis and None; else a copy. Raises IndexError.
Tensor index(const Tensor& x, const std::vector<IndexItem>& items);
Tensor index(const Tensor& x, const IndexItem& item);
// x[items] = value, broadcast and converted.
void index_assign(Tensor& x, const std::vector<IndexItem>& items, const Operand& value);

// A copy of indices in int64, from 0 to extent - 1: negative ones are counted from the end of the
// axis; where there is none (kNone), they are classes, or places. Raises IndexError for others.
Tensor checked_indices(const Tensor& indices, std::int64_t extent, std::int64_t axis,
                       Indexing user);

// One int64 vector of positions for each axis, in row-major order.
std::vector<Tensor> nonzero(const Tensor& x);
// x[0], x[1], ...
std::vector<Tensor> rows_of(const Tensor& x);

}  // namespace tw
